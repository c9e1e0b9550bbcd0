/* Sessions: saved, taken back and continued is never stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/saved_rig.h"
#include "trace_rig.h"

/* --- going on --- */

static void go_on(const tern_model *model, tern_limits limits, uint32_t n_prompt)
{
    tern_token prompt[96];
    make_prompt(prompt, 96, n_prompt);
    struct rig *a = open_rig(model, limits);
    limits.chunk = 5; /* other cuts, other blocks */
    struct rig *b = open_rig(model, limits);
    const tern_seq sa = open_seq(a->engine, 7, 3);
    const struct answer first = answer_of(a->engine, sa, prompt, n_prompt);
    struct file f = save(a->engine, sa);
    const struct answer never_stopped = answer_of(a->engine, sa, prompt + 80, 4);
    assert_int_equal(never_stopped.n, 9);

    const tern_saved_info info = read_info(&f);
    assert_int_equal(info.n_tokens, n_prompt + 9);
    assert_int_equal(info.n_computed, (n_prompt + 8) / 16 * 16);
    assert_memory_equal(f.bytes + info.note_at, "[\"note\"]", info.note_bytes);
    assert_memory_equal(f.bytes + info.tokens_at, prompt, n_prompt * sizeof *prompt);
    const tern_seq sb = open_seq(b->engine, info.seed, info.stream);
    assert_int_equal(try_restore(b->engine, sb, &f), TERN_OK);
    assert_int_equal(n_cached(b->engine, sb), info.n_computed);
    struct file again = save(b->engine, sb); /* the same bytes, which no pool's past shows in */
    assert_int_equal(again.size, f.size);
    assert_memory_equal(again.bytes, f.bytes, f.size);
    const struct answer continued = answer_of(b->engine, sb, prompt + 80, 4);
    assert_memory_equal(&continued, &never_stopped, sizeof continued);
    assert_null(trace_check_kv(b->engine));
    close_rig(b);

    /* Taken back, closed, and found by whoever begins with the same tokens. */
    struct rig *c = open_rig(model, limits);
    tern_seq sc = open_seq(c->engine, info.seed, info.stream);
    assert_int_equal(try_restore(c->engine, sc, &f), TERN_OK);
    tern_seq_close(c->engine, sc);
    memcpy(prompt + n_prompt, first.tokens, 9 * sizeof *prompt);
    memmove(prompt + n_prompt + 9, prompt + 80, 4 * sizeof *prompt);
    sc = open_seq(c->engine, info.seed, info.stream);
    const struct answer found = answer_of(c->engine, sc, prompt, n_prompt + 13);
    assert_int_equal(n_cached(c->engine, sc), info.n_computed);
    assert_memory_equal(&found, &never_stopped, sizeof found);
    assert_null(trace_check_kv(c->engine));
    close_rig(a);
    close_rig(c);
    free(f.bytes);
    free(again.bytes);
}

static void saved_taken_back_and_continued_is_never_stopped(void **state)
{
    (void)state;
    for (int windowed = 0; windowed < 2; windowed++)
        for (uint32_t k = 0; k < TERN_N_KV_TYPES; k++)
            for (uint32_t n = 1; n < 60; n += 7)
                go_on(model_of(windowed),
                      (tern_limits){.k_type = (tern_kv_type)k,
                                    .v_type = (tern_kv_type)((k + n) % TERN_N_KV_TYPES)}, n);
}

static void every_length_goes_on(void **state)
{
    (void)state;
    for (uint32_t n = 8; n < 44; n++) {
        go_on(model_of(true), (tern_limits){.n_seqs = 1}, n);
        go_on(model_of(false), (tern_limits){.exact = true}, n);
    }
}

/* --- bytes --- */

/* Raise TERN_SAVED_ARITHMETIC (or TERN_SAVED_LAYOUT) when these bytes have to change. */
static void the_bytes_are_those_of_this_arithmetic(void **state)
{
    (void)state;
    static const uint64_t hashes[2] = {0x877ef4f9024f1242, 0x873a4ef26c2f490d};
    assert_int_equal(TERN_SAVED_ARITHMETIC, 1);
    assert_int_equal(TERN_SAVED_LAYOUT, 1);
    for (int windowed = 0; windowed < 2; windowed++) {
        struct file f = small_session(model_of(windowed), (tern_limits){.n_seqs = 1});
        assert_int_equal(tern_hash_of(f.bytes, f.size), hashes[windowed]);
        free(f.bytes);
    }
}

/* --- pools, over a backend without arithmetic --- */

/* Saved after n tokens, taken back elsewhere, continued: what comes is what must come, and no
 * more is computed than what is new and what was behind the last whole block. */
static void trace_go_on(const uint32_t *windows, uint32_t n_groups, tern_limits limits, uint32_t n)
{
    struct trace_rig a, b;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[200];
    trace_prompt(p, 200, n);
    trace_model(&a, windows, n_groups);
    trace_model(&b, windows, n_groups);
    assert_int_equal(trace_open(&a, &limits), TERN_OK);
    assert_int_equal(trace_open(&b, &limits), TERN_OK);
    const tern_seq sa = trace_start(&a, p, n, 1);
    assert_int_equal(trace_drive(&a, log, 16, 1000), TERN_AGAIN);
    struct file f = save(a.engine, sa);
    log->n = 0;
    memcpy(p + n, f.bytes + read_info(&f).tokens_at + 4 * n, 4);
    const tern_seq sb = trace_start(&b, p, 0, 12);
    assert_int_equal(try_restore(b.engine, sb, &f), TERN_OK);
    assert_null(trace_check_kv(b.engine));
    tern_seq_close(b.engine, sb);
    const tern_seq sc = trace_start(&b, p, n + 5, 12);
    assert_int_equal(trace_drive(&b, log, 16, 1000), TERN_AGAIN);
    assert_int_equal(trace_matches(&b, log, sc, p, n + 5), 12);
    assert_int_equal(b.trace->n_rows, n + 5 + 11 - n / 16 * 16);
    assert_null(b.trace->fault);
    assert_null(trace_check_kv(b.engine));
    trace_close(&a);
    trace_close(&b);
    free(f.bytes);
    free(log);
}

static void only_what_is_new_is_computed(void **state)
{
    (void)state;
    static const uint32_t full[] = {0}, both[] = {0, 8}, wide[] = {24, 0, 3}, only[] = {8};
    const tern_limits small = {.n_ctx = 128, .n_seqs = 1, .chunk = 3};
    for (uint32_t n = 1; n < 100; n++) {
        trace_go_on(full, 1, small, n);
        trace_go_on(both, 2, small, n);
        trace_go_on(wide, 3, (tern_limits){.n_ctx = 128, .n_seqs = 2, .chunk = 16}, n);
        trace_go_on(only, 1, (tern_limits){.n_ctx = 128, .n_seqs = 2, .chunk = 40}, n);
    }
}

static void room_is_made_by_what_does_not_run(void **state)
{
    (void)state;
    static const uint32_t both[] = {0, 8};
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[3][64];
    for (uint32_t i = 0; i < 3; i++)
        trace_prompt(p[i], 64, i + 1);
    trace_model(&rig, both, 2);
    assert_int_equal(trace_open(&rig, &(tern_limits){.n_ctx = 80, .n_seqs = 3, .chunk = 16,
                                                     .n_kv_tokens = 80}), TERN_OK);
    const tern_seq a = trace_start(&rig, p[0], 64, 1);
    assert_int_equal(trace_drive(&rig, log, 16, 100), TERN_AGAIN);
    struct file f = save(rig.engine, a);
    tern_seq_close(rig.engine, a);
    const tern_seq idle = trace_start(&rig, p[1], 60, 4);
    assert_int_equal(trace_drive(&rig, log, 16, 100), TERN_AGAIN);
    tern_seq b = trace_start(&rig, p[0], 0, 1);
    assert_int_equal(try_restore(rig.engine, b, &f), TERN_OK); /* in the idle one's place */
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(rig.engine, idle, &info), TERN_OK);
    assert_int_equal(info.n_computed, 0);
    tern_seq_close(rig.engine, b);
    assert_int_equal(tern_seq_feed(rig.engine, idle, p[2], 4), TERN_OK);
    (void)trace_drive(&rig, log, 16, 4); /* it runs, and has its blocks again */
    b = trace_start(&rig, p[0], 0, 1);
    assert_int_equal(try_restore(rig.engine, b, &f), TERN_AGAIN);
    assert_int_equal(tern_engine_error(rig.engine)->status, TERN_OK);
    assert_int_equal(tern_seq_describe(rig.engine, b, &info), TERN_OK);
    assert_int_equal(info.n_tokens, 0);
    assert_null(trace_check_kv(rig.engine));
    assert_int_equal(trace_drive(&rig, log, 16, 100), TERN_AGAIN);
    assert_int_equal(try_restore(rig.engine, b, &f), TERN_OK);
    assert_null(rig.trace->fault);
    trace_close(&rig);
    free(f.bytes);
    free(log);
}

static void what_the_index_has_is_shared_and_not_written(void **state)
{
    (void)state;
    static const uint32_t both[] = {0, 8};
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[64];
    trace_prompt(p, 64, 1);
    trace_model(&rig, both, 2);
    assert_int_equal(trace_open(&rig, &(tern_limits){.n_ctx = 80, .n_seqs = 3, .chunk = 16}),
                     TERN_OK);
    const tern_seq a = trace_start(&rig, p, 50, 1);
    assert_int_equal(trace_drive(&rig, log, 16, 100), TERN_AGAIN);
    struct file f = save(rig.engine, a);
    /* Keys and values of somebody else's making, under a hash that is right. */
    struct tern_saved_head *h = (struct tern_saved_head *)f.bytes;
    memset(f.bytes + h->head_bytes, 0x77, f.size - h->head_bytes);
    h->tail_hash = tern_hash_of(f.bytes + h->head_bytes, f.size - h->head_bytes);
    seal(&f);
    const uint32_t n_free = rig.engine->parts.kv.pools[0].n_free;
    const tern_seq b = trace_start(&rig, p, 0, 1);
    assert_int_equal(try_restore(rig.engine, b, &f), TERN_OK);
    assert_int_equal(rig.engine->parts.kv.pools[0].n_free, n_free);
    assert_null(trace_check_kv(rig.engine));
    tern_seq_close(rig.engine, a);
    tern_seq_close(rig.engine, b);
    log->n = 0;
    const tern_seq c = trace_start(&rig, p, 60, 5);
    assert_int_equal(trace_drive(&rig, log, 16, 100), TERN_AGAIN);
    assert_int_equal(trace_matches(&rig, log, c, p, 60), 5);
    trace_close(&rig);
    free(f.bytes);
    free(log);
}

/* --- beside what runs --- */

/* A sink and a source that let the engine step. */
struct beside {
    struct trace_rig *rig;
    struct trace_log *log;
    struct file file;
    uint32_t at_once, n_slow, n_steps; /* steps a piece, but one in the first n_slow; made */
};

static void step_beside(struct beside *b)
{
    const uint32_t n = b->n_slow ? 1 : b->at_once;
    b->n_slow -= b->n_slow > 0;
    for (uint32_t i = 0; i < n; i++)
        b->n_steps += trace_drive(b->rig, b->log, 16, 1) == TERN_OK;
    assert_null(trace_check_kv(b->rig->engine));
}

static bool write_beside(void *self, uint64_t offset, const void *src, size_t n)
{
    struct beside *b = self;
    step_beside(b);
    return write_file(&b->file, offset, src, n);
}

static bool read_beside(void *self, uint64_t offset, void *dst, size_t n)
{
    struct beside *b = self;
    step_beside(b);
    memcpy(dst, b->file.bytes + offset, n);
    return true;
}

static tern_status save_beside(struct beside *b, tern_seq seq)
{
    const tern_sink sink = {write_beside, b};
    tern_memory scratch;
    b->file.written = 0;
    b->file.writes_left = 1L << 40;
    memset(b->file.bytes, 0xa5, b->file.size);
    scratch_of(b->rig->engine, &scratch);
    const tern_status status = tern_saved_write(b->rig->engine, seq,
                                                (tern_bytes){"[\"note\"]", 8}, scratch, &sink);
    free(scratch.data);
    return status;
}

static tern_status restore_beside(struct beside *b, tern_seq seq)
{
    unsigned char window[TERN_SOURCE_WINDOW];
    const tern_source source = {.size = b->file.size, .read = read_beside, .self = b,
                                .window = {window, sizeof window}};
    tern_memory scratch;
    scratch_of(b->rig->engine, &scratch);
    const tern_status status = tern_saved_restore(b->rig->engine, seq, &source, scratch);
    free(scratch.data);
    return status;
}

/* A rig with a sequence of n tokens that has ended, and its session. */
static tern_seq open_beside(struct beside *b, const tern_limits *limits, tern_token *prompt,
                            uint32_t n)
{
    trace_set_up(b->rig, limits, 2);
    trace_prompt(prompt, n, 1);
    b->log = calloc(1, sizeof *b->log);
    const tern_seq seq = trace_start(b->rig, prompt, n, 1);
    assert_int_equal(trace_drive(b->rig, b->log, 16, 100), TERN_AGAIN);
    b->file = save(b->rig->engine, seq);
    b->log->n = 0;
    return seq;
}

static void close_beside(struct beside *b)
{
    trace_tear_down(b->rig);
    free(b->file.bytes);
    free(b->log);
}

static void what_runs_goes_on_while_it_is_written_and_taken_back(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct beside b = {.rig = &rig, .at_once = 1};
    tern_token p[160], other[20], third[30];
    const tern_seq a = open_beside(&b, &(tern_limits){.n_ctx = 300, .n_seqs = 3, .chunk = 16}, p,
                                   160);
    trace_prompt(other, 20, 2);
    trace_prompt(third, 30, 3);
    const struct file plain = save(rig.engine, a);
    tern_seq runs = trace_start(&rig, other, 20, 200);
    assert_int_equal(save_beside(&b, a), TERN_OK);
    assert_true(b.n_steps >= 14);
    assert_int_equal(b.file.written, plain.size);
    assert_memory_equal(b.file.bytes, plain.bytes, plain.size);
    tern_seq_close(rig.engine, a);
    tern_seq_close(rig.engine, trace_start(&rig, third, 30, 9)); /* and came and left */

    /* Nothing of it is in the pool any more: its blocks were taken by another. */
    tern_seq next = trace_start(&rig, third, 30, 270);
    assert_int_equal(trace_drive(&rig, b.log, 16, 1000), TERN_AGAIN);
    assert_int_equal(trace_matches(&rig, b.log, runs, other, 20), 200);
    tern_seq_close(rig.engine, runs);
    tern_seq_close(rig.engine, next);
    b.log->n = b.n_steps = 0;
    runs = trace_start(&rig, other, 20, 9);
    const tern_seq back = trace_start(&rig, p, 0, 5);
    assert_int_equal(restore_beside(&b, back), TERN_OK);
    assert_true(b.n_steps >= 3);
    struct file again = save(rig.engine, back);
    assert_memory_equal(again.bytes, plain.bytes, plain.size);
    assert_int_equal(trace_drive(&rig, b.log, 16, 1000), TERN_AGAIN);
    assert_int_equal(trace_matches(&rig, b.log, runs, other, 20), 9);
    free(plain.bytes);
    free(again.bytes);
    close_beside(&b);
}

/* A pool of one context: what runs needs the blocks of what is written or read. */
static void what_runs_may_take_its_blocks(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct beside b = {.rig = &rig, .at_once = 6};
    tern_token p[60], other[90];
    tern_seq_info info;
    tern_seq a = open_beside(&b, &(tern_limits){.n_ctx = 112, .n_seqs = 2, .chunk = 16,
                                                .n_kv_tokens = 112}, p, 60);
    for (int reads = 0; reads < 2; reads++) {
        b.log->n = 0;
        trace_prompt(other, 90, reads ? 2 : 3);
        b.n_slow = reads ? 3 : 0; /* its blocks are there when they are taken */
        tern_seq runs = trace_start(&rig, other, 90, 9);
        assert_int_equal(reads ? restore_beside(&b, a) : save_beside(&b, a), TERN_AGAIN);
        if (!reads)
            assert_memory_equal(b.file.bytes, "\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5", 8);
        assert_int_equal(tern_engine_error(rig.engine)->status, TERN_OK);
        assert_int_equal(tern_seq_describe(rig.engine, a, &info), TERN_OK);
        assert_int_equal(info.n_computed, 0);
        assert_int_equal(trace_drive(&rig, b.log, 16, 1000), TERN_AGAIN);
        assert_int_equal(trace_matches(&rig, b.log, runs, other, 90), 9);
        tern_seq_close(rig.engine, runs);
        tern_seq_close(rig.engine, a);
        if (reads)
            break;
        a = trace_start(&rig, p, 60, 1); /* and whole again, for the second part */
        assert_int_equal(trace_drive(&rig, b.log, 16, 100), TERN_AGAIN);
        assert_int_equal(save_beside(&b, a), TERN_OK);
        tern_seq_close(rig.engine, a);
        a = trace_start(&rig, p, 0, 1);
    }
    close_beside(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_this_arithmetic), /* first: models are made once */
        cmocka_unit_test(saved_taken_back_and_continued_is_never_stopped),
        cmocka_unit_test(every_length_goes_on),
        cmocka_unit_test(only_what_is_new_is_computed),
        cmocka_unit_test(room_is_made_by_what_does_not_run),
        cmocka_unit_test(what_the_index_has_is_shared_and_not_written),
        cmocka_unit_test(what_runs_goes_on_while_it_is_written_and_taken_back),
        cmocka_unit_test(what_runs_may_take_its_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
