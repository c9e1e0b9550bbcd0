#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/backend/trace.h"

static struct trace_rig rig;

static int set_up(void **state)
{
    (void)state;
    static const uint32_t windows[] = {0, 8};
    trace_model(&rig, windows, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(rig.file);
    return 0;
}

static tern_status make(tern_limits limits, tern_plan *plan)
{
    rig.error = (tern_error){0};
    return tern_plan_make(&rig.model, &trace_backend, &limits, plan, &rig.error);
}

static void every_default_is_filled_in(void **state)
{
    (void)state;
    tern_plan plan;
    assert_int_equal(make((tern_limits){0}, &plan), TERN_OK);
    const tern_limits *l = &plan.limits;
    assert_int_equal(l->n_ctx, 128); /* the model's */
    assert_int_equal(l->n_seqs, 1);
    assert_int_equal(l->chunk, 128);
    assert_int_equal(l->n_threads, 1);
    assert_int_equal(l->n_logit_rows, 1);
    assert_int_equal(l->n_kv_tokens, 128);
    assert_int_equal(l->n_stop_bytes, 1024);

    rig.model.program.n_ctx_train = 131072;
    assert_int_equal(make((tern_limits){.n_seqs = 200}, &plan), TERN_OK);
    assert_int_equal(l->n_ctx, 4096);
    assert_int_equal(l->chunk, 128);
    assert_int_equal(l->n_logit_rows, 128);

    assert_int_equal(make((tern_limits){.n_ctx = 50, .n_seqs = 3, .exact = true}, &plan), TERN_OK);
    assert_int_equal(l->chunk, 50);
    assert_int_equal(l->n_kv_tokens, 3 * 64); /* whole blocks */
    assert_int_equal(l->k_type, TERN_KV_F32);
    assert_int_equal(l->v_type, TERN_KV_F32);

    tern_plan again;
    assert_int_equal(make(*l, &again), TERN_OK);
    assert_memory_equal(&again.limits, l, sizeof *l);
    assert_int_equal(again.bytes, plan.bytes);
}

static void limits_out_of_range_are_refused_by_name(void **state)
{
    (void)state;
    tern_plan plan;
    const struct { tern_limits limits; const char *text; } cases[] = {
        {{.n_ctx = UINT32_MAX}, "limits: n_ctx 4294967295, at most 1048576"},
        {{.n_ctx = 1048577}, "limits: n_ctx 1048577, at most 1048576"},
        {{.n_seqs = 1025}, "limits: n_seqs 1025, at most 1024"},
        {{.chunk = 65537}, "limits: chunk 65537, at most 65536"},
        {{.n_threads = 257}, "limits: n_threads 257, at most 256"},
        {{.n_threads = 10000}, "limits: n_threads 10000, at most 256"},
        {{.chunk = 8, .n_logit_rows = 9}, "limits: n_logit_rows 9, at most 8"},
        {{.n_logprobs = 1025}, "limits: n_logprobs 1025, at most 1024"},
        {{.n_stop_bytes = 1u << 31}, "limits: n_stop_bytes 2147483648, at most 65536"},
        {{.k_type = TERN_N_KV_TYPES}, "limits: k_type 4, at most 3"},
        {{.v_type = (tern_kv_type)77}, "limits: v_type 77, at most 3"},
        {{.n_ctx = 100, .n_kv_tokens = 99}, "limits: n_kv_tokens 99, at least n_ctx 100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(make(cases[i].limits, &plan), TERN_BAD_ARGUMENT);
        assert_string_equal(rig.error.text, cases[i].text);
    }
    assert_int_equal(tern_plan_make(NULL, &trace_backend, &cases[0].limits, &plan, NULL),
                     TERN_BAD_ARGUMENT);
}

static void the_largest_limits_are_counted_in_64_bits(void **state)
{
    (void)state;
    tern_plan plan;
    assert_int_equal(make((tern_limits){.n_ctx = 1 << 20, .n_seqs = 1024, .chunk = 65536,
                                        .n_logprobs = 1024},
                          &plan),
                     TERN_OK);
    assert_int_equal(plan.limits.n_kv_tokens, 1u << 30);
    /* Histories, and 16 numbers of 8 bytes a block of the trace's first pool. */
    assert_true(plan.arenas[TERN_ARENA_STATE].bytes > (size_t)4 << 30);
    assert_true(plan.arenas[TERN_ARENA_KV].bytes > (size_t)8 << 30);
    assert_int_equal(make((tern_limits){.n_kv_tokens = UINT32_MAX}, &plan), TERN_OK);
    assert_true(plan.arenas[TERN_ARENA_KV].bytes >= (size_t)UINT32_MAX * 8);
}

static tern_status huge_plan(const struct tern_model *model, const struct tern_backend_plan *p,
                             tern_arena_need arenas[TERN_N_ARENAS], tern_error *err)
{
    const tern_status status = trace_backend.plan(model, p, arenas, err);
    arenas[TERN_ARENA_KV].bytes = SIZE_MAX - 5000;
    return status;
}

static void a_sum_past_the_address_space_is_refused(void **state)
{
    (void)state;
    tern_plan plan;
    struct tern_backend huge = trace_backend;
    huge.plan = huge_plan;
    const tern_limits limits = {0};
    rig.error = (tern_error){0};
    assert_int_equal(tern_plan_make(&rig.model, &huge, &limits, &plan, &rig.error),
                     TERN_NO_MEMORY);
    assert_non_null(strstr(rig.error.text, "plan: kv of 18446744073709547520 bytes"));
}

static void arenas_are_named_aligned_and_summed(void **state)
{
    (void)state;
    tern_plan plan;
    size_t sum = 0;
    assert_int_equal(make((tern_limits){0}, &plan), TERN_OK);
    assert_int_equal(plan.n_arenas, TERN_N_ARENAS);
    for (uint32_t i = 0; i < plan.n_arenas; i++) {
        assert_non_null(plan.arenas[i].name);
        assert_true(plan.arenas[i].align == 64 || plan.arenas[i].align == 4096);
        assert_int_equal(plan.arenas[i].bytes % plan.arenas[i].align, 0);
        sum += plan.arenas[i].bytes;
    }
    assert_int_equal(sum, plan.bytes);
    assert_string_equal(plan.arenas[TERN_ARENA_KV].name, "kv");
    assert_int_equal(plan.arenas[TERN_ARENA_MODEL].bytes, 128);
    /* 16 rows of 40,000 bytes pass through the KV arena; from memory nothing does. */
    assert_int_equal(make((tern_limits){.n_ctx = 16}, &plan), TERN_OK);
    assert_true(plan.arenas[TERN_ARENA_KV].bytes >= 640000);
    assert_int_equal(plan.arenas[TERN_ARENA_SCRATCH].bytes, 128);
    rig.source.base = rig.file;
    assert_int_equal(make((tern_limits){.n_ctx = 16}, &plan), TERN_OK);
    assert_true(plan.arenas[TERN_ARENA_KV].bytes < 640000);
}

static void an_op_that_the_backend_lacks_is_named(void **state)
{
    (void)state;
    tern_plan plan;
    rig.op.kind = TERN_N_OPS;
    assert_int_equal(make((tern_limits){0}, &plan), TERN_UNSUPPORTED);
    assert_string_equal(rig.error.text, "backend trace: op 0 of kind 13, not supported");
    rig.model.program.n_ops = 0;
    assert_int_equal(make((tern_limits){0}, &plan), TERN_BAD_ARGUMENT);
    assert_string_equal(rig.error.text, "model: it was read without its program");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(every_default_is_filled_in),
        TEST(limits_out_of_range_are_refused_by_name),
        TEST(the_largest_limits_are_counted_in_64_bits),
        TEST(a_sum_past_the_address_space_is_refused),
        TEST(arenas_are_named_aligned_and_summed),
        TEST(an_op_that_the_backend_lacks_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
