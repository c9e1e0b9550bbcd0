/* floats_avx2.h: sub-blocks of a panel as the floats that they mean, for exact products. The
 * integers are made as for the others; scale and minimum come in as in the reference. */
#ifndef TERN_CPU_FLOATS_AVX2_H
#define TERN_CPU_FLOATS_AVX2_H

#include "platform/cpu/x86/matmul_avx2.h"

/* What the 8 rows of half a sub-block have in common for 16 elements. */
struct tern_float_scale { __m256i sc; __m256 scale, minus_below; };

/* Byte b of every lane, without the zero point. */
TERN_INLINE __m256i one_code(const struct tern_codes_avx2 *f, __m256i w, int b)
{
    if (f->chain == TERN_CHAIN_S8)
        return _mm256_srai_epi32(_mm256_slli_epi32(w, 24 - 8 * b), 24);
    const __m256i code = _mm256_and_si256(_mm256_srli_epi32(w, 8 * b), _mm256_set1_epi32(255));
    return f->zero ? _mm256_sub_epi32(code, _mm256_set1_epi32(f->zero)) : code;
}

/* out[k][r]: 32 k of 16 rows, of which this is a half. */
TERN_INLINE void floats_of_half(const struct tern_codes_avx2 *f, struct tern_sub s, unsigned half,
                                float *out)
{
    const __m256i low = _mm256_set1_epi32(0xffff);
    struct tern_float_scale by[2];
    struct tern_half h;
    unpack_half(f, s, half, &h);
    for (int i = 0; i < 2; i++) {
        by[i].scale = h.scale;
        if (has_sc(f))
            by[i].sc = i ? _mm256_srli_epi32(h.sc, 16) : _mm256_and_si256(h.sc, low);
        if (f->has_min) {
            const __m256i m = i ? _mm256_srli_epi32(h.m, 16) : _mm256_and_si256(h.m, low);
            by[i].minus_below = _mm256_mul_ps(h.minus_min, _mm256_cvtepi32_ps(m));
        }
    }
    for (int j = 0; j < 8; j++)
#pragma GCC unroll 4
        for (int b = 0; b < 4; b++) {
            __m256i q = one_code(f, h.w[j], b);
            if (has_sc(f)) /* the upper halves of sc are 0 */
                q = _mm256_madd_epi16(q, by[j / 4].sc);
            __m256 x = _mm256_mul_ps(by[j / 4].scale, _mm256_cvtepi32_ps(q));
            if (f->has_min)
                x = _mm256_add_ps(x, by[j / 4].minus_below);
            _mm256_storeu_ps(out + TERN_PANEL_ROWS * (4 * j + b) + 8 * half, x);
        }
}

/* Sub-blocks first .. first + n - 1 of a panel, whole groups. */
TERN_INLINE void floats_avx2(const struct tern_codes_avx2 *f, const uint8_t *panel, size_t first,
                             size_t n, float *out)
{
    for (size_t g = first / f->period; g < (first + n) / f->period; g++)
#pragma GCC unroll 8
        for (unsigned e = 0; e < f->period; e++) {
            const struct tern_sub s = {panel + g / f->n_groups * f->block_bytes,
                                       (unsigned)(g % f->n_groups), e};
            floats_of_half(f, s, 0, out);
            floats_of_half(f, s, 1, out);
            out += TERN_SUB * TERN_PANEL_ROWS;
        }
}

#endif
