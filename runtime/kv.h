/* kv.h: the paged KV cache: pools of blocks, and a table of them for each sequence.
 *
 * Layers of equal geometry form a group; a group has one pool, and a sequence one table in it:
 * entry i is the block of positions 16 i .. 16 i + 15. A table's entries lo .. hi - 1 are there;
 * hi is the same in all groups, lo passes 0 only in groups with a window, which give back what
 * has left it.
 *
 * A block is counted once a table it is in. Sequences that begin alike share blocks; who writes
 * to a block must be alone in it, else it is copied first. A block that nobody counts is free,
 * and lies in a list in the order of reuse; it keeps its content, and its place in the index of
 * prefixes (prefix.h), until it is taken. That list is the whole eviction policy: blocks that
 * nothing can find are put at its front, the others at its end, the deepest first.
 */
#ifndef TERN_KV_H
#define TERN_KV_H

#include "runtime/prefix.h"

struct tern_kv_block { uint32_t n_refs, prev, next, node; };
struct tern_kv_pool {
    uint32_t n_blocks, n_free, first, last, window;
    struct tern_kv_block *blocks;
};

struct tern_kv_seq {
    uint32_t lo[TERN_MAX_KV_GROUPS], hi;
    uint32_t node, depth; /* where it stands in the index: its first `depth` blocks */
};

struct tern_kv {
    uint32_t n_groups, n_slots, n_entries; /* entries of a table */
    struct tern_kv_pool pools[TERN_MAX_KV_GROUPS];
    uint32_t **tables;                     /* [n_groups * n_slots] */
    uint32_t *entries;
    struct tern_kv_seq *seqs;              /* [n_slots] */
    struct tern_prefix prefix;
};

/* Blocks of each group's pool: for n_kv_tokens tokens; in a group with a window no more than
 * what all sequences see and write in one step. */
void tern_kv_count(const struct tern_program *p, const tern_limits *limits,
                   uint32_t n_blocks[TERN_MAX_KV_GROUPS]);
/* Blocks of a group that a sequence of so many tokens holds at most. */
uint32_t tern_kv_most(const struct tern_kv_group *group, const tern_limits *limits,
                      uint32_t n_tokens);

/* The first block that a query at position `at` sees through a window (0: all). */
uint32_t tern_kv_first(uint32_t window, uint32_t at);

void tern_kv_lay_out(struct tern_arena *a, struct tern_kv *kv, const struct tern_program *p,
                     const tern_limits *limits);
void tern_kv_start(struct tern_kv *kv);

/* How many of n rows from position `at` on can be written with the blocks that are free. */
uint32_t tern_kv_room(const struct tern_kv *kv, uint32_t slot, uint32_t at, uint32_t n);
/* Makes the blocks of those rows the sequence's own; there must be room. */
tern_status tern_kv_reserve(struct tern_kv *kv, uint32_t slot, uint32_t at, uint32_t n,
                            const struct tern_backend *backend, void *state, tern_error *err);
/* Gives back what a query at the start of `at`'s block and later ones do not see: so a sequence
 * can be taken up again at that border, which is all that the index knows. */
void tern_kv_slide(struct tern_kv *kv, uint32_t slot, uint32_t at);
/* Whether all that a query at position `at` sees before it is there. */
bool tern_kv_sees(const struct tern_kv *kv, uint32_t slot, uint32_t at);
/* Keeps the blocks of the first n_tokens tokens; 0: none. */
void tern_kv_trim(struct tern_kv *kv, uint32_t slot, uint32_t n_tokens);
/* `to`, which has none, shares all blocks. */
void tern_kv_fork(struct tern_kv *kv, uint32_t from, uint32_t to);

/* Gives a sequence, in place of what it has, the longest prefix of at most n_most tokens that
 * the pools still hold, and answers its length, a multiple of 16. */
uint32_t tern_kv_match(struct tern_kv *kv, uint32_t slot, const tern_token *tokens,
                       uint32_t n_most);
/* The full blocks of the first n_tokens tokens behind which a query finds all that it sees. */
uint32_t tern_kv_whole(const struct tern_kv *kv, uint32_t slot, uint32_t n_tokens);
/* The table to n blocks, in each group those that a query behind them sees; what is new in it is
 * the caller's to fill. False, and nothing is new: too few blocks are free. */
bool tern_kv_extend(struct tern_kv *kv, uint32_t slot, uint32_t n);
/* Enters the full blocks of the first n_tokens tokens, which are computed, into the index. */
void tern_kv_index(struct tern_kv *kv, uint32_t slot, const tern_token *tokens,
                   uint32_t n_tokens);

#endif
