/* matmul_tiles_avx2.c: products with many tokens, for all types with codes.
 *
 * Some sub-blocks of a panel are unpacked into the scratch and serve tiles of 16 rows by 4 tokens,
 * the chains resting in dst between them. */
#include "platform/cpu/x86/matmul_avx2.h"

enum { TERN_GROUP_TOKENS = 128, TERN_GROUP_BYTES = 320 * 1024 };

/* What a tile takes and gives, from its first token and sub-block on. n_blocks is the stride of
 * the record; side is -zero * sum as int32, or d * sum as float. */
struct tern_tile {
    const int8_t *q;
    const float *d;
    const int16_t *sum;
    const int32_t *side;
    size_t n_blocks;
    float *dst;
    size_t dst_stride;
    bool begins; /* dst holds nothing yet */
};

/* sum += code * q over j0 .. j1 - 1 for n_tokens tokens and both halves, in 16 bits. */
TERN_INLINE void tile_chain(const struct tern_expanded *w, const int8_t *q, size_t q_stride,
                            size_t n_tokens, int j0, int j1, __m256i sum[4][2])
{
#pragma GCC unroll 8
    for (int j = j0; j < j1; j++) {
        const __m256i w0 = load_256(w->codes[j][0]), w1 = load_256(w->codes[j][1]);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++) {
            const __m256i x = broadcast_4(q + t * q_stride + 4 * j);
            const __m256i p0 = _mm256_maddubs_epi16(w0, x), p1 = _mm256_maddubs_epi16(w1, x);
            sum[t][0] = j == j0 ? p0 : in_order(_mm256_add_epi16(sum[t][0], p0));
            sum[t][1] = j == j0 ? p1 : in_order(_mm256_add_epi16(sum[t][1], p1));
        }
    }
}

/* The same for signed codes, in 32 bits. */
TERN_INLINE void tile_signed(const struct tern_expanded *w, const int8_t *q, size_t q_stride,
                             size_t n_tokens, __m256i sum[4][2])
{
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256i w0 = load_256(w->codes[j][0]), w1 = load_256(w->codes[j][1]);
        const __m256i a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++) {
            const __m256i x = broadcast_4(q + t * q_stride + 4 * j);
            const __m256i p0 = _mm256_maddubs_epi16(a0, _mm256_sign_epi8(x, w0));
            const __m256i p1 = _mm256_maddubs_epi16(a1, _mm256_sign_epi8(x, w1));
            const __m256i s0 = _mm256_madd_epi16(p0, ones), s1 = _mm256_madd_epi16(p1, ones);
            sum[t][0] = j == 0 ? s0 : in_order(_mm256_add_epi32(sum[t][0], s0));
            sum[t][1] = j == 0 ? s1 : in_order(_mm256_add_epi32(sum[t][1], s1));
        }
    }
}

/* dot[t][half] of one sub-block, zero points not yet off. */
TERN_INLINE void tile_dots(const struct tern_codes_avx2 *f, const struct tern_expanded *w,
                           const int8_t *q, size_t q_stride, size_t n_tokens, __m256i dot[4][2])
{
    const enum tern_chain chain = f->chain;
    const int length = chain_length(chain);
    if (chain == TERN_CHAIN_S8) {
        tile_signed(w, q, q_stride, n_tokens, dot);
        return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < 8; j += length) {
        __m256i sum[4][2];
        tile_chain(w, q, q_stride, n_tokens, j, j + length, sum);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const __m256i by = has_sc(f) ? load_256(w->sc[j / 4][half])
                                             : _mm256_set1_epi16(1);
                const __m256i s = _mm256_madd_epi16(sum[t][half], by);
                dot[t][half] = j == 0 ? s : _mm256_add_epi32(dot[t][half], s);
            }
    }
}

/* n_subs expanded sub-blocks for n_tokens <= 4 tokens; the chains go on from dst. */
TERN_INLINE void tile(const struct tern_codes_avx2 *f, const struct tern_expanded *w,
                      size_t n_subs, struct tern_tile a, size_t n_tokens)
{
    static const float zeros[TERN_PANEL_ROWS];
    const float *from = a.begins ? zeros : a.dst;
    const size_t from_stride = a.begins ? 0 : a.dst_stride;
    __m256 acc[4][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < n_tokens; t++)
        for (int half = 0; half < 2; half++)
            acc[t][half] = _mm256_loadu_ps(from + t * from_stride + 8 * half);
    for (size_t s = 0; s < n_subs; s++, w++) {
        __m256i dot[4][2];
        tile_dots(f, w, a.q + TERN_SUB * s, TERN_SUB * a.n_blocks, n_tokens, dot);
#pragma GCC unroll 4
        for (size_t t = 0; t < n_tokens; t++) {
            const size_t i = t * a.n_blocks + s;
            const __m256 d = _mm256_set1_ps(a.d[i]);
            const __m256i sums = has_sc(f) ? broadcast_4(a.sum + 2 * i) : broadcast_4(a.side + i);
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const __m256i side =
                    has_sc(f) ? _mm256_madd_epi16(sums, load_256(w->side[half])) : sums;
                __m256i x = dot[t][half];
                if (f->zero)
                    x = _mm256_add_epi32(x, side);
                acc[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(x),
                    _mm256_mul_ps(_mm256_loadu_ps(w->scale[half]), d), acc[t][half]);
                if (f->has_min)
                    acc[t][half] = _mm256_fmadd_ps(_mm256_loadu_ps(w->minus_min[half]),
                        has_sc(f) ? _mm256_mul_ps(d, _mm256_cvtepi32_ps(side))
                                  : _mm256_castsi256_ps(side), acc[t][half]);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < n_tokens; t++)
        for (int half = 0; half < 2; half++)
            _mm256_storeu_ps(a.dst + t * a.dst_stride + 8 * half, acc[t][half]);
}

/* What is read next. */
struct tern_next { const uint8_t *at; size_t bytes; };

/* The same for any number of tokens; some of what is read next is asked for with each tile. Two or
 * three that are left are rare (a few tokens have kernels of their own), and take tiles of one. */
TERN_INLINE void tiles(const struct tern_codes_avx2 *f, const struct tern_expanded *w,
                       size_t n_subs, struct tern_tile a, size_t n_tokens, struct tern_next next)
{
    const size_t ask = n_tokens < 4 ? 0 : (next.bytes / (n_tokens / 4) + 63) / 64 * 64;
    for (size_t n; n_tokens > 0; n_tokens -= n) {
        n = n_tokens < 4 ? 1 : 4;
        if (n == 4) {
            prefetch(next.at, 0, ask);
            next.at += ask;
            tile(f, w, n_subs, a, 4);
        } else {
            tile(f, w, n_subs, a, 1);
        }
        a.q += n * TERN_SUB * a.n_blocks;
        a.d += n * a.n_blocks;
        a.sum += 2 * n * a.n_blocks;
        a.side += n * a.n_blocks;
        a.dst += n * a.dst_stride;
    }
}

/* So many types, so few kinds of tiles: compiled once for each. */
static void tiles_of(const struct tern_type_avx2 *type, const struct tern_expanded *w,
                     size_t n_subs, struct tern_tile a, size_t n_tokens, struct tern_next next)
{
    typedef struct tern_codes_avx2 kind;
    static const kind u4 = {.chain = TERN_CHAIN_U4, .zero = 1};
    static const kind u4_min = {.chain = TERN_CHAIN_U4, .has_min = true};
    static const kind u5 = {.chain = TERN_CHAIN_U5, .zero = 1};
    static const kind u5_min = {.chain = TERN_CHAIN_U5, .has_min = true};
    static const kind u3 = {.chain = TERN_CHAIN_U3, .zero = 1};
    static const kind u3_min = {.chain = TERN_CHAIN_U3, .has_min = true};
    static const kind u6 = {.chain = TERN_CHAIN_U6, .zero = 1};
    static const kind u7 = {.chain = TERN_CHAIN_U7, .zero = 1};
    static const kind s8 = {.chain = TERN_CHAIN_S8};
    switch (2 * type->chain + type->has_min) {
    case 2 * TERN_CHAIN_U4: tiles(&u4, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U4 + 1: tiles(&u4_min, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U5: tiles(&u5, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U5 + 1: tiles(&u5_min, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U3: tiles(&u3, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U3 + 1: tiles(&u3_min, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U6: tiles(&u6, w, n_subs, a, n_tokens, next); break;
    case 2 * TERN_CHAIN_U7: tiles(&u7, w, n_subs, a, n_tokens, next); break;
    default: tiles(&s8, w, n_subs, a, n_tokens, next); break;
    }
}

/* What the sums of n records give: see struct tern_tile. */
static void make_side(const struct tern_type_avx2 *f, const int16_t *sum, const float *d, size_t n,
                      int32_t *side)
{
    const int by = f->has_min ? 1 : -f->zero;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i x = _mm256_madd_epi16(load_256(sum + 2 * i), _mm256_set1_epi16((int16_t)by));
        if (f->has_min)
            x = _mm256_castps_si256(_mm256_mul_ps(_mm256_loadu_ps(d + i), _mm256_cvtepi32_ps(x)));
        _mm256_storeu_si256((__m256i *)(void *)(side + i), x);
    }
    for (; i < n; i++) {
        const int32_t both = by * (sum[2 * i] + sum[2 * i + 1]);
        const float x = d[i] * (float)both;
        if (f->has_min)
            memcpy(side + i, &x, sizeof x);
        else
            side[i] = both;
    }
}

static void matmul_many(const struct tern_type_avx2 *f, const struct tern_matmul *m, size_t first,
                        size_t n, size_t token, size_t n_tokens)
{
    const struct tern_acts *a = m->acts;
    struct tern_expanded *w = m->scratch;
    int32_t *side = (int32_t *)(void *)((char *)m->scratch + TERN_SCRATCH_SECOND);
    const size_t n_groups = m->n_cols / (TERN_SUB * f->period);
    const size_t most = TERN_MAX_EXPANDED / f->period, n_parts = (n_groups + most - 1) / most;
    const size_t part = (n_groups + n_parts - 1) / n_parts;
    if (!chain_has_sc(f->chain))
        make_side(f, a->sum + 2 * token * a->n_blocks, a->d + token * a->n_blocks,
                  n_tokens * a->n_blocks, side);
    for (size_t p = first; p < first + n; p++) {
        float *dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * p;
        for (size_t g = 0; g < n_groups; g += part) {
            const size_t n_now = n_groups - g < part ? n_groups - g : part;
            const uint8_t *panel = m->panels + p * m->panel_bytes;
            f->expand(panel, g, n_now, w);
            const struct tern_next next = {panel + (g + n_now) * f->block_bytes / f->n_groups,
                                           n_now * f->block_bytes / f->n_groups};
            const size_t s = g * f->period, i = token * a->n_blocks + s;
            const struct tern_tile t = {a->q + TERN_SUB * i, a->d + i, a->sum + 2 * i, side + s,
                                        a->n_blocks, dst, m->dst_stride, g == 0};
            tiles_of(f, w, n_now * f->period, t, n_tokens, next);
        }
    }
}

/* As many tokens as leave their activations in the second cache while panels pass. */
static size_t group_tokens(size_t n_cols)
{
    const size_t fit = TERN_GROUP_BYTES / n_cols / 4 * 4;
    return fit > TERN_GROUP_TOKENS ? TERN_GROUP_TOKENS : fit < 32 ? 32 : fit;
}

void tern_matmul_many_avx2(const struct tern_type_avx2 *type, const struct tern_matmul *m,
                           size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens, group = group_tokens(m->n_cols);
    for (size_t t = 0; t < n_tokens; t += group)
        matmul_many(type, m, first, n, t, n_tokens - t < group ? n_tokens - t : group);
}
