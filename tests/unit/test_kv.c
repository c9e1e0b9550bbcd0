#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace_rig.h"

static const uint32_t both[] = {0, 20};

static uint32_t n_blocks(uint32_t window, tern_limits limits)
{
    uint32_t n[TERN_MAX_KV_GROUPS];
    const struct tern_program p = {.n_kv_groups = 1, .kv_groups = {{1, 1, 4, 4, window}}};
    tern_kv_count(&p, &limits, n);
    return n[0];
}

static void pools_hold_what_the_limits_ask(void **state)
{
    (void)state;
    const tern_limits l = {.n_ctx = 1000, .n_seqs = 4, .chunk = 32, .n_kv_tokens = 2001};
    assert_int_equal(n_blocks(0, l), 126);
    /* For each of the four: 7 before a border, the border's, and 2 that 32 rows may fill behind. */
    assert_int_equal(n_blocks(100, l), 40);
    assert_int_equal(n_blocks(1, l), 12);
    assert_int_equal(n_blocks(1000, l), 126); /* never more than the full figure */
    assert_int_equal(n_blocks(UINT32_MAX, l), 126);
    const tern_limits most = {.n_ctx = 1 << 20, .n_seqs = 1024, .chunk = 65536,
                              .n_kv_tokens = UINT32_MAX};
    assert_int_equal(n_blocks(0, most), 1u << 28);
    assert_int_equal(n_blocks(UINT32_MAX, most), 1u << 26);
}

static void a_window_gives_back_what_leaves_it(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[300] = {0};
    trace_model(&rig, both, 2);
    assert_int_equal(trace_open(&rig, &(tern_limits){.n_ctx = 400, .n_seqs = 2, .chunk = 16}),
                     TERN_OK);
    const struct tern_kv *kv = &rig.engine->parts.kv;
    const tern_seq seq = trace_start(&rig, p, 300, 50);
    const uint32_t most = tern_kv_most(&rig.model.program.kv_groups[1], &rig.plan.limits, 400);
    for (int i = 0; i < 100; i++) {
        (void)trace_drive(&rig, log, 16, 1);
        assert_in_range(kv->pools[1].n_blocks - kv->pools[1].n_free, 0, most);
    }
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(rig.engine, seq, &info), TERN_OK);
    assert_int_equal(info.n_computed, 349);
    /* A query at the border, 336, sees from 317 on: blocks 19 to 21. */
    assert_int_equal(kv->seqs[0].lo[0], 0);
    assert_int_equal(kv->seqs[0].lo[1], 19);
    assert_int_equal(kv->seqs[0].hi, 22);
    assert_int_equal(trace_matches(&rig, log, seq, p, 300), 50);
    assert_null(rig.trace->fault);
    trace_close(&rig);
    free(log);
}

static void a_block_is_copied_when_it_is_written_to_by_one_of_several(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[20] = {0};
    trace_model(&rig, both, 1);
    assert_int_equal(trace_open(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .chunk = 32}),
                     TERN_OK);
    const tern_seq a = trace_start(&rig, p, 20, 1);
    tern_seq b, c;
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    assert_int_equal(tern_seq_fork(rig.engine, a, 0, &b), TERN_OK);
    assert_int_equal(tern_seq_fork(rig.engine, a, 0, &c), TERN_OK);
    assert_int_equal(rig.trace->n_copies, 0);
    assert_int_equal(tern_seq_feed(rig.engine, b, NULL, 0), TERN_OK);
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    assert_int_equal(rig.trace->n_copies, 1);
    assert_int_equal(tern_seq_feed(rig.engine, a, NULL, 0), TERN_OK);
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    assert_int_equal(rig.trace->n_copies, 2);
    assert_int_equal(tern_seq_feed(rig.engine, c, NULL, 0), TERN_OK); /* alone by now */
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    assert_int_equal(rig.trace->n_copies, 2);
    assert_null(rig.trace->fault);
    trace_close(&rig);
    free(log);
}

static void a_closed_sequence_leaves_every_block_free(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[60] = {0};
    trace_model(&rig, both, 2);
    assert_int_equal(trace_open(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .chunk = 32}),
                     TERN_OK);
    for (int i = 0; i < 3; i++) {
        const tern_seq a = trace_start(&rig, p, 60, 2);
        tern_seq b;
        (void)trace_drive(&rig, log, 16, 1);
        assert_int_equal(tern_seq_fork(rig.engine, a, 0, &b), TERN_OK);
        (void)trace_drive(&rig, log, 16, 1);
        tern_seq_close(rig.engine, a);
        assert_null(trace_check_kv(rig.engine));
        tern_seq_close(rig.engine, b);
        assert_null(trace_check_kv(rig.engine));
    }
    for (uint32_t g = 0; g < 2; g++)
        assert_int_equal(rig.engine->parts.kv.pools[g].n_free,
                         rig.engine->parts.kv.pools[g].n_blocks);
    trace_close(&rig);
    free(log);
}

/* Counts the blocks of each use in a pool; answers how many there are. */
static uint32_t count_uses(const tern_engine *e, uint32_t pool, uint32_t n[4])
{
    tern_block_use use;
    uint32_t window = 0, all = 0;
    memset(n, 0, 4 * sizeof *n);
    for (; tern_block_at(e, pool, all, &use, &window); all++)
        n[use]++;
    return all;
}

static void blocks_tell_who_uses_them(void **state)
{
    (void)state;
    struct trace_rig rig;
    struct trace_log *log = calloc(1, sizeof *log);
    tern_token p[40] = {0};
    tern_block_use use;
    tern_seq b;
    uint32_t n[4], window;
    trace_model(&rig, both, 1);
    assert_int_equal(trace_open(&rig, &(tern_limits){.n_ctx = 64, .n_seqs = 2, .chunk = 64}),
                     TERN_OK);
    const uint32_t all = count_uses(rig.engine, 0, n);
    assert_int_equal(all, rig.engine->parts.kv.pools[0].n_blocks);
    assert_int_equal(n[TERN_BLOCK_FREE], all);
    const tern_seq a = trace_start(&rig, p, 40, 1);
    assert_int_equal(trace_drive(&rig, log, 16, 10), TERN_AGAIN);
    (void)count_uses(rig.engine, 0, n);
    assert_int_equal(n[TERN_BLOCK_USED], 3);
    assert_int_equal(tern_seq_fork(rig.engine, a, 0, &b), TERN_OK);
    (void)count_uses(rig.engine, 0, n);
    assert_int_equal(n[TERN_BLOCK_SHARED], 3);
    assert_int_equal(n[TERN_BLOCK_USED], 0);
    tern_seq_close(rig.engine, a);
    tern_seq_close(rig.engine, b);
    (void)count_uses(rig.engine, 0, n);
    assert_int_equal(n[TERN_BLOCK_KEPT], 2); /* the whole ones can be found again */
    assert_int_equal(n[TERN_BLOCK_FREE], all - 2);
    assert_false(tern_block_at(rig.engine, 1, 0, &use, &window));
    assert_false(tern_block_at(NULL, 0, 0, &use, &window));
    trace_close(&rig);
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_hold_what_the_limits_ask),
        cmocka_unit_test(a_window_gives_back_what_leaves_it),
        cmocka_unit_test(a_block_is_copied_when_it_is_written_to_by_one_of_several),
        cmocka_unit_test(a_closed_sequence_leaves_every_block_free),
        cmocka_unit_test(blocks_tell_who_uses_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
