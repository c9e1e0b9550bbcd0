/* logits_file.h: log-probabilities of a text in a file, to compare two runs. The format is in
 * tools/LOGITS.md. */
#ifndef TERN_LOGITS_FILE_H
#define TERN_LOGITS_FILE_H

#include "runtime/tern.h"

struct tern_logits_head { char magic[8]; uint32_t version, n_vocab, n_ctx, n_windows; };

/* A distribution: log-probability i is top - step * codes[i]. */
struct tern_logits_row { float top, step; uint16_t codes[]; };

size_t tern_logits_row_bytes(uint32_t n_vocab);
/* lse is the logarithm of the sum of the exponentials of logits. */
void tern_logits_encode(struct tern_logits_row *row, const float *logits, size_t n, double lse);
/* KL(row || logits) in nats; *same tells whether both have the same best token. */
double tern_logits_kl(const struct tern_logits_row *row, const float *logits, size_t n, double lse,
                      bool *same);

/* Makes a new file, or opens one and checks that it was made on these tokens. Returns the
 * descriptor, at the first row, or -1: line says why. */
int tern_logits_create(const char *path, const struct tern_logits_head *head,
                       const tern_token *tokens, char line[320]);
int tern_logits_open(const char *path, const struct tern_logits_head *head,
                     const tern_token *tokens, char line[320]);
bool tern_logits_write(int fd, const void *data, size_t n);
bool tern_logits_read(int fd, void *data, size_t n);

#endif
