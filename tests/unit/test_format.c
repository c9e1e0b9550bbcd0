#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "quant/format.h"
#include "quant/half.h"

enum { MAX_ROW = 1024 };

static const uint32_t types[] = {
    TERN_TYPE_F32, TERN_TYPE_F16, TERN_TYPE_BF16, TERN_TYPE_Q4_0, TERN_TYPE_Q4_1, TERN_TYPE_Q5_0,
    TERN_TYPE_Q5_1, TERN_TYPE_Q8_0, TERN_TYPE_Q2_K, TERN_TYPE_Q3_K, TERN_TYPE_Q4_K,
    TERN_TYPE_Q5_K, TERN_TYPE_Q6_K, TERN_TYPE_IQ1_S, TERN_TYPE_IQ1_M, TERN_TYPE_IQ2_XXS,
    TERN_TYPE_IQ2_XS, TERN_TYPE_IQ2_S, TERN_TYPE_IQ3_XXS, TERN_TYPE_IQ3_S, TERN_TYPE_IQ4_NL,
    TERN_TYPE_IQ4_XS, TERN_TYPE_TQ1_0, TERN_TYPE_TQ2_0, TERN_TYPE_MXFP4,
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static uint64_t seed;

static uint8_t next_byte(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(seed >> 40);
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = next_byte();
}

/* Elements of a few blocks: an odd number of blocks, so that the last is reached by no pairing. */
static size_t few(const struct tern_format *f)
{
    return f->n_elems == 1 ? 37 : 3 * (size_t)f->n_elems;
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, 4) == 0;
}

static void planes_cover_a_block_once(void **state)
{
    (void)state;
    for (size_t t = 0; t < N_TYPES; t++) {
        const struct tern_format *f = tern_format_of(types[t]);
        uint8_t seen[TERN_MAX_BLOCK_BYTES] = {0};
        assert_non_null(f);
        assert_in_range(f->n_bytes, 1, TERN_MAX_BLOCK_BYTES);
        assert_in_range(f->n_planes, 1, TERN_MAX_PLANES);
        for (size_t p = 0; p < f->n_planes; p++) {
            assert_int_equal(f->planes[p].bytes % f->planes[p].run, 0);
            for (size_t i = 0; i < f->planes[p].bytes; i++)
                seen[f->planes[p].offset + i]++;
        }
        for (size_t i = 0; i < f->n_bytes; i++)
            assert_int_equal(seen[i], 1);
    }
}

static void packing_is_inverted_and_rows_past_the_end_are_zero(void **state)
{
    (void)state;
    static uint8_t rows[TERN_PANEL_ROWS * MAX_ROW], panel[TERN_PANEL_ROWS * MAX_ROW], back[MAX_ROW];
    static const size_t n_rows[] = {0, 1, 3, 7, 15, 16};
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t k = 0; k < sizeof n_rows / sizeof n_rows[0]; k++) {
            const size_t n = few(tern_format_of(types[t]));
            const size_t bytes = tern_row_bytes(types[t], n);
            assert_in_range(bytes, 1, MAX_ROW);
            assert_int_equal(tern_panel_bytes(types[t], n), 16 * bytes);
            fill(rows, sizeof rows);
            memset(panel, 0xa5, sizeof panel);
            tern_pack_panel(types[t], rows, n_rows[k], n, panel);
            if (16 * bytes < sizeof panel)
                assert_int_equal(panel[16 * bytes], 0xa5);
            for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
                tern_unpack_row(types[t], panel, r, n, back);
                if (r >= n_rows[k])
                    memset(rows + r * bytes, 0, bytes);
                assert_memory_equal(back, rows + r * bytes, bytes);
            }
        }
}

static void a_panel_is_laid_out_as_the_header_draws_it(void **state)
{
    (void)state;
    static uint8_t rows[TERN_PANEL_ROWS * MAX_ROW], panel[TERN_PANEL_ROWS * MAX_ROW];
    for (size_t t = 0; t < N_TYPES; t++) {
        const struct tern_format *f = tern_format_of(types[t]);
        const size_t n = few(f), bytes = tern_row_bytes(types[t], n);
        fill(rows, sizeof rows);
        tern_pack_panel(types[t], rows, 16, n, panel);
        size_t at = 0;
        for (size_t b = 0; b < n / f->n_elems; b++)
            for (size_t p = 0; p < f->n_planes; p++) {
                const size_t run = f->planes[p].run;
                for (size_t i = 0; i < f->planes[p].bytes; i += run)
                    for (size_t r = 0; r < 16; r++)
                        for (size_t k = 0; k < run; k++)
                            assert_int_equal(panel[at++], rows[r * bytes + b * f->n_bytes +
                                                               f->planes[p].offset + i + k]);
            }
        assert_int_equal(at, 16 * bytes);
    }
}

static void decoding_is_the_formula_of_the_codes(void **state)
{
    (void)state;
    static uint8_t row[MAX_ROW];
    static float out[3 * 256];
    for (int round = 0; round < 200; round++)
        for (size_t t = 0; t < N_TYPES; t++) {
            const struct tern_format *f = tern_format_of(types[t]);
            if (!f->codes)
                continue;
            fill(row, sizeof row);
            tern_decode_row(types[t], row, out, few(f));
            for (size_t i = 0; i < few(f); i++) {
                struct tern_codes c;
                f->codes(row + i / f->n_elems * f->n_bytes, (uint32_t)(i % f->n_elems / 32), &c);
                const size_t e = i % 32, h = e / 16;
                float x = c.scale * (float)(c.sc[h] * c.q[e]);
                if (f->has_min)
                    x -= c.min * (float)c.m[h];
                else
                    assert_true(same(c.min, 0.0f) && c.m[h] == 0);
                assert_true(same(out[i], x));
            }
        }
}

static void codes_of_a_panel_are_the_codes_of_its_rows(void **state)
{
    (void)state;
    static uint8_t rows[TERN_PANEL_ROWS * MAX_ROW], panel[TERN_PANEL_ROWS * MAX_ROW];
    static struct tern_panel_codes pc, all[8];
    for (size_t t = 0; t < N_TYPES; t++) {
        const struct tern_format *f = tern_format_of(types[t]);
        if (!f->codes)
            continue;
        const size_t n = few(f), bytes = tern_row_bytes(types[t], n);
        fill(rows, sizeof rows);
        tern_pack_panel(types[t], rows, 16, n, panel);
        for (size_t b = 0; b < n / f->n_elems; b++) {
            tern_panel_block_to_codes(f, panel + b * 16 * f->n_bytes, all);
            for (uint32_t sub = 0; sub < f->n_elems / 32u; sub++) {
                tern_panel_to_codes(f, panel + b * 16 * f->n_bytes, sub, &pc);
                assert_memory_equal(&all[sub], &pc, sizeof pc);
                for (size_t r = 0; r < 16; r++) {
                    struct tern_codes c;
                    f->codes(rows + r * bytes + b * f->n_bytes, sub, &c);
                    for (size_t i = 0; i < 32; i++)
                        assert_int_equal(pc.q[i / 4][r][i % 4], c.q[i]);
                    assert_true(same(pc.scale[r], c.scale) && same(pc.min[r], c.min));
                    assert_memory_equal(pc.sc[r], c.sc, sizeof c.sc);
                    assert_memory_equal(pc.m[r], c.m, sizeof c.m);
                }
            }
        }
    }
}

static void zero_bytes_decode_to_zeros(void **state)
{
    (void)state;
    static const uint8_t row[MAX_ROW];
    static float out[3 * 256];
    for (size_t t = 0; t < N_TYPES; t++) {
        const size_t n = few(tern_format_of(types[t]));
        memset(out, 0xff, sizeof out);
        tern_decode_row(types[t], row, out, n);
        for (size_t i = 0; i < n; i++)
            assert_true(out[i] == 0.0f);
    }
}

/* Against activations of +-127 with the sign of each code, the worst that there is. */
static void integers_stay_below_two_to_the_24(void **state)
{
    (void)state;
    static uint8_t row[MAX_ROW];
    for (int round = 0; round < 400; round++)
        for (size_t t = 0; t < N_TYPES; t++) {
            const struct tern_format *f = tern_format_of(types[t]);
            if (!f->codes)
                continue;
            if (round < 256)
                memset(row, round, sizeof row);
            else
                fill(row, sizeof row);
            for (uint32_t sub = 0; sub < f->n_elems / 32u; sub++) {
                struct tern_codes c;
                f->codes(row, sub, &c);
                long worst = 0, sums = 0;
                for (size_t i = 0; i < 32; i++) {
                    worst += 127l * labs((long)c.sc[i / 16] * c.q[i]);
                    sums += 127l * labs((long)c.m[i / 16]);
                }
                assert_in_range(worst, 0, (1 << 24) - 1);
                assert_in_range(sums, 0, (1 << 24) - 1);
            }
        }
}

static void blocks_written_by_hand_have_their_values(void **state)
{
    (void)state;
    uint8_t b[256] = {0x00, 0x40}; /* d = 2 */
    float out[256];
    b[2] = 0xf1;
    tern_decode_row(TERN_TYPE_Q4_0, b, out, 32);
    assert_true(out[0] == -14.0f && out[16] == 14.0f && out[1] == -16.0f && out[17] == -16.0f);

    memcpy(b, "\x00\x3c\x00\xc1\x72", 5); /* d = 1, m = -2.5 */
    tern_decode_row(TERN_TYPE_Q4_1, b, out, 32);
    assert_true(out[0] == -0.5f && out[16] == 4.5f && out[1] == -2.5f);

    memcpy(b, "\x00\x38\x02\x00\x00\x80\x00", 7); /* d = 1/2, high bits of 1 and 31 */
    memset(b + 6, 0, 16);
    b[21] = 0x30;
    tern_decode_row(TERN_TYPE_Q5_0, b, out, 32);
    assert_true(out[0] == -8.0f && out[1] == 0.0f && out[31] == 1.5f && out[15] == -8.0f);

    memcpy(b, "\x00\xb8\x80\x7f", 4); /* d = -1/2 */
    tern_decode_row(TERN_TYPE_Q8_0, b, out, 32);
    assert_true(out[0] == 64.0f && out[1] == -63.5f);

    /* Q6_K: d = 1, scale -3 of elements 240..255; element 250 is nibble 9, high bits 2: 41 - 32. */
    memset(b, 0, sizeof b);
    memcpy(b + 208, "\x00\x3c", 2);
    b[192 + 15] = 0xfd;
    b[64 + 32 + 26] = 0x90;
    b[128 + 32 + 26] = 0x80;
    tern_decode_row(TERN_TYPE_Q6_K, b, out, 256);
    assert_true(out[250] == -27.0f && out[251] == 96.0f && out[0] == 0.0f);

    /* Q4_K: d = 1, dmin = 1; sub-block 5: low bits 0x21, high bits of s[1] and s[5]. */
    memset(b, 0, sizeof b);
    memcpy(b, "\x00\x3c\x00\x3c", 4);
    b[4 + 1] = 0xc0;
    b[4 + 5] = 0x40;
    b[4 + 9] = 0x21;
    b[16 + 64 + 31] = 0x7f;
    tern_decode_row(TERN_TYPE_Q4_K, b, out, 256);
    assert_true(out[160 + 31] == 49.0f * 7 - 18.0f && out[160] == -18.0f && out[128 + 31] == 0.0f);
}

static void sizes_are_of_whole_blocks_of_known_types(void **state)
{
    (void)state;
    static const uint32_t unknown[] = {4, 5, 9, 15, 31, 32, 33, 36, 37, 38, 40, 41, UINT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_null(tern_format_of(unknown[i]));
        assert_int_equal(tern_row_bytes(unknown[i], 256), 0);
    }
    assert_int_equal(tern_row_bytes(TERN_TYPE_Q4_K, 576), 0);
    assert_int_equal(tern_row_bytes(TERN_TYPE_Q4_0, 576), 324);
    assert_int_equal(tern_row_bytes(TERN_TYPE_Q6_K, UINT64_C(1) << 55), (UINT64_C(1) << 47) * 210);
    assert_int_equal(tern_panel_bytes(TERN_TYPE_F32, UINT64_C(1) << 55), UINT64_C(1) << 61);
}

/* Every f16 against its definition, and every border between two neighbours. */
static void f16_is_exact_one_way_and_nearest_even_the_other(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const int exponent = (int)(h >> 10 & 31), mantissa = (int)(h & 1023);
        const float f = tern_f16_to_f32((uint16_t)h);
        if (exponent == 31 && mantissa) {
            assert_true(isnan(f));
            const uint16_t back = tern_f32_to_f16(f);
            assert_true((back & 0x7c00) == 0x7c00 && (back & 0x3ff));
            continue;
        }
        const double magnitude = exponent == 31 ? INFINITY
                               : exponent == 0  ? ldexp(mantissa, -24)
                                                : ldexp(1024 + mantissa, exponent - 25);
        assert_true(same(f, (float)(h & 0x8000 ? -magnitude : magnitude)));
        assert_int_equal(tern_f32_to_f16(f), h);
        if (exponent == 31 || h & 0x8000)
            continue;
        const double above = h == 0x7bff ? 65536.0 : (double)tern_f16_to_f32((uint16_t)(h + 1));
        const float middle = (float)((magnitude + above) / 2);
        const uint32_t even = h & 1 ? h + 1 : h;
        assert_int_equal(tern_f32_to_f16(middle), even);
        assert_int_equal(tern_f32_to_f16(-middle), even | 0x8000);
        assert_int_equal(tern_f32_to_f16(nextafterf(middle, 0.0f)), h);
        assert_int_equal(tern_f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(tern_f32_to_f16(1e30f), 0x7c00);
    assert_int_equal(tern_f32_to_f16(-1e-30f), 0x8000);
}

static void bf16_is_exact_one_way_and_nearest_even_the_other(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = tern_bf16_to_f32((uint16_t)h);
        assert_int_equal(tern_half_bits(f), h << 16);
        const uint16_t back = tern_f32_to_bf16(f);
        if (isnan(f)) {
            assert_int_equal(back, h | 0x40); /* quiet, and the rest of it kept */
            assert_true(isnan(tern_bf16_to_f32(tern_f32_to_bf16(tern_half_float(h << 16 | 1)))));
            continue;
        }
        assert_int_equal(back, h);
        if ((h & 0x7fff) == 0x7f80) {
            /* Of this NaN the upper half alone is infinite. */
            assert_true(isnan(tern_bf16_to_f32(tern_f32_to_bf16(tern_half_float(h << 16 | 1)))));
            continue;
        }
        const uint32_t even = h & 1 ? h + 1 : h;
        assert_int_equal(tern_f32_to_bf16(tern_half_float(h << 16 | 0x8000)), even);
        assert_int_equal(tern_f32_to_bf16(tern_half_float(h << 16 | 0x7fff)), h);
        assert_int_equal(tern_f32_to_bf16(tern_half_float(h << 16 | 0x8001)), h + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_cover_a_block_once),
        cmocka_unit_test(packing_is_inverted_and_rows_past_the_end_are_zero),
        cmocka_unit_test(a_panel_is_laid_out_as_the_header_draws_it),
        cmocka_unit_test(decoding_is_the_formula_of_the_codes),
        cmocka_unit_test(codes_of_a_panel_are_the_codes_of_its_rows),
        cmocka_unit_test(zero_bytes_decode_to_zeros),
        cmocka_unit_test(integers_stay_below_two_to_the_24),
        cmocka_unit_test(blocks_written_by_hand_have_their_values),
        cmocka_unit_test(sizes_are_of_whole_blocks_of_known_types),
        cmocka_unit_test(f16_is_exact_one_way_and_nearest_even_the_other),
        cmocka_unit_test(bf16_is_exact_one_way_and_nearest_even_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
