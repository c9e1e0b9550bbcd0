#include "tools/chat_settings.h"

#include "tools/options.h"

#include <stdio.h>
#include <string.h>

const struct tern_option tern_chat_live_options[] = {
    {"--think", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, think), 0, 0, "auto",
     "WHEN", "reasoning before the answer, in models that do: on, off, or auto, as they like"},
    {"--think-budget", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, think_budget), -1,
     1 << 30, "-1", "N", "tokens of reasoning, after which it is closed; -1: as many as it takes"},
    {"--stats", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, stats), 0, 0, NULL, NULL,
     "figures after each answer"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    tern_options_sampling, tern_chat_live_options, NULL,
};
static const struct tern_command settable = {"/set", "", "", tables, NULL, NULL, NULL, NULL};
static const char *const when[] = {"auto", "on", "off"};

/* Of the same text, one that lives as long as the program. */
static const char *known_when(const char *text)
{
    for (size_t i = 0; i < sizeof when / sizeof *when; i++)
        if (strcmp(text, when[i]) == 0)
            return when[i];
    return NULL;
}

bool tern_chat_check_settings(const struct tern_settings *s, const char *dashes,
                              char line[TERN_ARGS_LINE])
{
    if (!known_when(s->think)) {
        snprintf(line, TERN_ARGS_LINE, "%sthink: '%.40s' given, auto, on or off needed", dashes,
                 s->think);
        return false;
    }
    if (s->n_predict == 0) {
        snprintf(line, TERN_ARGS_LINE, "%spredict: 0 given, at least 1 or -1 needed", dashes);
        return false;
    }
    return true;
}

/* A token's bias takes the place of the one it had; a text of two quotes takes all away. */
static bool set_bias(struct tern_chat *c, const char *text, char line[TERN_ARGS_LINE])
{
    struct tern_settings *s = &c->settings;
    if (strcmp(text, "\"\"") == 0) {
        s->n_biases = 0;
        return true;
    }
    const uint32_t n_vocab = c->session->info.n_vocab;
    if (!tern_args_set(&settable, "logit-bias", text, s, line))
        return false;
    const tern_bias last = s->biases[--s->n_biases];
    if ((uint32_t)last.token >= n_vocab) {
        snprintf(line, TERN_ARGS_LINE, "logit-bias: token %d, below %u needed", last.token,
                 n_vocab);
        return false;
    }
    uint32_t i = 0;
    while (i < s->n_biases && s->biases[i].token != last.token)
        i++;
    s->biases[i] = last;
    s->n_biases += i == s->n_biases;
    return true;
}

static bool add_stop(struct tern_chat *c, const char *text, char line[TERN_ARGS_LINE])
{
    const size_t n = strlen(text) + 1;
    if (strcmp(text, "\"\"") == 0) {
        c->settings.n_stops = 0;
        c->n_stop_bytes = 0;
        return true;
    }
    if (n > sizeof c->stop_bytes - c->n_stop_bytes) {
        snprintf(line, TERN_ARGS_LINE, "stop: %zu bytes after %zu of others, at most %zu in all",
                 n - 1, c->n_stop_bytes, sizeof c->stop_bytes);
        return false;
    }
    char *to = c->stop_bytes + c->n_stop_bytes;
    memcpy(to, text, n);
    if (!tern_args_set(&settable, "stop", to, &c->settings, line))
        return false;
    c->n_stop_bytes += n;
    return true;
}

bool tern_chat_set(struct tern_chat *c, tern_text name, tern_text value,
                   char line[TERN_ARGS_LINE])
{
    char key[40], text[200];
    if (name.size >= sizeof key || value.size >= sizeof text) {
        snprintf(line, TERN_ARGS_LINE, "/set: a name of %zu bytes and a value of %zu given, at "
                 "most %zu and %zu", name.size, value.size, sizeof key - 1, sizeof text - 1);
        return false;
    }
    snprintf(key, sizeof key, "%.*s", (int)name.size, name.data);
    snprintf(text, sizeof text, "%.*s", (int)value.size, value.data);
    const struct tern_option *o = tern_args_find(&settable, key);
    if (o == NULL) {
        snprintf(line, TERN_ARGS_LINE, "there is no setting '%s'; /set lists them", key);
        return false;
    }
    if (value.size == 0 && o->kind != TERN_OPTION_FLAG) {
        snprintf(line, TERN_ARGS_LINE, "/set %s: no value given, %s needed", key, o->value);
        return false;
    }
    if (o->kind == TERN_OPTION_STOP)
        return add_stop(c, text, line);
    if (o->kind == TERN_OPTION_BIAS)
        return set_bias(c, text, line);
    if (o->at == offsetof(struct tern_settings, think)) {
        struct tern_settings next = {.think = text, .n_predict = -1};
        if (!tern_chat_check_settings(&next, "", line))
            return false;
        c->settings.think = known_when(text);
        return tern_chat_make_plan(c, line);
    }
    const bool flag = o->kind == TERN_OPTION_FLAG;
    const char *given = flag && (text[0] == 0 || strcmp(text, "on") == 0) ? "true" :
                        flag && strcmp(text, "off") == 0 ? "false" : text;
    const int64_t n_predict = c->settings.n_predict;
    if (!tern_args_set(&settable, key, given, &c->settings, line))
        return false;
    if (!tern_chat_check_settings(&c->settings, "", line)) {
        c->settings.n_predict = n_predict;
        return false;
    }
    return tern_chat_make_plan(c, line);
}

const char *tern_chat_setting_at(const struct tern_settings *s, size_t i, char value[64])
{
    const struct tern_option *o = NULL;
    for (size_t t = 0; tables[t] && o == NULL; t++)
        for (const struct tern_option *row = tables[t]; row->name; row++)
            if (i-- == 0) {
                o = row;
                break;
            }
    if (o == NULL)
        return NULL;
    const char *field = (const char *)s + o->at;
    if (o->kind == TERN_OPTION_REAL)
        snprintf(value, 64, "%.9g", *(const double *)(const void *)field);
    else if (o->kind == TERN_OPTION_INT)
        snprintf(value, 64, "%lld", (long long)*(const int64_t *)(const void *)field);
    else if (o->kind == TERN_OPTION_FLAG)
        snprintf(value, 64, "%s", *(const bool *)(const void *)field ? "on" : "off");
    else if (o->kind == TERN_OPTION_SEED)
        snprintf(value, 64, "%llu", (unsigned long long)s->seed);
    else if (o->kind == TERN_OPTION_STOP)
        snprintf(value, 64, "(%u given)", s->n_stops);
    else if (o->kind == TERN_OPTION_BIAS)
        snprintf(value, 64, "(%u given)", s->n_biases);
    else
        snprintf(value, 64, "%s", s->think);
    return o->name + 2;
}

/* --- in a file --- */

static void append_text(json_t *list, const char *text)
{
    json_array_append_new(list, json_string(text));
}

json_t *tern_chat_settings_json(const struct tern_settings *s)
{
    json_t *all = json_object(), *stops = json_array(), *biases = json_array();
    char value[64];
    const char *name;
    for (size_t i = 0; (name = tern_chat_setting_at(s, i, value)) != NULL; i++)
        if (value[0] != '(')
            json_object_set_new(all, name, json_string(value));
    for (uint32_t i = 0; i < s->n_stops; i++)
        append_text(stops, s->stops[i]);
    for (uint32_t i = 0; i < s->n_biases; i++) {
        snprintf(value, sizeof value, "%d=%.9g", s->biases[i].token, (double)s->biases[i].bias);
        append_text(biases, value);
    }
    json_object_set_new(all, "stop", stops);
    json_object_set_new(all, "logit-bias", biases);
    return all;
}

static bool take_list(struct tern_chat *c, const char *name, const json_t *list,
                      char line[TERN_ARGS_LINE])
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) {
        const tern_text key = {name, strlen(name)};
        const tern_text text = {json_string_value(item), json_string_length(item)};
        if (text.data == NULL || !tern_chat_set(c, key, text, line))
            return false;
    }
    return true;
}

bool tern_chat_settings_take(struct tern_chat *c, const json_t *settings, bool given,
                             char line[TERN_ARGS_LINE])
{
    static struct tern_settings preset;
    char value[64], usual[64];
    const char *name;
    tern_args_defaults(&settable, &preset);
    snprintf(line, TERN_ARGS_LINE, "settings: a text is missing");
    for (size_t i = 0; (name = tern_chat_setting_at(&c->settings, i, value)) != NULL; i++) {
        const json_t *text = json_object_get(settings, name);
        const bool seed = strcmp(name, "seed") == 0;
        tern_chat_setting_at(&preset, i, usual);
        if (!json_is_string(text) || value[0] == '(' ||
            (given && (seed ? c->settings.has_seed : strcmp(value, usual) != 0)))
            continue;
        const tern_text key = {name, strlen(name)};
        if (!tern_chat_set(c, key, (tern_text){json_string_value(text), json_string_length(text)},
                           line))
            return false;
    }
    if (!(given && c->settings.n_stops)) {
        c->settings.n_stops = 0;
        c->n_stop_bytes = 0;
        if (!take_list(c, "stop", json_object_get(settings, "stop"), line))
            return false;
    }
    if (given && c->settings.n_biases)
        return true;
    c->settings.n_biases = 0;
    return take_list(c, "logit-bias", json_object_get(settings, "logit-bias"), line);
}
