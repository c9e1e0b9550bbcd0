#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"
#include "trace_rig.h"

static const tern_limits usual = {.n_ctx = 64, .n_seqs = 2, .chunk = 16, .n_logit_rows = 3};

static struct trace_rig *open_rig(const tern_limits *limits)
{
    struct trace_rig *rig = calloc(1, sizeof *rig);
    trace_set_up(rig, limits, 2);
    return rig;
}

static void close_rig(struct trace_rig *rig)
{
    trace_tear_down(rig);
    free(rig);
}

static tern_seq open_greedy(struct trace_rig *rig)
{
    const tern_seq_options o = trace_greedy();
    return trace_seq(rig, &o);
}

static void assert_refused(struct trace_rig *rig, tern_status status, const char *text)
{
    assert_int_equal(status, TERN_BAD_ARGUMENT);
    assert_string_equal(tern_engine_error(rig->engine)->text, text);
    tern_engine_clear_error(rig->engine);
}

/* --- memory --- */

static void what_is_laid_out_is_what_the_plan_says(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    struct tern_parts parts;
    struct tern_arena s = tern_arena_over(rig->arenas[TERN_ARENA_STATE].data,
                                          rig->arenas[TERN_ARENA_STATE].size);
    struct tern_arena m = tern_arena_over(rig->arenas[TERN_ARENA_SAMPLER].data,
                                          rig->arenas[TERN_ARENA_SAMPLER].size);
    tern_engine_lay_out(&s, &m, &parts, &rig->model, &rig->plan.limits);
    assert_false(s.failed || m.failed);
    assert_int_equal((s.used + 63) / 64 * 64, rig->plan.arenas[TERN_ARENA_STATE].bytes);
    assert_int_equal((m.used + 63) / 64 * 64, rig->plan.arenas[TERN_ARENA_SAMPLER].bytes);
    rig->engine = NULL; /* laid over */
    trace_close(rig);
    free(rig);
}

static void one_byte_less_in_any_arena_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[] = {
        NULL, "arena weights: ", "arena kv: ", "arena activations: ", "arena scratch: ",
        "arena state: ", "arena sampler: "};
    struct trace_rig *rig = open_rig(&usual);
    for (uint32_t i = 0; i < TERN_N_ARENAS; i++) {
        tern_engine *e;
        tern_error err = {0};
        tern_memory arenas[TERN_N_ARENAS];
        memcpy(arenas, rig->arenas, sizeof arenas);
        arenas[i].size--;
        const tern_status status = tern_engine_init(&rig->plan, arenas, &rig->model,
                                                    &trace_backend, NULL, &e, &err);
        if (i == TERN_ARENA_MODEL) { /* is in use already, and not looked at */
            assert_int_equal(status, TERN_OK);
            continue;
        }
        assert_int_equal(status, TERN_NO_MEMORY);
        assert_memory_equal(err.text, texts[i], strlen(texts[i]));
        assert_non_null(strstr(err.text, ", 1 missing"));
        assert_null(e);
        arenas[i].data = NULL;
        err.status = TERN_OK;
        assert_int_equal(tern_engine_init(&rig->plan, arenas, &rig->model, &trace_backend, NULL,
                                          &e, &err),
                         TERN_NO_MEMORY);
        arenas[i] = rig->arenas[i];
        arenas[i].data = (char *)arenas[i].data + 8;
        err.status = TERN_OK;
        assert_int_equal(tern_engine_init(&rig->plan, arenas, &rig->model, &trace_backend, NULL,
                                          &e, &err),
                         TERN_BAD_ARGUMENT);
        assert_non_null(strstr(err.text, "aligned to"));
    }
    trace_close(rig);
    free(rig);
}

static void a_plan_that_was_changed_is_not_believed(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    tern_engine *e;
    tern_error err = {0};
    tern_plan plan = rig->plan;
    plan.limits.n_ctx = 60000;
    plan.limits.n_kv_tokens = 60000;
    assert_int_equal(tern_engine_init(&plan, rig->arenas, &rig->model, &trace_backend, NULL, &e,
                                      &err),
                     TERN_NO_MEMORY);
    close_rig(rig);
}

static void a_host_with_other_threads_than_planned_is_refused(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    tern_engine *e;
    tern_error err = {0};
    tern_host host = {.n_threads = 2};
    assert_int_equal(tern_engine_init(&rig->plan, rig->arenas, &rig->model, &trace_backend, &host,
                                      &e, &err),
                     TERN_BAD_ARGUMENT);
    assert_string_equal(err.text, "host: 2 threads, the limits say 1");
    rig->plan.limits.n_threads = 2;
    err.status = TERN_OK;
    assert_int_equal(tern_engine_init(&rig->plan, rig->arenas, &rig->model, &trace_backend, &host,
                                      &e, &err),
                     TERN_BAD_ARGUMENT);
    assert_string_equal(err.text, "host: 2 threads without parallel or barrier");
    close_rig(rig);
}

/* --- loading --- */

static uint64_t sum_of(const struct trace_rig *rig)
{
    uint64_t sum = 0;
    for (int w = 0; w < 3; w++)
        for (uint32_t r = 0; r < rig->weights[w].n_rows; r++)
            sum += (r + 1) * (uint64_t)rig->file[rig->tensors[w].offset +
                                                 (uint64_t)r * rig->weights[w].n_cols * 4];
    return sum;
}

static void weights_come_in_pieces_and_are_given_back(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++)
        for (size_t budget = 0; budget < 3000000; budget = budget * 37 + 1) {
            struct trace_rig *rig = open_rig(&usual);
            tern_engine *e;
            uint64_t done = 0, total = 0, last = 0, calls = 0;
            if (mapped)
                rig->source.base = rig->file;
            rig->n_reads = rig->n_released = 0;
            assert_int_equal(tern_engine_init(&rig->plan, rig->arenas, &rig->model,
                                              &trace_backend, NULL, &e, NULL),
                             TERN_OK);
            struct trace_state *trace = e->state;
            trace->uploaded = 0;
            size_t n = 0;
            assert_int_equal(tern_step(e, NULL, 0, &n), TERN_BAD_ARGUMENT); /* not loaded yet */
            tern_status status;
            do {
                status = tern_engine_load(e, budget, &done, &total);
                assert_true(done > last || status == TERN_OK);
                last = done;
                calls++;
            } while (status == TERN_AGAIN);
            assert_int_equal(status, TERN_OK);
            assert_int_equal(done, total);
            assert_int_equal(total, 4 * (64 + 33 * 10000 + 40 * 64));
            assert_int_equal(rig->n_released, total);
            assert_int_equal(trace->uploaded, sum_of(rig));
            assert_int_equal(rig->n_reads, mapped ? 0 : 5); /* 16 + 16 + 1 wide rows */
            assert_in_range(calls, budget > total ? 1 : 2, 5);
            assert_null(trace->fault);
            assert_int_equal(tern_engine_load(e, 1, NULL, NULL), TERN_OK);
            close_rig(rig);
        }
}

static void a_read_that_fails_is_named(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    tern_engine *e;
    assert_int_equal(tern_engine_init(&rig->plan, rig->arenas, &rig->model, &trace_backend, NULL,
                                      &e, NULL),
                     TERN_OK);
    rig->read_fails = true;
    assert_int_equal(tern_engine_load(e, SIZE_MAX, NULL, NULL), TERN_IO);
    assert_string_equal(tern_engine_error(e)->text, "norm: reading 256 bytes at 128 failed");
    rig->read_fails = false;
    assert_int_equal(tern_engine_load(e, SIZE_MAX, NULL, NULL), TERN_OK); /* and goes on */
    close_rig(rig);
}

/* --- failures of a device --- */

static void a_batch_that_fails_leaves_everything_as_it_was(void **state)
{
    (void)state;
    tern_token p[20] = {1, 2, 3};
    for (uint32_t when = 1; when < 12; when++) {
        struct trace_rig *rig = open_rig(&usual);
        struct trace_log *log = calloc(1, sizeof *log);
        tern_seq seqs[2];
        for (int i = 0; i < 2; i++) {
            seqs[i] = open_greedy(rig);
            assert_int_equal(tern_seq_feed(rig->engine, seqs[i], p + i, 17), TERN_OK);
        }
        rig->trace->fail_in = when;
        rig->trace->fail_with = TERN_IO;
        assert_int_equal(trace_drive(rig, log, 16, 200), TERN_IO);
        assert_string_equal(tern_engine_error(rig->engine)->text, "trace: told to fail");
        tern_engine_clear_error(rig->engine);
        assert_int_equal(trace_drive(rig, log, 16, 200), TERN_AGAIN);
        for (int i = 0; i < 2; i++)
            assert_int_equal(trace_matches(rig, log, seqs[i], p + i, 17), 47);
        close_rig(rig);
        free(log);
    }
}

static void a_lost_device_is_remembered(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    const tern_token p[] = {1, 2, 3};
    const tern_seq seq = open_greedy(rig);
    size_t n = 0;
    assert_int_equal(tern_seq_feed(rig->engine, seq, p, 3), TERN_OK);
    rig->trace->fail_in = 1;
    rig->trace->fail_with = TERN_DEVICE_LOST;
    assert_int_equal(tern_step(rig->engine, NULL, 0, &n), TERN_DEVICE_LOST);
    assert_int_equal(tern_step(rig->engine, NULL, 0, &n), TERN_DEVICE_LOST);
    assert_int_equal(rig->trace->n_submits, 0);
    close_rig(rig);
}

static void the_first_error_is_kept_until_it_is_cleared(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    assert_int_equal(tern_step(rig->engine, NULL, 4, NULL), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_decode(rig->engine, NULL, 0), TERN_BAD_ARGUMENT);
    assert_string_equal(tern_engine_error(rig->engine)->text, "step: an argument is NULL");
    tern_engine_clear_error(rig->engine);
    assert_int_equal(tern_engine_error(rig->engine)->status, TERN_OK);
    size_t n = 9;
    assert_int_equal(tern_step(rig->engine, NULL, 0, &n), TERN_AGAIN);
    assert_int_equal(n, 0);
    assert_int_equal(tern_step(NULL, NULL, 0, &n), TERN_BAD_ARGUMENT);
    tern_engine_close(NULL);
    close_rig(rig);
}

/* --- the layer below --- */

static void rows_by_hand_give_the_logits_of_their_text(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    struct trace_text *a = calloc(2, sizeof *a), *b = a + 1;
    float expected[TRACE_VOCAB];
    const tern_seq sa = open_greedy(rig), sb = open_greedy(rig);
    a->program = b->program = &rig->model.program;
    for (int step = 0; step < 15; step++) {
        const tern_row rows[] = {{sa, step, false}, {sa, step + 1, true}, {sb, 7, true},
                                 {sb, step, false}, {sb, 9, true}};
        const uint32_t from = step % 2 ? 2 : 0;
        assert_int_equal(tern_decode(rig->engine, rows + from, 5 - from), TERN_OK);
        for (uint32_t i = from, k = 0; i < 5; i++) {
            struct trace_text *t = rows[i].seq == sa ? a : b;
            trace_text_push(t, rows[i].token);
            if (!rows[i].want_logits)
                continue;
            trace_logits(t->state, expected);
            assert_non_null(tern_logits(rig->engine, k));
            assert_memory_equal(tern_logits(rig->engine, k++), expected, sizeof expected);
        }
        assert_null(tern_logits(rig->engine, from ? 2 : 3));
        tern_token next;
        assert_int_equal(tern_sample(rig->engine, sb, expected, &next), TERN_OK);
        assert_int_equal(next, trace_text_next(b));
        if (step == 7) /* blocks that were taken are computed again */
            tern_preempt(rig->engine, &rig->engine->parts.seqs[0]);
    }
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(rig->engine, sb, &info), TERN_OK);
    assert_int_equal(info.n_tokens, 45);
    assert_int_equal(info.n_computed, 45);
    /* And the same sequence goes on by itself. */
    struct trace_log *log = calloc(1, sizeof *log);
    assert_int_equal(tern_seq_feed(rig->engine, sb, NULL, 0), TERN_OK);
    assert_int_equal(trace_drive(rig, log, 16, 100), TERN_AGAIN);
    assert_int_equal(trace_matches(rig, log, sb, b->tokens, 45), 19);
    assert_null(tern_logits(rig->engine, 0));
    free(log);
    free(a);
    close_rig(rig);
}

static void rows_out_of_contract_are_refused(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    const tern_seq a = open_greedy(rig), b = open_greedy(rig);
    tern_row rows[70];
    for (int i = 0; i < 70; i++)
        rows[i] = (tern_row){a, 1, true};
    assert_refused(rig, tern_decode(rig->engine, rows, 17), "decode: 17 rows, from 1 to 16");
    assert_refused(rig, tern_decode(rig->engine, rows, 0), "decode: 0 rows, from 1 to 16");
    assert_refused(rig, tern_decode(rig->engine, rows, 4),
                   "decode: 4 rows with logits, at most 3");
    rows[1].seq = b;
    assert_refused(rig, tern_decode(rig->engine, rows, 3),
                   "row 2: its sequence's rows stand apart");
    rows[1].seq = b + 2048;
    assert_int_equal(tern_decode(rig->engine, rows, 3), TERN_BAD_ARGUMENT);
    tern_engine_clear_error(rig->engine);
    rows[1] = (tern_row){a, TRACE_VOCAB, false};
    assert_refused(rig, tern_decode(rig->engine, rows, 2), "row 1: token 97, vocabulary 97");
    for (int i = 0; i < 70; i++)
        rows[i] = (tern_row){a, 1, false};
    for (int i = 0; i < 4; i++)
        assert_int_equal(tern_decode(rig->engine, rows, 15), TERN_OK);
    assert_refused(rig, tern_decode(rig->engine, rows, 5),
                   "decode: 5 rows after 60 tokens, context 64");
    assert_int_equal(tern_decode(rig->engine, rows, 4), TERN_OK);
    assert_int_equal(tern_seq_feed(rig->engine, b, (const tern_token[]){5}, 1), TERN_OK);
    rows[0].seq = b;
    assert_refused(rig, tern_decode(rig->engine, rows, 1), "row 0: its sequence is running");
    close_rig(rig);
}

static void a_full_pool_tells_the_caller_to_wait(void **state)
{
    (void)state;
    const tern_limits limits = {.n_ctx = 64, .n_seqs = 2, .chunk = 16, .n_kv_tokens = 64};
    struct trace_rig *rig = open_rig(&limits);
    const tern_seq a = open_greedy(rig), b = open_greedy(rig);
    tern_row rows[16];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 16; i++)
            rows[i] = (tern_row){i < 8 ? a : b, i < 8, false};
        assert_int_equal(tern_decode(rig->engine, rows, 16), TERN_OK);
    }
    assert_int_equal(tern_decode(rig->engine, rows, 16), TERN_OK); /* 32 each: full */
    assert_int_equal(tern_decode(rig->engine, rows, 16), TERN_AGAIN);
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(rig->engine, a, &info), TERN_OK);
    assert_int_equal(info.n_tokens, 32);
    assert_int_equal(tern_decode(rig->engine, rows, 8), TERN_OK); /* one alone: b gives way */
    assert_int_equal(tern_seq_describe(rig->engine, b, &info), TERN_OK);
    assert_int_equal(info.n_computed, 0);
    close_rig(rig);
}

/* --- timings --- */

static uint64_t ticks(void *self)
{
    return ++*(uint64_t *)self;
}

static void times_are_kept_only_with_the_limit_and_a_clock(void **state)
{
    (void)state;
    struct trace_rig *rig = open_rig(&usual);
    tern_timing t;
    assert_refused(rig, tern_timings_keep(rig->engine, true), "timings: not in the limits");
    assert_false(tern_timing_at(rig->engine, 0, &t));
    close_rig(rig);
    tern_limits limits = usual;
    limits.timings = true;
    rig = open_rig(&limits);
    assert_refused(rig, tern_timings_keep(rig->engine, true), "timings: the host has no clock");
    assert_int_equal(tern_timings_keep(NULL, true), TERN_BAD_ARGUMENT);
    close_rig(rig);
}

static void sampling_is_timed_from_its_step_to_the_next(void **state)
{
    (void)state;
    tern_limits limits = usual;
    limits.timings = true;
    struct trace_rig *rig = open_rig(&limits);
    uint64_t now = 100;
    rig->engine->host.now_ns = ticks;
    rig->engine->host.self = &now;
    const tern_seq seq = open_greedy(rig);
    const tern_row row = {seq, 1, true};
    tern_token token;
    tern_timing t;
    assert_int_equal(tern_decode(rig->engine, &row, 1), TERN_OK);
    assert_int_equal(now, 100); /* off: the clock is not read */
    assert_int_equal(tern_timings_keep(rig->engine, true), TERN_OK);
    assert_int_equal(tern_decode(rig->engine, &row, 1), TERN_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tern_sample(rig->engine, seq, tern_logits(rig->engine, 0), &token),
                         TERN_OK);
    assert_true(tern_timing_at(rig->engine, 1, &t));
    assert_int_equal(t.start_ns, 103);
    assert_int_equal(t.end_ns, 104);
    assert_int_equal(t.work, TERN_WORK_SAMPLER);
    assert_int_equal(t.op, UINT32_MAX);
    assert_true(tern_timing_at(rig->engine, 2, &t)); /* as many as there can be logits */
    assert_false(tern_timing_at(rig->engine, 3, &t));
    assert_int_equal(tern_decode(rig->engine, &row, 1), TERN_OK);
    assert_false(tern_timing_at(rig->engine, 0, &t));
    assert_int_equal(tern_timings_keep(rig->engine, false), TERN_OK);
    close_rig(rig);
}

static void kinds_of_work_have_names(void **state)
{
    (void)state;
    assert_string_equal(tern_work_name(TERN_WORK_MATMUL), "matmul");
    assert_string_equal(tern_work_name(TERN_WORK_SAMPLER), "sampler");
    assert_string_equal(tern_work_name(TERN_N_WORKS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_laid_out_is_what_the_plan_says),
        cmocka_unit_test(one_byte_less_in_any_arena_is_refused_by_name),
        cmocka_unit_test(a_plan_that_was_changed_is_not_believed),
        cmocka_unit_test(a_host_with_other_threads_than_planned_is_refused),
        cmocka_unit_test(weights_come_in_pieces_and_are_given_back),
        cmocka_unit_test(a_read_that_fails_is_named),
        cmocka_unit_test(a_batch_that_fails_leaves_everything_as_it_was),
        cmocka_unit_test(a_lost_device_is_remembered),
        cmocka_unit_test(the_first_error_is_kept_until_it_is_cleared),
        cmocka_unit_test(rows_by_hand_give_the_logits_of_their_text),
        cmocka_unit_test(rows_out_of_contract_are_refused),
        cmocka_unit_test(a_full_pool_tells_the_caller_to_wait),
        cmocka_unit_test(times_are_kept_only_with_the_limit_and_a_clock),
        cmocka_unit_test(sampling_is_timed_from_its_step_to_the_next),
        cmocka_unit_test(kinds_of_work_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
