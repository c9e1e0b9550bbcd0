/* lanes_arm.h: operations by a lane whose number is a constant only after inlining, and their
 * order. */
#ifndef TERN_CPU_LANES_ARM_H
#define TERN_CPU_LANES_ARM_H

#include <arm_neon.h>

#define TERN_INLINE static inline __attribute__((always_inline))

/* What the next sub-block needs must not be loaded before: there are no registers for it. */
TERN_INLINE void in_order(void)
{
    __asm__ volatile("" ::: "memory");
}

/* acc + a * b[lane], rounded once. */
TERN_INLINE float32x4_t fma_lane(float32x4_t acc, float32x4_t a, float32x4_t b, int lane)
{
    switch (lane) {
    case 0: return vfmaq_laneq_f32(acc, a, b, 0);
    case 1: return vfmaq_laneq_f32(acc, a, b, 1);
    case 2: return vfmaq_laneq_f32(acc, a, b, 2);
    default: return vfmaq_laneq_f32(acc, a, b, 3);
    }
}

TERN_INLINE float32x4_t mul_lane(float32x4_t a, float32x4_t b, int lane)
{
    switch (lane) {
    case 0: return vmulq_laneq_f32(a, b, 0);
    case 1: return vmulq_laneq_f32(a, b, 1);
    case 2: return vmulq_laneq_f32(a, b, 2);
    default: return vmulq_laneq_f32(a, b, 3);
    }
}

TERN_INLINE int32x4_t dup_lane(int32x4_t a, int lane)
{
    switch (lane) {
    case 0: return vdupq_laneq_s32(a, 0);
    case 1: return vdupq_laneq_s32(a, 1);
    case 2: return vdupq_laneq_s32(a, 2);
    default: return vdupq_laneq_s32(a, 3);
    }
}

/* Lanes 2 pair and 2 pair + 1, twice. */
TERN_INLINE int32x4_t dup_pair(int32x4_t a, int pair)
{
    const int64x2_t x = vreinterpretq_s64_s32(a);
    return vreinterpretq_s32_s64(pair ? vdupq_laneq_s64(x, 1) : vdupq_laneq_s64(x, 0));
}

#endif
