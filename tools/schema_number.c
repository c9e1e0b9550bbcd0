/* schema_number.c: numbers between bounds, as an automaton over their digits.
 *
 * A number is compared with its bounds from the left: as long as its digits are those of a bound it
 * is tight to it, and the next digit may not pass the bound's; once it is not, any digit will do.
 * Where numbers are bounded they are written without an exponent, and with so few digits that
 * those which differ as text differ as doubles: no exclusive bound is met by rounding. */
#include "tools/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 18, MOST_FRACTION = 24, SURE_DIGITS = 15, SIZE = 48 };

/* A bound's magnitude: digits before and behind the point; open: it is itself left out. */
struct bound { char whole[SIZE], fraction[SIZE]; bool negative, open, none; };

struct range {
    struct tern_pattern *p;
    const struct bound *low, *high;
    bool integer;
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
    if (n > MOST_DIGITS || digits > MOST_FRACTION)
        return tern_schema_fail(s, at, "keyword '%s': more than %d digits", keys[take_open],
                                n > MOST_DIGITS ? MOST_DIGITS : MOST_FRACTION);
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

static uint32_t whole_state(struct range *r, size_t length, size_t n, unsigned tight)
{
    uint32_t *known = &r->whole[length][n][tight];
    if (!*known)
        *known = 1 + tern_pattern_state(r->p, n == length && may_end(r, 0, tight));
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
                      const struct bound *high, bool integer)
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
    r.n_fraction = bound < SURE_DIGITS ? SURE_DIGITS - bound : 1;
    for (size_t length = least; length <= most; length++) {
        const unsigned tight = (length == least ? LOW : 0u) |
                               (!high->none && length == most ? HIGH : 0u);
        whole_edges(&r, length, 0, tight, from);
        for (size_t n = 1; n < length; n++)
            for (unsigned t = 0; t < 4; t++)
                if (r.whole[length][n][t])
                    whole_edges(&r, length, n, t, r.whole[length][n][t] - 1);
        for (unsigned t = 0; t < 4 && !integer; t++)
            if (r.whole[length][length][t]) {
                const uint32_t to = fraction_state(&r, 0, t);
                tern_pattern_edge(p, r.whole[length][length][t] - 1, '.', '.', to);
            }
    }
    for (size_t n = 0; n < r.n_fraction && !integer; n++)
        for (unsigned t = 0; t < 4; t++)
            if (r.fraction[n][t])
                fraction_edges(&r, n, t);
}

bool tern_schema_number(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        bool integer, struct tern_out *more)
{
    static const char *const least[2] = {"minimum", "exclusiveMinimum"};
    static const char *const most[2] = {"maximum", "exclusiveMaximum"};
    const struct bound zero = {.whole = "0"}, zero_open = {.whole = "0", .open = true};
    struct bound low, high;
    struct tern_pattern p = {.n = 0};
    char name[40];
    if (!read_bound(s, node, at, least, true, &low) || !read_bound(s, node, at, most, false, &high))
        return false;
    if (low.none && high.none) {
        tern_out_print(s->o, integer ? "integer" : "number");
        return true;
    }
    const uint32_t start = tern_pattern_state(&p, false);
    if (high.none || !high.negative)
        add_range(&p, start, low.none || low.negative ? &zero : &low, &high, integer);
    if (low.none || low.negative) {
        const uint32_t minus = tern_pattern_state(&p, false);
        const bool left_out = !high.none && is_zero(&high) && high.open;
        tern_pattern_edge(&p, start, '-', '-', minus);
        add_range(&p, minus, !high.none && high.negative ? &high : left_out ? &zero_open : &zero,
                  &low, integer);
    }
    snprintf(name, sizeof name, "r%u-n%d", rule, integer);
    tern_out_print(s->o, "%s-0", name);
    tern_pattern_write(&p, more, name, "\"\"");
    tern_pattern_free(&p);
    return true;
}
