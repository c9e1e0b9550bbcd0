/* kernels.h: the table of CPU kernels, and how a variant fills it.
 *
 * One C reference per entry (ref/) defines the bits. A variant overrides entries; it never
 * changes a signature or a result. Variants are data, weakest first, so selecting one is a
 * loop and a test can run each of them alone. The table is a member of a backend's state.
 *
 * Bits (runtime/DESIGN.md has the whole text): float32, nearest even, fma only where written;
 * a row is a lane and no lanes of one row are ever added together; a row's blocks are taken
 * in order.
 */
#ifndef TERN_CPU_KERNELS_H
#define TERN_CPU_KERNELS_H

#include "quant/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- activations and matrices --- */

/* Activations of n_tokens tokens. Float matrices (and all of them under exact) take x; integer
 * ones take the record, in planes: per 32 elements d = max|x| / 127, q = rne(x * (1 / d)), sums
 * of the two halves of 16. A block whose magnitudes are all below TERN_QUANTIZE_TINY (1 / d must
 * be finite) has d 0 and q 0; one that holds a value that is not finite has d NaN (and q 0), so
 * that it reaches the output. */
#define TERN_QUANTIZE_TINY 0x1p-120f
struct tern_acts {
    size_t n_tokens;
    const float *x;      /* [n_tokens][x_stride] */
    size_t x_stride;     /* floats */
    const int8_t *q;     /* [n_tokens][n_blocks * 32] */
    const float *d;      /* [n_tokens][n_blocks] */
    const int16_t *sum;  /* [n_tokens][n_blocks][2] */
    size_t n_blocks;     /* of 32, also the stride between tokens */
};

/* dst[token * dst_stride + 16 * panel + r] for the panels asked for. Whole panels are written,
 * so dst_stride is a multiple of 16 that holds them; the lanes past a matrix's rows get +0 or
 * whatever zero weights give. q, d, sum, x and dst may have any alignment; panels are aligned
 * to 64. scratch is the thread's own, TERN_MATMUL_SCRATCH(n_cols) bytes, aligned to 64. again: it
 * is as the call before left it, which had the same format, n_cols and acts, so that what the
 * kernel made of them may be there. */
struct tern_matmul {
    const struct tern_format *format;
    const uint8_t *panels;      /* the first panel of the matrix */
    size_t panel_bytes, n_cols; /* n_cols: a multiple of the format's block */
    const struct tern_acts *acts;
    float *dst;
    size_t dst_stride;          /* floats */
    void *scratch;
    bool again;
};
/* Of the scratch, for each 32 columns; and whatever their number. */
enum { TERN_MATMUL_BLOCK = 24 * 72, TERN_MATMUL_WIDE = 8192 };
#define TERN_MATMUL_SCRATCH(n_cols)                                                               \
    ((((size_t)(n_cols) + 31) / 32) * TERN_MATMUL_BLOCK + 16384 + TERN_MATMUL_WIDE)

/* Panels first .. first + n - 1. Per block of 32 k, in order, from acc = +0:
 *   acc = fma((float)(sc0 * dot0 + sc1 * dot1), scale * d, acc)
 *   acc = fma(-min, d * (float)(m0 * sum0 + m1 * sum1), acc)      where the format has minimums
 * float weights and exact: acc = fma(w, x, acc), k ascending, w = the value decoded to float. */
typedef void tern_matmul_fn(const struct tern_matmul *m, size_t first, size_t n);

/* --- rows --- */

/* 16 strided accumulators (lane i takes elements i, i + 16, ...; fma), then the tree 8+8, 4+4,
 * 2+2, 1+1; dst = (a * (1 / sqrt(sum / n + eps))) * weight. dst may be a. */
typedef void tern_rms_norm_fn(float *dst, const float *a, const float *weight, size_t n,
                              float eps);
/* n elements to ceil(n / 32) blocks of the record; the last is padded with zeros. */
typedef void tern_quantize_fn(int8_t *q, float *d, int16_t *sum, const float *x, size_t n);
/* n floats to halves, as tern_f32_to_f16 rounds them; dst is only as aligned as bytes are. */
typedef void tern_halves_fn(void *dst, const float *x, size_t n);
/* In place: an orthogonal Walsh-Hadamard transform, its own inverse. x is cut into parts whose
 * sizes are powers of two, the largest first (96 = 64 + 32). In a part of size s: for h = 1, 2,
 * 4, .. below s, each pair (x[i], x[i + h]), i / h even, becomes (a + b, a - b); then all are
 * multiplied by 1 / sqrt(s), both rounded to nearest. */
typedef void tern_hadamard_fn(float *x, size_t n);
/* In place, one head: cs[2 i], cs[2 i + 1] are cos and sin of pair i. (a, b) becomes
 * (fma(a, c, -(b * s)), fma(a, s, b * c)). */
typedef void tern_rope_fn(float *x, const float *cs, size_t n_rot);
/* act(gate) * up, a + b, a * x, cap * tanh(a / cap); dst may be an input. */
typedef void tern_mul_act_fn(float *dst, const float *gate, const float *up, size_t n);
typedef void tern_add_fn(float *dst, const float *a, const float *b, size_t n);
typedef void tern_scale_fn(float *dst, const float *a, float x, size_t n);
typedef void tern_softcap_fn(float *dst, const float *a, float cap, size_t n);

/* --- attention: one chunk of 256 absolute positions, one query row of one head --- */

enum { TERN_CHUNK = 256 };
/* Bytes of scratch, aligned to 64, that scores and values of 16 rows may write. */
#define TERN_ATTENTION_SCRATCH(dim) \
    (TERN_MATMUL_SCRATCH(dim) + (((size_t)(dim) + 31) / 32) * 32 * 16 * sizeof(float))

/* Scores of n_tokens query rows (acts) with the keys of blocks first .. last - 1 of a chunk, each
 * a panel of 16 tokens: s[row * 256 + 16 * b + t] = chain * scale, the chain that of a matmul with
 * the panel, rounded before it is scaled. The rest of s is not written, other blocks are not read.
 * A variant without a kernel of its own has the reference's, which calls `matmul` block by block.
 * ahead: memory of ahead_bytes each that is read after this call, for prefetching: the chunk's
 * values; may be NULL. */
struct tern_scores {
    const uint8_t *const *block; /* [16], aligned to 64 */
    size_t first, last;
    const struct tern_format *format;
    size_t n_cols;               /* of the panel */
    const struct tern_acts *acts;
    float scale;
    float *s;                    /* [n_tokens][256], aligned to 64 */
    tern_matmul_fn *matmul;      /* of the keys' type, in the same table */
    void *scratch;               /* TERN_ATTENTION_SCRATCH(n_cols) */
    const uint8_t *const *ahead; /* [16], some may be NULL */
    size_t ahead_bytes;
};
typedef void tern_scores_fn(const struct tern_scores *s);

/* s[lo..hi) are scores of the chunk's keys (lo < hi <= 256). Turns them into p = exp(s - m), m
 * their maximum, and returns the sum of p: lane t takes tokens t, t + 16, ... of the chunk's 256
 * (those in lo..hi alone), plain adds, then the tree. A NaN among them makes *m and the sum NaN.
 * A maximum of -0 is reported as +0. The rest of s is neither read nor written. */
typedef float tern_softmax_fn(float *s, size_t lo, size_t hi, float *m);

/* Values of one KV head in a chunk: token t of the chunk is at block[t / 16] + (t % 16) *
 * row_bytes. For each of n_rows query rows r (at most 16): o[r * o_stride + d] = chain over t from
 * lo[r] to hi[r] of fma(p[r * 256 + t], v[t][d], o), from +0. q8_0 values (blocks of 32: f16
 * scale, 32 int8) are fma(p * scale, (float)q, o); q4_0 ones (f16 scale, 16 bytes with codes 0 ..
 * 15 in their low halves and 16 .. 31 in the high ones) are fma(p * scale, (float)(q - 8), o). dim
 * may be anything; rows of both are padded to 32. A row with lo = hi is not written. Blocks
 * without a visible token may be NULL and are not read; the others have 16 rows, of which what
 * nobody sees tells nothing. */
struct tern_values {
    const uint8_t *const *block; /* [16] */
    size_t row_bytes, dim, n_rows;
    const float *p;              /* [n_rows][256] */
    const uint16_t *lo, *hi;     /* [n_rows] */
    float *o;                    /* [n_rows][o_stride] */
    size_t o_stride;
    void *scratch;               /* TERN_ATTENTION_SCRATCH(dim) */
    const uint8_t *const *ahead; /* [16] as in tern_scores: the next chunk's keys; may be NULL */
    size_t ahead_bytes;
};
typedef void tern_values_fn(const struct tern_values *v);

/* Merges a chunk's (m_c, l_c, o_c) into (m, l, o), left to right: m' = max(m, m_c), both sides
 * times exp of the difference: l = fma(l_c, e_c, l * e), o[d] = fma(o_c[d], e_c, o[d] * e), e =
 * exp(m - m'), e_c = exp(m_c - m'). An empty left side (*l == 0 and *m == -inf) is a copy. */
typedef void tern_merge_fn(float *m, float *l, float *o, float m_c, float l_c, const float *o_c,
                           size_t dim);
/* dst = o * (1 / l); all zeros where l is 0 (nothing was visible). */
typedef void tern_finish_fn(float *dst, const float *o, float l, size_t dim);

/* --- rows of logits: tern_highest and tern_exp_row of runtime/real.h --- */

typedef float tern_highest_fn(const float *x, size_t n);
typedef void tern_exp_row_fn(float *x, size_t n, float max, float t);

/* --- the table: pointers only, so that a test can walk it --- */

struct tern_kernels {
    tern_matmul_fn *matmul_f32, *matmul_f16, *matmul_bf16;
    tern_matmul_fn *matmul_q4_0, *matmul_q4_1, *matmul_q5_0, *matmul_q5_1, *matmul_q8_0;
    tern_matmul_fn *matmul_q2_k, *matmul_q3_k, *matmul_q4_k, *matmul_q5_k, *matmul_q6_k;
    tern_matmul_fn *matmul_iq2_xxs, *matmul_iq2_xs, *matmul_iq2_s, *matmul_iq3_xxs, *matmul_iq3_s;
    tern_matmul_fn *matmul_iq1_s, *matmul_iq1_m;
    tern_matmul_fn *matmul_iq4_nl, *matmul_iq4_xs, *matmul_mxfp4, *matmul_tq1_0, *matmul_tq2_0;
    tern_matmul_fn *matmul_codes; /* any type with codes, expanded as it is used */
    tern_matmul_fn *matmul_exact; /* any type with codes, decoded to floats as it is used */
    tern_rms_norm_fn *rms_norm;
    tern_quantize_fn *quantize;
    tern_halves_fn *halves;
    tern_hadamard_fn *hadamard;
    tern_rope_fn *rope_norm, *rope_neox;
    tern_mul_act_fn *silu_mul, *gelu_mul;
    tern_add_fn *add;
    tern_scale_fn *scale;
    tern_softcap_fn *softcap;
    tern_scores_fn *scores_f32, *scores_f16, *scores_q8_0, *scores_q4_0;
    tern_softmax_fn *softmax;
    tern_values_fn *values_f32, *values_f16, *values_q8_0, *values_q4_0;
    tern_merge_fn *merge;
    tern_finish_fn *finish;
    tern_highest_fn *highest;
    tern_exp_row_fn *exp_row;
};

/* The matmul of a type: its own if a variant has one, else codes; exact for types with codes
 * under exact. */
tern_matmul_fn *tern_kernels_matmul(const struct tern_kernels *k, uint32_t type, bool exact);

enum tern_cpu_feature {
    TERN_CPU_AVX2 = 1 << 0, /* with FMA and F16C */
    TERN_CPU_AVX_VNNI = 1 << 1,
    TERN_CPU_AVX512 = 1 << 2, /* F, BW, DQ, VL */
    TERN_CPU_AVX512_VNNI = 1 << 3,
    TERN_CPU_NEON = 1 << 4,
    TERN_CPU_DOTPROD = 1 << 5,
    TERN_CPU_I8MM = 1 << 6,
    TERN_CPU_AMX_INT8 = 1 << 7,
};

struct tern_cpu_variant {
    const char *name;
    uint32_t needs;
    void (*install)(struct tern_kernels *k);
};

/* The reference is not one; the end has name NULL. */
extern const struct tern_cpu_variant tern_cpu_variants[];
extern const struct tern_kernels tern_kernels_ref;

/* Of this CPU; cpu_has is the host's word (tern_host). */
uint32_t tern_cpu_features(uint32_t cpu_has);
/* The reference, overridden by each variant that the features allow, up to and including the
 * one named limit ("reference": none; NULL: no limit). Returns the last one's name; NULL if no
 * variant that was built has the limit's name. In a build with -Dlive_check=true what overrides
 * is wrapped: live_check.h. */
const char *tern_kernels_select(struct tern_kernels *k, uint32_t features, const char *limit);

#endif
