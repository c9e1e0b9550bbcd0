#include "tools/bench/probe.h"

#include <immintrin.h>

static uint64_t read_vectors(const void *data, size_t n)
{
    const __m512i *p = data;
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (size_t i = 0; i < n / 64; i += 4) {
        _mm_prefetch((const char *)(p + i) + 2048, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 2112, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 2176, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 2240, _MM_HINT_T0);
        a = _mm512_xor_si512(a, p[i]);
        b = _mm512_xor_si512(b, p[i + 1]);
        c = _mm512_xor_si512(c, p[i + 2]);
        d = _mm512_xor_si512(d, p[i + 3]);
    }
    a = _mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d));
    return (uint64_t)_mm512_reduce_add_epi64(a);
}

/* The empty statement makes the compiler believe that x has changed, so that nothing is moved
 * out of the loop; it costs no instruction. */
static inline __m512i touched(__m512i x)
{
    __asm__ volatile("" : "+v"(x));
    return x;
}

static uint64_t dot_dpbusd(uint64_t n_rounds)
{
    enum { SUMS = 12 };
    __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
    __m512i sums[SUMS];
    for (int i = 0; i < SUMS; i++)
        sums[i] = _mm512_setzero_si512();
    for (uint64_t r = 0; r < n_rounds; r++) {
        for (int i = 0; i < SUMS; i++) {
            x = touched(x);
            sums[i] = _mm512_dpbusd_epi32(sums[i], x, y);
        }
    }
    __m512i all = sums[0];
    for (int i = 1; i < SUMS; i++)
        all = _mm512_xor_si512(all, sums[i]);
    return (uint64_t)_mm512_reduce_add_epi64(all);
}

const struct tern_probe tern_probe_avx512_vnni = {"avx512_vnni", "vpdpbusd of 512 bits",
                                                  read_vectors, dot_dpbusd, 12 * 64};
