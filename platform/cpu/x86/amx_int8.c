#include "platform/cpu/x86/x86.h"

void tern_install_amx_int8(struct tern_kernels *k);
void tern_install_amx_int8(struct tern_kernels *k)
{
    k->matmul_iq4_nl = tern_matmul_iq4_nl_amx_int8;
    k->matmul_iq4_xs = tern_matmul_iq4_xs_amx_int8;
    k->matmul_mxfp4 = tern_matmul_mxfp4_amx_int8;
    k->matmul_q4_0 = tern_matmul_q4_0_amx_int8;
    k->matmul_q5_0 = tern_matmul_q5_0_amx_int8;
    k->matmul_q8_0 = tern_matmul_q8_0_amx_int8;
    k->matmul_tq2_0 = tern_matmul_tq2_0_amx_int8;
}
