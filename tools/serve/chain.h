/* chain.h: bytes of unknown number, in blocks of one pool.
 *
 * Bodies of requests and responses that wait to be sent are chains. All blocks lie in memory that
 * is given once, so that what a server may hold is known beforehand, whoever uses it; a pool that
 * is empty is an ordinary answer. Blocks that were used last are used first, so memory that was
 * touched once serves again; when none is in use, all but a few go back to the system. A pool may
 * be used by any thread; a chain by one at a time. */
#ifndef TERN_CHAIN_H
#define TERN_CHAIN_H

#include "runtime/tern.h"

#include <pthread.h>

enum { TERN_BLOCK = 4096, TERN_BLOCK_BYTES = TERN_BLOCK - 16 };

struct tern_block {
    struct tern_block *next;
    uint32_t begin, end;
    char bytes[TERN_BLOCK_BYTES];
};

struct tern_blocks {
    pthread_mutex_t lock;
    struct tern_block *begin, *end, *free, *fresh; /* given back; never used yet */
    size_t n_all, n_left;
};

struct tern_chain {
    struct tern_block *first, *last;
    size_t size;
};

/* mem begins at a multiple of 16. */
void tern_blocks_init(struct tern_blocks *pool, tern_memory mem);
size_t tern_blocks_left(struct tern_blocks *pool);

/* All of it, or nothing and false when the pool is empty. */
bool tern_chain_put(struct tern_blocks *pool, struct tern_chain *c, const char *data, size_t n);
/* The blocks of `from` behind those of `to`; from is empty then. What fits into the last block of
 * `to` is copied there, or a stream that nobody reads would hold a block for each of its events. */
void tern_chain_join(struct tern_blocks *pool, struct tern_chain *to, struct tern_chain *from);
/* Gives the first n bytes back. */
void tern_chain_drop(struct tern_blocks *pool, struct tern_chain *c, size_t n);
void tern_chain_clear(struct tern_blocks *pool, struct tern_chain *c);
/* Copies the first n bytes at most out and drops them; answers how many. */
size_t tern_chain_get(struct tern_blocks *pool, struct tern_chain *c, char *out, size_t n);

#endif
