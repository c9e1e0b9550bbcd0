/* test_attention_ref.c: a whole attention row, chunk by chunk over the cache's blocks as a backend
 * walks them, against a plain softmax in doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "platform/cpu/kernels.h"
#include "platform/cpu/kv_store.h"

enum { MAX_DIM = 256, MAX_ROWS = 16 };

/* One KV head: keys and values of n tokens as floats and as blocks. */
struct cache {
    enum tern_type type;
    size_t dim, n;
    float *k, *v;
    uint8_t *k_blocks, *v_blocks;
};

static uint32_t rng = 1;

static float uniform(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return (float)(int32_t)rng / 2147483648.0f;
}

/* Nearly normal, standard deviation s. */
static float normal(float s)
{
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return s * 0.5f * sum;
}

static struct cache make_cache(enum tern_type type, size_t dim, size_t n)
{
    const size_t n_blocks = (n + 15) / 16;
    struct cache c = {.type = type, .dim = dim, .n = n};
    c.k = malloc(n * dim * sizeof *c.k);
    c.v = malloc(n * dim * sizeof *c.v);
    c.k_blocks = aligned_alloc(64, n_blocks * tern_kv_k_bytes(type, dim));
    c.v_blocks = aligned_alloc(64, n_blocks * tern_kv_v_bytes(type, dim));
    assert_non_null(c.k);
    assert_non_null(c.v);
    /* What nobody wrote is NaN in every type. */
    memset(c.k_blocks, 0xff, n_blocks * tern_kv_k_bytes(type, dim));
    memset(c.v_blocks, 0xff, n_blocks * tern_kv_v_bytes(type, dim));
    return c;
}

static void free_cache(struct cache *c)
{
    free(c->k);
    free(c->v);
    free(c->k_blocks);
    free(c->v_blocks);
}

static void store(struct cache *c)
{
    for (size_t t = 0; t < c->n; t++) {
        const size_t b = t / 16;
        uint8_t *k = c->k_blocks + b * tern_kv_k_bytes(c->type, c->dim);
        uint8_t *v = c->v_blocks + b * tern_kv_v_bytes(c->type, c->dim);
        const struct tern_kernels *kernels = &tern_kernels_ref;
        tern_kv_store_k(kernels, c->type, k, t % 16, c->k + t * c->dim, c->dim);
        tern_kv_store_v(kernels, c->type, v, t % 16, c->v + t * c->dim, c->dim);
    }
}

static void fill(struct cache *c, float k_size, float v_size)
{
    for (size_t i = 0; i < c->n * c->dim; i++) {
        c->k[i] = normal(k_size);
        c->v[i] = normal(v_size);
    }
    store(c);
}

/* Scores of the chunk's 256 positions for n_rows queries; s[row * 256 + token]. */
static void chunk_scores(const struct tern_kernels *kern, const struct cache *c, const float *q,
                         size_t n_rows, size_t chunk, float *s)
{
    static uint8_t scratch[TERN_MATMUL_SCRATCH(MAX_DIM)] __attribute__((aligned(64)));
    static int8_t quants[MAX_ROWS * MAX_DIM];
    static float d[MAX_ROWS * MAX_DIM / 32];
    static int16_t sums[MAX_ROWS * MAX_DIM / 16];
    const size_t n_cols = tern_kv_k_cols(c->type, c->dim), n_blocks = (c->dim + 31) / 32;
    for (size_t r = 0; r < n_rows; r++)
        kern->quantize(quants + 32 * n_blocks * r, d + n_blocks * r, sums + 2 * n_blocks * r,
                       q + r * c->dim, c->dim);
    const struct tern_acts acts = {n_rows, q, c->dim, quants, d, sums, n_blocks};
    const size_t first = 16 * chunk, last = (c->n + 15) / 16;
    const struct tern_matmul m = {
        .format = tern_format_of(c->type),
        .panels = c->k_blocks + first * tern_kv_k_bytes(c->type, c->dim),
        .panel_bytes = tern_kv_k_bytes(c->type, c->dim),
        .n_cols = n_cols,
        .acts = &acts,
        .dst = s,
        .dst_stride = TERN_CHUNK,
        .scratch = scratch,
    };
    tern_kernels_matmul(kern, c->type, false)(&m, 0, last - first < 16 ? last - first : 16);
}

struct query {
    const float *q; /* [n_rows][dim] */
    size_t n_rows;
    const size_t *lo, *hi; /* positions that each row sees */
    float scale, cap;
};

static void chunk_values(const struct tern_kernels *kern, const struct cache *c, size_t chunk,
                         struct tern_values *v)
{
    const uint8_t *block[16] = {0};
    for (size_t b = 0; b < 16 && 16 * (16 * chunk + b) < c->n; b++)
        block[b] = c->v_blocks + (16 * chunk + b) * tern_kv_v_bytes(c->type, c->dim);
    v->block = block;
    v->row_bytes = tern_kv_v_row_bytes(c->type, c->dim);
    static uint8_t scratch[TERN_ATTENTION_SCRATCH(MAX_DIM)] __attribute__((aligned(64)));
    v->dim = v->o_stride = c->dim;
    v->scratch = scratch;
    (c->type == TERN_TYPE_F32    ? kern->values_f32
     : c->type == TERN_TYPE_F16  ? kern->values_f16
     : c->type == TERN_TYPE_Q8_0 ? kern->values_q8_0
                                 : kern->values_q4_0)(v);
}

/* out: [n_rows][dim] */
static void attend(const struct tern_kernels *kern, const struct cache *c, const struct query *q,
                   float *out)
{
    static float s[MAX_ROWS * TERN_CHUNK] __attribute__((aligned(64)));
    static float o[MAX_ROWS * MAX_DIM], o_c[MAX_ROWS * MAX_DIM];
    float m[MAX_ROWS], l[MAX_ROWS], m_c[MAX_ROWS], l_c[MAX_ROWS];
    for (size_t r = 0; r < q->n_rows; r++) {
        m[r] = -INFINITY;
        l[r] = 0;
    }
    for (size_t chunk = 0; chunk * TERN_CHUNK < c->n; chunk++) {
        uint16_t lo[MAX_ROWS], hi[MAX_ROWS];
        chunk_scores(kern, c, q->q, q->n_rows, chunk, s);
        for (size_t r = 0; r < q->n_rows; r++) {
            const size_t at = chunk * TERN_CHUNK;
            float *row = s + r * TERN_CHUNK;
            lo[r] = (uint16_t)(q->lo[r] < at ? 0 : q->lo[r] - at > 256 ? 256 : q->lo[r] - at);
            hi[r] = (uint16_t)(q->hi[r] < at ? 0 : q->hi[r] - at > 256 ? 256 : q->hi[r] - at);
            if (lo[r] >= hi[r]) {
                lo[r] = hi[r] = 0;
                continue;
            }
            kern->scale(row + lo[r], row + lo[r], q->scale, (size_t)hi[r] - lo[r]);
            if (q->cap > 0)
                kern->softcap(row + lo[r], row + lo[r], q->cap, (size_t)hi[r] - lo[r]);
            l_c[r] = kern->softmax(row, lo[r], hi[r], &m_c[r]);
        }
        struct tern_values v = {.n_rows = q->n_rows, .p = s, .lo = lo, .hi = hi, .o = o_c};
        chunk_values(kern, c, chunk, &v);
        for (size_t r = 0; r < q->n_rows; r++)
            if (lo[r] < hi[r])
                kern->merge(&m[r], &l[r], o + r * c->dim, m_c[r], l_c[r], o_c + r * c->dim, c->dim);
    }
    for (size_t r = 0; r < q->n_rows; r++)
        kern->finish(out + r * c->dim, o + r * c->dim, l[r], c->dim);
}

/* The same in doubles, from the floats. */
static void exact_row(const struct cache *c, const struct query *q, size_t r, double *out)
{
    double *s = malloc(c->n * sizeof *s), max = -HUGE_VAL, sum = 0;
    assert_non_null(s);
    for (size_t t = q->lo[r]; t < q->hi[r]; t++) {
        s[t] = 0;
        for (size_t i = 0; i < c->dim; i++)
            s[t] += (double)q->q[r * c->dim + i] * (double)c->k[t * c->dim + i];
        s[t] *= (double)q->scale;
        if (q->cap > 0)
            s[t] = (double)q->cap * tanh(s[t] / (double)q->cap);
        max = s[t] > max ? s[t] : max;
    }
    memset(out, 0, c->dim * sizeof *out);
    for (size_t t = q->lo[r]; t < q->hi[r]; t++) {
        const double p = exp(s[t] - max);
        sum += p;
        for (size_t i = 0; i < c->dim; i++)
            out[i] += p * (double)c->v[t * c->dim + i];
    }
    for (size_t i = 0; i < c->dim; i++)
        out[i] = sum > 0 ? out[i] / sum : 0;
    free(s);
}

/* Runs the reference and the best variant, which must agree, and returns the largest distance
 * from the exact result. */
static double distance(const struct cache *c, const struct query *q)
{
    static float out[MAX_ROWS * MAX_DIM], other[MAX_ROWS * MAX_DIM];
    double exact[MAX_DIM], max = 0;
    struct tern_kernels best;
    tern_kernels_select(&best, tern_cpu_features(0), NULL);
    attend(&tern_kernels_ref, c, q, out);
    attend(&best, c, q, other);
    assert_memory_equal(out, other, q->n_rows * c->dim * sizeof *out);
    for (size_t r = 0; r < q->n_rows; r++) {
        exact_row(c, q, r, exact);
        for (size_t i = 0; i < c->dim; i++) {
            const double d = fabs((double)out[r * c->dim + i] - exact[i]);
            max = d > max || isnan(d) ? d : max;
        }
    }
    return max;
}

static double distance_of_one(const struct cache *c, const float *q, size_t lo, size_t hi,
                              float cap)
{
    const struct query one = {q, 1, &lo, &hi, 1.0f / sqrtf((float)c->dim), cap};
    return distance(c, &one);
}

static void a_row_over_many_chunks_is_a_plain_softmax(void **state)
{
    (void)state;
    static const size_t dims[] = {8, 20, 64, 80, 128};
    static const enum tern_type types[] = {TERN_TYPE_F32, TERN_TYPE_F16, TERN_TYPE_Q8_0,
                                           TERN_TYPE_Q4_0};
    static const double bounds[] = {2e-6, 1e-3, 2e-2, 0.3};
    for (size_t i = 0; i < 20; i++) {
        struct cache c = make_cache(types[i % 4], dims[i / 4], 1000 + i);
        float q[128];
        fill(&c, 1, 1);
        for (size_t k = 0; k < c.dim; k++)
            q[k] = normal(1);
        assert_true(distance_of_one(&c, q, 0, c.n, 0) < bounds[i % 4]);
        assert_true(distance_of_one(&c, q, 300, 777, 0) < bounds[i % 4]);
        free_cache(&c);
    }
}

static void scores_of_any_size_do_not_overflow(void **state)
{
    (void)state;
    struct cache c = make_cache(TERN_TYPE_F32, 128, 600);
    float q[128];
    fill(&c, 40, 1);
    for (size_t k = 0; k < c.dim; k++)
        q[k] = normal(40);
    /* Scores are around 18,000 and rounded to about 1e-3, so weights to a thousandth. */
    assert_true(distance_of_one(&c, q, 0, c.n, 0) < 1e-2);
    free_cache(&c);
}

static void seventy_thousand_equal_values_average_to_themselves(void **state)
{
    (void)state;
    struct cache c = make_cache(TERN_TYPE_F16, 8, 70000);
    float q[8] = {1, -1, 1, -1, 1, -1, 1, -1};
    fill(&c, 1, 1);
    for (size_t i = 0; i < c.n * c.dim; i++)
        c.v[i] = 100;
    store(&c);
    for (size_t i = 0; i < c.n * c.dim; i++)
        c.k[i] = 0; /* the weights do not matter to the exact average */
    assert_true(distance_of_one(&c, q, 0, c.n, 0) < 100 * 1e-5);
    free_cache(&c);
}

static void a_row_that_sees_nothing_is_zero_among_others(void **state)
{
    (void)state;
    struct cache c = make_cache(TERN_TYPE_F32, 16, 257);
    float q[2 * 16];
    fill(&c, 1, 1);
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        q[i] = normal(1);
    for (size_t blind = 0; blind < 3; blind++) {
        const size_t lo[2] = {0, 5}, see[2] = {257, 256};
        const size_t hi[2] = {blind == 1 ? 257 : 0, blind == 0 ? 256 : 5};
        const struct query all = {q, 2, lo, see, 0.25f, 0}, some = {q, 2, lo, hi, 0.25f, 0};
        assert_true(distance(&c, &all) < 1e-6);
        assert_true(distance(&c, &some) < 1e-6);
    }
    free_cache(&c);
}

static void one_key_at_the_edge_of_a_tile_is_all_there_is(void **state)
{
    (void)state;
    static const size_t edges[] = {0, 7, 8, 15, 16, 255, 256, 257, 271, 272, 511, 512};
    struct cache c = make_cache(TERN_TYPE_F32, 40, 513);
    float q[40];
    fill(&c, 1, 1);
    for (size_t k = 0; k < c.dim; k++)
        q[k] = normal(1);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        assert_true(distance_of_one(&c, q, edges[i], edges[i] + 1, 0) == 0);
    free_cache(&c);
}

/* Values are one-hot by position, so the output is the weights: each visible key has its share
 * and no other has any. */
static void a_window_sees_its_keys_and_no_other(void **state)
{
    (void)state;
    struct cache c = make_cache(TERN_TYPE_F16, 32, 320);
    float q[32] = {0}, out[32];
    fill(&c, 1, 0);
    for (size_t t = 0; t < c.n; t++)
        c.v[t * 32 + t % 32] = 1;
    store(&c);
    for (size_t w = 1; w <= 4; w *= 2)
        for (size_t p = w - 1; p < c.n; p++) {
            const size_t lo = p + 1 - w, hi = p + 1;
            const struct query one = {q, 1, &lo, &hi, 1, 0};
            attend(&tern_kernels_ref, &c, &one, out);
            for (size_t i = 0; i < 32; i++) {
                const bool seen = (p + 320 - i) % 32 < w;
                assert_true(out[i] == (seen ? 1.0f / (float)w : 0));
            }
        }
    free_cache(&c);
}

static void rows_of_a_group_are_each_as_if_alone(void **state)
{
    (void)state;
    static const size_t groups[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16};
    struct cache c = make_cache(TERN_TYPE_Q8_0, 80, 400);
    static float q[MAX_ROWS * 80], out[MAX_ROWS * 80], alone[80];
    size_t lo[MAX_ROWS], hi[MAX_ROWS];
    struct tern_kernels best;
    tern_kernels_select(&best, tern_cpu_features(0), NULL);
    fill(&c, 1, 1);
    for (size_t i = 0; i < MAX_ROWS * 80; i++)
        q[i] = normal(1);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (size_t r = 0; r < groups[g]; r++) {
            lo[r] = r / 3;
            hi[r] = 380 + r;
        }
        const struct query all = {q, groups[g], lo, hi, 0.1f, 0};
        attend(&best, &c, &all, out);
        for (size_t r = 0; r < groups[g]; r++) {
            const struct query one = {q + r * 80, 1, lo + r, hi + r, 0.1f, 0};
            attend(&tern_kernels_ref, &c, &one, alone);
            assert_memory_equal(out + r * 80, alone, sizeof alone);
        }
    }
    free_cache(&c);
}

static void a_soft_cap_holds_scores_of_300_to_5(void **state)
{
    (void)state;
    struct cache c = make_cache(TERN_TYPE_F32, 64, 700);
    float q[64];
    fill(&c, 1, 1);
    for (size_t k = 0; k < c.dim; k++)
        q[k] = normal(100);
    assert_true(distance_of_one(&c, q, 0, c.n, 5) < 1e-5);
    assert_true(distance_of_one(&c, q, 100, 613, 5) < 1e-5);
    free_cache(&c);
}

static void a_nan_key_reaches_the_output_and_a_masked_one_does_not(void **state)
{
    (void)state;
    struct cache c = make_cache(TERN_TYPE_F32, 16, 300);
    float q[16] = {1}, out[16];
    fill(&c, 1, 1);
    c.k[16 * 270] = NAN;
    store(&c);
    size_t lo = 0, hi = 300;
    const struct query one = {q, 1, &lo, &hi, 1, 0};
    attend(&tern_kernels_ref, &c, &one, out);
    for (size_t i = 0; i < 16; i++)
        assert_true(isnan(out[i]));
    hi = 270;
    attend(&tern_kernels_ref, &c, &one, out);
    for (size_t i = 0; i < 16; i++)
        assert_true(isfinite(out[i]));
    free_cache(&c);
}

/* q4_0 rotates keys and queries by it, and values there and back. */
static void the_rotation_keeps_dot_products_and_undoes_itself(void **state)
{
    (void)state;
    for (size_t n = 1; n <= MAX_DIM; n++) {
        float a[MAX_DIM], b[MAX_DIM], old[MAX_DIM];
        double before = 0, after = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            a[i] = old[i] = normal(1);
            b[i] = normal(1);
            before += (double)a[i] * (double)b[i];
            size += fabs((double)a[i] * (double)b[i]);
        }
        tern_kernels_ref.hadamard(a, n);
        tern_kernels_ref.hadamard(b, n);
        for (size_t i = 0; i < n; i++)
            after += (double)a[i] * (double)b[i];
        assert_true(fabs(after - before) <= 1e-5 * (size + 1));
        tern_kernels_ref.hadamard(a, n);
        for (size_t i = 0; i < n; i++)
            assert_true(fabsf(a[i] - old[i]) <= 1e-5f);
    }
}

static void the_rotation_spreads_one_value_over_its_part(void **state)
{
    (void)state;
    float x[96] = {0};
    x[5] = 8;
    x[64 + 3] = 1;
    tern_kernels_ref.hadamard(x, 96);
    for (size_t i = 0; i < 64; i++) {
        const bool odd = (i & 1) ^ (i >> 2 & 1); /* of the bits that i and 5 share */
        assert_true(x[i] == (odd ? -1.0f : 1.0f));
    }
    for (size_t i = 64; i < 96; i++)
        assert_true(fabsf(x[i]) == 1.0f / sqrtf(32.0f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_over_many_chunks_is_a_plain_softmax),
        cmocka_unit_test(scores_of_any_size_do_not_overflow),
        cmocka_unit_test(seventy_thousand_equal_values_average_to_themselves),
        cmocka_unit_test(a_row_that_sees_nothing_is_zero_among_others),
        cmocka_unit_test(one_key_at_the_edge_of_a_tile_is_all_there_is),
        cmocka_unit_test(a_window_sees_its_keys_and_no_other),
        cmocka_unit_test(rows_of_a_group_are_each_as_if_alone),
        cmocka_unit_test(a_soft_cap_holds_scores_of_300_to_5),
        cmocka_unit_test(a_nan_key_reaches_the_output_and_a_masked_one_does_not),
        cmocka_unit_test(the_rotation_keeps_dot_products_and_undoes_itself),
        cmocka_unit_test(the_rotation_spreads_one_value_over_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
