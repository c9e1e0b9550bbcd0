/* long_context.c: decode and prefill at a position far along, beside what the machine allows.
 *
 *     long_context MODEL [--position 8000] [--threads 1,2] [--types f16,q8_0,q4_0] [--rows 512]
 *
 * Reaching position 8,000 honestly takes longer than measuring there, so the first tokens are
 * computed and their blocks copied to all the others: what lies in the cache is another text, but
 * bytes and operations are the same. For each number of threads and type of the cache:
 *
 *   decode    tokens/s at the position; the limit is the bytes of the weights and of the keys and
 *             values before it, over the read bandwidth measured around it
 *   prefill   seconds of a step of many rows at the position; the limit is the same step at
 *             position 0 (its own attention taken off) and the multiply-accumulates of attention
 *             over the rates at which the kernels do them within the cache
 */
#include "platform/cpu/kernels.h"
#include "platform/cpu/kv_store.h"
#include "runtime/engine.h"
#include "tools/bench/limits.h"
#include "tools/bench/measure.h"
#include "tools/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, MOST_ROWS = 4096, TILE = 16, MAX_DIM = 576, LISTS = 8 };

static const struct { const char *name; tern_kv_type type; enum tern_type format; } types[] = {
    {"f16", TERN_KV_F16, TERN_TYPE_F16},
    {"f32", TERN_KV_F32, TERN_TYPE_F32},
    {"q8_0", TERN_KV_Q8_0, TERN_TYPE_Q8_0},
    {"q4_0", TERN_KV_Q4_0, TERN_TYPE_Q4_0},
};
enum { N_TYPES = sizeof types / sizeof *types };

struct options {
    const char *model, *types, *threads;
    uint32_t position, rows;
};

static void fail(const char *line)
{
    fprintf(stderr, "long_context: %s\n", line);
    exit(1);
}

static double since(uint64_t start)
{
    return (double)(tern_os_now_ns() - start) * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- the kernels' own rates --- */

struct rates { double scores, values; }; /* MACs/s of one thread */

struct one_chunk {
    const uint8_t *keys[16], *values[16];
    uint16_t lo[TILE], hi[TILE];
    struct tern_acts acts;
    struct tern_scores s;
    struct tern_values v;
};

static void *room(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!p)
        fail("no memory");
    memset(p, 1, size);
    return p;
}

static void make_chunk(struct one_chunk *c, const struct tern_kernels *k, enum tern_type type,
                       size_t dim, size_t n_rows)
{
    const size_t blocks = (dim + 31) / 32, k_bytes = tern_kv_k_bytes(type, dim);
    const size_t v_bytes = tern_kv_v_bytes(type, dim);
    float *x = room(n_rows * dim * sizeof *x);
    uint8_t *keys = room(16 * k_bytes), *values = room(16 * v_bytes);
    for (size_t i = 0; i < n_rows * dim; i++)
        x[i] = (float)(i % 13) * 0.1f - 0.6f;
    for (size_t t = 0; t < TERN_CHUNK; t++) {
        tern_kv_store_k(k, type, keys + t / 16 * k_bytes, t % 16, x, dim);
        tern_kv_store_v(k, type, values + t / 16 * v_bytes, t % 16, x, dim);
    }
    int8_t *q = room(n_rows * blocks * 32);
    float *d = room(n_rows * blocks * sizeof *d), *s = room(n_rows * TERN_CHUNK * sizeof *s);
    int16_t *sum = room(n_rows * blocks * 2 * sizeof *sum);
    k->quantize(q, d, sum, x, n_rows * dim);
    for (size_t b = 0; b < 16; b++) {
        c->keys[b] = keys + b * k_bytes;
        c->values[b] = values + b * v_bytes;
    }
    for (size_t r = 0; r < n_rows; r++) {
        c->lo[r] = 0;
        c->hi[r] = TERN_CHUNK;
    }
    c->acts = (struct tern_acts){n_rows, x, dim, q, d, sum, blocks};
    c->s = (struct tern_scores){c->keys, 0, 16, tern_format_of(type), tern_kv_k_cols(type, dim),
                                &c->acts, 0.125f, s, tern_kernels_matmul(k, type, false),
                                room(TERN_ATTENTION_SCRATCH(dim)), NULL, 0};
    c->v = (struct tern_values){c->values, tern_kv_v_row_bytes(type, dim), dim, n_rows, s, c->lo,
                                c->hi, room(n_rows * dim * sizeof(float)), dim,
                                room(TERN_ATTENTION_SCRATCH(dim)), NULL, 0};
}

/* Best of a few runs of some calls, in calls/s. Memory is the process's to free. */
static struct rates measure_rates(enum tern_type type, size_t dim, size_t n_rows)
{
    static struct one_chunk c;
    struct tern_kernels k;
    struct rates best = {0, 0};
    tern_kernels_select(&k, tern_cpu_features(tern_os_cpu_has()), getenv("TERN_CPU"));
    make_chunk(&c, &k, type, dim, n_rows);
    tern_scores_fn *scores = type == TERN_TYPE_F16    ? k.scores_f16
                             : type == TERN_TYPE_F32  ? k.scores_f32
                             : type == TERN_TYPE_Q8_0 ? k.scores_q8_0
                                                      : k.scores_q4_0;
    tern_values_fn *values = type == TERN_TYPE_F16    ? k.values_f16
                             : type == TERN_TYPE_F32  ? k.values_f32
                             : type == TERN_TYPE_Q8_0 ? k.values_q8_0
                                                      : k.values_q4_0;
    const double macs = 200.0 * (double)(TERN_CHUNK * n_rows * dim);
    for (int run = 0; run < 10; run++) {
        uint64_t start = tern_os_now_ns();
        for (int i = 0; i < 200; i++)
            scores(&c.s);
        const double s = macs / since(start);
        start = tern_os_now_ns();
        for (int i = 0; i < 200; i++)
            values(&c.v);
        const double v = macs / since(start);
        best.scores = s > best.scores ? s : best.scores;
        best.values = v > best.values ? v : best.values;
    }
    return best;
}

/* --- a sequence that is far along --- */

static tern_seq open_seq(struct tern_session *s)
{
    tern_seq seq;
    tern_seq_options options = {.no_kv_sharing = true};
    tern_sampling_default(&options.sampling);
    if (tern_seq_open(s->engine, &options, &seq) != TERN_OK)
        fail(tern_session_line(s));
    return seq;
}

static double decode(struct tern_session *s, tern_seq seq, uint32_t n)
{
    static tern_row rows[MOST_ROWS];
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (tern_row){seq, (tern_token)((i * 7919u + 1013u) % s->info.n_vocab), i + 1 == n};
    const uint64_t start = tern_os_now_ns();
    if (tern_decode(s->engine, rows, n) != TERN_OK)
        fail(tern_session_line(s));
    return since(start);
}

static void jump(struct tern_engine *e, tern_seq seq, uint32_t position)
{
    struct tern_sequence *s = tern_sequence_of(e, seq);
    struct tern_kv *kv = &e->parts.kv;
    const uint32_t slot = tern_slot_of(e, s), from = s->n_computed / TERN_BLOCK_TOKENS;
    const uint32_t to = (position + TERN_BLOCK_TOKENS - 1) / TERN_BLOCK_TOKENS;
    if (position > s->n_computed &&
        tern_kv_reserve(kv, slot, s->n_computed, position - s->n_computed, e->backend, e->state,
                        &e->error) != TERN_OK)
        fail(e->error.text);
    for (uint32_t g = 0; g < kv->n_groups; g++)
        for (uint32_t i = from; i < to; i++) {
            const uint32_t *table = kv->tables[(size_t)g * kv->n_slots + slot];
            const struct tern_block_copy copy = {table[i % from], table[i]};
            e->backend->copy_blocks(e->state, g, &copy, 1, &e->error);
        }
    s->n_tokens = s->n_computed = position;
}

static void back_to(struct tern_engine *e, tern_seq seq, uint32_t position)
{
    struct tern_sequence *s = tern_sequence_of(e, seq);
    s->n_tokens = s->n_computed = position;
}

/* Multiply-accumulates of scores (those of values are as many) of rows at a position, and bytes
 * of keys and values before it. */
static double macs_at(const struct tern_program *p, uint32_t position, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct tern_op *op = &p->ops[i];
        if (op->kind != TERN_OP_ATTENTION)
            continue;
        const struct tern_kv_group *g = &p->kv_groups[p->kv_layers[op->index].group];
        for (uint32_t r = 0; r < n; r++) {
            const uint32_t seen = position + r + 1;
            sum += (double)(g->window && seen > g->window ? g->window : seen) * op->n_heads *
                   g->k_dim;
        }
    }
    return sum;
}

static double kv_bytes(const struct tern_program *p, enum tern_type type, uint32_t position)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n_kv_groups; i++) {
        const struct tern_kv_group *g = &p->kv_groups[i];
        const uint32_t seen = g->window && position > g->window ? g->window : position;
        sum += (double)g->n_layers * g->n_kv_heads * seen / 16 *
               (double)(tern_kv_k_bytes(type, g->k_dim) + tern_kv_v_bytes(type, g->v_dim));
    }
    return sum;
}

static uint32_t tile_rows(const struct tern_program *p)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == TERN_OP_ATTENTION) {
            const struct tern_kv_layer *l = &p->kv_layers[p->ops[i].index];
            const uint32_t share = p->ops[i].n_heads / p->kv_groups[l->group].n_kv_heads;
            return share >= TILE ? TILE : TILE / share * share;
        }
    return TILE;
}

/* --- one type, one number of threads --- */

struct figures { double gbps, tps, limit_tps, prefill, prefill_limit; struct rates rates; };

static void measure_decode(struct tern_session *s, tern_seq seq, const struct options *o,
                           enum tern_type type, struct figures *f)
{
    double at[STEPS], macs, weights, before = 0, after = 0;
    bool measured = tern_limits_read_gbps(s, &before);
    decode(s, seq, 1);
    for (int i = 0; i < STEPS; i++)
        at[i] = decode(s, seq, 1);
    measured = measured && tern_limits_read_gbps(s, &after);
    if (!measured)
        fail("no memory to measure the read bandwidth in");
    qsort(at, STEPS, sizeof *at, by_value);
    tern_measure_count(s, &macs, &weights);
    f->gbps = before > after ? before : after;
    f->tps = 1 / ((at[(STEPS - 1) / 2] + at[STEPS / 2]) / 2);
    f->limit_tps = f->gbps * 1e9 / (weights + kv_bytes(&s->model->program, type, o->position));
}

static void measure_prefill(struct tern_session *s, tern_seq seq, const struct options *o,
                            double at_0, uint32_t threads, struct figures *f)
{
    const struct tern_program *p = &s->model->program;
    const double per_mac = (1 / f->rates.scores + 1 / f->rates.values) / threads;
    back_to(s->engine, seq, o->position);
    f->prefill = decode(s, seq, o->rows);
    back_to(s->engine, seq, o->position);
    const double again = decode(s, seq, o->rows);
    f->prefill = again < f->prefill ? again : f->prefill;
    f->prefill_limit =
        at_0 + (macs_at(p, o->position, o->rows) - macs_at(p, 0, o->rows)) * per_mac;
}

static void measure(const struct options *o, size_t type, uint32_t threads)
{
    static struct tern_session s;
    struct figures f = {0};
    const uint32_t first = o->rows ? o->rows : 256;
    const struct tern_list anywhere = {0};
    if (!tern_session_open(&s, o->model, TERN_MODEL_WHOLE))
        fail(tern_session_line(&s));
    const tern_limits limits = {.n_ctx = o->position + MOST_ROWS + STEPS,
                                .chunk = first,
                                .n_threads = threads,
                                .k_type = types[type].type,
                                .v_type = types[type].type};
    if (!tern_session_plan(&s, &limits) || !tern_session_start(&s, &anywhere))
        fail(tern_session_line(&s));
    const tern_seq seq = open_seq(&s);
    decode(&s, seq, first);
    back_to(s.engine, seq, 0);
    const double at_0 = decode(&s, seq, first);
    jump(s.engine, seq, o->position);
    measure_decode(&s, seq, o, types[type].format, &f);
    const struct tern_kv_group *g = &s.model->program.kv_groups[0];
    f.rates = measure_rates(types[type].format, g->k_dim, tile_rows(&s.model->program));
    if (o->rows)
        measure_prefill(&s, seq, o, at_0, threads, &f);
    printf("%7u  %-5s %6.1f %9.2f %9.2f %7.0f%% %9.1f %7.1f", threads, types[type].name, f.gbps,
           f.tps, f.limit_tps, 100 * f.tps / f.limit_tps, f.rates.scores * 1e-9,
           f.rates.values * 1e-9);
    if (o->rows)
        printf(" %9.2f %9.2f %7.2f", f.prefill, f.prefill_limit, f.prefill / f.prefill_limit);
    printf("\n");
    fflush(stdout);
    tern_session_close(&s);
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {NULL, "f16,q8_0,q4_0", "1,2", 8000, 512};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(argv[i], "--", 2) != 0) {
            o.model = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--position") == 0)
            o.position = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--rows") == 0)
            o.rows = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--types") == 0)
            o.types = value;
        else if (strcmp(argv[i], "--threads") == 0)
            o.threads = value;
        else
            fail("options: --position N, --threads LIST, --types LIST, --rows N");
        i++;
    }
    if (!o.model || o.rows > MOST_ROWS || o.position < 1024)
        fail("MODEL, a position from 1024 on, and at most 4096 rows are needed");
    return o;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv);
    printf("threads  KV      GB/s  decode/s   limit/s of limit  GMAC/s: q.k     p.v");
    printf(o.rows ? "  prefill s   limit s   ratio\n" : "\n");
    char list[LISTS * 8];
    snprintf(list, sizeof list, "%s", o.threads);
    for (char *at = list, *end; *at; at = *end ? end + 1 : end) {
        const uint32_t threads = (uint32_t)strtoul(at, &end, 10);
        if (end == at)
            fail("--threads takes numbers: 1,2");
        for (size_t t = 0; t < N_TYPES; t++) {
            const char *named = strstr(o.types, types[t].name);
            if (named)
                measure(&o, t, threads);
        }
    }
    return 0;
}
