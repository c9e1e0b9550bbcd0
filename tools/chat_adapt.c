#include "tools/chat_adapt.h"

#include "tools/json_text.h"
#include "tools/out.h"

#include <errno.h>
#include <string.h>

void tern_chat_turn_arguments(json_t *messages, bool to_objects)
{
    size_t i, k;
    json_t *message, *call;
    json_array_foreach(messages, i, message) {
        json_array_foreach(json_object_get(message, "tool_calls"), k, call) {
            json_t *function = json_object_get(call, "function");
            json_t *of = json_is_object(function) ? function : call;
            json_t *arguments = json_object_get(of, "arguments");
            if (to_objects && json_is_string(arguments)) {
                json_t *object = json_loadb(json_string_value(arguments),
                                            json_string_length(arguments), JSON_ALLOW_NUL, NULL);
                if (object)
                    json_object_set_new(of, "arguments", object);
            } else if (!to_objects && json_is_object(arguments)) {
                char *text = json_dumps(arguments, 0);
                json_object_set_new(of, "arguments", text ? json_string(text) : json_string("{}"));
                tern_json_drop(text);
            }
        }
    }
}

/* --- texts put together --- */

static void put(struct tern_out *o, const char *text)
{
    tern_out_put(o, text, strlen(text));
}

static void put_text(struct tern_out *o, const json_t *text)
{
    tern_out_put(o, json_string_value(text), json_string_length(text));
}

/* The text of content: a string, or the texts of a list of parts. */
static void put_content(struct tern_out *o, const json_t *content)
{
    size_t i;
    const json_t *part;
    put_text(o, content);
    json_array_foreach(content, i, part)
        put_text(o, json_object_get(part, "text"));
}

static void put_json(struct tern_out *o, const json_t *json)
{
    if (!json)
        put(o, "{}");
    else if (json_dump_callback(json, tern_json_put, o, 0) != 0)
        o->error = ENOMEM;
}

/* What was put together, as JSON; NULL: no memory. The text's memory is given back. */
static json_t *take(struct tern_out *o)
{
    json_t *text = tern_out_flush(o) ? json_stringn(o->grown ? o->grown : "", o->n) : NULL;
    tern_out_free(o);
    return text;
}

/* --- changes --- */

bool tern_chat_has_parts(const json_t *messages)
{
    size_t i;
    const json_t *message;
    json_array_foreach(messages, i, message)
        if (json_is_array(json_object_get(message, "content")))
            return true;
    return false;
}

bool tern_chat_join_parts(json_t *messages)
{
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        struct tern_out text;
        if (!json_is_array(content))
            continue;
        tern_out_open(&text, -1);
        put_content(&text, content);
        if (json_object_set_new(message, "content", take(&text)) != 0)
            return false;
    }
    return true;
}

void tern_chat_rename_developer(json_t *messages)
{
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        const char *role = json_string_value(json_object_get(message, "role"));
        if (role && strcmp(role, "developer") == 0)
            json_object_set_new(message, "role", json_string("system"));
    }
}

bool tern_chat_describe_tools(json_t *messages, const json_t *tools)
{
    size_t i;
    const json_t *tool;
    json_t *first = json_array_get(messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    const bool has_system = role && strcmp(role, "system") == 0;
    struct tern_out text;
    tern_out_open(&text, -1);
    if (has_system)
        put_content(&text, json_object_get(first, "content"));
    put(&text, text.n ? "\n\nYou can call these functions:\n" : "You can call these functions:\n");
    json_array_foreach(tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        put_json(&text, function ? function : tool);
        put(&text, "\n");
    }
    put(&text, "To call one, answer with <tool_call>{\"name\": ..., "
               "\"arguments\": {...}}</tool_call> alone.");
    json_t *all = take(&text);
    if (has_system)
        return json_object_set_new(first, "content", all) == 0;
    return json_array_insert_new(messages, 0, json_pack("{s:s, s:o}", "role", "system", "content",
                                                        all)) == 0;
}

bool tern_chat_write_calls(json_t *messages)
{
    size_t i, k;
    json_t *message;
    const json_t *call;
    json_array_foreach(messages, i, message) {
        const json_t *calls = json_object_get(message, "tool_calls");
        struct tern_out text;
        if (json_array_size(calls) == 0)
            continue;
        tern_out_open(&text, -1);
        put_content(&text, json_object_get(message, "content"));
        json_array_foreach(calls, k, call) {
            put(&text, text.n ? "\n<tool_call>" : "<tool_call>");
            put_json(&text, json_object_get(call, "function"));
            put(&text, "</tool_call>");
        }
        if (json_object_set_new(message, "content", take(&text)) != 0)
            return false;
    }
    return true;
}

bool tern_chat_fill_content(json_t *messages)
{
    size_t i;
    json_t *message;
    bool any = false;
    json_array_foreach(messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        if (content && !json_is_null(content))
            continue;
        any = true;
        json_object_set_new(message, "content", json_string(""));
    }
    return any;
}
