/* math_avx512_vnni.h: the functions of runtime/real.h on 16 lanes, the same operations in the
 * same order.
 *
 * max and min return their second operand when one is NaN, so the value stands second where
 * the C keeps a NaN.
 */
#ifndef TERN_MATH_AVX512_VNNI_H
#define TERN_MATH_AVX512_VNNI_H

#include "runtime/real.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

static inline __m512 exp_16(__m512 x)
{
    const __m512 magic = _mm512_set1_ps(0x1.8p23f), one = _mm512_set1_ps(1.0f);
    const __m512 above = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);
    const __m512 clamped = _mm512_min_ps(_mm512_set1_ps(89.0f), above);
    const __m512 t = _mm512_fmadd_ps(clamped, _mm512_set1_ps(0x1.715476p+0f), magic);
    const __m512 n = _mm512_sub_ps(t, magic);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0x1.62e4p-1f), clamped);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0x1.7f7d1cp-20f), r);
    __m512 p = _mm512_set1_ps(0x1.6a234cp-10f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.123a6cp-7f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.5558f4p-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.555490p-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.fffffcp-2f));
    p = _mm512_fmadd_ps(p, r, one);
    p = _mm512_fmadd_ps(p, r, one);
    /* Times 2^n, rounded once, as the reference's two steps are: its first one is exact. */
    return _mm512_scalef_ps(p, n);
}

enum { NEAR = 2 }; /* vectors side by side */

/* Whether all are at least -86; NaN is not. */
static inline bool are_near(const __m512 x[NEAR])
{
    __mmask16 near = 0xffff;
    for (int i = 0; i < NEAR; i++)
        near = _mm512_mask_cmp_ps_mask(near, _mm512_set1_ps(-86.0f), x[i], _CMP_LE_OQ);
    return near == 0xffff;
}

/* exp_16 of vectors that are near and not above 86. No result is subnormal or infinite, so 2^n goes
 * into the exponent. A chain alone waits for each of its steps. */
static inline void exp_near(__m512 x[NEAR])
{
    static const float factors[] = {0x1.123a6cp-7f, 0x1.5558f4p-5f, 0x1.555490p-3f,
                                    0x1.fffffcp-2f, 1.0f,           1.0f};
    const __m512 magic = _mm512_set1_ps(0x1.8p23f);
    __m512 t[NEAR], p[NEAR];
    for (int i = 0; i < NEAR; i++) {
        t[i] = _mm512_fmadd_ps(x[i], _mm512_set1_ps(0x1.715476p+0f), magic);
        const __m512 n = _mm512_sub_ps(t[i], magic);
        x[i] = _mm512_fmadd_ps(n, _mm512_set1_ps(-0x1.62e4p-1f), x[i]);
        x[i] = _mm512_fmadd_ps(n, _mm512_set1_ps(-0x1.7f7d1cp-20f), x[i]);
        p[i] = _mm512_set1_ps(0x1.6a234cp-10f);
    }
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
        for (int i = 0; i < NEAR; i++)
            p[i] = _mm512_fmadd_ps(p[i], x[i], _mm512_set1_ps(factors[f]));
    for (int i = 0; i < NEAR; i++)
        x[i] = _mm512_castsi512_ps(_mm512_add_epi32(
            _mm512_castps_si512(p[i]), _mm512_slli_epi32(_mm512_castps_si512(t[i]), 23)));
}

static inline __m512 silu_16(__m512 x)
{
    const __m512 negated = _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp_16(negated)));
}

static inline __m512 tanh_16(__m512 x)
{
    const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
    const __m512 a = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x), s = _mm512_mul_ps(a, a);
    __m512 p = _mm512_set1_ps(-0x1.9b304cp-8f);
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(0x1.593d08p-6f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(-0x1.b9287ap-5f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(0x1.110d26p-3f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(-0x1.55554ap-2f));
    const __m512 near = _mm512_fmadd_ps(_mm512_mul_ps(a, s), p, a);
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 e = _mm512_add_ps(exp_16(_mm512_add_ps(a, a)), one);
    const __m512 far = _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0f), e));
    const __mmask16 is_near = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0.55f), _CMP_LT_OQ);
    return _mm512_or_ps(_mm512_mask_blend_ps(is_near, far, near), sign);
}

static inline __m512 gelu_tanh_16(__m512 x)
{
    const __m512 x3 = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
    const __m512 u = _mm512_fmadd_ps(_mm512_set1_ps(0x1.6e4e26p-5f), x3, x);
    const __m512 v = _mm512_mul_ps(_mm512_set1_ps(-0x1.988454p+0f), u);
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp_16(v)));
}

/* tern_sum16 of a vector. */
static inline float sum16_16(__m512 x)
{
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* The first n lanes, all of them for 16 or more. */
static inline __mmask16 first_lanes(size_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

#endif
