#include "platform/cpu/x86/x86.h"

void tern_install_avx2(struct tern_kernels *k);
void tern_install_avx2(struct tern_kernels *k)
{
    k->matmul_f32 = tern_matmul_f32_avx2;
    k->matmul_f16 = tern_matmul_f16_avx2;
    k->matmul_bf16 = tern_matmul_bf16_avx2;
    k->matmul_codes = tern_matmul_codes_avx2;
    k->matmul_exact = tern_matmul_exact_avx2;
    k->matmul_iq2_xxs = tern_matmul_iq2_xxs_avx2;
    k->matmul_iq2_xs = tern_matmul_iq2_xs_avx2;
    k->matmul_iq2_s = tern_matmul_iq2_s_avx2;
    k->matmul_iq3_xxs = tern_matmul_iq3_xxs_avx2;
    k->matmul_iq3_s = tern_matmul_iq3_s_avx2;
    k->matmul_iq1_s = tern_matmul_iq1_s_avx2;
    k->matmul_iq1_m = tern_matmul_iq1_m_avx2;
    k->matmul_iq4_nl = tern_matmul_iq4_nl_avx2;
    k->matmul_iq4_xs = tern_matmul_iq4_xs_avx2;
    k->matmul_mxfp4 = tern_matmul_mxfp4_avx2;
    k->matmul_tq1_0 = tern_matmul_tq1_0_avx2;
    k->matmul_tq2_0 = tern_matmul_tq2_0_avx2;
    k->matmul_q2_k = tern_matmul_q2_k_avx2;
    k->matmul_q3_k = tern_matmul_q3_k_avx2;
    k->matmul_q4_0 = tern_matmul_q4_0_avx2;
    k->matmul_q4_1 = tern_matmul_q4_1_avx2;
    k->matmul_q4_k = tern_matmul_q4_k_avx2;
    k->matmul_q5_0 = tern_matmul_q5_0_avx2;
    k->matmul_q5_1 = tern_matmul_q5_1_avx2;
    k->matmul_q5_k = tern_matmul_q5_k_avx2;
    k->matmul_q6_k = tern_matmul_q6_k_avx2;
    k->matmul_q8_0 = tern_matmul_q8_0_avx2;
    k->rms_norm = tern_rms_norm_avx2;
    k->quantize = tern_quantize_avx2;
    k->halves = tern_halves_avx2;
    k->hadamard = tern_hadamard_avx2;
    k->rope_norm = tern_rope_norm_avx2;
    k->rope_neox = tern_rope_neox_avx2;
    k->silu_mul = tern_silu_mul_avx2;
    k->gelu_mul = tern_gelu_mul_avx2;
    k->add = tern_add_avx2;
    k->scale = tern_scale_avx2;
    k->softcap = tern_softcap_avx2;
    k->scores_f32 = tern_scores_f32_avx2;
    k->scores_f16 = tern_scores_f16_avx2;
    k->scores_q8_0 = tern_scores_q8_0_avx2;
    k->scores_q4_0 = tern_scores_q4_0_avx2;
    k->softmax = tern_softmax_avx2;
    k->values_f32 = tern_values_f32_avx2;
    k->values_f16 = tern_values_f16_avx2;
    k->values_q8_0 = tern_values_q8_0_avx2;
    k->values_q4_0 = tern_values_q4_0_avx2;
    k->merge = tern_merge_avx2;
    k->finish = tern_finish_avx2;
    k->highest = tern_highest_avx2;
    k->exp_row = tern_exp_row_avx2;
}
