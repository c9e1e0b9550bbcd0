/* serve_chat.c: /v1/chat/completions: conversations, reasoning, calls of tools.
 *
 * What is generated goes through the core's reader of replies, which says of each piece whether it
 * is answer, reasoning or a call; a stream passes the pieces on as they come, a whole answer keeps
 * them, so that the two hold the same. */
#include "tools/serve/endpoints.h"
#include "tools/reply_plan.h"
#include "tools/serve/serve_chat.h"
#include "tools/serve/serve_messages.h"

#include <stdio.h>
#include <string.h>

enum { CONTENT, REASONING, LOGPROBS, CALLS }; /* of an answer's parts */

/* --- log-probabilities --- */

static void add_logprob(struct tern_choice *c, const tern_event *e)
{
    struct tern_job *j = c->job;
    if (j->n_top < 0 || e->kind != TERN_EVENT_TOKEN)
        return;
    struct tern_out *o = tern_part_begin(c, LOGPROBS);
    tern_json_begin(o, NULL, '{');
    tern_write_logprob(j->server, o, e->token, e->logprob);
    tern_json_begin(o, "top_logprobs", '[');
    for (uint32_t i = 0; i < e->n_logprobs && i < (uint32_t)j->n_top; i++) {
        tern_json_begin(o, NULL, '{');
        tern_write_logprob(j->server, o, e->logprobs[i].token, e->logprobs[i].logprob);
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
    tern_json_end(o, '}');
    tern_part_end(c);
}

static void write_logprobs(struct tern_choice *c, struct tern_out *o)
{
    if (c->job->n_top < 0 || c->parts[LOGPROBS].size == 0) {
        tern_json_null(o, "logprobs");
        return;
    }
    tern_json_begin(o, "logprobs", '{');
    tern_part_write(c, LOGPROBS, o, "content", "[]");
    tern_json_end(o, '}');
}

static void write_call_head(struct tern_choice *c, const tern_part *p, struct tern_out *o)
{
    char id[64];
    const struct tern_job *j = c->job;
    snprintf(id, sizeof id, "call_%llx%llx_%u_%u", (unsigned long long)j->created,
             (unsigned long long)j->number, c->index, p->call);
    tern_json_string(o, "id", id);
    tern_json_string(o, "type", "function");
    tern_json_begin(o, "function", '{');
    tern_json_text(o, "name", p->text);
}

/* --- whole: each piece is kept --- */

static void keep_part(struct tern_choice *c, const tern_part *p)
{
    static const char opened[] = ", \"arguments\": \"", closed[] = "\"}}";
    const uint32_t part = p->kind == TERN_PART_TEXT ? CONTENT
                          : p->kind == TERN_PART_REASONING ? REASONING : CALLS;
    struct tern_out *o = tern_part_begin(c, part);
    if (p->kind == TERN_PART_CALL) {
        tern_json_begin(o, NULL, '{');
        write_call_head(c, p, o);
        tern_out_put(o, opened, sizeof opened - 1);
    } else if (p->kind == TERN_PART_CALL_END) {
        tern_out_put(o, closed, sizeof closed - 1);
    } else {
        tern_json_inside(o, p->text);
    }
    tern_part_end(c);
}

static void write_whole(struct tern_choice *c, struct tern_out *o)
{
    tern_json_begin(o, "message", '{');
    tern_json_string(o, "role", "assistant");
    if (c->parts[CONTENT].size || !c->parts[CALLS].size)
        tern_part_write(c, CONTENT, o, "content", "\"\"");
    else
        tern_json_null(o, "content");
    if (c->parts[REASONING].size)
        tern_part_write(c, REASONING, o, "reasoning_content", "\"\"");
    if (c->parts[CALLS].size)
        tern_part_write(c, CALLS, o, "tool_calls", "[]");
    tern_json_end(o, '}');
    write_logprobs(c, o);
}

static const struct tern_choices_form form = {"chatcmpl", "chat.completion",
                                              "chat.completion.chunk", write_whole};

/* --- a stream: each piece is a delta of its own --- */

static struct tern_out *begin_delta(struct tern_choice *c, struct tern_out *o)
{
    struct tern_chat *chat = c->own;
    tern_choice_begin(c, o, &form);
    tern_json_begin(o, "delta", '{');
    if (!chat->spoke)
        tern_json_string(o, "role", "assistant");
    chat->spoke = true;
    return o;
}

static void end_delta(struct tern_choice *c, struct tern_out *o, const char *finish)
{
    tern_json_end(o, '}');
    write_logprobs(c, o);
    tern_choice_end(c, o, finish, NULL);
}

static void stream_call(struct tern_choice *c, const tern_part *p, struct tern_out *o)
{
    tern_json_begin(o, "tool_calls", '[');
    tern_json_begin(o, NULL, '{');
    tern_json_u64(o, "index", p->call);
    if (p->kind == TERN_PART_CALL) {
        write_call_head(c, p, o);
        tern_json_string(o, "arguments", "");
    } else {
        tern_json_begin(o, "function", '{');
        tern_json_text(o, "arguments", p->text);
    }
    tern_json_end(o, '}');
    tern_json_end(o, '}');
    tern_json_end(o, ']');
}

static void stream_part(struct tern_choice *c, const tern_part *p, struct tern_out *o)
{
    if (p->kind == TERN_PART_CALL_END)
        return;
    begin_delta(c, o);
    if (p->kind == TERN_PART_TEXT)
        tern_json_text(o, "content", p->text);
    else if (p->kind == TERN_PART_REASONING)
        tern_json_text(o, "reasoning_content", p->text);
    else
        stream_call(c, p, o);
    end_delta(c, o, NULL);
}

/* --- the engine's side --- */

static void on_event(struct tern_choice *c, const tern_event *e, struct tern_out *o)
{
    struct tern_job *j = c->job;
    struct tern_chat *chat = c->own;
    tern_part part;
    add_logprob(c, e);
    tern_reply_push(chat->reader, e->text, e->kind == TERN_EVENT_DONE);
    while (tern_reply_next(chat->reader, &part)) {
        chat->n_calls += part.kind == TERN_PART_CALL;
        if (j->stream)
            stream_part(c, &part, o);
        else
            keep_part(c, &part);
    }
    if (e->kind == TERN_EVENT_DONE && chat->n_calls && strcmp(c->finish, "stop") == 0)
        c->finish = "tool_calls";
    if (!j->stream)
        return;
    if (!chat->spoke || (e->kind == TERN_EVENT_TOKEN && c->parts[LOGPROBS].size)) {
        tern_json_string(begin_delta(c, o), "content", "");
        end_delta(c, o, NULL);
    }
    if (e->kind == TERN_EVENT_DONE)
        end_delta(c, begin_delta(c, o), c->finish);
}

static void on_end(struct tern_job *j, struct tern_out *o)
{
    tern_choices_end(j, o, &form);
}

static void on_progress(struct tern_choice *c, const struct tern_progress_made *p,
                        struct tern_out *o)
{
    tern_choice_begin(c, o, &form);
    tern_json_begin(o, "delta", '{');
    tern_json_end(o, '}');
    tern_choice_end(c, o, NULL, p);
}

static const struct tern_job_kind chat_kind = {NULL, on_event, on_end, on_progress, NULL};

/* --- the kitchen's side --- */

static bool read_logprobs(struct tern_call *c)
{
    struct tern_job *j = c->job;
    bool wanted = false;
    int64_t top = -1;
    if (!tern_field_bool(c, "logprobs", &wanted) ||
        !tern_field_int(c, "top_logprobs", 0, TERN_SERVE_LOGPROBS, &top))
        return false;
    if (top > 0 && !wanted)
        return tern_call_fail(c, 400, "top_logprobs", NULL, "top_logprobs: logprobs: true needed");
    if (wanted) {
        j->n_top = top > 0 ? (int32_t)top : 0;
        j->options.n_logprobs = j->n_top > 1 ? (uint32_t)j->n_top : 1;
    }
    return true;
}

/* --- how the reply is to be read, and what it is held to --- */

/* The tools are looked at while the reply is read, when the kitchen's memory is long another
 * request's: a copy lies in the job's. */
static json_t *keep_tools(struct tern_call *c, json_t *tools)
{
    struct tern_job *j = c->job;
    struct tern_json_arena own = {.base = (char *)j->memory.data + j->used,
                                  .size = j->memory.size - j->used};
    tern_json_arena_use(&own);
    json_t *copy = json_deep_copy(tools);
    tern_json_arena_use(&c->server->json);
    j->used += own.used;
    if (own.failed || !copy)
        (void)tern_call_fail(c, 413, "tools", NULL, "tools: more than this server keeps");
    return own.failed ? NULL : copy;
}

static bool read_request(struct tern_call *c, json_t *tools, struct tern_reply_request *r)
{
    char line[TERN_ARGS_LINE];
    struct tern_request_format format;
    const json_t *kwargs = json_object_get(c->body, "chat_template_kwargs");
    const json_t *thinking = json_object_get(kwargs, "enable_thinking");
    const json_t *effort = json_object_get(c->body, "reasoning_effort");
    bool many = true;
    int64_t budget = -1;
    if (!tern_field_bool(c, "parallel_tool_calls", &many) ||
        !tern_field_int(c, "reasoning_budget", -1, INT32_MAX, &budget) ||
        !tern_request_format(c, &format))
        return false;
    if (effort && !json_is_string(effort) && !json_is_null(effort))
        return tern_call_fail(c, 400, "reasoning_effort", NULL, "reasoning_effort: a text needed");
    if (!tern_reply_choice(json_object_get(c->body, "tool_choice"), r, line))
        return tern_call_fail(c, 400, "tool_choice", NULL, "%s", line);
    r->tools = tools && r->choice != TERN_TOOLS_NONE ? keep_tools(c, tools) : NULL;
    r->one_call = !many;
    r->effort = json_string_value(effort);
    r->has_thinking = json_is_boolean(thinking);
    r->thinking = json_is_true(thinking);
    r->has_budget = budget >= 0;
    r->budget = budget >= 0 ? (uint32_t)budget : 0;
    r->schema = format.schema;
    r->any_object = format.any_object;
    r->grammar = format.grammar;
    return !c->answered;
}

/* What the plan holds beside the job's memory goes, or becomes the job's. */
static void settle_plan(struct tern_job *j, struct tern_reply_plan *p)
{
    j->constraint = p->constraint;
    memset(&p->constraint, 0, sizeof p->constraint);
    tern_out_free(&p->gbnf);
    tern_out_free(&p->dropped);
    json_decref(p->variables);
    p->variables = NULL;
}

/* Readers, one a choice. */
static bool open_readers(struct tern_call *c, const tern_reply_options *reply)
{
    struct tern_job *j = c->job;
    for (uint32_t i = 0; i < j->n_choices; i++) {
        struct tern_chat *chat = tern_job_take(j, 1, sizeof *chat);
        void *mem = tern_job_take(j, TERN_REPLY_BYTES, 1);
        j->choices[i].own = chat;
        if (!chat || !mem ||
            tern_reply_init((tern_memory){mem, TERN_REPLY_BYTES}, reply, &chat->reader, NULL))
            return tern_call_fail(c, 413, "n", NULL, "n: no memory for so many answers");
    }
    return true;
}

/* Which of its fields it is about. */
static bool refuse_plan(struct tern_call *c, bool tools, const char *line)
{
    struct tern_request_format format;
    if (strncmp(line, "tool_choice", 11) == 0)
        return tern_call_fail(c, 400, "tool_choice", NULL, "%s", line);
    if (tools && strncmp(line, "schema", 6) != 0)
        return tern_call_fail(c, 400, "tools", NULL, "%s", line);
    if (!tern_request_format(c, &format))
        return false;
    return tern_call_fail(c, 400, format.param, NULL, "%s%s%s", format.param ? format.param : "",
                          format.param ? ": " : "", line);
}

/* Keywords of the tools' schemas that are not kept to, in a header: as many as have room. */
static void report_dropped(struct tern_call *c, const struct tern_out *dropped)
{
    char value[400];
    size_t n = 0;
    for (size_t i = 0; i + 1 < dropped->n && n + 2 < sizeof value; i++) {
        const char byte = dropped->grown[i];
        value[n++] = byte == '\n' ? ';' : byte >= ' ' && byte <= '~' ? byte : '?';
        if (byte == '\n')
            value[n++] = ' ';
    }
    value[n] = '\0';
    if (n)
        tern_http_add_header(c->x, "X-Dropped-Keywords", value);
}

static bool prepare_reply(struct tern_call *c, struct tern_reply_plan *p, json_t *tools)
{
    char line[TERN_ARGS_LINE] = "";
    struct tern_chat_prompt prompt = {0};
    struct tern_reply_request r = {.work = &c->effort};
    const struct tern_server *s = c->server;
    if (!read_request(c, tools, &r))
        return false;
    if (!tern_reply_plan_open(p, s->session.model, s->chat.source, &r, true, line))
        return refuse_plan(c, tools != NULL, line);
    report_dropped(c, &p->dropped);
    if (!tern_messages_render(c, p->tools, p->variables, &prompt))
        return false;
    if (prompt.goes_on)
        p->reader.thinks = prompt.thinks;
    else
        tern_reply_plan_prompt(p, prompt.rendered.text);
    tern_reply_plan_options(p, &c->job->options);
    const bool ok = open_readers(c, &p->reader) &&
                    tern_prompts_rendered(c, 0, &prompt.rendered,
                                          tern_chat_flags(&s->chat, &prompt));
    tern_chat_prompt_free(&prompt);
    return ok;
}

bool tern_chat_prepare_as(struct tern_call *c, const struct tern_job_kind *kind, int64_t max)
{
    json_t *tools;
    if (!tern_request_read(c, max) || !read_logprobs(c) || !tern_prompts_open(c, 1) ||
        !tern_messages_check(c, &tools))
        return false;
    struct tern_reply_plan *plan = tern_job_take(c->job, 1, sizeof *plan);
    if (!plan)
        return tern_call_fail(c, 413, NULL, NULL, "no memory for the reply");
    const bool ok = prepare_reply(c, plan, tools);
    settle_plan(c->job, plan);
    c->job->kind = kind;
    return ok;
}

bool tern_chat_prepare(struct tern_call *c)
{
    return tern_chat_prepare_as(c, &chat_kind, -1);
}
