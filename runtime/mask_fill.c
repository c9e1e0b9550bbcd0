/* mask_fill.c: a mask put together from what masks.c keeps or walks. */
#include "runtime/masks.h"

#include <string.h>

/* Bits of the tokens that take no more than room, eight at a time. */
static void add_counted(const struct tern_masks *m, const uint8_t *counts, uint32_t room,
                        uint32_t *bits)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    const uint64_t most = highs + room * ones;
    for (uint32_t i = 0; i < m->n_words; i++) {
        uint32_t word = 0;
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t eight;
            memcpy(&eight, counts + 32 * (size_t)i + 8 * k, 8);
            const uint64_t in = (most - eight) & highs;
            word |= (uint32_t)((in >> 7) * UINT64_C(0x0102040810204080) >> 56) << 8 * k;
        }
        bits[i] |= word;
    }
}

/* --- one start --- */

struct fill {
    struct tern_masks *m;
    tern_grammar_state *s;
    uint32_t n_nodes; /* of the state, and of the frames entered from it */
    uint32_t *bits;
    uint32_t first[8]; /* bytes that can follow where a frame is left */
    uint64_t follow;   /* the same as exits have them */
};

/* What goes on when an item's frame is left with so many completed: ways of level 0. */
static void leave(struct fill *f, struct tern_grammar_step *step,
                  const struct tern_grammar_item *item, uint32_t count)
{
    const struct tern_grammar *g = step->grammar;
    const struct tern_grammar_node n = f->s->nodes[item->node - 1];
    const struct tern_grammar_call *c = &g->calls[n.call];
    struct tern_mask_level *level = &f->m->levels[0];
    memcpy(f->m->nodes, f->s->nodes, f->n_nodes * sizeof *f->m->nodes);
    step->n_nodes = f->n_nodes;
    *level = (struct tern_mask_level){.n_nodes = f->n_nodes};
    if (c->most == TERN_GRAMMAR_NONE && count > c->least)
        count = c->least;
    if (count >= c->least)
        f->m->ways[level->to++] = (struct tern_grammar_way){c->to, n.count, n.parent};
    if (count < c->most)
        f->m->ways[level->to++] = (struct tern_grammar_way){g->units[c->unit].start, count,
                                                            item->node};
    memset(f->first, 0, sizeof f->first);
    for (uint32_t i = 0; i < level->to; i++)
        tern_grammar_step_first(step, f->m->ways[i], f->first);
    step->n_nodes = f->n_nodes;
    f->follow = 0;
    for (uint32_t byte = 0; byte < 256; byte++)
        if (tern_grammar_has(f->first, byte))
            f->follow |= tern_masks_byte_bit(byte);
}

static bool meet(const uint32_t a[8], const uint32_t b[8])
{
    uint32_t common = 0;
    for (uint32_t i = 0; i < 8; i++)
        common |= a[i] & b[i];
    return common != 0;
}

/* From an exit on, with the ways of level 0. */
static void walk_exit(struct fill *f, struct tern_mask_walk *w, const struct tern_mask_exit *exit)
{
    if (!(exit->bytes & f->follow))
        return;
    w->base = w->trie->nodes[exit->node].depth;
    (void)tern_masks_walk(w, exit->node + 1, exit->node + w->trie->nodes[exit->node].skip);
}

/* A walk that keeps nothing, in all frames. */
static void walk_all(struct fill *f, const struct tern_grammar_item *item)
{
    struct tern_grammar_step step = tern_masks_step(f->m, f->s->grammar);
    struct tern_mask_walk w = {f->m, &f->m->all, &step, f->bits, NULL, 0, NULL};
    memcpy(f->m->nodes, f->s->nodes, f->n_nodes * sizeof *f->m->nodes);
    (void)tern_masks_walk_own(&w, item, f->n_nodes);
}

static void add_plain_start(struct fill *f, const struct tern_grammar_item *item)
{
    struct tern_masks *m = f->m;
    if (!f->s->grammar->states[item->state].n_ranges)
        return;
    const struct tern_mask_slot *slot = tern_masks_open(m, f->s->grammar, item->state);
    if (!slot) {
        walk_all(f, item);
        return;
    }
    const struct tern_trie *trie = slot->rest ? &m->rest : &m->all;
    struct tern_grammar_step step = tern_masks_step(m, f->s->grammar);
    struct tern_mask_walk w = {m, trie, &step, f->bits, NULL, 0, f->first};
    if (item->node)
        leave(f, &step, item, item->count + 1);
    if (item->node && meet(f->first, slot->taken)) {
        walk_all(f, item);
        return;
    }
    for (uint32_t i = 0; i < m->n_words; i++)
        f->bits[i] |= slot->bits[i];
    for (uint32_t e = 0; item->node && e < slot->n_exits; e++)
        walk_exit(f, &w, &slot->exits[e]);
}

static bool add_counted_start(struct fill *f, const struct tern_grammar_item *item)
{
    struct tern_masks *m = f->m;
    const struct tern_grammar *g = f->s->grammar;
    if (!item->node)
        return false;
    const struct tern_grammar_call *c = &g->calls[f->s->nodes[item->node - 1].call];
    if ((c->least == 1 && c->most == 1) || !g->units[c->unit].simple)
        return false;
    struct tern_grammar_step step = tern_masks_step(m, g);
    leave(f, &step, item, c->least);
    memset(f->first, 0, sizeof f->first);
    m->levels[0].to = 1; /* what goes on in the unit itself is counted */
    tern_grammar_step_first(&step, m->ways[0], f->first);
    if (meet(f->first, g->units[c->unit].first))
        return false;
    if (!g->states[item->state].n_ranges)
        return true;
    const struct tern_mask_slot *slot =
        tern_masks_open_counted(m, g, item->state, g->units[c->unit].start);
    if (!slot)
        return false;
    const uint32_t left = c->most - item->count;
    add_counted(m, slot->counts, left < TERN_MASK_MOST_COUNT ? left : TERN_MASK_MOST_COUNT,
                f->bits);
    struct tern_mask_walk w = {m, slot->rest ? &m->rest : &m->all, &step, f->bits, NULL, 0,
                               f->first};
    leave(f, &step, item, c->least);
    m->levels[0].to = 1;
    for (uint32_t e = 0; e < slot->n_exits; e++) {
        const uint64_t done = (uint64_t)item->count + slot->exits[e].count;
        if (done >= c->least && done <= c->most)
            walk_exit(f, &w, &slot->exits[e]);
    }
    return true;
}

/* --- all of them --- */

static uint32_t list_starts(struct fill *f, struct tern_grammar_step *step)
{
    struct tern_grammar_item *list = f->m->starts, item;
    uint32_t n = 0;
    for (uint32_t w = 0; w < f->s->n_ways; w++) {
        tern_grammar_step_begin(step, f->s->ways[w]);
        while (tern_grammar_step_next(step, &item)) {
            uint32_t i = 0;
            while (i < n && (list[i].state != item.state || list[i].count != item.count ||
                             list[i].node != item.node))
                i++;
            if (i == n && n < TERN_MASK_ITEMS)
                list[n++] = item;
        }
    }
    return n;
}

struct token_bits { struct tern_masks *m; uint32_t *bits; };

static void take_token(void *to, const struct tern_grammar_token *t)
{
    const struct token_bits *out = to;
    const uint32_t token = (uint32_t)t->token;
    if (token >= out->m->n_vocab)
        return;
    if (!t->not) {
        out->bits[token / 32] |= 1u << token % 32;
        return;
    }
    const uint32_t was = out->bits[token / 32] & 1u << token % 32;
    for (uint32_t i = 0; i < out->m->n_words; i++)
        out->bits[i] |= ~out->m->ends[i];
    if (out->m->n_vocab % 32)
        out->bits[out->m->n_words - 1] &= (1u << out->m->n_vocab % 32) - 1;
    out->bits[token / 32] = (out->bits[token / 32] & ~(1u << token % 32)) | was;
}

bool tern_masks_fill(struct tern_masks *m, tern_grammar_state *s, uint32_t *bits)
{
    struct tern_grammar_step step = {
        .grammar = s->grammar, .nodes = s->nodes, .items = s->items, .n_nodes = s->n_nodes,
        .cap_nodes = TERN_GRAMMAR_NODES, .cap_items = TERN_GRAMMAR_ITEMS,
        .floor = TERN_GRAMMAR_NONE,
    };
    struct fill f = {.m = m, .s = s, .bits = bits};
    uint32_t any = 0;
    memset(bits, 0, m->n_words * sizeof *bits);
    const uint32_t n = list_starts(&f, &step);
    f.n_nodes = step.n_nodes;
    for (uint32_t i = 0; i < n; i++)
        if (!add_counted_start(&f, &m->starts[i]))
            add_plain_start(&f, &m->starts[i]);
    struct token_bits out = {m, bits};
    for (uint32_t w = 0; s->grammar->n_tokens && w < s->n_ways; w++)
        tern_grammar_step_tokens(&step, s->ways[w], &out, take_token);
    for (uint32_t i = 0; i < m->n_words; i++)
        any |= bits[i];
    return any != 0;
}
