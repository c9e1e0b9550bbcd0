/* real.h: the real functions that the arithmetic is made of, one formula each.
 *
 * Written with IEEE operations and fmaf alone, so that every compiler and CPU gives the same
 * bits, and so that a vector variant can follow them lane by lane, operation by operation.
 */
#ifndef TERN_REAL_H
#define TERN_REAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float tern_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t tern_to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* e^x. n = round(x log2 e) by adding 1.5 * 2^23; r = x - n ln 2 in two steps (Cody and Waite);
 * a polynomial of degree 6 in r; 2^n in two factors, so that results below 2^-126 are right.
 * Below -104 it is 0, above 88.73 infinity; NaN stays. Error below 1 ulp in the normal range. */
static inline float tern_exp(float x)
{
    const float clamped = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
    const float t = fmaf(clamped, 0x1.715476p+0f, 0x1.8p23f);
    const float n = t - 0x1.8p23f;
    float r = fmaf(n, -0x1.62e4p-1f, clamped);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.6c16c2p-10f;          /* 1/720 */
    p = fmaf(p, r, 0x1.111112p-7f);     /* 1/120 */
    p = fmaf(p, r, 0x1.555556p-5f);     /* 1/24 */
    p = fmaf(p, r, 0x1.555556p-3f);     /* 1/6 */
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* x is NaN: t is NaN, its bits make any factor, p is NaN. */
    const int32_t k = (int32_t)(tern_to_bits(t) - 0x4b400000u);
    const int32_t half = k >> 1;
    const float a = tern_from_bits((uint32_t)(half + 127) << 23);
    const float b = tern_from_bits((uint32_t)(k - half + 127) << 23);
    return p * a * b;
}

/* 1 / (1 + e^-x) */
static inline float tern_sigmoid(float x)
{
    return 1.0f / (1.0f + tern_exp(-x));
}

/* x / (1 + e^-x) */
static inline float tern_silu(float x)
{
    return x / (1.0f + tern_exp(-x));
}

/* tanh: near 0 an odd polynomial, else 1 - 2 / (e^2x + 1) on |x|, the sign put back. */
static inline float tern_tanh(float x)
{
    const uint32_t sign = tern_to_bits(x) & 0x80000000u;
    const float a = tern_from_bits(tern_to_bits(x) & 0x7fffffffu);
    const float s = a * a;
    float p = -0x1.2b4c54p-8f; /* fitted on [0, 0.55], see tests/unit/test_real.c */
    p = fmaf(p, s, 0x1.56d5cap-6f);
    p = fmaf(p, s, -0x1.b9f87cp-5f);
    p = fmaf(p, s, 0x1.110f9ep-3f);
    p = fmaf(p, s, -0x1.555550p-2f);
    const float near = fmaf(a * s, p, a);
    const float far = 1.0f - 2.0f / (tern_exp(a + a) + 1.0f);
    const float y = a < 0.55f ? near : far;
    return tern_from_bits(tern_to_bits(y) | sign);
}

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
static inline float tern_gelu_tanh(float x)
{
    const float x3 = x * x * x;
    const float u = 0.7978845608f * fmaf(0.044715f, x3, x);
    return 0.5f * x * (1.0f + tern_tanh(u));
}

/* Natural logarithm of a positive normal number; 0 gives -infinity, negatives and NaN give NaN.
 * x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)) as a series. */
static inline float tern_log(float x)
{
    if (!(x > 0.0f))
        return x == 0.0f ? -INFINITY : NAN;
    if (x == INFINITY)
        return x;
    int32_t e = 0;
    if (x < 0x1p-126f) {
        x *= 0x1p24f;
        e = -24;
    }
    const uint32_t u = tern_to_bits(x) - 0x3f3504f3u;
    e += (int32_t)u >> 23;
    const float m = tern_from_bits((u & 0x007fffffu) + 0x3f3504f3u);
    const float f = (m - 1.0f) / (m + 1.0f), s = f * f;
    float p = 0x1.c71c72p-4f;        /* 1/9 */
    p = fmaf(p, s, 0x1.24924ap-3f);  /* 1/7 */
    p = fmaf(p, s, 0x1.99999ap-3f);  /* 1/5 */
    p = fmaf(p, s, 0x1.555556p-2f);  /* 1/3 */
    const float log_m = 2.0f * fmaf(f * s, p, f);
    return fmaf((float)e, 0x1.62e430p-1f, fmaf((float)e, -0x1.05c610p-29f, log_m));
}

/* Sum of 16 strided accumulators: 8+8, 4+4, 2+2, 1+1. */
static inline float tern_sum16(const float acc[16])
{
    float t[16];
    memcpy(t, acc, sizeof t);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            t[i] += t[i + half];
    return t[0];
}

#endif
