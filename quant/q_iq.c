/* q_iq.c: the IQ formats (ggml; MIT): groups of 8 or 4 elements are points of a lattice.
 *
 * A group's magnitudes are an entry of a grid (q_iq_tables.h), its signs a bit each. Where signs
 * have seven bits, the eighth makes the number of minus signs even. Scales are f16 times a small
 * odd integer 2 s + 1, over a power of two, so they and all values are exact in float32:
 *
 *   IQ2_*   d / 8 * (2 s + 1) * {8, 25, 43}     IQ3_XXS  d / 4 * (2 s + 1) * {4 .. 62}
 *   IQ3_S   d * (2 s + 1) * {1, 3 .. 15}        IQ1_*    d / 8 * (2 s + 1) * (8 {-1, 0, 1} +- 1)
 *   IQ4_*   d * s * one of 16 values, spaced as a normal distribution wants
 *
 * With b = sub, the 32 elements of a call, l = 0..3 a group of 8 in it.
 */
#include "quant/codes.h"
#include "quant/half.h"
#include "quant/q_iq_tables.h"

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

/* Element j of an entry with 8, 0 to 2. */
static uint32_t index_of(uint32_t entry, int j)
{
    return entry >> (8 * (j % 4) + 4 * (j / 4)) & 3;
}

/* Eight elements of IQ2, with a sign bit each. */
static void put_8(int8_t *q, uint32_t entry, uint32_t signs)
{
    static const int8_t values[4] = {8, 25, 43};
    for (int j = 0; j < 8; j++) {
        const int x = values[index_of(entry, j)];
        q[j] = (int8_t)(signs >> j & 1 ? -x : x);
    }
}

/* Four elements of IQ3, with a sign bit each. */
static void put_4(int8_t *q, uint32_t entry, uint32_t signs)
{
    for (int j = 0; j < 4; j++) {
        const int x = (int)(entry >> (8 * j) & 255);
        q[j] = (int8_t)(signs >> j & 1 ? -x : x);
    }
}

/* The eighth sign: the parity of the seven. */
static uint32_t even_signs(uint32_t seven)
{
    uint32_t parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

/* d | 8 x (4 indices, u32: 4 x 7 signs and s above) */
void tern_iq2_xxs_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *index = block + 2 + 8 * sub;
    const uint32_t w = tern_load_u32(index + 4);
    tern_codes_whole(out, tern_load_f16(block) * (float)(2 * (w >> 28) + 1) * 0.125f);
    for (int l = 0; l < 4; l++)
        put_8(out->q + 8 * l, tern_iq2_xxs_grid[index[l]], even_signs(w >> (7 * l) & 127));
}

/* Scales of the two halves, a nibble each. */
static void halves_of_nibbles(struct tern_codes *out, float d, uint32_t nibbles)
{
    tern_codes_halves(out, d * 0.125f, 2 * (int)(nibbles & 15) + 1, 2 * (int)(nibbles >> 4) + 1);
}

/* d | 32 x u16: index of 9 bits, 7 signs | scales[8] */
void tern_iq2_xs_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    halves_of_nibbles(out, tern_load_f16(block), block[66 + sub]);
    for (uint32_t l = 0; l < 4; l++) {
        const uint32_t x = tern_load_u16(block + 2 + 2 * (4 * sub + l));
        put_8(out->q + 8 * l, tern_iq2_xs_grid[x & 511], even_signs(x >> 9));
    }
}

/* d | qs[32] | signs[32] | qh[8]: bits 8 and 9 of the index | scales[8] */
void tern_iq2_s_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint32_t high = block[66 + sub];
    halves_of_nibbles(out, tern_load_f16(block), block[74 + sub]);
    for (uint32_t l = 0; l < 4; l++) {
        const uint32_t index = block[2 + 4 * sub + l] | (high >> (2 * l) & 3) << 8;
        put_8(out->q + 8 * l, tern_iq2_s_grid[index], block[34 + 4 * sub + l]);
    }
}

/* d | qs[64] | 8 x u32 as in IQ2_XXS */
void tern_iq3_xxs_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint32_t w = tern_load_u32(block + 66 + 4 * sub);
    tern_codes_whole(out, tern_load_f16(block) * (float)(2 * (w >> 28) + 1) * 0.25f);
    for (uint32_t p = 0; p < 8; p++) {
        const uint32_t signs = even_signs(w >> (7 * (p / 2)) & 127);
        put_4(out->q + 4 * p, tern_iq3_xxs_grid[block[2 + 8 * sub + p]],
              signs >> (4 * (p % 2)));
    }
}

/* d | qs[64] | qh[8]: bit 8 of the index | signs[32] | scales[4] */
void tern_iq3_s_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint32_t high = block[66 + sub];
    const uint32_t s = block[106 + sub / 2] >> (4 * (sub % 2)) & 15;
    tern_codes_whole(out, tern_load_f16(block) * (float)(2 * s + 1));
    for (uint32_t p = 0; p < 8; p++) {
        const uint32_t index = block[2 + 8 * sub + p] | (high >> p & 1) << 8;
        put_4(out->q + 4 * p, tern_iq3_s_grid[index],
              (uint32_t)block[74 + 4 * sub + p / 2] >> (4 * (p % 2)));
    }
}

/* Eight elements 8 g + 1, or 8 g - 1 where minus is set. */
static void put_iq1(int8_t *q, uint32_t index, bool minus)
{
    for (int j = 0; j < 8; j++)
        q[j] = (int8_t)(8 * ((int)index_of(tern_iq1_grid[index], j) - 1) + (minus ? -1 : 1));
}

/* d | qs[32] | 8 x u16: 4 x 3 high bits of the index, 3 of s, and minus */
void tern_iq1_s_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint32_t high = tern_load_u16(block + 34 + 2 * sub);
    tern_codes_whole(out, tern_load_f16(block) * (float)(2 * (high >> 12 & 7) + 1) * 0.125f);
    for (uint32_t l = 0; l < 4; l++)
        put_iq1(out->q + 8 * l, block[2 + 4 * sub + l] | (high >> (3 * l) & 7) << 8, high >> 15);
}

/* qs[32] | qh[16]: a nibble each group, 3 high bits of the index and minus | 4 x u16 of four
 * 3-bit s and, in the top nibbles, a quarter of the f16 d */
void tern_iq1_m_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    uint32_t d = 0;
    for (int k = 0; k < 4; k++)
        d |= (uint32_t)(block[48 + 2 * k + 1] >> 4) << (4 * k);
    const uint32_t s = (uint32_t)tern_load_u16(block + 48 + 2 * (sub / 2)) >> (6 * (sub % 2));
    tern_codes_halves(out, tern_f16_to_f32((uint16_t)d) * 0.125f, 2 * (int)(s & 7) + 1,
                      2 * (int)(s >> 3 & 7) + 1);
    for (uint32_t l = 0; l < 4; l++) {
        const uint32_t high = (uint32_t)block[32 + 2 * sub + l / 2] >> (4 * (l % 2)) & 15;
        put_iq1(out->q + 8 * l, block[4 * sub + l] | (high & 7) << 8, high >> 3);
    }
}

/* d | 16 nibble pairs */
void tern_iq4_nl_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    tern_codes_whole(out, tern_load_f16(block));
    tern_codes_lookup(out, block + 2, iq4_values);
}

/* d | u16: two high bits of each s | 4 bytes of low nibbles | 8 x 16 nibble pairs; s - 32 */
void tern_iq4_xs_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const int low = block[4 + sub / 2] >> (4 * (sub % 2)) & 15;
    const int high = tern_load_u16(block + 2) >> (2 * sub) & 3;
    tern_codes_whole(out, tern_load_f16(block) * (float)((low | high << 4) - 32));
    tern_codes_lookup(out, block + 8 + 16 * sub, iq4_values);
}
