/* pairs_vnni.h: tiles of two panels, where a panel is one register.
 *
 * A tile of one panel loads four bytes of a token for each product, and weights, scales and sides
 * besides, where CPUs load twice a cycle and multiply twice a cycle. Two panels by half as many
 * tokens load half as often. Where blocks have a minimum, multiplying bounds as much as loading
 * does, but what is loaded is not always in the first cache. */
#ifndef TERN_CPU_PAIRS_VNNI_H
#define TERN_CPU_PAIRS_VNNI_H

enum { PAIR_TOKENS = 6, PAIR_TOKENS_HALVES = 4 };

/* sum += code * q over j0 .. j0 + n - 1 for both panels, w[0] and w[1]. */
TERN_INLINE void pair_dots(struct tern_place *at, size_t n_tokens, size_t j0, size_t n,
                           ints dot[PAIR_TOKENS][2])
{
    const struct tern_expanded *w = at->w;
    TERN_UNROLL
    for (size_t j = j0; j < j0 + n; j++) {
        const ints x = load_ints(w[0].codes[j]), y = load_ints(w[1].codes[j]);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++) {
            const ints b = broadcast_4(paced(&at->q, t, 4 * j));
            dot[t][0] = dot_4(dot[t][0], x, b);
            dot[t][1] = dot_4(dot[t][1], y, b);
        }
    }
}

TERN_INLINE void pair_start(struct tern_place *at, size_t n_tokens, size_t side, bool min,
                            ints dot[PAIR_TOKENS][2])
{
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++)
        dot[t][0] = dot[t][1] = min ? all_ints(0) : broadcast_4(paced(&at->side, t, 4 * side));
}

/* One sub-block of both panels. */
TERN_INLINE void pair_sub(const struct tern_kind *k, struct tern_place *at, size_t n_tokens,
                          floats acc[PAIR_TOKENS][2])
{
    const bool halves = k->sides == TERN_SIDE_HALVES, min = k->sides == TERN_SIDE_MIN;
    const struct tern_expanded *w = at->w;
    ints dot[PAIR_TOKENS][2];
    floats whole[PAIR_TOKENS][2];
    pair_start(at, n_tokens, SIDE_SUM, min, dot);
    if (halves) {
        pair_dots(at, n_tokens, 0, 4, dot);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++)
            TERN_UNROLL
            for (int i = 0; i < 2; i++)
                whole[t][i] = multiply(to_floats(dot[t][i]), load_floats(w[i].u.halves[0]));
        pair_start(at, n_tokens, SIDE_SUM_2, false, dot);
    }
    pair_dots(at, n_tokens, halves ? 4 : 0, halves ? 3 : 7, dot);
    const ints x = load_ints(w[0].codes[7]), y = load_ints(w[1].codes[7]);
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++) {
        const ints b = broadcast_4(paced(&at->q, t, 28));
        const floats first = to_floats(dot_4(dot[t][0], x, b));
        const floats second = to_floats(dot_4(dot[t][1], y, b));
        whole[t][0] = halves ? fused(first, load_floats(w[0].u.halves[1]), whole[t][0]) : first;
        whole[t][1] = halves ? fused(second, load_floats(w[1].u.halves[1]), whole[t][1]) : second;
        const floats d = as_floats(broadcast_4(paced(&at->side, t, 4 * SIDE_D)));
        TERN_UNROLL
        for (int i = 0; i < 2; i++)
            acc[t][i] = fused(whole[t][i], multiply(load_floats(w[i].scale), d), acc[t][i]);
        if (!min)
            continue;
        const floats sum = as_floats(broadcast_4(paced(&at->side, t, 4 * SIDE_SUM)));
        TERN_UNROLL
        for (int i = 0; i < 2; i++)
            acc[t][i] = fused(load_floats(w[i].u.minus_min), sum, acc[t][i]);
    }
}

/* n_tiles tiles of two panels, whose sub-blocks lie by turns. */
TERN_INLINE void pairs(const struct tern_kind *k, const struct tern_tile *a, size_t n_tokens,
                       size_t n_tiles)
{
    struct tern_place at = place(k, a);
    const struct tern_expanded *end = a->w + 2 * a->n_subs;
    const float *from = a->from;
    const uint8_t *ahead = a->ahead;
    float *dst = a->dst;
    for (; n_tiles > 0; n_tiles--, ahead += a->ahead_bytes) {
        floats acc[PAIR_TOKENS][2];
        prefetch(ahead, 0, a->ahead_bytes);
        prefetch(ahead, a->panel_bytes, a->ahead_bytes);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++, from += a->from_stride) {
            acc[t][0] = load_floats(from);
            acc[t][1] = load_floats(from + LANES);
        }
        for (at.w = a->w; at.w < end; at.w += 2) {
            pair_sub(k, &at, n_tokens, acc);
            skip_subs(k, &at, 1);
        }
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++, dst += a->dst_stride) {
            store_floats(dst, acc[t][0]);
            store_floats(dst + LANES, acc[t][1]);
        }
        skip_subs(k, &at, n_tokens * a->n_blocks - a->n_subs);
    }
}

/* 24 tokens and more are tiles of six and five, with none left over. */
TERN_INLINE void even_pairs(const struct tern_kind *k, struct tern_tile a, size_t n_tokens)
{
    const size_t smaller = (PAIR_TOKENS - n_tokens % PAIR_TOKENS) % PAIR_TOKENS;
    const size_t n_tiles = (n_tokens + smaller) / PAIR_TOKENS;
    a.ahead_bytes /= n_tiles;
    pairs(k, &a, PAIR_TOKENS, n_tiles - smaller);
    a.ahead += (n_tiles - smaller) * a.ahead_bytes;
    next_tokens(k, &a, PAIR_TOKENS * (n_tiles - smaller));
    pairs(k, &a, PAIR_TOKENS - 1, smaller);
}

static TERN_ONE_COPY void pairs_zero(struct tern_tile a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_ZERO};
    even_pairs(&kind, a, n_tokens);
}

static TERN_ONE_COPY void pairs_min(struct tern_tile a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_MIN};
    even_pairs(&kind, a, n_tokens);
}

/* What is left over is tiles of each panel. */
static TERN_ONE_COPY void pairs_halves(struct tern_tile a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_HALVES};
    const size_t n_tiles = n_tokens / PAIR_TOKENS_HALVES, left = n_tokens % PAIR_TOKENS_HALVES;
    a.ahead_bytes /= n_tiles;
    pairs(&kind, &a, PAIR_TOKENS_HALVES, n_tiles);
    next_tokens(&kind, &a, PAIR_TOKENS_HALVES * n_tiles);
    a.ahead_bytes = 0;
    a.w_step = 2;
    for (int i = 0; i < 2 && left > 0; i++) {
        tiles_halves(&a, left);
        a.w++;
        a.from += LANES;
        a.dst += LANES;
    }
}

/* Both panels for all tokens, PAIRS_FROM at least. */
static inline void tiles_of_pair(enum tern_sides sides, struct tern_tile t, size_t n_tokens)
{
    (sides == TERN_SIDE_ZERO  ? pairs_zero
     : sides == TERN_SIDE_MIN ? pairs_min
                              : pairs_halves)(t, n_tokens);
}

#endif
