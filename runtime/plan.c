/* plan.c: the bytes of every arena, from the header and the limits alone.
 *
 * Defaults are filled in first, so that a plan made again from its own limits is the same plan.
 * The backend says what it needs for weights, KV, activations and scratch; state and sampler
 * are measured by the same walk that lays them out.
 */
#include "runtime/arena.h"
#include "runtime/engine.h"
#include "runtime/error.h"

#include <string.h>

enum { MAX_CTX = 1 << 20, MAX_SEQS = 1024, MAX_CHUNK = 1 << 16, MAX_THREADS = 256 };
enum { MAX_LOGPROBS = 1024, MAX_STOP_BYTES = 1 << 16, BLOCK = TERN_BLOCK_TOKENS };

static const char *const arena_names[TERN_N_ARENAS] = {
    "model", "weights", "kv", "activations", "scratch", "state", "sampler",
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void fill_in(tern_limits *l, const tern_model *model)
{
    const uint32_t trained = model->program.n_ctx_train;
    if (!l->n_ctx)
        l->n_ctx = trained ? least(trained, 4096) : 4096;
    if (!l->n_seqs)
        l->n_seqs = 1;
    if (!l->n_threads)
        l->n_threads = 1;
    /* Of several threads each has rows of its own, too few of which are slower. */
    if (!l->chunk)
        l->chunk = least(l->n_threads > 1 ? 256 : 128, l->n_ctx);
    if (!l->n_logit_rows)
        l->n_logit_rows = least(l->n_seqs, l->chunk);
    if (!l->n_stop_bytes)
        l->n_stop_bytes = 1024;
    if (l->exact)
        l->k_type = l->v_type = TERN_KV_F32;
}

/* A sequence takes whole blocks, so the default rounds each one's context up. */
static void fill_in_kv(tern_limits *l)
{
    if (!l->n_kv_tokens)
        l->n_kv_tokens = l->n_seqs * ((l->n_ctx + BLOCK - 1) / BLOCK * BLOCK);
}

static tern_status check(const tern_limits *l, tern_error *err)
{
    const struct { const char *name; uint32_t value, most; } ranges[] = {
        {"n_ctx", l->n_ctx, MAX_CTX},
        {"n_seqs", l->n_seqs, MAX_SEQS},
        {"chunk", l->chunk, MAX_CHUNK},
        {"n_threads", l->n_threads, MAX_THREADS},
        {"n_logit_rows", l->n_logit_rows, least(l->chunk, MAX_CHUNK)},
        {"n_logprobs", l->n_logprobs, MAX_LOGPROBS},
        {"n_stop_bytes", l->n_stop_bytes, MAX_STOP_BYTES},
        {"k_type", (uint32_t)l->k_type, TERN_N_KV_TYPES - 1},
        {"v_type", (uint32_t)l->v_type, TERN_N_KV_TYPES - 1},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value > ranges[i].most)
            return tern_fail(err, TERN_BAD_ARGUMENT, "limits: %s %u, at most %u", ranges[i].name,
                             (uint64_t)ranges[i].value, (uint64_t)ranges[i].most);
    return TERN_OK;
}

static tern_status check_ops(const tern_model *model, const tern_backend *backend,
                             tern_error *err)
{
    if (!model->program.n_ops)
        return tern_fail(err, TERN_BAD_ARGUMENT, "model: it was read without its program");
    for (uint32_t i = 0; i < model->program.n_ops; i++)
        if (!backend->can_run(model, &model->program.ops[i]))
            return tern_fail(err, TERN_UNSUPPORTED, "backend %s: op %u of kind %u, not supported",
                             backend->name, (uint64_t)i,
                             (uint64_t)model->program.ops[i].kind);
    return TERN_OK;
}

static tern_status measure(const tern_model *model, tern_plan *plan, tern_error *err)
{
    struct tern_parts parts;
    struct tern_arena state = tern_arena_measure(), sampler = tern_arena_measure();
    tern_engine_lay_out(&state, &sampler, &parts, model, &plan->limits);
    if (state.failed || sampler.failed)
        return tern_fail(err, TERN_NO_MEMORY, "plan: the state's size passes %u bytes",
                         (uint64_t)SIZE_MAX);
    plan->arenas[TERN_ARENA_STATE].bytes = state.used;
    plan->arenas[TERN_ARENA_SAMPLER].bytes = sampler.used;

    size_t staging;
    const tern_status status = tern_load_staging(model, &staging, err);
    if (plan->arenas[TERN_ARENA_KV].bytes < staging)
        plan->arenas[TERN_ARENA_KV].bytes = staging;
    return status;
}

static tern_status sum_up(tern_plan *plan, tern_error *err)
{
    plan->bytes = 0;
    for (uint32_t i = 0; i < TERN_N_ARENAS; i++) {
        tern_arena_need *a = &plan->arenas[i];
        a->name = arena_names[i];
        if (a->bytes > SIZE_MAX - (a->align - 1))
            a->bytes = SIZE_MAX;
        else
            a->bytes = (a->bytes + a->align - 1) & ~(a->align - 1);
        if (a->bytes > SIZE_MAX - plan->bytes)
            return tern_fail(err, TERN_NO_MEMORY, "plan: %s of %u bytes after %u, at most %u",
                             a->name, (uint64_t)a->bytes, (uint64_t)plan->bytes,
                             (uint64_t)SIZE_MAX);
        plan->bytes += a->bytes;
    }
    return TERN_OK;
}

tern_status tern_plan_make(const tern_model *model, const tern_backend *backend,
                           const tern_limits *limits, tern_plan *out, tern_error *err)
{
    if (!model || !backend || !limits || !out)
        return tern_fail(err, TERN_BAD_ARGUMENT, "plan: an argument is NULL");
    tern_plan plan = {.n_arenas = TERN_N_ARENAS, .limits = *limits};
    fill_in(&plan.limits, model);
    tern_status status = check(&plan.limits, err);
    if (status)
        return status;
    fill_in_kv(&plan.limits);
    if (plan.limits.n_kv_tokens < plan.limits.n_ctx)
        return tern_fail(err, TERN_BAD_ARGUMENT, "limits: n_kv_tokens %u, at least n_ctx %u",
                         (uint64_t)plan.limits.n_kv_tokens, (uint64_t)plan.limits.n_ctx);
    status = check_ops(model, backend, err);
    if (!status && plan.limits.grammars)
        status = tern_masks_check(model, err);
    if (status)
        return status;

    for (uint32_t i = 0; i < TERN_N_ARENAS; i++)
        plan.arenas[i] = (tern_arena_need){.name = arena_names[i], .align = 64};
    plan.arenas[TERN_ARENA_MODEL].bytes = model->memory_bytes;
    struct tern_backend_plan asked = {.limits = &plan.limits};
    tern_kv_count(&model->program, &plan.limits, asked.n_blocks);
    status = backend->plan(model, &asked, plan.arenas, err);
    if (!status)
        status = measure(model, &plan, err);
    if (!status)
        status = sum_up(&plan, err);
    if (!status)
        *out = plan;
    return status;
}
