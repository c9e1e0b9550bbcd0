/* matmul_exact_avx2.c: exact products of all types with codes. Some sub-blocks of a panel are
 * expanded as for integers and become the floats that they mean, once for all tokens, scale and
 * minimum coming in as in the reference; the chains rest in dst meanwhile. */
#include "platform/cpu/x86/matmul_float_avx2.h"
#include "platform/cpu/x86/x86.h"

enum { FLOAT_SUBS = 8 }; /* that are held; a block of 256 or eight of 32 */
_Static_assert(FLOAT_SUBS * TERN_SUB * TERN_PANEL_ROWS * sizeof(float) <= TERN_SCRATCH_SECOND,
               "scratch");
_Static_assert(FLOAT_SUBS * sizeof(struct tern_expanded) <= TERN_MATMUL_WIDE, "scratch");

/* Has no expand where a type has no vectors of its own. */
static struct tern_type_avx2 type_with(const struct tern_format *format)
{
    static tern_type_avx2_fn *const by_type[TERN_N_TYPES] = {
        [TERN_TYPE_Q4_0] = tern_type_q4_0_avx2, [TERN_TYPE_Q4_1] = tern_type_q4_1_avx2,
        [TERN_TYPE_Q5_0] = tern_type_q5_0_avx2, [TERN_TYPE_Q5_1] = tern_type_q5_1_avx2,
        [TERN_TYPE_Q8_0] = tern_type_q8_0_avx2, [TERN_TYPE_Q2_K] = tern_type_q2_k_avx2,
        [TERN_TYPE_Q3_K] = tern_type_q3_k_avx2, [TERN_TYPE_Q4_K] = tern_type_q4_k_avx2,
        [TERN_TYPE_Q5_K] = tern_type_q5_k_avx2, [TERN_TYPE_Q6_K] = tern_type_q6_k_avx2,
        [TERN_TYPE_IQ2_XXS] = tern_type_iq2_xxs_avx2, [TERN_TYPE_IQ2_XS] = tern_type_iq2_xs_avx2,
        [TERN_TYPE_IQ2_S] = tern_type_iq2_s_avx2, [TERN_TYPE_IQ3_XXS] = tern_type_iq3_xxs_avx2,
        [TERN_TYPE_IQ3_S] = tern_type_iq3_s_avx2, [TERN_TYPE_IQ1_S] = tern_type_iq1_s_avx2,
        [TERN_TYPE_IQ1_M] = tern_type_iq1_m_avx2, [TERN_TYPE_IQ4_NL] = tern_type_iq4_nl_avx2,
        [TERN_TYPE_IQ4_XS] = tern_type_iq4_xs_avx2, [TERN_TYPE_MXFP4] = tern_type_mxfp4_avx2,
        [TERN_TYPE_TQ1_0] = tern_type_tq1_0_avx2, [TERN_TYPE_TQ2_0] = tern_type_tq2_0_avx2,
    };
    for (uint32_t type = 0; type < TERN_N_TYPES; type++)
        if (by_type[type] && tern_format_of(type) == format)
            return by_type[type]();
    return (struct tern_type_avx2){0};
}

/* out[k][r]: 32 k of 16 rows, of which this is a half. Codes with signs are taken as unsigned
 * ones with a zero point. Where there are no minimums, -0 is what adding does not change. */
static void floats_of_half(const struct tern_type_avx2 *t, const struct tern_expanded *w,
                           unsigned half, float *out)
{
    const bool has_sc = chain_has_sc(t->chain), has_sign = t->chain == TERN_CHAIN_S8;
    const __m256i byte = _mm256_set1_epi32(255), low = _mm256_set1_epi32(0xffff);
    const __m256i flip = _mm256_set1_epi8(has_sign ? (char)0x80 : 0);
    const __m256i zero = _mm256_set1_epi32(has_sign ? 128 : t->zero);
    const __m256 scale = _mm256_loadu_ps(w->scale[half]);
    for (int i = 0; i < 2; i++) {
        __m256i sc = _mm256_set1_epi32(1), m = sc; /* in pairs with 0 */
        __m256 below = _mm256_set1_ps(-0.0f);
        if (has_sc) {
            const __m256i pairs = load_256(w->side[half]);
            sc = _mm256_and_si256(load_256(w->sc[i][half]), low);
            m = i ? _mm256_srli_epi32(pairs, 16) : _mm256_and_si256(pairs, low);
        }
        if (t->has_min)
            below = _mm256_mul_ps(_mm256_loadu_ps(w->minus_min[half]), _mm256_cvtepi32_ps(m));
        for (int j = 4 * i; j < 4 * i + 4; j++) {
            const __m256i codes = _mm256_xor_si256(load_256(w->codes[j][half]), flip);
#pragma GCC unroll 4
            for (int b = 0; b < 4; b++) {
                const __m256i code = _mm256_and_si256(_mm256_srli_epi32(codes, 8 * b), byte);
                const __m256i q = _mm256_madd_epi16(_mm256_sub_epi32(code, zero), sc);
                const __m256 x = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(q));
                _mm256_storeu_ps(out + TERN_PANEL_ROWS * (4 * j + b) + 8 * half,
                                 _mm256_add_ps(x, below));
            }
        }
    }
}

/* n sub-blocks of a panel, from the first on; both are multiples of a group's. */
static void floats_of(const struct tern_type_avx2 *t, const uint8_t *panel, size_t first, size_t n,
                      void *scratch)
{
    float *out = scratch;
    struct tern_expanded *w = (void *)((char *)scratch + TERN_SCRATCH_SECOND);
    t->expand(panel, first / t->period, n / t->period, w);
    for (size_t s = 0; s < n; s++, w++, out += TERN_SUB * TERN_PANEL_ROWS)
        for (unsigned half = 0; half < 2; half++)
            floats_of_half(t, w, half, out);
}

static void exact_panel(const struct tern_matmul *m, size_t panel,
                        const struct tern_type_avx2 *type)
{
    const struct tern_acts *a = m->acts;
    const size_t n_subs = m->n_cols / TERN_SUB;
    float *dst = m->dst + TERN_PANEL_ROWS * panel;
    for (size_t t = 0; t < a->n_tokens; t++)
        memset(dst + t * m->dst_stride, 0, TERN_PANEL_ROWS * sizeof *dst);
    for (size_t s = 0; s < n_subs; s += FLOAT_SUBS) {
        const size_t n_now = n_subs - s < FLOAT_SUBS ? n_subs - s : FLOAT_SUBS;
        floats_of(type, m->panels + panel * m->panel_bytes, s, n_now, m->scratch);
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
    const struct tern_type_avx2 type = type_with(m->format);
    if (!type.expand) { /* a type without vectors of its own yet */
        tern_kernels_ref.matmul_exact(m, first, n);
        return;
    }
    for (size_t p = first; p < first + n; p++)
        exact_panel(m, p, &type);
}
