#include "tests/kernels/saboteur.h"

static void install(struct tern_kernels *k)
{
    k->matmul_f32 = k->matmul_f16 = k->matmul_bf16 = saboteur_matmul_float;
    k->matmul_q4_0 = k->matmul_q4_1 = k->matmul_q5_0 = k->matmul_q5_1 = saboteur_matmul_codes;
    k->matmul_q8_0 = k->matmul_q2_k = k->matmul_q3_k = k->matmul_q4_k = saboteur_matmul_codes;
    k->matmul_q5_k = k->matmul_q6_k = k->matmul_iq4_nl = k->matmul_iq4_xs = saboteur_matmul_codes;
    k->matmul_iq2_xxs = k->matmul_iq2_xs = k->matmul_iq2_s = saboteur_matmul_codes;
    k->matmul_iq3_xxs = k->matmul_iq3_s = saboteur_matmul_codes;
    k->matmul_iq1_s = k->matmul_iq1_m = saboteur_matmul_codes;
    k->matmul_mxfp4 = k->matmul_tq1_0 = k->matmul_tq2_0 = saboteur_matmul_codes;
    k->matmul_codes = saboteur_matmul_codes;
    k->matmul_exact = saboteur_matmul_float;
    k->rms_norm = saboteur_rms_norm;
    k->quantize = saboteur_quantize;
    k->halves = saboteur_halves;
    k->hadamard = saboteur_hadamard;
    k->rope_norm = saboteur_rope_norm;
    k->rope_neox = saboteur_rope_neox;
    k->silu_mul = saboteur_silu_mul;
    k->gelu_mul = saboteur_gelu_mul;
    k->add = saboteur_add;
    k->scale = saboteur_scale;
    k->softcap = saboteur_softcap;
    k->scores_f32 = k->scores_f16 = k->scores_q8_0 = k->scores_q4_0 = saboteur_scores;
    k->softmax = saboteur_softmax;
    k->values_f32 = saboteur_values_f32;
    k->values_f16 = saboteur_values_f16;
    k->values_q8_0 = saboteur_values_q8_0;
    k->values_q4_0 = saboteur_values_q4_0;
    k->merge = saboteur_merge;
    k->finish = saboteur_finish;
    k->highest = saboteur_highest;
    k->exp_row = saboteur_exp_row;
}

const struct tern_cpu_variant saboteur = {"saboteur", 0, install};
