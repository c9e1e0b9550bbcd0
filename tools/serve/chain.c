#include "tools/serve/chain.h"

#include "platform/os/host.h"

#include <string.h>

/* Blocks that are taken from the system at the start and never given back. */
enum { KEPT = 64 };

void tern_blocks_init(struct tern_blocks *pool, tern_memory mem)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->free = NULL;
    pool->begin = pool->fresh = mem.data;
    pool->n_all = pool->n_left = mem.size / sizeof(struct tern_block);
    pool->end = pool->fresh + pool->n_all;
    for (size_t i = 0; i < KEPT && i < pool->n_all; i++)
        memset(&pool->begin[i], 0, sizeof *pool->begin); /* taken from the system now */
}

size_t tern_blocks_left(struct tern_blocks *pool)
{
    pthread_mutex_lock(&pool->lock);
    const size_t n = pool->n_left;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

/* n blocks as a list; NULL: there are not so many. */
static struct tern_block *take(struct tern_blocks *pool, size_t n)
{
    struct tern_block *list = NULL;
    pthread_mutex_lock(&pool->lock);
    const bool enough = n <= pool->n_left;
    pool->n_left -= enough ? n : 0;
    for (; enough && n; n--) {
        struct tern_block *b = pool->free;
        if (b)
            pool->free = b->next;
        else
            b = pool->fresh++;
        b->begin = b->end = 0;
        b->next = list;
        list = b;
    }
    pthread_mutex_unlock(&pool->lock);
    return list;
}

static void give_back(struct tern_blocks *pool, struct tern_block *first,
                      struct tern_block *last, size_t n)
{
    pthread_mutex_lock(&pool->lock);
    pool->n_left += n;
    last->next = pool->free;
    pool->free = first;
    if (pool->n_left == pool->n_all && pool->fresh - pool->begin > KEPT) {
        /* All are here: so many as mostly serve are kept, and are the first ones again. */
        pool->free = NULL;
        pool->fresh = pool->begin;
        tern_os_give_back(pool->begin + KEPT, (size_t)(pool->end - pool->begin - KEPT) *
                                                  sizeof *pool->begin);
    }
    pthread_mutex_unlock(&pool->lock);
}

bool tern_chain_put(struct tern_blocks *pool, struct tern_chain *c, const char *data, size_t n)
{
    const size_t room = c->last ? TERN_BLOCK_BYTES - c->last->end : 0;
    struct tern_block *more = NULL;
    if (n > room) {
        more = take(pool, (n - room + TERN_BLOCK_BYTES - 1) / TERN_BLOCK_BYTES);
        if (!more)
            return false;
    }
    size_t part = n < room ? n : room;
    if (part)
        memcpy(c->last->bytes + c->last->end, data, part);
    if (part)
        c->last->end += (uint32_t)part;
    c->size += n;
    while (more) {
        struct tern_block *b = more;
        more = b->next;
        b->next = NULL;
        data += part;
        n -= part;
        part = n < TERN_BLOCK_BYTES ? n : TERN_BLOCK_BYTES;
        memcpy(b->bytes, data, part);
        b->end = (uint32_t)part;
        if (c->last)
            c->last->next = b;
        else
            c->first = b;
        c->last = b;
    }
    return true;
}

void tern_chain_join(struct tern_blocks *pool, struct tern_chain *to, struct tern_chain *from)
{
    if (!from->first)
        return;
    if (to->last && from->size <= TERN_BLOCK_BYTES - to->last->end) {
        const size_t n = from->size;
        tern_chain_get(pool, from, to->last->bytes + to->last->end, n);
        to->last->end += (uint32_t)n;
        to->size += n;
        return;
    }
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->size += from->size;
    *from = (struct tern_chain){0};
}

void tern_chain_drop(struct tern_blocks *pool, struct tern_chain *c, size_t n)
{
    struct tern_block *first = c->first, *last = NULL;
    size_t n_blocks = 0;
    c->size -= n;
    while (c->first && n >= c->first->end - c->first->begin) {
        n -= c->first->end - c->first->begin;
        last = c->first;
        c->first = last->next;
        n_blocks++;
    }
    if (c->first)
        c->first->begin += (uint32_t)n;
    else
        c->last = NULL;
    if (last)
        give_back(pool, first, last, n_blocks);
}

void tern_chain_clear(struct tern_blocks *pool, struct tern_chain *c)
{
    tern_chain_drop(pool, c, c->size);
}

size_t tern_chain_get(struct tern_blocks *pool, struct tern_chain *c, char *out, size_t n)
{
    size_t got = 0;
    for (const struct tern_block *b = c->first; b && got < n; b = b->next) {
        size_t part = b->end - b->begin;
        part = part < n - got ? part : n - got;
        memcpy(out + got, b->bytes + b->begin, part);
        got += part;
    }
    tern_chain_drop(pool, c, got);
    return got;
}
