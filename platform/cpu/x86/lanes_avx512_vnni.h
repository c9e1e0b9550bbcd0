/* lanes_avx512_vnni.h: the words of matmul_vnni.h on 16 lanes, a whole panel. */
#ifndef TERN_CPU_LANES_AVX512_VNNI_H
#define TERN_CPU_LANES_AVX512_VNNI_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TERN_INLINE static inline __attribute__((always_inline))
#define TERN_PAIRS 1 /* a panel is one register: pairs_vnni.h */

/* The loop that follows is unrolled whole, at most 12 times. */
#ifdef __clang__
#define TERN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TERN_UNROLL _Pragma("GCC unroll 16")
#endif

/* 32 registers: a tile's chains, its dots and a weight. With two scales a block, the products
 * by the first scale wait there too. */
enum { LANES = 16, TILE_TOKENS = 12, TILE_TOKENS_HALVES = 8 };
enum { FEW_TOKENS = 24 }; /* below that they have kernels of their own */

typedef __m512i ints;
typedef __m512 floats;

TERN_INLINE ints load_ints(const void *p)
{
    return _mm512_loadu_si512(p);
}

TERN_INLINE void store_ints(void *p, ints x)
{
    _mm512_storeu_si512(p, x);
}

/* a0, b0, a1, b1, .. */
TERN_INLINE void store_pairs(void *p, ints a, ints b)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    _mm512_storeu_si512(p, _mm512_permutex2var_epi32(a, low, b));
    _mm512_storeu_si512((char *)p + 64, _mm512_permutex2var_epi32(a, high, b));
}

TERN_INLINE floats load_floats(const void *p)
{
    return _mm512_loadu_ps(p);
}

TERN_INLINE void store_floats(float *p, floats x)
{
    _mm512_storeu_ps(p, x);
}

TERN_INLINE floats load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* Bytes to 32 bits each. */
TERN_INLINE ints load_bytes(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

TERN_INLINE ints load_signed_bytes(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Halves of 32 bits to 32 bits each. */
TERN_INLINE ints load_shorts(const uint8_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

TERN_INLINE ints all_ints(int32_t x)
{
    return _mm512_set1_epi32(x);
}

TERN_INLINE ints all_bytes(int x)
{
    return _mm512_set1_epi8((char)x);
}

TERN_INLINE floats all_floats(float x)
{
    return _mm512_set1_ps(x);
}

TERN_INLINE ints broadcast_4(const void *p)
{
    int32_t x;
    memcpy(&x, p, 4);
    return _mm512_set1_epi32(x);
}

TERN_INLINE floats as_floats(ints x)
{
    return _mm512_castsi512_ps(x);
}

TERN_INLINE ints as_ints(floats x)
{
    return _mm512_castps_si512(x);
}

TERN_INLINE floats to_floats(ints x)
{
    return _mm512_cvtepi32_ps(x);
}

TERN_INLINE floats multiply(floats a, floats b)
{
    return _mm512_mul_ps(a, b);
}

TERN_INLINE floats fused(floats a, floats b, floats c)
{
    return _mm512_fmadd_ps(a, b, c);
}

TERN_INLINE floats negate(floats x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

TERN_INLINE ints both(ints a, ints b)
{
    return _mm512_and_si512(a, b);
}

TERN_INLINE ints either(ints a, ints b)
{
    return _mm512_or_si512(a, b);
}

TERN_INLINE ints differing(ints a, ints b)
{
    return _mm512_xor_si512(a, b);
}

TERN_INLINE ints plus_ints(ints a, ints b)
{
    return _mm512_add_epi32(a, b);
}

TERN_INLINE ints minus_ints(ints a, ints b)
{
    return _mm512_sub_epi32(a, b);
}

TERN_INLINE ints minus_bytes(ints a, ints b)
{
    return _mm512_sub_epi8(a, b);
}

TERN_INLINE ints up_4(ints x)
{
    return _mm512_slli_epi16(x, 4);
}

TERN_INLINE ints up_2(ints x)
{
    return _mm512_slli_epi16(x, 2);
}

TERN_INLINE ints down_2(ints x)
{
    return _mm512_srli_epi16(x, 2);
}

TERN_INLINE ints down_4(ints x)
{
    return _mm512_srli_epi16(x, 4);
}

TERN_INLINE ints down_by(ints x, unsigned n)
{
    return _mm512_srl_epi16(x, _mm_cvtsi32_si128((int)n));
}

/* 2^(e - 64) for e from 0 to 128. */
TERN_INLINE floats power_of_2(ints e)
{
    return as_floats(_mm512_slli_epi32(_mm512_add_epi32(e, _mm512_set1_epi32(63)), 23));
}

/* Of 16 bytes those that the bytes of x, all below 16, are indices of. */
TERN_INLINE ints looked_up(const uint8_t values[16], ints x)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)values);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(v), x);
}

/* Pairs (a, b) of 16 bits: a, b, and a * x + b * y where the other pair is (x, y). */
TERN_INLINE ints first_of_pairs(ints pairs)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16);
}

TERN_INLINE ints second_of_pairs(ints pairs)
{
    return _mm512_srai_epi32(pairs, 16);
}

TERN_INLINE ints dot_pairs(ints a, ints b)
{
    return _mm512_madd_epi16(a, b);
}

/* sum + four products of unsigned by signed bytes, exact. */
TERN_INLINE ints dot_4(ints sum, ints codes, ints q)
{
    return _mm512_dpbusd_epi32(sum, codes, q);
}

/* The same with four bytes of q for all lanes. Compilers that load them to a register first cost
 * a tile one instruction in two. */
TERN_INLINE ints dot_4_at(ints sum, ints codes, const int8_t *q)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*(const int8_t (*)[4])q));
    return sum;
}

/* The same for all parts of a panel. */
TERN_INLINE void dot_4_all(ints sum[1], const ints codes[1], const int8_t *q)
{
    sum[0] = dot_4_at(sum[0], codes[0], q);
}

/* (x & 15) | (y & mask), the nibbles being what the other mask leaves. */
TERN_INLINE ints low_nibbles_or(ints x, ints y, ints mask)
{
    const __m512i low = _mm512_and_si512(x, _mm512_set1_epi8(15));
    return _mm512_ternarylogic_epi32(low, y, mask, 0xf8);
}

/* Adds 16 to the codes whose byte of `plane` has `bit`. */
TERN_INLINE ints with_fifth(ints codes, ints plane, ints bit)
{
    return _mm512_mask_add_epi8(codes, _mm512_test_epi8_mask(plane, bit), codes,
                                _mm512_set1_epi8(16));
}

/* 32 fifth bits of a row are one dword. Register j takes bits 4 j .. 4 j + 3, one a byte: they
 * are the index into a table of sixteen such dwords. */
TERN_INLINE void add_fifths(ints bits, ints w[8])
{
    const __m512i spread = _mm512_setr_epi32(
        0x00000000, 0x00000010, 0x00001000, 0x00001010, 0x00100000, 0x00100010, 0x00101000,
        0x00101010, 0x10000000, 0x10000010, 0x10001000, 0x10001010, 0x10100000, 0x10100010,
        0x10101000, 0x10101010);
    TERN_UNROLL
    for (int j = 0; j < 8; j++) {
        w[j] = _mm512_or_si512(w[j], _mm512_permutexvar_epi32(bits, spread));
        bits = _mm512_srli_epi32(bits, 4);
    }
}

#endif
