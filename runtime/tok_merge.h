/* tok_merge.h: pairs of neighbouring symbols joined, best first, until none can be. */
#ifndef TERN_TOK_MERGE_H
#define TERN_TOK_MERGE_H

#include <stddef.h>
#include <stdint.h>

struct tern_arena;

/* What may be joined. key answers for the symbols a and b, where c is the value of the symbol
 * after b (or the last value there is): the lowest key joins first, and of equal ones the
 * leftmost; UINT32_MAX: these two do not join. A joined symbol keeps the value of its left part,
 * or takes joined[key]. */
struct tern_merge_rule {
    uint32_t (*key)(const void *self, uint32_t a, uint32_t b, uint32_t c);
    const void *self;
    const uint32_t *joined; /* or NULL */
};

struct tern_merge_bucket { uint32_t key, head, tail; uint8_t in_heap, in_order; };

/* A symbol of a long list, and the pair that it begins: its bucket, its place in the chain. */
struct tern_merge_symbol { uint32_t value, next, prev, bucket, after, before; };

struct tern_merge {
    uint32_t *values; /* [cap + 1] set by the caller; and one past the last symbol */
    uint32_t *keys;   /* of the pairs of a short list */
    struct tern_merge_symbol *symbols; /* [cap + 1] */
    struct tern_merge_bucket *buckets; /* [cap_buckets] */
    uint32_t *heap, *slots;            /* [cap_buckets], [n_slots] */
    uint32_t end, n_buckets, n_heap, n_slots;
};

/* For lists of up to cap symbols under rules with up to n_keys different keys. */
void tern_merge_lay_out(struct tern_arena *a, struct tern_merge *m, size_t cap, size_t n_keys);
/* Joins the first n symbols of values; what is left stands at their front. Answers how many. */
uint32_t tern_merge_run(struct tern_merge *m, uint32_t n, const struct tern_merge_rule *rule);

#endif
