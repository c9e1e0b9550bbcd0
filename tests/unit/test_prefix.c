#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"
#include "trace_rig.h"

/* --- the tree --- */

static _Alignas(64) unsigned char memory[1 << 14];

static struct tern_prefix make(uint32_t n_nodes)
{
    struct tern_prefix p;
    struct tern_arena a = tern_arena_over(memory, sizeof memory);
    tern_prefix_lay_out(&a, &p, n_nodes);
    assert_false(a.failed);
    tern_prefix_start(&p);
    return p;
}

static uint32_t put(struct tern_prefix *p, uint32_t parent, const tern_token *tokens)
{
    const uint32_t node = tern_prefix_add(p, parent, tokens);
    if (node != TERN_NO_NODE)
        p->nodes[node].blocks[0] = 7;
    return node;
}

static void equal_tokens_behind_other_parents_are_other_nodes(void **state)
{
    (void)state;
    static const tern_token a[16] = {1}, b[16] = {2}, c[16] = {3};
    for (uint32_t mask = 0; mask < 2; mask++) { /* also when every hash is the same */
        struct tern_prefix p = make(8);
        p.hash_mask = mask ? UINT32_MAX : 0;
        const uint32_t na = put(&p, TERN_NO_NODE, a), nb = put(&p, TERN_NO_NODE, b);
        const uint32_t ac = put(&p, na, c), bc = put(&p, nb, c);
        assert_int_not_equal(ac, bc);
        assert_int_equal(tern_prefix_find(&p, na, c), ac);
        assert_int_equal(tern_prefix_find(&p, nb, c), bc);
        assert_int_equal(tern_prefix_find(&p, TERN_NO_NODE, c), TERN_NO_NODE);
        assert_int_equal(tern_prefix_find(&p, TERN_NO_NODE, a), na);
    }
}

static void a_node_goes_with_its_last_holder_and_takes_its_parents_along(void **state)
{
    (void)state;
    static const tern_token a[16] = {1}, b[16] = {2}, c[16] = {3};
    struct tern_prefix p = make(3);
    const uint32_t na = put(&p, TERN_NO_NODE, a), nb = put(&p, na, b), nc = put(&p, nb, c);
    assert_int_equal(put(&p, TERN_NO_NODE, c), TERN_NO_NODE); /* all three are in use */
    tern_prefix_hold(&p, nc);
    tern_prefix_clear(&p, na, 0);
    tern_prefix_clear(&p, nb, 0);
    tern_prefix_clear(&p, nc, 0);
    assert_int_equal(tern_prefix_find(&p, nb, c), nc); /* it is held, and holds the others */
    assert_int_equal(tern_prefix_idle(&p), TERN_NO_NODE);
    tern_prefix_drop(&p, nc);
    assert_int_equal(tern_prefix_find(&p, TERN_NO_NODE, a), TERN_NO_NODE);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(put(&p, TERN_NO_NODE, (const tern_token[16]){i}), TERN_NO_NODE);
    assert_int_not_equal(tern_prefix_idle(&p), TERN_NO_NODE);
}

/* --- hits, over an engine --- */

struct fixture {
    struct trace_rig rig;
    struct trace_log log;
};

static struct fixture *open_rig(const tern_limits *limits, uint32_t n_groups)
{
    struct fixture *f = calloc(1, sizeof *f);
    trace_set_up(&f->rig, limits, n_groups);
    return f;
}

static void close_rig(struct fixture *f)
{
    trace_tear_down(&f->rig);
    free(f);
}

/* Runs a prompt; checks what it generates; answers how much of it was found. */
static uint32_t run_prompt(struct fixture *f, const tern_token *p, uint32_t n, bool sharing)
{
    tern_seq_options o = trace_greedy();
    tern_seq_info info;
    o.max_tokens = 3;
    o.no_kv_sharing = !sharing;
    f->log.n = 0;
    const tern_seq seq = trace_begin(&f->rig, &o, p, n);
    assert_int_equal(trace_drive(&f->rig, &f->log, 16, 1000), TERN_AGAIN);
    assert_int_equal(trace_matches(&f->rig, &f->log, seq, p, n), 3);
    assert_int_equal(tern_seq_describe(f->rig.engine, seq, &info), TERN_OK);
    tern_seq_close(f->rig.engine, seq);
    return info.n_cached;
}

static void a_prefix_is_found_up_to_the_last_token(void **state)
{
    (void)state;
    struct fixture *f = open_rig(&(tern_limits){.n_ctx = 128}, 1);
    tern_token p[100];
    for (int i = 0; i < 100; i++)
        p[i] = i % 90;
    assert_int_equal(run_prompt(f, p, 64, true), 0);
    const uint64_t rows = f->rig.trace->n_rows;
    assert_int_equal(run_prompt(f, p, 64, true), 48); /* its last token needs logits */
    assert_int_equal(f->rig.trace->n_rows - rows, 16 + 2);
    assert_int_equal(run_prompt(f, p, 65, true), 64);
    assert_int_equal(run_prompt(f, p, 16, true), 0);
    assert_int_equal(run_prompt(f, p, 17, true), 16);
    assert_int_equal(run_prompt(f, p, 100, true), 64);
    assert_int_equal(run_prompt(f, p, 100, true), 96);
    assert_int_equal(run_prompt(f, p, 100, false), 0); /* asked not to look */
    close_rig(f);
    f = open_rig(&(tern_limits){.n_ctx = 128, .no_kv_sharing = true}, 1);
    assert_int_equal(run_prompt(f, p, 100, true), 0);
    assert_int_equal(run_prompt(f, p, 100, true), 0);
    close_rig(f);
    f = open_rig(&(tern_limits){.n_ctx = 128}, 1);
    assert_int_equal(run_prompt(f, p, 100, false), 0); /* asked not to leave anything */
    assert_int_equal(run_prompt(f, p, 100, true), 0);
    close_rig(f);
}

static void colliding_hashes_find_nobody_elses_prefix(void **state)
{
    (void)state;
    for (uint32_t mask = 0; mask < 2; mask++) {
        struct fixture *f =
            open_rig(&(tern_limits){.n_ctx = 80, .n_kv_tokens = 1600, .chunk = 80}, 2);
        struct trace_random r = {mask + 3};
        uint32_t found = 0;
        f->rig.engine->parts.kv.prefix.hash_mask = mask ? 0xff : 0;
        for (int k = 0; k < 1000; k++) {
            tern_token p[70];
            const uint32_t n = 1 + trace_below(&r, 70);
            /* Few different blocks, so that the same one stands behind many others. */
            for (uint32_t i = 0; i < n; i += 16) {
                const tern_token t = (tern_token)trace_below(&r, 3);
                for (uint32_t j = i; j < i + 16 && j < n; j++)
                    p[j] = t;
            }
            found += run_prompt(f, p, n, true);
        }
        assert_true(found > 1000);
        close_rig(f);
    }
}

static void windowed_layers_reuse_only_what_is_whole(void **state)
{
    (void)state;
    for (uint32_t at = 0; at <= 40; at++) {
        struct fixture *f = open_rig(&(tern_limits){.n_ctx = 128, .chunk = 16}, 2);
        tern_token p[40], q[40];
        for (int i = 0; i < 40; i++) {
            p[i] = i;
            q[i] = (uint32_t)i < at ? i : 50 + i;
        }
        assert_int_equal(run_prompt(f, p, 40, true), 0);
        /* A window of 8 sees one block before a border; all of these are still in the pool. */
        const uint32_t cached = run_prompt(f, q, 40, true);
        assert_int_equal(cached, at < 16 ? 0 : at < 32 ? 16 : 32);
        close_rig(f);
    }
}

/* Four prompts of 72 tokens, 64 of them the same. */
static void run_together(bool sharing, uint64_t n_rows, uint64_t n_steps)
{
    struct fixture *f = open_rig(&(tern_limits){.n_ctx = 128, .n_seqs = 4, .chunk = 288,
                                                .no_kv_sharing = !sharing}, 1);
    tern_seq_options o = trace_greedy();
    tern_token p[4][72];
    tern_seq seqs[4];
    o.max_tokens = 1;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 72; i++)
            p[k][i] = i < 64 ? i : 10 * k + i % 8;
        seqs[k] = trace_begin(&f->rig, &o, p[k], 72);
    }
    assert_int_equal(trace_drive(&f->rig, &f->log, 16, 1000), TERN_AGAIN);
    assert_int_equal(f->rig.trace->n_rows, n_rows);
    assert_int_equal(f->rig.trace->n_submits, n_steps);
    for (int k = 0; k < 4; k++)
        assert_int_equal(trace_matches(&f->rig, &f->log, seqs[k], p[k], 72), 1);
    close_rig(f);
}

static void prompts_that_come_together_compute_their_prefix_once(void **state)
{
    (void)state;
    run_together(true, 64 + 4 * 8, 2);
    run_together(false, 4 * 72, 1); /* and nobody waits for what it will not get */
}

static void nobody_waits_for_what_a_window_has_lost(void **state)
{
    (void)state;
    struct fixture *f = open_rig(&(tern_limits){.n_ctx = 500, .n_seqs = 2, .chunk = 16}, 2);
    tern_token p[200] = {0};
    for (int i = 0; i < 200; i++)
        p[i] = i % 90;
    (void)trace_start(&f->rig, p, 200, 0);
    assert_int_equal(trace_drive(&f->rig, &f->log, 16, 20), TERN_OK); /* it generates */
    const tern_seq b = trace_start(&f->rig, p, 100, 0);
    assert_int_equal(trace_drive(&f->rig, &f->log, 16, 10), TERN_OK);
    assert_true(trace_matches(&f->rig, &f->log, b, p, 100) > 0);
    close_rig(f);
}

static void what_a_window_has_lost_is_computed_again(void **state)
{
    (void)state;
    struct fixture *f = open_rig(&(tern_limits){.n_ctx = 128, .chunk = 16}, 2);
    uint32_t found = 0, n = 0;
    for (uint32_t at = 0; at <= 120; at += 5) {
        tern_token p[120];
        for (int i = 0; i < 120; i++)
            p[i] = (uint32_t)i < at ? i % 50 : (tern_token)at % 40 + 50;
        const uint32_t cached = run_prompt(f, p, 120, true);
        assert_in_range(cached, 0, at);
        found += cached;
        n += at / 16 * 16;
    }
    assert_true(found < n); /* three blocks of window cannot hold eight borders */
    close_rig(f);
}

static void what_was_used_last_is_kept_longest(void **state)
{
    (void)state;
    struct fixture *f = open_rig(&(tern_limits){.n_ctx = 64, .n_kv_tokens = 160}, 1);
    tern_token p[3][50];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 50; i++)
            p[k][i] = 30 * k + i % 30;
    (void)run_prompt(f, p[0], 50, true); /* 3 blocks each in a pool of 10, and one more a run */
    (void)run_prompt(f, p[1], 50, true);
    assert_int_equal(run_prompt(f, p[0], 50, true), 48);
    (void)run_prompt(f, p[2], 50, true);
    (void)run_prompt(f, (const tern_token[50]){5}, 50, true);
    assert_int_equal(run_prompt(f, p[2], 50, true), 48);
    assert_int_equal(run_prompt(f, p[0], 49, true), 48);
    assert_in_range(run_prompt(f, p[1], 50, true), 0, 32);
    close_rig(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_tokens_behind_other_parents_are_other_nodes),
        cmocka_unit_test(a_node_goes_with_its_last_holder_and_takes_its_parents_along),
        cmocka_unit_test(a_prefix_is_found_up_to_the_last_token),
        cmocka_unit_test(colliding_hashes_find_nobody_elses_prefix),
        cmocka_unit_test(windowed_layers_reuse_only_what_is_whole),
        cmocka_unit_test(prompts_that_come_together_compute_their_prefix_once),
        cmocka_unit_test(nobody_waits_for_what_a_window_has_lost),
        cmocka_unit_test(what_a_window_has_lost_is_computed_again),
        cmocka_unit_test(what_was_used_last_is_kept_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
