/* grammar_step.c: one step of a pushdown machine from one of its ways.
 *
 * A way is taken apart on a list of items: states that stand where the way stands without anything
 * having been read. A state that may end stands for its caller's too; a state with calls for the
 * starts of what it calls, with a frame more. Frames are nodes, found again where they are equal,
 * so that ways are equal where they mean the same. A fresh item has just been called, and does not
 * end before it has read: so no list of items is without end.
 *
 * A call of from least to most times keeps its frame while it goes on: only its count changes. An
 * unbounded count stops at least, so that counting it makes no new ways.
 */
#include "runtime/grammar.h"

static void push(struct tern_grammar_step *s, uint32_t state, uint32_t count, uint32_t node,
                 bool fresh)
{
    if (s->n_items == s->cap_items) {
        s->full = true;
        return;
    }
    s->items[s->n_items++] = (struct tern_grammar_item){state, count, node, fresh};
}

static void emit(struct tern_grammar_step *s, uint32_t state, uint32_t count, uint32_t node)
{
    for (uint32_t i = s->out_from; i < s->n_out; i++)
        if (s->out[i].state == state && s->out[i].count == count && s->out[i].node == node)
            return;
    if (s->n_out == s->cap_out) {
        s->full = true;
        return;
    }
    s->out[s->n_out++] = (struct tern_grammar_way){state, count, node};
}

/* A frame above another; 0: there is no room. */
static uint32_t frame(struct tern_grammar_step *s, uint32_t parent, uint32_t call, uint32_t count)
{
    const uint32_t depth = parent ? s->nodes[parent - 1].depth + 1 : 1;
    for (uint32_t i = s->n_nodes; i > parent; i--) {
        const struct tern_grammar_node *n = &s->nodes[i - 1];
        if (n->parent == parent && n->call == call && n->count == count)
            return i;
    }
    if (depth > TERN_GRAMMAR_DEPTH || s->n_nodes == s->cap_nodes) {
        s->deep = true;
        return 0;
    }
    s->nodes[s->n_nodes] = (struct tern_grammar_node){parent, call, count, depth};
    return ++s->n_nodes;
}

/* A call from an item. In last place it takes the caller's frame over. */
static void enter(struct tern_grammar_step *s, const struct tern_grammar_item *item, uint32_t call)
{
    const struct tern_grammar *g = s->grammar;
    const struct tern_grammar_call *c = &g->calls[call];
    const uint32_t start = g->units[c->unit].start;
    if (c->least == 1 && c->most == 1 && g->states[c->to].flags & TERN_GRAMMAR_LAST) {
        push(s, start, item->count, item->node, true);
        return;
    }
    const uint32_t node = frame(s, item->node, call, item->count);
    if (node)
        push(s, start, 0, node, true);
}

/* The item's unit has come to its end: it is called again, or its caller goes on. */
static void leave(struct tern_grammar_step *s, const struct tern_grammar_item *item)
{
    const struct tern_grammar *g = s->grammar;
    if (item->node == s->floor) {
        s->left = true;
        s->left_count = item->count;
        return;
    }
    if (!item->node)
        return;
    const struct tern_grammar_node n = s->nodes[item->node - 1];
    const struct tern_grammar_call *c = &g->calls[n.call];
    if (c->least == 1 && c->most == 1) {
        push(s, c->to, n.count, n.parent, false);
        return;
    }
    uint32_t done = item->count + 1;
    if (c->most == TERN_GRAMMAR_NONE && done > c->least)
        done = c->least;
    if (done < c->most)
        push(s, g->units[c->unit].start, done, item->node, true);
    if (done >= c->least)
        push(s, c->to, n.count, n.parent, false);
}

void tern_grammar_step_begin(struct tern_grammar_step *s, struct tern_grammar_way way)
{
    s->n_items = 0;
    push(s, way.state, way.count, way.node, false);
}

void tern_grammar_step_byte(struct tern_grammar_step *s, struct tern_grammar_way way, uint8_t byte)
{
    const struct tern_grammar *g = s->grammar;
    const uint32_t quick = tern_grammar_next(g, way.state, byte);
    if (quick)
        emit(s, quick - 1, way.count, way.node);
    if (g->states[way.state].flags & TERN_GRAMMAR_PLAIN)
        return;
    tern_grammar_step_begin(s, way);
    for (bool first = true; s->n_items; first = false) {
        const struct tern_grammar_item item = s->items[--s->n_items];
        const struct tern_grammar_state_row *row = &g->states[item.state];
        const uint32_t next = first ? 0 : tern_grammar_next(g, item.state, byte);
        if (next)
            emit(s, next - 1, item.count, item.node);
        for (uint32_t i = 0; i < row->n_calls; i++)
            if (tern_grammar_has(g->units[g->calls[row->calls + i].unit].first, byte))
                enter(s, &item, row->calls + i);
        if (!item.fresh && row->flags & TERN_GRAMMAR_FINAL)
            leave(s, &item);
    }
}

void tern_grammar_step_first(struct tern_grammar_step *s, struct tern_grammar_way way,
                             uint32_t set[8])
{
    const struct tern_grammar *g = s->grammar;
    tern_grammar_step_begin(s, way);
    while (s->n_items) {
        const struct tern_grammar_item item = s->items[--s->n_items];
        const struct tern_grammar_state_row *row = &g->states[item.state];
        for (uint32_t i = 0; i < row->n_ranges; i++) {
            const struct tern_grammar_range r = g->ranges[row->ranges + i];
            for (uint32_t c = r.lo; c <= r.hi; c++)
                set[c >> 5] |= 1u << (c & 31);
        }
        for (uint32_t i = 0; i < row->n_calls; i++)
            for (uint32_t w = 0; w < 8; w++)
                set[w] |= g->units[g->calls[row->calls + i].unit].first[w];
        if (!item.fresh && row->flags & TERN_GRAMMAR_FINAL)
            leave(s, &item);
    }
}

/* --- tokens --- */

static bool is_token(const struct tern_grammar_token *t, tern_token token)
{
    return (t->token == token) != t->not;
}

bool tern_grammar_step_next(struct tern_grammar_step *s, struct tern_grammar_item *item)
{
    const struct tern_grammar *g = s->grammar;
    if (!s->n_items)
        return false;
    *item = s->items[--s->n_items];
    const struct tern_grammar_state_row *row = &g->states[item->state];
    for (uint32_t i = 0; i < row->n_calls; i++)
        enter(s, item, row->calls + i);
    if (!item->fresh && row->flags & TERN_GRAMMAR_FINAL)
        leave(s, item);
    return true;
}

void tern_grammar_step_token(struct tern_grammar_step *s, struct tern_grammar_way way,
                             tern_token token)
{
    struct tern_grammar_item item;
    tern_grammar_step_begin(s, way);
    while (tern_grammar_step_next(s, &item)) {
        const struct tern_grammar_state_row *row = &s->grammar->states[item.state];
        const struct tern_grammar_token *t = s->grammar->tokens + row->tokens;
        for (uint32_t i = 0; i < row->n_tokens; i++)
            if (is_token(&t[i], token))
                emit(s, t[i].to, item.count, item.node);
    }
}

void tern_grammar_step_tokens(struct tern_grammar_step *s, struct tern_grammar_way way, void *to,
                              void (*take)(void *to, const struct tern_grammar_token *t))
{
    struct tern_grammar_item item;
    tern_grammar_step_begin(s, way);
    while (tern_grammar_step_next(s, &item)) {
        const struct tern_grammar_state_row *row = &s->grammar->states[item.state];
        for (uint32_t i = 0; i < row->n_tokens; i++)
            take(to, &s->grammar->tokens[row->tokens + i]);
    }
}

bool tern_grammar_step_ends(struct tern_grammar_step *s, struct tern_grammar_way way)
{
    tern_grammar_step_begin(s, way);
    while (s->n_items) {
        const struct tern_grammar_item item = s->items[--s->n_items];
        if (item.fresh || !(s->grammar->states[item.state].flags & TERN_GRAMMAR_FINAL))
            continue;
        if (!item.node)
            return true;
        leave(s, &item);
    }
    return false;
}
