#include "tools/schema.h"

#include "tools/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A keyword that is a whole number of at least 0; false: it is something else. */
bool tern_schema_whole(struct tern_schema *s, json_t *node, const char *at, const char *key,
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

void tern_schema_counts(struct tern_out *o, int64_t least, int64_t most)
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

bool tern_schema_narrow(struct tern_schema *s, struct tern_pattern *p, struct tern_pattern *by,
                        bool in, const char *at, const char *keyword)
{
    struct tern_pattern met;
    bool ok = true;
    if (!p->n && !in)
        ok = tern_pattern_length(p, 0, -1);
    if (p->n) {
        ok = tern_pattern_meet(&met, p, by, in, s->work);
        tern_pattern_free(ok ? p : &met);
        tern_pattern_free(by);
        *p = ok ? met : *p;
    } else {
        *p = *by;
    }
    return ok || tern_schema_drop(s, at, keyword, "more than 4000 states");
}

bool tern_schema_narrow_regex(struct tern_schema *s, struct tern_pattern *p, const char *regex,
                              bool in, const char *at, const char *keyword)
{
    struct tern_pattern by;
    char why[TERN_ARGS_LINE] = "";
    if (!tern_pattern_regex(&by, (tern_text){regex, strlen(regex)}, s->work, why))
        return tern_schema_drop(s, at, keyword, why);
    return tern_schema_narrow(s, p, &by, in, at, keyword);
}

static bool narrow_by_format(struct tern_schema *s, struct tern_pattern *p, json_t *format,
                             const char *at)
{
    const char *name = json_is_string(format) ? json_string_value(format) : "";
    char keyword[80];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return tern_schema_narrow_regex(s, p, formats[i].regex, true, at, "format");
    snprintf(keyword, sizeof keyword, "format: %.60s", name);
    return tern_schema_drop(s, at, keyword, NULL);
}

static bool narrow_by_patterns(struct tern_schema *s, struct tern_pattern *p, json_t *pattern,
                               const char *at)
{
    bool ok = true;
    if (!json_is_array(pattern))
        return json_is_string(pattern)
                   ? tern_schema_narrow_regex(s, p, json_string_value(pattern), true, at, "pattern")
                   : tern_schema_fail(s, at, "keyword 'pattern' is no text");
    for (size_t i = 0; ok && i < json_array_size(pattern); i++)
        ok = narrow_by_patterns(s, p, json_array_get(pattern, i), at);
    return ok;
}

/* Texts and patterns that `not` names. */
static bool narrow_by_not(struct tern_schema *s, struct tern_pattern *p, json_t *out,
                          const char *at)
{
    json_t *list = json_object_get(out, "enum"), *pattern = json_object_get(out, "pattern"), *one;
    size_t i;
    bool ok = true;
    if (pattern)
        ok = tern_schema_narrow_regex(s, p, json_string_value(pattern), false, at, "not");
    if (json_is_string(json_object_get(out, "const")))
        list = json_pack("[O]", json_object_get(out, "const"));
    json_array_foreach(list, i, one) {
        struct tern_pattern text;
        if (!ok || !json_is_string(one))
            continue;
        ok = tern_pattern_text(&text, (tern_text){json_string_value(one),
                                                  json_string_length(one)});
        if (ok)
            ok = tern_schema_narrow(s, p, &text, false, at, "not");
        else
            tern_pattern_free(&text);
    }
    if (!json_object_get(out, "enum"))
        json_decref(list);
    json_array_foreach(json_object_get(out, "anyOf"), i, one)
        ok = ok && narrow_by_not(s, p, one, at);
    return ok;
}

/* All that is said of texts but for lengths alone, which are counted. */
bool tern_schema_texts(struct tern_schema *s, json_t *node, const char *at, int64_t least,
                       int64_t most, struct tern_pattern *p)
{
    json_t *pattern = json_object_get(node, "pattern"), *format = json_object_get(node, "format");
    struct tern_pattern length;
    bool ok = true;
    if (pattern)
        ok = narrow_by_patterns(s, p, pattern, at);
    if (ok && format)
        ok = narrow_by_format(s, p, format, at);
    if (ok && json_object_get(node, "not"))
        ok = narrow_by_not(s, p, json_object_get(node, "not"), at);
    if (ok && p->n && (least > 0 || most >= 0))
        ok = tern_pattern_length(&length, least, most)
                 ? tern_schema_narrow(s, p, &length, true, at, "maxLength' with 'pattern")
                 : tern_schema_drop(s, at, "maxLength", "above 3999 beside 'pattern'");
    return ok;
}

bool tern_schema_write_texts(struct tern_schema *s, struct tern_pattern *p, const char *end,
                             struct tern_out *more)
{
    static struct tern_out rules;
    char name[40];
    tern_out_open(&rules, -1);
    tern_pattern_write(p, &rules, "text", end);
    tern_out_put(&rules, "", 1);
    json_t *known = rules.grown ? json_object_get(s->texts, rules.grown) : NULL;
    const long long number = known ? (long long)json_integer_value(known)
                                   : (long long)json_object_size(s->texts);
    const bool ok = rules.grown && (known || json_object_set_new(s->texts, rules.grown,
                                                                 json_integer(number)) == 0);
    tern_out_free(&rules);
    snprintf(name, sizeof name, "text%lld", number);
    tern_out_print(s->o, "%s-0", name);
    if (ok && !known)
        tern_pattern_write(p, more, name, end);
    return ok || tern_schema_fail(s, "", "no memory for its texts");
}

bool tern_schema_string(struct tern_schema *s, json_t *node, const char *at,
                        struct tern_out *more)
{
    struct tern_pattern p = {.n = 0};
    int64_t least = 0, most = -1;
    bool ok = tern_schema_whole(s, node, at, "minLength", &least) &&
              tern_schema_whole(s, node, at, "maxLength", &most);
    if (ok && most >= 0 && least > most) {
        tern_out_print(s->o, "[]");
        return true;
    }
    ok = ok && tern_schema_texts(s, node, at, least, most, &p);
    if (ok && p.n) {
        tern_out_print(s->o, "\"\\\"\" ");
        ok = tern_schema_write_texts(s, &p, "\"\\\"\"", more);
    } else if (ok && (least > 0 || most >= 0)) {
        tern_out_print(s->o, "\"\\\"\" char");
        tern_schema_counts(s->o, least, most);
        tern_out_print(s->o, " \"\\\"\"");
    } else if (ok) {
        tern_out_print(s->o, "string");
    }
    tern_pattern_free(&p);
    return ok;
}

/* --- objects --- */

enum { MOST_PLACES = 4096 };

/* Members by name in order, then those by pattern and all others, in any. */
struct object {
    json_t *names, *needed;   /* name: schema; those that are required */
    json_t *by_pattern, *others;
    const char *at;
    uint32_t rule;
    int64_t least, most;      /* members; most -1: without end */
    bool counted;             /* rules are by how many members there are, and not whether any */
    struct tern_pattern named;/* what propertyNames lets in; without states: any */
    struct tern_pattern left; /* names that are not among these, nor of a pattern so far */
    struct tern_pattern unnamed; /* names that are not among these */
};

/* Takes from `left` what is in p. */
static bool take_away(struct tern_schema *s, struct object *x, struct tern_pattern *p)
{
    struct tern_pattern left;
    bool ok = tern_pattern_meet(&left, &x->left, p, false, s->work);
    tern_pattern_free(&x->left);
    x->left = left;
    return ok || tern_schema_fail(s, x->at, "names of members: more than %d states",
                                  TERN_PATTERN_MOST);
}

static void write_name_end(struct tern_schema *s, struct object *x, json_t *schema,
                           const char *key, char *out, size_t cap)
{
    char value[40] = "value", next[60] = "";
    if (schema)
        snprintf(value, sizeof value, "r%u", tern_schema_rule(s, schema, x->at, key));
    if (!x->counted)
        snprintf(next, sizeof next, " r%u-b%zu", x->rule, json_object_size(x->names));
    snprintf(out, cap, "\"\\\":\" ws %s%s", value, next);
}

/* Members whose names a pattern lets in, which must not be of another pattern as well. */
static bool write_pattern(struct tern_schema *s, struct object *x, size_t i, const char *regex,
                          json_t *schema, struct tern_out *more)
{
    struct tern_pattern p, own = {.n = 0}, left = {.n = 0}, common = {.n = 0};
    char why[TERN_ARGS_LINE] = "", name[40], end[120], key[60];
    if (!tern_pattern_regex(&p, (tern_text){regex, strlen(regex)}, s->work, why))
        return tern_schema_fail(s, x->at, "keyword 'patternProperties': %.120s", why);
    bool ok = tern_pattern_meet(&own, &x->unnamed, &p, true, s->work) &&
              tern_pattern_meet(&left, &x->left, &p, true, s->work) &&
              tern_pattern_meet(&common, &own, &left, false, s->work);
    if (ok && !tern_pattern_is_empty(&common))
        ok = tern_schema_fail(s, x->at, "keyword 'patternProperties': names of '%.60s' may be "
                              "members of another kind too", regex);
    ok = ok && take_away(s, x, &p);
    snprintf(name, sizeof name, "r%u-k%zu", x->rule, i);
    snprintf(key, sizeof key, "patternProperties/%.40s", regex);
    write_name_end(s, x, schema, key, end, sizeof end);
    if (ok)
        tern_pattern_write(&own, more, name, end);
    tern_pattern_free(&common);
    tern_pattern_free(&left);
    tern_pattern_free(&own);
    tern_pattern_free(&p);
    return ok;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(((const tern_text *)a)->data, ((const tern_text *)b)->data);
}

/* All names that have no place of their own. */
static bool find_unnamed(struct tern_schema *s, struct object *x)
{
    const size_t n = json_object_size(x->names);
    tern_text *list = malloc((n + 1) * sizeof *list);
    struct tern_pattern names = {.n = 0};
    json_t *schema;
    const char *key;
    size_t i = 0;
    json_object_foreach(x->names, key, schema)
        if (list)
            list[i++] = (tern_text){key, strlen(key)};
    if (list)
        qsort(list, i, sizeof *list, by_bytes);
    bool ok = list && (x->named.n
                           ? tern_pattern_meet(&x->left, &x->named, &x->named, true, s->work)
                           : tern_pattern_length(&x->left, 0, -1));
    if (ok && !tern_pattern_texts(&names, list, i))
        ok = tern_schema_fail(s, x->at, "names of members: more than %d states",
                              TERN_PATTERN_MOST);
    ok = ok && take_away(s, x, &names);
    tern_pattern_free(&names);
    free(list);
    return ok && tern_pattern_meet(&x->unnamed, &x->left, &x->left, true, s->work);
}

/* The kinds of members that have no place of their own. Answers how many; SIZE_MAX: it failed. */
static size_t write_kinds(struct tern_schema *s, struct object *x, struct tern_out *more)
{
    json_t *schema;
    const char *key;
    size_t n = 0;
    char rule[40], end[120];
    bool ok = (json_is_false(x->others) && !json_object_size(x->by_pattern)) || find_unnamed(s, x);
    json_object_foreach(x->by_pattern, key, schema)
        ok = ok && write_pattern(s, x, n++, key, schema, more);
    if (ok && !json_is_false(x->others)) {
        snprintf(rule, sizeof rule, "r%u-k%zu", x->rule, n++);
        write_name_end(s, x, x->others, "additionalProperties", end, sizeof end);
        tern_pattern_write(&x->left, more, rule, end);
    }
    tern_pattern_free(&x->left);
    tern_pattern_free(&x->unnamed);
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
    tern_schema_item(s, o, schema, x->at, key);
    tern_json_drop(json);
    json_decref(text);
}

/* The rule of a place with so many members before it: a or b is whether there are any. */
static void write_place(const struct object *x, int64_t count, size_t i, struct tern_out *o)
{
    if (x->counted)
        tern_out_print(o, "r%u-c%lld-%zu", x->rule, (long long)count, i);
    else
        tern_out_print(o, "r%u-%c%zu", x->rule, count ? 'b' : 'a', i);
}

/* Behind the last place: the end, or members of other kinds. Two of these may have one name: of
 * all, one counts towards the least number of members, and each towards the most. */
static void write_others(const struct object *x, int64_t sure, int64_t count, const char *next,
                         size_t n_kinds, struct tern_out *o)
{
    bool any = sure >= x->least && (x->most < 0 || count <= x->most);
    tern_out_print(o, " ::= %s", !any ? "" : count ? "ws \"}\"" : "\"}\"");
    for (size_t k = 0; k < n_kinds && (x->most < 0 || count < x->most); k++) {
        tern_out_print(o, "%s%s\"\\\"\" r%u-k%zu-0%s", any ? " | " : "",
                       count ? "\",\" ws " : "", x->rule, k, next);
        any = true;
    }
    tern_out_print(o, any ? "\n" : "[]\n");
}

/* Where members are counted: behind others, of which so many are sure to differ. */
static void write_more(const struct object *x, int64_t sure, int64_t count, int64_t last,
                       size_t n_kinds, struct tern_out *o)
{
    char next[80];
    snprintf(next, sizeof next, " r%u-d%lld-%lld", x->rule, (long long)sure,
             (long long)(x->most >= 0 && count < last ? count + 1 : count));
    tern_out_print(o, "r%u-d%lld-%lld", x->rule, (long long)sure, (long long)count);
    write_others(x, sure, count, next, n_kinds, o);
}

static void write_last(const struct object *x, int64_t last, size_t n_kinds, struct tern_out *o)
{
    for (int64_t count = 0; count <= last; count++) {
        const long long next = count < last ? count + 1 : last;
        char rule[80] = "";
        if (x->counted)
            snprintf(rule, sizeof rule, " r%u-d%lld-%lld", x->rule, next, next);
        write_place(x, count, json_object_size(x->names), o);
        write_others(x, count, count, rule, n_kinds, o);
        for (int64_t sure = 1; x->counted && n_kinds && sure <= count; sure++)
            if (x->most >= 0 || sure == count)
                write_more(x, sure, count, last, n_kinds, o);
    }
}

/* Rules for each place and each number of members before it, of which the last stands for all
 * beyond. What comes next is always called last, so that all of them become one automaton. */
static void write_places(struct tern_schema *s, struct object *x, int64_t last, size_t n_kinds,
                         struct tern_out *o)
{
    for (int64_t count = 0; count <= last; count++) {
        const int64_t next = count < last ? count + 1 : last;
        const bool full = x->most >= 0 && count >= x->most;
        const char *name;
        json_t *schema;
        size_t i = 0;
        json_object_foreach(x->names, name, schema) {
            const bool optional = !json_object_get(x->needed, name);
            write_place(x, count, i, o);
            tern_out_print(o, " ::= %s", full ? "" : count ? "\",\" ws " : "");
            if (!full) {
                write_member(s, x, name, schema, o);
                tern_out_print(o, " ");
                write_place(x, next, i + 1, o);
            }
            tern_out_print(o, optional ? full ? "" : " | " : full ? "[]" : "");
            if (optional)
                write_place(x, count, i + 1, o);
            tern_out_print(o, "\n");
            i++;
        }
    }
    write_last(x, last, n_kinds, o);
}

/* Every required member has a place, and one whose name is also of a pattern is of both kinds. */
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
    x->needed = json_object();
    if (!x->names || !tern_schema_keep(s, x->names) || !tern_schema_keep(s, x->needed))
        return false;
    json_array_foreach(required, i, value) {
        const char *name = json_string_value(value);
        if (!name)
            return tern_schema_fail(s, x->at, "keyword 'required': names needed");
        json_object_set_new(x->needed, name, json_true());
        if (!json_object_get(x->names, name))
            json_object_set_new(x->names, name, json_null()); /* it has no schema yet */
    }
    return true;
}

/* What stands in a pattern's schema, or in that of all others, for names that have a place. */
static bool place_patterns(struct tern_schema *s, struct object *x)
{
    const char *regex, *name;
    json_t *schema, *own;
    void *then;
    json_object_foreach(x->by_pattern, regex, schema) {
        struct tern_pattern p;
        char why[TERN_ARGS_LINE] = "";
        if (!tern_pattern_regex(&p, (tern_text){regex, strlen(regex)}, s->work, why)) {
            x->by_pattern = x->others = NULL; /* whose names are not known, so all may be */
            return tern_schema_drop(s, x->at, "patternProperties", why);
        }
        json_object_foreach_safe(x->names, then, name, own)
            if (tern_pattern_has(&p, (tern_text){name, strlen(name)}))
                json_object_set_new(x->names, name,
                                    json_is_null(own) ? json_incref(schema)
                                                      : json_pack("{s:[O,O]}", "allOf", own,
                                                                  schema));
        tern_pattern_free(&p);
    }
    json_object_foreach_safe(x->names, then, name, own)
        if (json_is_null(own))
            json_object_set(x->names, name, x->others ? x->others : json_true());
    return true;
}

/* Names that are listed: all of them get a place, and no others are let in. */
static bool list_only(struct tern_schema *s, json_t *flat, bool none, struct object *x)
{
    json_t *list = none ? NULL : json_object_get(flat, "enum"), *one;
    json_t *only = none ? NULL : json_object_get(flat, "const");
    size_t i;
    list = list ? json_incref(list) : only ? json_pack("[O]", only) : json_array();
    json_array_foreach(list, i, one)
        if (json_is_string(one) && !json_object_get(x->names, json_string_value(one)) &&
            tern_schema_holds(s, flat, one, 0) == 1)
            json_object_set(x->names, json_string_value(one), x->others ? x->others : json_true());
    json_decref(list);
    x->others = json_false();
    return !x->by_pattern;
}

/* propertyNames: those of other names can not be. False: it can not be kept to. */
static bool narrow_names(struct tern_schema *s, json_t *schema, struct object *x)
{
    static const char *const known[] = {"pattern", "minLength", "maxLength", "format", "not",
                                        "type", "enum", "const"};
    json_t *flat = json_is_object(schema) ? tern_schema_flatten(s, schema, x->at) : schema, *own;
    const char *key, *name;
    int64_t least = 0, most = -1;
    bool any = flat != NULL;
    void *then;
    json_object_foreach(flat, key, own) {
        bool is_known = tern_schema_says_nothing(key);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known |= strcmp(key, known[i]) == 0;
        any &= is_known && (strcmp(key, "not") != 0 || tern_schema_not_stays(flat));
    }
    if (!any || !tern_schema_whole(s, flat, x->at, "minLength", &least) ||
        !tern_schema_whole(s, flat, x->at, "maxLength", &most))
        return false;
    json_object_foreach_safe(x->names, then, name, own) {
        json_t *text = json_string(name);
        const int holds = tern_schema_holds(s, flat, text, 0);
        json_decref(text);
        if (holds == 0)
            json_object_set(x->names, name, json_false());
        any &= holds >= 0;
    }
    const bool none = json_is_false(flat) || !(tern_schema_types(flat) & TERN_SCHEMA_STRING);
    if (none || json_object_get(flat, "enum") || json_object_get(flat, "const"))
        return any && list_only(s, flat, none, x);
    if (!any || !tern_schema_texts(s, flat, x->at, least, most, &x->named))
        return false;
    return x->named.n || (least <= 0 && most < 0) || tern_pattern_length(&x->named, least, most);
}

static bool read_object(struct tern_schema *s, json_t *node, struct object *x)
{
    json_t *names = json_object_get(node, "propertyNames");
    if (!list_names(s, node, x) || !place_patterns(s, x) ||
        !tern_schema_whole(s, node, x->at, "minProperties", &x->least) ||
        !tern_schema_whole(s, node, x->at, "maxProperties", &x->most))
        return false;
    if (names && !json_is_true(names) && !narrow_names(s, names, x) &&
        (s->failed || !tern_schema_drop(s, x->at, "propertyNames", NULL)))
        return false;
    const int64_t most = x->most > x->least ? x->most : x->least;
    x->counted = x->most >= 0 || x->least > 1;
    if (x->counted && (most + 1) * (most + (int64_t)json_object_size(x->names) + 1) > MOST_PLACES) {
        if (!tern_schema_drop(s, x->at, x->most > x->least ? "maxProperties" : "minProperties",
                              "members times their most number above 4096"))
            return false;
        x->least = 0;
        x->most = -1;
        x->counted = false;
    }
    return true;
}

bool tern_schema_object(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        struct tern_out *more)
{
    struct object x = {.by_pattern = json_object_get(node, "patternProperties"),
                       .others = json_object_get(node, "additionalProperties"),
                       .at = at, .rule = rule, .most = -1};
    const bool ok = read_object(s, node, &x);
    const size_t n_kinds = ok ? write_kinds(s, &x, more) : SIZE_MAX;
    tern_pattern_free(&x.named);
    if (n_kinds == SIZE_MAX)
        return s->failed ? false : tern_schema_fail(s, at, "names of members: no memory");
    const int64_t last = x.most > x.least ? x.most : x.least;
    write_places(s, &x, last > 1 ? last : 1, n_kinds, more);
    tern_out_print(s->o, "\"{\" ws ");
    write_place(&x, 0, 0, s->o);
    return !s->failed;
}
