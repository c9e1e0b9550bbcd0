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

/* Without branches, so that a loop over an array becomes vectors. A number of exponent e plus
 * 2^(e + 13) is rounded by the addition to the 11 bits of a half, which are then the lowest ones
 * of the sum. Below 2^-14 e stays there, which makes subnormals; 65536 stands for all above. */
static inline uint16_t tern_f32_to_f16(float f)
{
    const uint32_t u = tern_half_bits(f);
    const int32_t a = (int32_t)(u & 0x7fffffffu);
    const int32_t limited = a < 0x47800000 ? a : 0x47800000;
    const int32_t e = (limited & 0x7f800000) > 0x38800000 ? limited & 0x7f800000 : 0x38800000;
    const uint32_t magic = (uint32_t)e + (13u << 23);
    const float sum = tern_half_float((uint32_t)limited) + tern_half_float(magic);
    const uint32_t h = ((uint32_t)(e - 0x38800000) >> 13) + tern_half_bits(sum) - magic;
    const uint32_t quiet = a > 0x7f800000 ? 0x200u | ((uint32_t)a >> 13 & 0x3ffu) : 0;
    return (uint16_t)((u >> 16 & 0x8000u) | h | quiet);
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
