/* sampler.h: logits to a token, and to log-probabilities. */
#ifndef TERN_SAMPLER_H
#define TERN_SAMPLER_H

#include "runtime/tern.h"

struct tern_arena;

/* Passes over a row of floats, tern_highest and tern_exp_row of runtime/real.h to the bit; the
 * engine gives its backend's. */
struct tern_row_math {
    const void *self;
    float (*highest)(const void *self, const float *x, size_t n);
    void (*exp_row)(const void *self, float *x, size_t n, float max, float t);
};

/* Scratch of one engine's sampler: one candidate per vocabulary entry, and a count per entry
 * for penalties that is all zeros between calls. */
struct tern_sampler {
    uint32_t n_vocab;
    struct tern_candidate *candidates; /* [n_vocab] */
    uint16_t *counts;                  /* [n_vocab] */
    struct tern_row_math math;         /* plain C until another is set */
};
struct tern_candidate { float logit; tern_token token; };

void tern_sampler_lay_out(struct tern_arena *a, struct tern_sampler *s, uint32_t n_vocab);

/* Checks every parameter, NaN included (comparisons are negated): names the field, value, range. */
tern_status tern_sampling_check(const tern_sampling *how, uint32_t n_vocab, tern_error *err);

/* One choice. history holds the sequence so far (prompt too); position is the index the new
 * token will have, and with (seed, stream) the only source of randomness: Philox4x32-10. Greedy
 * takes the best after biases and penalties; no filter is looked at. NaN or +infinity in the
 * logits, or no finite one after the biases, is TERN_BAD_ARGUMENT: "logits: NaN at token 17". */
tern_status tern_sampler_choose(struct tern_sampler *s, const tern_sampling *how,
                                const float *logits, const tern_token *history,
                                uint32_t n_history, uint32_t position, tern_token *out,
                                tern_error *err);

/* The k best (k <= n_vocab) of the raw distribution, best first, ties by lower id, and the
 * log-probability of one token (token -1: none is asked for), which is
 * (x - max) - log(sum exp(x - max)), the sum in 16 strided lanes and the fixed tree. */
tern_status tern_logprobs(struct tern_sampler *s, const float *logits, uint32_t k,
                          tern_logprob *out, tern_token token, float *logprob, tern_error *err);

#endif
