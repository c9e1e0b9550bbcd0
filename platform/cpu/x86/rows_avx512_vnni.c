/* rows_avx512_vnni.c: operations with an exponential on one row of floats, 16 lanes at a time. The
 * end of a row is the same operations under a mask. What is bound by loads and stores or by the
 * latency of a sum gains nothing from wider registers and is AVX2's. */
#include "platform/cpu/x86/x86.h"

#include "platform/cpu/x86/math_avx512_vnni.h"

void tern_silu_mul_avx512_vnni(float *dst, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 here = first_lanes(n - i);
        const __m512 y = silu_16(_mm512_maskz_loadu_ps(here, gate + i));
        _mm512_mask_storeu_ps(dst + i, here,
                              _mm512_mul_ps(y, _mm512_maskz_loadu_ps(here, up + i)));
    }
}

void tern_gelu_mul_avx512_vnni(float *dst, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 here = first_lanes(n - i);
        const __m512 y = gelu_tanh_16(_mm512_maskz_loadu_ps(here, gate + i));
        _mm512_mask_storeu_ps(dst + i, here,
                              _mm512_mul_ps(y, _mm512_maskz_loadu_ps(here, up + i)));
    }
}

void tern_softcap_avx512_vnni(float *dst, const float *a, float cap, size_t n)
{
    const __m512 caps = _mm512_set1_ps(cap);
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 here = first_lanes(n - i);
        const __m512 y = tanh_16(_mm512_div_ps(_mm512_maskz_loadu_ps(here, a + i), caps));
        _mm512_mask_storeu_ps(dst + i, here, _mm512_mul_ps(caps, y));
    }
}
