#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace_rig.h"

struct fixture {
    struct trace_rig rig;
    struct trace_log log;
    tern_token p[200];
};

static const tern_limits usual = {.n_ctx = 64, .n_seqs = 3, .chunk = 16, .n_logprobs = 4,
                                 .n_logit_rows = 8};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    trace_prompt(f->p, 200, 7);
    trace_set_up(&f->rig, &usual, 2);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    const char *fault = f->rig.trace->fault ? f->rig.trace->fault : trace_check_kv(f->rig.engine);
    if (fault)
        print_message("%s\n", fault);
    trace_close(&f->rig);
    free(f);
    return fault != NULL;
}

static tern_seq open_greedy(struct fixture *f, uint32_t max_tokens)
{
    tern_seq_options o = trace_greedy();
    o.max_tokens = max_tokens;
    return trace_seq(&f->rig, &o);
}

static void run_all(struct fixture *f)
{
    assert_int_equal(trace_drive(&f->rig, &f->log, 16, 2000), TERN_AGAIN);
}

static tern_seq_info info_of(struct fixture *f, tern_seq seq)
{
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(f->rig.engine, seq, &info), TERN_OK);
    return info;
}

static void assert_refused(struct fixture *f, tern_status status, const char *text)
{
    assert_int_equal(status, TERN_BAD_ARGUMENT);
    assert_string_equal(tern_engine_error(f->rig.engine)->text, text);
    tern_engine_clear_error(f->rig.engine);
}

/* --- handles --- */

static void a_stale_handle_is_refused(void **state)
{
    struct fixture *f = *state;
    tern_engine *e = f->rig.engine;
    const tern_seq old = open_greedy(f, 1);
    tern_seq_close(e, old);
    const tern_seq now = open_greedy(f, 1);
    assert_int_not_equal(old, now);
    tern_seq_info info;
    tern_seq fork;
    assert_int_equal(tern_seq_describe(e, old, &info), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_seq_feed(e, old, f->p, 3), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_seq_trim(e, old, 0), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_seq_fork(e, old, 0, &fork), TERN_BAD_ARGUMENT);
    tern_seq_close(e, old);
    tern_seq_cancel(e, old);
    tern_seq_cancel(e, 0);
    tern_seq_cancel(e, 0xffffffff);
    tern_seq_cancel(e, 3); /* a slot past the last */
    assert_int_equal(tern_seq_feed(e, now, f->p, 3), TERN_OK);
    run_all(f);
    assert_int_equal(trace_stop_of(&f->log, now), TERN_STOP_LENGTH);
}

static void one_sequence_too_many_is_told_to_wait(void **state)
{
    struct fixture *f = *state;
    tern_seq seqs[3], more;
    const tern_seq_options o = trace_greedy();
    for (int i = 0; i < 3; i++)
        seqs[i] = open_greedy(f, 1);
    assert_int_equal(tern_seq_open(f->rig.engine, &o, &more), TERN_AGAIN);
    assert_int_equal(tern_seq_fork(f->rig.engine, seqs[0], 0, &more), TERN_AGAIN);
    assert_int_equal(tern_engine_error(f->rig.engine)->status, TERN_OK);
    tern_seq_close(f->rig.engine, seqs[1]);
    assert_int_equal(tern_seq_open(f->rig.engine, &o, &more), TERN_OK);
}

static void options_out_of_range_are_refused_by_name(void **state)
{
    struct fixture *f = *state;
    tern_engine *e = f->rig.engine;
    tern_seq seq;
    tern_seq_options o = trace_greedy();
    o.n_logprobs = 5;
    assert_refused(f, tern_seq_open(e, &o, &seq), "n_logprobs: 5, at most 4 of the limits");
    o = trace_greedy();
    o.n_prompt_logprobs = -2;
    assert_refused(f, tern_seq_open(e, &o, &seq),
                   "n_prompt_logprobs: -2, from -1 to 4 of the limits");
    o = trace_greedy();
    o.n_stops = 33;
    assert_refused(f, tern_seq_open(e, &o, &seq), "stop strings: 33, at most 32");
    o = trace_greedy();
    o.n_stops = 1;
    assert_refused(f, tern_seq_open(e, &o, &seq), "options: a list is NULL");
    o = trace_greedy();
    o.sampling.top_p = 2;
    assert_int_equal(tern_seq_open(e, &o, &seq), TERN_BAD_ARGUMENT);
    tern_engine_clear_error(e);
    assert_refused(f, tern_seq_open(e, NULL, &seq), "open: an argument is NULL");
    for (int i = 0; i < 3; i++) /* none of these took a slot */
        (void)open_greedy(f, 1);
}

/* --- feeding --- */

static void what_does_not_fit_the_context_is_refused_with_both_counts(void **state)
{
    struct fixture *f = *state;
    tern_engine *e = f->rig.engine;
    const tern_seq seq = open_greedy(f, 0);
    assert_refused(f, tern_seq_feed(e, seq, f->p, 64),
                   "prompt: 64 tokens after 0 held, at most 63 in a context of 64");
    assert_refused(f, tern_seq_feed(e, seq, f->p, SIZE_MAX / 4),
                   "prompt: 4611686018427387903 tokens after 0 held, at most 63 in a context "
                   "of 64");
    assert_int_equal(info_of(f, seq).n_tokens, 0);
    assert_int_equal(tern_seq_feed(e, seq, f->p, 63), TERN_OK);
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, seq, f->p, 63), 1);
    assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_CONTEXT);
    assert_refused(f, tern_seq_feed(e, seq, f->p, 0),
                   "prompt: 0 tokens after 64 held, at most 63 in a context of 64");
}

static void prompts_around_the_context_end_in_bounded_steps(void **state)
{
    struct fixture *f = *state;
    for (uint32_t n = 59; n <= 63; n++) {
        const tern_seq seq = open_greedy(f, 0);
        assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, n), TERN_OK);
        run_all(f);
        assert_int_equal(trace_matches(&f->rig, &f->log, seq, f->p, n), 64 - n);
        assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_CONTEXT);
        tern_seq_close(f->rig.engine, seq);
    }
}

static void a_prompt_alone_may_fill_the_context(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = trace_greedy();
    o.prefill_only = true;
    for (int again = 0; again < 2; again++) { /* the second finds all of it */
        const tern_seq seq = trace_seq(&f->rig, &o);
        assert_refused(f, tern_seq_feed(f->rig.engine, seq, f->p, 65),
                       "prompt: 65 tokens after 0 held, at most 64 in a context of 64");
        assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 64), TERN_OK);
        run_all(f);
        assert_int_equal(trace_matches(&f->rig, &f->log, seq, f->p, 64), 0);
        assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_LENGTH);
        assert_int_equal(info_of(f, seq).n_computed, 64);
        assert_int_equal(info_of(f, seq).n_cached, again ? 64 : 0);
        tern_seq_close(f->rig.engine, seq);
    }
}

static void tokens_outside_the_vocabulary_are_refused(void **state)
{
    struct fixture *f = *state;
    const tern_token low[] = {3, -1}, high[] = {3, 4, TRACE_VOCAB};
    const tern_seq seq = open_greedy(f, 0);
    assert_refused(f, tern_seq_feed(f->rig.engine, seq, low, 2), "token -1 at 1, vocabulary 97");
    assert_refused(f, tern_seq_feed(f->rig.engine, seq, high, 3), "token 97 at 2, vocabulary 97");
    assert_refused(f, tern_seq_feed(f->rig.engine, seq, NULL, 3), "feed: an argument is NULL");
    assert_refused(f, tern_seq_feed(f->rig.engine, seq, f->p, 0), "feed: 0 tokens, at least 1");
    assert_int_equal(info_of(f, seq).n_tokens, 0);
}

static void a_sequence_is_fed_in_parts_but_not_while_it_generates(void **state)
{
    struct fixture *f = *state;
    const tern_seq seq = open_greedy(f, 5);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 20), TERN_OK);
    (void)trace_drive(&f->rig, &f->log, 16, 1);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p + 20, 10), TERN_OK);
    (void)trace_drive(&f->rig, &f->log, 16, 1);
    assert_int_equal(info_of(f, seq).n_generated, 1);
    assert_refused(f, tern_seq_feed(f->rig.engine, seq, f->p, 3),
                   "feed: the sequence is generating");
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, seq, f->p, 30), 5);
}

static void a_second_turn_continues_the_first(void **state)
{
    struct fixture *f = *state;
    const tern_seq seq = open_greedy(f, 5);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 20), TERN_OK);
    run_all(f);
    const uint64_t rows = f->rig.trace->n_rows;
    tern_token all[30];
    memcpy(all, f->p, sizeof all);
    for (uint32_t i = 0, n = 20; i < f->log.n; i++)
        if (f->log.items[i].event.kind == TERN_EVENT_TOKEN)
            all[n++] = f->log.items[i].event.token;
    memcpy(all + 25, f->p, 5 * sizeof *all);
    f->log.n = 0;
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 5), TERN_OK);
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, seq, all, 30), 5);
    assert_int_equal(info_of(f, seq).n_generated, 5);
    assert_int_equal(f->rig.trace->n_rows - rows, 1 + 5 + 4); /* nothing is computed twice */
}

static void feeding_nothing_continues_what_is_held(void **state)
{
    struct fixture *f = *state;
    const tern_seq seq = open_greedy(f, 5);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 32), TERN_OK);
    run_all(f);
    assert_int_equal(tern_seq_trim(f->rig.engine, seq, 32), TERN_OK);
    f->log.n = 0;
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, NULL, 0), TERN_OK);
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, seq, f->p, 32), 5);
}

static void options_are_changed_between_feeds_without_computing_anew(void **state)
{
    struct fixture *f = *state;
    const tern_seq seq = open_greedy(f, 5);
    tern_seq_options o = trace_greedy();
    o.max_tokens = 2;
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 20), TERN_OK);
    assert_refused(f, tern_seq_set_options(f->rig.engine, seq, &o), "options: the sequence runs");
    run_all(f);
    const uint64_t rows = f->rig.trace->n_rows;
    assert_int_equal(tern_seq_set_options(f->rig.engine, seq, &o), TERN_OK);
    f->log.n = 0;
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 5), TERN_OK);
    run_all(f);
    assert_int_equal(info_of(f, seq).n_generated, 2);
    assert_int_equal(f->rig.trace->n_rows - rows, 1 + 5 + 1);
    o.n_logprobs = 5;
    assert_refused(f, tern_seq_set_options(f->rig.engine, seq, &o),
                   "n_logprobs: 5, at most 4 of the limits");
}

/* --- forks, trims, ends --- */

static void forks_share_blocks_and_write_to_their_own(void **state)
{
    struct fixture *f = *state;
    const tern_seq a = open_greedy(f, 12);
    tern_seq b, c;
    assert_int_equal(tern_seq_feed(f->rig.engine, a, f->p, 20), TERN_OK);
    (void)trace_drive(&f->rig, &f->log, 16, 3); /* two tokens are there */
    const uint32_t before = f->log.n;
    const uint32_t n_free = f->rig.engine->parts.kv.pools[0].n_free;
    assert_int_equal(tern_seq_fork(f->rig.engine, a, 1, &b), TERN_OK);
    assert_int_equal(tern_seq_fork(f->rig.engine, a, 2, &c), TERN_OK);
    assert_int_equal(f->rig.engine->parts.kv.pools[0].n_free, n_free);
    assert_true(info_of(f, b).running);
    assert_int_equal(info_of(f, b).n_tokens, info_of(f, a).n_tokens);
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, a, f->p, 20), 12);
    for (uint32_t i = 0; i < before; i++) { /* the forks' events begin where they began */
        f->log.items[i].event.seq = b;
    }
    assert_int_equal(trace_matches(&f->rig, &f->log, b, f->p, 20), 12);
    assert_true(f->rig.trace->n_copies > 0);
    assert_int_equal(trace_stop_of(&f->log, c), TERN_STOP_LENGTH);
}

static void a_fork_samples_its_own_stream(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = trace_greedy();
    o.sampling.temperature = 2;
    o.sampling.seed = 5;
    o.max_tokens = 20;
    const tern_seq a = trace_seq(&f->rig, &o);
    tern_seq b, c;
    assert_int_equal(tern_seq_feed(f->rig.engine, a, f->p, 20), TERN_OK);
    assert_int_equal(tern_seq_fork(f->rig.engine, a, 0, &b), TERN_OK);
    assert_int_equal(tern_seq_fork(f->rig.engine, a, 9, &c), TERN_OK);
    run_all(f);
    tern_token got[3][20];
    uint32_t n[3] = {0};
    for (uint32_t i = 0; i < f->log.n; i++)
        if (f->log.items[i].event.kind == TERN_EVENT_TOKEN) {
            const tern_seq seq = f->log.items[i].event.seq;
            const int k = seq == a ? 0 : seq == b ? 1 : 2;
            got[k][n[k]++] = f->log.items[i].event.token;
        }
    assert_memory_equal(got[0], got[1], sizeof got[0]); /* the same stream */
    assert_true(memcmp(got[0], got[2], sizeof got[0]) != 0);
}

static void a_trim_at_every_length_leaves_what_was_there(void **state)
{
    struct fixture *f = *state;
    for (uint32_t keep = 0; keep <= 45; keep++) {
        const tern_seq seq = open_greedy(f, 5);
        assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 40), TERN_OK);
        run_all(f);
        assert_int_equal(tern_seq_trim(f->rig.engine, seq, keep), TERN_OK);
        assert_int_equal(info_of(f, seq).n_tokens, keep);
        assert_in_range(info_of(f, seq).n_computed, 0, keep);
        assert_null(trace_check_kv(f->rig.engine));
        if (keep <= 40) {
            tern_token text[64];
            memcpy(text, f->p, keep * sizeof *text);
            memcpy(text + keep, f->p + 100, 10 * sizeof *text);
            f->log.n = 0;
            assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p + 100, 10), TERN_OK);
            run_all(f);
            assert_int_equal(trace_matches(&f->rig, &f->log, seq, text, keep + 10), 5);
        }
        tern_seq_close(f->rig.engine, seq);
    }
    const tern_seq seq = open_greedy(f, 5);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 10), TERN_OK);
    assert_refused(f, tern_seq_trim(f->rig.engine, seq, 11), "trim: to 11 tokens of 10");
    assert_int_equal(tern_seq_trim(f->rig.engine, seq, 4), TERN_OK);
    assert_false(info_of(f, seq).running);
}

static void a_cancelled_sequence_ends_with_the_next_step(void **state)
{
    struct fixture *f = *state;
    const tern_seq a = open_greedy(f, 0), b = open_greedy(f, 10);
    assert_int_equal(tern_seq_feed(f->rig.engine, a, f->p, 10), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, b, f->p + 1, 10), TERN_OK);
    (void)trace_drive(&f->rig, &f->log, 16, 4);
    const int n = trace_matches(&f->rig, &f->log, a, f->p, 10);
    tern_seq_cancel(f->rig.engine, a);
    (void)trace_drive(&f->rig, &f->log, 16, 1);
    assert_int_equal(trace_stop_of(&f->log, a), TERN_STOP_CANCELLED);
    assert_int_equal(trace_matches(&f->rig, &f->log, a, f->p, 10), n);
    assert_false(info_of(f, a).running);
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, b, f->p + 1, 10), 10);
    f->log.n = 0; /* and it may go on */
    assert_int_equal(tern_seq_trim(f->rig.engine, a, 10), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, a, NULL, 0), TERN_OK);
    run_all(f);
    assert_int_equal(trace_matches(&f->rig, &f->log, a, f->p, 10), 54);
}

static void closing_drops_what_was_not_taken(void **state)
{
    struct fixture *f = *state;
    tern_event event;
    size_t n;
    const tern_seq a = open_greedy(f, 1), b = open_greedy(f, 1);
    assert_int_equal(tern_seq_feed(f->rig.engine, a, f->p, 5), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, b, f->p, 5), TERN_OK);
    assert_int_equal(tern_step(f->rig.engine, &event, 1, &n), TERN_OK);
    assert_int_equal(event.seq, a);
    tern_seq_close(f->rig.engine, a);
    assert_int_equal(tern_step(f->rig.engine, &event, 1, &n), TERN_OK);
    assert_int_equal(event.seq, b);
    assert_int_equal(event.kind, TERN_EVENT_TOKEN);
}

static void nan_ends_that_sequence_alone(void **state)
{
    struct fixture *f = *state;
    f->rig.trace->nan_token = f->p[60];
    const tern_token bad[] = {f->p[60]};
    tern_token good[10];
    for (int i = 0, n = 0; n < 10; i++)
        if (f->p[i] != f->p[60])
            good[n++] = f->p[i];
    const tern_seq a = open_greedy(f, 5), b = open_greedy(f, 1);
    assert_int_equal(tern_seq_feed(f->rig.engine, a, bad, 1), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, b, good, 10), TERN_OK);
    run_all(f);
    assert_int_equal(trace_stop_of(&f->log, a), TERN_STOP_ERROR);
    assert_int_equal(trace_stop_of(&f->log, b), TERN_STOP_LENGTH);
    assert_string_equal(f->log.items[0].error, "logits: NaN at token 5");
    assert_int_equal(tern_engine_error(f->rig.engine)->status, TERN_OK);
}

static void nan_in_a_prompt_ends_it_once(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = trace_greedy();
    tern_token p[12] = {0};
    o.n_prompt_logprobs = 2;
    p[5] = p[6] = p[7] = 1;
    f->rig.trace->nan_token = 1;
    const tern_seq seq = trace_seq(&f->rig, &o);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, p, 12), TERN_OK);
    run_all(f);
    assert_int_equal(f->log.n, 5 + 1);
    assert_int_equal(f->log.items[4].event.position, 5);
    assert_int_equal(f->log.items[5].event.kind, TERN_EVENT_DONE);
    assert_int_equal(f->log.items[5].event.stop, TERN_STOP_ERROR);
}

/* --- log-probabilities --- */

static void every_prompt_token_is_reported_once_in_order(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = trace_greedy();
    o.n_prompt_logprobs = 3;
    o.n_logprobs = 2;
    o.max_tokens = 3;
    for (int again = 0; again < 2; again++) { /* nothing is found: their logits are needed */
        f->log.n = 0;
        const tern_seq seq = trace_seq(&f->rig, &o);
        assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 40), TERN_OK);
        run_all(f);
        assert_int_equal(f->log.n, 39 + 3 + 1);
        for (uint32_t i = 0; i < 39; i++) {
            assert_int_equal(f->log.items[i].event.kind, TERN_EVENT_PROMPT);
            assert_int_equal(f->log.items[i].event.position, i + 1);
            assert_int_equal(f->log.items[i].event.token, f->p[i + 1]);
            assert_int_equal(f->log.items[i].event.n_logprobs, 3);
        }
        assert_int_equal(f->log.items[39].event.kind, TERN_EVENT_TOKEN);
        assert_int_equal(f->log.items[39].event.n_logprobs, 2);
        assert_int_equal(info_of(f, seq).n_cached, 0);
        /* The next turn's first token follows the last that was generated. */
        f->log.n = 0;
        assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 4), TERN_OK);
        run_all(f);
        assert_int_equal(f->log.items[0].event.position, 43);
        assert_int_equal(f->log.items[3].event.position, 46);
        assert_int_equal(f->log.items[4].event.kind, TERN_EVENT_TOKEN);
        tern_seq_close(f->rig.engine, seq);
    }
}

static void a_prompt_can_be_scored_without_candidates(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = trace_greedy();
    o.n_prompt_logprobs = -1;
    o.prefill_only = true;
    const tern_seq seq = trace_seq(&f->rig, &o);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p, 30), TERN_OK);
    run_all(f);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, f->p + 30, 34), TERN_OK);
    run_all(f);
    assert_int_equal(f->log.n, 29 + 1 + 34 + 1);
    for (uint32_t i = 0, at = 1; i < f->log.n; i++)
        if (f->log.items[i].event.kind == TERN_EVENT_PROMPT) {
            assert_int_equal(f->log.items[i].event.position, at);
            assert_int_equal(f->log.items[i].event.n_logprobs, 0);
            assert_true(f->log.items[i].event.logprob < 0);
            at++;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_stale_handle_is_refused),
        TEST(one_sequence_too_many_is_told_to_wait),
        TEST(options_out_of_range_are_refused_by_name),
        TEST(what_does_not_fit_the_context_is_refused_with_both_counts),
        TEST(prompts_around_the_context_end_in_bounded_steps),
        TEST(a_prompt_alone_may_fill_the_context),
        TEST(tokens_outside_the_vocabulary_are_refused),
        TEST(a_sequence_is_fed_in_parts_but_not_while_it_generates),
        TEST(a_second_turn_continues_the_first),
        TEST(feeding_nothing_continues_what_is_held),
        TEST(options_are_changed_between_feeds_without_computing_anew),
        TEST(forks_share_blocks_and_write_to_their_own),
        TEST(a_fork_samples_its_own_stream),
        TEST(a_trim_at_every_length_leaves_what_was_there),
        TEST(a_cancelled_sequence_ends_with_the_next_step),
        TEST(closing_drops_what_was_not_taken),
        TEST(nan_ends_that_sequence_alone),
        TEST(nan_in_a_prompt_ends_it_once),
        TEST(every_prompt_token_is_reported_once_in_order),
        TEST(a_prompt_can_be_scored_without_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
