/* Attention over one chunk on 16 lanes.
 *
 * Values are read once for a tile of query rows: up to 8 rows by 2 vectors of 16 dims, or up to 3
 * by 4, stay in registers over all tokens of the chunk, and a vector is widened once for all rows.
 * Two vectors are a block of 32 dims with one scale a token: weights are multiplied by the scales
 * of 16 tokens while those before them are worked on. A row's chain is in token order. */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx512_vnni.h"
#include "platform/cpu/x86/ahead_x86.h"
#include "platform/cpu/x86/scales_x86.h"
#include "quant/half.h"

#include <stdbool.h>
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

/* max returns its second operand when the first is NaN, so NaNs drop out. */
static __m512 highest_of(const float *s, size_t n_groups)
{
    __m512 first = _mm512_set1_ps(-INFINITY), second = first;
    for (; n_groups > 0; n_groups--, s += 16 * NEAR) {
        first = _mm512_max_ps(_mm512_loadu_ps(s), first);
        second = _mm512_max_ps(_mm512_loadu_ps(s + 16), second);
    }
    return _mm512_max_ps(first, second);
}

/* The highest number of s[lo .. hi - 1]. */
static float highest_score(const float *s, size_t lo, size_t hi)
{
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    __m512 most = lowest;
    for (size_t i = lo & ~(size_t)15; i < hi;) {
        const size_t n_groups = i < lo ? 0 : (hi - i) / (16 * NEAR);
        if (n_groups) {
            most = _mm512_max_ps(highest_of(s + i, n_groups), most);
            i += 16 * NEAR * n_groups;
            continue;
        }
        most = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, lanes_within(i, lo, hi), s + i), most);
        i += 16;
    }
    const __m256 m8 = _mm256_max_ps(_mm512_castps512_ps256(most), _mm512_extractf32x8_ps(most, 1));
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
}

/* Exponentials of NEAR vectors of scores, added to sum in their order; false where one is too far
 * below the highest score, or none. */
static bool near_scores(float *s, __m512 highest, __m512 *sum)
{
    __m512 x[NEAR];
    for (size_t i = 0; i < NEAR; i++)
        x[i] = _mm512_sub_ps(_mm512_loadu_ps(s + 16 * i), highest);
    if (!are_near(x))
        return false;
    exp_near(x);
    for (size_t i = 0; i < NEAR; i++) {
        _mm512_storeu_ps(s + 16 * i, x[i]);
        *sum = _mm512_add_ps(*sum, x[i]);
    }
    return true;
}

float tern_softmax_avx512_vnni(float *s, size_t lo, size_t hi, float *m)
{
    const float max = highest_score(s, lo, hi);
    const __m512 highest = _mm512_set1_ps(max);
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = lo & ~(size_t)15; i < hi;) {
        if (i >= lo && i + 16 * NEAR <= hi && near_scores(s + i, highest, &sum)) {
            i += 16 * NEAR;
            continue;
        }
        const __mmask16 here = lanes_within(i, lo, hi);
        const __m512 p = exp_16(_mm512_sub_ps(_mm512_maskz_loadu_ps(here, s + i), highest));
        _mm512_mask_storeu_ps(s + i, here, p);
        sum = _mm512_add_ps(sum, _mm512_maskz_mov_ps(here, p));
        i += 16;
    }
    const float total = sum16_16(sum);
    *m = total == total ? max + 0.0f : NAN;
    return total;
}

/* --- values --- */

enum kind { F32, F16, Q8_0, Q4_0 };
enum { MAX_ROWS = 8, MAX_VECTORS = 4, FEW_ROWS = 3, SUMS = 14 /* of a tile, on average */ };

/* What the scratch holds while 32 dims are worked on, or 64 of few rows. */
struct values_scratch {
    float sum[MAX_ROWS][64], zeros[MAX_ROWS][64];
    float w[2][MAX_VECTORS / 2][MAX_ROWS][16]; /* of two blocks of tokens: see weigh */
    uint16_t halves[TERN_CHUNK][32];           /* of f16, when dims are left over: they and zeros */
};
_Static_assert(sizeof(struct values_scratch) <= TERN_ATTENTION_SCRATCH(1), "scratch");

/* What a tile works on: tokens from .. to of the chunk for some rows. p[row][token] are their
 * weights. Token t lies at block[t / 16] + at + t % 16 * row_bytes. */
struct tile {
    const uint8_t *const *block;
    size_t at, row_bytes, from, to, n_dims;
    const float *p;
    float (*w)[MAX_VECTORS / 2][MAX_ROWS][16];
    float (*begin)[64], (*sum)[64]; /* what the chains go on from, and where they go */
    struct look *look;
};

INLINE bool has_scales(enum kind kind)
{
    return kind == Q8_0 || kind == Q4_0;
}

/* Where 32 dims of a row lie. */
INLINE size_t offset_of(size_t d, enum kind kind)
{
    return d / 32 * (kind == F32 ? 128 : kind == F16 ? 64 : kind == Q8_0 ? 34 : 18);
}

/* 32 dims as floats. Of f32 those that the masks have, and others are not read. */
INLINE void widen(const uint8_t *at, enum kind kind, const __mmask16 mask[2], __m512 v[2])
{
    if (kind == Q4_0) {
        /* A look-up takes the low four bits of an index. */
        const __m512 values =
            _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
        const __m512i codes = _mm512_cvtepu8_epi32(load_16(at + 2));
        v[0] = _mm512_permutexvar_ps(codes, values);
        v[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), values);
        return;
    }
    UNROLL
    for (int j = 0; j < 2; j++)
        v[j] = kind == F32   ? _mm512_maskz_loadu_ps(mask[j],
                                                     (const float *)(const void *)(at + 64 * j))
               : kind == F16 ? _mm512_cvtph_ps(_mm256_loadu_si256(
                                   (const __m256i *)(const void *)(at + 32 * j)))
                             : _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_16(at + 2 + 16 * j)));
}

/* One token's values times its weights. */
INLINE void add_token(const uint8_t *row, const float *w, enum kind kind, int n_rows,
                      int n_vectors, const __mmask16 mask[2], __m512 acc[MAX_ROWS][MAX_VECTORS])
{
    __m512 v[MAX_VECTORS];
    UNROLL
    for (int j = 0; j < n_vectors; j += 2)
        widen(row + offset_of(16 * (size_t)j, kind), kind, mask, v + j);
    UNROLL
    for (int r = 0; r < n_rows; r++)
        UNROLL
        for (int j = 0; j < n_vectors; j++) {
            const int at = has_scales(kind) ? 16 * (r + j / 2 * MAX_ROWS) : r * TERN_CHUNK;
            acc[r][j] = _mm512_fmadd_ps(_mm512_set1_ps(w[at]), v[j], acc[r][j]);
        }
}

/* w[block of dims][row][token] = p * scale of 16 tokens, also of those that nobody sees. Two blocks
 * of tokens take turns: what a store has just written whole is slow to read in parts. */
INLINE void weigh(const struct tile *t, size_t b, enum kind kind, int n_rows, int n_vectors)
{
    const uint8_t *row = t->block[b] + t->at;
    const float *p = t->p + 16 * b;
    UNROLL
    for (int e = 0; e < n_vectors / 2; e++, row += offset_of(32, kind)) {
        const __m256i halves = _mm256_set_m128i(
            eight_scales(row + 8 * t->row_bytes, t->row_bytes), eight_scales(row, t->row_bytes));
        const __m512 scales = _mm512_cvtph_ps(halves);
        UNROLL
        for (int r = 0; r < n_rows; r++)
            _mm512_storeu_ps(t->w[b % 2][e][r],
                             _mm512_mul_ps(_mm512_loadu_ps(p + r * TERN_CHUNK), scales));
    }
}

/* n_rows x n_vectors chains over the tokens of a tile; both are constants where this is inlined,
 * and n_vectors is even. */
INLINE void run_tile(const struct tile *t, enum kind kind, int n_rows, int n_vectors)
{
    const size_t more = t->n_dims > 16 ? t->n_dims - 16 : 0;
    const __mmask16 mask[2] = {first_lanes(t->n_dims), first_lanes(more)};
    const struct look look = look_on(t->look);
    float (*begin)[64] = t->begin, (*sum)[64] = t->sum;
    __m512 acc[MAX_ROWS][MAX_VECTORS];
    UNROLL
    for (int r = 0; r < n_rows; r++)
        UNROLL
        for (int j = 0; j < n_vectors; j++)
            acc[r][j] = _mm512_loadu_ps(begin[r] + 16 * j);
    if (has_scales(kind))
        weigh(t, t->from / 16, kind, n_rows, n_vectors);
    for (size_t from = t->from; from < t->to;) {
        const size_t end = (from | 15) + 1 < t->to ? (from | 15) + 1 : t->to;
        const uint8_t *row = t->block[from / 16] + t->at + from % 16 * t->row_bytes;
        const float *w = has_scales(kind) ? t->w[from / 16 % 2][0][0] + from % 16 : t->p + from;
        look_after(&look, from / 16);
        if (has_scales(kind) && end < t->to)
            weigh(t, end / 16, kind, n_rows, n_vectors);
        for (; from < end; from++, w++, row += t->row_bytes)
            add_token(row, w, kind, n_rows, n_vectors, mask, acc);
    }
    UNROLL
    for (int r = 0; r < n_rows; r++)
        UNROLL
        for (int j = 0; j < n_vectors; j++)
            _mm512_storeu_ps(sum[r] + 16 * j, acc[r][j]);
}

/* Two vectors, or four of few rows. */
INLINE void run_dims(const struct tile *t, enum kind kind, int n_rows)
{
    if (n_rows <= FEW_ROWS && t->n_dims > 32)
        run_tile(t, kind, n_rows, 4);
    else
        run_tile(t, kind, n_rows, 2);
}

INLINE void run_tiles(const struct tile *t, size_t n_rows, enum kind kind)
{
    switch (n_rows) {
    case 1: run_dims(t, kind, 1); break;
    case 2: run_dims(t, kind, 2); break;
    case 3: run_dims(t, kind, 3); break;
    case 4: run_dims(t, kind, 4); break;
    case 5: run_dims(t, kind, 5); break;
    case 6: run_dims(t, kind, 6); break;
    case 7: run_dims(t, kind, 7); break;
    default: run_dims(t, kind, 8); break;
    }
}

/* What is around the tiles is compiled once for all kinds, which are constants in these alone. */
typedef void tiles_fn(const struct tile *t, size_t n_rows);

static void tiles_f32(const struct tile *t, size_t n_rows)
{
    run_tiles(t, n_rows, F32);
}

static void tiles_f16(const struct tile *t, size_t n_rows)
{
    run_tiles(t, n_rows, F16);
}

static void tiles_q8_0(const struct tile *t, size_t n_rows)
{
    run_tiles(t, n_rows, Q8_0);
}

static void tiles_q4_0(const struct tile *t, size_t n_rows)
{
    run_tiles(t, n_rows, Q4_0);
}

/* Neighbouring rows that all see tokens from .. to - 1 of the chunk. */
struct span { uint16_t first, n_rows, from, to; };
enum { MAX_SPANS = 2 * MAX_ROWS * MAX_ROWS };

/* Cuts what 1 .. MAX_ROWS rows see into spans, in the order of their tokens. Query rows see nearly
 * the same tokens (causal prefill): all of them the most, and then neighbours some few. */
static TERN_ONE_COPY size_t find_spans(const uint16_t *lo, const uint16_t *hi, size_t n_rows,
                                       struct span *spans)
{
    size_t n_spans = 0;
    for (size_t t = 0, end; t < TERN_CHUNK; t = end) {
        end = TERN_CHUNK; /* up to which nobody comes or goes */
        for (size_t r = 0; r < n_rows; r++) {
            if (lo[r] > t && lo[r] < hi[r] && lo[r] < end)
                end = lo[r];
            if (lo[r] <= t && hi[r] > t && hi[r] < end)
                end = hi[r];
        }
        bool before = false;
        for (size_t r = 0; r < n_rows; r++) {
            const bool sees = lo[r] <= t && hi[r] > t;
            if (sees && before)
                spans[n_spans - 1].n_rows++;
            else if (sees)
                spans[n_spans++] = (struct span){(uint16_t)r, 1, (uint16_t)t, (uint16_t)end};
            before = sees;
        }
    }
    return n_spans;
}

static TERN_ONE_COPY void run_spans(struct tile t, const struct span *spans, size_t n_spans,
                                    tiles_fn *tiles)
{
    const struct tile all = t;
    for (const struct span *s = spans; s < spans + n_spans; s++) {
        t.from = s->from;
        t.to = s->to;
        t.p = all.p + (size_t)s->first * TERN_CHUNK;
        t.sum = all.sum + s->first;
        t.begin = s == spans ? all.begin : t.sum;
        tiles(&t, s->n_rows);
    }
}

/* The last n dims of halves, fewer than 32, filled up with zeros. */
static TERN_ONE_COPY void fill_up(const struct tern_values *v, size_t d, size_t n, size_t from,
                                  size_t to, uint16_t (*halves)[32])
{
    memset(halves[from], 0, (to - from) * sizeof halves[0]);
    for (size_t t = from; t < to; t++)
        memcpy(halves[t], v->block[t / 16] + t % 16 * v->row_bytes + 2 * d, 2 * n);
}

static TERN_ONE_COPY void zero(float (*sum)[64], size_t n_rows)
{
    for (size_t r = 0; r < n_rows; r++)
        for (size_t j = 0; j < 64; j += 16)
            _mm512_storeu_ps(sum[r] + j, _mm512_setzero_ps());
}

/* Dims d .. d + n - 1 of rows r .. r + n_rows - 1; those that see nothing are left alone. */
static TERN_ONE_COPY void end_rows(const struct tern_values *v, size_t r, size_t n_rows, size_t d,
                                   size_t n, float (*sum)[64])
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n && v->lo[r + i] < v->hi[r + i]; j += 16)
            _mm512_mask_storeu_ps(v->o + (r + i) * v->o_stride + d + j, first_lanes(n - j),
                                  _mm512_loadu_ps(sum[i] + j));
}

/* Tokens that any row sees. */
static TERN_ONE_COPY void find_seen(const struct tern_values *v, size_t *from, size_t *to)
{
    *from = TERN_CHUNK;
    *to = 0;
    for (size_t r = 0; r < v->n_rows; r++) {
        if (v->lo[r] == v->hi[r])
            continue;
        *from = v->lo[r] < *from ? v->lo[r] : *from;
        *to = v->hi[r] > *to ? v->hi[r] : *to;
    }
}

/* Rows of a tile: as even as can be. */
static size_t rows_of(size_t left)
{
    const size_t n_tiles = (left + MAX_ROWS - 1) / MAX_ROWS;
    return (left + n_tiles - 1) / n_tiles;
}

/* Dims of a tile: 64 of few rows where the rows of values have them, rows of blocks filled up. */
static size_t dims_of(const struct tern_values *v, size_t d, enum kind kind)
{
    const size_t left = v->dim - d, whole = has_scales(kind) ? (left + 31) / 32 * 32 : left;
    const size_t most = v->n_rows <= FEW_ROWS && whole >= 64 ? 64 : 32;
    return left < most ? left : most;
}

static TERN_ONE_COPY void run_values(const struct tern_values *v, enum kind kind, tiles_fn *tiles)
{
    struct values_scratch *own = v->scratch;
    const uint8_t *filled[TERN_CHUNK / 16];
    struct look look = look_of(v, 16 * SUMS);
    struct tile t = {.w = own->w, .look = &look, .sum = own->sum};
    struct span spans[2][MAX_SPANS];
    size_t from, to, n_spans[2];
    find_seen(v, &from, &to);
    if (from >= to)
        return;
    zero(own->zeros, MAX_ROWS);
    for (size_t r = 0, i = 0, n; r < v->n_rows; r += n, i++) {
        n = rows_of(v->n_rows - r);
        n_spans[i] = find_spans(v->lo + r, v->hi + r, n, spans[i]);
    }
    for (size_t d = 0; d < v->dim; d += t.n_dims) {
        t.n_dims = dims_of(v, d, kind);
        t.block = v->block;
        t.row_bytes = v->row_bytes;
        t.at = offset_of(d, kind);
        if (kind == F16 && t.n_dims < 32) {
            fill_up(v, d, t.n_dims, from, to, own->halves);
            for (size_t b = 0; b < TERN_CHUNK / 16; b++)
                filled[b] = (const uint8_t *)own->halves[16 * b];
            t.block = filled;
            t.row_bytes = sizeof own->halves[0];
            t.at = 0;
        }
        for (size_t r = 0, i = 0, n; r < v->n_rows; r += n, i++) {
            n = rows_of(v->n_rows - r);
            t.p = v->p + r * TERN_CHUNK;
            if (n_spans[i] == 0)
                continue;
            /* Mostly the first span has all rows. */
            if (spans[i][0].n_rows < n)
                zero(own->sum, n);
            t.begin = spans[i][0].n_rows < n ? own->sum + spans[i][0].first : own->zeros;
            run_spans(t, spans[i], n_spans[i], tiles);
            end_rows(v, r, n, d, t.n_dims, own->sum);
        }
    }
}

void tern_values_f32_avx512_vnni(const struct tern_values *v)
{
    run_values(v, F32, tiles_f32);
}

void tern_values_f16_avx512_vnni(const struct tern_values *v)
{
    run_values(v, F16, tiles_f16);
}

void tern_values_q8_0_avx512_vnni(const struct tern_values *v)
{
    run_values(v, Q8_0, tiles_q8_0);
}

void tern_values_q4_0_avx512_vnni(const struct tern_values *v)
{
    run_values(v, Q4_0, tiles_q4_0);
}
