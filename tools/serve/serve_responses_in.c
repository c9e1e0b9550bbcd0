/* serve_responses_in.c: items to messages, and names of /v1/responses to those of a chat. */
#include "tools/serve/serve_responses.h"

#include <stdio.h>
#include <string.h>

static bool wrong(struct tern_call *c, const char *at, const char *needed)
{
    return tern_call_fail(c, 400, at, NULL, "%s: %s needed", at, needed);
}

static json_t *get(const json_t *object, const char *key)
{
    return json_incref(json_object_get(object, key));
}

/* Parts of text by the names that a chat has for them; others keep theirs, and are refused. */
static json_t *content_of(const json_t *item)
{
    const json_t *given = json_object_get(item, "content"), *part;
    size_t i;
    if (!json_is_array(given))
        return get(item, "content");
    json_t *list = json_array();
    json_array_foreach(given, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        json_t *copy = json_copy((json_t *)(uintptr_t)part);
        if (type && (strcmp(type, "input_text") == 0 || strcmp(type, "output_text") == 0))
            json_object_set_new(copy, "type", json_string("text"));
        json_array_append_new(list, copy);
    }
    return list;
}

/* A call joins those of the message before it. */
static bool add_call(json_t *messages, const json_t *item)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    json_t *calls = json_object_get(last, "tool_calls");
    json_t *call = json_pack("{s:o*, s:s, s:{s:o*, s:o*}}", "id", get(item, "call_id"), "type",
                             "function", "function", "name", get(item, "name"), "arguments",
                             get(item, "arguments"));
    if (calls)
        return json_array_append_new(calls, call) == 0;
    return json_array_append_new(messages, json_pack("{s:s, s:n, s:[o]}", "role", "assistant",
                                                     "content", "tool_calls", call)) == 0;
}

static bool add_item(struct tern_call *c, json_t *messages, const json_t *item, size_t i)
{
    char at[48];
    const char *type = json_string_value(json_object_get(item, "type"));
    snprintf(at, sizeof at, "input[%zu]", i);
    if (!json_is_object(item))
        return wrong(c, at, "an object");
    if (!type || strcmp(type, "message") == 0)
        return json_array_append_new(messages, json_pack("{s:o*, s:o*}", "role",
                                                         get(item, "role"), "content",
                                                         content_of(item))) == 0;
    if (strcmp(type, "function_call") == 0)
        return add_call(messages, item);
    if (strcmp(type, "function_call_output") == 0)
        return json_array_append_new(messages, json_pack("{s:s, s:o*, s:o*}", "role", "tool",
                                                         "tool_call_id", get(item, "call_id"),
                                                         "content", get(item, "output"))) == 0;
    if (strcmp(type, "reasoning") == 0)
        return true;
    return wrong(c, at, "a message, a function_call or its output");
}

static bool set_messages(struct tern_call *c)
{
    json_t *messages = json_array(), *item;
    const json_t *instructions = json_object_get(c->body, "instructions");
    json_t *input = json_object_get(c->body, "input");
    size_t i;
    json_object_set_new(c->body, "messages", messages);
    json_object_set_new(c->body, "continue_final_message", json_false());
    if (json_is_string(instructions))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content",
                                                  instructions));
    if (json_is_string(input))
        return json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content",
                                                         input)) == 0;
    if (!json_is_array(input) || json_array_size(input) == 0)
        return wrong(c, "input", "a text or a list of items");
    json_array_foreach(input, i, item)
        if (!add_item(c, messages, item, i))
            return c->answered ? false : wrong(c, "input", "less");
    return true;
}

/* Tools stand flat here; a chat has them within `function`. */
static bool set_tools(struct tern_call *c)
{
    json_t *given = json_object_get(c->body, "tools"), *tool;
    size_t i;
    if (!json_is_array(given))
        return !given || json_is_null(given) || wrong(c, "tools", "a list");
    json_t *tools = json_array();
    json_array_foreach(given, i, tool) {
        const char *type = json_string_value(json_object_get(tool, "type"));
        if (!type || strcmp(type, "function") != 0)
            return tern_call_fail(c, 400, "tools", NULL, "tools[%zu]: functions alone are "
                                  "supported", i);
        json_array_append_new(tools, json_pack("{s:s, s:O}", "type", "function", "function",
                                               tool));
    }
    return json_object_set_new(c->body, "tools", tools) == 0;
}

static bool set_format(struct tern_call *c)
{
    const json_t *format = json_object_get(json_object_get(c->body, "text"), "format");
    const json_t *reasoning = json_object_get(c->body, "reasoning");
    if (json_is_object(format))
        json_object_set_new(c->body, "response_format", json_copy((json_t *)(uintptr_t)format));
    if (json_is_string(json_object_get(reasoning, "effort")))
        json_object_set_new(c->body, "reasoning_effort", get(reasoning, "effort"));
    return true;
}

bool tern_responses_as_chat(struct tern_call *c)
{
    const json_t *previous = json_object_get(c->body, "previous_response_id");
    if (previous && !json_is_null(previous))
        return tern_call_fail(c, 400, "previous_response_id", "unsupported",
                              "previous_response_id: this server keeps no responses; send the "
                              "conversation in input");
    json_object_del(c->body, "n");
    json_object_del(c->body, "top_logprobs");
    return set_messages(c) && set_tools(c) && set_format(c);
}
