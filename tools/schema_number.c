/* schema_number.c: numbers between bounds, and multiples, as automata over their digits.
 *
 * A number is compared with its bounds from the left: as long as its digits are those of a bound it
 * is tight to it, and the next digit may not pass the bound's; once it is not, any digit will do.
 * Where numbers are bounded they are written without an exponent. A number is read as a double, and
 * rounding may bring it to a bound, but not beyond. So next to a bound that is left out there are
 * so few digits that numbers which differ as text differ as doubles; and where the digits
 * themselves are asked for, of multiples and of what is no integer, there are so few in all.
 *
 * A multiple of a / 10^k has, with k digits behind its point, digits that are a multiple of a: what
 * is left over of those read so far is a state. It is decided by the digits, as for decimal
 * numbers, and not by dividing doubles. */
#include "tools/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 18, MOST_FRACTION = 24, SURE_DIGITS = 15, SIZE = 48 };
enum { FEW_DIGITS = 7, MANY_DIGITS = 20 }; /* of fractions */
enum { MOST_LEFT_OVER = 1000, MOST_PLACES = 12, MOST_EDGES = 8000 };
enum { MOST_STATES = 2 * MOST_LEFT_OVER + 2 };

/* A bound's magnitude: digits before and behind the point; open: it is itself left out. */
struct bound { char whole[SIZE], fraction[SIZE]; bool negative, open, none; };

struct range {
    struct tern_pattern *p;
    const struct bound *low, *high;
    bool integer, exact; /* exact: digits count, and not the bounds alone */
    size_t least;      /* without an upper bound: digits of those that are as long as the lower */
    size_t n_fraction; /* digits behind the point, at most */
    /* States by place and by whether they are tight to low and to high, plus 1. */
    uint32_t whole[MOST_DIGITS + 1][MOST_DIGITS + 1][4], fraction[MOST_FRACTION + 1][4];
};

static bool is_zero(const struct bound *b)
{
    return b->whole[0] == '0' && !b->fraction[0];
}

static bool read_bound(struct tern_schema *s, json_t *node, const char *at,
                       const char *const keys[2], bool least, struct bound *out)
{
    json_t *closed = json_object_get(node, keys[0]), *open = json_object_get(node, keys[1]);
    char text[400];
    *out = (struct bound){.none = true};
    if ((closed && !json_is_number(closed)) ||
        (open && !json_is_number(open) && !json_is_boolean(open)))
        return tern_schema_fail(s, at, "keyword '%s' or '%s' is no number", keys[0], keys[1]);
    if (!closed && !json_is_number(open))
        return true;
    const double x = closed ? json_number_value(closed) : 0;
    const double y = json_is_number(open) ? json_number_value(open) : 0;
    const bool take_open = json_is_number(open) && (!closed || (least ? y >= x : y <= x));
    json_t *value = take_open ? open : closed;
    int digits = 0;
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else
        do
            snprintf(text, sizeof text, "%.*f", digits, json_real_value(value));
        while (strtod(text, NULL) != json_real_value(value) && digits++ < MOST_FRACTION);
    out->none = false;
    out->open = take_open || json_is_true(open);
    out->negative = text[0] == '-';
    const char *digit = text + out->negative, *point = strchr(digit, '.');
    const size_t n = point ? (size_t)(point - digit) : strlen(digit);
    if (n > MOST_DIGITS || digits > MOST_FRACTION) {
        *out = (struct bound){.none = true};
        return tern_schema_drop(s, at, keys[take_open],
                                "more than 18 digits, or than 24 behind the point");
    }
    memcpy(out->whole, digit, n);
    if (point)
        snprintf(out->fraction, sizeof out->fraction, "%.*s", MOST_FRACTION, point + 1);
    for (size_t k = strlen(out->fraction); k > 0 && out->fraction[k - 1] == '0'; k--)
        out->fraction[k - 1] = 0;
    out->negative &= !is_zero(out);
    return true;
}

/* --- the automaton --- */

enum { LOW = 1, HIGH = 2 };

/* Whether a number may end behind so many digits of its fraction. */
static bool may_end(const struct range *r, size_t n, unsigned tight)
{
    if (tight & LOW && (n < strlen(r->low->fraction) || r->low->open))
        return false;
    return !(tight & HIGH) || n < strlen(r->high->fraction) || !r->high->open;
}

static char digit_of(const char *digits, size_t at)
{
    return at < strlen(digits) ? digits[at] : '0';
}

/* What a state's tightness becomes with a digit; -1: the digit passes a bound. */
static int tightness(unsigned tight, char digit, char low, char high)
{
    if ((tight & LOW && digit < low) || (tight & HIGH && digit > high))
        return -1;
    return (int)(((tight & LOW && digit == low) ? LOW : 0u) |
                 ((tight & HIGH && digit == high) ? HIGH : 0u));
}

static uint32_t fraction_state(struct range *r, size_t n, unsigned tight)
{
    if (!r->fraction[n][tight])
        r->fraction[n][tight] = 1 + tern_pattern_state(r->p, n > 0 && may_end(r, n, tight));
    return r->fraction[n][tight] - 1;
}

/* Whether so many digits are all of a number. Those that are longer than a lower bound, where there
 * is no upper one, are one chain: of most digits, it ends wherever there are enough. */
static bool is_whole(const struct range *r, size_t length, size_t n)
{
    return n == length || (r->high->none && length == MOST_DIGITS && n > r->least);
}

static bool may_have_point(const struct range *r, size_t length, size_t n)
{
    return is_whole(r, length, n) && (!r->exact || n + r->n_fraction <= SURE_DIGITS);
}

static uint32_t whole_state(struct range *r, size_t length, size_t n, unsigned tight)
{
    uint32_t *known = &r->whole[length][n][tight];
    if (!*known)
        *known = 1 + tern_pattern_state(r->p, is_whole(r, length, n) && may_end(r, 0, tight));
    return *known - 1;
}

static void whole_edges(struct range *r, size_t length, size_t n, unsigned tight, uint32_t from)
{
    const char low = digit_of(r->low->whole, n), high = digit_of(r->high->whole, n);
    for (char d = n == 0 && length > 1 ? '1' : '0'; d <= '9'; d++) {
        const int next = tightness(tight, d, low, high);
        if (next >= 0)
            tern_pattern_edge(r->p, from, (unsigned char)d, (unsigned char)d,
                              whole_state(r, length, n + 1, (unsigned)next));
    }
}

static void fraction_edges(struct range *r, size_t n, unsigned tight)
{
    const char low = digit_of(r->low->fraction, n), high = digit_of(r->high->fraction, n);
    for (char d = '0'; d <= '9'; d++) {
        const int next = tightness(tight, d, low, high);
        if (next >= 0) {
            const uint32_t to = fraction_state(r, n + 1, (unsigned)next);
            tern_pattern_edge(r->p, r->fraction[n][tight] - 1, (unsigned char)d, (unsigned char)d,
                              to);
        }
    }
}

/* Numbers from low to high, magnitudes both, behind a state. */
static void add_range(struct tern_pattern *p, uint32_t from, const struct bound *low,
                      const struct bound *high, bool integer, bool exact)
{
    static struct range r;
    const size_t least = strlen(low->whole), most = high->none ? MOST_DIGITS : strlen(high->whole);
    const size_t bound = strlen(low->whole) > strlen(high->whole) ? strlen(low->whole)
                                                                  : strlen(high->whole);
    memset(&r, 0, sizeof r);
    r.p = p;
    r.low = low;
    r.high = high;
    r.integer = integer;
    r.exact = exact;
    r.least = least;
    r.n_fraction = bound < SURE_DIGITS ? SURE_DIGITS - bound : 1;
    if (exact && high->none && r.n_fraction > FEW_DIGITS)
        r.n_fraction = FEW_DIGITS;
    if (!exact && !low->open && !high->open)
        r.n_fraction = MANY_DIGITS;
    for (size_t length = least; length <= most; length++) {
        if (high->none && length > least)
            length = MOST_DIGITS;
        const unsigned tight = (length == least ? LOW : 0u) |
                               (!high->none && length == most ? HIGH : 0u);
        whole_edges(&r, length, 0, tight, from);
        for (size_t n = 1; n < length; n++)
            for (unsigned t = 0; t < 4; t++)
                if (r.whole[length][n][t])
                    whole_edges(&r, length, n, t, r.whole[length][n][t] - 1);
        for (size_t n = 1; n <= length && !integer; n++)
            for (unsigned t = 0; t < 4; t++)
                if (may_have_point(&r, length, n) && r.whole[length][n][t]) {
                    const uint32_t to = fraction_state(&r, 0, t);
                    tern_pattern_edge(p, r.whole[length][n][t] - 1, '.', '.', to);
                }
    }
    for (size_t n = 0; n < r.n_fraction && !integer; n++)
        for (unsigned t = 0; t < 4; t++)
            if (r.fraction[n][t])
                fraction_edges(&r, n, t);
}

/* --- multiples --- */

/* A divisor as a / 10^k. False: it has more digits than are kept to. */
static bool read_divisor(const json_t *divisor, uint32_t *a, uint32_t *k)
{
    char text[40];
    uint64_t n = 0;
    int exponent = 0;
    bool point = false;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, json_number_value(divisor));
        if (strtod(text, NULL) == json_number_value(divisor))
            break;
    }
    for (const char *p = text; *p && *p != 'e'; p++) {
        point |= *p == '.';
        exponent -= point && *p != '.';
        n = *p == '.' ? n : 10 * n + (uint64_t)(*p - '0');
    }
    exponent += (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    for (; exponent > 0 && n <= MOST_LEFT_OVER; exponent--)
        n *= 10;
    *a = (uint32_t)n;
    *k = exponent < 0 ? (uint32_t)-exponent : 0;
    return n > 0 && n * (uint64_t)(*k + 1) <= MOST_LEFT_OVER && *k <= MOST_PLACES;
}

/* State 1 + left over stands behind the whole digits, and behind i of the fraction i * a later. */
static void add_multiples(struct tern_pattern *p, uint32_t a, uint32_t k)
{
    const uint32_t start = tern_pattern_state(p, false);
    for (uint32_t i = 0; i <= k + (k > 0); i++) {
        const uint32_t places = i ? i - 1 : 0; /* row 1: behind the point */
        uint32_t power = 1; /* of ten, modulo a: places that are not there are zeros */
        for (uint32_t n = places; n < k; n++)
            power = power * 10 % a;
        for (uint32_t r = 0; r < a; r++)
            tern_pattern_state(p, i != 1 && r * power % a == 0);
    }
    tern_pattern_edge(p, start, '-', '-', start);
    for (uint32_t d = 0; d < 10; d++)
        tern_pattern_edge(p, start, '0' + d, '0' + d, 1 + d % a);
    for (uint32_t i = 0; i <= k + (k > 0); i++)
        for (uint32_t r = 0; r < a; r++) {
            const uint32_t from = 1 + i * a + r;
            const bool last = k > 0 && i == k + 1;
            if (i == 0 && k > 0)
                tern_pattern_edge(p, from, '.', '.', from + a);
            if (last)
                tern_pattern_edge(p, from, '0', '0', from);
            for (uint32_t d = 0; d < 10 && !last; d++)
                tern_pattern_edge(p, from, '0' + d, '0' + d,
                                  1 + (i + (i > 0)) * a + (10 * r + d) % a);
        }
}

/* Left-overs that lead to the same ones become one state: of 100, those of how many zeros end the
 * number. Such are few or nearly all, so each is compared with all that are kept. */
static void join_alike(const struct tern_pattern *p, uint32_t *class)
{
    uint32_t n = 0, before;
    for (uint32_t i = 0; i < p->n; i++)
        class[i] = p->states[i].accepts;
    do {
        uint32_t firsts[MOST_STATES], now[MOST_STATES];
        before = n;
        n = 0;
        for (uint32_t i = 0; i < p->n; i++) {
            const struct tern_pattern_state *s = &p->states[i];
            uint32_t at = 0, k = 0;
            for (; at < n; at++) {
                const struct tern_pattern_state *t = &p->states[firsts[at]];
                if (class[i] != class[firsts[at]] || s->n != t->n)
                    continue;
                for (k = 0; k < s->n && s->edges[k].first == t->edges[k].first &&
                            s->edges[k].last == t->edges[k].last &&
                            class[s->edges[k].to] == class[t->edges[k].to]; k++)
                    ;
                if (k == s->n)
                    break;
            }
            now[i] = at;
            if (at == n)
                firsts[n++] = i;
        }
        memcpy(class, now, p->n * sizeof *class);
    } while (n != before);
}

static void make_least(struct tern_pattern *p)
{
    uint32_t class[MOST_STATES], firsts[MOST_STATES], n = 0;
    struct tern_pattern least = {.n = 0};
    join_alike(p, class);
    for (uint32_t i = 0; i < p->n; i++)
        if (class[i] == n) {
            firsts[n++] = i;
            tern_pattern_state(&least, p->states[i].accepts);
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < p->states[firsts[i]].n; k++) {
            const struct tern_pattern_edge e = p->states[firsts[i]].edges[k];
            tern_pattern_edge(&least, i, e.first, e.last, class[e.to]);
        }
    tern_pattern_free(p);
    *p = least;
}

static uint32_t n_edges(const struct tern_pattern *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        n += p->states[i].n;
    return n;
}

/* False: it can not be kept to. */
static bool narrow_by_divisors(struct tern_schema *s, struct tern_pattern *p, json_t *divisor,
                               const char *at)
{
    uint32_t a, k;
    if (json_is_array(divisor)) {
        bool ok = true;
        for (size_t i = 0; ok && i < json_array_size(divisor); i++)
            ok = narrow_by_divisors(s, p, json_array_get(divisor, i), at);
        return ok;
    }
    if (!json_is_number(divisor) || !(json_number_value(divisor) > 0))
        return tern_schema_fail(s, at, "keyword 'multipleOf': a number above 0 needed");
    struct tern_pattern by = {.n = 0}, met;
    if (!read_divisor(divisor, &a, &k))
        return false;
    add_multiples(&by, a, k);
    make_least(&by);
    const bool ok = tern_pattern_meet(&met, p, &by, true, s->work) && n_edges(&met) <= MOST_EDGES;
    tern_pattern_free(&by);
    tern_pattern_free(ok ? p : &met);
    *p = ok ? met : *p;
    return ok;
}

/* Where there are no bounds but those of digits, there may be fewer of these, or any number of
 * those of whole numbers. */
static bool divide(struct tern_schema *s, struct tern_pattern *p, json_t *divisor, bool bounded,
                   bool integer, const char *at)
{
    static const char *const forms[] = {"^-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,7})?$",
                                        "^-?(0|[1-9][0-9]*)$"};
    bool ok = narrow_by_divisors(s, p, divisor, at);
    for (int i = integer; !ok && !s->failed && !bounded && i < 2; i++) {
        tern_pattern_free(p);
        ok = tern_schema_narrow_regex(s, p, forms[i], true, at, "multipleOf") &&
             narrow_by_divisors(s, p, divisor, at);
    }
    return ok;
}

/* --- what not names --- */

static bool leave_out(struct tern_schema *s, struct tern_pattern *p, json_t *out, const char *at)
{
    json_t *list = json_object_get(out, "enum"), *only = json_object_get(out, "const"), *one;
    size_t i;
    bool ok = true;
    list = only ? json_pack("[O]", only) : json_incref(list);
    if (json_object_get(out, "type"))
        ok = tern_schema_narrow_regex(s, p, "^-?[0-9]+(\\.0*)?$", false, at, "not");
    json_array_foreach(list, i, one) {
        char text[400], regex[480];
        int digits = 0;
        if (!ok || !json_is_number(one))
            continue;
        do
            snprintf(text, sizeof text, "%.*f", digits, json_number_value(one));
        while (strtod(text, NULL) != json_number_value(one) && digits++ < MOST_FRACTION);
        const char *point = strchr(text, '.'), *sign = json_number_value(one) == 0 ? "-?" : "";
        if (point)
            snprintf(regex, sizeof regex, "^%.*s\\.%s0*$", (int)(point - text), text, point + 1);
        else
            snprintf(regex, sizeof regex, "^%s%s(\\.0+)?$", sign, text);
        ok = tern_schema_narrow_regex(s, p, regex, false, at, "not");
    }
    json_decref(list);
    json_array_foreach(json_object_get(out, "anyOf"), i, one)
        ok = ok && leave_out(s, p, one, at);
    return ok;
}

/* --- all of it --- */

static void add_bounded(struct tern_pattern *p, const struct bound *low, const struct bound *high,
                        bool integer, bool exact)
{
    const struct bound zero = {.whole = "0"}, zero_open = {.whole = "0", .open = true};
    const uint32_t start = tern_pattern_state(p, false);
    if (high->none || !high->negative)
        add_range(p, start, low->none || low->negative ? &zero : low, high, integer, exact);
    if (low->none || low->negative) {
        const uint32_t minus = tern_pattern_state(p, false);
        const bool left_out = !high->none && is_zero(high) && high->open;
        tern_pattern_edge(p, start, '-', '-', minus);
        add_range(p, minus, !high->none && high->negative ? high : left_out ? &zero_open : &zero,
                  low, integer, exact);
    }
}

static bool names_numbers(const json_t *out)
{
    json_t *list = json_object_get(out, "enum"), *any = json_object_get(out, "anyOf");
    bool found = json_object_get(out, "type") || json_is_number(json_object_get(out, "const"));
    for (size_t i = 0; i < json_array_size(list); i++)
        found |= json_is_number(json_array_get(list, i));
    for (size_t i = 0; i < json_array_size(any); i++)
        found |= names_numbers(json_array_get(any, i));
    return found;
}

bool tern_schema_number(struct tern_schema *s, json_t *node, const char *at, bool integer,
                        struct tern_out *more)
{
    static const char *const least[2] = {"minimum", "exclusiveMinimum"};
    static const char *const most[2] = {"maximum", "exclusiveMaximum"};
    json_t *divisor = json_object_get(node, "multipleOf"), *out = json_object_get(node, "not");
    struct bound low, high;
    struct tern_pattern p = {.n = 0};
    if (!read_bound(s, node, at, least, true, &low) || !read_bound(s, node, at, most, false, &high))
        return false;
    out = names_numbers(out) ? out : NULL;
    if (low.none && high.none && !divisor && !out) {
        tern_out_print(s->o, integer ? "integer" : "number");
        return true;
    }
    add_bounded(&p, &low, &high, integer, divisor || out);
    const bool bounded = !low.none || !high.none;
    bool ok = !divisor || divide(s, &p, divisor, bounded, integer, at) ||
              (!s->failed && tern_schema_drop(s, at, "multipleOf", NULL));
    ok = ok && (!out || leave_out(s, &p, out, at));
    ok = ok && tern_schema_write_texts(s, &p, "\"\"", more);
    tern_pattern_free(&p);
    return ok;
}
