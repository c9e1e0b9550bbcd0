/* ref.h: the reference kernels. They define every bit; speed is not their aim. */
#ifndef TERN_CPU_REF_H
#define TERN_CPU_REF_H

#include "platform/cpu/kernels.h"

tern_matmul_fn tern_matmul_f32_ref, tern_matmul_f16_ref, tern_matmul_bf16_ref;
tern_matmul_fn tern_matmul_codes_ref, tern_matmul_exact_ref;

tern_rms_norm_fn tern_rms_norm_ref;
tern_quantize_fn tern_quantize_ref;
tern_halves_fn tern_halves_ref;
tern_hadamard_fn tern_hadamard_ref;
tern_rope_fn tern_rope_norm_ref, tern_rope_neox_ref;
tern_mul_act_fn tern_silu_mul_ref, tern_gelu_mul_ref;
tern_add_fn tern_add_ref;
tern_scale_fn tern_scale_ref;
tern_softcap_fn tern_softcap_ref;

tern_scores_fn tern_scores_ref;
tern_softmax_fn tern_softmax_ref;
tern_values_fn tern_values_f32_ref, tern_values_f16_ref, tern_values_q8_0_ref;
tern_values_fn tern_values_q4_0_ref;
tern_merge_fn tern_merge_ref;
tern_finish_fn tern_finish_ref;

tern_highest_fn tern_highest_ref;
tern_exp_row_fn tern_exp_row_ref;

#endif
