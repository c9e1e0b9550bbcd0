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
 * One token: codes are unpacked in registers and used once. Many: some blocks of a panel are
 * unpacked into the scratch and serve tiles of rows by tokens, whose chains rest in dst between
 * the parts of a panel. Tiles know three kinds of sides, not the types, so that all types share
 * their code.
 *
 * Whoever includes this has included the words for one width, lanes_*.h. */
#ifndef TERN_CPU_MATMUL_VNNI_H
#define TERN_CPU_MATMUL_VNNI_H

#include "platform/cpu/x86/types_vnni.h"

enum { MAX_TILE_TOKENS = 12 };

/* --- one token --- */

enum { PREFETCH_AHEAD = 4096 };

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

/* A sub-block of a panel as tiles want it: codes[j][r][b] is element 4 j + b of row r. */
struct tern_expanded {
    uint8_t codes[8][TERN_PANEL_ROWS][4];
    float scale[TERN_PANEL_ROWS];
    union {
        float minus_min[TERN_PANEL_ROWS];
        float halves[2][TERN_PANEL_ROWS];
    } u;
};

enum {
    EXPANDED_BYTES = 20480,
    MAX_EXPANDED = EXPANDED_BYTES / sizeof(struct tern_expanded) / 4 * 4,
    SIDE_BYTES = 1088, /* of the scratch, for each block of 32 columns */
    /* Activations of a group of tokens should stay in the second cache while panels pass: CPUs
     * with these instructions have 1 MB and more of it, and threads of a core share them. */
    GROUP_BYTES = 1024 * 1024, GROUP_TOKENS = 132, GROUP_TOKENS_HALVES = 80,
};
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

/* Groups of sub-blocks first .. first + n - 1 of a panel. */
TERN_INLINE void expand(const struct tern_codes_vnni *f, const uint8_t *panel, size_t first,
                        size_t n, struct tern_expanded *out)
{
    for (size_t g = first; g < first + n; g++)
        TERN_UNROLL
        for (unsigned e = 0; e < f->period; e++) {
            const struct tern_sub s = {panel + g / f->n_groups * f->block_bytes,
                                       (unsigned)(g % f->n_groups), e};
            expand_sub(f, s, out++);
        }
}

/* Minimums of a sub-block that has two of them, for types without a kernel of their own. */
struct tern_mins {
    float minus_min[TERN_PANEL_ROWS];
    int16_t m[TERN_PANEL_ROWS][2];
};

/* What the record says of a block of one token, beside its q, as tiles want it: d, then -zero *
 * sum, or d * sum as float, or -zero times the sums of both halves. */
enum { SIDE_D = 0, SIDE_SUM = 1, SIDE_SUM_2 = 2 };

TERN_INLINE size_t side_words(enum tern_sides sides)
{
    return sides == TERN_SIDE_HALVES ? 3 : 2;
}

/* What a tile takes and gives, from its first token and sub-block on. n_blocks is the stride of
 * the record. */
struct tern_tile {
    const struct tern_expanded *w;
    const struct tern_mins *mins; /* of a kind that has them; others do not use sum */
    size_t n_subs;
    const int8_t *q;
    const int16_t *sum;
    const int32_t *side;
    size_t n_blocks;
    const float *from; /* where the chains go on from, dst or zeros */
    size_t from_stride;
    float *dst;
    size_t dst_stride;
};

/* What a tile does, constant wherever it is inlined. */
struct tern_kind { enum tern_sides sides; bool has_mins; };

/* Where a token's operands are. The compiler must not know how tokens lie to each other: it
 * would keep many differences where a few pointers do. */
struct tern_at { const int8_t *q; const int32_t *side; const int16_t *sum; };

TERN_INLINE struct tern_at token_at(const struct tern_kind *k, const struct tern_tile *a, size_t t)
{
    const size_t i = t * a->n_blocks;
    struct tern_at at = {a->q + TERN_SUB * i, a->side + side_words(k->sides) * i, a->sum + 2 * i};
    __asm__("" : "+r"(at.q), "+r"(at.side));
    return at;
}

/* sum += code * q over j0 .. j0 + n - 1 for n_tokens tokens and all rows. */
TERN_INLINE void tile_dots(const struct tern_expanded *w, const struct tern_at *at,
                           size_t n_tokens, size_t j0, size_t n, ints sum[][PARTS])
{
    TERN_UNROLL
    for (size_t j = j0; j < j0 + n; j++) {
        ints x[PARTS];
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            x[part] = load_ints(w->codes[j][LANES * part]);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++)
            dot_4_all(sum[t], x, at[t].q + 4 * j);
    }
}

/* One sub-block with two scales. */
TERN_INLINE void tile_halves(const struct tern_expanded *w, const struct tern_at *at,
                             size_t n_tokens, floats whole[][PARTS])
{
    TERN_UNROLL
    for (size_t h = 0; h < 2; h++) {
        ints dot[MAX_TILE_TOKENS][PARTS];
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++)
            TERN_UNROLL
            for (unsigned part = 0; part < PARTS; part++)
                dot[t][part] = broadcast_4(at[t].side + (h ? SIDE_SUM_2 : SIDE_SUM));
        tile_dots(w, at, n_tokens, 4 * h, 4, dot);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++)
            TERN_UNROLL
            for (unsigned part = 0; part < PARTS; part++) {
                const floats x = to_floats(dot[t][part]);
                const floats sc = load_floats(w->u.halves[h] + LANES * part);
                whole[t][part] = h ? fused(x, sc, whole[t][part]) : multiply(x, sc);
            }
    }
}

/* One sub-block with one scale. */
TERN_INLINE void tile_whole(const struct tern_kind *k, const struct tern_expanded *w,
                            const struct tern_at *at, size_t n_tokens, floats whole[][PARTS])
{
    ints dot[MAX_TILE_TOKENS][PARTS];
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++)
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            dot[t][part] = k->sides == TERN_SIDE_ZERO ? broadcast_4(at[t].side + SIDE_SUM)
                                                      : all_ints(0);
    tile_dots(w, at, n_tokens, 0, 8, dot);
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++)
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            whole[t][part] = to_floats(dot[t][part]);
}

/* The chain of one token and part goes a step on. */
TERN_INLINE floats tile_step(const struct tern_kind *k, const struct tern_expanded *w,
                             const struct tern_mins *m, struct tern_at at, unsigned row,
                             floats whole, floats acc)
{
    const floats d = as_floats(broadcast_4(at.side + SIDE_D));
    acc = fused(whole, multiply(load_floats(w->scale + row), d), acc);
    if (k->sides == TERN_SIDE_MIN)
        acc = fused(load_floats(w->u.minus_min + row), as_floats(broadcast_4(at.side + SIDE_SUM)),
                    acc);
    if (k->has_mins) {
        const ints sums = dot_pairs(load_ints(m->m[row]), broadcast_4(at.sum));
        acc = fused(load_floats(m->minus_min + row), multiply(d, to_floats(sums)), acc);
    }
    return acc;
}

/* n_subs expanded sub-blocks for some tokens. */
TERN_INLINE void tile(const struct tern_kind *k, const struct tern_tile *a, size_t n_tokens)
{
    floats acc[MAX_TILE_TOKENS][PARTS];
    struct tern_at at[MAX_TILE_TOKENS];
    const struct tern_expanded *w = a->w, *end = w + a->n_subs;
    const struct tern_mins *mins = a->mins;
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++) {
        at[t] = token_at(k, a, t);
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            acc[t][part] = load_floats(a->from + t * a->from_stride + LANES * part);
    }
    for (; w < end; w++, mins++) {
        floats whole[MAX_TILE_TOKENS][PARTS];
        if (k->sides == TERN_SIDE_HALVES)
            tile_halves(w, at, n_tokens, whole);
        else
            tile_whole(k, w, at, n_tokens, whole);
        TERN_UNROLL
        for (size_t t = 0; t < n_tokens; t++) {
            TERN_UNROLL
            for (unsigned part = 0; part < PARTS; part++)
                acc[t][part] = tile_step(k, w, mins, at[t], LANES * part, whole[t][part],
                                         acc[t][part]);
            at[t].q += TERN_SUB;
            at[t].side += side_words(k->sides);
            at[t].sum += 2;
            __asm__("" : "+r"(at[t].q));
        }
    }
    TERN_UNROLL
    for (size_t t = 0; t < n_tokens; t++)
        TERN_UNROLL
        for (unsigned part = 0; part < PARTS; part++)
            store_floats(a->dst + t * a->dst_stride + LANES * part, acc[t][part]);
}

/* Tiles as even as can be: 13 tokens are better 7 and 6 than 12 and 1. */
TERN_INLINE void tiles(const struct tern_kind *k, struct tern_tile a, size_t n_tokens)
{
    const size_t most = k->sides == TERN_SIDE_HALVES ? TILE_TOKENS_HALVES : TILE_TOKENS;
    while (n_tokens > 0) {
        const size_t n_tiles = (n_tokens + most - 1) / most;
        const size_t n = (n_tokens + n_tiles - 1) / n_tiles;
        switch (n) {
        case 1: tile(k, &a, 1); break;
        case 2: tile(k, &a, 2); break;
        case 3: tile(k, &a, 3); break;
        case 4: tile(k, &a, 4); break;
        case 5: if (most >= 5) tile(k, &a, 5); break;
        case 6: if (most >= 6) tile(k, &a, 6); break;
        case 7: if (most >= 7) tile(k, &a, 7); break;
        case 8: if (most >= 8) tile(k, &a, 8); break;
        case 9: if (most >= 9) tile(k, &a, 9); break;
        case 10: if (most >= 10) tile(k, &a, 10); break;
        case 11: if (most >= 11) tile(k, &a, 11); break;
        case 12: if (most >= 12) tile(k, &a, 12); break;
        default: break;
        }
        a.q += n * TERN_SUB * a.n_blocks;
        a.sum += 2 * n * a.n_blocks;
        a.side += n * side_words(k->sides) * a.n_blocks;
        a.from += n * a.from_stride;
        a.dst += n * a.dst_stride;
        n_tokens -= n;
    }
}

/* Compiled once for each kind, whatever the types. */
static __attribute__((noinline)) void tiles_zero(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_ZERO, false};
    tiles(&kind, *a, n_tokens);
}

static __attribute__((noinline)) void tiles_min(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_MIN, false};
    tiles(&kind, *a, n_tokens);
}

static __attribute__((noinline)) void tiles_halves(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_HALVES, false};
    tiles(&kind, *a, n_tokens);
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

/* Chains of a panel begin here, all tokens' alike. */
static const float zeros[TERN_PANEL_ROWS];

/* One panel, some tokens. */
TERN_INLINE void panel_by_many(const struct tern_codes_vnni *f, const struct tern_matmul *m,
                               size_t p, size_t token, size_t n_tokens)
{
    const struct tern_acts *a = m->acts;
    const int32_t *side = (const int32_t *)(const void *)((char *)m->scratch + EXPANDED_BYTES);
    const size_t n_groups = m->n_cols / (TERN_SUB * f->period);
    const size_t n_parts = (n_groups * f->period + MAX_EXPANDED - 1) / MAX_EXPANDED;
    const size_t part = (n_groups + n_parts - 1) / n_parts;
    const size_t group_bytes = f->block_bytes / f->n_groups;
    const uint8_t *panel = m->panels + p * m->panel_bytes;
    float *dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * p;
    for (size_t g = 0; g < n_groups; g += part) {
        const size_t n_now = n_groups - g < part ? n_groups - g : part;
        const size_t s = g * f->period, i = token * a->n_blocks + s;
        expand(f, panel, g, n_now, m->scratch);
        prefetch(panel, (g + n_now) * group_bytes, n_now * group_bytes);
        const struct tern_tile t = {
            .w = m->scratch, .n_subs = n_now * f->period, .q = a->q + TERN_SUB * i,
            .sum = a->sum + 2 * i, .side = side + side_words(f->sides) * s,
            .n_blocks = a->n_blocks, .from = g > 0 ? dst : zeros,
            .from_stride = g > 0 ? m->dst_stride : 0, .dst = dst, .dst_stride = m->dst_stride,
        };
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

/* Where others share panel_by_many of a type, it is one function; else NULL, and it lies here. */
typedef void panel_by_many_fn(const struct tern_matmul *m, size_t p, size_t token,
                              size_t n_tokens);

TERN_INLINE void matmul_codes(const struct tern_codes_vnni *f, panel_by_many_fn *panel,
                              const struct tern_matmul *m, size_t first, size_t n)
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
        for (size_t p = first; p < end; p++)
            if (panel)
                panel(m, p, t, n_now);
            else
                panel_by_many(f, m, p, t, n_now);
    }
}

/* --- types without a kernel of their own --- */

enum { CODES_SUBS = 8 }; /* blocks of 32 k that are held */
_Static_assert(CODES_SUBS * (sizeof(struct tern_panel_codes) + sizeof(struct tern_expanded) +
                             sizeof(struct tern_mins)) <= EXPANDED_BYTES, "scratch");

static void expand_codes(const struct tern_panel_codes *c, struct tern_expanded *w,
                         struct tern_mins *mins)
{
    for (unsigned part = 0; part < PARTS; part++) {
        const unsigned row = LANES * part;
        const ints pairs = load_ints(c->sc[row]);
        for (int j = 0; j < 8; j++)
            store_ints(w->codes[j][row], differing(load_ints(c->q[j][row]), all_bytes(0x80)));
        store_floats(w->scale + row, load_floats(c->scale + row));
        store_floats(w->u.halves[0] + row, to_floats(first_of_pairs(pairs)));
        store_floats(w->u.halves[1] + row, to_floats(second_of_pairs(pairs)));
        store_floats(mins->minus_min + row, negate(load_floats(c->min + row)));
        store_ints(mins->m[row], load_ints(c->m[row]));
    }
}

static __attribute__((noinline)) void tiles_mins(const struct tern_tile *a, size_t n_tokens)
{
    static const struct tern_kind kind = {TERN_SIDE_HALVES, true};
    tiles(&kind, *a, n_tokens);
}

/* The format's own function turns blocks into codes, once for a group of tokens. */
static void codes_many(const struct tern_matmul *m, size_t p, size_t token, size_t n_tokens)
{
    const struct tern_acts *a = m->acts;
    struct tern_panel_codes *c = m->scratch;
    struct tern_expanded *w = (void *)(c + CODES_SUBS);
    struct tern_mins *mins = (void *)(w + CODES_SUBS);
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
            expand_codes(c + k, w + k, mins + k);
        const struct tern_tile t = {
            .w = w, .mins = mins, .n_subs = n, .q = a->q + TERN_SUB * i, .sum = a->sum + 2 * i,
            .side = side + side_words(TERN_SIDE_HALVES) * s, .n_blocks = a->n_blocks,
            .from = s > 0 ? dst : zeros, .from_stride = s > 0 ? m->dst_stride : 0, .dst = dst,
            .dst_stride = m->dst_stride,
        };
        (m->format->has_min ? tiles_mins : tiles_halves)(&t, n_tokens);
    }
}

TERN_INLINE void matmul_any(const struct tern_matmul *m, size_t first, size_t n)
{
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
