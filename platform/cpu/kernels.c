/* kernels.c: the variants that were built, and choosing among them. */
#include "platform/cpu/kernels.h"

#include "platform/cpu/live_check.h"

#include "config.h"

#include <string.h>

/* config.h defines these only for variants that the host's family has. */
#ifndef TERN_HAVE_AVX2
#define TERN_HAVE_AVX2 0
#define TERN_HAVE_AVX_VNNI 0
#define TERN_HAVE_AVX512_VNNI 0
#define TERN_HAVE_AMX_INT8 0
#endif

#ifndef TERN_HAVE_NEON
#define TERN_HAVE_NEON 0
#define TERN_HAVE_DOTPROD 0
#define TERN_HAVE_I8MM 0
#endif

#if TERN_HAVE_AVX2
void tern_install_avx2(struct tern_kernels *k);
#endif
#if TERN_HAVE_AVX_VNNI
void tern_install_avx_vnni(struct tern_kernels *k);
#endif
#if TERN_HAVE_AVX512_VNNI
void tern_install_avx512_vnni(struct tern_kernels *k);
#endif
#if TERN_HAVE_AMX_INT8
void tern_install_amx_int8(struct tern_kernels *k);
#endif
#if TERN_HAVE_NEON
void tern_install_neon(struct tern_kernels *k);
#endif
#if TERN_HAVE_DOTPROD
void tern_install_dotprod(struct tern_kernels *k);
#endif
#if TERN_HAVE_I8MM
void tern_install_i8mm(struct tern_kernels *k);
#endif

const struct tern_cpu_variant tern_cpu_variants[] = {
#if TERN_HAVE_AVX2
    {"avx2", TERN_CPU_AVX2, tern_install_avx2},
#endif
#if TERN_HAVE_AVX_VNNI
    {"avx_vnni", TERN_CPU_AVX2 | TERN_CPU_AVX_VNNI, tern_install_avx_vnni},
#endif
#if TERN_HAVE_AVX512_VNNI
    {"avx512_vnni", TERN_CPU_AVX2 | TERN_CPU_AVX512 | TERN_CPU_AVX512_VNNI,
     tern_install_avx512_vnni},
#endif
#if TERN_HAVE_AMX_INT8
    {"amx_int8", TERN_CPU_AVX2 | TERN_CPU_AVX512 | TERN_CPU_AVX512_VNNI | TERN_CPU_AMX_INT8,
     tern_install_amx_int8},
#endif
#if TERN_HAVE_NEON
    {"neon", TERN_CPU_NEON, tern_install_neon},
#endif
#if TERN_HAVE_DOTPROD
    {"dotprod", TERN_CPU_NEON | TERN_CPU_DOTPROD, tern_install_dotprod},
#endif
#if TERN_HAVE_I8MM
    {"i8mm", TERN_CPU_NEON | TERN_CPU_DOTPROD | TERN_CPU_I8MM, tern_install_i8mm},
#endif
    {NULL, 0, NULL},
};

static const char *choose(struct tern_kernels *k, uint32_t features, const char *limit)
{
    const char *last = "reference";
    *k = tern_kernels_ref;
    if (limit && strcmp(limit, last) == 0)
        return last;
    for (const struct tern_cpu_variant *v = tern_cpu_variants; v->name; v++) {
        const bool is_limit = limit && strcmp(limit, v->name) == 0;
        if ((v->needs & features) == v->needs) {
            v->install(k);
            last = v->name;
        }
        if (is_limit)
            return last;
    }
    return limit ? NULL : last;
}

const char *tern_kernels_select(struct tern_kernels *k, uint32_t features, const char *limit)
{
    const char *last = choose(k, features, limit);
#if TERN_LIVE_CHECK
    tern_live_check_wrap(k);
#endif
    return last;
}

static tern_matmul_fn *matmul_of_codes(const struct tern_kernels *k, uint32_t type)
{
    switch (type) {
    case TERN_TYPE_Q4_0: return k->matmul_q4_0;
    case TERN_TYPE_Q4_1: return k->matmul_q4_1;
    case TERN_TYPE_Q5_0: return k->matmul_q5_0;
    case TERN_TYPE_Q5_1: return k->matmul_q5_1;
    case TERN_TYPE_Q8_0: return k->matmul_q8_0;
    case TERN_TYPE_Q2_K: return k->matmul_q2_k;
    case TERN_TYPE_Q3_K: return k->matmul_q3_k;
    case TERN_TYPE_Q4_K: return k->matmul_q4_k;
    case TERN_TYPE_Q5_K: return k->matmul_q5_k;
    case TERN_TYPE_Q6_K: return k->matmul_q6_k;
    case TERN_TYPE_IQ2_XXS: return k->matmul_iq2_xxs;
    case TERN_TYPE_IQ2_XS: return k->matmul_iq2_xs;
    case TERN_TYPE_IQ2_S: return k->matmul_iq2_s;
    case TERN_TYPE_IQ3_XXS: return k->matmul_iq3_xxs;
    case TERN_TYPE_IQ3_S: return k->matmul_iq3_s;
    case TERN_TYPE_IQ1_S: return k->matmul_iq1_s;
    case TERN_TYPE_IQ1_M: return k->matmul_iq1_m;
    case TERN_TYPE_IQ4_NL: return k->matmul_iq4_nl;
    case TERN_TYPE_IQ4_XS: return k->matmul_iq4_xs;
    case TERN_TYPE_MXFP4: return k->matmul_mxfp4;
    case TERN_TYPE_TQ1_0: return k->matmul_tq1_0;
    case TERN_TYPE_TQ2_0: return k->matmul_tq2_0;
    default: return k->matmul_codes;
    }
}

/* A type's own entry that no variant has filled is the reference's; what a variant expands is
 * faster than that. */
tern_matmul_fn *tern_kernels_matmul(const struct tern_kernels *k, uint32_t type, bool exact)
{
    switch (type) {
    case TERN_TYPE_F32: return k->matmul_f32;
    case TERN_TYPE_F16: return k->matmul_f16;
    case TERN_TYPE_BF16: return k->matmul_bf16;
    default: break;
    }
    if (exact)
        return k->matmul_exact;
    tern_matmul_fn *own = matmul_of_codes(k, type);
    return own == tern_kernels_ref.matmul_codes ? k->matmul_codes : own;
}
