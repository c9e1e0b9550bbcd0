/* check_matmul.c: the matmuls of all types against the reference.
 *
 * The weights are random blocks of the file, packed; the 16-bit fields of a block are its
 * scales and minimums and get sane floats, rarely NaN or infinity. Codes and activations are
 * often all at their limits, where a 16-bit sum of products would overflow first. */
#include "tests/kernels/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 192, GUARD = 0x5a };

struct shape { size_t n_cols, n_tokens, n_panels, first, n; };

static const struct { const char *kernel; uint32_t type; } direct[] = {
    {"matmul_f32", TERN_TYPE_F32}, {"matmul_f16", TERN_TYPE_F16}, {"matmul_bf16", TERN_TYPE_BF16},
    {"matmul_q4_0", TERN_TYPE_Q4_0}, {"matmul_q4_1", TERN_TYPE_Q4_1},
    {"matmul_q5_0", TERN_TYPE_Q5_0}, {"matmul_q5_1", TERN_TYPE_Q5_1},
    {"matmul_q8_0", TERN_TYPE_Q8_0}, {"matmul_q2_k", TERN_TYPE_Q2_K},
    {"matmul_q3_k", TERN_TYPE_Q3_K}, {"matmul_q4_k", TERN_TYPE_Q4_K},
    {"matmul_q5_k", TERN_TYPE_Q5_K}, {"matmul_q6_k", TERN_TYPE_Q6_K},
    {"matmul_iq2_xxs", TERN_TYPE_IQ2_XXS}, {"matmul_iq2_xs", TERN_TYPE_IQ2_XS},
    {"matmul_iq2_s", TERN_TYPE_IQ2_S}, {"matmul_iq3_xxs", TERN_TYPE_IQ3_XXS},
    {"matmul_iq3_s", TERN_TYPE_IQ3_S}, {"matmul_iq1_s", TERN_TYPE_IQ1_S},
    {"matmul_iq1_m", TERN_TYPE_IQ1_M},
    {"matmul_iq4_nl", TERN_TYPE_IQ4_NL}, {"matmul_iq4_xs", TERN_TYPE_IQ4_XS},
    {"matmul_mxfp4", TERN_TYPE_MXFP4}, {"matmul_tq1_0", TERN_TYPE_TQ1_0},
    {"matmul_tq2_0", TERN_TYPE_TQ2_0},
};

/* The type that a kernel is for; codes and exact take any type with codes. */
static uint32_t pick_type(const char *kernel)
{
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        if (strcmp(direct[i].kernel, kernel) == 0)
            return direct[i].type;
    for (;;) {
        const uint32_t type = rnd() % TERN_N_TYPES;
        const struct tern_format *f = tern_format_of(type);
        if (f && f->codes)
            return type;
    }
}

static struct shape pick_shape(const struct tern_format *f, int round)
{
    static const size_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 27, 33, 70, 131};
    static const size_t blocks32[] = {1, 2, 3, 5, 8, 17, 18, 20, 23, 24, 25, 28, 31, 48, 49};
    static const size_t blocks256[] = {1, 2, 3, 4, 5, 6, 7};
    static const size_t floats[] = {1, 2, 3, 7, 8, 9, 31, 32, 64, 80, 100, 128, 256, 300, 576};
    struct shape s;
    if (f->n_elems == 1)
        s.n_cols = floats[rnd() % (sizeof floats / sizeof *floats)];
    else if (f->n_elems == 32)
        s.n_cols = 32 * blocks32[rnd() % (sizeof blocks32 / sizeof *blocks32)];
    else
        s.n_cols = 256 * blocks256[rnd() % (sizeof blocks256 / sizeof *blocks256)];
    s.n_tokens = tokens[(size_t)round % (sizeof tokens / sizeof *tokens)];
    s.n_panels = 1 + rnd() % 5;
    s.first = rnd() % s.n_panels;
    s.n = 1 + rnd() % (s.n_panels - s.first);
    return s;
}

static uint16_t rnd_f16(int round)
{
    if (round % 8 == 7 && rnd() % 64 == 0)
        return (uint16_t)(rnd() % 2 ? 0x7e00 : 0xfc00); /* NaN, -infinity */
    if (rnd() % 32 == 0)
        return (uint16_t)(rnd() & 0x83ff);              /* zero and subnormals */
    return (uint16_t)((rnd() & 0x83ff) | (8 + rnd() % 12) << 10);
}

static uint8_t rnd_code_byte(int round)
{
    static const uint8_t extremes[] = {0x00, 0xff, 0x7f, 0x80, 0x0f, 0xf0};
    if (round % 4 == 1)
        return extremes[rnd() % sizeof extremes];
    if (round % 4 == 2)
        return extremes[round / 4 % (int)sizeof extremes];
    return (uint8_t)rnd();
}

static void fill_block(const struct tern_format *f, uint8_t *block, int round)
{
    for (size_t i = 0; i < f->n_bytes; i++)
        block[i] = rnd_code_byte(round);
    for (size_t i = 0; f->codes && i < f->n_planes; i++)
        if (f->planes[i].bytes == 2 && f->planes[i].run == 2) {
            const uint16_t x = rnd_f16(round);
            memcpy(block + f->planes[i].offset, &x, 2);
        }
    if (f->codes)
        return;
    const float x = rnd_float();
    uint32_t bits;
    memcpy(&bits, &x, 4);
    const uint16_t high = (uint16_t)(bits >> 16), half = rnd_f16(round);
    if (f->n_bytes == 4)
        memcpy(block, &bits, 4);
    else
        memcpy(block, f == tern_format_of(TERN_TYPE_BF16) ? &high : &half, 2);
}

static uint8_t *make_panels(uint32_t type, const struct shape *s, size_t panel_bytes, int round)
{
    const struct tern_format *f = tern_format_of(type);
    const size_t row_bytes = tern_row_bytes(type, s->n_cols);
    uint8_t *rows = malloc(TERN_PANEL_ROWS * row_bytes);
    uint8_t *panels = guarded_aligned(s->n_panels * panel_bytes);
    assert_non_null(rows);
    for (size_t p = 0; p < s->n_panels; p++) {
        const size_t n_rows = rnd() % 4 ? TERN_PANEL_ROWS : 1 + rnd() % TERN_PANEL_ROWS;
        for (size_t i = 0; i < TERN_PANEL_ROWS * row_bytes; i += f->n_bytes)
            fill_block(f, rows + i, round);
        tern_pack_panel(type, rows, n_rows, s->n_cols, panels + p * panel_bytes);
    }
    free(rows);
    return panels;
}

static int8_t rnd_act(int round)
{
    if (round % 3 == 1)
        return rnd() & 1 ? 127 : -127;
    if (round % 3 == 2)
        return round % 2 ? 127 : -127;
    return (int8_t)((int)(rnd() % 255) - 127);
}

static void make_acts(struct tern_acts *a, const struct shape *s, int round)
{
    a->n_tokens = s->n_tokens;
    a->n_blocks = (s->n_cols + 31) / 32;
    a->x_stride = s->n_cols + rnd() % 5;
    const size_t n = a->n_tokens * a->n_blocks;
    int8_t *q = guarded(32 * n);
    float *d = guarded(n * sizeof *d);
    int16_t *sum = guarded(2 * n * sizeof *sum);
    float *x = guarded(((a->n_tokens - 1) * a->x_stride + s->n_cols) * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        d[i] = rnd_float();
        if (round % 8 == 3 && rnd() % 64 == 0)
            d[i] = __builtin_nanf("");
        sum[2 * i] = sum[2 * i + 1] = 0;
        for (size_t k = 0; k < 32; k++) {
            q[32 * i + k] = rnd_act(round);
            sum[2 * i + k / 16] = (int16_t)(sum[2 * i + k / 16] + q[32 * i + k]);
        }
    }
    for (size_t t = 0; t < a->n_tokens; t++)
        for (size_t k = 0; k < s->n_cols; k++)
            x[t * a->x_stride + k] = rnd_float();
    a->q = q;
    a->d = d;
    a->sum = sum;
    a->x = x;
}

static void run(const struct tern_kernels *table, size_t offset, const struct tern_matmul *m,
                const struct shape *s)
{
    tern_matmul_fn *f;
    memcpy(&f, (const char *)table + offset, sizeof f);
    f(m, s->first, s->n);
}

void check_matmul(void **state)
{
    const struct candidate *c = *state;
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t type = pick_type(c->kernel);
        const struct tern_format *f = tern_format_of(type);
        const struct shape s = pick_shape(f, round);
        struct tern_acts acts;
        make_acts(&acts, &s, round);
        struct tern_matmul m = {.format = f, .n_cols = s.n_cols, .acts = &acts};
        m.panel_bytes = tern_panel_bytes(type, s.n_cols);
        m.panels = make_panels(type, &s, m.panel_bytes, round);
        m.dst_stride = 16 * (s.n_panels + rnd() % 2);
        m.scratch = guarded_aligned(TERN_MATMUL_SCRATCH(s.n_cols));
        const size_t n = (s.n_tokens - 1) * m.dst_stride + 16 * s.n_panels;
        float *ref = guarded(n * sizeof *ref), *got = guarded(n * sizeof *got);
        memset(ref, GUARD, n * sizeof *ref);
        memset(got, GUARD, n * sizeof *got);
        m.dst = ref;
        run(c->ref, c->offset, &m, &s);
        m.dst = got;
        run(c->under_test, c->offset, &m, &s);
        char what[96];
        snprintf(what, sizeof what, "%s %s, %zu columns, %zu tokens, round %d", c->kernel,
                 f->name, s.n_cols, s.n_tokens, round);
        assert_same_floats(ref, got, n, what);
        memset(got, GUARD, n * sizeof *got);
        m.again = true;
        run(c->under_test, c->offset, &m, &s);
        assert_same_floats(ref, got, n, what);
        guarded_free();
    }
}
