/* grammar.c: a grammar compiled, and what has been read of it. */
#include "runtime/grammar.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/gbnf.h"
#include "runtime/model.h"
#include "runtime/vocab.h"

#include <string.h>

enum { BYTES_A_STATE = 224, LEAST_STATES = 1024 }; /* of scratch */

static void lay_out(struct tern_arena *a, struct tern_gbnf *b, size_t bytes)
{
    const size_t most = bytes / BYTES_A_STATE < (1u << 20) ? bytes / BYTES_A_STATE : 1u << 20;
    b->cap_states = (uint32_t)most;
    b->cap_edges = 2 * b->cap_states;
    b->cap_rules = b->cap_states / 8;
    b->cap_calls = b->cap_states / 2;
    b->states = tern_carve_raw(a, b->cap_states, sizeof *b->states, 16);
    b->edges = tern_carve_raw(a, b->cap_edges, sizeof *b->edges, 16);
    b->rules = tern_carve_raw(a, b->cap_rules, sizeof *b->rules, 16);
    b->calls = tern_carve_raw(a, b->cap_calls, sizeof *b->calls, 16);
    b->slots = tern_carve(a, 2 * (size_t)b->cap_rules, sizeof *b->slots, 16);
    b->stack = tern_carve_raw(a, b->cap_states, sizeof *b->stack, 16);
    b->order = tern_carve_raw(a, b->cap_states, sizeof *b->order, 16);
    b->rule_of = tern_carve_raw(a, b->cap_states, sizeof *b->rule_of, 16);
}

tern_status tern_grammar_compile(tern_memory mem, tern_memory scratch, tern_text gbnf,
                                 const tern_model *model, tern_grammar **out, size_t *used,
                                 tern_error *err)
{
    if (!mem.data || !scratch.data || !out || !used || (!gbnf.data && gbnf.size))
        return tern_fail(err, TERN_BAD_ARGUMENT, "grammar: an argument is NULL");
    if (gbnf.size > TERN_GRAMMAR_MOST_TEXT)
        return tern_fail(err, TERN_BAD_MODEL, "grammar: %u bytes of text, at most %u",
                         (uint64_t)gbnf.size, (uint64_t)TERN_GRAMMAR_MOST_TEXT);
    if (((uintptr_t)mem.data | (uintptr_t)scratch.data) & 63)
        return tern_fail(err, TERN_BAD_ARGUMENT, "grammar: memory is not aligned to 64");
    if (scratch.size / BYTES_A_STATE < LEAST_STATES)
        return tern_fail(err, TERN_NO_MEMORY, "grammar scratch: %u bytes, at least %u",
                         (uint64_t)scratch.size, (uint64_t)BYTES_A_STATE * LEAST_STATES);
    struct tern_gbnf b = {.text = {gbnf.data ? gbnf.data : "", gbnf.size}, .model = model,
                          .err = err};
    struct tern_arena a = tern_arena_over(scratch.data, scratch.size);
    struct tern_arena kept = tern_arena_over(mem.data, mem.size);
    lay_out(&a, &b, scratch.size);
    tern_status status = tern_gbnf_parse(&b);
    if (!status)
        status = tern_grammar_link(&b);
    if (!status)
        status = tern_grammar_build(&b, &a, &kept, out);
    *used = kept.used;
    return status;
}

void tern_grammar_describe(const tern_grammar *g, tern_grammar_info *out)
{
    *out = (tern_grammar_info){g->n_units, g->n_states, g->n_ranges, g->n_calls};
}

/* --- what has been read --- */

void tern_grammar_start(const tern_grammar *g, tern_grammar_state *s)
{
    s->grammar = g;
    s->n_ways = 1;
    s->n_nodes = 0;
    s->overflow = false;
    s->ways[0] = (struct tern_grammar_way){g->units[g->root].start, 0, 0};
}

void tern_grammar_copy(tern_grammar_state *to, const tern_grammar_state *from)
{
    to->grammar = from->grammar;
    to->n_ways = from->n_ways;
    to->n_nodes = from->n_nodes;
    to->overflow = from->overflow;
    memcpy(to->ways, from->ways, from->n_ways * sizeof *to->ways);
    memcpy(to->nodes, from->nodes, from->n_nodes * sizeof *to->nodes);
}

static struct tern_grammar_step begin(tern_grammar_state *s)
{
    return (struct tern_grammar_step){
        .grammar = s->grammar, .nodes = s->nodes, .out = s->next, .items = s->items,
        .n_nodes = s->n_nodes, .cap_nodes = TERN_GRAMMAR_NODES, .cap_out = TERN_GRAMMAR_WAYS,
        .cap_items = TERN_GRAMMAR_ITEMS, .floor = TERN_GRAMMAR_NONE,
    };
}

/* Nodes that no way stands on any longer are dropped; a parent lies before its children. */
static void tidy(tern_grammar_state *s)
{
    uint32_t n = 0;
    uint16_t *mark = s->marks; /* [n_nodes + 1]: 1 kept, later its new number */
    memset(mark, 0, (s->n_nodes + 1u) * sizeof *mark);
    for (uint32_t i = 0; i < s->n_ways; i++)
        mark[s->ways[i].node] = 1;
    for (uint32_t i = s->n_nodes; i > 0; i--)
        if (mark[i])
            mark[s->nodes[i - 1].parent] = 1;
    mark[0] = 0;
    for (uint32_t i = 1; i <= s->n_nodes; i++)
        if (mark[i]) {
            struct tern_grammar_node moved = s->nodes[i - 1];
            moved.parent = mark[moved.parent];
            s->nodes[n++] = moved;
            mark[i] = (uint16_t)n;
        }
    for (uint32_t i = 0; i < s->n_ways; i++)
        s->ways[i].node = mark[s->ways[i].node];
    s->n_nodes = n;
}

/* Takes the ways of a step over, unless there are none. */
static bool take_over(tern_grammar_state *s, const struct tern_grammar_step *step)
{
    s->overflow |= step->full || step->deep;
    if (!step->n_out)
        return false;
    memcpy(s->ways, s->next, step->n_out * sizeof *s->ways);
    s->n_ways = step->n_out;
    s->n_nodes = step->n_nodes;
    tidy(s);
    return true;
}

size_t tern_grammar_advance(tern_grammar_state *s, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct tern_grammar_step step = begin(s);
        for (uint32_t w = 0; w < s->n_ways; w++)
            tern_grammar_step_byte(&step, s->ways[w], ((const uint8_t *)bytes)[i]);
        if (!take_over(s, &step))
            return i;
    }
    return n;
}

bool tern_grammar_accept(tern_grammar_state *s, const tern_model *model, tern_token token)
{
    char bytes[TERN_GRAMMAR_TOKEN_BYTES];
    size_t n = 0;
    if (s->grammar->n_tokens) {
        struct tern_grammar_step step = begin(s);
        for (uint32_t w = 0; w < s->n_ways; w++)
            tern_grammar_step_token(&step, s->ways[w], token);
        if (take_over(s, &step))
            return true;
    }
    return tern_token_bytes(model, token, false, bytes, sizeof bytes, &n) == TERN_OK && n &&
           tern_grammar_advance(s, bytes, n) == n;
}

bool tern_grammar_may_end(tern_grammar_state *s)
{
    struct tern_grammar_step step = begin(s);
    for (uint32_t w = 0; w < s->n_ways; w++)
        if (tern_grammar_step_ends(&step, s->ways[w]))
            return true;
    return false;
}

void tern_grammar_expected(tern_grammar_state *s, uint8_t set[32])
{
    struct tern_grammar_step step = begin(s);
    uint32_t first[8] = {0};
    for (uint32_t w = 0; w < s->n_ways; w++)
        tern_grammar_step_first(&step, s->ways[w], first);
    for (uint32_t i = 0; i < 32; i++)
        set[i] = (uint8_t)(first[i / 4] >> (8 * (i % 4)));
}
