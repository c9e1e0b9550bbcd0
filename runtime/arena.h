/* arena.h: one walk that measures or carves.
 *
 * The layout of an object is written once, as a sequence of tern_carve calls. Run over an
 * arena without memory it measures; run over real memory it hands out pointers. So a size and
 * its use cannot drift apart.
 */
#ifndef TERN_ARENA_H
#define TERN_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct tern_arena {
    unsigned char *base; /* NULL while measuring */
    size_t size;         /* SIZE_MAX while measuring */
    size_t used;
    int failed;          /* sticky: checked once, after the walk */
};

struct tern_arena tern_arena_measure(void);
struct tern_arena tern_arena_over(void *mem, size_t size);

/* Memory for count items at a power-of-two alignment (of base, which is at least so aligned):
 * zeroed, or untouched for tern_carve_raw. NULL while measuring or when it does not fit; then
 * failed is set in the second case, and when a product overflows in either. */
void *tern_carve(struct tern_arena *a, size_t count, size_t item, size_t align);
void *tern_carve_raw(struct tern_arena *a, size_t count, size_t item, size_t align);

#endif
