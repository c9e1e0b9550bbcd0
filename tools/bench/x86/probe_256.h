/* probe_256.h: what the probes of variants with 256 bits share. */
#ifndef TERN_PROBE_256_H
#define TERN_PROBE_256_H

#include "tools/bench/probe.h"

#include <immintrin.h>

static inline uint64_t read_vectors(const void *data, size_t n)
{
    const __m256i *p = data;
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (size_t i = 0; i < n / 32; i += 8) {
        _mm_prefetch((const char *)(p + i) + 2048, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 2112, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 2176, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 2240, _MM_HINT_T0);
        a = _mm256_xor_si256(a, _mm256_xor_si256(p[i], p[i + 1]));
        b = _mm256_xor_si256(b, _mm256_xor_si256(p[i + 2], p[i + 3]));
        c = _mm256_xor_si256(c, _mm256_xor_si256(p[i + 4], p[i + 5]));
        d = _mm256_xor_si256(d, _mm256_xor_si256(p[i + 6], p[i + 7]));
    }
    a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
    return (uint64_t)_mm256_extract_epi64(a, 0) ^ (uint64_t)_mm256_extract_epi64(a, 2);
}

/* The empty statement makes the compiler believe that *x has changed, so that nothing is moved
 * out of the loop; it costs no instruction. By address, as no function that is compiled without
 * AVX may return a vector. */
static inline void touch(__m256i *x)
{
    __asm__ volatile("" : "+x"(*x));
}

#endif
