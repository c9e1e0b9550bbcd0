/* score.h: what a batch of logits says of the tokens that follow, shared out to the threads:
 * -log p of each, and how far its distribution is from one in a file. */
#ifndef TERN_SCORE_H
#define TERN_SCORE_H

#include "tools/out.h"
#include "tools/session.h"

enum { TERN_SCORE_ROWS = 128 };

struct tern_score {
    int save, base;          /* descriptors of files of logits, or -1 */
    tern_memory rows_memory; /* rows of such a file */
    tern_memory kl_memory;
    float *kl;               /* of each position scored */
    uint64_t n_scored, n_same;
    double nll, nll2;        /* sums of -log p and of its square */
};

bool tern_score_map(struct tern_score *s, uint32_t row_cap, uint32_t n_vocab, uint64_t n_scored,
                    char line[TERN_ARGS_LINE]);
void tern_score_unmap(struct tern_score *s);
/* The n_rows (at most TERN_SCORE_ROWS) logits of the last decode; next follows each. */
bool tern_score_rows(struct tern_score *s, const struct tern_session *session, uint32_t n_rows,
                     const tern_token *next, char line[TERN_ARGS_LINE]);
/* Mean and percentiles of the divergence; sorts it. */
void tern_score_write_kl(struct tern_score *s, struct tern_out *o, bool json);

#endif
