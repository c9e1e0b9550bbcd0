#include "tests/kernels/saboteur.h"

static void install(struct tern_kernels *k)
{
    k->matmul_f32 = k->matmul_f16 = k->matmul_bf16 = saboteur_matmul_float;
    k->matmul_q4_0 = k->matmul_q4_1 = k->matmul_q5_0 = k->matmul_q5_1 = saboteur_matmul_codes;
    k->matmul_q8_0 = k->matmul_q4_k = k->matmul_q5_k = k->matmul_q6_k = saboteur_matmul_codes;
    k->matmul_codes = saboteur_matmul_codes;
    k->matmul_exact = saboteur_matmul_float;
}

const struct tern_cpu_variant saboteur = {"saboteur", 0, install};
