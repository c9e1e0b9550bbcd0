/* ahead_x86.h: scores ask for what is read behind the keys, a few lines at a time, since a core
 * waits when it asks for more at once than it can await. Intrinsics are brought by whoever includes
 * this: emulated ones are no header of the compiler's. */
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

#endif
