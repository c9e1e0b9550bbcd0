/* engine.c: a program, the caller's memory and one backend, made into an engine.
 *
 * Every argument is checked here, in front of the backend, and in the files beside it: a
 * backend is never asked for what it could not do.
 */
#include "runtime/engine.h"

#include "runtime/arena.h"
#include "runtime/error.h"

#include <string.h>

/* The one walk over the state and sampler arenas. */
struct tern_engine *tern_engine_lay_out(struct tern_arena *state, struct tern_arena *sampler,
                                        struct tern_parts *parts, const tern_model *model,
                                        const tern_limits *limits)
{
    *parts = (struct tern_parts){0};
    struct tern_engine *e = tern_carve(state, 1, sizeof *e, 64);
    tern_sequences_lay_out(state, sampler, &parts->seqs, limits);
    tern_kv_lay_out(state, &parts->kv, &model->program, limits);
    tern_scheduler_lay_out(state, &parts->scheduler, limits);
    tern_events_lay_out(state, sampler, &parts->events, model->program.n_embd, limits);
    tern_sampler_lay_out(sampler, &parts->sampler, model->program.n_vocab);
    tern_masking_lay_out(sampler, &parts->masking, model, limits);
    parts->tokens = tern_carve(state, limits->chunk, sizeof *parts->tokens, 64);
    parts->positions = tern_carve(state, limits->chunk, sizeof *parts->positions, 64);
    parts->spans = tern_carve(state, limits->n_seqs, sizeof *parts->spans, 64);
    parts->logit_rows = tern_carve(state, limits->n_logit_rows, sizeof *parts->logit_rows, 64);
    parts->timings = tern_carve(state, limits->timings ? limits->n_logit_rows : 0,
                                sizeof *parts->timings, 64);
    return e;
}

static tern_status check_arenas(const tern_plan *plan, const tern_memory *arenas, tern_error *err)
{
    for (uint32_t i = 0; i < TERN_N_ARENAS; i++) {
        const tern_arena_need *need = &plan->arenas[i];
        if (i == TERN_ARENA_MODEL || !need->bytes)
            continue;
        if (!arenas[i].data || arenas[i].size < need->bytes)
            return tern_fail(err, TERN_NO_MEMORY, "arena %s: %u bytes, %u needed, %u missing",
                             need->name, (uint64_t)(arenas[i].data ? arenas[i].size : 0),
                             (uint64_t)need->bytes,
                             (uint64_t)(need->bytes - (arenas[i].data ? arenas[i].size : 0)));
        if ((uintptr_t)arenas[i].data & (need->align - 1))
            return tern_fail(err, TERN_BAD_ARGUMENT, "arena %s: starts at %x, aligned to %u",
                             need->name, (uint64_t)(uintptr_t)arenas[i].data,
                             (uint64_t)need->align);
    }
    return TERN_OK;
}

static tern_status check_host(const tern_host *host, const tern_limits *limits, tern_error *err)
{
    if (host->n_threads != limits->n_threads)
        return tern_fail(err, TERN_BAD_ARGUMENT, "host: %u threads, the limits say %u",
                         (uint64_t)host->n_threads, (uint64_t)limits->n_threads);
    if (host->n_threads > 1 && (!host->parallel || !host->barrier))
        return tern_fail(err, TERN_BAD_ARGUMENT, "host: %u threads without parallel or barrier",
                         (uint64_t)host->n_threads);
    return TERN_OK;
}

/* The engine, all but its backend's state, in the state and sampler arenas. */
static tern_status lay_out(const tern_plan *plan, const tern_memory *arenas,
                           const tern_model *model, struct tern_engine **out, tern_error *err)
{
    struct tern_parts parts;
    const tern_arena_need *needs = plan->arenas;
    struct tern_arena state = tern_arena_over(arenas[TERN_ARENA_STATE].data,
                                              needs[TERN_ARENA_STATE].bytes);
    struct tern_arena sampler = tern_arena_over(arenas[TERN_ARENA_SAMPLER].data,
                                                needs[TERN_ARENA_SAMPLER].bytes);
    struct tern_engine *e = tern_engine_lay_out(&state, &sampler, &parts, model, &plan->limits);
    if (!e || state.failed || sampler.failed)
        return tern_fail(err, TERN_NO_MEMORY, "arena %s: smaller than its layout",
                         needs[sampler.failed ? TERN_ARENA_SAMPLER : TERN_ARENA_STATE].name);
    e->parts = parts;
    e->limits = plan->limits;
    e->model = model;
    e->staging = arenas[TERN_ARENA_KV];
    e->load.total = tern_load_total(model);
    e->load.weight = model->image ? model->program.n_weights : 0; /* they are there */
    e->load.whole = e->load.weight == model->program.n_weights;
    tern_kv_start(&e->parts.kv);
    e->batch = (struct tern_batch){.n_slots = e->limits.n_seqs,
                                   .tokens = parts.tokens,
                                   .positions = parts.positions,
                                   .spans = parts.spans,
                                   .tables = (const uint32_t *const *)parts.kv.tables,
                                   .logit_rows = parts.logit_rows};
    *out = e;
    return TERN_OK;
}

static tern_status open_backend(struct tern_engine *e, const tern_memory *arenas,
                                const tern_backend *backend, tern_error *err)
{
    struct tern_backend_plan asked = {.limits = &e->limits};
    tern_kv_count(&e->model->program, &e->limits, asked.n_blocks);
    e->backend = backend;
    const uint32_t saved = tern_float_enter(); /* tables of angles are made */
    const tern_status status = backend->open(e->model, &asked, arenas, &e->host, &e->state, err);
    tern_float_leave(saved);
    e->parts.sampler.math = (struct tern_row_math){e->state, backend->highest, backend->exp_row};
    return status;
}

tern_status tern_engine_init(const tern_plan *plan, const tern_memory *arenas,
                             const tern_model *model, const tern_backend *backend,
                             const tern_host *host, tern_engine **out, tern_error *err)
{
    if (!plan || !arenas || !model || !backend || !out)
        return tern_fail(err, TERN_BAD_ARGUMENT, "engine: an argument is NULL");
    *out = NULL;
    tern_host own_host = host ? *host : (tern_host){0};
    if (!own_host.n_threads)
        own_host.n_threads = 1;
    /* The limits alone are taken from the caller's plan: its sizes are worked out again. */
    tern_plan own;
    tern_status status = tern_plan_make(model, backend, &plan->limits, &own, err);
    if (!status)
        status = check_arenas(&own, arenas, err);
    if (!status)
        status = check_host(&own_host, &own.limits, err);
    struct tern_engine *e = NULL;
    if (!status)
        status = lay_out(&own, arenas, model, &e, err);
    if (status)
        return status;
    e->host = own_host;
    status = open_backend(e, arenas, backend, err);
    if (!status)
        *out = e;
    return status;
}

const tern_error *tern_engine_error(const tern_engine *e)
{
    return e ? &e->error : NULL;
}

void tern_engine_clear_error(tern_engine *e)
{
    if (e)
        e->error.status = TERN_OK;
}

void tern_engine_close(tern_engine *e)
{
    if (e)
        e->backend->close(e->state);
}
