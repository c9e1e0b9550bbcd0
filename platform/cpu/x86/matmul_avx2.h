/* matmul_avx2.h: integer matrix products with AVX2, once for all types.
 *
 * A register holds 4 k of 8 rows, so a panel is two halves and a block of 32 k is 8 registers a
 * half. Weights are the unsigned operand of maddubs where their codes are unsigned; its sums of
 * two products are 16 bits wide, and codes of 4, 5 and 6 bits leave room to add 8, 4 and 2 of
 * them before they are widened. Zero points come off afterwards, by the sums of the record.
 *
 * One token: codes are unpacked in registers, and both chains of a panel stay there. A few:
 * matmul_few_avx2.h. Many: some blocks of a panel are unpacked into the scratch and serve tiles
 * of 16 rows by 4 tokens, the chains resting in dst between them. All of them ask for memory in
 * small steps while the products go on: a burst of requests stalls until most of it has
 * arrived, and then reading and multiplying take turns.
 *
 * The functions take a constant description of the type and are inlined into one kernel a
 * type, where it vanishes. */
#ifndef TERN_CPU_MATMUL_AVX2_H
#define TERN_CPU_MATMUL_AVX2_H

#ifndef __AVX2__
#error "this belongs to the AVX2 variant"
#endif

#include "platform/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

#define TERN_INLINE static inline __attribute__((always_inline))

enum tern_chain {
    TERN_CHAIN_U4, /* 8 results of maddubs fit 16 bits */
    TERN_CHAIN_U5, /* 4 */
    TERN_CHAIN_U6, /* 2; with a scale for each 16 */
    TERN_CHAIN_U3, /* 4 and more; with a scale for each 16 */
    TERN_CHAIN_U7, /* 1 */
    TERN_CHAIN_U7_SC, /* 1; with a scale for each 16 */
    TERN_CHAIN_S8, /* signed codes: 1 */
};

/* Sub-block period * group + member of a panel's block. `member` is always a constant. */
struct tern_sub { const uint8_t *block; unsigned group, member; };

struct tern_codes_avx2 {
    enum tern_chain chain;
    int zero;                    /* subtracted from the codes */
    unsigned block_bytes;        /* of a panel's block: 16 * n_bytes */
    unsigned n_groups, period;
    bool has_min;
    void (*unpack)(struct tern_sub s, unsigned half, __m256i w[8]);
    __m256 (*scale)(struct tern_sub s, unsigned half);
    __m256 (*minus_min)(struct tern_sub s, unsigned half); /* has_min */
    __m256i (*sc)(struct tern_sub s, unsigned half); /* has_sc: pairs (sc0, sc1) */
    __m256i (*m)(struct tern_sub s, unsigned half); /* has_min with sc: pairs (m0, m1) */
};

/* So many results of maddubs are added in 16 bits. */
TERN_INLINE int chain_length(enum tern_chain chain)
{
    return chain == TERN_CHAIN_U4                              ? 8
           : chain == TERN_CHAIN_U6                            ? 2
           : chain == TERN_CHAIN_U5 || chain == TERN_CHAIN_U3 ? 4
                                                               : 1;
}

/* Scales for each 16, small integers, come between the two sums of a block. */
TERN_INLINE bool has_sc(const struct tern_codes_avx2 *f)
{
    return f->chain == TERN_CHAIN_U6 || f->chain == TERN_CHAIN_U3 ||
           f->chain == TERN_CHAIN_U7_SC;
}

/* The record of one token, from some block on. */
struct tern_token { const int8_t *q; const float *d; const int16_t *sum; };

TERN_INLINE __m256i load_256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

TERN_INLINE __m256i broadcast_4(const void *p)
{
    int32_t x;
    memcpy(&x, p, 4);
    return _mm256_set1_epi32(x);
}

TERN_INLINE __m256 load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

TERN_INLINE __m256i low_nibbles(__m256i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi8(15));
}

TERN_INLINE __m256i high_nibbles(__m256i x)
{
    return low_nibbles(_mm256_srli_epi16(x, 4));
}

/* Vector j of nibbles holds k = 4 j in its low halves and 16 + 4 j in its high ones. */
TERN_INLINE void unpack_nibbles(const uint8_t *q, unsigned half, __m256i w[8])
{
    for (int j = 0; j < 4; j++) {
        const __m256i x = load_256(q + 64 * j + 32 * half);
        w[j] = low_nibbles(x);
        w[4 + j] = high_nibbles(x);
    }
}

TERN_INLINE __m256 scale_first(struct tern_sub s, unsigned half)
{
    return load_f16(s.block + 16 * half);
}

/* Q4_1 and Q5_1 add their m: minus the minimum is m itself. */
TERN_INLINE __m256 added_m(struct tern_sub s, unsigned half)
{
    return load_f16(s.block + 32 + 16 * half);
}

/* The compiler must not make trees of long sums: their leaves do not fit the registers. */
TERN_INLINE __m256i in_order(__m256i x)
{
    __asm__("" : "+x"(x));
    return x;
}

/* (a, a) and (b, b) of pairs (a, b) of 16 bits. */
TERN_INLINE __m256i first_of_pairs(__m256i pairs)
{
    return _mm256_blend_epi16(pairs, _mm256_slli_epi32(pairs, 16), 0xaa);
}

TERN_INLINE __m256i second_of_pairs(__m256i pairs)
{
    return _mm256_blend_epi16(pairs, _mm256_srli_epi32(pairs, 16), 0x55);
}

/* Four results of maddubs, added in 16 bits. */
TERN_INLINE __m256i chain_4(const __m256i w[4], const int8_t *q)
{
    __m256i sum = _mm256_maddubs_epi16(w[0], broadcast_4(q));
    for (int j = 1; j < 4; j++)
        sum = in_order(_mm256_add_epi16(sum, _mm256_maddubs_epi16(w[j], broadcast_4(q + 4 * j))));
    return sum;
}

/* Half a block with its own scale, or with both: chains of two results, times sc. */
TERN_INLINE __m256i scaled_4(const __m256i w[4], const int8_t *q, __m256i sc)
{
    __m256i sum = _mm256_setzero_si256();
    for (int j = 0; j < 4; j += 2) {
        const __m256i pair = _mm256_add_epi16(_mm256_maddubs_epi16(w[j], broadcast_4(q + 4 * j)),
            _mm256_maddubs_epi16(w[j + 1], broadcast_4(q + 4 * j + 4)));
        sum = in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(pair, sc)));
    }
    return sum;
}

/* The same for codes of 7 bits: no chains. */
TERN_INLINE __m256i single_4(const __m256i w[4], const int8_t *q, __m256i sc)
{
    __m256i sum = _mm256_setzero_si256();
    for (int j = 0; j < 4; j++)
        sum = in_order(_mm256_add_epi32(
            sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w[j], broadcast_4(q + 4 * j)), sc)));
    return sum;
}

TERN_INLINE __m256i signed_4(const __m256i w[4], const int8_t *q)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    for (int j = 0; j < 4; j++) {
        const __m256i x = _mm256_sign_epi8(broadcast_4(q + 4 * j), w[j]);
        const __m256i pair = _mm256_maddubs_epi16(_mm256_abs_epi8(w[j]), x);
        sum = in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(pair, ones)));
    }
    return sum;
}

/* The integer of a block: sum of code * q over 32 k, with scales where there are two. */
TERN_INLINE __m256i dot_block(enum tern_chain chain, const __m256i w[8], const int8_t *q,
                              __m256i sc)
{
    const __m256i ones = _mm256_set1_epi16(1);
    if (chain == TERN_CHAIN_S8)
        return _mm256_add_epi32(signed_4(w, q), signed_4(w + 4, q + 16));
    if (chain == TERN_CHAIN_U7)
        return _mm256_add_epi32(single_4(w, q, ones), single_4(w + 4, q + 16, ones));
    if (chain == TERN_CHAIN_U7_SC)
        return _mm256_add_epi32(single_4(w, q, first_of_pairs(sc)),
                                single_4(w + 4, q + 16, second_of_pairs(sc)));
    if (chain == TERN_CHAIN_U6)
        return _mm256_add_epi32(scaled_4(w, q, first_of_pairs(sc)),
                                scaled_4(w + 4, q + 16, second_of_pairs(sc)));
    const __m256i low = chain_4(w, q), high = chain_4(w + 4, q + 16);
    if (chain == TERN_CHAIN_U3)
        return _mm256_add_epi32(_mm256_madd_epi16(low, first_of_pairs(sc)),
                                _mm256_madd_epi16(high, second_of_pairs(sc)));
    if (chain == TERN_CHAIN_U4)
        return _mm256_madd_epi16(_mm256_add_epi16(low, high), ones);
    return _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
}

/* -zero * sum in every lane. */
TERN_INLINE __m256i side_zero(const int16_t *sum, int zero)
{
    return _mm256_madd_epi16(broadcast_4(sum), _mm256_set1_epi16((int16_t)-zero));
}

/* d * (m0 * sum0 + m1 * sum1), m being pairs. */
TERN_INLINE __m256 side_min(const int16_t *sum, __m256i m, __m256 d)
{
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_madd_epi16(broadcast_4(sum), m)));
}

/* What one sub-block of 8 rows adds to the chains of one token. */
struct tern_half { __m256i w[8]; __m256 scale, minus_min; __m256i sc, m; };

TERN_INLINE void unpack_half(const struct tern_codes_avx2 *f, struct tern_sub s, unsigned half,
                             struct tern_half *out)
{
    f->unpack(s, half, out->w);
    out->scale = f->scale(s, half);
    if (f->has_min) {
        out->minus_min = f->minus_min(s, half);
        out->m = f->m ? f->m(s, half) : _mm256_set1_epi16(1);
    }
    if (has_sc(f))
        out->sc = f->sc(s, half);
}

/* Pairs -zero * (sc0, sc1). */
TERN_INLINE __m256i minus_zero(const struct tern_codes_avx2 *f, __m256i sc)
{
    return _mm256_mullo_epi16(sc, _mm256_set1_epi16((int16_t)-f->zero));
}

TERN_INLINE __m256 step_half(const struct tern_codes_avx2 *f, const struct tern_half *w,
                             const int8_t *q, float d, const int16_t *sum, __m256 acc)
{
    const __m256 all_d = _mm256_set1_ps(d);
    __m256i dot = dot_block(f->chain, w->w, q, w->sc);
    if (f->zero && has_sc(f))
        dot = _mm256_add_epi32(dot, _mm256_madd_epi16(broadcast_4(sum), minus_zero(f, w->sc)));
    else if (f->zero)
        dot = _mm256_add_epi32(dot, side_zero(sum, f->zero));
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(w->scale, all_d), acc);
    if (f->has_min)
        acc = _mm256_fmadd_ps(w->minus_min, side_min(sum, w->m, all_d), acc);
    return acc;
}

enum { TERN_PREFETCH_AHEAD = 4096 };

/* Asks for memory that is read later. Past a matrix's end this does nothing. */
TERN_INLINE void prefetch(const uint8_t *p, size_t ahead, size_t bytes)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)((uintptr_t)p + ahead + i), _MM_HINT_T0);
}

/* One panel, one token. */
TERN_INLINE void panel_by_1(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                            const uint8_t *block, size_t token, float *dst)
{
    const size_t i = token * m->acts->n_blocks;
    const int8_t *q = m->acts->q + TERN_SUB * i;
    const float *d = m->acts->d + i;
    const int16_t *sum = m->acts->sum + 2 * i;
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    const size_t n_blocks = m->n_cols / (TERN_SUB * f->n_groups * f->period);
    for (size_t b = 0; b < n_blocks; b++, block += f->block_bytes)
        for (unsigned g = 0; g < f->n_groups; g++) {
            const unsigned bytes = f->block_bytes / f->n_groups;
            prefetch(block + g * bytes, TERN_PREFETCH_AHEAD, bytes);
#pragma GCC unroll 8
            for (unsigned e = 0; e < f->period; e++) {
                const struct tern_sub s = {block, g, e};
                struct tern_half w;
                unpack_half(f, s, 0, &w);
                acc[0] = step_half(f, &w, q, *d, sum, acc[0]);
                __asm__("" : "+r"(q)); /* load again: registers are dearer than loads */
                unpack_half(f, s, 1, &w);
                acc[1] = step_half(f, &w, q, *d, sum, acc[1]);
                q += TERN_SUB;
                d++;
                sum += 2;
            }
        }
    _mm256_storeu_ps(dst, acc[0]);
    _mm256_storeu_ps(dst + 8, acc[1]);
}

/* --- many tokens --- */

/* A sub-block of a panel as tiles want it: codes[j][r][b] is element 4 j + b of row r. */
struct tern_expanded {
    uint8_t codes[8][2][32];
    float scale[2][8];
    float minus_min[2][8];
    int16_t sc[2][2][16]; /* pairs (sc0, sc0), (sc1, sc1) */
    int16_t side[2][16];  /* with sc, pairs that sums are multiplied by: (m0, m1), or
                             (-zero sc0, -zero sc1) */
};

enum {
    TERN_SCRATCH_SECOND = 16384, /* behind expanded sub-blocks, or behind the chains of a few */
    TERN_GROUP_TOKENS = 128,
    TERN_GROUP_BYTES = 320 * 1024,
    TERN_MAX_EXPANDED = 19,
};
_Static_assert(TERN_MAX_EXPANDED * sizeof(struct tern_expanded) <= TERN_SCRATCH_SECOND, "scratch");

TERN_INLINE void expand_sub(const struct tern_codes_avx2 *f, struct tern_sub s,
                            struct tern_expanded *out)
{
#pragma GCC unroll 2
    for (unsigned half = 0; half < 2; half++) {
        struct tern_half w;
        unpack_half(f, s, half, &w);
        for (int j = 0; j < 8; j++)
            _mm256_storeu_si256((__m256i *)(void *)out->codes[j][half], w.w[j]);
        _mm256_storeu_ps(out->scale[half], w.scale);
        if (f->has_min)
            _mm256_storeu_ps(out->minus_min[half], w.minus_min);
        if (has_sc(f)) {
            _mm256_storeu_si256((__m256i *)(void *)out->sc[0][half], first_of_pairs(w.sc));
            _mm256_storeu_si256((__m256i *)(void *)out->sc[1][half], second_of_pairs(w.sc));
            _mm256_storeu_si256((__m256i *)(void *)out->side[half],
                                f->has_min ? w.m : minus_zero(f, w.sc));
        }
    }
}

/* Groups of sub-blocks first .. first + n - 1 of a panel. */
TERN_INLINE void expand(const struct tern_codes_avx2 *f, const uint8_t *panel, size_t first,
                        size_t n, struct tern_expanded *out)
{
    for (size_t g = first; g < first + n; g++)
#pragma GCC unroll 8
        for (unsigned e = 0; e < f->period; e++) {
            const struct tern_sub s = {panel + g / f->n_groups * f->block_bytes,
                                       (unsigned)(g % f->n_groups), e};
            expand_sub(f, s, out++);
        }
}

/* What a tile takes and gives, from its first token and sub-block on. n_blocks is the stride of
 * the record; side is -zero * sum as int32, or d * sum as float. */
struct tern_tile {
    const int8_t *q;
    const float *d;
    const int16_t *sum;
    const int32_t *side;
    size_t n_blocks;
    float *dst;
    size_t dst_stride;
};

/* sum += code * q over j0 .. j1 - 1 for n_tokens tokens and both halves, in 16 bits. */
TERN_INLINE void tile_chain(const struct tern_expanded *w, const int8_t *q, size_t q_stride,
                            size_t n_tokens, int j0, int j1, __m256i sum[4][2])
{
#pragma GCC unroll 8
    for (int j = j0; j < j1; j++) {
        const __m256i w0 = load_256(w->codes[j][0]), w1 = load_256(w->codes[j][1]);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++) {
            const __m256i x = broadcast_4(q + t * q_stride + 4 * j);
            const __m256i p0 = _mm256_maddubs_epi16(w0, x), p1 = _mm256_maddubs_epi16(w1, x);
            sum[t][0] = j == j0 ? p0 : in_order(_mm256_add_epi16(sum[t][0], p0));
            sum[t][1] = j == j0 ? p1 : in_order(_mm256_add_epi16(sum[t][1], p1));
        }
    }
}

/* The same for signed codes, in 32 bits. */
TERN_INLINE void tile_signed(const struct tern_expanded *w, const int8_t *q, size_t q_stride,
                             size_t n_tokens, __m256i sum[4][2])
{
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256i w0 = load_256(w->codes[j][0]), w1 = load_256(w->codes[j][1]);
        const __m256i a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++) {
            const __m256i x = broadcast_4(q + t * q_stride + 4 * j);
            const __m256i p0 = _mm256_maddubs_epi16(a0, _mm256_sign_epi8(x, w0));
            const __m256i p1 = _mm256_maddubs_epi16(a1, _mm256_sign_epi8(x, w1));
            const __m256i s0 = _mm256_madd_epi16(p0, ones), s1 = _mm256_madd_epi16(p1, ones);
            sum[t][0] = j == 0 ? s0 : in_order(_mm256_add_epi32(sum[t][0], s0));
            sum[t][1] = j == 0 ? s1 : in_order(_mm256_add_epi32(sum[t][1], s1));
        }
    }
}

/* dot[t][half] of one sub-block, zero points not yet off. */
TERN_INLINE void tile_dots(const struct tern_codes_avx2 *f, const struct tern_expanded *w,
                           const int8_t *q, size_t q_stride, size_t n_tokens, __m256i dot[4][2])
{
    const enum tern_chain chain = f->chain;
    const int length = chain_length(chain);
    if (chain == TERN_CHAIN_S8) {
        tile_signed(w, q, q_stride, n_tokens, dot);
        return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < 8; j += length) {
        __m256i sum[4][2];
        tile_chain(w, q, q_stride, n_tokens, j, j + length, sum);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const __m256i by = has_sc(f) ? load_256(w->sc[j / 4][half])
                                             : _mm256_set1_epi16(1);
                const __m256i s = _mm256_madd_epi16(sum[t][half], by);
                dot[t][half] = j == 0 ? s : _mm256_add_epi32(dot[t][half], s);
            }
    }
}

/* n_subs expanded sub-blocks for n_tokens <= 4 tokens; the chains go on from dst. */
TERN_INLINE void tile(const struct tern_codes_avx2 *f, const struct tern_expanded *w,
                      size_t n_subs, struct tern_tile a, size_t n_tokens)
{
    __m256 acc[4][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < n_tokens; t++)
        for (int half = 0; half < 2; half++)
            acc[t][half] = _mm256_loadu_ps(a.dst + t * a.dst_stride + 8 * half);
    for (size_t s = 0; s < n_subs; s++, w++) {
        __m256i dot[4][2];
        tile_dots(f, w, a.q + TERN_SUB * s, TERN_SUB * a.n_blocks, n_tokens, dot);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++) {
            const size_t i = t * a.n_blocks + s;
            const __m256 d = _mm256_set1_ps(a.d[i]);
            const __m256i sums = has_sc(f) ? broadcast_4(a.sum + 2 * i) : broadcast_4(a.side + i);
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const __m256i side =
                    has_sc(f) ? _mm256_madd_epi16(sums, load_256(w->side[half])) : sums;
                __m256i x = dot[t][half];
                if (f->zero)
                    x = _mm256_add_epi32(x, side);
                acc[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(x),
                    _mm256_mul_ps(_mm256_loadu_ps(w->scale[half]), d), acc[t][half]);
                if (f->has_min)
                    acc[t][half] = _mm256_fmadd_ps(_mm256_loadu_ps(w->minus_min[half]),
                        has_sc(f) ? _mm256_mul_ps(d, _mm256_cvtepi32_ps(side))
                                  : _mm256_castsi256_ps(side), acc[t][half]);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < n_tokens; t++)
        for (int half = 0; half < 2; half++)
            _mm256_storeu_ps(a.dst + t * a.dst_stride + 8 * half, acc[t][half]);
}

/* The same for any number of tokens; of the `bytes` used next some are asked for with each. */
TERN_INLINE void tiles(const struct tern_codes_avx2 *f, const struct tern_expanded *w,
                       size_t n_subs, struct tern_tile a, size_t n_tokens, const uint8_t *next,
                       size_t bytes)
{
    const size_t ask = n_tokens < 4 ? bytes : (bytes / (n_tokens / 4) + 63) / 64 * 64;
    for (; n_tokens >= 4; n_tokens -= 4) {
        prefetch(next, 0, ask);
        next += ask;
        tile(f, w, n_subs, a, 4);
        a.q += 4 * TERN_SUB * a.n_blocks;
        a.d += 4 * a.n_blocks;
        a.sum += 8 * a.n_blocks;
        a.side += 4 * a.n_blocks;
        a.dst += 4 * a.dst_stride;
    }
    switch (n_tokens) {
    case 3: tile(f, w, n_subs, a, 3); break;
    case 2: tile(f, w, n_subs, a, 2); break;
    case 1: tile(f, w, n_subs, a, 1); break;
    default: break;
    }
}

/* What the sums of n records give: see struct tern_tile. */
TERN_INLINE void make_side(const struct tern_codes_avx2 *f, const struct tern_acts *a, size_t token,
                           size_t n_tokens, int32_t *side)
{
    const int16_t *sum = a->sum + 2 * token * a->n_blocks;
    const float *d = a->d + token * a->n_blocks;
    for (size_t i = 0; i < n_tokens * a->n_blocks; i++) {
        const int32_t both = sum[2 * i] + sum[2 * i + 1];
        if (f->has_min) {
            const float x = d[i] * (float)both;
            memcpy(side + i, &x, sizeof x);
        } else {
            side[i] = -f->zero * both;
        }
    }
}

TERN_INLINE void zero_tile(float *dst, size_t dst_stride, size_t n_tokens)
{
    for (size_t t = 0; t < n_tokens; t++, dst += dst_stride)
        memset(dst, 0, TERN_PANEL_ROWS * sizeof *dst);
}

TERN_INLINE void matmul_many(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                             size_t first, size_t n, size_t token, size_t n_tokens)
{
    const struct tern_acts *a = m->acts;
    struct tern_expanded *w = m->scratch;
    int32_t *side = (int32_t *)(void *)((char *)m->scratch + TERN_SCRATCH_SECOND);
    const size_t n_groups = m->n_cols / (TERN_SUB * f->period);
    const size_t most = TERN_MAX_EXPANDED / f->period, n_parts = (n_groups + most - 1) / most;
    const size_t part = (n_groups + n_parts - 1) / n_parts;
    if (!has_sc(f) && (f->has_min || f->zero))
        make_side(f, a, token, n_tokens, side);
    for (size_t p = first; p < first + n; p++) {
        float *dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * p;
        zero_tile(dst, m->dst_stride, n_tokens);
        for (size_t g = 0; g < n_groups; g += part) {
            const size_t n_now = n_groups - g < part ? n_groups - g : part;
            const uint8_t *panel = m->panels + p * m->panel_bytes;
            expand(f, panel, g, n_now, w);
            const uint8_t *next = panel + (g + n_now) * f->block_bytes / f->n_groups;
            const size_t s = g * f->period, i = token * a->n_blocks + s;
            const struct tern_tile t = {a->q + TERN_SUB * i, a->d + i, a->sum + 2 * i, side + s,
                                        a->n_blocks, dst, m->dst_stride};
            tiles(f, w, n_now * f->period, t, n_tokens, next,
                  n_now * f->block_bytes / f->n_groups);
        }
    }
}

/* As many tokens as leave their activations in the second cache while panels pass. */
TERN_INLINE size_t group_tokens(size_t n_cols)
{
    const size_t fit = TERN_GROUP_BYTES / n_cols / 4 * 4;
    return fit > TERN_GROUP_TOKENS ? TERN_GROUP_TOKENS : fit < 32 ? 32 : fit;
}

#endif
