/* half.h: the two 16-bit floats, by integer steps alone, so that every CPU gives the same bits.
 *
 * binary16 (f16): 1 sign, 5 exponent bits of bias 15, 10 of mantissa. bfloat16 (bf16): the upper
 * half of a binary32. Widening is exact. Narrowing rounds to nearest, ties to even; beyond the
 * range is infinity; a NaN stays one and becomes quiet.
 */
#ifndef TERN_HALF_H
#define TERN_HALF_H

#include <stdint.h>
#include <string.h>

static inline float tern_half_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static inline uint32_t tern_half_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static inline float tern_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t u = (uint32_t)(h & 0x7fffu) << 13;
    const uint32_t exponent = u & 0x0f800000u;
    u += (127u - 15u) << 23;
    if (exponent == 0x0f800000u) {
        u += (127u - 15u) << 23;
        if (u & 0x007fffffu)
            u |= 0x00400000u;
    } else if (exponent == 0) {
        /* Subnormal: m * 2^-24 is (2^-14 with mantissa m) - 2^-14, and the difference is exact. */
        u = tern_half_bits(tern_half_float(u + (1u << 23)) - 0x1p-14f);
    }
    return tern_half_float(u | sign);
}

static inline uint16_t tern_f32_to_f16(float f)
{
    const uint32_t u = tern_half_bits(f);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t a = u & 0x7fffffffu;
    uint32_t h;
    if (a > 0x7f800000u)
        h = 0x7e00u | ((a >> 13) & 0x3ffu);
    else if (a >= 0x477ff000u) /* 65520: halfway between 65504 and what would be 65536 */
        h = 0x7c00u;
    else if (a < 0x38800000u) /* below 2^-14: adding 1/2 rounds to a multiple of 2^-24 */
        h = tern_half_bits(tern_half_float(a) + 0.5f) - 0x3f000000u;
    else
        h = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
    return (uint16_t)(sign | h);
}

static inline float tern_bf16_to_f32(uint16_t h)
{
    return tern_half_float((uint32_t)h << 16);
}

static inline uint16_t tern_f32_to_bf16(float f)
{
    const uint32_t u = tern_half_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* Numbers of a file: little-endian at any alignment. */
static inline uint16_t tern_load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t tern_load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline float tern_load_f16(const uint8_t *p)
{
    return tern_f16_to_f32(tern_load_u16(p));
}

#endif
