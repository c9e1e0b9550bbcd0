/* matmul_avx2.h: integer matrix products with AVX2, once for all types.
 *
 * A register holds 4 k of 8 rows, so a panel is two halves and a block of 32 k is 8 registers a
 * half. Weights are the unsigned operand of maddubs where their codes are unsigned; its sums of
 * two products are 16 bits wide, and codes of 4, 5 and 6 bits leave room to add 8, 4 and 2 of
 * them before they are widened. Zero points come off afterwards, by the sums of the record.
 *
 * One token: codes are unpacked in registers, and both chains of a panel stay there. A few:
 * matmul_few_avx2.h. Many, or any number where unpacking is most of the work:
 * matmul_tiles_avx2.c. All of them ask for memory in small steps while the products go on: a burst
 * of requests stalls until most of it has arrived, and then reading and multiplying take turns.
 *
 * The functions take a constant description of the type and are inlined into one kernel a
 * type, where it vanishes. */
#ifndef TERN_CPU_MATMUL_AVX2_H
#define TERN_CPU_MATMUL_AVX2_H

#ifndef __AVX2__
#error "this belongs to the AVX2 variant"
#endif

#include "platform/cpu/kernels.h"
#include "platform/cpu/x86/expanded_avx2.h"

#include <immintrin.h>
#include <string.h>

#define TERN_INLINE static inline __attribute__((always_inline))

/* Sub-block period * group + member of a panel's block. `member` is always a constant. */
struct tern_sub { const uint8_t *block; unsigned group, member; };

struct tern_codes_avx2 {
    enum tern_chain chain;
    int zero;                    /* subtracted from the codes */
    unsigned block_bytes;        /* of a panel's block: 16 * n_bytes */
    unsigned n_groups, period;
    bool has_min;
    bool compact;                /* rare: both halves share their code, a few tokens take tiles */
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
TERN_INLINE bool chain_has_sc(enum tern_chain chain)
{
    return chain == TERN_CHAIN_U6 || chain == TERN_CHAIN_U3 || chain == TERN_CHAIN_U7;
}

TERN_INLINE bool has_sc(const struct tern_codes_avx2 *f)
{
    return chain_has_sc(f->chain);
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

/* The integer of a block: sum of code * q over 32 k, with scales where there are two. Codes of 7
 * bits are left to tiles. */
TERN_INLINE __m256i dot_block(enum tern_chain chain, const __m256i w[8], const int8_t *q,
                              __m256i sc)
{
    const __m256i ones = _mm256_set1_epi16(1);
    if (chain == TERN_CHAIN_S8)
        return _mm256_add_epi32(signed_4(w, q), signed_4(w + 4, q + 16));
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
            const unsigned bytes = f->block_bytes / f->n_groups, part = bytes / f->period;
#pragma GCC unroll 8
            for (unsigned e = 0; e < f->period; e++) {
                const struct tern_sub s = {block, g, e};
                prefetch(block + g * bytes + e * part, TERN_PREFETCH_AHEAD, part);
                struct tern_half w;
                if (f->compact) {
#pragma GCC unroll 1
                    for (unsigned half = 0; half < 2; half++) {
                        unpack_half(f, s, half, &w);
                        acc[half] = step_half(f, &w, q, *d, sum, acc[half]);
                    }
                } else {
                    unpack_half(f, s, 0, &w);
                    acc[0] = step_half(f, &w, q, *d, sum, acc[0]);
                    __asm__("" : "+r"(q)); /* load again: registers are dearer than loads */
                    unpack_half(f, s, 1, &w);
                    acc[1] = step_half(f, &w, q, *d, sum, acc[1]);
                }
                q += TERN_SUB;
                d++;
                sum += 2;
            }
        }
    _mm256_storeu_ps(dst, acc[0]);
    _mm256_storeu_ps(dst + 8, acc[1]);
}

/* --- many tokens, and exact products --- */

TERN_INLINE void expand_sub(const struct tern_codes_avx2 *f, struct tern_sub s,
                            struct tern_expanded *out)
{
#pragma GCC unroll 1
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
    const size_t bytes = f->block_bytes / f->n_groups;
    for (size_t g = first; g < first + n; g++)
#pragma GCC unroll 8
        for (unsigned e = 0; e < f->period; e++) {
            const struct tern_sub s = {panel + g / f->n_groups * f->block_bytes,
                                       (unsigned)(g % f->n_groups), e};
            if (f->compact && e == 0) /* one token comes here too */
                prefetch(panel + g * bytes, TERN_PREFETCH_AHEAD, bytes);
            expand_sub(f, s, out++);
        }
}

TERN_INLINE struct tern_type_avx2 type_of(const struct tern_codes_avx2 *f,
                                          tern_expand_avx2_fn *expand_f)
{
    return (struct tern_type_avx2){expand_f, f->chain, f->zero, f->block_bytes, f->n_groups,
                                   f->period, f->has_min};
}

#endif
