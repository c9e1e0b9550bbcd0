/* ahead_x86.h: scores ask for what is read behind the keys, and values for what is read behind
 * them, a few lines at a time: a core waits when it asks for more at once than it can await. All
 * of it goes to the first cache: what has to come from the second waits behind what is asked for.
 * Intrinsics are brought by whoever includes this: emulated ones are no header of a compiler. */
#ifndef TERN_CPU_AHEAD_X86_H
#define TERN_CPU_AHEAD_X86_H

#include "platform/cpu/kernels.h"

/* Bytes of each of n_parts, whole lines. */
static inline size_t ahead_share(const struct tern_scores *s, size_t n_parts)
{
    return ((s->ahead_bytes + 63) / 64 + n_parts - 1) / n_parts * 64;
}

/* Part `part` of what is read behind the keys of block b: its values. Always inline: GCC takes a
 * function that only prefetches for one that does nothing, and drops the call. */
static inline __attribute__((always_inline)) void look_ahead(const struct tern_scores *s, size_t b,
                                                             size_t part, size_t share)
{
    const char *ahead = s->ahead ? (const char *)s->ahead[b] : NULL;
    const size_t end = (part + 1) * share < s->ahead_bytes ? (part + 1) * share : s->ahead_bytes;
    for (size_t i = part * share; ahead && i < end; i += 64)
        _mm_prefetch(ahead + i, _MM_HINT_T0);
}

/* What is read after a chunk's values, the next chunk's keys: asked for evenly by all tiles that
 * run over the chunk's tokens. */
struct look {
    const uint8_t *const *block; /* [16] or NULL */
    size_t n_lines, done, share; /* lines of a block: all, asked for, at a time */
};

/* A tile has some sums, of so many dims each; that tells how many tiles there are. */
static inline struct look look_of(const struct tern_values *v, size_t dims_of_tile)
{
    const size_t n_lines = v->ahead ? (v->ahead_bytes + 63) / 64 : 0;
    const size_t n_tiles = v->n_rows * v->dim / dims_of_tile;
    return (struct look){v->ahead, n_lines, 0,
                         n_tiles ? (n_lines + n_tiles - 1) / n_tiles : n_lines};
}

/* A tile's share, which the tile asks for with tokens of block after block. */
static inline struct look look_on(struct look *l)
{
    struct look now = *l;
    l->done = now.done + now.share < now.n_lines ? now.done + now.share : now.n_lines;
    now.n_lines = l->done;
    return now;
}

static inline __attribute__((always_inline)) void look_after(const struct look *l, size_t b)
{
    for (size_t i = l->done; i < l->n_lines && l->block[b]; i++)
        _mm_prefetch((const char *)l->block[b] + 64 * i, _MM_HINT_T0);
}

#endif
