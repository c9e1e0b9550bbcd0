/* matmul_float_avx2.c: matrices of F32, F16 and BF16; attention's scores too, where a panel is
 * the keys of 16 tokens and the calls are many and small. */
#include "platform/cpu/x86/matmul_float_avx2.h"
#include "platform/cpu/x86/x86.h"

enum { L2_BYTES = 256 * 1024 }; /* what a tile of activations may take of it */

TERN_INLINE __m256 load_8_bf16(const uint8_t *p)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
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

TERN_INLINE struct tern_float_tile tile_at(const struct tern_matmul *m, size_t panel, size_t token)
{
    return (struct tern_float_tile){
        .w = m->panels + panel * m->panel_bytes, .panel_bytes = m->panel_bytes, .n_k = m->n_cols,
        .x = m->acts->x + token * m->acts->x_stride, .x_stride = m->acts->x_stride,
        .dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * panel,
        .dst_stride = m->dst_stride,
    };
}

TERN_INLINE void matmul_floats(tern_load_8 *load, size_t bytes, const struct tern_matmul *m,
                               size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens, group = group_of(m), end = first + n;
    size_t p = first;
    for (; n_tokens == 1 && end - p >= TERN_TILE_PANELS; p += TERN_TILE_PANELS) {
        const struct tern_float_tile t = tile_at(m, p, 0);
        float_tile(load, bytes, &t, TERN_TILE_PANELS, 1, false);
    }
    for (size_t token = 0; token < n_tokens; token += group)
        for (size_t i = p; i < end; i++)
            float_panel(load, bytes, tile_at(m, i, token),
                        n_tokens - token < group ? n_tokens - token : group, false);
}

void tern_matmul_f32_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_8_f32, 4, m, first, n);
}

void tern_matmul_f16_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_f16, 2, m, first, n);
}

void tern_matmul_bf16_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_8_bf16, 2, m, first, n);
}
