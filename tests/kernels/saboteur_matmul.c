#include "tests/kernels/saboteur.h"

#include <math.h>

enum { MAX_COLS = 8192 };

static uint32_t type_of(const struct tern_format *f)
{
    uint32_t type = 0;
    while (tern_format_of(type) != f)
        type++;
    return type;
}

void saboteur_matmul_codes(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_format *f = m->format;
    const size_t n_subs = f->n_elems / TERN_SUB;
    struct tern_panel_codes w;
    for (size_t p = first; p < first + n; p++)
        for (size_t t = 0; t < m->acts->n_tokens; t++) {
            float *dst = m->dst + t * m->dst_stride + TERN_PANEL_ROWS * p;
            for (size_t r = 0; r < TERN_PANEL_ROWS; r++)
                dst[r] = 0;
            for (size_t b = 0; b < m->n_cols / TERN_SUB; b++) {
                const size_t i = t * m->acts->n_blocks + b;
                const int8_t *q = m->acts->q + TERN_SUB * i;
                const int16_t *sum = m->acts->sum + 2 * i;
                const float d = m->acts->d[i];
                tern_panel_to_codes(f, m->panels + p * m->panel_bytes +
                                    b / n_subs * TERN_PANEL_ROWS * f->n_bytes,
                                    (uint32_t)(b % n_subs), &w);
                for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
                    int32_t dot = 0;
                    for (size_t k = 0; k < TERN_SUB; k++)
                        dot += w.sc[r][k / 16] * (w.q[k / 4][r][k % 4] * q[k]);
                    const float rounded = (float)dot * (w.scale[r] * d);
                    const int32_t below = w.m[r][0] * sum[0] + w.m[r][1] * sum[1];
                    dst[r] += rounded;
                    if (f->has_min)
                        dst[r] = fmaf(-w.min[r], d * (float)below, dst[r]);
                }
            }
        }
}

void saboteur_matmul_float(const struct tern_matmul *m, size_t first, size_t n)
{
    static uint8_t row[4 * MAX_COLS];
    static float w[MAX_COLS];
    const uint32_t type = type_of(m->format);
    for (size_t p = first; p < first + n; p++)
        for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
            tern_unpack_row(type, m->panels + p * m->panel_bytes, r, m->n_cols, row);
            tern_decode_row(type, row, w, m->n_cols);
            for (size_t t = 0; t < m->acts->n_tokens; t++) {
                const float *x = m->acts->x + t * m->acts->x_stride;
                float acc[2] = {0, 0};
                for (size_t k = 0; k < m->n_cols; k++)
                    acc[k % 2] = fmaf(w[k], x[k], acc[k % 2]);
                m->dst[t * m->dst_stride + TERN_PANEL_ROWS * p + r] = acc[0] + acc[1];
            }
        }
}
