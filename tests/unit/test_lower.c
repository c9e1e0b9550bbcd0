#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/cpu/lower.h"
#include "quant/format.h"
#include "runtime/model.h"

/* One layer of a llama, its last norm and its logits, by hand. */
enum { X, XN, Q, K, V, A, O, G, U, XL, XM, L, N_SLOTS };
enum { E = 64, FF = 160, VOCAB = 1000 };

static const struct tern_tensor tensors[] = {
    {.type = TERN_TYPE_Q4_0, .n_dims = 2, .dims = {E, E, 1, 1}},
    {.type = TERN_TYPE_F32, .n_dims = 1, .dims = {E, 1, 1, 1}},
    {.type = TERN_TYPE_F16, .n_dims = 2, .dims = {E, VOCAB, 1, 1}},
};
static const struct tern_weight weights[] = {
    {0, true, E, E}, {1, false, 1, E}, {2, true, VOCAB, E}};

static const struct tern_op ops[] = {
    {.kind = TERN_OP_EMBED, .dst = X, .a = -1, .b = -1, .weight = 2, .x = 1},
    {.kind = TERN_OP_RMS_NORM, .dst = XN, .a = X, .b = -1, .weight = 1},
    {.kind = TERN_OP_MATMUL, .dst = Q, .a = XN, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_MATMUL, .dst = K, .a = XN, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_MATMUL, .dst = V, .a = XN, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_ROPE, .dst = Q, .a = Q, .b = -1, .weight = -1},
    {.kind = TERN_OP_ROPE, .dst = K, .a = K, .b = -1, .weight = -1},
    {.kind = TERN_OP_KV_STORE, .dst = -1, .a = K, .b = V, .weight = -1},
    {.kind = TERN_OP_ATTENTION, .dst = A, .a = Q, .b = -1, .weight = -1},
    {.kind = TERN_OP_MATMUL, .dst = O, .a = A, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_ADD, .dst = X, .a = X, .b = O, .weight = -1},
    {.kind = TERN_OP_RMS_NORM, .dst = XN, .a = X, .b = -1, .weight = 1},
    {.kind = TERN_OP_MATMUL, .dst = G, .a = XN, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_MATMUL, .dst = U, .a = XN, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_SILU_MUL, .dst = G, .a = G, .b = U, .weight = -1},
    {.kind = TERN_OP_MATMUL, .dst = O, .a = G, .b = -1, .weight = 0, .bias = -1},
    {.kind = TERN_OP_ADD, .dst = X, .a = X, .b = O, .weight = -1},
    {.kind = TERN_OP_LOGIT_ROWS, .dst = XL, .a = X, .b = -1, .weight = -1},
    {.kind = TERN_OP_RMS_NORM, .dst = XM, .a = XL, .b = -1, .weight = 1},
    {.kind = TERN_OP_MATMUL, .dst = L, .a = XM, .b = -1, .weight = 2, .bias = -1},
};

static struct tern_model model_of(void)
{
    struct tern_model m = {.tensors = tensors, .n_tensors = 3};
    m.program = (struct tern_program){.n_ops = sizeof ops / sizeof *ops,
                                      .ops = ops,
                                      .weights = weights,
                                      .n_weights = 3,
                                      .n_slots = N_SLOTS,
                                      .logits = L};
    static const uint32_t widths[N_SLOTS] = {E, E, E, E, E, E, E, FF, FF, E, E, VOCAB};
    for (int i = 0; i < N_SLOTS; i++)
        m.program.slots[i] = (struct tern_slot){"s", widths[i]};
    return m;
}

static void lower(const struct tern_model *m, bool exact, struct tern_lowered *low,
                  struct tern_phase *phases)
{
    tern_error err = {0};
    *low = (struct tern_lowered){.phases = NULL};
    assert_int_equal(tern_lower(m, exact, low, &err), TERN_OK);
    assert_in_range(low->n_phases, 1, 32);
    const uint32_t counted = low->n_phases;
    low->phases = phases;
    assert_int_equal(tern_lower(m, exact, low, &err), TERN_OK);
    assert_int_equal(low->n_phases, counted);
}

static void a_dense_layer_is_six_phases(void **state)
{
    (void)state;
    const struct tern_model m = model_of();
    struct tern_lowered low;
    struct tern_phase ph[32];
    lower(&m, false, &low, ph);
    static const struct {
        int kind, n, norm, matmuls, coupled;
    } want[] = {
        {TERN_PHASE_ROWS, 1, 0, 0, 0},     {TERN_PHASE_MULTIPLY, 4, 1, 3, 0},
        {TERN_PHASE_ROWS, 3, 0, 0, 0},     {TERN_PHASE_ATTEND, 1, 0, 0, 0},
        {TERN_PHASE_MULTIPLY, 2, 0, 1, 0}, {TERN_PHASE_MULTIPLY, 4, 1, 2, 1},
        {TERN_PHASE_MULTIPLY, 2, 0, 1, 0}, {TERN_PHASE_ROWS, 1, 0, 0, 0},
        {TERN_PHASE_MULTIPLY, 2, 1, 1, 0},
    };
    assert_int_equal(low.n_phases, sizeof want / sizeof *want);
    for (uint32_t i = 0; i < low.n_phases; i++) {
        assert_int_equal(ph[i].kind, want[i].kind);
        assert_int_equal(ph[i].n, want[i].n);
        assert_int_equal(ph[i].n_norm, want[i].norm);
        assert_int_equal(ph[i].n_matmuls, want[i].matmuls);
        assert_int_equal(ph[i].coupled, want[i].coupled);
        assert_int_equal(ph[i].on_logits, i >= 7);
    }
}

static void products_say_what_they_take(void **state)
{
    (void)state;
    const struct tern_model m = model_of();
    struct tern_lowered low;
    struct tern_phase ph[32];
    lower(&m, false, &low, ph);
    assert_true(ph[1].needs_q && !ph[1].needs_x);
    assert_true(ph[8].needs_x && !ph[8].needs_q);
    lower(&m, true, &low, ph);
    assert_true(ph[1].needs_x && !ph[1].needs_q);
    assert_true(low.norm_floats);
}

enum access { UNTOUCHED, READ_FIRST, WRITTEN_FIRST };

static enum access access_of(const struct tern_phase *ph, int slot)
{
    for (uint32_t i = 0; i < ph->n; i++) {
        const struct tern_op *op = &ops[ph->first + i];
        if (op->a == slot || op->b == slot)
            return READ_FIRST;
        if (op->dst == slot)
            return WRITTEN_FIRST;
    }
    return UNTOUCHED;
}

/* Whether a slot is in use during phase p: touched there, or read behind it before it is written */
static bool holds(const struct tern_phase *ph, uint32_t n_phases, uint32_t p, int slot)
{
    if (access_of(&ph[p], slot) != UNTOUCHED)
        return true;
    for (p++; p < n_phases; p++)
        if (access_of(&ph[p], slot) != UNTOUCHED)
            return access_of(&ph[p], slot) == READ_FIRST;
    return false;
}

static bool lives_meet(const struct tern_phase *ph, uint32_t n_phases, int a, int b)
{
    for (uint32_t p = 0; p < n_phases; p++)
        if (holds(ph, n_phases, p, a) && holds(ph, n_phases, p, b))
            return true;
    return false;
}

static void slots_that_live_together_lie_apart(void **state)
{
    (void)state;
    const struct tern_model m = model_of();
    struct tern_lowered low;
    struct tern_phase ph[32];
    lower(&m, false, &low, ph);
    uint32_t sum = 0;
    for (int a = 0; a < N_SLOTS; a++) {
        const struct tern_slot_place *p = &low.slots[a];
        sum += p->stride;
        for (int b = 0; b < a; b++) {
            const struct tern_slot_place *q = &low.slots[b];
            if (p->stride && q->stride && p->on_logits == q->on_logits &&
                lives_meet(ph, low.n_phases, a, b))
                assert_true(p->offset + p->stride <= q->offset ||
                            q->offset + q->stride <= p->offset);
        }
    }
    assert_int_equal(low.slots[XN].stride, 0); /* it exists only as records */
    assert_true(low.slots[L].on_logits);
    assert_in_range(low.row_floats, 1, sum - low.logit_floats - 1); /* some memory is shared */
}

/* Q is read long after it is written; what lies in between must not lie on it. */
static void a_slot_is_kept_until_it_is_read_last(void **state)
{
    (void)state;
    static const struct tern_op chain[] = {
        {.kind = TERN_OP_EMBED, .dst = X, .a = -1, .b = -1, .weight = 2, .x = 1},
        {.kind = TERN_OP_MATMUL, .dst = Q, .a = X, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_MATMUL, .dst = K, .a = Q, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_MATMUL, .dst = V, .a = K, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_MATMUL, .dst = A, .a = V, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_MATMUL, .dst = O, .a = A, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_ADD, .dst = O, .a = O, .b = Q, .weight = -1},
    };
    struct tern_model m = model_of();
    m.program.ops = chain;
    m.program.n_ops = sizeof chain / sizeof *chain;
    m.program.logits = O;
    struct tern_lowered low;
    struct tern_phase ph[32];
    lower(&m, false, &low, ph);
    const uint32_t at = low.slots[Q].offset;
    assert_true(at != low.slots[K].offset && at != low.slots[V].offset);
    assert_true(at != low.slots[A].offset && at != low.slots[O].offset);
    assert_int_equal(low.row_floats, 3 * low.slots[Q].stride); /* and no more than are needed */
}

/* What nobody reads but the ops that are fused to it is not kept for all rows. */
static void products_of_one_phase_lie_in_pieces(void **state)
{
    (void)state;
    const struct tern_model m = model_of();
    struct tern_lowered low;
    struct tern_phase ph[32];
    lower(&m, false, &low, ph);
    for (int s = 0; s < N_SLOTS; s++) {
        assert_int_equal(low.slots[s].inner, s == U || s == O);
        if (low.slots[s].inner)
            assert_int_equal(low.slots[s].stride, 0);
    }
    assert_int_equal(low.n_inner, 1); /* they are of different phases */
    assert_int_equal(low.widest_inner, FF);
    assert_int_equal(low.row_floats, FF + 2 * E); /* G, X, V; Q and K lie where G comes to lie */
}

/* Gate, up and down of one phase have a piece each; the last op's result is read later. */
static void pieces_of_one_phase_lie_apart(void **state)
{
    (void)state;
    static const struct tern_op three[] = {
        {.kind = TERN_OP_EMBED, .dst = X, .a = -1, .b = -1, .weight = 2, .x = 1},
        {.kind = TERN_OP_MATMUL, .dst = Q, .a = X, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_MATMUL, .dst = K, .a = X, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_MATMUL, .dst = V, .a = X, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_ADD, .dst = Q, .a = Q, .b = K, .weight = -1},
        {.kind = TERN_OP_ADD, .dst = A, .a = Q, .b = V, .weight = -1},
        {.kind = TERN_OP_MATMUL, .dst = O, .a = A, .b = -1, .weight = 0, .bias = -1},
        {.kind = TERN_OP_ADD, .dst = O, .a = O, .b = A, .weight = -1},
    };
    struct tern_model m = model_of();
    m.program.ops = three;
    m.program.n_ops = sizeof three / sizeof *three;
    m.program.logits = O;
    struct tern_lowered low;
    struct tern_phase ph[32];
    lower(&m, false, &low, ph);
    assert_true(low.slots[Q].inner && low.slots[K].inner && low.slots[V].inner);
    assert_false(low.slots[A].inner || low.slots[O].inner || low.slots[X].inner);
    assert_int_equal(low.n_inner, 3);
    assert_true(low.slots[Q].offset != low.slots[K].offset);
    assert_true(low.slots[Q].offset != low.slots[V].offset);
    assert_true(low.slots[K].offset != low.slots[V].offset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_layer_is_six_phases),
        cmocka_unit_test(products_say_what_they_take),
        cmocka_unit_test(slots_that_live_together_lie_apart),
        cmocka_unit_test(a_slot_is_kept_until_it_is_read_last),
        cmocka_unit_test(products_of_one_phase_lie_in_pieces),
        cmocka_unit_test(pieces_of_one_phase_lie_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
