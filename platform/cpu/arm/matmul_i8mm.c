/* matmul_i8mm.c: the integer types with smmla for more than one token. */
#include "platform/cpu/arm/arm.h"
#include "platform/cpu/arm/types_arm.h"

#ifndef __ARM_FEATURE_MATMUL_INT8
#error "this belongs to the i8mm variant"
#endif

void tern_matmul_q4_0_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q4_0, m, first, n);
}

void tern_matmul_q4_1_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q4_1, m, first, n);
}

void tern_matmul_q4_k_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q4_k, m, first, n);
}

void tern_matmul_q5_0_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q5_0, m, first, n);
}

void tern_matmul_q5_1_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q5_1, m, first, n);
}

void tern_matmul_q5_k_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q5_k, m, first, n);
}

void tern_matmul_q6_k_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q6_k, m, first, n);
}

void tern_matmul_q8_0_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_arm(&q8_0, m, first, n);
}
