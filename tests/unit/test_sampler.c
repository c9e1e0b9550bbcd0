#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/arena.h"
#include "runtime/philox.h"
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

static void a_draw_depends_on_seed_stream_and_position_alone(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {0, 1, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX};
    float logits[64] = {0};
    uint32_t same = 0;
    make(64);
    tern_sampling how = plain(), other = plain();
    for (size_t s = 0; s < 5; s++)
        for (uint32_t position = 0; position < 64; position++) {
            how.seed = seeds[s];
            const tern_token token = choose(&how, logits, position);
            choose(&other, logits, 99);
            assert_int_equal(choose(&how, logits, position), token);
            other.seed = seeds[s] ^ UINT64_C(1) << (position % 64);
            same += choose(&other, logits, position) == token;
            how.stream ^= UINT64_C(1) << 40;
            same += choose(&how, logits, position) == token;
            how.stream ^= UINT64_C(1) << 40;
            same += choose(&how, logits, position + 1) == token;
        }
    assert_in_range(same, 1, 40); /* 960 chances of 1 in 64 */
}

/* --- the chain against one in double, written by sorting --- */

struct share { double logit, p; int token; };

static int by_logit(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    return a->logit != b->logit ? (a->logit < b->logit ? 1 : -1) : a->token - b->token;
}

static void softmax(struct share *s, int n)
{
    double sum = 0, best = -INFINITY;
    for (int i = 0; i < n; i++)
        best = fmax(best, s[i].logit);
    for (int i = 0; i < n; i++)
        sum += s[i].p = exp(s[i].logit - best);
    for (int i = 0; i < n; i++)
        s[i].p /= sum;
}

static double center;

static int by_distance(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    const double d = fabs(-log(a->p) - center) - fabs(-log(b->p) - center);
    return d < 0 ? -1 : d > 0 ? 1 : a->token - b->token;
}

static int keep_until(const struct share *s, int n, double part)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if ((sum += s[i].p) >= part)
            return i + 1;
    return n;
}

/* Probabilities of n tokens into p. */
static void expected(const float *logits, int n_vocab, const tern_sampling *how, double *p)
{
    struct share s[64];
    int n = n_vocab;
    for (int i = 0; i < n; i++)
        s[i] = (struct share){logits[i], 0, i};
    qsort(s, (size_t)n, sizeof *s, by_logit);
    if (how->top_k > 0 && how->top_k < n)
        n = how->top_k;
    if (how->typical_p < 1) {
        softmax(s, n);
        center = 0;
        for (int i = 0; i < n; i++)
            center -= s[i].p * log(s[i].p);
        qsort(s, (size_t)n, sizeof *s, by_distance);
        n = keep_until(s, n, how->typical_p);
        qsort(s, (size_t)n, sizeof *s, by_logit);
    }
    softmax(s, n);
    if (how->top_p < 1)
        n = keep_until(s, n, how->top_p);
    int kept = 0;
    while (kept < n && s[kept].p >= how->min_p * s[0].p)
        kept++;
    for (int i = 0; i < kept; i++)
        s[i].logit /= how->temperature;
    softmax(s, kept);
    for (int i = 0; i < n_vocab; i++)
        p[i] = 0;
    for (int i = 0; i < kept; i++)
        p[s[i].token] = s[i].p;
}

static void check_distribution(const float *logits, int n_vocab, const tern_sampling *how)
{
    enum { DRAWS = 20000 };
    static double p[64];
    static uint32_t seen[64];
    double chi = 0, rest_expected = 0, rest_seen = 0;
    int freedom = -1;
    expected(logits, n_vocab, how, p);
    memset(seen, 0, sizeof seen);
    for (uint32_t position = 0; position < DRAWS; position++)
        seen[choose(how, logits, position)]++;
    for (int i = 0; i < n_vocab; i++) {
        if (p[i] == 0)
            assert_int_equal(seen[i], 0);
        if (p[i] * DRAWS < 5) { /* too few to count alone */
            rest_expected += p[i] * DRAWS;
            rest_seen += seen[i];
            continue;
        }
        chi += pow(seen[i] - p[i] * DRAWS, 2) / (p[i] * DRAWS);
        freedom++;
    }
    if (rest_expected >= 5) {
        chi += pow(rest_seen - rest_expected, 2) / rest_expected;
        freedom++;
    }
    assert_true(freedom >= 0);
    assert_true(chi <= freedom + 5 * sqrt(2.0 * freedom) + 8);
}

static void draws_follow_the_distribution_of_the_chain(void **state)
{
    (void)state;
    float logits[48];
    make(48);
    for (int i = 0; i < 48; i++) /* a permutation of a smooth descent, no ties */
        logits[i] = 3.0f - 0.21f * (float)(i * 29 % 48) - 0.002f * (float)(i * i % 31);
    for (int mask = 0; mask < 32; mask++) {
        tern_sampling how = plain();
        how.seed = (uint64_t)mask;
        how.top_k = mask & 1 ? 20 : 0;
        how.typical_p = mask & 2 ? 0.8f : 1.0f;
        how.top_p = mask & 4 ? 0.9f : 1.0f;
        how.min_p = mask & 8 ? 0.1f : 0.0f;
        how.temperature = mask & 16 ? 0.6f : 1.4f;
        check_distribution(logits, 48, &how);
    }
}

/* 40001 tokens, one with half of the mass: the other half must not be lost beside it. */
static void many_small_probabilities_keep_their_mass(void **state)
{
    (void)state;
    static float logits[MOST];
    uint32_t first = 0;
    make(MOST);
    const tern_sampling how = plain();
    logits[0] = logf(MOST - 1);
    for (uint32_t position = 0; position < 2000; position++)
        first += choose(&how, logits, position) == 0;
    assert_in_range(first, 880, 1120);

    /* 40000 times 2^-26, each lost in a sum that is 1, are 1 in 1678 together. */
    uint32_t n_high = 0;
    logits[0] = 26 * logf(2.0f);
    for (uint32_t position = 0; position < 20000; position++)
        if (tern_philox_uniform(how.seed, how.stream, position) > 0.9995f) {
            assert_int_not_equal(choose(&how, logits, position), 0);
            n_high++;
        }
    assert_in_range(n_high, 1, 30);
}

/* --- each filter, by its support --- */

static uint64_t support(const tern_sampling *how, const float *logits)
{
    uint64_t seen = 0;
    for (uint32_t position = 0; position < 4000; position++)
        seen |= UINT64_C(1) << choose(how, logits, position);
    return seen;
}

static void filters_keep_what_they_name(void **state)
{
    (void)state;
    /* p = 0.4 0.3 0.2 0.1 */
    const float logits[4] = {logf(0.2f), logf(0.4f), logf(0.1f), logf(0.3f)};
    make(4);
    tern_sampling how = plain();
    assert_int_equal(support(&how, logits), 0xf);
    how.top_k = 2;
    assert_int_equal(support(&how, logits), 0xa);
    how = plain();
    how.top_p = 0.69f;
    assert_int_equal(support(&how, logits), 0xa);
    how.top_p = 0.71f;
    assert_int_equal(support(&how, logits), 0xb);
    how = plain();
    how.min_p = 0.49f;
    assert_int_equal(support(&how, logits), 0xb);
    how.min_p = 0.51f;
    assert_int_equal(support(&how, logits), 0xa);
    /* Entropy 1.280; surprises 0.916 1.204 1.609 2.303: nearest is 0.3, then 0.2, then 0.4. */
    how = plain();
    how.typical_p = 0.25f;
    assert_int_equal(support(&how, logits), 0x8);
    how.typical_p = 0.45f;
    assert_int_equal(support(&how, logits), 0x9);
    how.typical_p = 0.85f;
    assert_int_equal(support(&how, logits), 0xb);
    /* After top-k 2 the shares are 4/7 and 3/7: top-p counts those. */
    how = plain();
    how.top_k = 2;
    how.top_p = 0.5f;
    assert_int_equal(support(&how, logits), 0x2);
}

static void ties_go_to_the_lower_id(void **state)
{
    (void)state;
    const float logits[8] = {0, 1, 1, 0, 1, 1, 0, 1};
    make(8);
    tern_sampling how = plain();
    how.top_k = 3;
    assert_int_equal(support(&how, logits), 0x16);
    how.top_k = 0;
    how.top_p = 0.4f;
    assert_int_equal(support(&how, logits), 0x16);
    how.temperature = 0;
    assert_int_equal(choose(&how, logits, 0), 1);
}

static void no_setting_leaves_nothing_and_the_best_stays_reachable(void **state)
{
    (void)state;
    static const int32_t ks[] = {0, -1, 1, 5, 6, 7, 9999999, INT32_MIN, INT32_MAX};
    static const float parts[] = {0.0f, 1e-9f, 0.5f, 1.0f};
    const float logits[6] = {-1, 4, 2, -50, 4.5f, -INFINITY};
    make(6);
    for (size_t k = 0; k < 9; k++)
        for (size_t i = 0; i < 64; i++) {
            tern_sampling how = plain();
            how.top_k = ks[k];
            how.top_p = parts[i % 4];
            how.min_p = parts[i / 4 % 4];
            how.typical_p = parts[i / 16];
            uint32_t best = 0, banned = 0;
            for (uint32_t position = 0; position < 100; position++) {
                const tern_token token = choose(&how, logits, position);
                best += token == 4;
                banned += token == 5;
            }
            assert_int_equal(banned, 0);
            if (ks[k] == 1 || how.top_p < 0.1f || how.min_p == 1.0f)
                assert_true(best == 100 || how.typical_p < 1.0f);
            if (how.typical_p == 1.0f || ks[k] == 1)
                assert_in_range(best, 20, 100);
        }
}

static void extreme_temperatures_are_greedy_or_flat(void **state)
{
    (void)state;
    static const float cold[] = {0, -0.0f, 1e-38f, 1e-7f, 1e-6f, 1e-4f, -1, -FLT_MAX};
    static const float hot[] = {1e4f, 1e38f, FLT_MAX};
    const float logits[4] = {60000, -60000, 59999, 0};
    make(4);
    tern_sampling how = plain();
    for (size_t i = 0; i < sizeof cold / sizeof cold[0]; i++) {
        how.temperature = cold[i];
        assert_int_equal(support(&how, logits), 1);
    }
    /* Of two that are equal, from the limit on either may come. */
    const float equal[4] = {1, 1, 0, 0};
    how.temperature = 0x1.0c6f78p-20f; /* the float below 1e-6 */
    assert_int_equal(support(&how, equal), 1);
    how.temperature = 1e-6f;
    assert_int_equal(support(&how, equal), 3);
    for (size_t i = 0; i < sizeof hot / sizeof hot[0]; i++) {
        how.temperature = hot[i];
        assert_int_equal(support(&how, logits) & 5, 5);
    }
    assert_int_equal(support(&how, logits), 0xf);
}

/* --- penalties and biases: seen through greedy choices of exact values --- */

static tern_token greedy(const tern_sampling *how, const float *logits, const tern_token *history,
                         uint32_t n)
{
    tern_token token = -1;
    tern_error err = {0};
    assert_int_equal(tern_sampling_check(how, sampler.n_vocab, &err), TERN_OK);
    assert_int_equal(tern_sampler_choose(&sampler, how, logits, history, n, n, &token, &err),
                     TERN_OK);
    for (uint32_t i = 0; i < sampler.n_vocab; i++)
        assert_int_equal(sampler.counts[i], 0);
    return token;
}

static float candidate_of(tern_token token)
{
    for (uint32_t i = 0; i < sampler.n_vocab; i++)
        if (sampler.candidates[i].token == token)
            return sampler.candidates[i].logit;
    return NAN;
}

static void penalties_count_each_distinct_token_once(void **state)
{
    (void)state;
    const float logits[8] = {4, -4, 0, 3, -INFINITY, 1, 2, -1};
    const tern_token history[] = {3, 0, 1, 2, 0, 4, 0, -1, 8, INT32_MAX, 1};
    make(8);
    tern_sampling how = plain();
    how.temperature = 0;
    how.repeat_penalty = 2;
    assert_int_equal(greedy(&how, logits, history, 11), 0); /* 4 / 2 ties with 6, lower id */
    assert_true(candidate_of(0) == 2 && candidate_of(1) == -8 && candidate_of(2) == 0);
    assert_true(candidate_of(3) == 1.5f && candidate_of(4) == -INFINITY && candidate_of(6) == 2);

    how.repeat_penalty = 0.5f;
    greedy(&how, logits, history, 11);
    assert_true(candidate_of(0) == 8 && candidate_of(1) == -2 && candidate_of(5) == 1);

    how.repeat_penalty = 1;
    how.frequency_penalty = 0.5f;
    how.presence_penalty = 0.25f;
    greedy(&how, logits, history, 11);
    assert_true(candidate_of(0) == 4 - 1.75f && candidate_of(1) == -5.25f);
    assert_true(candidate_of(2) == -0.75f && candidate_of(7) == -1);

    how.repeat_penalty = 2; /* the division first, then the subtraction */
    greedy(&how, logits, history, 11);
    assert_true(candidate_of(0) == 2 - 1.75f);
}

static void penalties_look_back_as_far_as_told(void **state)
{
    (void)state;
    static tern_token history[70000];
    const float logits[4] = {8, 8, 8, 8};
    make(4);
    tern_sampling how = plain();
    how.temperature = 0;
    how.frequency_penalty = 1;
    for (uint32_t i = 0; i < 70000; i++)
        history[i] = 3;
    memcpy(history + 69997, (const tern_token[]){0, 1, 1}, 3 * sizeof *history);
    how.repeat_last_n = 0;
    greedy(&how, logits, history, 70000);
    assert_true(candidate_of(1) == 8);
    how.repeat_last_n = 2;
    assert_int_equal(greedy(&how, logits, history, 70000), 0);
    assert_true(candidate_of(0) == 8 && candidate_of(1) == 6);
    how.repeat_last_n = 1000000;
    assert_int_equal(greedy(&how, logits, history, 70000), 2);
    assert_true(candidate_of(3) == 8 - 65535.0f); /* counts saturate */
    how.repeat_last_n = -1;
    assert_int_equal(greedy(&how, logits, history, 70000), 2);
    assert_true(candidate_of(3) == 8 - 65535.0f);
    greedy(&how, logits, NULL, 0);
}

static void penalties_leave_finite_logits_finite(void **state)
{
    (void)state;
    const float logits[2] = {3e38f, -3e38f};
    const tern_token history[] = {0, 1};
    make(2);
    tern_sampling how = plain();
    how.temperature = 0;
    how.repeat_penalty = 1e-30f;
    assert_int_equal(greedy(&how, logits, history, 2), 0);
    how.repeat_penalty = 1e30f;
    assert_int_equal(greedy(&how, logits, history, 2), 0);
    how.temperature = 1;
    assert_int_equal(greedy(&how, logits, history, 2), 0);
}

static void biases_are_added_before_penalties_and_may_ban(void **state)
{
    (void)state;
    const float logits[4] = {1, 2, 3, -4};
    const tern_token history[] = {3};
    tern_bias biases[] = {{3, 8}, {2, -INFINITY}, {1, FLT_MAX}, {0, -2}};
    make(4);
    tern_sampling how = plain();
    how.temperature = 0;
    how.repeat_penalty = 2;
    how.biases = biases;
    how.n_biases = 1;
    assert_int_equal(greedy(&how, logits, history, 1), 2);
    assert_true(candidate_of(3) == 2); /* (-4 + 8) / 2 */
    how.n_biases = 4;
    assert_int_equal(greedy(&how, logits, history, 1), 1);
    assert_true(candidate_of(2) == -INFINITY && candidate_of(0) == -1);
    for (int i = 0; i < 4; i++)
        biases[i].bias = -INFINITY;
    tern_token token;
    tern_error err = {0};
    assert_int_equal(tern_sampler_choose(&sampler, &how, logits, history, 1, 1, &token, &err),
                     TERN_BAD_ARGUMENT);
    assert_string_equal(err.text, "logits: none of 4 is finite");
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
    assert_int_equal(tern_logprobs(&sampler, logits, 1001, best, -1, NULL, NULL),
                     TERN_BAD_ARGUMENT);
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
        cmocka_unit_test(a_draw_depends_on_seed_stream_and_position_alone),
        cmocka_unit_test(draws_follow_the_distribution_of_the_chain),
        cmocka_unit_test(many_small_probabilities_keep_their_mass),
        cmocka_unit_test(filters_keep_what_they_name),
        cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(no_setting_leaves_nothing_and_the_best_stays_reachable),
        cmocka_unit_test(extreme_temperatures_are_greedy_or_flat),
        cmocka_unit_test(penalties_count_each_distinct_token_once),
        cmocka_unit_test(penalties_look_back_as_far_as_told),
        cmocka_unit_test(penalties_leave_finite_logits_finite),
        cmocka_unit_test(biases_are_added_before_penalties_and_may_ban),
        cmocka_unit_test(logits_that_are_no_numbers_are_named),
        cmocka_unit_test(logprobs_are_those_of_the_raw_distribution),
        cmocka_unit_test(any_vocabulary_size_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
