/* q_ternary.c: weights of -1, 0 and 1 with one f16 scale for 256 (ggml; MIT). */
#include "quant/codes.h"
#include "quant/half.h"

/* A byte v is the base-3 fraction v / 256 of five digits, rounded up; digit n is the integer
 * part of 3 * frac(3^n * v / 256). */
static int8_t trit(uint8_t v, uint32_t n)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    const uint8_t fraction = (uint8_t)(v * power[n]);
    return (int8_t)((fraction * 3 >> 8) - 1);
}

/* qs[48] | qh[4] | d. Digit n of the first 32 bytes are elements 32 n ..; of the next 16,
 * elements 160 + 16 n ..; of the last 4, which hold four digits each, 240 + 4 n .. */
void tern_tq1_0_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    tern_codes_whole(out, tern_load_f16(block + 52));
    for (uint32_t i = 0; i < TERN_SUB; i++) {
        if (sub < 5)
            out->q[i] = trit(block[i], sub);
        else if (sub < 7 || i < 16)
            out->q[i] = trit(block[32 + i % 16], 2 * (sub - 5) + i / 16);
        else
            out->q[i] = trit(block[48 + i % 4], (i - 16) / 4);
    }
}

/* qs[64] | d: two bits each. The fourth code, 2, is never written but has its value. */
void tern_tq2_0_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *qs = block + 32 * (sub / 4);
    tern_codes_whole(out, tern_load_f16(block + 64));
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)((qs[i] >> (2 * (sub % 4)) & 3) - 1);
}
