/* jinja_access.c: attributes, items and slices.
 *
 * There is nothing behind a value but what the caller gave and the few methods listed in
 * jinja_method.c, so a template cannot walk anywhere: what is not there is undefined. */
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;

static bool undefined(struct tern_jv *v, struct tern_jv name)
{
    *v = name.kind == JV_TEXT ? name : tern_jv_undefined("an item that is not there");
    v->kind = JV_UNDEFINED;
    return true;
}

static bool method(machine *m, struct tern_jv *v, const struct tern_jinja_row *rows,
                   struct tern_jv name)
{
    const int row = tern_jinja_row_of(rows, tern_jv_bytes(name));
    if (row < 0)
        return undefined(v, name);
    struct tern_jv *of = tern_jinja_make(m, sizeof *of);
    if (!of)
        return false;
    *of = *v;
    *v = (struct tern_jv){.kind = JV_METHOD, .id = (uint16_t)row, .u.items = of};
    return true;
}

static bool loop_attr(machine *m, struct tern_jv *v, struct tern_jv name)
{
    static const char *const names[] = {
        "index", "index0", "revindex", "revindex0", "length", "depth", "depth0",
    };
    const struct tern_jinja_loop *l = v->u.loop;
    const int64_t numbers[] = {
        (int64_t)l->at + 1, l->at, (int64_t)l->n - l->at, (int64_t)l->n - l->at - 1, l->n, 1, 0,
    };
    const tern_text t = tern_jv_bytes(name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (tern_text_is(t, names[i])) {
            *v = tern_jv_int(numbers[i]);
            return true;
        }
    }
    if (tern_text_is(t, "first"))
        *v = tern_jv_bool(l->at == 0);
    else if (tern_text_is(t, "last"))
        *v = tern_jv_bool(l->at + 1 >= l->n);
    else if (tern_text_is(t, "previtem"))
        *v = l->at ? l->items[l->at - 1] : tern_jv_undefined("there is no previous item");
    else if (tern_text_is(t, "nextitem"))
        *v = l->at + 1 < l->n ? l->items[l->at + 1] : tern_jv_undefined("there is no next item");
    else
        return method(m, v, tern_jinja_loop_methods, name);
    return true;
}

/* What Python's getattr gives before items are looked at; *found. */
static bool own_attr(machine *m, struct tern_jv *v, struct tern_jv name, bool *found)
{
    const struct tern_jinja_row *rows = NULL;
    *found = true;
    switch (v->kind) {
    case JV_UNDEFINED:
        return tern_jinja_fail(m, "'%t' is undefined", tern_jv_bytes(*v));
    case JV_LOOP:
        return loop_attr(m, v, name);
    case JV_NAMESPACE: {
        const struct tern_jv *there = tern_jinja_find(m, v->u.list->items, v->u.list->n, name);
        *found = there != NULL;
        *v = there ? *there : *v;
        return !m->failed;
    }
    case JV_TEXT:
        rows = tern_jinja_text_methods;
        break;
    case JV_DICT:
        rows = tern_jinja_dict_methods;
        break;
    case JV_LIST: case JV_TUPLE:
        rows = tern_jinja_list_methods;
        break;
    default:
        break;
    }
    *found = rows && tern_jinja_row_of(rows, tern_jv_bytes(name)) >= 0;
    return !*found || method(m, v, rows, name);
}

/* Methods that would change a dict: a sandbox gives nothing for their names, nor their keys. */
static bool changes_dict(tern_text name)
{
    return tern_text_is(name, "pop") || tern_text_is(name, "popitem") ||
           tern_text_is(name, "update") || tern_text_is(name, "clear") ||
           tern_text_is(name, "setdefault");
}

bool tern_jinja_attr(machine *m, struct tern_jv *v, struct tern_jv name)
{
    bool found;
    if (!own_attr(m, v, name, &found) || found)
        return !m->failed;
    if (v->kind == JV_DICT && !changes_dict(tern_jv_bytes(name))) {
        const struct tern_jv *there = tern_jinja_find(m, v->u.items, v->n, name);
        if (there || m->failed) {
            *v = there ? *there : *v;
            return !m->failed;
        }
    }
    return undefined(v, name);
}

bool tern_jinja_item(machine *m, struct tern_jv *v, struct tern_jv key)
{
    if (v->kind == JV_DICT) {
        const struct tern_jv *there = tern_jinja_find(m, v->u.items, v->n, key);
        if (there || m->failed) {
            *v = there ? *there : *v;
            return !m->failed;
        }
    }
    const bool sequence = v->kind == JV_TEXT || v->kind == JV_LIST || v->kind == JV_TUPLE ||
                          v->kind == JV_RANGE;
    if (sequence && (key.kind == JV_INT || key.kind == JV_BOOL)) {
        const int64_t n = v->kind == JV_TEXT ? tern_jinja_count(*v) : v->n;
        const int64_t i = key.u.i < 0 ? key.u.i + n : key.u.i;
        if (i < 0 || i >= n)
            return undefined(v, key);
        if (v->kind != JV_TEXT) {
            *v = v->u.items[i];
            return true;
        }
        const uint32_t begin = tern_jinja_offset(*v, i);
        v->u.s += begin;
        v->n -= begin;
        v->n = tern_jinja_offset(*v, 1);
        return tern_jinja_charge(m, begin / 16);
    }
    if (v->kind == JV_UNDEFINED)
        return tern_jinja_fail(m, "'%t' is undefined", tern_jv_bytes(*v));
    bool found = false;
    if (key.kind == JV_TEXT && (!own_attr(m, v, key, &found) || found))
        return !m->failed;
    return undefined(v, key);
}

/* Python's slice: begin, end and step over n items, to n_out items from first on. */
struct cut { int64_t first, step, n; };

static int64_t clamp(int64_t i, int64_t n, int64_t low, int64_t high)
{
    if (i < 0)
        i = i < -n ? -1 - n : i + n;
    return i < low ? low : i > high ? high : i;
}

static bool make_cut(machine *m, const struct tern_jv b[3], int64_t n, struct cut *out)
{
    for (int i = 0; i < 3; i++)
        if (b[i].kind != JV_NONE && b[i].kind != JV_INT && b[i].kind != JV_BOOL)
            return tern_jinja_fail(m, "a slice's bound is a %s", tern_jv_type(b[i]));
    out->step = b[2].kind == JV_NONE ? 1 : b[2].u.i;
    if (out->step == 0)
        return tern_jinja_fail(m, "a slice's step is 0");
    const bool back = out->step < 0;
    const int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
    out->first = b[0].kind == JV_NONE ? (back ? high : low) : clamp(b[0].u.i, n, low, high);
    const int64_t end = b[1].kind == JV_NONE ? (back ? low : high) : clamp(b[1].u.i, n, low, high);
    const int64_t span = back ? out->first - end : end - out->first;
    const uint64_t step = back ? 0 - (uint64_t)out->step : (uint64_t)out->step;
    out->n = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / step) + 1;
    return true;
}

static bool slice_text(machine *m, struct tern_jv *v, const struct cut *c)
{
    const struct tern_jv text = *v;
    const size_t begin = m->n_text;
    if (c->step == 1 || c->n == 0) {
        const uint32_t from = tern_jinja_offset(text, c->n ? c->first : 0);
        const struct tern_jv rest = tern_jv_text(text.u.s + from, text.n - from);
        v->u.s += from;
        v->n = tern_jinja_offset(rest, c->n);
        return true;
    }
    const struct tern_jv *items;
    uint32_t n;
    if (!tern_jinja_items(m, text, &items, &n))
        return false;
    for (int64_t i = 0; i < c->n; i++) {
        const struct tern_jv one = items[c->first + i * c->step];
        if (!tern_jinja_put(m, one.u.s, one.n))
            return false;
    }
    *v = tern_jinja_take(m, begin);
    v->flags = text.flags;
    return true;
}

bool tern_jinja_slice(machine *m, struct tern_jv *v, const struct tern_jv bounds[3])
{
    struct cut c = {0};
    const bool text = v->kind == JV_TEXT;
    if (!text && v->kind != JV_LIST && v->kind != JV_TUPLE && v->kind != JV_RANGE)
        return tern_jinja_fail(m, "a %s cannot be sliced", tern_jv_type(*v));
    if (!make_cut(m, bounds, text ? tern_jinja_count(*v) : v->n, &c) ||
        !tern_jinja_charge(m, v->n / 16))
        return false;
    if (text)
        return slice_text(m, v, &c);
    if (c.step == 1) {
        v->u.items += c.n ? c.first : 0;
        v->n = (uint32_t)c.n;
        return true;
    }
    struct tern_jv *items = tern_jinja_make(m, (size_t)c.n * sizeof *items);
    if (!items)
        return false;
    for (int64_t i = 0; i < c.n; i++)
        items[i] = v->u.items[c.first + i * c.step];
    *v = tern_jv_list(v->kind, items, (uint32_t)c.n);
    return true;
}

bool tern_jinja_path(machine *m, struct tern_jv *v, struct tern_jv path)
{
    if (path.kind == JV_INT)
        return tern_jinja_item(m, v, path);
    if (path.kind != JV_TEXT)
        return tern_jinja_fail(m, "an attribute's name is a %s", tern_jv_type(path));
    const struct tern_jv dot = tern_jv_text(".", 1);
    for (uint32_t at = 0; at <= path.n;) {
        const int64_t found = tern_jinja_search(path, dot, at);
        const uint32_t end = found < 0 ? path.n : (uint32_t)found;
        struct tern_jv key = tern_jv_text(path.u.s + at, end - at);
        uint64_t number;
        if (tern_text_to_u64(tern_jv_bytes(key), &number) && number < INT32_MAX)
            key = tern_jv_int((int64_t)number);
        if (!tern_jinja_item(m, v, key))
            return false;
        at = end + 1;
    }
    return true;
}
