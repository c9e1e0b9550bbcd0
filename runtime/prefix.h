/* prefix.h: which prefixes of tokens have their keys and values in the pools.
 *
 * A tree of nodes: a node is one full block of tokens behind its parent, and names the block
 * that holds its keys and values in each KV group (or none: it was reused, or has left the
 * window). A child keeps its parent alive, so "the same parent" says that all tokens before are
 * the same ones. A lookup therefore compares 16 tokens and a parent, never a hash alone.
 */
#ifndef TERN_PREFIX_H
#define TERN_PREFIX_H

#include "runtime/backend.h"

struct tern_arena;

#define TERN_NO_NODE UINT32_MAX

struct tern_prefix_node {
    uint32_t parent;   /* TERN_NO_NODE: this is the first block of a text */
    uint32_t next;     /* in its bucket, or in the list of free nodes */
    uint32_t n_refs;   /* its children, and the sequences that stand on it */
    bool used;
    uint32_t blocks[TERN_MAX_KV_GROUPS]; /* TERN_NO_BLOCK: none */
    tern_token tokens[TERN_BLOCK_TOKENS];
};

struct tern_prefix {
    uint32_t n_nodes, n_buckets, free, hand;
    uint32_t hash_mask; /* all ones; tests narrow it to force collisions */
    struct tern_prefix_node *nodes;
    uint32_t *buckets;
};

void tern_prefix_lay_out(struct tern_arena *a, struct tern_prefix *p, uint32_t n_nodes);
void tern_prefix_start(struct tern_prefix *p);

/* The child of parent (TERN_NO_NODE: the root) with these 16 tokens; TERN_NO_NODE: none. */
uint32_t tern_prefix_find(const struct tern_prefix *p, uint32_t parent, const tern_token *tokens);
/* Makes that child, which must not exist yet, without blocks; TERN_NO_NODE: all are in use. It
 * is kept only once somebody holds it or a block is put in. */
uint32_t tern_prefix_add(struct tern_prefix *p, uint32_t parent, const tern_token *tokens);
void tern_prefix_hold(struct tern_prefix *p, uint32_t node);
void tern_prefix_drop(struct tern_prefix *p, uint32_t node);
/* Takes a group's block away from a node. Nodes that hold nothing and nobody holds go. */
void tern_prefix_clear(struct tern_prefix *p, uint32_t node, uint32_t group);
/* A node that nobody holds, found by a hand that goes around; TERN_NO_NODE: none. */
uint32_t tern_prefix_idle(struct tern_prefix *p);

#endif
