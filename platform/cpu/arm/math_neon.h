/* math_neon.h: the functions of runtime/real.h on 4 lanes, the same operations in the same order.
 *
 * fmax and fmin of this architecture keep a NaN, as the C does.
 */
#ifndef TERN_MATH_NEON_H
#define TERN_MATH_NEON_H

#include "runtime/real.h"

#include <arm_neon.h>
#include <stddef.h>

/* e^r's polynomial of tern_exp(-x), and the t whose lowest bits are n. Everything is exp's with
 * the signs of x and r turned, which changes no rounding and saves negating x. The caller
 * multiplies by 2^n, in the one or two steps that its range asks for: all are exact but the
 * last, so that how 2^n is split does not tell. */
static inline float32x4_t exp_minus_parts_neon(float32x4_t x, float32x4_t *t)
{
    const float32x4_t magic = vdupq_n_f32(0x1.8p23f), one = vdupq_n_f32(1.0f);
    *t = vfmsq_f32(magic, x, vdupq_n_f32(0x1.715476p+0f));
    const float32x4_t n = vsubq_f32(*t, magic);
    float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(0x1.62e4p-1f));
    r = vfmaq_f32(r, n, vdupq_n_f32(0x1.7f7d1cp-20f));
    float32x4_t p = vdupq_n_f32(0x1.6a234cp-10f);
    p = vfmsq_f32(vdupq_n_f32(0x1.123a6cp-7f), p, r);
    p = vfmsq_f32(vdupq_n_f32(0x1.5558f4p-5f), p, r);
    p = vfmsq_f32(vdupq_n_f32(0x1.555490p-3f), p, r);
    p = vfmsq_f32(vdupq_n_f32(0x1.fffffcp-2f), p, r);
    p = vfmsq_f32(one, p, r);
    return vfmsq_f32(one, p, r);
}

/* 2^(n + k), by the bits of 2^k. */
static inline float32x4_t power_neon(float32x4_t t, float two_to_k)
{
    const int32x4_t n = vshlq_n_s32(vreinterpretq_s32_f32(t), 23);
    return vreinterpretq_f32_s32(vaddq_s32(n, vreinterpretq_s32_f32(vdupq_n_f32(two_to_k))));
}

/* tern_exp(-x) for x >= 0 and NaN. n is -150 or more: 2^(n + 24) is a normal number. */
static inline float32x4_t exp_minus_neon(float32x4_t x)
{
    float32x4_t t;
    const float32x4_t p = exp_minus_parts_neon(vminq_f32(x, vdupq_n_f32(104.0f)), &t);
    return vmulq_n_f32(vmulq_f32(p, power_neon(t, 0x1p24f)), 0x1p-24f);
}

/* 1 + tern_exp(-x). Above 87 that is 1 whatever the power is; n is 128 at most, and 2^(n - 1) a
 * normal number. */
static inline float32x4_t one_plus_exp_minus_neon(float32x4_t x)
{
    float32x4_t t;
    const float32x4_t below = vminq_f32(x, vdupq_n_f32(87.0f));
    const float32x4_t p = exp_minus_parts_neon(vmaxq_f32(below, vdupq_n_f32(-89.0f)), &t);
    const float32x4_t half = vmulq_f32(p, power_neon(t, 0.5f));
    return vaddq_f32(vdupq_n_f32(1.0f), vaddq_f32(half, half));
}

static inline float32x4_t silu_neon(float32x4_t x)
{
    return vdivq_f32(x, one_plus_exp_minus_neon(x));
}

static inline float32x4_t tanh_neon(float32x4_t x)
{
    const float32x4_t a = vabsq_f32(x), s = vmulq_f32(a, a), one = vdupq_n_f32(1.0f);
    float32x4_t p = vdupq_n_f32(-0x1.9b304cp-8f);
    p = vfmaq_f32(vdupq_n_f32(0x1.593d08p-6f), p, s);
    p = vfmaq_f32(vdupq_n_f32(-0x1.b9287ap-5f), p, s);
    p = vfmaq_f32(vdupq_n_f32(0x1.110d26p-3f), p, s);
    p = vfmaq_f32(vdupq_n_f32(-0x1.55554ap-2f), p, s);
    const float32x4_t near = vfmaq_f32(a, vmulq_f32(a, s), p);
    const float32x4_t e = one_plus_exp_minus_neon(vmulq_n_f32(a, -2.0f));
    const float32x4_t far = vsubq_f32(one, vdivq_f32(vdupq_n_f32(2.0f), e));
    const float32x4_t y = vbslq_f32(vcltq_f32(a, vdupq_n_f32(0.55f)), near, far);
    /* The sign is x's alone, which for a y that is never negative is what the C says. */
    return vbslq_f32(vdupq_n_u32(0x80000000u), x, y);
}

static inline float32x4_t gelu_tanh_neon(float32x4_t x)
{
    const float32x4_t x3 = vmulq_f32(vmulq_f32(x, x), x);
    const float32x4_t u = vfmaq_f32(x, vdupq_n_f32(0x1.6e4e26p-5f), x3);
    return vdivq_f32(x, one_plus_exp_minus_neon(vmulq_n_f32(u, 0x1.988454p+0f)));
}

/* tern_sum16 of four vectors. */
static inline float sum16_neon(const float32x4_t acc[4])
{
    const float32x4_t s4 = vaddq_f32(vaddq_f32(acc[0], acc[2]), vaddq_f32(acc[1], acc[3]));
    return vpadds_f32(vadd_f32(vget_low_f32(s4), vget_high_f32(s4)));
}

#endif
