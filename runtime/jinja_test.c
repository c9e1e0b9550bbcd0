/* jinja_test.c: the tests behind `is`. */
#include "runtime/jinja.h"
#include "runtime/unicode.h"

typedef struct tern_jinja machine;
typedef struct tern_jv value;

static bool answer(value *v, bool holds)
{
    *v = tern_jv_bool(holds);
    return true;
}

static bool rest_of(machine *m, value v, value by, int64_t *rest)
{
    value out;
    if (!tern_jinja_binary(m, JO_MOD, v, by, &out))
        return false;
    if (out.kind != JV_INT)
        return tern_jinja_fail(m, "a remainder of a %s", tern_jv_type(v));
    *rest = out.u.i;
    return true;
}

static bool is_odd(machine *m, value *v, const value *a)
{
    (void)a;
    int64_t rest = 0;
    return rest_of(m, *v, tern_jv_int(2), &rest) && answer(v, rest == 1);
}

static bool is_even(machine *m, value *v, const value *a)
{
    (void)a;
    int64_t rest = 0;
    return rest_of(m, *v, tern_jv_int(2), &rest) && answer(v, rest == 0);
}

static bool is_divisible(machine *m, value *v, const value *a)
{
    int64_t rest = 0;
    return rest_of(m, *v, a[0], &rest) && answer(v, rest == 0);
}

static bool is_defined(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind != JV_UNDEFINED);
}

static bool is_undefined(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_UNDEFINED);
}

static bool is_none(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_NONE);
}

static bool is_boolean(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_BOOL);
}

static bool is_true(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_BOOL && v->u.i);
}

static bool is_false(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_BOOL && !v->u.i);
}

static bool is_integer(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_INT);
}

static bool is_float(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_FLOAT);
}

static bool is_number(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_INT || v->kind == JV_FLOAT || v->kind == JV_BOOL);
}

static bool is_string(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_TEXT);
}

static bool is_mapping(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_DICT);
}

static bool is_sequence(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_TEXT || v->kind == JV_DICT || v->kind == JV_UNDEFINED ||
                         (tern_jv_is_items(*v) && v->kind != JV_VIEW));
}

static bool is_iterable(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_TEXT || v->kind == JV_DICT || v->kind == JV_UNDEFINED ||
                         v->kind == JV_GENERATOR || v->kind == JV_LOOP || tern_jv_is_items(*v));
}

static bool is_callable(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_MACRO || v->kind == JV_METHOD || v->kind == JV_FUNCTION ||
                         v->kind == JV_JOINER || v->kind == JV_UNDEFINED || v->kind == JV_LOOP);
}

static bool is_escaped(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_TEXT && v->flags & JV_SAFE);
}

static bool has_case(machine *m, value *v, enum tern_jinja_case how)
{
    bool letters = false;
    value text = *v, other;
    if (!tern_jinja_to_text(m, &text))
        return false;
    other = text;
    if (!tern_jinja_case(m, &other, how))
        return false;
    for (uint32_t at = 0; at < text.n && !letters;) {
        uint32_t cp;
        at += (uint32_t)tern_unicode_decode((const unsigned char *)text.u.s + at, text.n - at,
                                            &cp);
        const enum tern_cp_class k = tern_unicode_class(cp);
        letters = k == TERN_CP_LU || k == TERN_CP_LL || k == TERN_CP_LT;
    }
    bool same;
    return tern_jinja_equal(m, text, other, &same) && answer(v, same && letters);
}

static bool is_lower(machine *m, value *v, const value *a)
{
    (void)a;
    return has_case(m, v, JC_LOWER);
}

static bool is_upper(machine *m, value *v, const value *a)
{
    (void)a;
    return has_case(m, v, JC_UPPER);
}

static bool is_same(machine *m, value *v, const value *a)
{
    (void)m;
    const bool number = v->kind == JV_BOOL || v->kind == JV_INT;
    return answer(v, v->kind == a[0].kind && v->n == a[0].n &&
                         (v->kind == JV_NONE ||
                          (number ? v->u.i == a[0].u.i : v->u.items == a[0].u.items)));
}

static bool is_in(machine *m, value *v, const value *a)
{
    bool found;
    return tern_jinja_contains(m, a[0], *v, &found) && answer(v, found);
}

static bool is_filter(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_TEXT &&
                         tern_jinja_row_of(tern_jinja_filters, tern_jv_bytes(*v)) >= 0);
}

static bool is_test(machine *m, value *v, const value *a)
{
    (void)m, (void)a;
    return answer(v, v->kind == JV_TEXT &&
                         tern_jinja_row_of(tern_jinja_tests, tern_jv_bytes(*v)) >= 0);
}

static bool compares(machine *m, value *v, const value *a, enum tern_jinja_op op)
{
    bool holds;
    return tern_jinja_compare(m, op, *v, a[0], &holds) && answer(v, holds);
}

static bool is_equal(machine *m, value *v, const value *a)
{
    return compares(m, v, a, JO_EQ);
}

static bool is_unequal(machine *m, value *v, const value *a)
{
    return compares(m, v, a, JO_NE);
}

static bool is_less(machine *m, value *v, const value *a)
{
    return compares(m, v, a, JO_LT);
}

static bool is_at_most(machine *m, value *v, const value *a)
{
    return compares(m, v, a, JO_LE);
}

static bool is_greater(machine *m, value *v, const value *a)
{
    return compares(m, v, a, JO_GT);
}

static bool is_at_least(machine *m, value *v, const value *a)
{
    return compares(m, v, a, JO_GE);
}

const struct tern_jinja_row tern_jinja_tests[] = {
    {"odd", is_odd, "", 0}, {"even", is_even, "", 0}, {"divisibleby", is_divisible, "num", 1},
    {"defined", is_defined, "", 0}, {"undefined", is_undefined, "", 0}, {"none", is_none, "", 0},
    {"boolean", is_boolean, "", 0}, {"true", is_true, "", 0}, {"false", is_false, "", 0},
    {"integer", is_integer, "", 0}, {"float", is_float, "", 0}, {"number", is_number, "", 0},
    {"string", is_string, "", 0}, {"mapping", is_mapping, "", 0},
    {"sequence", is_sequence, "", 0}, {"iterable", is_iterable, "", 0},
    {"callable", is_callable, "", 0}, {"escaped", is_escaped, "", 0}, {"lower", is_lower, "", 0},
    {"upper", is_upper, "", 0}, {"sameas", is_same, "other", 1}, {"in", is_in, "seq", 1},
    {"filter", is_filter, "", 0}, {"test", is_test, "", 0}, {"eq", is_equal, "b", 1},
    {"equalto", is_equal, "b", 1}, {"==", is_equal, "b", 1}, {"ne", is_unequal, "b", 1},
    {"!=", is_unequal, "b", 1}, {"lt", is_less, "b", 1}, {"lessthan", is_less, "b", 1},
    {"<", is_less, "b", 1}, {"le", is_at_most, "b", 1}, {"<=", is_at_most, "b", 1},
    {"gt", is_greater, "b", 1}, {"greaterthan", is_greater, "b", 1}, {">", is_greater, "b", 1},
    {"ge", is_at_least, "b", 1}, {">=", is_at_least, "b", 1}, {NULL, NULL, NULL, 0},
};
