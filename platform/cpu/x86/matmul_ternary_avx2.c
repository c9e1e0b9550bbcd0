/* matmul_ternary_avx2.c: TQ1_0 and TQ2_0, weights of -1, 0 and 1 kept as 0, 1 and 2.
 *
 * TQ2_0 has two bits each, as in Q2_K. A byte of TQ1_0 is a fraction of 256 with five digits in
 * base 3: the digit is the integer part of three times the fraction, the next one is that of what
 * is left, which is three times the byte modulo 256. So a digit counts how many of 85 and 170 the
 * byte is above. Compares are signed, so bytes are taken with 128 off, which three times such a
 * byte keeps: 3 (f - 128) is 3 f - 128 modulo 256. */
#include "platform/cpu/x86/matmul_few_avx2.h"
#include "platform/cpu/x86/x86.h"

TERN_INLINE __m256i two_bits(__m256i x, unsigned i)
{
    return _mm256_and_si256(i ? _mm256_srli_epi16(x, 2 * (int)i) : x, _mm256_set1_epi8(3));
}

TERN_INLINE void unpack_tq2_0(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *q = s.block + 32 + 512 * s.group + 32 * half;
    for (int j = 0; j < 8; j++)
        w[j] = two_bits(load_256(q + 64 * j), s.member);
}

static const struct tern_codes_avx2 tq2_0 = {
    .chain = TERN_CHAIN_U4, .zero = 1, .block_bytes = 16 * 66, .n_groups = 2, .period = 4,
    .compact = true, .unpack = unpack_tq2_0, .scale = scale_first,
};

TERN_INLINE __m256i first_digit(__m256i f)
{
    const __m256i above_85 = _mm256_cmpgt_epi8(f, _mm256_set1_epi8(85 - 128));
    const __m256i above_170 = _mm256_cmpgt_epi8(f, _mm256_set1_epi8(170 - 128));
    return _mm256_sub_epi8(_mm256_sub_epi8(_mm256_setzero_si256(), above_85), above_170);
}

/* x * 3^n modulo 256. */
TERN_INLINE __m256i times_power(__m256i x, unsigned n)
{
    const __m256i by_9 = _mm256_set1_epi8((char)0xf8);
    if (n >= 2)
        x = _mm256_add_epi8(x, _mm256_and_si256(_mm256_slli_epi16(x, 3), by_9));
    if (n >= 4)
        x = _mm256_add_epi8(x, _mm256_and_si256(_mm256_slli_epi16(x, 3), by_9));
    return n % 2 ? _mm256_add_epi8(x, _mm256_add_epi8(x, x)) : x;
}

/* Digit n of byte run j of 8 rows. */
TERN_INLINE __m256i digit(struct tern_sub s, unsigned half, unsigned j, unsigned n)
{
    const __m256i f = _mm256_xor_si256(load_256(s.block + 32 + 64 * j + 32 * half),
                                       _mm256_set1_epi8((char)0x80));
    return first_digit(times_power(f, n));
}

/* d, 8 vectors whose five digits are sub-blocks 0..4, 4 vectors whose digits are the halves that
 * follow, one vector with four digits of 4 elements each. */
TERN_INLINE void unpack_tq1_0(struct tern_sub s, unsigned half, __m256i w[8])
{
    for (unsigned j = 0; j < 8; j++)
        w[j] = s.member < 5             ? digit(s, half, j, s.member)
               : s.member < 7 || j < 4 ? digit(s, half, 8 + j % 4, 2 * (s.member - 5) + j / 4)
                                        : digit(s, half, 12, j % 4);
}

static const struct tern_codes_avx2 tq1_0 = {
    .chain = TERN_CHAIN_U4, .zero = 1, .block_bytes = 16 * 54, .n_groups = 1, .period = 8,
    .compact = true, .unpack = unpack_tq1_0, .scale = scale_first,
};

static void expand_tq1_0(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&tq1_0, panel, first, n, out);
}

struct tern_type_avx2 tern_type_tq1_0_avx2(void)
{
    return type_of(&tq1_0, expand_tq1_0);
}

void tern_matmul_tq1_0_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&tq1_0, expand_tq1_0, m, first, n);
}

static void expand_tq2_0(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&tq2_0, panel, first, n, out);
}

struct tern_type_avx2 tern_type_tq2_0_avx2(void)
{
    return type_of(&tq2_0, expand_tq2_0);
}

void tern_matmul_tq2_0_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&tq2_0, expand_tq2_0, m, first, n);
}
