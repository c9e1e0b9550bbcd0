/* matmul_vnni.h: integer matrix products with vpdpbusd, once for both widths.
 *
 * vpdpbusd adds four products of an unsigned and a signed byte to each 32-bit lane, without
 * saturation: a register holds 4 k of LANES rows, so a block of 32 k is eight of them for each
 * part of a panel (one part of 16 rows, or two of 8), and the block's integer is exact whatever
 * its codes. Codes are the unsigned operand; signed ones are moved up by 128. The zero point
 * comes off by the sums of the record, as what the sum of products starts from.
 *
 * Types with two scales a block (Q6_K) need sc0 * dot0 + sc1 * dot1 below 2^24: floats hold
 * both products and their sum exactly, and multiply faster than integers.
 *
 * One token: codes are unpacked in registers and used once. Few: the same, and each token's chains
 * go on in dst. Many: some blocks of a panel, or of two, are unpacked into the scratch and serve
 * tiles of rows by tokens, whose chains rest in dst between the parts of a panel.
 *
 * Whoever includes this has included the words for one width, lanes_*.h. */
#ifndef TERN_CPU_MATMUL_VNNI_H
#define TERN_CPU_MATMUL_VNNI_H

#include "platform/cpu/ref/ref.h"
#include "platform/cpu/x86/tiles_vnni.h"

/* --- one token --- */

enum { PREFETCH_AHEAD = 6144 }; /* what a core that reads 40 GB/s has on its way, and a little */

TERN_INLINE ints dot_16(ints sum, const ints w[4], const int8_t *q)
{
TERN_UNROLL
    for (int j = 0; j < 4; j++)
        sum = dot_4_at(sum, w[j], q + 4 * j);
    return sum;
}

/* -zero times the sum of each half: first, second or both. */
TERN_INLINE ints side_zero(const int16_t *sum, int zero, bool first, bool second)
{
    const uint32_t a = first ? (uint32_t)-zero & 0xffff : 0;
    const uint32_t b = second ? (uint32_t)-zero & 0xffff : 0;
    return dot_pairs(broadcast_4(sum), all_ints((int32_t)(a | b << 16)));
}

/* One sub-block of one part for one token: its chains go a step on. */
TERN_INLINE floats step_by_1(const struct tern_codes_vnni *f, struct tern_sub s, unsigned part,
                             const int8_t *q, float d, const int16_t *sum, floats acc)
{
    ints w[8];
    f->unpack(s, part, w);
    const floats scale = multiply(f->scale(s, part), all_floats(d));
    if (f->sides == TERN_SIDE_HALVES) {
        floats sc[2];
        f->halves(s, part, sc);
        const ints first = dot_16(side_zero(sum, f->zero, true, false), w, q);
        const ints second = dot_16(side_zero(sum, f->zero, false, true), w + 4, q + 16);
        const floats whole = fused(to_floats(second), sc[1], multiply(to_floats(first), sc[0]));
        return fused(whole, scale, acc);
    }
    const ints start = f->sides == TERN_SIDE_ZERO ? side_zero(sum, f->zero, true, true)
                                                  : all_ints(0);
    acc = fused(to_floats(dot_16(dot_16(start, w, q), w + 4, q + 16)), scale, acc);
    if (f->sides == TERN_SIDE_MIN) {
        const floats sums = to_floats(side_zero(sum, -1, true, true));
        acc = fused(f->minus_min(s, part), multiply(all_floats(d), sums), acc);
    }
    return acc;
}

TERN_INLINE void panel_by_1(const struct tern_codes_vnni *f, const struct tern_matmul *m,
                            const uint8_t *block, float *dst)
{
    const int8_t *q = m->acts->q;
    const float *d = m->acts->d;
    const int16_t *sum = m->acts->sum;
    floats acc[PARTS];
    for (unsigned part = 0; part < PARTS; part++)
        acc[part] = all_floats(0);
    const size_t n_blocks = m->n_cols / (TERN_SUB * f->n_groups * f->period);
    for (size_t b = 0; b < n_blocks; b++, block += f->block_bytes)
        for (unsigned g = 0; g < f->n_groups; g++) {
            const unsigned bytes = f->block_bytes / f->n_groups;
            prefetch(block + g * bytes, PREFETCH_AHEAD, bytes);
TERN_UNROLL
            for (unsigned e = 0; e < f->period; e++) {
                const struct tern_sub s = {block, g, e};
TERN_UNROLL
                for (unsigned part = 0; part < PARTS; part++) {
                    acc[part] = step_by_1(f, s, part, q, *d, sum, acc[part]);
                    __asm__("" : "+r"(q)); /* load again: registers are dearer than loads */
                }
                q += TERN_SUB;
                d++;
                sum += 2;
            }
        }
    for (unsigned part = 0; part < PARTS; part++)
        store_floats(dst + LANES * part, acc[part]);
}

/* --- many tokens --- */

enum {
    EXPANDED_BYTES = 20480,
    MAX_EXPANDED = EXPANDED_BYTES / sizeof(struct tern_expanded) / 4 * 4,
    SIDE_BYTES = TERN_MATMUL_BLOCK, /* for each block of 32 columns */
    /* Activations of a group of tokens should stay in the second cache while panels pass: CPUs
     * with these instructions have 1 MB and more of it, and threads of a core share them. A bit
     * more of them is better than panels that are unpacked twice. */
    GROUP_BYTES = 1200 * 1024, GROUP_TOKENS = 216, GROUP_TOKENS_HALVES = 144,
    PAIRS_FROM = 24, /* tokens */
};
_Static_assert((int)PAIRS_FROM >= (int)FEW_TOKENS, "few come one panel at a time");
_Static_assert(GROUP_TOKENS % TILE_TOKENS == 0 && GROUP_TOKENS_HALVES % TILE_TOKENS_HALVES == 0,
               "groups are filled up to whole tiles");
_Static_assert(GROUP_TOKENS * 2 * sizeof(int32_t) <= SIDE_BYTES, "scratch");
_Static_assert(GROUP_TOKENS_HALVES * 3 * sizeof(int32_t) <= SIDE_BYTES, "scratch");
_Static_assert(TERN_MATMUL_SCRATCH(32) - EXPANDED_BYTES >= SIDE_BYTES, "scratch");

TERN_INLINE void expand_sub(const struct tern_codes_vnni *f, struct tern_sub s,
                            struct tern_expanded *out)
{
    TERN_UNROLL
    for (unsigned part = 0; part < PARTS; part++) {
        const unsigned row = LANES * part;
        ints w[8];
        f->unpack(s, part, w);
        TERN_UNROLL
        for (int j = 0; j < 8; j++)
            store_ints(out->codes[j][row], w[j]);
        store_floats(out->scale + row, f->scale(s, part));
        if (f->sides == TERN_SIDE_MIN)
            store_floats(out->u.minus_min + row, f->minus_min(s, part));
        if (f->sides == TERN_SIDE_HALVES) {
            floats sc[2];
            f->halves(s, part, sc);
            store_floats(out->u.halves[0] + row, sc[0]);
            store_floats(out->u.halves[1] + row, sc[1]);
        }
    }
}

/* Groups of sub-blocks first .. first + n - 1 of a panel, `step` apart. */
TERN_INLINE void expand(const struct tern_codes_vnni *f, const uint8_t *panel, size_t first,
                        size_t n, struct tern_expanded *out, size_t step)
{
    for (size_t g = first; g < first + n; g++)
        TERN_UNROLL
        for (unsigned e = 0; e < f->period; e++) {
            const struct tern_sub s = {panel + g / f->n_groups * f->block_bytes,
                                       (unsigned)(g % f->n_groups), e};
            expand_sub(f, s, out);
            out += step;
        }
}

/* -zero times the sums of a record, or, where blocks have minimums, d times them. */
static int32_t side_of(enum tern_sides sides, int zero, int32_t sums, float d)
{
    int32_t side = -zero * sums;
    if (sides == TERN_SIDE_MIN) {
        const float x = d * (float)sums;
        memcpy(&side, &x, sizeof side);
    }
    return side;
}

/* What tiles want of some tokens' records beside q. Calls for few panels are common where
 * threads are many, so this is done by vectors; by hand, since compilers make poor ones of it. */
static __attribute__((noinline)) void make_side(enum tern_sides sides, int zero,
                                                const struct tern_acts *a, size_t token,
                                                size_t n_tokens, int32_t *side)
{
    const int16_t *sum = a->sum + 2 * token * a->n_blocks;
    const float *d = a->d + token * a->n_blocks;
    const size_t n = n_tokens * a->n_blocks, words = side_words(sides);
    size_t i = 0;
    for (; sides != TERN_SIDE_HALVES && i + LANES <= n; i += LANES) {
        const int factor = sides == TERN_SIDE_MIN ? 1 : -zero;
        const uint32_t pair = ((uint32_t)factor & 0xffff) * 0x10001u;
        const ints sums = dot_pairs(load_ints(sum + 2 * i), all_ints((int32_t)pair));
        const floats all_d = load_floats(d + i);
        store_pairs(side + words * i, as_ints(all_d),
                    sides == TERN_SIDE_MIN ? as_ints(multiply(all_d, to_floats(sums))) : sums);
    }
    for (; i < n; i++) {
        int32_t first = sum[2 * i], second = sum[2 * i + 1];
        __asm__("" : "+r"(first), "+r"(second)); /* no vectors */
        memcpy(side + words * i + SIDE_D, d + i, sizeof *d);
        if (sides == TERN_SIDE_HALVES) {
            side[words * i + SIDE_SUM] = -zero * first;
            side[words * i + SIDE_SUM_2] = -zero * second;
        } else {
            side[words * i + SIDE_SUM] = side_of(sides, zero, first + second, d[i]);
        }
    }
}

/* One panel, up to FEW_TOKENS tokens: from the at-th on of those that have sides, of which `token`
 * is the first. Codes stay in registers: to write and read them again is dear for so few. */
TERN_INLINE void panel_by_few(const struct tern_codes_vnni *f, const struct tern_matmul *m,
                              size_t p, size_t token, size_t at, size_t n_tokens)
{
    const struct tern_kind kind = {f->sides};
    const struct tern_acts *acts = m->acts;
    const struct tern_tile a = {
        .q = acts->q + TERN_SUB * (token + at) * acts->n_blocks,
        .side = (const int32_t *)(const void *)((char *)m->scratch + EXPANDED_BYTES) +
                side_words(f->sides) * at * acts->n_blocks,
        .n_blocks = acts->n_blocks,
    };
    _Alignas(64) float chains[FEW_TOKENS][TERN_PANEL_ROWS];
    float *dst = m->dst + (token + at) * m->dst_stride + TERN_PANEL_ROWS * p;
    const uint8_t *block = m->panels + p * m->panel_bytes;
    const size_t n_blocks = m->n_cols / (TERN_SUB * f->n_groups * f->period);
    const unsigned bytes = f->block_bytes / f->n_groups;
    copy_chains(chains[0], TERN_PANEL_ROWS, zeros, 0, n_tokens);
    size_t sub = 0;
    for (size_t b = 0; b < n_blocks; b++, block += f->block_bytes)
        for (unsigned g = 0; g < f->n_groups; g++) {
            prefetch(block + g * bytes, PREFETCH_AHEAD, bytes);
            TERN_UNROLL
            for (unsigned e = 0; e < f->period; e++, sub++)
                TERN_UNROLL
                for (unsigned part = 0; part < PARTS; part++) {
                    const struct tern_sub s = {block, g, e};
                    struct tern_held h;
                    f->unpack(s, part, h.w);
                    h.scale = f->scale(s, part);
                    if (f->sides == TERN_SIDE_MIN)
                        h.minus_min = f->minus_min(s, part);
                    if (f->sides == TERN_SIDE_HALVES)
                        f->halves(s, part, h.sc);
                    held_tokens(&kind, &h, &a, sub, n_tokens, chains[0] + LANES * part);
                }
        }
    copy_chains(dst, m->dst_stride, chains[0], TERN_PANEL_ROWS, n_tokens);
}

/* Panels p .. p + n_panels - 1, one or two, and some tokens. A panel alone is the last of an odd
 * number of them where two share tiles, not worth tiles of its own. */
TERN_INLINE void panels_by_many(const struct tern_codes_vnni *f, const struct tern_matmul *m,
                                size_t p, size_t n_panels, size_t token, size_t n_tokens)
{
    const bool by_two = TERN_PAIRS && f->sides != TERN_SIDE_HALVES;
    if (FEW_TOKENS > 1 && (n_tokens < FEW_TOKENS || (by_two && n_panels == 1))) {
        for (size_t at = 0; at < n_tokens; at += FEW_TOKENS)
            panel_by_few(f, m, p, token, at,
                         n_tokens - at < FEW_TOKENS ? n_tokens - at : FEW_TOKENS);
        return;
    }
    const struct tern_acts *a = m->acts;
    const int32_t *side = (const int32_t *)(const void *)((char *)m->scratch + EXPANDED_BYTES);
    const size_t n_groups = m->n_cols / (TERN_SUB * f->period);
    const size_t most = MAX_EXPANDED / n_panels / f->period;
    const size_t n_parts = (n_groups + most - 1) / most;
    const size_t part = (n_groups + n_parts - 1) / n_parts;
    const size_t group_bytes = f->block_bytes / f->n_groups;
    const uint8_t *panel = m->panels + p * m->panel_bytes;
    float *dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * p;
    for (size_t g = 0; g < n_groups; g += part) {
        const size_t n_now = n_groups - g < part ? n_groups - g : part, next = g + n_now;
        const size_t s = g * f->period, i = token * a->n_blocks + s;
        struct tern_expanded *w = m->scratch;
        for (size_t k = 0; k < n_panels; k++)
            expand(f, panel + k * m->panel_bytes, g, n_now, w + k, n_panels);
        const struct tern_tile t = {
            .w = w, .w_step = 1, .n_subs = n_now * f->period, .q = a->q + TERN_SUB * i,
            .side = side + side_words(f->sides) * s,
            .n_blocks = a->n_blocks, .from = g > 0 ? dst : zeros,
            .from_stride = g > 0 ? m->dst_stride : 0, .dst = dst, .dst_stride = m->dst_stride,
            .ahead = next < n_groups ? panel + next * group_bytes
                                     : panel + n_panels * m->panel_bytes,
            .ahead_bytes = n_now * group_bytes, .panel_bytes = m->panel_bytes,
        };
        if (by_two || n_panels == 2)
            tiles_of_pair(f->sides, t, n_tokens);
        else
            (f->sides == TERN_SIDE_ZERO  ? tiles_zero
             : f->sides == TERN_SIDE_MIN ? tiles_min
                                         : tiles_halves)(&t, n_tokens);
    }
}

/* So many tokens at once as fill tiles, as even as can be, and caches and scratch hold. */
TERN_INLINE size_t group_tokens(enum tern_sides sides, size_t n_cols, size_t n_tokens)
{
    const bool halves = sides == TERN_SIDE_HALVES;
    const size_t tile = halves ? TILE_TOKENS_HALVES : TILE_TOKENS;
    const size_t most = halves ? GROUP_TOKENS_HALVES : GROUP_TOKENS;
    size_t fit = GROUP_BYTES / n_cols < 48 ? 48 : GROUP_BYTES / n_cols;
    fit = fit < most ? fit : most;
    const size_t n_groups = (n_tokens + fit - 1) / fit;
    return ((n_tokens + n_groups - 1) / n_groups + tile - 1) / tile * tile;
}

TERN_INLINE void matmul_codes(const struct tern_codes_vnni *f, const struct tern_matmul *m,
                              size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens, end = first + n;
    if (n_tokens == 1) {
        for (size_t p = first; p < end; p++)
            panel_by_1(f, m, m->panels + p * m->panel_bytes, m->dst + TERN_PANEL_ROWS * p);
        return;
    }
    int32_t *side = (int32_t *)(void *)((char *)m->scratch + EXPANDED_BYTES);
    const size_t group = group_tokens(f->sides, m->n_cols, n_tokens);
    for (size_t t = 0; t < n_tokens; t += group) {
        const size_t n_now = n_tokens - t < group ? n_tokens - t : group;
        make_side(f->sides, f->zero, m->acts, t, n_now, side);
        const bool pairs = TERN_PAIRS && n_now >= PAIRS_FROM;
        for (size_t p = first, n_panels; p < end; p += n_panels) {
            n_panels = pairs && end - p > 1 ? 2 : 1;
            panels_by_many(f, m, p, n_panels, t, n_now);
        }
    }
}

/* --- types without a kernel of their own --- */

enum { CODES_SUBS = 8 }; /* blocks of 32 k that are held */
_Static_assert(CODES_SUBS * (sizeof(struct tern_panel_codes) + sizeof(struct tern_expanded)) <=
               EXPANDED_BYTES, "scratch");

static void expand_codes(const struct tern_panel_codes *c, struct tern_expanded *w)
{
    for (unsigned part = 0; part < PARTS; part++) {
        const unsigned row = LANES * part;
        const ints pairs = load_ints(c->sc[row]);
        for (int j = 0; j < 8; j++)
            store_ints(w->codes[j][row], differing(load_ints(c->q[j][row]), all_bytes(0x80)));
        store_floats(w->scale + row, load_floats(c->scale + row));
        store_floats(w->u.halves[0] + row, to_floats(first_of_pairs(pairs)));
        store_floats(w->u.halves[1] + row, to_floats(second_of_pairs(pairs)));
    }
}

/* The format's own function turns blocks into codes, once for a group of tokens. */
static void codes_many(const struct tern_matmul *m, size_t p, size_t token, size_t n_tokens)
{
    const struct tern_acts *a = m->acts;
    struct tern_panel_codes *c = m->scratch;
    struct tern_expanded *w = (void *)(c + CODES_SUBS);
    const int32_t *side = (const int32_t *)(const void *)((char *)m->scratch + EXPANDED_BYTES);
    const size_t n_subs = m->n_cols / TERN_SUB, each = m->format->n_elems / TERN_SUB;
    const size_t block_bytes = (size_t)TERN_PANEL_ROWS * m->format->n_bytes;
    float *dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * p;
    for (size_t s = 0; s < n_subs; s += CODES_SUBS) {
        const size_t n = n_subs - s < CODES_SUBS ? n_subs - s : CODES_SUBS;
        const size_t i = token * a->n_blocks + s;
        for (size_t k = 0; k < n; k += each)
            tern_panel_block_to_codes(m->format, m->panels + p * m->panel_bytes +
                                      (s + k) / each * block_bytes, c + k);
        for (size_t k = 0; k < n; k++)
            expand_codes(c + k, w + k);
        const struct tern_tile t = {
            .w = w, .w_step = 1, .n_subs = n, .q = a->q + TERN_SUB * i,
            .side = side + side_words(TERN_SIDE_HALVES) * s, .n_blocks = a->n_blocks,
            .from = s > 0 ? dst : zeros, .from_stride = s > 0 ? m->dst_stride : 0, .dst = dst,
            .dst_stride = m->dst_stride,
        };
        tiles_halves(&t, n_tokens);
    }
}

/* No type with minimums comes here: each has a kernel of its own. */
TERN_INLINE void matmul_any(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->format->has_min) {
        tern_matmul_codes_ref(m, first, n);
        return;
    }
    const size_t n_tokens = m->acts->n_tokens;
    const size_t group = group_tokens(TERN_SIDE_HALVES, m->n_cols, n_tokens);
    int32_t *side = (int32_t *)(void *)((char *)m->scratch + EXPANDED_BYTES);
    for (size_t t = 0; t < n_tokens; t += group) {
        const size_t n_now = n_tokens - t < group ? n_tokens - t : group;
        make_side(TERN_SIDE_HALVES, 128, m->acts, t, n_now, side);
        for (size_t p = first; p < first + n; p++)
            codes_many(m, p, t, n_now);
    }
}

#endif
