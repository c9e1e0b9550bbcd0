/* matmul_float_neon.h: tiles of products of floats, one fma an element, k ascending.
 *
 * A panel is four registers of rows, and four elements of an input are one register whose lanes
 * multiply all of them. One panel is four chains of fma, too few for a unit that gives a result
 * every cycle and takes four for it, so that a single token goes through two panels at once. */
#ifndef TERN_CPU_MATMUL_FLOAT_NEON_H
#define TERN_CPU_MATMUL_FLOAT_NEON_H

#include "platform/cpu/arm/lanes_arm.h"
#include "platform/cpu/kernels.h"

enum { TERN_TILE_TOKENS = 4, TERN_TILE_PANELS = 2 };

/* 16 weights of a panel, as floats. */
typedef void tern_load_16(const uint8_t *p, float32x4_t w[4]);

struct tern_float_tile {
    const uint8_t *w;
    size_t panel_bytes, n_k;
    const float *x;
    size_t x_stride;
    float *dst;
    size_t dst_stride;
};

/* One lane of each token's register. */
struct tern_lane { const float32x4_t *of; int lane; };

/* acc[panel][token][rows] */
typedef float32x4_t tern_float_chains[TERN_TILE_PANELS][TERN_TILE_TOKENS][4];

TERN_INLINE void load_16_f32(const uint8_t *p, float32x4_t w[4])
{
    for (int r = 0; r < 4; r++)
        w[r] = vreinterpretq_f32_u8(vld1q_u8(p + 16 * r));
}

/* The weights of one k, for every panel, times a lane of each token's x. */
TERN_INLINE void float_step(tern_load_16 *load, const uint8_t *w, const struct tern_float_tile *t,
                            size_t n_panels, size_t n_tokens, struct tern_lane x,
                            tern_float_chains acc)
{
#pragma GCC unroll 2
    for (size_t p = 0; p < n_panels; p++) {
        float32x4_t v[4];
        load(w + p * t->panel_bytes, v);
#pragma GCC unroll 4
        for (size_t i = 0; i < n_tokens; i++)
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++)
                acc[p][i][r] = fma_lane(acc[p][i][r], v[r], x.of[i], x.lane);
    }
}

TERN_INLINE void float_steps(tern_load_16 *load, size_t bytes, const struct tern_float_tile *t,
                             size_t n_panels, size_t n_tokens, tern_float_chains acc)
{
    float32x4_t x[TERN_TILE_TOKENS];
    const size_t k_bytes = TERN_PANEL_ROWS * bytes;
    const uint8_t *w = t->w;
    const float *from = t->x;
    size_t k = t->n_k;
    for (; k >= 4; k -= 4, w += 4 * k_bytes, from += 4) {
#pragma GCC unroll 4
        for (size_t i = 0; i < n_tokens; i++)
            x[i] = vld1q_f32(from + i * t->x_stride);
#pragma GCC unroll 4
        for (int lane = 0; lane < 4; lane++)
            float_step(load, w + (size_t)lane * k_bytes, t, n_panels, n_tokens,
                       (struct tern_lane){x, lane}, acc);
    }
    for (; k; k--, w += k_bytes, from++) {
#pragma GCC unroll 4
        for (size_t i = 0; i < n_tokens; i++)
            x[i] = vld1q_dup_f32(from + i * t->x_stride);
        float_step(load, w, t, n_panels, n_tokens, (struct tern_lane){x, 0}, acc);
    }
}

/* n_panels <= 2 by n_tokens <= 4; resume: the chains go on from dst. */
TERN_INLINE void float_tile(tern_load_16 *load, size_t bytes, const struct tern_float_tile *t,
                            size_t n_panels, size_t n_tokens, bool resume)
{
    tern_float_chains acc;
#pragma GCC unroll 4
    for (size_t i = 0; i < n_tokens; i++)
#pragma GCC unroll 2
        for (size_t p = 0; p < n_panels; p++)
#pragma GCC unroll 4
            for (size_t r = 0; r < 4; r++)
                acc[p][i][r] = resume ? vld1q_f32(t->dst + i * t->dst_stride +
                                                  TERN_PANEL_ROWS * p + 4 * r)
                                      : vdupq_n_f32(0);
    float_steps(load, bytes, t, n_panels, n_tokens, acc);
#pragma GCC unroll 4
    for (size_t i = 0; i < n_tokens; i++)
#pragma GCC unroll 2
        for (size_t p = 0; p < n_panels; p++)
#pragma GCC unroll 4
            for (size_t r = 0; r < 4; r++)
                vst1q_f32(t->dst + i * t->dst_stride + TERN_PANEL_ROWS * p + 4 * r, acc[p][i][r]);
}

/* One panel, any number of tokens. */
TERN_INLINE void float_panel(tern_load_16 *load, size_t bytes, struct tern_float_tile t,
                             size_t n_tokens, bool resume)
{
    for (; n_tokens >= TERN_TILE_TOKENS; n_tokens -= TERN_TILE_TOKENS) {
        float_tile(load, bytes, &t, 1, TERN_TILE_TOKENS, resume);
        t.x += TERN_TILE_TOKENS * t.x_stride;
        t.dst += TERN_TILE_TOKENS * t.dst_stride;
    }
    switch (n_tokens) {
    case 3: float_tile(load, bytes, &t, 1, 3, resume); break;
    case 2: float_tile(load, bytes, &t, 1, 2, resume); break;
    case 1: float_tile(load, bytes, &t, 1, 1, resume); break;
    default: break;
    }
}

#endif
