/* jinja_format.c: text % values and text.format(values): conversions s, r, d, i, x, X, f with
 * width, precision, sign, alignment and fill; what else Python knows is refused by name. */
#include "runtime/decimal.h"
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;

enum { MOST_WIDTH = 10000, MOST_AFTER = 60 };
struct spec {
    char kind, align, sign; /* align: < > ^ = */
    struct tern_jv fill;
    bool alternate;
    int64_t width, after;   /* after: -1, none */
};

/* Digits at *at, which moves past them; -1: there are none. */
static int64_t read_count(struct tern_jv s, uint32_t *at)
{
    int64_t n = -1;
    for (; *at < s.n && s.u.s[*at] >= '0' && s.u.s[*at] <= '9'; ++*at) {
        n = (n < 0 ? 0 : n) * 10 + (s.u.s[*at] - '0');
        n = n > MOST_WIDTH ? MOST_WIDTH + 1 : n;
    }
    return n;
}

static bool put_fill(machine *m, const struct spec *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!tern_jinja_put(m, s->fill.u.s, s->fill.n))
            return false;
    return true;
}

/* text, with a sign of its own in front or none, out to its width. */
static bool put_padded(machine *m, const struct spec *s, struct tern_jv sign, struct tern_jv text,
                       struct tern_jv *piece)
{
    const size_t begin = m->n_text;
    if (s->width > MOST_WIDTH)
        return tern_jinja_fail(m, "a width of more than %u", (uint64_t)MOST_WIDTH);
    const int64_t have = (int64_t)sign.n + tern_jinja_count(text);
    const int64_t room = s->width > have ? s->width - have : 0;
    const char align = s->align;
    const int64_t left = align == '>' ? room : align == '^' ? room / 2 : 0;
    if (!put_fill(m, s, left) || !tern_jinja_put(m, sign.u.s, sign.n) ||
        !put_fill(m, s, align == '=' ? room : 0) || !tern_jinja_put(m, text.u.s, text.n) ||
        !put_fill(m, s, align == '<' || align == '^' ? room - left : 0))
        return false;
    *piece = tern_jinja_take(m, begin);
    return true;
}

static bool put_text(machine *m, const struct spec *s, struct tern_jv v, struct tern_jv *piece)
{
    if (s->kind == 'r') {
        const size_t begin = m->n_text;
        if (!tern_jinja_repr(m, v))
            return false;
        v = tern_jinja_take(m, begin);
    } else if (!tern_jinja_to_text(m, &v)) {
        return false;
    }
    if (s->after >= 0)
        v.n = tern_jinja_offset(v, s->after);
    return put_padded(m, s, tern_jv_text("", 0), v, piece);
}

static bool put_number(machine *m, const struct spec *s, struct tern_jv v,
                       struct tern_jv *piece)
{
    char digits[TERN_DECIMAL_CAP];
    struct tern_writer w = {digits, sizeof digits, 0};
    double x;
    if (!tern_jv_number(v, &x))
        return tern_jinja_fail(m, "%%%t of a %s", (tern_text){&s->kind, 1}, tern_jv_type(v));
    if (s->kind == 'f') {
        const int64_t after = s->after < 0 ? 6 : s->after;
        if (after > MOST_AFTER)
            return tern_jinja_fail(m, "more than %u digits", (uint64_t)MOST_AFTER);
        w.n = tern_decimal_fixed(x, (int)after, digits);
    } else {
        if (v.kind == JV_FLOAT && !(x > -9e18 && x < 9e18))
            return tern_jinja_fail(m, "%%%t of a number past 64 bits", (tern_text){&s->kind, 1});
        const int64_t i = v.kind == JV_FLOAT ? (int64_t)x : v.u.i;
        if (s->kind == 'd')
            tern_write(&w, "%i", i);
        else
            tern_write(&w, i < 0 ? "-%x" : "%x", i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
        for (size_t k = 0; s->kind == 'X' && k < w.n; k++)
            digits[k] = digits[k] >= 'a' ? (char)(digits[k] - 32) : digits[k];
    }
    const bool minus = digits[0] == '-';
    const struct tern_jv sign = minus ? tern_jv_text("-", 1)
                                      : tern_jv_text(&s->sign, s->sign && s->sign != '-');
    /* Into the region of texts first: a user's number is no more the template's own there. */
    const size_t begin = m->n_text;
    if (!tern_jinja_fill(m, digits + minus, w.n - minus, !(v.flags & JV_USER)))
        return false;
    return put_padded(m, s, sign, tern_jinja_take(m, begin), piece);
}

static bool put_value(machine *m, const struct spec *s, struct tern_jv v,
                      struct tern_jv *piece)
{
    switch (s->kind) {
    case 's': case 'r':
        return put_text(m, s, v, piece);
    case 'd': case 'x': case 'X': case 'f':
        return put_number(m, s, v, piece);
    default:
        return tern_jinja_fail(m, "the conversion '%t' is not known", (tern_text){&s->kind, 1});
    }
}

/* --- % --- */

static bool read_percent(machine *m, struct tern_jv f, uint32_t *at, struct spec *s)
{
    *s = (struct spec){.fill = tern_jv_text(" ", 1), .after = -1, .align = '>'};
    for (; *at < f.n && f.u.s[*at] && strchr("-+ 0#", f.u.s[*at]); ++*at) {
        const char c = f.u.s[*at];
        if (c == '-')
            s->align = '<';
        else if (c == '0' && s->align != '<') {
            s->align = '=';
            s->fill = tern_jv_text("0", 1);
        } else if (c == '+' || (c == ' ' && !s->sign))
            s->sign = c;
        s->alternate |= c == '#';
    }
    s->width = read_count(f, at);
    if (*at < f.n && f.u.s[*at] == '.') {
        ++*at;
        const int64_t n = read_count(f, at);
        s->after = n < 0 ? 0 : n;
    }
    if (*at == f.n || s->alternate)
        return tern_jinja_fail(m, "a %% without a conversion");
    s->kind = f.u.s[(*at)++];
    s->kind = s->kind == 'i' || s->kind == 'u' ? 'd' : s->kind == 'F' ? 'f' : s->kind;
    if (s->kind == 's' || s->kind == 'r')
        s->fill = tern_jv_text(" ", 1);
    if (s->align == '=' && (s->kind == 's' || s->kind == 'r'))
        s->align = '>';
    return true;
}

/* The value of %(name)s, or the next of the tuple. */
static bool percent_value(machine *m, struct tern_jv f, uint32_t *at, struct tern_jv values,
                          uint32_t *i, struct tern_jv *v)
{
    if (*at < f.n && f.u.s[*at] == '(') {
        const int64_t end = tern_jinja_search(f, tern_jv_text(")", 1), *at);
        if (end < 0 || values.kind != JV_DICT)
            return tern_jinja_fail(m, "%%(name) needs a dict");
        const struct tern_jv name = tern_jv_text(f.u.s + *at + 1, (size_t)end - *at - 1);
        const struct tern_jv *there = tern_jinja_find(m, values.u.items, values.n, name);
        if (!there)
            return tern_jinja_fail(m, "there is no '%t' to format", tern_jv_bytes(name));
        *v = *there;
        *at = (uint32_t)end + 1;
        return true;
    }
    const uint32_t n = values.kind == JV_TUPLE ? values.n : 1;
    v->kind = JV_ABSENT;
    if (*i < n)
        *v = values.kind == JV_TUPLE ? values.u.items[*i] : values;
    ++*i;
    return true;
}

bool tern_jinja_percent(machine *m, struct tern_jv f, struct tern_jv values, struct tern_jv *out)
{
    struct tern_jv all = tern_jv_text("", 0);
    uint32_t i = 0, at = 0;
    while (at < f.n) {
        const int64_t found = tern_jinja_search(f, tern_jv_text("%", 1), at);
        const uint32_t end = found < 0 ? f.n : (uint32_t)found;
        if (!tern_jinja_join_two(m, all, tern_jv_text(f.u.s + at, end - at), &all))
            return false;
        at = end + 1;
        if (end == f.n)
            break;
        if (at < f.n && f.u.s[at] == '%') {
            at++;
            if (!tern_jinja_join_two(m, all, tern_jv_text("%", 1), &all))
                return false;
            continue;
        }
        struct spec s;
        struct tern_jv v;
        uint32_t unused = 0;
        if (!percent_value(m, f, &at, values, at < f.n && f.u.s[at] == '(' ? &unused : &i, &v) ||
            !read_percent(m, f, &at, &s))
            return false;
        if (v.kind == JV_ABSENT)
            return tern_jinja_fail(m, "fewer values than the text has places for");
        if (!put_value(m, &s, v, &v) || !tern_jinja_join_two(m, all, v, &all))
            return false;
    }
    if (values.kind == JV_TUPLE && i < values.n)
        return tern_jinja_fail(m, "more values than the text has places for");
    all.flags = f.flags;
    *out = all;
    return true;
}

/* --- format --- */

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

/* What stands behind the colon of a field. */
static bool read_spec(machine *m, struct tern_jv f, struct tern_jv v, struct spec *s)
{
    uint32_t at = 0;
    const uint32_t first = tern_jinja_offset(f, 1);
    const bool number = v.kind == JV_INT || v.kind == JV_FLOAT;
    *s = (struct spec){.fill = tern_jv_text(" ", 1), .after = -1, .align = number ? '>' : '<'};
    if (first < f.n && is_align(f.u.s[first])) {
        s->fill = tern_jv_text(f.u.s, first);
        s->align = f.u.s[first];
        at = first + 1;
    } else if (f.n && is_align(f.u.s[0])) {
        s->align = f.u.s[at++];
    }
    if (at < f.n && (f.u.s[at] == '+' || f.u.s[at] == '-' || f.u.s[at] == ' '))
        s->sign = f.u.s[at++];
    if (at < f.n && f.u.s[at] == '0' && at == 0) {
        s->fill = tern_jv_text("0", 1);
        s->align = number ? '=' : '<';
    }
    s->width = read_count(f, &at);
    if (at < f.n && f.u.s[at] == '.') {
        at++;
        s->after = read_count(f, &at);
    }
    s->kind = at < f.n ? f.u.s[at++] : v.kind == JV_INT ? 'd' : 's';
    if (at < f.n || (s->kind == 's' && v.kind != JV_TEXT && f.n) ||
        (s->kind == 'd' && v.kind != JV_INT && v.kind != JV_BOOL))
        return tern_jinja_fail(m, "the format '%t' of a %s", tern_jv_bytes(f), tern_jv_type(v));
    return true;
}

/* "0", "name", "" with attributes and items behind it, to its value among the arguments. */
static bool find_field(machine *m, struct tern_jv name, uint32_t *next, struct tern_jv *v)
{
    uint32_t end = 0;
    while (end < name.n && name.u.s[end] != '.' && name.u.s[end] != '[')
        end++;
    const tern_text head = {name.u.s, end};
    uint64_t i = *next;
    bool found = false;
    const bool numbered = end > 0 && tern_text_to_u64(head, &i);
    if ((end == 0 && *next == UINT32_MAX) || (numbered && *next && *next != UINT32_MAX))
        return tern_jinja_fail(m, "fields with numbers and without in a format");
    if (end == 0)
        ++*next;
    if (numbered)
        *next = UINT32_MAX;
    if (end == 0 || numbered) {
        found = i < m->n_given;
        *v = found ? m->given[i] : *v;
    } else {
        const struct tern_jv *named = tern_jinja_find(m, m->given + m->n_given, m->n_named,
                                                      tern_jv_text(head.data, head.size));
        found = named != NULL;
        *v = named ? *named : *v;
    }
    if (!found)
        return tern_jinja_fail(m, "there is no '%t' to format", head);
    while (end < name.n) {
        const bool item = name.u.s[end++] == '[';
        const uint32_t begin = end;
        while (end < name.n && name.u.s[end] != '[' && name.u.s[end] != ']' &&
               name.u.s[end] != '.')
            end++;
        if (!tern_jinja_path(m, v, tern_jv_text(name.u.s + begin, end - begin)))
            return false;
        end += item && end < name.n;
    }
    return true;
}

static bool put_field(machine *m, struct tern_jv field, uint32_t *next, struct tern_jv *piece)
{
    struct tern_jv v = {0};
    struct spec s;
    const int64_t colon = tern_jinja_search(field, tern_jv_text(":", 1), 0);
    struct tern_jv name = tern_jv_text(field.u.s, colon < 0 ? field.n : (size_t)colon);
    struct tern_jv spec = tern_jv_text(field.u.s + field.n, 0);
    if (colon >= 0)
        spec = tern_jv_text(field.u.s + colon + 1, field.n - (size_t)colon - 1);
    const bool repr = name.n > 1 && name.u.s[name.n - 2] == '!' && name.u.s[name.n - 1] == 'r';
    const bool text = name.n > 1 && name.u.s[name.n - 2] == '!' && name.u.s[name.n - 1] == 's';
    name.n -= repr || text ? 2 : 0;
    if (!find_field(m, name, next, &v))
        return false;
    if (text && !tern_jinja_to_text(m, &v))
        return false;
    if (repr) {
        const size_t begin = m->n_text;
        if (!tern_jinja_repr(m, v))
            return false;
        v = tern_jinja_take(m, begin);
    }
    return read_spec(m, spec, v, &s) && put_value(m, &s, v, piece);
}

bool tern_jinja_format(machine *m, struct tern_jv *v)
{
    const struct tern_jv f = *v;
    struct tern_jv all = tern_jv_text("", 0), piece;
    uint32_t next = 0;
    for (uint32_t at = 0; at < f.n;) {
        uint32_t end = at;
        while (end < f.n && f.u.s[end] != '{' && f.u.s[end] != '}')
            end++;
        if (!tern_jinja_join_two(m, all, tern_jv_text(f.u.s + at, end - at), &all))
            return false;
        if (end == f.n)
            break;
        piece = tern_jv_text(f.u.s + end, 1);
        at = end + 2;
        if (end + 1 == f.n || f.u.s[end + 1] != f.u.s[end]) {
            const int64_t close = tern_jinja_search(f, tern_jv_text("}", 1), end);
            if (f.u.s[end] == '}' || close < 0)
                return tern_jinja_fail(m, "a single brace in a format");
            at = (uint32_t)close + 1;
            if (!put_field(m, tern_jv_text(f.u.s + end + 1, (size_t)close - end - 1), &next,
                           &piece))
                return false;
        }
        if (!tern_jinja_join_two(m, all, piece, &all))
            return false;
    }
    all.flags = f.flags;
    *v = all;
    return true;
}
