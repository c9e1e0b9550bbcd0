/* matmul_codes_avx2.c: types without kernels of their own.
 *
 * The format's own function turns some blocks of a panel into codes in the scratch, once for
 * all tokens; the chains rest in dst meanwhile. */
#include "platform/cpu/x86/matmul_avx2.h"
#include "platform/cpu/x86/x86.h"

enum { CODES_SUBS = 16 }; /* blocks of 32 k that are held */
_Static_assert(CODES_SUBS * sizeof(struct tern_panel_codes) <= 16384, "scratch");

/* Subs first .. first + n - 1, whole blocks: both are multiples of a block's, 8 or 1. */
static void block_codes_of(const struct tern_matmul *m, size_t panel, size_t first, size_t n,
                           struct tern_panel_codes *out)
{
    const size_t n_subs = m->format->n_elems / TERN_SUB;
    const size_t block_bytes = (size_t)TERN_PANEL_ROWS * m->format->n_bytes;
    const uint8_t *block = m->panels + panel * m->panel_bytes + first / n_subs * block_bytes;
    for (size_t i = 0; i < n; i += n_subs, block += block_bytes)
        tern_panel_block_to_codes(m->format, block, out + i);
}

/* sc0 * dot0 + sc1 * dot1 of 8 rows. Codes may be -128, which abs leaves as 128 unsigned. */
TERN_INLINE __m256i dot_codes(const struct tern_panel_codes *w, unsigned half, const int8_t *q)
{
    const __m256i pairs = load_256(w->sc[8 * half]);
    __m256i sum = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++) {
        const __m256i x = load_256(w->q[j][8 * half]);
        const __m256i p = _mm256_maddubs_epi16(_mm256_abs_epi8(x),
                                               _mm256_sign_epi8(broadcast_4(q + 4 * j), x));
        const __m256i sc = _mm256_shuffle_epi8(pairs, _mm256_add_epi8(
            _mm256_setr_epi32(0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c,
                              0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c),
            _mm256_set1_epi8(j < 4 ? 0 : 2)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(p, sc));
    }
    return sum;
}

/* n_subs blocks of one token. */
static void step_codes(const struct tern_panel_codes *w, size_t n_subs, bool has_min,
                       struct tern_token t, float *dst)
{
    __m256 acc[2] = {_mm256_loadu_ps(dst), _mm256_loadu_ps(dst + 8)};
    for (; n_subs--; w++, t.q += TERN_SUB, t.d++, t.sum += 2) {
        const __m256 d = _mm256_set1_ps(*t.d);
        for (unsigned half = 0; half < 2; half++) {
            const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(w->scale + 8 * half), d);
            acc[half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot_codes(w, half, t.q)), scale,
                                        acc[half]);
            if (!has_min)
                continue;
            const __m256i below = _mm256_madd_epi16(load_256(w->m[8 * half]), broadcast_4(t.sum));
            acc[half] = _mm256_fnmadd_ps(_mm256_loadu_ps(w->min + 8 * half),
                                         _mm256_mul_ps(d, _mm256_cvtepi32_ps(below)), acc[half]);
        }
    }
    _mm256_storeu_ps(dst, acc[0]);
    _mm256_storeu_ps(dst + 8, acc[1]);
}

static void zero_panel(const struct tern_matmul *m, size_t panel)
{
    float *dst = m->dst + TERN_PANEL_ROWS * panel;
    for (size_t t = 0; t < m->acts->n_tokens; t++, dst += m->dst_stride)
        memset(dst, 0, TERN_PANEL_ROWS * sizeof *dst);
}

void tern_matmul_codes_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_acts *a = m->acts;
    struct tern_panel_codes *w = m->scratch;
    const size_t n_subs = m->n_cols / TERN_SUB;
    for (size_t p = first; p < first + n; p++) {
        zero_panel(m, p);
        for (size_t s = 0; s < n_subs; s += CODES_SUBS) {
            const size_t n_now = n_subs - s < CODES_SUBS ? n_subs - s : CODES_SUBS;
            block_codes_of(m, p, s, n_now, w);
            for (size_t t = 0; t < a->n_tokens; t++) {
                const size_t i = t * a->n_blocks + s;
                step_codes(w, n_now, m->format->has_min,
                           (struct tern_token){a->q + TERN_SUB * i, a->d + i, a->sum + 2 * i},
                           m->dst + t * m->dst_stride + TERN_PANEL_ROWS * p);
            }
        }
    }
}
