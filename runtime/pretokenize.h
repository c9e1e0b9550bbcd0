/* pretokenize.h: the words that byte-pair merging never crosses. */
#ifndef TERN_PRETOKENIZE_H
#define TERN_PRETOKENIZE_H

#include "runtime/tern.h"

enum { TERN_PRE_STAGES = 6 };

/* The end of the match that begins at `at`; nothing at or past `end` is looked at. If there is
 * none the answer is `at`, and it comes in constant time. What no match takes, up to where the
 * next one begins, is a piece as well. */
typedef size_t tern_pre_fn(const unsigned char *text, size_t at, size_t end);

struct tern_pre {
    const char *name;
    tern_pre_fn *stages[TERN_PRE_STAGES]; /* each splits the pieces of the one before; NULL ends */
    bool whole_words; /* a word that is a piece is taken without merging */
    bool adds_bos;    /* unless the file says otherwise */
};

/* By the value of tokenizer.ggml.pre; NULL if it is not known. */
const struct tern_pre *tern_pretokenize_find(tern_text name);

struct tern_split {
    const struct tern_pre *pre;
    const unsigned char *text;
    size_t at, n_stages;
    size_t ends[TERN_PRE_STAGES + 1]; /* of the text, then of each stage's current piece */
};

struct tern_split tern_pretokenize_start(const struct tern_pre *pre, tern_text text);
bool tern_pretokenize_next(struct tern_split *s, tern_text *word);

#endif
