/* q_plain.c: the formats of 32 elements with one f16 scale (ggml's first ones; MIT).
 *
 *   Q4_0  d, 16 nibble pairs            d * (q - 8)
 *   Q4_1  d, m, 16 nibble pairs         d * q + m
 *   Q5_0  d, 32 high bits, nibbles      d * (q - 16)
 *   Q5_1  d, m, 32 high bits, nibbles   d * q + m
 *   Q8_0  d, 32 int8                    d * q
 *
 * m is added, so the minimum, which the chain subtracts, is -m.
 */
#include "quant/codes.h"
#include "quant/half.h"

void tern_q4_0_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    tern_codes_whole(out, tern_load_f16(block));
    tern_codes_nibbles(out, block + 2);
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)(out->q[i] - 8);
}

void tern_q4_1_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    tern_codes_with_min(out, tern_load_f16(block), -tern_load_f16(block + 2));
    tern_codes_nibbles(out, block + 4);
}

void tern_q5_0_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    const uint32_t high = tern_load_u32(block + 2);
    tern_codes_whole(out, tern_load_f16(block));
    tern_codes_nibbles(out, block + 6);
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)((out->q[i] | (int)(high >> i & 1) << 4) - 16);
}

void tern_q5_1_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    const uint32_t high = tern_load_u32(block + 4);
    tern_codes_with_min(out, tern_load_f16(block), -tern_load_f16(block + 2));
    tern_codes_nibbles(out, block + 8);
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)(out->q[i] | (int)(high >> i & 1) << 4);
}

void tern_q8_0_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    tern_codes_whole(out, tern_load_f16(block));
    memcpy(out->q, block + 2, TERN_SUB);
}
