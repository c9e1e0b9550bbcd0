/* matmul_q5_avx2.c: types with codes of 5 bits, the fifth in a plane of its own. */
#include "platform/cpu/x86/k_scales_avx2.h"
#include "platform/cpu/x86/matmul_few_avx2.h"
#include "platform/cpu/x86/x86.h"

/* 32 fifth bits of a row are one dword. Register j takes bits 4 j .. 4 j + 3, one a byte: byte
 * j / 2 of the dword is copied to all four, a mask keeps one bit of each (the dword is first
 * moved up by 4 where that bit is below 16), and whatever is left is at least 16. */
TERN_INLINE void add_fifth_bits(__m256i bits, __m256i w[8])
{
    const __m256i mask = _mm256_set1_epi32((int32_t)0x80402010);
    const __m256i up = _mm256_slli_epi32(bits, 4);
    for (int j = 0; j < 8; j++) {
        const __m256i same_byte = _mm256_add_epi32(_mm256_set1_epi32(0x01010101 * (j / 2)),
            _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c,
                              0, 0x04040404, 0x08080808, 0x0c0c0c0c));
        const __m256i bytes = _mm256_shuffle_epi8(j % 2 ? bits : up, same_byte);
        const __m256i fifth = _mm256_min_epu8(_mm256_and_si256(bytes, mask), _mm256_set1_epi8(16));
        w[j] = _mm256_or_si256(w[j], fifth);
    }
}

TERN_INLINE void unpack_q5_0(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 96, half, w);
    add_fifth_bits(load_256(s.block + 32 + 32 * half), w);
}

static const struct tern_codes_avx2 q5_0 = {
    .chain = TERN_CHAIN_U5, .zero = 16, .block_bytes = 16 * 22, .n_groups = 1, .period = 1,
    .unpack = unpack_q5_0, .scale = scale_first,
};

TERN_INLINE void unpack_q5_1(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 128, half, w);
    add_fifth_bits(load_256(s.block + 64 + 32 * half), w);
}

static const struct tern_codes_avx2 q5_1 = {
    .chain = TERN_CHAIN_U5, .block_bytes = 16 * 24, .n_groups = 1, .period = 1, .has_min = true,
    .unpack = unpack_q5_1, .scale = scale_first, .minus_min = added_m,
};

/* Q5_K: bit `sub` of byte k of the plane belongs to element k of the sub-block. */
TERN_INLINE void unpack_q5_k(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *fifth = s.block + TERN_K_CODES + 32 * half;
    const uint8_t *q = s.block + TERN_K_CODES + 512 + 512 * s.group + 32 * half;
    const __m256i bit = _mm256_set1_epi8((char)(1 << (2 * s.group + s.member)));
    for (int j = 0; j < 8; j++) {
        const __m256i x = load_256(q + 64 * j);
        const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(load_256(fifth + 64 * j), bit), bit);
        w[j] = _mm256_or_si256(s.member ? high_nibbles(x) : low_nibbles(x),
                               _mm256_and_si256(set, _mm256_set1_epi8(16)));
    }
}

static const struct tern_codes_avx2 q5_k = {
    .chain = TERN_CHAIN_U5, .block_bytes = 16 * 176, .n_groups = 4, .period = 2, .has_min = true,
    .unpack = unpack_q5_k, .scale = k_scale, .minus_min = k_minus_min,
};

static void expand_q5_0(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q5_0, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q5_0_avx2(void)
{
    return type_of(&q5_0, expand_q5_0);
}

void tern_matmul_q5_0_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q5_0, expand_q5_0, m, first, n);
}

static void expand_q5_1(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q5_1, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q5_1_avx2(void)
{
    return type_of(&q5_1, expand_q5_1);
}

void tern_matmul_q5_1_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q5_1, expand_q5_1, m, first, n);
}

static void expand_q5_k(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q5_k, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q5_k_avx2(void)
{
    return type_of(&q5_k, expand_q5_k);
}

void tern_matmul_q5_k_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q5_k, expand_q5_k, m, first, n);
}
