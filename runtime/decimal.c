/* A double is m * 2^e with a whole m; a decimal is d * 10^k with a whole d. Both are compared and
 * divided as whole numbers of up to 1,500 bits, so nothing is rounded on the way. That is slow
 * beside the tables of faster methods and takes a kilobyte of code; the few numbers in a chat
 * template do not notice. */
#include "runtime/decimal.h"

#include <float.h>
#include <string.h>

enum { WORDS = 56 }; /* 1792 bits: 64 bits of digits, 2^1075 and 10^343 are below that */
struct big { uint32_t n, w[WORDS]; };

static void big_set(struct big *b, uint64_t x)
{
    memset(b, 0, sizeof *b);
    b->w[0] = (uint32_t)x;
    b->w[1] = (uint32_t)(x >> 32);
    b->n = b->w[1] ? 2 : b->w[0] ? 1 : 0;
}

static void big_times(struct big *b, uint32_t by)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        carry += (uint64_t)b->w[i] * by;
        b->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && b->n < WORDS)
        b->w[b->n++] = (uint32_t)carry;
}

static void big_times_power(struct big *b, uint32_t base, int power)
{
    for (; power >= 9; power -= 9)
        big_times(b, base == 10 ? 1000000000 : 512);
    for (; power > 0; power--)
        big_times(b, base);
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;)
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

/* a -= b, which is not larger. */
static void big_less(struct big *a, const struct big *b)
{
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const int64_t d = (int64_t)a->w[i] - (i < b->n ? b->w[i] : 0) + borrow;
        a->w[i] = (uint32_t)d;
        borrow = d < 0 ? -1 : 0;
    }
    while (a->n && a->w[a->n - 1] == 0)
        a->n--;
}

/* x = m * 2^e, x > 0 and finite. */
static uint64_t take_apart(double x, int *e)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    const int exponent = (int)(u >> 52 & 0x7ff);
    const uint64_t m = u & 0xfffffffffffff;
    *e = exponent ? exponent - 1075 : -1074;
    return exponent ? m | 1ull << 52 : m;
}

/* num / den = x * 10^-k with k such that the quotient lies in [1, 10). */
static int make_quotient(double x, struct big *num, struct big *den)
{
    int e, k = 0;
    const uint64_t m = take_apart(x, &e);
    for (double y = x; y >= 10; y /= 10)
        k++;
    for (double y = x; y < 1 && k > -340; y *= 10)
        k--;
    k -= k > -340; /* the estimate can be off by one either way: begin below */
    big_set(num, m);
    big_set(den, 1);
    big_times_power(num, 2, e > 0 ? e : 0);
    big_times_power(den, 2, e < 0 ? -e : 0);
    big_times_power(num, 10, k < 0 ? -k : 0);
    big_times_power(den, 10, k > 0 ? k : 0);
    for (big_times(den, 10); big_compare(num, den) >= 0; big_times(den, 10))
        k++;
    for (big_times(num, 10); big_compare(num, den) < 0; big_times(num, 10))
        k--;
    return k;
}

static bool round_up(char *digits, int n)
{
    int i = n;
    while (i > 0 && digits[i - 1] == '9')
        digits[--i] = '0';
    if (i > 0) {
        digits[i - 1]++;
        return false;
    }
    memmove(digits + 1, digits, (size_t)(n > 0 ? n - 1 : 0));
    digits[0] = '1';
    return true;
}

int tern_decimal_digits(double x, int n, char *digits, int *point)
{
    struct big num, den;
    *point = make_quotient(x, &num, &den) + 1;
    if (n < 0)
        return 0;
    int got = 0;
    for (; got < n && got < TERN_DECIMAL_DIGITS && num.n; got++) {
        char digit = '0';
        for (; big_compare(&num, &den) >= 0; digit++)
            big_less(&num, &den);
        digits[got] = digit;
        big_times(&num, 10);
    }
    /* num / den is ten times what is left, of the last digit: half of one is 5. */
    big_times(&den, 5);
    const int c = big_compare(&num, &den);
    if (c > 0 || (c == 0 && got && (digits[got - 1] & 1))) {
        *point += round_up(digits, got);
        got += got == 0;
    }
    while (got > 0 && digits[got - 1] == '0')
        got--;
    return got;
}

/* Compares d * 10^k with m * 2^e. */
static int compare(uint64_t d, int k, uint64_t m, int e)
{
    struct big left, right;
    big_set(&left, d);
    big_set(&right, m);
    big_times_power(k < 0 ? &right : &left, 10, k < 0 ? -k : k);
    big_times_power(e < 0 ? &left : &right, 2, e < 0 ? -e : e);
    return big_compare(&left, &right);
}

static double from_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

/* The double nearest to d * 10^k: a guess, then steps of one until both halfway marks beside it
 * are on the right sides. Doubles above zero are ordered as their bits are. */
static double nearest(uint64_t d, int k)
{
    if (d == 0 || k < -345)
        return 0;
    if (k > 310)
        return from_bits(0x7ffull << 52);
    double x = (double)d;
    for (int i = k; i > 0; i--)
        x = x > DBL_MAX / 10 ? DBL_MAX : x * 10;
    for (int i = k; i < 0; i++)
        x /= 10;
    uint64_t u;
    memcpy(&u, &x, 8);
    for (;;) {
        int e;
        const uint64_t m = take_apart(from_bits(u), &e);
        const int above = compare(d, k, 2 * m + 1, e - 1);
        if (above > 0 || (above == 0 && (u & 1))) {
            if (++u >= 0x7ffull << 52)
                return from_bits(0x7ffull << 52);
            continue;
        }
        if (u == 0)
            return 0;
        const uint64_t below_u = u - 1;
        int below_e;
        const uint64_t below_m = take_apart(from_bits(below_u), &below_e);
        const int below = compare(d, k, 2 * below_m + 1, below_e - 1);
        if (below > 0 || (below == 0 && !(u & 1)))
            return from_bits(u);
        u = below_u;
    }
}

bool tern_decimal_read(const char *s, size_t n, double *out)
{
    uint64_t d = 0;
    int k = 0, n_digits = 0, exponent = 0;
    bool point = false, any = false, negative = false;
    size_t i = 0;
    if (i < n && (s[i] == '-' || s[i] == '+'))
        negative = s[i++] == '-';
    for (; i < n && ((s[i] >= '0' && s[i] <= '9') || (s[i] == '.' && !point)); i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        const bool taken = n_digits < 19;
        if (taken && (d || s[i] != '0')) {
            d = 10 * d + (uint64_t)(s[i] - '0');
            n_digits++;
        }
        k += taken ? -(int)point : !point;
        if (k > 100000 || k < -100000)
            return false;
    }
    if (any && i < n && (s[i] == 'e' || s[i] == 'E')) {
        const bool minus = ++i < n && s[i] == '-';
        i += i < n && (s[i] == '-' || s[i] == '+');
        any = i < n;
        for (; i < n && s[i] >= '0' && s[i] <= '9'; i++)
            exponent = exponent < 100000 ? 10 * exponent + (s[i] - '0') : exponent;
        k += minus ? -exponent : exponent;
    }
    const double x = nearest(d, k);
    *out = negative ? -x : x;
    return any && i == n;
}

/* --- text --- */

static size_t put_zeros(char *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = '0';
    return n > 0 ? (size_t)n : 0;
}

static size_t put_special(double x, char *out)
{
    const char *s = x != x ? "nan" : x > 0 ? "inf" : "-inf";
    memcpy(out, s, strlen(s));
    return strlen(s);
}

/* A zero has a sign too. */
static size_t put_sign(double *x, char *out)
{
    uint64_t u;
    memcpy(&u, x, 8);
    out[0] = '-';
    *x = u >> 63 ? -*x : *x;
    return u >> 63;
}

/* 0.digits * 10^point, with at least `after` digits behind the point. */
static size_t put_plain(char *out, const char *digits, int n, int point, int after)
{
    size_t at = put_zeros(out, point <= 0);
    for (int i = 0; i < point; i++)
        out[at++] = i < n ? digits[i] : '0';
    if (after <= 0 && point >= n)
        return at;
    out[at++] = '.';
    const size_t begin = at;
    at += put_zeros(out + at, point < 0 ? (n ? -point : after) : 0);
    for (int i = point > 0 ? point : 0; i < n; i++)
        out[at++] = digits[i];
    return at + put_zeros(out + at, after - (int)(at - begin));
}

size_t tern_decimal_repr(double x, char out[TERN_DECIMAL_CAP])
{
    if (x != x || x > DBL_MAX || x < -DBL_MAX)
        return put_special(x, out);
    size_t at = put_sign(&x, out);
    if (x == 0) {
        memcpy(out + at, "0.0", 3);
        return at + 3;
    }
    char digits[24];
    int point = 0, n = 0;
    for (int most = 1; most <= 17; most++) {
        uint64_t d = 0;
        n = tern_decimal_digits(x, most, digits, &point);
        for (int i = 0; i < n; i++)
            d = 10 * d + (uint64_t)(digits[i] - '0');
        if (nearest(d, point - n) == x)
            break;
    }
    if (point > -4 && point <= 16)
        return at + put_plain(out + at, digits, n, point, 1);
    out[at++] = digits[0];
    if (n > 1) {
        out[at++] = '.';
        memcpy(out + at, digits + 1, (size_t)n - 1);
        at += (size_t)n - 1;
    }
    const int e = point - 1 < 0 ? 1 - point : point - 1;
    out[at++] = 'e';
    out[at++] = point - 1 < 0 ? '-' : '+';
    if (e >= 100)
        out[at++] = (char)('0' + e / 100);
    out[at++] = (char)('0' + e / 10 % 10);
    out[at++] = (char)('0' + e % 10);
    return at;
}

size_t tern_decimal_fixed(double x, int after, char out[TERN_DECIMAL_CAP])
{
    if (x != x || x > DBL_MAX || x < -DBL_MAX)
        return put_special(x, out);
    size_t at = put_sign(&x, out);
    char digits[TERN_DECIMAL_DIGITS + 1];
    int point = 0, n = 0;
    if (x > 0) {
        tern_decimal_digits(x, -1, digits, &point);
        const int wanted = point + after;
        n = tern_decimal_digits(x, wanted < TERN_DECIMAL_DIGITS ? wanted : TERN_DECIMAL_DIGITS,
                                digits, &point);
    }
    return at + put_plain(out + at, digits, n, n ? point : 0, after);
}
