#include "tools/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HOPS = 64, MOST_DEPTH = 4, MOST_CROSSED = 64, MOST_FLATTENED = 128 };

/* --- references --- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f'
                                                ? (c | 0x20) - 'a' + 10 : -1;
}

/* One part of a pointer, up to the next slash: %25 is a percent sign, ~1 a slash, ~0 a tilde. */
static const char *take_part(const char *p, char *out, size_t cap)
{
    size_t n = 0;
    for (; *p && *p != '/' && n + 1 < cap; p++) {
        char c = *p;
        if (c == '%' && hex_of(p[1]) >= 0 && hex_of(p[2]) >= 0) {
            c = (char)(16 * hex_of(p[1]) + hex_of(p[2]));
            p += 2;
        } else if (c == '~' && (p[1] == '0' || p[1] == '1')) {
            c = p[1] == '0' ? '~' : '/';
            p++;
        }
        out[n++] = c;
    }
    out[n] = 0;
    return p;
}

static json_t *find(struct tern_schema *s, const char *ref, const char *at)
{
    json_t *node = s->root;
    const char *p = ref;
    char why[120];
    if (*p++ != '#' || (*p && *p != '/')) {
        snprintf(why, sizeof why, "'%.80s' is not within this schema", ref);
        return tern_schema_drop(s, at, "$ref", why) ? tern_schema_keep(s, json_object()) : NULL;
    }
    while (node && *p == '/') {
        char part[256];
        p = take_part(p + 1, part, sizeof part);
        node = json_is_array(node) ? json_array_get(node, (size_t)strtoul(part, NULL, 10))
                                   : json_object_get(node, part);
    }
    if (!node || *p) {
        tern_schema_fail(s, at, "keyword '$ref': '%.80s' leads nowhere", ref);
        return NULL;
    }
    return node;
}

/* --- merging --- */

/* Both in one list, "allOf" or "anyOf". What is such a list already is made longer, so that it gets
 * no deeper with each that is added. */
static json_t *joined(struct tern_schema *s, const char *key, json_t *a, json_t *b)
{
    json_t *list = json_array(), *parts[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        json_t *own = json_object_size(parts[i]) == 1 ? json_object_get(parts[i], key) : NULL;
        if (json_is_array(own))
            json_array_extend(list, own);
        else
            json_array_append(list, parts[i]);
    }
    (void)tern_schema_work(s, "", 8 * json_array_size(list));
    return json_pack("{s:o}", key, list);
}

static json_t *both_or_false(struct tern_schema *s, json_t *a, json_t *b)
{
    if (json_is_false(a) || json_is_false(b))
        return json_false();
    if (json_is_true(a) || a == b)
        return json_incref(b);
    return json_is_true(b) ? json_incref(a) : joined(s, "allOf", a, b);
}

/* What a schema says of a member that another one names: nothing if it names it too. */
static json_t *others_of(json_t *schema, const char *key)
{
    if (json_object_get(json_object_get(schema, "properties"), key))
        return NULL;
    return json_object_get(schema, "additionalProperties");
}

static bool merge_properties(struct tern_schema *s, json_t *out, json_t *a, json_t *b,
                             const char *at)
{
    json_t *pa = json_object_get(a, "properties"), *pb = json_object_get(b, "properties");
    json_t *merged = json_object(), *value;
    const char *key;
    if (!tern_schema_work(s, at, 64 * (json_object_size(pa) + json_object_size(pb)))) {
        json_decref(merged);
        return false;
    }
    if ((json_object_get(a, "patternProperties") && pb) ||
        (json_object_get(b, "patternProperties") && pa)) {
        json_decref(merged);
        return tern_schema_fail(s, at, "keyword 'patternProperties' beside other members in allOf");
    }
    json_object_foreach(pa, key, value) {
        json_t *other = json_object_get(pb, key);
        other = other ? other : others_of(b, key);
        json_object_set_new(merged, key, other ? both_or_false(s, value, other)
                                               : json_incref(value));
    }
    json_object_foreach(pb, key, value) {
        json_t *other = others_of(a, key);
        if (!json_object_get(pa, key))
            json_object_set_new(merged, key, other ? both_or_false(s, value, other)
                                                   : json_incref(value));
    }
    json_object_set_new(out, "properties", merged);
    return true;
}

static json_t *join_lists(struct tern_schema *s, json_t *a, json_t *b, bool common)
{
    if (!tern_schema_work(s, "", 16 * tern_schema_weight(a) * (1 + json_array_size(b))))
        return NULL;
    json_t *out = json_array(), *value;
    size_t i, k;
    json_array_foreach(a, i, value) {
        bool there = false;
        for (k = 0; k < json_array_size(b); k++)
            there |= json_equal(value, json_array_get(b, k));
        if (!common || there)
            json_array_append(out, value);
    }
    json_array_foreach(b, i, value) {
        bool there = false;
        for (k = 0; k < json_array_size(a); k++)
            there |= json_equal(value, json_array_get(a, k));
        if (!common && !there)
            json_array_append(out, value);
    }
    return out;
}

static json_t *merge_types(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array",
                                        "object"};
    const unsigned types = tern_schema_types(a) & tern_schema_types(b);
    json_t *out = json_array();
    for (unsigned i = 0; i < 7; i++)
        if (types & 1u << i)
            json_array_append_new(out, json_string(names[i]));
    return out;
}

/* The tighter of two bounds; NULL: the keyword is no bound. */
static json_t *tighter(const char *key, json_t *a, json_t *b)
{
    const bool least = strncmp(key, "min", 3) == 0 || strcmp(key, "exclusiveMinimum") == 0;
    const bool most = strncmp(key, "max", 3) == 0 || strcmp(key, "exclusiveMaximum") == 0;
    if ((!least && !most) || !json_is_number(a) || !json_is_number(b))
        return NULL;
    const double x = json_number_value(a), y = json_number_value(b);
    return json_incref((least ? x >= y : x <= y) ? a : b);
}

/* Each of some alternatives with each of others; NULL: too many. */
static json_t *cross(struct tern_schema *s, json_t *a, json_t *b)
{
    if (json_array_size(a) * json_array_size(b) > MOST_CROSSED)
        return NULL;
    json_t *out = json_array(), *x, *y;
    size_t i, k;
    json_array_foreach(a, i, x)
        json_array_foreach(b, k, y)
            json_array_append_new(out, both_or_false(s, x, y));
    return out;
}

/* Patterns, or divisors, that all have to hold, in a list. */
static json_t *join_all(struct tern_schema *s, json_t *a, json_t *b)
{
    json_t *x = json_is_array(a) ? json_incref(a) : json_pack("[O]", a);
    json_t *y = json_is_array(b) ? json_incref(b) : json_pack("[O]", b);
    json_t *out = join_lists(s, x, y, false);
    json_decref(x);
    json_decref(y);
    return out;
}

/* A keyword that both have. NULL: they can not be one. */
static json_t *merge_keyword(struct tern_schema *s, const char *key, json_t *a, json_t *b)
{
    if (strcmp(key, "required") == 0)
        return join_lists(s, a, b, false);
    if (strcmp(key, "anyOf") == 0)
        return cross(s, a, b);
    if (strcmp(key, "not") == 0)
        return json_equal(a, b) ? json_incref(a) : joined(s, "anyOf", a, b);
    if (strcmp(key, "pattern") == 0 || strcmp(key, "multipleOf") == 0)
        return json_equal(a, b) ? json_incref(a) : join_all(s, a, b);
    if (strcmp(key, "uniqueItems") == 0)
        return json_boolean(json_is_true(a) || json_is_true(b));
    if (strcmp(key, "propertyNames") == 0)
        return both_or_false(s, a, b);
    if (strcmp(key, "enum") == 0)
        return join_lists(s, a, b, true);
    if (strcmp(key, "items") == 0 || strcmp(key, "additionalProperties") == 0)
        return both_or_false(s, a, b);
    if (strcmp(key, "title") == 0 || strcmp(key, "description") == 0 || *key == '$' ||
        strcmp(key, "default") == 0 || strcmp(key, "examples") == 0 ||
        strcmp(key, "definitions") == 0 || json_equal(a, b))
        return json_incref(a);
    return tighter(key, a, b);
}

/* What `items` speaks of depends on the list of first items beside it. */
static bool counts_items(json_t *node)
{
    return json_object_get(node, "prefixItems") || json_object_get(node, "additionalItems") ||
           json_is_array(json_object_get(node, "items"));
}

static bool items_meet(json_t *a, json_t *b)
{
    return (counts_items(a) && (counts_items(b) || json_object_get(b, "items"))) ||
           (counts_items(b) && json_object_get(a, "items"));
}

json_t *tern_schema_merge(struct tern_schema *s, json_t *a, json_t *b, const char *at)
{
    static const char twice[] = "stands in two schemas that both have to hold";
    const char *key;
    json_t *value;
    if (json_is_boolean(a) || json_is_boolean(b))
        return json_is_false(a) || json_is_true(b) ? a : b;
    if (!json_object_size(a))
        return b;
    if (tern_schema_types(a) && tern_schema_types(b) &&
        !(tern_schema_types(a) & tern_schema_types(b)))
        return json_false();
    json_t *out = tern_schema_work(s, at, 100 + 64 * json_object_size(a)) ? json_copy(a) : NULL;
    if (!out || tern_schema_keep(s, out) == NULL)
        return NULL;
    const bool items = items_meet(a, b);
    if (items && !tern_schema_drop(s, at, "items", twice))
        return NULL;
    json_object_foreach(b, key, value) {
        json_t *mine = json_object_get(a, key), *merged;
        if (strcmp(key, "properties") == 0 || strcmp(key, "type") == 0 ||
            (items && strstr(key, "tems") != NULL))
            continue;
        merged = mine ? merge_keyword(s, key, mine, value) : json_incref(value);
        if (merged)
            json_object_set_new(out, key, merged);
        else if (!tern_schema_drop(s, at, key, twice))
            return NULL;
    }
    if ((json_object_get(a, "properties") || json_object_get(b, "properties")) &&
        !merge_properties(s, out, a, b, at))
        return NULL;
    if (json_object_get(b, "type"))
        json_object_set_new(out, "type", merge_types(a, b));
    return out;
}

/* One level: what a reference leads to, or a part of allOf, merged with what stands beside it. */
static json_t *flatten_once(struct tern_schema *s, json_t *node, const char *at)
{
    json_t *ref = json_object_get(node, "$ref"), *all = json_object_get(node, "allOf");
    const bool goes_on = tern_schema_work(s, at, 100 + 64 * json_object_size(node));
    json_t *rest = goes_on ? json_copy(node) : NULL, *out;
    if (!rest || tern_schema_keep(s, rest) == NULL)
        return NULL;
    if (ref) {
        json_object_del(rest, "$ref");
        json_t *target = json_is_string(ref) ? find(s, json_string_value(ref), at) : NULL;
        if (!target && !s->failed)
            tern_schema_fail(s, at, "keyword '$ref' is no text");
        if (!target)
            return NULL;
        const char *key;
        json_t *value;
        size_t n = 0;
        json_object_foreach(rest, key, value)
            n += strcmp(key, "$defs") != 0 && strcmp(key, "definitions") != 0 && *key != '$' &&
                 strcmp(key, "title") != 0 && strcmp(key, "description") != 0;
        return n ? tern_schema_merge(s, rest, target, at) : target;
    }
    json_object_del(rest, "allOf");
    if (!json_array_size(all)) {
        tern_schema_fail(s, at, "keyword 'allOf' is no list of schemas");
        return NULL;
    }
    out = rest;
    for (size_t i = 0; out && i < json_array_size(all); i++) {
        json_t *part = tern_schema_flatten(s, json_array_get(all, i), at);
        out = part ? tern_schema_merge(s, out, part, at) : NULL;
    }
    return out;
}

static json_t *flatten_all(struct tern_schema *s, json_t *node, const char *at)
{
    for (int hops = 0; node && json_is_object(node); hops++) {
        if (hops == MOST_HOPS) {
            tern_schema_fail(s, at, "a reference comes back to itself, or goes over more than "
                             "%d others", MOST_HOPS);
            return NULL;
        }
        json_t *const before = node;
        const bool refers = json_object_get(node, "$ref") || json_object_get(node, "allOf");
        node = refers ? flatten_once(s, node, at) : tern_schema_rewrite(s, node, at);
        if (node == before && !refers)
            break;
    }
    return node;
}

json_t *tern_schema_flatten(struct tern_schema *s, json_t *node, const char *at)
{
    char address[32];
    snprintf(address, sizeof address, "%p", (void *)node);
    json_t *known = json_object_get(s->flat_of, address), *from = node;
    if (known && json_is_integer(known)) {
        if (!s->n_turning)
            tern_schema_fail(s, at, "a reference comes back to itself");
        return NULL;
    }
    if (known)
        return json_array_get(known, 0);
    if (s->n_flattened == MOST_FLATTENED) {
        tern_schema_fail(s, at, "more than %d references and lists within one another",
                         MOST_FLATTENED);
        return NULL;
    }
    json_object_set_new(s->flat_of, address, json_integer(1)); /* it is being worked on */
    s->n_flattened++;
    node = flatten_all(s, node, at);
    s->n_flattened--;
    if (!node || node == from) {
        json_object_del(s->flat_of, address);
        return node;
    }
    json_t *kept = json_array();
    json_array_append(kept, node);
    json_object_set_new(s->flat_of, address, kept);
    return node;
}

/* --- disjoint schemas --- */

static json_t *values_of(json_t *node)
{
    json_t *list = json_object_get(node, "enum"), *one = json_object_get(node, "const");
    if (list)
        return json_incref(list);
    if (!one)
        return NULL;
    json_t *out = json_array();
    json_array_append(out, one);
    return out;
}

static bool no_common_value(struct tern_schema *s, json_t *a, json_t *b)
{
    json_t *x = values_of(a), *y = values_of(b);
    json_t *common = x && y ? join_lists(s, x, y, true) : NULL;
    const bool none = common && !json_array_size(common);
    json_decref(x);
    json_decref(y);
    json_decref(common);
    return none;
}

static bool requires(json_t *node, const char *key)
{
    json_t *list = json_object_get(node, "required"), *value;
    size_t i;
    json_array_foreach(list, i, value)
        if (json_is_string(value) && strcmp(json_string_value(value), key) == 0)
            return true;
    return false;
}

static bool is_closed(json_t *node, const char *key)
{
    return json_is_false(json_object_get(node, "additionalProperties")) &&
           !json_object_get(node, "patternProperties") &&
           !json_object_get(json_object_get(node, "properties"), key);
}

static bool apart(json_t *a, json_t *b, const char *low, const char *high)
{
    json_t *x = json_object_get(a, low), *y = json_object_get(b, high);
    return x && y && json_number_value(x) > json_number_value(y);
}

/* Whether no value can hold in both: other types, other values, bounds that do not meet, or a
 * member that one requires and the other can not have, or has otherwise. */
bool tern_schema_disjoint(struct tern_schema *s, json_t *a, json_t *b, const char *at, int depth)
{
    if (depth > MOST_DEPTH || s->failed)
        return false;
    a = tern_schema_work(s, at, 400) ? tern_schema_flatten(s, a, at) : NULL;
    b = a ? tern_schema_flatten(s, b, at) : NULL;
    if (!a || !b || json_is_false(a) || json_is_false(b))
        return a && b;
    if (!json_is_object(a) || !json_is_object(b))
        return false;
    const unsigned types = tern_schema_types(a) & tern_schema_types(b);
    if (!types || no_common_value(s, a, b))
        return true;
    if (!(types & ~(unsigned)(TERN_SCHEMA_INTEGER | TERN_SCHEMA_NUMBER)))
        return apart(a, b, "minimum", "maximum") || apart(b, a, "minimum", "maximum");
    if (types != TERN_SCHEMA_OBJECT)
        return false;
    json_t *pa = json_object_get(a, "properties"), *pb = json_object_get(b, "properties"), *value;
    const char *key;
    json_object_foreach(pa, key, value) {
        json_t *other = json_object_get(pb, key);
        if (!tern_schema_work(s, at, 50 + json_array_size(json_object_get(a, "required"))))
            return false;
        if ((requires(a, key) && is_closed(b, key)) ||
            (other && requires(a, key) && requires(b, key) &&
             tern_schema_disjoint(s, value, other, at, depth + 1)))
            return true;
    }
    json_object_foreach(pb, key, value) {
        if (!tern_schema_work(s, at, 50 + json_array_size(json_object_get(b, "required"))))
            return false;
        if (requires(b, key) && is_closed(a, key))
            return true;
    }
    return false;
}
