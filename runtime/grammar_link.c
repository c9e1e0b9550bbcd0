/* grammar_link.c: from rules to units.
 *
 * Four questions, each one walk: what can be empty; which rules call themselves before they have
 * read anything (an error); which never come to an end (what leads there is dropped); and which
 * need a stack. A rule that is called in last place alone, and from one unit alone, is a jump: so
 * lists written as recursion, and the chains that a JSON schema's optional properties make, become
 * plain automata. Of the others, those that are called once or are small are put where they are
 * called; what remains, and whatever calls itself in the middle, is a unit.
 *
 * All walks keep their stacks in scratch memory.
 */
#include "runtime/gbnf.h"

#include "runtime/error.h"

enum { NULLABLE = 1, PRODUCTIVE = 2 };     /* marks of states: reached from their rule's start */
/* States of a rule that is put in place, and of all its copies. */
enum { SMALL = 12, MOST_COPIED = 160, MOST_COPIES = 1000 };
enum { MOST_JUMPS = 64, MOST_ROUNDS = 1000, MOST_CUTS = 16 };

/* --- what can be reached how --- */

static void reach(struct tern_gbnf *b, uint32_t state, uint32_t mark, uint32_t *n)
{
    if (b->states[state].mark & mark)
        return;
    b->states[state].mark |= mark;
    b->stack[(*n)++] = state;
}

static bool passes(const struct tern_gbnf *b, const struct tern_gbnf_edge *e, uint32_t mark)
{
    if (e->kind == TERN_GBNF_EMPTY)
        return true;
    if (e->kind != TERN_GBNF_CALL)
        return mark == PRODUCTIVE && e->lo <= e->hi;
    const struct tern_gbnf_call *c = &b->calls[e->arg];
    return !c->least || (mark == NULLABLE ? b->rules[c->rule].nullable
                                          : b->rules[c->rule].productive);
}

/* The end of a rule is reached: so is what stands behind its calls. */
static void complete(struct tern_gbnf *b, uint32_t rule, uint32_t mark, uint32_t *n)
{
    struct tern_gbnf_rule *r = &b->rules[rule];
    *(mark == NULLABLE ? &r->nullable : &r->productive) = true;
    for (uint32_t c = r->calls; c != TERN_GBNF_NONE; c = b->calls[c].next)
        if (b->states[b->calls[c].from].mark & mark)
            reach(b, b->calls[c].to, mark, n);
}

static void mark_all(struct tern_gbnf *b, uint32_t mark)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_states; i++)
        b->order[i] = TERN_GBNF_NONE;
    for (uint32_t r = 0; r < b->n_rules; r++)
        b->order[b->rules[r].end] = r;
    for (uint32_t r = 0; r < b->n_rules; r++) {
        reach(b, b->rules[r].start, mark, &n);
        while (n) {
            const uint32_t state = b->stack[--n];
            if (b->order[state] != TERN_GBNF_NONE)
                complete(b, b->order[state], mark, &n);
            for (uint32_t e = b->states[state].edges; e != TERN_GBNF_NONE; e = b->edges[e].next)
                if (passes(b, &b->edges[e], mark))
                    reach(b, b->edges[e].to, mark, &n);
        }
    }
}

/* The rule that each state is of; NONE: it can not be reached. */
static void find_rules(struct tern_gbnf *b)
{
    for (uint32_t i = 0; i < b->n_states; i++)
        b->rule_of[i] = TERN_GBNF_NONE;
    for (uint32_t r = 0; r < b->n_rules; r++) {
        uint32_t n = 1;
        b->stack[0] = b->rules[r].start;
        b->rule_of[b->stack[0]] = r;
        while (n) {
            const uint32_t state = b->stack[--n];
            for (uint32_t e = b->states[state].edges; e != TERN_GBNF_NONE; e = b->edges[e].next)
                if (b->rule_of[b->edges[e].to] == TERN_GBNF_NONE) {
                    b->rule_of[b->edges[e].to] = r;
                    b->stack[n++] = b->edges[e].to;
                }
        }
        b->rules[r].owner = r;
    }
}

/* Lists of the calls that each rule, or what it has become part of, makes. */
static void list_made(struct tern_gbnf *b)
{
    for (uint32_t r = 0; r < b->n_rules; r++) {
        b->rules[r].made = TERN_GBNF_NONE;
        b->rules[r].walking = b->rules[r].walked = false;
    }
    for (uint32_t c = 0; c < b->n_calls; c++) {
        const uint32_t rule = b->rule_of[b->calls[c].from];
        if (b->calls[c].rule == TERN_GBNF_NONE || rule == TERN_GBNF_NONE)
            continue;
        struct tern_gbnf_rule *owner = &b->rules[b->rules[rule].owner];
        b->calls[c].next_made = owner->made;
        owner->made = c;
    }
}

/* --- left recursion --- */

/* The next call that a walk goes to: of those made before anything is read, or of all. */
static uint32_t next_call(struct tern_gbnf *b, struct tern_gbnf_rule *r, bool left)
{
    while (r->walk != TERN_GBNF_NONE) {
        const uint32_t c = r->walk;
        r->walk = b->calls[c].next_made;
        if (b->calls[c].rule != TERN_GBNF_NONE &&
            (!left || b->states[b->calls[c].from].mark & NULLABLE))
            return c;
    }
    return TERN_GBNF_NONE;
}

static void enter(struct tern_gbnf *b, uint32_t rule, uint32_t *n)
{
    b->rules[rule].walking = true;
    b->rules[rule].walk = b->rules[rule].made;
    b->stack[(*n)++] = rule;
}

/* The next call of the rule on top of the stack; TERN_GBNF_NONE: it has no more, and is left. */
static uint32_t step(struct tern_gbnf *b, uint32_t *n, bool left)
{
    struct tern_gbnf_rule *rule = &b->rules[b->stack[*n - 1]];
    const uint32_t c = next_call(b, rule, left);
    if (c == TERN_GBNF_NONE) {
        rule->walking = false;
        rule->walked = true;
        --*n;
    }
    return c;
}

static bool check_left(struct tern_gbnf *b)
{
    for (uint32_t r = 0; r < b->n_rules; r++) {
        uint32_t n = 0;
        if (!b->rules[r].walked)
            enter(b, r, &n);
        while (n) {
            const uint32_t c = step(b, &n, true);
            if (c == TERN_GBNF_NONE)
                continue;
            const uint32_t to = b->calls[c].rule;
            if (b->rules[to].walking)
                return tern_gbnf_wrong_rule(b, to, "is left-recursive: it comes to itself before "
                                                   "anything is read");
            if (!b->rules[to].walked)
                enter(b, to, &n);
        }
    }
    return true;
}

/* --- calls as they are made --- */

/* Dead ends are cut, and where nothing need be read an edge goes past the call. */
static bool cut_and_bypass(struct tern_gbnf *b)
{
    const uint32_t n = b->n_states;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t e = b->states[s].edges; e != TERN_GBNF_NONE; e = b->edges[e].next) {
            if (b->edges[e].kind != TERN_GBNF_CALL)
                continue;
            struct tern_gbnf_call *c = &b->calls[b->edges[e].arg];
            const struct tern_gbnf_rule *r = &b->rules[c->rule];
            const bool empty = !c->least || r->nullable;
            if (!r->productive) {
                b->edges[e].kind = empty ? TERN_GBNF_EMPTY : TERN_GBNF_BYTE;
                b->edges[e].lo = 1;
                c->rule = TERN_GBNF_NONE;
            } else if (empty) {
                c->least = 1; /* once it is called, one is read */
                if (!tern_gbnf_edge(b, s, b->edges[e].to, TERN_GBNF_EMPTY, 0))
                    return false;
            }
        }
    return true;
}

/* Whether nothing stands between a state and its rule's end. */
static bool is_last(const struct tern_gbnf *b, uint32_t state, uint32_t end)
{
    for (uint32_t i = 0; state != end; i++) {
        const uint32_t e = b->states[state].edges;
        if (i == MOST_JUMPS || e == TERN_GBNF_NONE || b->edges[e].next != TERN_GBNF_NONE ||
            b->edges[e].kind != TERN_GBNF_EMPTY)
            return false;
        state = b->edges[e].to;
    }
    return true;
}

/* Rules that are reached from the root, callers before what they call (but for circles). Answers
 * how many. */
static uint32_t walk_from_root(struct tern_gbnf *b)
{
    uint32_t n = 0, n_order = 0;
    list_made(b);
    enter(b, b->root, &n);
    while (n) {
        struct tern_gbnf_rule *rule = &b->rules[b->stack[n - 1]];
        const uint32_t c = next_call(b, rule, false);
        rule->reached = true;
        if (c == TERN_GBNF_NONE)
            b->order[n_order++] = b->stack[--n];
        else if (!b->rules[b->calls[c].rule].walking)
            enter(b, b->calls[c].rule, &n);
    }
    for (uint32_t i = 0; i < n_order / 2; i++) {
        const uint32_t last = b->order[n_order - 1 - i];
        b->order[n_order - 1 - i] = b->order[i];
        b->order[i] = last;
    }
    return n_order;
}

/* --- jumps --- */

static uint32_t caller(const struct tern_gbnf *b, uint32_t call)
{
    const uint32_t rule = b->rule_of[b->calls[call].from];
    return rule == TERN_GBNF_NONE || !b->rules[rule].reached ? TERN_GBNF_NONE : rule;
}

static bool only_jumped_to(const struct tern_gbnf *b, uint32_t rule)
{
    if (rule == b->root)
        return false;
    for (uint32_t c = b->rules[rule].calls; c != TERN_GBNF_NONE; c = b->calls[c].next) {
        const uint32_t from = caller(b, c);
        if (from != TERN_GBNF_NONE &&
            (b->calls[c].least != 1 || b->calls[c].most != 1 ||
             !is_last(b, b->calls[c].to, b->rules[from].end)))
            return false;
    }
    return true;
}

/* The one unit whose rules jump to this one; itself if there are several. */
static uint32_t owner_of(const struct tern_gbnf *b, uint32_t rule)
{
    uint32_t owner = TERN_GBNF_NONE;
    for (uint32_t c = b->rules[rule].calls; c != TERN_GBNF_NONE; c = b->calls[c].next) {
        const uint32_t from = caller(b, c);
        if (from == TERN_GBNF_NONE || from == rule || b->rules[from].owner == TERN_GBNF_NONE)
            continue;
        if (owner != TERN_GBNF_NONE && owner != b->rules[from].owner)
            return rule;
        owner = b->rules[from].owner;
    }
    return owner;
}

static void find_owners(struct tern_gbnf *b, uint32_t n)
{
    bool changed = true;
    for (uint32_t i = 0; i < n; i++)
        b->rules[b->order[i]].owner = only_jumped_to(b, b->order[i]) ? TERN_GBNF_NONE
                                                                    : b->order[i];
    for (uint32_t i = 0; i < n; i++) /* walked: its owner may still change */
        b->rules[b->order[i]].walked = b->rules[b->order[i]].owner == TERN_GBNF_NONE;
    for (uint32_t round = 0; changed && round < MOST_ROUNDS; round++) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            struct tern_gbnf_rule *r = &b->rules[b->order[i]];
            const uint32_t owner = r->walked ? owner_of(b, b->order[i]) : r->owner;
            changed |= owner != r->owner;
            r->walked &= owner != b->order[i];
            r->owner = owner;
        }
    }
    for (uint32_t i = 0; changed && i < n; i++)
        b->rules[b->order[i]].owner = b->order[i];
}

/* In last place, of the unit that it is made in. */
static bool jumps_to_itself(const struct tern_gbnf *b, uint32_t call)
{
    const struct tern_gbnf_call *c = &b->calls[call];
    const uint32_t from = caller(b, call);
    return b->rules[from].owner == c->rule && c->least == 1 && c->most == 1 &&
           is_last(b, c->to, b->rules[from].end);
}

/* Calls in a list become jumps, and the rule's end its owner's. */
static bool make_jumps(struct tern_gbnf *b)
{
    for (uint32_t s = 0; s < b->n_states; s++)
        for (uint32_t e = b->states[s].edges; e != TERN_GBNF_NONE; e = b->edges[e].next) {
            struct tern_gbnf_edge *edge = &b->edges[e];
            if (edge->kind != TERN_GBNF_CALL || caller(b, edge->arg) == TERN_GBNF_NONE)
                continue;
            struct tern_gbnf_call *c = &b->calls[edge->arg];
            if (b->rules[c->rule].owner == c->rule && !jumps_to_itself(b, edge->arg))
                continue;
            edge->kind = TERN_GBNF_EMPTY;
            edge->to = b->rules[c->rule].start;
            c->rule = TERN_GBNF_NONE;
        }
    for (uint32_t r = 0; r < b->n_rules; r++) {
        const uint32_t owner = b->rules[r].owner;
        if (b->rules[r].reached && owner != r &&
            !tern_gbnf_edge(b, b->rules[r].end, b->rules[owner].end, TERN_GBNF_EMPTY, 0))
            return false;
    }
    return true;
}

/* --- rules put where they are called --- */

static bool known(const uint32_t *list, uint32_t n, uint32_t state, uint32_t *at)
{
    for (*at = 0; *at < n; ++*at)
        if (list[*at] == state)
            return true;
    return false;
}

/* The states of a rule, if there are few: their number, or MOST_COPIED + 1. */
static uint32_t list_states(const struct tern_gbnf *b, uint32_t rule,
                            uint32_t list[MOST_COPIED + 1])
{
    uint32_t n = 1, at;
    list[0] = b->rules[rule].start;
    if (!known(list, n, b->rules[rule].end, &at))
        list[n++] = b->rules[rule].end;
    for (uint32_t i = 0; i < n && n <= MOST_COPIED; i++)
        for (uint32_t e = b->states[list[i]].edges; e != TERN_GBNF_NONE && n <= MOST_COPIED;
             e = b->edges[e].next)
            if (!known(list, n, b->edges[e].to, &at))
                list[n++] = b->edges[e].to;
    return n;
}

static bool copy_rule(struct tern_gbnf *b, uint32_t edge, uint32_t rule, const uint32_t *list,
                      uint32_t n)
{
    const uint32_t base = b->n_states, back = b->edges[edge].to;
    uint32_t to, end;
    for (uint32_t i = 0; i < n; i++)
        if (tern_gbnf_state(b) == TERN_GBNF_NONE)
            return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = b->states[list[i]].edges; e != TERN_GBNF_NONE; e = b->edges[e].next) {
            const struct tern_gbnf_edge old = b->edges[e];
            known(list, n, old.to, &to);
            if (!(old.kind == TERN_GBNF_CALL
                      ? tern_gbnf_call(b, base + i, base + to, b->calls[old.arg])
                      : tern_gbnf_edge(b, base + i, base + to, old.kind, old.arg)))
                return false;
            b->edges[b->n_edges - 1].lo = old.lo;
            b->edges[b->n_edges - 1].hi = old.hi;
        }
    known(list, n, b->rules[rule].end, &end);
    b->edges[edge].kind = TERN_GBNF_EMPTY;
    b->edges[edge].to = base; /* its start is the first of the list */
    return tern_gbnf_edge(b, base + end, back, TERN_GBNF_EMPTY, 0);
}

static bool put_in_place(struct tern_gbnf *b, uint32_t call)
{
    struct tern_gbnf_call *c = &b->calls[call];
    struct tern_gbnf_rule *r = &b->rules[c->rule];
    uint32_t list[MOST_COPIED + 1], edge = b->states[c->from].edges;
    while (b->edges[edge].kind != TERN_GBNF_CALL || b->edges[edge].arg != call)
        edge = b->edges[edge].next;
    const bool alone = r->n_calls == 1 && !r->is_unit;
    const uint32_t rule = c->rule, n = alone ? 0 : list_states(b, rule, list);
    if (n > SMALL && (n > MOST_COPIED || n * (uint64_t)r->n_calls > MOST_COPIES)) {
        r->is_unit = true;
        return true;
    }
    c->rule = TERN_GBNF_NONE;
    if (n)
        return copy_rule(b, edge, rule, list, n);
    b->edges[edge].kind = TERN_GBNF_EMPTY;
    b->edges[edge].to = r->start;
    return tern_gbnf_edge(b, r->end, c->to, TERN_GBNF_EMPTY, 0);
}

static bool put_all_in_place(struct tern_gbnf *b, uint32_t rule)
{
    for (uint32_t c = b->rules[rule].made; c != TERN_GBNF_NONE; c = b->calls[c].next_made)
        if (b->calls[c].rule != TERN_GBNF_NONE && !b->rules[b->calls[c].rule].circular &&
            b->calls[c].least == 1 && b->calls[c].most == 1 && !put_in_place(b, c))
            return false;
    return true;
}

/* The rule to be cut in a circle that the stack's last comes back to `to` by; NONE: it is cut. */
static uint32_t rule_to_cut(const struct tern_gbnf *b, uint32_t to, uint32_t n, uint32_t round)
{
    while (round > 0 && round < MOST_CUTS && n-- > 0) {
        const struct tern_gbnf_rule *rule = &b->rules[b->stack[n]];
        if (rule->circular)
            return TERN_GBNF_NONE;
        if (rule->loop)
            return b->stack[n];
        if (b->stack[n] == to)
            break;
    }
    return to;
}

/* Whether anything was cut. */
static bool cut_from(struct tern_gbnf *b, uint32_t start, uint32_t round)
{
    uint32_t n = 0;
    bool any = false;
    if (!b->rules[start].walked)
        enter(b, start, &n);
    while (n) {
        const uint32_t c = step(b, &n, false);
        if (c == TERN_GBNF_NONE)
            continue;
        const uint32_t to = b->calls[c].rule;
        if (b->rules[to].circular || b->rules[to].walked || (!round && b->rules[to].loop))
            continue;
        if (!b->rules[to].walking) {
            enter(b, to, &n);
            continue;
        }
        const uint32_t cut = rule_to_cut(b, to, n, round);
        if (cut != TERN_GBNF_NONE)
            b->rules[cut].is_unit = b->rules[cut].circular = any = true;
    }
    return any;
}

/* Every circle of calls gets a rule that is called. First those without a loop are cut, where they
 * are come back to; then, where circles are left, the loop in them: so a list within a list is a
 * unit, and what it lists a part of it. A walk sees a rule once and need not meet all circles:
 * hence the rounds, and a last one that cuts wherever it comes back, and so all. */
static void cut_circles(struct tern_gbnf *b)
{
    bool any = true;
    for (uint32_t round = 0; round <= MOST_CUTS && (any || round == 1); round++) {
        any = false;
        list_made(b);
        for (uint32_t r = 0; r < b->n_rules; r++)
            if (b->rules[r].reached && b->rules[r].owner == r)
                any |= cut_from(b, r, round);
    }
}

/* From the leaves up: what is put in place has all of its own in place. */
static bool place_from(struct tern_gbnf *b, uint32_t start)
{
    uint32_t n = 0;
    if (!b->rules[start].walked)
        enter(b, start, &n);
    while (n) {
        const uint32_t rule = b->stack[n - 1];
        const uint32_t c = next_call(b, &b->rules[rule], false);
        if (c != TERN_GBNF_NONE) {
            const struct tern_gbnf_rule *to = &b->rules[b->calls[c].rule];
            if (!to->circular && !to->walking && !to->walked)
                enter(b, b->calls[c].rule, &n);
            continue;
        }
        b->rules[rule].walking = false;
        b->rules[rule].walked = true;
        n--;
        if (!put_all_in_place(b, rule))
            return false;
    }
    return true;
}

/* What is counted is a unit as well. */
static bool find_units(struct tern_gbnf *b)
{
    for (uint32_t r = 0; r < b->n_rules; r++)
        b->rules[r].n_calls = 0;
    for (uint32_t c = 0; c < b->n_calls; c++)
        if (b->calls[c].rule != TERN_GBNF_NONE && caller(b, c) != TERN_GBNF_NONE) {
            struct tern_gbnf_rule *r = &b->rules[b->calls[c].rule];
            const bool counted = b->calls[c].least != 1 || b->calls[c].most != 1;
            r->n_calls += !counted;
            r->is_unit |= counted;
        }
    b->rules[b->root].is_unit = true;
    cut_circles(b);
    list_made(b);
    for (uint32_t r = 0; r < b->n_rules; r++)
        if (b->rules[r].reached && b->rules[r].is_unit && !place_from(b, r))
            return false;
    return true;
}

tern_status tern_grammar_link(struct tern_gbnf *b)
{
    b->at = b->text.size;
    mark_all(b, NULLABLE);
    mark_all(b, PRODUCTIVE);
    find_rules(b);
    list_made(b);
    if (!check_left(b))
        return TERN_BAD_MODEL;
    if (!b->rules[b->root].productive) {
        tern_gbnf_wrong_rule(b, b->root, "can never come to its end");
        return TERN_BAD_MODEL;
    }
    if (!cut_and_bypass(b))
        return TERN_BAD_MODEL;
    find_owners(b, walk_from_root(b));
    return make_jumps(b) && find_units(b) ? TERN_OK : TERN_BAD_MODEL;
}
