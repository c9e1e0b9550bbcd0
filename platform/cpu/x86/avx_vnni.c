#include "platform/cpu/x86/x86.h"

void tern_install_avx_vnni(struct tern_kernels *k);
void tern_install_avx_vnni(struct tern_kernels *k)
{
    k->matmul_codes = tern_matmul_codes_avx_vnni;
    k->matmul_iq4_nl = tern_matmul_iq4_nl_avx_vnni;
    k->matmul_iq4_xs = tern_matmul_iq4_xs_avx_vnni;
    k->matmul_mxfp4 = tern_matmul_mxfp4_avx_vnni;
    k->matmul_q4_0 = tern_matmul_q4_0_avx_vnni;
    k->matmul_q4_1 = tern_matmul_q4_1_avx_vnni;
    k->matmul_q4_k = tern_matmul_q4_k_avx_vnni;
    k->matmul_q5_0 = tern_matmul_q5_0_avx_vnni;
    k->matmul_q5_1 = tern_matmul_q5_1_avx_vnni;
    k->matmul_q5_k = tern_matmul_q5_k_avx_vnni;
    k->matmul_q6_k = tern_matmul_q6_k_avx_vnni;
    k->matmul_q8_0 = tern_matmul_q8_0_avx_vnni;
}
