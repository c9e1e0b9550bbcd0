/* emulated_lanes.h: the vector instructions of attention and rows on 16 lanes in plain C, in place
 * of <immintrin.h>, which is included here and so no more later. A lane that a mask leaves out is
 * neither read nor written. */
#ifndef TERN_TESTS_EMULATED_LANES_H
#define TERN_TESTS_EMULATED_LANES_H

#include "quant/half.h"
#include "runtime/real.h"
#include "tests/kernels/emulated_names.h"

#include <immintrin.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

/* No function a number of rows: in plain C they take minutes to compile. */
#define INLINE static
#define UNROLL

typedef struct { float v[16]; } floats_16;
typedef struct { float v[8]; } floats_8;
typedef struct { float v[4]; } floats_4;
typedef struct { int32_t v[16]; } ints_16;
typedef struct { uint16_t v[16]; } halves_16;
typedef struct { int8_t v[16]; } bytes_16;

#define __m512 floats_16
#define __m256 floats_8
#define __m128 floats_4
#define __m512i ints_16
#define __m256i halves_16
#define __m128i bytes_16

/* --- memory --- */

static inline floats_16 lanes_mask_load(floats_16 x, unsigned mask, const float *p)
{
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy(&x.v[i], p + i, sizeof *p);
    return x;
}

static inline void lanes_mask_store(float *p, unsigned mask, floats_16 x)
{
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy(p + i, &x.v[i], sizeof *p);
}

static inline halves_16 lanes_load_halves(unsigned mask, const void *p)
{
    halves_16 x = {{0}};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            memcpy(&x.v[i], (const char *)p + 2 * i, 2);
    return x;
}

static inline bytes_16 lanes_load_bytes(const void *p)
{
    bytes_16 x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline halves_16 lanes_set_two(bytes_16 high, bytes_16 low)
{
    halves_16 x;
    memcpy(x.v, &low, sizeof low);
    memcpy(x.v + 8, &high, sizeof high);
    return x;
}

static inline bytes_16 lanes_blend_halves(bytes_16 no, bytes_16 yes, unsigned mask)
{
    for (int i = 0; i < 16; i++)
        no.v[i] = mask >> i / 2 & 1 ? yes.v[i] : no.v[i];
    return no;
}

static inline floats_16 lanes_set(float a)
{
    floats_16 x;
    for (int i = 0; i < 16; i++)
        x.v[i] = a;
    return x;
}

#undef _mm_prefetch
#define _mm_prefetch(p, hint) ((void)(p))
#define _mm512_setzero_ps() lanes_set(0.0f)
#define _mm512_set1_ps lanes_set
#define _mm512_loadu_ps(p) lanes_mask_load(lanes_set(0.0f), 0xffff, p)
#define _mm512_maskz_loadu_ps(m, p) lanes_mask_load(lanes_set(0.0f), m, p)
#define _mm512_mask_loadu_ps(x, m, p) lanes_mask_load(x, m, p)
#define _mm512_storeu_ps(p, x) lanes_mask_store(p, 0xffff, x)
#define _mm512_mask_storeu_ps(p, m, x) lanes_mask_store(p, m, x)
#define _mm256_loadu_si256(p) lanes_load_halves(0xffff, p)
#define _mm256_maskz_loadu_epi16(m, p) lanes_load_halves(m, p)
#define _mm_loadu_si128(p) lanes_load_bytes(p)
#define _mm256_set_m128i lanes_set_two
#undef _mm_blend_epi16
#define _mm_blend_epi16 lanes_blend_halves

/* --- arithmetic --- */

/* f(a, b) of each lane of n. */
#define LANES_OF_TWO(name, n, expression)                                                         \
    static inline floats_##n name(floats_##n x, floats_##n y)                                     \
    {                                                                                             \
        for (int i = 0; i < n; i++) {                                                             \
            const float a = x.v[i], b = y.v[i];                                                   \
            x.v[i] = expression;                                                                  \
        }                                                                                         \
        return x;                                                                                 \
    }

LANES_OF_TWO(lanes_add, 16, a + b)
LANES_OF_TWO(lanes_sub, 16, a - b)
LANES_OF_TWO(lanes_mul, 16, a *b)
LANES_OF_TWO(lanes_div, 16, a / b)
LANES_OF_TWO(lanes_max, 16, a > b ? a : b)
LANES_OF_TWO(lanes_min, 16, a < b ? a : b)
LANES_OF_TWO(lanes_scale, 16, b == b ? ldexpf(a, (int)floorf(b)) : b)
LANES_OF_TWO(lanes_and, 16, tern_from_bits(tern_to_bits(a) & tern_to_bits(b)))
LANES_OF_TWO(lanes_andnot, 16, tern_from_bits(~tern_to_bits(a) & tern_to_bits(b)))
LANES_OF_TWO(lanes_or, 16, tern_from_bits(tern_to_bits(a) | tern_to_bits(b)))
LANES_OF_TWO(lanes_xor, 16, tern_from_bits(tern_to_bits(a) ^ tern_to_bits(b)))
LANES_OF_TWO(lanes_add_8, 8, a + b)
LANES_OF_TWO(lanes_max_8, 8, a > b ? a : b)
LANES_OF_TWO(lanes_add_4, 4, a + b)
LANES_OF_TWO(lanes_max_4, 4, a > b ? a : b)

static inline floats_16 lanes_fma(floats_16 x, floats_16 y, floats_16 z)
{
    for (int i = 0; i < 16; i++)
        z.v[i] = fmaf(x.v[i], y.v[i], z.v[i]);
    return z;
}

static inline floats_16 lanes_blend(unsigned mask, floats_16 no, floats_16 yes)
{
    for (int i = 0; i < 16; i++)
        no.v[i] = mask >> i & 1 ? yes.v[i] : no.v[i];
    return no;
}

static inline __mmask16 lanes_less(floats_16 x, floats_16 y)
{
    unsigned mask = 0;
    for (int i = 0; i < 16; i++)
        mask |= (unsigned)(x.v[i] < y.v[i]) << i;
    return (__mmask16)mask;
}

static inline __mmask16 lanes_at_most(floats_16 x, floats_16 y)
{
    unsigned mask = 0;
    for (int i = 0; i < 16; i++)
        mask |= (unsigned)(x.v[i] <= y.v[i]) << i;
    return (__mmask16)mask;
}

#define _mm512_add_ps lanes_add
#define _mm512_sub_ps lanes_sub
#define _mm512_mul_ps lanes_mul
#define _mm512_div_ps lanes_div
#define _mm512_max_ps lanes_max
#define _mm512_min_ps lanes_min
#undef _mm512_scalef_ps
#define _mm512_scalef_ps lanes_scale
#define _mm512_and_ps lanes_and
#define _mm512_andnot_ps lanes_andnot
#define _mm512_or_ps lanes_or
#define _mm512_xor_ps lanes_xor
#define _mm512_fmadd_ps lanes_fma
#define _mm512_mask_blend_ps lanes_blend
#define _mm512_maskz_mov_ps(m, x) lanes_blend(m, lanes_set(0.0f), x)
#undef _mm512_cmp_ps_mask /* it is asked for "less" alone */
#define _mm512_cmp_ps_mask(x, y, how) lanes_less(x, y)
#undef _mm512_mask_cmp_ps_mask /* and this one for "at most" */
#define _mm512_mask_cmp_ps_mask(m, x, y, how) ((__mmask16)((m)&lanes_at_most(x, y)))
#define _mm256_add_ps lanes_add_8
#define _mm256_max_ps lanes_max_8
#define _mm_add_ps lanes_add_4
#define _mm_max_ps lanes_max_4

/* --- conversions, and parts --- */

static inline ints_16 lanes_widen_bytes(bytes_16 x)
{
    ints_16 y;
    for (int i = 0; i < 16; i++)
        y.v[i] = x.v[i];
    return y;
}

static inline ints_16 lanes_widen_codes(bytes_16 x)
{
    ints_16 y;
    for (int i = 0; i < 16; i++)
        y.v[i] = (uint8_t)x.v[i];
    return y;
}

static inline ints_16 lanes_down(ints_16 x, int n)
{
    for (int i = 0; i < 16; i++)
        x.v[i] = (int32_t)((uint32_t)x.v[i] >> n);
    return x;
}

static inline ints_16 lanes_up(ints_16 x, int n)
{
    for (int i = 0; i < 16; i++)
        x.v[i] = (int32_t)((uint32_t)x.v[i] << n);
    return x;
}

static inline ints_16 lanes_add_ints(ints_16 x, ints_16 y)
{
    for (int i = 0; i < 16; i++)
        x.v[i] = (int32_t)((uint32_t)x.v[i] + (uint32_t)y.v[i]);
    return x;
}

static inline ints_16 lanes_bits(floats_16 x)
{
    ints_16 y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline floats_16 lanes_of_bits(ints_16 x)
{
    floats_16 y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline floats_16 lanes_looked_up(ints_16 at, floats_16 x)
{
    floats_16 y;
    for (int i = 0; i < 16; i++)
        y.v[i] = x.v[at.v[i] & 15];
    return y;
}

static inline floats_16 lanes_to_floats(ints_16 x)
{
    floats_16 y;
    for (int i = 0; i < 16; i++)
        y.v[i] = (float)x.v[i];
    return y;
}

static inline floats_16 lanes_widen_halves(halves_16 x)
{
    floats_16 y;
    for (int i = 0; i < 16; i++)
        y.v[i] = tern_f16_to_f32(x.v[i]);
    return y;
}

static inline floats_8 lanes_half_of_16(floats_16 x, int i)
{
    floats_8 y;
    memcpy(&y, x.v + 8 * i, sizeof y);
    return y;
}

static inline floats_4 lanes_half_of_8(floats_8 x, int i)
{
    floats_4 y;
    memcpy(&y, x.v + 4 * i, sizeof y);
    return y;
}

static inline floats_4 lanes_high(floats_4 x, floats_4 y)
{
    return (floats_4){{y.v[2], y.v[3], x.v[2], x.v[3]}};
}

static inline floats_4 lanes_odd(floats_4 x)
{
    return (floats_4){{x.v[1], x.v[1], x.v[3], x.v[3]}};
}

/* Its first lane is all that is asked for. */
#define _mm_add_ss lanes_add_4
#define _mm_max_ss lanes_max_4
#define _mm_cvtss_f32(x) ((x).v[0])
#define _mm_movehl_ps lanes_high
#define _mm_movehdup_ps lanes_odd
#undef _mm512_extractf32x8_ps
#undef _mm256_extractf128_ps
#define _mm512_castps512_ps256(x) lanes_half_of_16(x, 0)
#define _mm512_extractf32x8_ps lanes_half_of_16
#define _mm256_castps256_ps128(x) lanes_half_of_8(x, 0)
#define _mm256_extractf128_ps lanes_half_of_8
#define _mm512_cvtepi8_epi32 lanes_widen_bytes
#define _mm512_cvtepu8_epi32 lanes_widen_codes
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 lanes_up
#define _mm512_add_epi32 lanes_add_ints
#define _mm512_castps_si512 lanes_bits
#define _mm512_castsi512_ps lanes_of_bits
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 lanes_down
#define _mm512_permutexvar_ps lanes_looked_up
#undef _mm512_setr_ps
#define _mm512_setr_ps(...) ((floats_16){{__VA_ARGS__}})
#define _mm512_cvtepi32_ps lanes_to_floats
#define _mm512_cvtph_ps lanes_widen_halves

#endif
