/* pairs_vnni.h: tiles of two panels, where a panel is one register.
 *
 * A tile of one panel loads four bytes of a token for each product, and weights, scales and sides
 * besides, where CPUs load twice a cycle and multiply twice a cycle. Where blocks have one scale
 * and a zero point, that is what bounds it; two panels by half as many tokens load half as often. A
 * minimum is one operation more for each token and panel, with which multiplying bounds again. */
#ifndef TERN_CPU_PAIRS_VNNI_H
#define TERN_CPU_PAIRS_VNNI_H

enum { PAIR_TOKENS = 6 };

/* One sub-block of both panels, w[0] and w[1]. */
TERN_INLINE void pair_sub(struct tern_place *at, floats acc[PAIR_TOKENS][2])
{
    const struct tern_expanded *w = at->w;
    ints dot[PAIR_TOKENS][2];
    TERN_UNROLL
    for (size_t t = 0; t < PAIR_TOKENS; t++)
        dot[t][0] = dot[t][1] = broadcast_4(paced(&at->side, t, 4 * SIDE_SUM));
    TERN_UNROLL
    for (size_t j = 0; j < 8; j++) {
        const ints x = load_ints(w[0].codes[j]), y = load_ints(w[1].codes[j]);
        TERN_UNROLL
        for (size_t t = 0; t < PAIR_TOKENS; t++) {
            const ints b = broadcast_4(paced(&at->q, t, 4 * j));
            dot[t][0] = dot_4(dot[t][0], x, b);
            dot[t][1] = dot_4(dot[t][1], y, b);
            if (j < 7)
                continue;
            const floats d = as_floats(broadcast_4(paced(&at->side, t, 4 * SIDE_D)));
            TERN_UNROLL
            for (int i = 0; i < 2; i++)
                acc[t][i] = fused(to_floats(dot[t][i]), multiply(load_floats(w[i].scale), d),
                                  acc[t][i]);
        }
    }
}

/* n_tiles tiles of two panels, whose sub-blocks lie by turns, and PAIR_TOKENS tokens. */
static TERN_ONE_COPY void pairs_zero(const struct tern_tile *a, size_t n_tiles)
{
    static const struct tern_kind kind = {TERN_SIDE_ZERO, false};
    struct tern_place at = place(&kind, a);
    const struct tern_expanded *end = a->w + 2 * a->n_subs;
    const float *from = a->from;
    const uint8_t *ahead = a->ahead;
    float *dst = a->dst;
    for (; n_tiles > 0; n_tiles--, ahead += a->ahead_bytes) {
        floats acc[PAIR_TOKENS][2];
        prefetch(ahead, 0, a->ahead_bytes);
        prefetch(ahead, a->panel_bytes, a->ahead_bytes);
        TERN_UNROLL
        for (size_t t = 0; t < PAIR_TOKENS; t++, from += a->from_stride) {
            acc[t][0] = load_floats(from);
            acc[t][1] = load_floats(from + LANES);
        }
        for (at.w = a->w; at.w < end; at.w += 2) {
            pair_sub(&at, acc);
            skip_subs(&kind, &at, 1);
        }
        TERN_UNROLL
        for (size_t t = 0; t < PAIR_TOKENS; t++, dst += a->dst_stride) {
            store_floats(dst, acc[t][0]);
            store_floats(dst + LANES, acc[t][1]);
        }
        skip_subs(&kind, &at, PAIR_TOKENS * a->n_blocks - a->n_subs);
    }
}

/* Both panels for all tokens: tiles of each for those left over. */
static void tiles_of_pair(struct tern_tile t, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_ZERO, false};
    const size_t n_tiles = n_tokens / PAIR_TOKENS, left = n_tokens % PAIR_TOKENS;
    t.ahead_bytes /= n_tiles;
    pairs_zero(&t, n_tiles);
    next_tokens(&kind, &t, PAIR_TOKENS * n_tiles);
    t.ahead_bytes = 0;
    t.w_step = 2;
    for (int i = 0; i < 2 && left > 0; i++) {
        tiles_zero(&t, left);
        t.w++;
        t.from += LANES;
        t.dst += LANES;
    }
}

#endif
