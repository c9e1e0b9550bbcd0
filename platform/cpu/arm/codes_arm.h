/* codes_arm.h: products of types without kernels of their own.
 *
 * The format's own function turns some blocks of a panel into codes in the scratch, once for all
 * tokens; the chains rest in dst meanwhile. */
#ifndef TERN_CPU_CODES_ARM_H
#define TERN_CPU_CODES_ARM_H

#include "platform/cpu/arm/dots_arm.h"
#include "platform/cpu/kernels.h"

#include <string.h>

enum { TERN_CODES_SUBS = 16 }; /* blocks of 32 k that are held: whole blocks of all types */
_Static_assert(TERN_CODES_SUBS * sizeof(struct tern_panel_codes) <= 16384, "scratch");

/* pairs (a, b) of 4 rows times (x, y): a * x + b * y. */
TERN_INLINE int32x4_t of_pairs(const int16_t (*pairs)[2], int32x4_t x, int32x4_t y)
{
    const int16x4x2_t p = vld2_s16(pairs[0]);
    return vmlaq_s32(vmulq_s32(vmovl_s16(p.val[0]), x), vmovl_s16(p.val[1]), y);
}

/* One block of one token. Any int8 may be a code, so that two products fill 16 bits. */
TERN_INLINE void codes_step(const struct tern_panel_codes *w, bool has_min, const int8_t *q,
                            float d, const int16_t *sum, float32x4_t acc[4])
{
    const int8x16_t x[2] = {vld1q_s8(q), vld1q_s8(q + 16)};
    const int32x4_t sum0 = vdupq_n_s32(sum[0]), sum1 = vdupq_n_s32(sum[1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        struct tern_dot dot[2];
        dot_start(&dot[0], vdupq_n_s32(0));
        dot_start(&dot[1], vdupq_n_s32(0));
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            dot_add(&dot[j / 4], 2, (unsigned)j % 4, vld1q_s8(w->q[j][4 * i]), x[j / 4], j % 4);
        const int32x4_t both = of_pairs(w->sc + 4 * i, dot_end(&dot[0], 2), dot_end(&dot[1], 2));
        const float32x4_t scale = vmulq_n_f32(vld1q_f32(w->scale + 4 * i), d);
        acc[i] = vfmaq_f32(acc[i], vcvtq_f32_s32(both), scale);
        if (!has_min)
            continue;
        const float32x4_t below = vcvtq_f32_s32(of_pairs(w->m + 4 * i, sum0, sum1));
        acc[i] = vfmsq_f32(acc[i], vld1q_f32(w->min + 4 * i), vmulq_n_f32(below, d));
    }
}

/* n_subs blocks of one token, from its sub-block `at` on. */
TERN_INLINE void codes_steps(const struct tern_panel_codes *w, size_t n_subs, bool has_min,
                             const struct tern_acts *a, size_t at, float *dst)
{
    float32x4_t acc[4];
    for (int i = 0; i < 4; i++)
        acc[i] = vld1q_f32(dst + 4 * i);
    for (size_t s = 0; s < n_subs; s++, at++)
        codes_step(w + s, has_min, a->q + TERN_SUB * at, a->d[at], a->sum + 2 * at, acc);
    for (int i = 0; i < 4; i++)
        vst1q_f32(dst + 4 * i, acc[i]);
}

TERN_INLINE void zero_panel(const struct tern_matmul *m, size_t panel)
{
    float *dst = m->dst + TERN_PANEL_ROWS * panel;
    for (size_t t = 0; t < m->acts->n_tokens; t++, dst += m->dst_stride)
        memset(dst, 0, TERN_PANEL_ROWS * sizeof *dst);
}

TERN_INLINE void matmul_by_codes(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_format *f = m->format;
    struct tern_panel_codes *w = m->scratch;
    const size_t n_subs = m->n_cols / TERN_SUB, a_block = f->n_elems / TERN_SUB;
    for (size_t p = first; p < first + n; p++) {
        const uint8_t *block = m->panels + p * m->panel_bytes;
        zero_panel(m, p);
        for (size_t s = 0; s < n_subs; s += TERN_CODES_SUBS) {
            const size_t n_now = n_subs - s < TERN_CODES_SUBS ? n_subs - s : TERN_CODES_SUBS;
            for (size_t i = 0; i < n_now; i += a_block, block += TERN_PANEL_ROWS * f->n_bytes)
                tern_panel_block_to_codes(f, block, w + i);
            for (size_t t = 0; t < m->acts->n_tokens; t++)
                codes_steps(w, n_now, f->has_min, m->acts, t * m->acts->n_blocks + s,
                            m->dst + t * m->dst_stride + TERN_PANEL_ROWS * p);
        }
    }
}

#endif
