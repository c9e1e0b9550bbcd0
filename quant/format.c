/* format.c: the table of types, and what follows from it. See format.h. */
#include "quant/codes.h"
#include "quant/half.h"

static const struct tern_format formats[TERN_N_TYPES] = {
    [TERN_TYPE_F32] = {.name = "F32", .n_elems = 1, .n_bytes = 4, .direct = true,
                       .n_planes = 1, .planes = {{0, 4, 4}}},
    [TERN_TYPE_F16] = {.name = "F16", .n_elems = 1, .n_bytes = 2, .direct = true,
                       .n_planes = 1, .planes = {{0, 2, 2}}},
    [TERN_TYPE_BF16] = {.name = "BF16", .n_elems = 1, .n_bytes = 2, .direct = true,
                        .n_planes = 1, .planes = {{0, 2, 2}}},
    [TERN_TYPE_Q4_0] = {"Q4_0", 32, 18, false, true, 2, {{0, 2, 2}, {2, 16, 4}}, tern_q4_0_codes},
    [TERN_TYPE_Q4_1] = {"Q4_1", 32, 20, true, true, 3, {{0, 2, 2}, {2, 2, 2}, {4, 16, 4}},
                        tern_q4_1_codes},
    [TERN_TYPE_Q5_0] = {"Q5_0", 32, 22, false, true, 3, {{0, 2, 2}, {2, 4, 4}, {6, 16, 4}},
                        tern_q5_0_codes},
    [TERN_TYPE_Q5_1] = {"Q5_1", 32, 24, true, true, 4,
                        {{0, 2, 2}, {2, 2, 2}, {4, 4, 4}, {8, 16, 4}}, tern_q5_1_codes},
    [TERN_TYPE_Q8_0] = {"Q8_0", 32, 34, false, true, 2, {{0, 2, 2}, {2, 32, 4}}, tern_q8_0_codes},
    [TERN_TYPE_Q2_K] = {"Q2_K", 256, 84, true, true, 4,
                        {{80, 2, 2}, {82, 2, 2}, {0, 16, 1}, {16, 64, 4}}, tern_q2_k_codes},
    [TERN_TYPE_Q3_K] = {"Q3_K", 256, 110, false, true, 4,
                        {{108, 2, 2}, {96, 12, 1}, {0, 32, 4}, {32, 64, 4}}, tern_q3_k_codes},
    [TERN_TYPE_Q4_K] = {"Q4_K", 256, 144, true, true, 4,
                        {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 128, 4}}, tern_q4_k_codes},
    [TERN_TYPE_Q5_K] = {"Q5_K", 256, 176, true, true, 5,
                        {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 32, 4}, {48, 128, 4}},
                        tern_q5_k_codes},
    [TERN_TYPE_Q6_K] = {"Q6_K", 256, 210, false, true, 4,
                        {{208, 2, 2}, {192, 16, 1}, {0, 128, 4}, {128, 64, 4}}, tern_q6_k_codes},
    [TERN_TYPE_IQ1_S] = {"IQ1_S", 256, 50, false, false, 3,
                         {{0, 2, 2}, {34, 16, 4}, {2, 32, 4}}, tern_iq1_s_codes},
    [TERN_TYPE_IQ1_M] = {"IQ1_M", 256, 56, false, false, 3,
                         {{48, 8, 2}, {32, 16, 4}, {0, 32, 4}}, tern_iq1_m_codes},
    [TERN_TYPE_IQ2_XXS] = {"IQ2_XXS", 256, 66, false, false, 2, {{0, 2, 2}, {2, 64, 4}},
                           tern_iq2_xxs_codes},
    [TERN_TYPE_IQ2_XS] = {"IQ2_XS", 256, 74, false, false, 3,
                          {{0, 2, 2}, {66, 8, 1}, {2, 64, 4}}, tern_iq2_xs_codes},
    [TERN_TYPE_IQ2_S] = {"IQ2_S", 256, 82, false, false, 5,
                         {{0, 2, 2}, {74, 8, 1}, {66, 8, 4}, {34, 32, 4}, {2, 32, 4}},
                         tern_iq2_s_codes},
    [TERN_TYPE_IQ3_XXS] = {"IQ3_XXS", 256, 98, false, false, 3,
                           {{0, 2, 2}, {66, 32, 4}, {2, 64, 4}}, tern_iq3_xxs_codes},
    [TERN_TYPE_IQ3_S] = {"IQ3_S", 256, 110, false, false, 5,
                         {{0, 2, 2}, {106, 4, 1}, {66, 8, 4}, {74, 32, 4}, {2, 64, 4}},
                         tern_iq3_s_codes},
    [TERN_TYPE_IQ4_NL] = {"IQ4_NL", 32, 18, false, true, 2, {{0, 2, 2}, {2, 16, 4}},
                          tern_iq4_nl_codes},
    [TERN_TYPE_IQ4_XS] = {"IQ4_XS", 256, 136, false, true, 4,
                          {{0, 2, 2}, {2, 2, 2}, {4, 4, 1}, {8, 128, 4}}, tern_iq4_xs_codes},
    [TERN_TYPE_TQ1_0] = {"TQ1_0", 256, 54, false, true, 3,
                         {{52, 2, 2}, {0, 48, 4}, {48, 4, 4}}, tern_tq1_0_codes},
    [TERN_TYPE_TQ2_0] = {"TQ2_0", 256, 66, false, true, 2, {{64, 2, 2}, {0, 64, 4}},
                         tern_tq2_0_codes},
    [TERN_TYPE_MXFP4] = {"MXFP4", 32, 17, false, true, 2, {{0, 1, 1}, {1, 16, 4}},
                         tern_mxfp4_codes},
};

const struct tern_format *tern_format_of(uint32_t type)
{
    return type < TERN_N_TYPES && formats[type].name ? &formats[type] : NULL;
}

uint64_t tern_row_bytes(uint32_t type, uint64_t n)
{
    const struct tern_format *f = tern_format_of(type);
    return f && n % f->n_elems == 0 ? n / f->n_elems * f->n_bytes : 0;
}

uint64_t tern_panel_bytes(uint32_t type, uint64_t n)
{
    return TERN_PANEL_ROWS * tern_row_bytes(type, n);
}

static void decode_floats(uint32_t type, const uint8_t *row, float *out, size_t n)
{
    if (type == TERN_TYPE_F32)
        for (size_t i = 0; i < n; i++)
            out[i] = tern_half_float(tern_load_u32(row + 4 * i));
    else if (type == TERN_TYPE_F16)
        for (size_t i = 0; i < n; i++)
            out[i] = tern_load_f16(row + 2 * i);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = tern_bf16_to_f32(tern_load_u16(row + 2 * i));
}

static void decode_codes(const struct tern_codes *c, bool has_min, float *out)
{
    for (int half = 0; half < 2; half++) {
        const float below = c->min * (float)c->m[half];
        for (int i = 16 * half; i < 16 * half + 16; i++) {
            const float x = c->scale * (float)(c->sc[half] * c->q[i]);
            out[i] = has_min ? x - below : x;
        }
    }
}

void tern_decode_row(uint32_t type, const void *row, float *out, size_t n)
{
    const struct tern_format *f = tern_format_of(type);
    const uint8_t *block = row;
    if (!f)
        return;
    if (!f->codes) {
        decode_floats(type, block, out, n);
        return;
    }
    for (size_t i = 0; i < n; block += f->n_bytes)
        for (uint32_t sub = 0; sub < f->n_elems / TERN_SUB; sub++, i += TERN_SUB) {
            struct tern_codes c;
            f->codes(block, sub, &c);
            decode_codes(&c, f->has_min, out + i);
        }
}

/* n_runs runs of bytes from one spacing to another. Constant sizes let memcpy become a move. */
static void copy_runs(uint8_t *dst, size_t dst_step, const uint8_t *src, size_t src_step,
                      size_t run, size_t n_runs)
{
    if (run == 4)
        for (size_t i = 0; i < n_runs; i++)
            memcpy(dst + i * dst_step, src + i * src_step, 4);
    else if (run == 2)
        for (size_t i = 0; i < n_runs; i++)
            memcpy(dst + i * dst_step, src + i * src_step, 2);
    else
        for (size_t i = 0; i < n_runs; i++)
            dst[i * dst_step] = src[i * src_step];
}

void tern_unpack_block(const struct tern_format *f, const uint8_t *block, size_t r, uint8_t *out)
{
    for (const struct tern_plane *p = f->planes; p < f->planes + f->n_planes; p++) {
        copy_runs(out + p->offset, p->run, block + r * p->run, (size_t)TERN_PANEL_ROWS * p->run,
                  p->run, p->bytes / p->run);
        block += (size_t)TERN_PANEL_ROWS * p->bytes;
    }
}

/* Run after run, and in each the rows side by side, so that a panel is written from front to
 * back. Constant sizes let the copies become moves. */
static inline void pack_runs(const uint8_t *src, size_t row_bytes, size_t n_rows, size_t run,
                             size_t n_runs, uint8_t *dst)
{
    for (size_t i = 0; i < n_runs; i++)
        for (size_t r = 0; r < n_rows; r++)
            memcpy(dst + (i * TERN_PANEL_ROWS + r) * run, src + r * row_bytes + i * run, run);
}

static void pack_block(const struct tern_format *f, const uint8_t *src, size_t row_bytes,
                       size_t n_rows, uint8_t *block)
{
    for (const struct tern_plane *p = f->planes; p < f->planes + f->n_planes; p++) {
        const uint8_t *from = src + p->offset;
        const size_t n_runs = p->bytes / p->run;
        if (n_rows != TERN_PANEL_ROWS)
            pack_runs(from, row_bytes, n_rows, p->run, n_runs, block);
        else if (p->run == 4)
            pack_runs(from, row_bytes, TERN_PANEL_ROWS, 4, n_runs, block);
        else if (p->run == 2)
            pack_runs(from, row_bytes, TERN_PANEL_ROWS, 2, n_runs, block);
        else /* bytes that stand for several elements */
            pack_runs(from, row_bytes, TERN_PANEL_ROWS, 1, n_runs, block);
        block += (size_t)TERN_PANEL_ROWS * p->bytes;
    }
}

void tern_pack_panel(uint32_t type, const void *rows, size_t n_rows, size_t n, void *panel)
{
    const struct tern_format *f = tern_format_of(type);
    if (!f)
        return;
    const size_t n_blocks = n / f->n_elems, row_bytes = n_blocks * f->n_bytes;
    const size_t panel_block = (size_t)TERN_PANEL_ROWS * f->n_bytes;
    if (n_rows < TERN_PANEL_ROWS)
        memset(panel, 0, TERN_PANEL_ROWS * row_bytes);
    for (size_t i = 0; i < n_blocks; i++)
        pack_block(f, (const uint8_t *)rows + i * f->n_bytes, row_bytes, n_rows,
                   (uint8_t *)panel + i * panel_block);
}

void tern_unpack_row(uint32_t type, const void *panel, size_t r, size_t n, void *row)
{
    const struct tern_format *f = tern_format_of(type);
    if (!f)
        return;
    for (size_t i = 0; i < n / f->n_elems; i++)
        tern_unpack_block(f, (const uint8_t *)panel + i * TERN_PANEL_ROWS * f->n_bytes, r,
                          (uint8_t *)row + i * f->n_bytes);
}

static void put_row(const struct tern_codes *c, size_t r, struct tern_panel_codes *out)
{
    for (size_t j = 0; j < TERN_SUB / 4; j++)
        memcpy(out->q[j][r], c->q + 4 * j, 4);
    out->scale[r] = c->scale;
    out->min[r] = c->min;
    memcpy(out->sc[r], c->sc, sizeof c->sc);
    memcpy(out->m[r], c->m, sizeof c->m);
}

static void subs_to_codes(const struct tern_format *f, const uint8_t *block, uint32_t first,
                          uint32_t n, struct tern_panel_codes *out)
{
    for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
        uint8_t row_block[TERN_MAX_BLOCK_BYTES];
        struct tern_codes c;
        tern_unpack_block(f, block, r, row_block);
        for (uint32_t i = 0; i < n; i++) {
            f->codes(row_block, first + i, &c);
            put_row(&c, r, out + i);
        }
    }
}

void tern_panel_to_codes(const struct tern_format *f, const uint8_t *block, uint32_t sub,
                         struct tern_panel_codes *out)
{
    subs_to_codes(f, block, sub, 1, out);
}

void tern_panel_block_to_codes(const struct tern_format *f, const uint8_t *block,
                               struct tern_panel_codes *out)
{
    subs_to_codes(f, block, 0, f->n_elems / TERN_SUB, out);
}
