/* json_arena.h: jansson in memory of fixed size, and JSON from strangers.
 *
 * jansson's allocator is one for the whole process; ours looks at which arena the calling thread
 * uses. In an arena, memory is taken from the front and given back all at once; a thread without
 * one uses malloc, as before. What was made in an arena is used and dropped by that thread, before
 * the arena is emptied. */
#ifndef TERN_JSON_ARENA_H
#define TERN_JSON_ARENA_H

#include "tools/args.h"
#include "tools/serve/chain.h"

#include <jansson.h>

enum { TERN_JSON_DEPTH = 64 };

struct tern_json_arena {
    char *base;
    size_t size, used, last; /* last: where the newest piece begins */
    bool failed;             /* something did not fit */
};

/* Sets jansson's allocator, once, before there are threads. */
void tern_json_arenas_install(void);
/* The calling thread's arena; NULL: malloc. */
void tern_json_arena_use(struct tern_json_arena *a);
/* All that was made in it is gone. */
void tern_json_arena_empty(struct tern_json_arena *a);

/* Reads an object or a list, and gives the chain's blocks back. NULL: line says what is wrong and
 * where, without a byte of the text; *status is 400, or 413 when the arena is too small. Refused
 * are also names that stand twice in an object, depth over 64, numbers that no double or 64-bit
 * integer holds, text that is not UTF-8, and zero bytes in strings. */
json_t *tern_json_read(struct tern_blocks *pool, struct tern_chain *body, int *status,
                       char line[TERN_ARGS_LINE]);

#endif
