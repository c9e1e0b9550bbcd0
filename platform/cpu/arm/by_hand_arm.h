/* by_hand_arm.h: products of one token whose codes are put together in place, as instructions.
 *
 * ld1 fills four neighbouring registers, and the compiler copies each of them before it lets an
 * inserting shift change it; what it has loaded in halves instead costs loads. So a run's way from
 * memory to the sums is written down. Without sdot, or without GCC, the descriptions' intrinsics
 * are used. */
#ifndef TERN_CPU_BY_HAND_ARM_H
#define TERN_CPU_BY_HAND_ARM_H

#include "platform/cpu/arm/described_arm.h"
#include "platform/cpu/arm/dots_arm.h"

#if defined(__ARM_FEATURE_DOTPROD) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)

enum { TERN_BY_HAND = 1 };

/* 64 bytes of fifth bits, turned round. */
TERN_INLINE void not_bits(const uint8_t *p, uint8x16_t bits[4])
{
    __asm__ volatile("ld1 {v28.16b - v31.16b}, [%4]\n\t"
                     "mvn %0.16b, v28.16b\n\t"
                     "mvn %1.16b, v29.16b\n\t"
                     "mvn %2.16b, v30.16b\n\t"
                     "mvn %3.16b, v31.16b"
                     : "=&w"(bits[0]), "=&w"(bits[1]), "=&w"(bits[2]), "=w"(bits[3])
                     : "r"(p) : "v28", "v29", "v30", "v31");
}

/* 4 rows of runs 2 i and 2 i + 1 (x, y) and of those 4 further on, which are their high halves.
 * Of a row's 8 bits in all bytes of a lane, one a byte is tested; see runs_fifth. */
#define TERN_FIFTH(x, y, bits, dot)                                                               \
    "tbl v22.16b, {%[" bits "].16b}, %[high].16b\n\t"                                             \
    "cmtst v23.16b, v22.16b, %[bit1].16b\n\t"                                                     \
    "cmtst v22.16b, v22.16b, %[bit0].16b\n\t"                                                     \
    "sri v22.16b, " x ".16b, #4\n\t"                                                              \
    "sri v23.16b, " y ".16b, #4\n\t"                                                              \
    "sdot %[" dot "].4s, v22.16b, %[q1].4b[%c[lane]]\n\t"                                         \
    "sdot %[" dot "].4s, v23.16b, %[q1].4b[%c[lane] + 1]\n\t"                                     \
    "tbl v22.16b, {%[" bits "].16b}, %[low].16b\n\t"                                              \
    "cmtst v23.16b, v22.16b, %[bit1].16b\n\t"                                                     \
    "cmtst v22.16b, v22.16b, %[bit0].16b\n\t"                                                     \
    "sli " x ".16b, v22.16b, #4\n\t"                                                              \
    "sli " y ".16b, v23.16b, #4\n\t"                                                              \
    "sdot %[" dot "].4s, " x ".16b, %[q0].4b[%c[lane]]\n\t"                                       \
    "sdot %[" dot "].4s, " y ".16b, %[q0].4b[%c[lane] + 1]\n\t"

/* Codes of 5 bits, 16 less, of a block whose bits begin at p. */
TERN_INLINE void dots_fifth(const uint8_t *p, const int8x16_t q[2], struct tern_dot dot[4])
{
    static const uint8_t spread[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    const uint8x16_t bit0 = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201));
    const uint8x16_t bit1 = vreinterpretq_u8_u32(vdupq_n_u32(0x80402010));
    uint8x16_t bits[4];
    not_bits(p, bits);
    p += 64;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const uint8x16_t low = vaddq_u8(vld1q_u8(spread), vdupq_n_u8((uint8_t)i));
        const uint8x16_t high = vaddq_u8(vld1q_u8(spread), vdupq_n_u8((uint8_t)(2 + i)));
        __asm__ volatile("ld1 {v24.16b - v27.16b}, [%[p]], #64\n\t"
                         "ld1 {v28.16b - v31.16b}, [%[p]], #64\n\t"
                         TERN_FIFTH("v24", "v28", "b0", "d0")
                         TERN_FIFTH("v25", "v29", "b1", "d1")
                         TERN_FIFTH("v26", "v30", "b2", "d2")
                         TERN_FIFTH("v27", "v31", "b3", "d3")
                         : [p] "+r"(p), [d0] "+w"(dot[0].sum), [d1] "+w"(dot[1].sum),
                           [d2] "+w"(dot[2].sum), [d3] "+w"(dot[3].sum)
                         : [b0] "w"(bits[0]), [b1] "w"(bits[1]), [b2] "w"(bits[2]),
                           [b3] "w"(bits[3]), [low] "w"(low), [high] "w"(high),
                           [bit0] "w"(bit0), [bit1] "w"(bit1), [q0] "w"(q[0]), [q1] "w"(q[1]),
                           [lane] "i"(2 * i)
                         : "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
    }
}

/* 4 rows of a run of 6 bits by the sub-block's place among four: low nibbles in x, bits in y. */
#define TERN_SIXTH(x, y, dot)                                                                     \
    ".if %c[member] == 1 || %c[member] == 3\n\t"                                                  \
    "ushr " y ".16b, " y ".16b, #2\n\t"                                                           \
    ".endif\n\t"                                                                                  \
    ".if %c[member] < 2\n\t"                                                                      \
    "sli " x ".16b, " y ".16b, #4\n\t"                                                            \
    "and " x ".16b, " x ".16b, %[six].16b\n\t"                                                    \
    "sdot %[" dot "].4s, " x ".16b, %[q].4b[%c[lane]]\n\t"                                        \
    ".else\n\t"                                                                                   \
    "sri " y ".16b, " x ".16b, #4\n\t"                                                            \
    ".if %c[member] == 2\n\t"                                                                     \
    "and " y ".16b, " y ".16b, %[six].16b\n\t"                                                    \
    ".endif\n\t"                                                                                  \
    "sdot %[" dot "].4s, " y ".16b, %[q].4b[%c[lane]]\n\t"                                        \
    ".endif\n\t"

/* Q6_K: see run_q6_k. */
TERN_INLINE void dots_sixth(struct tern_sub s, const int8x16_t q[2], struct tern_dot dot[8])
{
    const uint8x16_t six = vdupq_n_u8(63);
    const uint8_t *a = s.a, *b = s.b;
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++) {
        struct tern_dot *to = dot + 4 * (run / 4);
        __asm__ volatile("ld1 {v24.16b - v27.16b}, [%[a]], #64\n\t"
                         "ld1 {v28.16b - v31.16b}, [%[b]], #64\n\t"
                         TERN_SIXTH("v24", "v28", "d0")
                         TERN_SIXTH("v25", "v29", "d1")
                         TERN_SIXTH("v26", "v30", "d2")
                         TERN_SIXTH("v27", "v31", "d3")
                         : [a] "+r"(a), [b] "+r"(b), [d0] "+w"(to[0].sum),
                           [d1] "+w"(to[1].sum), [d2] "+w"(to[2].sum), [d3] "+w"(to[3].sum)
                         : [six] "w"(six), [q] "w"(q[run / 4]), [lane] "i"(run % 4),
                           [member] "i"(s.sub % 4)
                         : "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
    }
}

/* 4 rows of a run of nibbles in x with their fifth bits in y, 16 less than the code. */
#define TERN_PLANE(x, y, dot)                                                                     \
    "and " y ".16b, " y ".16b, %[bit].16b\n\t"                                                    \
    "cmeq " y ".16b, " y ".16b, #0\n\t"                                                           \
    ".if %c[high]\n\t"                                                                            \
    "sri " y ".16b, " x ".16b, #4\n\t"                                                            \
    "sdot %[" dot "].4s, " y ".16b, %[q].4b[%c[lane]]\n\t"                                        \
    ".else\n\t"                                                                                   \
    "sli " x ".16b, " y ".16b, #4\n\t"                                                            \
    "sdot %[" dot "].4s, " x ".16b, %[q].4b[%c[lane]]\n\t"                                        \
    ".endif\n\t"

/* Q5_K: see run_q5_k. */
TERN_INLINE void dots_plane(struct tern_sub s, const int8x16_t q[2], struct tern_dot dot[4])
{
    const uint8_t *a = s.a, *b = s.b;
    uint8x16_t bit;
    __asm__ volatile("movi %0.16b, %1" : "=w"(bit) : "i"(1 << s.sub)); /* not kept for later */
#pragma GCC unroll 8
    for (int run = 0; run < 8; run++)
        __asm__ volatile("ld1 {v24.16b - v27.16b}, [%[a]], #64\n\t"
                         "ld1 {v28.16b - v31.16b}, [%[b]], #64\n\t"
                         TERN_PLANE("v24", "v28", "d0")
                         TERN_PLANE("v25", "v29", "d1")
                         TERN_PLANE("v26", "v30", "d2")
                         TERN_PLANE("v27", "v31", "d3")
                         : [a] "+r"(a), [b] "+r"(b), [d0] "+w"(dot[0].sum),
                           [d1] "+w"(dot[1].sum), [d2] "+w"(dot[2].sum), [d3] "+w"(dot[3].sum)
                         : [bit] "w"(bit), [q] "w"(q[run / 4]), [lane] "i"(run % 4),
                           [high] "i"(s.sub % 2)
                         : "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

/* 4 rows of a run of nibbles in x: low ones for one sub-block, high ones for the next. */
#define TERN_NIBBLES(x, y, low, high, q_low, q_high)                                              \
    "ushr " y ".16b, " x ".16b, #4\n\t"                                                           \
    "and " x ".16b, " x ".16b, %[mask].16b\n\t"                                                   \
    "sdot %[" high "].4s, " y ".16b, %[" q_high "\n\t"                                            \
    "sdot %[" low "].4s, " x ".16b, %[" q_low "\n\t"
#define TERN_NIBBLES_16(q_low, q_high)                                                            \
    "ld1 {v24.16b - v27.16b}, [%[p]], #64\n\t"                                                    \
    TERN_NIBBLES("v24", "v28", "l0", "h0", q_low, q_high)                                         \
    TERN_NIBBLES("v25", "v28", "l1", "h1", q_low, q_high)                                         \
    TERN_NIBBLES("v26", "v28", "l2", "h2", q_low, q_high)                                         \
    TERN_NIBBLES("v27", "v28", "l3", "h3", q_low, q_high)

/* Two sub-blocks of nibbles that share their bytes at p. All runs in one piece: between pieces
 * the compiler moves the sums about. */
TERN_INLINE void dots_nibbles(const uint8_t *p, const int8x16_t q[4], struct tern_dot low[4],
                              struct tern_dot high[4])
{
    __asm__ volatile(TERN_NIBBLES_16("q0].4b[0]", "q2].4b[0]")
                     TERN_NIBBLES_16("q0].4b[1]", "q2].4b[1]")
                     TERN_NIBBLES_16("q0].4b[2]", "q2].4b[2]")
                     TERN_NIBBLES_16("q0].4b[3]", "q2].4b[3]")
                     TERN_NIBBLES_16("q1].4b[0]", "q3].4b[0]")
                     TERN_NIBBLES_16("q1].4b[1]", "q3].4b[1]")
                     TERN_NIBBLES_16("q1].4b[2]", "q3].4b[2]")
                     TERN_NIBBLES_16("q1].4b[3]", "q3].4b[3]")
                     : [p] "+r"(p), [l0] "+w"(low[0].sum), [l1] "+w"(low[1].sum),
                       [l2] "+w"(low[2].sum), [l3] "+w"(low[3].sum), [h0] "+w"(high[0].sum),
                       [h1] "+w"(high[1].sum), [h2] "+w"(high[2].sum), [h3] "+w"(high[3].sum)
                     : [mask] "w"(vdupq_n_u8(15)), [q0] "w"(q[0]), [q1] "w"(q[1]), [q2] "w"(q[2]),
                       [q3] "w"(q[3])
                     : "v24", "v25", "v26", "v27", "v28");
}

/* 4 rows of a sub-block of Q4_K or Q5_K: v24 is the scale, then the minimum. Codes go to lanes of
 * 32 bits by a look-up that gives 0 where there is none. */
#define TERN_END_K(i, d, dmin)                                                                    \
    "tbl v24.16b, {%[sc].16b}, %[at" i "].16b\n\t"                                                \
    "tbl v25.16b, {%[m].16b}, %[at" i "].16b\n\t"                                                 \
    "ucvtf v24.4s, v24.4s\n\t"                                                                    \
    "ucvtf v25.4s, v25.4s\n\t"                                                                    \
    "fmul v24.4s, v24.4s, " d ".4s\n\t"                                                           \
    "fmul v25.4s, v25.4s, " dmin ".4s\n\t"                                                        \
    "fmul v24.4s, v24.4s, %[act_d].s[%c[lane]]\n\t"                                               \
    "scvtf %[dot" i "].4s, %[dot" i "].4s\n\t"                                                    \
    "fmla %[acc" i "].4s, %[dot" i "].4s, v24.4s\n\t"                                             \
    "fmls %[acc" i "].4s, v25.4s, %[side].s[%c[lane]]\n\t"

/* The chains' step of a sub-block with scales sc and minimums m of 6 bits, d and dmin at d. */
TERN_INLINE void end_by_hand(const float *d, uint8x16_t sc, uint8x16_t m, struct tern_lane r,
                             struct tern_dot dot[4], float32x4_t acc[4])
{
    const uint32x4_t first = {0xffffff00, 0xffffff01, 0xffffff02, 0xffffff03};
    __asm__ volatile("ldp q26, q27, [%[d]]\n\t"
                     "ldp q28, q29, [%[d], #64]\n\t"
                     TERN_END_K("0", "v26", "v28")
                     TERN_END_K("1", "v27", "v29")
                     "ldp q26, q27, [%[d], #32]\n\t"
                     "ldp q28, q29, [%[d], #96]\n\t"
                     TERN_END_K("2", "v26", "v28")
                     TERN_END_K("3", "v27", "v29")
                     : [dot0] "+w"(dot[0].sum), [dot1] "+w"(dot[1].sum), [dot2] "+w"(dot[2].sum),
                       [dot3] "+w"(dot[3].sum), [acc0] "+w"(acc[0]), [acc1] "+w"(acc[1]),
                       [acc2] "+w"(acc[2]), [acc3] "+w"(acc[3])
                     : [d] "r"(d), [sc] "w"(sc), [m] "w"(m), [act_d] "w"(r.d), [side] "w"(r.side),
                       [lane] "i"(r.lane), [at0] "w"(first),
                       [at1] "w"(vaddq_u32(first, vdupq_n_u32(4))),
                       [at2] "w"(vaddq_u32(first, vdupq_n_u32(8))),
                       [at3] "w"(vaddq_u32(first, vdupq_n_u32(12)))
                     : "v24", "v25", "v26", "v27", "v28", "v29", "memory");
}

#else

enum { TERN_BY_HAND = 0 };

TERN_INLINE void end_by_hand(const float *d, uint8x16_t sc, uint8x16_t m, struct tern_lane r,
                             struct tern_dot dot[4], float32x4_t acc[4])
{
    (void)d;
    (void)sc;
    (void)m;
    (void)r;
    (void)dot;
    (void)acc;
}

TERN_INLINE void dots_nibbles(const uint8_t *p, const int8x16_t q[4], struct tern_dot low[4],
                              struct tern_dot high[4])
{
    (void)p;
    (void)q;
    (void)low;
    (void)high;
}

TERN_INLINE void dots_fifth(const uint8_t *p, const int8x16_t q[2], struct tern_dot dot[4])
{
    (void)p;
    (void)q;
    (void)dot;
}

TERN_INLINE void dots_sixth(struct tern_sub s, const int8x16_t q[2], struct tern_dot dot[8])
{
    (void)s;
    (void)q;
    (void)dot;
}

TERN_INLINE void dots_plane(struct tern_sub s, const int8x16_t q[2], struct tern_dot dot[4])
{
    (void)s;
    (void)q;
    (void)dot;
}

#endif
#endif
