/* matmul_float_neon.c: matrices of F32, F16 and BF16; attention's scores too, where a panel is
 * the keys of 16 tokens and the calls are many and small. */
#include "platform/cpu/arm/arm.h"
#include "platform/cpu/arm/matmul_float_neon.h"

enum { L2_BYTES = 128 * 1024 }; /* what a group of activations may take of it */

TERN_INLINE void load_16_f16(const uint8_t *p, float32x4_t w[4])
{
    const float16x8_t a = vreinterpretq_f16_u8(vld1q_u8(p));
    const float16x8_t b = vreinterpretq_f16_u8(vld1q_u8(p + 16));
    w[0] = vcvt_f32_f16(vget_low_f16(a));
    w[1] = vcvt_high_f32_f16(a);
    w[2] = vcvt_f32_f16(vget_low_f16(b));
    w[3] = vcvt_high_f32_f16(b);
}

TERN_INLINE void load_16_bf16(const uint8_t *p, float32x4_t w[4])
{
    const uint16x8_t a = vreinterpretq_u16_u8(vld1q_u8(p));
    const uint16x8_t b = vreinterpretq_u16_u8(vld1q_u8(p + 16));
    w[0] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16));
    w[1] = vreinterpretq_f32_u32(vshll_high_n_u16(a, 16));
    w[2] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16));
    w[3] = vreinterpretq_f32_u32(vshll_high_n_u16(b, 16));
}

/* Many tokens go in groups whose activations stay in the second cache. */
static size_t group_of(const struct tern_matmul *m)
{
    const size_t n = m->acts->n_tokens;
    if (n <= 8 * TERN_TILE_TOKENS)
        return n;
    const size_t fit = L2_BYTES / (sizeof(float) * m->n_cols) / TERN_TILE_TOKENS;
    return TERN_TILE_TOKENS * (fit < 4 ? 4 : fit);
}

TERN_INLINE void matmul_floats(tern_load_16 *load, size_t bytes, const struct tern_matmul *m,
                               size_t first, size_t n)
{
    const struct tern_acts *a = m->acts;
    const size_t group = group_of(m);
    for (size_t token = 0; token < a->n_tokens; token += group) {
        const size_t n_now = a->n_tokens - token < group ? a->n_tokens - token : group;
        struct tern_float_tile t = {
            .w = m->panels + first * m->panel_bytes, .panel_bytes = m->panel_bytes,
            .n_k = m->n_cols,
            .x = a->x + token * a->x_stride, .x_stride = a->x_stride,
            .dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * first,
            .dst_stride = m->dst_stride,
        };
        size_t p = 0;
        for (; n_now == 1 && p + 1 < n; p += 2) {
            float_tile(load, bytes, &t, 2, 1, false);
            t.w += 2 * m->panel_bytes;
            t.dst += 2 * TERN_PANEL_ROWS;
        }
        for (; p < n; p++) {
            float_panel(load, bytes, t, n_now, false);
            t.w += m->panel_bytes;
            t.dst += TERN_PANEL_ROWS;
        }
    }
}

void tern_matmul_f32_neon(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_16_f32, 4, m, first, n);
}

void tern_matmul_f16_neon(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_16_f16, 2, m, first, n);
}

void tern_matmul_bf16_neon(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_16_bf16, 2, m, first, n);
}
