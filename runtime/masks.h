/* masks.h: which tokens of a vocabulary a grammar lets in next.
 *
 * The vocabulary's bytes lie in a trie, in the order of a walk through it: a node says how many
 * nodes hang below it, so what begins with a refused byte is passed over in one step. A walk costs
 * what is let in, and a few nodes more. Most is let in inside of strings. Therefore
 *
 *   - tokens that are nothing but whole characters that stand in a JSON string as they are (plain
 *     ones) are known beforehand, as bits and with their lengths in characters. Where a state takes
 *     all of these, only the others are walked, and they have a trie of their own;
 *   - what a state lets in as long as its unit is not left is kept, with the nodes where the unit
 *     may be left and what can follow it follows, from where the walk goes on in the caller's. So
 *     all strings of a schema share what is kept of one, whatever follows them;
 *   - where characters are counted, what is kept is how many of them a token takes: so all bounds
 *     and all counts share it too.
 */
#ifndef TERN_MASKS_H
#define TERN_MASKS_H

#include "runtime/grammar.h"

struct tern_arena;

/* skip: nodes of its subtree, itself included. Equal tokens are siblings with the same byte. */
struct tern_trie_node { uint32_t skip : 24, byte : 8, token : 24, depth : 8; };
enum { TERN_TRIE_NO_TOKEN = 0xFFFFFF };
struct tern_trie {
    struct tern_trie_node *nodes;
    uint32_t n;
    uint32_t *first; /* [257] where the nodes of each first byte begin */
};

enum {
    TERN_MASK_SLOTS = 32,         /* states whose masks are kept */
    TERN_MASK_COUNTED_SLOTS = 4,  /* and of those that are counted */
    TERN_MASK_ALL_SLOTS = TERN_MASK_SLOTS + TERN_MASK_COUNTED_SLOTS + 2,
    TERN_MASK_EXITS = 4096, TERN_MASK_COUNTED_EXITS = 16384,
    TERN_MASK_MOST_COUNT = 126, TERN_MASK_NOT_IN = 127,
    TERN_MASK_LEVELS = 256, TERN_MASK_WAYS = 4096, TERN_MASK_NODES = 4096,
    TERN_MASK_ITEMS = 512,
};

/* A node of the trie at which the frame may be left; bytes: those below it that can not be read
 * without leaving, by their numbers below 64, and as 0 if they are others. */
struct tern_mask_exit { uint32_t node, count; uint64_t bytes; };
/* What is kept of a state. */
struct tern_mask_slot {
    uint64_t serial;              /* of its grammar; 0: free */
    uint32_t state, used;
    uint32_t n_exits, cap_exits;
    bool apart;                   /* exits are for bytes alone that can not be read as well ... */
    uint32_t taken[8];            /* ... and these were read where the frame might be left */
    bool rest;                    /* exits are nodes of the trie of others */
    const uint32_t *follow;       /* while it is made: bytes that can come behind its unit */
    uint32_t *bits;               /* [n_words]; NULL where counts are kept */
    uint8_t *counts;              /* [n_words * 32] or NULL */
    struct tern_mask_exit *exits; /* [cap_exits] */
};

/* exit: of its node, plus 1; where there is a slot. */
struct tern_mask_level { uint32_t from, to, n_nodes, state, count, node, exit; bool leaves; };

struct tern_masks {
    const struct tern_model *model;
    uint32_t n_vocab, n_words, clock;
    bool built;
    struct tern_trie all, rest;
    uint32_t *plain;              /* [n_words] */
    uint8_t *plain_length;        /* [n_words * 32] characters; NOT_IN: it is not plain */
    struct tern_mask_slot *slots; /* [TERN_MASK_ALL_SLOTS]: states, counted ones; each kind has
                                     one more, in which what is not kept yet is made */
    struct tern_mask_level *levels;
    struct tern_grammar_way *ways;
    struct tern_grammar_node *nodes;
    struct tern_grammar_item *items, *starts;
    uint32_t *ends;               /* [n_words] tokens that end a text */
    unsigned char *scratch;       /* while the trie is built: lies over what is kept */
    size_t scratch_bytes;
    uint64_t n_visited;           /* nodes of tries, for those who measure */
};

/* mask_trie.c */
/* Whether the model has a vocabulary, and one that can be had. */
tern_status tern_masks_check(const struct tern_model *model, tern_error *err);
void tern_masks_lay_out(struct tern_arena *a, struct tern_masks *m, const struct tern_model *model);
/* Reads the vocabulary, once. */
void tern_masks_build(struct tern_masks *m);

/* masks.c */
uint64_t tern_masks_byte_bit(uint32_t byte); /* of an exit */
struct tern_grammar_step tern_masks_step(struct tern_masks *m, const struct tern_grammar *g);
/* From the ways of level 0 through nodes from .. end - 1, the first of them at depth base + 1.
 * With a slot, nodes are noted at which its frame, 0, may be left; false: there are too many. */
struct tern_mask_walk {
    struct tern_masks *m;
    const struct tern_trie *trie;
    struct tern_grammar_step *step;
    uint32_t *bits;
    struct tern_mask_slot *slot;
    uint32_t base;
    const uint32_t *first; /* bytes that level 0 can go on with, or NULL */
};
bool tern_masks_walk(struct tern_mask_walk *w, uint32_t from, uint32_t end);
/* The first bytes of a state's own ranges, and the walks behind them. */
bool tern_masks_walk_own(struct tern_mask_walk *w, const struct tern_grammar_item *item,
                         uint32_t n_nodes);
/* What a state reads without leaving its frame, kept or made; what a state of a unit that is
 * counted does, which starts anew as often as it ends. NULL: there are too many exits. */
const struct tern_mask_slot *tern_masks_open(struct tern_masks *m, const struct tern_grammar *g,
                                             uint32_t state);
const struct tern_mask_slot *tern_masks_open_counted(struct tern_masks *m,
                                                     const struct tern_grammar *g, uint32_t state,
                                                     uint32_t start);

/* mask_fill.c: bits of tokens that are let in, [n_words]; end tokens are not among them. Answers
 * whether there are any. */
bool tern_masks_fill(struct tern_masks *m, tern_grammar_state *s, uint32_t *bits);

#endif
