/* real.h: the real functions that the arithmetic is made of, one formula each.
 *
 * Written with IEEE operations and fmaf alone, so that every compiler and CPU gives the same
 * bits, and so that a vector variant can follow them lane by lane, operation by operation.
 */
#ifndef TERN_REAL_H
#define TERN_REAL_H

#include <math.h>
#include <stddef.h>
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

/* The polynomials are minimax fits of the relative error; tests/unit/test_real.c measures each
 * function against doubles and holds the bounds stated here. */

/* e^x. n = round(x log2 e) by adding 1.5 * 2^23; r = x - n ln 2 in two steps (Cody and Waite);
 * 1 + r + r^2 Q(r), Q of degree 4 fitted on |r| <= ln 2 / 2 with error 3.1e-9; 2^n in two
 * factors, so that results below 2^-126 are rounded once. Below -104 it is 0, above 88.73
 * infinity; NaN stays. Error below 1 ulp. */
static inline float tern_exp(float x)
{
    const float clamped = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
    const float t = fmaf(clamped, 0x1.715476p+0f, 0x1.8p23f);
    const float n = t - 0x1.8p23f;
    float r = fmaf(n, -0x1.62e4p-1f, clamped);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.6a234cp-10f;
    p = fmaf(p, r, 0x1.123a6cp-7f);
    p = fmaf(p, r, 0x1.5558f4p-5f);
    p = fmaf(p, r, 0x1.555490p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* x is NaN: t is NaN, its bits make any factor, p is NaN. */
    const int32_t k = (int32_t)(tern_to_bits(t) - 0x4b400000u);
    const int32_t half = k >> 1;
    const float a = tern_from_bits((uint32_t)(half + 127) << 23);
    const float b = tern_from_bits((uint32_t)(k - half + 127) << 23);
    return p * a * b;
}

/* 1 / (1 + e^-x). Error below 2.5 ulp; 0 below -88.73, where e^-x is infinite. */
static inline float tern_sigmoid(float x)
{
    return 1.0f / (1.0f + tern_exp(-x));
}

/* x / (1 + e^-x). Error below 2.5 ulp; -0 below -88.73; -infinity gives NaN. */
static inline float tern_silu(float x)
{
    return x / (1.0f + tern_exp(-x));
}

/* tanh: on |x| < 0.55 an odd polynomial x + x^3 P(x^2), P fitted there with error 1.1e-9; else
 * 1 - 2 / (e^2x + 1) on |x|; the sign put back. Error below 2 ulp. */
static inline float tern_tanh(float x)
{
    const uint32_t sign = tern_to_bits(x) & 0x80000000u;
    const float a = tern_from_bits(tern_to_bits(x) & 0x7fffffffu);
    const float s = a * a;
    float p = -0x1.9b304cp-8f;
    p = fmaf(p, s, 0x1.593d08p-6f);
    p = fmaf(p, s, -0x1.b9287ap-5f);
    p = fmaf(p, s, 0x1.110d26p-3f);
    p = fmaf(p, s, -0x1.55554ap-2f);
    const float near = fmaf(a * s, p, a);
    const float far = 1.0f - 2.0f / (tern_exp(a + a) + 1.0f);
    const float y = a < 0.55f ? near : far;
    return tern_from_bits(tern_to_bits(y) | sign);
}

/* x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), written as x / (1 + e^-2u): the same
 * number, but nothing cancels where tanh is near -1. -infinity gives NaN. */
static inline float tern_gelu_tanh(float x)
{
    const float x3 = x * x * x;
    const float v = -0x1.988454p+0f * fmaf(0x1.6e4e26p-5f, x3, x); /* -2 sqrt(2/pi); 0.044715 */
    return x / (1.0f + tern_exp(v));
}

/* x Phi(x), Phi the normal distribution function. On a = |x| the tail Phi(-a) is e^(-a^2/2)
 * t P(t), t = 1 / (1 + 0.2316 a), P of degree 7 fitted on 0 <= a <= 14 with error 1.3e-7.
 * Infinities give NaN. */
static inline float tern_gelu_erf(float x)
{
    const float a = tern_from_bits(tern_to_bits(x) & 0x7fffffffu);
    const float t = 1.0f / fmaf(a, 0x1.da511ap-3f, 1.0f);
    float p = -0x1.20baecp-4f;
    p = fmaf(p, t, 0x1.fc2808p-3f);
    p = fmaf(p, t, -0x1.9e57e6p-3f);
    p = fmaf(p, t, 0x1.ce6824p-3f);
    p = fmaf(p, t, 0x1.b3b266p-7f);
    p = fmaf(p, t, 0x1.a4abc4p-4f);
    p = fmaf(p, t, 0x1.7240acp-4f);
    p = fmaf(p, t, 0x1.7ae7b2p-4f);
    const float tail = tern_exp(-0.5f * a * a) * (p * t);
    return x > 0.0f ? x - x * tail : x * tail;
}

/* Natural logarithm; 0 gives -infinity, negatives and NaN give NaN. x = 2^e m with m in
 * [sqrt(1/2), sqrt(2)); log m = 2 atanh(f), f = (m - 1) / (m + 1), as f + f^3 P(f^2), P fitted
 * with error 8.1e-10. Error below 2 ulp. */
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
    float p = 0x1.31e464p-3f;
    p = fmaf(p, s, 0x1.995eb0p-3f);
    p = fmaf(p, s, 0x1.55557ap-2f);
    const float log_m = 2.0f * fmaf(f * s, p, f);
    return fmaf((float)e, 0x1.62e430p-1f, fmaf((float)e, -0x1.05c610p-29f, log_m));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x|; log(1 + e) = 2 atanh(f), f = e / (2 + e)
 * in [0, 1/3], as f + f^3 P(f^2), P fitted with error 4.5e-9. Error below 3 ulp. */
static inline float tern_softplus(float x)
{
    const float e = tern_exp(-tern_from_bits(tern_to_bits(x) & 0x7fffffffu));
    const float f = e / (2.0f + e), s = f * f;
    float p = 0x1.1ed7c0p-3f;
    p = fmaf(p, s, 0x1.1ebd0cp-3f);
    p = fmaf(p, s, 0x1.99d208p-3f);
    p = fmaf(p, s, 0x1.555502p-2f);
    const float log1p = 2.0f * fmaf(f * s, p, f);
    return (x > 0.0f ? x : 0.0f) + log1p;
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

/* The highest of n numbers, -infinity if there are none, NaN if one of them is. A highest of -0
 * is given as +0. */
static inline float tern_highest(const float *x, size_t n)
{
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return x[i];
        best = x[i] > best ? x[i] : best;
    }
    return best + 0.0f;
}

/* x = e^((x - max) / t), in place; no number of x is above max, and t is positive. */
static inline void tern_exp_row(float *x, size_t n, float max, float t)
{
    for (size_t i = 0; i < n; i++)
        x[i] = tern_exp((x[i] - max) / t);
}

#endif
