/* schema_array.c: arrays.
 *
 * Items stand one behind the other; what `contains` asks for may be any of them, so its rules are
 * by how many items there are and how many of these it has seen. Items that differ from one
 * another are kept apart where they are few known values: a rule for each set of those taken. */
#include "tools/schema.h"

#include <stdio.h>

enum { MOST_RULES = 1000, MOST_UNIQUE = 8 };

struct array {
    json_t *first, *rest; /* schemas of the first items, of the others (NULL: any) */
    int64_t n_first, least, most;
    bool closed;          /* no others */
    json_t *contains;     /* or NULL */
    int64_t c_least, c_most;
    int64_t ends[2];      /* the last numbers of items, and of those asked for, with rules */
    json_t *with[2];      /* items at a place that are, or need not or must not be, asked for */
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
    return tern_schema_whole(s, node, at, "minItems", &a->least) &&
           tern_schema_whole(s, node, at, "maxItems", &a->most);
}

void tern_schema_item(struct tern_schema *s, struct tern_out *o, json_t *schema, const char *at,
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
        tern_schema_item(s, o, a->rest, at, "items");
        tern_out_print(o, " ");
    }
    tern_out_print(o, "(\",\" ws ");
    tern_schema_item(s, o, a->rest, at, "items");
    tern_out_print(o, ")");
    const int64_t one = a->n_first == 0;
    tern_schema_counts(o, least > one ? least - one : 0, most < 0 ? -1 : most - one);
    tern_out_print(o, " ws \"]\"");
}

static void write_end(struct tern_out *o, bool any)
{
    tern_out_print(o, any ? "ws \"]\"" : "\"]\"");
}

/* --- contains --- */

/* The schema of an item at a place that is, or is not, what is asked for; NULL: there is none. */
static json_t *item_with(struct tern_schema *s, const struct array *a, int64_t i, json_t *schema)
{
    json_t *item = i < a->n_first ? json_array_get(a->first, (size_t)i) : a->rest;
    if (!item || !schema)
        return item ? item : schema;
    json_t *made = json_pack("{s:[O,O]}", "allOf", item, schema);
    return made ? tern_schema_keep(s, made) : NULL;
}

static void write_next(struct tern_schema *s, struct tern_out *o, json_t *item, const char *at,
                       int64_t i, bool *any)
{
    tern_out_print(o, "%s%s", *any ? " | " : "", i ? "\",\" ws " : "");
    tern_schema_item(s, o, item, at, "contains");
    *any = true;
}

/* A rule for i items of which j are what is asked for; the last i and j stand for all beyond. */
static void write_place(struct tern_schema *s, const struct array *a, const char *at,
                        uint32_t rule, int64_t i, int64_t j, struct tern_out *o)
{
    const int64_t next = i < a->ends[0] ? i + 1 : i;
    bool any = i >= a->least && j >= a->c_least;
    tern_out_print(o, "r%u-c%lld-%lld ::= ", rule, (long long)i, (long long)j);
    if (any)
        write_end(o, i > 0);
    if ((a->most < 0 || i < a->most) && (!a->closed || i < a->n_first)) {
        if (a->c_most < 0 || j < a->c_most) {
            write_next(s, o, a->with[0], at, i, &any);
            tern_out_print(o, " r%u-c%lld-%lld", rule, (long long)next,
                           (long long)(j < a->ends[1] ? j + 1 : j));
        }
        write_next(s, o, a->with[1], at, i, &any);
        tern_out_print(o, " r%u-c%lld-%lld", rule, (long long)next, (long long)j);
    }
    tern_out_print(o, any ? "\n" : "[]\n");
}

/* False: it can not be kept to. */
static bool write_contains(struct tern_schema *s, struct array *a, const char *at, uint32_t rule,
                           struct tern_out *more)
{
    json_t *without = a->c_most >= 0 ? tern_schema_negate(s, a->contains, at, 0) : NULL;
    a->ends[0] = a->most >= 0 ? a->most : a->least;
    a->ends[1] = a->c_most >= 0 ? a->c_most : a->c_least;
    if (a->most < 0 && a->ends[0] <= a->n_first)
        a->ends[0] = a->n_first + 1;
    if ((a->c_most >= 0 && !without) || (a->ends[0] + 1) * (a->ends[1] + 1) > MOST_RULES)
        return false;
    for (int64_t i = 0; i <= a->ends[0]; i++) {
        if (i <= a->n_first) { /* those behind are alike */
            a->with[0] = item_with(s, a, i, a->contains);
            a->with[1] = item_with(s, a, i, without);
        }
        for (int64_t j = 0; j <= a->ends[1]; j++)
            write_place(s, a, at, rule, i, j, more);
    }
    tern_out_print(s->o, "\"[\" ws r%u-c0-0", rule);
    return true;
}

static bool read_contains(struct tern_schema *s, json_t *node, const char *at, struct array *a)
{
    a->contains = json_object_get(node, "contains");
    a->c_least = 1;
    a->c_most = -1;
    return !a->contains || (tern_schema_whole(s, node, at, "minContains", &a->c_least) &&
                            tern_schema_whole(s, node, at, "maxContains", &a->c_most));
}

/* --- items that differ --- */

/* The values that items can have, if they are few. */
static json_t *few_values(struct tern_schema *s, const struct array *a, const char *at)
{
    json_t *items = a->rest && json_is_object(a->rest) ? tern_schema_flatten(s, a->rest, at) : NULL;
    json_t *list = json_object_get(items, "enum"), *out = json_array(), *one;
    const unsigned types = tern_schema_types(items);
    size_t i;
    if (json_object_get(items, "const"))
        list = json_pack("[O]", json_object_get(items, "const"));
    else if (!list && items && !(types & ~(unsigned)(TERN_SCHEMA_NULL | TERN_SCHEMA_BOOLEAN)))
        list = json_pack("[n,b,b]", 1, 0);
    else
        list = json_incref(list);
    bool known = list != NULL && a->n_first == 0 && !a->contains;
    json_array_foreach(list, i, one) {
        const int holds = tern_schema_holds(s, items, one, 0);
        known &= holds >= 0;
        if (holds > 0 && !tern_schema_is_among(out, one))
            json_array_append(out, one);
    }
    json_decref(list);
    known &= json_array_size(out) <= MOST_UNIQUE;
    return tern_schema_keep(s, out) && known ? out : NULL;
}

/* A rule for each set of values that were taken. */
static void write_unique(struct tern_schema *s, const struct array *a, json_t *values,
                         uint32_t rule, struct tern_out *more)
{
    const uint32_t n = (uint32_t)json_array_size(values);
    for (uint32_t set = 0; set < 1u << n; set++) {
        int64_t taken = 0;
        for (uint32_t k = 0; k < n; k++)
            taken += set >> k & 1;
        bool any = taken >= a->least && (a->most < 0 || taken <= a->most);
        tern_out_print(more, "r%u-u%u ::= ", rule, set);
        if (any)
            write_end(more, taken > 0);
        for (uint32_t k = 0; k < n && (a->most < 0 || taken < a->most); k++) {
            if (set >> k & 1)
                continue;
            tern_out_print(more, "%s%sr%u-v%u r%u-u%u", any ? " | " : "",
                           taken ? "\",\" ws " : "", rule, k, rule, set | 1u << k);
            any = true;
        }
        tern_out_print(more, any ? "\n" : "[]\n");
    }
    for (uint32_t k = 0; k < n; k++) {
        tern_out_print(more, "r%u-v%u ::= ", rule, k);
        tern_schema_json(more, json_array_get(values, k));
        tern_out_print(more, "\n");
    }
    tern_out_print(s->o, "\"[\" ws r%u-u0", rule);
}

/* --- all of them --- */

static bool write_plain(struct tern_schema *s, const struct array *a, const char *at,
                        uint32_t rule, struct tern_out *more)
{
    tern_out_print(s->o, "\"[\" ws r%u-p0", rule);
    for (int64_t i = 0; i < a->n_first; i++) {
        char key[40];
        snprintf(key, sizeof key, "prefixItems/%lld", (long long)i);
        tern_out_print(more, "r%u-p%lld ::= ", rule, (long long)i);
        if (i >= a->least)
            tern_out_print(more, i ? "ws \"]\" | " : "\"]\" | ");
        tern_out_print(more, i ? "\",\" ws " : "");
        tern_schema_item(s, more, json_array_get(a->first, (size_t)i), at, key);
        tern_out_print(more, " r%u-p%lld\n", rule, (long long)i + 1);
    }
    tern_out_print(more, "r%u-p%lld ::= ", rule, (long long)a->n_first);
    write_others(s, a, at, more);
    tern_out_print(more, "\n");
    return !s->failed;
}

bool tern_schema_array(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                       struct tern_out *more)
{
    struct array a;
    if (!read_array(s, node, at, &a) || !read_contains(s, node, at, &a))
        return false;
    if ((a.most >= 0 && a.least > a.most) || (a.c_most >= 0 && a.c_least > a.c_most)) {
        tern_out_print(s->o, "[]");
        return true;
    }
    if (a.most >= 0 && a.n_first > a.most)
        a.n_first = a.most;
    if (a.most >= 0 && a.most == a.n_first)
        a.closed = true;
    const int64_t most = a.closed ? a.n_first : a.most;
    if (json_is_true(json_object_get(node, "uniqueItems")) && (most < 0 || most > 1)) {
        json_t *values = few_values(s, &a, at);
        if (values) {
            write_unique(s, &a, values, rule, more);
            return !s->failed;
        }
        if (s->failed || !tern_schema_drop(s, at, "uniqueItems", NULL))
            return false;
    }
    if (a.contains && (a.c_least > 0 || a.c_most >= 0)) {
        if (write_contains(s, &a, at, rule, more))
            return !s->failed;
        if (s->failed ||
            !tern_schema_drop(s, at, a.c_most >= 0 ? "maxContains" : "contains", NULL))
            return false;
    }
    return write_plain(s, &a, at, rule, more);
}
