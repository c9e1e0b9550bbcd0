/* check_rows.c: the operations on one row, at lengths around every vector width. */
#include "tests/kernels/check.h"

#include "quant/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 240, N_CLASSES = 7 };

static const size_t lengths[] = {1,  2,  7,  8,   9,   15,  16,  17,  31,
                                 32, 33, 64, 255, 256, 257, 896, 4096};

static size_t pick_length(int round)
{
    return lengths[(size_t)(round / N_CLASSES) % (sizeof lengths / sizeof *lengths)];
}

/* Classes of values: ordinary, activations, ties when d is 1, huge, subnormal, blocks of zeros,
 * and some that are not finite. */
static float pick_value(int class, size_t i)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN,       -0.0f,
                                1e30f,    -1e30f,    0x1p-149f, 0x1p-126f};
    const float unit = (float)(int32_t)rnd() / 2147483648.0f;
    switch (class) {
    case 1: return 9.0f * unit;
    case 2: return i % 32 == 5 ? 127.0f : 0.5f * (float)((int)(rnd() % 509) - 254);
    case 3: return 1e30f * unit;
    case 4: return (rnd() % 2 ? 0x1p-126f : 0x1p-119f) * unit;
    case 5: return i / 32 % 2 ? unit : rnd() % 2 ? 0.0f : -0.0f;
    case 6: return rnd() % 16 ? 100.0f * unit : odd[rnd() % (sizeof odd / sizeof *odd)];
    default: return rnd_float();
    }
}

float *rnd_row(size_t n, int round)
{
    float *x = guarded(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = pick_value(round % N_CLASSES, i);
    return x;
}

/* Two outputs of n floats that start equal: as `from`, or filled with a pattern. */
struct outputs { float *ref, *got; };

static struct outputs make_outputs(size_t n, const float *from)
{
    struct outputs o = {guarded(n * sizeof(float)), guarded(n * sizeof(float))};
    if (from)
        memcpy(o.ref, from, n * sizeof(float));
    else
        memset(o.ref, 0x5a, n * sizeof(float));
    memcpy(o.got, o.ref, n * sizeof(float));
    return o;
}

static void compare(const struct candidate *c, struct outputs o, size_t n, int round)
{
    char what[96];
    snprintf(what, sizeof what, "%s of %zu, round %d", c->kernel, n, round);
    assert_same_floats(o.ref, o.got, n, what);
    guarded_free();
}

#define PICK(type, f, table) type *f; memcpy(&f, (const char *)(table) + c->offset, sizeof f)

void check_rms_norm(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_rms_norm_fn, ref, c->ref);
    PICK(tern_rms_norm_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_length(round);
        const float *a = rnd_row(n, round), *weight = rnd_row(n, 1);
        const bool in_place = round % 2;
        const struct outputs o = make_outputs(n, in_place ? a : NULL);
        ref(o.ref, in_place ? o.ref : a, weight, n, 1e-5f);
        got(o.got, in_place ? o.got : a, weight, n, 1e-5f);
        compare(c, o, n, round);
    }
}

void check_quantize(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_quantize_fn, ref, c->ref);
    PICK(tern_quantize_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_length(round), n_blocks = (n + 31) / 32;
        const float *x = rnd_row(n, round);
        const struct outputs d = make_outputs(n_blocks, NULL);
        int8_t *q[2];
        int16_t *sum[2];
        for (size_t i = 0; i < 2; i++) {
            q[i] = guarded(32 * n_blocks);
            sum[i] = guarded(2 * n_blocks * sizeof **sum);
            (i ? got : ref)(q[i], i ? d.got : d.ref, sum[i], x, n);
        }
        assert_same_bits(q[0], q[1], 32 * n_blocks, "quants");
        assert_same_bits(sum[0], sum[1], 2 * n_blocks * sizeof **sum, "sums");
        compare(c, d, n_blocks, round);
    }
}

/* Into odd addresses too; numbers that become subnormal, infinite, or stand between two halves. */
void check_halves(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_halves_fn, ref, c->ref);
    PICK(tern_halves_fn, got, c->under_test);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        const size_t n = pick_length(round), odd = (size_t)(round % 2);
        float *x = rnd_row(n, round);
        for (size_t i = 0; i < n; i++) {
            const float half = tern_f16_to_f32((uint16_t)rnd());
            if (isfinite(x[i]) && half == half && rnd() % 2)
                x[i] = half * (1.0f + 0x1p-12f * (float)((int)(rnd() % 33) - 16));
            else if (x[i] != x[i])
                x[i] = INFINITY; /* a NaN is any NaN, of halves too */
        }
        uint8_t *a = guarded(2 * n + odd), *b = guarded(2 * n + odd);
        memset(a, 0x5a, 2 * n + odd);
        memset(b, 0x5a, 2 * n + odd);
        ref(a + odd, x, n);
        got(b + odd, x, n);
        assert_same_bits(a, b, 2 * n + odd, "halves");
        const float nan = NAN;
        uint16_t h[2];
        ref(&h[0], &nan, 1);
        got(&h[1], &nan, 1);
        assert_true(isnan(tern_f16_to_f32(h[0])) && isnan(tern_f16_to_f32(h[1])));
        guarded_free();
    }
}

void check_hadamard(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_hadamard_fn, ref, c->ref);
    PICK(tern_hadamard_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = round % 3 ? 1 + rnd() % 300 : pick_length(round);
        const struct outputs o = make_outputs(n, rnd_row(n, round));
        ref(o.ref, n);
        got(o.got, n);
        compare(c, o, n, round);
    }
}

void check_rope(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_rope_fn, ref, c->ref);
    PICK(tern_rope_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = (pick_length(round) + 1) & ~(size_t)1;
        const float *cs = rnd_row(n, 1);
        const struct outputs o = make_outputs(n, rnd_row(n, round));
        ref(o.ref, cs, n);
        got(o.got, cs, n);
        compare(c, o, n, round);
    }
}

void check_mul_act(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_mul_act_fn, ref, c->ref);
    PICK(tern_mul_act_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_length(round);
        const float *gate = rnd_row(n, round), *up = rnd_row(n, 1);
        const struct outputs o = make_outputs(n, NULL);
        ref(o.ref, gate, up, n);
        got(o.got, gate, up, n);
        compare(c, o, n, round);
    }
}

void check_add(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_add_fn, ref, c->ref);
    PICK(tern_add_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_length(round);
        const float *a = rnd_row(n, round), *b = rnd_row(n, round / 3);
        const bool in_place = round % 2;
        const struct outputs o = make_outputs(n, in_place ? a : NULL);
        ref(o.ref, in_place ? o.ref : a, b, n);
        got(o.got, in_place ? o.got : a, b, n);
        compare(c, o, n, round);
    }
}

/* scale and softcap have one signature. */
void check_scale(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_scale_fn, ref, c->ref);
    PICK(tern_scale_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_length(round);
        const float *a = rnd_row(n, round), x = round % 3 ? 30.0f : 0.3f;
        const bool in_place = round % 2;
        const struct outputs o = make_outputs(n, in_place ? a : NULL);
        ref(o.ref, in_place ? o.ref : a, x, n);
        got(o.got, in_place ? o.got : a, x, n);
        compare(c, o, n, round);
    }
}

/* Now and then the highest is alone at one end, a NaN of either sign anywhere, or all are -0. */
void check_highest(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_highest_fn, ref, c->ref);
    PICK(tern_highest_fn, got, c->under_test);
    for (int round = 0; round < 4 * ROUNDS; round++) {
        const size_t n = pick_length(round);
        float *x = rnd_row(n, round);
        if (round % 8 == 1)
            x[rnd() % 2 ? 0 : n - 1] = 1e31f;
        if (round % 8 == 2)
            x[rnd() % n] = rnd() % 2 ? NAN : -NAN;
        for (size_t i = 0; round % 8 == 3 && i < n; i++)
            x[i] = round % 16 == 3 ? -0.0f : -INFINITY;
        const float a = ref(x, n), b = got(x, n);
        char what[96];
        snprintf(what, sizeof what, "highest of %zu, round %d", n, round);
        assert_same_floats(&a, &b, 1, what);
        guarded_free();
    }
}

void check_exp_row(void **state)
{
    const struct candidate *c = *state;
    PICK(tern_exp_row_fn, ref, c->ref);
    PICK(tern_exp_row_fn, got, c->under_test);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = pick_length(round);
        float *x = rnd_row(n, round);
        const float t = round % 3 ? 1.0f : round % 2 ? 0.7f : 1.9f;
        float max = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            x[i] = round % 2 ? x[i] : 30.0f * ((float)(int32_t)rnd() / 2147483648.0f - 1.0f);
            max = x[i] > max ? x[i] : max;
        }
        const struct outputs o = make_outputs(n, x);
        ref(o.ref, n, max, t);
        got(o.got, n, max, t);
        compare(c, o, n, round);
    }
}
