#include "runtime/rope.h"

#include "runtime/real.h"

#include <float.h>
#include <string.h>

static double from_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static uint64_t to_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

/* Natural logarithm of a positive normal number: 2^e m with m in [sqrt(1/2), sqrt(2)), and
 * log m = 2 atanh(f) as its series up to f^23, whose rest is below 1e-17. */
static double log_double(double x)
{
    const uint64_t low = 0x3fe6a09e667f3bcdu; /* sqrt(1/2) */
    const uint64_t u = to_bits(x) - low;
    const int e = (int)((int64_t)u >> 52);
    const double m = from_bits((u & 0x000fffffffffffffu) + low);
    const double f = (m - 1.0) / (m + 1.0), s = f * f;
    double sum = 1.0 / 23.0;
    for (int k = 21; k > 0; k -= 2)
        sum = sum * s + 1.0 / k;
    return 0x1.62e42fefa39efp-1 * e + 2.0 * f * sum;
}

/* e^x for |x| below 700: n ln 2 taken off in two steps, then the series up to r^14 / 14!. */
static double exp_double(double x)
{
    const double t = x * 0x1.71547652b82fep+0 + 0x1.8p52;
    const double n = t - 0x1.8p52;
    const double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
    double sum = 1.0;
    for (int k = 14; k > 0; k--)
        sum = 1.0 + sum * r / k;
    const uint64_t exponent = to_bits(t) - to_bits(0x1.8p52) + 1023;
    return sum * from_bits(exponent << 52);
}

double tern_rope_inv_freq(const struct tern_rope *rope, const float *factors, uint32_t i)
{
    const double base = (double)rope->base;
    if (!(base > 0.0 && base <= (double)FLT_MAX))
        return (double)NAN;
    /* |log base| < 104 and 2 i < n_rot, so the power is far inside the range of a double. */
    const double power = exp_double(-2.0 * (double)i / (double)rope->n_rot * log_double(base));
    const double extrapolated = power / (factors ? (double)factors[i] : 1.0);
    const double interpolated = extrapolated * (double)rope->freq_scale;
    const double two_over_pi = 0x1.45f306dc9c883p-1;
    if (rope->ext_factor == 0.0f)
        return interpolated * two_over_pi;
    const double low = (double)rope->corr_low, span = (double)rope->corr_high - low;
    const double along = ((double)i - low) / (span > 0.001 ? span : 0.001);
    const double ramp = 1.0 - (along < 0.0 ? 0.0 : along > 1.0 ? 1.0 : along);
    const double mix = ramp * (double)rope->ext_factor;
    return (interpolated * (1.0 - mix) + extrapolated * mix) * two_over_pi;
}

/* Sine and cosine of x, |x| <= pi / 4: Taylor's series; the rests are 7e-12 and 4e-13. */
static void sin_cos(double x, double *sine, double *cosine)
{
    const double s = x * x;
    double p = -1.0 / 39916800.0;
    p = p * s + 1.0 / 362880.0;
    p = p * s - 1.0 / 5040.0;
    p = p * s + 1.0 / 120.0;
    p = p * s - 1.0 / 6.0;
    *sine = x + x * s * p;
    double q = 1.0 / 479001600.0;
    q = q * s - 1.0 / 3628800.0;
    q = q * s + 1.0 / 40320.0;
    q = q * s - 1.0 / 720.0;
    q = q * s + 1.0 / 24.0;
    q = q * s - 0.5;
    *cosine = 1.0 + s * q;
}

void tern_rope_angles(const struct tern_rope *rope, const double *quarter, uint32_t position,
                      float *cs)
{
    const double scale = (double)rope->mscale;
    const uint32_t n = rope->n_rot / 2;
    for (uint32_t i = 0; i < n; i++) {
        const double angle = (double)position * quarter[i];
        if (!(angle > -0x1p40 && angle < 0x1p40)) {
            cs[2 * i] = cs[2 * i + 1] = NAN;
            continue;
        }
        /* Adding 1.5 * 2^52 rounds to a whole number and leaves it in the lowest bits. */
        const double t = angle + 0x1.8p52;
        const double rest = angle - (t - 0x1.8p52);
        const uint32_t turns = (uint32_t)to_bits(t) & 3;
        double sine, cosine;
        sin_cos(rest * 0x1.921fb54442d18p+0, &sine, &cosine);
        /* 0: (c, s), 1: (-s, c), 2: (-c, -s), 3: (s, -c) */
        const double c = turns & 1 ? sine : cosine, s = turns & 1 ? cosine : sine;
        cs[2 * i] = (float)(scale * (turns == 1 || turns == 2 ? -c : c));
        cs[2 * i + 1] = (float)(scale * (turns & 2 ? -s : s));
    }
}
