#include "platform/cpu/arm/arm.h"

void tern_install_dotprod(struct tern_kernels *k);
void tern_install_dotprod(struct tern_kernels *k)
{
    k->matmul_codes = tern_matmul_codes_dotprod;
    k->matmul_q4_0 = tern_matmul_q4_0_dotprod;
    k->matmul_q4_1 = tern_matmul_q4_1_dotprod;
    k->matmul_q4_k = tern_matmul_q4_k_dotprod;
    k->matmul_q5_0 = tern_matmul_q5_0_dotprod;
    k->matmul_q5_1 = tern_matmul_q5_1_dotprod;
    k->matmul_q5_k = tern_matmul_q5_k_dotprod;
    k->matmul_q6_k = tern_matmul_q6_k_dotprod;
    k->matmul_q8_0 = tern_matmul_q8_0_dotprod;
}
