#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

static double random_double(uint64_t *state, int kind)
{
    double x;
    uint64_t u = next(state) >> 1;
    memcpy(&x, &u, 8);
    if (kind == 1)
        x = (double)(next(state) % 1000000) / 1000;
    if (kind == 2)
        x = (double)(next(state) >> 11) * 1e-3;
    return x - x == 0 ? x : 1.5;
}

static void check_fixed(double x, int after)
{
    char out[TERN_DECIMAL_CAP], want[TERN_DECIMAL_CAP];
    const size_t n = tern_decimal_fixed(x, after, out);
    snprintf(want, sizeof want, "%.*f", after, x);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(out, want, n);
}

static void texts_give_the_number_back_and_are_the_shortest(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 3000; i++) {
        char out[TERN_DECIMAL_CAP + 1], shorter[40];
        const double x = random_double(&seed, i % 3);
        double back;
        const size_t n = tern_decimal_repr(x, out);
        out[n] = 0;
        assert_true(strtod(out, NULL) == x);
        assert_true(tern_decimal_read(out, n, &back) && back == x);
        int digits = 0;
        for (const char *p = out; *p && *p != 'e'; p++)
            digits += *p >= '0' && *p <= '9' && (digits || *p != '0');
        if (digits > 1 && digits <= 17 && !strstr(out, ".0")) {
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, x);
            assert_false(strtod(shorter, NULL) == x);
        }
    }
}

static void texts_are_as_python_writes_them(void **state)
{
    (void)state;
    static const struct { double x; const char *text; } rows[] = {
        {0, "0.0"}, {-0.0, "-0.0"}, {1, "1.0"}, {0.1, "0.1"}, {1e16, "1e+16"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"}, {0.0001, "0.0001"}, {0.00001, "1e-05"},
        {1.5e300, "1.5e+300"}, {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-2.5, "-2.5"}, {123456789.125, "123456789.125"}, {1e22, "1e+22"}, {1e23, "1e+23"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[TERN_DECIMAL_CAP];
        const size_t n = tern_decimal_repr(rows[i].x, out);
        assert_int_equal(n, strlen(rows[i].text));
        assert_memory_equal(out, rows[i].text, n);
    }
}

static void fixed_digits_are_rounded_as_printf_does(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int i = 0; i < 1000; i++) {
        const double x = random_double(&seed, 1 + i % 2);
        check_fixed(x, i % 12);
        check_fixed(-x * 1e-7, i % 12);
    }
    static const double halves[] = {0.5, 1.5, 2.5, 0.25, 0.125, 9.5, 99.5, 0.05, 9.995, 0.0, 1e22};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        for (int after = 0; after < 4; after++)
            check_fixed(halves[i], after);
}

static void what_is_no_number_is_not_read(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ".", "-", "1e", "1e+", "1 ", "x", "1.2.3", "--1", "e5"};
    double x;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(tern_decimal_read(wrong[i], strlen(wrong[i]), &x));
    assert_true(tern_decimal_read("1e999", 5, &x) && isinf(x));
    assert_true(tern_decimal_read("1e-999", 6, &x) && x == 0);
    assert_true(tern_decimal_read("0.00000000000000000000000000125", 31, &x) && x == 1.25e-27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_give_the_number_back_and_are_the_shortest),
        cmocka_unit_test(texts_are_as_python_writes_them),
        cmocka_unit_test(fixed_digits_are_rounded_as_printf_does),
        cmocka_unit_test(what_is_no_number_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
