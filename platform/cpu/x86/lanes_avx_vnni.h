/* lanes_avx_vnni.h: the words of matmul_vnni.h on 8 lanes: AVX2 with the VEX form of vpdpbusd. */
#ifndef TERN_CPU_LANES_AVX_VNNI_H
#define TERN_CPU_LANES_AVX_VNNI_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TERN_INLINE static inline __attribute__((always_inline))
#define TERN_PAIRS 0

/* The loop that follows is unrolled whole, at most 12 times. */
#ifdef __clang__
#define TERN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TERN_UNROLL _Pragma("GCC unroll 16")
#endif

/* 16 registers: a tile's dots, weights and four bytes of a token; its chains rest in memory. */
enum { LANES = 8, TILE_TOKENS = 4, TILE_TOKENS_HALVES = 4 };
/* Few tokens have no kernels of their own: 16 KB of code for 1.33 of the speed of two, 1.08 of
 * eight's. */
enum { FEW_TOKENS = 1 };

typedef __m256i ints;
typedef __m256 floats;

TERN_INLINE ints load_ints(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

TERN_INLINE void store_ints(void *p, ints x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}

/* a0, b0, a1, b1, .. */
TERN_INLINE void store_pairs(void *p, ints a, ints b)
{
    const __m256i x = _mm256_unpacklo_epi32(a, b), y = _mm256_unpackhi_epi32(a, b);
    _mm256_storeu_si256(p, _mm256_permute2x128_si256(x, y, 0x20));
    _mm256_storeu_si256((__m256i *)p + 1, _mm256_permute2x128_si256(x, y, 0x31));
}

TERN_INLINE floats load_floats(const void *p)
{
    return _mm256_loadu_ps(p);
}

TERN_INLINE void store_floats(float *p, floats x)
{
    _mm256_storeu_ps(p, x);
}

TERN_INLINE floats load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Bytes to 32 bits each. */
TERN_INLINE ints load_bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

TERN_INLINE ints load_signed_bytes(const uint8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

/* Halves of 32 bits to 32 bits each. */
TERN_INLINE ints load_shorts(const uint8_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

TERN_INLINE ints all_ints(int32_t x)
{
    return _mm256_set1_epi32(x);
}

TERN_INLINE ints all_bytes(int x)
{
    return _mm256_set1_epi8((char)x);
}

TERN_INLINE floats all_floats(float x)
{
    return _mm256_set1_ps(x);
}

TERN_INLINE ints broadcast_4(const void *p)
{
    int32_t x;
    memcpy(&x, p, 4);
    return _mm256_set1_epi32(x);
}

TERN_INLINE floats as_floats(ints x)
{
    return _mm256_castsi256_ps(x);
}

TERN_INLINE ints as_ints(floats x)
{
    return _mm256_castps_si256(x);
}

TERN_INLINE floats to_floats(ints x)
{
    return _mm256_cvtepi32_ps(x);
}

TERN_INLINE floats multiply(floats a, floats b)
{
    return _mm256_mul_ps(a, b);
}

TERN_INLINE floats fused(floats a, floats b, floats c)
{
    return _mm256_fmadd_ps(a, b, c);
}

TERN_INLINE floats negate(floats x)
{
    return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

TERN_INLINE ints both(ints a, ints b)
{
    return _mm256_and_si256(a, b);
}

TERN_INLINE ints either(ints a, ints b)
{
    return _mm256_or_si256(a, b);
}

TERN_INLINE ints differing(ints a, ints b)
{
    return _mm256_xor_si256(a, b);
}

TERN_INLINE ints plus_ints(ints a, ints b)
{
    return _mm256_add_epi32(a, b);
}

TERN_INLINE ints minus_ints(ints a, ints b)
{
    return _mm256_sub_epi32(a, b);
}

TERN_INLINE ints up_4(ints x)
{
    return _mm256_slli_epi16(x, 4);
}

TERN_INLINE ints up_2(ints x)
{
    return _mm256_slli_epi16(x, 2);
}

TERN_INLINE ints down_2(ints x)
{
    return _mm256_srli_epi16(x, 2);
}

TERN_INLINE ints down_4(ints x)
{
    return _mm256_srli_epi16(x, 4);
}

TERN_INLINE ints down_by(ints x, unsigned n)
{
    return _mm256_srl_epi16(x, _mm_cvtsi32_si128((int)n));
}

/* 2^(e - 64) for e from 0 to 128. */
TERN_INLINE floats power_of_2(ints e)
{
    return as_floats(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(63)), 23));
}

/* Of 16 bytes those that the bytes of x, all below 16, are indices of. */
TERN_INLINE ints looked_up(const uint8_t values[16], ints x)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)values);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), x);
}

/* Pairs (a, b) of 16 bits: a, b, and a * x + b * y where the other pair is (x, y). */
TERN_INLINE ints first_of_pairs(ints pairs)
{
    return _mm256_srai_epi32(_mm256_slli_epi32(pairs, 16), 16);
}

TERN_INLINE ints second_of_pairs(ints pairs)
{
    return _mm256_srai_epi32(pairs, 16);
}

TERN_INLINE ints dot_pairs(ints a, ints b)
{
    return _mm256_madd_epi16(a, b);
}

/* sum + four products of unsigned by signed bytes, exact. */
TERN_INLINE ints dot_4(ints sum, ints codes, ints q)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, q);
}

/* The same with four bytes of q for all lanes. */
TERN_INLINE ints dot_4_at(ints sum, ints codes, const int8_t *q)
{
    return dot_4(sum, codes, broadcast_4(q));
}

/* The same for all parts of a panel. */
TERN_INLINE void dot_4_all(ints sum[2], const ints codes[2], const int8_t *q)
{
    const __m256i x = broadcast_4(q);
    sum[0] = dot_4(sum[0], codes[0], x);
    sum[1] = dot_4(sum[1], codes[1], x);
}

/* (x & 15) | (y & mask) */
TERN_INLINE ints low_nibbles_or(ints x, ints y, ints mask)
{
    return _mm256_or_si256(_mm256_and_si256(x, _mm256_set1_epi8(15)), _mm256_and_si256(y, mask));
}

/* Adds 16 to the codes whose byte of `plane` has `bit`. */
TERN_INLINE ints with_fifth(ints codes, ints plane, ints bit)
{
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(plane, bit), bit);
    return _mm256_or_si256(codes, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

/* 32 fifth bits of a row are one dword. Register j takes bits 4 j .. 4 j + 3, one a byte: byte
 * j / 2 of the dword is copied to all four, a mask keeps one bit of each (the dword is first
 * moved up by 4 where that bit is below 16), and whatever is left is at least 16. */
TERN_INLINE void add_fifths(ints bits, ints w[8])
{
    const __m256i mask = _mm256_set1_epi32((int32_t)0x80402010);
    const __m256i up = _mm256_slli_epi32(bits, 4);
    for (int j = 0; j < 8; j++) {
        const __m256i same_byte = _mm256_add_epi32(_mm256_set1_epi32(0x01010101 * (j / 2)),
            _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c,
                              0, 0x04040404, 0x08080808, 0x0c0c0c0c));
        const __m256i bytes = _mm256_shuffle_epi8(j % 2 ? bits : up, same_byte);
        w[j] = _mm256_or_si256(w[j], _mm256_min_epu8(_mm256_and_si256(bytes, mask),
                                                     _mm256_set1_epi8(16)));
    }
}

#endif
