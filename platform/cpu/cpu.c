/* cpu.c: the CPU backend: its memory, its weights, and the walk of the team over the phases. */
#include "platform/cpu/cpu.h"
#include "platform/cpu/kv_store.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/rope.h"

#include <math.h>
#include <string.h>

extern const struct tern_backend tern_backend_cpu;

static uint32_t n_devices(void)
{
    return 1;
}

static tern_status describe(uint32_t device, struct tern_device *out, tern_error *err)
{
    (void)device;
    (void)err;
    *out = (struct tern_device){.name = "CPU", .shares_host_memory = true};
    return TERN_OK;
}

static bool can_run(const struct tern_model *model, const struct tern_op *op)
{
    if (op->kind >= TERN_N_OPS)
        return false;
    if (op->weight < 0)
        return true;
    return tern_format_of(model->tensors[model->program.weights[op->weight].tensor].type) != NULL;
}

/* --- memory: one walk a arena, that measures or carves --- */

static size_t padded(size_t n)
{
    return (n + 31) / 32 * 32;
}

/* Those of an image are used where they lie, and never written to. */
static void lay_out_weights(struct tern_arena *a, const struct tern_model *m, uint8_t **weights)
{
    for (uint32_t i = 0; i < m->program.n_weights; i++) {
        if (m->image) {
            if (weights)
                weights[i] = (uint8_t *)tern_model_weight(m, i);
            continue;
        }
        const struct tern_weight *w = &m->program.weights[i];
        const uint32_t type = m->tensors[w->tensor].type;
        const size_t panels = (w->n_rows + TERN_PANEL_ROWS - 1) / TERN_PANEL_ROWS;
        uint8_t *p = w->matrix
                         ? tern_carve_raw(a, panels, (size_t)tern_panel_bytes(type, w->n_cols), 64)
                         : tern_carve_raw(a, padded(w->n_cols), sizeof(float), 64);
        if (weights)
            weights[i] = p;
    }
}

static void lay_out_pools(struct tern_arena *a, struct tern_cpu *c, const uint32_t *n_blocks)
{
    for (uint32_t i = 0; i < c->program->n_kv_groups; i++) {
        const struct tern_kv_group *g = &c->program->kv_groups[i];
        struct tern_cpu_pool *p = &c->pools[i];
        p->k_bytes = tern_kv_k_bytes(c->k_type, g->k_dim);
        p->v_bytes = tern_kv_v_bytes(c->v_type, g->v_dim);
        p->v_row_bytes = tern_kv_v_row_bytes(c->v_type, g->v_dim);
        p->head_bytes = (p->k_bytes + p->v_bytes) * n_blocks[i];
        p->layer_bytes = g->n_kv_heads * p->head_bytes;
        p->n_blocks = n_blocks[i];
        p->base = tern_carve_raw(a, g->n_layers, p->layer_bytes, 64);
    }
}

static void lay_out_records(struct tern_arena *a, struct tern_records *r, size_t rows, size_t width)
{
    const size_t blocks = padded(width) / 32;
    r->q = tern_carve_raw(a, rows * blocks, 32, 64);
    r->d = tern_carve_raw(a, rows * blocks, sizeof *r->d, 64);
    r->sum = tern_carve_raw(a, rows * blocks, 2 * sizeof *r->sum, 64);
}

/* Attention is split by chunks only for a few rows. */
static void lay_out_partials(struct tern_arena *a, struct tern_cpu *c)
{
    struct tern_cpu_partials *p = &c->partials;
    uint32_t heads = 0;
    for (uint32_t i = 0; i < c->program->n_ops; i++)
        if (c->program->ops[i].kind == TERN_OP_ATTENTION && c->program->ops[i].n_heads > heads)
            heads = c->program->ops[i].n_heads;
    for (uint32_t i = 0; i < c->program->n_kv_groups; i++)
        if (c->program->kv_groups[i].v_dim > p->widest)
            p->widest = c->program->kv_groups[i].v_dim;
    p->n_chunks = (c->limits.n_ctx + TERN_CHUNK - 1) / TERN_CHUNK;
    const size_t n = c->limits.n_threads > 1 ? (size_t)TERN_FEW_ROWS * heads * p->n_chunks : 0;
    p->m = tern_carve_raw(a, n, sizeof *p->m, 64);
    p->l = tern_carve_raw(a, n, sizeof *p->l, 64);
    p->o = tern_carve_raw(a, n, p->widest * sizeof *p->o, 64);
}

/* A span has a row at least. */
static void lay_out_order(struct tern_arena *a, struct tern_cpu *c)
{
    struct tern_cpu_order *o = &c->order;
    const size_t chunk = c->limits.chunk;
    o->tokens = tern_carve_raw(a, chunk, sizeof *o->tokens, 64);
    o->positions = tern_carve_raw(a, chunk, sizeof *o->positions, 64);
    o->logit_rows = tern_carve_raw(a, c->limits.n_logit_rows, sizeof *o->logit_rows, 64);
    o->spans = tern_carve_raw(a, chunk, sizeof *o->spans, 64);
}

static void lay_out_activations(struct tern_arena *a, struct tern_cpu *c)
{
    const struct tern_program *p = c->program;
    const size_t chunk = c->limits.chunk;
    c->rows = tern_carve_raw(a, chunk * c->low.row_floats, sizeof *c->rows, 64);
    c->logit_rows =
        tern_carve_raw(a, (size_t)c->limits.n_logit_rows * c->low.logit_floats, sizeof(float), 64);
    lay_out_records(a, &c->records, chunk, c->low.widest_in);
    c->normed =
        c->low.norm_floats ? tern_carve_raw(a, chunk * c->low.widest_in, sizeof(float), 64) : NULL;
    for (uint32_t i = 0; i < p->n_ropes; i++) {
        c->inv_freq[i] = tern_carve_raw(a, p->ropes[i].n_rot / 2, sizeof(double), 64);
        c->angles[i] = tern_carve_raw(a, chunk * p->ropes[i].n_rot, sizeof(float), 64);
    }
    c->row_span = tern_carve_raw(a, chunk, sizeof *c->row_span, 64);
    if (c->n_lanes > 1)
        lay_out_order(a, c);
    lay_out_partials(a, c);
}

/* A thread's share of what products make of a step, as far as that stays in its caches, and two
 * panels' at least. */
static size_t piece_floats(const struct tern_cpu *c)
{
    const size_t rows = c->limits.chunk, share = rows * c->low.widest_inner / c->limits.n_threads;
    const size_t cached = share < TERN_PIECE_FLOATS ? share : TERN_PIECE_FLOATS;
    const size_t least = 2 * TERN_PANEL_ROWS * rows;
    return (cached > least ? cached : least) + TERN_PANEL_ROWS * rows;
}

/* Pieces are written by strides, and hardware that fetches ahead by strides runs many rows past
 * their end: what lies there is the same thread's, or another would lose its lines to this one. */
static void lay_out_threads(struct tern_arena *a, struct tern_cpu *c)
{
    const struct tern_program *p = c->program;
    uint32_t k_dim = 0, v_dim = 0;
    const size_t tile_rows = TERN_TILES_TOGETHER * TERN_TILE_ROWS;
    size_t widest = c->low.widest_in, row_bytes = 0;
    for (uint32_t i = 0; i < p->n_kv_groups; i++) {
        k_dim = p->kv_groups[i].k_dim > k_dim ? p->kv_groups[i].k_dim : k_dim;
        v_dim = p->kv_groups[i].v_dim > v_dim ? p->kv_groups[i].v_dim : v_dim;
    }
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == TERN_OP_EMBED) {
            const struct tern_weight *w = &p->weights[p->ops[i].weight];
            const size_t n = (size_t)tern_row_bytes(c->model->tensors[w->tensor].type, w->n_cols);
            row_bytes = n > row_bytes ? n : row_bytes;
        }
    const size_t cols = widest > padded(k_dim) ? widest : padded(k_dim);
    const size_t attention = TERN_ATTENTION_SCRATCH(k_dim > v_dim ? k_dim : v_dim);
    const size_t scratch =
        TERN_MATMUL_SCRATCH(cols) > attention ? TERN_MATMUL_SCRATCH(cols) : attention;
    for (uint32_t i = 0; i < c->limits.n_threads; i++) {
        struct tern_cpu_thread t;
        t.pieces = tern_carve_raw(a, c->low.n_inner * c->piece_floats, sizeof(float), 64);
        lay_out_records(a, &t.own, TERN_OWN_ROWS, widest);
        t.norm = tern_carve_raw(a, TERN_OWN_ROWS * widest, sizeof(float), 64);
        t.row = tern_carve_raw(a, row_bytes, 1, 64);
        t.matmul = tern_carve_raw(a, 1, scratch, 64);
        t.turned = tern_carve_raw(a, padded(k_dim > v_dim ? k_dim : v_dim), sizeof(float), 64);
        t.queries = tern_carve_raw(a, tile_rows * padded(k_dim), sizeof(float), 64);
        lay_out_records(a, &t.query_records, tile_rows, k_dim);
        t.scores = tern_carve_raw(a, TERN_TILE_ROWS * TERN_CHUNK, sizeof(float), 64);
        t.part = tern_carve_raw(a, TERN_TILE_ROWS * padded(v_dim), sizeof(float), 64);
        t.sum = tern_carve_raw(a, tile_rows * padded(v_dim), sizeof(float), 64);
        t.timings = tern_carve_raw(
            a, c->limits.timings ? (size_t)TERN_PHASE_TIMINGS * c->low.n_phases : 0,
            sizeof *t.timings, 64);
        t.n_timings = 0;
        t.multiplied = NULL;
        if (c->threads)
            c->threads[i] = t;
    }
}

/* The state itself and its tables come first in the scratch arena; c is where it is built
 * while measuring. */
static void lay_out_state(struct tern_arena *a, struct tern_cpu *c)
{
    struct tern_cpu *own = tern_carve_raw(a, 1, sizeof *c, 64);
    (void)own; /* open copies *c there */
    c->kernels = tern_carve(a, 1, sizeof *c->kernels, 64);
    c->low.phases = tern_carve(a, c->low.n_phases, sizeof *c->low.phases, 64);
    c->weights = tern_carve(a, c->program->n_weights, sizeof *c->weights, 64);
    c->items = tern_carve(a, 2 * (size_t)c->n_lanes * c->low.n_phases, sizeof *c->items, 64);
    c->threads = tern_carve(a, c->limits.n_threads, sizeof *c->threads, 64);
}

static enum tern_type cache_type(tern_kv_type type)
{
    return type == TERN_KV_F32   ? TERN_TYPE_F32
           : type == TERN_KV_F16 ? TERN_TYPE_F16
           : type == TERN_KV_Q8_0 ? TERN_TYPE_Q8_0
                                 : TERN_TYPE_Q4_0;
}

static size_t largest_matrix(const struct tern_cpu *c)
{
    size_t largest = 0;
    for (uint32_t i = 0; i < c->program->n_ops; i++) {
        const struct tern_op *op = &c->program->ops[i];
        if (op->kind != TERN_OP_MATMUL || op->dst == c->program->logits)
            continue;
        const struct tern_weight *w = &c->program->weights[op->weight];
        const size_t panels = (w->n_rows + TERN_PANEL_ROWS - 1) / TERN_PANEL_ROWS;
        const size_t bytes = panels * (size_t)tern_panel_bytes(c->model->tensors[w->tensor].type,
                                                               w->n_cols);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* Each lane reads the weights and unpacks them. That is little for few rows only where a matrix is
 * small enough to wait in a cache that cores share. */
static uint32_t rows_of_lane(const struct tern_cpu *c)
{
    enum { SHARED_BYTES = 4 << 20 };
    return largest_matrix(c) > SHARED_BYTES ? TERN_LARGE_LANE_ROWS : TERN_LANE_ROWS;
}

static uint32_t most_lanes(const struct tern_cpu *c)
{
    uint32_t n = c->limits.chunk / c->lane_rows;
    n = n < c->limits.n_threads ? n : c->limits.n_threads;
    n = n < TERN_MAX_LANES ? n : TERN_MAX_LANES;
    return n < 1 ? 1 : n;
}

static tern_status begin(const struct tern_model *model, const struct tern_backend_plan *plan,
                         struct tern_cpu *c, tern_error *err)
{
    memset(c, 0, sizeof *c);
    c->model = model;
    c->program = &model->program;
    c->limits = *plan->limits;
    c->k_type = cache_type(c->limits.k_type);
    c->v_type = cache_type(c->limits.v_type);
    c->lane_rows = rows_of_lane(c);
    c->n_lanes = most_lanes(c);
    const tern_status status = tern_lower(model, c->limits.exact, &c->low, err);
    c->piece_floats = piece_floats(c);
    return status;
}

static tern_status need(tern_arena_need *out, const struct tern_arena *a, size_t align,
                        tern_error *err)
{
    if (a->failed || a->used > SIZE_MAX - align)
        return tern_fail(err, TERN_NO_MEMORY, "%s arena: its size passes what can be addressed",
                         out->name);
    out->align = align;
    out->bytes = (a->used + align - 1) / align * align;
    return TERN_OK;
}

static tern_status plan(const struct tern_model *model, const struct tern_backend_plan *p,
                        tern_arena_need arenas[TERN_N_ARENAS], tern_error *err)
{
    struct tern_cpu c;
    tern_status status = begin(model, p, &c, err);
    if (status != TERN_OK)
        return status;
    struct tern_arena weights = tern_arena_measure(), kv = weights, activations = weights,
                      scratch = weights;
    lay_out_weights(&weights, model, NULL);
    lay_out_pools(&kv, &c, p->n_blocks);
    lay_out_state(&scratch, &c);
    lay_out_threads(&scratch, &c);
    lay_out_activations(&activations, &c);
    if ((status = need(&arenas[TERN_ARENA_WEIGHTS], &weights, 4096, err)) != TERN_OK ||
        (status = need(&arenas[TERN_ARENA_KV], &kv, 4096, err)) != TERN_OK ||
        (status = need(&arenas[TERN_ARENA_ACTIVATIONS], &activations, 4096, err)) != TERN_OK)
        return status;
    return need(&arenas[TERN_ARENA_SCRATCH], &scratch, 4096, err);
}

/* Of the tables whose factors are this weight; -1: of those without factors. */
static void rope_frequencies(struct tern_cpu *c, int32_t weight)
{
    for (uint32_t i = 0; i < c->program->n_ropes; i++) {
        const struct tern_rope *rope = &c->program->ropes[i];
        if (rope->factors != weight)
            continue;
        const float *factors = weight < 0 ? NULL : (const float *)c->weights[weight];
        for (uint32_t j = 0; j < rope->n_rot / 2; j++)
            c->inv_freq[i][j] = tern_rope_inv_freq(rope, factors, j);
    }
}

static tern_status open_state(const struct tern_model *model, const struct tern_backend_plan *p,
                              const tern_memory arenas[TERN_N_ARENAS], const tern_host *host,
                              void **state, tern_error *err)
{
    struct tern_cpu c;
    tern_status status = begin(model, p, &c, err);
    if (status != TERN_OK)
        return status;
    struct tern_arena weights =
        tern_arena_over(arenas[TERN_ARENA_WEIGHTS].data, arenas[TERN_ARENA_WEIGHTS].size);
    struct tern_arena kv = tern_arena_over(arenas[TERN_ARENA_KV].data, arenas[TERN_ARENA_KV].size);
    struct tern_arena act =
        tern_arena_over(arenas[TERN_ARENA_ACTIVATIONS].data, arenas[TERN_ARENA_ACTIVATIONS].size);
    struct tern_arena scratch =
        tern_arena_over(arenas[TERN_ARENA_SCRATCH].data, arenas[TERN_ARENA_SCRATCH].size);
    c.host = *host;
    lay_out_state(&scratch, &c);
    if (!scratch.failed)
        status = tern_lower(model, c.limits.exact, &c.low, err);
    lay_out_weights(&weights, model, c.weights);
    lay_out_pools(&kv, &c, p->n_blocks);
    lay_out_threads(&scratch, &c);
    lay_out_activations(&act, &c);
    if (status != TERN_OK || weights.failed || kv.failed || act.failed || scratch.failed)
        return tern_fail(err, TERN_NO_MEMORY, "cpu backend: an arena is smaller than its plan");
    if (!tern_kernels_select(c.kernels, tern_cpu_features(host->cpu_has), host->cpu))
        return tern_fail(err, TERN_BAD_ARGUMENT, "host.cpu %s: no such variant in this build",
                         host->cpu);
    rope_frequencies(&c, -1);
    for (uint32_t i = 0; model->image && i < c.program->n_weights; i++)
        rope_frequencies(&c, (int32_t)i);
    *state = arenas[TERN_ARENA_SCRATCH].data;
    memcpy(*state, &c, sizeof c);
    return TERN_OK;
}

/* --- weights --- */

static tern_status upload(void *state, uint32_t weight, uint32_t first_row, uint32_t n_rows,
                          const void *rows, tern_error *err)
{
    (void)err;
    struct tern_cpu *c = state;
    const struct tern_weight *w = &c->program->weights[weight];
    const uint32_t type = c->model->tensors[w->tensor].type;
    if (!w->matrix) {
        float *dst = (float *)c->weights[weight];
        memset(dst, 0, padded(w->n_cols) * sizeof *dst);
        tern_decode_row(type, rows, dst, w->n_cols);
        rope_frequencies(c, (int32_t)weight);
        return TERN_OK;
    }
    const size_t row_bytes = (size_t)tern_row_bytes(type, w->n_cols);
    const size_t panel_bytes = (size_t)tern_panel_bytes(type, w->n_cols);
    for (uint32_t r = 0; r < n_rows; r += TERN_PANEL_ROWS)
        tern_pack_panel(type, (const uint8_t *)rows + r * row_bytes,
                        n_rows - r < TERN_PANEL_ROWS ? n_rows - r : TERN_PANEL_ROWS, w->n_cols,
                        c->weights[weight] +
                            (size_t)(first_row + r) / TERN_PANEL_ROWS * panel_bytes);
    return TERN_OK;
}

/* --- running --- */

static tern_work work_of(const struct tern_phase *ph)
{
    return ph->kind == TERN_PHASE_ROWS       ? TERN_WORK_ROWS
           : ph->kind == TERN_PHASE_MULTIPLY ? TERN_WORK_MATMUL
                                             : TERN_WORK_ATTENTION;
}

static void work_phase(struct tern_cpu *c, uint32_t i, uint32_t thread)
{
    const struct tern_phase *ph = &c->low.phases[i];
    tern_cpu_timed_work(c, thread, ph->first, work_of(ph));
    if (ph->kind == TERN_PHASE_ROWS)
        tern_cpu_rows(c, ph, thread);
    else if (ph->kind == TERN_PHASE_MULTIPLY)
        tern_cpu_multiply(c, ph, thread);
    else
        tern_cpu_attend(c, ph, thread);
}

/* A few rows' own work is shorter than a barrier: the thread that comes last to the end of the
 * phase before does it, while the others wait there. */
static bool follows(const struct tern_cpu *c, uint32_t i)
{
    if (i >= c->low.n_phases || c->low.phases[i].kind != TERN_PHASE_ROWS)
        return false;
    const uint32_t n_rows = tern_cpu_phase_rows(c, &c->low.phases[i]);
    return n_rows > 0 && n_rows <= TERN_OWN_ROWS;
}

static bool is_last(const struct tern_cpu *c, uint32_t i)
{
    return atomic_fetch_add_explicit(&c->items[2 * i + 1], 1, memory_order_acq_rel) + 1 ==
           c->limits.n_threads;
}

static const struct tern_op *last_norm(const struct tern_cpu *c)
{
    const struct tern_op *op = c->program->ops + c->program->n_ops - 1;
    while (op->kind != TERN_OP_RMS_NORM)
        op--;
    return op;
}

static void job(void *arg, uint32_t thread)
{
    struct tern_cpu *c = arg;
    const uint32_t saved = tern_float_enter();
    /* Products of the last norm make logits. */
    const uint32_t end = c->batch->hidden_only ? (uint32_t)(last_norm(c) - c->program->ops)
                                               : c->program->n_ops;
    tern_cpu_timed_start(c, thread);
    for (uint32_t i = 0; i < c->low.n_phases && c->low.phases[i].first < end; i++) {
        if (tern_cpu_phase_rows(c, &c->low.phases[i]) == 0)
            continue;
        work_phase(c, i, thread);
        for (; follows(c, i + 1); i++)
            if (is_last(c, i + 1)) {
                tern_cpu_timed_end(c, thread);
                work_phase(c, i + 1, thread);
            }
        tern_cpu_barrier(c, thread);
    }
    tern_float_leave(saved);
}

static tern_status submit(void *state, const struct tern_batch *batch, tern_error *err)
{
    (void)err;
    struct tern_cpu *c = state;
    tern_cpu_order_rows(c, batch);
    for (uint32_t i = 0; i < c->batch->n_spans; i++)
        for (uint32_t r = 0; r < c->batch->spans[i].n_rows; r++)
            c->row_span[c->batch->spans[i].first_row + r] = i;
    for (uint32_t i = 0; i < 2 * c->lanes * c->low.n_phases; i++)
        atomic_store_explicit(&c->items[i], 0, memory_order_relaxed);
    if (c->limits.n_threads > 1)
        c->host.parallel(c->host.self, job, c);
    else
        job(c, 0);
    return TERN_OK;
}

static tern_status wait_logits(void *state, const float **logits, size_t *stride, tern_error *err)
{
    (void)err;
    const struct tern_cpu *c = state;
    *logits = tern_cpu_row(c, true, c->program->logits, 0);
    *stride = c->low.slots[c->program->logits].stride;
    return TERN_OK;
}

/* The norm is part of the products behind it, where its result is not kept: what it is made of lies
 * there until the next submit. */
static tern_status hidden(const void *state, uint32_t i, float *out, tern_error *err)
{
    (void)err;
    const struct tern_cpu *c = state;
    const struct tern_op *op = last_norm(c);
    const float *a = tern_cpu_row(c, true, op->a, i);
    c->kernels->rms_norm(out, a, (const float *)c->weights[op->weight],
                         c->program->slots[op->dst].width, op->x);
    return TERN_OK;
}

static tern_status copy_blocks(void *state, uint32_t group, const struct tern_block_copy *copies,
                               size_t n, tern_error *err)
{
    (void)err;
    const struct tern_cpu *c = state;
    const struct tern_cpu_pool *p = &c->pools[group];
    const struct tern_kv_group *g = &c->program->kv_groups[group];
    for (size_t i = 0; i < n; i++)
        for (uint32_t layer = 0; layer < g->n_layers; layer++)
            for (uint32_t h = 0; h < g->n_kv_heads; h++) {
                memcpy(tern_cpu_keys(p, layer, h, copies[i].to),
                       tern_cpu_keys(p, layer, h, copies[i].from), p->k_bytes);
                memcpy(tern_cpu_values(p, layer, h, copies[i].to),
                       tern_cpu_values(p, layer, h, copies[i].from), p->v_bytes);
            }
    return TERN_OK;
}

static float highest(const void *state, const float *x, size_t n)
{
    const struct tern_cpu *c = state;
    return c->kernels->highest(x, n);
}

static void exp_row(const void *state, float *x, size_t n, float max, float t)
{
    const struct tern_cpu *c = state;
    c->kernels->exp_row(x, n, max, t);
}

static void keep_timings(void *state, bool on)
{
    struct tern_cpu *c = state;
    c->keeps_timings = on;
    for (uint32_t i = 0; i < c->limits.n_threads; i++)
        c->threads[i].n_timings = 0;
}

static void close_state(void *state)
{
    (void)state; /* nothing is held beyond the caller's arenas */
}

const struct tern_backend tern_backend_cpu = {
    .name = "cpu",
    .n_devices = n_devices,
    .describe = describe,
    .can_run = can_run,
    .plan = plan,
    .open = open_state,
    .upload = upload,
    .submit = submit,
    .wait = wait_logits,
    .hidden = hidden,
    .copy_blocks = copy_blocks,
    .block_bytes = tern_cpu_block_bytes,
    .read_block = tern_cpu_read_block,
    .write_block = tern_cpu_write_block,
    .read_weight = tern_cpu_read_weight,
    .highest = highest,
    .exp_row = exp_row,
    .keep_timings = keep_timings,
    .timing_at = tern_cpu_timed_at,
    .close = close_state,
};
