/* jinja_method.c: the methods of texts, dicts, lists and loops. Those that would change a dict or
 * list are not there, as in the sandbox that templates are made for. */
#include "runtime/jinja.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

#include <string.h>

typedef struct tern_jinja machine;
typedef struct tern_jv value;

static bool answer(value *v, bool holds)
{
    *v = tern_jv_bool(holds);
    return true;
}

static bool need_text(machine *m, value v, const char *what)
{
    return v.kind == JV_TEXT ||
           tern_jinja_fail(m, "%s: a %s given, a str needed", what, tern_jv_type(v));
}

static bool given(value v)
{
    return v.kind != JV_ABSENT && v.kind != JV_NONE;
}

/* --- texts: case, white space --- */

static bool lower(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_case(m, v, JC_LOWER);
}

static bool upper(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_case(m, v, JC_UPPER);
}

static bool capitalize(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_case(m, v, JC_CAPITALIZE);
}

static bool title(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_case(m, v, JC_TITLE);
}

static bool swapcase(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_case(m, v, JC_SWAP);
}

static bool strip_sides(machine *m, value *v, const value *a, int sides)
{
    if (given(a[0]) && !need_text(m, a[0], "strip"))
        return false;
    *v = tern_jinja_strip(*v, given(a[0]) ? &a[0] : NULL, sides);
    return tern_jinja_charge(m, v->n / 64);
}

static bool strip(machine *m, value *v, const value *a)
{
    return strip_sides(m, v, a, TERN_JINJA_LEFT | TERN_JINJA_RIGHT);
}

static bool lstrip(machine *m, value *v, const value *a)
{
    return strip_sides(m, v, a, TERN_JINJA_LEFT);
}

static bool rstrip(machine *m, value *v, const value *a)
{
    return strip_sides(m, v, a, TERN_JINJA_RIGHT);
}

/* --- texts: looking for others --- */

/* v from its a[1]-th to its a[2]-th character, where these are given. */
static bool part_of(machine *m, value *v, const value *a)
{
    const value bounds[3] = {given(a[1]) ? a[1] : tern_jv_none(),
                             given(a[2]) ? a[2] : tern_jv_none(), tern_jv_none()};
    return (!given(a[1]) && !given(a[2])) || tern_jinja_slice(m, v, bounds);
}

static bool begins_or_ends(machine *m, value *v, const value *a, bool begins)
{
    const value *items = a;
    uint32_t n = 1;
    if (a[0].kind == JV_TUPLE) {
        items = a[0].u.items;
        n = a[0].n;
    }
    bool holds = false;
    if (!part_of(m, v, a))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!need_text(m, items[i], begins ? "startswith" : "endswith"))
            return false;
        holds |= items[i].n <= v->n &&
                 memcmp(v->u.s + (begins ? 0 : v->n - items[i].n), items[i].u.s,
                        items[i].n) == 0;
    }
    return answer(v, holds);
}

static bool startswith(machine *m, value *v, const value *a)
{
    return begins_or_ends(m, v, a, true);
}

static bool endswith(machine *m, value *v, const value *a)
{
    return begins_or_ends(m, v, a, false);
}

static int64_t search_back(value text, value what)
{
    for (int64_t at = (int64_t)text.n - what.n; at >= 0; at--)
        if (memcmp(text.u.s + at, what.u.s, what.n) == 0)
            return at;
    return -1;
}

static bool find_any(machine *m, value *v, const value *a, bool back)
{
    const value whole = *v;
    if (!need_text(m, a[0], "find") || !part_of(m, v, a) || !tern_jinja_charge(m, whole.n / 16))
        return false;
    const int64_t at = back ? search_back(*v, a[0]) : tern_jinja_search(*v, a[0], 0);
    const value before = tern_jv_text(whole.u.s, at < 0 ? 0 : (size_t)(v->u.s - whole.u.s + at));
    *v = tern_jv_int(at < 0 ? -1 : (int64_t)tern_jinja_count(before));
    return true;
}

static bool find(machine *m, value *v, const value *a)
{
    return find_any(m, v, a, false);
}

static bool rfind(machine *m, value *v, const value *a)
{
    return find_any(m, v, a, true);
}

static bool text_index(machine *m, value *v, const value *a)
{
    return find(m, v, a) && (v->u.i >= 0 || tern_jinja_fail(m, "index: not found"));
}

static bool count(machine *m, value *v, const value *a)
{
    int64_t n = 0;
    if (!need_text(m, a[0], "count") || !part_of(m, v, a) || !tern_jinja_charge(m, v->n / 16))
        return false;
    if (a[0].n == 0)
        n = (int64_t)tern_jinja_count(*v) + 1;
    for (int64_t at = 0; a[0].n && (at = tern_jinja_search(*v, a[0], (uint32_t)at)) >= 0;
         at += a[0].n)
        n++;
    *v = tern_jv_int(n);
    return true;
}

static bool replace(machine *m, value *v, const value *a)
{
    return need_text(m, a[0], "replace") && need_text(m, a[1], "replace") &&
           tern_jinja_replace(m, v, a[0], a[1], a[2].kind == JV_INT ? a[2].u.i : -1);
}

static bool removeprefix(machine *m, value *v, const value *a)
{
    if (!need_text(m, a[0], "removeprefix"))
        return false;
    if (a[0].n <= v->n && memcmp(v->u.s, a[0].u.s, a[0].n) == 0) {
        v->u.s += a[0].n;
        v->n -= a[0].n;
    }
    return true;
}

static bool removesuffix(machine *m, value *v, const value *a)
{
    if (!need_text(m, a[0], "removesuffix"))
        return false;
    if (a[0].n <= v->n && memcmp(v->u.s + v->n - a[0].n, a[0].u.s, a[0].n) == 0)
        v->n -= a[0].n;
    return true;
}

/* --- texts: cutting and joining --- */

/* The next piece of rest before a separator, or before white space: cut off it. */
static bool cut(value *rest, const value *by, value *piece)
{
    if (by) {
        const int64_t at = tern_jinja_search(*rest, *by, 0);
        *piece = tern_jv_text(rest->u.s, at < 0 ? rest->n : (size_t)at);
        const uint32_t taken = piece->n + (at < 0 ? 0 : by->n);
        rest->u.s += taken;
        rest->n -= taken;
        return at >= 0;
    }
    uint32_t at = 0;
    while (at < rest->n) {
        uint32_t cp;
        const size_t n = tern_unicode_decode((const unsigned char *)rest->u.s + at, rest->n - at,
                                             &cp);
        if (tern_jinja_is_space(cp))
            break;
        at += (uint32_t)n;
    }
    *piece = tern_jv_text(rest->u.s, at);
    *rest = tern_jinja_strip(tern_jv_text(rest->u.s + at, rest->n - at), NULL, TERN_JINJA_LEFT);
    return rest->n > 0;
}

/* Counted first, so that the list has its memory. */
static bool split(machine *m, value *v, const value *a)
{
    const value *by = given(a[0]) ? &a[0] : NULL;
    const int64_t most = a[1].kind == JV_INT && a[1].u.i >= 0 ? a[1].u.i : INT64_MAX;
    if ((by && !need_text(m, *by, "split")) || !tern_jinja_charge(m, v->n / 8))
        return false;
    if (by && by->n == 0)
        return tern_jinja_fail(m, "split: an empty separator");
    const value text = by ? *v : tern_jinja_strip(*v, NULL, TERN_JINJA_LEFT);
    value *pieces = NULL;
    for (int pass = 0; pass < 2; pass++) {
        value rest = text, piece;
        uint32_t n = 0;
        bool more = by || text.n;
        while (more) {
            if (n == most) {
                piece = rest;
                more = false;
            } else {
                more = cut(&rest, by, &piece);
            }
            if (pass)
                pieces[n] = piece;
            n++;
        }
        if (!pass)
            pieces = tern_jinja_make(m, n * sizeof *pieces);
        if (!pieces)
            return false;
        *v = tern_jv_list(JV_LIST, pieces, n);
    }
    return true;
}

static bool rsplit(machine *m, value *v, const value *a)
{
    const value text = *v;
    const int64_t most = a[1].kind == JV_INT && a[1].u.i >= 0 ? a[1].u.i : INT64_MAX;
    if (!split(m, v, &(const value[2]){a[0], {0}}[0]))
        return false;
    if (v->n <= most + 1ull)
        return true;
    /* What the limit leaves together begins where the text does. */
    const uint32_t joined = v->n - (uint32_t)most;
    value *pieces = tern_jinja_make(m, ((size_t)most + 1) * sizeof *pieces);
    if (!pieces)
        return false;
    const value end = v->u.items[joined - 1];
    pieces[0] = tern_jv_text(text.u.s, (size_t)(end.u.s - text.u.s) + end.n);
    for (uint32_t i = joined; i < v->n; i++)
        pieces[i - joined + 1] = v->u.items[i];
    *v = tern_jv_list(JV_LIST, pieces, (uint32_t)most + 1);
    return true;
}

static bool splitlines(machine *m, value *v, const value *a)
{
    return tern_jinja_split_lines(m, v, tern_jv_truth(a[0]));
}

static bool cut_in_three(machine *m, value *v, const value *a, bool back)
{
    if (!need_text(m, a[0], "partition"))
        return false;
    const int64_t at = back ? search_back(*v, a[0]) : tern_jinja_search(*v, a[0], 0);
    value *three = tern_jinja_make(m, 3 * sizeof *three);
    if (!three)
        return false;
    const uint32_t n = (uint32_t)at;
    three[0] = three[1] = three[2] = tern_jv_text(v->u.s, 0);
    if (at >= 0) {
        three[0].n = n;
        three[1] = tern_jv_text(v->u.s + n, a[0].n);
        three[2] = tern_jv_text(v->u.s + n + a[0].n, v->n - n - a[0].n);
    } else {
        three[back ? 2 : 0] = *v;
    }
    *v = tern_jv_list(JV_TUPLE, three, 3);
    return true;
}

static bool partition(machine *m, value *v, const value *a)
{
    return cut_in_three(m, v, a, false);
}

static bool rpartition(machine *m, value *v, const value *a)
{
    return cut_in_three(m, v, a, true);
}

static bool join(machine *m, value *v, const value *a)
{
    const value *items;
    uint32_t n;
    value all = tern_jv_text("", 0);
    if (!tern_jinja_items(m, a[0], &items, &n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!need_text(m, items[i], "join") ||
            (i > 0 && !tern_jinja_join_two(m, all, *v, &all)) ||
            !tern_jinja_join_two(m, all, items[i], &all))
            return false;
    *v = all;
    return true;
}

static bool pad(machine *m, value *v, const value *a, bool left, const char *fill)
{
    const int64_t have = tern_jinja_count(*v);
    if (a[0].kind != JV_INT || (given(a[1]) && !need_text(m, a[1], "fill")))
        return tern_jinja_fail(m, "a width that is a %s", tern_jv_type(a[0]));
    const value with = given(a[1]) ? a[1] : tern_jv_text(fill, 1);
    const int64_t room = a[0].u.i > have ? a[0].u.i - have : 0;
    const size_t begin = m->n_text;
    if (!left && !tern_jinja_put(m, v->u.s, v->n))
        return false;
    for (int64_t i = 0; i < room; i++)
        if (!tern_jinja_put(m, with.u.s, with.n))
            return false;
    if (left && !tern_jinja_put(m, v->u.s, v->n))
        return false;
    *v = tern_jinja_take(m, begin);
    return true;
}

static bool ljust(machine *m, value *v, const value *a)
{
    return pad(m, v, a, false, " ");
}

static bool rjust(machine *m, value *v, const value *a)
{
    return pad(m, v, a, true, " ");
}

static bool zfill(machine *m, value *v, const value *a)
{
    if (v->n && (v->u.s[0] == '-' || v->u.s[0] == '+'))
        return tern_jinja_fail(m, "zfill of a text with a sign");
    return pad(m, v, a, true, "0");
}

static bool text_format(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_format(m, v);
}

/* --- texts: what they are made of --- */

typedef bool is_of(uint32_t cp);

static bool all_are(value *v, is_of *is)
{
    bool all = v->n > 0;
    for (uint32_t at = 0; at < v->n && all;) {
        uint32_t cp;
        at += (uint32_t)tern_unicode_decode((const unsigned char *)v->u.s + at, v->n - at, &cp);
        all = is(cp);
    }
    return answer(v, all);
}

static bool cp_is_letter(uint32_t cp)
{
    const enum tern_cp_class k = tern_unicode_class(cp);
    return k >= TERN_CP_LU && k <= TERN_CP_LO;
}

static bool cp_is_digit(uint32_t cp)
{
    return cp < 128 ? cp >= '0' && cp <= '9' : tern_unicode_class(cp) == TERN_CP_N;
}

static bool cp_is_either(uint32_t cp)
{
    return cp_is_letter(cp) || cp_is_digit(cp);
}

static bool isalpha_all(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return all_are(v, cp_is_letter);
}

static bool isdigit_all(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return all_are(v, cp_is_digit);
}

static bool isalnum_all(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return all_are(v, cp_is_either);
}

static bool isspace_all(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return all_are(v, tern_jinja_is_space);
}

static bool islower_all(machine *m, value *v, const value *a)
{
    return tern_jinja_tests[tern_jinja_row_of(tern_jinja_tests, tern_text_of("lower"))].run(m, v,
                                                                                            a);
}

static bool isupper_all(machine *m, value *v, const value *a)
{
    return tern_jinja_tests[tern_jinja_row_of(tern_jinja_tests, tern_text_of("upper"))].run(m, v,
                                                                                            a);
}

/* --- dicts --- */

static bool get(machine *m, value *v, const value *a)
{
    if (a[0].kind == JV_LIST || a[0].kind == JV_DICT)
        return tern_jinja_fail(m, "get: a %s is no key", tern_jv_type(a[0]));
    const value *there = tern_jinja_find(m, v->u.items, v->n, a[0]);
    *v = there ? *there : a[1].kind == JV_ABSENT ? tern_jv_none() : a[1];
    return !m->failed;
}

static bool view(machine *m, value *v, uint32_t offset)
{
    const uint32_t n = v->n;
    value *out = tern_jinja_make(m, n * sizeof *out);
    for (uint32_t i = 0; out && i < n; i++)
        out[i] = offset == 2 ? tern_jv_list(JV_TUPLE, v->u.items + 2 * i, 2)
                             : v->u.items[2 * i + offset];
    *v = tern_jv_list(JV_VIEW, out, n);
    return out != NULL;
}

static bool keys(machine *m, value *v, const value *a)
{
    (void)a;
    return view(m, v, 0);
}

static bool values(machine *m, value *v, const value *a)
{
    (void)a;
    return view(m, v, 1);
}

static bool items(machine *m, value *v, const value *a)
{
    (void)a;
    return view(m, v, 2);
}

static bool copy(machine *m, value *v, const value *a)
{
    (void)m, (void)v, (void)a;
    return true;
}

/* --- lists, loops --- */

static bool list_count(machine *m, value *v, const value *a)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        bool same;
        if (!tern_jinja_equal(m, v->u.items[i], a[0], &same))
            return false;
        n += same;
    }
    *v = tern_jv_int(n);
    return true;
}

static bool list_index(machine *m, value *v, const value *a)
{
    for (uint32_t i = 0; i < v->n; i++) {
        bool same;
        if (!tern_jinja_equal(m, v->u.items[i], a[0], &same))
            return false;
        if (same) {
            *v = tern_jv_int(i);
            return true;
        }
    }
    return tern_jinja_fail(m, "index: not found");
}

static bool cycle(machine *m, value *v, const value *a)
{
    if (m->n_given == 0)
        return tern_jinja_fail(m, "cycle: nothing to choose from");
    *v = a[v->u.loop->at % m->n_given];
    return true;
}

static bool changed(machine *m, value *v, const value *a)
{
    struct tern_jinja_loop *loop = v->u.loop;
    value *now = tern_jinja_make(m, m->n_given * sizeof *now);
    bool same = loop->seen.kind == JV_TUPLE;
    if (!now)
        return false;
    if (m->n_given)
        memcpy(now, a, m->n_given * sizeof *now);
    const value all = tern_jv_list(JV_TUPLE, now, m->n_given);
    if (same && !tern_jinja_equal(m, loop->seen, all, &same))
        return false;
    loop->seen = all;
    return answer(v, !same);
}

const struct tern_jinja_row tern_jinja_text_methods[] = {
    {"strip", strip, "chars", 0}, {"lstrip", lstrip, "chars", 0}, {"rstrip", rstrip, "chars", 0},
    {"split", split, "sep maxsplit", 0}, {"rsplit", rsplit, "sep maxsplit", 0},
    {"startswith", startswith, "prefix start end", 1},
    {"endswith", endswith, "suffix start end", 1}, {"replace", replace, "old new count", 2},
    {"lower", lower, "", 0}, {"casefold", lower, "", 0}, {"upper", upper, "", 0},
    {"capitalize", capitalize, "", 0}, {"title", title, "", 0}, {"swapcase", swapcase, "", 0},
    {"find", find, "sub start end", 1}, {"rfind", rfind, "sub start end", 1},
    {"index", text_index, "sub start end", 1}, {"count", count, "sub start end", 1},
    {"join", join, "iterable", 1}, {"format", text_format, "*", 0},
    {"splitlines", splitlines, "keepends", 0}, {"partition", partition, "sep", 1},
    {"rpartition", rpartition, "sep", 1}, {"removeprefix", removeprefix, "prefix", 1},
    {"removesuffix", removesuffix, "suffix", 1}, {"ljust", ljust, "width fillchar", 1},
    {"rjust", rjust, "width fillchar", 1}, {"zfill", zfill, "width", 1},
    {"isalpha", isalpha_all, "", 0}, {"isdigit", isdigit_all, "", 0},
    {"isdecimal", isdigit_all, "", 0}, {"isnumeric", isdigit_all, "", 0},
    {"isalnum", isalnum_all, "", 0}, {"isspace", isspace_all, "", 0},
    {"islower", islower_all, "", 0}, {"isupper", isupper_all, "", 0}, {NULL, NULL, NULL, 0},
};
const struct tern_jinja_row tern_jinja_dict_methods[] = {
    {"get", get, "key default", 1}, {"items", items, "", 0}, {"keys", keys, "", 0},
    {"values", values, "", 0}, {"copy", copy, "", 0}, {NULL, NULL, NULL, 0},
};
const struct tern_jinja_row tern_jinja_list_methods[] = {
    {"count", list_count, "value", 1}, {"index", list_index, "value", 1}, {"copy", copy, "", 0},
    {NULL, NULL, NULL, 0},
};
const struct tern_jinja_row tern_jinja_loop_methods[] = {
    {"cycle", cycle, "*", 0}, {"changed", changed, "*", 0}, {NULL, NULL, NULL, 0},
};
