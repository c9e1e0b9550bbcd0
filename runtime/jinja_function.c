/* jinja_function.c: what a template can call by name: Jinja's own, and the two that model files
 * expect of whoever renders them. */
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;
typedef struct tern_jv value;

enum { MOST_RANGE = 100000 }; /* as in Jinja's sandbox */

static bool range(machine *m, value *v, const value *a)
{
    for (int i = 0; i < 3; i++)
        if (a[i].kind != JV_INT && a[i].kind != JV_BOOL && a[i].kind != JV_ABSENT)
            return tern_jinja_fail(m, "range of a %s", tern_jv_type(a[i]));
    const bool one = a[1].kind == JV_ABSENT;
    const int64_t from = one ? 0 : a[0].u.i, to = one ? a[0].u.i : a[1].u.i;
    const int64_t step = a[2].kind == JV_ABSENT ? 1 : a[2].u.i;
    if (step == 0)
        return tern_jinja_fail(m, "range: the step is 0");
    const bool any = step > 0 ? from < to : from > to;
    const uint64_t span = !any ? 0 : step > 0 ? (uint64_t)to - (uint64_t)from
                                              : (uint64_t)from - (uint64_t)to;
    const uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t n = span / by + (span % by != 0);
    if (n > MOST_RANGE)
        return tern_jinja_fail(m, "range: %u numbers, at most %u", n, (uint64_t)MOST_RANGE);
    value *items = tern_jinja_make(m, (size_t)n * sizeof *items);
    for (uint64_t i = 0; items && i < n; i++)
        items[i] = tern_jv_int((int64_t)((uint64_t)from + i * (uint64_t)step));
    *v = tern_jv_list(JV_RANGE, items, (uint32_t)n);
    return items != NULL;
}

/* The pairs of a dict that is given first, and the named arguments over them. */
static bool merge(machine *m, const value *a, value *pairs, uint32_t *n)
{
    *n = 0;
    if (m->n_given) {
        memcpy(pairs, a[0].u.items, 2 * a[0].n * sizeof *pairs);
        *n = a[0].n;
    }
    for (uint32_t i = 0; i < m->n_named; i++) {
        const value *named = a + m->n_given + 2 * i;
        const value *old = tern_jinja_find(m, pairs, *n, named[0]);
        if (m->failed)
            return false;
        if (!old)
            pairs[2 * (*n)++] = named[0];
        pairs[old ? old - pairs : 2 * (ptrdiff_t)*n - 1] = named[1];
    }
    return true;
}

static bool dict(machine *m, value *v, const value *a)
{
    uint32_t n;
    if (m->n_given > 1 || (m->n_given && a[0].kind != JV_DICT))
        return tern_jinja_fail(m, "dict of something else than a dict and named values");
    const uint32_t most = m->n_named + (m->n_given ? a[0].n : 0);
    value *pairs = tern_jinja_make(m, (2 * (size_t)most + 1) * sizeof *pairs);
    if (!pairs || !merge(m, a, pairs, &n))
        return false;
    *v = tern_jv_list(JV_DICT, pairs, n);
    return true;
}

static bool namespace(machine *m, value *v, const value *a)
{
    if (!dict(m, v, a))
        return false;
    struct tern_jinja_list *l = tern_jinja_make(m, sizeof *l);
    value *pairs = tern_jinja_make(m, (2 * (size_t)v->n + 1) * sizeof *pairs);
    if (!l || !pairs)
        return false;
    if (v->n)
        memcpy(pairs, v->u.items, 2 * v->n * sizeof *pairs);
    *l = (struct tern_jinja_list){.items = pairs, .n = v->n, .cap = v->n};
    *v = (value){.kind = JV_NAMESPACE, .u.list = l};
    return true;
}

static bool joiner(machine *m, value *v, const value *a)
{
    value with = a[0].kind == JV_ABSENT ? tern_jv_text(", ", 2) : a[0];
    struct tern_jinja_list *l = tern_jinja_make(m, sizeof *l);
    value *items = tern_jinja_make(m, sizeof *items);
    if (!l || !items)
        return false;
    *items = with;
    *l = (struct tern_jinja_list){.items = items, .n = 1, .cap = 1};
    *v = (value){.kind = JV_JOINER, .u.list = l};
    return true;
}

static bool raise_exception(machine *m, value *v, const value *a)
{
    *v = a[0];
    if (!tern_jinja_to_text(m, v))
        return false;
    return tern_jinja_fail(m, "the template refuses: %t", tern_jv_bytes(*v));
}

/* --- the date --- */

static bool put_number(machine *m, uint64_t x, int digits, char fill)
{
    char out[24];
    struct tern_writer w = {out, sizeof out, 0};
    tern_write(&w, "%u", x);
    for (int i = (int)w.n; i < digits; i++)
        if (!tern_jinja_fill(m, &fill, 1, true))
            return false;
    return tern_jinja_fill(m, out, w.n, true);
}

static uint64_t day_of_year(const tern_date *d)
{
    static const uint16_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const bool leap = (d->year % 4 == 0 && d->year % 100 != 0) || d->year % 400 == 0;
    return before[d->month - 1] + d->day + (leap && d->month > 2);
}

/* 0 is Sunday: days since the year 1, which began on a Monday. */
static uint64_t day_of_week(const tern_date *d)
{
    const uint64_t y = (uint64_t)d->year - 1;
    return (y * 365 + y / 4 - y / 100 + y / 400 + day_of_year(d)) % 7;
}

static bool put_name(machine *m, const char *names, uint64_t i, bool cut)
{
    while (i > 0)
        i -= *names++ == ' ';
    size_t n = 0;
    while (names[n] && names[n] != ' ')
        n++;
    return tern_jinja_fill(m, names, cut ? 3 : n, true);
}

static bool put_field(machine *m, const tern_date *d, char field, char fill)
{
    static const char months[] = "January February March April May June July August September "
                                 "October November December";
    static const char days[] = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday";
    const uint32_t hour12 = d->hour % 12 ? d->hour % 12 : 12;
    const int two = fill ? 2 : 0;
    switch (field) {
    case 'Y':
        return put_number(m, d->year, 0, '0');
    case 'y':
        return put_number(m, d->year % 100, two, '0');
    case 'm':
        return put_number(m, d->month, two, '0');
    case 'd':
        return put_number(m, d->day, two, '0');
    case 'e':
        return put_number(m, d->day, two, ' ');
    case 'H':
        return put_number(m, d->hour, two, '0');
    case 'I':
        return put_number(m, hour12, two, '0');
    case 'M':
        return put_number(m, d->minute, two, '0');
    case 'S':
        return put_number(m, d->second, two, '0');
    case 'j':
        return put_number(m, day_of_year(d), fill ? 3 : 0, '0');
    case 'w':
        return put_number(m, day_of_week(d), 0, '0');
    case 'B': case 'b': case 'h':
        return put_name(m, months, d->month - 1, field != 'B');
    case 'A': case 'a':
        return put_name(m, days, day_of_week(d), field == 'a');
    case 'p':
        return tern_jinja_fill(m, d->hour < 12 ? "AM" : "PM", 2, true);
    default:
        return tern_jinja_fail(m, "strftime_now: %%%t is not known", (tern_text){&field, 1});
    }
}

/* Fields that stand for others. */
static const char *spelled_out(char field)
{
    switch (field) {
    case 'F':
        return "%Y-%m-%d";
    case 'D': case 'x':
        return "%m/%d/%y";
    case 'T': case 'X':
        return "%H:%M:%S";
    case 'R':
        return "%H:%M";
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    default:
        return NULL;
    }
}

static bool put_date(machine *m, const tern_date *d, const char *s, uint32_t n, bool whole)
{
    for (uint32_t at = 0; at < n; at++) {
        if (s[at] != '%' || at + 1 == n) {
            if (!tern_jinja_put(m, s + at, 1))
                return false;
            continue;
        }
        const bool bare = s[++at] == '-' && at + 1 < n;
        at += bare;
        const char *longer = whole ? spelled_out(s[at]) : NULL;
        const bool ok = s[at] == '%' ? tern_jinja_put(m, s + at, 1)
                        : longer ? put_date(m, d, longer, (uint32_t)strlen(longer), false)
                                 : put_field(m, d, s[at], bare ? 0 : '0');
        if (!ok)
            return false;
    }
    return true;
}

static bool strftime_now(machine *m, value *v, const value *a)
{
    tern_date d = {0};
    if (a[0].kind != JV_TEXT)
        return tern_jinja_fail(m, "strftime_now of a %s", tern_jv_type(a[0]));
    if (!m->options->now || !m->options->now(m->options->self, &d))
        return tern_jinja_fail(m, "strftime_now: there is no clock");
    if (d.year < 1 || d.year > 9999 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31)
        return tern_jinja_fail(m, "strftime_now: the clock says year %u, month %u, day %u",
                               (uint64_t)d.year, (uint64_t)d.month, (uint64_t)d.day);
    const size_t begin = m->n_text;
    if (!put_date(m, &d, a[0].u.s, a[0].n, true))
        return false;
    *v = tern_jinja_take(m, begin);
    return true;
}

const struct tern_jinja_row tern_jinja_functions[] = {
    {"range", range, "start stop step", 1}, {"dict", dict, "*", 0},
    {"namespace", namespace, "*", 0}, {"joiner", joiner, "sep", 0},
    {"raise_exception", raise_exception, "message", 1},
    {"strftime_now", strftime_now, "format", 1}, {NULL, NULL, NULL, 0},
};
