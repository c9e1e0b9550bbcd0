/* scores_avx2.c: queries times the keys of a chunk, 16 tokens of keys a panel.
 *
 * The matrix kernels could do this block by block, and the reference does; but a call for 16
 * tokens is all overhead, and their tiles are made for hundreds of panels. Here a panel is read
 * once, straight from the cache, for up to six query rows at a time (of the heads that share a KV
 * head), whose sums all stay in registers. The chunk's values are asked for meanwhile, a few lines
 * at a time, as the values' kernel asks for the next keys: so memory works all the time, and the
 * block table may scatter blocks where no hardware prefetcher looks.
 */
#include "platform/cpu/x86/matmul_avx2.h"

#include "platform/cpu/x86/ahead_x86.h"
#include "platform/cpu/x86/x86.h"

enum {
    FLOAT_ROWS = 6, STEP = 4, /* panels */
    AHEAD_COLS = 8, /* between one asking and the next */
};

/* --- codes ---
 *
 * Queries are laid out first as the sums take them, so that those of all rows lie at constant
 * distances. Codes of 8 bits are widened to 16 for all rows: two multiplications an
 * instruction then need no work on the signs, which would take the same ports. Of 4 k of a token
 * the even two and the odd two are pairs; sums of integers know no order. A query's pair, once in
 * all lanes, serves both halves of a panel. */

enum { MAX_ROWS = 6, MAX_GROUPS = 4 };

/* Rows row .. row + n - 1: q[sub][n], 8 pairs of 16 bits at even places and 8 at odd ones, or 32
 * bytes. */
struct group {
    size_t row, n;
    int32_t *q;
    float *d;      /* [sub][n] */
    int32_t *side; /* [sub][n]: -8 * sum, for codes of 4 bits */
};

/* Bytes at even and at odd places as 16 bits. */
TERN_INLINE __m256i even_bytes(__m256i x)
{
    return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
}

TERN_INLINE __m256i odd_bytes(__m256i x)
{
    return _mm256_srai_epi16(x, 8);
}

/* The same times 256, which is one step less. */
TERN_INLINE __m256i even_raised(__m256i x)
{
    return _mm256_slli_epi16(x, 8);
}

TERN_INLINE __m256i odd_raised(__m256i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi16(-256));
}

/* One block of 32 of one row. */
static void pack_row(const struct group *g, const struct tern_acts *a, size_t sub, size_t i,
                     bool four)
{
    const size_t at = (g->row + i) * a->n_blocks + sub;
    const __m256i q = load_256(a->q + TERN_SUB * at);
    __m256i *to = (__m256i *)(void *)(g->q + (sub * g->n + i) * (four ? 8 : 16));
    _mm256_storeu_si256(to, four ? q : even_bytes(q));
    if (!four)
        _mm256_storeu_si256(to + 1, odd_bytes(q));
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
        const size_t n = left / ((left + MAX_ROWS - 1) / MAX_ROWS); /* as even as can be */
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

/* sum[half * n + i] of n rows: code * q over 32 k of 8 tokens. Codes of 4 bits have their zero
 * point not yet off, and eight of their products fit 16 bits; sums of 8-bit ones are 256 times as
 * large, within 2^27. */
TERN_INLINE void dots(const uint8_t *w, const int32_t *q, bool four, int n, __m256i *sum)
{
    const int n_runs = four ? 4 : 8;
#pragma GCC unroll 12
    for (int i = 0; i < 2 * n; i++)
        sum[i] = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int j = 0; j < 2 * n_runs; j++) {
        const int run = four ? j % 4 : j / 2;
        const bool high = four ? j >= 4 : j % 2;
        __m256i x = load_256(w + 64 * run), y = load_256(w + 64 * run + 32);
        x = four ? high ? high_nibbles(x) : low_nibbles(x) : high ? odd_raised(x) : even_raised(x);
        y = four ? high ? high_nibbles(y) : low_nibbles(y) : high ? odd_raised(y) : even_raised(y);
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
            const __m256i r = _mm256_set1_epi32(q[four ? 8 * i + j : 16 * i + 8 * (j % 2) + j / 2]);
            if (four) {
                sum[i] = in_order(_mm256_add_epi16(sum[i], _mm256_maddubs_epi16(x, r)));
                sum[n + i] = in_order(_mm256_add_epi16(sum[n + i], _mm256_maddubs_epi16(y, r)));
            } else {
                sum[i] = in_order(_mm256_add_epi32(sum[i], _mm256_madd_epi16(x, r)));
                sum[n + i] = in_order(_mm256_add_epi32(sum[n + i], _mm256_madd_epi16(y, r)));
            }
        }
    }
}

/* One block of 32 k of a panel, and the scores of 16 tokens that it is added to. */
struct part {
    const uint8_t *scales; /* of the keys */
    const float *d;        /* of the queries */
    const int32_t *side;
    float *at;
    float scale;
};

/* All of first (the chains begin), last (they are scaled), four and n are constants. */
TERN_INLINE void add_sums(const struct part *p, const __m256i *sum, bool first, bool last,
                          bool four, int n)
{
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        const __m256 scales = load_f16(p->scales + 16 * half);
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
            float *to = p->at + (size_t)i * TERN_CHUNK + 8 * half;
            __m256i x = sum[half * n + i];
            if (four)
                x = _mm256_add_epi32(_mm256_madd_epi16(x, _mm256_set1_epi16(1)),
                                     _mm256_set1_epi32(p->side[i]));
            else
                x = _mm256_srai_epi32(x, 8);
            const __m256 y = _mm256_mul_ps(scales, _mm256_set1_ps(p->d[i]));
            const __m256 acc = first ? _mm256_setzero_ps() : _mm256_loadu_ps(to);
            const __m256 z = _mm256_fmadd_ps(_mm256_cvtepi32_ps(x), y, acc);
            _mm256_storeu_ps(to, last ? _mm256_mul_ps(z, _mm256_set1_ps(p->scale)) : z);
        }
    }
}

/* A group with one panel; four and n are constants. */
TERN_INLINE void panel_rows(const struct tern_scores *s, size_t b, const struct group *g,
                            size_t share, bool four, int n)
{
    const size_t n_subs = s->n_cols / TERN_SUB;
    const uint8_t *w = s->block[b];
    float *at = s->s + g->row * TERN_CHUNK + TERN_PANEL_ROWS * b;
    for (size_t sub = 0; sub < n_subs; sub++, w += 16 * (four ? 18 : 34)) {
        __m256i sum[2 * MAX_ROWS];
        look_ahead(s, b, sub, share);
        dots(w + 32, g->q + sub * (size_t)((four ? 8 : 16) * n), four, n, sum);
        __asm__("" : "+r"(at)); /* one pointer and distances, not a pointer a row */
        const struct part part = {w, g->d + sub * (size_t)n, g->side + sub * (size_t)n, at,
                                  s->scale};
        if (sub > 0 && sub + 1 == n_subs)
            add_sums(&part, sum, false, true, four, n);
        else if (sub > 0)
            add_sums(&part, sum, false, false, four, n);
        else if (n_subs > 1)
            add_sums(&part, sum, true, false, four, n);
        else
            add_sums(&part, sum, true, true, four, n);
    }
}

TERN_INLINE void scores_codes(const struct tern_scores *s, bool four)
{
    struct group groups[MAX_GROUPS];
    const size_t n_groups = pack_queries(s, four, groups);
    for (size_t b = s->first; b < s->last; b++) {
        size_t share = ahead_share(s, s->n_cols / TERN_SUB);
        for (const struct group *g = groups; g < groups + n_groups; g++, share = 0)
            switch (g->n) {
            case 1: panel_rows(s, b, g, share, four, 1); break;
            case 2: panel_rows(s, b, g, share, four, 2); break;
            case 3: panel_rows(s, b, g, share, four, 3); break;
            case 4: panel_rows(s, b, g, share, four, 4); break;
            case 5: panel_rows(s, b, g, share, four, 5); break;
            default: panel_rows(s, b, g, share, four, 6); break;
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
TERN_INLINE void float_rows(const struct tern_scores *s, size_t b, size_t row, size_t share,
                            bool half, int n, int n_panels)
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
    for (size_t k = 0; k < s->n_cols;) {
        const size_t end = k + AHEAD_COLS < s->n_cols ? k + AHEAD_COLS : s->n_cols;
        if (share)
            for (int p = 0; p < n_panels; p++)
                look_ahead(s, b + (size_t)p, k / AHEAD_COLS, share);
        for (; k < end; k++)
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

/* The same for up to STEP panels, as many at a time as keep eight chains busy. Three rows with one
 * panel have six, but of two their twelve sums do not stay in registers. */
TERN_INLINE void float_panels(const struct tern_scores *s, size_t b, size_t end, size_t row,
                              bool half, int n)
{
    const size_t share = row ? 0 : ahead_share(s, (s->n_cols + AHEAD_COLS - 1) / AHEAD_COLS);
    const int at_a_time = n == 1 ? 4 : n == 2 ? 2 : 1;
    for (; b + (size_t)at_a_time <= end; b += (size_t)at_a_time)
        float_rows(s, b, row, share, half, n, at_a_time);
    for (; b < end; b++)
        float_rows(s, b, row, share, half, n, 1);
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
