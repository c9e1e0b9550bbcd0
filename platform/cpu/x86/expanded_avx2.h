/* expanded_avx2.h: sub-blocks of a panel in the form that products of many tokens and exact ones
 * take, the same for all types.
 *
 * What comes behind it has no need to know the type: tiles differ in how many products fit 16
 * bits and in whether there are minimums or scales for each 16, which makes nine kinds of them
 * where there are 22 types. So a type brings a function that expands, and a description. */
#ifndef TERN_CPU_EXPANDED_AVX2_H
#define TERN_CPU_EXPANDED_AVX2_H

#include "platform/cpu/kernels.h"

enum tern_chain {
    TERN_CHAIN_U4, /* 8 results of maddubs fit 16 bits */
    TERN_CHAIN_U5, /* 4 */
    TERN_CHAIN_U6, /* 2; with a scale for each 16 */
    TERN_CHAIN_U3, /* 4 and more; with a scale for each 16 */
    TERN_CHAIN_U7, /* 1; with a scale for each 16 */
    TERN_CHAIN_S8, /* signed codes: 1 */
};

/* codes[j][r][b] is element 4 j + b of row r. */
struct tern_expanded {
    uint8_t codes[8][2][32];
    float scale[2][8];
    float minus_min[2][8];
    int16_t sc[2][2][16]; /* pairs (sc0, sc0), (sc1, sc1) */
    int16_t side[2][16];  /* with sc, pairs that sums are multiplied by: (m0, m1), or
                             (-zero sc0, -zero sc1) */
};

enum {
    TERN_SCRATCH_SECOND = 16384, /* behind expanded sub-blocks, or behind the chains of a few */
    TERN_MAX_EXPANDED = 19,
};
_Static_assert(TERN_MAX_EXPANDED * sizeof(struct tern_expanded) <= TERN_SCRATCH_SECOND, "scratch");

/* Groups of sub-blocks first .. first + n - 1 of a panel. */
typedef void tern_expand_avx2_fn(const uint8_t *panel, size_t first, size_t n,
                                 struct tern_expanded *out);

struct tern_type_avx2 {
    tern_expand_avx2_fn *expand;
    enum tern_chain chain;
    int zero;                  /* subtracted from the codes */
    unsigned block_bytes;      /* of a panel's block: 16 * n_bytes */
    unsigned n_groups, period; /* of a block, and sub-blocks of a group */
    bool has_min;
};

typedef struct tern_type_avx2 tern_type_avx2_fn(void);
tern_type_avx2_fn tern_type_q4_0_avx2, tern_type_q4_1_avx2, tern_type_q4_k_avx2;
tern_type_avx2_fn tern_type_q5_0_avx2, tern_type_q5_1_avx2, tern_type_q5_k_avx2;
tern_type_avx2_fn tern_type_q8_0_avx2, tern_type_q6_k_avx2;
tern_type_avx2_fn tern_type_q2_k_avx2, tern_type_q3_k_avx2;
tern_type_avx2_fn tern_type_iq4_nl_avx2, tern_type_iq4_xs_avx2, tern_type_mxfp4_avx2;
tern_type_avx2_fn tern_type_iq2_xxs_avx2, tern_type_iq2_xs_avx2, tern_type_iq2_s_avx2;
tern_type_avx2_fn tern_type_iq3_xxs_avx2, tern_type_iq3_s_avx2;
tern_type_avx2_fn tern_type_iq1_s_avx2, tern_type_iq1_m_avx2;
tern_type_avx2_fn tern_type_tq1_0_avx2, tern_type_tq2_0_avx2;

/* Panels first .. first + n - 1 for all tokens of m. */
void tern_matmul_many_avx2(const struct tern_type_avx2 *type, const struct tern_matmul *m,
                           size_t first, size_t n);

#endif
