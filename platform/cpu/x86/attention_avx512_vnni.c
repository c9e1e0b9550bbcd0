/* Attention over one chunk on 16 lanes.
 *
 * Values are read once for a tile of query rows: up to 8 rows by 2 vectors of 16 dims stay in
 * registers over the 16 tokens of a block, and a vector is widened once for all rows. Two vectors
 * are a block of q8_0, so a row's weights are multiplied by its scales for all 16 tokens at once.
 * Query rows see different numbers of tokens (causal prefill), but nearly the same: tokens that all
 * rows of a tile see go through the tile, the few before and after through a tile of one row. A
 * row's chain is in token order all the same. Dims past the last whole vector are a masked one. */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx512_vnni.h"
#include "quant/half.h"

#include <string.h>

#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#endif

/* --- softmax --- */

/* Lanes of s[i .. i + 15] within lo .. hi. */
static __mmask16 lanes_within(size_t i, size_t lo, size_t hi)
{
    const unsigned below = lo > i ? (unsigned)(lo - i) : 0;
    return (__mmask16)(first_lanes(hi - i) & (0xffffu << below));
}

float tern_softmax_avx512_vnni(float *s, size_t lo, size_t hi, float *m)
{
    /* max returns its second operand when the first is NaN, so NaNs drop out. */
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    __m512 most = lowest, sum = _mm512_setzero_ps();
    const size_t first = lo & ~(size_t)15;
    for (size_t i = first; i < hi; i += 16)
        most = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, lanes_within(i, lo, hi), s + i), most);
    const __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(most), _mm512_extractf32x8_ps(most, 1));
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    const float max = _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
    for (size_t i = first; i < hi; i += 16) {
        const __mmask16 here = lanes_within(i, lo, hi);
        const __m512 x = _mm512_maskz_loadu_ps(here, s + i);
        const __m512 p = exp_16(_mm512_sub_ps(x, _mm512_set1_ps(max)));
        _mm512_mask_storeu_ps(s + i, here, p);
        sum = _mm512_add_ps(sum, _mm512_maskz_mov_ps(here, p));
    }
    const float total = sum16_16(sum);
    *m = total == total ? max + 0.0f : NAN;
    return total;
}

/* --- values --- */

enum kind { F32, F16, Q8_0 };
enum { TILE_ROWS = 8, TILE_VECTORS = 2, BLOCK_BYTES = 34 };

/* Tokens of one block for a few rows. */
struct tile {
    const uint8_t *v, *ahead; /* first token; what will be read next */
    size_t row_bytes, n_tokens;
    const float *p;           /* first row, first token */
    float *o;                 /* first row */
    size_t o_stride;
};

/* Some dims on: 16, or as many as the mask has. Lanes outside are not read. */
INLINE __m512 widen(const uint8_t *v, enum kind kind, __mmask16 mask, bool whole)
{
    if (kind == F32)
        return whole ? _mm512_loadu_ps((const float *)(const void *)v)
                     : _mm512_maskz_loadu_ps(mask, (const float *)(const void *)v);
    if (kind == Q8_0) /* rows are padded to blocks */
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)v)));
    return _mm512_cvtph_ps(whole ? _mm256_loadu_si256((const __m256i *)(const void *)v)
                                 : _mm256_maskz_loadu_epi16(mask, v));
}

/* Four tokens' scales, the first one lowest. */
INLINE long long four_scales(const uint8_t *block, size_t row_bytes)
{
    return (long long)((uint64_t)tern_load_u16(block) |
                       (uint64_t)tern_load_u16(block + row_bytes) << 16 |
                       (uint64_t)tern_load_u16(block + 2 * row_bytes) << 32 |
                       (uint64_t)tern_load_u16(block + 3 * row_bytes) << 48);
}

/* The scales of q8_0 values of up to 16 tokens. */
INLINE __m512 scales_of(const uint8_t *block, size_t row_bytes, size_t n_tokens)
{
    if (n_tokens == 16)
        return _mm512_cvtph_ps(_mm256_set_epi64x(four_scales(block + 12 * row_bytes, row_bytes),
                                                 four_scales(block + 8 * row_bytes, row_bytes),
                                                 four_scales(block + 4 * row_bytes, row_bytes),
                                                 four_scales(block, row_bytes)));
    uint16_t halves[16] = {0};
    for (size_t k = 0; k < n_tokens; k++)
        halves[k] = tern_load_u16(block + k * row_bytes);
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)halves));
}

/* Rows' weights of up to 16 tokens, times the scales of the block of q8_0 that dim d lies in. */
static __attribute__((noinline)) void scale_weights(const struct tile *t, size_t d, int n_rows,
                                                    float scaled[TILE_ROWS][16])
{
    const __mmask16 mask = first_lanes(t->n_tokens);
    const __m512 scales = scales_of(t->v + d / 32 * BLOCK_BYTES, t->row_bytes, t->n_tokens);
    for (int r = 0; r < n_rows; r++) {
        const __m512 weights = _mm512_maskz_loadu_ps(mask, t->p + r * TERN_CHUNK);
        _mm512_storeu_ps(scaled[r], _mm512_mul_ps(weights, scales));
    }
}

/* n_rows x n_vectors chains over the tokens, from dim d on; both are constants where this is
 * inlined. For q8_0 the dims lie in a block of 32. The same dims of the next block are asked for
 * early. */
INLINE void run_tile(const struct tile *t, size_t d, enum kind kind, int n_rows, int n_vectors,
                     size_t n_dims)
{
    __m512 acc[TILE_ROWS][TILE_VECTORS];
    const bool whole = n_vectors == TILE_VECTORS;
    const __mmask16 mask = first_lanes(n_dims);
    UNROLL
    for (int r = 0; r < n_rows; r++)
        UNROLL
        for (int j = 0; j < n_vectors; j++) {
            const float *o = t->o + (size_t)r * t->o_stride + d + 16 * j;
            acc[r][j] = whole ? _mm512_loadu_ps(o) : _mm512_maskz_loadu_ps(mask, o);
        }
    const uint8_t *row = t->v, *ahead = t->ahead;
    float scaled[TILE_ROWS][16];
    if (kind == Q8_0)
        scale_weights(t, d, n_rows, scaled);
    const float *p = kind == Q8_0 ? scaled[0] : t->p;
    const int p_stride = kind == Q8_0 ? 16 : TERN_CHUNK;
    for (size_t k = 0; k < t->n_tokens; k++, p++, row += t->row_bytes, ahead += t->row_bytes) {
        __m512 v[TILE_VECTORS];
        UNROLL
        for (int j = 0; j < n_vectors; j++) {
            const size_t e = d + 16 * (size_t)j;
            const size_t at = kind == F32   ? 4 * e
                              : kind == F16 ? 2 * e
                                            : e / 32 * BLOCK_BYTES + 2 + e % 32;
            if (kind == F32 || j % 2 == 0)
                _mm_prefetch((const char *)ahead + at, _MM_HINT_T0);
            v[j] = widen(row + at, kind, mask, whole);
        }
        UNROLL
        for (int r = 0; r < n_rows; r++) {
            const __m512 weight = _mm512_set1_ps(p[r * p_stride]);
            UNROLL
            for (int j = 0; j < n_vectors; j++)
                acc[r][j] = _mm512_fmadd_ps(weight, v[j], acc[r][j]);
        }
    }
    UNROLL
    for (int r = 0; r < n_rows; r++)
        UNROLL
        for (int j = 0; j < n_vectors; j++) {
            float *o = t->o + (size_t)r * t->o_stride + d + 16 * j;
            if (whole)
                _mm512_storeu_ps(o, acc[r][j]);
            else
                _mm512_mask_storeu_ps(o, mask, acc[r][j]);
        }
}

INLINE void run_dims(const struct tile *t, size_t dim, enum kind kind, int n_rows)
{
    size_t d = 0;
    for (; d + 32 <= dim; d += 32)
        run_tile(t, d, kind, n_rows, 2, 32);
    for (; d < dim; d += 16)
        run_tile(t, d, kind, n_rows, 1, dim - d < 16 ? dim - d : 16);
}

/* Tokens from .. to for n_rows rows from r on, added to what o holds. */
INLINE void run_span(const struct tern_values *v, size_t r, size_t n_rows, size_t from, size_t to,
                     enum kind kind)
{
    while (from < to) {
        const size_t end = (from | 15) + 1 < to ? (from | 15) + 1 : to;
        const uint8_t *next = end < to ? v->block[end / 16] : v->block[from / 16];
        const struct tile t = {
            .v = v->block[from / 16] + from % 16 * v->row_bytes,
            .ahead = next,
            .row_bytes = v->row_bytes,
            .n_tokens = end - from,
            .p = v->p + r * TERN_CHUNK + from,
            .o = v->o + r * v->o_stride,
            .o_stride = v->o_stride,
        };
        switch (n_rows) {
        case 1: run_dims(&t, v->dim, kind, 1); break;
        case 2: run_dims(&t, v->dim, kind, 2); break;
        case 3: run_dims(&t, v->dim, kind, 3); break;
        case 4: run_dims(&t, v->dim, kind, 4); break;
        case 5: run_dims(&t, v->dim, kind, 5); break;
        case 6: run_dims(&t, v->dim, kind, 6); break;
        case 7: run_dims(&t, v->dim, kind, 7); break;
        default: run_dims(&t, v->dim, kind, 8); break;
        }
        from = end;
    }
}

/* 1 .. 8 rows; those that see nothing are left alone. */
INLINE void run_rows(const struct tern_values *v, size_t first, size_t n, enum kind kind)
{
    size_t lo = 0, hi = TERN_CHUNK;
    for (size_t r = first; r < first + n; r++) {
        lo = v->lo[r] > lo ? v->lo[r] : lo;
        hi = v->hi[r] < hi ? v->hi[r] : hi;
        if (v->lo[r] < v->hi[r])
            memset(v->o + r * v->o_stride, 0, v->dim * sizeof *v->o);
    }
    if (lo >= hi)
        lo = hi = TERN_CHUNK; /* nothing in common: each row alone, all of it before */
    for (size_t r = first; r < first + n; r++)
        run_span(v, r, 1, v->lo[r], v->hi[r] < lo ? v->hi[r] : lo, kind);
    run_span(v, first, n, lo, hi, kind);
    for (size_t r = first; r < first + n; r++)
        run_span(v, r, 1, hi, v->hi[r], kind);
}

/* Tiles as even as can be. */
INLINE void run_values(const struct tern_values *v, enum kind kind)
{
    for (size_t r = 0; r < v->n_rows;) {
        const size_t left = v->n_rows - r, n_tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
        const size_t n = (left + n_tiles - 1) / n_tiles;
        run_rows(v, r, n, kind);
        r += n;
    }
}

void tern_values_f32_avx512_vnni(const struct tern_values *v)
{
    run_values(v, F32);
}

void tern_values_f16_avx512_vnni(const struct tern_values *v)
{
    run_values(v, F16);
}

void tern_values_q8_0_avx512_vnni(const struct tern_values *v)
{
    run_values(v, Q8_0);
}
