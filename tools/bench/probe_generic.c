#include "tools/bench/probe.h"

static uint64_t read_words(const void *data, size_t n)
{
    const uint64_t *p = data;
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (size_t i = 0; i < n / 8; i += 4) {
        a ^= p[i];
        b ^= p[i + 1];
        c ^= p[i + 2];
        d ^= p[i + 3];
    }
    return a ^ b ^ c ^ d;
}

/* Plain C, as the reference kernels multiply. */
static uint64_t dot_plain(uint64_t n_rounds)
{
    static volatile int8_t seed = 3;
    int8_t x[16], y[16];
    int32_t sum = 0;
    for (int i = 0; i < 16; i++)
        x[i] = y[i] = (int8_t)(seed + i);
    for (uint64_t r = 0; r < n_rounds; r++) {
        x[r % 16] = (int8_t)r;
        for (int i = 0; i < 16; i++)
            sum += x[i] * y[i];
    }
    return (uint64_t)(uint32_t)sum;
}

const struct tern_probe tern_probe_generic = {"reference", "multiply and add in C", read_words,
                                              dot_plain, 16};
