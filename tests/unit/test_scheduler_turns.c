#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace_rig.h"

/* Whose turn it is: rows of a step, prompts beside streams. */

/* Steps until each of the prompts has its first event, while the others generate. */
static void nobody_starves(const tern_limits *limits, int32_t n_prompt_logprobs,
                           uint32_t most_steps)
{
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[60];
    tern_seq seqs[6];
    bool began[6] = {false};
    trace_set_up(&rig, limits, 2);
    trace_prompt(p, 60, 3);
    tern_seq_options o = trace_greedy();
    for (uint32_t i = 0; i < 6; i++) {
        o.n_prompt_logprobs = i < 3 ? 0 : n_prompt_logprobs;
        assert_int_equal(tern_seq_open(rig.engine, &o, &seqs[i]), TERN_OK);
        assert_int_equal(tern_seq_feed(rig.engine, seqs[i], p + i, i < 3 ? 1 : 50), TERN_OK);
    }
    uint32_t n = 0, steps = 0;
    while (n < 6 && steps++ < most_steps) {
        const uint32_t from = log->n;
        (void)trace_drive(&rig, log, 16, 1);
        for (uint32_t i = from; i < log->n; i++)
            for (uint32_t k = 0; k < 6; k++)
                if (log->items[i].event.seq == seqs[k] && !began[k]) {
                    began[k] = true;
                    n++;
                }
    }
    assert_int_equal(n, 6);
    assert_true(rig.trace->most_rows <= limits->chunk);
    assert_null(rig.trace->fault);
    trace_close(&rig);
    free(log);
}

static void nobody_starves_however_small_a_step_is(void **state)
{
    (void)state;
    nobody_starves(&(tern_limits){.n_ctx = 500, .n_seqs = 6, .chunk = 1}, 0, 320);
    nobody_starves(&(tern_limits){.n_ctx = 500, .n_seqs = 6, .chunk = 2}, 0, 200);
    nobody_starves(&(tern_limits){.n_ctx = 500, .n_seqs = 6, .chunk = 8, .n_logit_rows = 1}, 0, 50);
    nobody_starves(&(tern_limits){.n_ctx = 500, .n_seqs = 6, .chunk = 64, .n_logit_rows = 2}, 0,
                   12);
    /* Each row of these prompts wants logits, and is an event: 49 steps for each of the three. */
    nobody_starves(&(tern_limits){.n_ctx = 500, .n_seqs = 6, .chunk = 64, .n_logit_rows = 2}, -1,
                   104);
    nobody_starves(&(tern_limits){.n_ctx = 500, .n_seqs = 6, .chunk = 64, .n_logit_rows = 1}, -1,
                   208);
}

/* Short prompts that never end come beside a long one and a stream; steps until the long one's
 * first token, and how many of the short ones have had theirs before. */
static uint32_t steps_beside_short_ones(uint32_t *n_before)
{
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[400];
    tern_seq shorts[2] = {0};
    uint32_t steps = 0;
    trace_prompt(p, 400, 3);
    trace_set_up(&rig, &(tern_limits){.n_ctx = 500, .n_seqs = 4, .chunk = 32}, 2);
    const tern_seq stream = trace_start(&rig, p + 9, 1, 0);
    (void)trace_drive(&rig, log, 16, 1);
    const tern_seq lengthy = trace_start(&rig, p, 400, 1);
    for (*n_before = 0; steps < 200 && trace_stop_of(log, lengthy) == TERN_STOP_NONE; steps++) {
        for (uint32_t i = 0; i < 2; i++) {
            if (shorts[i] && trace_stop_of(log, shorts[i]) == TERN_STOP_NONE)
                continue;
            if (shorts[i])
                tern_seq_close(rig.engine, shorts[i]);
            *n_before += shorts[i] != 0;
            shorts[i] = trace_start(&rig, p + 1 + steps, 30, 1);
        }
        (void)trace_drive(&rig, log, 16, 1);
        assert_int_equal(trace_matches(&rig, log, stream, p + 9, 1), steps + 2); /* each step */
    }
    assert_int_equal(trace_matches(&rig, log, lengthy, p, 400), 1);
    assert_null(rig.trace->fault);
    trace_close(&rig);
    free(log);
    return steps;
}

static void short_prompts_pass_a_long_one_but_not_for_ever(void **state)
{
    (void)state;
    uint32_t n_before = 0;
    const uint32_t steps = steps_beside_short_ones(&n_before);
    assert_in_range(n_before, 16, 28); /* some 2 * 400 rows of them */
    assert_in_range(steps, 30, 45);    /* 31 rows each, and then the long one's own 400 */
}

static void a_long_prompt_does_not_hold_up_those_that_generate(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[400];
    trace_prompt(p, 400, 3);
    trace_set_up(&rig, &(tern_limits){.n_ctx = 500, .n_seqs = 3, .chunk = 32}, 2);
    const tern_seq a = trace_start(&rig, p, 1, 0);
    (void)trace_drive(&rig, log, 16, 1);
    const tern_seq b = trace_start(&rig, p, 400, 1), c = trace_start(&rig, p + 5, 20, 1);
    (void)trace_drive(&rig, log, 16, 5);
    assert_int_equal(trace_matches(&rig, log, a, p, 1), 6);     /* one a step */
    assert_int_equal(trace_matches(&rig, log, c, p + 5, 20), 1); /* a share of the steps */
    assert_int_equal(trace_matches(&rig, log, b, p, 400), 0);
    (void)trace_drive(&rig, log, 16, 10);
    assert_int_equal(trace_matches(&rig, log, b, p, 400), 1);
    assert_true(rig.trace->most_rows == 32);
    trace_close(&rig);
    free(log);
}

/* Tokens in the log of a sequence, from item `from` on. */
static uint32_t tokens_since(const struct trace_log *log, uint32_t from, tern_seq seq)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < log->n; i++)
        n += log->items[i].event.seq == seq && log->items[i].event.kind == TERN_EVENT_TOKEN;
    return n;
}

static void whole_step(struct trace_rig *rig, struct trace_log *log)
{
    do
        (void)trace_drive(rig, log, 16, 1);
    while (tern_events_pending(rig->engine));
}

/* 31 streams, each on a script's tokens, and prompts that come and go beside them. */
static void each_stream_has_a_token_a_step_whatever_comes(void **state)
{
    (void)state;
    enum { STREAMS = 31, STEPS = 120 };
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[300], script[TRACE_MAX_CTX];
    tern_seq streams[STREAMS], prompt = 0;
    trace_prompt(p, 300, 7);
    trace_prompt(script, TRACE_MAX_CTX, 8);
    trace_set_up(&rig, &(tern_limits){.n_ctx = 500, .n_seqs = STREAMS + 1, .chunk = 64}, 2);
    rig.trace->script = script;
    rig.trace->n_script = TRACE_MAX_CTX;
    for (uint32_t i = 0; i < STREAMS; i++)
        streams[i] = trace_start(&rig, p + i, 1, 0);
    whole_step(&rig, log);
    uint32_t n_prompts = 0;
    for (uint32_t k = 1; k < STEPS; k++) {
        const uint32_t from = log->n;
        if (!prompt || trace_stop_of(log, prompt) != TERN_STOP_NONE) {
            if (prompt)
                tern_seq_close(rig.engine, prompt);
            n_prompts += prompt != 0;
            prompt = trace_start(&rig, p + k, 150, 1);
        }
        whole_step(&rig, log);
        for (uint32_t i = 0; i < STREAMS; i++)
            assert_int_equal(tokens_since(log, from, streams[i]), 1);
    }
    assert_in_range(n_prompts, STEPS / 6, STEPS / 4); /* 150 rows, 33 a step: 5 steps each */
    for (uint32_t i = 0, n = 1; i < log->n; i++)
        if (log->items[i].event.seq == streams[0])
            assert_int_equal(log->items[i].event.token, script[n++]);
    assert_null(rig.trace->fault);
    trace_close(&rig);
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_starves_however_small_a_step_is),
        cmocka_unit_test(short_prompts_pass_a_long_one_but_not_for_ever),
        cmocka_unit_test(a_long_prompt_does_not_hold_up_those_that_generate),
        cmocka_unit_test(each_stream_has_a_token_a_step_whatever_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
