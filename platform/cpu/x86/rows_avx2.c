/* Operations on one row of floats, 8 lanes at a time; the rest of a row goes through the same
 * formulas of runtime/real.h. */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx2.h"
#include "quant/half.h"

#ifndef __AVX2__
#error "this file needs -mavx2 -mfma -mf16c"
#endif

void tern_rms_norm_avx2(float *dst, const float *a, const float *weight, size_t n, float eps)
{
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 x = _mm256_loadu_ps(a + i), y = _mm256_loadu_ps(a + i + 8);
        low = _mm256_fmadd_ps(x, x, low);
        high = _mm256_fmadd_ps(y, y, high);
    }
    if (i < n) {
        /* Lanes past the end add the square of 0, which changes no accumulator. */
        const int left = (int)(n - i);
        const __m256 x = _mm256_maskload_ps(a + i, lanes_avx2(0, left));
        low = _mm256_fmadd_ps(x, x, low);
        if (left > 8) {
            const __m256 y = _mm256_maskload_ps(a + i + 8, lanes_avx2(0, left - 8));
            high = _mm256_fmadd_ps(y, y, high);
        }
    }
    const float scale = 1.0f / sqrtf(sum16_avx2(low, high) / (float)n + eps);
    const __m256 scales = _mm256_set1_ps(scale);
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(a + i), scales);
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(x, _mm256_loadu_ps(weight + i)));
    }
    for (; i < n; i++)
        dst[i] = a[i] * scale * weight[i];
}

static void quantize_block(int8_t *q, float *d, int16_t *sum, const float *x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 x0 = _mm256_loadu_ps(x), x1 = _mm256_loadu_ps(x + 8);
    const __m256 x2 = _mm256_loadu_ps(x + 16), x3 = _mm256_loadu_ps(x + 24);
    /* Magnitudes order like their bits, NaN above infinity. */
    const __m256i m01 = _mm256_max_epi32(_mm256_castps_si256(_mm256_andnot_ps(sign, x0)),
                                         _mm256_castps_si256(_mm256_andnot_ps(sign, x1)));
    const __m256i m23 = _mm256_max_epi32(_mm256_castps_si256(_mm256_andnot_ps(sign, x2)),
                                         _mm256_castps_si256(_mm256_andnot_ps(sign, x3)));
    const __m256i m8 = _mm256_max_epi32(m01, m23);
    __m128i m4 = _mm_max_epi32(_mm256_castsi256_si128(m8), _mm256_extracti128_si256(m8, 1));
    m4 = _mm_max_epi32(m4, _mm_shuffle_epi32(m4, 0x4e));
    m4 = _mm_max_epi32(m4, _mm_shuffle_epi32(m4, 0xb1));
    const uint32_t max = (uint32_t)_mm_cvtsi128_si32(m4);
    if (max >= 0x7f800000u || tern_from_bits(max) < TERN_QUANTIZE_TINY) {
        memset(q, 0, 32);
        sum[0] = sum[1] = 0;
        *d = max >= 0x7f800000u ? NAN : 0.0f;
        return;
    }
    *d = tern_from_bits(max) / 127.0f;
    const __m256 inverse = _mm256_set1_ps(1.0f / *d);
    const __m256i q0 = _mm256_cvtps_epi32(_mm256_mul_ps(x0, inverse));
    const __m256i q1 = _mm256_cvtps_epi32(_mm256_mul_ps(x1, inverse));
    const __m256i q2 = _mm256_cvtps_epi32(_mm256_mul_ps(x2, inverse));
    const __m256i q3 = _mm256_cvtps_epi32(_mm256_mul_ps(x3, inverse));
    /* Packing works in 128-bit halves; words come out as 0 1 4 5 | 2 3 6 7 of 4 bytes. */
    const __m256i w01 = _mm256_packs_epi32(q0, q1), w23 = _mm256_packs_epi32(q2, q3);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(w01, w23), order);
    _mm256_storeu_si256((__m256i *)q, bytes);
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i s01 = _mm256_madd_epi16(w01, ones), s23 = _mm256_madd_epi16(w23, ones);
    const __m256i s = _mm256_hadd_epi32(s01, s23); /* | 01 01 23 23 | 01 01 23 23 | */
    const __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    const __m128i u = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    sum[0] = (int16_t)_mm_extract_epi32(u, 0);
    sum[1] = (int16_t)_mm_extract_epi32(u, 2);
}

void tern_quantize_avx2(int8_t *q, float *d, int16_t *sum, const float *x, size_t n)
{
    size_t b = 0;
    for (; 32 * b + 32 <= n; b++)
        quantize_block(q + 32 * b, d + b, sum + 2 * b, x + 32 * b);
    if (32 * b < n) {
        float last[32] = {0};
        memcpy(last, x + 32 * b, (n - 32 * b) * sizeof *x);
        quantize_block(q + 32 * b, d + b, sum + 2 * b, last);
    }
}

void tern_halves_avx2(void *dst, const float *x, size_t n)
{
    char *to = dst;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * i), h);
    }
    for (; i < n; i++) {
        const uint16_t h = tern_f32_to_f16(x[i]);
        memcpy(to + 2 * i, &h, sizeof h);
    }
}

/* --- Hadamard --- */

/* Pairs of one vector, h lanes apart: (a + b, a - b). */
static __m256 pairs_within(__m256 x, __m256 swapped, int h)
{
    const __m256 sum = _mm256_add_ps(x, swapped), difference = _mm256_sub_ps(swapped, x);
    return h == 1   ? _mm256_blend_ps(sum, difference, 0xaa)
           : h == 2 ? _mm256_blend_ps(sum, difference, 0xcc)
                    : _mm256_blend_ps(sum, difference, 0xf0);
}

static void hadamard_small(float *x, size_t size)
{
    for (size_t h = 1; h < size; h *= 2)
        for (size_t i = 0; i < size; i++)
            if (i / h % 2 == 0) {
                const float a = x[i], b = x[i + h];
                x[i] = a + b;
                x[i + h] = a - b;
            }
    const float scale = 1.0f / sqrtf((float)size);
    for (size_t i = 0; i < size; i++)
        x[i] *= scale;
}

/* size is a power of two from 8 on. */
static void hadamard_vectors(float *x, size_t size)
{
    for (size_t i = 0; i < size; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        v = pairs_within(v, _mm256_permute_ps(v, 0xb1), 1);
        v = pairs_within(v, _mm256_permute_ps(v, 0x4e), 2);
        v = pairs_within(v, _mm256_permute2f128_ps(v, v, 1), 4);
        _mm256_storeu_ps(x + i, v);
    }
    for (size_t h = 8; h < size; h *= 2)
        for (size_t i = 0; i < size; i += 2 * h)
            for (size_t j = i; j < i + h; j += 8) {
                const __m256 a = _mm256_loadu_ps(x + j), b = _mm256_loadu_ps(x + j + h);
                _mm256_storeu_ps(x + j, _mm256_add_ps(a, b));
                _mm256_storeu_ps(x + j + h, _mm256_sub_ps(a, b));
            }
    const __m256 scale = _mm256_set1_ps(1.0f / sqrtf((float)size));
    for (size_t i = 0; i < size; i += 8)
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), scale));
}

void tern_hadamard_avx2(float *x, size_t n)
{
    while (n) {
        size_t size = 1;
        while (size <= n / 2)
            size *= 2;
        (size < 8 ? hadamard_small : hadamard_vectors)(x, size);
        x += size;
        n -= size;
    }
}

static void rotate(float *a, float *b, const float cs[2])
{
    const float x = *a, y = *b;
    *a = fmaf(x, cs[0], -(y * cs[1]));
    *b = fmaf(x, cs[1], y * cs[0]);
}

void tern_rope_norm_avx2(float *x, const float *cs, size_t n_rot)
{
    size_t i = 0;
    for (; i + 8 <= n_rot; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i), c = _mm256_loadu_ps(cs + i);
        const __m256 a = _mm256_moveldup_ps(v), b = _mm256_movehdup_ps(v);
        const __m256 product = _mm256_mul_ps(b, _mm256_permute_ps(c, 0xb1)); /* b s, b c */
        _mm256_storeu_ps(x + i, _mm256_fmaddsub_ps(a, c, product));
    }
    for (; i + 2 <= n_rot; i += 2)
        rotate(x + i, x + i + 1, cs + i);
}

void tern_rope_neox_avx2(float *x, const float *cs, size_t n_rot)
{
    const size_t n = n_rot / 2;
    float *y = x + n;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 u = _mm256_loadu_ps(cs + 2 * i), v = _mm256_loadu_ps(cs + 2 * i + 8);
        /* Evens and odds come out as pairs 0 1 4 5 | 2 3 6 7; swap the middle quarters. */
        const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(u, v, 0x88));
        const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(u, v, 0xdd));
        const __m256 c = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
        const __m256 s = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(y + i);
        _mm256_storeu_ps(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(y + i, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
    for (; i < n; i++)
        rotate(x + i, y + i, cs + 2 * i);
}

void tern_silu_mul_avx2(float *dst, const float *gate, const float *up, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 y = silu_avx2(_mm256_loadu_ps(gate + i));
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(y, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; i++)
        dst[i] = tern_silu(gate[i]) * up[i];
}

void tern_gelu_mul_avx2(float *dst, const float *gate, const float *up, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 y = gelu_tanh_avx2(_mm256_loadu_ps(gate + i));
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(y, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; i++)
        dst[i] = tern_gelu_tanh(gate[i]) * up[i];
}

void tern_add_avx2(float *dst, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    for (; i < n; i++)
        dst[i] = a[i] + b[i];
}

void tern_scale_avx2(float *dst, const float *a, float x, size_t n)
{
    const __m256 factor = _mm256_set1_ps(x);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(_mm256_loadu_ps(a + i), factor));
    for (; i < n; i++)
        dst[i] = a[i] * x;
}

void tern_softcap_avx2(float *dst, const float *a, float cap, size_t n)
{
    const __m256 caps = _mm256_set1_ps(cap);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 y = tanh_avx2(_mm256_div_ps(_mm256_loadu_ps(a + i), caps));
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(caps, y));
    }
    for (; i < n; i++)
        dst[i] = cap * tern_tanh(a[i] / cap);
}

float tern_highest_avx2(const float *x, size_t n)
{
    /* max loses a NaN when the next number comes, so that NaNs are looked for beside it. */
    const __m256 lowest = _mm256_set1_ps(-INFINITY);
    __m256 a = lowest, b = lowest, nan = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 u = _mm256_loadu_ps(x + i), v = _mm256_loadu_ps(x + i + 8);
        _mm_prefetch((const char *)((uintptr_t)(x + i) + 4096), _MM_HINT_T0);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(u, v, _CMP_UNORD_Q));
        a = _mm256_max_ps(a, u);
        b = _mm256_max_ps(b, v);
    }
    for (; i < n; i += 8) {
        const __m256i mask = lanes_avx2(0, n - i < 8 ? (int)(n - i) : 8);
        const __m256 u = _mm256_blendv_ps(lowest, _mm256_maskload_ps(x + i, mask),
                                          _mm256_castsi256_ps(mask));
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(u, u, _CMP_UNORD_Q));
        a = _mm256_max_ps(a, u);
    }
    const __m256 m8 = _mm256_max_ps(a, b);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    const float best = _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
    return _mm256_movemask_ps(nan) ? NAN : best + 0.0f;
}

void tern_exp_row_avx2(float *x, size_t n, float max, float t)
{
    const __m256 maxima = _mm256_set1_ps(max), divisor = _mm256_set1_ps(t);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 below = _mm256_sub_ps(maxima, _mm256_loadu_ps(x + i));
        _mm256_storeu_ps(x + i, exp_minus_avx2(_mm256_div_ps(below, divisor)));
    }
    for (; i < n; i++)
        x[i] = tern_exp((x[i] - max) / t);
}
