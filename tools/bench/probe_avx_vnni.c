#include "tools/bench/x86/probe_256.h"

static uint64_t dot_dpbusd(uint64_t n_rounds)
{
    enum { SUMS = 12 };
    __m256i x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(5);
    __m256i sums[SUMS];
    for (int i = 0; i < SUMS; i++)
        sums[i] = _mm256_setzero_si256();
    for (uint64_t r = 0; r < n_rounds; r++) {
        for (int i = 0; i < SUMS; i++) {
            touch(&x);
            sums[i] = _mm256_dpbusd_avx_epi32(sums[i], x, y);
        }
    }
    __m256i all = sums[0];
    for (int i = 1; i < SUMS; i++)
        all = _mm256_xor_si256(all, sums[i]);
    return (uint64_t)_mm256_extract_epi64(all, 0);
}

const struct tern_probe tern_probe_avx_vnni = {"avx_vnni", "vpdpbusd of 256 bits", read_vectors,
                                               dot_dpbusd, 12 * 32};
