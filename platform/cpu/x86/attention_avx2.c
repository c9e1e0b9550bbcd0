/* Attention over one chunk on 8 lanes.
 *
 * Values are read once for a tile of query rows: rows x vectors of 8 dims stay in registers over
 * all tokens of the chunk, and a vector of halves or codes is widened once for all rows of the
 * tile. Twelve accumulators hide the latency of fma. Quantised values bring a scale for each 32
 * dims of a token: the weights of all tokens are multiplied with them first, eight tokens at a
 * time. Query rows see different numbers of tokens (causal prefill), but nearly the same: tokens
 * that all rows of a tile see go through the tile, the few before and after through a tile of one
 * row. A row's chain is in token order all the same.
 */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx2.h"
#include "platform/cpu/x86/ahead_x86.h"
#include "platform/cpu/x86/scales_x86.h"
#include "quant/half.h"

#include <stdbool.h>

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

static float highest_lane(__m256 m8)
{
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

/* The maximum of s[lo .. hi - 1]; *near where all from `first` to `last` (multiples of 16) are at
 * most 87 below it. max and min return their second operand when the first is NaN, so NaNs drop
 * out. */
static float max_score(const float *s, size_t lo, size_t hi, size_t first, size_t last, bool *near)
{
    const __m256 lowest = _mm256_set1_ps(-INFINITY), sign = _mm256_set1_ps(-0.0f);
    __m256 a = lowest, b = lowest, least_a = _mm256_set1_ps(INFINITY), least_b = least_a;
    for (size_t i = first; i < last; i += 16) {
        a = _mm256_max_ps(_mm256_loadu_ps(s + i), a);
        b = _mm256_max_ps(_mm256_loadu_ps(s + i + 8), b);
        least_a = _mm256_min_ps(_mm256_loadu_ps(s + i), least_a);
        least_b = _mm256_min_ps(_mm256_loadu_ps(s + i + 8), least_b);
    }
    for (size_t i = lo & ~(size_t)7; i < first && i < hi; i += 8)
        a = _mm256_max_ps(load_scores(s, i, lo, hi, lowest), a);
    for (size_t i = first > last ? hi : last; i < hi; i += 8)
        b = _mm256_max_ps(load_scores(s, i, lo, hi, lowest), b);
    const float max = highest_lane(_mm256_max_ps(a, b));
    *near = max + highest_lane(_mm256_xor_ps(_mm256_min_ps(least_a, least_b), sign)) <= 87.0f;
    return max;
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

/* exp of 8 * n scores, n even, of which none is more than 87 below the maximum. */
static inline __attribute__((always_inline)) void exp_near(float *s, __m256 max, __m256 *low,
                                                           __m256 *high, int n)
{
    __m256 x[4];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        x[i] = _mm256_sub_ps(max, _mm256_loadu_ps(s + 8 * i));
    exp_minus_near_avx2(x, n);
#pragma GCC unroll 2
    for (int i = 0; i < n; i += 2) {
        _mm256_storeu_ps(s + 8 * i, x[i]);
        _mm256_storeu_ps(s + 8 * i + 8, x[i + 1]);
        *low = _mm256_add_ps(*low, x[i]);
        *high = _mm256_add_ps(*high, x[i + 1]);
    }
}

float tern_softmax_avx2(float *s, size_t lo, size_t hi, float *m)
{
    bool near;
    const size_t first = (lo + 15) & ~(size_t)15, last = hi & ~(size_t)15;
    const float max = max_score(s, lo, hi, first, last, &near);
    const __m256 maxima = _mm256_set1_ps(max);
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (size_t i = lo & ~(size_t)15; i < hi;) {
        for (; near && i >= first && i + 32 <= last; i += 32)
            exp_near(s + i, maxima, &low, &high, 4);
        for (; near && i >= first && i < last; i += 16)
            exp_near(s + i, maxima, &low, &high, 2);
        if (i >= hi)
            break;
        low = _mm256_add_ps(low, exp_scores(s, i, lo, hi, maxima));
        high = _mm256_add_ps(high, exp_scores(s, i + 8, lo, hi, maxima));
        i += 16;
    }
    const float sum = sum16_avx2(low, high);
    *m = sum == sum ? max + 0.0f : NAN;
    return sum;
}

/* --- values --- */

enum kind { F32, F16, Q8_0 };
enum { MAX_ACCS = 12, MAX_ROWS = 6, SUMS = 10 }; /* of a tile: most, and on average */

#define INLINE static inline __attribute__((always_inline))

/* Where a row's dim d lies, from where its bytes (of q8_0: of one block of 32 dims) begin. */
INLINE size_t offset_of(size_t d, enum kind kind)
{
    return kind == F32 ? 4 * d : kind == F16 ? 2 * d : d;
}

INLINE __m256 widen(const uint8_t *at, enum kind kind)
{
    if (kind == F32)
        return _mm256_loadu_ps((const float *)(const void *)at);
    if (kind == F16)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)at);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

/* What a tile works on: tokens from .. to of the chunk for some rows. w[row][token] are their
 * weights, scaled where values have scales; token t lies at block[t / 16] + t % 16 * row_bytes. */
struct tile {
    const uint8_t *const *block;
    size_t row_bytes, from, to;
    const float *w;
    float *o; /* first row, first dim */
    size_t o_stride;
    struct look *look;
};

/* One token's values times its weights for n_rows rows. Of the fewer of weights and vectors all
 * stay in registers, the others take turns in one. */
INLINE void add_token(__m256 *acc, const uint8_t *row, const float *w, enum kind kind, int n_rows,
                      int n_vectors)
{
    const int step = kind == F32 ? 32 : kind == F16 ? 16 : 8;
    __m256 kept[3];
    if (n_rows < n_vectors) {
#pragma GCC unroll 3
        for (int r = 0; r < n_rows; r++)
            kept[r] = _mm256_broadcast_ss(w + r * TERN_CHUNK);
#pragma GCC unroll 8
        for (int j = 0; j < n_vectors; j++) {
            const __m256 x = widen(row + step * j, kind);
#pragma GCC unroll 3
            for (int r = 0; r < n_rows; r++)
                acc[r * n_vectors + j] = _mm256_fmadd_ps(kept[r], x, acc[r * n_vectors + j]);
        }
        return;
    }
#pragma GCC unroll 3
    for (int j = 0; j < n_vectors; j++)
        kept[j] = widen(row + step * j, kind);
#pragma GCC unroll 6
    for (int r = 0; r < n_rows; r++) {
        const __m256 x = _mm256_broadcast_ss(w + r * TERN_CHUNK);
#pragma GCC unroll 3
        for (int j = 0; j < n_vectors; j++)
            acc[r * n_vectors + j] = _mm256_fmadd_ps(x, kept[j], acc[r * n_vectors + j]);
    }
}

/* n_rows x n_vectors chains over the tokens, for dims d .. d + 8 n_vectors; both are constants
 * where this is inlined. One vector is what few heads have left over: small code, no quick one. */
INLINE void run_tile(const struct tile *t, size_t d, enum kind kind, int n_rows, int n_vectors)
{
    const size_t row_bytes = t->row_bytes, at = offset_of(d, kind);
    const struct look look = look_on(t->look);
    __m256 acc[MAX_ACCS];
#pragma GCC unroll 12
    for (int i = 0; i < n_rows * n_vectors; i++)
        acc[i] = _mm256_loadu_ps(t->o + (size_t)(i / n_vectors) * t->o_stride + d +
                                 8 * (size_t)(i % n_vectors));
    const float *w = t->w + t->from;
    for (size_t from = t->from; from < t->to;) {
        const size_t end = (from | 15) + 1 < t->to ? (from | 15) + 1 : t->to, b = from / 16;
        const uint8_t *row = t->block[b] + from % 16 * row_bytes + at;
        look_after(&look, b);
        if (n_vectors > 1 && end - from == 16) {
#pragma GCC unroll 4
            for (int i = 0; i < 16; i++, w++, row += row_bytes)
                add_token(acc, row, w, kind, n_rows, n_vectors);
            from = end;
        }
        for (; from < end; from++, w++, row += row_bytes)
            add_token(acc, row, w, kind, n_rows, n_vectors);
    }
#pragma GCC unroll 12
    for (int i = 0; i < n_rows * n_vectors; i++)
        _mm256_storeu_ps(t->o + (size_t)(i / n_vectors) * t->o_stride + d +
                             8 * (size_t)(i % n_vectors),
                         acc[i]);
}

/* One dim past the last vector; not inlined, since its constants would take registers from the
 * tiles. */
static __attribute__((noinline)) void run_lane(const struct tile *t, size_t d, enum kind kind,
                                               int n_rows)
{
    for (int r = 0; r < n_rows; r++) {
        float *o = t->o + (size_t)r * t->o_stride + d;
        for (size_t k = t->from; k < t->to; k++) {
            const uint8_t *at = t->block[k / 16] + k % 16 * t->row_bytes + offset_of(d, kind);
            const float value = kind == F32   ? tern_from_bits(tern_load_u32(at))
                                : kind == F16 ? tern_load_f16(at)
                                              : (float)(int8_t)*at;
            *o = fmaf(t->w[r * TERN_CHUNK + k], value, *o);
        }
    }
}

/* n dims, in the widest tiles that the registers hold. */
INLINE void run_dims(const struct tile *t, size_t n, enum kind kind, int n_rows)
{
    const int widest = n_rows == 1   ? kind == Q8_0 ? 4 : 8
                       : n_rows <= 3 ? 4
                       : n_rows == 4 ? kind == Q8_0 ? 2 : 3
                                     : 2;
    const size_t width = 8 * (size_t)widest;
    size_t d = 0;
    for (; d + width <= n; d += width)
        run_tile(t, d, kind, n_rows, widest);
    if (widest > 2)
        for (; d + 16 <= n; d += 16)
            run_tile(t, d, kind, n_rows, 2);
    for (; d + 8 <= n; d += 8)
        run_tile(t, d, kind, n_rows, 1);
    for (; d < n; d++)
        run_lane(t, d, kind, n_rows);
}

/* Rows first .. first + n_rows - 1 of the tile, tokens from .. to. */
INLINE void run_span(struct tile t, size_t first, int n_rows, size_t from, size_t to, size_t n,
                     enum kind kind)
{
    if (from >= to)
        return;
    t.from = from;
    t.to = to;
    t.w += first * TERN_CHUNK;
    t.o += first * t.o_stride;
    run_dims(&t, n, kind, n_rows);
}

/* 2 .. MAX_ROWS rows. */
INLINE void run_together(const struct tile *t, size_t n_rows, size_t from, size_t to, size_t n,
                         enum kind kind)
{
    switch (n_rows) {
    case 2: run_span(*t, 0, 2, from, to, n, kind); break;
    case 3: run_span(*t, 0, 3, from, to, n, kind); break;
    case 4: run_span(*t, 0, 4, from, to, n, kind); break;
    case 5: run_span(*t, 0, 5, from, to, n, kind); break;
    default: run_span(*t, 0, 6, from, to, n, kind); break;
    }
}

/* Not memset, and hidden from a compiler that would make one of it: for so few bytes it takes
 * longer to begin than to do. */
INLINE void zero_rows(const struct tern_values *v, size_t d, size_t n)
{
    __m256 zero = _mm256_setzero_ps();
    __asm__("" : "+x"(zero));
    for (size_t r = 0; r < v->n_rows; r++) {
        if (v->lo[r] == v->hi[r])
            continue;
        float *o = v->o + r * v->o_stride + d;
        size_t i = 0;
        for (; i + 8 <= n; i += 8)
            _mm256_storeu_ps(o + i, zero);
        for (; i < n; i++)
            o[i] = _mm256_cvtss_f32(zero);
    }
}

/* n dims of 1 .. MAX_ROWS rows, which see lo .. hi, added to what o holds: each row's tokens before
 * those that all see, all rows' together, and each row's behind them. */
INLINE void run_rows(const struct tile *t, const uint16_t *lo, const uint16_t *hi, size_t n_rows,
                     size_t n, enum kind kind)
{
    size_t from = 0, to = TERN_CHUNK;
    for (size_t i = 0; i < n_rows; i++) {
        from = lo[i] > from ? lo[i] : from;
        to = hi[i] < to ? hi[i] : to;
    }
    if (from >= to || n_rows == 1)
        from = to = TERN_CHUNK; /* nothing together: each row alone, all of it before */
    for (int behind = 0; behind < 2; behind++) {
        for (size_t i = 0; i < n_rows; i++)
            run_span(*t, i, 1, behind ? to : lo[i], behind || hi[i] < from ? hi[i] : from, n, kind);
        if (!behind && n_rows > 1)
            run_together(t, n_rows, from, to, n, kind);
    }
}

/* Tiles of 6 rows are the quickest, of one row the slowest. */
INLINE size_t tile_rows(size_t left)
{
    return left == 7 ? 4 : left < 6 ? left : 6;
}

INLINE void run_floats(const struct tern_values *v, enum kind kind)
{
    struct look look = look_of(v, 8 * SUMS);
    zero_rows(v, 0, v->dim);
    for (size_t r = 0, n; r < v->n_rows; r += n) {
        n = tile_rows(v->n_rows - r);
        const struct tile t = {
            .block = v->block,
            .row_bytes = v->row_bytes,
            .w = v->p + r * TERN_CHUNK,
            .o = v->o + r * v->o_stride,
            .o_stride = v->o_stride,
            .look = &look,
        };
        run_rows(&t, v->lo + r, v->hi + r, n, v->dim, kind);
    }
}

/* What the scratch holds while values of one block of 32 dims are worked on. */
struct codes_scratch {
    float scale[TERN_CHUNK];
    float w[MAX_ROWS][TERN_CHUNK];
    int8_t codes[TERN_CHUNK][32]; /* of 4 bits: here as 8 */
};
_Static_assert(sizeof(struct codes_scratch) <= TERN_ATTENTION_SCRATCH(1), "scratch");

/* Scales of tokens from .. to - 1, which lie at this offset in their rows. */
INLINE void spread_scales(const struct tern_values *v, size_t offset, size_t from, size_t to,
                          float *scale)
{
    for (size_t b = from / 16; b * 16 < to; b++) {
        const uint8_t *at = v->block[b] + offset;
        const size_t first = 16 * b < from ? from : 16 * b;
        const size_t last = 16 * b + 16 < to ? 16 * b + 16 : to;
        if (last - first == 16) {
            for (size_t half = 0; half < 2; half++)
                _mm256_storeu_ps(scale + 16 * b + 8 * half,
                                 _mm256_cvtph_ps(eight_scales(at + 8 * half * v->row_bytes,
                                                              v->row_bytes)));
            continue;
        }
        for (size_t t = first; t < last; t++)
            scale[t] = tern_load_f16(at + t % 16 * v->row_bytes);
    }
}

INLINE void weigh_rows(const float *p, size_t from, size_t to, struct codes_scratch *own, int n)
{
    for (size_t t = from & ~(size_t)7; t < to; t += 8) {
        const __m256 scale = _mm256_loadu_ps(own->scale + t);
#pragma GCC unroll 6
        for (int i = 0; i < n; i++)
            _mm256_storeu_ps(own->w[i] + t,
                             _mm256_mul_ps(_mm256_loadu_ps(p + i * TERN_CHUNK + t), scale));
    }
}

/* w[row][token] = p * scale, eight tokens at a time; what nobody sees is multiplied too. */
INLINE void weigh(const struct tern_values *v, size_t r, size_t n, size_t from, size_t to,
                  struct codes_scratch *own)
{
    const float *p = v->p + r * TERN_CHUNK;
    switch (n) {
    case 1: weigh_rows(p, from, to, own, 1); break;
    case 2: weigh_rows(p, from, to, own, 2); break;
    case 3: weigh_rows(p, from, to, own, 3); break;
    case 4: weigh_rows(p, from, to, own, 4); break;
    case 5: weigh_rows(p, from, to, own, 5); break;
    default: weigh_rows(p, from, to, own, 6); break;
    }
}

/* Codes of tokens from .. to - 1, at this offset, less their zero point: two tokens at a time, low
 * halves before high ones. A token that is not asked for has its neighbour's. */
INLINE void spread_codes(const struct tern_values *v, size_t offset, size_t from, size_t to,
                         int8_t (*codes)[32])
{
    const __m256i eight = _mm256_set1_epi8(8), mask = _mm256_set1_epi8(15);
    for (size_t t = from & ~(size_t)1; t < to; t += 2) {
        const uint8_t *even = v->block[t / 16] + t % 16 * v->row_bytes + offset;
        const uint8_t *odd = even + v->row_bytes;
        const __m128i one = load_16(t < from ? odd : even);
        const __m128i two = load_16(t + 1 < to ? odd : even);
        const __m256i x = _mm256_inserti128_si256(_mm256_castsi128_si256(one), two, 1);
        const __m256i low = _mm256_sub_epi8(_mm256_and_si256(x, mask), eight);
        const __m256i high =
            _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(x, 4), mask), eight);
        __m256i *put = (__m256i *)(void *)codes[t];
        _mm256_store_si256(put, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_store_si256(put + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
}

/* Codes of 4 bits are 8-bit ones by now: compiled once for both. */
static __attribute__((noinline)) void run_codes_rows(const struct tile *t, const uint16_t *lo,
                                                     const uint16_t *hi, size_t n_rows, size_t n)
{
    run_rows(t, lo, hi, n_rows, n, Q8_0);
}

INLINE void run_codes(const struct tern_values *v, bool four)
{
    struct codes_scratch *own = v->scratch;
    const size_t bytes = four ? 18 : 34;
    const uint8_t *block[TERN_CHUNK / 16];
    struct look look = look_of(v, 8 * SUMS);
    size_t from = TERN_CHUNK, to = 0;
    for (size_t r = 0; r < v->n_rows; r++) {
        if (v->lo[r] == v->hi[r])
            continue;
        from = v->lo[r] < from ? v->lo[r] : from;
        to = v->hi[r] > to ? v->hi[r] : to;
    }
    for (size_t d = 0; d < v->dim; d += 32) {
        const size_t n_dims = v->dim - d < 32 ? v->dim - d : 32, offset = d / 32 * bytes;
        spread_scales(v, offset, from, to, own->scale);
        if (four)
            spread_codes(v, offset + 2, from, to, own->codes);
        for (size_t b = from / 16; 16 * b < to; b++)
            block[b] = four ? (const uint8_t *)own->codes[16 * b] : v->block[b] + offset + 2;
        zero_rows(v, d, n_dims);
        for (size_t r = 0, n; r < v->n_rows; r += n) {
            n = tile_rows(v->n_rows - r);
            weigh(v, r, n, from, to, own);
            const struct tile t = {
                .block = block,
                .row_bytes = four ? 32 : v->row_bytes,
                .w = own->w[0],
                .o = v->o + r * v->o_stride + d,
                .o_stride = v->o_stride,
                .look = &look,
            };
            run_codes_rows(&t, v->lo + r, v->hi + r, n, n_dims);
        }
    }
}

void tern_values_f32_avx2(const struct tern_values *v)
{
    run_floats(v, F32);
}

void tern_values_f16_avx2(const struct tern_values *v)
{
    run_floats(v, F16);
}

void tern_values_q4_0_avx2(const struct tern_values *v)
{
    run_codes(v, true);
}

void tern_values_q8_0_avx2(const struct tern_values *v)
{
    run_codes(v, false);
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
