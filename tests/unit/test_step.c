#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/backend/trace.h"

enum { N_SEQS = 4, MOST = 60 };

/* One sequence, what was fed to it, and how far its hidden states have come. */
struct asked {
    tern_seq seq;
    tern_hidden hidden;
    tern_token prompt[MOST];
    uint32_t n, next, n_events, n_tokens;
    bool done;
    struct trace_text text;
};

struct rig {
    struct trace_rig trace;
    struct asked asked[N_SEQS];
};

static void open_rig(struct rig *r, tern_limits limits)
{
    static const uint32_t windows[] = {0, 20};
    trace_model(&r->trace, windows, 2);
    limits.hidden = true;
    assert_int_equal(trace_open(&r->trace, &limits), TERN_OK);
}

static void feed(struct rig *r, uint32_t i, tern_hidden hidden, uint32_t n)
{
    struct asked *a = &r->asked[i];
    tern_seq_options o = trace_greedy();
    *a = (struct asked){.hidden = hidden, .n = n, .next = hidden == TERN_HIDDEN_LAST ? n - 1 : 0};
    o.hidden = hidden;
    o.max_tokens = 12;
    for (uint32_t k = 0; k < n; k++)
        a->prompt[k] = (tern_token)((k < 16 ? 3 * k : 7 * k + i) % TRACE_VOCAB);
    a->text.program = &r->trace.model.program;
    assert_int_equal(tern_seq_open(r->trace.engine, &o, &a->seq), TERN_OK);
    assert_int_equal(tern_seq_feed(r->trace.engine, a->seq, a->prompt, n), TERN_OK);
}

/* What the trace backend's rows are: the first logits, with their signs turned. */
static void check(struct rig *r, struct asked *a, const tern_event *e)
{
    float logits[TRACE_VOCAB];
    assert_int_equal(e->position, a->next);
    assert_int_equal(e->token, a->prompt[a->next]);
    while (a->text.n <= a->next)
        trace_text_push(&a->text, a->prompt[a->text.n]);
    trace_logits(a->text.state, logits);
    for (uint32_t k = 0; k < r->trace.model.program.n_embd; k++)
        assert_true(e->hidden[k] == -logits[k]);
    a->next++;
    a->n_events++;
}

static void drive(struct rig *r)
{
    tern_event events[3];
    size_t n;
    while (tern_step(r->trace.engine, events, 3, &n) == TERN_OK) {
        for (size_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < N_SEQS; k++) {
                struct asked *a = &r->asked[k];
                if (a->seq != events[i].seq)
                    continue;
                if (events[i].kind == TERN_EVENT_HIDDEN)
                    check(r, a, &events[i]);
                a->n_tokens += events[i].kind == TERN_EVENT_TOKEN;
                if (events[i].kind == TERN_EVENT_DONE) {
                    a->done = true;
                    assert_int_equal(events[i].stop, TERN_STOP_LENGTH);
                }
            }
        assert_null(r->trace.trace->fault);
        assert_null(trace_check_kv(r->trace.engine));
    }
}

static void hidden_states_are_those_of_the_text_whatever_runs_beside_them(void **state)
{
    (void)state;
    static const uint32_t chunks[] = {1, 5, 16, 64}, rows[] = {1, 2, 7};
    static struct rig r;
    for (uint32_t i = 0; i < 4 * 3; i++) {
        const uint32_t chunk = chunks[i % 4], n_rows = rows[i / 4] < chunk ? rows[i / 4] : chunk;
        /* A pool for two of the four: sequences are preempted. */
        open_rig(&r, (tern_limits){.n_ctx = 64, .n_seqs = N_SEQS, .chunk = chunk,
                                   .n_logit_rows = n_rows, .n_kv_tokens = 128});
        feed(&r, 0, TERN_HIDDEN_ALL, 45);
        feed(&r, 1, TERN_HIDDEN_NONE, 30);
        feed(&r, 2, TERN_HIDDEN_LAST, 50);
        feed(&r, 3, TERN_HIDDEN_ALL, 33);
        drive(&r);
        assert_int_equal(r.asked[0].n_events, 45);
        assert_int_equal(r.asked[1].n_events, 0);
        assert_int_equal(r.asked[1].n_tokens, 12);
        assert_int_equal(r.asked[2].n_events, 1);
        assert_int_equal(r.asked[3].n_events, 33);
        for (uint32_t k = 0; k < N_SEQS; k++)
            assert_true(r.asked[k].done);
        trace_close(&r.trace);
    }
}

static void the_last_one_alone_is_found_by_its_prefix(void **state)
{
    (void)state;
    static struct rig r;
    tern_seq_info info;
    open_rig(&r, (tern_limits){.n_ctx = 64, .n_seqs = N_SEQS});
    feed(&r, 0, TERN_HIDDEN_ALL, 50);
    drive(&r);
    feed(&r, 1, TERN_HIDDEN_ALL, 50);
    feed(&r, 2, TERN_HIDDEN_LAST, 50);
    drive(&r);
    assert_int_equal(r.asked[1].n_events, 50);
    assert_int_equal(tern_seq_describe(r.trace.engine, r.asked[1].seq, &info), TERN_OK);
    assert_int_equal(info.n_cached, 0);
    assert_int_equal(tern_seq_describe(r.trace.engine, r.asked[2].seq, &info), TERN_OK);
    assert_int_equal(info.n_cached, 16);
    assert_int_equal(info.n_generated, 0);
    trace_close(&r.trace);
}

/* What is fed to one that ended continues it. */
static void those_of_a_second_feed_begin_behind_the_first(void **state)
{
    (void)state;
    static struct rig r;
    open_rig(&r, (tern_limits){.n_ctx = 64, .n_seqs = N_SEQS});
    struct asked *a = &r.asked[0];
    feed(&r, 0, TERN_HIDDEN_ALL, 20);
    drive(&r);
    a->prompt[20] = a->prompt[21] = 5;
    assert_int_equal(tern_seq_feed(r.trace.engine, a->seq, a->prompt + 20, 2), TERN_OK);
    drive(&r);
    assert_int_equal(a->n_events, 22);
    trace_close(&r.trace);
}

static void they_need_the_limit_and_stand_alone(void **state)
{
    (void)state;
    static struct rig r;
    tern_seq_options o = trace_greedy();
    tern_seq seq;
    open_rig(&r, (tern_limits){.n_ctx = 64, .n_seqs = N_SEQS, .n_logprobs = 1});
    o.hidden = TERN_HIDDEN_ALL;
    o.n_prompt_logprobs = -1;
    assert_int_equal(tern_seq_open(r.trace.engine, &o, &seq), TERN_BAD_ARGUMENT);
    o.n_prompt_logprobs = 0;
    tern_engine_clear_error(r.trace.engine);
    o.hidden = (tern_hidden)3;
    assert_int_equal(tern_seq_open(r.trace.engine, &o, &seq), TERN_BAD_ARGUMENT);
    trace_close(&r.trace);

    static const uint32_t windows[] = {0};
    trace_model(&r.trace, windows, 1);
    assert_int_equal(trace_open(&r.trace, &(tern_limits){.n_ctx = 64}), TERN_OK);
    o.hidden = TERN_HIDDEN_LAST;
    assert_int_equal(tern_seq_open(r.trace.engine, &o, &seq), TERN_BAD_ARGUMENT);
    assert_non_null(strstr(tern_engine_error(r.trace.engine)->text, "hidden"));
    trace_close(&r.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_states_are_those_of_the_text_whatever_runs_beside_them),
        cmocka_unit_test(the_last_one_alone_is_found_by_its_prefix),
        cmocka_unit_test(those_of_a_second_feed_begin_behind_the_first),
        cmocka_unit_test(they_need_the_limit_and_stand_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
