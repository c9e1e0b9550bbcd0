/* math_avx2.h: the functions of runtime/real.h on 8 lanes, the same operations in the same order.
 *
 * max and min return their second operand when one is NaN, so the value stands second where
 * the C keeps a NaN.
 */
#ifndef TERN_MATH_AVX2_H
#define TERN_MATH_AVX2_H

#include "runtime/real.h"

#include <immintrin.h>
#include <stddef.h>

/* Of each of n vectors e^r's polynomial of tern_exp(-x), and the t whose lowest bits are n; n is a
 * constant. Everything is exp's with the signs of x and r turned, which changes no rounding and
 * saves negating x. The caller multiplies by 2^n, in the one or two steps that its range asks for:
 * all are exact but the last, so that how 2^n is split does not tell. Vectors take each step
 * together: one's steps wait for one another, and behind forty of them no core looks for more. */
static inline __attribute__((always_inline)) void exp_minus_parts_avx2(const __m256 *x, __m256 *t,
                                                                       __m256 *p, int n)
{
    static const float c[] = {0x1.123a6cp-7f, 0x1.5558f4p-5f, 0x1.555490p-3f, 0x1.fffffcp-2f, 1, 1};
    __m256 r[4];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        t[i] = _mm256_fnmadd_ps(x[i], _mm256_set1_ps(0x1.715476p+0f), _mm256_set1_ps(0x1.8p23f));
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        p[i] = _mm256_sub_ps(t[i], _mm256_set1_ps(0x1.8p23f));
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        r[i] = _mm256_fmadd_ps(p[i], _mm256_set1_ps(0x1.62e4p-1f), x[i]);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        r[i] = _mm256_fmadd_ps(p[i], _mm256_set1_ps(0x1.7f7d1cp-20f), r[i]);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        p[i] = _mm256_set1_ps(0x1.6a234cp-10f);
#pragma GCC unroll 6
    for (int k = 0; k < 6; k++)
#pragma GCC unroll 4
        for (int i = 0; i < n; i++)
            p[i] = _mm256_fnmadd_ps(p[i], r[i], _mm256_set1_ps(c[k]));
}

/* 2^(n + k), by the bits of 2^k. */
static inline __m256 power_avx2(__m256 t, float two_to_k)
{
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    const __m256i k = _mm256_castps_si256(_mm256_set1_ps(two_to_k));
    return _mm256_castsi256_ps(_mm256_add_epi32(n, k));
}

/* tern_exp(-x) for x >= 0 and NaN. n is -150 or more: 2^(n + 24) is a normal number. */
static inline __m256 exp_minus_avx2(__m256 x)
{
    __m256 t, p;
    x = _mm256_min_ps(_mm256_set1_ps(104.0f), x);
    exp_minus_parts_avx2(&x, &t, &p, 1);
    const __m256 large = _mm256_mul_ps(p, power_avx2(t, 0x1p24f));
    return _mm256_mul_ps(large, _mm256_set1_ps(0x1p-24f));
}

/* tern_exp(-x) for x of 0 .. 87 and NaN, of n vectors in place: 2^n is a normal number. */
static inline __attribute__((always_inline)) void exp_minus_near_avx2(__m256 *x, int n)
{
    __m256 t[4], p[4];
    exp_minus_parts_avx2(x, t, p, n);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        x[i] = _mm256_mul_ps(p[i], power_avx2(t[i], 1.0f));
}

/* 1 + tern_exp(-x). Above 87 that is 1 whatever the power is; n is 128 at most, and 2^(n - 1) a
 * normal number. */
static inline __m256 one_plus_exp_minus_avx2(__m256 x)
{
    __m256 t, p;
    x = _mm256_max_ps(_mm256_set1_ps(-89.0f), _mm256_min_ps(_mm256_set1_ps(87.0f), x));
    exp_minus_parts_avx2(&x, &t, &p, 1);
    const __m256 half = _mm256_mul_ps(p, power_avx2(t, 0.5f));
    return _mm256_add_ps(_mm256_set1_ps(1.0f), _mm256_add_ps(half, half));
}

static inline __m256 silu_avx2(__m256 x)
{
    return _mm256_div_ps(x, one_plus_exp_minus_avx2(x));
}

static inline __m256 tanh_avx2(__m256 x)
{
    const __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));
    const __m256 a = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), s = _mm256_mul_ps(a, a);
    __m256 p = _mm256_set1_ps(-0x1.9b304cp-8f);
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(0x1.593d08p-6f));
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(-0x1.b9287ap-5f));
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(0x1.110d26p-3f));
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(-0x1.55554ap-2f));
    const __m256 near = _mm256_fmadd_ps(_mm256_mul_ps(a, s), p, a);
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 e = one_plus_exp_minus_avx2(_mm256_mul_ps(a, _mm256_set1_ps(-2.0f)));
    const __m256 far = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), e));
    const __m256 is_near = _mm256_cmp_ps(a, _mm256_set1_ps(0.55f), _CMP_LT_OQ);
    return _mm256_or_ps(_mm256_blendv_ps(far, near, is_near), sign);
}

static inline __m256 gelu_tanh_avx2(__m256 x)
{
    const __m256 x3 = _mm256_mul_ps(_mm256_mul_ps(x, x), x);
    const __m256 u = _mm256_fmadd_ps(_mm256_set1_ps(0x1.6e4e26p-5f), x3, x);
    const __m256 v = _mm256_mul_ps(_mm256_set1_ps(0x1.988454p+0f), u);
    return _mm256_div_ps(x, one_plus_exp_minus_avx2(v));
}

/* tern_sum16 of two vectors. */
static inline float sum16_avx2(__m256 low, __m256 high)
{
    const __m256 s8 = _mm256_add_ps(low, high);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* All ones in lanes from .. to - 1; from and to may lie outside 0 .. 8. */
static inline __m256i lanes_avx2(int from, int to)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(from), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(to), lane));
}

#endif
