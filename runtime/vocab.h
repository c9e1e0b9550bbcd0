/* vocab.h: the tables of a vocabulary, shared by the files that turn text to ids and back.
 *
 *   pieces   one pool of bytes, n + 1 offsets, a kind and (where merging needs it) a score each
 *   slots    piece -> id, open addressing; a word is the id and eleven bits of the hash, so that
 *            nearly every failing lookup ends without touching the pool
 *   pairs    (left id, right id) -> rank of the merge, all three packed in a word; merged[rank]
 *   special  ids of the pieces that are found in text before anything else, sorted by their
 *            bytes: a sorted list is a trie that needs no nodes
 *
 * A GGUF's vocabulary is turned into these tables when it is opened (vocab_read.c); a Tern image
 * holds them ready, and nobody has looked at them (image_vocab.c). So whoever indexes by a number
 * that stands in a table checks it then: opening takes no time that grows with the vocabulary,
 * and tables that lie give wrong tokens, never a wrong address.
 */
#ifndef TERN_VOCAB_H
#define TERN_VOCAB_H

#include "runtime/pretokenize.h"
#include "runtime/tokenizer.h"

enum tern_vocab_family { TERN_VOCAB_SPM, TERN_VOCAB_BPE, TERN_VOCAB_WPM };

enum {
    TERN_VOCAB_ID_BITS = 21,   /* of a slot and of either half of a pair */
    TERN_VOCAB_RANK_BITS = 22, /* of a pair */
    TERN_VOCAB_MAX_TOKENS = (1 << TERN_VOCAB_ID_BITS) - 1,
    TERN_VOCAB_MAX_MERGES = (1 << TERN_VOCAB_RANK_BITS) - 1,
};

#define TERN_VOCAB_NONE UINT32_MAX

struct tern_vocab {
    tern_text kind, pre_name;
    const struct tern_pre *pre;
    enum tern_vocab_family family;
    bool adds_bos, adds_eos, adds_space; /* before the first word, and after a special token */
    bool words_stand_alone;              /* SPM: no piece goes on from a word into a space */
    bool unique;                         /* no two pieces are equal */
    tern_token bos, eos, eot, eom, pad, unk, sep;

    uint32_t n_tokens, n_slots, n_merges, n_pairs, n_specials;
    uint32_t pool_bytes;
    uint32_t longest;         /* bytes of the longest piece, at most TERN_MAX_PIECE */
    uint32_t longest_special; /* of the special ones */
    const char *pool;
    const uint32_t *starts;  /* [n_tokens + 1] */
    const uint8_t *kinds;    /* [n_tokens] enum tern_token_kind, and TERN_VOCAB_ENDS */
    const float *scores;     /* [n_tokens], SPM alone */
    const uint32_t *slots;   /* [n_slots] */
    const uint64_t *pairs;   /* [n_pairs] */
    const uint32_t *merged;  /* [n_merges] id that the merge of this rank makes */
    const tern_token *bytes; /* [256] the token of a single byte; -1: none */
    const uint32_t *specials;      /* [n_specials] */
    const uint32_t *special_first; /* [257] where those that begin with a byte stand */
    const uint16_t *special_reach; /* [256] bytes of the longest that begins with it */
};

enum { TERN_VOCAB_ENDS = 0x80 };

/* The piece of any number: empty for one that is no id, or that the tables get wrong. */
static inline tern_text tern_vocab_piece(const struct tern_vocab *v, uint32_t id)
{
    if (id >= v->n_tokens)
        return (tern_text){v->pool, 0};
    const uint32_t from = v->starts[id], to = v->starts[id + 1];
    if (from > to || to > v->pool_bytes || to - from > v->longest)
        return (tern_text){v->pool, 0};
    return (tern_text){v->pool + from, to - from};
}

static inline tern_token_kind tern_vocab_piece_kind(const struct tern_vocab *v, uint32_t id)
{
    return (tern_token_kind)(v->kinds[id] & ~TERN_VOCAB_ENDS);
}

/* The id of a piece of any kind, or TERN_VOCAB_NONE. */
uint32_t tern_vocab_find(const struct tern_vocab *v, tern_text piece);
/* The same for what plain text may become: never a control, unknown or byte token. */
uint32_t tern_vocab_find_plain(const struct tern_vocab *v, tern_text piece);
/* Rank of the merge of two tokens, or TERN_VOCAB_NONE. */
uint32_t tern_vocab_rank(const struct tern_vocab *v, uint32_t left, uint32_t right);

/* The longest special piece that begins at `at` and ends by `limit`; false if none does. With
 * control, control and unknown tokens count as well. */
struct tern_special { size_t at, size; tern_token id; };
bool tern_vocab_special(const struct tern_vocab *v, tern_text text, size_t at, size_t limit,
                        bool control, struct tern_special *out);

/* For vocab_read.c: fill the tables of pieces, pairs and specials. False: too many collide. Of
 * equal pieces the lowest id is kept, of equal pairs the lowest rank. pairs begins all ones. */
bool tern_vocab_index(struct tern_vocab *v, uint32_t *slots);
bool tern_vocab_add_pair(struct tern_vocab *v, uint64_t *pairs, uint32_t left, uint32_t right,
                         uint32_t rank);
void tern_vocab_sort_specials(struct tern_vocab *v, uint32_t *ids, uint32_t *first,
                              uint16_t *reach);

/* The code point that stands for a byte in the pieces of byte-level BPE, and back (-1: none). */
uint32_t tern_vocab_cp_of_byte(unsigned char byte);
int tern_vocab_byte_of_cp(uint32_t cp);
/* The byte that a piece such as <0x0A> spells; -1: it is of another form. */
int tern_vocab_byte_of_piece(tern_text piece);

#endif
