#include "runtime/kv.h"

#include "runtime/arena.h"

enum { BLOCK = TERN_BLOCK_TOKENS };

static uint32_t blocks_for(uint64_t n_tokens)
{
    return (uint32_t)((n_tokens + BLOCK - 1) / BLOCK);
}

uint32_t tern_kv_first(uint32_t window, uint32_t at)
{
    return !window || at < window ? 0 : (at + 1 - window) / BLOCK;
}

static uint32_t *table_of(const struct tern_kv *kv, uint32_t group, uint32_t slot)
{
    return kv->tables[(size_t)group * kv->n_slots + slot];
}

/* --- sizes --- */

uint32_t tern_kv_most(const struct tern_kv_group *group, const tern_limits *limits,
                      uint32_t n_tokens)
{
    const uint32_t all = blocks_for(n_tokens);
    if (!group->window)
        return all;
    /* From the first key that is seen from the border before a step's first row to the last row:
     * that border's block, what lies before it, and what the rows fill behind it. */
    const uint64_t before = ((uint64_t)group->window + BLOCK - 2) / BLOCK;
    const uint64_t seen = before + 1 + (limits->chunk + BLOCK - 2) / BLOCK;
    return seen < all ? (uint32_t)seen : all;
}

void tern_kv_count(const struct tern_program *p, const tern_limits *limits,
                   uint32_t n_blocks[TERN_MAX_KV_GROUPS])
{
    const uint32_t all = blocks_for(limits->n_kv_tokens);
    for (uint32_t g = 0; g < TERN_MAX_KV_GROUPS; g++) {
        n_blocks[g] = g < p->n_kv_groups ? all : 0;
        if (g >= p->n_kv_groups || !p->kv_groups[g].window)
            continue;
        const uint64_t most = (uint64_t)limits->n_seqs *
                              tern_kv_most(&p->kv_groups[g], limits, limits->n_ctx);
        if (most < all)
            n_blocks[g] = (uint32_t)most;
    }
}

void tern_kv_lay_out(struct tern_arena *a, struct tern_kv *kv, const struct tern_program *p,
                     const tern_limits *limits)
{
    uint32_t n_blocks[TERN_MAX_KV_GROUPS], n_nodes = 0;
    tern_kv_count(p, limits, n_blocks);
    kv->n_groups = p->n_kv_groups;
    kv->n_slots = limits->n_seqs;
    kv->n_entries = blocks_for(limits->n_ctx);
    const size_t n_tables = (size_t)kv->n_groups * kv->n_slots;
    kv->tables = tern_carve(a, n_tables, sizeof *kv->tables, 64);
    kv->entries = tern_carve(a, n_tables, kv->n_entries * sizeof *kv->entries, 64);
    kv->seqs = tern_carve(a, kv->n_slots, sizeof *kv->seqs, 64);
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        struct tern_kv_pool *pool = &kv->pools[g];
        pool->n_blocks = n_blocks[g];
        pool->window = p->kv_groups[g].window;
        pool->blocks = tern_carve(a, pool->n_blocks, sizeof *pool->blocks, 64);
        if (n_blocks[g] > n_nodes)
            n_nodes = n_blocks[g];
    }
    /* A node that nobody needs has a block in the largest pool, so this many are enough. */
    tern_prefix_lay_out(a, &kv->prefix, limits->no_kv_sharing ? 0 : n_nodes);
}

void tern_kv_start(struct tern_kv *kv)
{
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        struct tern_kv_pool *pool = &kv->pools[g];
        for (uint32_t b = 0; b < pool->n_blocks; b++)
            pool->blocks[b] = (struct tern_kv_block){
                .prev = b ? b - 1 : TERN_NO_BLOCK,
                .next = b + 1 < pool->n_blocks ? b + 1 : TERN_NO_BLOCK,
                .node = TERN_NO_NODE};
        pool->n_free = pool->n_blocks;
        pool->first = 0;
        pool->last = pool->n_blocks - 1;
        for (uint32_t s = 0; s < kv->n_slots; s++) {
            const size_t i = (size_t)g * kv->n_slots + s;
            kv->tables[i] = kv->entries + i * kv->n_entries;
            for (uint32_t e = 0; e < kv->n_entries; e++)
                kv->tables[i][e] = TERN_NO_BLOCK;
        }
    }
    for (uint32_t s = 0; s < kv->n_slots; s++)
        kv->seqs[s] = (struct tern_kv_seq){.node = TERN_NO_NODE};
    tern_prefix_start(&kv->prefix);
}

/* --- blocks --- */

static void list_remove(struct tern_kv_pool *pool, uint32_t b)
{
    const struct tern_kv_block *block = &pool->blocks[b];
    if (block->prev == TERN_NO_BLOCK)
        pool->first = block->next;
    else
        pool->blocks[block->prev].next = block->next;
    if (block->next == TERN_NO_BLOCK)
        pool->last = block->prev;
    else
        pool->blocks[block->next].prev = block->prev;
    pool->n_free--;
}

static void list_insert(struct tern_kv_pool *pool, uint32_t b, bool in_front)
{
    struct tern_kv_block *block = &pool->blocks[b];
    block->prev = in_front ? TERN_NO_BLOCK : pool->last;
    block->next = in_front ? pool->first : TERN_NO_BLOCK;
    if (block->prev == TERN_NO_BLOCK)
        pool->first = b;
    else
        pool->blocks[block->prev].next = b;
    if (block->next == TERN_NO_BLOCK)
        pool->last = b;
    else
        pool->blocks[block->next].prev = b;
    pool->n_free++;
}

static void hold(struct tern_kv_pool *pool, uint32_t b)
{
    if (!pool->blocks[b].n_refs++)
        list_remove(pool, b);
}

static void let_go(struct tern_kv_pool *pool, uint32_t b)
{
    if (!--pool->blocks[b].n_refs)
        list_insert(pool, b, pool->blocks[b].node == TERN_NO_NODE);
}

/* The index no longer finds this block. */
static void forget(struct tern_kv *kv, uint32_t group, uint32_t b)
{
    struct tern_kv_pool *pool = &kv->pools[group];
    const uint32_t node = pool->blocks[b].node;
    if (node == TERN_NO_NODE)
        return;
    pool->blocks[b].node = TERN_NO_NODE;
    if (!pool->blocks[b].n_refs) {
        list_remove(pool, b);
        list_insert(pool, b, true);
    }
    tern_prefix_clear(&kv->prefix, node, group);
}

static uint32_t take(struct tern_kv *kv, uint32_t group)
{
    const uint32_t b = kv->pools[group].first;
    forget(kv, group, b);
    hold(&kv->pools[group], b);
    return b;
}

/* --- rows of one sequence --- */

uint32_t tern_kv_room(const struct tern_kv *kv, uint32_t slot, uint32_t at, uint32_t n)
{
    uint32_t left[TERN_MAX_KV_GROUPS];
    for (uint32_t g = 0; g < kv->n_groups; g++)
        left[g] = kv->pools[g].n_free;
    for (uint32_t i = at / BLOCK; i <= (at + n - 1) / BLOCK; i++)
        for (uint32_t g = 0; g < kv->n_groups; g++) {
            const bool own = i < kv->seqs[slot].hi &&
                             kv->pools[g].blocks[table_of(kv, g, slot)[i]].n_refs == 1;
            if (!own && !left[g]--)
                return i * BLOCK > at ? i * BLOCK - at : 0;
        }
    return n;
}

tern_status tern_kv_reserve(struct tern_kv *kv, uint32_t slot, uint32_t at, uint32_t n,
                            const struct tern_backend *backend, void *state, tern_error *err)
{
    struct tern_kv_seq *seq = &kv->seqs[slot];
    for (uint32_t i = at / BLOCK; i <= (at + n - 1) / BLOCK; i++) {
        for (uint32_t g = 0; g < kv->n_groups; g++) {
            uint32_t *entry = &table_of(kv, g, slot)[i];
            if (i >= seq->hi) {
                *entry = take(kv, g);
                continue;
            }
            if (kv->pools[g].blocks[*entry].n_refs == 1) {
                forget(kv, g, *entry);
                continue;
            }
            const struct tern_block_copy copy = {*entry, take(kv, g)};
            const tern_status status = backend->copy_blocks(state, g, &copy, 1, err);
            if (status) {
                let_go(&kv->pools[g], copy.to);
                return status;
            }
            let_go(&kv->pools[g], copy.from);
            *entry = copy.to;
        }
        if (i >= seq->hi)
            seq->hi = i + 1;
    }
    return TERN_OK;
}

void tern_kv_slide(struct tern_kv *kv, uint32_t slot, uint32_t at)
{
    struct tern_kv_seq *seq = &kv->seqs[slot];
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        uint32_t *table = table_of(kv, g, slot);
        const uint32_t seen = tern_kv_first(kv->pools[g].window, at / BLOCK * BLOCK);
        while (seq->lo[g] < seen && seq->lo[g] < seq->hi) {
            const uint32_t i = seq->lo[g]++;
            let_go(&kv->pools[g], table[i]);
            table[i] = TERN_NO_BLOCK;
        }
    }
}

bool tern_kv_sees(const struct tern_kv *kv, uint32_t slot, uint32_t at)
{
    for (uint32_t g = 0; g < kv->n_groups; g++)
        if (kv->seqs[slot].lo[g] > tern_kv_first(kv->pools[g].window, at))
            return false;
    return true;
}

void tern_kv_trim(struct tern_kv *kv, uint32_t slot, uint32_t n_tokens)
{
    struct tern_kv_seq *seq = &kv->seqs[slot];
    const uint32_t keep = blocks_for(n_tokens);
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        uint32_t *table = table_of(kv, g, slot);
        for (uint32_t i = seq->hi; i-- > keep && i >= seq->lo[g];) {
            let_go(&kv->pools[g], table[i]);
            table[i] = TERN_NO_BLOCK;
        }
        if (seq->lo[g] > keep)
            seq->lo[g] = keep;
    }
    if (seq->hi > keep)
        seq->hi = keep;
    for (; seq->depth > n_tokens / BLOCK; seq->depth--) {
        const uint32_t parent = kv->prefix.nodes[seq->node].parent;
        tern_prefix_hold(&kv->prefix, parent);
        tern_prefix_drop(&kv->prefix, seq->node);
        seq->node = parent;
    }
}

void tern_kv_fork(struct tern_kv *kv, uint32_t from, uint32_t to)
{
    struct tern_kv_seq *seq = &kv->seqs[to];
    *seq = kv->seqs[from];
    tern_prefix_hold(&kv->prefix, seq->node);
    for (uint32_t g = 0; g < kv->n_groups; g++)
        for (uint32_t i = seq->lo[g]; i < seq->hi; i++) {
            table_of(kv, g, to)[i] = table_of(kv, g, from)[i];
            hold(&kv->pools[g], table_of(kv, g, to)[i]);
        }
}

/* --- sessions --- */

uint32_t tern_kv_whole(const struct tern_kv *kv, uint32_t slot, uint32_t n_tokens)
{
    const uint32_t n = n_tokens / BLOCK;
    return tern_kv_sees(kv, slot, n * BLOCK) ? n : 0;
}

bool tern_kv_extend(struct tern_kv *kv, uint32_t slot, uint32_t n)
{
    struct tern_kv_seq *seq = &kv->seqs[slot];
    tern_kv_slide(kv, slot, n * BLOCK);
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        const uint32_t first = tern_kv_first(kv->pools[g].window, n * BLOCK);
        if (n > seq->hi && n - (first > seq->hi ? first : seq->hi) > kv->pools[g].n_free)
            return false;
    }
    for (; seq->hi < n; seq->hi++)
        for (uint32_t g = 0; g < kv->n_groups; g++) {
            if (seq->hi >= tern_kv_first(kv->pools[g].window, n * BLOCK))
                table_of(kv, g, slot)[seq->hi] = take(kv, g);
            else
                seq->lo[g] = seq->hi + 1;
        }
    return true;
}

/* --- prefixes --- */

/* The deepest node of the tokens' path from which a query finds all that it sees. */
static uint32_t deepest(const struct tern_kv *kv, const tern_token *tokens, uint32_t n_most,
                        uint32_t *depth)
{
    uint32_t run[TERN_MAX_KV_GROUPS] = {0}; /* blocks there without a gap, up to this depth */
    uint32_t best = TERN_NO_NODE, node = TERN_NO_NODE;
    *depth = 0;
    for (uint32_t d = 1; d <= n_most / BLOCK; d++) {
        node = tern_prefix_find(&kv->prefix, node, tokens + (size_t)BLOCK * (d - 1));
        if (node == TERN_NO_NODE)
            break;
        bool whole = true;
        for (uint32_t g = 0; g < kv->n_groups; g++) {
            const bool there = kv->prefix.nodes[node].blocks[g] != TERN_NO_BLOCK;
            run[g] = there ? run[g] + 1 : 0;
            whole &= run[g] >= d - tern_kv_first(kv->pools[g].window, BLOCK * d);
        }
        if (whole) {
            best = node;
            *depth = d;
        }
    }
    return best;
}

uint32_t tern_kv_match(struct tern_kv *kv, uint32_t slot, const tern_token *tokens,
                       uint32_t n_most)
{
    struct tern_kv_seq *seq = &kv->seqs[slot];
    tern_kv_trim(kv, slot, 0);
    if (!kv->prefix.n_nodes)
        return 0;
    const uint32_t best = deepest(kv, tokens, n_most, &seq->hi);
    seq->node = best;
    seq->depth = seq->hi;
    tern_prefix_hold(&kv->prefix, best);
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        seq->lo[g] = tern_kv_first(kv->pools[g].window, BLOCK * seq->hi);
        uint32_t node = best;
        for (uint32_t i = seq->hi; i-- > seq->lo[g]; node = kv->prefix.nodes[node].parent) {
            table_of(kv, g, slot)[i] = kv->prefix.nodes[node].blocks[g];
            hold(&kv->pools[g], kv->prefix.nodes[node].blocks[g]);
        }
    }
    return BLOCK * seq->hi;
}

/* A free node, if need be that of a prefix that nobody holds. */
static uint32_t add_node(struct tern_kv *kv, uint32_t parent, const tern_token *tokens)
{
    struct tern_prefix *p = &kv->prefix;
    if (p->free == TERN_NO_NODE) {
        const uint32_t idle = tern_prefix_idle(p);
        if (idle == TERN_NO_NODE)
            return idle;
        for (uint32_t g = 0; g < kv->n_groups; g++)
            if (p->nodes[idle].blocks[g] != TERN_NO_BLOCK)
                forget(kv, g, p->nodes[idle].blocks[g]);
    }
    return tern_prefix_add(p, parent, tokens);
}

/* A node without the group's block gets the sequence's; of two equal ones the first is kept. */
static void settle(struct tern_kv *kv, uint32_t group, uint32_t node, uint32_t *entry)
{
    struct tern_kv_pool *pool = &kv->pools[group];
    uint32_t *known = &kv->prefix.nodes[node].blocks[group];
    if (*entry == TERN_NO_BLOCK || *entry == *known)
        return;
    if (*known == TERN_NO_BLOCK) {
        *known = *entry;
        pool->blocks[*entry].node = node;
        return;
    }
    hold(pool, *known);
    let_go(pool, *entry);
    *entry = *known;
}

void tern_kv_index(struct tern_kv *kv, uint32_t slot, const tern_token *tokens,
                   uint32_t n_tokens)
{
    struct tern_kv_seq *seq = &kv->seqs[slot];
    for (; kv->prefix.n_nodes && seq->depth < n_tokens / BLOCK; seq->depth++) {
        const tern_token *block = tokens + (size_t)BLOCK * seq->depth;
        uint32_t node = tern_prefix_find(&kv->prefix, seq->node, block);
        if (node == TERN_NO_NODE)
            node = add_node(kv, seq->node, block);
        if (node == TERN_NO_NODE)
            return;
        tern_prefix_hold(&kv->prefix, node);
        tern_prefix_drop(&kv->prefix, seq->node); /* its child holds it */
        seq->node = node;
        for (uint32_t g = 0; g < kv->n_groups; g++)
            settle(kv, g, node, &table_of(kv, g, slot)[seq->depth]);
    }
}
