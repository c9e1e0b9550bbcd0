/* Operations on one row of floats, some lanes at a time; the rest of a row goes through the same
 * formulas of runtime/real.h. Chains as long as that of exp run two at a time: cores that issue
 * in order wait for every result. */
#include "platform/cpu/arm/arm.h"

#include "platform/cpu/arm/math_neon.h"
#include "quant/half.h"

#ifndef __ARM_NEON
#error "this file needs NEON"
#endif

void tern_rms_norm_neon(float *dst, const float *a, const float *weight, size_t n, float eps)
{
    float32x4_t acc[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            const float32x4_t x = vld1q_f32(a + i + 4 * j);
            acc[j] = vfmaq_f32(acc[j], x, x);
        }
    if (i < n) {
        /* Lanes past the end add the square of 0, which changes no accumulator. */
        float last[16] = {0};
        memcpy(last, a + i, (n - i) * sizeof *a);
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            const float32x4_t x = vld1q_f32(last + 4 * j);
            acc[j] = vfmaq_f32(acc[j], x, x);
        }
    }
    const float scale = 1.0f / sqrtf(sum16_neon(acc) / (float)n + eps);
    for (i = 0; i + 16 <= n; i += 16) {
        float32x4_t x[4], w[4];
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            x[j] = vld1q_f32(a + i + 4 * j);
            w[j] = vld1q_f32(weight + i + 4 * j);
        }
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            vst1q_f32(dst + i + 4 * j, vmulq_f32(vmulq_n_f32(x[j], scale), w[j]));
    }
    for (; i < n; i++)
        dst[i] = a[i] * scale * weight[i];
}

static inline void quantize_block(int8_t *q, float *d, int16_t *sum, const float *x)
{
    float32x4_t v[8], top[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        v[i] = vld1q_f32(x + 4 * i);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        top[i] = vmaxq_f32(vabsq_f32(v[i]), vabsq_f32(v[i + 4]));
    /* A NaN stays, and as bits stands above infinity. */
    const float max = vmaxvq_f32(vmaxq_f32(vmaxq_f32(top[0], top[1]), vmaxq_f32(top[2], top[3])));
    if (!(max < INFINITY) || max < TERN_QUANTIZE_TINY) {
        memset(q, 0, 32);
        sum[0] = sum[1] = 0;
        *d = max < INFINITY ? 0.0f : NAN;
        return;
    }
    *d = max / 127.0f;
    const float inverse = 1.0f / *d;
    int32x4_t w[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        w[i] = vcvtnq_s32_f32(vmulq_n_f32(v[i], inverse));
    /* Codes are within a byte: the lowest bytes of words are the codes. */
    int16x8_t h[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        h[i] = vuzp1q_s16(vreinterpretq_s16_s32(w[2 * i]), vreinterpretq_s16_s32(w[2 * i + 1]));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const int8x16_t b =
            vuzp1q_s8(vreinterpretq_s8_s16(h[2 * i]), vreinterpretq_s8_s16(h[2 * i + 1]));
        vst1q_s8(q + 16 * i, b);
        sum[i] = vaddlvq_s8(b);
    }
}

void tern_quantize_neon(int8_t *q, float *d, int16_t *sum, const float *x, size_t n)
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

void tern_halves_neon(void *dst, const float *x, size_t n)
{
    uint8_t *to = dst;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float16x4_t low = vcvt_f16_f32(vld1q_f32(x + i));
        const float16x8_t h = vcvt_high_f16_f32(low, vld1q_f32(x + i + 4));
        vst1q_u8(to + 2 * i, vreinterpretq_u8_f16(h));
    }
    for (; i < n; i++) {
        const uint16_t h = tern_f32_to_f16(x[i]);
        memcpy(to + 2 * i, &h, sizeof h);
    }
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

static inline float32x4_t low_halves(float32x4_t a, float32x4_t b)
{
    return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

static inline float32x4_t high_halves(float32x4_t a, float32x4_t b)
{
    return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

/* The steps of 1, 2 and 4 on eight elements. Sums stay in front of their differences. */
static inline void hadamard_8(float *x)
{
    const float32x4_t u = vld1q_f32(x), v = vld1q_f32(x + 4);
    float32x4_t a = vtrn1q_f32(u, v), b = vtrn2q_f32(u, v); /* 0 4 2 6, 1 5 3 7 */
    float32x4_t sum = vaddq_f32(a, b), difference = vsubq_f32(a, b);
    const float32x4_t s = vtrn1q_f32(sum, difference), t = vtrn2q_f32(sum, difference);
    a = low_halves(s, t); /* 0 1 4 5, 2 3 6 7 */
    b = high_halves(s, t);
    sum = vaddq_f32(a, b);
    difference = vsubq_f32(a, b);
    a = low_halves(sum, difference);
    b = high_halves(sum, difference);
    vst1q_f32(x, vaddq_f32(a, b));
    vst1q_f32(x + 4, vsubq_f32(a, b));
}

/* size is a power of two from 8 on. */
static void hadamard_vectors(float *x, size_t size)
{
    for (size_t i = 0; i < size; i += 8)
        hadamard_8(x + i);
    for (size_t h = 8; h < size; h *= 2)
        for (size_t i = 0; i < size; i += 2 * h)
            for (size_t j = i; j < i + h; j += 4) {
                const float32x4_t a = vld1q_f32(x + j), b = vld1q_f32(x + j + h);
                vst1q_f32(x + j, vaddq_f32(a, b));
                vst1q_f32(x + j + h, vsubq_f32(a, b));
            }
    const float scale = 1.0f / sqrtf((float)size);
    for (size_t i = 0; i < size; i += 4)
        vst1q_f32(x + i, vmulq_n_f32(vld1q_f32(x + i), scale));
}

void tern_hadamard_neon(float *x, size_t n)
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

/* Four pairs. */
static inline void rotate_neon(float32x4_t *a, float32x4_t *b, float32x4x2_t cs)
{
    const float32x4_t x = *a, y = *b;
    *a = vfmaq_f32(vnegq_f32(vmulq_f32(y, cs.val[1])), x, cs.val[0]);
    *b = vfmaq_f32(vmulq_f32(y, cs.val[0]), x, cs.val[1]);
}

void tern_rope_norm_neon(float *x, const float *cs, size_t n_rot)
{
    size_t i = 0;
    for (; i + 8 <= n_rot; i += 8) {
        float32x4x2_t v = vld2q_f32(x + i);
        rotate_neon(&v.val[0], &v.val[1], vld2q_f32(cs + i));
        vst2q_f32(x + i, v);
    }
    for (; i + 2 <= n_rot; i += 2)
        rotate(x + i, x + i + 1, cs + i);
}

void tern_rope_neox_neon(float *x, const float *cs, size_t n_rot)
{
    const size_t n = n_rot / 2;
    float *y = x + n;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(y + i);
        rotate_neon(&a, &b, vld2q_f32(cs + 2 * i));
        vst1q_f32(x + i, a);
        vst1q_f32(y + i, b);
    }
    for (; i < n; i++)
        rotate(x + i, y + i, cs + 2 * i);
}

void tern_silu_mul_neon(float *dst, const float *gate, const float *up, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float32x4_t a = vld1q_f32(gate + i), b = vld1q_f32(gate + i + 4);
        const float32x4_t x = vld1q_f32(up + i), y = vld1q_f32(up + i + 4);
        vst1q_f32(dst + i, vmulq_f32(silu_neon(a), x));
        vst1q_f32(dst + i + 4, vmulq_f32(silu_neon(b), y));
    }
    for (; i < n; i++)
        dst[i] = tern_silu(gate[i]) * up[i];
}

void tern_gelu_mul_neon(float *dst, const float *gate, const float *up, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float32x4_t a = vld1q_f32(gate + i), b = vld1q_f32(gate + i + 4);
        const float32x4_t x = vld1q_f32(up + i), y = vld1q_f32(up + i + 4);
        vst1q_f32(dst + i, vmulq_f32(gelu_tanh_neon(a), x));
        vst1q_f32(dst + i + 4, vmulq_f32(gelu_tanh_neon(b), y));
    }
    for (; i < n; i++)
        dst[i] = tern_gelu_tanh(gate[i]) * up[i];
}

void tern_add_neon(float *dst, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        float32x4_t x[4], y[4];
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            x[j] = vld1q_f32(a + i + 4 * j);
            y[j] = vld1q_f32(b + i + 4 * j);
        }
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            vst1q_f32(dst + i + 4 * j, vaddq_f32(x[j], y[j]));
    }
    for (; i < n; i++)
        dst[i] = a[i] + b[i];
}

void tern_scale_neon(float *dst, const float *a, float x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(dst + i, vmulq_n_f32(vld1q_f32(a + i), x));
    for (; i < n; i++)
        dst[i] = a[i] * x;
}

void tern_softcap_neon(float *dst, const float *a, float cap, size_t n)
{
    const float32x4_t caps = vdupq_n_f32(cap);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(dst + i, vmulq_f32(caps, tanh_neon(vdivq_f32(vld1q_f32(a + i), caps))));
    for (; i < n; i++)
        dst[i] = cap * tern_tanh(a[i] / cap);
}

float tern_highest_neon(const float *x, size_t n)
{
    /* fmax keeps a NaN. */
    float32x4_t max[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++)
        max[j] = vdupq_n_f32(-INFINITY);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            max[j] = vmaxq_f32(max[j], vld1q_f32(x + i + 4 * j));
    for (; i + 4 <= n; i += 4)
        max[0] = vmaxq_f32(max[0], vld1q_f32(x + i));
    for (; i < n; i++)
        max[0] = vmaxq_f32(max[0], vdupq_n_f32(x[i]));
    const float32x4_t all = vmaxq_f32(vmaxq_f32(max[0], max[1]), vmaxq_f32(max[2], max[3]));
    return vmaxvq_f32(all) + 0.0f;
}

void tern_exp_row_neon(float *x, size_t n, float max, float t)
{
    const float32x4_t maxima = vdupq_n_f32(max), divisor = vdupq_n_f32(t);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + i + 4);
        vst1q_f32(x + i, exp_minus_neon(vdivq_f32(vsubq_f32(maxima, a), divisor)));
        vst1q_f32(x + i + 4, exp_minus_neon(vdivq_f32(vsubq_f32(maxima, b), divisor)));
    }
    for (; i < n; i++)
        x[i] = tern_exp((x[i] - max) / t);
}
