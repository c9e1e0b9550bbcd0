#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "runtime/real.h"

/* Every STRIDE-th float of all 2^32, an odd number, so that all mantissas come by. */
enum { STRIDE = 4099 };

/* Distance in units of the last place of the exact value's float. */
static double ulps(float got, double exact)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : HUGE_VAL;
    if (isinf(got) || isinf(exact))
        return got == (float)exact ? 0 : HUGE_VAL;
    int e;
    frexp(exact, &e);
    return fabs((double)got - exact) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* The largest distance over the sampled floats in from .. to, infinities and NaN included when
 * the ends let them. */
static double worst(float f(float), double exact(double), float from, float to)
{
    double max = 0;
    for (uint64_t u = 0; u < UINT64_C(1) << 32; u += STRIDE) {
        const float x = tern_from_bits((uint32_t)u);
        if (!(x >= from && x <= to))
            continue;
        const double d = ulps(f(x), exact((double)x));
        max = d > max ? d : max;
    }
    return max;
}

static double exact_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double exact_silu(double x) { return x / (1 + exp(-x)); }
static double exact_softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

static double exact_gelu_tanh(double x)
{
    const double u = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}

static double exact_gelu_erf(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752); }

static void exp_is_within_1_ulp_from_end_to_end(void **state)
{
    (void)state;
    assert_true(worst(tern_exp, exp, -INFINITY, INFINITY) < 1.0);
    assert_true(tern_exp(0.0f) == 1.0f && tern_exp(-0.0f) == 1.0f);
    assert_true(tern_exp(INFINITY) == INFINITY && tern_exp(-INFINITY) == 0.0f);
    assert_true(isnan(tern_exp(NAN)) && isnan(tern_exp(-NAN)));
    assert_true(tern_exp(88.72283f) < INFINITY && tern_exp(88.72284f) == INFINITY);
}

static void exp_rounds_once_where_it_underflows(void **state)
{
    (void)state;
    for (float x = -87.0f; x > -104.5f; x -= 0x1p-9f)
        assert_true(ulps(tern_exp(x), exp((double)x)) < 1.0);
    assert_true(tern_exp(-103.97f) == 0x1p-149f && tern_exp(-103.98f) == 0.0f);
}

static void sigmoid_and_silu_are_within_2_5_ulp(void **state)
{
    (void)state;
    assert_true(worst(tern_sigmoid, exact_sigmoid, -88.7f, INFINITY) < 2.5);
    assert_true(worst(tern_silu, exact_silu, -87.3f, FLT_MAX) < 2.5);
    assert_true(tern_silu(-1e30f) == 0.0f && tern_sigmoid(-INFINITY) == 0.0f);
    assert_true(isnan(tern_silu(NAN)) && isnan(tern_silu(-INFINITY)));
}

static void tanh_is_within_2_ulp_and_odd(void **state)
{
    (void)state;
    assert_true(worst(tern_tanh, tanh, -INFINITY, INFINITY) < 2.0);
    for (float x = 0.5f; x < 0.6f; x += 0x1p-20f) /* where the two formulas meet */
        assert_true(ulps(tern_tanh(x), tanh((double)x)) < 2.0 && tern_tanh(-x) == -tern_tanh(x));
    assert_true(signbit(tern_tanh(-0.0f)) && isnan(tern_tanh(NAN)));
}

/* The tails are products of rounded exponents: a relative bound down to 1e-3 of the slope. */
static void gelu_is_within_2e_6_of_both_definitions(void **state)
{
    (void)state;
    for (float x = -14.0f; x < 14.0f; x += 0x1p-14f) {
        const double a = exact_gelu_tanh((double)x), b = exact_gelu_erf((double)x);
        assert_true(fabs((double)tern_gelu_tanh(x) - a) <= 2e-6 * fmax(fabs(a), 1e-3));
        assert_true(fabs((double)tern_gelu_erf(x) - b) <= 2e-6 * fmax(fabs(b), 1e-3));
    }
    assert_true(tern_gelu_tanh(1e30f) == 1e30f && tern_gelu_tanh(-1e30f) == 0.0f);
    assert_true(tern_gelu_tanh(INFINITY) == INFINITY && isnan(tern_gelu_tanh(-INFINITY)));
    assert_true(tern_gelu_erf(1e30f) == 1e30f && tern_gelu_erf(-1e30f) == 0.0f);
    assert_true(isnan(tern_gelu_tanh(NAN)) && isnan(tern_gelu_erf(NAN)));
}

static void log_is_within_2_ulp_and_knows_its_edges(void **state)
{
    (void)state;
    assert_true(worst(tern_log, log, 0x1p-149f, INFINITY) < 2.0);
    for (float x = 0.5f; x < 2.0f; x += 0x1p-18f)
        assert_true(ulps(tern_log(x), log((double)x)) < 2.0);
    assert_true(tern_log(0.0f) == -INFINITY && tern_log(-0.0f) == -INFINITY);
    assert_true(isnan(tern_log(-1.0f)) && isnan(tern_log(-INFINITY)) && isnan(tern_log(NAN)));
    assert_true(tern_log(1.0f) == 0.0f);
}

static void softplus_is_within_3_ulp(void **state)
{
    (void)state;
    assert_true(worst(tern_softplus, exact_softplus, -INFINITY, INFINITY) < 3.0);
    assert_true(isnan(tern_softplus(NAN)));
}

static void sum16_adds_by_the_tree(void **state)
{
    (void)state;
    /* 8 + 8 cancels the large ones first; from left to right the small one would be lost. */
    float acc[16] = {[0] = 1e30f, [8] = -1e30f, [3] = 1.0f};
    assert_true(tern_sum16(acc) == 1.0f);
    float halves[16] = {[1] = 1e30f, [5] = 1.0f, [9] = 1.0f, [13] = -1e30f};
    assert_true(tern_sum16(halves) == 0.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_1_ulp_from_end_to_end),
        cmocka_unit_test(exp_rounds_once_where_it_underflows),
        cmocka_unit_test(sigmoid_and_silu_are_within_2_5_ulp),
        cmocka_unit_test(tanh_is_within_2_ulp_and_odd),
        cmocka_unit_test(gelu_is_within_2e_6_of_both_definitions),
        cmocka_unit_test(log_is_within_2_ulp_and_knows_its_edges),
        cmocka_unit_test(softplus_is_within_3_ulp),
        cmocka_unit_test(sum16_adds_by_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
