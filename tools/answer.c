#include "tools/answer.h"

#include <stdio.h>
#include <string.h>

void tern_answer_open(struct tern_answer *a, const struct tern_session *session,
                      const struct tern_settings *settings, const struct tern_prompt *prompt,
                      uint64_t seed)
{
    memset(a, 0, sizeof *a);
    a->session = session;
    a->settings = settings;
    a->prompt = *prompt;
    a->seed = settings->has_seed ? settings->seed : seed;
    tern_out_open(&a->ids, -1);
    tern_out_open(&a->text, -1);
}

tern_seq_options tern_answer_options(struct tern_answer *a, uint64_t stream)
{
    const struct tern_settings *s = a->settings;
    for (uint32_t i = 0; i < s->n_stops; i++)
        a->stops[i] = (tern_text){s->stops[i], strlen(s->stops[i])};
    return (tern_seq_options){
        .sampling = tern_session_sampling(s, a->seed, stream),
        .max_tokens = s->n_predict > 0 ? (uint32_t)s->n_predict : 0,
        .stops = a->stops,
        .n_stops = s->n_stops,
        .n_logprobs = (uint32_t)s->logprobs,
        .n_prompt_logprobs = (int32_t)s->prompt_logprobs,
        .ignore_eos = s->ignore_eos,
        .special = s->special,
        .no_kv_sharing = s->no_kv_sharing,
        .prefill_only = s->n_predict == 0,
        .grammar = a->session->constraint.grammar,
    };
}

static bool is_json(const struct tern_answer *a)
{
    return a->settings->json || a->settings->jsonl;
}

void tern_answer_begin(struct tern_answer *a, struct tern_out *out)
{
    a->out = out;
    a->fed_ns = tern_os_now_ns();
    if (!is_json(a))
        return;
    out->comma = false;
    tern_json_begin(out, NULL, '{');
    if (a->settings->prompt_logprobs) {
        tern_json_begin(out, "prompt_logprobs", '[');
        a->in_prompt_list = true;
    }
}

static void write_logprobs(struct tern_out *o, const tern_event *e)
{
    tern_json_begin(o, NULL, '[');
    for (uint32_t i = 0; i < e->n_logprobs; i++) {
        tern_json_begin(o, NULL, '{');
        tern_json_i64(o, "id", e->logprobs[i].token);
        tern_json_float(o, "logprob", e->logprobs[i].logprob);
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
}

/* Prompt tokens without log-probabilities: the first always, later ones if they never came. */
static void fill_prompt_list(struct tern_answer *a, size_t until)
{
    for (; a->n_prompt_rows < until; a->n_prompt_rows++)
        tern_json_null(a->out, NULL);
}

static void close_prompt_list(struct tern_answer *a)
{
    if (!a->in_prompt_list)
        return;
    fill_prompt_list(a, a->prompt.n);
    tern_json_end(a->out, ']');
    a->in_prompt_list = false;
}

static void take_token(struct tern_answer *a, const tern_event *e)
{
    if (a->n_generated++ == 0)
        a->first_ns = tern_os_now_ns();
    if (!is_json(a))
        return;
    tern_out_put(&a->ids, (const char *)&e->token, sizeof e->token);
    close_prompt_list(a);
    if (a->settings->logprobs == 0)
        return;
    if (!a->in_list)
        tern_json_begin(a->out, "logprobs", '[');
    a->in_list = true;
    write_logprobs(a->out, e);
}

void tern_answer_event(struct tern_answer *a, const tern_event *e)
{
    if (e->kind == TERN_EVENT_PROMPT) {
        if (!a->in_prompt_list || e->position >= a->prompt.n)
            return;
        fill_prompt_list(a, e->position);
        write_logprobs(a->out, e);
        a->n_prompt_rows++;
        return;
    }
    if (e->kind == TERN_EVENT_TOKEN)
        take_token(a, e);
    if (is_json(a)) {
        tern_out_put(&a->text, e->text.data, e->text.size);
    } else if (e->text.size) {
        tern_out_put(a->out, e->text.data, e->text.size);
        tern_out_flush(a->out);
    }
    if (e->kind == TERN_EVENT_DONE) {
        a->done = true;
        a->done_ns = tern_os_now_ns();
        if (a->first_ns == 0)
            a->first_ns = a->done_ns;
        a->stop = e->stop;
        if (e->stop == TERN_STOP_ERROR)
            snprintf(a->error, sizeof a->error, "%s", e->error ? e->error : "no reason was given");
    }
}

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

/* Of one run the time counts from the start of the command; of many, from each prompt's. */
static uint64_t start_of(const struct tern_answer *a)
{
    return a->settings->prompts ? a->fed_ns : a->session->begun_ns;
}

static void write_ids(struct tern_out *o, const char *key, const tern_token *ids, size_t n)
{
    tern_json_begin(o, key, '[');
    for (size_t i = 0; i < n; i++)
        tern_json_i64(o, NULL, ids[i]);
    tern_json_end(o, ']');
}

void tern_answer_json(struct tern_answer *a)
{
    struct tern_out *o = a->out;
    close_prompt_list(a);
    if (a->in_list)
        tern_json_end(o, ']');
    else if (a->settings->logprobs) {
        tern_json_begin(o, "logprobs", '[');
        tern_json_end(o, ']');
    }
    write_ids(o, "prompt_tokens", a->prompt.ids, a->prompt.n);
    write_ids(o, "tokens", (const tern_token *)(const void *)a->ids.grown,
              a->ids.n / sizeof(tern_token));
    tern_json_text(o, "text", (tern_text){a->text.grown, a->text.n});
    const char *stop = tern_stop_name(a->stop);
    tern_json_string(o, "stop", stop);
    if (a->stop == TERN_STOP_ERROR)
        tern_json_string(o, "error", a->error);
    tern_json_u64(o, "cached_tokens", a->n_cached);
    tern_json_u64(o, "seed", a->seed);
    tern_json_begin(o, "timing", '{');
    tern_json_real(o, "load_s", a->session->load_s);
    tern_json_real(o, "prefill_s", seconds(a->fed_ns, a->first_ns));
    tern_json_real(o, "decode_s", seconds(a->first_ns, a->done_ns));
    tern_json_real(o, "first_token_s", seconds(start_of(a), a->first_ns));
    tern_json_end(o, '}');
    tern_session_memory_json(a->session, o, "memory");
    tern_json_end(o, '}');
}

static void print_settings(const struct tern_answer *a)
{
    const struct tern_settings *s = a->settings;
    char n[32] = "n until the end";
    if (s->n_predict >= 0)
        snprintf(n, sizeof n, "n %lld", (long long)s->n_predict);
    tern_session_print_limits(a->session, n);
    fprintf(stderr,
            "tern: sampling: temperature %g, top-k %lld, typical %g, top-p %g, min-p %g, "
            "seed %llu\n",
            s->temperature, (long long)s->top_k, s->typical_p, s->top_p, s->min_p,
            (unsigned long long)a->seed);
}

void tern_answer_statistics(const struct tern_answer *a)
{
    double prefill = seconds(a->fed_ns, a->first_ns), decode = seconds(a->first_ns, a->done_ns);
    size_t computed = a->prompt.n - (a->n_cached < a->prompt.n ? a->n_cached : a->prompt.n);
    print_settings(a);
    fprintf(stderr, "tern: prompt %zu tokens (%u cached)", a->prompt.n, a->n_cached);
    if (prefill > 0)
        fprintf(stderr, ", %.1f tokens/s", (double)computed / prefill);
    fprintf(stderr, "; generated %u", a->n_generated);
    if (a->n_generated > 1 && decode > 0)
        fprintf(stderr, ", %.1f tokens/s", (double)(a->n_generated - 1) / decode);
    fprintf(stderr, "; ended by %s\n", tern_stop_name(a->stop));
    fprintf(stderr, "tern: load %.3f s, first token after %.3f s\n", a->session->load_s,
            seconds(start_of(a), a->first_ns));
    tern_session_print_memory(a->session);
}

void tern_answer_close(struct tern_answer *a)
{
    tern_prompt_free(&a->prompt);
    tern_out_free(&a->ids);
    tern_out_free(&a->text);
}
