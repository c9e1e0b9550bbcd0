/* matmul_iq_avx2.c: the lattice types, IQ1, IQ2 and IQ3. lattice_avx2.h says how.
 *
 * Codes of IQ2 and IQ3 have signs and magnitudes up to 62; 64 is added, so that they are
 * unsigned. Those of IQ1 are odd multiples of an eighth: 8 g +- 1, plus 9. */
#include "platform/cpu/x86/lattice_avx2.h"
#include "platform/cpu/x86/x86.h"

/* The run of 4 bytes of 8 rows. */
TERN_INLINE __m256i run_of(const uint8_t *plane, unsigned i, unsigned half)
{
    return load_256(plane + 64 * i + 32 * half);
}

/* Where all 32 have one scale, it is in the float. */
TERN_INLINE __m256i sc_ones(struct tern_sub s, unsigned half)
{
    (void)s;
    (void)half;
    return _mm256_set1_epi16(1);
}

/* (2 s0 + 1, 2 s1 + 1) in pairs of 16 bits; a byte of 8 rows has s0 below and s1 above. */
TERN_INLINE __m256i odd_pairs(const uint8_t *p)
{
    const __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m256i s0 = _mm256_and_si256(x, _mm256_set1_epi32(15));
    const __m256i s1 = _mm256_slli_epi32(_mm256_srli_epi32(x, 4), 16);
    return _mm256_or_si256(_mm256_slli_epi32(_mm256_or_si256(s0, s1), 1),
                           _mm256_set1_epi16(1));
}

/* IQ2_XXS: d; two runs a sub-block: four indices, then four times 7 signs and s. */
TERN_INLINE void unpack_iq2_xxs(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *index = s.block + 32 + 128 * s.group + 32 * half;
    const __m256i signs = even_signs(load_256(index + 64));
#pragma GCC unroll 4
    for (int l = 0; l < 4; l++)
        put_iq2(look_up_bytes(tern_iq2_xxs_grid, index + l), same_byte(signs, l), w + 2 * l);
}

TERN_INLINE __m256 scale_iq2_xxs(struct tern_sub s, unsigned half)
{
    const __m256i x = run_of(s.block + 32, 2 * s.group + 1, half);
    return odd_scale(scale_first(s, half), _mm256_srli_epi32(x, 28), 0.125f);
}

static const struct tern_codes_avx2 iq2_xxs = {
    .chain = TERN_CHAIN_U7, .zero = 64, .block_bytes = 16 * 66, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq2_xxs, .scale = scale_iq2_xxs, .sc = sc_ones,
};

TERN_INLINE __m256 scale_eighth(struct tern_sub s, unsigned half)
{
    return _mm256_mul_ps(scale_first(s, half), _mm256_set1_ps(0.125f));
}

/* IQ2_XS: d, 8 bytes of scales by row; two runs a sub-block, of two words with 9 bits of index
 * and 7 signs each. */
TERN_INLINE void unpack_iq2_xs(struct tern_sub s, unsigned half, __m256i w[8])
{
#pragma GCC unroll 2
    for (unsigned i = 0; i < 2; i++) {
        const __m256i x = run_of(s.block + 160, 2 * s.group + i, half);
        const __m256i signs = with_parity(_mm256_srli_epi16(x, 9));
        put_iq2(look_up_lanes(tern_iq2_xs_grid, _mm256_and_si256(x, _mm256_set1_epi32(511))),
                same_byte(signs, 0), w + 4 * i);
        put_iq2(look_up_lanes(tern_iq2_xs_grid, bits_at(x, 16, 511)), same_byte(signs, 2),
                w + 4 * i + 2);
    }
}

TERN_INLINE __m256i sc_nibbles(struct tern_sub s, unsigned half)
{
    return odd_pairs(s.block + 32 + 16 * s.group + 8 * half);
}

static const struct tern_codes_avx2 iq2_xs = {
    .chain = TERN_CHAIN_U7, .zero = 64, .block_bytes = 16 * 74, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq2_xs, .scale = scale_eighth, .sc = sc_nibbles,
};

/* IQ2_S: d, 8 bytes of scales by row, 2 runs of upper bits (a byte a sub-block, two bits a
 * group), 8 runs of signs, 8 of indices. */
TERN_INLINE void unpack_iq2_s(struct tern_sub s, unsigned half, __m256i w[8])
{
    const __m256i upper = _mm256_srl_epi32(run_of(s.block + 160, s.group / 4, half),
                                           _mm_cvtsi32_si128((int)(8 * (s.group % 4))));
    const __m256i signs = run_of(s.block + 288, s.group, half);
    const __m256i low = run_of(s.block + 800, s.group, half);
#pragma GCC unroll 4
    for (int l = 0; l < 4; l++) {
        const __m256i high = _mm256_slli_epi32(upper, 8 - 2 * l);
        const __m256i index = _mm256_or_si256(
            _mm256_and_si256(high, _mm256_set1_epi32(0x300)),
            _mm256_and_si256(_mm256_srli_epi32(low, 8 * l), _mm256_set1_epi32(255)));
        put_iq2(look_up_lanes(tern_iq2_s_grid, index), same_byte(signs, l), w + 2 * l);
    }
}

static const struct tern_codes_avx2 iq2_s = {
    .chain = TERN_CHAIN_U7, .zero = 64, .block_bytes = 16 * 82, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq2_s, .scale = scale_eighth, .sc = sc_nibbles,
};

/* IQ3_XXS: d, 8 runs of four times 7 signs and s, 16 runs of four indices. */
TERN_INLINE void unpack_iq3_xxs(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *index = s.block + 544 + 128 * s.group + 32 * half;
    const __m256i signs = even_signs(run_of(s.block + 32, s.group, half));
#pragma GCC unroll 8
    for (int p = 0; p < 8; p++)
        w[p] = with_signs(look_up_bytes(tern_iq3_xxs_grid, index + 64 * (p / 4) + p % 4),
                          same_byte(signs, p / 2), p % 2);
}

TERN_INLINE __m256 scale_iq3_xxs(struct tern_sub s, unsigned half)
{
    const __m256i x = run_of(s.block + 32, s.group, half);
    return odd_scale(scale_first(s, half), _mm256_srli_epi32(x, 28), 0.25f);
}

static const struct tern_codes_avx2 iq3_xxs = {
    .chain = TERN_CHAIN_U7, .zero = 64, .block_bytes = 16 * 98, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq3_xxs, .scale = scale_iq3_xxs, .sc = sc_ones,
};

/* IQ3_S: d, 4 bytes of scales by row (two nibbles), 2 runs of upper bits (a byte a sub-block, a
 * bit an entry), 8 runs of signs, 16 of indices. */
TERN_INLINE void unpack_iq3_s(struct tern_sub s, unsigned half, __m256i w[8])
{
    const __m256i upper = _mm256_srl_epi32(run_of(s.block + 96, s.group / 4, half),
                                           _mm_cvtsi32_si128((int)(8 * (s.group % 4))));
    const __m256i signs = run_of(s.block + 224, s.group, half);
#pragma GCC unroll 8
    for (int p = 0; p < 8; p++) {
        const __m256i low = run_of(s.block + 736, 2 * s.group + (unsigned)p / 4, half);
        const __m256i index = _mm256_or_si256(
            _mm256_and_si256(_mm256_slli_epi32(upper, 8 - p), _mm256_set1_epi32(0x100)),
            _mm256_and_si256(_mm256_srli_epi32(low, 8 * (p % 4)), _mm256_set1_epi32(255)));
        w[p] = with_signs(look_up_lanes(tern_iq3_s_grid, index), same_byte(signs, p / 2), p % 2);
    }
}

TERN_INLINE __m256 scale_iq3_s(struct tern_sub s, unsigned half)
{
    const uint8_t *p = s.block + 32 + 16 * (s.group / 2) + 8 * half;
    const __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    return odd_scale(scale_first(s, half), bits_at(x, 4 * (s.group % 2), 15), 1.0f);
}

static const struct tern_codes_avx2 iq3_s = {
    .chain = TERN_CHAIN_U7, .zero = 64, .block_bytes = 16 * 110, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq3_s, .scale = scale_iq3_s, .sc = sc_ones,
};

/* A group of IQ1: 8 (g + 1) of 0, 8 or 16, and 0 or 2 in the bytes of `plus`. */
TERN_INLINE void put_iq1(__m256i entry, __m256i plus, __m256i w[2])
{
    const __m256i mask = _mm256_set1_epi8(0x18);
    w[0] = _mm256_add_epi8(_mm256_and_si256(_mm256_slli_epi16(entry, 3), mask), plus);
    w[1] = _mm256_add_epi8(_mm256_and_si256(_mm256_srli_epi16(entry, 1), mask), plus);
}

/* 2 in every byte of lanes whose bit is clear, 0 where it is set. */
TERN_INLINE __m256i two_where_clear(__m256i x, int bit)
{
    const __m256i clear = _mm256_cmpeq_epi32(_mm256_and_si256(x, _mm256_set1_epi32(bit)),
                                             _mm256_setzero_si256());
    return _mm256_and_si256(clear, _mm256_set1_epi8(2));
}

/* The 16 bits of a sub-block, of runs that hold two sub-blocks. */
TERN_INLINE __m256i half_run(const uint8_t *plane, struct tern_sub s, unsigned half)
{
    return _mm256_srl_epi32(run_of(plane, s.group / 2, half),
                            _mm_cvtsi32_si128((int)(16 * (s.group % 2))));
}

/* IQ1_S: d, 4 runs of two words (four times 3 upper bits, 3 of s, minus), 8 runs of indices. */
TERN_INLINE void unpack_iq1_s(struct tern_sub s, unsigned half, __m256i w[8])
{
    const __m256i upper = half_run(s.block + 32, s, half);
    const __m256i low = run_of(s.block + 288, s.group, half);
    const __m256i plus = two_where_clear(upper, 0x8000);
#pragma GCC unroll 4
    for (int l = 0; l < 4; l++) {
        const __m256i high = l < 3 ? _mm256_slli_epi32(upper, 8 - 3 * l)
                                   : _mm256_srli_epi32(upper, 1);
        const __m256i index = _mm256_or_si256(
            _mm256_and_si256(high, _mm256_set1_epi32(0x700)),
            _mm256_and_si256(_mm256_srli_epi32(low, 8 * l), _mm256_set1_epi32(255)));
        put_iq1(look_up_lanes(tern_iq1_grid, index), plus, w + 2 * l);
    }
}

TERN_INLINE __m256 scale_iq1_s(struct tern_sub s, unsigned half)
{
    return odd_scale(scale_first(s, half), bits_at(half_run(s.block + 32, s, half), 12, 7), 0.125f);
}

static const struct tern_codes_avx2 iq1_s = {
    .chain = TERN_CHAIN_U5, .zero = 9, .block_bytes = 16 * 50, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq1_s, .scale = scale_iq1_s,
};

/* IQ1_M: 4 words by row (four s of 3 bits, above them a quarter of d), 4 runs of upper bits (two
 * bytes a sub-block, a nibble a group: 3 bits and minus), 8 runs of indices. */
TERN_INLINE void unpack_iq1_m(struct tern_sub s, unsigned half, __m256i w[8])
{
    const __m256i upper = half_run(s.block + 128, s, half);
    const __m256i low = run_of(s.block + 384, s.group, half);
#pragma GCC unroll 4
    for (int l = 0; l < 4; l++) {
        const __m256i high = l < 2 ? _mm256_slli_epi32(upper, 8 - 4 * l)
                                   : _mm256_srli_epi32(upper, 4 * l - 8);
        const __m256i index = _mm256_or_si256(
            _mm256_and_si256(high, _mm256_set1_epi32(0x700)),
            _mm256_and_si256(_mm256_srli_epi32(low, 8 * l), _mm256_set1_epi32(255)));
        put_iq1(look_up_lanes(tern_iq1_grid, index), two_where_clear(upper, 8 << (4 * l)),
                w + 2 * l);
    }
}

TERN_INLINE __m128i word_iq1_m(const uint8_t *block, unsigned k, unsigned half)
{
    return _mm_loadu_si128((const __m128i *)(const void *)(block + 32 * k + 16 * half));
}

TERN_INLINE __m256 scale_iq1_m(struct tern_sub s, unsigned half)
{
    const __m128i top = _mm_set1_epi16((short)0xf000);
    const __m128i d = _mm_or_si128(
        _mm_or_si128(_mm_srli_epi16(word_iq1_m(s.block, 0, half), 12),
                     _mm_srli_epi16(_mm_and_si128(word_iq1_m(s.block, 1, half), top), 8)),
        _mm_or_si128(_mm_srli_epi16(_mm_and_si128(word_iq1_m(s.block, 2, half), top), 4),
                     _mm_and_si128(word_iq1_m(s.block, 3, half), top)));
    return _mm256_mul_ps(_mm256_cvtph_ps(d), _mm256_set1_ps(0.125f));
}

TERN_INLINE __m256i sc_iq1_m(struct tern_sub s, unsigned half)
{
    const __m256i word = _mm256_cvtepu16_epi32(word_iq1_m(s.block, s.group / 2, half));
    const __m256i x = _mm256_srl_epi32(word, _mm_cvtsi32_si128((int)(6 * (s.group % 2))));
    const __m256i both = _mm256_or_si256(
        _mm256_and_si256(_mm256_slli_epi32(x, 1), _mm256_set1_epi32(0xe)),
        _mm256_and_si256(_mm256_slli_epi32(x, 14), _mm256_set1_epi32(0xe0000)));
    return _mm256_or_si256(both, _mm256_set1_epi16(1));
}

static const struct tern_codes_avx2 iq1_m = {
    .chain = TERN_CHAIN_U3, .zero = 9, .block_bytes = 16 * 56, .n_groups = 8, .period = 1,
    .compact = true, .unpack = unpack_iq1_m, .scale = scale_iq1_m, .sc = sc_iq1_m,
};

static void expand_iq2_xxs(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq2_xxs, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq2_xxs_avx2(void)
{
    return type_of(&iq2_xxs, expand_iq2_xxs);
}

void tern_matmul_iq2_xxs_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq2_xxs_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}

static void expand_iq2_xs(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq2_xs, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq2_xs_avx2(void)
{
    return type_of(&iq2_xs, expand_iq2_xs);
}

void tern_matmul_iq2_xs_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq2_xs_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}

static void expand_iq2_s(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq2_s, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq2_s_avx2(void)
{
    return type_of(&iq2_s, expand_iq2_s);
}

void tern_matmul_iq2_s_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq2_s_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}

static void expand_iq3_xxs(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq3_xxs, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq3_xxs_avx2(void)
{
    return type_of(&iq3_xxs, expand_iq3_xxs);
}

void tern_matmul_iq3_xxs_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq3_xxs_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}

static void expand_iq3_s(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq3_s, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq3_s_avx2(void)
{
    return type_of(&iq3_s, expand_iq3_s);
}

void tern_matmul_iq3_s_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq3_s_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}

static void expand_iq1_s(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq1_s, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq1_s_avx2(void)
{
    return type_of(&iq1_s, expand_iq1_s);
}

void tern_matmul_iq1_s_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq1_s_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}

static void expand_iq1_m(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&iq1_m, panel, first, n, out);
}

struct tern_type_avx2 tern_type_iq1_m_avx2(void)
{
    return type_of(&iq1_m, expand_iq1_m);
}

void tern_matmul_iq1_m_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = tern_type_iq1_m_avx2();
    tern_matmul_many_avx2(&type, m, first, n);
}
