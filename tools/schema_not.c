/* schema_not.c: what a schema leaves out, written as a schema; and keywords written with others.
 *
 *     if C then T else E    anyOf: C and T; not C and E
 *     dependentRequired     anyOf: without the member; with those that it needs
 *     not C                 what C's keywords leave out, one alternative each
 *
 * Of "not" there remain single values, patterns and "integer", which texts can be held to: these
 * are kept as they are. What can not be turned round stays as it was, and is refused by name.
 */
#include "tools/schema.h"

#include <string.h>

enum { MOST_DEPTH = 8, MOST_ALTERNATIVES = 32, MOST_TURNED = 4096 };

static json_t *kept(struct tern_schema *s, json_t *made)
{
    return made ? tern_schema_keep(s, made) : NULL;
}

/* --- what stays --- */

/* A regular expression that all dialects read alike: what it leaves out is known then. */
static bool reads_alike(const json_t *pattern)
{
    const char *p = json_string_value(pattern);
    for (; p && *p; p++)
        if (strchr(".$", *p) || (*p == '[' && p[1] == '^') ||
            (*p == '\\' && strchr("dDwWsSbBpP123456789k", p[1])))
            return false;
    return p != NULL;
}

/* Whether text can be held to {not: out} in values of these types. */
static bool stays(const json_t *out, unsigned types)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)out, key, value) {
        const bool list = strcmp(key, "anyOf") == 0 && json_is_array(value);
        if (tern_schema_says_nothing(key))
            continue;
        if (n++ || !(strcmp(key, "enum") == 0 || strcmp(key, "const") == 0 || list ||
                     (strcmp(key, "pattern") == 0 && types == TERN_SCHEMA_STRING &&
                      reads_alike(value)) ||
                     (strcmp(key, "type") == 0 && json_is_string(value) &&
                      strcmp(json_string_value(value), "integer") == 0 &&
                      !(types & ~(unsigned)(TERN_SCHEMA_NUMBER | TERN_SCHEMA_INTEGER)))))
            return false;
        for (size_t i = 0; list && i < json_array_size(value); i++)
            if (!stays(json_array_get(value, i), types))
                return false;
    }
    return n == 1;
}

bool tern_schema_not_stays(const json_t *node)
{
    return stays(json_object_get(node, "not"), tern_schema_types(node));
}

/* --- turned round --- */

/* Alternatives, one of which holds where a keyword does not. False: it can not be turned round. */
struct turn { struct tern_schema *s; json_t *node, *any; const char *at; int depth; };

static bool add(struct turn *t, json_t *made)
{
    return made && json_array_append_new(t->any, made) == 0 &&
           json_array_size(t->any) <= MOST_ALTERNATIVES;
}

static bool turn_type(struct turn *t)
{
    const unsigned types = tern_schema_types(t->node);
    const bool whole = types & TERN_SCHEMA_INTEGER && !(types & TERN_SCHEMA_NUMBER);
    json_t *others = json_array();
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array",
                                        "object"};
    for (unsigned i = 0; i < 7; i++)
        if (!(types & 1u << i) && !(whole && i == 3))
            json_array_append_new(others, json_string(names[i]));
    const bool any = json_array_size(others) > 0;
    json_t *rest = json_pack("{s:o}", "type", others);
    if (!any)
        json_decref(rest);
    return types && (!any || add(t, rest)) &&
           (!whole || add(t, json_pack("{s:s,s:{s:s}}", "type", "number", "not", "type",
                                       "integer")));
}

static bool turn_required(struct turn *t, json_t *names)
{
    json_t *name;
    size_t i;
    json_array_foreach(names, i, name)
        if (!json_is_string(name) ||
            !add(t, json_pack("{s:s,s:{s:b}}", "type", "object", "properties",
                              json_string_value(name), 0)))
            return false;
    return json_is_array(names);
}

static bool turn_properties(struct turn *t, json_t *properties)
{
    const char *name;
    json_t *schema;
    json_object_foreach(properties, name, schema) {
        json_t *out = tern_schema_negate(t->s, schema, t->at, t->depth + 1);
        if (!out || (!json_is_false(out) &&
                     !add(t, json_pack("{s:s,s:[s],s:{s:O}}", "type", "object", "required", name,
                                       "properties", name, out))))
            return false;
    }
    return json_is_object(properties);
}

/* Bounds: the type that they speak of, and the keyword that holds beyond them. */
static bool turn_bound(struct turn *t, const char *key, json_t *value)
{
    static const struct { const char *key, *type, *other; int by; } rows[] = {
        {"minimum", "number", "exclusiveMaximum", 0}, {"maximum", "number", "exclusiveMinimum", 0},
        {"exclusiveMinimum", "number", "maximum", 0}, {"exclusiveMaximum", "number", "minimum", 0},
        {"minLength", "string", "maxLength", -1}, {"maxLength", "string", "minLength", 1},
        {"minItems", "array", "maxItems", -1}, {"maxItems", "array", "minItems", 1},
        {"minProperties", "object", "maxProperties", -1},
        {"maxProperties", "object", "minProperties", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].key, key) != 0)
            continue;
        if (!json_is_number(value) || (rows[i].by && !json_is_integer(value)))
            return false;
        if (!rows[i].by)
            return add(t, json_pack("{s:s,s:O}", "type", rows[i].type, rows[i].other, value));
        const json_int_t n = json_integer_value(value) + rows[i].by;
        return n < 0 || add(t, json_pack("{s:s,s:I}", "type", rows[i].type, rows[i].other, n));
    }
    return false;
}

static bool turn_list(struct turn *t, const char *key, json_t *list)
{
    json_t *parts = json_array(), *one;
    const bool all = strcmp(key, "anyOf") == 0;
    size_t i;
    bool ok = json_array_size(list) > 0;
    json_array_foreach(list, i, one) {
        json_t *out = ok ? tern_schema_negate(t->s, one, t->at, t->depth + 1) : NULL;
        ok = out && (all ? json_array_append(parts, out) == 0 : add(t, json_incref(out)));
    }
    if (ok && all)
        return add(t, json_pack("{s:o}", "allOf", parts));
    json_decref(parts);
    return ok;
}

static bool turn_keyword(struct turn *t, const char *key, json_t *value)
{
    if (tern_schema_says_nothing(key))
        return true;
    if (strcmp(key, "type") == 0)
        return turn_type(t);
    if (strcmp(key, "enum") == 0)
        return json_is_array(value) && add(t, json_pack("{s:{s:O}}", "not", "enum", value));
    if (strcmp(key, "const") == 0)
        return add(t, json_pack("{s:{s:[O]}}", "not", "enum", value));
    if (strcmp(key, "required") == 0)
        return turn_required(t, value);
    if (strcmp(key, "properties") == 0)
        return turn_properties(t, value);
    if (strcmp(key, "pattern") == 0)
        return reads_alike(value) && add(t, json_pack("{s:s,s:{s:O}}", "type", "string", "not",
                                                      "pattern", value));
    if (strcmp(key, "not") == 0)
        return add(t, json_incref(value));
    if (strcmp(key, "anyOf") == 0 || strcmp(key, "allOf") == 0)
        return turn_list(t, key, value);
    return turn_bound(t, key, value);
}

json_t *tern_schema_negate(struct tern_schema *s, json_t *node, const char *at, int depth)
{
    const char *key;
    json_t *value;
    s->n_turning++;
    if (json_is_object(node))
        node = tern_schema_flatten(s, node, at);
    s->n_turning--;
    if (json_is_boolean(node))
        return json_is_true(node) ? json_false() : json_true();
    if (depth > MOST_DEPTH || !json_is_object(node) || ++s->n_turned > MOST_TURNED ||
        !tern_schema_work(s, at, 100 + 64 * json_object_size(node)))
        return NULL;
    struct turn t = {s, node, kept(s, json_array()), at, depth};
    json_object_foreach(node, key, value)
        if (!t.any || !turn_keyword(&t, key, value))
            return NULL;
    if (json_array_size(t.any) <= 1)
        return json_array_size(t.any) ? json_array_get(t.any, 0) : json_false();
    return kept(s, json_pack("{s:O}", "anyOf", t.any));
}

/* --- keywords written with others --- */

static json_t *without(struct tern_schema *s, json_t *node, const char *const keys[])
{
    json_t *rest = kept(s, json_copy(node));
    for (; rest && *keys; keys++)
        json_object_del(rest, *keys);
    return rest;
}

static json_t *both(struct tern_schema *s, json_t *rest, json_t *made, const char *at)
{
    made = kept(s, made);
    return rest && made ? tern_schema_merge(s, rest, made, at) : NULL;
}

static json_t *rewrite_if(struct tern_schema *s, json_t *node, const char *at)
{
    static const char *const keys[] = {"if", "then", "else", NULL};
    json_t *condition = json_object_get(node, "if"), *then = json_object_get(node, "then");
    json_t *otherwise = json_object_get(node, "else");
    if (!then && !otherwise)
        return without(s, node, keys);
    json_t *out = tern_schema_negate(s, condition, at, 0);
    if (!out)
        return s->failed ? NULL : node;
    return both(s, without(s, node, keys),
                json_pack("{s:[{s:[O,O]},{s:[O,O]}]}", "anyOf", "allOf", condition,
                          then ? then : json_true(), "allOf", out,
                          otherwise ? otherwise : json_true()), at);
}

static json_t *rewrite_not(struct tern_schema *s, json_t *node, const char *at)
{
    static const char *const keys[] = {"not", NULL};
    if (tern_schema_not_stays(node))
        return node;
    json_t *out = tern_schema_negate(s, json_object_get(node, "not"), at, 0);
    if (!out)
        return s->failed ? NULL : node;
    return both(s, without(s, node, keys), json_pack("{s:[O]}", "allOf", out), at);
}

/* One member's: it is not there, or what it needs is. */
static json_t *with_or_without(const char *name, json_t *needs)
{
    if (!json_is_array(needs))
        return json_pack("{s:[{s:{s:b}},{s:[{s:[s]},O]}]}", "anyOf", "properties", name, 0,
                         "allOf", "required", name, needs);
    json_t *names = json_copy(needs);
    json_array_append_new(names, json_string(name));
    return json_pack("{s:[{s:{s:b}},{s:o}]}", "anyOf", "properties", name, 0, "required", names);
}

static json_t *rewrite_needs(struct tern_schema *s, json_t *node, const char *at, const char *key)
{
    const char *const keys[] = {key, NULL}, *name;
    json_t *value, *parts = json_array(), *rest = without(s, node, keys);
    json_object_foreach(json_object_get(node, key), name, value) {
        if (json_is_array(value) || json_is_object(value) || json_is_boolean(value))
            json_array_append_new(parts, with_or_without(name, value));
        else
            tern_schema_fail(s, at, "keyword '%s': a schema or a list of names needed", key);
    }
    if (!json_array_size(parts) || s->failed) {
        json_decref(parts);
        return s->failed ? NULL : rest;
    }
    return both(s, rest, json_pack("{s:o}", "allOf", parts), at);
}

json_t *tern_schema_rewrite(struct tern_schema *s, json_t *node, const char *at)
{
    static const char *const needs[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    for (size_t i = 0; i < 3; i++)
        if (json_is_object(json_object_get(node, needs[i])))
            return rewrite_needs(s, node, at, needs[i]);
    if (json_object_get(node, "if")) {
        json_t *out = rewrite_if(s, node, at);
        if (out != node)
            return out;
    }
    return json_object_get(node, "not") ? rewrite_not(s, node, at) : node;
}
