/* chat_known.h: the tokens that a conversation is given as, so that a turn computes new ones alone.
 *
 * At each turn the whole conversation is rendered anew, as templates may change what lies behind
 * (reasoning of old answers goes, say). What it has in common with the tokens that the sequence
 * holds need not be computed again. But an answer, read as text, is often cut into other tokens
 * than those that were sampled; compared by tokens alone, every second answer would be computed
 * again from its middle on. So the text that the held tokens spell is kept beside them, with the
 * places where answers end. If a new rendering begins with the same text up to such a place, the
 * held tokens stand for it, and only the rest is cut into tokens: it has to begin with a control
 * token, before which nothing can grow together with anything.
 *
 * Text counts as the same only if it has the same origin, the template or a person: "<|im_end|>"
 * that somebody typed is not the token. What the model wrote counts as either. */
#ifndef TERN_CHAT_KNOWN_H
#define TERN_CHAT_KNOWN_H

#include "tools/args.h"
#include "tools/out.h"

enum { TERN_CHAT_MARKS = 128 };
enum { TERN_CHAT_OF_USER, TERN_CHAT_OF_TEMPLATE, TERN_CHAT_OF_MODEL };

struct tern_chat_mark { size_t bytes, tokens; };
struct tern_chat_known {
    tern_memory memory;
    tern_token *ids;             /* those that the sequence holds */
    size_t n, cap;
    struct tern_out text, whose; /* what they spell, and the origin of each byte */
    struct tern_chat_mark marks[TERN_CHAT_MARKS];
    size_t n_marks;
    tern_detok detok;            /* of the answer that is being written */
};

/* Tokens of one rendering. kept: its marks up to this one are still good. */
struct tern_chat_ids { tern_memory memory; tern_token *ids; size_t n, kept; };

bool tern_chat_known_open(struct tern_chat_known *k, size_t n_ctx);
void tern_chat_known_close(struct tern_chat_known *k);
/* Nothing is held any more. */
void tern_chat_known_clear(struct tern_chat_known *k);

/* How many marks, of the first n, the rendering reaches: its text up to the last of these is the
 * known one. */
size_t tern_chat_known_reach(const struct tern_chat_known *k, const tern_rendered *r, size_t n);
/* How many tokens two lists begin with in common. */
size_t tern_chat_same(const tern_token *a, size_t n, const tern_token *b, size_t n_b);

/* The tokens of a rendering, by what is known; flags as tern_chat_flags has them. */
bool tern_chat_known_encode(const struct tern_chat_known *k, const tern_model *model,
                            const tern_rendered *r, uint32_t flags, struct tern_chat_ids *out,
                            char line[TERN_ARGS_LINE]);
void tern_chat_ids_free(struct tern_chat_ids *ids);

/* The sequence now holds the tokens of this rendering, at most cap. False: no memory. */
bool tern_chat_known_take(struct tern_chat_known *k, const tern_rendered *r,
                          const struct tern_chat_ids *ids);
/* And one that was generated. */
void tern_chat_known_add(struct tern_chat_known *k, const tern_model *model, tern_token token);
/* The answer is over, and the sequence holds n tokens. */
void tern_chat_known_end(struct tern_chat_known *k, size_t n);

#endif
