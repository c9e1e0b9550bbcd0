/* quantize_avx512_vnni.c: activations to records, up to 16 blocks of 32 at a time, so that their
 * scales are divided together: one division after the other is what bounds a block by itself. */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx512_vnni.h"

enum { TOGETHER = 16 };

/* Lanes of a and b by turns, their upper lanes' maxima with their lower ones': each of them is a
 * maximum of twice as many of its own lanes. */
static __m512i fold_32(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

static __m512i fold_64(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

static __m512i fold_128(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/* The maximum of each of 16 vectors, in their order. */
static __m512i maxima(const __m512i m[TOGETHER])
{
    __m512i four[4];
    for (int i = 0; i < 4; i++)
        four[i] = fold_64(fold_32(m[4 * i], m[4 * i + 1]), fold_32(m[4 * i + 2], m[4 * i + 3]));
    return fold_128(fold_128(four[0], four[1]), fold_128(four[2], four[3]));
}

/* Magnitudes order like their bits, NaN above infinity. */
static __m512i magnitudes(const float *x)
{
    const __m512i bits = _mm512_set1_epi32(0x7fffffff);
    return _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(x), bits),
                            _mm512_and_si512(_mm512_loadu_si512(x + 16), bits));
}

static __m512i codes(const float *x, float inverse)
{
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(inverse)));
}

/* Two blocks' codes, and their halves' sums. */
static void two_blocks(int8_t *q, int16_t *sum, const float *x, const float *inverse)
{
    /* Packing works in lanes of 128 bits: each has four codes of all four vectors. */
    const __m512i first = _mm512_packs_epi32(codes(x, inverse[0]), codes(x + 16, inverse[0]));
    const __m512i second =
        _mm512_packs_epi32(codes(x + 32, inverse[1]), codes(x + 48, inverse[1]));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(first, second));
    _mm512_storeu_si512(q, bytes);
    /* Sums of eight unsigned bytes, each 128 more than its code. */
    const __m512i raised = _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
    const __m512i eights = _mm512_sad_epu8(raised, _mm512_setzero_si512());
    const __m512i sums = _mm512_sub_epi64(
        _mm512_add_epi64(eights, _mm512_shuffle_epi32(eights, _MM_PERM_BADC)),
        _mm512_set1_epi64(16 * 128));
    const __m128i words = _mm512_cvtepi64_epi16(sums); /* of each half, twice */
    _mm_storel_epi64((__m128i *)(void *)sum,
                     _mm_shuffle_epi8(words, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1,
                                                           -1, -1, -1, -1, -1)));
}

/* n blocks, an even number of them up to TOGETHER. */
static void quantize_blocks(int8_t *q, float *d, int16_t *sum, const float *x, size_t n)
{
    __m512i m[TOGETHER];
    float inverse[TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++)
        m[i] = i < n ? magnitudes(x + 32 * i) : _mm512_setzero_si512();
    const __m512i most = maxima(m);
    const __m512 scale = _mm512_div_ps(_mm512_castsi512_ps(most), _mm512_set1_ps(127.0f));
    const __mmask16 lost = _mm512_cmpge_epi32_mask(most, _mm512_set1_epi32(0x7f800000));
    const __mmask16 tiny = _mm512_cmp_ps_mask(_mm512_castsi512_ps(most),
                                              _mm512_set1_ps(TERN_QUANTIZE_TINY), _CMP_LT_OQ);
    __m512 scales = _mm512_maskz_mov_ps((__mmask16)~tiny, scale);
    scales = _mm512_mask_mov_ps(scales, lost, _mm512_set1_ps(NAN));
    _mm512_mask_storeu_ps(d, first_lanes(n), scales);
    _mm512_storeu_ps(inverse, _mm512_div_ps(_mm512_set1_ps(1.0f), scale));
    for (size_t i = 0; i < n; i += 2)
        two_blocks(q + 32 * i, sum + 2 * i, x + 32 * i, inverse + i);
    const unsigned empty = (lost | tiny) & first_lanes(n);
    for (size_t i = 0; empty >> i; i++)
        if (empty >> i & 1) {
            memset(q + 32 * i, 0, 32);
            sum[2 * i] = sum[2 * i + 1] = 0;
        }
}

void tern_quantize_avx512_vnni(int8_t *q, float *d, int16_t *sum, const float *x, size_t n)
{
    while (n >= 64) {
        const size_t blocks = n >= 32 * TOGETHER ? TOGETHER : n / 64 * 2;
        quantize_blocks(q, d, sum, x, blocks);
        q += 32 * blocks;
        d += blocks;
        sum += 2 * blocks;
        x += 32 * blocks;
        n -= 32 * blocks;
    }
    tern_quantize_avx2(q, d, sum, x, n);
}
