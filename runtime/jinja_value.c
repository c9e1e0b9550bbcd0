/* jinja_value.c: what values are to Python: true or not, long, equal, in order, in one another. */
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;

struct tern_jv tern_jv_undefined(const char *name)
{
    struct tern_jv v = tern_jv_text(name, strlen(name));
    v.kind = JV_UNDEFINED;
    return v;
}

struct tern_jv tern_jv_list(enum tern_jv_kind kind, const struct tern_jv *items, uint32_t n)
{
    return (struct tern_jv){.kind = (uint8_t)kind, .n = n, .u.items = items};
}

const char *tern_jv_type(struct tern_jv v)
{
    static const char *const names[JV_N_KINDS] = {
        "nothing", "undefined", "None", "bool", "int", "float", "str", "list", "tuple",
        "dict view", "range", "dict", "generator", "namespace", "macro", "method", "function",
        "loop", "joiner",
    };
    return names[v.kind];
}

bool tern_jv_truth(struct tern_jv v)
{
    switch (v.kind) {
    case JV_ABSENT: case JV_UNDEFINED: case JV_NONE:
        return false;
    case JV_BOOL: case JV_INT:
        return v.u.i != 0;
    case JV_FLOAT:
        return v.u.f != 0;
    case JV_TEXT: case JV_LIST: case JV_TUPLE: case JV_VIEW: case JV_RANGE: case JV_DICT:
        return v.n > 0;
    default:
        return true;
    }
}

bool tern_jv_number(struct tern_jv v, double *out)
{
    *out = v.kind == JV_FLOAT ? v.u.f : (double)v.u.i;
    return v.kind == JV_BOOL || v.kind == JV_INT || v.kind == JV_FLOAT;
}

static bool items_of_text(machine *m, struct tern_jv v, const struct tern_jv **items, uint32_t *n)
{
    const uint32_t count = tern_jinja_count(v);
    struct tern_jv *out = tern_jinja_make(m, count * sizeof *out);
    if (!out)
        return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t begin = at;
        while (++at < v.n && ((unsigned char)v.u.s[at] & 0xc0) == 0x80)
            ;
        out[i] = tern_jv_text(v.u.s + begin, at - begin);
    }
    *items = out;
    *n = count;
    return true;
}

bool tern_jinja_items(machine *m, struct tern_jv v, const struct tern_jv **items, uint32_t *n)
{
    *items = v.u.items;
    *n = v.n;
    if (tern_jv_is_items(v))
        return true;
    if (v.kind == JV_TEXT)
        return items_of_text(m, v, items, n);
    if (v.kind == JV_UNDEFINED) {
        *n = 0;
        return true;
    }
    if (v.kind == JV_GENERATOR) { /* what was taken is gone */
        *items = v.u.list->items + v.u.list->at;
        *n = v.u.list->n - v.u.list->at;
        v.u.list->at = v.u.list->n;
        return true;
    }
    if (v.kind != JV_DICT)
        return tern_jinja_fail(m, "a %s cannot be gone through", tern_jv_type(v));
    struct tern_jv *keys = tern_jinja_make(m, v.n * sizeof *keys);
    for (uint32_t i = 0; keys && i < v.n; i++)
        keys[i] = v.u.items[2 * i];
    *items = keys;
    return keys != NULL;
}

bool tern_jinja_length(machine *m, struct tern_jv v, int64_t *n)
{
    *n = v.n;
    if (v.kind == JV_TEXT)
        *n = tern_jinja_count(v);
    else if (v.kind == JV_UNDEFINED)
        *n = 0;
    else if (v.kind == JV_LOOP)
        *n = v.u.loop->n;
    else if (!tern_jv_is_items(v) && v.kind != JV_DICT)
        return tern_jinja_fail(m, "a %s has no length", tern_jv_type(v));
    return true;
}

/* --- equality and order --- */

static bool both(struct tern_jv a, struct tern_jv b, enum tern_jv_kind kind)
{
    return a.kind == kind && b.kind == kind;
}

/* Of two values that are no lists or dicts. */
static bool equal_plain(struct tern_jv a, struct tern_jv b)
{
    double x, y;
    if (both(a, b, JV_INT) || both(a, b, JV_BOOL))
        return a.u.i == b.u.i;
    if (tern_jv_number(a, &x) && tern_jv_number(b, &y))
        return x == y;
    if (a.kind != b.kind)
        return false;
    if (a.kind == JV_TEXT)
        return tern_text_equal(tern_jv_bytes(a), tern_jv_bytes(b));
    return a.kind == JV_NONE || a.kind == JV_UNDEFINED || a.u.items == b.u.items;
}

static bool nests(struct tern_jv a, struct tern_jv b)
{
    return both(a, b, JV_LIST) || both(a, b, JV_TUPLE) || both(a, b, JV_RANGE) ||
           both(a, b, JV_DICT);
}

static bool enter(machine *m, uint32_t *depth, struct tern_jv a, struct tern_jv b)
{
    if (*depth == TERN_JINJA_DEPTH)
        return tern_jinja_fail(m, "values nested deeper than %u", (uint64_t)TERN_JINJA_DEPTH);
    m->walk[(*depth)++] = (struct tern_jinja_walk){a, b, 0};
    return true;
}

/* The next two values to compare; false: there are none, or a key of a is not in b (*differ). */
static bool next_pair(machine *m, uint32_t *depth, struct tern_jv *a, struct tern_jv *b,
                      bool *differ)
{
    while (*depth) {
        struct tern_jinja_walk *w = &m->walk[*depth - 1];
        const uint32_t most = w->a.n < w->b.n ? w->a.n : w->b.n;
        if (w->i == most) {
            --*depth;
            continue;
        }
        const uint32_t i = w->i++;
        if (w->a.kind == JV_DICT) {
            const struct tern_jv *there = tern_jinja_find(m, w->b.u.items, w->b.n,
                                                          w->a.u.items[2 * i]);
            *differ = !there;
            *a = w->a.u.items[2 * i + 1];
            *b = there ? *there : *a;
            return there && !m->failed;
        }
        *a = w->a.u.items[i];
        *b = w->b.u.items[i];
        return true;
    }
    return false;
}

bool tern_jinja_equal(machine *m, struct tern_jv a, struct tern_jv b, bool *equal)
{
    uint32_t depth = 0;
    bool differ = false;
    do {
        if (!tern_jinja_charge(m, 1 + (a.kind == JV_TEXT ? a.n / 64 : 0)))
            return false;
        differ = nests(a, b) ? a.n != b.n : !equal_plain(a, b);
        if (!differ && nests(a, b) && a.u.items != b.u.items && !enter(m, &depth, a, b))
            return false;
    } while (!differ && next_pair(m, &depth, &a, &b, &differ));
    *equal = !differ;
    return !m->failed;
}

static bool order_plain(machine *m, struct tern_jv a, struct tern_jv b, int *order)
{
    double x, y;
    if (both(a, b, JV_INT)) {
        *order = (a.u.i > b.u.i) - (a.u.i < b.u.i);
        return true;
    }
    if (tern_jv_number(a, &x) && tern_jv_number(b, &y)) {
        *order = (x > y) - (x < y);
        return true;
    }
    if (both(a, b, JV_TEXT)) { /* the bytes of UTF-8 are ordered as the characters are */
        const uint32_t n = a.n < b.n ? a.n : b.n;
        const int c = n ? memcmp(a.u.s, b.u.s, n) : 0;
        *order = c ? (c > 0) - (c < 0) : (a.n > b.n) - (a.n < b.n);
        return true;
    }
    *order = 0;
    return equal_plain(a, b) ||
           tern_jinja_fail(m, "a %s and a %s have no order", tern_jv_type(a), tern_jv_type(b));
}

bool tern_jinja_order(machine *m, struct tern_jv a, struct tern_jv b, int *order)
{
    uint32_t depth = 0;
    bool unused = false;
    *order = 0;
    if (a.kind == JV_UNDEFINED || a.kind == JV_NONE || a.kind == JV_DICT)
        return tern_jinja_fail(m, "a %s and a %s have no order", tern_jv_type(a),
                               tern_jv_type(b));
    for (;;) {
        if (!tern_jinja_charge(m, 1))
            return false;
        if (nests(a, b) && a.kind != JV_DICT) {
            if (!enter(m, &depth, a, b))
                return false;
        } else if (!order_plain(m, a, b, order)) {
            return false;
        }
        if (*order)
            return true;
        /* The longer of two lists that begin alike comes last. */
        while (depth) {
            const struct tern_jinja_walk *w = &m->walk[depth - 1];
            const uint32_t most = w->a.n < w->b.n ? w->a.n : w->b.n;
            if (w->i < most)
                break;
            *order = (w->a.n > w->b.n) - (w->a.n < w->b.n);
            depth--;
            if (*order)
                return true;
        }
        if (!next_pair(m, &depth, &a, &b, &unused))
            return true;
    }
}

const struct tern_jv *tern_jinja_find(machine *m, const struct tern_jv *pairs, uint32_t n,
                                      struct tern_jv key)
{
    if (!tern_jinja_charge(m, n / 8))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (equal_plain(pairs[2 * i], key))
            return &pairs[2 * i + 1];
    return NULL;
}

bool tern_jinja_contains(machine *m, struct tern_jv in, struct tern_jv item, bool *found)
{
    *found = false;
    if (in.kind == JV_TEXT) {
        if (item.kind != JV_TEXT)
            return tern_jinja_fail(m, "a %s is looked for in a str", tern_jv_type(item));
        *found = tern_jinja_search(in, item, 0) >= 0;
        return tern_jinja_charge(m, in.n / 16);
    }
    if (in.kind == JV_DICT) {
        if (item.kind == JV_LIST || item.kind == JV_DICT)
            return tern_jinja_fail(m, "a %s is no key", tern_jv_type(item));
        *found = tern_jinja_find(m, in.u.items, in.n, item) != NULL;
        return !m->failed;
    }
    const struct tern_jv *items;
    uint32_t n;
    if (!tern_jinja_items(m, in, &items, &n))
        return false;
    for (uint32_t i = 0; i < n && !*found; i++)
        if (!tern_jinja_equal(m, items[i], item, found))
            return false;
    return true;
}
