/* matmul_q2_avx2.c: Q2_K and Q3_K, codes of 2 bits and a third in a plane of its own.
 *
 * A byte of qs holds element i of four sub-blocks, the first in the low bits, so a vector of
 * them is shifted by a constant and masked. Scales are integers for each 16 elements. */
#include "platform/cpu/x86/matmul_few_avx2.h"
#include "platform/cpu/x86/x86.h"

enum {
    Q2_DMIN = 32, Q2_SCALES = 64, Q2_CODES = 64 + 256,
    Q3_SCALES = 32, Q3_THIRD = 32 + 192, Q3_CODES = 32 + 192 + 512,
};

TERN_INLINE __m256i two_bits(__m256i x, unsigned i)
{
    return _mm256_and_si256(i ? _mm256_srli_epi16(x, 2 * (int)i) : x, _mm256_set1_epi8(3));
}

TERN_INLINE __m128i load_8_bytes(const uint8_t *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

/* Q2_K: d, dmin, 16 bytes by row (scale below, minimum above), 16 vectors of codes. */
TERN_INLINE void unpack_q2_k(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *q = s.block + Q2_CODES + 512 * s.group + 32 * half;
    for (int j = 0; j < 8; j++)
        w[j] = two_bits(load_256(q + 64 * j), s.member);
}

/* The two bytes of a sub-block: rows interleaved. */
TERN_INLINE __m128i q2_pairs(struct tern_sub s, unsigned half)
{
    const uint8_t *p = s.block + Q2_SCALES + 32 * (4 * s.group + s.member) + 8 * half;
    return _mm_unpacklo_epi8(load_8_bytes(p), load_8_bytes(p + 16));
}

TERN_INLINE __m256i sc_q2_k(struct tern_sub s, unsigned half)
{
    return _mm256_and_si256(_mm256_cvtepu8_epi16(q2_pairs(s, half)), _mm256_set1_epi16(15));
}

TERN_INLINE __m256i m_q2_k(struct tern_sub s, unsigned half)
{
    return _mm256_srli_epi16(_mm256_cvtepu8_epi16(q2_pairs(s, half)), 4);
}

TERN_INLINE __m256 minus_min_q2_k(struct tern_sub s, unsigned half)
{
    return _mm256_xor_ps(load_f16(s.block + Q2_DMIN + 16 * half), _mm256_set1_ps(-0.0f));
}

static const struct tern_codes_avx2 q2_k = {
    .chain = TERN_CHAIN_U3, .block_bytes = 16 * 84, .n_groups = 2, .period = 4, .has_min = true,
    .unpack = unpack_q2_k, .scale = scale_first, .minus_min = minus_min_q2_k, .sc = sc_q2_k,
    .m = m_q2_k,
};

/* Q3_K: d, 12 bytes of scales by row, 8 vectors of third bits (bit `sub` of a byte), 16 vectors
 * of codes. */
TERN_INLINE void unpack_q3_k(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *third = s.block + Q3_THIRD + 32 * half;
    const uint8_t *q = s.block + Q3_CODES + 512 * s.group + 32 * half;
    const __m128i to_low = _mm_cvtsi32_si128((int)(4 * s.group));
    for (int j = 0; j < 8; j++) {
        const __m256i x = _mm256_srl_epi16(load_256(third + 64 * j), to_low);
        const __m256i at_2 = s.member == 0   ? _mm256_slli_epi16(x, 2)
                             : s.member == 1 ? _mm256_slli_epi16(x, 1)
                             : s.member == 2 ? x
                                             : _mm256_srli_epi16(x, 1);
        w[j] = _mm256_or_si256(two_bits(load_256(q + 64 * j), s.member),
                               _mm256_and_si256(at_2, _mm256_set1_epi8(4)));
    }
}

/* Scale k has its low nibble in byte k % 8, high for k >= 8, and two bits above them in byte 8 +
 * k % 4, upwards. Here k = 8 group + 2 member and the next. */
TERN_INLINE __m256i sc_q3_k(struct tern_sub s, unsigned half)
{
    const uint8_t *low = s.block + Q3_SCALES + 32 * s.member + 8 * half;
    const uint8_t *high = s.block + Q3_SCALES + 128 + 32 * (s.member % 2) + 8 * half;
    const __m128i by = _mm_cvtsi32_si128((int)(4 * s.group));
    const __m256i l = _mm256_srl_epi16(_mm256_cvtepu8_epi16(
        _mm_unpacklo_epi8(load_8_bytes(low), load_8_bytes(low + 16))), by);
    __m256i h = _mm256_srl_epi16(_mm256_cvtepu8_epi16(
        _mm_unpacklo_epi8(load_8_bytes(high), load_8_bytes(high + 16))), by);
    h = s.member < 2 ? _mm256_slli_epi16(h, 4) : _mm256_slli_epi16(h, 2);
    const __m256i sc = _mm256_or_si256(_mm256_and_si256(l, _mm256_set1_epi16(15)),
                                       _mm256_and_si256(h, _mm256_set1_epi16(0x30)));
    return _mm256_sub_epi16(sc, _mm256_set1_epi16(32));
}

static const struct tern_codes_avx2 q3_k = {
    .chain = TERN_CHAIN_U3, .zero = 4, .block_bytes = 16 * 110, .n_groups = 2, .period = 4,
    .unpack = unpack_q3_k, .scale = scale_first, .sc = sc_q3_k,
};

static void expand_q2_k(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q2_k, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q2_k_avx2(void)
{
    return type_of(&q2_k, expand_q2_k);
}

void tern_matmul_q2_k_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q2_k, expand_q2_k, m, first, n);
}

static void expand_q3_k(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q3_k, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q3_k_avx2(void)
{
    return type_of(&q3_k, expand_q3_k);
}

void tern_matmul_q3_k_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q3_k, expand_q3_k, m, first, n);
}
