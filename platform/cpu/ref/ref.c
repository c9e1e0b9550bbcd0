/* ref.c: the table of references. Types with codes share one: it knows them by their format. */
#include "platform/cpu/ref/ref.h"

const struct tern_kernels tern_kernels_ref = {
    .matmul_f32 = tern_matmul_f32_ref,
    .matmul_f16 = tern_matmul_f16_ref,
    .matmul_bf16 = tern_matmul_bf16_ref,
    .matmul_q4_0 = tern_matmul_codes_ref,
    .matmul_q4_1 = tern_matmul_codes_ref,
    .matmul_q5_0 = tern_matmul_codes_ref,
    .matmul_q5_1 = tern_matmul_codes_ref,
    .matmul_q8_0 = tern_matmul_codes_ref,
    .matmul_q4_k = tern_matmul_codes_ref,
    .matmul_q5_k = tern_matmul_codes_ref,
    .matmul_q6_k = tern_matmul_codes_ref,
    .matmul_codes = tern_matmul_codes_ref,
    .matmul_exact = tern_matmul_exact_ref,
};
