/* serve_prompts.c: prompts as ids, in the job's memory. */
#include "tools/ids.h"
#include "tools/serve/serve.h"

#include <string.h>

static bool no_memory(struct tern_call *c, const char *what)
{
    return tern_call_fail(c, 413, what, NULL, "%s: more than this server keeps for a request",
                          what);
}

static const char *param_of(const struct tern_call *c)
{
    return c->param ? c->param : json_object_get(c->body, "messages") ? "messages" : "prompt";
}

bool tern_prompts_open(struct tern_call *c, size_t n_prompts)
{
    struct tern_job *j = c->job;
    const size_t most = j->options.hidden ? TERN_SERVE_INPUTS : TERN_SERVE_CHOICES / j->n_each;
    if (n_prompts == 0 || n_prompts > most)
        return tern_call_fail(c, 400, n_prompts && !j->options.hidden ? "n" : param_of(c), NULL,
                              "%s: %zu texts with n: %u, 1 to %zu needed", param_of(c), n_prompts,
                              j->n_each, most);
    j->n_prompts = (uint32_t)n_prompts;
    j->prompts = tern_job_take(j, n_prompts, sizeof *j->prompts);
    j->choices = tern_job_take(j, n_prompts * j->n_each, sizeof *j->choices);
    if (!j->prompts || !j->choices)
        return no_memory(c, param_of(c));
    j->n_choices = j->n_prompts * j->n_each;
    for (uint32_t i = 0; i < j->n_choices; i++) {
        j->choices[i].job = j;
        j->choices[i].index = i;
        j->choices[i].prompt = i / j->n_each;
    }
    return true;
}

static bool check_length(struct tern_call *c, size_t n)
{
    const uint32_t n_ctx = c->server->session.plan.limits.n_ctx;
    if (n == 0)
        return tern_call_fail(c, 400, param_of(c), NULL, "%s: 0 tokens, at least 1 needed",
                              param_of(c));
    if (n <= n_ctx - !c->job->options.prefill_only)
        return true;
    return tern_call_fail(c, 400, param_of(c), "context_length_exceeded",
                          "This model's maximum context length is %u tokens. However, your %s "
                          "resulted in %zu tokens.", n_ctx, param_of(c), n);
}

bool tern_prompts_keep(struct tern_call *c, uint32_t i, const tern_token *ids, size_t n)
{
    if (!check_length(c, n))
        return false;
    tern_token *to = tern_job_take(c->job, n, sizeof *to);
    if (!to)
        return no_memory(c, param_of(c));
    memcpy(to, ids, n * sizeof *to);
    c->job->prompts[i].ids = to;
    c->job->prompts[i].n = (uint32_t)n;
    return true;
}

bool tern_prompts_rendered(struct tern_call *c, uint32_t i, const tern_rendered *text,
                           uint32_t flags)
{
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of_rendered(c->server->session.model, text, flags, &ids, &err))
        return tern_call_fail(c, err.status == TERN_NO_MEMORY ? 413 : 400, param_of(c), NULL,
                              "%s: %s", param_of(c), err.text);
    const bool ok = tern_prompts_keep(c, i, ids.at, ids.n);
    tern_ids_free(&ids);
    return ok;
}

bool tern_prompts_encode(struct tern_call *c, uint32_t i, tern_text text, uint32_t flags)
{
    return tern_prompts_rendered(c, i, &(tern_rendered){.text = text}, flags);
}

bool tern_prompts_ids(struct tern_call *c, uint32_t i, const json_t *list)
{
    const size_t n = json_array_size(list);
    const uint32_t n_vocab = c->server->session.info.n_vocab;
    if (!check_length(c, n))
        return false;
    tern_token *to = tern_job_take(c->job, n, sizeof *to);
    if (!to)
        return no_memory(c, param_of(c));
    for (size_t k = 0; k < n; k++) {
        const json_t *id = json_array_get(list, k);
        const int64_t x = json_is_integer(id) ? json_integer_value(id) : -1;
        if (x < 0 || x >= n_vocab)
            return tern_call_fail(c, 400, param_of(c), NULL, "%s: an id from 0 to %u needed at "
                                  "%zu", param_of(c), n_vocab - 1, k);
        to[k] = (tern_token)x;
    }
    c->job->prompts[i].ids = to;
    c->job->prompts[i].n = (uint32_t)n;
    return true;
}
