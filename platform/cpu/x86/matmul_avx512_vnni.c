/* matmul_avx512_vnni.c: integer matrix products of the AVX-512 VNNI variant. */
#include "platform/cpu/x86/lanes_avx512_vnni.h"

#include "platform/cpu/x86/ahead_x86.h"
#include "platform/cpu/x86/matmul_vnni.h"
#include "platform/cpu/x86/x86.h"

/* --- the types of cached keys too: a panel is what 16 tokens keep --- */

static TERN_ONE_COPY void panels_q4_0(const struct tern_matmul *m, size_t p,
                                                  size_t n_panels, size_t token, size_t n_tokens)
{
    panels_by_many(&q4_0, m, p, n_panels, token, n_tokens);
}

static TERN_ONE_COPY void panels_q8_0(const struct tern_matmul *m, size_t p,
                                                  size_t n_panels, size_t token, size_t n_tokens)
{
    panels_by_many(&q8_0, m, p, n_panels, token, n_tokens);
}

void tern_matmul_q4_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_0, panels_q4_0, m, first, n);
}

void tern_matmul_q8_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q8_0, panels_q8_0, m, first, n);
}

/* Blocks one after the other, their sides made once, and all scores scaled in the end. */
TERN_INLINE void scores_codes(const struct tern_codes_vnni *f, panels_by_many_fn *panels,
                              const struct tern_scores *s)
{
    const size_t n_rows = s->acts->n_tokens;
    struct tern_matmul m = {
        .format = s->format, .n_cols = s->n_cols, .acts = s->acts, .dst_stride = TERN_CHUNK,
        .scratch = s->scratch,
    };
    make_side(f->sides, f->zero, s->acts, 0, n_rows,
              (int32_t *)(void *)((char *)s->scratch + EXPANDED_BYTES));
    for (size_t b = s->first; b < s->last; b++) {
        look_ahead(s, b, 0, ahead_share(s, 1));
        m.panels = s->block[b];
        m.dst = s->s + TERN_PANEL_ROWS * b;
        panels(&m, 0, 1, 0, n_rows);
    }
    for (size_t r = 0; r < n_rows; r++)
        for (size_t b = s->first; b < s->last; b++) {
            float *at = s->s + TERN_CHUNK * r + TERN_PANEL_ROWS * b;
            store_floats(at, multiply(load_floats(at), all_floats(s->scale)));
        }
}

void tern_scores_q4_0_avx512_vnni(const struct tern_scores *s)
{
    scores_codes(&q4_0, panels_q4_0, s);
}

void tern_scores_q8_0_avx512_vnni(const struct tern_scores *s)
{
    scores_codes(&q8_0, panels_q8_0, s);
}

/* --- other types --- */

void tern_matmul_q4_1_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_1, NULL, m, first, n);
}

void tern_matmul_q5_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_0, NULL, m, first, n);
}

void tern_matmul_q5_1_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_1, NULL, m, first, n);
}

void tern_matmul_q4_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_k, NULL, m, first, n);
}

void tern_matmul_q5_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_k, NULL, m, first, n);
}

void tern_matmul_q6_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q6_k, NULL, m, first, n);
}

void tern_matmul_q3_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q3_k, NULL, m, first, n);
}

void tern_matmul_iq4_nl_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&iq4_nl, NULL, m, first, n);
}

void tern_matmul_iq4_xs_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&iq4_xs, NULL, m, first, n);
}

void tern_matmul_mxfp4_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&mxfp4, NULL, m, first, n);
}

void tern_matmul_tq2_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&tq2_0, NULL, m, first, n);
}

void tern_matmul_codes_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_any(m, first, n);
}
