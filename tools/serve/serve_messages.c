/* serve_messages.c: what a conversation may hold is looked at before a template sees it, so that
 * an error names the message and the field. */
#include "tools/serve/serve_messages.h"

#include <stdio.h>
#include <string.h>

static bool wrong(struct tern_call *c, const char *at, const char *needed)
{
    return tern_call_fail(c, 400, at, NULL, "%s: %s needed", at, needed);
}

/* A part of a message's content. */
static bool check_part(struct tern_call *c, const json_t *part, size_t message, size_t i)
{
    char at[64];
    const char *type = json_string_value(json_object_get(part, "type"));
    snprintf(at, sizeof at, "messages[%zu].content[%zu]", message, i);
    if (!type)
        return wrong(c, at, "an object with a type");
    if (strcmp(type, "text") == 0 || strcmp(type, "input_text") == 0 ||
        strcmp(type, "refusal") == 0)
        return json_is_string(json_object_get(part, type[0] == 'r' ? "refusal" : "text")) ||
               wrong(c, at, "a text");
    if (strcmp(type, "image_url") == 0 || strcmp(type, "input_image") == 0)
        return tern_call_fail(c, 400, at, "unsupported_content", "%s: images: this model reads "
                              "text alone", at);
    return tern_call_fail(c, 400, at, "unsupported_content", "%s: parts of type text are taken, "
                          "no others", at);
}

static bool check_content(struct tern_call *c, const json_t *message, size_t i)
{
    char at[64];
    const json_t *content = json_object_get(message, "content"), *part;
    size_t k;
    snprintf(at, sizeof at, "messages[%zu].content", i);
    if (json_is_string(content))
        return true;
    if (!content || json_is_null(content))
        return json_array_size(json_object_get(message, "tool_calls")) > 0 ||
               json_is_string(json_object_get(message, "reasoning_content")) ||
               wrong(c, at, "a text or a list of parts");
    if (!json_is_array(content))
        return wrong(c, at, "a text or a list of parts");
    json_array_foreach(content, k, part)
        if (!check_part(c, part, i, k))
            return false;
    return true;
}

static bool check_calls(struct tern_call *c, const json_t *message, size_t i)
{
    char at[64];
    const json_t *calls = json_object_get(message, "tool_calls"), *call;
    size_t k;
    if (!calls || json_is_null(calls))
        return true;
    snprintf(at, sizeof at, "messages[%zu].tool_calls", i);
    if (!json_is_array(calls))
        return wrong(c, at, "a list");
    json_array_foreach(calls, k, call) {
        const json_t *function = json_object_get(call, "function");
        const json_t *arguments = json_object_get(function, "arguments");
        if (!json_is_string(json_object_get(function, "name")))
            return wrong(c, at, "functions with a name");
        if (arguments && !json_is_string(arguments) && !json_is_object(arguments))
            return wrong(c, at, "arguments as text");
    }
    return true;
}

static bool check_message(struct tern_call *c, const json_t *message, size_t i)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool",
                                        "function"};
    char at[64];
    const char *role = json_string_value(json_object_get(message, "role"));
    snprintf(at, sizeof at, "messages[%zu].role", i);
    for (size_t k = 0; role && k < sizeof roles / sizeof roles[0]; k++)
        if (strcmp(role, roles[k]) == 0)
            return check_content(c, message, i) && check_calls(c, message, i);
    return wrong(c, at, "system, developer, user, assistant or tool");
}

static bool check_tools(struct tern_call *c, const json_t *tools)
{
    char at[64];
    size_t i;
    const json_t *tool;
    if (tools && !json_is_array(tools))
        return wrong(c, "tools", "a list");
    json_array_foreach(tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        const json_t *parameters = json_object_get(function, "parameters");
        const char *type = json_string_value(json_object_get(tool, "type"));
        snprintf(at, sizeof at, "tools[%zu]", i);
        if (type && strcmp(type, "function") != 0)
            return wrong(c, at, "the type function");
        if (json_string_length(json_object_get(function, "name")) == 0)
            return wrong(c, at, "a function with a name");
        if (parameters && !json_is_object(parameters) && !json_is_null(parameters))
            return wrong(c, at, "parameters as a schema");
    }
    return true;
}

bool tern_messages_check(struct tern_call *c, json_t **tools)
{
    size_t i;
    const json_t *message;
    const json_t *messages = json_object_get(c->body, "messages");
    *tools = json_object_get(c->body, "tools");
    *tools = json_is_null(*tools) ? NULL : *tools;
    if (c->server->no_chat[0])
        return tern_call_fail(c, 400, "messages", NULL, "%s", c->server->no_chat);
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return wrong(c, "messages", "a list of at least one message");
    json_array_foreach(messages, i, message)
        if (!check_message(c, message, i))
            return false;
    if (!check_tools(c, *tools))
        return false;
    *tools = json_array_size(*tools) ? *tools : NULL;
    return true;
}

/* Whether the last message is to be continued: as llama-server has it, where it is the assistant's,
 * unless a new one is asked for; as vLLM has it, where that is said. */
static bool read_ending(struct tern_call *c, bool *generation, bool *goes_on)
{
    const json_t *said = json_object_get(c->body, "continue_final_message");
    const json_t *new_one = json_object_get(c->body, "add_generation_prompt");
    const bool can = tern_chat_can_go_on(json_object_get(c->body, "messages"));
    *generation = true;
    *goes_on = can && !json_is_true(new_one);
    if (!tern_field_bool(c, "add_generation_prompt", generation) ||
        !tern_field_bool(c, "continue_final_message", goes_on))
        return false;
    if (json_is_true(said) && !can)
        return wrong(c, "continue_final_message", "a last message of the assistant's, behind "
                     "others and without tool_calls,");
    if (json_is_true(said) && json_is_true(new_one))
        return wrong(c, "continue_final_message", "add_generation_prompt: false");
    return true;
}

static bool render(struct tern_call *c, struct tern_chat_request *r, const json_t *last,
                   struct tern_chat_prompt *out)
{
    char line[TERN_ARGS_LINE] = "";
    tern_reply_options tags;
    const struct tern_chat_template *t = &c->server->chat;
    tern_reply_detect(t->source, &tags);
    return (tern_chat_render(t, r, out, line) &&
            (!last || tern_chat_go_on(out, last, &tags, line))) ||
           tern_call_fail(c, 400, "messages", NULL, "%s", line);
}

bool tern_messages_render(struct tern_call *c, json_t *tools, json_t *variables,
                          struct tern_chat_prompt *out)
{
    json_t *given = json_object_get(c->body, "chat_template_kwargs"), *last = NULL;
    json_t *messages = json_object_get(c->body, "messages");
    bool generation, goes_on;
    if (given && !json_is_null(given) && !json_is_object(given))
        return wrong(c, "chat_template_kwargs", "an object");
    if (json_object_size(given) > TERN_CHAT_VARIABLES)
        return tern_call_fail(c, 400, "chat_template_kwargs", NULL, "chat_template_kwargs: %zu "
                              "given, at most %d", json_object_size(given), TERN_CHAT_VARIABLES);
    if (!read_ending(c, &generation, &goes_on))
        return false;
    if (goes_on) {
        last = json_incref(json_array_get(messages, json_array_size(messages) - 1));
        json_array_remove(messages, json_array_size(messages) - 1);
    }
    json_t *all = json_is_object(given) ? json_copy(given) : json_object();
    if (variables)
        json_object_update(all, variables);
    struct tern_chat_request r = {
        .messages = messages,
        .tools = tools,
        .variables = all,
        .generation = generation || goes_on,
        .adapt = true,
    };
    const bool ok = render(c, &r, last, out);
    json_decref(all);
    json_decref(last);
    return ok;
}
