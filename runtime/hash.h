/* hash.h: XXH64 with seed 0, after the specification of the xxHash project: it finds accidents
 * (bits that flipped, files that were cut), not forgeries, at several bytes a cycle. */
#ifndef TERN_HASH_H
#define TERN_HASH_H

#include "runtime/tern.h" /* tern_hash_of: all at once */

struct tern_hash {
    uint64_t lanes[4], total;
    uint8_t held[32]; /* total % 32 bytes that fill no stripe yet */
};

struct tern_hash tern_hash_begin(void);
void tern_hash_add(struct tern_hash *h, const void *data, size_t n);
uint64_t tern_hash_end(const struct tern_hash *h);

#endif
