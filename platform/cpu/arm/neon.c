#include "platform/cpu/arm/arm.h"

void tern_install_neon(struct tern_kernels *k);
void tern_install_neon(struct tern_kernels *k)
{
    k->matmul_f32 = tern_matmul_f32_neon;
    k->matmul_f16 = tern_matmul_f16_neon;
    k->matmul_bf16 = tern_matmul_bf16_neon;
    k->matmul_codes = tern_matmul_codes_neon;
    k->matmul_exact = tern_matmul_exact_neon;
    k->matmul_q4_0 = tern_matmul_q4_0_neon;
    k->matmul_q4_1 = tern_matmul_q4_1_neon;
    k->matmul_q4_k = tern_matmul_q4_k_neon;
    k->matmul_q5_0 = tern_matmul_q5_0_neon;
    k->matmul_q5_1 = tern_matmul_q5_1_neon;
    k->matmul_q5_k = tern_matmul_q5_k_neon;
    k->matmul_q6_k = tern_matmul_q6_k_neon;
    k->matmul_q8_0 = tern_matmul_q8_0_neon;
    k->rms_norm = tern_rms_norm_neon;
    k->quantize = tern_quantize_neon;
    k->halves = tern_halves_neon;
    k->hadamard = tern_hadamard_neon;
    k->rope_norm = tern_rope_norm_neon;
    k->rope_neox = tern_rope_neox_neon;
    k->silu_mul = tern_silu_mul_neon;
    k->gelu_mul = tern_gelu_mul_neon;
    k->add = tern_add_neon;
    k->scale = tern_scale_neon;
    k->softcap = tern_softcap_neon;
    k->softmax = tern_softmax_neon;
    k->values_f32 = tern_values_f32_neon;
    k->values_f16 = tern_values_f16_neon;
    k->values_q8_0 = tern_values_q8_0_neon;
    k->values_q4_0 = tern_values_q4_0_neon;
    k->merge = tern_merge_neon;
    k->finish = tern_finish_neon;
    k->highest = tern_highest_neon;
    k->exp_row = tern_exp_row_neon;
}
