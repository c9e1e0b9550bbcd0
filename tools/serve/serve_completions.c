/* serve_completions.c: /v1/completions: text that goes on from a prompt. */
#include "tools/serve/endpoints.h"

#include <stdio.h>

/* Of an answer's parts; all but the text only where log-probabilities are wanted. */
enum { TEXT, TOKENS, LOGPROBS, TOPS, OFFSETS };

/* --- the engine's side --- */

static size_t characters(tern_text t)
{
    size_t n = 0;
    for (size_t i = 0; i < t.size; i++)
        n += ((unsigned char)t.data[i] & 0xc0) != 0x80;
    return n;
}

/* A token as text; what is no whole character has its bytes spelled out, so that two tokens are
 * not taken for one. */
static void put_token(struct tern_server *s, struct tern_out *o, tern_token token, bool as_key)
{
    char bytes[TERN_MAX_PIECE], spelled[6 + 4 * TERN_MAX_PIECE + 1] = "bytes:";
    size_t n = 0, at = 0;
    if (tern_token_bytes(s->session.model, token, true, bytes, sizeof bytes, &n) != TERN_OK)
        n = 0;
    for (size_t k = 1; at < n && k; at += k)
        k = tern_utf8_length((tern_text){bytes + at, n - at});
    tern_text text = {bytes, n};
    if (at < n || (n && tern_utf8_length(text) == 0)) {
        for (size_t i = 0; i < n; i++)
            snprintf(spelled + 6 + 4 * i, 5, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
        text = (tern_text){spelled, 6 + 4 * n};
    }
    tern_json_text(o, NULL, text);
    if (as_key) {
        tern_out_put(o, ": ", 2);
        o->comma = false;
    }
}

static float shown(float logprob)
{
    return logprob >= -9999 ? logprob : -9999;
}

static void add_logprob(struct tern_choice *c, const tern_event *e)
{
    struct tern_server *s = c->job->server;
    put_token(s, tern_part_begin(c, TOKENS), e->token, false);
    tern_part_end(c);
    struct tern_out *o = tern_part_begin(c, LOGPROBS);
    if (e->kind == TERN_EVENT_PROMPT && e->position == 0)
        tern_json_null(o, NULL);
    else
        tern_json_float(o, NULL, shown(e->logprob));
    tern_part_end(c);
    o = tern_part_begin(c, TOPS);
    if (e->kind == TERN_EVENT_PROMPT && e->position == 0) {
        tern_json_null(o, NULL);
    } else {
        const uint32_t top = (uint32_t)c->job->n_top;
        tern_json_begin(o, NULL, '{');
        for (uint32_t i = 0; i < e->n_logprobs && i < top; i++) {
            put_token(s, o, e->logprobs[i].token, true);
            tern_json_float(o, NULL, shown(e->logprobs[i].logprob));
        }
        tern_json_end(o, '}');
    }
    tern_part_end(c);
    tern_json_u64(tern_part_begin(c, OFFSETS), NULL, c->n_text);
    tern_part_end(c);
}

static void write_logprobs(struct tern_choice *c, struct tern_out *o)
{
    if (c->job->n_top < 0 || c->parts[TOKENS].size == 0) {
        tern_json_null(o, "logprobs");
        return;
    }
    tern_json_begin(o, "logprobs", '{');
    tern_part_write(c, TOKENS, o, "tokens", "[]");
    tern_part_write(c, LOGPROBS, o, "token_logprobs", "[]");
    tern_part_write(c, TOPS, o, "top_logprobs", "[]");
    tern_part_write(c, OFFSETS, o, "text_offset", "[]");
    tern_json_end(o, '}');
}

static void write_choice(struct tern_choice *c, struct tern_out *o)
{
    tern_part_write(c, TEXT, o, "text", "\"\"");
    write_logprobs(c, o);
}

static const struct tern_choices_form form = {"cmpl", "text_completion", "text_completion",
                                              write_choice};

static void add_text(struct tern_choice *c, tern_text text)
{
    tern_json_inside(tern_part_begin(c, TEXT), text);
    tern_part_end(c);
    c->n_text += characters(text);
}

/* A token of the prompt; its text stands there already, as the prompt's. */
static void add_prompt_token(struct tern_choice *c, const tern_event *e)
{
    char bytes[TERN_MAX_PIECE];
    size_t n = 0;
    add_logprob(c, e);
    if (tern_token_bytes(c->job->server->session.model, e->token, true, bytes, sizeof bytes, &n) ==
        TERN_OK)
        c->n_text += characters((tern_text){bytes, n});
}

/* The prompt itself, before what comes first. Its first token follows nothing: no event tells of
 * it. */
static void add_echo(struct tern_choice *c)
{
    const struct tern_job *j = c->job;
    const struct tern_job_prompt *p = &j->prompts[c->prompt];
    if (!j->echo || c->own)
        return;
    c->own = c->job;
    add_text(c, p->text);
    if (j->n_top < 0)
        return;
    const tern_event first = {.kind = TERN_EVENT_PROMPT, .token = p->ids[0]};
    c->n_text = 0;
    add_prompt_token(c, &first);
}

static void on_event(struct tern_choice *c, const tern_event *e, struct tern_out *o)
{
    struct tern_job *j = c->job;
    add_echo(c);
    if (e->kind == TERN_EVENT_PROMPT) {
        add_prompt_token(c, e);
        return;
    }
    if (e->kind == TERN_EVENT_TOKEN && j->n_top >= 0)
        add_logprob(c, e);
    add_text(c, e->text);
    if (!j->stream)
        return;
    tern_choice_begin(c, o, &form);
    write_choice(c, o);
    tern_choice_end(c, o, c->finish, NULL);
}

static void on_end(struct tern_job *j, struct tern_out *o)
{
    tern_choices_end(j, o, &form);
}

static void on_progress(struct tern_choice *c, const struct tern_progress_made *p,
                        struct tern_out *o)
{
    tern_choice_begin(c, o, &form);
    tern_json_string(o, "text", "");
    tern_json_null(o, "logprobs");
    tern_choice_end(c, o, NULL, p);
}

static const struct tern_job_kind completions = {NULL, on_event, on_end, on_progress, NULL};

/* --- the kitchen's side --- */

static bool is_list_of_ids(const json_t *prompt)
{
    return json_is_array(prompt) && json_is_integer(json_array_get(prompt, 0));
}

static bool read_prompt(struct tern_call *c, uint32_t i, const json_t *prompt)
{
    struct tern_job_prompt *p = &c->job->prompts[i];
    const json_t *suffix = json_object_get(c->body, "suffix");
    if (json_is_string(prompt)) {
        const tern_text text = {json_string_value(prompt), json_string_length(prompt)};
        const tern_text behind = {json_string_value(suffix), json_string_length(suffix)};
        if (!(behind.size ? tern_infill_prompt(c, i, text, behind)
                          : tern_prompts_encode(c, i, text, TERN_TOKENIZE_SPECIAL)))
            return false;
        if (c->job->echo)
            p->text = tern_job_keep(c->job, text.data, text.size);
    } else if (json_is_array(prompt) && json_string_length(suffix)) {
        return tern_call_fail(c, 400, "suffix", NULL, "suffix: a prompt of text needed");
    } else if (json_is_array(prompt)) {
        const tern_model *model = c->server->session.model;
        size_t n = 0;
        char *text;
        if (!tern_prompts_ids(c, i, prompt))
            return false;
        if (c->job->echo &&
            tern_detokenize(model, p->ids, p->n, TERN_DETOKENIZE_SPECIAL, NULL, 0, &n, NULL) !=
                TERN_BAD_ARGUMENT &&
            (text = tern_job_take(c->job, n + 1, 1)) != NULL &&
            tern_detokenize(model, p->ids, p->n, TERN_DETOKENIZE_SPECIAL, text, n + 1, &n, NULL) ==
                TERN_OK)
            p->text = (tern_text){text, n};
    } else {
        return tern_call_fail(c, 400, "prompt", NULL, "prompt: a text, or ids, or a list of such "
                              "needed");
    }
    return !c->job->echo || p->text.data ||
           tern_call_fail(c, 413, "prompt", NULL, "prompt: no memory to echo it");
}

static bool read_prompts(struct tern_call *c)
{
    const json_t *prompt = json_object_get(c->body, "prompt");
    const bool many = json_is_array(prompt) && !is_list_of_ids(prompt);
    if (!tern_prompts_open(c, many ? json_array_size(prompt) : 1))
        return false;
    if (!many)
        return read_prompt(c, 0, prompt);
    for (uint32_t i = 0; i < c->job->n_prompts; i++)
        if (!read_prompt(c, i, json_array_get(prompt, i)))
            return false;
    return true;
}

static bool read_logprobs(struct tern_call *c)
{
    struct tern_job *j = c->job;
    int64_t n = -1;
    if (json_is_boolean(json_object_get(c->body, "logprobs")))
        n = json_is_true(json_object_get(c->body, "logprobs")) ? 1 : -1;
    else if (!tern_field_int(c, "logprobs", 0, TERN_SERVE_LOGPROBS, &n))
        return false;
    j->n_top = (int32_t)n;
    j->options.n_logprobs = n > 0 ? (uint32_t)n : n == 0;
    if (j->echo && n >= 0)
        j->options.n_prompt_logprobs = n > 0 ? (int32_t)n : -1;
    return true;
}

bool tern_completions_prepare(struct tern_call *c)
{
    enum { TOKENS_BY_DEFAULT = 16 };
    const json_t *suffix = json_object_get(c->body, "suffix");
    if (suffix && !json_is_null(suffix) && !json_is_string(suffix))
        return tern_call_fail(c, 400, "suffix", NULL, "suffix: a text needed");
    if (!tern_request_read(c, TOKENS_BY_DEFAULT) || !tern_field_bool(c, "echo", &c->job->echo) ||
        !read_logprobs(c) || !read_prompts(c) || !tern_request_constraint(c))
        return false;
    c->job->kind = &completions;
    return true;
}
