/* k_scales_avx2.h: scales and minimums of Q4_K and Q5_K, 8 rows at once.
 *
 * 6 bits each, packed in 12 bytes: the first four sub-blocks have theirs in the low bits of
 * bytes 0..3 (scales) and 4..7 (minimums), the others low nibbles of scales and high nibbles of
 * minimums in bytes 8..11, and their two upper bits above the first ones'. A panel has byte i of
 * its rows at 16 i. */
#ifndef TERN_CPU_K_SCALES_AVX2_H
#define TERN_CPU_K_SCALES_AVX2_H

#include "platform/cpu/x86/matmul_avx2.h"

enum { TERN_K_D = 0, TERN_K_DMIN = 32, TERN_K_SCALES = 64, TERN_K_CODES = 64 + 192 };

TERN_INLINE __m128i k_byte(const uint8_t *scales, unsigned i, unsigned half)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)(scales + 16 * i + 8 * half));
}

TERN_INLINE __m128i k_upper(__m128i x)
{
    return _mm_and_si128(_mm_srli_epi16(x, 2), _mm_set1_epi8(0x30));
}

TERN_INLINE __m256 k_times(__m256 d, __m128i codes)
{
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes)));
}

TERN_INLINE __m256 k_scale(struct tern_sub s, unsigned half)
{
    const uint8_t *scales = s.block + TERN_K_SCALES;
    const unsigned sub = 2 * s.group + s.member;
    const __m256 d = load_f16(s.block + TERN_K_D + 16 * half);
    if (s.group < 2)
        return k_times(d, _mm_and_si128(k_byte(scales, sub, half), _mm_set1_epi8(63)));
    const __m128i low = _mm_and_si128(k_byte(scales, sub + 4, half), _mm_set1_epi8(15));
    return k_times(d, _mm_or_si128(low, k_upper(k_byte(scales, sub - 4, half))));
}

TERN_INLINE __m256 k_minus_min(struct tern_sub s, unsigned half)
{
    const uint8_t *scales = s.block + TERN_K_SCALES;
    const unsigned sub = 2 * s.group + s.member;
    const __m256 d = _mm256_xor_ps(load_f16(s.block + TERN_K_DMIN + 16 * half),
                                   _mm256_set1_ps(-0.0f));
    if (s.group < 2)
        return k_times(d, _mm_and_si128(k_byte(scales, sub + 4, half), _mm_set1_epi8(63)));
    const __m128i low = _mm_and_si128(_mm_srli_epi16(k_byte(scales, sub + 4, half), 4),
                                      _mm_set1_epi8(15));
    return k_times(d, _mm_or_si128(low, k_upper(k_byte(scales, sub, half))));
}

#endif
