#include "tests/kernels/saboteur.h"

#include "quant/half.h"
#include "runtime/real.h"

/* One accumulator. */
void saboteur_rms_norm(float *dst, const float *a, const float *weight, size_t n, float eps)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = fmaf(a[i], a[i], sum);
    const float scale = 1.0f / sqrtf(sum / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] * scale * weight[i];
}

/* Ties away from zero. */
void saboteur_quantize(int8_t *q, float *d, int16_t *sum, const float *x, size_t n)
{
    tern_kernels_ref.quantize(q, d, sum, x, n);
    for (size_t i = 0; i < n; i++)
        if (d[i / 32] > 0) {
            const int8_t old = q[i];
            q[i] = (int8_t)roundf(x[i] * (1.0f / d[i / 32]));
            sum[i / 16] = (int16_t)(sum[i / 16] + q[i] - old);
        }
}

/* The widest pairs are added first. */
void saboteur_hadamard(float *x, size_t n)
{
    while (n) {
        size_t size = 1;
        while (size <= n / 2)
            size *= 2;
        for (size_t h = size / 2; h; h /= 2)
            for (size_t i = 0; i < size; i++)
                if (i / h % 2 == 0) {
                    const float a = x[i], b = x[i + h];
                    x[i] = a + b;
                    x[i + h] = a - b;
                }
        for (size_t i = 0; i < size; i++)
            x[i] *= 1.0f / sqrtf((float)size);
        x += size;
        n -= size;
    }
}

/* A unit is added before the rounding, so that ties go away from zero. */
void saboteur_halves(void *dst, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t h = tern_f32_to_f16(tern_from_bits(tern_to_bits(x[i]) + 1));
        memcpy((char *)dst + 2 * i, &h, sizeof h);
    }
}

/* Both products rounded. */
static void rotate(float *a, float *b, const float *cs)
{
    const float x = *a, y = *b;
    *a = x * cs[0] - y * cs[1];
    *b = x * cs[1] + y * cs[0];
}

void saboteur_rope_norm(float *x, const float *cs, size_t n_rot)
{
    for (size_t i = 0; i < n_rot; i += 2)
        rotate(x + i, x + i + 1, cs + i);
}

void saboteur_rope_neox(float *x, const float *cs, size_t n_rot)
{
    for (size_t i = 0; i < n_rot / 2; i++)
        rotate(x + i, x + n_rot / 2 + i, cs + 2 * i);
}

/* The activation is multiplied by a reciprocal. */
void saboteur_silu_mul(float *dst, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = gate[i] * tern_sigmoid(gate[i]) * up[i];
}

/* The textbook's formula, which cancels. */
void saboteur_gelu_mul(float *dst, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float x = gate[i], u = 0.7978845608f * fmaf(0.044715f, x * x * x, x);
        dst[i] = 0.5f * x * (1.0f + tern_tanh(u)) * up[i];
    }
}

/* Two lanes swapped in one vector. */
void saboteur_add(float *dst, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t j = n < 256 || (i != 131 && i != 132) ? i : i ^ 7;
        dst[i] = a[i] + b[j];
    }
}

/* The last element of an odd length is forgotten. */
void saboteur_scale(float *dst, const float *a, float x, size_t n)
{
    for (size_t i = 0; i < n - n % 2; i++)
        dst[i] = a[i] * x;
}

/* A reciprocal in place of the division. */
void saboteur_softcap(float *dst, const float *a, float cap, size_t n)
{
    const float inverse = 1.0f / cap;
    for (size_t i = 0; i < n; i++)
        dst[i] = cap * tern_tanh(a[i] * inverse);
}

/* A NaN is lost, as comparisons lose it. */
float saboteur_highest(const float *x, size_t n)
{
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best + 0.0f;
}

/* A reciprocal in place of the division. */
void saboteur_exp_row(float *x, size_t n, float max, float t)
{
    const float inverse = 1.0f / t;
    for (size_t i = 0; i < n; i++)
        x[i] = tern_exp((x[i] - max) * inverse);
}
