/* grammar.h: a compiled grammar: a pushdown machine over bytes.
 *
 * It consists of units, each a deterministic automaton. A state has ranges of bytes that lead to
 * other states of its unit, calls of units (from least to most times in a row, counted), and
 * tokens. Rules that need no stack are not units: they are part of the automaton that uses them.
 *
 * What has been read is a set of ways: a state, how often the unit that it is in has been
 * completed in a row, and a stack of calls. Stacks share their lower parts: they are nodes that
 * point to their parents. A call reads at least one byte: where its unit may be empty, the caller
 * has an edge past it. A call in last place keeps its caller's frame, so that lists need no depth.
 */
#ifndef TERN_GRAMMAR_H
#define TERN_GRAMMAR_H

#include "runtime/tern.h"

enum {
    TERN_GRAMMAR_FINAL = 1, /* its unit may end here */
    TERN_GRAMMAR_LAST = 2,  /* and can do nothing else */
    TERN_GRAMMAR_PLAIN = 4, /* neither final, nor any calls */
    TERN_GRAMMAR_MOST_STATES = 65535,
    TERN_GRAMMAR_DENSE = 4, /* a state with more ranges has a table of targets */
};
#define TERN_GRAMMAR_NONE UINT32_MAX

struct tern_grammar_state_row {
    uint32_t ranges, calls, tokens, dense; /* where they begin; dense: its table or NONE */
    uint16_t n_ranges, n_calls, n_tokens;
    uint8_t flags;
};
struct tern_grammar_range { uint8_t lo, hi; uint16_t to; };
struct tern_grammar_call { uint32_t unit, to, least, most; }; /* most NONE: without end */
struct tern_grammar_token { tern_token token; uint32_t to; bool not; };

struct tern_grammar_unit {
    uint32_t start;
    uint32_t first[8];      /* bytes that it can begin with, calls included */
    uint32_t follow[8];     /* bytes that can come behind it, wherever it is called */
    bool simple;            /* it has neither calls nor tokens, and where it may end it must */
};

struct tern_grammar {
    const struct tern_grammar_state_row *states;
    const struct tern_grammar_range *ranges;
    const struct tern_grammar_call *calls;
    const struct tern_grammar_token *tokens;
    const struct tern_grammar_unit *units;
    const uint16_t *dense;  /* [n_dense][256] state + 1, 0: none */
    uint32_t n_states, n_ranges, n_calls, n_tokens, n_units, n_dense;
    uint32_t root;          /* the unit that all begins with */
    uint64_t serial;        /* of its contents: masks kept of one are not another's */
};

static inline bool tern_grammar_has(const uint32_t set[8], uint32_t byte)
{
    return set[byte >> 5] >> (byte & 31) & 1;
}

/* The state that a byte leads to within the unit, plus 1; 0: none. */
static inline uint32_t tern_grammar_next(const struct tern_grammar *g, uint32_t state,
                                         uint8_t byte)
{
    const struct tern_grammar_state_row *s = &g->states[state];
    if (s->dense != TERN_GRAMMAR_NONE)
        return g->dense[(size_t)s->dense * 256 + byte];
    const struct tern_grammar_range *r = &g->ranges[s->ranges];
    for (uint32_t i = 0; i < s->n_ranges && r[i].lo <= byte; i++)
        if (byte <= r[i].hi)
            return r[i].to + 1u;
    return 0;
}

/* One pass over ways: where the next ones and the nodes that they need go. Ways that there is no
 * room for are left out, and full or deep says so. */
struct tern_grammar_step {
    const struct tern_grammar *grammar;
    struct tern_grammar_node *nodes;
    struct tern_grammar_way *out;
    struct tern_grammar_item *items;
    uint32_t n_nodes, cap_nodes, n_out, cap_out, n_items, cap_items;
    uint32_t out_from;      /* ways before it are of an earlier level, and not compared with */
    uint32_t floor;         /* a frame that is not left; NONE: there is none */
    bool left;              /* the floor's frame may have been left ... */
    uint32_t left_count;    /* ... with so many completed */
    bool full, deep;
};
void tern_grammar_step_byte(struct tern_grammar_step *s, struct tern_grammar_way way,
                            uint8_t byte);
void tern_grammar_step_token(struct tern_grammar_step *s, struct tern_grammar_way way,
                             tern_token token);
/* The items that stand where a way stands, one after the other. */
void tern_grammar_step_begin(struct tern_grammar_step *s, struct tern_grammar_way way);
bool tern_grammar_step_next(struct tern_grammar_step *s, struct tern_grammar_item *item);
/* Bytes that can come next. */
void tern_grammar_step_first(struct tern_grammar_step *s, struct tern_grammar_way way,
                             uint32_t set[8]);
/* Tokens, by terminals for tokens, are handed to a function. */
void tern_grammar_step_tokens(struct tern_grammar_step *s, struct tern_grammar_way way, void *to,
                              void (*take)(void *to, const struct tern_grammar_token *t));
/* Whether all may end here. */
bool tern_grammar_step_ends(struct tern_grammar_step *s, struct tern_grammar_way way);

#endif
