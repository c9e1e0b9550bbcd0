/* matmul_avx512_vnni.c: integer matrix products of the AVX-512 VNNI variant. */
#include "platform/cpu/x86/lanes_avx512_vnni.h"

#include "platform/cpu/x86/ahead_x86.h"
#include "platform/cpu/x86/matmul_vnni.h"
#include "platform/cpu/x86/x86.h"

/* --- scores of cached keys, of which a panel is what 16 tokens keep --- */

enum { MAX_ROWS = 16, SIDES_AT = 64 * MAX_ROWS };

/* The last sub-block of a panel: all rows' chains end, and are scores. */
TERN_INLINE void end_scores(const struct tern_kind *k, const struct tern_held *h,
                            const struct tern_tile *a, size_t sub, const struct tern_scores *s,
                            float *to, float *chains)
{
    const int8_t *q = a->q + TERN_SUB * sub;
    const int32_t *side = a->side + side_words(k->sides) * sub;
    const floats scale = all_floats(s->scale);
    for (size_t n = s->acts->n_tokens; n > 0; n--) {
        const floats x = held_step(k, h, q, side, load_floats(chains));
        store_floats(to, multiply(x, scale));
        store_floats(chains, all_floats(0)); /* the next panel's begin */
        q += TERN_SUB * a->n_blocks;
        side += side_words(k->sides) * a->n_blocks;
        chains += TERN_PANEL_ROWS;
        to += TERN_CHUNK;
    }
}

/* Keys are unpacked in registers, block after block. */
TERN_INLINE void scores_codes(const struct tern_codes_vnni *f, const struct tern_scores *s)
{
    const struct tern_kind kind = {f->sides};
    const size_t n_rows = s->acts->n_tokens, n_subs = s->n_cols / TERN_SUB;
    const size_t share = ahead_share(s, n_subs);
    float *chains = s->scratch;
    int32_t *sides = (int32_t *)(void *)((char *)s->scratch + SIDES_AT);
    const struct tern_tile a = {.q = s->acts->q, .side = sides, .n_blocks = s->acts->n_blocks};
    make_side(f->sides, f->zero, s->acts, 0, n_rows, sides);
    for (size_t r = 0; r < n_rows; r++)
        store_floats(chains + TERN_PANEL_ROWS * r, all_floats(0));
    for (size_t b = s->first; b < s->last; b++)
        for (size_t sub = 0; sub < n_subs; sub++) {
            const struct tern_sub at = {s->block[b] + sub * f->block_bytes, 0, 0};
            struct tern_held h = {.scale = f->scale(at, 0)};
            f->unpack(at, 0, h.w);
            look_ahead(s, b, sub, share);
            if (sub + 1 < n_subs)
                held_tokens(&kind, &h, &a, sub, n_rows, chains);
            else
                end_scores(&kind, &h, &a, sub, s, s->s + TERN_PANEL_ROWS * b, chains);
        }
}

void tern_scores_q4_0_avx512_vnni(const struct tern_scores *s)
{
    scores_codes(&q4_0, s);
}

void tern_scores_q8_0_avx512_vnni(const struct tern_scores *s)
{
    scores_codes(&q8_0, s);
}

/* --- products --- */

void tern_matmul_q4_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_0, m, first, n);
}

void tern_matmul_q8_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q8_0, m, first, n);
}

void tern_matmul_q4_1_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_1, m, first, n);
}

void tern_matmul_q5_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_0, m, first, n);
}

void tern_matmul_q5_1_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_1, m, first, n);
}

void tern_matmul_q4_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_k, m, first, n);
}

void tern_matmul_q5_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_k, m, first, n);
}

void tern_matmul_q6_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q6_k, m, first, n);
}

void tern_matmul_q3_k_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q3_k, m, first, n);
}

void tern_matmul_iq4_nl_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&iq4_nl, m, first, n);
}

void tern_matmul_iq4_xs_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&iq4_xs, m, first, n);
}

void tern_matmul_mxfp4_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&mxfp4, m, first, n);
}

void tern_matmul_tq2_0_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&tq2_0, m, first, n);
}

void tern_matmul_codes_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_any(m, first, n);
}
