#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/arena.h"
#include "runtime/sampler.h"

enum { MOST = 40001 };

static _Alignas(64) unsigned char memory[MOST * 16];
static struct tern_sampler sampler;

static void make(uint32_t n_vocab)
{
    struct tern_arena a = tern_arena_over(memory, sizeof memory);
    tern_sampler_lay_out(&a, &sampler, n_vocab);
    assert_false(a.failed);
}

/* Everything off but the draw at temperature 1. */
static tern_sampling plain(void)
{
    return (tern_sampling){.temperature = 1.0f, .top_p = 1.0f, .typical_p = 1.0f,
                           .repeat_penalty = 1.0f, .repeat_last_n = -1, .seed = 7, .stream = 3};
}

static tern_token choose(const tern_sampling *how, const float *logits, uint32_t position)
{
    tern_token token = -1;
    tern_error err = {0};
    assert_int_equal(tern_sampling_check(how, sampler.n_vocab, &err), TERN_OK);
    assert_int_equal(tern_sampler_choose(&sampler, how, logits, NULL, 0, position, &token, &err),
                     TERN_OK);
    assert_in_range(token, 0, sampler.n_vocab - 1);
    return token;
}

/* --- parameters --- */

static void refused(const tern_sampling *how, const char *text)
{
    tern_error err = {0};
    assert_int_equal(tern_sampling_check(how, 100, &err), TERN_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, text));
}

static void parameters_out_of_range_are_named(void **state)
{
    (void)state;
    static const struct { size_t offset; const char *name; float bad[6]; float good[4]; } fields[] = {
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

static void logits_that_are_no_numbers_are_named(void **state)
{
    (void)state;
    float logits[20] = {0};
    tern_token token = -5;
    tern_logprob best[2];
    float p;
    make(20);
    tern_sampling how = plain();
    how.frequency_penalty = 1;
    for (int i = 0; i < 4; i++) {
        static const char *const texts[] = {"logits: NaN at token 17", "logits: NaN at token 17",
                                            "logits: infinity at token 17",
                                            "logits: none of 20 is finite"};
        for (int j = 0; j < 20; j++)
            logits[j] = i == 3 ? -INFINITY : 0;
        if (i < 3)
            logits[17] = i == 0 ? NAN : i == 1 ? -NAN : INFINITY;
        for (int greedy_too = 0; greedy_too < 2; greedy_too++) {
            tern_error err = {0};
            how.temperature = greedy_too ? 0.0f : 1.0f;
            assert_int_equal(tern_sampler_choose(&sampler, &how, logits, (tern_token[]){1}, 1, 0,
                                                 &token, &err), TERN_BAD_ARGUMENT);
            assert_string_equal(err.text, texts[i]);
            assert_int_equal(token, -5);
        }
        tern_error err = {0};
        assert_int_equal(tern_logprobs(&sampler, logits, 2, best, 0, &p, &err), TERN_BAD_ARGUMENT);
        assert_string_equal(err.text, texts[i]);
    }
}

/* --- log-probabilities --- */

static void logprobs_are_those_of_the_raw_distribution(void **state)
{
    (void)state;
    static float logits[1000];
    static tern_logprob best[1000];
    make(1000);
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        logits[i] = 20.0f * sinf((float)(i * i));
        logits[i] = i % 100 == 7 ? 20.5f : logits[i];
        sum += exp(logits[i]);
    }
    logits[500] = -INFINITY;
    sum -= exp(20.0f * sinf(250000.0f));
    for (tern_token token = 0; token < 1000; token++) {
        float p = 1;
        assert_int_equal(tern_logprobs(&sampler, logits, 0, NULL, token, &p, NULL), TERN_OK);
        if (token == 500)
            assert_true(p == -INFINITY);
        else
            assert_true(fabs(p - (logits[token] - log(sum))) < 1e-5);
    }
    static const uint32_t ks[] = {1, 2, 5, 40, 999, 1000};
    for (size_t k = 0; k < 6; k++) {
        float p = 1;
        assert_int_equal(tern_logprobs(&sampler, logits, ks[k], best, 7, &p, NULL), TERN_OK);
        assert_true(p == best[0].logprob && best[0].token == 7);
        for (uint32_t i = 1; i < ks[k]; i++) {
            assert_true(best[i].logprob <= best[i - 1].logprob);
            const float a = logits[best[i - 1].token], b = logits[best[i].token];
            assert_true(a > b || (a == b && best[i - 1].token < best[i].token));
        }
        if (ks[k] > 5)
            assert_int_equal(best[4].token, 407); /* the ten equal ones come in order */
    }
    assert_int_equal(tern_logprobs(&sampler, logits, 1001, best, -1, NULL, NULL), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_logprobs(&sampler, logits, 1, best, 1000, NULL, NULL), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_logprobs(&sampler, logits, 1, best, -2, NULL, NULL), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_logprobs(&sampler, logits, 1, best, -1, NULL, NULL), TERN_OK);
}

/* --- sizes --- */

/* n floats that end where a page begins that nobody may touch. */
static float *before_a_guard_page(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (n * sizeof(float) + page - 1) / page * page;
    char *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + room, page, PROT_NONE), 0);
    return (float *)(void *)(p + room - n * sizeof(float));
}

static void any_vocabulary_size_works(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 7, 15, 16, 17, 31, 33, 40001};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint32_t n = sizes[i];
        float *logits = before_a_guard_page(n);
        make(n);
        for (int mode = 0; mode < 4; mode++) {
            tern_sampling how = plain();
            if (mode == 1)
                tern_sampling_default(&how);
            how.temperature = mode == 0 ? 0.0f : 0.8f;
            if (mode == 3)
                how.top_p = how.typical_p = 0.9f;
            for (uint32_t j = 0; j < n; j++)
                logits[j] = j + 1 == n ? 200.0f : 0.0f;
            assert_int_equal(choose(&how, logits, 5), n - 1);
            for (uint32_t j = 0; j < n; j++)
                logits[j] = 1.5f;
            if (mode == 0)
                assert_int_equal(choose(&how, logits, 5), 0);
            else
                for (uint32_t position = 0; position < 20; position++)
                    choose(&how, logits, position);
            for (uint32_t only = 0; only < n; only += n / 5 + 1) {
                for (uint32_t j = 0; j < n; j++)
                    logits[j] = j == only ? -3.0f : -INFINITY;
                assert_int_equal(choose(&how, logits, 5), only);
            }
        }
        tern_logprob best;
        float p;
        assert_int_equal(tern_logprobs(&sampler, logits, 1, &best, (tern_token)(n - 1), &p, NULL),
                         TERN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_out_of_range_are_named),
        cmocka_unit_test(biases_out_of_range_are_named),
        cmocka_unit_test(logits_that_are_no_numbers_are_named),
        cmocka_unit_test(logprobs_are_those_of_the_raw_distribution),
        cmocka_unit_test(any_vocabulary_size_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
