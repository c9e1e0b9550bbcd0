/* q_k.c: the K-quants (ggml; MIT): 256 elements, f16 scales of small integer scales.
 *
 * Sub-block `sub` is elements 32 sub .. 32 sub + 31. Q2_K, Q3_K and Q6_K have a scale every 16
 * elements, which stay integers (sc); Q4_K and Q5_K have one every 32, which goes into the float.
 * d * sc is exact in float32: 11 bits of mantissa times at most 8.
 */
#include "quant/codes.h"
#include "quant/half.h"

/* scales[16] | qs[64] | d | dmin: a byte of scales is scale in the low nibble, minimum above. */
void tern_q2_k_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *scales = block + 2 * sub, *qs = block + 16 + 32 * (sub / 4);
    const uint32_t shift = 2 * (sub % 4);
    tern_codes_halves(out, tern_load_f16(block + 80), scales[0] & 15, scales[1] & 15);
    out->min = tern_load_f16(block + 82);
    out->m[0] = scales[0] >> 4;
    out->m[1] = scales[1] >> 4;
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)(qs[i] >> shift & 3);
}

/* 6-bit scales in 12 bytes: nibbles of bytes 0..7, two high bits in bytes 8..11; zero is 32. */
static int q3_k_scale(const uint8_t *s, uint32_t k)
{
    const int low = k < 8 ? s[k] & 15 : s[k - 8] >> 4;
    const int high = s[8 + k % 4] >> (2 * (k / 4)) & 3;
    return (low | high << 4) - 32;
}

/* hmask[32] | qs[64] | scales[12] | d: bit `sub` of hmask is the third bit; 0 means 4 less. */
void tern_q3_k_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *qs = block + 32 + 32 * (sub / 4), *scales = block + 96;
    const uint32_t shift = 2 * (sub % 4);
    tern_codes_halves(out, tern_load_f16(block + 108), q3_k_scale(scales, 2 * sub),
                      q3_k_scale(scales, 2 * sub + 1));
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)((qs[i] >> shift & 3) - (block[i] >> sub & 1 ? 0 : 4));
}

/* d | dmin | s[12]: 6-bit scale and minimum of each sub-block. The first four stand in the low
 * bits of s[0..3] and s[4..7]; the others' low nibbles in s[8..11], high bits above the first's. */
static void k_scale_and_min(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *s = block + 4;
    int scale, min;
    if (sub < 4) {
        scale = s[sub] & 63;
        min = s[sub + 4] & 63;
    } else {
        scale = (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
        min = s[sub + 4] >> 4 | (s[sub] >> 6) << 4;
    }
    tern_codes_with_min(out, tern_load_f16(block) * (float)scale,
                        tern_load_f16(block + 2) * (float)min);
}

/* ... | qs[128]: 32 bytes hold two sub-blocks, the second in the high nibbles. */
void tern_q4_k_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *qs = block + 16 + 32 * (sub / 2);
    const uint32_t shift = 4 * (sub % 2);
    k_scale_and_min(block, sub, out);
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)(qs[i] >> shift & 15);
}

/* ... | qh[32] | qs[128]: bit `sub` of qh is the fifth bit. */
void tern_q5_k_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint8_t *qh = block + 16, *qs = block + 48 + 32 * (sub / 2);
    const uint32_t shift = 4 * (sub % 2);
    k_scale_and_min(block, sub, out);
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)((qs[i] >> shift & 15) | (qh[i] >> sub & 1) << 4);
}

/* ql[128] | qh[64] | int8 scales[16] | d: 128 elements at a time, four sub-blocks that share 64
 * bytes of nibbles and 32 of bit pairs. */
void tern_q6_k_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    const uint32_t n = sub / 4, j = sub % 4;
    const uint8_t *ql = block + 64 * n + 32 * (j & 1), *qh = block + 128 + 32 * n;
    const uint32_t low = 4 * (j >> 1), high = 2 * j;
    int8_t sc[2];
    memcpy(sc, block + 192 + 2 * sub, 2);
    tern_codes_halves(out, tern_load_f16(block + 208), sc[0], sc[1]);
    for (int i = 0; i < TERN_SUB; i++)
        out->q[i] = (int8_t)(((ql[i] >> low & 15) | (qh[i] >> high & 3) << 4) - 32);
}
