#include "platform/cpu/x86/x86.h"

void tern_install_avx512_vnni(struct tern_kernels *k);
void tern_install_avx512_vnni(struct tern_kernels *k)
{
    k->matmul_f32 = tern_matmul_f32_avx512_vnni;
    k->matmul_f16 = tern_matmul_f16_avx512_vnni;
    k->matmul_bf16 = tern_matmul_bf16_avx512_vnni;
    k->matmul_codes = tern_matmul_codes_avx512_vnni;
    k->matmul_exact = tern_matmul_exact_avx512_vnni;
    k->matmul_iq4_nl = tern_matmul_iq4_nl_avx512_vnni;
    k->matmul_iq4_xs = tern_matmul_iq4_xs_avx512_vnni;
    k->matmul_mxfp4 = tern_matmul_mxfp4_avx512_vnni;
    k->matmul_q3_k = tern_matmul_q3_k_avx512_vnni;
    k->matmul_tq2_0 = tern_matmul_tq2_0_avx512_vnni;
    k->matmul_q4_0 = tern_matmul_q4_0_avx512_vnni;
    k->matmul_q4_1 = tern_matmul_q4_1_avx512_vnni;
    k->matmul_q4_k = tern_matmul_q4_k_avx512_vnni;
    k->matmul_q5_0 = tern_matmul_q5_0_avx512_vnni;
    k->matmul_q5_1 = tern_matmul_q5_1_avx512_vnni;
    k->matmul_q5_k = tern_matmul_q5_k_avx512_vnni;
    k->matmul_q6_k = tern_matmul_q6_k_avx512_vnni;
    k->matmul_q8_0 = tern_matmul_q8_0_avx512_vnni;
    k->quantize = tern_quantize_avx512_vnni;
    k->silu_mul = tern_silu_mul_avx512_vnni;
    k->gelu_mul = tern_gelu_mul_avx512_vnni;
    k->softcap = tern_softcap_avx512_vnni;
    k->scores_f32 = tern_scores_f32_avx512_vnni;
    k->scores_f16 = tern_scores_f16_avx512_vnni;
    k->scores_q8_0 = tern_scores_q8_0_avx512_vnni;
    k->scores_q4_0 = tern_scores_q4_0_avx512_vnni;
    k->softmax = tern_softmax_avx512_vnni;
    k->values_f32 = tern_values_f32_avx512_vnni;
    k->values_f16 = tern_values_f16_avx512_vnni;
    k->values_q8_0 = tern_values_q8_0_avx512_vnni;
    k->values_q4_0 = tern_values_q4_0_avx512_vnni;
}
