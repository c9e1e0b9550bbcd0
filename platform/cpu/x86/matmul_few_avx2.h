/* matmul_few_avx2.h: products with 2 to 24 tokens, and the choice by their number.
 *
 * Half of a sub-block of all 16 rows, 16 k, is 8 registers: it is unpacked once and serves every
 * token, and each number that is loaded of a token serves two products. What is in the way are
 * loads; to have all 32 k of 8 rows instead, each number in all lanes in memory, takes fewer
 * instructions and twice the loads, and is slower. What the first 16 k give a token rests in
 * memory until the second, as do the chains. Panels are read from front to back, and what a
 * token brings to a sub-block is one small piece, so that those of long rows pass through the
 * caches beside the weights. */
#ifndef TERN_CPU_MATMUL_FEW_AVX2_H
#define TERN_CPU_MATMUL_FEW_AVX2_H

#include "platform/cpu/x86/matmul_avx2.h"

/* Of one token and sub-block. side: -zero * sum as int32, d * sum as float where there are
 * minimums, the two sums as int16 where there are scales for each 16. q is the record's; for
 * signed codes the low parts of all 32 and then the high ones. */
struct tern_near {
    float d;
    int32_t side;
    int8_t q[];
};

/* What a token has of a panel: what the first 16 k of a sub-block gave, and its chains. */
struct tern_few_sums {
    __m256i part[2];
    __m256 chain[2];
};

enum { TERN_FEW_TOKENS = 24 };
_Static_assert(TERN_FEW_TOKENS * (sizeof(struct tern_near) + 64) <= TERN_MATMUL_BLOCK, "scratch");
_Static_assert(TERN_FEW_TOKENS * sizeof(struct tern_few_sums) <= TERN_SCRATCH_SECOND, "scratch");

TERN_INLINE size_t near_bytes(const struct tern_codes_avx2 *f)
{
    return sizeof(struct tern_near) + (f->chain == TERN_CHAIN_S8 ? 64 : 32);
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

/* The pieces of all tokens, by sub-blocks. */
TERN_INLINE void few_gather(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                            uint8_t *out)
{
    const struct tern_acts *a = m->acts;
    for (size_t sub = 0; sub < m->n_cols / TERN_SUB; sub++)
        for (size_t t = 0; t < a->n_tokens; t++, out += near_bytes(f)) {
            struct tern_near *x = (void *)out;
            const size_t i = t * a->n_blocks + sub;
            const int16_t *sum = a->sum + 2 * i;
            x->d = a->d[i];
            if (has_sc(f)) {
                memcpy(&x->side, sum, sizeof x->side);
            } else if (f->has_min) {
                const float side = x->d * (float)(sum[0] + sum[1]);
                memcpy(&x->side, &side, sizeof side);
            } else {
                x->side = -(f->chain == TERN_CHAIN_S8 ? 128 : f->zero) * (sum[0] + sum[1]);
            }
            if (f->chain == TERN_CHAIN_S8)
                split_q(a->q + TERN_SUB * i, x->q);
            else
                memcpy(x->q, a->q + TERN_SUB * i, TERN_SUB);
        }
}

/* 16 k of a sub-block of 16 rows: w[half][j] is 4 k of 8 rows. by: what sums of 16 bits are
 * multiplied by on their way to 32: ones, or the scales of these 16. */
struct tern_few { __m256i w[2][4], by[2]; };

TERN_INLINE void few_unpack(const struct tern_codes_avx2 *f, struct tern_sub s, int k16,
                            struct tern_few *out)
{
#pragma GCC unroll 2
    for (unsigned half = 0; half < 2; half++) {
        __m256i w[8];
        f->unpack(s, half, w);
        for (int j = 0; j < 4; j++)
            out->w[half][j] = f->chain == TERN_CHAIN_S8
                                  ? _mm256_xor_si256(w[4 * k16 + j], _mm256_set1_epi8((char)0x80))
                                  : w[4 * k16 + j];
        out->by[half] = _mm256_set1_epi16(1);
        if (has_sc(f)) {
            const __m256i sc = f->sc(s, half);
            out->by[half] = k16 ? second_of_pairs(sc) : first_of_pairs(sc);
        }
    }
}

/* sum[half] = w[half][j] * q[j] over n of j from j0 on, in 16 bits. */
TERN_INLINE void few_chain(const struct tern_few *w, const int8_t *q, int j0, int n,
                           __m256i sum[2])
{
#pragma GCC unroll 4
    for (int j = j0; j < j0 + n; j++) {
        const __m256i x = broadcast_4(q + 4 * j);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            const __m256i p = _mm256_maddubs_epi16(w->w[half][j], x);
            sum[half] = j == j0 ? p : in_order(_mm256_add_epi16(sum[half], p));
        }
    }
}

/* What 16 k give: in 16 bits where codes have 4, else in 32 and times the scales. */
TERN_INLINE void few_dots(const struct tern_codes_avx2 *f, const struct tern_few *w,
                          const int8_t *q, __m256i dot[2])
{
    if (f->chain == TERN_CHAIN_U4) {
        few_chain(w, q, 0, 4, dot);
        return;
    }
    if (f->chain == TERN_CHAIN_S8) { /* (code + 128) times the low and high parts of q */
        __m256i low[2], high[2];
        few_chain(w, q, 0, 4, low);
        few_chain(w, q + TERN_SUB, 0, 4, high);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++)
            dot[half] =
                _mm256_add_epi32(_mm256_madd_epi16(low[half], _mm256_set1_epi16(1)),
                                 _mm256_madd_epi16(high[half], _mm256_set1_epi16(16)));
        return;
    }
    const int length = chain_length(f->chain);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j += length) {
        __m256i sum[2];
        few_chain(w, q, j, length, sum);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            const __m256i part = _mm256_madd_epi16(sum[half], w->by[half]);
            dot[half] = j == 0 ? part : in_order(_mm256_add_epi32(dot[half], part));
        }
    }
}

/* What a sub-block of 8 rows brings to the chains. m: what the two sums of a record are
 * multiplied by, which is the minimums or both scales times -zero. */
struct tern_few_scales { __m256 scale, minus_min; __m256i m; };

TERN_INLINE void few_scales(const struct tern_codes_avx2 *f, struct tern_sub s, unsigned half,
                            struct tern_few_scales *out)
{
    out->scale = f->scale(s, half);
    out->minus_min = f->has_min ? f->minus_min(s, half) : _mm256_setzero_ps();
    out->m = _mm256_setzero_si256();
    if (has_sc(f))
        out->m = f->has_min ? f->m(s, half) : minus_zero(f, f->sc(s, half));
}

TERN_INLINE __m256 few_step(const struct tern_codes_avx2 *f, const struct tern_few_scales *s,
                            __m256i dot, const struct tern_near *x, __m256 chain)
{
    const __m256 d = _mm256_set1_ps(x->d);
    const __m256i side = broadcast_4(&x->side);
    if (f->chain == TERN_CHAIN_U4)
        dot = _mm256_madd_epi16(dot, _mm256_set1_epi16(1));
    if (!f->has_min && (f->zero || f->chain == TERN_CHAIN_S8))
        dot = _mm256_add_epi32(dot, has_sc(f) ? _mm256_madd_epi16(side, s->m) : side);
    chain = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(s->scale, d), chain);
    if (!f->has_min)
        return chain;
    return _mm256_fmadd_ps(
        s->minus_min,
        has_sc(f) ? _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_madd_epi16(side, s->m)))
                  : _mm256_castsi256_ps(side),
        chain);
}

/* One sub-block for all tokens. */
TERN_INLINE void few_sub(const struct tern_codes_avx2 *f, struct tern_sub s, const uint8_t *near,
                         struct tern_few_sums *sums, const struct tern_few_sums *end)
{
    struct tern_few w;
    const uint8_t *x = near;
    few_unpack(f, s, 0, &w);
#pragma GCC unroll 2
    for (struct tern_few_sums *to = sums; to != end; to++, x += near_bytes(f)) {
        __m256i dot[2];
        few_dots(f, &w, ((const struct tern_near *)(const void *)x)->q, dot);
        to->part[0] = dot[0];
        to->part[1] = dot[1];
    }
    struct tern_few_scales scales[2];
    few_unpack(f, s, 1, &w);
    few_scales(f, s, 0, &scales[0]);
    few_scales(f, s, 1, &scales[1]);
#pragma GCC unroll 2
    for (struct tern_few_sums *to = sums; to != end; to++, near += near_bytes(f)) {
        const struct tern_near *y = (const void *)near;
        __m256i dot[2];
        few_dots(f, &w, y->q + TERN_SUB / 2, dot);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            dot[half] = f->chain == TERN_CHAIN_U4 ? _mm256_add_epi16(dot[half], to->part[half])
                                                  : _mm256_add_epi32(dot[half], to->part[half]);
            to->chain[half] = few_step(f, &scales[half], dot[half], y, to->chain[half]);
        }
    }
}

TERN_INLINE void few_panel(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                           const uint8_t *panel, const uint8_t *near, struct tern_few_sums *sums)
{
    const size_t n_tokens = m->acts->n_tokens;
    const size_t bytes = f->block_bytes / f->n_groups, part = bytes / f->period;
    const size_t n_groups = m->n_cols / (TERN_SUB * f->period);
    for (size_t t = 0; t < n_tokens; t++)
        sums[t].chain[0] = sums[t].chain[1] = _mm256_setzero_ps();
    for (size_t g = 0; g < n_groups; g++) {
#pragma GCC unroll 8
        for (unsigned member = 0; member < f->period; member++) {
            const struct tern_sub s = {panel + g / f->n_groups * f->block_bytes,
                                       (unsigned)(g % f->n_groups), member};
            prefetch(panel + g * bytes + member * part, TERN_PREFETCH_AHEAD, part);
            few_sub(f, s, near, sums, sums + n_tokens);
            near += n_tokens * near_bytes(f);
        }
    }
}

TERN_INLINE void matmul_few(const struct tern_codes_avx2 *f, const struct tern_matmul *m,
                            size_t first, size_t n)
{
    struct tern_few_sums *sums = m->scratch;
    uint8_t *near = (uint8_t *)m->scratch + TERN_SCRATCH_SECOND;
    if (!m->again)
        few_gather(f, m, near);
    for (size_t p = first; p < first + n; p++) {
        few_panel(f, m, m->panels + p * m->panel_bytes, near, sums);
        for (size_t t = 0; t < m->acts->n_tokens; t++) {
            float *dst = m->dst + t * m->dst_stride + TERN_PANEL_ROWS * p;
            _mm256_storeu_ps(dst, sums[t].chain[0]);
            _mm256_storeu_ps(dst + 8, sums[t].chain[1]);
        }
    }
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
    if (!f->compact && n_tokens <= TERN_FEW_TOKENS) {
        matmul_few(f, m, first, n);
        return;
    }
    tern_matmul_many_avx2(&type, m, first, n);
}

#endif
