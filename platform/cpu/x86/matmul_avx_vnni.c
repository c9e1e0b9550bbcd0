/* matmul_avx_vnni.c: integer matrix products of the AVX-VNNI variant. */
#include "platform/cpu/x86/lanes_avx_vnni.h"

#include "platform/cpu/x86/matmul_vnni.h"
#include "platform/cpu/x86/x86.h"

void tern_matmul_q4_0_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_0, m, first, n);
}

void tern_matmul_q4_1_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_1, m, first, n);
}

void tern_matmul_q5_0_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_0, m, first, n);
}

void tern_matmul_q5_1_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_1, m, first, n);
}

void tern_matmul_q8_0_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q8_0, m, first, n);
}

void tern_matmul_q4_k_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q4_k, m, first, n);
}

void tern_matmul_q5_k_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q5_k, m, first, n);
}

void tern_matmul_q6_k_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&q6_k, m, first, n);
}

void tern_matmul_iq4_nl_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&iq4_nl, m, first, n);
}

void tern_matmul_iq4_xs_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&iq4_xs, m, first, n);
}

void tern_matmul_mxfp4_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes(&mxfp4, m, first, n);
}

void tern_matmul_codes_avx_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_any(m, first, n);
}
