/* Attention over one chunk on 8 lanes.
 *
 * Values are read once for a tile of query rows: rows x vectors of 8 dims stay in registers
 * over the 16 tokens of a block, and an f16 or q8_0 vector is widened once for all rows of the
 * tile. Twelve accumulators hide the latency of fma; a block is walked to its end before the
 * next, so that memory is read in order. Query rows see different numbers of tokens (causal
 * prefill), but nearly the same: tokens that all rows of a tile see go through the tile, the
 * few before and after through a tile of one row. A row's chain is in token order all the same.
 */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx2.h"
#include "quant/half.h"

#ifndef __AVX2__
#error "this file needs -mavx2 -mfma -mf16c"
#endif

/* --- softmax --- */

/* The lanes of s[i .. i + 7] that are within lo .. hi; `other` elsewhere, which is not read. */
static __m256 load_scores(const float *s, size_t i, size_t lo, size_t hi, __m256 other)
{
    if (i >= lo && i + 8 <= hi)
        return _mm256_loadu_ps(s + i);
    const __m256i mask = lanes_avx2((int)lo - (int)i, (int)hi - (int)i);
    return _mm256_blendv_ps(other, _mm256_maskload_ps(s + i, mask), _mm256_castsi256_ps(mask));
}

static float max_score(const float *s, size_t lo, size_t hi)
{
    /* max returns its second operand when the first is NaN, so NaNs drop out. */
    const __m256 lowest = _mm256_set1_ps(-INFINITY);
    __m256 a = lowest, b = lowest;
    for (size_t i = lo & ~(size_t)15; i < hi; i += 16) {
        a = _mm256_max_ps(load_scores(s, i, lo, hi, lowest), a);
        b = _mm256_max_ps(load_scores(s, i + 8, lo, hi, lowest), b);
    }
    const __m256 m8 = _mm256_max_ps(a, b);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

/* exp of 8 scores in place; lanes outside lo .. hi are not written and count as 0. */
static __m256 exp_scores(float *s, size_t i, size_t lo, size_t hi, __m256 max)
{
    if (i >= lo && i + 8 <= hi) {
        const __m256 p = exp_minus_avx2(_mm256_sub_ps(max, _mm256_loadu_ps(s + i)));
        _mm256_storeu_ps(s + i, p);
        return p;
    }
    const __m256i mask = lanes_avx2((int)lo - (int)i, (int)hi - (int)i);
    const __m256 p = exp_minus_avx2(_mm256_sub_ps(max, _mm256_maskload_ps(s + i, mask)));
    _mm256_maskstore_ps(s + i, mask, p);
    return _mm256_and_ps(p, _mm256_castsi256_ps(mask));
}

float tern_softmax_avx2(float *s, size_t lo, size_t hi, float *m)
{
    const float max = max_score(s, lo, hi);
    const __m256 maxima = _mm256_set1_ps(max);
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (size_t i = lo & ~(size_t)15; i < hi; i += 16) {
        low = _mm256_add_ps(low, exp_scores(s, i, lo, hi, maxima));
        high = _mm256_add_ps(high, exp_scores(s, i + 8, lo, hi, maxima));
    }
    const float sum = sum16_avx2(low, high);
    *m = sum == sum ? max + 0.0f : NAN;
    return sum;
}

/* --- values --- */

enum kind { F32, F16, Q8_0, Q4_0 };
enum { MAX_ACCS = 12 };

/* Tokens of one block for a few rows, some dims on from v's first. */
struct tile {
    const uint8_t *v, *ahead; /* first token; what will be read next */
    size_t row_bytes, n_tokens;
    const float *p;           /* first row, first token */
    float *o;                 /* first row */
    size_t o_stride;
};

#define INLINE static inline __attribute__((always_inline))

/* Bytes of one block of 32 dims of a row; where its dim d lies, for vectors of 8 from d on. */
INLINE size_t offset_of(size_t d, enum kind kind)
{
    return kind == F32    ? 4 * d
           : kind == F16  ? 2 * d
           : kind == Q8_0 ? d / 32 * 34 + 2 + d % 32
                          : d / 32 * 18 + 2 + d % 16;
}

INLINE size_t scale_of(size_t d, enum kind kind)
{
    return d / 32 * (kind == Q8_0 ? 34 : 18);
}

/* Dims d .. d + 7 of a row. */
INLINE __m256 widen(const uint8_t *row, size_t d, enum kind kind)
{
    const void *at = row + offset_of(d, kind);
    if (kind == F32)
        return _mm256_loadu_ps(at);
    if (kind == F16)
        return _mm256_cvtph_ps(_mm_loadu_si128(at));
    if (kind == Q8_0)
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at)));
    const __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at));
    const __m256i code = d % 32 < 16 ? _mm256_and_si256(codes, _mm256_set1_epi32(15))
                                     : _mm256_srli_epi32(codes, 4);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(8)));
}

/* One token's weight for a row, as 8 lanes; q8_0 values bring their scale. */
INLINE __m256 weight(const float *p, const uint8_t *scale, enum kind kind)
{
    const __m256 x = _mm256_broadcast_ss(p);
    if (kind == F32 || kind == F16)
        return x;
    return _mm256_mul_ps(x, _mm256_cvtph_ps(_mm_set1_epi16((short)tern_load_u16(scale))));
}

/* n_rows x n_vectors chains over the tokens, for dims d .. d + 8 n_vectors; both are constants
 * where this is inlined, and for q8_0 and q4_0 the dims lie in one block of 32. Twelve accumulators
 * leave four registers: the fewer of weights and vectors stay in three, the others take turns
 * in the last. The same dims of the next block are asked for early. */
INLINE void run_tile(const struct tile *t, size_t d, enum kind kind, int n_rows, int n_vectors)
{
    __m256 acc[MAX_ACCS], kept[3];
    for (int r = 0; r < n_rows; r++)
        for (int j = 0; j < n_vectors; j++)
            acc[r * n_vectors + j] = _mm256_loadu_ps(t->o + (size_t)r * t->o_stride + d + 8 * j);
    const size_t scale_at = scale_of(d, kind);
    const uint8_t *row = t->v, *ahead = t->ahead + offset_of(d, kind);
    const float *p = t->p;
    for (size_t k = 0; k < t->n_tokens; k++, p++, row += t->row_bytes, ahead += t->row_bytes) {
        _mm_prefetch((const char *)ahead, _MM_HINT_T0);
        if (n_rows < n_vectors) {
            for (int r = 0; r < n_rows; r++)
                kept[r] = weight(p + r * TERN_CHUNK, row + scale_at, kind);
            for (int j = 0; j < n_vectors; j++) {
                const __m256 v = widen(row, d + 8 * (size_t)j, kind);
                for (int r = 0; r < n_rows; r++)
                    acc[r * n_vectors + j] = _mm256_fmadd_ps(kept[r], v, acc[r * n_vectors + j]);
            }
        } else {
            for (int j = 0; j < n_vectors; j++)
                kept[j] = widen(row, d + 8 * (size_t)j, kind);
            for (int r = 0; r < n_rows; r++) {
                const __m256 w = weight(p + r * TERN_CHUNK, row + scale_at, kind);
                for (int j = 0; j < n_vectors; j++)
                    acc[r * n_vectors + j] = _mm256_fmadd_ps(w, kept[j], acc[r * n_vectors + j]);
            }
        }
    }
    for (int r = 0; r < n_rows; r++)
        for (int j = 0; j < n_vectors; j++)
            _mm256_storeu_ps(t->o + (size_t)r * t->o_stride + d + 8 * j, acc[r * n_vectors + j]);
}

/* One dim past the last vector; not inlined, since its constants would take registers from the
 * tiles. */
static __attribute__((noinline)) void run_lane(const struct tile *t, size_t d, enum kind kind,
                                               int n_rows)
{
    for (int r = 0; r < n_rows; r++) {
        float *o = t->o + (size_t)r * t->o_stride + d;
        const uint8_t *row = t->v;
        for (size_t k = 0; k < t->n_tokens; k++, row += t->row_bytes) {
            const float p = t->p[r * TERN_CHUNK + k];
            const uint8_t *block = row + scale_of(d, kind);
            const int code = block[2 + d % 16] >> (d % 32 < 16 ? 0 : 4) & 15;
            if (kind == F32)
                *o = fmaf(p, tern_from_bits(tern_load_u32(row + 4 * d)), *o);
            else if (kind == F16)
                *o = fmaf(p, tern_load_f16(row + 2 * d), *o);
            else if (kind == Q8_0)
                *o = fmaf(p * tern_load_f16(block), (float)(int8_t)block[2 + d % 32], *o);
            else
                *o = fmaf(p * tern_load_f16(block), (float)(code - 8), *o);
        }
    }
}

INLINE void run_dims(const struct tile *t, size_t dim, enum kind kind, int n_rows, int n_vectors)
{
    size_t d = 0;
    const size_t width = 8 * (size_t)n_vectors;
    for (; d + width <= dim; d += width)
        run_tile(t, d, kind, n_rows, n_vectors);
    if (n_vectors == 3 && d + 16 <= dim) {
        run_tile(t, d, kind, n_rows, 2);
        d += 16;
    }
    for (; d + 8 <= dim; d += 8)
        run_tile(t, d, kind, n_rows, 1);
    for (; d < dim; d++)
        run_lane(t, d, kind, n_rows);
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
        case 1: run_dims(&t, v->dim, kind, 1, kind >= Q8_0 ? 4 : 8); break;
        case 2: run_dims(&t, v->dim, kind, 2, 4); break;
        case 3: run_dims(&t, v->dim, kind, 3, 4); break;
        default: run_dims(&t, v->dim, kind, 4, kind >= Q8_0 ? 2 : 3); break;
        }
        from = end;
    }
}

/* 1 .. 4 rows; those that see nothing are left alone. */
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

/* Tiles of 3 and 4 rows are the quickest, of one row the slowest. */
INLINE size_t tile_rows(size_t left, enum kind kind)
{
    if (left <= 3)
        return left;
    if (kind >= Q8_0)
        return left == 4 ? 2 : 3;
    return left == 5 || left == 6 || left == 9 ? 3 : 4;
}

INLINE void run_values(const struct tern_values *v, enum kind kind)
{
    for (size_t r = 0; r < v->n_rows;) {
        const size_t n = tile_rows(v->n_rows - r, kind);
        run_rows(v, r, n, kind);
        r += n;
    }
}

void tern_values_f32_avx2(const struct tern_values *v)
{
    run_values(v, F32);
}

void tern_values_f16_avx2(const struct tern_values *v)
{
    run_values(v, F16);
}

void tern_values_q4_0_avx2(const struct tern_values *v)
{
    run_values(v, Q4_0);
}

void tern_values_q8_0_avx2(const struct tern_values *v)
{
    run_values(v, Q8_0);
}

/* --- merge --- */

void tern_merge_avx2(float *m, float *l, float *o, float m_c, float l_c, const float *o_c,
                     size_t dim)
{
    if (*l == 0.0f && *m == -INFINITY) {
        *m = m_c;
        *l = l_c;
        memcpy(o, o_c, dim * sizeof *o);
        return;
    }
    const float max = m_c > *m ? m_c : *m;
    const float e = tern_exp(*m - max), e_c = tern_exp(m_c - max);
    const __m256 es = _mm256_set1_ps(e), es_c = _mm256_set1_ps(e_c);
    *m = max;
    *l = fmaf(l_c, e_c, *l * e);
    size_t d = 0;
    for (; d + 8 <= dim; d += 8) {
        const __m256 left = _mm256_mul_ps(_mm256_loadu_ps(o + d), es);
        _mm256_storeu_ps(o + d, _mm256_fmadd_ps(_mm256_loadu_ps(o_c + d), es_c, left));
    }
    for (; d < dim; d++)
        o[d] = fmaf(o_c[d], e_c, o[d] * e);
}

void tern_finish_avx2(float *dst, const float *o, float l, size_t dim)
{
    if (l == 0.0f) {
        memset(dst, 0, dim * sizeof *dst);
        return;
    }
    const float scale = 1.0f / l;
    const __m256 scales = _mm256_set1_ps(scale);
    size_t d = 0;
    for (; d + 8 <= dim; d += 8)
        _mm256_storeu_ps(dst + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), scales));
    for (; d < dim; d++)
        dst[d] = o[d] * scale;
}
