/* scores_avx2.c: queries times the keys of a chunk, 16 tokens of keys a panel.
 *
 * The matrix kernels could do this block by block, and the reference does; but a call for 16
 * tokens is all overhead, and their tiles are made for hundreds of panels. Here a panel is read
 * once, straight from the cache, for up to eight query rows at a time (the heads that share a KV
 * head), whose sums all stay in registers. The chunk's values are asked for meanwhile, a few lines
 * at a time, as the values' kernel asks for the next keys: so memory works all the time, and the
 * block table may scatter blocks where no hardware prefetcher looks.
 */
#include "platform/cpu/x86/matmul_avx2.h"
#include "platform/cpu/x86/x86.h"

enum { FLOAT_ROWS = 6, STEP = 4 /* panels */ };

/* Part `part` of n_parts of what is read behind block b. */
TERN_INLINE void look_ahead(const struct tern_scores *s, size_t b, size_t part, size_t n_parts)
{
    if (!s->ahead || !s->ahead[b])
        return;
    const size_t n = (s->ahead_bytes + 63) / 64, end = n * (part + 1) / n_parts;
    for (size_t i = n * part / n_parts; i < end; i++)
        _mm_prefetch((const char *)s->ahead[b] + 64 * i, _MM_HINT_T0);
}

/* --- codes ---
 *
 * Queries are laid out first as the sums take them, so that a row's next four numbers lie at a
 * constant distance. Codes of 8 bits are widened to 16 for all rows: two multiplications an
 * instruction then need no work on the signs, which would take the same ports. Of 4 k of a token
 * the even two and the odd two are pairs; sums of integers know no order. */

enum { MAX_ROWS = 8, MAX_GROUPS = 4 };

/* Rows row .. row + n - 1: q[sub][16][n] pairs of 16 bits, or [sub][8][n] times 4 bytes. */
struct group {
    size_t row, n;
    int32_t *q;
    float *d;      /* [sub][n] */
    int32_t *side; /* [sub][n]: -8 * sum, for codes of 4 bits */
};

static int32_t pair(int8_t a, int8_t b)
{
    return (int32_t)((uint32_t)(uint16_t)a | (uint32_t)(uint16_t)b << 16);
}

/* One block of 32 of one row. */
static void pack_row(const struct group *g, const struct tern_acts *a, size_t sub, size_t i,
                     bool four)
{
    const size_t at = (g->row + i) * a->n_blocks + sub;
    const int8_t *q = a->q + TERN_SUB * at;
    int32_t *to = g->q + sub * (four ? 8 : 16) * g->n + i;
    for (size_t j = 0; j < TERN_SUB / 4; j++, q += 4) {
        if (four) {
            memcpy(to + j * g->n, q, 4);
            continue;
        }
        to[2 * j * g->n] = pair(q[0], q[2]);
        to[(2 * j + 1) * g->n] = pair(q[1], q[3]);
    }
    g->d[sub * g->n + i] = a->d[at];
    g->side[sub * g->n + i] = -8 * (a->sum[2 * at] + a->sum[2 * at + 1]);
}

/* Cuts the rows into groups and lays their queries out in the scratch; returns how many. */
static size_t pack_queries(const struct tern_scores *s, bool four, struct group groups[MAX_GROUPS])
{
    const size_t n_rows = s->acts->n_tokens, n_subs = s->n_cols / TERN_SUB;
    int32_t *room = s->scratch;
    size_t n_groups = 0;
    for (size_t r = 0; r < n_rows;) {
        const size_t left = n_rows - r;
        const size_t n = left <= MAX_ROWS       ? left
                         : left < 2 * MAX_ROWS ? (left + 1) / 2
                                               : MAX_ROWS;
        struct group *g = &groups[n_groups++];
        *g = (struct group){r, n, room, (float *)(void *)(room + n_subs * n * 16),
                            room + n_subs * n * 17};
        room += n_subs * n * 18;
        for (size_t sub = 0; sub < n_subs; sub++)
            for (size_t i = 0; i < n; i++)
                pack_row(g, s->acts, sub, i, four);
        r += n;
    }
    return n_groups;
}

/* sum[i] of n rows: code * q over 32 k of 8 tokens. */
TERN_INLINE void dots_8(const uint8_t *w, const int32_t *q, int n, __m256i *sum)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        sum[i] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++, q += 2 * n) {
        const __m256i x = load_256(w + 64 * j), odd = _mm256_srai_epi16(x, 8);
        const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            const __m256i a = _mm256_madd_epi16(even, _mm256_set1_epi32(q[i]));
            const __m256i b = _mm256_madd_epi16(odd, _mm256_set1_epi32(q[n + i]));
            sum[i] = in_order(_mm256_add_epi32(sum[i], a));
            sum[i] = in_order(_mm256_add_epi32(sum[i], b));
        }
    }
}

/* The same for codes of 4 bits, with the zero point not yet off: eight products fit 16 bits. */
TERN_INLINE void dots_4(const uint8_t *w, const int32_t *q, int n, __m256i *sum)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        sum[i] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++, q += n) {
        const __m256i x = load_256(w + 64 * j), low = low_nibbles(x), high = high_nibbles(x);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            const __m256i a = _mm256_maddubs_epi16(low, _mm256_set1_epi32(q[i]));
            const __m256i b = _mm256_maddubs_epi16(high, _mm256_set1_epi32(q[4 * n + i]));
            sum[i] = in_order(_mm256_add_epi16(sum[i], a));
            sum[i] = in_order(_mm256_add_epi16(sum[i], b));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        sum[i] = _mm256_madd_epi16(sum[i], _mm256_set1_epi16(1));
}

/* A group with one panel; four and n are constants. */
TERN_INLINE void panel_rows(const struct tern_scores *s, size_t b, const struct group *g, bool four,
                            int n)
{
    const size_t n_subs = s->n_cols / TERN_SUB;
    const __m256 last = _mm256_set1_ps(s->scale);
    const uint8_t *w = s->block[b];
    float *at = s->s + g->row * TERN_CHUNK + TERN_PANEL_ROWS * b;
    for (size_t sub = 0; sub < n_subs; sub++, w += 16 * (four ? 18 : 34)) {
        const int32_t *q = g->q + sub * (size_t)((four ? 8 : 16) * n);
        const float *d = g->d + sub * (size_t)n;
        const int32_t *side = g->side + sub * (size_t)n;
#pragma GCC unroll 1
        for (size_t half = 0; half < 2; half++) {
            __m256i sum[MAX_ROWS];
            if (g->row == 0)
                look_ahead(s, b, 2 * sub + half, 2 * n_subs);
            (four ? dots_4 : dots_8)(w + 32 + 32 * half, q, n, sum);
            const __m256 scale = load_f16(w + 16 * half);
#pragma GCC unroll 8
            for (int i = 0; i < n; i++) {
                float *to = at + (size_t)i * TERN_CHUNK + 8 * half;
                if (four)
                    sum[i] = _mm256_add_epi32(sum[i], _mm256_set1_epi32(side[i]));
                __m256 acc = sub ? _mm256_loadu_ps(to) : _mm256_setzero_ps();
                acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i]),
                                      _mm256_mul_ps(scale, _mm256_set1_ps(d[i])), acc);
                _mm256_storeu_ps(to, sub + 1 == n_subs ? _mm256_mul_ps(acc, last) : acc);
            }
        }
    }
}

TERN_INLINE void scores_codes(const struct tern_scores *s, bool four)
{
    struct group groups[MAX_GROUPS];
    const size_t n_groups = pack_queries(s, four, groups);
    for (size_t b = s->first; b < s->last; b++) {
        for (const struct group *g = groups; g < groups + n_groups; g++)
            switch (g->n) {
            case 1: panel_rows(s, b, g, four, 1); break;
            case 2: panel_rows(s, b, g, four, 2); break;
            case 3: panel_rows(s, b, g, four, 3); break;
            case 4: panel_rows(s, b, g, four, 4); break;
            case 5: panel_rows(s, b, g, four, 5); break;
            case 6: panel_rows(s, b, g, four, 6); break;
            case 7: panel_rows(s, b, g, four, 7); break;
            default: panel_rows(s, b, g, four, 8); break;
            }
    }
}

void tern_scores_q8_0_avx2(const struct tern_scores *s)
{
    scores_codes(s, false);
}

void tern_scores_q4_0_avx2(const struct tern_scores *s)
{
    scores_codes(s, true);
}

/* --- floats --- */

TERN_INLINE __m256 load_float(const uint8_t *p, bool half)
{
    return half ? load_f16(p) : _mm256_loadu_ps((const float *)(const void *)p);
}

/* n rows with n_panels panels: two chains each. Constants all but s, b, row. */
TERN_INLINE void float_rows(const struct tern_scores *s, size_t b, size_t row, bool half, int n,
                            int n_panels)
{
    const size_t bytes = half ? 2 : 4, stride = s->acts->x_stride;
    const float *x = s->acts->x + row * stride;
    const uint8_t *w[STEP];
    __m256 acc[STEP][FLOAT_ROWS][2];
#pragma GCC unroll 4
    for (int p = 0; p < n_panels; p++)
        w[p] = s->block[b + (size_t)p];
#pragma GCC unroll 4
    for (int p = 0; p < n_panels; p++)
#pragma GCC unroll 6
        for (int i = 0; i < n; i++)
            acc[p][i][0] = acc[p][i][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < s->n_cols; k++) {
        if (row == 0 && k % 8 == 0)
            for (int p = 0; p < n_panels; p++)
                look_ahead(s, b + (size_t)p, k / 8, (s->n_cols + 7) / 8);
#pragma GCC unroll 4
        for (int p = 0; p < n_panels; p++) {
            const __m256 w0 = load_float(w[p], half), w1 = load_float(w[p] + 8 * bytes, half);
            w[p] += TERN_PANEL_ROWS * bytes;
#pragma GCC unroll 6
            for (int i = 0; i < n; i++) {
                const __m256 y = _mm256_set1_ps(x[(size_t)i * stride + k]);
                acc[p][i][0] = _mm256_fmadd_ps(w0, y, acc[p][i][0]);
                acc[p][i][1] = _mm256_fmadd_ps(w1, y, acc[p][i][1]);
            }
        }
    }
    const __m256 scale = _mm256_set1_ps(s->scale);
#pragma GCC unroll 4
    for (int p = 0; p < n_panels; p++)
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
            float *at = s->s + (row + (size_t)i) * TERN_CHUNK + TERN_PANEL_ROWS * (b + (size_t)p);
            _mm256_storeu_ps(at, _mm256_mul_ps(acc[p][i][0], scale));
            _mm256_storeu_ps(at + 8, _mm256_mul_ps(acc[p][i][1], scale));
        }
}

/* The same for up to STEP panels, as many at a time as keep eight chains or more busy. */
TERN_INLINE void float_panels(const struct tern_scores *s, size_t b, size_t end, size_t row,
                              bool half, int n)
{
    const int at_a_time = n == 1 ? 4 : n <= 3 ? 2 : 1;
    for (; b + (size_t)at_a_time <= end; b += (size_t)at_a_time)
        float_rows(s, b, row, half, n, at_a_time);
    for (; b < end; b++)
        float_rows(s, b, row, half, n, 1);
}

TERN_INLINE void scores_floats(const struct tern_scores *s, bool half)
{
    const size_t n_rows = s->acts->n_tokens;
    for (size_t b = s->first; b < s->last; b += STEP) {
        const size_t end = s->last - b < STEP ? s->last : b + STEP;
        for (size_t r = 0; r < n_rows;) {
            const size_t left = n_rows - r;
            const size_t n = left <= 6 ? left : left <= 8 ? 4 : left <= 10 ? 5 : 6;
            switch (n) {
            case 1: float_panels(s, b, end, r, half, 1); break;
            case 2: float_panels(s, b, end, r, half, 2); break;
            case 3: float_panels(s, b, end, r, half, 3); break;
            case 4: float_panels(s, b, end, r, half, 4); break;
            case 5: float_panels(s, b, end, r, half, 5); break;
            default: float_panels(s, b, end, r, half, 6); break;
            }
            r += n;
        }
    }
}

void tern_scores_f32_avx2(const struct tern_scores *s)
{
    scores_floats(s, false);
}

void tern_scores_f16_avx2(const struct tern_scores *s)
{
    scores_floats(s, true);
}
