/* grammar_build.c: each unit made deterministic, and copied to where it stays.
 *
 * The textbook's construction of subsets: a state is a set of states of the rules' automaton. Calls
 * and tokens are letters like bytes, so what the construction leaves open is only whether to call
 * or to read, which is settled when it runs. Sets are kept sorted, without states that have but
 * empty edges, and found by their hash. States from which a unit's end can not be reached are
 * dropped: whatever a grammar lets in can be finished.
 *
 * A text of some kilobytes can ask for more work than anyone waits for. So steps are counted, and
 * there may be as many as the scratch memory has room for: so many for each state.
 */
#include "runtime/gbnf.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/hash.h"

#include <string.h>

enum { STEPS_A_STATE = 800 };

struct row { uint32_t set, n_set, ranges, calls, tokens; bool final, alive; };

struct builder {
    struct tern_gbnf *b;
    struct row *rows;                   /* [cap_rows] */
    uint32_t *pool, *slots, *set;       /* of all sets; rows by hash; the one in the making */
    uint32_t *bytes, *others;           /* edges of the row being worked on */
    uint32_t *unit_rules;
    struct tern_grammar_range *ranges;
    struct tern_grammar_call *calls;
    struct tern_grammar_token *tokens;
    uint32_t n_rows, n_pool, n_set, n_stack, n_units, n_ranges, n_calls, n_tokens, n_dense;
    uint32_t cap_rows, cap_pool, cap_slots, cap_ranges, cap_links;
    uint32_t stamp, end;                /* end: of the unit's rule */
    uint64_t steps;
};

static bool out_of(struct builder *u, const char *what)
{
    (void)tern_fail(u->b->err, TERN_BAD_MODEL, "grammar: more %s than its memory holds", what);
    return false;
}

static bool work(struct builder *u, uint64_t steps)
{
    u->steps += steps;
    return u->steps <= (uint64_t)STEPS_A_STATE * u->b->cap_states ||
           out_of(u, "steps (800 a state)");
}

/* --- sets --- */

static void begin_set(struct builder *u)
{
    u->n_set = u->n_stack = 0;
    u->stamp++;
}

static void add(struct builder *u, uint32_t state)
{
    if (u->b->states[state].mark == u->stamp)
        return;
    u->b->states[state].mark = u->stamp;
    u->b->stack[u->n_stack++] = state;
}

static void sort(uint32_t *x, uint32_t n)
{
    for (uint32_t gap = n / 2; gap; gap /= 2)
        for (uint32_t i = gap; i < n; i++) {
            const uint32_t moved = x[i];
            uint32_t at = i;
            for (; at >= gap && x[at - gap] > moved; at -= gap)
                x[at] = x[at - gap];
            x[at] = moved;
        }
}

static void close_set(struct builder *u)
{
    const struct tern_gbnf *b = u->b;
    while (u->n_stack) {
        const uint32_t state = b->stack[--u->n_stack];
        bool matters = state == u->end;
        for (uint32_t e = b->states[state].edges; e != TERN_GBNF_NONE;
             e = b->edges[e].next, u->steps++)
            if (b->edges[e].kind == TERN_GBNF_EMPTY)
                add(u, b->edges[e].to);
            else
                matters = true;
        if (matters)
            u->set[u->n_set++] = state;
    }
    sort(u->set, u->n_set);
}

/* The row of the set that was added up; NONE: there are too many. */
static uint32_t row_of_set(struct builder *u)
{
    close_set(u);
    const size_t bytes = u->n_set * sizeof *u->set;
    if (!work(u, 4 * u->n_set))
        return TERN_GBNF_NONE;
    uint32_t slot = (uint32_t)tern_hash_of(u->set, bytes) % u->cap_slots;
    for (; u->slots[slot]; slot = (slot + 1) % u->cap_slots) {
        const struct row *r = &u->rows[u->slots[slot] - 1];
        if (r->n_set == u->n_set && memcmp(u->pool + r->set, u->set, bytes) == 0)
            return u->slots[slot] - 1;
    }
    if (u->n_rows == u->cap_rows || u->n_set > u->cap_pool - u->n_pool) {
        out_of(u, u->n_rows == u->cap_rows ? "states (65535)" : "sets of states");
        return TERN_GBNF_NONE;
    }
    u->rows[u->n_rows] = (struct row){.set = u->n_pool, .n_set = u->n_set};
    memcpy(u->pool + u->n_pool, u->set, bytes);
    u->n_pool += u->n_set;
    u->slots[slot] = ++u->n_rows;
    return u->n_rows - 1;
}

/* --- a row's ways on --- */

static bool add_range(struct builder *u, uint32_t row, uint32_t lo, uint32_t hi, uint32_t to)
{
    if (u->n_ranges > u->rows[row].ranges) {
        struct tern_grammar_range *last = &u->ranges[u->n_ranges - 1];
        if (last->to == to && last->hi + 1u == lo) {
            last->hi = (uint8_t)hi;
            return true;
        }
    }
    if (u->n_ranges == u->cap_ranges)
        return out_of(u, "ranges");
    u->ranges[u->n_ranges++] = (struct tern_grammar_range){(uint8_t)lo, (uint8_t)hi, (uint16_t)to};
    return true;
}

/* Between two places where a range begins or has ended, all bytes lead to the same set. */
static bool find_ranges(struct builder *u, uint32_t row, uint32_t n)
{
    const struct tern_gbnf_edge *edges = u->b->edges;
    bool cuts[257] = {false};
    for (uint32_t i = 0; i < n; i++)
        cuts[edges[u->bytes[i]].lo] = cuts[edges[u->bytes[i]].hi + 1] = true;
    for (uint32_t lo = 0, hi; lo < 256; lo = hi + 1) {
        for (hi = lo; hi < 255 && !cuts[hi + 1];)
            hi++;
        begin_set(u);
        u->steps += n;
        for (uint32_t i = 0; i < n; i++)
            if (edges[u->bytes[i]].lo <= lo && hi <= edges[u->bytes[i]].hi)
                add(u, edges[u->bytes[i]].to);
        if (!u->n_stack)
            continue;
        const uint32_t to = row_of_set(u);
        if (to == TERN_GBNF_NONE || !add_range(u, row, lo, hi, to))
            return false;
    }
    return true;
}

static bool same_letter(const struct tern_gbnf *b, const struct tern_gbnf_edge *x,
                        const struct tern_gbnf_edge *y)
{
    if (x->kind != y->kind || x->kind != TERN_GBNF_CALL)
        return x->kind == y->kind && x->arg == y->arg;
    const struct tern_gbnf_call *p = &b->calls[x->arg], *q = &b->calls[y->arg];
    return p->rule == q->rule && p->least == q->least && p->most == q->most;
}

static uint32_t unit_of(struct builder *u, uint32_t rule)
{
    struct tern_gbnf_rule *r = &u->b->rules[rule];
    if (r->unit == TERN_GBNF_NONE) {
        r->unit = u->n_units;
        u->unit_rules[u->n_units++] = rule;
    }
    return r->unit;
}

static bool add_link(struct builder *u, const struct tern_gbnf_edge *e, uint32_t to)
{
    if (u->n_calls == u->cap_links || u->n_tokens == u->cap_links)
        return out_of(u, "calls or tokens");
    if (e->kind == TERN_GBNF_CALL) {
        const struct tern_gbnf_call *c = &u->b->calls[e->arg];
        u->calls[u->n_calls++] = (struct tern_grammar_call){unit_of(u, c->rule), to, c->least,
                                                            c->most};
    } else {
        u->tokens[u->n_tokens++] = (struct tern_grammar_token){
            (tern_token)e->arg, to, e->kind == TERN_GBNF_NOT_TOKEN};
    }
    return true;
}

static bool find_links(struct builder *u, uint32_t n)
{
    const struct tern_gbnf *b = u->b;
    for (uint32_t i = 0; i < n; i++) {
        const struct tern_gbnf_edge letter = b->edges[u->others[i]];
        uint32_t left = i + 1;
        begin_set(u);
        u->steps += n - i;
        add(u, letter.to);
        for (uint32_t k = i + 1; k < n; k++)
            if (same_letter(b, &letter, &b->edges[u->others[k]]))
                add(u, b->edges[u->others[k]].to);
            else
                u->others[left++] = u->others[k];
        n = left;
        const uint32_t to = row_of_set(u);
        if (to == TERN_GBNF_NONE || !add_link(u, &letter, to))
            return false;
    }
    return true;
}

static bool work_on(struct builder *u, uint32_t row)
{
    const struct tern_gbnf *b = u->b;
    struct row *r = &u->rows[row];
    uint32_t n_bytes = 0, n_others = 0;
    r->ranges = u->n_ranges;
    r->calls = u->n_calls;
    r->tokens = u->n_tokens;
    for (uint32_t i = 0; i < r->n_set; i++) {
        const uint32_t state = u->pool[r->set + i];
        r->final |= state == u->end;
        for (uint32_t e = b->states[state].edges; e != TERN_GBNF_NONE; e = b->edges[e].next)
            if (b->edges[e].kind == TERN_GBNF_BYTE && b->edges[e].lo <= b->edges[e].hi)
                u->bytes[n_bytes++] = e;
            else if (b->edges[e].kind > TERN_GBNF_BYTE)
                u->others[n_others++] = e;
    }
    if (n_others > UINT16_MAX)
        return out_of(u, "calls or tokens at one place (65535)");
    return find_ranges(u, row, n_bytes) && find_links(u, n_others);
}

/* All units that the root needs; starts[i] is where the i-th begins. */
static bool make_rows(struct builder *u, uint32_t *starts)
{
    uint32_t done = 0;
    unit_of(u, u->b->root);
    for (uint32_t i = 0; i < u->n_units; i++) {
        u->end = u->b->rules[u->unit_rules[i]].end;
        begin_set(u);
        add(u, u->b->rules[u->unit_rules[i]].start);
        starts[i] = row_of_set(u);
        if (starts[i] == TERN_GBNF_NONE)
            return false;
        for (; done < u->n_rows; done++)
            if (!work_on(u, done))
                return false;
    }
    /* One past the last, so that each row's lists end where the next one's begin. */
    u->rows[u->n_rows].ranges = u->n_ranges;
    u->rows[u->n_rows].calls = u->n_calls;
    u->rows[u->n_rows].tokens = u->n_tokens;
    return true;
}

/* --- what can be finished --- */

static bool leads_on(const struct builder *u, const struct row *r)
{
    for (uint32_t i = r->ranges; i < r[1].ranges; i++)
        if (u->rows[u->ranges[i].to].alive)
            return true;
    for (uint32_t i = r->calls; i < r[1].calls; i++)
        if (u->rows[u->calls[i].to].alive)
            return true;
    for (uint32_t i = r->tokens; i < r[1].tokens; i++)
        if (u->rows[u->tokens[i].to].alive)
            return true;
    return r->final;
}

static bool find_alive(struct builder *u)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = u->n_rows; i-- > 0;)
            if (!u->rows[i].alive && leads_on(u, &u->rows[i]))
                u->rows[i].alive = changed = true;
        if (!work(u, u->n_rows))
            return false;
    }
    return true;
}

/* --- to where they stay --- */

/* Lists lose what is dead; a row's `set` becomes its number. */
static uint32_t number_rows(struct builder *u)
{
    uint32_t n = 0, n_ranges = 0, n_calls = 0, n_tokens = 0;
    for (uint32_t i = 0; i < u->n_rows; i++)
        u->rows[i].set = u->rows[i].alive ? n++ : TERN_GBNF_NONE;
    for (uint32_t i = 0; i < u->n_rows; i++) {
        struct row *r = &u->rows[i];
        const uint32_t ranges = r->ranges, calls = r->calls, tokens = r->tokens;
        r->ranges = n_ranges;
        r->calls = n_calls;
        r->tokens = n_tokens;
        for (uint32_t k = ranges; r->alive && k < r[1].ranges; k++) {
            const struct row *to = &u->rows[u->ranges[k].to];
            u->ranges[n_ranges] = u->ranges[k];
            u->ranges[n_ranges].to = (uint16_t)to->set;
            n_ranges += to->alive;
        }
        for (uint32_t k = calls; r->alive && k < r[1].calls; k++) {
            u->calls[n_calls] = u->calls[k];
            u->calls[n_calls].to = u->rows[u->calls[k].to].set;
            n_calls += u->calls[n_calls].to != TERN_GBNF_NONE;
        }
        for (uint32_t k = tokens; r->alive && k < r[1].tokens; k++) {
            u->tokens[n_tokens] = u->tokens[k];
            u->tokens[n_tokens].to = u->rows[u->tokens[k].to].set;
            n_tokens += u->tokens[n_tokens].to != TERN_GBNF_NONE;
        }
        u->n_dense += n_ranges - r->ranges > TERN_GRAMMAR_DENSE;
    }
    u->rows[u->n_rows].ranges = u->n_ranges = n_ranges;
    u->rows[u->n_rows].calls = u->n_calls = n_calls;
    u->rows[u->n_rows].tokens = u->n_tokens = n_tokens;
    return n;
}

static struct tern_grammar_state_row state_row(const struct builder *u, const struct row *r,
                                               uint16_t *dense, uint32_t *n_dense)
{
    struct tern_grammar_state_row s = {
        .ranges = r->ranges, .calls = r->calls, .tokens = r->tokens, .dense = TERN_GRAMMAR_NONE,
        .n_ranges = (uint16_t)(r[1].ranges - r->ranges),
        .n_calls = (uint16_t)(r[1].calls - r->calls),
        .n_tokens = (uint16_t)(r[1].tokens - r->tokens),
        .flags = r->final ? TERN_GRAMMAR_FINAL : 0,
    };
    if (r->final && !s.n_ranges && !s.n_calls && !s.n_tokens)
        s.flags |= TERN_GRAMMAR_LAST;
    if (!r->final && !s.n_calls)
        s.flags |= TERN_GRAMMAR_PLAIN;
    if (s.n_ranges > TERN_GRAMMAR_DENSE) {
        s.dense = (*n_dense)++;
        for (uint32_t i = r->ranges; i < r[1].ranges; i++)
            for (uint32_t byte = u->ranges[i].lo; byte <= u->ranges[i].hi; byte++)
                dense[(size_t)s.dense * 256 + byte] = (uint16_t)(u->ranges[i].to + 1u);
    }
    return s;
}

/* Whether that is news to a set. */
static bool add_bytes(uint32_t set[8], const uint32_t more[8])
{
    uint32_t new = 0;
    for (uint32_t w = 0; w < 8; w++) {
        new |= more[w] & ~set[w];
        set[w] |= more[w];
    }
    return new != 0;
}

static bool add_first(const struct tern_grammar *g, uint32_t state, uint32_t set[8])
{
    const struct tern_grammar_state_row *s = &g->states[state];
    const struct tern_grammar_range *r = g->ranges + s->ranges;
    uint32_t first[8] = {0};
    for (uint32_t k = 0; k < s->n_ranges; k++)
        for (uint32_t c = r[k].lo; c <= r[k].hi; c++)
            first[c >> 5] |= 1u << (c & 31);
    for (uint32_t k = 0; k < s->n_calls; k++)
        add_bytes(first, g->units[g->calls[s->calls + k].unit].first);
    return add_bytes(set, first);
}

/* What follows the units that a state calls: what stands behind the call, and if that may be
 * nothing what follows its own unit; of what is repeated, itself. */
static bool add_follow(const struct tern_grammar *g, struct tern_grammar_unit *units,
                       uint32_t unit, uint32_t state)
{
    const struct tern_grammar_state_row *s = &g->states[state];
    bool changed = false;
    for (uint32_t k = 0; k < s->n_calls; k++) {
        const struct tern_grammar_call *c = &g->calls[s->calls + k];
        uint32_t *follow = units[c->unit].follow;
        changed |= add_first(g, c->to, follow);
        if (g->states[c->to].flags & TERN_GRAMMAR_FINAL)
            changed |= add_bytes(follow, units[unit].follow);
        if (c->most != 1)
            changed |= add_bytes(follow, units[c->unit].first);
    }
    return changed;
}

/* Bytes that units begin with, and those that come behind them, by rounds until none learns of
 * more. */
static bool find_bytes(struct builder *u, const struct tern_grammar *g,
                       struct tern_grammar_unit *units)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = g->n_units; i-- > 0;)
            changed |= add_first(g, units[i].start, units[i].first);
        if (!work(u, 16 * g->n_units))
            return false;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < g->n_units; i++) {
            const uint32_t end = i + 1 < g->n_units ? units[i + 1].start : g->n_states;
            for (uint32_t s = units[i].start; s < end; s++)
                changed |= add_follow(g, units, i, s);
        }
        if (!work(u, g->n_states + 16 * (uint64_t)g->n_calls))
            return false;
    }
    return true;
}

/* False without an error: the memory for it is too small. */
static bool copy_kept(struct builder *u, struct tern_arena *kept, const uint32_t *starts,
                      uint32_t n, tern_grammar **out)
{
    struct tern_grammar *g = tern_carve(kept, 1, sizeof *g, 64);
    struct tern_grammar_state_row *states = tern_carve(kept, n, sizeof *states, 16);
    struct tern_grammar_range *ranges = tern_carve(kept, u->n_ranges, sizeof *ranges, 16);
    struct tern_grammar_call *calls = tern_carve(kept, u->n_calls, sizeof *calls, 16);
    struct tern_grammar_token *tokens = tern_carve(kept, u->n_tokens, sizeof *tokens, 16);
    struct tern_grammar_unit *units = tern_carve(kept, u->n_units, sizeof *units, 16);
    uint16_t *dense = tern_carve(kept, u->n_dense, 256 * sizeof *dense, 64);
    uint32_t n_dense = 0;
    if (kept->failed)
        return false;
    memcpy(ranges, u->ranges, u->n_ranges * sizeof *ranges);
    memcpy(calls, u->calls, u->n_calls * sizeof *calls);
    memcpy(tokens, u->tokens, u->n_tokens * sizeof *tokens);
    for (uint32_t i = 0; i < u->n_rows; i++)
        if (u->rows[i].alive)
            states[u->rows[i].set] = state_row(u, &u->rows[i], dense, &n_dense);
    for (uint32_t i = 0; i < u->n_units; i++) {
        const uint32_t next = i + 1 < u->n_units ? starts[i + 1] : u->n_rows;
        units[i].start = u->rows[starts[i]].set;
        units[i].simple = true;
        for (uint32_t k = starts[i]; k < next; k++) { /* a unit's rows lie together */
            if (!u->rows[k].alive)
                continue;
            const struct tern_grammar_state_row *s = &states[u->rows[k].set];
            if (s->n_calls || s->n_tokens ||
                (u->rows[k].final && !(s->flags & TERN_GRAMMAR_LAST)))
                units[i].simple = false;
        }
    }
    *g = (struct tern_grammar){states, ranges, calls, tokens, units, dense, n, u->n_ranges,
                               u->n_calls, u->n_tokens, u->n_units, n_dense, 0, 0};
    g->serial = tern_hash_of(u->b->text.data, u->b->text.size);
    *out = g;
    return find_bytes(u, g, units);
}

static bool lay_out(struct builder *u, struct tern_arena *a, uint32_t **starts)
{
    const struct tern_gbnf *b = u->b;
    const uint32_t cap = b->cap_states;
    u->cap_rows = cap < TERN_GRAMMAR_MOST_STATES ? cap : TERN_GRAMMAR_MOST_STATES;
    u->cap_pool = 8 * cap;
    u->cap_slots = 2 * u->cap_rows + 1;
    u->cap_ranges = 2 * cap;
    u->cap_links = cap;
    u->rows = tern_carve(a, (size_t)u->cap_rows + 1, sizeof *u->rows, 16);
    u->pool = tern_carve_raw(a, u->cap_pool, sizeof *u->pool, 16);
    u->slots = tern_carve(a, u->cap_slots, sizeof *u->slots, 16);
    u->set = tern_carve_raw(a, cap, sizeof *u->set, 16);
    u->bytes = tern_carve_raw(a, b->cap_edges, sizeof *u->bytes, 16);
    u->others = tern_carve_raw(a, b->cap_edges, sizeof *u->others, 16);
    u->unit_rules = tern_carve_raw(a, b->cap_rules, sizeof *u->unit_rules, 16);
    *starts = tern_carve_raw(a, b->cap_rules, sizeof **starts, 16);
    u->ranges = tern_carve_raw(a, (size_t)u->cap_ranges + 1, sizeof *u->ranges, 16);
    u->calls = tern_carve_raw(a, (size_t)u->cap_links + 1, sizeof *u->calls, 16);
    u->tokens = tern_carve_raw(a, (size_t)u->cap_links + 1, sizeof *u->tokens, 16);
    return !a->failed;
}

tern_status tern_grammar_build(struct tern_gbnf *b, struct tern_arena *scratch,
                               struct tern_arena *kept, tern_grammar **out)
{
    struct builder u = {.b = b};
    uint32_t *starts;
    if (!lay_out(&u, scratch, &starts))
        return tern_fail(b->err, TERN_NO_MEMORY, "grammar: the scratch memory is too small");
    for (uint32_t i = 0; i < b->n_states; i++)
        b->states[i].mark = 0;
    for (uint32_t i = 0; i < b->n_rules; i++)
        b->rules[i].unit = TERN_GBNF_NONE;
    if (!make_rows(&u, starts) || !find_alive(&u))
        return TERN_BAD_MODEL;
    const bool copied = copy_kept(&u, kept, starts, number_rows(&u), out);
    if (!copied && !kept->failed)
        return TERN_BAD_MODEL;
    if (!copied)
        return tern_fail(b->err, TERN_NO_MEMORY, "grammar memory: %u bytes, more needed",
                         (uint64_t)kept->size);
    return TERN_OK;
}
