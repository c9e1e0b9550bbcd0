/* one_token_arm.h: integer matrix products with one token.
 *
 * Codes are unpacked in registers, run by run, and meet the activations by lane; per block that
 * leaves the scales (four conversions), four products and four fma. d and the sums of four blocks
 * are loaded together. Zero points are what the 32-bit sums start from. */
#ifndef TERN_CPU_ONE_TOKEN_ARM_H
#define TERN_CPU_ONE_TOKEN_ARM_H

#include "platform/cpu/arm/by_hand_arm.h"
#include "platform/cpu/kernels.h"

#include <string.h>

/* What the record of four sub-blocks gives, a lane each. z: what their sums start from, with
 * has_sc by half (sub-blocks 0 and 1, then 2 and 3). */
struct tern_four { float32x4_t d, side; int32x4_t z[2]; };

TERN_INLINE struct tern_four four_of(const struct tern_codes_arm *f, float32x4_t d, int16x8_t sum)
{
    struct tern_four r = {.d = d};
    if (f->has_sc) {
        r.z[0] = vmull_n_s16(vget_low_s16(sum), (int16_t)-f->zero);
        r.z[1] = vmull_high_n_s16(sum, (int16_t)-f->zero);
        return r;
    }
    const int32x4_t both = vpaddlq_s16(sum);
    r.z[0] = f->zero ? vmulq_n_s32(both, -f->zero) : vdupq_n_s32(0);
    if (f->has_min)
        r.side = vmulq_f32(d, vcvtq_f32_s32(both));
    return r;
}

TERN_INLINE int32x4_t init_of(const struct tern_codes_arm *f, const struct tern_four *r, int lane,
                              int half)
{
    if (f->has_sc)
        return dup_lane(r->z[lane / 2], lane % 2 * 2 + half);
    return f->zero ? dup_lane(r->z[0], lane) : vdupq_n_s32(0);
}

/* The at-th of the runs that are added, run `run`, of n registers of rows. */
TERN_INLINE void add_run(const struct tern_codes_arm *f, unsigned at, unsigned run,
                         const int8x16_t *w, int n, const int8x16_t x[2], struct tern_dot *dot)
{
#pragma GCC unroll 4
    for (int k = 0; k < n; k++)
        dot_add(&dot[k + (f->has_sc ? 4 * (int)(run / 4) : 0)], f->chain,
                f->has_sc ? run % 4 : at, w[k], x[run / 4], (int)run % 4);
}

/* Each run is used as soon as it is there. High nibbles first: what makes the low ones may
 * overwrite the bytes. */
TERN_INLINE void add_runs(const struct tern_codes_arm *f, struct tern_sub s, const int8x16_t x[2],
                          struct tern_dot dot[8])
{
    if (TERN_BY_HAND && f->dots) {
        f->dots(s, x, dot);
        return;
    }
    if (f->run) {
        f->seek(&s);
#pragma GCC unroll 8
        for (unsigned run = 0; run < 8; run++) {
            int8x16_t w[4];
            f->run(&s, w);
            add_run(f, run, run, w, 4, x, dot);
        }
        return;
    }
#pragma GCC unroll 2
    for (int rows = 0; rows < 2; rows++)
#pragma GCC unroll 2
        for (unsigned i = 0; i < 2; i++) {
            int8x16_t w[4][2];
            f->four_runs(s, rows, (int)i, w);
            add_run(f, 4 * i, 2 * i + 4, w[2], 2, x, dot + 2 * rows);
            add_run(f, 4 * i + 1, 2 * i + 5, w[3], 2, x, dot + 2 * rows);
            add_run(f, 4 * i + 2, 2 * i, w[0], 2, x, dot + 2 * rows);
            add_run(f, 4 * i + 3, 2 * i + 1, w[1], 2, x, dot + 2 * rows);
        }
}

TERN_INLINE void start_dots(const struct tern_codes_arm *f, const struct tern_four *r, int lane,
                            struct tern_dot dot[8])
{
    for (int i = 0; i < 4; i++) {
        dot_start(&dot[i], init_of(f, r, lane, 0));
        if (f->has_sc)
            dot_start(&dot[4 + i], init_of(f, r, lane, 1));
    }
}

/* The chains go a step on by one sub-block's sums, whose record is lane `lane` of r. */
TERN_INLINE void end_dots(const struct tern_codes_arm *f, struct tern_sub s,
                          struct tern_dot dot[8], const struct tern_four *r, int lane,
                          float32x4_t acc[4])
{
    if (TERN_BY_HAND && f->end) {
        f->end(s, (struct tern_lane){r->d, r->side, lane}, dot, acc);
        return;
    }
    const unsigned chain = f->chain;
    float32x4_t scale[4], minus_min[4];
    int32x4_t sc[2][4];
    f->scale(s, scale);
    if (f->has_min)
        f->minus_min(s, minus_min);
    for (int half = 0; f->has_sc && half < 2; half++)
        f->sc(s, half, sc[half]);
    for (int i = 0; i < 4; i++) {
        int32x4_t both = dot_end(&dot[i], chain);
        if (f->has_sc)
            both = vmlaq_s32(vmulq_s32(both, sc[0][i]), dot_end(&dot[4 + i], chain), sc[1][i]);
        acc[i] = vfmaq_f32(acc[i], vcvtq_f32_s32(both), mul_lane(scale[i], r->d, lane));
        if (f->has_min)
            acc[i] = fma_lane(acc[i], minus_min[i], r->side, lane);
    }
}

TERN_INLINE void step_1(const struct tern_codes_arm *f, struct tern_sub s, const int8_t *q,
                        const struct tern_four *r, int lane, float32x4_t acc[4])
{
    const int8x16_t x[2] = {vld1q_s8(q), vld1q_s8(q + 16)};
    struct tern_dot dot[8];
    start_dots(f, r, lane, dot);
    add_runs(f, s, x, dot);
    end_dots(f, s, dot, r, lane, acc);
}

/* This sub-block and the next. */
TERN_INLINE void step_2(const struct tern_codes_arm *f, struct tern_sub s, const int8_t *q,
                        const struct tern_four *r, int lane, float32x4_t acc[4])
{
    const int8x16_t x[4] = {vld1q_s8(q), vld1q_s8(q + 16), vld1q_s8(q + 32), vld1q_s8(q + 48)};
    struct tern_dot dot[2][8];
    start_dots(f, r, lane, dot[0]);
    start_dots(f, r, lane + 1, dot[1]);
    f->dots_2(s, x, dot[0], dot[1]);
    end_dots(f, s, dot[0], r, lane, acc);
    s.sub++;
    in_order();
    end_dots(f, s, dot[1], r, lane + 1, acc);
}

/* The record of one token. */
struct tern_token { const int8_t *q; const float *d; const int16_t *sum; size_t n_blocks; };

/* One panel, one token. */
TERN_INLINE void panel_by_1(const struct tern_codes_arm *f, struct tern_token a,
                            const uint8_t *block, float *dst)
{
    const int8_t *q = a.q;
    const float *d = a.d;
    const int16_t *sum = a.sum;
    float32x4_t acc[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    size_t n = a.n_blocks;
    const unsigned quads = f->n_subs == 1 ? 1 : f->n_subs / 4;
    float opened[32];
    while (n >= 4 * quads) {
        if (f->open)
            f->open(block, opened);
#pragma GCC unroll 2
        for (unsigned quad = 0; quad < quads; quad++) {
            const struct tern_four r = four_of(f, vld1q_f32(d), vld1q_s16(sum));
#pragma GCC unroll 4
            for (unsigned e = 0; e < 4; e++) {
                struct tern_sub s = {.block = block, .sub = 4 * quad + e, .d = opened};
                if (f->n_subs == 1)
                    s = (struct tern_sub){.block = block + e * f->block_bytes};
                if (!TERN_BY_HAND || !f->dots_2)
                    step_1(f, s, q + TERN_SUB * e, &r, (int)e, acc);
                else if (e % 2 == 0)
                    step_2(f, s, q + TERN_SUB * e, &r, (int)e, acc);
                in_order();
            }
            q += 4 * TERN_SUB;
            d += 4;
            sum += 8;
        }
        n -= 4 * quads;
        block += (f->n_subs == 1 ? 4 : 1) * f->block_bytes;
    }
    for (; f->n_subs == 1 && n; n--, q += TERN_SUB, d++, sum += 2, block += f->block_bytes) {
        int32_t pair;
        memcpy(&pair, sum, sizeof pair);
        const struct tern_four r = four_of(f, vld1q_dup_f32(d),
                                           vreinterpretq_s16_s32(vdupq_n_s32(pair)));
        step_1(f, (struct tern_sub){.block = block}, q, &r, 0, acc);
    }
    for (int i = 0; i < 4; i++)
        vst1q_f32(dst + 4 * i, acc[i]);
}

#endif
