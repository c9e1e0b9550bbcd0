/* matmul_exact_avx2.c: exact products of all types with codes. Some sub-blocks of a panel become
 * floats in the scratch, once for all tokens; the chains rest in dst meanwhile. */
#include "platform/cpu/x86/matmul_float_avx2.h"
#include "platform/cpu/x86/x86.h"

enum { FLOAT_SUBS = 8 }; /* that are held; a block of 256 or eight of 32 */
_Static_assert(FLOAT_SUBS * TERN_SUB * TERN_PANEL_ROWS * sizeof(float) <= 16384, "scratch");

static tern_floats_avx2_fn *floats_of(const struct tern_format *format)
{
    static tern_floats_avx2_fn *const by_type[TERN_N_TYPES] = {
        [TERN_TYPE_Q4_0] = tern_floats_q4_0_avx2, [TERN_TYPE_Q4_1] = tern_floats_q4_1_avx2,
        [TERN_TYPE_Q5_0] = tern_floats_q5_0_avx2, [TERN_TYPE_Q5_1] = tern_floats_q5_1_avx2,
        [TERN_TYPE_Q8_0] = tern_floats_q8_0_avx2, [TERN_TYPE_Q2_K] = tern_floats_q2_k_avx2,
        [TERN_TYPE_Q3_K] = tern_floats_q3_k_avx2, [TERN_TYPE_Q4_K] = tern_floats_q4_k_avx2,
        [TERN_TYPE_Q5_K] = tern_floats_q5_k_avx2, [TERN_TYPE_Q6_K] = tern_floats_q6_k_avx2,
        [TERN_TYPE_IQ2_XXS] = tern_floats_iq2_xxs_avx2,
        [TERN_TYPE_IQ2_XS] = tern_floats_iq2_xs_avx2, [TERN_TYPE_IQ2_S] = tern_floats_iq2_s_avx2,
        [TERN_TYPE_IQ3_XXS] = tern_floats_iq3_xxs_avx2,
        [TERN_TYPE_IQ3_S] = tern_floats_iq3_s_avx2, [TERN_TYPE_IQ1_S] = tern_floats_iq1_s_avx2,
        [TERN_TYPE_IQ1_M] = tern_floats_iq1_m_avx2, [TERN_TYPE_IQ4_NL] = tern_floats_iq4_nl_avx2,
        [TERN_TYPE_IQ4_XS] = tern_floats_iq4_xs_avx2, [TERN_TYPE_MXFP4] = tern_floats_mxfp4_avx2,
        [TERN_TYPE_TQ1_0] = tern_floats_tq1_0_avx2, [TERN_TYPE_TQ2_0] = tern_floats_tq2_0_avx2,
    };
    for (uint32_t type = 0; type < TERN_N_TYPES; type++)
        if (by_type[type] && tern_format_of(type) == format)
            return by_type[type];
    return NULL;
}

static void exact_panel(const struct tern_matmul *m, size_t panel, tern_floats_avx2_fn *floats)
{
    const struct tern_acts *a = m->acts;
    const size_t n_subs = m->n_cols / TERN_SUB;
    float *dst = m->dst + TERN_PANEL_ROWS * panel;
    for (size_t t = 0; t < a->n_tokens; t++)
        memset(dst + t * m->dst_stride, 0, TERN_PANEL_ROWS * sizeof *dst);
    for (size_t s = 0; s < n_subs; s += FLOAT_SUBS) {
        const size_t n_now = n_subs - s < FLOAT_SUBS ? n_subs - s : FLOAT_SUBS;
        floats(m->panels + panel * m->panel_bytes, s, n_now, m->scratch);
        const struct tern_float_tile t = {
            .w = m->scratch, .n_k = n_now * TERN_SUB,
            .x = a->x + s * TERN_SUB, .x_stride = a->x_stride,
            .dst = dst, .dst_stride = m->dst_stride,
        };
        float_panel(load_8_f32, 4, t, a->n_tokens, true);
    }
}

void tern_matmul_exact_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    tern_floats_avx2_fn *floats = floats_of(m->format);
    if (!floats) { /* a type without vectors of its own yet */
        tern_kernels_ref.matmul_exact(m, first, n);
        return;
    }
    for (size_t p = first; p < first + n; p++)
        exact_panel(m, p, floats);
}
