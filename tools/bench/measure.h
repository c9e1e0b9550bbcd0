/* measure.h: one go of prefill or of decode on an engine, in tokens/s.
 *
 * Prefill is a prompt of n fixed tokens in chunks, logits for its last row alone. Decode is n
 * steps of one row for each sequence of the batch, all with logits, from an empty cache. Neither
 * samples. */
#ifndef TERN_MEASURE_H
#define TERN_MEASURE_H

#include "tools/session.h"

enum { TERN_MEASURE_BATCH = 1024 };

bool tern_measure_prefill(struct tern_session *s, uint32_t n, double *tps);
bool tern_measure_decode(struct tern_session *s, uint32_t batch, uint32_t n, double *tps);
/* Multiply-accumulates by the matrices of the layers for a token of a prompt, and bytes of
 * weights that a step of decode reads. */
void tern_measure_count(const struct tern_session *s, double *macs, double *bytes);

/* What the threads' time went to, as parts of 1, in some steps with their times kept: chunks of
 * a prompt of n tokens (batch 0), or decode and sampling, with the default sampler, of a batch.
 * The times of the last step stay in the engine. */
struct tern_shares { double of[TERN_N_WORKS]; };
bool tern_measure_shares(struct tern_session *s, uint32_t batch, uint32_t n,
                         struct tern_shares *out);

#endif
