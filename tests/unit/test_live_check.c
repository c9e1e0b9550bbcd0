/* Only in builds with -Dlive_check=true. check_kernels covers each wrapper; this is what the
 * report says and what a caller gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "platform/cpu/kernels.h"
#include "platform/cpu/live_check.h"

static struct tern_live_check entry(const char *name)
{
    struct tern_live_check c;
    for (size_t i = 0; tern_live_check_report(i, &c); i++)
        if (strcmp(c.name, name) == 0)
            return c;
    fail_msg("no entry %s", name);
    return c;
}

/* Right but for element 5, one bit. */
static void wrong_add(float *dst, const float *a, const float *b, size_t n)
{
    tern_kernels_ref.add(dst, a, b, n);
    uint32_t bits;
    memcpy(&bits, dst + 5, sizeof bits);
    bits ^= 1;
    memcpy(dst + 5, &bits, sizeof bits);
}

static void a_difference_is_counted_and_the_first_one_kept(void **state)
{
    (void)state;
    struct tern_kernels k = tern_kernels_ref;
    k.add = wrong_add;
    tern_live_check_wrap(&k);
    assert_true(k.add != wrong_add);
    assert_true(k.scale == tern_kernels_ref.scale);
    float a[8] = {0, 0, 0, 0, 0, 1, 0, 0}, b[8] = {0};
    k.add(b, a, b, 8); /* in place: the reference must see b as it was */
    k.add(a, b, a, 8);
    const struct tern_live_check c = entry("add");
    assert_int_equal(c.n_compared, 2);
    assert_int_equal(c.n_differ, 2);
    assert_int_equal(c.n_skipped, 0);
    assert_int_equal(c.index, 5);
    assert_int_equal(c.reference, 0x3f800000);
    assert_int_equal(c.variant, 0x3f800001);
    assert_true(b[5] == 0x1.000002p0f); /* the caller has the variant's result */
    assert_int_equal(entry("scale").n_compared, 0);
}

static void right_scale(float *dst, const float *a, float x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = isnan(a[i]) ? -NAN : a[i] * x;
}

static void calls_that_agree_are_counted_and_nan_equals_nan(void **state)
{
    (void)state;
    struct tern_kernels k = tern_kernels_ref;
    k.scale = right_scale;
    tern_live_check_wrap(&k);
    float a[3] = {1, NAN, -0.0f};
    k.scale(a, a, 2, 3);
    assert_true(a[0] == 2 && isnan(a[1]));
    const struct tern_live_check c = entry("scale");
    assert_int_equal(c.n_compared, 1);
    assert_int_equal(c.n_differ, 0);
}

static void plus_zero(float *dst, const float *a, float cap, size_t n)
{
    tern_kernels_ref.softcap(dst, a, cap, n);
    for (size_t i = 0; i < n; i++)
        dst[i] += 0.0f;
}

static void a_zero_of_the_other_sign_differs(void **state)
{
    (void)state;
    struct tern_kernels k = tern_kernels_ref;
    k.softcap = plus_zero;
    tern_live_check_wrap(&k);
    tern_live_check_wrap(&k); /* a second time does nothing */
    float a[2] = {0.0f, -0.0f};
    k.softcap(a, a, 30, 1);
    assert_int_equal(entry("softcap").n_differ, 0);
    k.softcap(a, a, 30, 2);
    assert_int_equal(entry("softcap").n_compared, 2);
    assert_int_equal(entry("softcap").n_differ, 1);
    assert_int_equal(entry("softcap").index, 1);
    assert_int_equal(entry("softcap").reference, 0x80000000);
}

/* Zeros in the last panel asked for, and past it what must not be looked at. */
static void wrong_matmul(const struct tern_matmul *m, size_t first, size_t n)
{
    tern_kernels_ref.matmul_f32(m, first, n);
    m->dst[m->dst_stride + 16 * (first + n - 1) + 3] = 0;
}

static void a_product_is_compared_in_the_panels_it_computed(void **state)
{
    (void)state;
    static _Alignas(64) float panels[3][16], scratch[TERN_MATMUL_SCRATCH(1) / sizeof(float)];
    float x[2] = {1, 2}, dst[2][48] = {{0}};
    for (int i = 0; i < 48; i++)
        panels[i / 16][i % 16] = 1;
    struct tern_acts acts = {.n_tokens = 2, .x = x, .x_stride = 1};
    const struct tern_matmul m = {
        .format = tern_format_of(TERN_TYPE_F32), .panels = (const uint8_t *)panels,
        .panel_bytes = sizeof panels[0], .n_cols = 1, .acts = &acts, .dst = dst[0],
        .dst_stride = 48, .scratch = scratch};
    struct tern_kernels k = tern_kernels_ref;
    k.matmul_f32 = wrong_matmul;
    tern_live_check_wrap(&k);
    k.matmul_f32(&m, 1, 1);
    const struct tern_live_check c = entry("matmul_f32");
    assert_int_equal(c.n_compared, 1);
    assert_int_equal(c.n_differ, 1);
    assert_int_equal(c.index, 48 + 16 + 3);
    assert_int_equal(c.reference, 0x40000000);
    assert_int_equal(c.variant, 0);
    assert_true(dst[0][0] == 0 && dst[0][32] == 0 && dst[1][18] == 2);
}

static void what_is_larger_than_the_copies_is_counted_apart(void **state)
{
    (void)state;
    static float a[65537];
    struct tern_kernels k = tern_kernels_ref;
    k.scale = right_scale;
    tern_live_check_wrap(&k);
    const struct tern_live_check before = entry("scale");
    a[65536] = 1;
    k.scale(a, a, 3, 65537);
    assert_true(a[65536] == 3);
    assert_int_equal(entry("scale").n_compared, before.n_compared);
    assert_int_equal(entry("scale").n_skipped, before.n_skipped + 1);
}

static void selecting_wraps_what_overrides_the_reference(void **state)
{
    (void)state;
    struct tern_kernels k;
    tern_kernels_select(&k, 0, NULL);
    assert_memory_equal(&k, &tern_kernels_ref, sizeof k);
    if (!(tern_cpu_features(0) & TERN_CPU_AVX2) || !tern_cpu_variants[0].name)
        return;
    struct tern_kernels bare = tern_kernels_ref;
    tern_cpu_variants[0].install(&bare);
    tern_kernels_select(&k, tern_cpu_variants[0].needs, tern_cpu_variants[0].name);
    assert_true(k.add != bare.add && k.add != tern_kernels_ref.add);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_is_counted_and_the_first_one_kept),
        cmocka_unit_test(calls_that_agree_are_counted_and_nan_equals_nan),
        cmocka_unit_test(a_zero_of_the_other_sign_differs),
        cmocka_unit_test(a_product_is_compared_in_the_panels_it_computed),
        cmocka_unit_test(what_is_larger_than_the_copies_is_counted_apart),
        cmocka_unit_test(selecting_wraps_what_overrides_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
