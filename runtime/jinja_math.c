/* jinja_math.c: operators. Whole numbers have 64 bits: what passes them fails, as a wrong number
 * would be worse. */
#include "runtime/jinja.h"

#include <math.h>
#include <string.h>

typedef struct tern_jinja machine;

static const char *sign_of(enum tern_jinja_op op)
{
    switch (op) {
    case JO_ADD: case JO_POS:
        return "+";
    case JO_SUB: case JO_NEG:
        return "-";
    case JO_MUL:
        return "*";
    case JO_DIV:
        return "/";
    case JO_FLOORDIV:
        return "//";
    case JO_MOD:
        return "%";
    default:
        return "**";
    }
}

static bool overflows(machine *m, enum tern_jinja_op op)
{
    return tern_jinja_fail(m, "%s passes 64 bits", sign_of(op));
}

static bool power_of_ints(machine *m, int64_t a, int64_t b, int64_t *out)
{
    if ((a == 0 || a == 1 || a == -1) && b > 64)
        b = 64 + (b & 1); /* nothing changes any more */
    for (*out = 1; b > 0; b--)
        if (__builtin_mul_overflow(*out, a, out))
            return overflows(m, JO_POW);
    return true;
}

static bool math_of_ints(machine *m, enum tern_jinja_op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case JO_ADD:
        return !__builtin_add_overflow(a, b, out) || overflows(m, op);
    case JO_SUB:
        return !__builtin_sub_overflow(a, b, out) || overflows(m, op);
    case JO_MUL:
        return !__builtin_mul_overflow(a, b, out) || overflows(m, op);
    case JO_POW:
        return power_of_ints(m, a, b, out);
    default:
        break;
    }
    if (b == -1) { /* the one quotient that can pass 64 bits */
        *out = 0;
        return op == JO_MOD || !__builtin_sub_overflow((int64_t)0, a, out) || overflows(m, op);
    }
    const int64_t rest = a % b, down = rest != 0 && (rest < 0) != (b < 0);
    *out = op == JO_MOD ? rest + (down ? b : 0) : a / b - down;
    return true;
}

static bool math_of_doubles(machine *m, enum tern_jinja_op op, double a, double b, double *out)
{
    switch (op) {
    case JO_ADD:
        *out = a + b;
        break;
    case JO_SUB:
        *out = a - b;
        break;
    case JO_MUL:
        *out = a * b;
        break;
    case JO_DIV:
        *out = a / b;
        break;
    case JO_FLOORDIV:
        *out = floor(a / b);
        break;
    case JO_MOD:
        *out = a - floor(a / b) * b;
        break;
    default:
        if (floor(b) != b || fabs(b) > 4096)
            return tern_jinja_fail(m, "** with a power that is no whole number up to 4096");
        *out = 1;
        for (double i = fabs(b); i > 0; i--)
            *out *= a;
        *out = b < 0 ? 1 / *out : *out;
    }
    return true;
}

static bool is_int(struct tern_jv v)
{
    return v.kind == JV_INT || v.kind == JV_BOOL;
}

static bool no_operator(machine *m, enum tern_jinja_op op, struct tern_jv a, struct tern_jv b)
{
    if (a.kind == JV_UNDEFINED || b.kind == JV_UNDEFINED)
        return tern_jinja_fail(m, "'%t' is undefined",
                               tern_jv_bytes(a.kind == JV_UNDEFINED ? a : b));
    return tern_jinja_fail(m, "a %s %s a %s", tern_jv_type(a), sign_of(op), tern_jv_type(b));
}

static bool math(machine *m, enum tern_jinja_op op, struct tern_jv a, struct tern_jv b,
                 struct tern_jv *out)
{
    double x, y;
    const uint8_t flags = (uint8_t)((a.flags | b.flags) & JV_USER);
    if (!tern_jv_number(a, &x) || !tern_jv_number(b, &y))
        return no_operator(m, op, a, b);
    if ((op == JO_DIV || op == JO_FLOORDIV || op == JO_MOD || (op == JO_POW && y < 0 && x == 0)) &&
        (op == JO_POW || y == 0))
        return tern_jinja_fail(m, "%s by zero", sign_of(op));
    const bool whole = is_int(a) && is_int(b) && op != JO_DIV && !(op == JO_POW && y < 0);
    *out = (struct tern_jv){.kind = whole ? JV_INT : JV_FLOAT, .flags = flags};
    return whole ? math_of_ints(m, op, a.u.i, b.u.i, &out->u.i)
                 : math_of_doubles(m, op, x, y, &out->u.f);
}

static bool add_lists(machine *m, struct tern_jv a, struct tern_jv b, struct tern_jv *out)
{
    struct tern_jinja_list *g = &m->grown;
    const uint64_t n = (uint64_t)a.n + b.n;
    if (!(g->items && a.u.items == g->items && a.n == g->n && n <= g->cap)) {
        /* With room to grow: lists are mostly made by adding to the one before. */
        struct tern_jv *items = tern_jinja_make(m, (size_t)(2 * n + 2) * sizeof *items);
        if (!items)
            return false;
        if (a.n)
            memcpy(items, a.u.items, a.n * sizeof *items);
        *g = (struct tern_jinja_list){.items = items, .n = a.n, .cap = (uint32_t)(2 * n + 2)};
    }
    if (b.n)
        memcpy(g->items + a.n, b.u.items, b.n * sizeof *g->items);
    g->n = (uint32_t)n;
    *out = tern_jv_list(a.kind, g->items, g->n);
    return true;
}

static bool repeat(machine *m, struct tern_jv what, int64_t times, struct tern_jv *out)
{
    const size_t begin = m->n_text;
    if (times < 0 || what.n == 0)
        times = 0;
    if (what.kind == JV_TEXT) {
        for (int64_t i = 0; i < times; i++)
            if (!tern_jinja_put(m, what.u.s, what.n))
                return false;
        *out = tern_jinja_take(m, begin);
        out->flags = what.flags;
        return true;
    }
    const bool fits = (uint64_t)times <= UINT32_MAX / (what.n ? what.n : 1) / sizeof what;
    struct tern_jv *items = tern_jinja_make(m, fits ? (size_t)times * what.n * sizeof *items
                                                    : SIZE_MAX / 2);
    if (!items)
        return false;
    for (int64_t i = 0; i < times; i++)
        memcpy(items + i * what.n, what.u.items, what.n * sizeof *items);
    *out = tern_jv_list(what.kind, items, (uint32_t)(times * what.n));
    return true;
}

static bool repeats(struct tern_jv v)
{
    return v.kind == JV_TEXT || v.kind == JV_LIST || v.kind == JV_TUPLE;
}

static bool add_texts(machine *m, struct tern_jv a, struct tern_jv b, struct tern_jv *out)
{
    const bool safe = (a.flags | b.flags) & JV_SAFE;
    if (safe && ((!(a.flags & JV_SAFE) && !tern_jinja_escape(m, &a)) ||
                 (!(b.flags & JV_SAFE) && !tern_jinja_escape(m, &b))))
        return false;
    if (!tern_jinja_join_two(m, a, b, out))
        return false;
    out->flags = safe ? JV_SAFE : 0;
    return true;
}

bool tern_jinja_binary(machine *m, enum tern_jinja_op op, struct tern_jv a, struct tern_jv b,
                       struct tern_jv *out)
{
    if (op == JO_ADD && a.kind == JV_TEXT && b.kind == JV_TEXT)
        return add_texts(m, a, b, out);
    if (op == JO_ADD && a.kind == b.kind && (a.kind == JV_LIST || a.kind == JV_TUPLE))
        return add_lists(m, a, b, out);
    if (op == JO_MUL && repeats(a) && is_int(b))
        return repeat(m, a, b.u.i, out);
    if (op == JO_MUL && is_int(a) && repeats(b))
        return repeat(m, b, a.u.i, out);
    if (op == JO_MOD && a.kind == JV_TEXT)
        return tern_jinja_percent(m, a, b, out);
    return math(m, op, a, b, out);
}

bool tern_jinja_sign(machine *m, enum tern_jinja_op op, struct tern_jv *v)
{
    if (v->kind == JV_FLOAT) {
        v->u.f = op == JO_NEG ? -v->u.f : v->u.f;
        return true;
    }
    return math(m, op == JO_NEG ? JO_SUB : JO_ADD, tern_jv_int(0), *v, v);
}

bool tern_jinja_compare(machine *m, enum tern_jinja_op op, struct tern_jv a, struct tern_jv b,
                        bool *out)
{
    int order;
    if (op == JO_EQ || op == JO_NE) {
        if (!tern_jinja_equal(m, a, b, out))
            return false;
        *out = *out == (op == JO_EQ);
        return true;
    }
    if (op == JO_IN || op == JO_NOT_IN) {
        if (!tern_jinja_contains(m, b, a, out))
            return false;
        *out = *out == (op == JO_IN);
        return true;
    }
    if (!tern_jinja_order(m, a, b, &order))
        return false;
    *out = op == JO_LT ? order < 0 : op == JO_LE ? order <= 0 : op == JO_GT ? order > 0
                                                                            : order >= 0;
    return true;
}
