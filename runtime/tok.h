/* tok.h: what tokenizer.c shares with the three ways to cut text into pieces. */
#ifndef TERN_TOK_H
#define TERN_TOK_H

#include "runtime/tok_merge.h"
#include "runtime/vocab.h"

/* Counts every token and keeps those that fit. */
struct tern_tok_out { tern_token *tokens; size_t cap, n; };

static inline void tern_tok_emit(struct tern_tok_out *out, tern_token token)
{
    if (out->n < out->cap)
        out->tokens[out->n] = token;
    out->n++;
}

/* Scratch of one call. Offsets in it are of 32 bits: texts are at most TERN_TOK_MAX_TEXT. */
struct tern_tok {
    const struct tern_vocab *vocab;
    struct tern_tok_out out;
    struct tern_merge merge;
    char *text;                  /* SPM, WPM: the text as the vocabulary spells it */
    char *word;                  /* BPE: a word likewise, [2 * TERN_MAX_PIECE] */
    struct tern_special *held;   /* special tokens whose left side is not done yet */
};
enum { TERN_TOK_MAX_TEXT = 1 << 30 };

/* Each emits the tokens of a text that has no special piece in it, and that stands between two
 * of them or an end of the whole. */
void tern_tok_bpe_run(struct tern_tok *t, tern_text text);
void tern_tok_spm_run(struct tern_tok *t, tern_text text);
void tern_tok_wpm_run(struct tern_tok *t, tern_text text);

#endif
