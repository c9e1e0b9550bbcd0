/* masks.c: walks of a trie beside a grammar's machine. See masks.h.
 *
 * What can come next is the union over all ways, and over all that each stands for before it reads
 * (calls entered, units left). Each of these starts is one state of one unit, and its part of the
 * mask is made of two: what is read without leaving the unit's frame, which depends on the state
 * alone and is kept; and, from each node of the trie where the frame may be left, what the frames
 * below go on with, which is walked anew.
 */
#include "runtime/masks.h"

#include <string.h>

enum { KEPT_FROM = 1024 }; /* nodes of a walk that is worth keeping */

static void set_bit(uint32_t *bits, uint32_t token)
{
    bits[token / 32] |= 1u << token % 32;
}

struct tern_grammar_step tern_masks_step(struct tern_masks *m, const struct tern_grammar *g)
{
    return (struct tern_grammar_step){
        .grammar = g, .nodes = m->nodes, .out = m->ways, .items = m->items,
        .cap_nodes = TERN_MASK_NODES, .cap_out = TERN_MASK_WAYS, .cap_items = TERN_MASK_ITEMS,
        .floor = TERN_GRAMMAR_NONE,
    };
}

/* --- a walk in general --- */

static bool may_leave(struct tern_mask_walk *w, const struct tern_mask_level *level)
{
    const struct tern_grammar *g = w->step->grammar;
    for (uint32_t i = level->from; i < level->to; i++)
        if (g->states[w->m->ways[i].state].flags & TERN_GRAMMAR_FINAL &&
            (!w->m->ways[i].node || tern_grammar_step_ends(w->step, w->m->ways[i])))
            return true;
    return false;
}

uint64_t tern_masks_byte_bit(uint32_t byte)
{
    return UINT64_C(1) << (byte < 64 ? byte : 0);
}

/* A byte below a level's node, where the slot's frame might be left, could be read or not. An exit
 * is noted if something goes on with it; where that makes too many, what could be read is not, and
 * whoever goes on with such bytes too has to walk anew. */
static bool note_byte(struct tern_mask_slot *slot, struct tern_mask_level *level, uint32_t byte,
                      bool read)
{
    if (!level->leaves || !tern_grammar_has(slot->follow, byte))
        return true;
    if (read && slot->apart) {
        slot->taken[byte >> 5] |= 1u << (byte & 31);
        return true;
    }
    if (!level->exit) {
        if (slot->n_exits == slot->cap_exits)
            return false;
        slot->exits[slot->n_exits++] = (struct tern_mask_exit){level->node, level->count, 0};
        level->exit = slot->n_exits;
    }
    slot->exits[level->exit - 1].bytes |= tern_masks_byte_bit(byte);
    return true;
}

static void begin_level(struct tern_mask_level *level, uint32_t node, bool leaves)
{
    level->node = node;
    level->exit = 0;
    level->leaves = leaves;
}

/* Whether a state does nothing but read: it has no calls, and its unit is not left, or to where
 * the walk does not go. */
static bool stays(const struct tern_grammar_state_row *s, uint32_t node)
{
    return s->flags & TERN_GRAMMAR_PLAIN || (!s->n_calls && !node);
}

/* The level that a byte leads to; false: none. */
static bool next_level(struct tern_mask_walk *w, const struct tern_mask_level *from,
                       struct tern_mask_level *to, uint8_t byte)
{
    struct tern_grammar_step *s = w->step;
    const struct tern_grammar *g = s->grammar;
    struct tern_grammar_way *ways = w->m->ways;
    const struct tern_grammar_way way = ways[from->from];
    to->from = from->to;
    to->n_nodes = from->n_nodes;
    if (from->to - from->from == 1 && stays(&g->states[way.state], way.node)) {
        const uint32_t next = tern_grammar_next(g, way.state, byte);
        if (!next || to->from == TERN_MASK_WAYS)
            return false;
        ways[to->from] = (struct tern_grammar_way){next - 1, way.count, way.node};
        to->to = to->from + 1;
        return true;
    }
    s->n_out = s->out_from = to->from;
    s->n_nodes = from->n_nodes;
    for (uint32_t i = from->from; i < from->to; i++)
        tern_grammar_step_byte(s, ways[i], byte);
    to->to = s->n_out;
    to->n_nodes = s->n_nodes;
    return to->to > to->from;
}

bool tern_masks_walk(struct tern_mask_walk *w, uint32_t from, uint32_t end)
{
    struct tern_mask_level *levels = w->m->levels;
    const struct tern_trie_node *nodes = w->trie->nodes;
    uint32_t visited = 0;
    bool ok = true;
    for (uint32_t i = from; i < end; visited++) {
        const struct tern_trie_node n = nodes[i];
        const uint32_t depth = n.depth - w->base;
        const bool read = !(depth == 1 && w->first && !tern_grammar_has(w->first, n.byte)) &&
                          next_level(w, &levels[depth - 1], &levels[depth], (uint8_t)n.byte);
        if (w->slot)
            ok &= note_byte(w->slot, &levels[depth - 1], n.byte, read);
        if (!read) {
            i += n.skip;
            continue;
        }
        if (n.token != TERN_TRIE_NO_TOKEN)
            set_bit(w->bits, n.token);
        if (w->slot)
            begin_level(&levels[depth], i, n.skip > 1 && may_leave(w, &levels[depth]));
        i++;
    }
    w->m->n_visited += visited;
    return ok;
}

/* --- what a state takes of plain tokens --- */

/* Where a character that is being read stands: what its next byte may be, and what follows. */
enum { WHOLE, ONE, TWO, THREE, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4, N_PLACES, REFUSED };

static unsigned place_after_first(uint32_t byte)
{
    if (byte < 0x80)
        return byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F ? REFUSED : WHOLE;
    if (byte < 0xC2 || byte > 0xF4)
        return REFUSED;
    if (byte < 0xE0)
        return ONE;
    if (byte < 0xF0)
        return byte == 0xE0 ? AFTER_E0 : byte == 0xED ? AFTER_ED : TWO;
    return byte == 0xF0 ? AFTER_F0 : byte == 0xF4 ? AFTER_F4 : THREE;
}

static unsigned place_after(unsigned place, uint32_t byte)
{
    static const struct { uint8_t lo, hi, next; } rows[N_PLACES] = {
        [ONE] = {0x80, 0xBF, WHOLE}, [TWO] = {0x80, 0xBF, ONE}, [THREE] = {0x80, 0xBF, TWO},
        [AFTER_E0] = {0xA0, 0xBF, ONE}, [AFTER_ED] = {0x80, 0x9F, ONE},
        [AFTER_F0] = {0x90, 0xBF, TWO}, [AFTER_F4] = {0x80, 0x8F, TWO},
    };
    if (place == WHOLE)
        return place_after_first(byte);
    return byte >= rows[place].lo && byte <= rows[place].hi ? rows[place].next : REFUSED;
}

struct pair { uint16_t state; uint8_t place; };
enum { MOST_PAIRS = 48 };
struct pairs { struct pair list[MOST_PAIRS]; uint32_t n; };

static bool note_pair(struct pairs *p, uint32_t state, unsigned place)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].state == state && p->list[i].place == place)
            return true;
    if (p->n == MOST_PAIRS)
        return false;
    p->list[p->n++] = (struct pair){(uint16_t)state, (uint8_t)place};
    return true;
}

/* Whether all strings of plain characters can be read from a state. Its frame is not left by them;
 * or, where characters are counted, each of them is one, after which its unit is at its start. */
static bool takes_plain(const struct tern_grammar *g, uint32_t state, bool counted)
{
    struct pairs p = {.n = 0};
    note_pair(&p, state, WHOLE);
    for (uint32_t i = 0; i < p.n; i++)
        for (uint32_t byte = 0x20; byte < 0x100; byte++) {
            const struct pair at = p.list[i];
            const unsigned place = place_after(at.place, byte);
            if (place == REFUSED)
                continue;
            uint32_t next = tern_grammar_next(g, at.state, (uint8_t)byte);
            if (!next)
                return false;
            const uint8_t flags = g->states[--next].flags;
            if (counted && place == WHOLE) {
                if (!(flags & TERN_GRAMMAR_LAST))
                    return false;
                next = state;
            } else if (!(flags & TERN_GRAMMAR_PLAIN)) {
                return false;
            }
            if (!note_pair(&p, next, place))
                return false;
        }
    return true;
}

/* --- what is kept --- */

static struct tern_mask_slot *find_slot(struct tern_masks *m, const struct tern_grammar *g,
                                        uint32_t state, bool counted)
{
    struct tern_mask_slot *list = counted ? m->slots + TERN_MASK_SLOTS + 1 : m->slots;
    const uint32_t n = counted ? TERN_MASK_COUNTED_SLOTS : TERN_MASK_SLOTS;
    for (uint32_t i = 0; i < n; i++)
        if (list[i].serial == g->serial && list[i].state == state) {
            list[i].used = ++m->clock;
            return &list[i];
        }
    return &list[n]; /* where what is not kept yet is made */
}

/* Units lie in the order of their states. */
static const uint32_t *follow_of(const struct tern_grammar *g, uint32_t state)
{
    uint32_t lo = 0, hi = g->n_units;
    while (hi - lo > 1) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (g->units[middle].start <= state)
            lo = middle;
        else
            hi = middle;
    }
    return g->units[lo].follow;
}

/* Takes the place of what was not used for longest. */
static struct tern_mask_slot *keep(struct tern_masks *m, struct tern_mask_slot *made,
                                   const struct tern_grammar *g, uint32_t state)
{
    const bool counted = made != m->slots + TERN_MASK_SLOTS;
    struct tern_mask_slot *list = counted ? m->slots + TERN_MASK_SLOTS + 1 : m->slots;
    struct tern_mask_slot *oldest = list;
    for (; list < made; list++)
        if (list->used < oldest->used)
            oldest = list;
    const struct tern_mask_slot old = *oldest;
    *oldest = *made;
    oldest->serial = g->serial;
    oldest->state = state;
    oldest->used = ++m->clock;
    *made = old;
    made->serial = 0;
    made->used = 0;
    return oldest;
}

bool tern_masks_walk_own(struct tern_mask_walk *w, const struct tern_grammar_item *item,
                         uint32_t n_nodes)
{
    const struct tern_grammar *g = w->step->grammar;
    const struct tern_grammar_state_row *row = &g->states[item->state];
    struct tern_mask_level *levels = w->m->levels;
    bool ok = true;
    for (uint32_t i = 0; i < row->n_ranges; i++) {
        const struct tern_grammar_range r = g->ranges[row->ranges + i];
        for (uint32_t byte = r.lo; byte <= r.hi; byte++) {
            for (uint32_t k = w->trie->first[byte]; k < w->trie->first[byte + 1];) {
                const struct tern_trie_node n = w->trie->nodes[k];
                w->m->ways[0] = (struct tern_grammar_way){r.to, item->count, item->node};
                levels[1] = (struct tern_mask_level){.to = 1, .n_nodes = n_nodes};
                if (n.token != TERN_TRIE_NO_TOKEN)
                    set_bit(w->bits, n.token);
                if (n.skip > 1) {
                    if (w->slot)
                        begin_level(&levels[1], k, may_leave(w, &levels[1]));
                    ok &= tern_masks_walk(w, k + 1, k + n.skip);
                }
                k += n.skip;
            }
        }
    }
    return ok;
}

/* False: there are too many exits. */
static bool make_open(struct tern_masks *m, const struct tern_grammar *g, uint32_t state,
                      struct tern_mask_slot *slot)
{
    const struct tern_grammar_item item = {.state = state};
    struct tern_grammar_step step = tern_masks_step(m, g);
    step.floor = 0;
    slot->n_exits = 0;
    memset(slot->taken, 0, sizeof slot->taken);
    memset(slot->bits, 0, m->n_words * sizeof *slot->bits);
    struct tern_mask_walk w = {m, slot->rest ? &m->rest : &m->all, &step, slot->bits, slot, 0,
                               NULL};
    return tern_masks_walk_own(&w, &item, 0);
}

const struct tern_mask_slot *tern_masks_open(struct tern_masks *m, const struct tern_grammar *g,
                                             uint32_t state)
{
    struct tern_mask_slot *slot = find_slot(m, g, state, false);
    if (slot->serial)
        return slot;
    const uint64_t before = m->n_visited;
    slot->rest = takes_plain(g, state, false);
    slot->follow = follow_of(g, state);
    slot->apart = false;
    if (!make_open(m, g, state, slot)) {
        slot->apart = true;
        if (!make_open(m, g, state, slot))
            return NULL;
    }
    for (uint32_t i = 0; slot->rest && i < m->n_words; i++)
        slot->bits[i] |= m->plain[i];
    return slot->rest || m->n_visited - before >= KEPT_FROM ? keep(m, slot, g, state) : slot;
}

/* --- counted characters --- */

/* Levels hold a state and how many have been completed; the unit has no calls, and where it ends
 * it does nothing else. */
static bool go_counted(struct tern_masks *m, const struct tern_trie *trie,
                       const struct tern_grammar *g, uint32_t start, struct tern_mask_slot *slot)
{
    struct tern_mask_level *levels = m->levels;
    bool ok = true;
    uint32_t visited = 0;
    for (uint32_t i = 0; i < trie->n; visited++) {
        const struct tern_trie_node n = trie->nodes[i];
        struct tern_mask_level *at = &levels[n.depth - 1];
        struct tern_mask_level *to = &levels[n.depth];
        const bool ended = g->states[at->state].flags & TERN_GRAMMAR_LAST;
        const uint32_t next = tern_grammar_next(g, ended ? start : at->state, (uint8_t)n.byte);
        to->count = at->count;
        ok &= note_byte(slot, at, n.byte, next);
        if (!next || to->count >= TERN_MASK_MOST_COUNT) {
            i += n.skip;
            continue;
        }
        to->state = next - 1;
        begin_level(to, i, g->states[to->state].flags & TERN_GRAMMAR_LAST);
        if (n.token != TERN_TRIE_NO_TOKEN)
            slot->counts[n.token] = (uint8_t)(to->count + 1);
        to->count += to->leaves; /* completed ones from here on */
        i++;
    }
    m->n_visited += visited;
    return ok;
}

const struct tern_mask_slot *tern_masks_open_counted(struct tern_masks *m,
                                                     const struct tern_grammar *g, uint32_t state,
                                                     uint32_t start)
{
    struct tern_mask_slot *slot = find_slot(m, g, state, true);
    if (slot->serial)
        return slot;
    slot->apart = true;
    slot->rest = state == start && takes_plain(g, start, true);
    slot->follow = follow_of(g, state);
    slot->n_exits = 0;
    if (slot->rest)
        memcpy(slot->counts, m->plain_length, 32 * (size_t)m->n_words);
    else
        memset(slot->counts, TERN_MASK_NOT_IN, 32 * (size_t)m->n_words);
    m->levels[0] = (struct tern_mask_level){.state = state};
    const struct tern_trie *trie = slot->rest ? &m->rest : &m->all;
    if (!go_counted(m, trie, g, start, slot))
        return NULL;
    return keep(m, slot, g, state);
}
