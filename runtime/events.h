/* events.h: what a step reports, kept until the caller has taken it.
 *
 * The events of one step, their text and their log-probabilities lie in fixed buffers that hold
 * the most one step can make. New work begins only when all of them have been handed over, so
 * a caller with room for one event loses none.
 */
#ifndef TERN_EVENTS_H
#define TERN_EVENTS_H

#include "runtime/tern.h"

struct tern_arena;
struct tern_sequence;

struct tern_events {
    tern_event *list;
    char *text, *piece;       /* piece: what the detokeniser wrote, before the stop strings */
    tern_logprob *logprobs;
    float *hidden;            /* [n_logit_rows][n_embd], under limits.hidden */
    uint32_t n, n_taken, n_logprobs;
    size_t n_text;
};

void tern_events_lay_out(struct tern_arena *state, struct tern_arena *sampler,
                         struct tern_events *ev, size_t n_embd, const tern_limits *limits);
void tern_events_clear(struct tern_events *ev);
/* Hands over at most cap events; those of sequences closed since are dropped. */
size_t tern_events_take(struct tern_engine *e, tern_event *out, size_t cap);
bool tern_events_pending(const struct tern_engine *e);

/* The log-probability of the prompt token at the sequence's `report`, given the logits before. */
void tern_report_prompt(struct tern_engine *e, struct tern_sequence *s, const float *logits);
/* The hidden state of a token, row i of the last batch's rows with logits. */
void tern_report_hidden(struct tern_engine *e, struct tern_sequence *s, uint32_t position,
                        uint32_t i);
/* Whether the next token is one of the first min_tokens. */
bool tern_is_early(const struct tern_sequence *s);
/* Draws a token, with the early biases or without; appends nothing. */
tern_status tern_draw(struct tern_engine *e, struct tern_sequence *s, const float *logits,
                      bool early, tern_token *token);
/* Chooses the next token, appends and reports it, and ends the sequence where that is due. */
void tern_generate(struct tern_engine *e, struct tern_sequence *s, const float *logits);
/* Ends the run: nothing more comes until it is fed again. token: the end token, or -1. */
void tern_finish(struct tern_engine *e, struct tern_sequence *s, tern_stop stop,
                 tern_token token);

#endif
