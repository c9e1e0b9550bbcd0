/* matmul_float_avx2.h: chains of fma over floats, 16 rows a panel, a register for 8 rows.
 *
 * An fma takes four cycles and two can start in each, so eight chains have to run side by side:
 * of several tokens, or of several panels where tokens are few. Six tokens by one panel fill
 * the registers. */
#ifndef TERN_CPU_MATMUL_FLOAT_AVX2_H
#define TERN_CPU_MATMUL_FLOAT_AVX2_H

#include "platform/cpu/x86/matmul_avx2.h"

enum { TERN_TILE_TOKENS = 6, TERN_TILE_PANELS = 4 };

/* Where a tile takes its operands: 8 rows of element k at w + k * 16 * bytes + 8 * half * bytes. */
struct tern_float_tile {
    const uint8_t *w;
    size_t panel_bytes, n_k;
    const float *x;
    size_t x_stride;
    float *dst;
    size_t dst_stride;
};

typedef __m256 tern_load_8(const uint8_t *p);

TERN_INLINE __m256 load_8_f32(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}

/* resume: the chains go on from dst. Constants all but t. */
TERN_INLINE void float_tile(tern_load_8 *load, size_t bytes, const struct tern_float_tile *t,
                            size_t n_panels, size_t n_tokens, bool resume)
{
    __m256 acc[TERN_TILE_PANELS][TERN_TILE_TOKENS][2];
#pragma GCC unroll 6
    for (size_t i = 0; i < n_tokens; i++)
#pragma GCC unroll 4
        for (size_t p = 0; p < n_panels; p++) {
            const float *dst = t->dst + i * t->dst_stride + TERN_PANEL_ROWS * p;
            acc[p][i][0] = resume ? _mm256_loadu_ps(dst) : _mm256_setzero_ps();
            acc[p][i][1] = resume ? _mm256_loadu_ps(dst + 8) : _mm256_setzero_ps();
        }
    for (size_t k = 0; k < t->n_k; k++)
#pragma GCC unroll 4
        for (size_t p = 0; p < n_panels; p++) {
            const uint8_t *w = t->w + p * t->panel_bytes + TERN_PANEL_ROWS * bytes * k;
            const __m256 w0 = load(w), w1 = load(w + 8 * bytes);
#pragma GCC unroll 6
            for (size_t i = 0; i < n_tokens; i++) {
                const __m256 x = _mm256_set1_ps(t->x[i * t->x_stride + k]);
                acc[p][i][0] = _mm256_fmadd_ps(w0, x, acc[p][i][0]);
                acc[p][i][1] = _mm256_fmadd_ps(w1, x, acc[p][i][1]);
            }
        }
#pragma GCC unroll 6
    for (size_t i = 0; i < n_tokens; i++)
#pragma GCC unroll 4
        for (size_t p = 0; p < n_panels; p++) {
            float *dst = t->dst + i * t->dst_stride + TERN_PANEL_ROWS * p;
            _mm256_storeu_ps(dst, acc[p][i][0]);
            _mm256_storeu_ps(dst + 8, acc[p][i][1]);
        }
}

/* One panel, any number of tokens. */
TERN_INLINE void float_panel(tern_load_8 *load, size_t bytes, struct tern_float_tile t,
                             size_t n_tokens, bool resume)
{
    for (; n_tokens >= TERN_TILE_TOKENS; n_tokens -= TERN_TILE_TOKENS) {
        float_tile(load, bytes, &t, 1, TERN_TILE_TOKENS, resume);
        t.x += TERN_TILE_TOKENS * t.x_stride;
        t.dst += TERN_TILE_TOKENS * t.dst_stride;
    }
    switch (n_tokens) {
    case 5: float_tile(load, bytes, &t, 1, 5, resume); break;
    case 4: float_tile(load, bytes, &t, 1, 4, resume); break;
    case 3: float_tile(load, bytes, &t, 1, 3, resume); break;
    case 2: float_tile(load, bytes, &t, 1, 2, resume); break;
    case 1: float_tile(load, bytes, &t, 1, 1, resume); break;
    default: break;
    }
}

#endif
