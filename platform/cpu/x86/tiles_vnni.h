/* tiles_vnni.h: tiles of rows by tokens over unpacked sub-blocks.
 *
 * Tiles know three kinds of sides (zero point, minimum, two scales) and not the types, so that all
 * types share their code. Whoever includes this has included types_vnni.h. */
#ifndef TERN_CPU_TILES_VNNI_H
#define TERN_CPU_TILES_VNNI_H

#include "platform/cpu/x86/types_vnni.h"
#include "platform/cpu/x86/x86.h"

enum { MAX_TILE_TOKENS = 12 };

/* A sub-block of a panel as tiles want it: codes[j][r][b] is element 4 j + b of row r. */
struct tern_expanded {
    uint8_t codes[8][TERN_PANEL_ROWS][4];
    float scale[TERN_PANEL_ROWS];
    union {
        float minus_min[TERN_PANEL_ROWS];
        float halves[2][TERN_PANEL_ROWS];
    } u;
};

/* What the record says of a block of one token, beside its q, as tiles want it: d, then -zero *
 * sum, or d * sum as float, or -zero times the sums of both halves. */
enum { SIDE_D = 0, SIDE_SUM = 1, SIDE_SUM_2 = 2 };

TERN_INLINE size_t side_words(enum tern_sides sides)
{
    return sides == TERN_SIDE_HALVES ? 3 : 2;
}

/* What tiles take and give, from their first token and sub-block on. n_blocks is the stride of the
 * record. */
struct tern_tile {
    const struct tern_expanded *w;
    size_t w_step; /* 2 where two panels' lie by turns */
    size_t n_subs;
    const int8_t *q;
    const int32_t *side;
    size_t n_blocks;
    const float *from; /* where the chains go on from, dst or zeros */
    size_t from_stride;
    float *dst;
    size_t dst_stride;
    const uint8_t *ahead; /* asked for evenly by all tiles */
    size_t ahead_bytes, panel_bytes;
};

/* What a tile does, constant wherever it is inlined. */
struct tern_kind { enum tern_sides sides; };

/* Where a tile's tokens are, the first sub-block's. Twelve pointers do not fit the registers beside
 * all else: one for each three tokens, and steps of one or two strides from it, do. The compiler
 * must not know how they lie to each other, nor that it sees the same stride again: it would keep
 * many sums of them where a load adds them for nothing. */
struct tern_paces { const char *at[MAX_TILE_TOKENS / 3]; size_t stride; };

TERN_INLINE struct tern_paces paces(const void *first, size_t stride)
{
    struct tern_paces p = {.stride = stride};
    TERN_UNROLL
    for (size_t i = 0; i < MAX_TILE_TOKENS / 3; i++) {
        p.at[i] = (const char *)first + 3 * i * stride;
        __asm__("" : "+r"(p.at[i]));
    }
    return p;
}

TERN_INLINE const void *paced(struct tern_paces *p, size_t token, size_t offset)
{
    if (token % 3 == 0)
        return p->at[token / 3] + offset;
    __asm__("" : "+r"(p->stride));
    return p->at[token / 3] + token % 3 * p->stride + offset;
}

TERN_INLINE void pace(struct tern_paces *p, size_t bytes)
{
    TERN_UNROLL
    for (size_t i = 0; i < MAX_TILE_TOKENS / 3; i++)
        p->at[i] += bytes;
}

/* A tile at work: where its tokens are, and at which sub-block of the panel it is. */
struct tern_place {
    struct tern_paces q, side;
    const struct tern_expanded *w;
};

TERN_INLINE void skip_subs(const struct tern_kind *k, struct tern_place *at, size_t n)
{
    pace(&at->q, TERN_SUB * n);
    pace(&at->side, 4 * side_words(k->sides) * n);
}

TERN_INLINE void load_codes(const struct tern_expanded *w, size_t j, ints x[PARTS])
{
    TERN_UNROLL
    for (unsigned part = 0; part < PARTS; part++)
        x[part] = load_ints(w->codes[j][LANES * part]);
}

/* sum += code * q over j0 .. j0 + n - 1 for n_tokens tokens and all rows. */
TERN_INLINE void tile_dots(struct tern_place *at, size_t n_tokens, size_t j0, size_t n,
                           ints sum[][PARTS])
{
    TERN_UNROLL
    for (size_t j = j0; j < j0 + n; j++) {
        ints x[PARTS];
        load_codes(at->w, j, x);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++)
            dot_4_all(sum[t], x, paced(&at->q, t, 4 * j));
    }
}

/* What a token's sums start from. */
TERN_INLINE void tile_start(const struct tern_kind *k, struct tern_place *at, size_t n_tokens,
                            size_t side, ints sum[][PARTS])
{
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++) {
        const ints x = k->sides == TERN_SIDE_MIN ? all_ints(0)
                                                 : broadcast_4(paced(&at->side, t, 4 * side));
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            sum[t][part] = x;
    }
}

/* The chains of one token go a step on, with its block's integers as floats. */
TERN_INLINE void tile_step(const struct tern_kind *k, struct tern_place *at, size_t t,
                           const floats whole[PARTS], floats acc[PARTS])
{
    const floats d = as_floats(broadcast_4(paced(&at->side, t, 4 * SIDE_D)));
    TERN_UNROLL
    for (unsigned part = 0; part < PARTS; part++) {
        const unsigned row = LANES * part;
        acc[part] = fused(whole[part], multiply(load_floats(at->w->scale + row), d), acc[part]);
        if (k->sides == TERN_SIDE_MIN)
            acc[part] = fused(load_floats(at->w->u.minus_min + row),
                              as_floats(broadcast_4(paced(&at->side, t, 4 * SIDE_SUM))), acc[part]);
    }
}

/* One sub-block. A token's step follows its last product at once: behind all tokens' products,
 * steps wait for each other while nothing is left to multiply. */
TERN_INLINE void tile_sub(const struct tern_kind *k, struct tern_place *at, size_t n_tokens,
                          floats acc[][PARTS])
{
    const bool halves = k->sides == TERN_SIDE_HALVES;
    ints dot[MAX_TILE_TOKENS][PARTS], x[PARTS];
    floats whole[MAX_TILE_TOKENS][PARTS];
    tile_start(k, at, n_tokens, SIDE_SUM, dot);
    if (halves) {
        tile_dots(at, n_tokens, 0, 4, dot);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++)
            TERN_UNROLL
            for (unsigned part = 0; part < PARTS; part++)
                whole[t][part] = multiply(to_floats(dot[t][part]),
                                          load_floats(at->w->u.halves[0] + LANES * part));
        tile_start(k, at, n_tokens, SIDE_SUM_2, dot);
    }
    tile_dots(at, n_tokens, halves ? 4 : 0, halves ? 3 : 7, dot);
    load_codes(at->w, 7, x);
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++) {
        dot_4_all(dot[t], x, paced(&at->q, t, 28));
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++) {
            const floats y = to_floats(dot[t][part]);
            whole[t][part] = halves ? fused(y, load_floats(at->w->u.halves[1] + LANES * part),
                                            whole[t][part])
                                    : y;
        }
        tile_step(k, at, t, whole[t], acc[t]);
    }
}

TERN_INLINE struct tern_place place(const struct tern_kind *k, const struct tern_tile *a)
{
    return (struct tern_place){
        .q = paces(a->q, TERN_SUB * a->n_blocks),
        .side = paces(a->side, 4 * side_words(k->sides) * a->n_blocks),
    };
}

/* n_tiles tiles of n_tokens tokens, which is a constant. */
TERN_INLINE void tile(const struct tern_kind *k, const struct tern_tile *a, size_t n_tokens,
                      size_t n_tiles)
{
    struct tern_place at = place(k, a);
    const size_t step = a->w_step;
    const struct tern_expanded *end = a->w + step * a->n_subs;
    const float *from = a->from;
    const uint8_t *ahead = a->ahead;
    float *dst = a->dst;
    for (; n_tiles > 0; n_tiles--, ahead += a->ahead_bytes) {
        floats acc[MAX_TILE_TOKENS][PARTS];
        prefetch(ahead, 0, a->ahead_bytes);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++, from += a->from_stride)
            TERN_UNROLL
            for (unsigned part = 0; part < PARTS; part++)
                acc[t][part] = load_floats(from + LANES * part);
        for (at.w = a->w; at.w < end; at.w += step) {
            tile_sub(k, &at, n_tokens, acc);
            skip_subs(k, &at, 1);
        }
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++, dst += a->dst_stride)
            TERN_UNROLL
            for (unsigned part = 0; part < PARTS; part++)
                store_floats(dst + LANES * part, acc[t][part]);
        skip_subs(k, &at, n_tokens * a->n_blocks - a->n_subs);
    }
}

TERN_INLINE void next_tokens(const struct tern_kind *k, struct tern_tile *a, size_t n)
{
    a->q += n * TERN_SUB * a->n_blocks;
    a->side += n * side_words(k->sides) * a->n_blocks;
    a->from += n * a->from_stride;
    a->dst += n * a->dst_stride;
}

/* What a sub-block's rows have, in registers. */
struct tern_held { ints w[8]; floats scale, minus_min, sc[2]; };

/* One token's step with codes in registers: two chains of products, since one would wait for
 * itself. */
TERN_INLINE floats held_step(const struct tern_kind *k, const struct tern_held *h, const int8_t *q,
                             const int32_t *side, floats acc)
{
    const bool halves = k->sides == TERN_SIDE_HALVES;
    ints a = k->sides == TERN_SIDE_MIN ? all_ints(0) : broadcast_4(side + SIDE_SUM);
    ints b = halves ? broadcast_4(side + SIDE_SUM_2) : all_ints(0);
    TERN_UNROLL
    for (int j = 0; j < 4; j++) {
        a = dot_4_at(a, h->w[j], q + 4 * j);
        b = dot_4_at(b, h->w[4 + j], q + 16 + 4 * j);
    }
    const floats whole = halves ? fused(to_floats(b), h->sc[1], multiply(to_floats(a), h->sc[0]))
                                : to_floats(plus_ints(a, b));
    acc = fused(whole, multiply(h->scale, as_floats(broadcast_4(side + SIDE_D))), acc);
    if (k->sides == TERN_SIDE_MIN)
        acc = fused(h->minus_min, as_floats(broadcast_4(side + SIDE_SUM)), acc);
    return acc;
}

/* One sub-block of one part for n tokens. Their chains lie side by side: rows of a result may be
 * so far apart that all of them fall into one set of the first cache. */
TERN_INLINE void held_tokens(const struct tern_kind *k, const struct tern_held *h,
                             const struct tern_tile *a, size_t sub, size_t n, float *chains)
{
    const int8_t *q = a->q + TERN_SUB * sub;
    const int32_t *side = a->side + side_words(k->sides) * sub;
    for (size_t t = 0; t < n; t++) {
        store_floats(chains, held_step(k, h, q, side, load_floats(chains)));
        q += TERN_SUB * a->n_blocks;
        side += side_words(k->sides) * a->n_blocks;
        chains += TERN_PANEL_ROWS;
    }
}

/* Rows of a panel's chains, of n tokens. */
static TERN_ONE_COPY void copy_chains(float *dst, size_t dst_stride, const float *from,
                                      size_t from_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < TERN_PANEL_ROWS; i += LANES)
            store_floats(dst + t * dst_stride + i, load_floats(from + t * from_stride + i));
}

/* Fewer tokens than a tile has, whatever their number: a tile of each would be two kilobytes. */
TERN_INLINE void rest(const struct tern_kind *k, const struct tern_tile *a, size_t n)
{
    _Alignas(64) float chains[MAX_TILE_TOKENS][TERN_PANEL_ROWS];
    copy_chains(chains[0], TERN_PANEL_ROWS, a->from, a->from_stride, n);
    for (size_t sub = 0; sub < a->n_subs; sub++)
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++) {
            const unsigned row = LANES * part;
            const struct tern_expanded *w = a->w + sub * a->w_step;
            struct tern_held h = {.scale = load_floats(w->scale + row)};
            TERN_UNROLL
            for (size_t j = 0; j < 8; j++)
                h.w[j] = load_ints(w->codes[j][row]);
            if (k->sides == TERN_SIDE_MIN)
                h.minus_min = load_floats(w->u.minus_min + row);
            if (k->sides == TERN_SIDE_HALVES) {
                h.sc[0] = load_floats(w->u.halves[0] + row);
                h.sc[1] = load_floats(w->u.halves[1] + row);
            }
            held_tokens(k, &h, a, sub, n, chains[0] + row);
        }
    copy_chains(a->dst, a->dst_stride, chains[0], TERN_PANEL_ROWS, n);
}

/* Where a tile has four tokens, smaller ones are little code; as even as can be: five tokens are
 * better three and two than four and one. */
TERN_INLINE void even_tiles(const struct tern_kind *k, struct tern_tile a, size_t n_tokens)
{
    const size_t n_tiles = (n_tokens + 3) / 4, fewer = n_tokens / n_tiles;
    a.ahead_bytes /= n_tiles;
    for (size_t n = fewer + 1, times = n_tokens % n_tiles; n >= fewer; n--) {
        switch (times > 0 ? n : 0) {
        case 1: tile(k, &a, 1, times); break;
        case 2: tile(k, &a, 2, times); break;
        case 3: tile(k, &a, 3, times); break;
        case 4: tile(k, &a, 4, times); break;
        default: break;
        }
        next_tokens(k, &a, n * times);
        times = n_tiles - times;
    }
}

/* As many whole tiles as there are, and the rest. */
TERN_INLINE void tiles(const struct tern_kind *k, struct tern_tile a, size_t n_tokens)
{
    const size_t each = k->sides == TERN_SIDE_HALVES ? TILE_TOKENS_HALVES : TILE_TOKENS;
    const size_t n_tiles = n_tokens / each;
    if (each == 4) {
        even_tiles(k, a, n_tokens);
        return;
    }
    if (n_tiles > 0) {
        a.ahead_bytes /= n_tiles;
        tile(k, &a, each, n_tiles);
        next_tokens(k, &a, each * n_tiles);
    } else {
        prefetch(a.ahead, 0, a.ahead_bytes);
    }
    size_t left = n_tokens - each * n_tiles;
    for (size_t n; left > 0; left -= n) {
        n = left < MAX_TILE_TOKENS ? left : MAX_TILE_TOKENS;
        rest(k, &a, n);
        next_tokens(k, &a, n);
    }
}

/* Compiled once for each kind, whatever the types. */
static TERN_ONE_COPY void tiles_zero(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_ZERO};
    tiles(&kind, *a, n_tokens);
}

static TERN_ONE_COPY void tiles_min(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_MIN};
    tiles(&kind, *a, n_tokens);
}

static TERN_ONE_COPY void tiles_halves(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_HALVES};
    tiles(&kind, *a, n_tokens);
}

/* Chains of two panels begin here, all tokens' alike. */
static const float zeros[2 * TERN_PANEL_ROWS];

#if TERN_PAIRS
#include "platform/cpu/x86/pairs_vnni.h"
#else
/* Nobody asks for two panels there. */
static inline void tiles_of_pair(enum tern_sides sides, struct tern_tile t, size_t n_tokens)
{
    (void)sides, (void)t, (void)n_tokens;
}
#endif

#endif
