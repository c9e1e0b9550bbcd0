#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "platform/cpu/kernels.h"
#include "platform/cpu/kv_store.h"
#include "quant/half.h"

enum { MAX_DIM = 256, UNTOUCHED = 0x5a };

static const enum tern_type types[] = {TERN_TYPE_F32, TERN_TYPE_F16, TERN_TYPE_Q8_0,
                                      TERN_TYPE_Q4_0};
static const size_t dims[] = {1, 8, 20, 31, 32, 33, 40, 80, 96, 100, 128, 256};
enum { N_TYPES = sizeof types / sizeof *types, N_DIMS = sizeof dims / sizeof *dims };

static uint32_t rng = 1;

static float next_float(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return 4.0f * (float)(int32_t)rng / 2147483648.0f;
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = next_float();
}

static void read_k(enum tern_type type, const uint8_t *block, size_t token, float *out, size_t dim)
{
    uint8_t row[4 * MAX_DIM];
    const size_t cols = tern_kv_k_cols(type, dim);
    tern_unpack_row(type, block, token, cols, row);
    tern_decode_row(type, row, out, cols);
}

static void read_v(enum tern_type type, const uint8_t *block, size_t token, float *out, size_t dim)
{
    tern_decode_row(type, block + token * tern_kv_v_row_bytes(type, dim), out,
                    tern_kv_k_cols(type, dim));
}

/* What must come back: the value itself, or within half a step of the rounding. */
static void assert_close(enum tern_type type, const float *x, const float *got, size_t dim)
{
    for (size_t i = 0; i < dim; i++) {
        float max = 0;
        for (size_t j = i / 32 * 32; j < dim && j < i / 32 * 32 + 32; j++)
            max = fabsf(x[j]) > max ? fabsf(x[j]) : max;
        if (type == TERN_TYPE_F32)
            assert_true(got[i] == x[i]);
        else if (type == TERN_TYPE_F16)
            assert_true(got[i] == tern_f16_to_f32(tern_f32_to_f16(x[i])));
        else if (type == TERN_TYPE_Q8_0)
            assert_true(fabsf(got[i] - x[i]) <= max / 127 * 0.5f * 1.01f + max * 0x1p-11f);
        else /* a whole step where the largest has the other sign and nearly the magnitude */
            assert_true(fabsf(got[i] - x[i]) <= max / 8 * 1.01f + max * 0x1p-11f);
    }
    for (size_t i = dim; i < tern_kv_k_cols(type, dim); i++)
        assert_true(got[i] == 0);
}

static void every_token_reads_back_what_was_stored(void **state)
{
    (void)state;
    static float k[16][MAX_DIM], v[16][MAX_DIM];
    float got[MAX_DIM];
    for (size_t c = 0; c < N_TYPES * N_DIMS; c++) {
        const enum tern_type type = types[c % N_TYPES];
        const size_t dim = dims[c / N_TYPES];
        uint8_t *kb = malloc(tern_kv_k_bytes(type, dim)), *vb = malloc(tern_kv_v_bytes(type, dim));
        for (size_t i = 0; i < 16; i++) {
            const size_t token = i * 5 % 16;
            fill(k[token], dim);
            fill(v[token], dim);
            tern_kv_store_k(&tern_kernels_ref, type, kb, token, k[token], dim);
            tern_kv_store_v(&tern_kernels_ref, type, vb, token, v[token], dim);
        }
        for (size_t token = 0; token < 16; token++) {
            read_k(type, kb, token, got, dim);
            assert_close(type, k[token], got, dim);
            read_v(type, vb, token, got, dim);
            assert_close(type, v[token], got, dim);
        }
        free(kb);
        free(vb);
    }
}

static void a_token_leaves_the_others_alone(void **state)
{
    (void)state;
    static uint8_t block[16 * 4 * MAX_DIM], old[16 * 4 * MAX_DIM];
    static uint8_t before[4 * MAX_DIM], after[4 * MAX_DIM];
    float x[MAX_DIM];
    for (size_t c = 0; c < N_TYPES * N_DIMS * 16; c++) {
        const enum tern_type type = types[c / 16 % N_TYPES];
        const size_t dim = dims[c / 16 / N_TYPES], token = c % 16;
        const size_t cols = tern_kv_k_cols(type, dim), row = tern_kv_v_row_bytes(type, dim);
        fill(x, dim);
        memset(block, UNTOUCHED, sizeof block);
        memcpy(old, block, sizeof block);
        tern_kv_store_k(&tern_kernels_ref, type, block, token, x, dim);
        for (size_t t = 0; t < 16; t++) {
            tern_unpack_row(type, block, t, cols, after);
            tern_unpack_row(type, old, t, cols, before);
            if (t == token)
                assert_memory_not_equal(before, after, row);
            else
                assert_memory_equal(before, after, row);
        }
        memset(block, UNTOUCHED, sizeof block);
        tern_kv_store_v(&tern_kernels_ref, type, block, token, x, dim);
        assert_memory_equal(block, old, token * row);
        assert_memory_equal(block + (token + 1) * row, old, sizeof block - (token + 1) * row);
    }
}

static void blocks_are_multiples_of_a_line_and_hold_their_rows(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_TYPES * N_DIMS; c++) {
        const enum tern_type type = types[c % N_TYPES];
        const size_t dim = dims[c / N_TYPES];
        assert_true(tern_kv_k_bytes(type, dim) % 64 == 0);
        assert_true(tern_kv_v_bytes(type, dim) % 64 == 0);
        assert_true(tern_kv_k_bytes(type, dim) >=
                    tern_panel_bytes(type, tern_kv_k_cols(type, dim)));
        assert_true(tern_kv_v_bytes(type, dim) >= 16 * tern_kv_v_row_bytes(type, dim));
    }
    assert_int_equal(tern_kv_k_bytes(TERN_TYPE_Q4_1, 64), 0);
}

static void quants_are_those_of_activations(void **state)
{
    (void)state;
    float x[64];
    int8_t q[64];
    float d[2];
    int16_t sum[4];
    uint8_t block[16 * 68];
    fill(x, 64);
    tern_kernels_ref.quantize(q, d, sum, x, 64);
    tern_kv_store_v(&tern_kernels_ref, TERN_TYPE_Q8_0, block, 3, x, 64);
    for (size_t b = 0; b < 2; b++) {
        const uint8_t *at = block + 3 * 68 + 34 * b;
        assert_int_equal(tern_load_u16(at), tern_f32_to_f16(d[b]));
        assert_memory_equal(at + 2, q + 32 * b, 32);
    }
}

static void codes_of_four_bits_are_the_nearest_steps_of_the_largest(void **state)
{
    (void)state;
    float x[32] = {0}, got[32];
    uint8_t block[16 * 18];
    x[3] = 1;
    x[7] = -16; /* step 2 */
    x[8] = 16;  /* beyond the last code */
    x[16] = 3;  /* 1.5 steps: to even */
    x[17] = 5;
    x[31] = -3.1f;
    tern_kv_store_v(&tern_kernels_ref, TERN_TYPE_Q4_0, block, 5, x, 32);
    read_v(TERN_TYPE_Q4_0, block, 5, got, 32);
    assert_true(got[3] == 0);
    assert_true(got[7] == -16);
    assert_true(got[8] == 14);
    assert_true(got[16] == 4);
    assert_true(got[17] == 4);
    assert_true(got[31] == -4);
    assert_int_equal(block[5 * 18 + 2 + 7], 0x80);
    assert_int_equal(block[5 * 18 + 2 + 15], 0x68);
}

static void values_beyond_the_range_become_no_finite_number(void **state)
{
    (void)state;
    static const float bad[] = {INFINITY, -INFINITY, NAN, 1e30f, 65520.0f};
    uint8_t block[16 * 4 * 8];
    float got[32];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        x[5] = bad[i];
        tern_kv_store_k(&tern_kernels_ref, TERN_TYPE_F16, block, 9, x, 8);
        read_k(TERN_TYPE_F16, block, 9, got, 8);
        assert_false(isfinite(got[5]));
        assert_true(got[4] == 5);
        if (bad[i] == 65520.0f)
            continue;
        uint8_t large[16 * 34];
        tern_kv_store_v(&tern_kernels_ref, TERN_TYPE_Q8_0, large, 9, x, 8);
        read_v(TERN_TYPE_Q8_0, large, 9, got, 8);
        assert_false(isfinite(got[5]));
        tern_kv_store_v(&tern_kernels_ref, TERN_TYPE_Q4_0, large, 9, x, 8);
        read_v(TERN_TYPE_Q4_0, large, 9, got, 8);
        assert_false(isfinite(got[5]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_reads_back_what_was_stored),
        cmocka_unit_test(a_token_leaves_the_others_alone),
        cmocka_unit_test(blocks_are_multiples_of_a_line_and_hold_their_rows),
        cmocka_unit_test(quants_are_those_of_activations),
        cmocka_unit_test(codes_of_four_bits_are_the_nearest_steps_of_the_largest),
        cmocka_unit_test(values_beyond_the_range_become_no_finite_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
