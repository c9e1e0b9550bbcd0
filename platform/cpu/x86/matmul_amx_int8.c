/* matmul_amx_int8.c: integer matrix products of 16 tokens and more, on AMX tiles.
 *
 * tdpbssd multiplies a tile of 16 tokens by 64 bytes of their records with a tile of 64 k by 16
 * rows, whose line j holds k = 4 j .. 4 j + 3 of each row: eight lines are what a panel's block
 * of 32 k becomes when it is unpacked. Integers of one block at a time are wanted, since each is
 * multiplied by a scale of its own, so half of the weights' tile is zeros. That wastes no time:
 * what bounds a block is its conversion, scale and fma, three operations for 16 rows of a token,
 * as everywhere, and not the tiles. Where minimums or a second scale come to these, tiles win
 * nothing, and such types are left to AVX-512 VNNI.
 *
 * Four tiles of weights stay in registers while all tokens pass, sixteen at a time, whose chains
 * are kept in the scratch. Products of a step (two tiles) are made one step before the chains
 * take them, so that their latency is hidden. Tokens past a multiple of 16 are the last 16 once
 * more: what is computed twice is the same.
 *
 * Codes are signed here, their zero point is gone before they are stored. Calls with fewer
 * tokens are those of AVX-512 VNNI. */
#include "platform/cpu/x86/lanes_avx512_vnni.h"

#include "platform/cpu/x86/types_vnni.h"
#include "platform/cpu/x86/x86.h"

_Static_assert(PARTS == 1, "a panel is one register");

enum {
    STRIP = 16,         /* tokens of a tile */
    MOST_TOKENS = 128,  /* of a group: they pass a panel together */
    EXPANDED_SUBS = 4,  /* sub-blocks unpacked at a time */
    TILE_BYTES = 1024,
    GROUP_BYTES = 1024 * 1024, /* activations of a group should stay in the second cache */
};

/* What lies in the scratch. A sub-block's codes are 8 lines, zeros follow up to the next's: a
 * tile that begins 8 lines before them has them at the lines of a record's second 32 k. */
struct tern_room {
    uint8_t codes[EXPANDED_SUBS][TILE_BYTES];
    int32_t dots[2][2][STRIP][TERN_PANEL_ROWS]; /* of two steps */
    float chains[MOST_TOKENS][TERN_PANEL_ROWS];
    float scale[EXPANDED_SUBS][TERN_PANEL_ROWS];
    /* Records' last 32 bytes, where no 64 are left; what a tile reads behind them meets zeros. */
    int8_t last[MOST_TOKENS + 1][TERN_SUB];
};
_Static_assert(sizeof(struct tern_room) <= TERN_MATMUL_SCRATCH(32), "scratch");

/* --- unpacking --- */

TERN_INLINE void expand_sub(const struct tern_codes_vnni *f, struct tern_sub s, size_t i,
                            struct tern_room *room)
{
    ints w[8];
    f->unpack(s, 0, w);
    TERN_UNROLL
    for (int j = 0; j < 8; j++) {
        if (f->zero == 128)
            w[j] = differing(w[j], all_bytes(0x80));
        else if (f->zero)
            w[j] = minus_bytes(w[j], all_bytes(f->zero));
        store_ints(room->codes[i] + 64 * j, w[j]);
    }
    store_floats(room->scale[i], f->scale(s, 0));
}

/* Sub-blocks sub .. sub + n - 1 of a panel; sub is a multiple of EXPANDED_SUBS. */
TERN_INLINE void expand(const struct tern_codes_vnni *f, const uint8_t *panel, size_t sub,
                        size_t n, struct tern_room *room)
{
    for (size_t i = 0; i < n; i += f->period) {
        const size_t g = (sub + i) / f->period;
        const uint8_t *block = panel + g / f->n_groups * f->block_bytes;
        TERN_UNROLL
        for (unsigned e = 0; e < f->period; e++)
            expand_sub(f, (struct tern_sub){block, (unsigned)(g % f->n_groups), e}, i + e, room);
    }
}

typedef void expand_fn(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room);

/* --- tiles --- */

/* All tiles have 16 lines of 64 bytes: 0 and 1 are sums, 2 and 3 activations, 4 to 7 weights. */
struct tern_tile_shapes {
    uint8_t palette, start;
    uint8_t reserved[14];
    uint16_t line_bytes[16];
    uint8_t n_lines[16];
};
static const struct tern_tile_shapes shapes = {
    .palette = 1,
    .line_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .n_lines = {16, 16, 16, 16, 16, 16, 16, 16},
};

/* Tiles of the sub-blocks that are unpacked; two make up 64 k. */
TERN_INLINE void load_weights(const struct tern_room *room)
{
    enum { BEFORE = TILE_BYTES / 2 };
    __asm__ volatile("" ::: "memory"); /* the compiler does not know that tiles read memory */
    _tile_loadd(4, room->codes[0], 64);
    _tile_loadd(5, room->codes[1] - BEFORE, 64);
    _tile_loadd(6, room->codes[2], 64);
    _tile_loadd(7, room->codes[3] - BEFORE, 64);
}

/* 16 tokens' records times the two tiles of a step. */
TERN_INLINE void multiply_step(int step, const int8_t *q, size_t stride,
                               int32_t dots[2][STRIP][TERN_PANEL_ROWS])
{
    _tile_zero(0);
    _tile_zero(1);
    if (step == 0) {
        _tile_loadd(2, q, stride);
        _tile_dpbssd(0, 2, 4);
        _tile_dpbssd(1, 2, 5);
    } else {
        _tile_loadd(3, q, stride);
        _tile_dpbssd(0, 3, 6);
        _tile_dpbssd(1, 3, 7);
    }
    _tile_stored(0, dots[0], 64);
    _tile_stored(1, dots[1], 64);
}

/* --- chains --- */

/* Some tokens, and the sub-blocks that are unpacked: sub .. sub + n - 1 of n_subs. */
struct tern_pass {
    struct tern_room *room;
    const int8_t *q;
    const float *d;
    size_t n_blocks; /* the stride of both */
    size_t n_tokens, sub, n;
};

/* Where four times four tokens have their d. The compiler must not know how they lie to each
 * other: it would keep sixteen pointers. */
struct tern_at { const float *d[4]; };

TERN_INLINE struct tern_at strip_at(const struct tern_pass *p, size_t token)
{
    struct tern_at at;
    TERN_UNROLL
    for (size_t g = 0; g < 4; g++) {
        at.d[g] = p->d + (token + 4 * g) * p->n_blocks + p->sub;
        __asm__("" : "+r"(at.d[g]));
    }
    return at;
}

/* The chains of 16 tokens go n sub-blocks on, whose sums are `dots`. */
TERN_INLINE void chain_step(const struct tern_pass *p, size_t first, size_t n,
                            int32_t dots[2][STRIP][TERN_PANEL_ROWS], struct tern_at *at,
                            floats acc[STRIP])
{
    for (size_t k = 0; k < n; k++) {
        const floats scale = load_floats(p->room->scale[first + k]);
        TERN_UNROLL
        for (size_t t = 0; t < STRIP; t++) {
            const floats d = all_floats(at->d[t / 4][t % 4 * p->n_blocks]);
            acc[t] = fused(to_floats(load_ints(dots[k][t])), multiply(scale, d), acc[t]);
        }
        TERN_UNROLL
        for (size_t g = 0; g < 4; g++)
            at->d[g]++;
    }
}

TERN_INLINE size_t strip_token(const struct tern_pass *p, size_t strip)
{
    const size_t token = STRIP * strip;
    return token + STRIP <= p->n_tokens ? token : p->n_tokens - STRIP;
}

/* Records of a pair of sub-blocks, from the group's first token on. */
struct tern_pair { const int8_t *q; size_t stride; };

TERN_INLINE struct tern_pair pair_at(const struct tern_pass *p, size_t first)
{
    if (first + 2 <= p->n)
        return (struct tern_pair){p->q + TERN_SUB * (p->sub + first), TERN_SUB * p->n_blocks};
    return (struct tern_pair){p->room->last[0], sizeof p->room->last[0]};
}

/* All tokens by the sub-blocks that are unpacked: two steps of one pair each. */
static __attribute__((noinline)) void all_strips(const struct tern_pass *p)
{
    const size_t n_first = p->n < 2 ? p->n : 2, n_second = p->n - n_first;
    const size_t n_strips = (p->n_tokens + STRIP - 1) / STRIP;
    struct tern_room *room = p->room;
    const struct tern_pair a = pair_at(p, 0), b = pair_at(p, 2);
    load_weights(room);
    multiply_step(0, a.q, a.stride, room->dots[0]);
    for (size_t s = 0; s < n_strips; s++) {
        const size_t token = strip_token(p, s);
        struct tern_at at = strip_at(p, token);
        floats acc[STRIP];
        if (n_second)
            multiply_step(1, b.q + token * b.stride, b.stride, room->dots[1]);
        TERN_UNROLL
        for (size_t t = 0; t < STRIP; t++)
            acc[t] = load_floats(room->chains[STRIP * s + t]);
        chain_step(p, 0, n_first, room->dots[0], &at, acc);
        if (s + 1 < n_strips)
            multiply_step(0, a.q + strip_token(p, s + 1) * a.stride, a.stride, room->dots[0]);
        if (n_second)
            chain_step(p, 2, n_second, room->dots[1], &at, acc);
        TERN_UNROLL
        for (size_t t = 0; t < STRIP; t++)
            store_floats(room->chains[STRIP * s + t], acc[t]);
    }
}

/* --- matrices --- */

static void panel_by_many(expand_fn *unpack, const struct tern_matmul *m,
                          struct tern_pass p, size_t panel, float *dst)
{
    const uint8_t *w = m->panels + panel * m->panel_bytes;
    const size_t n_subs = m->n_cols / TERN_SUB, sub_bytes = m->panel_bytes / n_subs;
    const size_t n_chains = (p.n_tokens + STRIP - 1) / STRIP * STRIP;
    memset(p.room->chains, 0, n_chains * sizeof *p.room->chains);
    for (p.sub = 0; p.sub < n_subs; p.sub += EXPANDED_SUBS) {
        p.n = n_subs - p.sub < EXPANDED_SUBS ? n_subs - p.sub : EXPANDED_SUBS;
        unpack(w, p.sub, p.n, p.room);
        prefetch(w, (p.sub + 2 * EXPANDED_SUBS) * sub_bytes, EXPANDED_SUBS * sub_bytes);
        all_strips(&p);
    }
    for (size_t s = 0; STRIP * s < p.n_tokens; s++)
        for (size_t t = 0; t < STRIP; t++)
            store_floats(dst + (strip_token(&p, s) + t) * m->dst_stride + TERN_PANEL_ROWS * panel,
                         load_floats(p.room->chains[STRIP * s + t]));
}

/* What passes want of tokens token .. token + n - 1. */
static struct tern_pass prepare(const struct tern_matmul *m, size_t token, size_t n)
{
    const struct tern_acts *a = m->acts;
    const size_t i = token * a->n_blocks, n_subs = m->n_cols / TERN_SUB;
    struct tern_pass p = {
        .room = m->scratch, .q = a->q + TERN_SUB * i, .d = a->d + i,
        .n_blocks = a->n_blocks, .n_tokens = n,
    };
    for (size_t t = 0; n_subs % 2 && t < n; t++)
        memcpy(p.room->last[t], p.q + TERN_SUB * (t * a->n_blocks + n_subs - 1), TERN_SUB);
    return p;
}

/* So many tokens at once as caches and scratch hold, as even as can be. */
static size_t group_tokens(size_t n_cols, size_t n_tokens)
{
    size_t fit = GROUP_BYTES / n_cols < 64 ? 64 : GROUP_BYTES / n_cols / STRIP * STRIP;
    fit = fit < MOST_TOKENS ? fit : MOST_TOKENS;
    const size_t n_groups = (n_tokens + fit - 1) / fit;
    return ((n_tokens + n_groups - 1) / n_groups + STRIP - 1) / STRIP * STRIP;
}

static void by_tiles(expand_fn *unpack, const struct tern_matmul *m, size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens, group = group_tokens(m->n_cols, n_tokens);
    struct tern_room *room = m->scratch;
    memset(room->codes, 0, sizeof room->codes);
    _tile_loadconfig(&shapes);
    for (size_t t = 0; t < n_tokens; t += group) {
        const size_t left = n_tokens - t, now = left < group ? left : group;
        const size_t token = now < STRIP ? n_tokens - STRIP : t;
        const struct tern_pass p = prepare(m, token, now < STRIP ? STRIP : now);
        for (size_t panel = first; panel < first + n; panel++)
            panel_by_many(unpack, m, p, panel, m->dst + token * m->dst_stride);
    }
    _tile_release(); /* tiles in use would be saved at each switch of threads */
}

/* --- types --- */

static void expand_q4_0(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&q4_0, panel, sub, n, room);
}

void tern_matmul_q4_0_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_q4_0_avx512_vnni(m, first, n);
    else
        by_tiles(expand_q4_0, m, first, n);
}

static void expand_q5_0(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&q5_0, panel, sub, n, room);
}

void tern_matmul_q5_0_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_q5_0_avx512_vnni(m, first, n);
    else
        by_tiles(expand_q5_0, m, first, n);
}

static void expand_q8_0(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&q8_0, panel, sub, n, room);
}

void tern_matmul_q8_0_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_q8_0_avx512_vnni(m, first, n);
    else
        by_tiles(expand_q8_0, m, first, n);
}

static void expand_iq4_nl(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&iq4_nl, panel, sub, n, room);
}

void tern_matmul_iq4_nl_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_iq4_nl_avx512_vnni(m, first, n);
    else
        by_tiles(expand_iq4_nl, m, first, n);
}

static void expand_iq4_xs(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&iq4_xs, panel, sub, n, room);
}

void tern_matmul_iq4_xs_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_iq4_xs_avx512_vnni(m, first, n);
    else
        by_tiles(expand_iq4_xs, m, first, n);
}

static void expand_mxfp4(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&mxfp4, panel, sub, n, room);
}

void tern_matmul_mxfp4_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_mxfp4_avx512_vnni(m, first, n);
    else
        by_tiles(expand_mxfp4, m, first, n);
}

static void expand_tq2_0(const uint8_t *panel, size_t sub, size_t n, struct tern_room *room)
{
    expand(&tq2_0, panel, sub, n, room);
}

void tern_matmul_tq2_0_amx_int8(const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens < STRIP)
        tern_matmul_tq2_0_avx512_vnni(m, first, n);
    else
        by_tiles(expand_tq2_0, m, first, n);
}
