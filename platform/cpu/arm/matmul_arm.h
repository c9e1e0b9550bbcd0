/* matmul_arm.h: integer matrix products on ARM, once for all types and variants.
 *
 * A block of a panel is 8 runs of 4 k, each four registers of 4 rows. One token:
 * one_token_arm.h.
 *
 * More tokens: some sub-blocks of a panel are unpacked into the scratch and serve tiles of 8 rows
 * by 4 tokens, whose 8 chains and 8 integer sums stay in registers; the chains rest in dst
 * between the parts. d and what the sums give are laid out by four tokens for that, once a call.
 * With smmla a register of a tile is 2 rows by 2 tokens, and weights lie in the scratch as 8 k
 * of 2 rows, two neighbouring runs zipped.
 *
 * The functions take a constant description of the type, and are inlined into one kernel a type. */
#ifndef TERN_CPU_MATMUL_ARM_H
#define TERN_CPU_MATMUL_ARM_H

#include "platform/cpu/arm/one_token_arm.h"

/* --- many tokens --- */

/* A tile is two halves of 8 rows, one after the other. A register of it is 4 rows of one token,
 * or with smmla 2 rows by 2 tokens: row 0 with both tokens, row 1 with both. */
#ifdef __ARM_FEATURE_MATMUL_INT8
enum { TERN_PAIRS = 1, TERN_TILE_A = 2, TERN_TILE_B = 4 };
#else
enum { TERN_PAIRS = 0, TERN_TILE_A = 4, TERN_TILE_B = 2 };
#endif

/* A sub-block of a panel as tiles want it. codes: run by run 8 rows, or 8 k by 8 k four pairs of
 * rows. The others are a register for each of a tile's. */
struct tern_expanded {
    int8_t codes[2][16][16];
    float scale[2][TERN_TILE_B][4];
    union {
        float minus_min[2][TERN_TILE_B][4];
        int32_t sc[2][2][TERN_TILE_B][4]; /* [half of rows][half of k] */
    } u;
};

enum {
    TERN_MAX_EXPANDED = 16384 / sizeof(struct tern_expanded),
    TERN_GROUP_BYTES = 192 * 1024, /* of activations, so that they stay in the second cache */
};

/* What tiles take from the records of four tokens, for each block: d, then d * sum as float
 * (has_min), then what the sums start from, once or for each half (has_sc). */
TERN_INLINE size_t side_words(const struct tern_codes_arm *f)
{
    return 4 + 4 * f->has_min + (f->has_sc ? 8 : f->zero ? 4 : 0);
}

TERN_INLINE void make_side(const struct tern_codes_arm *f, const struct tern_acts *a, size_t token,
                           size_t n_tokens, float *out)
{
    for (size_t t = 0; t < 4; t++) {
        const size_t i = (token + (t < n_tokens ? t : n_tokens - 1)) * a->n_blocks;
        const float *d = a->d + i;
        const int16_t *sum = a->sum + 2 * i;
        float *to = out + t;
        for (size_t b = 0; b < a->n_blocks; b++, to += side_words(f)) {
            int32_t z[2] = {-f->zero * sum[2 * b], -f->zero * sum[2 * b + 1]};
            to[0] = d[b];
            if (f->has_min)
                to[4] = d[b] * (float)(sum[2 * b] + sum[2 * b + 1]);
            if (!f->has_sc)
                z[0] += z[1];
            if (f->zero)
                memcpy(to + 4 + 4 * f->has_min, &z[0], sizeof z[0]);
            if (f->has_sc)
                memcpy(to + 8 + 4 * f->has_min, &z[1], sizeof z[1]);
        }
    }
}

TERN_INLINE void put_half(float out[2][TERN_TILE_B][4], int i, float32x4_t x)
{
    if (TERN_PAIRS) {
        vst1q_f32(out[i / 2][i % 2 * 2], vzip1q_f32(x, x));
        vst1q_f32(out[i / 2][i % 2 * 2 + 1], vzip2q_f32(x, x));
    } else {
        vst1q_f32(out[i / 2][i % 2], x);
    }
}

/* Runs n and n + 1 of 4 rows, from row 4 r on. */
TERN_INLINE void put_codes(struct tern_expanded *out, unsigned n, int r, int8x16_t w0,
                           int8x16_t w1)
{
    int8_t(*to)[16] = out->codes[r / 2];
    if (TERN_PAIRS) {
        const int32x4_t a = vreinterpretq_s32_s8(w0), b = vreinterpretq_s32_s8(w1);
        to += 2 * n + (unsigned)r % 2 * 2;
        vst1q_s8(to[0], vreinterpretq_s8_s32(vzip1q_s32(a, b)));
        vst1q_s8(to[1], vreinterpretq_s8_s32(vzip2q_s32(a, b)));
    } else {
        to += 2 * n + (unsigned)r % 2;
        vst1q_s8(to[0], w0);
        vst1q_s8(to[2], w1);
    }
}

TERN_INLINE void expand_codes(const struct tern_codes_arm *f, struct tern_sub s,
                              struct tern_expanded *out)
{
    if (f->run) {
        f->seek(&s);
#pragma GCC unroll 4
        for (unsigned n = 0; n < 8; n += 2) {
            int8x16_t w[2][4];
            f->run(&s, w[0]);
            f->run(&s, w[1]);
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++)
                put_codes(out, n, r, w[0][r], w[1][r]);
        }
        return;
    }
#pragma GCC unroll 2
    for (int rows = 0; rows < 2; rows++)
#pragma GCC unroll 2
        for (unsigned i = 0; i < 2; i++) {
            int8x16_t w[4][2];
            f->four_runs(s, rows, (int)i, w);
#pragma GCC unroll 2
            for (int r = 0; r < 2; r++) {
                put_codes(out, 2 * i + 4, 2 * rows + r, w[2][r], w[3][r]);
                put_codes(out, 2 * i, 2 * rows + r, w[0][r], w[1][r]);
            }
        }
}

TERN_INLINE void expand_sub(const struct tern_codes_arm *f, struct tern_sub s,
                            struct tern_expanded *out)
{
    expand_codes(f, s, out);
    float32x4_t x[4];
    f->scale(s, x);
    for (int i = 0; i < 4; i++)
        put_half(out->scale, i, x[i]);
    if (f->has_min) {
        f->minus_min(s, x);
        for (int i = 0; i < 4; i++)
            put_half(out->u.minus_min, i, x[i]);
    }
    for (int half = 0; f->has_sc && half < 2; half++) {
        int32x4_t sc[4];
        f->sc(s, half, sc);
        for (int i = 0; i < 4; i++) {
            int32_t(*to)[4] = out->u.sc[i / 2][half];
            if (TERN_PAIRS) {
                vst1q_s32(to[i % 2 * 2], vzip1q_s32(sc[i], sc[i]));
                vst1q_s32(to[i % 2 * 2 + 1], vzip2q_s32(sc[i], sc[i]));
            } else {
                vst1q_s32(to[i % 2], sc[i]);
            }
        }
    }
}

/* Units of 4 sub-blocks (1 where a block is 1) first .. first + n - 1 of a panel. */
TERN_INLINE void expand(const struct tern_codes_arm *f, const uint8_t *panel, size_t first,
                        size_t n, struct tern_expanded *out)
{
    if (f->n_subs == 1) {
        for (size_t b = first; b < first + n; b++)
            expand_sub(f, (struct tern_sub){.block = panel + b * f->block_bytes}, out++);
        return;
    }
    float opened[32];
    for (size_t u = first; u < first + n; u++) {
        const uint8_t *block = panel + u / 2 * f->block_bytes;
        f->open(block, opened);
        if (u % 2 == 0)
#pragma GCC unroll 4
            for (unsigned e = 0; e < 4; e++)
                expand_sub(f, (struct tern_sub){.block = block, .sub = e, .d = opened}, out++);
        else
#pragma GCC unroll 4
            for (unsigned e = 4; e < 8; e++)
                expand_sub(f, (struct tern_sub){.block = block, .sub = e, .d = opened}, out++);
    }
}

/* What a tile takes and gives, from its first token and sub-block on. */
struct tern_tile {
    const int8_t *q;
    size_t q_stride;
    const float *side;
    float *dst;
    size_t dst_stride;
};

typedef int32x4_t tern_tile_dots[TERN_TILE_A][TERN_TILE_B];
typedef float32x4_t tern_tile_chains[TERN_TILE_A][TERN_TILE_B];

/* dot += the products of runs 4 half .. 4 half + 3. */
#ifdef __ARM_FEATURE_MATMUL_INT8
TERN_INLINE void tile_dots(const int8_t (*codes)[16], const int8_t *q, size_t stride,
                           size_t n_tokens, int half, unsigned chain, tern_tile_dots dot)
{
    (void)chain;
    int8x16_t x[2][2]; /* [8 k][pair of tokens] */
#pragma GCC unroll 2
    for (size_t a = 0; a < (n_tokens + 1) / 2; a++) {
        const size_t second = 2 * a + 1 < n_tokens ? 2 * a + 1 : 2 * a;
        const int64x2_t t0 = vreinterpretq_s64_s8(vld1q_s8(q + 2 * a * stride + 16 * half));
        const int64x2_t t1 = vreinterpretq_s64_s8(vld1q_s8(q + second * stride + 16 * half));
        x[0][a] = vreinterpretq_s8_s64(vzip1q_s64(t0, t1));
        x[1][a] = vreinterpretq_s8_s64(vzip2q_s64(t0, t1));
    }
#pragma GCC unroll 2
    for (int o = 0; o < 2; o++) {
        const int8x16x4_t w = vld1q_s8_x4(codes[4 * (2 * half + o)]);
#pragma GCC unroll 2
        for (size_t a = 0; a < (n_tokens + 1) / 2; a++)
#pragma GCC unroll 4
            for (int b = 0; b < 4; b++)
                dot[a][b] = vmmlaq_s32(dot[a][b], w.val[b], x[o][a]);
    }
}
#else
TERN_INLINE void tile_dots(const int8_t (*codes)[16], const int8_t *q, size_t stride,
                           size_t n_tokens, int half, unsigned chain, tern_tile_dots dot)
{
    int8x16_t x[4];
    struct tern_dot sum[4][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < n_tokens; t++) {
        x[t] = vld1q_s8(q + t * stride + 16 * half);
        dot_start(&sum[t][0], dot[t][0]);
        dot_start(&sum[t][1], dot[t][1]);
    }
    const unsigned length = chain < 4 ? chain : 4;
#pragma GCC unroll 2
    for (int j = 0; j < 4; j += 2) {
        const int8x16x4_t w = vld1q_s8_x4(codes[2 * (4 * half + j)]);
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
#pragma GCC unroll 4
            for (size_t t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
                for (int b = 0; b < 2; b++)
                    dot_add(&sum[t][b], length, (unsigned)(j + i), w.val[2 * i + b], x[t], j + i);
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
        for (int b = 0; b < 2; b++)
            dot[t][b] = dot_end(&sum[t][b], length);
}
#endif

/* The integers of one sub-block. */
TERN_INLINE void tile_integers(const struct tern_codes_arm *f, const struct tern_expanded *w,
                               int rows, const struct tern_tile *t, size_t n_tokens,
                               tern_tile_dots both)
{
    const float *z = t->side + 4 + 4 * f->has_min;
    const size_t n_a = TERN_PAIRS ? (n_tokens + 1) / 2 : n_tokens;
    tern_tile_dots dot;
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        if (half == 0 || f->has_sc) {
            const int32x4_t all = f->zero ? vreinterpretq_s32_f32(vld1q_f32(z + 4 * half))
                                          : vdupq_n_s32(0);
#pragma GCC unroll 4
            for (size_t a = 0; a < n_a; a++)
                for (int b = 0; b < TERN_TILE_B; b++)
                    dot[a][b] = !f->zero     ? vdupq_n_s32(0)
                                : TERN_PAIRS ? dup_pair(all, (int)a)
                                             : dup_lane(all, (int)a);
        }
        tile_dots(w->codes[rows], t->q, t->q_stride, n_tokens, half, f->chain, dot);
#pragma GCC unroll 4
        for (size_t a = 0; a < n_a; a++)
            for (int b = 0; b < TERN_TILE_B; b++) {
                if (!f->has_sc)
                    both[a][b] = dot[a][b];
                else if (half == 0)
                    both[a][b] = vmulq_s32(dot[a][b], vld1q_s32(w->u.sc[rows][0][b]));
                else
                    both[a][b] = vmlaq_s32(both[a][b], dot[a][b], vld1q_s32(w->u.sc[rows][1][b]));
            }
    }
}

/* 4 rows of a pair of tokens, to and from 2 rows by 2 tokens. */
TERN_INLINE void load_chains(const float *dst, size_t stride, size_t n_tokens,
                             tern_tile_chains acc)
{
#pragma GCC unroll 4
    for (size_t a = 0; a < (TERN_PAIRS ? (n_tokens + 1) / 2 : n_tokens); a++) {
        if (!TERN_PAIRS) {
            acc[a][0] = vld1q_f32(dst + a * stride);
            acc[a][1] = vld1q_f32(dst + a * stride + 4);
            continue;
        }
        const float *one = dst + 2 * a * stride;
        const float *two = 2 * a + 1 < n_tokens ? one + stride : one;
        for (int i = 0; i < TERN_TILE_B / 2; i++) {
            const float32x4_t x = vld1q_f32(one + 4 * i), y = vld1q_f32(two + 4 * i);
            acc[a][2 * i] = vzip1q_f32(x, y);
            acc[a][2 * i + 1] = vzip2q_f32(x, y);
        }
    }
}

TERN_INLINE void store_chains(float *dst, size_t stride, size_t n_tokens, tern_tile_chains acc)
{
#pragma GCC unroll 4
    for (size_t a = 0; a < (TERN_PAIRS ? (n_tokens + 1) / 2 : n_tokens); a++) {
        if (!TERN_PAIRS) {
            vst1q_f32(dst + a * stride, acc[a][0]);
            vst1q_f32(dst + a * stride + 4, acc[a][1]);
            continue;
        }
        for (int i = 0; i < TERN_TILE_B / 2; i++) {
            const float32x4_t x = acc[a][2 * i], y = acc[a][2 * i + 1];
            vst1q_f32(dst + 2 * a * stride + 4 * i, vuzp1q_f32(x, y));
            if (2 * a + 1 < n_tokens)
                vst1q_f32(dst + (2 * a + 1) * stride + 4 * i, vuzp2q_f32(x, y));
        }
    }
}

/* n_subs expanded sub-blocks for n_tokens <= 4 tokens, one half of the rows; the chains go on
 * from dst. */
TERN_INLINE void half_tile(const struct tern_codes_arm *f, const struct tern_expanded *w,
                           size_t n_subs, struct tern_tile a, size_t n_tokens, int rows)
{
    const size_t n_a = TERN_PAIRS ? (n_tokens + 1) / 2 : n_tokens;
    tern_tile_chains acc;
    load_chains(a.dst + 8 * rows, a.dst_stride, n_tokens, acc);
    for (; n_subs--; w++, a.q += TERN_SUB, a.side += side_words(f)) {
        tern_tile_dots dot;
        tile_integers(f, w, rows, &a, n_tokens, dot);
        const float32x4_t d = vld1q_f32(a.side);
        const float32x4_t side = f->has_min ? vld1q_f32(a.side + 4) : d;
#pragma GCC unroll 4
        for (size_t i = 0; i < n_a; i++)
#pragma GCC unroll 4
            for (int b = 0; b < TERN_TILE_B; b++) {
                const float32x4_t scale = vld1q_f32(w->scale[rows][b]);
                const int p = (int)i;
                acc[i][b] = vfmaq_f32(acc[i][b], vcvtq_f32_s32(dot[i][b]),
                    TERN_PAIRS ? vmulq_f32(scale, vreinterpretq_f32_s32(dup_pair(
                                     vreinterpretq_s32_f32(d), p)))
                               : mul_lane(scale, d, p));
                if (!f->has_min)
                    continue;
                const float32x4_t min = vld1q_f32(w->u.minus_min[rows][b]);
                acc[i][b] = TERN_PAIRS ? vfmaq_f32(acc[i][b], min, vreinterpretq_f32_s32(dup_pair(
                                             vreinterpretq_s32_f32(side), p)))
                                       : fma_lane(acc[i][b], min, side, p);
            }
    }
    store_chains(a.dst + 8 * rows, a.dst_stride, n_tokens, acc);
}

TERN_INLINE void tile(const struct tern_codes_arm *f, const struct tern_expanded *w,
                      size_t n_subs, const struct tern_tile *a, size_t n_tokens)
{
    half_tile(f, w, n_subs, *a, n_tokens, 0);
    half_tile(f, w, n_subs, *a, n_tokens, 1);
}

/* The same for any number of tokens. side_stride: from four tokens to the next four. */
TERN_INLINE void tiles(const struct tern_codes_arm *f, const struct tern_expanded *w,
                       size_t n_subs, struct tern_tile a, size_t side_stride, size_t n_tokens)
{
    for (; n_tokens >= 4; n_tokens -= 4) {
        tile(f, w, n_subs, &a, 4);
        a.q += 4 * a.q_stride;
        a.side += side_stride;
        a.dst += 4 * a.dst_stride;
    }
    switch (n_tokens) {
    case 3: tile(f, w, n_subs, &a, 3); break;
    case 2: tile(f, w, n_subs, &a, 2); break;
    case 1: tile(f, w, n_subs, &a, 1); break;
    default: break;
    }
}

TERN_INLINE void matmul_many(const struct tern_codes_arm *f, const struct tern_matmul *m,
                             size_t first, size_t n, size_t token, size_t n_tokens)
{
    const struct tern_acts *a = m->acts;
    struct tern_expanded *w = m->scratch;
    float *side = (float *)(void *)((char *)m->scratch + 16384);
    const size_t unit = f->n_subs == 1 ? 1 : 4, n_units = m->n_cols / (TERN_SUB * unit);
    const size_t most = TERN_MAX_EXPANDED / unit, n_parts = (n_units + most - 1) / most;
    const size_t part = (n_units + n_parts - 1) / n_parts;
    const size_t side_stride = side_words(f) * a->n_blocks;
    for (size_t t = 0; t < n_tokens; t += 4)
        make_side(f, a, token + t, n_tokens - t < 4 ? n_tokens - t : 4, side + t / 4 * side_stride);
    for (size_t p = first; p < first + n; p++) {
        float *dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * p;
        for (size_t t = 0; t < n_tokens; t++)
            memset(dst + t * m->dst_stride, 0, TERN_PANEL_ROWS * sizeof *dst);
        for (size_t u = 0; u < n_units; u += part) {
            const size_t n_now = n_units - u < part ? n_units - u : part;
            expand(f, m->panels + p * m->panel_bytes, u, n_now, w);
            const size_t s = u * unit;
            const struct tern_tile t = {
                .q = a->q + TERN_SUB * (token * a->n_blocks + s),
                .q_stride = TERN_SUB * a->n_blocks,
                .side = side + s * side_words(f), .dst = dst, .dst_stride = m->dst_stride,
            };
            tiles(f, w, n_now * unit, t, side_stride, n_tokens);
        }
    }
}

/* As many tokens as the second cache and the scratch hold, in groups of one size. */
TERN_INLINE size_t group_tokens(const struct tern_codes_arm *f, size_t n_cols, size_t n_tokens)
{
    const size_t room = 768 / (4 * side_words(f)) * 4; /* TERN_MATMUL_BLOCK is more */
    size_t most = TERN_GROUP_BYTES / n_cols / 4 * 4;
    most = most < 32 ? 32 : most > 96 ? 96 : most;
    most = most > room ? room : most;
    const size_t n_groups = (n_tokens + most - 1) / most;
    return ((n_tokens + n_groups - 1) / n_groups + 3) / 4 * 4;
}

TERN_INLINE void matmul_groups(const struct tern_codes_arm *f, const struct tern_matmul *m,
                               size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens, group = group_tokens(f, m->n_cols, n_tokens);
    for (size_t t = 0; t < n_tokens; t += group)
        matmul_many(f, m, first, n, t, n_tokens - t < group ? n_tokens - t : group);
}

TERN_INLINE void matmul_codes_arm(const struct tern_codes_arm *f, const struct tern_matmul *m,
                                  size_t first, size_t n)
{
    if (m->acts->n_tokens > 1) {
        matmul_groups(f, m, first, n);
        return;
    }
    const struct tern_token a = {m->acts->q, m->acts->d, m->acts->sum, m->n_cols / TERN_SUB};
    const size_t bytes = m->panel_bytes;
    const uint8_t *panels = m->panels;
    float *dst = m->dst;
    for (size_t p = first; p < first + n; p++)
        panel_by_1(f, a, panels + p * bytes, dst + TERN_PANEL_ROWS * p);
}

#endif
