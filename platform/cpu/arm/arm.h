/* arm.h: the kernels of 64-bit ARM variants. A file's name ends with the variant that it belongs
 * to: neon is what every such CPU has, dotprod and i8mm add an instruction each for products of
 * integers and take everything else from neon. */
#ifndef TERN_CPU_ARM_H
#define TERN_CPU_ARM_H

#include "platform/cpu/kernels.h"

tern_matmul_fn tern_matmul_f32_neon, tern_matmul_f16_neon, tern_matmul_bf16_neon;
tern_matmul_fn tern_matmul_codes_neon, tern_matmul_exact_neon;
tern_matmul_fn tern_matmul_q4_0_neon, tern_matmul_q4_1_neon, tern_matmul_q4_k_neon;
tern_matmul_fn tern_matmul_q5_0_neon, tern_matmul_q5_1_neon, tern_matmul_q5_k_neon;
tern_matmul_fn tern_matmul_q6_k_neon, tern_matmul_q8_0_neon;

tern_matmul_fn tern_matmul_codes_dotprod;
tern_matmul_fn tern_matmul_q4_0_dotprod, tern_matmul_q4_1_dotprod, tern_matmul_q4_k_dotprod;
tern_matmul_fn tern_matmul_q5_0_dotprod, tern_matmul_q5_1_dotprod, tern_matmul_q5_k_dotprod;
tern_matmul_fn tern_matmul_q6_k_dotprod, tern_matmul_q8_0_dotprod;

tern_matmul_fn tern_matmul_q4_0_i8mm, tern_matmul_q4_1_i8mm, tern_matmul_q4_k_i8mm;
tern_matmul_fn tern_matmul_q5_0_i8mm, tern_matmul_q5_1_i8mm, tern_matmul_q5_k_i8mm;
tern_matmul_fn tern_matmul_q6_k_i8mm, tern_matmul_q8_0_i8mm;

tern_rms_norm_fn tern_rms_norm_neon;
tern_quantize_fn tern_quantize_neon;
tern_halves_fn tern_halves_neon;
tern_hadamard_fn tern_hadamard_neon;
tern_rope_fn tern_rope_norm_neon, tern_rope_neox_neon;
tern_mul_act_fn tern_silu_mul_neon, tern_gelu_mul_neon;
tern_add_fn tern_add_neon;
tern_scale_fn tern_scale_neon;
tern_softcap_fn tern_softcap_neon;

tern_softmax_fn tern_softmax_neon;
tern_values_fn tern_values_f32_neon, tern_values_f16_neon, tern_values_q8_0_neon;
tern_values_fn tern_values_q4_0_neon;
tern_merge_fn tern_merge_neon;
tern_finish_fn tern_finish_neon;

tern_highest_fn tern_highest_neon;
tern_exp_row_fn tern_exp_row_neon;

#endif
