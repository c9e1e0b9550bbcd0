/* attend.c: attention over KV blocks that are panels.
 *
 * A tile is up to 16 query rows (neighbouring tokens of one sequence, times the heads that share
 * one KV head), so that keys and values are read once for all of them. Its keys are walked in
 * chunks of 256 absolute positions: scores by the matrix kernels (16 tokens of keys are a panel),
 * softmax, values, then a merge from left to right. An item is a tile, or, of many, some
 * neighbouring ones that walk the chunks side by side. When rows are few and the
 * context is long, chunks become items of their own; their partial results are merged by the
 * same operations in the same order, so the bits do not tell.
 */
#include "platform/cpu/cpu.h"
#include "platform/cpu/kv_store.h"

#include <math.h>
#include <string.h>

struct tile {
    const struct tern_op *op;
    const struct tern_kv_group *group;
    const struct tern_cpu_pool *pool;
    const uint8_t *keys, *values; /* block 0 of the layer and head */
    const uint32_t *table;        /* of the sequence */
    uint32_t first_row, n_tokens; /* rows of the batch */
    uint32_t kv_head, first_head, n_heads;
    uint32_t position; /* of the first token */
    struct tern_acts acts;
    float m[TERN_TILE_ROWS], l[TERN_TILE_ROWS], *sum; /* of the chunks so far */
    bool asks_for_values, asks_for_keys; /* of this chunk, of the next one: nobody else does */
};

/* How a batch is cut: heads of one KV head in parts of at most 16, tokens to fill the tile. */
struct cut {
    uint32_t heads, parts, tokens, n_tiles, n_items, n_chunks; /* items: heads beside each other */
    uint32_t together; /* tiles that walk the chunks side by side */
    bool split;
};

static struct cut cut_batch(const struct tern_cpu *c, const struct tern_op *op,
                            const struct tern_kv_group *g)
{
    const uint32_t share = op->n_heads / g->n_kv_heads;
    struct cut cut = {.heads = share < TERN_TILE_ROWS ? share : TERN_TILE_ROWS};
    cut.parts = (share + cut.heads - 1) / cut.heads;
    cut.tokens = TERN_TILE_ROWS / cut.heads;
    uint32_t furthest = 0;
    for (uint32_t i = 0; i < c->batch->n_spans; i++) {
        const struct tern_span *s = &c->batch->spans[i];
        cut.n_tiles += (s->n_rows + cut.tokens - 1) / cut.tokens;
        if (s->position + s->n_rows > furthest)
            furthest = s->position + s->n_rows;
    }
    cut.n_items = cut.n_tiles * g->n_kv_heads * cut.parts;
    cut.n_chunks = (furthest + TERN_CHUNK - 1) / TERN_CHUNK;
    cut.together = cut.n_chunks == 1 || cut.n_items < 32 * c->limits.n_threads
                       ? 1
                       : TERN_TILES_TOGETHER;
    cut.split = c->limits.n_threads > 1 && c->batch->n_rows <= TERN_FEW_ROWS && cut.n_chunks > 1 &&
                cut.n_items < 8 * c->limits.n_threads;
    return cut;
}

static struct tile tile_at(const struct tern_cpu *c, const struct tern_op *op,
                           const struct cut *cut, uint32_t item)
{
    const struct tern_kv_layer *layer = &c->program->kv_layers[op->index];
    const struct tern_kv_group *g = &c->program->kv_groups[layer->group];
    const uint32_t share = op->n_heads / g->n_kv_heads;
    struct tile t = {.op = op,
                     .group = g,
                     .pool = &c->pools[layer->group],
                     .asks_for_values = true,
                     .asks_for_keys = true};
    const uint32_t part = item % cut->parts, tile = item / cut->parts / g->n_kv_heads;
    t.kv_head = item / cut->parts % g->n_kv_heads;
    t.keys = tern_cpu_keys(t.pool, layer->index_in_group, t.kv_head, 0);
    t.values = tern_cpu_values(t.pool, layer->index_in_group, t.kv_head, 0);
    t.first_head = t.kv_head * share + part * cut->heads;
    t.n_heads = share - part * cut->heads < cut->heads ? share - part * cut->heads : cut->heads;
    uint32_t before = 0;
    for (uint32_t i = 0; i < c->batch->n_spans; i++) {
        const struct tern_span *s = &c->batch->spans[i];
        const uint32_t n = (s->n_rows + cut->tokens - 1) / cut->tokens;
        if (tile < before + n) {
            const uint32_t at = (tile - before) * cut->tokens;
            t.first_row = s->first_row + at;
            t.n_tokens = s->n_rows - at < cut->tokens ? s->n_rows - at : cut->tokens;
            t.position = s->position + at;
            t.table = c->batch->tables[layer->group * c->batch->n_slots + s->slot];
            break;
        }
        before += n;
    }
    return t;
}

/* Queries of the at-th tile of a thread, closed up: row token * n_heads + head; records where keys
 * are integers. */
static void gather_queries(const struct tern_cpu *c, struct tile *t,
                           const struct tern_cpu_thread *th, uint32_t at)
{
    const uint32_t dim = t->group->k_dim, blocks = (dim + 31) / 32, rows = at * TERN_TILE_ROWS;
    float *x = th->queries + (size_t)rows * dim, *d = th->query_records.d + (size_t)rows * blocks;
    int8_t *q = th->query_records.q + (size_t)rows * blocks * 32;
    int16_t *sum = th->query_records.sum + (size_t)rows * blocks * 2;
    for (uint32_t i = 0; i < t->n_tokens; i++)
        memcpy(x + (size_t)i * t->n_heads * dim,
               tern_cpu_row(c, false, t->op->a, t->first_row + i) + (size_t)t->first_head * dim,
               (size_t)t->n_heads * dim * sizeof(float));
    const uint32_t n = t->n_tokens * t->n_heads;
    t->acts = (struct tern_acts){n, x, dim, q, d, sum, blocks};
    t->sum = th->sum + (size_t)rows * t->group->v_dim;
    for (uint32_t r = 0; r < n; r++) {
        t->m[r] = -INFINITY;
        t->l[r] = 0;
        if (!tern_kv_is_rotated(c->k_type))
            continue;
        c->kernels->hadamard(x + (size_t)r * dim, dim);
        c->kernels->quantize(q + (size_t)r * blocks * 32, d + (size_t)r * blocks,
                             sum + (size_t)r * blocks * 2, x + (size_t)r * dim, dim);
    }
}

/* What a tile sees of a chunk: lo .. hi of each row, least .. most of all, and where it lies. */
struct seen {
    uint16_t lo[TERN_TILE_ROWS], hi[TERN_TILE_ROWS];
    uint32_t least, most;
    const uint8_t *keys[TERN_CHUNK / TERN_BLOCK_TOKENS], *values[TERN_CHUNK / TERN_BLOCK_TOKENS];
    const uint8_t *next[TERN_CHUNK / TERN_BLOCK_TOKENS]; /* keys of the next chunk */
};

static uint16_t within(uint64_t position, uint64_t base)
{
    return (uint16_t)(position <= base                ? 0
                      : position - base < TERN_CHUNK ? position - base
                                                     : TERN_CHUNK);
}

static void find_blocks(const struct tile *t, uint32_t chunk, struct seen *seen)
{
    const uint32_t *table = t->table + chunk * (TERN_CHUNK / TERN_BLOCK_TOKENS);
    const uint64_t after = (uint64_t)(chunk + 1) * TERN_CHUNK, end = t->position + t->n_tokens;
    for (uint32_t b = 0; b < TERN_CHUNK / TERN_BLOCK_TOKENS; b++) {
        seen->keys[b] = seen->values[b] = seen->next[b] = NULL;
        if (t->asks_for_keys && after + b * TERN_BLOCK_TOKENS < end)
            seen->next[b] =
                t->keys + table[b + TERN_CHUNK / TERN_BLOCK_TOKENS] * t->pool->k_bytes;
        if ((b + 1) * TERN_BLOCK_TOKENS <= seen->least || b * TERN_BLOCK_TOKENS >= seen->most)
            continue;
        seen->keys[b] = t->keys + table[b] * t->pool->k_bytes;
        seen->values[b] = t->values + table[b] * t->pool->v_bytes;
    }
}

/* Answers whether any row of the tile sees a key of the chunk. */
static bool visible(const struct tile *t, uint32_t chunk, struct seen *seen)
{
    const uint64_t base = (uint64_t)chunk * TERN_CHUNK, window = t->group->window;
    seen->least = TERN_CHUNK;
    seen->most = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        const uint64_t end = (uint64_t)t->position + i + 1;
        uint16_t from = within(window && end > window ? end - window : 0, base);
        uint16_t to = within(end, base);
        if (from >= to)
            from = to = 0;
        for (uint32_t h = 0; h < t->n_heads; h++) {
            seen->lo[i * t->n_heads + h] = from;
            seen->hi[i * t->n_heads + h] = to;
        }
        if (from < to) {
            seen->least = from < seen->least ? from : seen->least;
            seen->most = to > seen->most ? to : seen->most;
        }
    }
    if (seen->most)
        find_blocks(t, chunk, seen);
    return seen->most > 0;
}

/* Bytes of a block's values that are asked for while scores are computed. */
static size_t asked_by_scores(const struct tile *t)
{
    return t->pool->v_bytes / 128 * 64;
}

/* Asks for the others of some blocks, part `part` of n_parts, before a row's softmax. */
static void ask_for_values(const struct tile *t, const struct seen *seen, uint32_t part,
                           uint32_t n_parts)
{
    enum { N_BLOCKS = TERN_CHUNK / TERN_BLOCK_TOKENS };
    const size_t asked = asked_by_scores(t);
    for (uint32_t b = part * N_BLOCKS / n_parts; b < (part + 1) * N_BLOCKS / n_parts; b++)
        if (seen->values[b])
            tern_cpu_ask(seen->values[b] + asked, t->pool->v_bytes - asked);
}

static void score_chunk(const struct tern_cpu *c, const struct tile *t,
                        const struct tern_cpu_thread *th, const struct seen *seen)
{
    const struct tern_kernels *k = c->kernels;
    const enum tern_type type = c->k_type;
    const struct tern_scores s = {
        .block = seen->keys,
        .first = seen->least / TERN_BLOCK_TOKENS,
        .last = (seen->most + TERN_BLOCK_TOKENS - 1) / TERN_BLOCK_TOKENS,
        .format = tern_format_of(type),
        .n_cols = tern_kv_k_cols(type, t->group->k_dim),
        .acts = &t->acts,
        .scale = t->op->x,
        .s = th->scores,
        .matmul = tern_kernels_matmul(k, type, false),
        .scratch = th->matmul,
        .ahead = t->asks_for_values ? seen->values : NULL,
        .ahead_bytes = asked_by_scores(t),
    };
    (type == TERN_TYPE_F16    ? k->scores_f16
     : type == TERN_TYPE_F32  ? k->scores_f32
     : type == TERN_TYPE_Q8_0 ? k->scores_q8_0
                              : k->scores_q4_0)(&s);
}

static void add_values(const struct tern_cpu *c, const struct tile *t,
                       const struct tern_cpu_thread *th, const struct seen *seen)
{
    const struct tern_kernels *k = c->kernels;
    const enum tern_type type = c->v_type;
    const struct tern_values v = {
        .block = seen->values,
        .dim = t->group->v_dim,
        .n_rows = t->acts.n_tokens,
        .row_bytes = t->pool->v_row_bytes,
        .p = th->scores,
        .lo = seen->lo,
        .hi = seen->hi,
        .o = th->part,
        .o_stride = t->group->v_dim,
        .scratch = th->matmul,
        .ahead = seen->next,
        .ahead_bytes = t->pool->k_bytes,
    };
    (type == TERN_TYPE_F16    ? k->values_f16
     : type == TERN_TYPE_F32  ? k->values_f32
     : type == TERN_TYPE_Q8_0 ? k->values_q8_0
                              : k->values_q4_0)(&v);
}

/* One chunk of a tile: m and l of each row and o in th->part. False when no row sees a key. */
static bool run_chunk(const struct tern_cpu *c, const struct tile *t,
                      const struct tern_cpu_thread *th, uint32_t chunk, float *m, float *l)
{
    struct seen seen;
    if (!visible(t, chunk, &seen))
        return false;
    score_chunk(c, t, th, &seen);
    for (uint32_t r = 0; r < t->acts.n_tokens; r++) {
        float *s = th->scores + r * TERN_CHUNK;
        const uint16_t lo = seen.lo[r], hi = seen.hi[r];
        if (t->asks_for_values)
            ask_for_values(t, &seen, r, (uint32_t)t->acts.n_tokens);
        l[r] = 0;
        if (lo == hi)
            continue;
        if (t->op->y != 0)
            c->kernels->softcap(s + lo, s + lo, t->op->y, hi - lo);
        l[r] = c->kernels->softmax(s, lo, hi, &m[r]);
    }
    add_values(c, t, th, &seen);
    return true;
}

static void finish_row(const struct tern_cpu *c, const struct tern_op *op, uint32_t row,
                       uint32_t head, const float *o, float l, uint32_t dim)
{
    float *dst = tern_cpu_row(c, false, op->dst, row) + (size_t)head * dim;
    c->kernels->finish(dst, o, l, dim);
    if (tern_kv_is_rotated(c->v_type))
        c->kernels->hadamard(dst, dim);
}

static void add_chunk(const struct tern_cpu *c, struct tile *t, const struct tern_cpu_thread *th,
                      uint32_t chunk)
{
    float m[TERN_TILE_ROWS], l[TERN_TILE_ROWS];
    const uint32_t dim = t->group->v_dim;
    if (!run_chunk(c, t, th, chunk, m, l))
        return;
    for (uint32_t r = 0; r < t->acts.n_tokens; r++)
        if (l[r] != 0)
            c->kernels->merge(&t->m[r], &t->l[r], t->sum + (size_t)r * dim, m[r], l[r],
                              th->part + (size_t)r * dim, dim);
}

static void finish_tile(const struct tern_cpu *c, const struct tile *t)
{
    const uint32_t dim = t->group->v_dim;
    for (uint32_t r = 0; r < t->acts.n_tokens; r++)
        finish_row(c, t->op, t->first_row + r / t->n_heads, t->first_head + r % t->n_heads,
                   t->sum + (size_t)r * dim, t->l[r], dim);
}

/* Neighbouring tiles of one sequence and KV head: chunk by chunk, so that keys and values come once
 * for all of them. The first asks for them, and the last for the next keys. */
static void whole_tiles(const struct tern_cpu *c, struct tile *t, uint32_t n,
                        const struct tern_cpu_thread *th)
{
    const uint32_t w = t->group->window;
    uint32_t first = UINT32_MAX, end = 0;
    for (uint32_t i = 0; i < n; i++) {
        gather_queries(c, &t[i], th, i);
        t[i].asks_for_values = i == 0;
        t[i].asks_for_keys = i == n - 1;
        const uint32_t after = t[i].position + t[i].n_tokens;
        first = t[i].position < first ? t[i].position : first;
        end = after > end ? after : end;
    }
    uint32_t chunk = w && first + 1 > w ? (first + 1 - w) / TERN_CHUNK : 0;
    for (; chunk * TERN_CHUNK < end; chunk++)
        for (uint32_t i = 0; i < n; i++)
            add_chunk(c, &t[i], th, chunk);
    for (uint32_t i = 0; i < n; i++)
        finish_tile(c, &t[i]);
}

/* One chunk of a tile to the partial results, which merge_rows reads after the barrier. */
static void part_of_tile(struct tern_cpu *c, const struct tile *t,
                         const struct tern_cpu_thread *th, uint32_t chunk)
{
    float m[TERN_TILE_ROWS], l[TERN_TILE_ROWS];
    const uint32_t dim = t->group->v_dim;
    const struct tern_cpu_partials *p = &c->partials;
    const bool any = run_chunk(c, t, th, chunk, m, l);
    for (uint32_t r = 0; r < t->acts.n_tokens; r++) {
        const size_t at = ((size_t)(t->first_row + r / t->n_heads) * t->op->n_heads +
                           t->first_head + r % t->n_heads) *
                              p->n_chunks +
                          chunk;
        p->l[at] = any ? l[r] : 0;
        if (!any || l[r] == 0)
            continue;
        p->m[at] = m[r];
        memcpy(p->o + at * p->widest, th->part + (size_t)r * dim, dim * sizeof(float));
    }
}

static void merge_row(const struct tern_cpu *c, const struct tern_op *op,
                      struct tern_cpu_thread *th, uint32_t item, uint32_t dim, uint32_t n_chunks)
{
    const struct tern_cpu_partials *p = &c->partials;
    float m = -INFINITY, l = 0;
    for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
        const size_t at = (size_t)item * p->n_chunks + chunk;
        if (p->l[at] != 0)
            c->kernels->merge(&m, &l, th->sum, p->m[at], p->l[at], p->o + at * p->widest, dim);
    }
    finish_row(c, op, item / op->n_heads, item % op->n_heads, th->sum, l, dim);
}

/* Tiles first .. last - 1 of the heads that are the k-th of those beside each other. */
static void run_tiles(const struct tern_cpu *c, const struct tern_op *op, const struct cut *cut,
                      const struct tern_cpu_thread *th, uint32_t first, uint32_t last, uint32_t k)
{
    const uint32_t beside = cut->n_items / cut->n_tiles;
    struct tile t[TERN_TILES_TOGETHER];
    while (first < last) {
        uint32_t n = 0;
        do
            t[n] = tile_at(c, op, cut, (first + n) * beside + k);
        while (t[n].table == t[0].table && ++n < last - first);
        whole_tiles(c, t, n, th);
        first += n;
    }
}

static void all_tiles(const struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread,
                      const struct cut *cut)
{
    const uint32_t n_lanes = tern_cpu_lanes(c, ph), together = cut->together;
    const uint32_t beside = cut->n_items / cut->n_tiles;
    uint32_t item, last;
    for (uint32_t k = 0; k < n_lanes; k++) {
        const struct tern_lane lane = tern_cpu_lane(c, ph, thread, k, n_lanes, cut->n_tiles);
        const uint32_t n_items = (lane.n + together - 1) / together * beside;
        if (!tern_cpu_joins(c, lane.counters, n_items, k))
            continue;
        while (tern_cpu_take(lane.counters, n_items, 1, &item, &last)) {
            const uint32_t first = item / beside * together;
            run_tiles(c, &c->program->ops[ph->first], cut, &c->threads[thread], lane.first + first,
                      lane.first + (lane.n - first < together ? lane.n : first + together),
                      item % beside);
        }
    }
}

void tern_cpu_attend(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread)
{
    const struct tern_op *op = &c->program->ops[ph->first];
    const struct tern_kv_group *g = &c->program->kv_groups[c->program->kv_layers[op->index].group];
    const struct cut cut = cut_batch(c, op, g);
    struct tern_cpu_thread *th = &c->threads[thread];
    uint32_t item, last;
    if (!cut.split) {
        all_tiles(c, ph, thread, &cut);
        return;
    }
    atomic_uint *counters = tern_cpu_lane(c, ph, thread, 0, 1, 0).counters;
    struct tile t;
    uint32_t tile = UINT32_MAX;
    /* Few takes: what a thread begins with, nobody has asked for ahead. */
    const uint32_t n = cut.n_items * cut.n_chunks;
    while (tern_cpu_take_part(counters, n, tern_cpu_parts(c, 1), 1, &item, &last))
        for (; item < last; item++) {
            if (item / cut.n_chunks != tile) {
                tile = item / cut.n_chunks;
                t = tile_at(c, op, &cut, tile);
                gather_queries(c, &t, th, 0);
            }
            part_of_tile(c, &t, th, item % cut.n_chunks);
        }
    tern_cpu_barrier(c, thread);
    while (tern_cpu_take(counters + 1, c->batch->n_rows * op->n_heads, 1, &item, &last))
        merge_row(c, op, th, item, g->v_dim, cut.n_chunks);
}
