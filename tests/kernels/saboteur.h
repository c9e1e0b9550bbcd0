/* saboteur.h: kernels that are wrong in the smallest way a variant can be: the order of a sum,
 * a product rounded before it is added. A check that accepts one is worthless. */
#ifndef TERN_TESTS_SABOTEUR_H
#define TERN_TESTS_SABOTEUR_H

#include "platform/cpu/kernels.h"

extern const struct tern_cpu_variant saboteur;
/* Kernels of CPUs that this machine may not be, see emulated.h. */
extern const struct tern_cpu_variant emulated_vnni, emulated_amx;

tern_matmul_fn saboteur_matmul_codes; /* the product is rounded before it is added */
tern_matmul_fn saboteur_matmul_float; /* two chains, over even and odd k, added at the end */

tern_rms_norm_fn saboteur_rms_norm;
tern_quantize_fn saboteur_quantize;
tern_halves_fn saboteur_halves;
tern_hadamard_fn saboteur_hadamard;
tern_rope_fn saboteur_rope_norm, saboteur_rope_neox;
tern_mul_act_fn saboteur_silu_mul, saboteur_gelu_mul;
tern_add_fn saboteur_add;
tern_scale_fn saboteur_scale;
tern_softcap_fn saboteur_softcap;
tern_scores_fn saboteur_scores;
tern_softmax_fn saboteur_softmax;
tern_values_fn saboteur_values_f32, saboteur_values_f16, saboteur_values_q8_0;
tern_values_fn saboteur_values_q4_0;
tern_merge_fn saboteur_merge;
tern_finish_fn saboteur_finish;
tern_highest_fn saboteur_highest;
tern_exp_row_fn saboteur_exp_row;

#endif
