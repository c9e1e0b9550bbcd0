#include "tools/schema.h"

#include "tools/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SCHEMAS = 8192 };

#define COMMON "# what all of these are made of\n"

/* What rules are made of. White space is bounded, so that none is generated without end. Half of a
 * surrogate pair is no character. */
static const char builtin[] =
    "ws ::= (\" \" | \"\\n\" [ \\t]{0,20})?\n"
    "value ::= object | array | string | number | boolean | null\n"
    "object ::= \"{\" ws (member (\",\" ws member)* ws)? \"}\"\n"
    "member ::= string \":\" ws value\n"
    "array ::= \"[\" ws (value (\",\" ws value)* ws)? \"]\"\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" unit)\n"
    "unit ::= [0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex |\n"
    "    [dD] [89abAB] hex hex \"\\\\u\" [dD] [c-fC-F] hex hex\n"
    "hex ::= [0-9a-fA-F]\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,24})\n"
    "number ::= integer (\".\" [0-9]{1,24})? ([eE] [+-]? [0-9]{1,3})?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n";

/* What steers a terminal, or ends a line, is no part of a name that is shown. */
static void write_where(const struct tern_schema *s, struct tern_out *o, const char *at)
{
    if (s->tool)
        tern_out_print(o, "tool '%.64s': at #", s->tool);
    else
        tern_out_print(o, "schema: at #");
    tern_out_plain(o, (tern_text){at, strnlen(at, 100)});
}

bool tern_schema_fail(struct tern_schema *s, const char *at, const char *format, ...)
{
    char what[TERN_ARGS_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *keyword = strncmp(what, "keyword '", 9) == 0 ? strstr(what, "': ") : NULL;
    if (!s->failed) {
        struct tern_out o;
        tern_out_open(&o, -1);
        write_where(s, &o, at);
        tern_out_print(&o, ": ");
        if (s->work->over) /* what was to be said is what came of it */
            tern_out_print(&o, "%.*smore than %d steps of work",
                           keyword ? (int)(keyword - what) + 3 : 0, what, TERN_EFFORT_MOST);
        else
            tern_out_plain(&o, (tern_text){what, strlen(what)});
        snprintf(s->line, TERN_ARGS_LINE, "%.*s", (int)o.n, o.grown ? o.grown : "");
        tern_out_free(&o);
    }
    s->failed = true;
    return false;
}

bool tern_schema_work(struct tern_schema *s, const char *at, uint64_t steps)
{
    return tern_effort_on(s->work, steps) || tern_schema_fail(s, at, "too much work");
}

uint64_t tern_schema_weight(const json_t *value)
{
    const char *key;
    const json_t *part;
    uint64_t n = 1;
    size_t i;
    json_array_foreach((json_t *)value, i, part)
        n += tern_schema_weight(part);
    json_object_foreach((json_t *)value, key, part)
        n += tern_schema_weight(part);
    return n;
}

bool tern_schema_drop(struct tern_schema *s, const char *at, const char *keyword,
                      const char *why)
{
    if (s->failed || s->work->over || !s->dropped)
        return why ? tern_schema_fail(s, at, "keyword '%s': %s", keyword, why)
                   : tern_schema_fail(s, at, "keyword '%s' can not be enforced", keyword);
    write_where(s, s->dropped, at);
    tern_out_print(s->dropped, ": keyword '");
    tern_out_plain(s->dropped, (tern_text){keyword, strlen(keyword)});
    tern_out_print(s->dropped, "' is dropped\n");
    return true;
}

json_t *tern_schema_keep(struct tern_schema *s, json_t *made)
{
    return json_array_append_new(s->made, made) ? NULL : made;
}

uint32_t tern_schema_rule(struct tern_schema *s, json_t *node, const char *at, const char *key)
{
    if (!tern_schema_work(s, at, s->n_items / 4))
        return 0;
    for (uint32_t i = 0; i < s->n_items; i++)
        if (s->items[i].node == node)
            return i;
    if (s->n_items == MOST_SCHEMAS) {
        tern_schema_fail(s, at, "more than %d schemas within it", MOST_SCHEMAS);
        return 0;
    }
    if (s->n_items == s->cap_items) {
        uint32_t cap = s->cap_items ? 2 * s->cap_items : 64;
        struct tern_schema_item *more = realloc(s->items, cap * sizeof *more);
        if (!more) {
            tern_schema_fail(s, at, "no memory for its schemas");
            return 0;
        }
        s->items = more;
        s->cap_items = cap;
    }
    struct tern_schema_item *item = &s->items[s->n_items];
    item->node = node;
    snprintf(item->at, sizeof item->at, "%.150s%s%.40s", at, *key ? "/" : "", key);
    return s->n_items++;
}

/* --- text of the grammar --- */

void tern_schema_literal(struct tern_out *o, const char *text, size_t n)
{
    tern_out_print(o, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            tern_out_print(o, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            tern_out_print(o, "\\x%02X", c);
        else
            tern_out_put(o, text + i, 1);
    }
    tern_out_print(o, "\"");
}

static char *shortest_real(double x)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    if (!strpbrk(text, ".en"))
        strcat(text, ".0");
    return strdup(text);
}

/* A value as JSON, white space let in where it stands between values. */
void tern_schema_json(struct tern_out *o, const json_t *value)
{
    char *text = json_is_real(value)
                     ? shortest_real(json_real_value(value))
                     : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    bool quoted = false, first = true;
    size_t from = 0, n = text ? strlen(text) : 0;
    for (size_t i = 0; i < n; i++) {
        quoted ^= text[i] == '"';
        i += quoted && text[i] == '\\';
        const char c = text[i], next = text[i + 1];
        const bool opens = c == '{' || c == '[', closes = next == '}' || next == ']';
        const bool cut = !quoted && i + 1 < n &&
                         (c == ',' || c == ':' || (opens ? !closes : closes));
        if (!cut && i + 1 < n)
            continue;
        tern_out_print(o, first ? "" : " ws ");
        tern_schema_literal(o, text + from, i + 1 - from);
        first = false;
        from = i + 1;
    }
    tern_json_drop(text);
}

/* --- types --- */

static unsigned type_named(const char *name)
{
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array",
                                        "object"};
    for (unsigned i = 0; name && i < 7; i++)
        if (strcmp(name, names[i]) == 0)
            return i == 3 ? TERN_SCHEMA_NUMBER | TERN_SCHEMA_INTEGER : 1u << i;
    return 0;
}

/* 0: a type that is not known. */
unsigned tern_schema_types(const json_t *node)
{
    const json_t *type = json_object_get(node, "type");
    unsigned types = 0;
    if (!type)
        return TERN_SCHEMA_ALL;
    if (json_is_string(type))
        return type_named(json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++) {
        const unsigned one = type_named(json_string_value(json_array_get(type, i)));
        if (!one)
            return 0;
        types |= one;
    }
    return types;
}

unsigned tern_schema_type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL: return TERN_SCHEMA_NULL;
    case JSON_TRUE: case JSON_FALSE: return TERN_SCHEMA_BOOLEAN;
    case JSON_INTEGER: return TERN_SCHEMA_INTEGER;
    case JSON_REAL:
        return TERN_SCHEMA_NUMBER | (json_real_value(value) == floor(json_real_value(value))
                                         ? TERN_SCHEMA_INTEGER : 0);
    case JSON_STRING: return TERN_SCHEMA_STRING;
    case JSON_ARRAY: return TERN_SCHEMA_ARRAY;
    default: return TERN_SCHEMA_OBJECT;
    }
}

/* --- keywords --- */

static const char *const annotations[] = {
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "$defs", "definitions", "contentEncoding", "contentMediaType",
    "contentSchema", "$vocabulary", "$anchor", NULL,
};
/* What is not kept to, and of which types it speaks. */
static const struct { const char *name; unsigned types; } refused[] = {
    {"not", TERN_SCHEMA_ALL}, {"if", TERN_SCHEMA_ALL}, {"dependentRequired", TERN_SCHEMA_OBJECT},
    {"dependentSchemas", TERN_SCHEMA_OBJECT}, {"dependencies", TERN_SCHEMA_OBJECT},
    {"unevaluatedProperties", TERN_SCHEMA_OBJECT}, {"unevaluatedItems", TERN_SCHEMA_ARRAY},
    {"$dynamicRef", TERN_SCHEMA_ALL},
    {"$recursiveRef", TERN_SCHEMA_ALL}, {"extends", TERN_SCHEMA_ALL},
    {"disallow", TERN_SCHEMA_ALL}, {"divisibleBy", TERN_SCHEMA_INTEGER | TERN_SCHEMA_NUMBER},
};

/* Whether {not: out} names arrays or objects: these are not kept apart from others. */
static bool names_lists(const json_t *out, unsigned types)
{
    json_t *list = json_object_get(out, "enum"), *only = json_object_get(out, "const");
    json_t *any = json_object_get(out, "anyOf");
    bool found = (json_is_array(only) && types & TERN_SCHEMA_ARRAY) ||
                 (json_is_object(only) && types & TERN_SCHEMA_OBJECT);
    for (size_t i = 0; i < json_array_size(list); i++)
        found |= (tern_schema_type_of(json_array_get(list, i)) & types &
                  (TERN_SCHEMA_ARRAY | TERN_SCHEMA_OBJECT)) != 0;
    for (size_t i = 0; i < json_array_size(any); i++)
        found |= names_lists(json_array_get(any, i), types);
    return found;
}

/* Whether a keyword that is not kept to in general is in this case. */
static bool is_kept(const json_t *node, const char *name, const json_t *value)
{
    if (strcmp(name, "not") == 0)
        return tern_schema_not_stays(node) &&
               !names_lists(value, tern_schema_types(node));
    return strncmp(name, "unevaluated", 11) == 0 &&
           (json_is_true(value) || (json_is_object(value) && !json_object_size(value)));
}

static bool check_keywords(struct tern_schema *s, const json_t *node, const char *at)
{
    const unsigned types = tern_schema_types(node);
    if (!types)
        return tern_schema_fail(s, at, "keyword 'type' names a type that is not known");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const json_t *value = json_object_get(node, refused[i].name);
        if (value && refused[i].types & types && !is_kept(node, refused[i].name, value) &&
            !tern_schema_drop(s, at, refused[i].name, NULL))
            return false;
    }
    return true;
}

bool tern_schema_says_nothing(const char *key)
{
    for (size_t i = 0; annotations[i]; i++)
        if (strcmp(key, annotations[i]) == 0)
            return true;
    return false;
}

/* --- rules --- */

/* Whether all keywords let a value in; those of which it can not be said are dropped. */
static bool lets_in(struct tern_schema *s, json_t *node, const char *at, const json_t *value)
{
    const char *key;
    json_t *keyword;
    bool in = tern_schema_work(s, at, json_object_size(node));
    json_object_foreach(node, key, keyword) {
        if (strcmp(key, "enum") == 0) /* it is of the list */
            continue;
        const int holds = tern_schema_keyword_holds(s, node, key, value, 0);
        in &= holds != 0;
        if (holds < 0 && !tern_schema_drop(s, at, key, NULL))
            return false;
    }
    return in;
}

/* The values of enum, or of const, that everything else lets in. */
static bool write_values(struct tern_schema *s, json_t *node, const char *at)
{
    json_t *values = json_object_get(node, "enum"), *only = json_object_get(node, "const");
    size_t n = 0;
    if (values && !json_is_array(values))
        return tern_schema_fail(s, at, "keyword 'enum' is no list");
    for (size_t i = 0; !s->failed && i < (values ? json_array_size(values) : 1); i++) {
        json_t *value = values ? json_array_get(values, i) : only;
        if (!lets_in(s, node, at, value))
            continue;
        tern_out_print(s->o, n++ ? " | " : "");
        tern_schema_json(s->o, value);
    }
    tern_out_print(s->o, n ? "\n" : "[]\n");
    return !s->failed;
}

/* A branch of oneOf without what is of others too. NULL: it failed, or can not be said. */
static json_t *alone(struct tern_schema *s, json_t *branches, size_t i, const char *at)
{
    json_t *branch = json_array_get(branches, i), *out = json_pack("[O]", branch);
    bool ok = out != NULL;
    for (size_t k = 0; ok && k < json_array_size(branches); k++) {
        json_t *other = json_array_get(branches, k);
        if (k == i || tern_schema_disjoint(s, branch, other, at, 0))
            continue;
        json_t *rest = s->failed ? NULL : tern_schema_negate(s, other, at, 0);
        ok = rest && json_array_append(out, rest) == 0;
    }
    if (ok && !s->failed && json_array_size(out) > 1)
        return tern_schema_keep(s, json_pack("{s:o}", "allOf", out));
    json_decref(out);
    return ok ? branch : NULL;
}

/* Each branch with what stands beside the list. */
static bool write_branches(struct tern_schema *s, json_t *node, const char *at, const char *list)
{
    json_t *branches = json_object_get(node, list), *base = json_copy(node);
    const size_t n = json_array_size(branches);
    if (!base || !tern_schema_keep(s, base) || !n)
        return tern_schema_fail(s, at, "keyword '%s' is no list of schemas", list);
    json_object_del(base, list);
    for (size_t i = 0; i < n; i++) {
        json_t *own = strcmp(list, "oneOf") == 0 ? alone(s, branches, i, at)
                                                 : json_array_get(branches, i);
        char key[40];
        if (!own && (s->failed || !tern_schema_drop(s, at, "oneOf", NULL)))
            return false;
        own = own ? own : json_array_get(branches, i);
        json_t *branch = tern_schema_flatten(s, own, at);
        json_t *one = branch ? tern_schema_merge(s, base, branch, at) : NULL;
        if (!one)
            return false;
        snprintf(key, sizeof key, "%s/%zu", list, i);
        /* A branch that nothing is merged into keeps its rule, which others may refer to. */
        tern_out_print(s->o, i ? " | r%u" : "r%u",
                       tern_schema_rule(s, json_object_size(base) ? one : own, at, key));
    }
    tern_out_print(s->o, "\n");
    return !s->failed;
}

/* null, true, false, but for those that `not` names. */
static void write_constants(struct tern_schema *s, json_t *node, unsigned type)
{
    json_t *list = type == TERN_SCHEMA_NULL ? json_pack("[n]") : json_pack("[b,b]", 1, 0), *one;
    bool any = !json_object_get(node, "not");
    size_t i;
    if (any)
        tern_out_print(s->o, type == TERN_SCHEMA_NULL ? "null" : "boolean");
    json_array_foreach(list, i, one) {
        if (!json_object_get(node, "not") || tern_schema_keyword_holds(s, node, "not", one, 0) == 0)
            continue;
        tern_out_print(s->o, any ? " | " : "");
        tern_schema_json(s->o, one);
        any = true;
    }
    tern_out_print(s->o, any ? "" : "[]");
    json_decref(list);
}

/* One alternative a type. */
static bool write_types(struct tern_schema *s, json_t *node, const char *at, uint32_t rule)
{
    const unsigned types = tern_schema_types(node);
    static struct tern_out more;
    bool ok = true, any = false;
    tern_out_open(&more, -1);
    for (unsigned type = 1; ok && type <= TERN_SCHEMA_OBJECT; type <<= 1) {
        const bool number = type == TERN_SCHEMA_INTEGER && types & TERN_SCHEMA_NUMBER;
        if (!(types & type) || number)
            continue;
        tern_out_print(s->o, any ? " | " : "");
        any = true;
        if (type == TERN_SCHEMA_NULL || type == TERN_SCHEMA_BOOLEAN)
            write_constants(s, node, type);
        else if (type == TERN_SCHEMA_OBJECT)
            ok = tern_schema_object(s, node, at, rule, &more);
        else if (type == TERN_SCHEMA_ARRAY)
            ok = tern_schema_array(s, node, at, rule, &more);
        else if (type == TERN_SCHEMA_STRING)
            ok = tern_schema_string(s, node, at, &more);
        else
            ok = tern_schema_number(s, node, at, type == TERN_SCHEMA_INTEGER, &more);
    }
    tern_out_print(s->o, "\n");
    if (more.n)
        tern_out_put(s->o, more.grown, more.n);
    tern_out_free(&more);
    return ok;
}

static bool write_rule(struct tern_schema *s, uint32_t rule)
{
    json_t *node = s->items[rule].node;
    char at[TERN_SCHEMA_AT];
    memcpy(at, s->items[rule].at, sizeof at);
    tern_out_print(s->o, "# ");
    write_where(s, s->o, at);
    tern_out_print(s->o, "\nr%u ::= ", rule);
    if (json_is_boolean(node)) {
        tern_out_print(s->o, json_is_true(node) ? "value\n" : "[]\n");
        return true;
    }
    if (!json_is_object(node))
        return tern_schema_fail(s, at, "an object, true or false needed");
    json_t *target = json_object_get(node, "$ref");
    json_t *flat = tern_schema_flatten(s, node, at);
    if (flat && json_is_boolean(flat)) {
        tern_out_print(s->o, json_is_true(flat) ? "value\n" : "[]\n");
        return true;
    }
    if (!flat || !check_keywords(s, flat, at))
        return false;
    if (target && json_object_size(node) == 1) {
        tern_out_print(s->o, "r%u\n", tern_schema_rule(s, flat, at, "$ref"));
        return true;
    }
    if (json_object_get(flat, "enum") || json_object_get(flat, "const"))
        return write_values(s, flat, at);
    if (json_object_get(flat, "anyOf"))
        return write_branches(s, flat, at, "anyOf");
    if (json_object_get(flat, "oneOf"))
        return write_branches(s, flat, at, "oneOf");
    return write_types(s, flat, at, rule);
}

void tern_schema_write_object(struct tern_out *gbnf)
{
    tern_out_print(gbnf, "root ::= object\n");
    tern_out_put(gbnf, builtin, sizeof builtin - 1);
}

/* What a rule's text takes is work too, and there may be only so much of it. */
static bool write_next(struct tern_schema *s, uint32_t rule)
{
    const size_t before = s->o->n;
    char at[TERN_SCHEMA_AT];
    memcpy(at, s->items[rule].at, sizeof at);
    if (!write_rule(s, rule) || !tern_schema_work(s, at, s->o->n - before + 64))
        return false;
    return s->o->n <= TERN_GRAMMAR_MOST_TEXT ||
           tern_schema_fail(s, at, "its grammar takes more than %d bytes of text",
                            TERN_GRAMMAR_MOST_TEXT);
}

bool tern_schema_write_all(struct tern_schema_part *parts, uint32_t n, struct tern_out *gbnf,
                           struct tern_out *dropped, struct tern_effort *work,
                           char line[TERN_ARGS_LINE])
{
    struct tern_effort own = {.over = false};
    struct tern_schema s = {.o = gbnf, .dropped = dropped, .work = work ? work : &own,
                            .line = line};
    uint32_t written = 0;
    s.made = json_array();
    s.flat_of = json_object();
    s.texts = json_object();
    for (uint32_t i = 0; !s.failed && i < n; i++) {
        s.root = parts[i].schema;
        s.tool = parts[i].tool;
        parts[i].rule = tern_schema_rule(&s, s.root, "", "");
        for (; !s.failed && written < s.n_items; written++)
            if (!write_next(&s, written))
                s.failed = true;
    }
    tern_out_print(gbnf, COMMON);
    tern_out_put(gbnf, builtin, sizeof builtin - 1);
    json_decref(s.made);
    json_decref(s.flat_of);
    json_decref(s.texts);
    free(s.items);
    return !s.failed;
}

/* The comment that stands above a line. */
static tern_text comment_above(tern_text gbnf, unsigned long number)
{
    tern_text found = {"schema", 6};
    for (size_t at = 0; at < gbnf.size && number-- > 0;) {
        const char *p = gbnf.data + at, *end = memchr(p, '\n', gbnf.size - at);
        const size_t n = end ? (size_t)(end - p) : gbnf.size - at;
        if (n > 2 && p[0] == '#')
            found = n + 1 == sizeof COMMON - 1 && memcmp(p, COMMON, n) == 0
                        ? (tern_text){"schema", 6} : (tern_text){p + 2, n - 2};
        at += n + 1;
    }
    return found;
}

void tern_schema_explain(tern_text gbnf, char line[TERN_ARGS_LINE])
{
    static const struct { const char *ends_in, *said; } rules[] = {
        {"is left-recursive", "a reference comes back to itself"},
        {"can never come to its end", "no document can be of it"},
    };
    char said[180];
    unsigned long number = 0, column;
    int n = 0;
    if (strncmp(line, "grammar", 7) != 0)
        return;
    if (sscanf(line, "grammar: line %lu, column %lu: %n", &number, &column, &n) < 2 || !n)
        n = strncmp(line, "grammar: ", 9) == 0 ? 9 : 0;
    snprintf(said, sizeof said, "its %s%.160s", n ? "grammar: " : "", line + n);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strstr(line, rules[i].ends_in))
            snprintf(said, sizeof said, "%s", rules[i].said);
    const tern_text where = comment_above(gbnf, number);
    snprintf(line, TERN_ARGS_LINE, "%.*s: %s", where.size < 130 ? (int)where.size : 130,
             where.data, said);
}

bool tern_schema_write(tern_text json, struct tern_out *gbnf, struct tern_out *dropped,
                       struct tern_effort *work, char line[TERN_ARGS_LINE])
{
    json_error_t error;
    json_t *root = json_loadb(json.data, json.size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES,
                              &error);
    if (!root) {
        snprintf(line, TERN_ARGS_LINE, "schema: line %d, column %d: %.200s", error.line,
                 error.column, error.text);
        return false;
    }
    tern_out_print(gbnf, "root ::= r0\n");
    struct tern_schema_part part = {.schema = root};
    const bool ok = tern_schema_write_all(&part, 1, gbnf, dropped, work, line);
    json_decref(root);
    return ok;
}
