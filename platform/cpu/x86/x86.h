/* x86.h: the kernels of x86 variants. A file's name ends with the variant that it belongs to. */
#ifndef TERN_CPU_X86_H
#define TERN_CPU_X86_H

#include "platform/cpu/kernels.h"

tern_matmul_fn tern_matmul_f32_avx2, tern_matmul_f16_avx2, tern_matmul_bf16_avx2;
tern_matmul_fn tern_matmul_q4_0_avx2, tern_matmul_q4_1_avx2, tern_matmul_q4_k_avx2;
tern_matmul_fn tern_matmul_q5_0_avx2, tern_matmul_q5_1_avx2, tern_matmul_q5_k_avx2;
tern_matmul_fn tern_matmul_q6_k_avx2, tern_matmul_q8_0_avx2;
tern_matmul_fn tern_matmul_q2_k_avx2, tern_matmul_q3_k_avx2;
tern_matmul_fn tern_matmul_iq4_nl_avx2, tern_matmul_iq4_xs_avx2, tern_matmul_mxfp4_avx2;
tern_matmul_fn tern_matmul_iq2_xxs_avx2, tern_matmul_iq2_xs_avx2, tern_matmul_iq2_s_avx2;
tern_matmul_fn tern_matmul_iq3_xxs_avx2, tern_matmul_iq3_s_avx2;
tern_matmul_fn tern_matmul_iq1_s_avx2, tern_matmul_iq1_m_avx2;
tern_matmul_fn tern_matmul_tq1_0_avx2, tern_matmul_tq2_0_avx2;
tern_matmul_fn tern_matmul_codes_avx2, tern_matmul_exact_avx2;

/* Sub-blocks first .. first + n - 1 of a panel as floats, [32 n][16]; both are multiples of a
 * block's. */
typedef void tern_floats_avx2_fn(const uint8_t *panel, size_t first, size_t n, float *out);
tern_floats_avx2_fn tern_floats_iq2_xxs_avx2, tern_floats_iq2_xs_avx2, tern_floats_iq2_s_avx2;
tern_floats_avx2_fn tern_floats_iq3_xxs_avx2, tern_floats_iq3_s_avx2, tern_floats_iq1_s_avx2;
tern_floats_avx2_fn tern_floats_iq1_m_avx2, tern_floats_q2_k_avx2, tern_floats_q3_k_avx2;
tern_floats_avx2_fn tern_floats_q4_0_avx2, tern_floats_q4_1_avx2, tern_floats_q4_k_avx2;
tern_floats_avx2_fn tern_floats_q5_0_avx2, tern_floats_q5_1_avx2, tern_floats_q5_k_avx2;
tern_floats_avx2_fn tern_floats_q8_0_avx2, tern_floats_q6_k_avx2, tern_floats_iq4_nl_avx2;
tern_floats_avx2_fn tern_floats_iq4_xs_avx2, tern_floats_mxfp4_avx2, tern_floats_tq1_0_avx2;
tern_floats_avx2_fn tern_floats_tq2_0_avx2;

tern_rms_norm_fn tern_rms_norm_avx2;
tern_quantize_fn tern_quantize_avx2;
tern_halves_fn tern_halves_avx2;
tern_hadamard_fn tern_hadamard_avx2;
tern_rope_fn tern_rope_norm_avx2, tern_rope_neox_avx2;
tern_mul_act_fn tern_silu_mul_avx2, tern_gelu_mul_avx2;
tern_add_fn tern_add_avx2;
tern_scale_fn tern_scale_avx2;
tern_softcap_fn tern_softcap_avx2;

tern_scores_fn tern_scores_f32_avx2, tern_scores_f16_avx2;
tern_scores_fn tern_scores_q8_0_avx2, tern_scores_q4_0_avx2;
tern_softmax_fn tern_softmax_avx2;
tern_values_fn tern_values_f32_avx2, tern_values_f16_avx2, tern_values_q8_0_avx2;
tern_values_fn tern_values_q4_0_avx2;
tern_merge_fn tern_merge_avx2;
tern_finish_fn tern_finish_avx2;

tern_highest_fn tern_highest_avx2;
tern_exp_row_fn tern_exp_row_avx2;

tern_matmul_fn tern_matmul_q4_0_avx_vnni, tern_matmul_q4_1_avx_vnni, tern_matmul_q4_k_avx_vnni;
tern_matmul_fn tern_matmul_q5_0_avx_vnni, tern_matmul_q5_1_avx_vnni, tern_matmul_q5_k_avx_vnni;
tern_matmul_fn tern_matmul_q6_k_avx_vnni, tern_matmul_q8_0_avx_vnni, tern_matmul_codes_avx_vnni;

tern_matmul_fn tern_matmul_q4_0_avx512_vnni, tern_matmul_q4_1_avx512_vnni;
tern_matmul_fn tern_matmul_q5_0_avx512_vnni, tern_matmul_q5_1_avx512_vnni;
tern_matmul_fn tern_matmul_q4_k_avx512_vnni, tern_matmul_q5_k_avx512_vnni;
tern_matmul_fn tern_matmul_q6_k_avx512_vnni, tern_matmul_q8_0_avx512_vnni;
tern_matmul_fn tern_matmul_codes_avx512_vnni, tern_matmul_exact_avx512_vnni;
tern_matmul_fn tern_matmul_f32_avx512_vnni, tern_matmul_f16_avx512_vnni;
tern_matmul_fn tern_matmul_bf16_avx512_vnni;

tern_mul_act_fn tern_silu_mul_avx512_vnni, tern_gelu_mul_avx512_vnni;
tern_softcap_fn tern_softcap_avx512_vnni;

tern_softmax_fn tern_softmax_avx512_vnni;
tern_values_fn tern_values_f32_avx512_vnni, tern_values_f16_avx512_vnni;
tern_values_fn tern_values_q8_0_avx512_vnni;

#endif
