/* jinja_filter.c: filters of one value. Those of lists are in jinja_filter_list.c.
 *
 * What is not here (urlize, wordwrap, random and others that no chat template has a use for) is
 * refused by name when the template is compiled. */
#include "runtime/decimal.h"
#include "runtime/jinja.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

#include <math.h>
#include <string.h>

typedef struct tern_jinja machine;
typedef struct tern_jv value;

int tern_jinja_row_of(const struct tern_jinja_row *rows, tern_text name)
{
    for (int i = 0; rows[i].name; i++)
        if (tern_text_is(name, rows[i].name))
            return i;
    return -1;
}

/* Where a word stands in a list of words; its place, or -1. */
static int place_of(const char *words, tern_text word)
{
    int place = 0;
    for (const char *p = words; *p; place++) {
        size_t n = 0;
        while (p[n] && p[n] != ' ')
            n++;
        if (n == word.size && memcmp(p, word.data, n) == 0)
            return place;
        p += n + (p[n] == ' ');
    }
    return -1;
}

bool tern_jinja_native_call(machine *m, const struct tern_jinja_row *row, value *v)
{
    value args[TERN_JINJA_MOST_ARGS] = {0};
    if (row->params[0] == '*')
        return row->run(m, v, m->given);
    uint32_t n_params = row->params[0] != 0;
    for (const char *p = row->params; *p; p++)
        n_params += *p == ' ';
    if (m->n_given > n_params)
        return tern_jinja_fail(m, "%s: %u arguments given, at most %u", row->name,
                               (uint64_t)m->n_given, (uint64_t)n_params);
    for (uint32_t i = 0; i < m->n_given; i++)
        args[i] = m->given[i];
    for (uint32_t i = 0; i < m->n_named; i++) {
        const value *named = m->given + m->n_given + 2 * i;
        const int place = place_of(row->params, tern_jv_bytes(named[0]));
        if (place < 0 || args[place].kind != JV_ABSENT)
            return tern_jinja_fail(m, "%s: an argument '%t' it does not take", row->name,
                                   tern_jv_bytes(named[0]));
        args[place] = named[1];
    }
    for (uint32_t i = 0; i < row->least; i++)
        if (args[i].kind == JV_ABSENT)
            return tern_jinja_fail(m, "%s: %u arguments needed", row->name, (uint64_t)row->least);
    return row->run(m, v, args);
}

static bool set_text(value *v, struct tern_jv text, uint8_t flags)
{
    *v = text;
    v->flags = flags;
    return true;
}

static bool default_value(machine *m, value *v, const value *a)
{
    (void)m;
    if (v->kind == JV_UNDEFINED || (tern_jv_truth(a[1]) && !tern_jv_truth(*v)))
        *v = a[0].kind == JV_ABSENT ? tern_jv_text("", 0) : a[0];
    return true;
}

static bool length(machine *m, value *v, const value *a)
{
    (void)a;
    int64_t n;
    if (!tern_jinja_length(m, *v, &n))
        return false;
    *v = tern_jv_int(n);
    return true;
}

static bool to_string(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_to_text(m, v);
}

static bool safe(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_to_text(m, v) && set_text(v, *v, JV_SAFE);
}

static bool escape(machine *m, value *v, const value *a)
{
    (void)a;
    return v->flags & JV_SAFE || tern_jinja_escape(m, v);
}

static bool force_escape(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_escape(m, v);
}

static bool trim(machine *m, value *v, const value *a)
{
    const bool all = a[0].kind == JV_ABSENT || a[0].kind == JV_NONE;
    if (!all && a[0].kind != JV_TEXT)
        return tern_jinja_fail(m, "trim: a %s, a str needed", tern_jv_type(a[0]));
    if (!tern_jinja_to_text(m, v))
        return false;
    *v = tern_jinja_strip(*v, all ? NULL : &a[0], TERN_JINJA_LEFT | TERN_JINJA_RIGHT);
    return true;
}

static bool lower(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_to_text(m, v) && tern_jinja_case(m, v, JC_LOWER);
}

static bool upper(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_to_text(m, v) && tern_jinja_case(m, v, JC_UPPER);
}

static bool capitalize(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_to_text(m, v) && tern_jinja_case(m, v, JC_CAPITALIZE);
}

static bool title(machine *m, value *v, const value *a)
{
    (void)a;
    return tern_jinja_to_text(m, v) && tern_jinja_case(m, v, JC_JINJA_TITLE);
}

static bool replace(machine *m, value *v, const value *a)
{
    value from = a[0], to = a[1];
    const int64_t most = a[2].kind == JV_INT ? a[2].u.i : -1;
    if (!tern_jinja_to_text(m, v) || !tern_jinja_to_text(m, &from) || !tern_jinja_to_text(m, &to))
        return false;
    v->flags = 0;
    return tern_jinja_replace(m, v, from, to, most);
}

/* The lines of *v behind one another, those after the first behind an indentation. */
static bool put_indented(machine *m, const value *lines, uint32_t n, value indent, bool blank)
{
    for (uint32_t i = 0; i < n; i++) {
        const bool indented = i > 0 && (blank || lines[i].n);
        if (!tern_jinja_put(m, "\n", i > 0) ||
            !tern_jinja_put(m, indent.u.s, indented ? indent.n : 0) ||
            !tern_jinja_put(m, lines[i].u.s, lines[i].n))
            return false;
    }
    return true;
}

static bool indent(machine *m, value *v, const value *a)
{
    value by = a[0];
    size_t begin = m->n_text;
    if (v->kind != JV_TEXT)
        return tern_jinja_fail(m, "indent of a %s, a str needed", tern_jv_type(*v));
    if (by.kind != JV_TEXT) {
        const int64_t n = by.kind == JV_ABSENT ? 4 : by.u.i;
        if (by.kind != JV_ABSENT && by.kind != JV_INT && by.kind != JV_BOOL)
            return tern_jinja_fail(m, "indent by a %s", tern_jv_type(by));
        for (int64_t i = 0; i < n; i++)
            if (!tern_jinja_fill(m, " ", 1, true))
                return false;
        by = tern_jinja_take(m, begin);
    }
    /* One line end more keeps the last line, empty or not, as splitlines drops what is not. */
    const uint8_t flags = v->flags;
    if (!tern_jinja_join_two(m, *v, tern_jv_text("\n", 1), v) ||
        !tern_jinja_split_lines(m, v, false))
        return false;
    begin = m->n_text;
    if (!tern_jinja_put(m, by.u.s, tern_jv_truth(a[1]) ? by.n : 0) ||
        !put_indented(m, v->u.items, v->n, by, tern_jv_truth(a[2])))
        return false;
    return set_text(v, tern_jinja_take(m, begin), flags);
}

static bool center(machine *m, value *v, const value *a)
{
    if (!tern_jinja_to_text(m, v))
        return false;
    const int64_t width = a[0].kind == JV_INT ? a[0].u.i : 80, have = tern_jinja_count(*v);
    const int64_t room = width > have ? width - have : 0;
    const int64_t left = room / 2 + (room & width & 1);
    const size_t begin = m->n_text;
    for (int64_t i = 0; i <= room; i++)
        if (i == left ? !tern_jinja_put(m, v->u.s, v->n) : !tern_jinja_fill(m, " ", 1, true))
            return false;
    return set_text(v, tern_jinja_take(m, begin), v->flags);
}

static bool word_count(machine *m, value *v, const value *a)
{
    (void)a;
    int64_t n = 0;
    bool word = false;
    if (!tern_jinja_to_text(m, v))
        return false;
    for (uint32_t at = 0; at < v->n;) {
        uint32_t cp;
        at += (uint32_t)tern_unicode_decode((const unsigned char *)v->u.s + at, v->n - at, &cp);
        const enum tern_cp_class k = tern_unicode_class(cp);
        const bool is = cp == '_' || (k >= TERN_CP_LU && k <= TERN_CP_LO) || k == TERN_CP_N;
        n += is && !word;
        word = is;
    }
    *v = tern_jv_int(n);
    return true;
}

/* --- numbers --- */

static bool absolute(machine *m, value *v, const value *a)
{
    (void)a;
    double x;
    if (!tern_jv_number(*v, &x))
        return tern_jinja_fail(m, "abs of a %s", tern_jv_type(*v));
    return x < 0 ? tern_jinja_sign(m, JO_NEG, v) : tern_jinja_sign(m, JO_POS, v);
}

static bool read_int(value text, int64_t base, int64_t *out)
{
    text = tern_jinja_strip(text, NULL, TERN_JINJA_LEFT | TERN_JINJA_RIGHT);
    const char *s = text.u.s;
    uint32_t i = text.n && (s[0] == '-' || s[0] == '+');
    const bool negative = text.n && s[0] == '-';
    const char mark = i + 1 < text.n && s[i] == '0' ? (char)(s[i + 1] | 0x20) : 0;
    i += (mark == 'x' && base == 16) || (mark == 'o' && base == 8) || (mark == 'b' && base == 2)
             ? 2 : 0;
    bool digit = false;
    for (*out = 0; i < text.n; i++) {
        const char low = (char)(s[i] | 0x20);
        const int64_t d = s[i] >= '0' && s[i] <= '9' ? s[i] - '0'
                          : low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
        if (s[i] == '_' && digit && i + 1 < text.n) {
            digit = false;
            continue;
        }
        if (d >= base || __builtin_mul_overflow(*out, base, out) ||
            __builtin_add_overflow(*out, negative ? -d : d, out))
            return false;
        digit = true;
    }
    return digit;
}

static bool read_float(value text, double *out)
{
    text = tern_jinja_strip(text, NULL, TERN_JINJA_LEFT | TERN_JINJA_RIGHT);
    return tern_decimal_read(text.u.s, text.n, out);
}

static bool to_int(machine *m, value *v, const value *a)
{
    double x = 0;
    int64_t i = 0;
    const uint8_t flags = v->flags & JV_USER;
    const int64_t base = a[1].kind == JV_INT ? a[1].u.i : 10;
    bool ok = tern_jv_number(*v, &x) && (v->kind != JV_FLOAT || (x > -9e18 && x < 9e18));
    if (v->kind == JV_UNDEFINED)
        return tern_jinja_fail(m, "'%t' is undefined", tern_jv_bytes(*v));
    if (ok) {
        i = v->kind == JV_FLOAT ? (int64_t)x : v->u.i;
    } else if (v->kind == JV_TEXT) {
        ok = read_int(*v, base, &i);
        if (!ok && read_float(*v, &x) && x > -9e18 && x < 9e18) {
            i = (int64_t)x;
            ok = true;
        }
    }
    if (!ok && a[0].kind != JV_ABSENT) {
        *v = a[0];
        return true;
    }
    /* A number read from a text is no more the template's own than the text. */
    *v = tern_jv_int(ok ? i : 0);
    v->flags = flags | JV_USER;
    return true;
}

static bool to_float(machine *m, value *v, const value *a)
{
    double x = 0;
    if (v->kind == JV_UNDEFINED)
        return tern_jinja_fail(m, "'%t' is undefined", tern_jv_bytes(*v));
    if (!tern_jv_number(*v, &x) && !(v->kind == JV_TEXT && read_float(*v, &x))) {
        *v = a[0].kind == JV_ABSENT ? (value){.kind = JV_FLOAT} : a[0];
        return true;
    }
    *v = (value){.kind = JV_FLOAT, .flags = JV_USER, .u.f = x};
    return true;
}

static bool round_to(machine *m, value *v, const value *a)
{
    double x;
    char digits[TERN_DECIMAL_CAP];
    const tern_text how = a[1].kind == JV_TEXT ? tern_jv_bytes(a[1]) : tern_text_of("common");
    const int64_t after = a[0].kind == JV_INT ? a[0].u.i : 0;
    if (!tern_jv_number(*v, &x) || after < 0 || after > 22)
        return tern_jinja_fail(m, "round of a %s to %i digits, 0 to 22 can be", tern_jv_type(*v),
                               after);
    if (tern_text_is(how, "common")) {
        if (v->kind != JV_FLOAT)
            return true;
        const size_t n = tern_decimal_fixed(x, (int)after, digits);
        if (digits[n - 1] >= '0' && digits[n - 1] <= '9')
            tern_decimal_read(digits, n, &v->u.f);
        return true;
    }
    double scale = 1;
    for (int64_t i = 0; i < after; i++)
        scale *= 10;
    if (!tern_text_is(how, "ceil") && !tern_text_is(how, "floor"))
        return tern_jinja_fail(m, "round by '%t'", how);
    x = tern_text_is(how, "ceil") ? ceil(x * scale) : floor(x * scale);
    *v = (value){.kind = JV_FLOAT, .flags = v->flags, .u.f = x / scale};
    return true;
}

/* --- JSON, format --- */

static bool json_separators(machine *m, const value *a, struct tern_jinja_json *how)
{
    const value *items;
    uint32_t n;
    how->item = how->indent.kind == JV_ABSENT ? tern_jv_text(", ", 2) : tern_jv_text(",", 1);
    how->key = tern_jv_text(": ", 2);
    if (a->kind == JV_ABSENT || a->kind == JV_NONE)
        return true;
    if (!tern_jinja_items(m, *a, &items, &n))
        return false;
    if (n != 2 || items[0].kind != JV_TEXT || items[1].kind != JV_TEXT)
        return tern_jinja_fail(m, "tojson: separators must be two texts");
    how->item = items[0];
    how->key = items[1];
    return true;
}

static bool to_json(machine *m, value *v, const value *a)
{
    struct tern_jinja_json how = {.ascii = tern_jv_truth(a[0]), .sorted = tern_jv_truth(a[3])};
    size_t begin = m->n_text;
    if (a[1].kind == JV_TEXT) {
        how.indent = a[1];
    } else if (a[1].kind == JV_INT || a[1].kind == JV_BOOL) {
        for (int64_t i = 0; i < a[1].u.i; i++)
            if (!tern_jinja_fill(m, " ", 1, true))
                return false;
        how.indent = tern_jinja_take(m, begin);
    } else if (a[1].kind != JV_ABSENT && a[1].kind != JV_NONE) {
        return tern_jinja_fail(m, "tojson: indent is a %s", tern_jv_type(a[1]));
    }
    if (!json_separators(m, &a[2], &how))
        return false;
    begin = m->n_text;
    if (!tern_jinja_json(m, *v, &how))
        return false;
    *v = tern_jinja_take(m, begin);
    return true;
}

static bool format(machine *m, value *v, const value *a)
{
    const value with = m->n_named ? tern_jv_list(JV_DICT, a + m->n_given, m->n_named)
                                  : tern_jv_list(JV_TUPLE, a, m->n_given);
    if (m->n_named && m->n_given)
        return tern_jinja_fail(m, "format: arguments with and without names");
    return tern_jinja_to_text(m, v) && tern_jinja_percent(m, *v, with, v);
}

/* --- first, last, list, items --- */

static bool first(machine *m, value *v, const value *a)
{
    (void)a;
    const value *items;
    uint32_t n;
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    *v = n ? items[0] : tern_jv_undefined("the first of no items");
    return true;
}

static bool last(machine *m, value *v, const value *a)
{
    (void)a;
    const value *items;
    uint32_t n;
    if (v->kind == JV_GENERATOR)
        return tern_jinja_fail(m, "last of a generator");
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    *v = n ? items[n - 1] : tern_jv_undefined("the last of no items");
    return true;
}

static bool list(machine *m, value *v, const value *a)
{
    (void)a;
    const value *items;
    uint32_t n;
    if (!tern_jinja_items(m, *v, &items, &n))
        return false;
    *v = tern_jv_list(JV_LIST, items, n);
    return true;
}

static bool generator(machine *m, value *v, value *items, uint32_t n)
{
    struct tern_jinja_list *g = tern_jinja_make(m, sizeof *g);
    if (!g)
        return false;
    *g = (struct tern_jinja_list){.items = items, .n = n, .cap = n};
    *v = (value){.kind = JV_GENERATOR, .u.list = g};
    return true;
}

static bool items(machine *m, value *v, const value *a)
{
    (void)a;
    const uint32_t n = v->kind == JV_DICT ? v->n : 0;
    if (v->kind != JV_DICT && v->kind != JV_UNDEFINED)
        return tern_jinja_fail(m, "items of a %s", tern_jv_type(*v));
    value *pairs = tern_jinja_make(m, n * sizeof *pairs);
    for (uint32_t i = 0; pairs && i < n; i++)
        pairs[i] = tern_jv_list(JV_TUPLE, v->u.items + 2 * i, 2);
    return pairs && generator(m, v, pairs, n);
}

static bool reverse(machine *m, value *v, const value *a)
{
    (void)a;
    const value *from;
    uint32_t n;
    if (v->kind == JV_TEXT) {
        const value back[3] = {tern_jv_none(), tern_jv_none(), tern_jv_int(-1)};
        return tern_jinja_slice(m, v, back);
    }
    if (!tern_jinja_items(m, *v, &from, &n))
        return false;
    value *to = tern_jinja_make(m, n * sizeof *to);
    for (uint32_t i = 0; to && i < n; i++)
        to[i] = from[n - 1 - i];
    return to && generator(m, v, to, n);
}

const struct tern_jinja_row tern_jinja_filters[] = {
    {"abs", absolute, "", 0}, {"batch", tern_jinja_filter_batch, "linecount fill_with", 1},
    {"capitalize", capitalize, "", 0}, {"center", center, "width", 0}, {"count", length, "", 0},
    {"d", default_value, "default_value boolean", 0},
    {"default", default_value, "default_value boolean", 0},
    {"dictsort", tern_jinja_filter_dictsort, "case_sensitive by reverse", 0},
    {"e", escape, "", 0}, {"escape", escape, "", 0}, {"first", first, "", 0},
    {"float", to_float, "default", 0}, {"forceescape", force_escape, "", 0},
    {"format", format, "*", 0}, {"indent", indent, "width first blank", 0},
    {"int", to_int, "default base", 0}, {"items", items, "", 0},
    {"join", tern_jinja_filter_join, "d attribute", 0}, {"last", last, "", 0},
    {"length", length, "", 0}, {"list", list, "", 0}, {"lower", lower, "", 0},
    {"map", tern_jinja_filter_map, "*", 0},
    {"max", tern_jinja_filter_max, "case_sensitive attribute", 0},
    {"min", tern_jinja_filter_min, "case_sensitive attribute", 0},
    {"reject", tern_jinja_filter_reject, "*", 0},
    {"rejectattr", tern_jinja_filter_rejectattr, "*", 0}, {"replace", replace, "old new count", 2},
    {"reverse", reverse, "", 0}, {"round", round_to, "precision method", 0},
    {"safe", safe, "", 0}, {"select", tern_jinja_filter_select, "*", 0},
    {"selectattr", tern_jinja_filter_selectattr, "*", 0},
    {"sort", tern_jinja_filter_sort, "reverse case_sensitive attribute", 0},
    {"string", to_string, "", 0}, {"sum", tern_jinja_filter_sum, "attribute start", 0},
    {"title", title, "", 0}, {"tojson", to_json, "ensure_ascii indent separators sort_keys", 0},
    {"trim", trim, "chars", 0}, {"unique", tern_jinja_filter_unique, "case_sensitive attribute", 0},
    {"upper", upper, "", 0}, {"wordcount", word_count, "", 0}, {NULL, NULL, NULL, 0},
};
