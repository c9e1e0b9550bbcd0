/* matmul_ref.c: what a matrix times activations is, to the bit.
 *
 * An output is one chain of fma over its row, started at +0 and kept in dst between blocks of
 * the panel. A block is turned into codes or floats once for all tokens; nothing else is done
 * for speed. kernels.h has the chains. */
#include "platform/cpu/ref/ref.h"

#include "quant/half.h"

#include <math.h>
#include <string.h>

static float *first_row(const struct tern_matmul *m, size_t panel)
{
    return m->dst + TERN_PANEL_ROWS * panel;
}

static void zero_panel(const struct tern_matmul *m, size_t panel)
{
    float *dst = first_row(m, panel);
    for (size_t t = 0; t < m->acts->n_tokens; t++, dst += m->dst_stride)
        memset(dst, 0, TERN_PANEL_ROWS * sizeof *dst);
}

/* The integers sc0 * dot0 + sc1 * dot1 of a block's 16 rows. */
static void dots(int32_t both[TERN_PANEL_ROWS], const struct tern_panel_codes *w, const int8_t *q)
{
    int32_t dot[2][TERN_PANEL_ROWS] = {{0}};
    for (size_t j = 0; j < TERN_SUB / 4; j++, q += 4)
        for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
            const int8_t *c = w->q[j][r];
            dot[j / 4][r] += c[0] * q[0] + c[1] * q[1] + c[2] * q[2] + c[3] * q[3];
        }
    for (size_t r = 0; r < TERN_PANEL_ROWS; r++)
        both[r] = w->sc[r][0] * dot[0][r] + w->sc[r][1] * dot[1][r];
}

/* One block of 32 of one token: 16 chains go one step on. */
static void step_codes(float *acc, const struct tern_panel_codes *w, const int8_t *q, float d,
                       const int16_t sum[2], bool has_min)
{
    int32_t both[TERN_PANEL_ROWS];
    dots(both, w, q);
    for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
        acc[r] = fmaf((float)both[r], w->scale[r] * d, acc[r]);
        if (has_min) {
            const int32_t below = w->m[r][0] * sum[0] + w->m[r][1] * sum[1];
            acc[r] = fmaf(-w->min[r], d * (float)below, acc[r]);
        }
    }
}

void tern_matmul_codes_ref(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_format *f = m->format;
    const struct tern_acts *a = m->acts;
    struct tern_panel_codes *w = m->scratch;
    const size_t n_subs = f->n_elems / TERN_SUB;
    for (size_t p = first; p < first + n; p++) {
        zero_panel(m, p);
        const uint8_t *panel = m->panels + p * m->panel_bytes;
        for (size_t b = 0; b < m->n_cols / TERN_SUB; b++) {
            const size_t i_block = b / n_subs;
            tern_panel_to_codes(f, panel + i_block * TERN_PANEL_ROWS * f->n_bytes,
                                (uint32_t)(b % n_subs), w);
            for (size_t t = 0; t < a->n_tokens; t++) {
                const size_t i = t * a->n_blocks + b;
                step_codes(first_row(m, p) + t * m->dst_stride, w, a->q + TERN_SUB * i, a->d[i],
                           a->sum + 2 * i, f->has_min);
            }
        }
    }
}

/* k0 .. k0 + n_k - 1 of the chains: w[k][r] are floats. */
static void step_floats(const struct tern_matmul *m, size_t p, float (*w)[TERN_PANEL_ROWS],
                        size_t k0, size_t n_k)
{
    for (size_t t = 0; t < m->acts->n_tokens; t++) {
        float *acc = first_row(m, p) + t * m->dst_stride;
        const float *x = m->acts->x + t * m->acts->x_stride + k0;
        for (size_t k = 0; k < n_k; k++)
            for (size_t r = 0; r < TERN_PANEL_ROWS; r++)
                acc[r] = fmaf(w[k][r], x[k], acc[r]);
    }
}

void tern_matmul_exact_ref(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_format *f = m->format;
    struct tern_panel_codes *c = m->scratch;
    float (*w)[TERN_PANEL_ROWS] = (void *)((char *)m->scratch + 1024);
    _Static_assert(sizeof *c <= 1024, "the floats lie behind the codes");
    const size_t n_subs = f->n_elems / TERN_SUB;
    for (size_t p = first; p < first + n; p++) {
        zero_panel(m, p);
        const uint8_t *panel = m->panels + p * m->panel_bytes;
        for (size_t b = 0; b < m->n_cols / TERN_SUB; b++) {
            tern_panel_to_codes(f, panel + b / n_subs * TERN_PANEL_ROWS * f->n_bytes,
                                (uint32_t)(b % n_subs), c);
            for (size_t i = 0; i < TERN_SUB; i++)
                for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
                    const float x = c->scale[r] * (float)(c->sc[r][i / 16] * c->q[i / 4][r][i % 4]);
                    w[i][r] = f->has_min ? x - c->min[r] * (float)c->m[r][i / 16] : x;
                }
            step_floats(m, p, w, TERN_SUB * b, TERN_SUB);
        }
    }
}

static float decode_f32(const uint8_t *p)
{
    return tern_half_float(tern_load_u32(p));
}

static float decode_bf16(const uint8_t *p)
{
    return tern_bf16_to_f32(tern_load_u16(p));
}

static void floats(const struct tern_matmul *m, size_t first, size_t n,
                   float decode(const uint8_t *))
{
    float (*w)[TERN_PANEL_ROWS] = m->scratch;
    for (size_t p = first; p < first + n; p++) {
        zero_panel(m, p);
        const uint8_t *panel = m->panels + p * m->panel_bytes;
        for (size_t k0 = 0; k0 < m->n_cols; k0 += TERN_SUB) {
            const size_t n_k = m->n_cols - k0 < TERN_SUB ? m->n_cols - k0 : TERN_SUB;
            for (size_t i = 0; i < TERN_PANEL_ROWS * n_k; i++)
                w[i / TERN_PANEL_ROWS][i % TERN_PANEL_ROWS] =
                    decode(panel + (TERN_PANEL_ROWS * k0 + i) * m->format->n_bytes);
            step_floats(m, p, w, k0, n_k);
        }
    }
}

void tern_matmul_f32_ref(const struct tern_matmul *m, size_t first, size_t n)
{
    floats(m, first, n, decode_f32);
}

void tern_matmul_f16_ref(const struct tern_matmul *m, size_t first, size_t n)
{
    floats(m, first, n, tern_load_f16);
}

void tern_matmul_bf16_ref(const struct tern_matmul *m, size_t first, size_t n)
{
    floats(m, first, n, decode_bf16);
}
