/* philox.h: random numbers as a function of a counter (Salmon and others, "Parallel Random
 * Numbers: As Easy as 1, 2, 3", 2011): Philox4x32-10.
 *
 * Nothing is kept between draws, so a number depends on (seed, stream, position) alone: not on
 * batches, neighbours, restarts or how many numbers were drawn before.
 */
#ifndef TERN_PHILOX_H
#define TERN_PHILOX_H

#include <stdint.h>

/* Ten rounds of two 32 x 32 bit products whose halves are swapped and mixed with the key. */
static inline void tern_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p = UINT64_C(0xD2511F53) * a, q = UINT64_C(0xCD9E8D57) * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u; /* the golden ratio, and the square root of 3 less 1 */
        k1 += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* In [0, 1): a multiple of 2^-24. */
static inline float tern_philox_uniform(uint64_t seed, uint64_t stream, uint32_t position)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {position, 0, (uint32_t)stream, (uint32_t)(stream >> 32)};
    uint32_t out[4];
    tern_philox(counter, key, out);
    return (float)(out[0] >> 8) * 0x1p-24f;
}

#endif
