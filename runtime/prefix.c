#include "runtime/prefix.h"

#include "runtime/arena.h"

#include <string.h>

static uint32_t bucket_of(const struct tern_prefix *p, uint32_t parent, const tern_token *tokens)
{
    uint64_t h = parent;
    for (uint32_t i = 0; i < TERN_BLOCK_TOKENS; i++) {
        h = (h ^ (uint32_t)tokens[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return ((uint32_t)(h >> 32) & p->hash_mask) & (p->n_buckets - 1);
}

void tern_prefix_lay_out(struct tern_arena *a, struct tern_prefix *p, uint32_t n_nodes)
{
    p->n_nodes = n_nodes;
    p->n_buckets = 1;
    while (p->n_buckets < n_nodes && p->n_buckets < 1u << 30)
        p->n_buckets *= 2;
    p->nodes = tern_carve(a, n_nodes, sizeof *p->nodes, 64);
    p->buckets = tern_carve(a, p->n_buckets, sizeof *p->buckets, 64);
}

void tern_prefix_start(struct tern_prefix *p)
{
    p->hash_mask = UINT32_MAX;
    p->hand = 0;
    p->free = p->n_nodes ? 0 : TERN_NO_NODE;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        p->nodes[i] = (struct tern_prefix_node){
            .parent = TERN_NO_NODE, .next = i + 1 < p->n_nodes ? i + 1 : TERN_NO_NODE};
    for (uint32_t i = 0; i < p->n_buckets; i++)
        p->buckets[i] = TERN_NO_NODE;
}

uint32_t tern_prefix_find(const struct tern_prefix *p, uint32_t parent, const tern_token *tokens)
{
    uint32_t i = p->buckets[bucket_of(p, parent, tokens)];
    while (i != TERN_NO_NODE && (p->nodes[i].parent != parent ||
                                 memcmp(p->nodes[i].tokens, tokens, sizeof p->nodes[i].tokens)))
        i = p->nodes[i].next;
    return i;
}

uint32_t tern_prefix_add(struct tern_prefix *p, uint32_t parent, const tern_token *tokens)
{
    const uint32_t i = p->free;
    if (i == TERN_NO_NODE)
        return i;
    struct tern_prefix_node *node = &p->nodes[i];
    p->free = node->next;
    uint32_t *bucket = &p->buckets[bucket_of(p, parent, tokens)];
    *node = (struct tern_prefix_node){.parent = parent, .next = *bucket, .used = true};
    for (uint32_t g = 0; g < TERN_MAX_KV_GROUPS; g++)
        node->blocks[g] = TERN_NO_BLOCK;
    memcpy(node->tokens, tokens, sizeof node->tokens);
    *bucket = i;
    if (parent != TERN_NO_NODE)
        p->nodes[parent].n_refs++;
    return i;
}

static bool holds_a_block(const struct tern_prefix_node *node)
{
    for (uint32_t g = 0; g < TERN_MAX_KV_GROUPS; g++)
        if (node->blocks[g] != TERN_NO_BLOCK)
            return true;
    return false;
}

/* A node that goes lets go of its parent, which may then go as well: hence the loop. */
static void prune(struct tern_prefix *p, uint32_t i)
{
    while (i != TERN_NO_NODE && !p->nodes[i].n_refs && !holds_a_block(&p->nodes[i])) {
        struct tern_prefix_node *node = &p->nodes[i];
        uint32_t *link = &p->buckets[bucket_of(p, node->parent, node->tokens)];
        while (*link != i)
            link = &p->nodes[*link].next;
        *link = node->next;
        const uint32_t parent = node->parent;
        node->used = false;
        node->next = p->free;
        p->free = i;
        if (parent != TERN_NO_NODE)
            p->nodes[parent].n_refs--;
        i = parent;
    }
}

void tern_prefix_hold(struct tern_prefix *p, uint32_t node)
{
    if (node != TERN_NO_NODE)
        p->nodes[node].n_refs++;
}

void tern_prefix_drop(struct tern_prefix *p, uint32_t node)
{
    if (node == TERN_NO_NODE)
        return;
    p->nodes[node].n_refs--;
    prune(p, node);
}

void tern_prefix_clear(struct tern_prefix *p, uint32_t node, uint32_t group)
{
    p->nodes[node].blocks[group] = TERN_NO_BLOCK;
    prune(p, node);
}

uint32_t tern_prefix_idle(struct tern_prefix *p)
{
    for (uint32_t n = 0; n < p->n_nodes; n++) {
        const uint32_t i = p->hand;
        p->hand = i + 1 < p->n_nodes ? i + 1 : 0;
        if (p->nodes[i].used && !p->nodes[i].n_refs)
            return i;
    }
    return TERN_NO_NODE;
}
