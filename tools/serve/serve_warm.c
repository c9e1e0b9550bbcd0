/* serve_warm.c: --warm: a prompt that is computed before the first request, so that whatever begins
 * with it finds it in the index of prefixes: a system prompt and tools, as a chat request has them,
 * or the prompt of a completion. */
#include "tools/serve/serve_warm.h"

#include "tools/ids.h"
#include "tools/interrupt.h"

#include <stdio.h>
#include <string.h>

static bool fail(char line[TERN_ARGS_LINE], const char *why)
{
    char text[TERN_ARGS_LINE];
    snprintf(text, sizeof text, "--warm: %.280s", why);
    memcpy(line, text, sizeof text);
    return false;
}

/* Computes tokens in a sequence of their own. */
static bool prefill(struct tern_server *s, const tern_token *ids, size_t n,
                    char line[TERN_ARGS_LINE])
{
    enum { EVENTS = 4 };
    tern_engine *engine = s->session.engine;
    const tern_seq_options options = {.sampling = {.top_p = 1, .typical_p = 1,
                                                   .repeat_penalty = 1}, .prefill_only = true};
    tern_event events[EVENTS];
    tern_seq seq;
    size_t n_events;
    if (tern_seq_open(engine, &options, &seq) != TERN_OK ||
        tern_seq_feed(engine, seq, ids, n) != TERN_OK)
        return fail(line, tern_engine_error(engine)->text);
    tern_status status = TERN_OK;
    while (status == TERN_OK && !tern_interrupted())
        status = tern_step(engine, events, EVENTS, &n_events);
    tern_seq_close(engine, seq);
    return status == TERN_AGAIN || status == TERN_OK || fail(line, tern_engine_error(engine)->text);
}

static bool warm(struct tern_server *s, const tern_rendered *text, uint32_t flags,
                 char line[TERN_ARGS_LINE])
{
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of_rendered(s->session.model, text, flags, &ids, &err))
        return fail(line, err.text);
    const bool ok = prefill(s, ids.at, ids.n, line);
    if (ok)
        fprintf(stderr, "tern: warm: %zu tokens of %s\n", ids.n, s->settings->warm);
    tern_ids_free(&ids);
    return ok;
}

static bool warm_chat(struct tern_server *s, const json_t *body, char line[TERN_ARGS_LINE])
{
    struct tern_chat_prompt prompt = {0};
    char why[TERN_ARGS_LINE] = "";
    json_t *tools = json_object_get(body, "tools");
    json_t *kwargs = json_object_get(body, "chat_template_kwargs");
    struct tern_chat_request r = {
        .messages = json_object_get(body, "messages"),
        .tools = json_array_size(tools) ? tools : NULL,
        .variables = json_is_object(kwargs) ? kwargs : NULL,
        .adapt = true,
    };
    if (s->no_chat[0])
        return fail(line, s->no_chat);
    if (!tern_chat_render(&s->chat, &r, &prompt, why))
        return fail(line, why);
    const bool ok = warm(s, &prompt.rendered, tern_chat_flags(&s->chat, &prompt), line);
    tern_chat_prompt_free(&prompt);
    return ok;
}

bool tern_serve_warm(struct tern_server *s, char line[TERN_ARGS_LINE])
{
    char why[TERN_ARGS_LINE] = "";
    json_t *body = tern_chat_read_json(s->settings->warm, "object", why);
    if (!body)
        return fail(line, why);
    const json_t *prompt = json_object_get(body, "prompt");
    const tern_rendered text = {.text = {json_string_value(prompt), json_string_length(prompt)}};
    bool ok;
    if (text.text.size)
        ok = warm(s, &text, TERN_TOKENIZE_SPECIAL, line);
    else if (json_is_array(json_object_get(body, "messages")))
        ok = warm_chat(s, body, line);
    else
        ok = fail(line, "a list of messages (and tools), or a prompt, needed");
    json_decref(body);
    return ok;
}
