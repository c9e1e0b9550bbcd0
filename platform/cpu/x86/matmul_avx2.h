/* matmul_avx2.h: integer matrix products with AVX2, once for all types.
 *
 * A register holds 4 k of 8 rows, so a panel is two halves and a block of 32 k is 8 registers a
 * half. Weights are the unsigned operand of maddubs where their codes are unsigned; its sums of
 * two products are 16 bits wide, and codes of 4, 5 and 6 bits leave room to add 8, 4 and 2 of
 * them before they are widened. Zero points come off afterwards, by the sums of the record.
 *
 * Few tokens: codes are unpacked in registers, and each half of a block serves every token
 * before the next one, so that weights are read once and nothing is stored. Many tokens: some
 * blocks of a panel are unpacked into the scratch and serve tiles of 16 rows by 4 tokens, the
 * chains resting in dst between them.
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
    __m256i (*sc)(struct tern_sub s, unsigned half);       /* U6: pairs (sc0, sc1) */
};

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

/* Sums of 8 results by pairs, so that chains are short. */
TERN_INLINE __m256i add_4(const __m256i p[4])
{
    return _mm256_add_epi16(_mm256_add_epi16(p[0], p[1]), _mm256_add_epi16(p[2], p[3]));
}

/* The integer of a block: sum of code * q over 32 k, with scales where there are two. */
TERN_INLINE __m256i dot_block(enum tern_chain chain, const __m256i w[8], const int8_t *q,
                              __m256i sc)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i p[8];
    if (chain == TERN_CHAIN_S8) {
        for (int j = 0; j < 8; j++)
            p[j] = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w[j]),
                       _mm256_sign_epi8(broadcast_4(q + 4 * j), w[j])), ones);
        for (int n = 4; n; n /= 2)
            for (int j = 0; j < n; j++)
                p[j] = _mm256_add_epi32(p[j], p[j + n]);
        return p[0];
    }
    for (int j = 0; j < 8; j++)
        p[j] = _mm256_maddubs_epi16(w[j], broadcast_4(q + 4 * j));
    if (chain == TERN_CHAIN_U4)
        return _mm256_madd_epi16(_mm256_add_epi16(add_4(p), add_4(p + 4)), ones);
    if (chain == TERN_CHAIN_U5)
        return _mm256_add_epi32(_mm256_madd_epi16(add_4(p), ones),
                                _mm256_madd_epi16(add_4(p + 4), ones));
    /* TERN_CHAIN_U6 */
    const __m256i sc0 = _mm256_or_si256(_mm256_slli_epi32(sc, 16),
                                        _mm256_and_si256(sc, _mm256_set1_epi32(0xffff)));
    const __m256i sc1 = _mm256_or_si256(_mm256_srli_epi32(sc, 16),
                                        _mm256_andnot_si256(_mm256_set1_epi32(0xffff), sc));
    for (int j = 0; j < 8; j += 2)
        p[j] = _mm256_madd_epi16(_mm256_add_epi16(p[j], p[j + 1]), j < 4 ? sc0 : sc1);
    return _mm256_add_epi32(_mm256_add_epi32(p[0], p[2]), _mm256_add_epi32(p[4], p[6]));
}

/* -zero * sum in every lane. */
TERN_INLINE __m256i side_zero(const int16_t *sum, int zero)
{
    return _mm256_madd_epi16(broadcast_4(sum), _mm256_set1_epi16((int16_t)-zero));
}

TERN_INLINE __m256 side_min(const int16_t *sum, __m256 d)
{
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_madd_epi16(broadcast_4(sum),
                                                                 _mm256_set1_epi16(1))));
}

/* What one sub-block of 8 rows adds to the chains of one token. */
struct tern_half { __m256i w[8]; __m256 scale, minus_min; __m256i sc; };

TERN_INLINE void unpack_half(const struct tern_codes_avx2 *f, struct tern_sub s, unsigned half,
                             struct tern_half *out)
{
    f->unpack(s, half, out->w);
    out->scale = f->scale(s, half);
    if (f->has_min)
        out->minus_min = f->minus_min(s, half);
    if (f->chain == TERN_CHAIN_U6)
        out->sc = f->sc(s, half);
}

TERN_INLINE __m256 step_half(const struct tern_codes_avx2 *f, const struct tern_half *w,
                             const int8_t *q, float d, const int16_t *sum, __m256 acc)
{
    const __m256 all_d = _mm256_set1_ps(d);
    __m256i dot = dot_block(f->chain, w->w, q, w->sc);
    if (f->chain == TERN_CHAIN_U6)
        dot = _mm256_sub_epi32(dot, _mm256_slli_epi32(
                  _mm256_madd_epi16(broadcast_4(sum), w->sc), 5));
    else if (f->zero)
        dot = _mm256_add_epi32(dot, side_zero(sum, f->zero));
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(w->scale, all_d), acc);
    if (f->has_min)
        acc = _mm256_fmadd_ps(w->minus_min, side_min(sum, all_d), acc);
    return acc;
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
        for (unsigned g = 0; g < f->n_groups; g++)
#pragma GCC unroll 4
            for (unsigned e = 0; e < f->period; e++) {
                const struct tern_sub s = {block, g, e};
                struct tern_half w;
                unpack_half(f, s, 0, &w);
                acc[0] = step_half(f, &w, q, *d, sum, acc[0]);
                unpack_half(f, s, 1, &w);
                acc[1] = step_half(f, &w, q, *d, sum, acc[1]);
                q += TERN_SUB;
                d++;
                sum += 2;
            }
    _mm256_storeu_ps(dst, acc[0]);
    _mm256_storeu_ps(dst + 8, acc[1]);
}

TERN_INLINE void matmul_codes_avx2(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                                   size_t first, size_t n)
{
    for (size_t p = first; p < first + n; p++)
        for (size_t t = 0; t < m->acts->n_tokens; t++)
            panel_by_1(f, m, m->panels + p * m->panel_bytes, t,
                       m->dst + t * m->dst_stride + TERN_PANEL_ROWS * p);
}

#endif
