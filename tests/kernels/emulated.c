/* emulated.c: the table of kernels that are compiled with emulated.h. */
#include "tests/kernels/emulated.h"

#include "platform/cpu/x86/x86.h"
#include "tests/kernels/saboteur.h"

struct emulated_tiles emulated;

static void install_vnni(struct tern_kernels *k)
{
    k->matmul_q4_0 = tern_matmul_q4_0_avx512_vnni;
    k->matmul_q4_1 = tern_matmul_q4_1_avx512_vnni;
    k->matmul_q4_k = tern_matmul_q4_k_avx512_vnni;
    k->matmul_q5_0 = tern_matmul_q5_0_avx512_vnni;
    k->matmul_q5_1 = tern_matmul_q5_1_avx512_vnni;
    k->matmul_q5_k = tern_matmul_q5_k_avx512_vnni;
    k->matmul_q6_k = tern_matmul_q6_k_avx512_vnni;
    k->matmul_q8_0 = tern_matmul_q8_0_avx512_vnni;
    k->matmul_q3_k = tern_matmul_q3_k_avx512_vnni;
    k->matmul_iq4_nl = tern_matmul_iq4_nl_avx512_vnni;
    k->matmul_iq4_xs = tern_matmul_iq4_xs_avx512_vnni;
    k->matmul_mxfp4 = tern_matmul_mxfp4_avx512_vnni;
    k->matmul_tq2_0 = tern_matmul_tq2_0_avx512_vnni;
    k->matmul_codes = tern_matmul_codes_avx512_vnni;
    k->scores_q8_0 = tern_scores_q8_0_avx512_vnni;
    k->scores_q4_0 = tern_scores_q4_0_avx512_vnni;
    k->softmax = tern_softmax_avx512_vnni;
    k->values_f32 = tern_values_f32_avx512_vnni;
    k->values_f16 = tern_values_f16_avx512_vnni;
    k->values_q8_0 = tern_values_q8_0_avx512_vnni;
    k->values_q4_0 = tern_values_q4_0_avx512_vnni;
    k->silu_mul = tern_silu_mul_avx512_vnni;
    k->gelu_mul = tern_gelu_mul_avx512_vnni;
    k->softcap = tern_softcap_avx512_vnni;
}

static void install_amx(struct tern_kernels *k)
{
    k->matmul_q4_0 = tern_matmul_q4_0_amx_int8;
    k->matmul_q5_0 = tern_matmul_q5_0_amx_int8;
    k->matmul_q8_0 = tern_matmul_q8_0_amx_int8;
    k->matmul_iq4_nl = tern_matmul_iq4_nl_amx_int8;
    k->matmul_iq4_xs = tern_matmul_iq4_xs_amx_int8;
    k->matmul_mxfp4 = tern_matmul_mxfp4_amx_int8;
    k->matmul_tq2_0 = tern_matmul_tq2_0_amx_int8;
}

const struct tern_cpu_variant emulated_vnni = {"emulated_avx512_vnni", 0, install_vnni};
const struct tern_cpu_variant emulated_amx = {"emulated_amx_int8", 0, install_amx};
