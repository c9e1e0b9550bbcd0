/* types_vnni.h: blocks of the types that integer products of 16 rows know, once for all widths.
 *
 * A type says how 32 elements of a part of a panel become unsigned codes of 8 bits, and what
 * their scales are. matmul_vnni.h and matmul_amx_int8.h multiply them. Whoever includes this has
 * included the words for one width, lanes_*.h. */
#ifndef TERN_CPU_TYPES_VNNI_H
#define TERN_CPU_TYPES_VNNI_H

#include "platform/cpu/kernels.h"

enum { PARTS = TERN_PANEL_ROWS / LANES };

/* What the record's sums are for. */
enum tern_sides {
    TERN_SIDE_ZERO,   /* codes have a zero point */
    TERN_SIDE_MIN,    /* blocks have a minimum */
    TERN_SIDE_HALVES, /* a zero point, and a scale for each half of a block */
};

/* Sub-block period * group + member of a panel's block. `member` is always a constant. */
struct tern_sub { const uint8_t *block; unsigned group, member; };

struct tern_codes_vnni {
    enum tern_sides sides;
    int zero;                    /* subtracted from the codes */
    unsigned block_bytes;        /* of a panel's block: 16 * n_bytes */
    unsigned n_groups, period;
    void (*unpack)(struct tern_sub s, unsigned part, ints w[8]);
    floats (*scale)(struct tern_sub s, unsigned part);
    floats (*minus_min)(struct tern_sub s, unsigned part);          /* MIN */
    void (*halves)(struct tern_sub s, unsigned part, floats sc[2]); /* HALVES */
};

/* Asks for memory that is read later. Past a matrix's end this does nothing. */
TERN_INLINE void prefetch(const uint8_t *p, size_t ahead, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)((uintptr_t)p + ahead + i), _MM_HINT_T0);
}

TERN_INLINE ints low_nibbles(ints x)
{
    return both(x, all_bytes(15));
}

TERN_INLINE ints high_nibbles(ints x)
{
    return low_nibbles(down_4(x));
}

/* Vector j of nibbles holds k = 4 j in its low halves and 16 + 4 j in its high ones. */
TERN_INLINE void unpack_nibbles(const uint8_t *q, unsigned part, ints w[8])
{
    TERN_UNROLL
    for (int j = 0; j < 4; j++) {
        const ints x = load_ints(q + 64 * j + 4 * LANES * part);
        w[j] = low_nibbles(x);
        w[4 + j] = high_nibbles(x);
    }
}

TERN_INLINE floats scale_first(struct tern_sub s, unsigned part)
{
    return load_f16(s.block + 2 * LANES * part);
}

/* Q4_1 and Q5_1 add their m: minus the minimum is m itself. */
TERN_INLINE floats added_m(struct tern_sub s, unsigned part)
{
    return load_f16(s.block + 32 + 2 * LANES * part);
}

/* --- codes of 4 bits --- */

TERN_INLINE void unpack_q4_0(struct tern_sub s, unsigned part, ints w[8])
{
    unpack_nibbles(s.block + 32, part, w);
}

static const struct tern_codes_vnni q4_0 = {
    .sides = TERN_SIDE_ZERO, .zero = 8, .block_bytes = 16 * 18, .n_groups = 1, .period = 1,
    .unpack = unpack_q4_0, .scale = scale_first,
};

TERN_INLINE void unpack_q4_1(struct tern_sub s, unsigned part, ints w[8])
{
    unpack_nibbles(s.block + 64, part, w);
}

static const struct tern_codes_vnni q4_1 = {
    .sides = TERN_SIDE_MIN, .block_bytes = 16 * 20, .n_groups = 1, .period = 1,
    .unpack = unpack_q4_1, .scale = scale_first, .minus_min = added_m,
};

/* --- scales and minimums of Q4_K and Q5_K ---
 *
 * 6 bits each, packed in 12 bytes: the first four sub-blocks have theirs in the low bits of
 * bytes 0..3 (scales) and 4..7 (minimums), the others low nibbles of scales and high nibbles of
 * minimums in bytes 8..11, and their two upper bits above the first ones'. A panel has byte i of
 * its rows at 16 i. */
enum { K_D = 0, K_DMIN = 32, K_SCALES = 64, K_CODES = 64 + 192 };

TERN_INLINE ints k_byte(struct tern_sub s, unsigned i, unsigned part)
{
    return load_bytes(s.block + K_SCALES + 16 * i + LANES * part);
}

TERN_INLINE ints k_upper(ints x)
{
    return both(down_2(x), all_ints(0x30));
}

TERN_INLINE floats k_scale(struct tern_sub s, unsigned part)
{
    const unsigned sub = 2 * s.group + s.member;
    const floats d = load_f16(s.block + K_D + 2 * LANES * part);
    if (s.group < 2)
        return multiply(d, to_floats(both(k_byte(s, sub, part), all_ints(63))));
    const ints low = both(k_byte(s, sub + 4, part), all_ints(15));
    return multiply(d, to_floats(either(low, k_upper(k_byte(s, sub - 4, part)))));
}

TERN_INLINE floats k_minus_min(struct tern_sub s, unsigned part)
{
    const unsigned sub = 2 * s.group + s.member;
    const floats d = negate(load_f16(s.block + K_DMIN + 2 * LANES * part));
    if (s.group < 2)
        return multiply(d, to_floats(both(k_byte(s, sub + 4, part), all_ints(63))));
    const ints low = down_4(k_byte(s, sub + 4, part));
    return multiply(d, to_floats(either(low, k_upper(k_byte(s, sub, part)))));
}

/* Q4_K: d, dmin, 12 bytes of scales by row, 32 vectors of nibbles. */
TERN_INLINE void unpack_q4_k(struct tern_sub s, unsigned part, ints w[8])
{
    const uint8_t *q = s.block + K_CODES + 512 * s.group + 4 * LANES * part;
    TERN_UNROLL
    for (int j = 0; j < 8; j++)
        w[j] = s.member ? high_nibbles(load_ints(q + 64 * j)) : low_nibbles(load_ints(q + 64 * j));
}

static const struct tern_codes_vnni q4_k = {
    .sides = TERN_SIDE_MIN, .block_bytes = 16 * 144, .n_groups = 4, .period = 2,
    .unpack = unpack_q4_k, .scale = k_scale, .minus_min = k_minus_min,
};

/* --- codes of 5 bits, the fifth in a plane of its own --- */

TERN_INLINE void unpack_q5_0(struct tern_sub s, unsigned part, ints w[8])
{
    unpack_nibbles(s.block + 96, part, w);
    add_fifths(load_ints(s.block + 32 + 4 * LANES * part), w);
}

static const struct tern_codes_vnni q5_0 = {
    .sides = TERN_SIDE_ZERO, .zero = 16, .block_bytes = 16 * 22, .n_groups = 1, .period = 1,
    .unpack = unpack_q5_0, .scale = scale_first,
};

TERN_INLINE void unpack_q5_1(struct tern_sub s, unsigned part, ints w[8])
{
    unpack_nibbles(s.block + 128, part, w);
    add_fifths(load_ints(s.block + 64 + 4 * LANES * part), w);
}

static const struct tern_codes_vnni q5_1 = {
    .sides = TERN_SIDE_MIN, .block_bytes = 16 * 24, .n_groups = 1, .period = 1,
    .unpack = unpack_q5_1, .scale = scale_first, .minus_min = added_m,
};

/* Q5_K: bit `sub` of byte k of the plane belongs to element k of the sub-block. */
TERN_INLINE void unpack_q5_k(struct tern_sub s, unsigned part, ints w[8])
{
    const uint8_t *fifth = s.block + K_CODES + 4 * LANES * part;
    const uint8_t *q = s.block + K_CODES + 512 + 512 * s.group + 4 * LANES * part;
    const ints bit = all_bytes(1 << (2 * s.group + s.member));
    TERN_UNROLL
    for (int j = 0; j < 8; j++) {
        const ints x = load_ints(q + 64 * j);
        w[j] = with_fifth(s.member ? high_nibbles(x) : low_nibbles(x), load_ints(fifth + 64 * j),
                          bit);
    }
}

static const struct tern_codes_vnni q5_k = {
    .sides = TERN_SIDE_MIN, .block_bytes = 16 * 176, .n_groups = 4, .period = 2,
    .unpack = unpack_q5_k, .scale = k_scale, .minus_min = k_minus_min,
};

/* --- codes of 8 and 6 bits --- */

/* Signed codes become unsigned by 128 more. */
TERN_INLINE void unpack_q8_0(struct tern_sub s, unsigned part, ints w[8])
{
    TERN_UNROLL
    for (int j = 0; j < 8; j++)
        w[j] = differing(load_ints(s.block + 32 + 64 * j + 4 * LANES * part), all_bytes(0x80));
}

static const struct tern_codes_vnni q8_0 = {
    .sides = TERN_SIDE_ZERO, .zero = 128, .block_bytes = 16 * 34, .n_groups = 1, .period = 1,
    .unpack = unpack_q8_0, .scale = scale_first,
};

/* Q6_K: d, 16 signed scales by row, 32 vectors of low nibbles, 16 of upper pairs of bits. Of
 * each 128 elements the low nibbles of the first 64 vectors' bytes are sub-blocks 0 and 1, the
 * high ones 2 and 3; the pairs of bits go 0, 1, 2, 3 up a byte. */
TERN_INLINE void unpack_q6_k(struct tern_sub s, unsigned part, ints w[8])
{
    const uint8_t *low = s.block + 288 + 1024 * s.group + 512 * (s.member % 2) + 4 * LANES * part;
    const uint8_t *upper = s.block + 288 + 2048 + 512 * s.group + 4 * LANES * part;
    TERN_UNROLL
    for (int j = 0; j < 8; j++) {
        const ints x = load_ints(low + 64 * j), y = load_ints(upper + 64 * j);
        const ints at_4 = s.member == 0   ? up_4(y)
                          : s.member == 1 ? up_2(y)
                          : s.member == 2 ? y
                                          : down_2(y);
        w[j] = low_nibbles_or(s.member < 2 ? x : down_4(x), at_4, all_bytes(0x30));
    }
}

TERN_INLINE void halves_q6_k(struct tern_sub s, unsigned part, floats sc[2])
{
    const uint8_t *at = s.block + 32 + 32 * (4 * s.group + s.member) + LANES * part;
    sc[0] = to_floats(load_signed_bytes(at));
    sc[1] = to_floats(load_signed_bytes(at + 16));
}

static const struct tern_codes_vnni q6_k = {
    .sides = TERN_SIDE_HALVES, .zero = 32, .block_bytes = 16 * 210, .n_groups = 2, .period = 4,
    .unpack = unpack_q6_k, .scale = scale_first, .halves = halves_q6_k,
};

/* --- codes of 2 bits --- */

/* Four sub-blocks in a byte, the first in its low bits. */
TERN_INLINE ints two_bits(ints x, unsigned member)
{
    if (member >= 2)
        x = down_4(x);
    return both(member % 2 ? down_2(x) : x, all_bytes(3));
}

TERN_INLINE void unpack_tq2_0(struct tern_sub s, unsigned part, ints w[8])
{
    const uint8_t *q = s.block + 32 + 512 * s.group + 4 * LANES * part;
    TERN_UNROLL
    for (int j = 0; j < 8; j++)
        w[j] = two_bits(load_ints(q + 64 * j), s.member);
}

static const struct tern_codes_vnni tq2_0 = {
    .sides = TERN_SIDE_ZERO, .zero = 1, .block_bytes = 16 * 66, .n_groups = 2, .period = 4,
    .unpack = unpack_tq2_0, .scale = scale_first,
};

enum { Q3_SCALES = 32, Q3_THIRD = 32 + 192, Q3_CODES = 32 + 192 + 512 };

/* Q3_K: d, 12 bytes of scales by row, 8 vectors of third bits (bit `sub` of a byte), 16 vectors
 * of codes. */
TERN_INLINE void unpack_q3_k(struct tern_sub s, unsigned part, ints w[8])
{
    const uint8_t *third = s.block + Q3_THIRD + 4 * LANES * part;
    const uint8_t *q = s.block + Q3_CODES + 512 * s.group + 4 * LANES * part;
    TERN_UNROLL
    for (int j = 0; j < 8; j++) {
        const ints x = down_by(load_ints(third + 64 * j), 4 * s.group + s.member);
        w[j] = either(two_bits(load_ints(q + 64 * j), s.member), both(up_2(x), all_bytes(4)));
    }
}

/* Scale k has its low nibble in byte k % 8, high for k >= 8, and two bits above them in byte 8 +
 * k % 4, upwards. Here k = 8 group + 2 member and the next. */
TERN_INLINE void halves_q3_k(struct tern_sub s, unsigned part, floats sc[2])
{
    const uint8_t *low = s.block + Q3_SCALES + 32 * s.member + LANES * part;
    const uint8_t *high = s.block + Q3_SCALES + 128 + 32 * (s.member % 2) + LANES * part;
    TERN_UNROLL
    for (unsigned half = 0; half < 2; half++) {
        const ints l = down_by(load_bytes(low + 16 * half), 4 * s.group);
        const ints h = down_by(load_bytes(high + 16 * half), 4 * s.group);
        const ints code = either(both(l, all_ints(15)),
                                 both(s.member < 2 ? up_4(h) : up_2(h), all_ints(0x30)));
        sc[half] = to_floats(minus_ints(code, all_ints(32)));
    }
}

static const struct tern_codes_vnni q3_k = {
    .sides = TERN_SIDE_HALVES, .zero = 4, .block_bytes = 16 * 110, .n_groups = 2, .period = 4,
    .unpack = unpack_q3_k, .scale = scale_first, .halves = halves_q3_k,
};

/* --- codes of 4 bits that stand for one of 16 values, here with 128 more --- */

TERN_INLINE void unpack_by_table(const uint8_t *q, unsigned part, const uint8_t values[16],
                                 ints w[8])
{
    unpack_nibbles(q, part, w);
    TERN_UNROLL
    for (int j = 0; j < 8; j++)
        w[j] = looked_up(values, w[j]);
}

static const uint8_t iq4_values[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                       129, 141, 153, 166, 181, 197, 217, 241};

TERN_INLINE void unpack_iq4_nl(struct tern_sub s, unsigned part, ints w[8])
{
    unpack_by_table(s.block + 32, part, iq4_values, w);
}

static const struct tern_codes_vnni iq4_nl = {
    .sides = TERN_SIDE_ZERO, .zero = 128, .block_bytes = 16 * 18, .n_groups = 1, .period = 1,
    .unpack = unpack_iq4_nl, .scale = scale_first,
};

/* IQ4_XS: d, 16 bits with two upper bits for each sub-block's scale, 4 bytes by row of their low
 * nibbles, 8 x 4 vectors of codes. */
TERN_INLINE void unpack_iq4_xs(struct tern_sub s, unsigned part, ints w[8])
{
    unpack_by_table(s.block + 128 + 256 * (2 * s.group + s.member), part, iq4_values, w);
}

TERN_INLINE floats scale_iq4_xs(struct tern_sub s, unsigned part)
{
    const ints l = load_bytes(s.block + 64 + 16 * s.group + LANES * part);
    const ints h = down_by(load_shorts(s.block + 32 + 2 * LANES * part),
                           4 * s.group + 2 * s.member);
    const ints code = either(both(s.member ? down_4(l) : l, all_ints(15)),
                             both(up_4(h), all_ints(0x30)));
    return multiply(scale_first(s, part), to_floats(minus_ints(code, all_ints(32))));
}

static const struct tern_codes_vnni iq4_xs = {
    .sides = TERN_SIDE_ZERO, .zero = 128, .block_bytes = 16 * 136, .n_groups = 4, .period = 2,
    .unpack = unpack_iq4_xs, .scale = scale_iq4_xs,
};

TERN_INLINE void unpack_mxfp4(struct tern_sub s, unsigned part, ints w[8])
{
    static const uint8_t values[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                       128, 127, 126, 125, 124, 122, 120, 116};
    unpack_by_table(s.block + 16, part, values, w);
}

/* 2^(e - 128), which may be below 2^-126, as a product of two powers. */
TERN_INLINE floats scale_mxfp4(struct tern_sub s, unsigned part)
{
    const ints e = load_bytes(s.block + LANES * part), half = down_by(e, 1);
    return multiply(power_of_2(half), power_of_2(minus_ints(e, half)));
}

static const struct tern_codes_vnni mxfp4 = {
    .sides = TERN_SIDE_ZERO, .zero = 128, .block_bytes = 16 * 17, .n_groups = 1, .period = 1,
    .unpack = unpack_mxfp4, .scale = scale_mxfp4,
};

#endif
