/* matmul_few_avx2.h: products with 2 to 16 tokens, and the choice by their number.
 *
 * Half a block is unpacked in registers and serves every token before the next half, so that
 * the work of unpacking is shared and nothing of it is stored. What a token brings to a
 * sub-block lies in the scratch, each number in all lanes, so that a product takes it from
 * memory without an instruction of its own; a strip of it stays in the first cache while the
 * panels pass. The chains lie in the scratch too: a fused multiply-add takes one from there for
 * the price of a store. */
#ifndef TERN_CPU_MATMUL_FEW_AVX2_H
#define TERN_CPU_MATMUL_FEW_AVX2_H

#include "platform/cpu/x86/matmul_avx2.h"

/* Of one token and sub-block, each number in all lanes: a product takes it from memory, which
 * saves the instruction that would broadcast it. side is -zero * sum as int32, d * sum as float
 * where there are minimums, the two sums as int16 where there are scales for each 16. q[j] is 4
 * of the record's q; for signed codes q[j] and q[8 + j] are their low and high parts. */
struct tern_wide {
    float d[8];
    int32_t side[8];
    int32_t q[][8];
};

enum { TERN_FEW_TOKENS = 16, TERN_STRIP_BYTES = 16384 /* aimed at: half of the first cache */ };

TERN_INLINE size_t wide_bytes(const struct tern_codes_avx2 *f)
{
    return sizeof(struct tern_wide) + (f->chain == TERN_CHAIN_S8 ? 512 : 256);
}

TERN_INLINE struct tern_wide *wide_at(const struct tern_codes_avx2 *f, const struct tern_wide *x,
                                      size_t i)
{
    return (struct tern_wide *)((uintptr_t)x + i * wide_bytes(f));
}

/* So many tokens at most: a group of sub-blocks for all of them fits the scratch. */
TERN_INLINE size_t few_tokens(const struct tern_codes_avx2 *f)
{
    const size_t fit = TERN_MATMUL_WIDE / (wide_bytes(f) * f->period);
    return fit < TERN_FEW_TOKENS ? fit : TERN_FEW_TOKENS;
}

/* q = 16 high + low, low from -8 to 7 and high from -8 to 8. */
TERN_INLINE void split_q(const int8_t *q, int8_t parts[64])
{
    const __m256i eight = _mm256_set1_epi16(8);
    __m256i low[2], high[2];
    for (int i = 0; i < 2; i++) {
        const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)q + i));
        high[i] = _mm256_srai_epi16(_mm256_add_epi16(x, eight), 4);
        low[i] = _mm256_sub_epi16(x, _mm256_slli_epi16(high[i], 4));
    }
    _mm256_storeu_si256((__m256i *)(void *)parts,
                        _mm256_permute4x64_epi64(_mm256_packs_epi16(low[0], low[1]), 0xd8));
    _mm256_storeu_si256((__m256i *)(void *)(parts + 32),
                        _mm256_permute4x64_epi64(_mm256_packs_epi16(high[0], high[1]), 0xd8));
}

TERN_INLINE void widen(const struct tern_codes_avx2 *f, const struct tern_acts *a, size_t token,
                       size_t sub, struct tern_wide *out)
{
    const size_t i = token * a->n_blocks + sub;
    const int16_t *sum = a->sum + 2 * i;
    const int8_t *q = a->q + TERN_SUB * i;
    const __m256 d = _mm256_set1_ps(a->d[i]);
    int8_t parts[64];
    int n = 8;
    __m256i side = broadcast_4(sum);
    if (!has_sc(f))
        side = f->has_min ? _mm256_castps_si256(side_min(sum, _mm256_set1_epi16(1), d))
                          : side_zero(sum, f->chain == TERN_CHAIN_S8 ? 128 : f->zero);
    if (f->chain == TERN_CHAIN_S8) {
        split_q(q, parts);
        q = parts;
        n = 16;
    }
    for (int j = 0; j < n; j++)
        _mm256_storeu_si256((__m256i *)(void *)out->q[j], broadcast_4(q + 4 * j));
    _mm256_storeu_ps(out->d, d);
    _mm256_storeu_si256((__m256i *)(void *)out->side, side);
}

/* sum of w[j] * q[first + j] over n of j from j0 on, in 16 bits. */
TERN_INLINE __m256i wide_chain(const __m256i w[8], const struct tern_wide *x, int first, int j0,
                               int n)
{
    __m256i sum = _mm256_maddubs_epi16(w[j0], load_256(x->q[first + j0]));
#pragma GCC unroll 8
    for (int j = j0 + 1; j < j0 + n; j++)
        sum = in_order(_mm256_add_epi16(sum,
                                        _mm256_maddubs_epi16(w[j], load_256(x->q[first + j]))));
    return sum;
}

/* What half a block's step takes besides x. by: what sums of 16 bits are multiplied by on their
 * way to 32: ones; the scales of the first and second 16, and what the two sums of the record
 * are multiplied by, which is the minimums or both scales times -zero; 1 and 16. */
struct tern_few { __m256i w[8], by[3]; __m256 scale, minus_min; };

TERN_INLINE void few_unpack(const struct tern_codes_avx2 *f, struct tern_sub s, unsigned half,
                            struct tern_few *out)
{
    struct tern_half h;
    unpack_half(f, s, half, &h);
    for (int j = 0; j < 8; j++)
        out->w[j] = f->chain == TERN_CHAIN_S8
                        ? _mm256_xor_si256(h.w[j], _mm256_set1_epi8((char)0x80))
                        : h.w[j];
    out->scale = h.scale;
    out->minus_min = f->has_min ? h.minus_min : _mm256_setzero_ps();
    out->by[0] = out->by[1] = out->by[2] = _mm256_set1_epi16(1);
    if (f->chain == TERN_CHAIN_S8)
        out->by[1] = _mm256_set1_epi16(16);
    if (has_sc(f)) {
        out->by[0] = first_of_pairs(h.sc);
        out->by[1] = second_of_pairs(h.sc);
        out->by[2] = f->has_min ? h.m
                                : minus_zero(f, h.sc);
    }
}

/* The integer of a block, zero points off. */
TERN_INLINE __m256i few_dot(const struct tern_codes_avx2 *f, const struct tern_few *w,
                            const struct tern_wide *x)
{
    if (f->chain == TERN_CHAIN_U4) {
        const __m256i sum = _mm256_madd_epi16(wide_chain(w->w, x, 0, 0, 8), w->by[0]);
        return f->has_min ? sum : _mm256_add_epi32(sum, load_256(x->side));
    }
    if (f->chain == TERN_CHAIN_S8) { /* (code + 128) times the low and high parts of q */
        const __m256i low = _mm256_madd_epi16(wide_chain(w->w, x, 0, 0, 8), w->by[0]);
        const __m256i high = _mm256_madd_epi16(wide_chain(w->w, x, 8, 0, 8), w->by[1]);
        return _mm256_add_epi32(_mm256_add_epi32(low, load_256(x->side)), high);
    }
    const int length = chain_length(f->chain);
    __m256i sum = load_256(x->side);
    if (f->has_min)
        sum = _mm256_setzero_si256();
    else if (has_sc(f))
        sum = _mm256_madd_epi16(sum, w->by[2]);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j += length) {
        const __m256i part = _mm256_madd_epi16(wide_chain(w->w, x, 0, j, length),
                                               w->by[has_sc(f) ? j / 4 : 0]);
        sum = f->has_min && j == 0 ? part : in_order(_mm256_add_epi32(sum, part));
    }
    return sum;
}

/* What w_min is multiplied by. */
TERN_INLINE __m256 few_min(const struct tern_codes_avx2 *f, const struct tern_few *w,
                           const struct tern_wide *x)
{
    const __m256i side = load_256(x->side);
    return has_sc(f) ? _mm256_mul_ps(_mm256_loadu_ps(x->d),
                                     _mm256_cvtepi32_ps(_mm256_madd_epi16(side, w->by[2])))
                     : _mm256_castsi256_ps(side);
}

/* One sub-block of 8 rows for all tokens, whose chains are 16 floats apart. */
TERN_INLINE void few_half(const struct tern_codes_avx2 *f, const struct tern_few *w,
                          const struct tern_wide *x, size_t n_tokens, float *acc)
{
    for (const float *end = acc + TERN_PANEL_ROWS * n_tokens; acc != end;
         acc += TERN_PANEL_ROWS, x = wide_at(f, x, 1)) {
        __m256 sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(few_dot(f, w, x)),
                                     _mm256_mul_ps(w->scale, _mm256_loadu_ps(x->d)),
                                     _mm256_loadu_ps(acc));
        if (f->has_min)
            sum = _mm256_fmadd_ps(w->minus_min, few_min(f, w, x), sum);
        _mm256_storeu_ps(acc, sum);
    }
}

/* Groups of sub-blocks of a panel: n of them, from `group` on. Of the memory that is used next
 * a little is asked for with each. */
struct tern_strip { size_t group, n, n_tokens; const struct tern_wide *x; };

TERN_INLINE void few_groups(const struct tern_codes_avx2 *f, const uint8_t *panel,
                            struct tern_strip s, float *acc, const uint8_t *next)
{
    const size_t bytes = f->block_bytes / f->n_groups;
    for (size_t i = s.group; i < s.group + s.n; i++, next += bytes) {
        prefetch(next, 0, bytes);
#pragma GCC unroll 8
        for (unsigned e = 0; e < f->period; e++, s.x = wide_at(f, s.x, s.n_tokens)) {
            const struct tern_sub sub = {panel + i / f->n_groups * f->block_bytes,
                                         (unsigned)(i % f->n_groups), e};
#pragma GCC unroll 1
            for (unsigned half = 0; half < 2; half++) {
                struct tern_few w;
                few_unpack(f, sub, half, &w);
                few_half(f, &w, s.x, s.n_tokens, acc + 8 * half);
            }
        }
    }
}

/* Panels first .. first + n - 1, whose chains have room, for few_tokens at most. A
 * strip of the activations stays in the first cache while all the panels pass. */
TERN_INLINE void few_panels(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                            size_t first, size_t n, size_t n_tokens)
{
    float *chains = m->scratch;
    struct tern_wide *wide = (void *)((char *)m->scratch + TERN_SCRATCH_SECOND);
    const size_t all = m->n_cols / (TERN_SUB * f->period), size = n_tokens * TERN_PANEL_ROWS;
    const size_t fit = TERN_STRIP_BYTES / (wide_bytes(f) * f->period * n_tokens);
    const size_t strip = fit ? fit : 1, group_bytes = f->block_bytes / f->n_groups;
    const uint8_t *panels = m->panels + first * m->panel_bytes;
    memset(chains, 0, n * size * sizeof *chains);
    for (size_t g = 0; g < all; g += strip) {
        const struct tern_strip s = {g, all - g < strip ? all - g : strip, n_tokens, wide};
        for (size_t i = 0; i < s.n * f->period; i++)
            for (size_t t = 0; t < n_tokens; t++)
                widen(f, m->acts, t, g * f->period + i, wide_at(f, wide, i * n_tokens + t));
        for (size_t p = 0; p < n; p++) {
            const uint8_t *next = p + 1 < n ? panels + (p + 1) * m->panel_bytes + g * group_bytes
                                            : panels + (g + s.n) * group_bytes;
            few_groups(f, panels + p * m->panel_bytes, s, chains + p * size, next);
        }
    }
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t p = 0; p < n; p++)
            memcpy(m->dst + t * m->dst_stride + TERN_PANEL_ROWS * (first + p),
                   chains + p * size + TERN_PANEL_ROWS * t, TERN_PANEL_ROWS * sizeof *chains);
}

TERN_INLINE void matmul_few(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                            size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens;
    const size_t fit = TERN_SCRATCH_SECOND / (TERN_PANEL_ROWS * sizeof(float) * n_tokens);
    for (size_t p = 0; p < n; p += fit)
        few_panels(f, m, first + p, n - p < fit ? n - p : fit, n_tokens);
}

TERN_INLINE void matmul_codes_avx2(const struct tern_codes_avx2 *f, tern_expand_avx2_fn *expand_f,
                                   const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_type_avx2 type = type_of(f, expand_f);
    const size_t n_tokens = m->acts->n_tokens;
    if (n_tokens == 1) {
        for (size_t p = first; p < first + n; p++)
            panel_by_1(f, m, m->panels + p * m->panel_bytes, 0, m->dst + TERN_PANEL_ROWS * p);
        return;
    }
    if (!f->compact && n_tokens <= few_tokens(f)) {
        matmul_few(f, m, first, n);
        return;
    }
    tern_matmul_many_avx2(&type, m, first, n);
}

#endif
