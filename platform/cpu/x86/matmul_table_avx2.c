/* matmul_table_avx2.c: codes of 4 bits that stand for one of 16 values. A shuffle looks up 32 of
 * them. MXFP4's values are moved up by 12, which makes them 0..24; those of IQ4_* need 8 bits
 * and a sign. */
#include "platform/cpu/x86/matmul_few_avx2.h"
#include "platform/cpu/x86/x86.h"

TERN_INLINE void look_up(__m128i values, __m256i w[8])
{
    for (int j = 0; j < 8; j++)
        w[j] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), w[j]);
}

TERN_INLINE __m128i iq4_values(void)
{
    return _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
}

TERN_INLINE void unpack_iq4_nl(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 32, half, w);
    look_up(iq4_values(), w);
}

static const struct tern_codes_avx2 iq4_nl = {
    .chain = TERN_CHAIN_S8, .block_bytes = 16 * 18, .n_groups = 1, .period = 1,
    .unpack = unpack_iq4_nl, .scale = scale_first,
};

/* IQ4_XS: d, 16 bits with two upper bits for each sub-block's scale, 4 bytes by row of their low
 * nibbles, 8 x 4 vectors of codes. */
TERN_INLINE void unpack_iq4_xs(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 128 + 256 * (2 * s.group + s.member), half, w);
    look_up(iq4_values(), w);
}

TERN_INLINE __m256 scale_iq4_xs(struct tern_sub s, unsigned half)
{
    const uint8_t *low = s.block + 64 + 16 * s.group + 8 * half;
    const uint8_t *high = s.block + 32 + 16 * half;
    const __m128i upper = _mm_loadu_si128((const __m128i *)(const void *)high);
    const __m128i l = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)low));
    const __m128i h = _mm_srl_epi16(upper, _mm_cvtsi32_si128((int)(4 * s.group + 2 * s.member)));
    const __m128i code = _mm_or_si128(
        _mm_and_si128(s.member ? _mm_srli_epi16(l, 4) : l, _mm_set1_epi16(15)),
        _mm_and_si128(_mm_slli_epi16(h, 4), _mm_set1_epi16(0x30)));
    const __m128i sc = _mm_sub_epi16(code, _mm_set1_epi16(32));
    return _mm256_mul_ps(scale_first(s, half), _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(sc)));
}

static const struct tern_codes_avx2 iq4_xs = {
    .chain = TERN_CHAIN_S8, .block_bytes = 16 * 136, .n_groups = 4, .period = 2,
    .unpack = unpack_iq4_xs, .scale = scale_iq4_xs,
};

TERN_INLINE void unpack_mxfp4(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 16, half, w);
    look_up(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0), w);
}

/* 2^(e - 128): the exponent e - 1, or a subnormal of one bit for e = 0 and 1. */
TERN_INLINE __m256 scale_mxfp4(struct tern_sub s, unsigned half)
{
    const __m256i e = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64((const __m128i *)(const void *)(s.block + 8 * half)));
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(small, normal, _mm256_cmpgt_epi32(e, one)));
}

static const struct tern_codes_avx2 mxfp4 = {
    .chain = TERN_CHAIN_U5, .zero = 12, .block_bytes = 16 * 17, .n_groups = 1, .period = 1,
    .unpack = unpack_mxfp4, .scale = scale_mxfp4,
};

static void expand_iq4_nl(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq4_nl, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq4_nl_avx2(void)
{
    return type_of(&iq4_nl, expand_iq4_nl);
}

void tern_matmul_iq4_nl_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&iq4_nl, expand_iq4_nl, m, first, n);
}

static void expand_iq4_xs(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq4_xs, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq4_xs_avx2(void)
{
    return type_of(&iq4_xs, expand_iq4_xs);
}

void tern_matmul_iq4_xs_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&iq4_xs, expand_iq4_xs, m, first, n);
}

static void expand_mxfp4(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&mxfp4, panel, first, n, out);
}

struct tern_type_avx2 tern_type_mxfp4_avx2(void)
{
    return type_of(&mxfp4, expand_mxfp4);
}

void tern_matmul_mxfp4_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&mxfp4, expand_mxfp4, m, first, n);
}
