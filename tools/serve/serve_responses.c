/* serve_responses.c: /v1/responses, without a memory: each request brings its conversation.
 *
 * The request is turned into that of a chat (serve_responses_in.c); here its reply becomes items:
 * messages, reasoning, calls. Pieces of the item that is open lie in one part of the choice; when
 * it closes, the item goes whole to a list of those that are done, which is the answer's output,
 * however it is sent. */
#include "tools/json_text.h"
#include "tools/serve/endpoints.h"
#include "tools/serve/serve_chat.h"
#include "tools/serve/serve_responses.h"

#include <stdio.h>
#include <string.h>

enum { OPEN, DONE }; /* of an answer's parts: the open item's text; items that are done */
enum { NAME = 256, ID = 80 };

/* A stream has what its request said three times, so what is longer is not given back. */
enum { GIVEN_BACK = 64 << 10 };

/* Of the job: there is one choice. */
struct answer {
    bool open, cut;           /* cut: it ends because no more may be generated */
    tern_part_kind kind;      /* of the open item: TEXT, REASONING or CALL */
    uint32_t n_items, n_events;
    char name[NAME + 1];      /* of the tool that is called */
    tern_text tools, choice;  /* as the request has them, in JSON; data NULL: it has none */
    bool one_call;
};

static const char *id_of(const struct tern_job *j, const char *what, uint32_t item, char id[ID])
{
    snprintf(id, ID, "%s_%llx%08llx%02x", what, (unsigned long long)j->created,
             (unsigned long long)j->number, item);
    return id;
}

static const char *item_id(const struct tern_job *j, char id[ID])
{
    const struct answer *a = j->own;
    return id_of(j, a->kind == TERN_PART_TEXT ? "msg" : a->kind == TERN_PART_CALL ? "fc" : "rs",
                 a->n_items, id);
}

static bool is_cut(const struct tern_choice *c)
{
    return c->finish && strcmp(c->finish, "length") == 0;
}

/* --- objects --- */

static void write_part(struct tern_choice *c, struct tern_out *o, const char *key, bool whole)
{
    const struct answer *a = c->job->own;
    tern_json_begin(o, key, '{');
    tern_json_string(o, "type", a->kind == TERN_PART_TEXT ? "output_text" : "reasoning_text");
    if (whole)
        tern_part_copy(c, OPEN, o, "text", "\"\"");
    else
        tern_json_string(o, "text", "");
    if (a->kind == TERN_PART_TEXT) {
        tern_json_begin(o, "annotations", '[');
        tern_json_end(o, ']');
        tern_json_begin(o, "logprobs", '[');
        tern_json_end(o, ']');
    }
    tern_json_end(o, '}');
}

/* The open item, as it begins or as it is whole. */
static void write_item(struct tern_choice *c, struct tern_out *o, const char *key, bool whole)
{
    char id[ID];
    const struct tern_job *j = c->job;
    const struct answer *a = j->own;
    const bool call = a->kind == TERN_PART_CALL;
    tern_json_begin(o, key, '{');
    tern_json_string(o, "type", call                         ? "function_call"
                                : a->kind == TERN_PART_TEXT ? "message"
                                                            : "reasoning");
    tern_json_string(o, "id", item_id(j, id));
    tern_json_string(o, "status", !whole ? "in_progress" : a->cut ? "incomplete" : "completed");
    if (call) {
        tern_json_string(o, "call_id", id_of(j, "call", a->n_items, id));
        tern_json_string(o, "name", a->name);
        if (whole)
            tern_part_copy(c, OPEN, o, "arguments", "\"\"");
        else
            tern_json_string(o, "arguments", "");
        tern_json_end(o, '}');
        return;
    }
    if (a->kind == TERN_PART_TEXT) {
        tern_json_string(o, "role", "assistant");
    } else {
        tern_json_begin(o, "summary", '[');
        tern_json_end(o, ']');
    }
    tern_json_begin(o, "content", '[');
    if (whole)
        write_part(c, o, NULL, true);
    tern_json_end(o, ']');
    tern_json_end(o, '}');
}

static void write_usage(const struct tern_choice *c, struct tern_out *o)
{
    const struct tern_job_prompt *p = &c->job->prompts[0];
    tern_json_begin(o, "usage", '{');
    tern_json_u64(o, "input_tokens", p->n);
    tern_json_begin(o, "input_tokens_details", '{');
    tern_json_u64(o, "cached_tokens", p->n_cached);
    tern_json_end(o, '}');
    tern_json_u64(o, "output_tokens", c->n_generated);
    tern_json_begin(o, "output_tokens_details", '{');
    tern_json_u64(o, "reasoning_tokens", c->n_thought);
    tern_json_end(o, '}');
    tern_json_u64(o, "total_tokens", p->n + c->n_generated);
    tern_json_end(o, '}');
}

static void write_given(struct tern_out *o, const char *key, tern_text given, const char *otherwise)
{
    tern_json_key(o, key);
    tern_out_put(o, given.data ? given.data : otherwise,
                 given.data ? given.size : strlen(otherwise));
}

static void write_response(struct tern_choice *c, struct tern_out *o, const char *key)
{
    char id[ID];
    const struct tern_job *j = c->job;
    const struct answer *a = j->own;
    const bool cut = is_cut(c);
    tern_json_begin(o, key, '{');
    tern_json_string(o, "id", id_of(j, "resp", 0, id));
    tern_json_string(o, "object", "response");
    tern_json_i64(o, "created_at", j->created);
    tern_json_string(o, "status", !c->finish ? "in_progress" : cut ? "incomplete" : "completed");
    tern_json_null(o, "error");
    if (cut) {
        tern_json_begin(o, "incomplete_details", '{');
        tern_json_string(o, "reason", "max_output_tokens");
        tern_json_end(o, '}');
    } else {
        tern_json_null(o, "incomplete_details");
    }
    tern_json_string(o, "model", j->server->name);
    tern_part_copy(c, DONE, o, "output", "[]");
    tern_json_null(o, "previous_response_id");
    tern_json_bool(o, "store", false);
    tern_json_bool(o, "parallel_tool_calls", !a->one_call);
    write_given(o, "tool_choice", a->choice, "\"auto\"");
    write_given(o, "tools", a->tools, "[]");
    if (c->finish)
        write_usage(c, o);
    else
        tern_json_null(o, "usage");
    tern_json_end(o, '}');
}

/* --- events --- */

static bool begin_event(struct tern_choice *c, struct tern_out *o, const char *type)
{
    struct answer *a = c->job->own;
    if (!c->job->stream)
        return false;
    tern_write_to(c->job->x, o);
    tern_out_print(o, "event: %s\ndata: ", type);
    tern_json_begin(o, NULL, '{');
    tern_json_string(o, "type", type);
    tern_json_u64(o, "sequence_number", a->n_events++);
    return true;
}

static void end_event(struct tern_out *o)
{
    tern_json_end(o, '}');
    tern_event_end(o);
}

static bool begin_item_event(struct tern_choice *c, struct tern_out *o, const char *type)
{
    char id[ID];
    const struct answer *a = c->job->own;
    if (!begin_event(c, o, type))
        return false;
    tern_json_string(o, "item_id", item_id(c->job, id));
    tern_json_u64(o, "output_index", a->n_items);
    if (a->kind != TERN_PART_CALL)
        tern_json_u64(o, "content_index", 0);
    return true;
}

static void response_event(struct tern_choice *c, struct tern_out *o, const char *type)
{
    if (!begin_event(c, o, type))
        return;
    write_response(c, o, "response");
    end_event(o);
}

static void item_event(struct tern_choice *c, struct tern_out *o, const char *type, bool whole)
{
    const struct answer *a = c->job->own;
    if (!begin_event(c, o, type))
        return;
    tern_json_u64(o, "output_index", a->n_items);
    write_item(c, o, "item", whole);
    end_event(o);
}

static void part_event(struct tern_choice *c, struct tern_out *o, const char *type, bool whole)
{
    const struct answer *a = c->job->own;
    if (a->kind == TERN_PART_CALL || !begin_item_event(c, o, type))
        return;
    write_part(c, o, "part", whole);
    end_event(o);
}

static const char *stem_of(tern_part_kind kind)
{
    return kind == TERN_PART_TEXT ? "output_text"
           : kind == TERN_PART_CALL ? "function_call_arguments" : "reasoning_text";
}

/* --- items --- */

static void close_item(struct tern_choice *c, struct tern_out *o, bool cut)
{
    struct answer *a = c->job->own;
    char type[64];
    if (!a->open)
        return;
    a->cut = cut;
    snprintf(type, sizeof type, "response.%s.done", stem_of(a->kind));
    if (begin_item_event(c, o, type)) {
        tern_part_copy(c, OPEN, o, a->kind == TERN_PART_CALL ? "arguments" : "text", "\"\"");
        end_event(o);
    }
    part_event(c, o, "response.content_part.done", true);
    item_event(c, o, "response.output_item.done", true);
    write_item(c, tern_part_begin(c, DONE), NULL, true);
    tern_part_end(c);
    tern_chain_clear(tern_http_blocks(c->job->server->http), &c->parts[OPEN]);
    a->open = false;
    a->n_items++;
}

static void open_item(struct tern_choice *c, struct tern_out *o, const tern_part *p)
{
    struct answer *a = c->job->own;
    if (a->open && a->kind == p->kind && p->kind != TERN_PART_CALL)
        return;
    close_item(c, o, false);
    a->open = true;
    a->kind = p->kind;
    if (p->kind == TERN_PART_CALL)
        snprintf(a->name, sizeof a->name, "%.*s", (int)p->text.size, p->text.data);
    item_event(c, o, "response.output_item.added", false);
    part_event(c, o, "response.content_part.added", false);
}

static void add_piece(struct tern_choice *c, struct tern_out *o, tern_text piece)
{
    const struct answer *a = c->job->own;
    char type[64];
    tern_json_inside(tern_part_begin(c, OPEN), piece);
    tern_part_end(c);
    snprintf(type, sizeof type, "response.%s.delta", stem_of(a->kind));
    if (!begin_item_event(c, o, type))
        return;
    tern_json_text(o, "delta", piece);
    if (a->kind == TERN_PART_TEXT) {
        tern_json_begin(o, "logprobs", '[');
        tern_json_end(o, ']');
    }
    end_event(o);
}

static void take_part(struct tern_choice *c, struct tern_out *o, const tern_part *p)
{
    if (p->kind == TERN_PART_CALL_END) {
        close_item(c, o, !p->whole && is_cut(c));
        return;
    }
    if (p->kind != TERN_PART_ARGUMENTS)
        open_item(c, o, p);
    if (p->kind != TERN_PART_CALL)
        add_piece(c, o, p->text);
}

/* --- the engine's side --- */

static void on_begin(struct tern_job *j, struct tern_out *o)
{
    response_event(&j->choices[0], o, "response.created");
    response_event(&j->choices[0], o, "response.in_progress");
}

static void on_event(struct tern_choice *c, const tern_event *e, struct tern_out *o)
{
    struct tern_chat *chat = c->own;
    tern_part part;
    tern_reply_push(chat->reader, e->text, e->kind == TERN_EVENT_DONE);
    while (tern_reply_next(chat->reader, &part))
        take_part(c, o, &part);
    if (e->kind == TERN_EVENT_DONE)
        close_item(c, o, is_cut(c));
}

static void on_end(struct tern_job *j, struct tern_out *o)
{
    struct tern_choice *c = &j->choices[0];
    if (j->stream) {
        response_event(c, o, strcmp(c->finish, "length") ? "response.completed"
                                                         : "response.incomplete");
        return;
    }
    tern_write_to(j->x, o);
    write_response(c, o, NULL);
    tern_out_flush(o);
}

static const struct tern_job_kind responses = {.begin = on_begin, .event = on_event, .end = on_end};

/* The kitchen's memory is long another request's when it is written: its text lies in the job's. */
static tern_text keep_given(struct tern_job *j, const json_t *given)
{
    struct tern_out text;
    tern_text kept = {NULL, 0};
    tern_out_open(&text, -1);
    if (given && !json_is_null(given) &&
        json_dump_callback(given, tern_json_put, &text, JSON_ENCODE_ANY) == 0 &&
        tern_out_flush(&text) && text.n <= GIVEN_BACK)
        kept = tern_job_keep(j, text.grown, text.n);
    tern_out_free(&text);
    return kept;
}

bool tern_responses_prepare(struct tern_call *c)
{
    struct tern_job *j = c->job;
    json_t *tools = json_incref(json_object_get(c->body, "tools")); /* a chat's take their place */
    const bool ok = tern_responses_as_chat(c) && tern_chat_prepare_as(c, &responses, -1);
    struct answer *a = ok ? tern_job_take(j, 1, sizeof *a) : NULL;
    if (a) {
        a->choice = keep_given(j, json_object_get(c->body, "tool_choice"));
        a->tools = keep_given(j, tools);
        a->one_call = json_is_false(json_object_get(c->body, "parallel_tool_calls"));
    }
    json_decref(tools);
    j->own = a;
    return a || (ok && tern_call_fail(c, 413, NULL, NULL, "no memory for the reply"));
}
