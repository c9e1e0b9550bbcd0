#include "tests/backend/trace.h"

#include "runtime/real.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

uint32_t trace_below(struct trace_random *r, uint32_t n)
{
    r->state = mix(r->state + 1, 0x1234567);
    return (uint32_t)(r->state >> 33) % n;
}

/* --- what must come out --- */

static uint32_t first_key(uint32_t window, uint32_t at)
{
    return !window || at < window ? 0 : at + 1 - window;
}

void trace_text_push(struct trace_text *t, tern_token token)
{
    const uint32_t at = t->n++;
    uint64_t h = mix(at, (uint64_t)token);
    for (uint32_t g = 0; g < t->program->n_kv_groups; g++)
        for (uint32_t q = first_key(t->program->kv_groups[g].window, at); q < at; q++)
            h = mix(h, t->cells[g][q]);
    for (uint32_t g = 0; g < t->program->n_kv_groups; g++)
        t->cells[g][at] = mix(h, g + 1);
    t->tokens[at] = token;
    t->state = h;
}

void trace_logits(uint64_t state, float *logits)
{
    for (uint32_t i = 0; i < TRACE_VOCAB; i++)
        logits[i] = (float)(mix(state, i) >> 41) * 0x1p-20f;
}

tern_token trace_text_next(const struct trace_text *t)
{
    float logits[TRACE_VOCAB];
    trace_logits(t->state, logits);
    tern_token best = 0;
    for (tern_token i = 1; i < TRACE_VOCAB; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* --- the backend --- */

static uint32_t n_devices(void)
{
    return 1;
}

static tern_status describe(uint32_t device, struct tern_device *out, tern_error *err)
{
    (void)device, (void)err;
    *out = (struct tern_device){.name = "trace", .shares_host_memory = true};
    return TERN_OK;
}

static bool can_run(const struct tern_model *model, const struct tern_op *op)
{
    (void)model;
    return op->kind < TERN_N_OPS;
}

static tern_status plan(const struct tern_model *model, const struct tern_backend_plan *p,
                        tern_arena_need arenas[TERN_N_ARENAS], tern_error *err)
{
    (void)err;
    size_t kv = 0;
    for (uint32_t g = 0; g < model->program.n_kv_groups; g++)
        kv += (size_t)p->n_blocks[g] * TERN_BLOCK_TOKENS * sizeof(uint64_t);
    arenas[TERN_ARENA_WEIGHTS].bytes = (size_t)tern_load_total(model);
    arenas[TERN_ARENA_KV] = (tern_arena_need){"kv", kv, 4096};
    arenas[TERN_ARENA_ACTIVATIONS].bytes =
        sizeof(struct trace_state) +
        (size_t)p->limits->n_logit_rows * TRACE_VOCAB * sizeof(float);
    arenas[TERN_ARENA_SCRATCH].bytes = 100;
    return TERN_OK;
}

static tern_status open_state(const struct tern_model *model, const struct tern_backend_plan *p,
                              const tern_memory arenas[TERN_N_ARENAS], const tern_host *host,
                              void **out, tern_error *err)
{
    (void)host, (void)err;
    struct trace_state *s = arenas[TERN_ARENA_ACTIVATIONS].data;
    *s = (struct trace_state){.program = model->program, .limits = *p->limits, .nan_token = -1};
    s->least_rows = UINT32_MAX;
    s->logits = (float *)(s + 1);
    uint64_t *cells = arenas[TERN_ARENA_KV].data;
    for (uint32_t g = 0; g < model->program.n_kv_groups; g++) {
        s->n_blocks[g] = p->n_blocks[g];
        s->cells[g] = cells;
        cells += (size_t)p->n_blocks[g] * TERN_BLOCK_TOKENS;
    }
    *out = s;
    return TERN_OK;
}

static tern_status upload(void *state, uint32_t weight, uint32_t first_row, uint32_t n_rows,
                          const void *rows, tern_error *err)
{
    (void)err;
    struct trace_state *s = state;
    if (first_row % 16)
        s->fault = "upload: rows of half a panel";
    /* The file's bytes tell where they were, so a sum over rows tells what was read. */
    const size_t stride = s->program.weights[weight].n_cols * sizeof(float);
    for (uint32_t i = 0; i < n_rows; i++)
        s->uploaded += (first_row + i + 1) * (uint64_t)((const unsigned char *)rows)[i * stride];
    return TERN_OK;
}

static void fault(struct trace_state *s, bool broken, const char *what)
{
    if (broken && !s->fault)
        s->fault = what;
}

static const uint32_t *table_of(const struct tern_batch *b, uint32_t group, uint32_t slot)
{
    return b->tables[group * b->n_slots + slot];
}

static uint64_t *cell(struct trace_state *s, const struct tern_batch *b, uint32_t g, uint32_t slot,
                      uint32_t at)
{
    static uint64_t nowhere;
    const uint32_t block = table_of(b, g, slot)[at / TERN_BLOCK_TOKENS];
    if (block >= s->n_blocks[g]) {
        fault(s, true, "batch: a visible position has no block");
        return &nowhere;
    }
    return &s->cells[g][(size_t)block * TERN_BLOCK_TOKENS + at % TERN_BLOCK_TOKENS];
}

/* A block that is written to is in no other table. */
static void check_alone(struct trace_state *s, const struct tern_batch *b, uint32_t g,
                        uint32_t slot, uint32_t at)
{
    const uint32_t n = (s->limits.n_ctx + TERN_BLOCK_TOKENS - 1) / TERN_BLOCK_TOKENS;
    const uint32_t block = table_of(b, g, slot)[at / TERN_BLOCK_TOKENS];
    for (uint32_t other = 0; other < b->n_slots; other++)
        for (uint32_t i = 0; other != slot && i < n; i++)
            fault(s, table_of(b, g, other)[i] == block, "batch: a shared block is written");
}

static uint64_t run_row(struct trace_state *s, const struct tern_batch *b, uint32_t slot,
                        uint32_t at, tern_token token)
{
    uint64_t h = mix(at, (uint64_t)token);
    const struct tern_program *p = &s->program;
    for (uint32_t g = 0; g < p->n_kv_groups; g++)
        for (uint32_t q = first_key(p->kv_groups[g].window, at); q < at; q++)
            h = mix(h, *cell(s, b, g, slot, q));
    for (uint32_t g = 0; g < p->n_kv_groups; g++) {
        check_alone(s, b, g, slot, at);
        *cell(s, b, g, slot, at) = mix(h, g + 1);
    }
    return h;
}

static void run_span(struct trace_state *s, const struct tern_batch *b,
                     const struct tern_span *span, uint32_t *n_logits)
{
    for (uint32_t i = 0; i < span->n_rows; i++) {
        const uint32_t row = span->first_row + i;
        fault(s, b->positions[row] != span->position + i, "batch: a position is not its span's");
        const uint64_t h = run_row(s, b, span->slot, span->position + i, b->tokens[row]);
        if (*n_logits == b->n_logits || b->logit_rows[*n_logits] != row)
            continue;
        float *logits = s->logits + (size_t)(*n_logits)++ * TRACE_VOCAB;
        trace_logits(h, logits);
        if (b->positions[row] + 1 < s->n_script)
            logits[s->script[b->positions[row] + 1]] = 1000;
        if (b->tokens[row] == s->nan_token)
            logits[5] = (float)(1e300 * 1e300 - 1e300 * 1e300);
    }
}

static tern_status submit(void *state, const struct tern_batch *b, tern_error *err)
{
    struct trace_state *s = state;
    uint32_t n_rows = 0, n_logits = 0;
    if (s->fail_in && !--s->fail_in) {
        if (err && !err->status)
            *err = (tern_error){.status = s->fail_with, .text = "trace: told to fail"};
        return s->fail_with;
    }
    fault(s, !b->n_rows || b->n_rows > s->limits.chunk, "batch: rows outside 1 .. chunk");
    fault(s, b->n_logits > s->limits.n_logit_rows, "batch: too many logits");
    fault(s, b->n_slots != s->limits.n_seqs, "batch: slots are not the limits'");
    for (uint32_t i = 0; i < b->n_spans; i++) {
        fault(s, b->spans[i].first_row != n_rows, "batch: spans are not in order");
        run_span(s, b, &b->spans[i], &n_logits);
        n_rows += b->spans[i].n_rows;
    }
    fault(s, n_rows != b->n_rows || n_logits != b->n_logits, "batch: counts do not add up");
    s->n_submits++;
    s->n_rows += n_rows;
    if (n_rows > s->most_rows)
        s->most_rows = n_rows;
    if (n_rows < s->least_rows)
        s->least_rows = n_rows;
    return TERN_OK;
}

static tern_status wait_for(void *state, const float **logits, size_t *stride, tern_error *err)
{
    (void)err;
    *logits = ((struct trace_state *)state)->logits;
    *stride = TRACE_VOCAB;
    return TERN_OK;
}

/* As many of the logits, with their signs turned. */
static tern_status hidden(const void *state, uint32_t i, float *out, tern_error *err)
{
    (void)err;
    const struct trace_state *s = state;
    for (uint32_t k = 0; k < s->program.n_embd; k++)
        out[k] = -s->logits[(size_t)i * TRACE_VOCAB + k];
    return TERN_OK;
}

static tern_status copy_blocks(void *state, uint32_t group, const struct tern_block_copy *copies,
                               size_t n, tern_error *err)
{
    (void)err;
    struct trace_state *s = state;
    for (size_t i = 0; i < n; i++) {
        const size_t size = TERN_BLOCK_TOKENS;
        memcpy(s->cells[group] + copies[i].to * size, s->cells[group] + copies[i].from * size,
               size * sizeof(uint64_t));
        s->n_copies++;
    }
    return TERN_OK;
}

/* --- sessions: a block is its 16 numbers --- */

static size_t block_bytes(const void *state, uint32_t group)
{
    (void)state, (void)group;
    return TERN_BLOCK_TOKENS * sizeof(uint64_t);
}

static tern_status read_block(const void *state, uint32_t group, uint32_t layer, uint32_t block,
                              void *to, tern_error *err)
{
    (void)layer, (void)err;
    const struct trace_state *s = state;
    memcpy(to, s->cells[group] + (size_t)block * TERN_BLOCK_TOKENS, block_bytes(s, group));
    return TERN_OK;
}

static tern_status write_block(void *state, uint32_t group, uint32_t layer, uint32_t block,
                               const void *from, tern_error *err)
{
    (void)layer, (void)err;
    struct trace_state *s = state;
    memcpy(s->cells[group] + (size_t)block * TERN_BLOCK_TOKENS, from, block_bytes(s, group));
    return TERN_OK;
}

static size_t read_weight(const void *state, uint32_t weight, uint32_t row, uint32_t col, void *to)
{
    const struct trace_state *s = state;
    const uint64_t sample = mix(mix(mix(s->uploaded, weight), row), col);
    memcpy(to, &sample, sizeof sample);
    return sizeof sample;
}

static float highest(const void *state, const float *x, size_t n)
{
    (void)state;
    return tern_highest(x, n);
}

static void exp_row(const void *state, float *x, size_t n, float max, float t)
{
    (void)state;
    tern_exp_row(x, n, max, t);
}

static void keep_timings(void *state, bool on)
{
    (void)state, (void)on;
}

static bool timing_at(const void *state, size_t i, tern_timing *out)
{
    (void)state, (void)i, (void)out;
    return false;
}

static void close_state(void *state)
{
    ((struct trace_state *)state)->closed = true;
}

const struct tern_backend trace_backend = {
    .name = "trace", .n_devices = n_devices, .describe = describe, .can_run = can_run,
    .plan = plan, .open = open_state, .upload = upload, .submit = submit, .wait = wait_for,
    .hidden = hidden,
    .copy_blocks = copy_blocks, .block_bytes = block_bytes, .read_block = read_block,
    .write_block = write_block, .read_weight = read_weight, .highest = highest, .exp_row = exp_row,
    .keep_timings = keep_timings, .timing_at = timing_at, .close = close_state,
};

/* --- model and engine --- */

static bool read_file(void *self, uint64_t offset, void *dst, size_t n)
{
    struct trace_rig *rig = self;
    rig->n_reads++;
    if (rig->read_fails || offset > rig->source.size || n > rig->source.size - offset)
        return false;
    memcpy(dst, rig->file + offset, n);
    return true;
}

static void release_file(void *self, uint64_t offset, uint64_t n)
{
    (void)offset;
    ((struct trace_rig *)self)->n_released += n;
}

static tern_text text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

void trace_model(struct trace_rig *rig, const uint32_t *windows, uint32_t n_groups)
{
    /* A vector, a matrix of wide rows, one of 40 short rows. */
    static const struct { const char *name; uint32_t n_rows, n_cols; bool matrix; } shapes[] = {
        {"norm", 1, 64, false}, {"wide", 33, 10000, true}, {"embd", 40, 64, true}};
    *rig = (struct trace_rig){0};
    uint64_t at = 128;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t bytes = 4ull * shapes[i].n_rows * shapes[i].n_cols;
        rig->weights[i] = (struct tern_weight){i, shapes[i].matrix, shapes[i].n_rows,
                                               shapes[i].n_cols};
        rig->tensors[i] = (struct tern_tensor){.name = text_of(shapes[i].name), .n_dims = 2,
                                               .dims = {shapes[i].n_cols, shapes[i].n_rows, 1, 1},
                                               .offset = at, .bytes = bytes};
        at += bytes;
    }
    rig->file = malloc(at);
    for (uint64_t i = 0; i < at; i++)
        rig->file[i] = (unsigned char)(i / 40000);
    rig->source = (tern_source){.size = at, .read = read_file, .release = release_file,
                                .self = rig};
    rig->op = (struct tern_op){.kind = TERN_OP_EMBED};
    rig->model = (tern_model){.parts = &rig->source, .n_parts = 1, .n_tensors = 3,
                              .tensors = rig->tensors, .file_bytes = at, .memory_bytes = 100};
    rig->model.program = (struct tern_program){
        .n_layers = n_groups, .n_embd = 64, .n_vocab = TRACE_VOCAB, .n_ctx_train = 128,
        .n_ops = 1, .n_weights = 3, .n_kv_groups = n_groups, .ops = &rig->op,
        .weights = rig->weights};
    for (uint32_t g = 0; g < n_groups; g++)
        rig->model.program.kv_groups[g] = (struct tern_kv_group){1, 1, 4, 4, windows[g]};
}

tern_status trace_open(struct trace_rig *rig, const tern_limits *limits)
{
    tern_status status = tern_plan_make(&rig->model, &trace_backend, limits, &rig->plan,
                                        &rig->error);
    for (uint32_t i = 0; !status && i < TERN_N_ARENAS; i++) {
        const tern_arena_need *need = &rig->plan.arenas[i];
        const size_t size = (need->bytes + 4095) / 4096 * 4096;
        rig->arenas[i] = (tern_memory){aligned_alloc(4096, size ? size : 4096), need->bytes};
        memset(rig->arenas[i].data, 0xa5, size);
    }
    if (!status)
        status = tern_engine_init(&rig->plan, rig->arenas, &rig->model, &trace_backend, NULL,
                                  &rig->engine, &rig->error);
    while (!status && (status = tern_engine_load(rig->engine, 1, NULL, NULL)) == TERN_AGAIN)
        status = TERN_OK;
    if (!status)
        rig->trace = rig->engine->state;
    return status;
}

void trace_close(struct trace_rig *rig)
{
    tern_engine_close(rig->engine);
    for (uint32_t i = 0; i < TERN_N_ARENAS; i++)
        free(rig->arenas[i].data);
    free(rig->file);
}

tern_seq_options trace_greedy(void)
{
    return (tern_seq_options){.sampling = {.top_p = 1, .typical_p = 1, .repeat_penalty = 1}};
}

tern_status trace_drive(struct trace_rig *rig, struct trace_log *log, size_t cap,
                        uint32_t n_steps)
{
    tern_event events[16];
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n_steps && !status; i++) {
        size_t n = 0;
        status = tern_step(rig->engine, events, cap, &n);
        for (size_t k = 0; k < n && log->n < sizeof log->items / sizeof *log->items; k++) {
            log->items[log->n].event = events[k];
            if (events[k].error)
                strncpy(log->items[log->n].error, events[k].error, 63);
            log->n++;
        }
    }
    return status;
}

int trace_matches(const struct trace_rig *rig, const struct trace_log *log, tern_seq seq,
                  const tern_token *prompt, uint32_t n_prompt)
{
    struct trace_text *t = calloc(1, sizeof *t);
    t->program = &rig->model.program;
    for (uint32_t i = 0; i < n_prompt; i++)
        trace_text_push(t, prompt[i]);
    int n = 0;
    for (uint32_t i = 0; i < log->n && n >= 0; i++) {
        const tern_event *event = &log->items[i].event;
        if (event->seq != seq || event->kind != TERN_EVENT_TOKEN)
            continue;
        n = event->token == trace_text_next(t) && event->position == t->n ? n + 1 : -1;
        trace_text_push(t, event->token);
    }
    free(t);
    return n;
}

tern_stop trace_stop_of(const struct trace_log *log, tern_seq seq)
{
    tern_stop stop = TERN_STOP_NONE;
    for (uint32_t i = 0; i < log->n; i++)
        if (log->items[i].event.seq == seq && log->items[i].event.kind == TERN_EVENT_DONE)
            stop = log->items[i].event.stop;
    return stop;
}

/* --- the cache's books --- */

static const char *check_pool(const struct tern_kv *kv, uint32_t g)
{
    const struct tern_kv_pool *pool = &kv->pools[g];
    uint32_t n_free = 0;
    for (uint32_t b = 0; b < pool->n_blocks; b++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < kv->n_slots; s++)
            for (uint32_t i = 0; i < kv->n_entries; i++)
                n += kv->tables[g * kv->n_slots + s][i] == b;
        if (n != pool->blocks[b].n_refs)
            return "a block's count is not the tables that hold it";
        const uint32_t node = pool->blocks[b].node;
        if (node != TERN_NO_NODE && kv->prefix.nodes[node].blocks[g] != b)
            return "a block's node does not name it";
    }
    for (uint32_t b = pool->first; b != TERN_NO_BLOCK; b = pool->blocks[b].next) {
        if (pool->blocks[b].n_refs)
            return "a block in use is in the free list";
        if (++n_free > pool->n_blocks)
            return "the free list has no end";
    }
    return n_free == pool->n_free ? NULL : "free blocks are not all listed";
}

static const char *check_nodes(const struct tern_kv *kv)
{
    const struct tern_prefix *p = &kv->prefix;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t refs = 0, blocks = 0;
        if (!p->nodes[i].used)
            continue;
        for (uint32_t k = 0; k < p->n_nodes; k++)
            refs += p->nodes[k].used && p->nodes[k].parent == i;
        for (uint32_t s = 0; s < kv->n_slots; s++)
            refs += kv->seqs[s].node == i;
        for (uint32_t g = 0; g < kv->n_groups; g++)
            blocks += p->nodes[i].blocks[g] != TERN_NO_BLOCK;
        if (refs != p->nodes[i].n_refs)
            return "a node's count is not its holders";
        if (!refs && !blocks)
            return "a node that nothing needs is kept";
        if (p->nodes[i].parent != TERN_NO_NODE && !p->nodes[p->nodes[i].parent].used)
            return "a node's parent is gone";
    }
    return NULL;
}

const char *trace_check_kv(const tern_engine *e)
{
    const char *wrong = check_nodes(&e->parts.kv);
    for (uint32_t g = 0; !wrong && g < e->parts.kv.n_groups; g++)
        wrong = check_pool(&e->parts.kv, g);
    return wrong;
}
