/* dots_arm.h: sums of products of 8-bit integers, with what the file's flags allow.
 *
 * A register of codes holds a run, 4 k of 4 rows. sdot multiplies all rows by one lane of the
 * activations and adds the four products of a row to its 32-bit lane. Without it the products are
 * 16 bits wide (smull, smlal), and codes leave room to add 8, 4 or 2 of them before they are
 * widened: struct tern_codes_arm says how many. smmla takes 8 k of two rows and of two tokens. */
#ifndef TERN_CPU_DOTS_ARM_H
#define TERN_CPU_DOTS_ARM_H

#include "platform/cpu/arm/lanes_arm.h"

#ifdef __ARM_FEATURE_DOTPROD

struct tern_dot { int32x4_t sum; };

TERN_INLINE void dot_start(struct tern_dot *d, int32x4_t init)
{
    d->sum = init;
}

/* The run-th run of a chain; its activations are lane `lane` of q. */
TERN_INLINE void dot_add(struct tern_dot *d, unsigned chain, unsigned run, int8x16_t w,
                         int8x16_t q, int lane)
{
    (void)chain;
    (void)run;
    switch (lane) {
    case 0: d->sum = vdotq_laneq_s32(d->sum, w, q, 0); break;
    case 1: d->sum = vdotq_laneq_s32(d->sum, w, q, 1); break;
    case 2: d->sum = vdotq_laneq_s32(d->sum, w, q, 2); break;
    default: d->sum = vdotq_laneq_s32(d->sum, w, q, 3); break;
    }
}

TERN_INLINE int32x4_t dot_end(const struct tern_dot *d, unsigned chain)
{
    (void)chain;
    return d->sum;
}

#else

/* part: two products of two rows each, k even and odd; wide: the same after widening. */
struct tern_dot { int32x4_t init, wide[2]; int16x8_t part[2]; };

TERN_INLINE void dot_start(struct tern_dot *d, int32x4_t init)
{
    d->init = init;
}

TERN_INLINE void dot_add(struct tern_dot *d, unsigned chain, unsigned run, int8x16_t w,
                         int8x16_t q, int lane)
{
    const int8x16_t x = vreinterpretq_s8_s32(dup_lane(vreinterpretq_s32_s8(q), lane));
    const bool first = run % chain == 0;
    d->part[0] = first ? vmull_s8(vget_low_s8(w), vget_low_s8(x))
                       : vmlal_s8(d->part[0], vget_low_s8(w), vget_low_s8(x));
    d->part[1] = first ? vmull_high_s8(w, x) : vmlal_high_s8(d->part[1], w, x);
    if (run % chain != chain - 1)
        return;
    for (int i = 0; i < 2; i++)
        d->wide[i] = run < chain ? vpaddlq_s16(d->part[i]) : vpadalq_s16(d->wide[i], d->part[i]);
}

TERN_INLINE int32x4_t dot_end(const struct tern_dot *d, unsigned chain)
{
    (void)chain;
    return vaddq_s32(vpaddq_s32(d->wide[0], d->wide[1]), d->init);
}

#endif
#endif
