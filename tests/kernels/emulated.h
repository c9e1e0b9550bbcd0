/* emulated.h: AVX-512 VNNI and AMX in plain C, for kernels on CPUs that have neither.
 *
 * Sources of those variants are compiled a second time with this in front of them: it stands in
 * for lanes_avx512_vnni.h, whose include guard it takes, and for the intrinsics of tiles; the
 * kernels have other names. Attention and rows have emulated_lanes.h. What is checked is everything
 * but the instructions themselves: order, addresses, scales, and what lies beyond the ends. */
#ifndef TERN_CPU_LANES_AVX512_VNNI_H
#define TERN_CPU_LANES_AVX512_VNNI_H

#include "quant/half.h"
#include "tests/kernels/emulated_names.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TERN_INLINE static inline
#define TERN_PAIRS 1
#define TERN_UNROLL

enum { LANES = 16, TILE_TOKENS = 12, TILE_TOKENS_HALVES = 8 };
enum { FEW_TOKENS = 24 }; /* below that they have kernels of their own */

typedef struct { _Alignas(64) int32_t v[LANES]; } ints;
typedef struct { _Alignas(64) float v[LANES]; } floats;
typedef struct { int8_t b[4 * LANES]; } bytes;
typedef struct { int16_t h[2 * LANES]; } words;

/* --- vectors --- */

TERN_INLINE bytes as_bytes(ints x)
{
    bytes y;
    memcpy(&y, &x, sizeof y);
    return y;
}

TERN_INLINE ints of_bytes(bytes x)
{
    ints y;
    memcpy(&y, &x, sizeof y);
    return y;
}

TERN_INLINE words as_words(ints x)
{
    words y;
    memcpy(&y, &x, sizeof y);
    return y;
}

TERN_INLINE ints of_words(words x)
{
    ints y;
    memcpy(&y, &x, sizeof y);
    return y;
}

TERN_INLINE ints load_ints(const void *p)
{
    ints x;
    memcpy(&x, p, sizeof x);
    return x;
}

TERN_INLINE void store_ints(void *p, ints x)
{
    memcpy(p, &x, sizeof x);
}

TERN_INLINE void store_pairs(void *p, ints a, ints b)
{
    for (int i = 0; i < LANES; i++) {
        memcpy((char *)p + 8 * i, &a.v[i], 4);
        memcpy((char *)p + 8 * i + 4, &b.v[i], 4);
    }
}

TERN_INLINE floats load_floats(const void *p)
{
    floats x;
    memcpy(&x, p, sizeof x);
    return x;
}

TERN_INLINE void store_floats(float *p, floats x)
{
    memcpy(p, &x, sizeof x);
}

TERN_INLINE floats load_f16(const uint8_t *p)
{
    floats x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = tern_load_f16(p + 2 * i);
    return x;
}

TERN_INLINE ints load_bytes(const uint8_t *p)
{
    ints x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = p[i];
    return x;
}

TERN_INLINE ints load_signed_bytes(const uint8_t *p)
{
    ints x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = (int8_t)p[i];
    return x;
}

TERN_INLINE ints load_shorts(const uint8_t *p)
{
    ints x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = tern_load_u16(p + 2 * i);
    return x;
}

TERN_INLINE ints all_ints(int32_t a)
{
    ints x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = a;
    return x;
}

TERN_INLINE ints all_bytes(int a)
{
    ints x;
    memset(&x, a, sizeof x);
    return x;
}

TERN_INLINE floats all_floats(float a)
{
    floats x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = a;
    return x;
}

TERN_INLINE ints broadcast_4(const void *p)
{
    int32_t a;
    memcpy(&a, p, sizeof a);
    return all_ints(a);
}

TERN_INLINE floats as_floats(ints x)
{
    return load_floats(&x);
}

TERN_INLINE ints as_ints(floats x)
{
    return load_ints(&x);
}

TERN_INLINE floats to_floats(ints a)
{
    floats x;
    for (int i = 0; i < LANES; i++)
        x.v[i] = (float)a.v[i];
    return x;
}

TERN_INLINE floats multiply(floats a, floats b)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] *= b.v[i];
    return a;
}

TERN_INLINE floats fused(floats a, floats b, floats c)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] = fmaf(a.v[i], b.v[i], c.v[i]);
    return a;
}

TERN_INLINE floats negate(floats x)
{
    for (int i = 0; i < LANES; i++)
        x.v[i] = -x.v[i];
    return x;
}

TERN_INLINE ints both(ints a, ints b)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] &= b.v[i];
    return a;
}

TERN_INLINE ints either(ints a, ints b)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] |= b.v[i];
    return a;
}

TERN_INLINE ints differing(ints a, ints b)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] ^= b.v[i];
    return a;
}

TERN_INLINE ints plus_ints(ints a, ints b)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] += b.v[i];
    return a;
}

TERN_INLINE ints minus_ints(ints a, ints b)
{
    for (int i = 0; i < LANES; i++)
        a.v[i] -= b.v[i];
    return a;
}

TERN_INLINE ints minus_bytes(ints a, ints b)
{
    bytes x = as_bytes(a), y = as_bytes(b);
    for (int i = 0; i < 4 * LANES; i++)
        x.b[i] = (int8_t)(x.b[i] - y.b[i]);
    return of_bytes(x);
}

TERN_INLINE ints shifted(ints a, int up)
{
    words x = as_words(a);
    for (int i = 0; i < 2 * LANES; i++) {
        const uint16_t h = (uint16_t)x.h[i];
        x.h[i] = (int16_t)(uint16_t)(up < 0 ? h >> -up : h << up);
    }
    return of_words(x);
}

TERN_INLINE ints up_4(ints x)
{
    return shifted(x, 4);
}

TERN_INLINE ints up_2(ints x)
{
    return shifted(x, 2);
}

TERN_INLINE ints down_2(ints x)
{
    return shifted(x, -2);
}

TERN_INLINE ints down_4(ints x)
{
    return shifted(x, -4);
}

TERN_INLINE ints down_by(ints x, unsigned n)
{
    return shifted(x, -(int)n);
}

TERN_INLINE floats power_of_2(ints e)
{
    for (int i = 0; i < LANES; i++)
        e.v[i] = (int32_t)((uint32_t)(e.v[i] + 63) << 23);
    return as_floats(e);
}

TERN_INLINE ints looked_up(const uint8_t values[16], ints a)
{
    bytes x = as_bytes(a);
    for (int i = 0; i < 4 * LANES; i++)
        x.b[i] = (int8_t)values[x.b[i]];
    return of_bytes(x);
}

TERN_INLINE ints first_of_pairs(ints pairs)
{
    const words x = as_words(pairs);
    for (int i = 0; i < LANES; i++)
        pairs.v[i] = x.h[2 * i];
    return pairs;
}

TERN_INLINE ints second_of_pairs(ints pairs)
{
    const words x = as_words(pairs);
    for (int i = 0; i < LANES; i++)
        pairs.v[i] = x.h[2 * i + 1];
    return pairs;
}

TERN_INLINE ints dot_pairs(ints a, ints b)
{
    const words x = as_words(a), y = as_words(b);
    for (int i = 0; i < LANES; i++)
        a.v[i] = x.h[2 * i] * y.h[2 * i] + x.h[2 * i + 1] * y.h[2 * i + 1];
    return a;
}

TERN_INLINE ints dot_4(ints sum, ints codes, ints q)
{
    const bytes x = as_bytes(codes), y = as_bytes(q);
    for (int i = 0; i < 4 * LANES; i++)
        sum.v[i / 4] += (uint8_t)x.b[i] * y.b[i];
    return sum;
}

TERN_INLINE ints dot_4_at(ints sum, ints codes, const int8_t *q)
{
    return dot_4(sum, codes, broadcast_4(q));
}


TERN_INLINE void dot_4_all(ints sum[1], const ints codes[1], const int8_t *q)
{
    sum[0] = dot_4_at(sum[0], codes[0], q);
}

TERN_INLINE ints low_nibbles_or(ints x, ints y, ints mask)
{
    return either(both(x, all_bytes(15)), both(y, mask));
}

TERN_INLINE ints with_fifth(ints codes, ints plane, ints bit)
{
    bytes x = as_bytes(codes);
    const bytes y = as_bytes(both(plane, bit));
    for (int i = 0; i < 4 * LANES; i++)
        x.b[i] = (int8_t)(x.b[i] + (y.b[i] ? 16 : 0));
    return of_bytes(x);
}

TERN_INLINE void add_fifths(ints bits, ints w[8])
{
    for (int j = 0; j < 8; j++) {
        bytes x = as_bytes(w[j]);
        for (int i = 0; i < 4 * LANES; i++)
            x.b[i] |= (int8_t)((uint32_t)bits.v[i / 4] >> (4 * j + i % 4) & 1 ? 16 : 0);
        w[j] = of_bytes(x);
    }
}

enum { _MM_HINT_T0, _MM_HINT_T1 };

TERN_INLINE void _mm_prefetch(const char *p, int hint)
{
    (void)p;
    (void)hint;
}

/* --- tiles --- */

struct emulated_tiles {
    uint8_t config[64];
    uint8_t line[8][16][64];
};
extern struct emulated_tiles emulated;

/* All but the lines and bytes that a tile is configured for is zeroed, as the CPU does. */
TERN_INLINE void _tile_loadconfig(const void *p)
{
    memset(&emulated, 0, sizeof emulated);
    memcpy(emulated.config, p, sizeof emulated.config);
}

TERN_INLINE void _tile_release(void)
{
    memset(&emulated, 0, sizeof emulated);
}

TERN_INLINE size_t tile_lines(int tile)
{
    return emulated.config[48 + tile];
}

TERN_INLINE size_t tile_bytes(int tile)
{
    return tern_load_u16(emulated.config + 16 + 2 * tile);
}

TERN_INLINE void _tile_zero(int tile)
{
    memset(emulated.line[tile], 0, sizeof emulated.line[tile]);
}

TERN_INLINE void _tile_loadd(int tile, const void *p, size_t stride)
{
    _tile_zero(tile);
    for (size_t i = 0; i < tile_lines(tile); i++)
        memcpy(emulated.line[tile][i], (const char *)p + stride * i, tile_bytes(tile));
}

TERN_INLINE void _tile_stored(int tile, void *p, size_t stride)
{
    for (size_t i = 0; i < tile_lines(tile); i++)
        memcpy((char *)p + stride * i, emulated.line[tile][i], tile_bytes(tile));
}

TERN_INLINE void _tile_dpbssd(int sum, int a, int b)
{
    for (size_t m = 0; m < tile_lines(sum); m++)
        for (size_t n = 0; n < tile_bytes(sum) / 4; n++) {
            int32_t x;
            memcpy(&x, emulated.line[sum][m] + 4 * n, sizeof x);
            for (size_t k = 0; k < tile_bytes(a); k++)
                x += (int8_t)emulated.line[a][m][k] *
                     (int8_t)emulated.line[b][k / 4][4 * n + k % 4];
            memcpy(emulated.line[sum][m] + 4 * n, &x, sizeof x);
        }
}

#endif
