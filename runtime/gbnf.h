/* gbnf.h: a grammar in the making: what lies in scratch memory while one is compiled.
 *
 *   gbnf.c           text -> rules, each a piece of one automaton with empty edges and calls
 *   gbnf_symbol.c    literals, ranges of characters as ranges of bytes, repetition
 *   grammar_link.c   what is nullable, left-recursive, unproductive; which rules become part of
 *                    others and which stay units that are called
 *   grammar_build.c  each unit determinised, and copied to where it stays
 */
#ifndef TERN_GBNF_H
#define TERN_GBNF_H

#include "runtime/grammar.h"

#define TERN_GBNF_NONE UINT32_MAX

enum tern_gbnf_edge_kind {
    TERN_GBNF_EMPTY, TERN_GBNF_BYTE, TERN_GBNF_CALL, TERN_GBNF_TOKEN, TERN_GBNF_NOT_TOKEN,
};

/* arg: a call's number, or a token. A range of bytes whose lo is above its hi is a dead end. */
struct tern_gbnf_edge { uint32_t next, to, arg; uint8_t kind, lo, hi; };
struct tern_gbnf_state { uint32_t edges, mark; };

/* from: the state it starts at; once it is part of another rule, rule is NONE. */
struct tern_gbnf_call {
    uint32_t rule, least, most; /* most NONE: without end */
    uint32_t from, to;
    uint32_t next, next_made;   /* of the same rule; made in the same rule */
};

struct tern_gbnf_rule {
    tern_text name;            /* empty: a repeated group */
    size_t at;                 /* in the text: its definition, or else its first use */
    uint32_t start, end;
    uint32_t calls, n_calls;   /* of it */
    uint32_t made, walk;       /* calls made in it; the next one of a walk */
    uint32_t owner;            /* the rule that it is part of */
    uint32_t unit;             /* its number once it is one */
    bool defined, nullable, productive, reached, walking, walked, is_unit, circular;
    bool loop;                 /* what is repeated without end, and calls rules */
};

struct tern_gbnf {
    tern_text text;
    const struct tern_model *model; /* token terminals need it */
    tern_error *err;
    size_t at;                      /* in the text */
    struct tern_gbnf_state *states;
    struct tern_gbnf_edge *edges;
    struct tern_gbnf_rule *rules;
    struct tern_gbnf_call *calls;
    uint32_t *slots;                /* [2 * cap_rules] rules by name */
    uint32_t *stack, *order;        /* [cap_states] for walks */
    uint32_t *rule_of;              /* [cap_states] */
    uint32_t n_states, n_edges, n_rules, n_calls;
    uint32_t cap_states, cap_edges, cap_rules, cap_calls;
    uint32_t root;
};

/* --- gbnf.c --- */
tern_status tern_gbnf_parse(struct tern_gbnf *b);
/* An error at a place of the text, "line 3, column 7: what"; answers false. */
bool tern_gbnf_wrong(struct tern_gbnf *b, size_t at, const char *what);
bool tern_gbnf_wrong_rule(struct tern_gbnf *b, uint32_t rule, const char *what);

/* --- gbnf_symbol.c --- */
/* New ones; NONE, and an error, if there are too many. */
uint32_t tern_gbnf_state(struct tern_gbnf *b);
uint32_t tern_gbnf_rule(struct tern_gbnf *b, tern_text name, size_t at);
bool tern_gbnf_edge(struct tern_gbnf *b, uint32_t from, uint32_t to,
                    enum tern_gbnf_edge_kind kind, uint32_t arg);
bool tern_gbnf_call(struct tern_gbnf *b, uint32_t from, uint32_t to, struct tern_gbnf_call call);
/* Code points first .. last as bytes of UTF-8; surrogates are left out. */
bool tern_gbnf_range(struct tern_gbnf *b, uint32_t from, uint32_t to, uint32_t first,
                     uint32_t last);
/* A character at b->at, escapes resolved. */
bool tern_gbnf_char(struct tern_gbnf *b, uint32_t *cp);
/* [...] from b->at on, behind its opening bracket. */
bool tern_gbnf_class(struct tern_gbnf *b, uint32_t from, uint32_t to);
/* What stands between from and to, made of the states and calls from first_state and first_call on,
 * to be repeated; nothing leads to it yet. */
struct tern_gbnf_piece { uint32_t from, to, first_state, first_call; };
bool tern_gbnf_repeat(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t least,
                      uint32_t most);

/* --- grammar_link.c --- */
tern_status tern_grammar_link(struct tern_gbnf *b);

/* --- grammar_build.c --- */
struct tern_arena;
tern_status tern_grammar_build(struct tern_gbnf *b, struct tern_arena *scratch,
                               struct tern_arena *kept, tern_grammar **out);

#endif
