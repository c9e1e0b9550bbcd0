#include "tools/serve/serve_plan.h"

#include "tools/keep.h"
#include "tools/serve/serve.h"

#include <stdio.h>
#include <string.h>

bool tern_serve_kv_types(const struct tern_settings *s, tern_kv_type *k, tern_kv_type *v,
                         char line[TERN_ARGS_LINE])
{
    static const struct { const char *name; tern_kv_type type; } names[] = {
        {"f16", TERN_KV_F16}, {"float16", TERN_KV_F16}, {"half", TERN_KV_F16},
        {"f32", TERN_KV_F32}, {"q8_0", TERN_KV_Q8_0}, {"int8", TERN_KV_Q8_0},
        {"q4_0", TERN_KV_Q4_0},
    };
    if (!s->kv_dtype || strcmp(s->kv_dtype, "auto") == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(s->kv_dtype, names[i].name) == 0) {
            *k = *v = names[i].type;
            return true;
        }
    snprintf(line, TERN_ARGS_LINE,
             "--kv-cache-dtype: '%.40s' given, one of auto, f16, f32, q8_0, q4_0 needed",
             s->kv_dtype);
    return false;
}

/* Means are of all rows, so more of a step's are kept: as many as chunk and context allow. */
static uint32_t rows_of_means(const tern_limits *l)
{
    uint32_t rows = 32;
    rows = l->chunk && l->chunk < rows ? l->chunk : rows;
    rows = l->n_ctx && l->n_ctx < rows ? l->n_ctx : rows;
    return rows > l->n_seqs ? rows : 0;
}

bool tern_serve_pool_fits(const struct tern_settings *s, char line[TERN_ARGS_LINE])
{
    if (!s->kv_tokens || s->kv_tokens >= s->n_ctx)
        return true;
    snprintf(line, TERN_ARGS_LINE, "--kv-tokens: %lld given, at least --ctx %lld needed",
             (long long)s->kv_tokens, (long long)s->n_ctx);
    return false;
}

/* That of the core, unless the pool is to hold less. */
static uint32_t usual_context(const tern_model *model, uint32_t n_kv_tokens)
{
    tern_model_info info;
    uint32_t n = 4096;
    tern_model_describe(model, &info);
    n = info.n_ctx_train && info.n_ctx_train < n ? info.n_ctx_train : n;
    return n_kv_tokens && n_kv_tokens < n ? n_kv_tokens : n;
}

tern_limits tern_serve_limits(const struct tern_settings *s, const tern_model *model)
{
    tern_limits limits = tern_session_limits(s);
    enum tern_pooling pooling;
    limits.n_seqs = limits.n_seqs ? limits.n_seqs : TERN_SERVE_SEQUENCES;
    limits.n_kv_tokens = (uint32_t)s->kv_tokens;
    if (!limits.n_ctx)
        limits.n_ctx = usual_context(model, limits.n_kv_tokens);
    limits.n_logprobs = TERN_SERVE_LOGPROBS;
    limits.n_stop_bytes = TERN_SERVE_STOP_BYTES;
    limits.grammars = limits.hidden = true;
    char line[TERN_ARGS_LINE];
    if (tern_serve_pooling(s, model, &pooling, line) && pooling == TERN_POOLING_MEAN)
        limits.n_logit_rows = rows_of_means(&limits);
    (void)tern_serve_kv_types(s, &limits.k_type, &limits.v_type, line);
    return limits;
}

struct tern_http_options tern_serve_http_options(const struct tern_settings *s)
{
    enum { ANSWERS = 8 << 20, STREAM = 256 << 10, SECOND = 1000 };
    const size_t pool = (4 * (size_t)s->body + ANSWERS) & ~(size_t)(TERN_BLOCK - 1);
    const uint32_t timeout = (uint32_t)s->timeout * SECOND;
    return (struct tern_http_options){
        .n_connections = (uint32_t)s->connections,
        .body_bytes = (size_t)s->body,
        .pool_bytes = pool,
        .stream_bytes = STREAM,
        .answer_bytes = pool / 2,
        .head_ms = timeout < 30 * SECOND ? timeout : 30 * SECOND,
        .body_ms = timeout,
        .idle_ms = 300 * SECOND,
        .comment_ms = 15 * SECOND,
        .handle = tern_routes_handle,
    };
}

/* What the kitchen takes from the system while it has the largest request: a template's work, and
 * then the tokenizer's. */
static uint64_t kitchen_bytes(const struct tern_settings *s, const tern_model *model)
{
    static const char none[] = "";
    const size_t body = (size_t)s->body;
    const tern_variable all = {"messages", {none, body}, {NULL, 0}};
    const tern_render render = {.variables = &all, .n_variables = 1};
    return tern_render_scratch(&render) + tern_tokenize_scratch(model, body) +
           (uint64_t)tern_tokenize_most(model, body) * sizeof(tern_token);
}

/* Grammars lie beside the jobs: those of running sequences are counted at what nearly all take. */
uint64_t tern_serve_bytes(const struct tern_settings *s, const struct tern_session *session)
{
    enum { GRAMMAR = 1 << 20 };
    const uint64_t n_threads = s->slot_save_path ? 3 : 2;
    const tern_limits *l = &session->plan.limits;
    const struct tern_http_options o = tern_serve_http_options(s);
    return tern_http_bytes(&o) + TERN_SERVE_JSON + sizeof(struct tern_server) +
           tern_jobs_bytes(l->n_seqs + (uint32_t)s->queue, l, session->info.n_embd) +
           kitchen_bytes(s, session->model) +
           (s->slot_save_path ? tern_keep_bytes(session) : 0) +
           (uint64_t)l->n_seqs * GRAMMAR + n_threads * TERN_SERVE_STACK;
}

bool tern_serve_plan(const struct tern_settings *s, struct tern_session *session)
{
    enum { LEAST = 512 };
    tern_limits limits = tern_serve_limits(s, session->model);
    if (!tern_session_plan(session, &limits))
        return false;
    const uint64_t have = tern_os_memory_free() / 10 * 9;
    while (s->n_ctx == 0 && session->plan.limits.n_ctx > LEAST &&
           tern_session_engine_bytes(&session->plan) + tern_serve_bytes(s, session) > have) {
        limits.n_ctx = session->plan.limits.n_ctx / 2;
        if (!tern_session_plan(session, &limits))
            return false;
    }
    return true;
}
