#include "tools/chat_prompt.h"

#include "platform/os/host.h"
#include "tools/chat_adapt.h"
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

enum { OWN_VARIABLES = 5 };
struct variables { tern_variable at[OWN_VARIABLES + TERN_CHAT_VARIABLES]; size_t n; };

static bool add_json(struct variables *v, const char *name, const json_t *json)
{
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
                   struct variables *v, char line[TERN_ARGS_LINE])
{
    json_t *none = json_null();
    const char *key;
    json_t *value;
    v->at[v->n++] = (tern_variable){"bos_token", {NULL, 0}, t->bos};
    v->at[v->n++] = (tern_variable){"eos_token", {NULL, 0}, t->eos};
    if (json_object_size(r->variables) > TERN_CHAT_VARIABLES) {
        snprintf(line, TERN_ARGS_LINE, "variables: %zu given, at most %d",
                 json_object_size(r->variables), TERN_CHAT_VARIABLES);
        return false;
    }
    bool ok = add_json(v, "messages", r->messages) &&
              add_json(v, "tools", r->tools ? r->tools : none) &&
              add_json(v, "add_generation_prompt", json_boolean(r->generation));
    json_object_foreach(r->variables, key, value)
        ok = ok && add_json(v, key, value);
    return ok || fail(line, "template", "no memory for its variables");
}

static bool render_once(const struct tern_chat_template *t, const struct tern_chat_request *r,
                        struct tern_chat_prompt *out, char line[TERN_ARGS_LINE])
{
    struct variables v = {.n = 0};
    tern_error err = {0};
    bool ok = false;
    tern_chat_prompt_free(out);
    if (gather(t, r, &v, line)) {
        const tern_render options = {.variables = v.at, .n_variables = v.n, .now = now};
        out->scratch = tern_os_map(tern_render_scratch(&options), 64);
        if (out->scratch.data == NULL)
            fail(line, "template", "no memory to render it");
        else
            ok = tern_template_render(t->compiled, &options, out->scratch, &out->rendered, &err) ==
                 TERN_OK;
        if (!ok && err.text[0])
            snprintf(line, TERN_ARGS_LINE, "%s", err.text);
    }
    free_variables(&v);
    return ok;
}

/* --- what is changed --- */

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

/* What a caller that adapts messages has changed for the template; false: no memory for it. */
static bool adapt(const struct tern_chat_template *t, const struct tern_chat_request *r)
{
    bool ok = true;
    if (tern_chat_has_parts(r->messages) && !takes_parts(t))
        ok = tern_chat_join_parts(r->messages);
    if (!mentions(t, "developer"))
        tern_chat_rename_developer(r->messages);
    if (r->tools && json_array_size(r->tools) && !mentions(t, "tools"))
        ok = ok && tern_chat_describe_tools(r->messages, r->tools);
    if (!mentions(t, "tool_calls"))
        ok = ok && tern_chat_write_calls(r->messages);
    return ok;
}

bool tern_chat_render(const struct tern_chat_template *t, struct tern_chat_request *r,
                      struct tern_chat_prompt *out, char line[TERN_ARGS_LINE])
{
    memset(out, 0, sizeof *out);
    tern_chat_turn_arguments(r->messages, true);
    if (r->adapt && !adapt(t, r))
        return fail(line, "messages", "no memory to adapt them to the template");
    if (render_once(t, r, out, line))
        return true;
    if (!r->adapt)
        return false;
    if (tern_chat_fill_content(r->messages) && render_once(t, r, out, line))
        return true;
    tern_chat_turn_arguments(r->messages, false);
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
