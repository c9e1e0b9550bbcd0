#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "platform/cpu/kernels.h"
#include "runtime/rope.h"

enum { MAX_PAIRS = 128 };

static const double half_pi = 1.57079632679489661923;

static struct tern_rope plain(uint32_t n_rot, float base)
{
    return (struct tern_rope){
        .n_rot = n_rot, .base = base, .freq_scale = 1, .mscale = 1, .factors = -1};
}

static void fill(const struct tern_rope *r, const float *factors, double *quarter)
{
    for (uint32_t i = 0; i < r->n_rot / 2; i++)
        quarter[i] = tern_rope_inv_freq(r, factors, i);
}

static void frequencies_are_powers_of_the_base(void **state)
{
    (void)state;
    static const float bases[] = {10000.0f, 500000.0f, 1000000.0f, 8000000.0f, 2.0f,
                                  0.5f,     1.0f,      1e-30f,     1e38f};
    static const uint32_t n_rots[] = {2, 20, 64, 96, 128, 256};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t n = 0; n < sizeof n_rots / sizeof *n_rots; n++) {
            const struct tern_rope r = plain(n_rots[n], bases[b]);
            for (uint32_t i = 0; i < r.n_rot / 2; i++) {
                const double exact = pow((double)r.base, -2.0 * i / r.n_rot) / half_pi;
                assert_true(fabs(tern_rope_inv_freq(&r, NULL, i) - exact) <= 1e-13 * exact);
            }
        }
}

static void angles_are_right_at_a_million_positions(void **state)
{
    (void)state;
    static const uint32_t positions[] = {0, 1, 40, 2047, 2048, 2049, 32768, 131071, 1048575};
    const struct tern_rope r = plain(256, 500000.0f);
    double quarter[MAX_PAIRS];
    float cs[2 * MAX_PAIRS];
    fill(&r, NULL, quarter);
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
        tern_rope_angles(&r, quarter, positions[p], cs);
        for (uint32_t i = 0; i < r.n_rot / 2; i++) {
            const double theta = positions[p] * pow((double)r.base, -2.0 * i / r.n_rot);
            assert_true(fabs((double)cs[2 * i] - cos(theta)) < 1e-7);
            assert_true(fabs((double)cs[2 * i + 1] - sin(theta)) < 1e-7);
        }
    }
}

static void every_quadrant_and_its_borders_are_right(void **state)
{
    (void)state;
    struct tern_rope r = plain(2, 10000.0f);
    r.mscale = 1.25f;
    for (double turn = 0; turn < 9; turn += 1.0 / 512) {
        float cs[2];
        tern_rope_angles(&r, &turn, 1, cs);
        assert_true(fabs((double)cs[0] - 1.25 * cos(turn * half_pi)) < 1e-7);
        assert_true(fabs((double)cs[1] - 1.25 * sin(turn * half_pi)) < 1e-7);
        const double back = -turn;
        tern_rope_angles(&r, &back, 1, cs);
        assert_true(fabs((double)cs[1] + 1.25 * sin(turn * half_pi)) < 1e-7);
    }
}

static void factors_and_linear_scaling_divide_the_angle(void **state)
{
    (void)state;
    struct tern_rope r = plain(8, 10000.0f);
    const float factors[4] = {1, 2, 4, 32};
    const double unscaled = tern_rope_inv_freq(&r, NULL, 3);
    r.freq_scale = 0.25f;
    assert_true(fabs(tern_rope_inv_freq(&r, factors, 3) / unscaled - 1.0 / 128) < 1e-15);
}

static void yarn_mixes_along_its_ramp(void **state)
{
    (void)state;
    struct tern_rope r = plain(64, 10000.0f);
    r.freq_scale = 0.25f;
    r.ext_factor = 1;
    r.corr_low = 8;
    r.corr_high = 24;
    for (uint32_t i = 0; i < 32; i++) {
        const double full = pow(10000.0, -2.0 * i / 64) / half_pi;
        const double ramp = i <= 8 ? 1 : i >= 24 ? 0 : 1 - (i - 8) / 16.0;
        const double exact = 0.25 * full * (1 - ramp) + full * ramp;
        assert_true(fabs(tern_rope_inv_freq(&r, NULL, i) - exact) < 1e-13 * exact);
    }
    r.corr_high = 8; /* a ramp without width is a step */
    assert_true(tern_rope_inv_freq(&r, NULL, 9) < 0.26 * pow(10000.0, -18.0 / 64) / half_pi);
}

static void broken_parameters_give_nan_and_no_trap(void **state)
{
    (void)state;
    static const float bases[] = {0.0f, -1.0f, NAN, INFINITY};
    float cs[2];
    for (size_t i = 0; i < 4; i++) {
        const struct tern_rope r = plain(2, bases[i]);
        const double quarter = tern_rope_inv_freq(&r, NULL, 0);
        tern_rope_angles(&r, &quarter, 7, cs);
        assert_true(isnan(cs[0]) && isnan(cs[1]));
    }
    const struct tern_rope r = plain(2, 10000.0f);
    const float zero = 0.0f;
    const double endless = tern_rope_inv_freq(&r, &zero, 0);
    tern_rope_angles(&r, &endless, 7, cs);
    assert_true(isnan(cs[0]) && isnan(cs[1]));
}

/* What both layouts are for: the product of a query and a key depends on their distance. */
static void rotated_products_depend_on_the_distance(void **state)
{
    (void)state;
    const struct tern_rope r = plain(16, 10000.0f);
    double quarter[8];
    fill(&r, NULL, quarter);
    for (int neox = 0; neox < 2; neox++) {
        double dots[2];
        for (uint32_t far = 0; far < 2; far++) {
            float q[16], k[16], cs[16];
            for (int i = 0; i < 16; i++) {
                q[i] = (float)(i % 5) - 2;
                k[i] = (float)(i % 7) - 3;
            }
            tern_rope_fn *rotate = neox ? tern_kernels_ref.rope_neox : tern_kernels_ref.rope_norm;
            tern_rope_angles(&r, quarter, far * 131000 + 71, cs);
            rotate(q, cs, 16);
            tern_rope_angles(&r, quarter, far * 131000 + 60, cs);
            rotate(k, cs, 16);
            dots[far] = 0;
            for (int i = 0; i < 16; i++)
                dots[far] += (double)q[i] * (double)k[i];
        }
        assert_true(fabs(dots[0] - dots[1]) < 1e-4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_powers_of_the_base),
        cmocka_unit_test(angles_are_right_at_a_million_positions),
        cmocka_unit_test(every_quadrant_and_its_borders_are_right),
        cmocka_unit_test(factors_and_linear_scaling_divide_the_angle),
        cmocka_unit_test(yarn_mixes_along_its_ramp),
        cmocka_unit_test(broken_parameters_give_nan_and_no_trap),
        cmocka_unit_test(rotated_products_depend_on_the_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
