/* jinja_filter_list.c: filters over many items. Those that call another filter or test by its
 * name call none that does so again, so they nest once. */
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;
typedef struct tern_jv value;

static bool generator(machine *m, value *v, value *items, uint32_t n)
{
    struct tern_jinja_list *g = tern_jinja_make(m, sizeof *g);
    if (!g)
        return false;
    *g = (struct tern_jinja_list){.items = items, .n = n, .cap = n};
    *v = (value){.kind = JV_GENERATOR, .u.list = g};
    return true;
}

static bool given(value v)
{
    return v.kind != JV_ABSENT && v.kind != JV_NONE;
}

/* What an item is ordered or told apart by. */
static bool key_of(machine *m, value item, value attribute, bool by_case, value *key)
{
    *key = item;
    if (given(attribute) && !tern_jinja_path(m, key, attribute))
        return false;
    return by_case || key->kind != JV_TEXT || tern_jinja_case(m, key, JC_LOWER);
}

/* Keys of a list of attributes, "a,b": a tuple of them. */
static bool keys_of(machine *m, value item, value attributes, bool by_case, value *key)
{
    const value comma = tern_jv_text(",", 1);
    if (attributes.kind != JV_TEXT || tern_jinja_search(attributes, comma, 0) < 0)
        return key_of(m, item, attributes, by_case, key);
    value *keys = tern_jinja_make(m, (attributes.n / 2 + 1) * sizeof *keys);
    uint32_t n = 0;
    if (!keys)
        return false;
    for (uint32_t at = 0; at < attributes.n;) {
        const int64_t found = tern_jinja_search(attributes, comma, at);
        const uint32_t end = found < 0 ? attributes.n : (uint32_t)found;
        if (!key_of(m, item, tern_jv_text(attributes.u.s + at, end - at), by_case, &keys[n++]))
            return false;
        at = end + 1;
    }
    *key = tern_jv_list(JV_TUPLE, keys, n);
    return true;
}

/* Stable, by insertion: found by halves, so that few keys are compared. */
static bool sort_by(machine *m, const value *items, const value *keys, uint32_t n, bool reverse,
                    value *out)
{
    uint32_t *order = tern_jinja_make(m, n * sizeof *order);
    if (!order)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t low = 0, high = i;
        while (low < high) {
            const uint32_t mid = (low + high) / 2;
            int c;
            if (!tern_jinja_order(m, keys[i], keys[order[mid]], &c))
                return false;
            if (reverse ? c > 0 : c < 0)
                high = mid;
            else
                low = mid + 1;
        }
        memmove(order + low + 1, order + low, (i - low) * sizeof *order);
        order[low] = i;
        if (!tern_jinja_charge(m, (i - low) / 16))
            return false;
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = items[order[i]];
    return true;
}

bool tern_jinja_filter_sort(machine *m, value *v, const value *a)
{
    const value *items;
    uint32_t n;
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    value *keys = tern_jinja_make(m, 2 * n * sizeof *keys);
    if (!keys)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!keys_of(m, items[i], a[2], tern_jv_truth(a[1]), &keys[i]))
            return false;
    *v = tern_jv_list(JV_LIST, keys + n, n);
    return sort_by(m, items, keys, n, tern_jv_truth(a[0]), keys + n);
}

bool tern_jinja_filter_dictsort(machine *m, value *v, const value *a)
{
    const bool by_value = a[1].kind == JV_TEXT && tern_text_is(tern_jv_bytes(a[1]), "value");
    if (v->kind != JV_DICT)
        return tern_jinja_fail(m, "dictsort of a %s", tern_jv_type(*v));
    if (a[1].kind != JV_ABSENT && !by_value &&
        !(a[1].kind == JV_TEXT && tern_text_is(tern_jv_bytes(a[1]), "key")))
        return tern_jinja_fail(m, "dictsort by something else than key or value");
    const uint32_t n = v->n;
    value *keys = tern_jinja_make(m, 3 * n * sizeof *keys);
    if (!keys)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        keys[n + i] = tern_jv_list(JV_TUPLE, v->u.items + 2 * i, 2);
        if (!key_of(m, v->u.items[2 * i + by_value], tern_jv_none(), tern_jv_truth(a[0]),
                    &keys[i]))
            return false;
    }
    *v = tern_jv_list(JV_LIST, keys + 2 * n, n);
    return sort_by(m, keys + n, keys, n, tern_jv_truth(a[2]), keys + 2 * n);
}

bool tern_jinja_filter_unique(machine *m, value *v, const value *a)
{
    const value *items;
    uint32_t n, n_keys = 0;
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    value *keys = tern_jinja_make(m, 2 * n * sizeof *keys);
    for (uint32_t i = 0; keys && i < n; i++) {
        value key;
        bool seen = false;
        if (!key_of(m, items[i], a[1], tern_jv_truth(a[0]), &key))
            return false;
        if (key.kind == JV_LIST || key.kind == JV_DICT)
            return tern_jinja_fail(m, "unique: a %s cannot be told apart", tern_jv_type(key));
        for (uint32_t k = 0; k < n_keys && !seen; k++)
            if (!tern_jinja_equal(m, keys[k], key, &seen))
                return false;
        keys[n_keys] = seen ? keys[n_keys] : key;
        keys[n + n_keys] = seen ? keys[n + n_keys] : items[i];
        n_keys += !seen;
    }
    return keys && generator(m, v, keys + n, n_keys);
}

static bool extreme(machine *m, value *v, const value *a, int sign)
{
    const value *items;
    uint32_t n, best = 0;
    value best_key;
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        value key;
        int c = 0;
        if (!key_of(m, items[i], a[1], tern_jv_truth(a[0]), &key) ||
            (i > 0 && !tern_jinja_order(m, key, best_key, &c)))
            return false;
        if (i == 0 || c * sign > 0) {
            best = i;
            best_key = key;
        }
    }
    *v = n ? items[best] : tern_jv_undefined("the best of no items");
    return true;
}

bool tern_jinja_filter_min(machine *m, value *v, const value *a)
{
    return extreme(m, v, a, -1);
}

bool tern_jinja_filter_max(machine *m, value *v, const value *a)
{
    return extreme(m, v, a, 1);
}

bool tern_jinja_filter_sum(machine *m, value *v, const value *a)
{
    const value *items;
    uint32_t n;
    value sum = a[1].kind == JV_ABSENT ? tern_jv_int(0) : a[1];
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        value x;
        if (!key_of(m, items[i], a[0], true, &x) ||
            !tern_jinja_binary(m, JO_ADD, sum, x, &sum))
            return false;
    }
    *v = sum;
    return true;
}

bool tern_jinja_filter_join(machine *m, value *v, const value *a)
{
    const value *items;
    uint32_t n;
    value with = a[0].kind == JV_ABSENT ? tern_jv_text("", 0) : a[0];
    value all = tern_jv_text("", 0);
    if (!tern_jinja_items(m, *v, &items, &n) || !tern_jinja_to_text(m, &with))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        value x;
        if (!key_of(m, items[i], a[1], true, &x) || !tern_jinja_to_text(m, &x) ||
            (i > 0 && !tern_jinja_join_two(m, all, with, &all)) ||
            !tern_jinja_join_two(m, all, x, &all))
            return false;
    }
    *v = all;
    return true;
}

bool tern_jinja_filter_batch(machine *m, value *v, const value *a)
{
    const value *items;
    uint32_t n;
    if (a[0].kind != JV_INT || a[0].u.i < 1)
        return tern_jinja_fail(m, "batch: a number from 1 on needed");
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    const uint32_t size = a[0].u.i > n ? (n ? n : 1) : (uint32_t)a[0].u.i;
    const uint32_t n_lines = (n + size - 1) / size;
    value *lines = tern_jinja_make(m, n_lines * sizeof *lines);
    for (uint32_t i = 0; lines && i < n_lines; i++)
        lines[i] = tern_jv_list(JV_LIST, items + i * size,
                                n - i * size < size ? n - i * size : size);
    if (!lines)
        return false;
    const uint64_t missing = n ? (uint64_t)a[0].u.i * n_lines - n : 0;
    if (given(a[1]) && missing) {
        const uint32_t have = lines[n_lines - 1].n;
        value *filled = missing < UINT32_MAX / 32
                            ? tern_jinja_make(m, (have + (size_t)missing) * sizeof *filled) : NULL;
        if (!filled)
            return m->failed ? false : tern_jinja_fail(m, "batch: too large");
        for (uint64_t i = 0; i < have + missing; i++)
            filled[i] = i < have ? lines[n_lines - 1].u.items[i] : a[1];
        lines[n_lines - 1] = tern_jv_list(JV_LIST, filled, (uint32_t)(have + missing));
    }
    return generator(m, v, lines, n_lines);
}

/* --- by name --- */

/* The row of a name in the call's arguments, which are left those behind it. */
static const struct tern_jinja_row *take_row(machine *m, const struct tern_jinja_row *rows,
                                             const char *what)
{
    const value name = m->given[0];
    const int at = name.kind == JV_TEXT ? tern_jinja_row_of(rows, tern_jv_bytes(name)) : -1;
    if (at < 0 || rows[at].params[0] == '*') {
        tern_jinja_fail(m, "%s by '%t', which cannot be", what,
                        name.kind == JV_TEXT ? tern_jv_bytes(name) : tern_text_of("?"));
        return NULL;
    }
    m->given++;
    m->n_given--;
    return &rows[at];
}

/* The items of a value; what is false has none, even where it could not be gone through. */
static bool items_if_true(machine *m, value v, const value **items, uint32_t *n)
{
    *items = NULL;
    *n = 0;
    return !tern_jv_truth(v) || tern_jinja_items(m, v, items, n);
}

bool tern_jinja_filter_map(machine *m, value *v, const value *a)
{
    const value *items, *pairs = a + m->n_given;
    uint32_t n;
    if (!items_if_true(m, *v, &items, &n))
        return false;
    value *out = tern_jinja_make(m, n * sizeof *out);
    if (!out)
        return false;
    if (m->n_given == 0) {
        const value *attribute = tern_jinja_find(m, pairs, m->n_named,
                                                 tern_jv_text("attribute", 9));
        const value *instead = tern_jinja_find(m, pairs, m->n_named, tern_jv_text("default", 7));
        if (!attribute || m->n_named > 1u + (instead != NULL))
            return tern_jinja_fail(m, "map: attribute=, or a filter's name, needed");
        for (uint32_t i = 0; i < n; i++) {
            out[i] = items[i];
            if (!tern_jinja_path(m, &out[i], *attribute))
                return false;
            if (instead && out[i].kind == JV_UNDEFINED)
                out[i] = *instead;
        }
        return generator(m, v, out, n);
    }
    const struct tern_jinja_row *row = take_row(m, tern_jinja_filters, "map");
    for (uint32_t i = 0; row && i < n; i++) {
        out[i] = items[i];
        if (!tern_jinja_charge(m, 1) || !tern_jinja_native_call(m, row, &out[i]))
            return false;
    }
    return row && generator(m, v, out, n);
}

static bool select_items(machine *m, value *v, bool keep, bool by_attribute)
{
    const value *items;
    uint32_t n, kept = 0;
    value attribute = tern_jv_none();
    if (by_attribute) {
        if (m->n_given == 0)
            return tern_jinja_fail(m, "an attribute's name is missing");
        attribute = *m->given++;
        m->n_given--;
    }
    const struct tern_jinja_row *row = NULL;
    if (!items_if_true(m, *v, &items, &n) ||
        (m->n_given && !(row = take_row(m, tern_jinja_tests, "select"))))
        return false;
    value *out = tern_jinja_make(m, n * sizeof *out);
    for (uint32_t i = 0; out && i < n; i++) {
        value x = items[i];
        if (!tern_jinja_charge(m, 1) || (by_attribute && !tern_jinja_path(m, &x, attribute)) ||
            (row && !tern_jinja_native_call(m, row, &x)))
            return false;
        if (tern_jv_truth(x) == keep)
            out[kept++] = items[i];
    }
    return out && generator(m, v, out, kept);
}

bool tern_jinja_filter_select(machine *m, value *v, const value *a)
{
    (void)a;
    return select_items(m, v, true, false);
}

bool tern_jinja_filter_reject(machine *m, value *v, const value *a)
{
    (void)a;
    return select_items(m, v, false, false);
}

bool tern_jinja_filter_selectattr(machine *m, value *v, const value *a)
{
    (void)a;
    return select_items(m, v, true, true);
}

bool tern_jinja_filter_rejectattr(machine *m, value *v, const value *a)
{
    (void)a;
    return select_items(m, v, false, true);
}
