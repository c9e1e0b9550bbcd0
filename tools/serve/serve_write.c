/* serve_write.c: JSON that endpoints have in common. */
#include "tools/serve/serve.h"

#include <stdio.h>

static bool to_exchange(void *self, const char *data, size_t n)
{
    return tern_http_write(self, data, n);
}

void tern_write_to(struct tern_http_exchange *x, struct tern_out *o)
{
    tern_out_open_sink(o, to_exchange, x);
}

/* --- events --- */

void tern_event_begin(struct tern_job *j, struct tern_out *o)
{
    tern_write_to(j->x, o);
    tern_out_put(o, "data: ", 6);
}

void tern_event_end(struct tern_out *o)
{
    tern_out_put(o, "\n\n", 2);
    tern_out_flush(o);
}

void tern_event_last(struct tern_job *j, struct tern_out *o)
{
    tern_write_to(j->x, o);
    tern_out_print(o, "data: [DONE]\n\n");
    tern_out_flush(o);
}

void tern_write_progress(const struct tern_progress_made *p, struct tern_out *o)
{
    tern_json_begin(o, "prompt_progress", '{');
    tern_json_u64(o, "total", p->total);
    tern_json_u64(o, "cache", p->cached);
    tern_json_u64(o, "processed", p->processed);
    tern_json_real(o, "time_ms", p->ms);
    tern_json_end(o, '}');
}

/* --- what is kept of an answer until it is sent whole --- */

static bool to_part(void *self, const char *data, size_t n)
{
    struct tern_server *s = self;
    return (s->part_of->size + n <= TERN_HTTP_SHORT || tern_http_has_room(s->http)) &&
           tern_chain_put(tern_http_blocks(s->http), s->part_of, data, n);
}

struct tern_out *tern_part_begin(struct tern_choice *c, uint32_t part)
{
    struct tern_server *s = c->job->server;
    s->part_of = &c->parts[part];
    tern_out_open_sink(&s->part_out, to_part, s);
    s->part_out.comma = s->part_of->size > 0;
    return &s->part_out;
}

void tern_part_end(struct tern_choice *c)
{
    if (!tern_out_flush(&c->job->server->part_out))
        c->job->failed = true;
}

void tern_part_write(struct tern_choice *c, uint32_t part, struct tern_out *o, const char *key,
                     const char *marks)
{
    const bool marked = marks[0] != 0;
    tern_json_key(o, key);
    tern_out_put(o, marks, marked);
    tern_out_flush(o);
    (void)tern_http_write_chain(c->job->x, &c->parts[part]);
    tern_out_put(o, marks + marked, marked);
}

void tern_part_copy(struct tern_choice *c, uint32_t part, struct tern_out *o, const char *key,
                    const char *marks)
{
    tern_json_key(o, key);
    tern_out_put(o, marks, 1);
    for (const struct tern_block *b = c->parts[part].first; b; b = b->next)
        tern_out_put(o, b->bytes + b->begin, b->end - b->begin);
    tern_out_put(o, marks + 1, 1);
}

/* --- common objects --- */

void tern_write_usage(const struct tern_job *j, struct tern_out *o)
{
    uint64_t prompt = 0, cached = 0, generated = 0, thought = 0;
    for (uint32_t i = 0; i < j->n_prompts; i++) {
        prompt += j->prompts[i].n;
        cached += j->prompts[i].n_cached;
    }
    for (uint32_t i = 0; i < j->n_choices; i++)
        generated += j->choices[i].n_generated, thought += j->choices[i].n_thought;
    tern_json_begin(o, "usage", '{');
    tern_json_u64(o, "prompt_tokens", prompt);
    tern_json_u64(o, "completion_tokens", generated);
    tern_json_u64(o, "total_tokens", prompt + generated);
    tern_json_begin(o, "prompt_tokens_details", '{');
    tern_json_u64(o, "cached_tokens", cached);
    tern_json_end(o, '}');
    tern_json_begin(o, "completion_tokens_details", '{');
    tern_json_u64(o, "reasoning_tokens", thought);
    tern_json_end(o, '}');
    tern_json_end(o, '}');
}

/* --- objects of choices --- */

static void write_head(const struct tern_job *j, struct tern_out *o,
                       const struct tern_choices_form *f)
{
    char id[48];
    snprintf(id, sizeof id, "%s-%llx%08llx", f->id, (unsigned long long)j->created,
             (unsigned long long)j->number);
    tern_json_begin(o, NULL, '{');
    tern_json_string(o, "id", id);
    tern_json_string(o, "object", j->stream ? f->chunk : f->object);
    tern_json_i64(o, "created", j->created);
    tern_json_string(o, "model", j->server->name);
    tern_json_begin(o, "choices", '[');
}

void tern_choice_begin(struct tern_choice *c, struct tern_out *o,
                       const struct tern_choices_form *f)
{
    tern_event_begin(c->job, o);
    write_head(c->job, o, f);
    tern_json_begin(o, NULL, '{');
    tern_json_u64(o, "index", c->index);
}

void tern_choice_end(struct tern_choice *c, struct tern_out *o, const char *finish,
                     const struct tern_progress_made *p)
{
    tern_json_string(o, "finish_reason", finish);
    tern_json_end(o, '}');
    tern_json_end(o, ']');
    if (p)
        tern_write_progress(p, o);
    if (c->job->include_usage)
        tern_json_null(o, "usage");
    tern_json_end(o, '}');
    tern_event_end(o);
}

static void end_stream(struct tern_job *j, struct tern_out *o, const struct tern_choices_form *f)
{
    if (j->include_usage) {
        tern_event_begin(j, o);
        write_head(j, o, f);
        tern_json_end(o, ']');
        tern_write_usage(j, o);
        tern_json_end(o, '}');
        tern_event_end(o);
    }
    tern_event_last(j, o);
}

void tern_choices_end(struct tern_job *j, struct tern_out *o, const struct tern_choices_form *f)
{
    if (j->stream) {
        end_stream(j, o, f);
        return;
    }
    tern_write_to(j->x, o);
    write_head(j, o, f);
    for (uint32_t i = 0; i < j->n_choices; i++) {
        tern_json_begin(o, NULL, '{');
        tern_json_u64(o, "index", i);
        f->whole(&j->choices[i], o);
        tern_json_string(o, "finish_reason", j->choices[i].finish);
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
    tern_write_usage(j, o);
    tern_json_end(o, '}');
    tern_out_flush(o);
}

/* --- errors --- */

static const char *error_class(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    case 503:
        return "unavailable_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

void tern_write_error(struct tern_out *o, int status, const char *param, const char *code,
                      const char *line)
{
    tern_json_begin(o, NULL, '{');
    tern_json_begin(o, "error", '{');
    tern_json_string(o, "message", line);
    tern_json_string(o, "type", error_class(status));
    tern_json_string(o, "param", param);
    tern_json_string(o, "code", code);
    tern_json_end(o, '}');
    tern_json_end(o, '}');
}

/* The bytes are the token's own, also where they are no whole character. JSON has no infinity:
 * what cannot be drawn is as unlikely as can be said. */
void tern_write_logprob(struct tern_server *s, struct tern_out *o, tern_token token,
                        float logprob)
{
    char bytes[TERN_MAX_PIECE];
    size_t n = 0;
    if (tern_token_bytes(s->session.model, token, true, bytes, sizeof bytes, &n) != TERN_OK)
        n = 0;
    tern_json_text(o, "token", (tern_text){bytes, n});
    tern_json_float(o, "logprob", logprob >= -9999 ? logprob : -9999);
    tern_json_begin(o, "bytes", '[');
    for (size_t i = 0; i < n; i++)
        tern_json_u64(o, NULL, (unsigned char)bytes[i]);
    tern_json_end(o, ']');
}
