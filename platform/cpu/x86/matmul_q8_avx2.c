/* matmul_q8_avx2.c: Q8_0 and Q6_K. */
#include "platform/cpu/x86/matmul_few_avx2.h"
#include "platform/cpu/x86/x86.h"

TERN_INLINE void unpack_q8_0(struct tern_sub s, unsigned half, __m256i w[8])
{
    for (int j = 0; j < 8; j++)
        w[j] = load_256(s.block + 32 + 64 * j + 32 * half);
}

static const struct tern_codes_avx2 q8_0 = {
    .chain = TERN_CHAIN_S8, .block_bytes = 16 * 34, .n_groups = 1, .period = 1,
    .unpack = unpack_q8_0, .scale = scale_first,
};

/* Q6_K: d, 16 signed scales by row, 32 vectors of low nibbles, 16 of upper pairs of bits. Of
 * each 128 elements the low nibbles of the first 64 vectors' bytes are sub-blocks 0 and 1, the
 * high ones 2 and 3; the pairs of bits go 0, 1, 2, 3 up a byte. */
TERN_INLINE void unpack_q6_k(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *low = s.block + 288 + 1024 * s.group + 512 * (s.member % 2) + 32 * half;
    const uint8_t *upper = s.block + 288 + 2048 + 512 * s.group + 32 * half;
    const __m256i two_bits = _mm256_set1_epi8(0x30);
    for (int j = 0; j < 8; j++) {
        const __m256i x = load_256(low + 64 * j), y = load_256(upper + 64 * j);
        const __m256i at_4 = s.member == 0   ? _mm256_slli_epi16(y, 4)
                             : s.member == 1 ? _mm256_slli_epi16(y, 2)
                             : s.member == 2 ? y
                                             : _mm256_srli_epi16(y, 2);
        w[j] = _mm256_or_si256(s.member < 2 ? low_nibbles(x) : high_nibbles(x),
                               _mm256_and_si256(at_4, two_bits));
    }
}

TERN_INLINE __m256i sc_q6_k(struct tern_sub s, unsigned half)
{
    const uint8_t *sc = s.block + 32 + 32 * (4 * s.group + s.member) + 8 * half;
    const __m128i sc0 = _mm_loadl_epi64((const __m128i *)(const void *)sc);
    const __m128i sc1 = _mm_loadl_epi64((const __m128i *)(const void *)(sc + 16));
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(sc0, sc1));
}

static const struct tern_codes_avx2 q6_k = {
    .chain = TERN_CHAIN_U6, .zero = 32, .block_bytes = 16 * 210, .n_groups = 2, .period = 4,
    .unpack = unpack_q6_k, .scale = scale_first, .sc = sc_q6_k,
};

static void expand_q8_0(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q8_0, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q8_0_avx2(void)
{
    return type_of(&q8_0, expand_q8_0);
}

void tern_matmul_q8_0_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q8_0, expand_q8_0, m, first, n);
}

static void expand_q6_k(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q6_k, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q6_k_avx2(void)
{
    return type_of(&q6_k, expand_q6_k);
}

void tern_matmul_q6_k_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q6_k, expand_q6_k, m, first, n);
}
