/* Operations on one row of floats, as runtime/DESIGN.md decides their bits. */
#include "platform/cpu/ref/ref.h"

#include "quant/half.h"
#include "runtime/real.h"

void tern_rms_norm_ref(float *dst, const float *a, const float *weight, size_t n, float eps)
{
    float acc[16] = {0};
    for (size_t i = 0; i < n; i++)
        acc[i % 16] = fmaf(a[i], a[i], acc[i % 16]);
    const float scale = 1.0f / sqrtf(tern_sum16(acc) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] * scale * weight[i];
}

/* One block; the magnitude of a float orders like its bits, NaN above infinity. */
static void quantize_block(int8_t q[32], float *d, int16_t sum[2], const float *x, size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = tern_to_bits(x[i]) & 0x7fffffffu;
        max = u > max ? u : max;
    }
    memset(q, 0, 32);
    sum[0] = sum[1] = 0;
    if (max >= 0x7f800000u || tern_from_bits(max) < TERN_QUANTIZE_TINY) {
        *d = max >= 0x7f800000u ? NAN : 0.0f;
        return;
    }
    *d = tern_from_bits(max) / 127.0f;
    const float inverse = 1.0f / *d;
    for (size_t i = 0; i < n; i++) {
        /* |x / d| is at most 127: adding 1.5 * 2^23 rounds to nearest even. */
        const float r = x[i] * inverse + 0x1.8p23f;
        q[i] = (int8_t)(int32_t)(tern_to_bits(r) - 0x4b400000u);
        sum[i / 16] = (int16_t)(sum[i / 16] + q[i]);
    }
}

void tern_quantize_ref(int8_t *q, float *d, int16_t *sum, const float *x, size_t n)
{
    for (size_t b = 0; 32 * b < n; b++) {
        const size_t left = n - 32 * b;
        quantize_block(q + 32 * b, d + b, sum + 2 * b, x + 32 * b, left < 32 ? left : 32);
    }
}

/* size is a power of two. */
void tern_halves_ref(void *dst, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t h = tern_f32_to_f16(x[i]);
        memcpy((char *)dst + 2 * i, &h, sizeof h);
    }
}

static void hadamard_part(float *x, size_t size)
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

void tern_hadamard_ref(float *x, size_t n)
{
    while (n) {
        size_t size = 1;
        while (size <= n / 2)
            size *= 2;
        hadamard_part(x, size);
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

void tern_rope_norm_ref(float *x, const float *cs, size_t n_rot)
{
    for (size_t i = 0; i < n_rot / 2; i++)
        rotate(x + 2 * i, x + 2 * i + 1, cs + 2 * i);
}

void tern_rope_neox_ref(float *x, const float *cs, size_t n_rot)
{
    for (size_t i = 0; i < n_rot / 2; i++)
        rotate(x + i, x + n_rot / 2 + i, cs + 2 * i);
}

void tern_silu_mul_ref(float *dst, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = tern_silu(gate[i]) * up[i];
}

void tern_gelu_mul_ref(float *dst, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = tern_gelu_tanh(gate[i]) * up[i];
}

void tern_add_ref(float *dst, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
}

void tern_scale_ref(float *dst, const float *a, float x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] * x;
}

void tern_softcap_ref(float *dst, const float *a, float cap, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = cap * tern_tanh(a[i] / cap);
}

float tern_highest_ref(const float *x, size_t n)
{
    return tern_highest(x, n);
}

void tern_exp_row_ref(float *x, size_t n, float max, float t)
{
    tern_exp_row(x, n, max, t);
}
