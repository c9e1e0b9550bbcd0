#include "tools/schema.h"

#include "tools/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A keyword that is a whole number of at least 0; false: it is something else. */
static bool whole(struct tern_schema *s, json_t *node, const char *at, const char *key,
                  int64_t *out)
{
    json_t *value = json_object_get(node, key);
    if (!value)
        return true;
    const double x = json_number_value(value);
    if (!json_is_number(value) || x < 0 || x > 1e9 || x != (double)(int64_t)x)
        return tern_schema_fail(s, at, "keyword '%s': a whole number from 0 to 1e9 needed", key);
    *out = (int64_t)x;
    return true;
}

static void write_counts(struct tern_out *o, int64_t least, int64_t most)
{
    if (most < 0)
        tern_out_print(o, "{%lld,}", (long long)least);
    else
        tern_out_print(o, "{%lld,%lld}", (long long)least, (long long)most);
}

/* --- strings --- */

#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define LEAP "(([0-9]{2}(0[48]|[2468][048]|[13579][26]))|(0[48]|[2468][048]|[13579][26])00)"
#define DATE "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|" \
    "(0[469]|11)-(0[1-9]|[12][0-9]|30)|" \
    "02-(0[1-9]|1[0-9]|2[0-8]))|" LEAP "-02-29)"
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?" \
    "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define LABEL "[A-Za-z0-9]+(-+[A-Za-z0-9]+)*"
#define UNIT "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define HOST "([A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"

static const struct { const char *name, *regex; } formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"uuid", "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"},
    {"email", "^" ATOM "(\\." ATOM ")*@" LABEL "(\\." LABEL ")*$"},
    {"ipv4", "^(" OCTET "\\.){3}" OCTET "$"},
    {"uri", "^[A-Za-z][A-Za-z0-9+.-]*:(//" HOST "(:[0-9]*)?(/" UNIT "*)*|"
            "/(" UNIT "+(/" UNIT "*)*)?|" UNIT "+(/" UNIT "*)*)"
            "(\\?(" UNIT "|[/?])*)?(#(" UNIT "|[/?])*)?$"},
};

/* Narrows what is let in by another automaton; *p without states: there is none yet. */
static bool narrow(struct tern_schema *s, struct tern_pattern *p, struct tern_pattern *by,
                   const char *at, const char *keyword)
{
    struct tern_pattern met;
    bool ok = true;
    if (p->n) {
        ok = tern_pattern_meet(&met, p, by, true);
        tern_pattern_free(p);
        tern_pattern_free(by);
        *p = met;
    } else {
        *p = *by;
    }
    return ok || tern_schema_fail(s, at, "keyword '%s': more than %d states", keyword,
                                  TERN_PATTERN_MOST);
}

static bool narrow_by_regex(struct tern_schema *s, struct tern_pattern *p, const char *regex,
                            const char *at, const char *keyword)
{
    struct tern_pattern by;
    char why[TERN_ARGS_LINE] = "";
    if (!tern_pattern_regex(&by, (tern_text){regex, strlen(regex)}, why))
        return tern_schema_fail(s, at, "keyword '%s': %.120s", keyword, why);
    return narrow(s, p, &by, at, keyword);
}

static bool narrow_by_format(struct tern_schema *s, struct tern_pattern *p, json_t *format,
                             const char *at)
{
    const char *name = json_is_string(format) ? json_string_value(format) : "";
    char keyword[80];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return narrow_by_regex(s, p, formats[i].regex, at, "format");
    snprintf(keyword, sizeof keyword, "format: %.60s", name);
    return tern_schema_drop(s, at, keyword);
}

bool tern_schema_string(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        struct tern_out *more)
{
    json_t *pattern = json_object_get(node, "pattern"), *format = json_object_get(node, "format");
    struct tern_pattern p = {.n = 0}, length;
    int64_t least = 0, most = -1;
    char name[40];
    bool ok = whole(s, node, at, "minLength", &least) && whole(s, node, at, "maxLength", &most);
    if (ok && most >= 0 && least > most) {
        tern_out_print(s->o, "[]");
        return true;
    }
    if (ok && pattern)
        ok = json_is_string(pattern)
                 ? narrow_by_regex(s, &p, json_string_value(pattern), at, "pattern")
                 : tern_schema_fail(s, at, "keyword 'pattern' is no text");
    if (ok && format)
        ok = narrow_by_format(s, &p, format, at);
    if (ok && p.n && (least > 0 || most >= 0))
        ok = tern_pattern_length(&length, least, most)
                 ? narrow(s, &p, &length, at, "maxLength' with 'pattern")
                 : tern_schema_fail(s, at, "keyword 'maxLength' above %d beside 'pattern'",
                                    TERN_PATTERN_MOST - 1);
    if (ok && p.n) {
        snprintf(name, sizeof name, "r%u-s", rule);
        tern_out_print(s->o, "\"\\\"\" %s-0", name);
        tern_pattern_write(&p, more, name, "\"\\\"\"");
    } else if (ok && (least > 0 || most >= 0)) {
        tern_out_print(s->o, "\"\\\"\" char");
        write_counts(s->o, least, most);
        tern_out_print(s->o, " \"\\\"\"");
    } else if (ok) {
        tern_out_print(s->o, "string");
    }
    tern_pattern_free(&p);
    return ok;
}

/* --- arrays --- */

struct array {
    json_t *first, *rest; /* schemas of the first items, of the others (NULL: any) */
    int64_t n_first, least, most;
    bool closed;          /* no others */
};

static bool read_array(struct tern_schema *s, json_t *node, const char *at, struct array *a)
{
    json_t *items = json_object_get(node, "items"), *prefix = json_object_get(node, "prefixItems");
    *a = (struct array){.first = prefix, .rest = items, .most = -1};
    if (json_is_array(items)) {
        a->first = items;
        a->rest = json_object_get(node, "additionalItems");
    }
    a->n_first = (int64_t)json_array_size(a->first);
    a->closed = json_is_false(a->rest);
    return whole(s, node, at, "minItems", &a->least) && whole(s, node, at, "maxItems", &a->most);
}

static void write_item(struct tern_schema *s, struct tern_out *o, json_t *schema, const char *at,
                       const char *key)
{
    if (schema)
        tern_out_print(o, "r%u", tern_schema_rule(s, schema, at, key));
    else
        tern_out_print(o, "value");
}

/* What follows n_first items. */
static void write_others(struct tern_schema *s, const struct array *a, const char *at,
                         struct tern_out *o)
{
    const int64_t least = a->least > a->n_first ? a->least - a->n_first : 0;
    const int64_t most = a->most < 0 ? -1 : a->most - a->n_first;
    if (a->closed || most == 0) {
        tern_out_print(o, least > 0 ? "[]" : a->n_first ? "ws \"]\"" : "\"]\"");
        return;
    }
    if (a->n_first == 0) {
        tern_out_print(o, least ? "" : "\"]\" | ");
        write_item(s, o, a->rest, at, "items");
        tern_out_print(o, " ");
    }
    tern_out_print(o, "(\",\" ws ");
    write_item(s, o, a->rest, at, "items");
    tern_out_print(o, ")");
    const int64_t one = a->n_first == 0;
    write_counts(o, least > one ? least - one : 0, most < 0 ? -1 : most - one);
    tern_out_print(o, " ws \"]\"");
}

bool tern_schema_array(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                       struct tern_out *more)
{
    struct array a;
    if (!read_array(s, node, at, &a))
        return false;
    if (a.most >= 0 && a.least > a.most) {
        tern_out_print(s->o, "[]");
        return true;
    }
    if (a.most >= 0 && a.n_first > a.most)
        a.n_first = a.most;
    if (a.most >= 0 && a.most == a.n_first)
        a.closed = true;
    tern_out_print(s->o, "\"[\" ws r%u-p0", rule);
    for (int64_t i = 0; i < a.n_first; i++) {
        char key[40];
        snprintf(key, sizeof key, "prefixItems/%lld", (long long)i);
        tern_out_print(more, "r%u-p%lld ::= ", rule, (long long)i);
        if (i >= a.least)
            tern_out_print(more, i ? "ws \"]\" | " : "\"]\" | ");
        tern_out_print(more, i ? "\",\" ws " : "");
        write_item(s, more, json_array_get(a.first, (size_t)i), at, key);
        tern_out_print(more, " r%u-p%lld\n", rule, (long long)i + 1);
    }
    tern_out_print(more, "r%u-p%lld ::= ", rule, (long long)a.n_first);
    write_others(s, &a, at, more);
    tern_out_print(more, "\n");
    return !s->failed;
}

/* --- objects --- */

/* Members by name in order, then those by pattern and all others, in any. */
struct object {
    json_t *names;            /* name: schema */
    json_t *by_pattern, *others;
    const char *at;
    uint32_t rule;
    struct tern_pattern left; /* names that are not among these, nor of a pattern so far */
};

static bool requires(json_t *node, const char *name)
{
    json_t *list = json_object_get(node, "required"), *value;
    size_t i;
    json_array_foreach(list, i, value)
        if (json_is_string(value) && strcmp(json_string_value(value), name) == 0)
            return true;
    return false;
}

/* Takes from `left` what is in p. */
static bool take_away(struct tern_schema *s, struct object *x, struct tern_pattern *p)
{
    struct tern_pattern left;
    bool ok = tern_pattern_meet(&left, &x->left, p, false);
    tern_pattern_free(&x->left);
    x->left = left;
    return ok || tern_schema_fail(s, x->at, "names of members: more than %d states",
                                  TERN_PATTERN_MOST);
}

static void write_name_end(struct tern_schema *s, struct object *x, json_t *schema,
                           const char *key, char *out, size_t cap)
{
    char value[40] = "value";
    if (schema)
        snprintf(value, sizeof value, "r%u", tern_schema_rule(s, schema, x->at, key));
    snprintf(out, cap, "\"\\\":\" ws %s r%u-b%zu", value, x->rule, json_object_size(x->names));
}

/* Members whose names a pattern lets in, which must not be of another kind as well. */
static bool write_pattern(struct tern_schema *s, struct object *x, size_t i, const char *regex,
                          json_t *schema, struct tern_out *more)
{
    struct tern_pattern p, common;
    char why[TERN_ARGS_LINE] = "", name[40], end[120], key[60];
    if (!tern_pattern_regex(&p, (tern_text){regex, strlen(regex)}, why))
        return tern_schema_fail(s, x->at, "keyword 'patternProperties': %.120s", why);
    bool ok = tern_pattern_meet(&common, &p, &x->left, false);
    if (ok && !tern_pattern_is_empty(&common))
        ok = tern_schema_fail(s, x->at, "keyword 'patternProperties': names of '%.60s' may be "
                              "members of another kind too", regex);
    tern_pattern_free(&common);
    ok = ok && take_away(s, x, &p);
    snprintf(name, sizeof name, "r%u-k%zu", x->rule, i);
    snprintf(key, sizeof key, "patternProperties/%.40s", regex);
    write_name_end(s, x, schema, key, end, sizeof end);
    if (ok)
        tern_pattern_write(&p, more, name, end);
    tern_pattern_free(&p);
    return ok;
}

/* The kinds of members that have no place of their own. Answers how many; SIZE_MAX: it failed. */
static size_t write_kinds(struct tern_schema *s, struct object *x, struct tern_out *more)
{
    struct tern_pattern name;
    json_t *schema;
    const char *key;
    size_t n = 0;
    char rule[40], end[120];
    bool ok = tern_pattern_length(&x->left, 0, -1);
    json_object_foreach(x->names, key, schema) {
        ok = ok && tern_pattern_text(&name, (tern_text){key, strlen(key)}) &&
             take_away(s, x, &name);
        tern_pattern_free(&name);
    }
    json_object_foreach(x->by_pattern, key, schema)
        ok = ok && write_pattern(s, x, n++, key, schema, more);
    if (ok && !json_is_false(x->others)) {
        snprintf(rule, sizeof rule, "r%u-k%zu", x->rule, n++);
        write_name_end(s, x, x->others, "additionalProperties", end, sizeof end);
        tern_pattern_write(&x->left, more, rule, end);
    }
    tern_pattern_free(&x->left);
    return ok ? n : SIZE_MAX;
}

static void write_member(struct tern_schema *s, struct object *x, const char *name, json_t *schema,
                         struct tern_out *o)
{
    json_t *text = json_string(name);
    char *json = json_dumps(text, JSON_ENCODE_ANY | JSON_COMPACT), key[60];
    snprintf(key, sizeof key, "properties/%.40s", name);
    tern_schema_literal(o, json, strlen(json));
    tern_out_print(o, " \":\" ws ");
    write_item(s, o, schema, x->at, key);
    tern_json_drop(json);
    json_decref(text);
}

/* Two rules a place: before the first member (a), and behind another one (b). What comes next is
 * always called last, so that all of them become one automaton. */
static void write_places(struct tern_schema *s, json_t *node, struct object *x, size_t n_kinds,
                         struct tern_out *o)
{
    const char *name;
    json_t *schema;
    size_t i = 0;
    json_object_foreach(x->names, name, schema) {
        for (int comma = 0; comma < 2; comma++) {
            tern_out_print(o, "r%u-%c%zu ::= %s", x->rule, comma ? 'b' : 'a', i,
                           comma ? "\",\" ws " : "");
            write_member(s, x, name, schema, o);
            tern_out_print(o, " r%u-b%zu", x->rule, i + 1);
            if (!requires(node, name))
                tern_out_print(o, " | r%u-%c%zu", x->rule, comma ? 'b' : 'a', i + 1);
            tern_out_print(o, "\n");
        }
        i++;
    }
    for (int comma = 0; comma < 2; comma++) {
        tern_out_print(o, "r%u-%c%zu ::= %s\"}\"", x->rule, comma ? 'b' : 'a', i,
                       comma ? "ws " : "");
        for (size_t k = 0; k < n_kinds; k++)
            tern_out_print(o, " | %s\"\\\"\" r%u-k%zu-0", comma ? "\",\" ws " : "", x->rule, k);
        tern_out_print(o, "\n");
    }
}

/* Every required member has a place. */
static bool list_names(struct tern_schema *s, json_t *node, struct object *x)
{
    json_t *properties = json_object_get(node, "properties");
    json_t *required = json_object_get(node, "required"), *value;
    size_t i;
    if ((properties && !json_is_object(properties)) || (required && !json_is_array(required)) ||
        (x->by_pattern && !json_is_object(x->by_pattern)))
        return tern_schema_fail(s, x->at, "keyword 'properties', 'patternProperties' or "
                                "'required' is of the wrong type");
    x->names = properties ? json_copy(properties) : json_object();
    if (!x->names || !tern_schema_keep(s, x->names))
        return false;
    json_array_foreach(required, i, value) {
        const char *name = json_string_value(value);
        if (!name)
            return tern_schema_fail(s, x->at, "keyword 'required': names needed");
        if (json_object_get(x->names, name))
            continue;
        if (x->by_pattern)
            return tern_schema_fail(s, x->at, "keyword 'required': '%.60s' beside "
                                    "'patternProperties'", name);
        json_t *any = x->others ? x->others : json_true();
        json_object_set(x->names, name, any);
    }
    return true;
}

bool tern_schema_object(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        struct tern_out *more)
{
    struct object x = {.by_pattern = json_object_get(node, "patternProperties"),
                       .others = json_object_get(node, "additionalProperties"),
                       .at = at, .rule = rule};
    if (!list_names(s, node, &x))
        return false;
    const size_t n_kinds = write_kinds(s, &x, more);
    if (n_kinds == SIZE_MAX)
        return s->failed ? false : tern_schema_fail(s, at, "names of members: no memory");
    write_places(s, node, &x, n_kinds, more);
    tern_out_print(s->o, "\"{\" ws r%u-a0", rule);
    return !s->failed;
}
