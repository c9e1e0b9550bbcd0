/* matmul_codes_neon.c: types without kernels of their own, and exact products of all types with
 * codes. */
#include "platform/cpu/arm/arm.h"
#include "platform/cpu/arm/codes_arm.h"
#include "platform/cpu/arm/matmul_float_neon.h"

enum { FLOAT_SUBS = 6 }; /* blocks of 32 k that are held as floats */
_Static_assert(FLOAT_SUBS * 2048 + sizeof(struct tern_panel_codes) <= 16384, "scratch");

void tern_matmul_codes_neon(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_by_codes(m, first, n);
}

/* Rows are the inner loop, as in the panel. */
static void floats_of(const struct tern_panel_codes *c, bool has_min, float *out)
{
    for (size_t k = 0; k < TERN_SUB; k++)
        for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
            const float x = c->scale[r] * (float)(c->sc[r][k / 16] * c->q[k / 4][r][k % 4]);
            out[TERN_PANEL_ROWS * k + r] = has_min ? x - c->min[r] * (float)c->m[r][k / 16] : x;
        }
}

void tern_matmul_exact_neon(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_acts *a = m->acts;
    const struct tern_format *f = m->format;
    float *w = m->scratch;
    struct tern_panel_codes *c = (void *)(w + FLOAT_SUBS * TERN_SUB * TERN_PANEL_ROWS);
    const size_t n_subs = m->n_cols / TERN_SUB, a_block = f->n_elems / TERN_SUB;
    for (size_t p = first; p < first + n; p++) {
        zero_panel(m, p);
        for (size_t s = 0; s < n_subs; s += FLOAT_SUBS) {
            const size_t n_now = n_subs - s < FLOAT_SUBS ? n_subs - s : FLOAT_SUBS;
            for (size_t i = 0; i < n_now; i++) {
                tern_panel_to_codes(f, m->panels + p * m->panel_bytes +
                                           (s + i) / a_block * TERN_PANEL_ROWS * f->n_bytes,
                                    (uint32_t)((s + i) % a_block), c);
                floats_of(c, f->has_min, w + i * TERN_SUB * TERN_PANEL_ROWS);
            }
            const struct tern_float_tile t = {
                .w = (const uint8_t *)w, .n_k = n_now * TERN_SUB,
                .x = a->x + s * TERN_SUB, .x_stride = a->x_stride,
                .dst = m->dst + TERN_PANEL_ROWS * p, .dst_stride = m->dst_stride,
            };
            float_panel(load_16_f32, 4, t, a->n_tokens, true);
        }
    }
}
