/* lattice_avx2.h: what the kernels of IQ1, IQ2 and IQ3 share: entries of a grid for 8 rows, and
 * their signs.
 *
 * An entry is found by its index, which no vector instruction does well here, so eight loads
 * into one register are most of the work. All else is done for 8 rows at once: a lane of 32 bits
 * is a row, as in the panel, whose runs of 4 bytes are therefore four indices or sign bytes. */
#ifndef TERN_CPU_LATTICE_AVX2_H
#define TERN_CPU_LATTICE_AVX2_H

#include "platform/cpu/x86/matmul_avx2.h"

#include "quant/q_iq_tables.h"

/* Loads stay on their side: a compiler would load many indices first and put them away again. */
TERN_INLINE void keep_loads_apart(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Four entries. A compiler that sees four loads at once makes vectors of their indices first,
 * which takes thrice as long. */
TERN_INLINE __m128i look_up_4(const uint32_t *grid, size_t a, size_t b, size_t c, size_t d)
{
    __m128i x = _mm_cvtsi32_si128((int)grid[a]);
    __asm__("" : "+x"(x));
    x = _mm_insert_epi32(x, (int)grid[b], 1);
    __asm__("" : "+x"(x));
    x = _mm_insert_epi32(x, (int)grid[c], 2);
    __asm__("" : "+x"(x));
    return _mm_insert_epi32(x, (int)grid[d], 3);
}

/* Indices that are bytes: one each 4 bytes from p on. */
TERN_INLINE __m256i look_up_bytes(const uint32_t *grid, const uint8_t *p)
{
    keep_loads_apart();
    const __m128i low = look_up_4(grid, p[0], p[4], p[8], p[12]);
    keep_loads_apart();
    return _mm256_set_m128i(look_up_4(grid, p[16], p[20], p[24], p[28]), low);
}

/* Indices in a register. */
TERN_INLINE __m256i look_up_lanes(const uint32_t *grid, __m256i index)
{
    uint32_t i[8];
    _mm256_storeu_si256((__m256i *)(void *)i, index);
    return _mm256_set_m128i(look_up_4(grid, i[4], i[5], i[6], i[7]),
                            look_up_4(grid, i[0], i[1], i[2], i[3]));
}

/* The bits of a mask, moved down by a number that is known at run time alone. */
TERN_INLINE __m256i bits_at(__m256i x, unsigned by, int mask)
{
    return _mm256_and_si256(_mm256_srl_epi32(x, _mm_cvtsi32_si128((int)by)),
                            _mm256_set1_epi32(mask));
}

/* Byte l of every lane, four times. */
TERN_INLINE __m256i same_byte(__m256i x, int l)
{
    return _mm256_shuffle_epi8(x, _mm256_add_epi8(_mm256_set1_epi8((char)l),
        _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c,
                          0, 0x04040404, 0x08080808, 0x0c0c0c0c)));
}

/* Magnitudes to 64 + x, or 64 - x where the sign of the element is set: bit 4 upper + b of its
 * sign byte for byte b. Magnitudes are at most 63. */
TERN_INLINE __m256i with_signs(__m256i x, __m256i sign_byte, int upper)
{
    const __m256i bit = _mm256_set1_epi32(upper ? (int)0x80402010 : 0x08040201);
    const __m256i minus = _mm256_cmpeq_epi8(_mm256_and_si256(sign_byte, bit), bit);
    x = _mm256_sign_epi8(x, _mm256_or_si256(minus, _mm256_set1_epi8(1)));
    return _mm256_add_epi8(x, _mm256_set1_epi8(64));
}

/* Bytes of 7 signs: the eighth makes the number of signs even. */
TERN_INLINE __m256i with_parity(__m256i x)
{
    const __m256i parity = _mm256_setr_epi8(
        0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0,
        0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0);
    const __m256i folded = low_nibbles(_mm256_xor_si256(x, _mm256_srli_epi16(x, 4)));
    return _mm256_or_si256(x, _mm256_shuffle_epi8(parity, folded));
}

/* Four times 7 signs, in bits 7 l .. 7 l + 6 of a lane, to four bytes. */
TERN_INLINE __m256i even_signs(__m256i w)
{
    return with_parity(_mm256_or_si256(
        _mm256_or_si256(_mm256_and_si256(w, _mm256_set1_epi32(0x7f)),
                        _mm256_and_si256(_mm256_slli_epi32(w, 1), _mm256_set1_epi32(0x7f00))),
        _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi32(w, 2), _mm256_set1_epi32(0x7f0000)),
                        _mm256_and_si256(_mm256_slli_epi32(w, 3), _mm256_set1_epi32(0x7f000000)))));
}

/* One group of IQ2: an entry of 8 elements and its signs, two registers. */
TERN_INLINE void put_iq2(__m256i entry, __m256i sign_byte, __m256i w[2])
{
    const __m256i values = _mm256_setr_epi8(8, 25, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                            8, 25, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    w[0] = with_signs(_mm256_shuffle_epi8(values, low_nibbles(entry)), sign_byte, 0);
    w[1] = with_signs(_mm256_shuffle_epi8(values, high_nibbles(entry)), sign_byte, 1);
}

/* scale_first times 2 s + 1 and a power of two: s are small integers in lanes. */
TERN_INLINE __m256 odd_scale(__m256 d, __m256i s, float by)
{
    const __m256i odd = _mm256_or_si256(_mm256_slli_epi32(s, 1), _mm256_set1_epi32(1));
    return _mm256_mul_ps(_mm256_mul_ps(d, _mm256_cvtepi32_ps(odd)), _mm256_set1_ps(by));
}

#endif
