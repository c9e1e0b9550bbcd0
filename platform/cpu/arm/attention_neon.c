/* Attention on 4 lanes. A lane of softmax is a token modulo 16; a lane of the values is a dim.
 *
 * Values are the costly part: each of n_rows query rows adds p * v over the tokens. A tile of
 * some rows and some vectors of dims stays in registers while the tokens go by, so that a value
 * is loaded and widened once for all the rows, and a weight is one lane of a register that holds
 * four tokens'. Rows see different ranges; the tokens that all rows of a tile see go through
 * the tile, the few before and after through smaller ones. A row's chain is in token order
 * all the same; neighbours with one range, the heads of a token, go through it together. */
#include "platform/cpu/arm/arm.h"

#include "platform/cpu/arm/math_neon.h"
#include "quant/half.h"

#ifndef __ARM_NEON
#error "this file needs NEON"
#endif

#define INLINE static inline __attribute__((always_inline))

/* --- softmax --- */

/* s[i .. i + 3] where they are within lo .. hi; `other` elsewhere, which is not read. */
static float32x4_t load_scores(const float *s, size_t i, size_t lo, size_t hi, float other)
{
    float lanes[4];
    if (i >= lo && i + 4 <= hi)
        return vld1q_f32(s + i);
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++)
        lanes[j] = i + j >= lo && i + j < hi ? s[i + j] : other;
    return vld1q_f32(lanes);
}

static float max_score(const float *s, size_t lo, size_t hi)
{
    /* fmaxnm of a number and a NaN is the number, so NaNs drop out. */
    float32x4_t max = vdupq_n_f32(-INFINITY);
    size_t i = lo & ~(size_t)3;
    if (i < lo) {
        max = load_scores(s, i, lo, hi, -INFINITY);
        i += 4;
    }
    for (; i + 4 <= hi; i += 4)
        max = vmaxnmq_f32(max, vld1q_f32(s + i));
    if (i < hi)
        max = vmaxnmq_f32(max, load_scores(s, i, lo, hi, -INFINITY));
    return vmaxnmvq_f32(max);
}

/* exp of 4 scores in place; lanes outside lo .. hi are not written and count as 0. */
static float32x4_t exp_scores(float *s, size_t i, size_t lo, size_t hi, float32x4_t max)
{
    float lanes[4];
    const float32x4_t p = exp_minus_neon(vsubq_f32(max, load_scores(s, i, lo, hi, -INFINITY)));
    if (i >= lo && i + 4 <= hi) {
        vst1q_f32(s + i, p);
        return p;
    }
    vst1q_f32(lanes, p);
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++)
        if (i + j >= lo && i + j < hi)
            s[i + j] = lanes[j];
        else
            lanes[j] = 0.0f;
    return vld1q_f32(lanes);
}

/* 16 scores that are all within lo .. hi. */
INLINE void exp_whole(float *s, float32x4_t max, float32x4_t acc[4])
{
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++) {
        const float32x4_t p = exp_minus_neon(vsubq_f32(max, vld1q_f32(s + 4 * j)));
        vst1q_f32(s + 4 * j, p);
        acc[j] = vaddq_f32(acc[j], p);
    }
}

float tern_softmax_neon(float *s, size_t lo, size_t hi, float *m)
{
    const float max = max_score(s, lo, hi);
    const float32x4_t maxima = vdupq_n_f32(max);
    float32x4_t acc[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++)
        acc[j] = vdupq_n_f32(0.0f);
    for (size_t i = lo & ~(size_t)15; i < hi; i += 16) {
        if (i >= lo && i + 16 <= hi) {
            exp_whole(s + i, maxima, acc);
            continue;
        }
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            if (i + 4 * j + 4 > lo && i + 4 * j < hi)
                acc[j] = vaddq_f32(acc[j], exp_scores(s, i + 4 * j, lo, hi, maxima));
    }
    const float sum = sum16_neon(acc);
    *m = sum == sum ? max + 0.0f : NAN;
    return sum;
}

/* --- values --- */

enum kind { F32, F16, Q8_0, Q4_0 };
enum { MAX_ROWS = 8, MAX_VECTORS = 8, MAX_ACCS = 16 };

/* Some rows from `row` on, over tokens that all of them see. */
struct span {
    const struct tern_values *v;
    size_t row, from, to;
};

INLINE void widen_8(float32x4_t *x, int8x8_t q)
{
    const int16x8_t h = vmovl_s8(q);
    x[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(h)));
    x[1] = vcvtq_f32_s32(vmovl_high_s16(h));
}

/* Codes of q4_0: the low halves of bytes, or the high ones, which are 16 dims further. */
INLINE void widen_codes(float32x4_t *x, const uint8_t *at, bool high, int n_vectors)
{
    const uint8x16_t nibble = vdupq_n_u8(15);
    const int8x16_t zero = vdupq_n_s8(8);
    if (n_vectors == 8) {
        const uint8x16_t b = vld1q_u8(at);
        const int8x16_t l = vsubq_s8(vreinterpretq_s8_u8(vandq_u8(b, nibble)), zero);
        const int8x16_t h = vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(b, 4)), zero);
        widen_8(x, vget_low_s8(l));
        widen_8(x + 2, vget_high_s8(l));
        widen_8(x + 4, vget_low_s8(h));
        widen_8(x + 6, vget_high_s8(h));
        return;
    }
    const uint8x16_t b = n_vectors == 4 ? vld1q_u8(at) : vcombine_u8(vld1_u8(at), vdup_n_u8(0));
    const uint8x16_t c = vandq_u8(vshlq_u8(b, vdupq_n_s8(high ? -4 : 0)), nibble);
    const int8x16_t q = vsubq_s8(vreinterpretq_s8_u8(c), zero);
    widen_8(x, vget_low_s8(q));
    if (n_vectors == 4)
        widen_8(x + 2, vget_high_s8(q));
}

/* 4 n_vectors values of a token; high is of q4_0. */
INLINE void widen(float32x4_t *x, const uint8_t *at, bool high, enum kind kind, int n_vectors)
{
    if (kind == Q4_0)
        widen_codes(x, at, high, n_vectors);
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j += 2) {
        if (kind == F32) {
            x[j] = vreinterpretq_f32_u8(vld1q_u8(at + 16 * j));
            x[j + 1] = vreinterpretq_f32_u8(vld1q_u8(at + 16 * j + 16));
        } else if (kind == F16) {
            const float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(at + 8 * j));
            x[j] = vcvt_f32_f16(vget_low_f16(h));
            x[j + 1] = vcvt_high_f32_f16(h);
        } else if (kind == Q8_0) {
            widen_8(x + j, vreinterpret_s8_u8(vld1_u8(at + 4 * j)));
        }
    }
}

/* acc + v * lane k of w; k is a constant once loops are unrolled. */
INLINE float32x4_t add_lane(float32x4_t acc, float32x4_t v, float32x4_t w, int k)
{
    switch (k) {
    case 0: return vfmaq_laneq_f32(acc, v, w, 0);
    case 1: return vfmaq_laneq_f32(acc, v, w, 1);
    case 2: return vfmaq_laneq_f32(acc, v, w, 2);
    default: return vfmaq_laneq_f32(acc, v, w, 3);
    }
}

/* Where the values of some dims are in a token's row, and the scale of their block. */
struct place {
    size_t at, scale;
    bool high;
};

INLINE struct place place_of(size_t d, enum kind kind)
{
    switch (kind) {
    case F32: return (struct place){4 * d, 0, false};
    case F16: return (struct place){2 * d, 0, false};
    case Q8_0: return (struct place){d / 32 * 34 + 2 + d % 32, d / 32 * 34, false};
    default: return (struct place){d / 32 * 18 + 2 + d % 16, d / 32 * 18, d % 32 >= 16};
    }
}

/* The scales of n tokens' blocks, as floats. */
INLINE float32x4_t load_scales(const uint8_t *at, size_t row_bytes, size_t n)
{
    uint16_t h[4] = {0};
#pragma GCC unroll 4
    for (size_t i = 0; i < n; i++)
        memcpy(h + i, at + i * row_bytes, 2);
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h)));
}

/* n_rows x n_vectors chains of a tile over n tokens from `row` on, whose weights are at p: four
 * tokens, or one. All but the pointers are constants where this is inlined. */
INLINE void add_tokens(float32x4_t *acc, const uint8_t *row, size_t row_bytes, const float *p,
                       struct place place, enum kind kind, int shape)
{
    const int n = shape / 256, n_rows = shape / 16 % 16, n_vectors = shape % 16;
    float32x4_t w[MAX_ROWS], x[MAX_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
        w[r] = n == 4 ? vld1q_f32(p + r * TERN_CHUNK) : vld1q_dup_f32(p + r * TERN_CHUNK);
    if (kind == Q8_0 || kind == Q4_0) {
        const float32x4_t scales = load_scales(row + place.scale, row_bytes, (size_t)n);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; r++)
            w[r] = vmulq_f32(w[r], scales);
    }
#pragma GCC unroll 4
    for (int k = 0; k < n; k++) {
        widen(x, row + place.at + (size_t)k * row_bytes, place.high, kind, n_vectors);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
            for (int j = 0; j < n_vectors; j++)
                acc[r * n_vectors + j] = add_lane(acc[r * n_vectors + j], x[j], w[r], k);
    }
}

/* n_rows x n_vectors chains over the span's tokens, for dims d on; both are constants where this
 * is inlined, and for q8_0 and q4_0 the dims lie in one block of 32. */
INLINE void run_tile(const struct span *s, size_t d, enum kind kind, int n_rows, int n_vectors)
{
    const struct tern_values *v = s->v;
    const struct place place = place_of(d, kind);
    const int shape = 16 * n_rows + n_vectors;
    float *o = v->o + s->row * v->o_stride + d;
    float32x4_t acc[MAX_ACCS];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int j = 0; j < n_vectors; j++)
            acc[r * n_vectors + j] = vld1q_f32(o + (size_t)r * v->o_stride + 4 * j);
    for (size_t t = s->from; t < s->to;) {
        const size_t end = (t | 15) + 1 < s->to ? (t | 15) + 1 : s->to;
        const uint8_t *row = v->block[t / 16] + t % 16 * v->row_bytes;
        const float *p = v->p + s->row * TERN_CHUNK + t;
        for (; t + 4 <= end; t += 4, p += 4, row += 4 * v->row_bytes)
            add_tokens(acc, row, v->row_bytes, p, place, kind, 4 * 256 + shape);
        for (; t < end; t++, p++, row += v->row_bytes)
            add_tokens(acc, row, v->row_bytes, p, place, kind, 256 + shape);
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; r++)
#pragma GCC unroll 8
        for (int j = 0; j < n_vectors; j++)
            vst1q_f32(o + (size_t)r * v->o_stride + 4 * j, acc[r * n_vectors + j]);
}

/* One dim past the last pair of vectors. */
static __attribute__((noinline)) void run_lane(const struct span *s, size_t d, enum kind kind,
                                               size_t n_rows)
{
    const struct tern_values *v = s->v;
    const struct place place = place_of(d, kind);
    for (size_t r = s->row; r < s->row + n_rows; r++) {
        float *o = v->o + r * v->o_stride + d;
        for (size_t t = s->from; t < s->to; t++) {
            const float p = v->p[r * TERN_CHUNK + t];
            const uint8_t *row = v->block[t / 16] + t % 16 * v->row_bytes;
            const uint8_t *at = row + place.at;
            if (kind == F32)
                *o = fmaf(p, tern_from_bits(tern_load_u32(at)), *o);
            else if (kind == F16)
                *o = fmaf(p, tern_load_f16(at), *o);
            else if (kind == Q8_0)
                *o = fmaf(p * tern_load_f16(row + place.scale), (float)(int8_t)*at, *o);
            else
                *o = fmaf(p * tern_load_f16(row + place.scale),
                          (float)((place.high ? *at >> 4 : *at & 15) - 8), *o);
        }
    }
}

INLINE void run_dims(const struct span *s, enum kind kind, int n_rows, int n_vectors)
{
    const size_t dim = s->v->dim, width = 4 * (size_t)n_vectors;
    size_t d = 0;
    for (; d + width <= dim; d += width)
        run_tile(s, d, kind, n_rows, n_vectors);
    for (; d + 8 <= dim; d += 8)
        for (size_t r = 0; r < (size_t)n_rows; r++) {
            const struct span one = {s->v, s->row + r, s->from, s->to};
            run_tile(&one, d, kind, 1, 2);
        }
    for (; d < dim; d++)
        run_lane(s, d, kind, (size_t)n_rows);
}

/* n_rows rows over a span; what o holds is where their chains go on. */
typedef void run_span(const struct span *s, size_t n_rows);

INLINE void run_kind(const struct span *s, size_t n_rows, enum kind kind)
{
    switch (n_rows) {
    case 1: run_dims(s, kind, 1, 8); break;
    case 2: run_dims(s, kind, 2, 8); break;
    case 3: run_dims(s, kind, 3, 4); break;
    case 4: run_dims(s, kind, 4, 4); break;
    case 7: run_dims(s, kind, 7, 2); break;
    default: run_dims(s, kind, 8, 2); break;
    }
}

static void run_f32(const struct span *s, size_t n_rows)
{
    run_kind(s, n_rows, F32);
}

static void run_f16(const struct span *s, size_t n_rows)
{
    run_kind(s, n_rows, F16);
}

static void run_q8_0(const struct span *s, size_t n_rows)
{
    run_kind(s, n_rows, Q8_0);
}

static void run_q4_0(const struct span *s, size_t n_rows)
{
    run_kind(s, n_rows, Q4_0);
}

static void run_part(const struct tern_values *v, size_t row, size_t n_rows, size_t from,
                     size_t to, run_span *run)
{
    const struct span s = {v, row, from, to};
    if (from < to)
        run(&s, n_rows);
}

/* Rows from `row` on that have one range, as the heads of one token do; at most 4 of n. */
static size_t rows_alike(const struct tern_values *v, size_t row, size_t n)
{
    size_t same = 1;
    while (same < n && same < 4 && v->lo[row + same] == v->lo[row] &&
           v->hi[row + same] == v->hi[row])
        same++;
    return same;
}

/* Rows that see nothing are left alone. */
static void run_rows(const struct tern_values *v, size_t first, size_t n, run_span *run)
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
    for (size_t r = first, same; r < first + n; r += same) {
        same = rows_alike(v, r, first + n - r);
        run_part(v, r, same, v->lo[r], v->hi[r] < lo ? v->hi[r] : lo, run);
    }
    run_part(v, first, n, lo, hi, run);
    for (size_t r = first, same; r < first + n; r += same) {
        same = rows_alike(v, r, first + n - r);
        run_part(v, r, same, hi, v->hi[r], run);
    }
}

/* Seven heads to a KV head are common enough for tiles of their own. */
static size_t tile_rows(size_t left)
{
    if (left == 7 || left == 14)
        return 7;
    return left >= 8 ? 8 : left > 4 ? 4 : left;
}

static void run_values(const struct tern_values *v, run_span *run)
{
    for (size_t r = 0; r < v->n_rows;) {
        const size_t n = tile_rows(v->n_rows - r);
        run_rows(v, r, n, run);
        r += n;
    }
}

void tern_values_f32_neon(const struct tern_values *v)
{
    run_values(v, run_f32);
}

void tern_values_f16_neon(const struct tern_values *v)
{
    run_values(v, run_f16);
}

void tern_values_q8_0_neon(const struct tern_values *v)
{
    run_values(v, run_q8_0);
}

void tern_values_q4_0_neon(const struct tern_values *v)
{
    run_values(v, run_q4_0);
}

/* --- merge --- */

void tern_merge_neon(float *m, float *l, float *o, float m_c, float l_c, const float *o_c,
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
    const float32x4_t es_c = vdupq_n_f32(e_c);
    *m = max;
    *l = fmaf(l_c, e_c, *l * e);
    size_t d = 0;
    for (; d + 4 <= dim; d += 4) {
        const float32x4_t left = vmulq_n_f32(vld1q_f32(o + d), e);
        vst1q_f32(o + d, vfmaq_f32(left, vld1q_f32(o_c + d), es_c));
    }
    for (; d < dim; d++)
        o[d] = fmaf(o_c[d], e_c, o[d] * e);
}

void tern_finish_neon(float *dst, const float *o, float l, size_t dim)
{
    if (l == 0.0f) {
        memset(dst, 0, dim * sizeof *dst);
        return;
    }
    tern_scale_neon(dst, o, 1.0f / l, dim);
}
