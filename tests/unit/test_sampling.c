#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "runtime/sampler.h"

/* Everything off but the draw at temperature 1. */
static tern_sampling plain(void)
{
    return (tern_sampling){.temperature = 1.0f, .top_p = 1.0f, .typical_p = 1.0f,
                           .repeat_penalty = 1.0f, .repeat_last_n = -1, .seed = 7, .stream = 3};
}

static void refused(const tern_sampling *how, const char *text)
{
    tern_error err = {0};
    assert_int_equal(tern_sampling_check(how, 100, &err), TERN_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, text));
}

static void parameters_out_of_range_are_named(void **state)
{
    (void)state;
    static const struct { size_t offset; const char *name; float bad[6], good[4]; } fields[] = {
        {offsetof(tern_sampling, temperature), "temperature",
         {NAN, INFINITY, -INFINITY, NAN, NAN, NAN}, {0, -1, 1e38f, 1e-38f}},
        {offsetof(tern_sampling, top_p), "top_p",
         {NAN, 1.0000001f, -0.1f, INFINITY, -1e-45f, 2}, {0, 1e-9f, 1, 0.5f}},
        {offsetof(tern_sampling, min_p), "min_p",
         {NAN, 1.5f, -1, INFINITY, -1e-45f, 2}, {0, 1, 0.05f, -0.0f}},
        {offsetof(tern_sampling, typical_p), "typical_p",
         {NAN, 1.5f, -1, INFINITY, -1e-45f, 2}, {0, 1, 0.05f, -0.0f}},
        {offsetof(tern_sampling, repeat_penalty), "repeat_penalty",
         {NAN, 0, -1, INFINITY, -0.0f, 1e-45f}, {0.5f, 1, 1.1f, 2}},
        {offsetof(tern_sampling, presence_penalty), "presence_penalty",
         {NAN, 100.1f, -100.1f, INFINITY, -INFINITY, 1e30f}, {0, -2, 100, -100}},
        {offsetof(tern_sampling, frequency_penalty), "frequency_penalty",
         {NAN, 100.1f, -100.1f, INFINITY, -INFINITY, 1e30f}, {0, -2, 100, -100}},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        tern_sampling how = plain();
        for (size_t j = 0; j < 6; j++) {
            memcpy((char *)&how + fields[i].offset, &fields[i].bad[j], sizeof(float));
            refused(&how, fields[i].name);
        }
        for (size_t j = 0; j < 4; j++) {
            memcpy((char *)&how + fields[i].offset, &fields[i].good[j], sizeof(float));
            assert_int_equal(tern_sampling_check(&how, 100, NULL), TERN_OK);
        }
    }
    tern_sampling how = plain();
    how.top_p = NAN;
    refused(&how, "top_p: nan, 0 to 1");
    how = plain();
    how.repeat_last_n = -2;
    refused(&how, "repeat_last_n: -2, -1 or more");
}

static void biases_out_of_range_are_named(void **state)
{
    (void)state;
    static tern_bias many[TERN_MAX_BIASES + 1];
    tern_sampling how = plain();
    how.n_biases = 2;
    refused(&how, "biases: none given");
    how.biases = many;
    refused(&how, "bias: token 0, named twice");
    many[1].token = 100;
    refused(&how, "bias: token 100, below 100");
    many[1].token = -1;
    refused(&how, "bias: token -1, below 100");
    many[1] = (tern_bias){1, NAN};
    refused(&how, "bias: nan of token 1");
    many[1].bias = INFINITY;
    refused(&how, "of token 1");
    many[1].bias = -INFINITY;
    assert_int_equal(tern_sampling_check(&how, 100, NULL), TERN_OK);
    how.n_biases = TERN_MAX_BIASES + 1;
    refused(&how, "n_biases: 1025, at most 1024");
    tern_sampling_default(&how);
    assert_int_equal(tern_sampling_check(&how, 1, NULL), TERN_OK);
    assert_true(how.temperature == 0.8f && how.top_k == 40 && how.repeat_last_n == 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_out_of_range_are_named),
        cmocka_unit_test(biases_out_of_range_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
