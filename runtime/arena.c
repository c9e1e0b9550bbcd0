#include "runtime/arena.h"

#include <string.h>

struct tern_arena tern_arena_measure(void)
{
    return (struct tern_arena){.base = NULL, .size = SIZE_MAX};
}

struct tern_arena tern_arena_over(void *mem, size_t size)
{
    return (struct tern_arena){.base = mem, .size = size};
}

void *tern_carve_raw(struct tern_arena *a, size_t count, size_t item, size_t align)
{
    const size_t start = (a->used + align - 1) & ~(align - 1);
    if (a->failed || start < a->used || (item && count > (SIZE_MAX - start) / item) ||
        start + count * item > a->size) {
        a->failed = 1;
        return NULL;
    }
    a->used = start + count * item;
    return a->base ? a->base + start : NULL;
}

void *tern_carve(struct tern_arena *a, size_t count, size_t item, size_t align)
{
    void *p = tern_carve_raw(a, count, item, align);
    return p ? memset(p, 0, count * item) : NULL;
}
