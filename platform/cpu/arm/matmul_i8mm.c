/* matmul_i8mm.c: the integer types with smmla for more than one token. One token leaves half of
 * its products unused, so dotprod's kernels do that. */
#include "platform/cpu/arm/arm.h"
#include "platform/cpu/arm/types_arm.h"

#ifndef __ARM_FEATURE_MATMUL_INT8
#error "this belongs to the i8mm variant"
#endif

TERN_INLINE void multiply(const struct tern_codes_arm *f, tern_matmul_fn *one_token,
                          const struct tern_matmul *m, size_t first, size_t n)
{
    if (m->acts->n_tokens > 1)
        matmul_groups(f, m, first, n);
    else
        one_token(m, first, n);
}

void tern_matmul_q4_0_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q4_0, tern_matmul_q4_0_dotprod, m, first, n);
}

void tern_matmul_q4_1_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q4_1, tern_matmul_q4_1_dotprod, m, first, n);
}

void tern_matmul_q4_k_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q4_k, tern_matmul_q4_k_dotprod, m, first, n);
}

void tern_matmul_q5_0_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q5_0, tern_matmul_q5_0_dotprod, m, first, n);
}

void tern_matmul_q5_1_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q5_1, tern_matmul_q5_1_dotprod, m, first, n);
}

void tern_matmul_q5_k_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q5_k, tern_matmul_q5_k_dotprod, m, first, n);
}

void tern_matmul_q6_k_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q6_k, tern_matmul_q6_k_dotprod, m, first, n);
}

void tern_matmul_q8_0_i8mm(const struct tern_matmul *m, size_t first, size_t n)
{
    multiply(&q8_0, tern_matmul_q8_0_dotprod, m, first, n);
}
