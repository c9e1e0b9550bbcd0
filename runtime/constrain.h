/* constrain.h: a sequence that is held to a grammar. */
#ifndef TERN_CONSTRAIN_H
#define TERN_CONSTRAIN_H

#include "runtime/masks.h"

struct tern_engine;
struct tern_sequence;

/* Of one sequence. While it waits for its trigger, nothing is held back; at: how much of the
 * trigger the text ends with. */
struct tern_constrain {
    const tern_grammar *grammar; /* NULL: none */
    tern_grammar_state *state;
    bool waiting, begins; /* begins: the token that is being chosen is the first of the answer */
    uint8_t at, n_trigger;
    char trigger[TERN_MAX_TRIGGER];
};

/* Of the engine: the vocabulary, a mask and a row of logits that was masked. */
struct tern_masking { struct tern_masks masks; uint32_t *bits; float *row; };

void tern_masking_lay_out(struct tern_arena *a, struct tern_masking *m,
                          const struct tern_model *model, const tern_limits *limits);

tern_status tern_constrain_check(const struct tern_engine *e, const tern_seq_options *o,
                                 tern_error *err);
void tern_constrain_set(struct tern_engine *e, struct tern_constrain *c,
                        const tern_seq_options *o);
void tern_constrain_copy(struct tern_constrain *to, const struct tern_constrain *from);
/* At the start of what is generated. */
void tern_constrain_start(struct tern_constrain *c);
/* Chooses a token and reads it; *ends: it ends the text (token -1: the grammar has come to its end
 * and the vocabulary has no such token). */
tern_status tern_constrain_choose(struct tern_engine *e, struct tern_sequence *s,
                                  const float *logits, tern_token *token, bool *ends);

#endif
