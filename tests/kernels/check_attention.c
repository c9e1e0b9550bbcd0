/* check_attention.c: the parts of attention over a chunk. What a query row does not see is NaN
 * or memory without access. */
#include "tests/kernels/check.h"

#include "platform/cpu/kv_store.h"
#include "quant/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 300, MAX_ROWS = 16 };

#define PICK(type, f, table) type *f; memcpy(&f, (const char *)(table) + c->offset, sizeof f)

static const size_t dims[] = {1,  2,  7,  8,  15, 16, 17, 20,  31,
                              32, 33, 40, 64, 80, 96, 100, 128, 256};

static size_t pick_dim(int round)
{
    return dims[(size_t)round % (sizeof dims / sizeof *dims)];
}

/* A visible range: often up to an edge of a block or vector, sometimes a single key. */
static void pick_range(size_t *lo, size_t *hi)
{
    static const size_t edges[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 240, 247, 248, 255, 256};
    const size_t n = sizeof edges / sizeof *edges;
    size_t a, b;
    do {
        a = rnd() % 2 ? edges[rnd() % n] : rnd() % 257;
        b = rnd() % 4 == 0 ? a + 1 : rnd() % 2 ? edges[rnd() % n] : rnd() % 257;
    } while (a == b || b > TERN_CHUNK);
    *lo = a < b ? a : b;
    *hi = a < b ? b : a;
}

static float pick_score(int round)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, -0.0f, 0.0f, 1e30f, -1e30f, 0x1p-140f};
    const float unit = (float)(int32_t)rnd() / 2147483648.0f;
    switch (round % 5) {
    case 1: return 300.0f * unit;
    case 2: return rnd() % 2 ? -0.0f : 0.0f;
    case 3: return -1e30f * unit * unit;
    case 4: return rnd() % 32 ? 50.0f * unit : odd[rnd() % (sizeof odd / sizeof *odd)];
    default: return 8.0f * unit;
    }
}

/* The same scores to both; below lo stands what nobody may read. */
static void compare_softmax(const struct candidate *c, const float *scores, size_t lo, size_t hi,
                            int round)
{
    PICK(tern_softmax_fn, ref, c->ref);
    PICK(tern_softmax_fn, got, c->under_test);
    float *a = guarded(hi * sizeof *a), *b = guarded(hi * sizeof *b), m[2], sum[2];
    for (size_t t = 0; t < hi; t++)
        a[t] = b[t] = t >= lo ? scores[t] : round % 2 ? NAN : 9.0f;
    sum[0] = ref(a, lo, hi, &m[0]);
    sum[1] = got(b, lo, hi, &m[1]);
    char what[96];
    snprintf(what, sizeof what, "softmax of %zu .. %zu, round %d", lo, hi, round);
    assert_same_floats(&m[0], &m[1], 1, what);
    assert_same_floats(&sum[0], &sum[1], 1, what);
    assert_same_floats(a, b, hi, what);
    guarded_free();
}

void check_softmax(void **state)
{
    const struct candidate *c = *state;
    float scores[TERN_CHUNK];
    for (int round = 0; round < 4 * ROUNDS; round++) {
        size_t lo, hi;
        pick_range(&lo, &hi);
        for (size_t t = lo; t < hi; t++)
            scores[t] = pick_score(round);
        compare_softmax(c, scores, lo, hi, round);
    }
    /* No NaN hides a score before it, whatever lane they share. */
    for (int round = 0; round < 64; round++) {
        for (size_t t = 0; t < TERN_CHUNK; t++)
            scores[t] = t % 16 != (size_t)round % 16 || t < (size_t)round ? 0.0f : NAN;
        scores[round] = 5.0f;
        compare_softmax(c, scores, 0, TERN_CHUNK, round);
    }
}

/* --- scores --- */

struct scores_case {
    const uint8_t *block[16];
    struct tern_acts acts;
    struct tern_scores s;
};

static enum tern_type type_of(const char *kernel)
{
    return strcmp(kernel, "scores_f32") == 0    ? TERN_TYPE_F32
           : strcmp(kernel, "scores_f16") == 0  ? TERN_TYPE_F16
           : strcmp(kernel, "scores_q8_0") == 0 ? TERN_TYPE_Q8_0
                                                : TERN_TYPE_Q4_0;
}

/* A panel that ends where memory without access begins, of finite values but for a few. */
static const uint8_t *make_panel(enum tern_type type, size_t dim)
{
    const size_t bytes = (size_t)tern_panel_bytes(type, tern_kv_k_cols(type, dim));
    uint8_t *panel = guarded_aligned(bytes);
    float x[TERN_CHUNK];
    for (size_t i = 0; i < bytes; i++)
        panel[i] = (uint8_t)rnd();
    for (size_t t = 0; t < 16; t++) {
        for (size_t i = 0; i < dim; i++)
            x[i] = rnd_float();
        if (t == 7 && rnd() % 8 == 0)
            x[rnd() % dim] = NAN;
        tern_kv_store_k(&tern_kernels_ref, type, panel, t, x, dim);
    }
    return panel;
}

static void make_queries(struct scores_case *k, size_t dim, int round)
{
    struct tern_acts *a = &k->acts;
    a->n_tokens = 1 + rnd() % MAX_ROWS;
    a->n_blocks = (dim + 31) / 32 + rnd() % 2;
    a->x_stride = dim + rnd() % 3;
    float *x = guarded((a->n_tokens - 1) * a->x_stride * sizeof *x + dim * sizeof *x);
    int8_t *q = guarded(a->n_tokens * a->n_blocks * 32);
    float *d = guarded(a->n_tokens * a->n_blocks * sizeof *d);
    int16_t *sum = guarded(a->n_tokens * a->n_blocks * 2 * sizeof *sum);
    for (size_t r = 0; r < a->n_tokens; r++) {
        float *row = rnd_row(dim, round);
        memcpy(x + r * a->x_stride, row, dim * sizeof *x);
        tern_kernels_ref.quantize(q + 32 * r * a->n_blocks, d + r * a->n_blocks,
                                  sum + 2 * r * a->n_blocks, row, dim);
    }
    a->x = x;
    a->q = q;
    a->d = d;
    a->sum = sum;
}

void check_scores(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_scores_fn, ref, c->ref);
    PICK(tern_scores_fn, got, c->under_test);
    const enum tern_type type = type_of(c->kernel);
    for (int round = 0; round < ROUNDS; round++) {
        static const float scales[] = {0.125f, 0.08838835f, 1.0f};
        struct scores_case k = {0};
        const size_t dim = pick_dim(round);
        make_queries(&k, dim, round / 3);
        const size_t first = rnd() % 16, last = first + 1 + rnd() % (16 - first);
        for (size_t b = first; b < last; b++)
            k.block[b] = make_panel(type, dim);
        float *s[2];
        const size_t n = k.acts.n_tokens * TERN_CHUNK;
        for (size_t i = 0; i < 2; i++) {
            s[i] = guarded_aligned(n * sizeof **s);
            memset(s[i], 0x5a, n * sizeof **s);
            k.s = (struct tern_scores){
                k.block, first, last, tern_format_of(type), tern_kv_k_cols(type, dim), &k.acts,
                scales[round % 3], s[i], tern_kernels_matmul(c->ref, type, false),
                guarded_aligned(TERN_ATTENTION_SCRATCH(dim)), round % 2 ? k.block : NULL, 64};
            (i ? got : ref)(&k.s);
        }
        char what[96];
        snprintf(what, sizeof what, "%s, %zu rows of %zu, blocks %zu .. %zu, round %d", c->kernel,
                 k.acts.n_tokens, dim, first, last, round);
        assert_same_floats(s[0], s[1], n, what);
        guarded_free();
    }
}

/* --- values --- */

struct values_case {
    const uint8_t *block[16];
    uint16_t lo[MAX_ROWS], hi[MAX_ROWS];
    struct tern_values v;
};

/* Equal ranges, causal steps, anything at all, and rows that see nothing. */
static void pick_ranges(struct values_case *k, int round)
{
    size_t lo = 0, hi = 0;
    pick_range(&lo, &hi);
    for (size_t r = 0; r < k->v.n_rows; r++) {
        if (round % 4 == 2 || round % 4 == 3)
            pick_range(&lo, &hi);
        else if (round % 4 == 1 && r % 3 == 0 && hi < TERN_CHUNK)
            hi++;
        k->lo[r] = (uint16_t)lo;
        k->hi[r] = (uint16_t)(round % 4 == 3 && rnd() % 3 == 0 ? lo : hi);
    }
}

static void fill_value_row(uint8_t *row, const char *kernel, size_t dim)
{
    const bool f32 = strcmp(kernel, "values_f32") == 0, f16 = strcmp(kernel, "values_f16") == 0;
    for (size_t d = 0; d < dim; d++) {
        const float x = rnd_float();
        const uint16_t half = tern_f32_to_f16(x);
        if (f32)
            memcpy(row + 4 * d, &x, 4);
        else if (f16)
            memcpy(row + 2 * d, &half, 2);
    }
    if (f32 || f16)
        return;
    const size_t bytes = strcmp(kernel, "values_q8_0") == 0 ? 34 : 18;
    for (size_t b = 0; b < (dim + 31) / 32; b++) {
        const uint16_t scale = tern_f32_to_f16(rnd() % 64 ? rnd_float() : NAN);
        memcpy(row + bytes * b, &scale, 2);
        for (size_t i = 2; i < bytes; i++)
            row[bytes * b + i] = (uint8_t)rnd();
    }
}

/* Blocks that no row sees are NULL, the others whole; what no row sees of them is NaN. */
static void make_blocks(struct values_case *k, const char *kernel)
{
    size_t lo = TERN_CHUNK, hi = 0;
    for (size_t r = 0; r < k->v.n_rows; r++) {
        if (k->lo[r] == k->hi[r])
            continue;
        lo = k->lo[r] < lo ? k->lo[r] : lo;
        hi = k->hi[r] > hi ? k->hi[r] : hi;
    }
    for (size_t b = 0; b < 16; b++) {
        k->block[b] = NULL;
        if (16 * b + 16 <= lo || 16 * b >= hi)
            continue;
        uint8_t *block = guarded(16 * k->v.row_bytes);
        memset(block, 0xff, 16 * k->v.row_bytes);
        for (size_t t = 0; t < 16; t++)
            if (16 * b + t >= lo && 16 * b + t < hi)
                fill_value_row(block + t * k->v.row_bytes, kernel, k->v.dim);
        k->block[b] = block;
    }
}

static float *make_p(const struct values_case *k)
{
    float *p = guarded(k->v.n_rows * TERN_CHUNK * sizeof *p);
    for (size_t r = 0; r < k->v.n_rows; r++)
        for (size_t t = 0; t < TERN_CHUNK; t++) {
            const bool seen = t >= k->lo[r] && t < k->hi[r];
            p[r * TERN_CHUNK + t] = seen ? fabsf(rnd_float()) / 4096 : NAN;
        }
    return p;
}

void check_values(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_values_fn, ref, c->ref);
    PICK(tern_values_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        struct values_case k = {0};
        struct tern_values *v = &k.v;
        v->dim = pick_dim(round);
        v->n_rows = 1 + rnd() % MAX_ROWS;
        v->row_bytes = strcmp(c->kernel, "values_f32") == 0    ? 4 * v->dim
                       : strcmp(c->kernel, "values_f16") == 0  ? 2 * v->dim
                       : strcmp(c->kernel, "values_q8_0") == 0 ? (v->dim + 31) / 32 * 34
                                                               : (v->dim + 31) / 32 * 18;
        v->o_stride = v->dim + rnd() % 3;
        v->block = k.block;
        v->ahead = round % 2 ? k.block : NULL;
        v->ahead_bytes = 64;
        v->scratch = guarded_aligned(TERN_ATTENTION_SCRATCH(v->dim));
        v->lo = k.lo;
        v->hi = k.hi;
        pick_ranges(&k, round);
        make_blocks(&k, c->kernel);
        v->p = make_p(&k);
        const size_t n = (v->n_rows - 1) * v->o_stride + v->dim;
        float *a = guarded(n * sizeof *a), *b = guarded(n * sizeof *b);
        memset(a, 0x5a, n * sizeof *a);
        memset(b, 0x5a, n * sizeof *b);
        v->o = a;
        ref(v);
        v->o = b;
        got(v);
        char what[96];
        snprintf(what, sizeof what, "%s, %zu rows of %zu, round %d", c->kernel, v->n_rows, v->dim,
                 round);
        assert_same_floats(a, b, n, what);
        guarded_free();
    }
}

/* --- merge and finish --- */

void check_merge(void **state)
{
    static const float edges[] = {0.0f, -0.0f, -INFINITY, INFINITY, NAN, 1e30f, -1e30f, 0x1p-140f};
    const struct candidate *c = *state;
    PICK(tern_merge_fn, ref, c->ref);
    PICK(tern_merge_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_dim(round);
        const float *o = rnd_row(n, round), *o_c = rnd_row(n, round / 2);
        const bool empty = round % 7 == 0, odd = round % 5 == 0;
        float ml[2][2];
        for (size_t i = 0; i < 2; i++) {
            ml[0][i] = odd ? edges[rnd() % 8] : 20.0f * pick_score(0);
            ml[1][i] = fabsf(odd ? edges[rnd() % 8] : rnd_float());
        }
        if (empty) {
            ml[0][0] = -INFINITY;
            ml[1][0] = 0.0f;
        }
        float *x = guarded(n * sizeof *x), *y = guarded(n * sizeof *y);
        memcpy(x, o, n * sizeof *x);
        memcpy(y, o, n * sizeof *y);
        float a[2] = {ml[0][0], ml[1][0]}, b[2] = {ml[0][0], ml[1][0]};
        ref(&a[0], &a[1], x, ml[0][1], ml[1][1], o_c, n);
        got(&b[0], &b[1], y, ml[0][1], ml[1][1], o_c, n);
        assert_same_floats(a, b, 2, "maximum and sum");
        assert_same_floats(x, y, n, "merged values");
        guarded_free();
    }
}

void check_finish(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_finish_fn, ref, c->ref);
    PICK(tern_finish_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_dim(round);
        const float *o = rnd_row(n, round);
        const float l = round % 8 == 0 ? 0.0f : round % 8 == 1 ? NAN : fabsf(rnd_float()) + 1e-3f;
        float *a = guarded(n * sizeof *a), *b = guarded(n * sizeof *b);
        memset(a, 0x5a, n * sizeof *a);
        memset(b, 0x5a, n * sizeof *b);
        ref(a, o, l, n);
        got(b, o, l, n);
        assert_same_floats(a, b, n, "finished values");
        guarded_free();
    }
}
