#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/arena.h"
#include "runtime/real.h"
#include "runtime/sampler.h"

enum { MOST = 40001 };

static _Alignas(64) unsigned char memory[MOST * 16];
static float logits[MOST];
static struct tern_sampler sampler;

/* 4096 values, so that many are equal. */
static void make(void)
{
    struct tern_arena a = tern_arena_over(memory, sizeof memory);
    tern_sampler_lay_out(&a, &sampler, MOST);
    assert_false(a.failed);
    uint32_t rng = 1;
    for (uint32_t i = 0; i < MOST; i++) {
        rng = rng * 1664525 + 1013904223;
        logits[i] = (float)(rng >> 20) * 0x1p-7f;
    }
}

static tern_token choose(const tern_sampling *how, uint32_t position)
{
    tern_token token = -1;
    assert_int_equal(tern_sampler_choose(&sampler, how, logits, NULL, 0, position, &token, NULL),
                     TERN_OK);
    return token;
}

/* A bias of 0 takes the way over candidates from the start, none the one over the logits. */
static void logits_and_candidates_lead_to_the_same_token(void **state)
{
    (void)state;
    static const int32_t ks[] = {1, 40, 300, 0};
    const tern_bias none = {5, 0.0f};
    make();
    for (uint32_t i = 0; i < 40; i++) {
        tern_sampling how = {.temperature = i < 4 ? 0.0f : 5.0f, .top_k = ks[i % 4],
                             .top_p = i < 20 ? 1.0f : 0.5f, .typical_p = 1.0f,
                             .repeat_penalty = 1.0f, .seed = 7};
        const tern_token token = choose(&how, i);
        how.biases = &none;
        how.n_biases = 1;
        assert_int_equal(choose(&how, i), token);
    }
}

/* --- the engine's vectors --- */

static uint32_t n_highest, n_exp_row;

static float count_highest(const void *self, const float *x, size_t n)
{
    assert_ptr_equal(self, &n_highest);
    n_highest++;
    return tern_highest(x, n);
}

static void count_exp_row(const void *self, float *x, size_t n, float max, float t)
{
    assert_ptr_equal(self, &n_highest);
    n_exp_row += (uint32_t)n;
    tern_exp_row(x, n, max, t);
}

static void passes_over_the_vocabulary_are_left_to_the_given_math(void **state)
{
    (void)state;
    make();
    sampler.math = (struct tern_row_math){&n_highest, count_highest, count_exp_row};
    tern_sampling how = {.top_p = 1.0f, .typical_p = 1.0f, .repeat_penalty = 1.0f};
    choose(&how, 0);
    assert_int_equal(n_highest, (MOST + 255) / 256);
    assert_int_equal(n_exp_row, 0);
    float p = 0;
    assert_int_equal(tern_logprobs(&sampler, logits, 0, NULL, 3, &p, NULL), TERN_OK);
    assert_int_equal(n_exp_row, MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_and_candidates_lead_to_the_same_token),
        cmocka_unit_test(passes_over_the_vocabulary_are_left_to_the_given_math),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
