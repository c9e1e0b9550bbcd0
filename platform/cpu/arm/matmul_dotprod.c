/* matmul_dotprod.c: the integer types with sdot. */
#include "platform/cpu/arm/arm.h"
#include "platform/cpu/arm/types_arm.h"

#ifndef __ARM_FEATURE_DOTPROD
#error "this belongs to the dotprod variant"
#endif

void tern_matmul_q4_0_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q4_0, m, first, n);
}

void tern_matmul_q4_1_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q4_1, m, first, n);
}

void tern_matmul_q4_k_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q4_k, m, first, n);
}

void tern_matmul_q5_0_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q5_0, m, first, n);
}

void tern_matmul_q5_1_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q5_1, m, first, n);
}

void tern_matmul_q5_k_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q5_k, m, first, n);
}

void tern_matmul_q6_k_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q6_k, m, first, n);
}

void tern_matmul_q8_0_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q8_0, m, first, n);
}
