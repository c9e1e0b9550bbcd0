#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace_rig.h"

/* --- random scripts against a naive model --- */

enum { SEQS = 4 };

struct player {
    struct trace_rig rig;
    struct trace_random random;
    struct actor {
        tern_seq seq;
        tern_seq_options options;
        bool running;
        uint32_t fed, generated, report;
        struct trace_text text;
    } actors[SEQS];
    tern_token documents[3][TRACE_MAX_CTX];
    uint64_t n_tokens, n_prompts, n_done;
};

static struct actor *actor_of(struct player *p, tern_seq seq)
{
    for (int i = 0; i < SEQS; i++)
        if (p->actors[i].seq == seq)
            return &p->actors[i];
    fail_msg("an event of sequence %x, which is not open", seq);
    return NULL;
}

static void check_prompt(struct actor *a, const tern_event *event)
{
    float logits[TRACE_VOCAB];
    struct trace_text *t = calloc(1, sizeof *t);
    t->program = a->text.program;
    assert_int_equal(event->position, a->report++);
    assert_int_equal(event->token, a->text.tokens[event->position]);
    for (uint32_t i = 0; i < event->position; i++)
        trace_text_push(t, a->text.tokens[i]);
    trace_logits(t->state, logits);
    assert_true(event->logprob <= 0 && event->n_logprobs == 2);
    assert_int_equal(event->logprobs[0].token, trace_text_next(t));
    free(t);
}

static void check_event(struct player *p, const tern_event *event)
{
    struct actor *a = actor_of(p, event->seq);
    assert_true(a->running);
    switch (event->kind) {
    case TERN_EVENT_PROMPT:
        check_prompt(a, event);
        p->n_prompts++;
        break;
    case TERN_EVENT_TOKEN:
        assert_int_equal(event->token, trace_text_next(&a->text));
        assert_int_equal(event->position, a->text.n);
        trace_text_push(&a->text, event->token);
        a->generated++;
        p->n_tokens++;
        break;
    case TERN_EVENT_HIDDEN:
        fail_msg("%s", "nobody asked for hidden states");
        break;
    case TERN_EVENT_DONE:
        a->running = false;
        p->n_done++;
        if (event->stop == TERN_STOP_LENGTH && !a->options.prefill_only)
            assert_int_equal(a->generated, a->options.max_tokens);
        else if (event->stop == TERN_STOP_CONTEXT)
            assert_int_equal(a->text.n, p->rig.plan.limits.n_ctx);
        else if (!a->options.prefill_only)
            assert_int_equal(event->stop, TERN_STOP_CANCELLED);
        if (a->options.n_prompt_logprobs && event->stop != TERN_STOP_CANCELLED)
            assert_int_equal(a->report, a->fed);
        break;
    }
}

static void step_once(struct player *p, size_t cap)
{
    tern_event events[8];
    size_t n = 0;
    const tern_status status = tern_step(p->rig.engine, events, cap, &n);
    assert_in_range(status, TERN_OK, TERN_AGAIN);
    assert_in_range(n, 0, cap);
    for (size_t i = 0; i < n; i++)
        check_event(p, &events[i]);
}

/* Events that are still to be taken speak of the past: the model needs them first. */
static void catch_up(struct player *p)
{
    while (tern_events_pending(p->rig.engine))
        step_once(p, 8);
}

static void open_one(struct player *p, struct actor *a)
{
    struct trace_random *r = &p->random;
    a->options = trace_greedy();
    a->options.max_tokens = trace_below(r, 3) ? 1 + trace_below(r, 20) : 0;
    a->options.no_kv_sharing = !trace_below(r, 4);
    a->options.prefill_only = !trace_below(r, 8);
    a->options.n_prompt_logprobs = trace_below(r, 8) ? 0 : 2;
    assert_int_equal(tern_seq_open(p->rig.engine, &a->options, &a->seq), TERN_OK);
    a->running = false;
    a->generated = 0;
    a->text.n = 0;
}

static void feed_one(struct player *p, struct actor *a)
{
    tern_token tokens[TRACE_MAX_CTX];
    const uint32_t n_ctx = p->rig.plan.limits.n_ctx;
    const uint32_t room = n_ctx - (a->options.prefill_only ? 0 : 1);
    if (a->text.n > room || (a->running && a->generated))
        return;
    const tern_token *document = p->documents[trace_below(&p->random, 3)];
    uint32_t n = trace_below(&p->random, room - a->text.n + 1);
    if (!n && !a->text.n)
        return;
    const uint32_t same = trace_below(&p->random, n + 1);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = i < same ? document[a->text.n + i]
                             : (tern_token)trace_below(&p->random, TRACE_VOCAB);
    assert_int_equal(tern_seq_feed(p->rig.engine, a->seq, tokens, n), TERN_OK);
    if (!a->running) {
        a->generated = 0;
        a->report = a->text.n ? a->text.n : 1;
    }
    for (uint32_t i = 0; i < n; i++)
        trace_text_push(&a->text, tokens[i]);
    a->fed = a->text.n;
    a->running = true;
}

static void fork_one(struct player *p, struct actor *from, struct actor *to)
{
    tern_seq seq;
    assert_int_equal(tern_seq_fork(p->rig.engine, from->seq, 1, &seq), TERN_OK);
    *to = *from;
    to->seq = seq;
}

static void trim_one(struct player *p, struct actor *a)
{
    struct trace_text *t = calloc(1, sizeof *t);
    const uint32_t keep = trace_below(&p->random, a->text.n + 1);
    assert_int_equal(tern_seq_trim(p->rig.engine, a->seq, keep), TERN_OK);
    t->program = a->text.program;
    for (uint32_t i = 0; i < keep; i++)
        trace_text_push(t, a->text.tokens[i]);
    a->text = *t;
    a->running = false;
    free(t);
}

/* What is idle mostly gets work, so that the pool is always short. */
static void act(struct player *p)
{
    struct actor *a = &p->actors[trace_below(&p->random, SEQS)];
    struct actor *b = &p->actors[trace_below(&p->random, SEQS)];
    const uint32_t what = trace_below(&p->random, 100);
    catch_up(p);
    if (!a->seq) {
        open_one(p, a);
        feed_one(p, a);
    } else if (what < 3 || (what < 40 && !a->running)) {
        tern_seq_close(p->rig.engine, a->seq);
        a->seq = 0;
    } else if (what < 5) {
        tern_seq_cancel(p->rig.engine, a->seq);
    } else if (what < 8) {
        trim_one(p, a);
    } else if (what < 20 && !b->seq) {
        fork_one(p, a, b);
    } else if (!a->running || what < 50) {
        feed_one(p, a);
    } else if (what < 51) {
        tern_step_rows(p->rig.engine, trace_below(&p->random, 40));
    } else if (what < 52) {
        tern_preempt(p->rig.engine, &p->rig.engine->parts.seqs[a->seq & 1023]);
    }
}

static void play(const tern_limits *limits, const uint32_t *windows, uint32_t n_groups,
                 uint64_t seed, uint32_t n_steps)
{
    struct player *p = calloc(1, sizeof *p);
    trace_model(&p->rig, windows, n_groups);
    assert_int_equal(trace_open(&p->rig, limits), TERN_OK);
    p->random.state = seed;
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < TRACE_MAX_CTX; i++)
            p->documents[d][i] = i < 20 * d ? p->documents[0][i]
                                            : (tern_token)trace_below(&p->random, TRACE_VOCAB);
    for (int i = 0; i < SEQS; i++)
        p->actors[i].text.program = &p->rig.model.program;
    for (uint32_t i = 0; i < n_steps; i++) {
        if (!trace_below(&p->random, 2))
            act(p);
        step_once(p, 1 + trace_below(&p->random, 3));
        if (p->rig.trace->fault || trace_check_kv(p->rig.engine))
            fail_msg("step %u of seed %u: %s", i, (unsigned)seed,
                     p->rig.trace->fault ? p->rig.trace->fault : trace_check_kv(p->rig.engine));
    }
    assert_true(p->n_tokens > n_steps / 16 && p->n_done > n_steps / 64 && p->n_prompts > 0);
    assert_true(p->rig.engine->parts.scheduler.n_preempted > 0);
    trace_close(&p->rig);
    free(p);
}

static void random_scripts_give_what_a_naive_model_gives(void **state)
{
    (void)state;
    static const uint32_t full[] = {0}, both[] = {0, 8}, wide[] = {24, 0, 3}, only[] = {8};
    const tern_limits tight = {.n_ctx = 64, .n_seqs = SEQS, .chunk = 24, .n_kv_tokens = 96,
                               .n_logprobs = 2};
    const tern_limits odd = {.n_ctx = 61, .n_seqs = SEQS, .chunk = 7, .n_kv_tokens = 96,
                             .n_logprobs = 2, .n_logit_rows = 2};
    const tern_limits single = {.n_ctx = 40, .n_seqs = SEQS, .chunk = 1, .n_kv_tokens = 64,
                                .n_logprobs = 2};
    const tern_limits high = {.n_ctx = 48, .n_seqs = SEQS, .chunk = 48, .n_kv_tokens = 48,
                              .n_logprobs = 2};
    const tern_limits roomy = {.n_ctx = 64, .n_seqs = SEQS, .chunk = 16, .n_kv_tokens = 1000,
                               .n_logprobs = 2};
    play(&tight, full, 1, 1, 4000);
    play(&tight, both, 2, 2, 4000);
    play(&odd, both, 2, 3, 4000);
    play(&odd, wide, 3, 4, 4000);
    play(&single, full, 1, 5, 4000);
    play(&high, full, 1, 6, 4000);
    play(&high, both, 2, 7, 4000);
    play(&tight, only, 1, 8, 4000);
    play(&roomy, wide, 3, 9, 4000);
}

/* --- one property each --- */

static void preemption_at_every_step_loses_and_doubles_nothing(void **state)
{
    (void)state;
    tern_token a[40], b[40];
    trace_prompt(a, 40, 1);
    trace_prompt(b, 40, 2);
    for (uint32_t when = 0; when < 60; when++) {
        struct trace_rig rig;
        struct trace_log *log = calloc(1, sizeof *log);
        trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 2, .chunk = 16,
                                          .n_kv_tokens = 96}, 2);
        const tern_seq sa = trace_start(&rig, a, 40, 0), sb = trace_start(&rig, b, 20, 30);
        (void)trace_drive(&rig, log, 16, when);
        for (uint32_t i = 0; i < 2; i++)
            if (rig.engine->parts.seqs[i].running)
                tern_preempt(rig.engine, &rig.engine->parts.seqs[i]);
        assert_int_equal(trace_drive(&rig, log, 16, 1000), TERN_AGAIN);
        assert_int_equal(trace_matches(&rig, log, sa, a, 40), 24);
        assert_int_equal(trace_matches(&rig, log, sb, b, 20), 30);
        assert_null(rig.trace->fault);
        trace_close(&rig);
        free(log);
    }
}

static void the_youngest_loses_its_blocks_and_the_oldest_never_waits(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[3][30];
    tern_seq seqs[3];
    trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .chunk = 64, .n_kv_tokens = 80}, 2);
    for (uint32_t i = 0; i < 3; i++) {
        trace_prompt(p[i], 30, i + 1);
        seqs[i] = trace_start(&rig, p[i], 30, 0);
    }
    assert_int_equal(trace_drive(&rig, log, 16, 1000), TERN_AGAIN);
    uint32_t done = 0;
    for (uint32_t i = 0; i < log->n; i++)
        if (log->items[i].event.kind == TERN_EVENT_DONE)
            assert_int_equal(log->items[i].event.seq, seqs[done++]);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(trace_matches(&rig, log, seqs[i], p[i], 30), 34);
        assert_int_equal(trace_stop_of(log, seqs[i]), TERN_STOP_CONTEXT);
    }
    /* Who is too young to take a block waits with what it has: only the second is ever
     * preempted, and once. */
    assert_int_equal(tern_preemptions(rig.engine), 1);
    assert_int_equal(tern_preemptions(NULL), 0);
    /* The first ran as if it were alone: 34 tokens in as many steps. */
    uint32_t steps = 0;
    trace_close(&rig);
    log->n = 0;
    trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .chunk = 64, .n_kv_tokens = 80}, 2);
    for (uint32_t i = 0; i < 3; i++)
        seqs[i] = trace_start(&rig, p[i], 30, 0);
    while (trace_stop_of(log, seqs[0]) == TERN_STOP_NONE && steps < 100) {
        (void)trace_drive(&rig, log, 16, 1);
        steps++;
    }
    assert_int_equal(steps, 34);
    trace_close(&rig);
    free(log);
}

static tern_seq_info info_of(struct trace_rig *rig, tern_seq seq)
{
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(rig->engine, seq, &info), TERN_OK);
    return info;
}

static void who_is_too_young_to_take_a_block_waits_with_what_it_has(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[48];
    trace_prompt(p, 48, 4);
    trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 2, .chunk = 64, .n_kv_tokens = 80}, 2);
    const tern_seq a = trace_start(&rig, p, 30, 0), b = trace_start(&rig, p + 30, 18, 0);
    (void)trace_drive(&rig, log, 16, 17); /* b came to a border; no block was left */
    assert_int_equal(rig.engine->parts.scheduler.n_preempted, 0);
    assert_int_equal(info_of(&rig, a).n_tokens, 47);
    assert_int_equal(info_of(&rig, b).n_tokens, 33);
    assert_int_equal(info_of(&rig, b).n_computed, 32);
    while (!rig.engine->parts.scheduler.n_preempted)
        assert_int_equal(trace_drive(&rig, log, 16, 1), TERN_OK);
    assert_int_equal(info_of(&rig, a).n_computed, 49); /* its fourth block was b's */
    assert_int_equal(info_of(&rig, b).n_computed, 0);
    assert_int_equal(trace_drive(&rig, log, 16, 1000), TERN_AGAIN);
    assert_int_equal(trace_matches(&rig, log, a, p, 30), 34);
    assert_int_equal(trace_matches(&rig, log, b, p + 30, 18), 46);
    assert_int_equal(info_of(&rig, b).n_cached, 0); /* what was its own is no find */
    trace_close(&rig);
    free(log);
}

static void the_longest_idle_loses_its_blocks_first(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[60];
    tern_seq seqs[3];
    trace_prompt(p, 60, 4);
    trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 4, .chunk = 64, .n_kv_tokens = 96}, 2);
    for (uint32_t i = 0; i < 3; i++) {
        seqs[i] = trace_start(&rig, p + 20 * i, 20, 1);
        assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    }
    assert_int_equal(tern_seq_feed(rig.engine, seqs[0], p, 1), TERN_OK); /* used last now */
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    (void)trace_start(&rig, p, 30, 1);
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    assert_int_equal(info_of(&rig, seqs[1]).n_computed, 0);
    assert_int_equal(info_of(&rig, seqs[2]).n_computed, 20);
    assert_int_equal(info_of(&rig, seqs[0]).n_computed, 22);
    trace_close(&rig);
    free(log);
}

static void a_step_has_no_more_rows_than_it_may_have(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[50];
    trace_prompt(p, 50, 4);
    trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 2, .chunk = 32}, 2);
    const tern_seq seq = trace_start(&rig, p, 50, 4);
    tern_step_rows(rig.engine, 8);
    assert_int_equal(trace_drive(&rig, log, 16, 2), TERN_OK);
    assert_int_equal(info_of(&rig, seq).n_computed, 16);
    tern_step_rows(rig.engine, 1000);
    assert_int_equal(trace_drive(&rig, log, 16, 1), TERN_OK);
    assert_int_equal(info_of(&rig, seq).n_computed, 48);
    tern_step_rows(rig.engine, 0);
    assert_int_equal(trace_drive(&rig, log, 16, 100), TERN_AGAIN);
    assert_int_equal(trace_matches(&rig, log, seq, p, 50), 4);
    trace_close(&rig);
    free(log);
}

/* The tokens that a seeded request draws, alone or beside others. */
static void draw(const tern_limits *limits, uint32_t n_others, bool warm, tern_token *out)
{
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[40];
    tern_seq_options o = trace_greedy();
    trace_set_up(&rig, limits, 2);
    trace_prompt(p, 40, 9);
    if (warm) {
        tern_seq_close(rig.engine, trace_start(&rig, p, 30, 1));
        const tern_seq seq = trace_start(&rig, p, 40, 1);
        (void)trace_drive(&rig, log, 16, 100);
        tern_seq_close(rig.engine, seq);
    }
    for (uint32_t i = 0; i < n_others; i++) {
        (void)trace_start(&rig, p + i, 20, 0);
        (void)trace_drive(&rig, log, 16, i);
    }
    o.sampling.temperature = 3;
    o.sampling.seed = UINT64_C(1) << 63;
    o.sampling.stream = 17;
    o.sampling.repeat_penalty = 1.2f;
    o.sampling.repeat_last_n = -1;
    o.max_tokens = 20;
    tern_seq seq = 0;
    assert_int_equal(tern_seq_open(rig.engine, &o, &seq), TERN_OK);
    assert_int_equal(tern_seq_feed(rig.engine, seq, p, 40), TERN_OK);
    log->n = 0;
    assert_int_equal(trace_drive(&rig, log, 16, 1000), TERN_AGAIN);
    uint32_t n = 0;
    for (uint32_t i = 0; i < log->n; i++)
        if (log->items[i].event.seq == seq && log->items[i].event.kind == TERN_EVENT_TOKEN)
            out[n++] = log->items[i].event.token;
    assert_int_equal(n, 20);
    trace_close(&rig);
    free(log);
}

static void a_seeded_request_draws_the_same_in_any_company(void **state)
{
    (void)state;
    tern_token first[20], other[20];
    static const uint32_t chunks[] = {1, 7, 16, 64};
    draw(&(tern_limits){.n_ctx = 64, .n_seqs = 1}, 0, false, first);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t n = 0; n < 4; n++)
            for (int warm = 0; warm < 2; warm++) {
                const tern_limits limits = {.n_ctx = 64, .n_seqs = 4, .chunk = chunks[i],
                                            .n_kv_tokens = n % 2 ? 80 : 0};
                draw(&limits, n, warm, other);
                assert_memory_equal(first, other, sizeof first);
            }
}

static void room_for_one_event_loses_none(void **state)
{
    (void)state;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[3][30];
    for (size_t cap = 1; cap < 4; cap++) {
        struct trace_rig rig;
        tern_seq seqs[3];
        log->n = 0;
        trace_set_up(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .chunk = 64}, 2);
        for (uint32_t i = 0; i < 3; i++) {
            trace_prompt(p[i], 30, i + 1);
            seqs[i] = trace_start(&rig, p[i], 30, 10 + i);
        }
        assert_int_equal(trace_drive(&rig, log, 0, 5), TERN_OK); /* no room: no work is lost */
        assert_int_equal(log->n, 0);
        assert_int_equal(rig.trace->n_submits, 1);
        assert_int_equal(trace_drive(&rig, log, cap, 1000), TERN_AGAIN);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(trace_matches(&rig, log, seqs[i], p[i], 30), 10 + i);
            assert_int_equal(trace_stop_of(log, seqs[i]), TERN_STOP_LENGTH);
        }
        trace_close(&rig);
    }
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_scripts_give_what_a_naive_model_gives),
        cmocka_unit_test(preemption_at_every_step_loses_and_doubles_nothing),
        cmocka_unit_test(the_youngest_loses_its_blocks_and_the_oldest_never_waits),
        cmocka_unit_test(who_is_too_young_to_take_a_block_waits_with_what_it_has),
        cmocka_unit_test(the_longest_idle_loses_its_blocks_first),
        cmocka_unit_test(a_step_has_no_more_rows_than_it_may_have),
        cmocka_unit_test(a_seeded_request_draws_the_same_in_any_company),
        cmocka_unit_test(room_for_one_event_loses_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
