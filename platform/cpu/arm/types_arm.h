/* types_arm.h: how each type's panels become codes, scales and minimums in registers.
 *
 * Codes are signed bytes for every dot product here. Nibbles are put in place by inserting shifts
 * (sli, sri) where bits come on top of them: what the shift does not move stays, so that no mask
 * is needed. quant/FORMATS.md has the layouts. */
#ifndef TERN_CPU_TYPES_ARM_H
#define TERN_CPU_TYPES_ARM_H

#include "platform/cpu/arm/matmul_arm.h"

/* The compiler makes one instruction of several loads too rarely, and moves and keeps what it has
 * loaded until there are no registers left: it gets the instructions as they are. Panels are not
 * written while kernels run. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define TERN_LOADS_AS_THEY_ARE 1
#endif

/* The next 64 bytes, 16 rows of a run. */
TERN_INLINE uint8x16x4_t load_run(const uint8_t **p)
{
    uint8x16x4_t x;
#ifdef TERN_LOADS_AS_THEY_ARE
    __asm__ volatile("ld1 {%S0.16b - %V0.16b}, [%1], #64" : "=w"(x), "+r"(*p));
#else
    x = vld1q_u8_x4(*p);
    *p += 64;
#endif
    return x;
}

/* 32 bytes, 8 rows of a run, `at` (a constant below 1008) behind p. */
struct tern_eight { uint8x16_t val[2]; };

TERN_INLINE struct tern_eight load_eight(const uint8_t *p, int at)
{
    struct tern_eight x;
#ifdef TERN_LOADS_AS_THEY_ARE
    __asm__ volatile("ldp %q0, %q1, [%2, %3]"
                     : "=w"(x.val[0]), "=w"(x.val[1]) : "r"(p), "i"(at));
#else
    x.val[0] = vld1q_u8(p + at);
    x.val[1] = vld1q_u8(p + at + 16);
#endif
    return x;
}

TERN_INLINE int8x16_t low_nibbles(uint8x16_t x)
{
    return vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
}

TERN_INLINE int8x16_t high_nibbles(uint8x16_t x)
{
    return vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
}

/* 16 f16 as floats. */
TERN_INLINE void load_halves(const uint8_t *p, float32x4_t out[4])
{
    const float16x8_t a = vreinterpretq_f16_u8(vld1q_u8(p));
    const float16x8_t b = vreinterpretq_f16_u8(vld1q_u8(p + 16));
    out[0] = vcvt_f32_f16(vget_low_f16(a));
    out[1] = vcvt_high_f32_f16(a);
    out[2] = vcvt_f32_f16(vget_low_f16(b));
    out[3] = vcvt_high_f32_f16(b);
}

/* 16 floats. Told as it is, lest the compiler keep them in registers that it does not have. */
TERN_INLINE void load_opened(const float *p, float32x4_t out[4])
{
#ifdef TERN_LOADS_AS_THEY_ARE
    __asm__ volatile("ldp %q0, %q1, [%2]" : "=w"(out[0]), "=w"(out[1]) : "r"(p) : "memory");
    __asm__ volatile("ldp %q0, %q1, [%2, #32]" : "=w"(out[2]), "=w"(out[3]) : "r"(p) : "memory");
#else
    for (int i = 0; i < 4; i++)
        out[i] = vld1q_f32(p + 4 * i);
#endif
}

TERN_INLINE void open_d(const uint8_t *block, float *d)
{
    float32x4_t x[4];
    load_halves(block, x);
    for (int i = 0; i < 4; i++)
        vst1q_f32(d + 4 * i, x[i]);
}

TERN_INLINE void scale_opened(struct tern_sub s, float32x4_t out[4])
{
    load_opened(s.d, out);
}

TERN_INLINE void scale_first(struct tern_sub s, float32x4_t out[4])
{
    load_halves(s.block, out);
}

/* Q4_1 and Q5_1 add their m: minus the minimum is m itself. */
TERN_INLINE void added_m(struct tern_sub s, float32x4_t out[4])
{
    load_halves(s.block + 32, out);
}

/* --- 4 bits --- */

/* Run j of nibble bytes holds k = 4 j in its low halves and 16 + 4 j in its high ones. `at`: of
 * run 0 in the block. */
TERN_INLINE void runs_nibbles(const uint8_t *block, int at, int rows, int i, int8x16_t w[4][2])
{
#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) {
        const struct tern_eight x = load_eight(block, at + 64 * (2 * i + n) + 32 * rows);
#pragma GCC unroll 2
        for (int r = 0; r < 2; r++) {
            w[n][r] = low_nibbles(x.val[r]);
            w[2 + n][r] = high_nibbles(x.val[r]);
        }
    }
}

TERN_INLINE void runs_q4_0(struct tern_sub s, int rows, int i, int8x16_t w[4][2])
{
    runs_nibbles(s.block, 32, rows, i, w);
}

static const struct tern_codes_arm q4_0 = {
    .chain = 8, .zero = 8, .block_bytes = 16 * 18, .n_subs = 1,
    .four_runs = runs_q4_0, .scale = scale_first,
};

TERN_INLINE void runs_q4_1(struct tern_sub s, int rows, int i, int8x16_t w[4][2])
{
    runs_nibbles(s.block, 64, rows, i, w);
}

static const struct tern_codes_arm q4_1 = {
    .chain = 8, .block_bytes = 16 * 20, .n_subs = 1, .has_min = true,
    .four_runs = runs_q4_1, .scale = scale_first, .minus_min = added_m,
};

/* Q4_K: d, dmin, 12 bytes of scales by row, 32 runs of nibbles. */
TERN_INLINE void seek_q4_k(struct tern_sub *s)
{
    s->a = s->block + 256 + 512 * (s->sub / 2);
}

TERN_INLINE void run_q4_k(struct tern_sub *s, int8x16_t w[4])
{
    const uint8x16x4_t x = load_run(&s->a);
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        w[r] = s->sub % 2 ? high_nibbles(x.val[r]) : low_nibbles(x.val[r]);
}

/* 6 bits each in 12 bytes: the first four sub-blocks have theirs in the low bits of bytes 0..3
 * (scales) and 4..7 (minimums), the others low nibbles of scales and high nibbles of minimums in
 * bytes 8..11, and their two upper bits above the first ones'. Byte i of 16 rows is at 16 i. */
TERN_INLINE void open_k(const uint8_t *block, float *d)
{
    open_d(block, d);
    open_d(block + 32, d + 16);
}

TERN_INLINE void k_times(const float *d, uint8x16_t codes, float32x4_t out[4])
{
    const uint16x8_t a = vmovl_u8(vget_low_u8(codes)), b = vmovl_high_u8(codes);
    const uint32x4_t wide[4] = {vmovl_u16(vget_low_u16(a)), vmovl_high_u16(a),
                                vmovl_u16(vget_low_u16(b)), vmovl_high_u16(b)};
    load_opened(d, out);
    for (int i = 0; i < 4; i++)
        out[i] = vmulq_f32(out[i], vcvtq_f32_u32(wide[i]));
}

TERN_INLINE uint8x16_t k_scale_codes(struct tern_sub s)
{
    const uint8_t *p = s.block + 64 + 16 * s.sub;
    if (s.sub < 4)
        return vandq_u8(vld1q_u8(p), vdupq_n_u8(63));
    /* bits 6 and 7 over a nibble */
    return vandq_u8(vsliq_n_u8(vld1q_u8(p + 64), vshrq_n_u8(vld1q_u8(p - 64), 6), 4),
                    vdupq_n_u8(63));
}

TERN_INLINE uint8x16_t k_min_codes(struct tern_sub s)
{
    const uint8_t *p = s.block + 64 + 16 * s.sub;
    if (s.sub < 4)
        return vandq_u8(vld1q_u8(p + 64), vdupq_n_u8(63));
    return vsriq_n_u8(vandq_u8(vshrq_n_u8(vld1q_u8(p), 2), vdupq_n_u8(0x30)), vld1q_u8(p + 64), 4);
}

TERN_INLINE void k_scale(struct tern_sub s, float32x4_t out[4])
{
    k_times(s.d, k_scale_codes(s), out);
}

TERN_INLINE void k_minus_min(struct tern_sub s, float32x4_t out[4])
{
    k_times(s.d + 16, k_min_codes(s), out);
    for (int i = 0; i < 4; i++)
        out[i] = vnegq_f32(out[i]);
}

TERN_INLINE void k_end(struct tern_sub s, struct tern_lane r, struct tern_dot *dot,
                       float32x4_t acc[4])
{
    end_by_hand(s.d, k_scale_codes(s), k_min_codes(s), r, dot, acc);
}

TERN_INLINE void dots_2_q4_k(struct tern_sub s, const int8x16_t q[4], struct tern_dot *dot,
                             struct tern_dot *next)
{
    seek_q4_k(&s);
    dots_nibbles(s.a, q, dot, next);
}

static const struct tern_codes_arm q4_k = {
    .chain = 8, .block_bytes = 16 * 144, .n_subs = 8, .has_min = true,
    .open = open_k, .seek = seek_q4_k, .run = run_q4_k, .dots_2 = dots_2_q4_k, .end = k_end,
    .scale = k_scale, .minus_min = k_minus_min,
};

/* --- 5 bits --- */

/* Runs 2 i and 2 i + 1 (and 4 further ones), which lie behind the 64 bytes of bits, with their
 * fifth bits, 16 less than the code, so that a bit that is not set is one that fills the upper
 * half. 32 bits of a row are one dword: byte i of it is copied to the four bytes of a lane, and
 * one bit of each is tested. */
TERN_INLINE void runs_fifth(const uint8_t *block, int at, int rows, int i, int8x16_t w[4][2])
{
    static const uint8_t spread[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    const uint8x16_t low = vaddq_u8(vld1q_u8(spread), vdupq_n_u8((uint8_t)i));
    const uint8x16_t high = vaddq_u8(vld1q_u8(spread), vdupq_n_u8((uint8_t)(2 + i)));
    const uint8x16_t bit[2] = {vreinterpretq_u8_u32(vdupq_n_u32(0x08040201)),
                               vreinterpretq_u8_u32(vdupq_n_u32(0x80402010))};
    const uint8x16_t bits[2] = {vld1q_u8(block + at + 32 * rows),
                                vld1q_u8(block + at + 32 * rows + 16)};
    const struct tern_eight x = load_eight(block, at + 64 + 128 * i + 32 * rows);
    const struct tern_eight y = load_eight(block, at + 128 + 128 * i + 32 * rows);
#pragma GCC unroll 2
    for (int r = 0; r < 2; r++) {
        const uint8x16_t unset = vmvnq_u8(bits[r]);
        const uint8x16_t l = vqtbl1q_u8(unset, low), h = vqtbl1q_u8(unset, high);
        w[2][r] = vreinterpretq_s8_u8(vsriq_n_u8(vtstq_u8(h, bit[0]), x.val[r], 4));
        w[3][r] = vreinterpretq_s8_u8(vsriq_n_u8(vtstq_u8(h, bit[1]), y.val[r], 4));
        w[0][r] = vreinterpretq_s8_u8(vsliq_n_u8(x.val[r], vtstq_u8(l, bit[0]), 4));
        w[1][r] = vreinterpretq_s8_u8(vsliq_n_u8(y.val[r], vtstq_u8(l, bit[1]), 4));
    }
}

TERN_INLINE void runs_q5_0(struct tern_sub s, int rows, int i, int8x16_t w[4][2])
{
    runs_fifth(s.block, 32, rows, i, w);
}

TERN_INLINE void dots_q5_0(struct tern_sub s, const int8x16_t q[2], struct tern_dot *dot)
{
    dots_fifth(s.block + 32, q, dot);
}

static const struct tern_codes_arm q5_0 = {
    .chain = 8, .block_bytes = 16 * 22, .n_subs = 1,
    .four_runs = runs_q5_0, .dots = dots_q5_0, .scale = scale_first,
};

TERN_INLINE void runs_q5_1(struct tern_sub s, int rows, int i, int8x16_t w[4][2])
{
    runs_fifth(s.block, 64, rows, i, w);
}

TERN_INLINE void dots_q5_1(struct tern_sub s, const int8x16_t q[2], struct tern_dot *dot)
{
    dots_fifth(s.block + 64, q, dot);
}

static const struct tern_codes_arm q5_1 = {
    .chain = 8, .zero = -16, .block_bytes = 16 * 24, .n_subs = 1, .has_min = true,
    .four_runs = runs_q5_1, .dots = dots_q5_1, .scale = scale_first,
    .minus_min = added_m,
};

/* Q5_K: bit `sub` of byte k of the plane belongs to element k of the sub-block. */
TERN_INLINE void seek_q5_k(struct tern_sub *s)
{
    s->a = s->block + 256 + 512 + 512 * (s->sub / 2);
    s->b = s->block + 256;
}

TERN_INLINE void run_q5_k(struct tern_sub *s, int8x16_t w[4])
{
    const uint8x16_t bit = vdupq_n_u8((uint8_t)(1 << s->sub));
    const uint8x16x4_t x = load_run(&s->a), y = load_run(&s->b);
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        const uint8x16_t unset = vceqzq_u8(vandq_u8(y.val[r], bit));
        w[r] = vreinterpretq_s8_u8(s->sub % 2 ? vsriq_n_u8(unset, x.val[r], 4)
                                              : vsliq_n_u8(x.val[r], unset, 4));
    }
}

TERN_INLINE void dots_q5_k(struct tern_sub s, const int8x16_t q[2], struct tern_dot *dot)
{
    seek_q5_k(&s);
    dots_plane(s, q, dot);
}

static const struct tern_codes_arm q5_k = {
    .chain = 8, .zero = -16, .block_bytes = 16 * 176, .n_subs = 8, .has_min = true,
    .open = open_k, .seek = seek_q5_k, .run = run_q5_k, .dots = dots_q5_k, .end = k_end,
    .scale = k_scale, .minus_min = k_minus_min,
};

/* --- 6 and 8 bits --- */

/* Q6_K: d, 16 signed scales by row, 32 runs of low nibbles, 16 of upper pairs of bits. Of each
 * 128 elements the low nibbles of the first 64's bytes are sub-blocks 0 and 1, the high ones 2
 * and 3; the pairs of bits go 0, 1, 2, 3 up a byte. */
TERN_INLINE void seek_q6_k(struct tern_sub *s)
{
    s->a = s->block + 288 + 1024 * (s->sub / 4) + 512 * (s->sub % 2);
    s->b = s->block + 288 + 2048 + 512 * (s->sub / 4);
}

TERN_INLINE void run_q6_k(struct tern_sub *s, int8x16_t w[4])
{
    const unsigned member = s->sub % 4;
    const uint8x16_t six = vdupq_n_u8(63);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const struct tern_eight x = load_eight(s->a, 32 * i), y = load_eight(s->b, 32 * i);
#pragma GCC unroll 2
        for (int r = 0; r < 2; r++) {
            const uint8x16_t by_2 = vshrq_n_u8(y.val[r], 2);
            const uint8x16_t code =
                member == 0   ? vandq_u8(vsliq_n_u8(x.val[r], y.val[r], 4), six)
                : member == 1 ? vandq_u8(vsliq_n_u8(x.val[r], by_2, 4), six)
                : member == 2 ? vandq_u8(vsriq_n_u8(y.val[r], x.val[r], 4), six)
                              : vsriq_n_u8(by_2, x.val[r], 4);
            w[2 * i + r] = vreinterpretq_s8_u8(code);
        }
    }
    s->a += 64;
    s->b += 64;
}

TERN_INLINE void dots_q6_k(struct tern_sub s, const int8x16_t q[2], struct tern_dot *dot)
{
    seek_q6_k(&s);
    dots_sixth(s, q, dot);
}

TERN_INLINE void sc_q6_k(struct tern_sub s, int half, int32x4_t out[4])
{
    const int8x16_t sc = vreinterpretq_s8_u8(vld1q_u8(s.block + 32 + 32 * s.sub + 16 * half));
    const int16x8_t a = vmovl_s8(vget_low_s8(sc)), b = vmovl_high_s8(sc);
    out[0] = vmovl_s16(vget_low_s16(a));
    out[1] = vmovl_high_s16(a);
    out[2] = vmovl_s16(vget_low_s16(b));
    out[3] = vmovl_high_s16(b);
}

static const struct tern_codes_arm q6_k = {
    .chain = 4, .zero = 32, .block_bytes = 16 * 210, .n_subs = 8, .has_sc = true,
    .open = open_d, .seek = seek_q6_k, .run = run_q6_k, .dots = dots_q6_k, .scale = scale_opened,
    .sc = sc_q6_k,
};

TERN_INLINE void seek_q8_0(struct tern_sub *s)
{
    s->a = s->block + 32;
}

TERN_INLINE void run_q8_0(struct tern_sub *s, int8x16_t w[4])
{
    const uint8x16x4_t x = load_run(&s->a);
    for (int r = 0; r < 4; r++)
        w[r] = vreinterpretq_s8_u8(x.val[r]);
}

static const struct tern_codes_arm q8_0 = {
    .chain = 2, .block_bytes = 16 * 34, .n_subs = 1,
    .seek = seek_q8_0, .run = run_q8_0, .scale = scale_first,
};

#endif
