/* kv_store.h: how a block of 16 tokens of one KV head lies in memory, and writing a token.
 *
 * Keys are a panel of quant/format.h whose 16 rows are the tokens and whose k is head_dim, so
 * that q.k is a matmul by the kernels of that type. Rows of q8_0 and q4_0 are padded with zeros
 * to a multiple of 32. Values are rows, token after token: a query adds whole rows.
 *
 *   K f32, f16: dim x | 16 floats or halves, one a token |
 *   K q8_0:     per 32 dims | 16 f16 scales | 8 x 16 runs of 4 quants |
 *   K q4_0:     per 32 dims | 16 f16 scales | 4 x 16 runs of 4 bytes: two codes each |
 *   V:          16 x | dim floats or halves, or ceil(dim / 32) x (f16 scale, 32 quants or 16
 *                      bytes of codes) |
 *
 * Storing one token leaves the others of its block as they are. What is read back is what was
 * stored, whoever reads: the token just written is no exception.
 *
 * f16: rounded to nearest even; magnitudes from 65520 on become infinite, and so an output that
 * is not finite, which ends the sequence with an error and not with wrong text. q8_0: as
 * activations are quantised, d = max|x| / 127 in floats and q = rne(x * (1 / d)); stored is d
 * rounded to f16 (infinite above 65519.99, 0 below 2^-25). A block with a value that is not
 * finite gets d NaN. q4_0: d = m / -8, m the first value of the largest magnitude, code = min(15,
 * rne(x * (1 / d)) + 8), stored is d rounded to f16. The caller rotates what it stores
 * in these two, so that no single value of a head makes the steps of its block coarse. */
#ifndef TERN_KV_STORE_H
#define TERN_KV_STORE_H

#include "platform/cpu/kernels.h"
#include "quant/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERN_KV_TOKENS = 16 };

/* Whether keys and values of this type are rotated (tern_hadamard_fn) before they are stored. */
bool tern_kv_is_rotated(enum tern_type type);
/* Bytes of a block of one head, a multiple of 64; 0 where type is none of F32,
 * F16, Q8_0 and Q4_0. */
size_t tern_kv_k_bytes(enum tern_type type, size_t dim);
size_t tern_kv_v_bytes(enum tern_type type, size_t dim);
/* Bytes from one token's values to the next one's. */
size_t tern_kv_v_row_bytes(enum tern_type type, size_t dim);
/* k of the panel: dim, rounded up to 32 for q8_0 and q4_0. A query is padded with zeros too. */
size_t tern_kv_k_cols(enum tern_type type, size_t dim);

void tern_kv_store_k(const struct tern_kernels *kernels, enum tern_type type, void *block,
                     size_t token, const float *k, size_t dim);
void tern_kv_store_v(const struct tern_kernels *kernels, enum tern_type type, void *block,
                     size_t token, const float *v, size_t dim);

#endif
