/* described_arm.h: what the integer products must know of a type. */
#ifndef TERN_CPU_DESCRIBED_ARM_H
#define TERN_CPU_DESCRIBED_ARM_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

/* Sub-block `sub` (always a constant) of a panel's block, and where its runs are read. d: what
 * open has made. */
struct tern_sub {
    const uint8_t *block;
    unsigned sub;
    const uint8_t *a, *b;
    const float *d;
};

struct tern_dot;

/* What the record of one sub-block gives: its lane of d and d * sum. */
struct tern_lane { float32x4_t d, side; int lane; };

struct tern_codes_arm {
    unsigned chain;              /* products of codes and activations that fit 16 bits */
    int zero;                    /* subtracted from the codes */
    unsigned block_bytes;        /* of a panel's block: 16 * n_bytes */
    unsigned n_subs;             /* of a block: 1 or 8 */
    bool has_min, has_sc;        /* has_sc: an integer scale for each 16 */
    /* Blocks of 8: scales of the rows as floats, up to two each, once for all sub-blocks. */
    void (*open)(const uint8_t *block, float *d);
    /* Either: seek, then the next run of 16 rows at each call. */
    void (*seek)(struct tern_sub *s);
    void (*run)(struct tern_sub *s, int8x16_t w[4]);
    /* Or, where runs share bytes: runs 2 i, 2 i + 1, 2 i + 4, 2 i + 5 of 8 rows. */
    void (*four_runs)(struct tern_sub s, int rows, int i, int8x16_t w[4][2]);
    /* The products of all runs with one token's q, where TERN_BY_HAND; NULL for the usual way. */
    void (*dots)(struct tern_sub s, const int8x16_t q[2], struct tern_dot *dot);
    /* The same of this sub-block, an even one, and the next, where they share bytes. */
    void (*dots_2)(struct tern_sub s, const int8x16_t q[4], struct tern_dot *dot,
                   struct tern_dot *next);
    /* And the chains' step. */
    void (*end)(struct tern_sub s, struct tern_lane r, struct tern_dot *dot, float32x4_t acc[4]);
    void (*scale)(struct tern_sub s, float32x4_t out[4]);
    void (*minus_min)(struct tern_sub s, float32x4_t out[4]);
    void (*sc)(struct tern_sub s, int half, int32x4_t out[4]);
};

#endif
