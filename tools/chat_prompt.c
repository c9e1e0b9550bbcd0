#include "tools/chat_prompt.h"

#include "platform/os/host.h"
#include "tools/json_text.h"
#include "tools/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool fail(char line[TERN_ARGS_LINE], const char *what, const char *why)
{
    snprintf(line, TERN_ARGS_LINE, "%.100s: %.200s", what, why);
    return false;
}

static json_t *check_kind(json_t *json, const char *file, const char *kind,
                          char line[TERN_ARGS_LINE])
{
    if (json && (strcmp(kind, "list") == 0 ? json_is_array(json) : json_is_object(json)))
        return json;
    if (json) {
        snprintf(line, TERN_ARGS_LINE, "%.100s: a JSON %s needed", file, kind);
        json_decref(json);
    }
    return NULL;
}

json_t *tern_chat_read_json(const char *file, const char *kind, char line[TERN_ARGS_LINE])
{
    struct tern_settings settings = {.file = file};
    struct tern_prompt text;
    json_error_t error;
    json_t *json = NULL;
    if (tern_prompt_read(&text, &settings, NULL, SIZE_MAX, line)) {
        json = json_loadb(text.text.data, text.text.size, JSON_ALLOW_NUL, &error);
        if (json == NULL)
            snprintf(line, TERN_ARGS_LINE, "%.100s: line %d: %.120s", file, error.line, error.text);
    }
    tern_prompt_free(&text);
    return check_kind(json, file, kind, line);
}

bool tern_chat_check_variables(const char *text, char line[TERN_ARGS_LINE])
{
    json_t *variables = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    const bool ok = text == NULL || json_is_object(variables);
    json_decref(variables);
    if (!ok)
        snprintf(line, TERN_ARGS_LINE, "--variables: a JSON object needed");
    return ok;
}

/* --- the template --- */

static bool needs_one(const char *what, char line[TERN_ARGS_LINE])
{
    int n = snprintf(line, TERN_ARGS_LINE, "%.60s; a file needed, or one of", what);
    const char *name;
    for (size_t i = 0; (name = tern_template_name_at(i)) != NULL && n < TERN_ARGS_LINE; i++)
        n += snprintf(line + n, (size_t)(TERN_ARGS_LINE - n), "%s %s", i ? "," : "", name);
    return false;
}

static bool read_source(struct tern_chat_template *t, const tern_model_info *info,
                        const char *name, char line[TERN_ARGS_LINE])
{
    if (name == NULL) {
        t->source = info->chat_template;
        return t->source.size > 0 || needs_one("the model has no template", line);
    }
    t->source = tern_template_builtin(name);
    if (t->source.data)
        return true;
    char missing[80];
    snprintf(missing, sizeof missing, "there is no template '%.40s'", name);
    if (strcmp(name, "-") != 0 && access(name, F_OK) != 0)
        return needs_one(missing, line);
    struct tern_settings settings = {.file = name};
    struct tern_prompt text;
    const bool ok = tern_prompt_read(&text, &settings, NULL, SIZE_MAX, line);
    t->source = text.text;
    t->source_memory = text.text_memory;
    return ok;
}

static tern_text spelled(const tern_model *model, tern_token token)
{
    tern_piece piece;
    if (token < 0 || tern_token_piece(model, token, &piece) != TERN_OK)
        return (tern_text){"", 0};
    return piece.text;
}

bool tern_chat_template_open(struct tern_chat_template *t, const tern_model *model,
                             const char *file_or_name, char line[TERN_ARGS_LINE])
{
    tern_model_info info;
    tern_error err = {0};
    memset(t, 0, sizeof *t);
    tern_model_describe(model, &info);
    if (!read_source(t, &info, file_or_name, line))
        return false;
    t->bos = spelled(model, info.bos);
    t->eos = spelled(model, info.eos);
    t->adds_bos = info.add_bos;
    const size_t need = tern_template_size(t->source);
    t->memory = tern_os_map(need ? need : 1, 64);
    if (t->memory.data == NULL)
        return fail(line, "template", "no memory for it");
    if (tern_template_init(t->memory, t->source, &t->compiled, &err) != TERN_OK) {
        snprintf(line, TERN_ARGS_LINE, "%s", err.text);
        return false;
    }
    return true;
}

void tern_chat_template_close(struct tern_chat_template *t)
{
    tern_os_unmap(t->memory);
    tern_os_unmap(t->source_memory);
    memset(t, 0, sizeof *t);
}

/* Whether a word stands in the template, for what it knows. */
static bool mentions(const struct tern_chat_template *t, const char *word)
{
    return memmem(t->source.data, t->source.size, word, strlen(word)) != NULL;
}

/* --- one rendering --- */

static bool now(void *self, tern_date *out)
{
    (void)self;
    struct tm tm;
    const time_t t = time(NULL);
    if (localtime_r(&t, &tm) == NULL)
        return false;
    *out = (tern_date){(uint32_t)tm.tm_year + 1900, (uint32_t)tm.tm_mon + 1, (uint32_t)tm.tm_mday,
                       (uint32_t)tm.tm_hour, (uint32_t)tm.tm_min, (uint32_t)tm.tm_sec};
    return true;
}

enum { MOST_VARIABLES = 64 };
struct variables { tern_variable at[MOST_VARIABLES]; size_t n; };

static bool add_json(struct variables *v, const char *name, const json_t *json)
{
    if (v->n == MOST_VARIABLES)
        return false;
    const char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT);
    if (text)
        v->at[v->n++] = (tern_variable){name, {text, strlen(text)}, {NULL, 0}};
    return text != NULL;
}

static void free_variables(struct variables *v)
{
    for (size_t i = 0; i < v->n; i++)
        tern_json_drop((char *)(uintptr_t)v->at[i].json.data);
}

static bool gather(const struct tern_chat_template *t, const struct tern_chat_request *r,
                   struct variables *v)
{
    json_t *none = json_null();
    const char *key;
    json_t *value;
    v->at[v->n++] = (tern_variable){"bos_token", {NULL, 0}, t->bos};
    v->at[v->n++] = (tern_variable){"eos_token", {NULL, 0}, t->eos};
    bool ok = add_json(v, "messages", r->messages) &&
              add_json(v, "tools", r->tools ? r->tools : none) &&
              add_json(v, "add_generation_prompt", json_boolean(r->generation));
    json_object_foreach(r->variables, key, value)
        ok = ok && add_json(v, key, value);
    return ok;
}

static bool render_once(const struct tern_chat_template *t, const struct tern_chat_request *r,
                        struct tern_chat_prompt *out, char line[TERN_ARGS_LINE])
{
    struct variables v = {.n = 0};
    tern_error err = {0};
    bool ok = false;
    tern_chat_prompt_free(out);
    if (gather(t, r, &v)) {
        const tern_render options = {.variables = v.at, .n_variables = v.n, .now = now};
        out->scratch = tern_os_map(tern_render_scratch(&options), 64);
        if (out->scratch.data == NULL)
            fail(line, "template", "no memory to render it");
        else
            ok = tern_template_render(t->compiled, &options, out->scratch, &out->rendered, &err) ==
                 TERN_OK;
        if (!ok && err.text[0])
            snprintf(line, TERN_ARGS_LINE, "%s", err.text);
    } else {
        fail(line, "template", "too many variables, or no memory for them");
    }
    free_variables(&v);
    return ok;
}

/* --- what is changed --- */

/* Arguments of all tool calls: texts to what they spell, or objects to text again. */
static void turn_arguments(json_t *messages, bool to_objects)
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

static void join_parts(json_t *messages)
{
    size_t i, k;
    json_t *message, *part;
    json_array_foreach(messages, i, message) {
        json_t *content = json_object_get(message, "content");
        if (!json_is_array(content))
            continue;
        json_t *all = json_string("");
        json_array_foreach(content, k, part) {
            const json_t *text = json_object_get(part, "text");
            if (!json_is_string(text))
                continue;
            json_t *longer = json_sprintf("%s%s", json_string_value(all), json_string_value(text));
            json_decref(all);
            all = longer;
        }
        json_object_set_new(message, "content", all);
    }
}

static void rename_developer(json_t *messages)
{
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) {
        const char *role = json_string_value(json_object_get(message, "role"));
        if (role && strcmp(role, "developer") == 0)
            json_object_set_new(message, "role", json_string("system"));
    }
}

/* The tools, one JSON object a line, and how to call one, at the end of the system message. */
static void describe_tools(json_t *messages, const json_t *tools)
{
    size_t i;
    const json_t *tool;
    json_t *first = json_array_get(messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    const bool has_system = role && strcmp(role, "system") == 0;
    const char *begin = has_system ? json_string_value(json_object_get(first, "content")) : NULL;
    json_t *text = json_sprintf("%s%sYou can call these functions:\n", begin ? begin : "",
                                begin && *begin ? "\n\n" : "");
    json_array_foreach(tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        char *spec = json_dumps(function ? function : tool, 0);
        json_t *longer = json_sprintf("%s%s\n", json_string_value(text), spec ? spec : "{}");
        tern_json_drop(spec);
        json_decref(text);
        text = longer;
    }
    json_t *all = json_sprintf("%sTo call one, answer with <tool_call>{\"name\": ..., "
                               "\"arguments\": {...}}</tool_call> alone.",
                               json_string_value(text));
    json_decref(text);
    if (has_system)
        json_object_set_new(first, "content", all);
    else
        json_array_insert_new(messages, 0, json_pack("{s:s, s:o}", "role", "system", "content",
                                                     all));
}

/* Calls of tools as text behind the content, as describe_tools asks for them. */
static void write_calls(json_t *messages)
{
    size_t i, k;
    json_t *message;
    const json_t *call;
    json_array_foreach(messages, i, message) {
        const json_t *calls = json_object_get(message, "tool_calls");
        const char *said = json_string_value(json_object_get(message, "content"));
        if (json_array_size(calls) == 0)
            continue;
        json_t *text = json_string(said ? said : "");
        json_array_foreach(calls, k, call) {
            char *spec = json_dumps(json_object_get(call, "function"), 0);
            json_t *longer = json_sprintf("%s%s<tool_call>%s</tool_call>",
                                          json_string_value(text),
                                          json_string_length(text) ? "\n" : "",
                                          spec ? spec : "{}");
            tern_json_drop(spec);
            json_decref(text);
            text = longer;
        }
        json_object_set_new(message, "content", text);
    }
}

/* Content that is not there becomes an empty one; whether there was such. */
static bool fill_content(json_t *messages)
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

/* Whether the template writes the text of a list of parts, and not the list. */
static bool takes_parts(const struct tern_chat_template *t)
{
    static const char probe[] = "Probe4711";
    char line[TERN_ARGS_LINE];
    struct tern_chat_prompt out = {0};
    struct tern_chat_request r = {
        .messages = json_pack("[{s:s, s:[{s:s, s:s}]}]", "role", "user", "content", "type", "text",
                              "text", probe),
        .generation = true,
    };
    const bool ok = r.messages && render_once(t, &r, &out, line) &&
                    memmem(out.rendered.text.data, out.rendered.text.size, probe,
                           sizeof probe - 1) &&
                    !memmem(out.rendered.text.data, out.rendered.text.size, "'Probe4711'", 11) &&
                    !memmem(out.rendered.text.data, out.rendered.text.size, "\"Probe4711\"", 11);
    tern_chat_prompt_free(&out);
    json_decref(r.messages);
    return ok;
}

static bool has_parts(json_t *messages)
{
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message)
        if (json_is_array(json_object_get(message, "content")))
            return true;
    return false;
}

bool tern_chat_render(const struct tern_chat_template *t, struct tern_chat_request *r,
                      struct tern_chat_prompt *out, char line[TERN_ARGS_LINE])
{
    memset(out, 0, sizeof *out);
    turn_arguments(r->messages, true);
    if (r->adapt && has_parts(r->messages) && !takes_parts(t))
        join_parts(r->messages);
    if (r->adapt && !mentions(t, "developer"))
        rename_developer(r->messages);
    if (r->adapt && r->tools && json_array_size(r->tools) && !mentions(t, "tools"))
        describe_tools(r->messages, r->tools);
    if (r->adapt && !mentions(t, "tool_calls"))
        write_calls(r->messages);
    if (render_once(t, r, out, line))
        return true;
    if (!r->adapt)
        return false;
    if (fill_content(r->messages) && render_once(t, r, out, line))
        return true;
    turn_arguments(r->messages, false);
    return render_once(t, r, out, line);
}

uint32_t tern_chat_flags(const struct tern_chat_template *t, const struct tern_chat_prompt *p)
{
    const tern_rendered *r = &p->rendered;
    const bool begins = t->bos.size && r->n_runs && r->runs[0].own &&
                        r->runs[0].end >= t->bos.size &&
                        memcmp(r->text.data, t->bos.data, t->bos.size) == 0;
    return TERN_TOKENIZE_SPECIAL | (begins ? TERN_TOKENIZE_NO_BOS : 0);
}

void tern_chat_prompt_free(struct tern_chat_prompt *p)
{
    tern_os_unmap(p->scratch);
    memset(p, 0, sizeof *p);
}
