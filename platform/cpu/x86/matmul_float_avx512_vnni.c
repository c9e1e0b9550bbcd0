/* matmul_float_avx512_vnni.c: chains of fma over floats, a register for the 16 rows of a panel:
 * F32, F16 and BF16 (attention's scores too, where a panel is the keys of 16 tokens), and exact
 * products of all types.
 *
 * An fma takes four cycles and two can start in each, so eight chains have to run side by side:
 * of several tokens, or of several panels where there is one token. */
#include "platform/cpu/x86/lanes_avx512_vnni.h"

#include "platform/cpu/x86/ahead_x86.h"
#include "platform/cpu/x86/x86.h"

enum {
    FLOAT_TILE = 12, FLOAT_PANELS = 8,
    L2_BYTES = 512 * 1024, /* what a tile of activations may take of it */
    EXACT_SUBS = 6,        /* blocks of 32 k that are held as floats */
};
_Static_assert(EXACT_SUBS * 2048 + sizeof(struct tern_panel_codes) <= 16384, "scratch");

/* Where a tile takes its operands: 16 rows of element k at w + 16 * bytes * k. */
struct float_tile {
    const uint8_t *w;
    size_t panel_bytes, n_k;
    const float *x;
    size_t x_stride;
    const float *from; /* where the chains go on from, dst or zeros */
    size_t from_stride;
    float *dst;
    size_t dst_stride;
    float scale; /* of what the chains come to */
};

typedef floats load_16(const uint8_t *p);

TERN_INLINE floats load_f32(const uint8_t *p)
{
    return load_floats(p);
}

TERN_INLINE floats load_bf16(const uint8_t *p)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return as_floats(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* Chains of a panel begin here, all tokens' alike. */
static const float zeros[TERN_PANEL_ROWS];

/* One panel by n_tokens, a constant. */
TERN_INLINE void tokens_by_1(load_16 *load, size_t bytes, const struct float_tile *t,
                             size_t n_tokens)
{
    floats acc[FLOAT_TILE];
    const float *x[FLOAT_TILE];
    TERN_UNROLL
    for (size_t i = 0; i < n_tokens; i++) {
        x[i] = t->x + i * t->x_stride;
        __asm__("" : "+r"(x[i])); /* pointers, not differences of many kinds */
        acc[i] = load_floats(t->from + i * t->from_stride);
    }
    const uint8_t *w = t->w;
    for (size_t k = 0; k < t->n_k; k++, w += TERN_PANEL_ROWS * bytes) {
        const floats row = load(w);
        TERN_UNROLL
        for (size_t i = 0; i < n_tokens; i++)
            acc[i] = fused(row, all_floats(x[i][k]), acc[i]);
    }
    TERN_UNROLL
    for (size_t i = 0; i < n_tokens; i++)
        store_floats(t->dst + i * t->dst_stride, multiply(acc[i], all_floats(t->scale)));
}

/* One token by FLOAT_PANELS panels. */
TERN_INLINE void panels_by_1(load_16 *load, size_t bytes, const struct float_tile *t)
{
    floats acc[FLOAT_PANELS];
    TERN_UNROLL
    for (size_t p = 0; p < FLOAT_PANELS; p++)
        acc[p] = all_floats(0);
    for (size_t k = 0; k < t->n_k; k++) {
        const floats x = all_floats(t->x[k]);
        TERN_UNROLL
        for (size_t p = 0; p < FLOAT_PANELS; p++)
            acc[p] = fused(load(t->w + p * t->panel_bytes + TERN_PANEL_ROWS * bytes * k), x,
                           acc[p]);
    }
    TERN_UNROLL
    for (size_t p = 0; p < FLOAT_PANELS; p++)
        store_floats(t->dst + TERN_PANEL_ROWS * p, acc[p]);
}

/* One panel, any number of tokens, in tiles as even as can be. */
TERN_INLINE void float_panel(load_16 *load, size_t bytes, struct float_tile t, size_t n_tokens)
{
    while (n_tokens > 0) {
        const size_t n_tiles = (n_tokens + FLOAT_TILE - 1) / FLOAT_TILE;
        const size_t n = (n_tokens + n_tiles - 1) / n_tiles;
        switch (n) {
        case 1: tokens_by_1(load, bytes, &t, 1); break;
        case 2: tokens_by_1(load, bytes, &t, 2); break;
        case 3: tokens_by_1(load, bytes, &t, 3); break;
        case 4: tokens_by_1(load, bytes, &t, 4); break;
        case 5: tokens_by_1(load, bytes, &t, 5); break;
        case 6: tokens_by_1(load, bytes, &t, 6); break;
        case 7: tokens_by_1(load, bytes, &t, 7); break;
        case 8: tokens_by_1(load, bytes, &t, 8); break;
        case 9: tokens_by_1(load, bytes, &t, 9); break;
        case 10: tokens_by_1(load, bytes, &t, 10); break;
        case 11: tokens_by_1(load, bytes, &t, 11); break;
        default: tokens_by_1(load, bytes, &t, 12); break;
        }
        t.x += n * t.x_stride;
        t.from += n * t.from_stride;
        t.dst += n * t.dst_stride;
        n_tokens -= n;
    }
}

typedef void panel_fn(const struct float_tile *t, size_t n_tokens);

static TERN_ONE_COPY void panel_f32(const struct float_tile *t, size_t n_tokens)
{
    float_panel(load_f32, 4, *t, n_tokens);
}

static TERN_ONE_COPY void panel_f16(const struct float_tile *t, size_t n_tokens)
{
    float_panel(load_f16, 2, *t, n_tokens);
}

static TERN_ONE_COPY void panel_bf16(const struct float_tile *t, size_t n_tokens)
{
    float_panel(load_bf16, 2, *t, n_tokens);
}

/* Many tokens go in groups whose activations stay in the second cache. */
static size_t group_of(const struct tern_matmul *m)
{
    const size_t n = m->acts->n_tokens;
    if (n <= 4 * FLOAT_TILE)
        return n;
    const size_t fit = L2_BYTES / (sizeof(float) * m->n_cols) / FLOAT_TILE;
    return FLOAT_TILE * (fit < 4 ? 4 : fit);
}

TERN_INLINE struct float_tile tile_at(const struct tern_matmul *m, size_t panel, size_t token)
{
    return (struct float_tile){
        .w = m->panels + panel * m->panel_bytes, .panel_bytes = m->panel_bytes, .n_k = m->n_cols,
        .x = m->acts->x + token * m->acts->x_stride, .x_stride = m->acts->x_stride,
        .from = zeros, .dst = m->dst + token * m->dst_stride + TERN_PANEL_ROWS * panel,
        .dst_stride = m->dst_stride, .scale = 1,
    };
}

TERN_INLINE void matmul_floats(load_16 *load, size_t bytes, panel_fn *panel,
                               const struct tern_matmul *m, size_t first, size_t n)
{
    const size_t n_tokens = m->acts->n_tokens, group = group_of(m), end = first + n;
    size_t p = first;
    for (; n_tokens == 1 && end - p >= FLOAT_PANELS; p += FLOAT_PANELS) {
        const struct float_tile t = tile_at(m, p, 0);
        panels_by_1(load, bytes, &t);
    }
    for (size_t token = 0; token < n_tokens; token += group)
        for (size_t i = p; i < end; i++) {
            const struct float_tile t = tile_at(m, i, token);
            panel(&t, n_tokens - token < group ? n_tokens - token : group);
        }
}

void tern_matmul_f32_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_f32, 4, panel_f32, m, first, n);
}

void tern_matmul_f16_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_f16, 2, panel_f16, m, first, n);
}

void tern_matmul_bf16_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_floats(load_bf16, 2, panel_bf16, m, first, n);
}

/* Few rows are left to AVX2's kernels, which take several panels at a time: 16 lanes of one would
 * wait for their own sums. */
enum { MANY_ROWS = 7 };

TERN_INLINE void scores_of_panel(panel_fn *panel, const struct tern_scores *s, size_t b)
{
    const struct float_tile t = {
        .w = s->block[b], .n_k = s->n_cols, .x = s->acts->x, .x_stride = s->acts->x_stride,
        .from = zeros, .dst = s->s + TERN_PANEL_ROWS * b, .dst_stride = TERN_CHUNK,
        .scale = s->scale,
    };
    look_ahead(s, b, 0, ahead_share(s, 1));
    panel(&t, s->acts->n_tokens);
}

TERN_INLINE void scores_floats(panel_fn *panel, const struct tern_scores *s)
{
    for (size_t b = s->first; b < s->last; b++)
        scores_of_panel(panel, s, b);
}

/* Two panels of halves, b and b + 1, for n_rows rows, a constant: a query's number is loaded once
 * for two products, where loads bound one panel. */
TERN_INLINE void rows_by_2(const struct tern_scores *s, size_t b, size_t row, size_t n_rows)
{
    enum { MOST = 8 };
    const uint8_t *w = s->block[b], *v = s->block[b + 1];
    const float *x[MOST];
    floats acc[MOST][2];
    TERN_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        x[i] = s->acts->x + (row + i) * s->acts->x_stride;
        __asm__("" : "+r"(x[i]));
        acc[i][0] = acc[i][1] = all_floats(0);
    }
    for (size_t k = 0; k < s->n_cols; k++, w += 32, v += 32) {
        const floats first = load_f16(w), second = load_f16(v);
        TERN_UNROLL
        for (size_t i = 0; i < n_rows; i++) {
            const floats y = all_floats(x[i][k]);
            acc[i][0] = fused(first, y, acc[i][0]);
            acc[i][1] = fused(second, y, acc[i][1]);
        }
    }
    TERN_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        float *to = s->s + (row + i) * TERN_CHUNK + TERN_PANEL_ROWS * b;
        store_floats(to, multiply(acc[i][0], all_floats(s->scale)));
        store_floats(to + TERN_PANEL_ROWS, multiply(acc[i][1], all_floats(s->scale)));
    }
}

/* Rows that 7 and 8 make up are what tiles of attention mostly have. */
static void scores_f16(const struct tern_scores *s)
{
    const size_t n_rows = s->acts->n_tokens, share = ahead_share(s, 1);
    const bool fits = n_rows == 7 || n_rows == 8 || n_rows >= 14;
    size_t b = s->first;
    for (; fits && b + 2 <= s->last; b += 2) {
        look_ahead(s, b, 0, share);
        look_ahead(s, b + 1, 0, share);
        for (size_t row = 0; row < n_rows;) {
            const bool seven = (n_rows - row) % 7 == 0;
            if (seven)
                rows_by_2(s, b, row, 7);
            else
                rows_by_2(s, b, row, 8);
            row += seven ? 7 : 8;
        }
    }
    for (; b < s->last; b++)
        scores_of_panel(panel_f16, s, b);
}

void tern_scores_f32_avx512_vnni(const struct tern_scores *s)
{
    if (s->acts->n_tokens < MANY_ROWS)
        tern_scores_f32_avx2(s);
    else
        scores_floats(panel_f32, s);
}

void tern_scores_f16_avx512_vnni(const struct tern_scores *s)
{
    if (s->acts->n_tokens < MANY_ROWS)
        tern_scores_f16_avx2(s);
    else
        scores_f16(s);
}

/* Rows are the inner loop, as in the panel. */
static void floats_of(const struct tern_panel_codes *c, bool has_min, float *out)
{
    for (size_t k = 0; k < TERN_SUB; k++)
        for (size_t r = 0; r < TERN_PANEL_ROWS; r++) {
            const float x = c->scale[r] * (float)(c->sc[r][k / 16] * c->q[k / 4][r][k % 4]);
            out[TERN_PANEL_ROWS * k + r] = has_min ? x - c->min[r] * (float)c->m[r][k / 16] : x;
        }
}

/* The format's own function turns some blocks of a panel into codes and these into floats, once
 * for all tokens; the chains rest in dst meanwhile. */
void tern_matmul_exact_avx512_vnni(const struct tern_matmul *m, size_t first, size_t n)
{
    const struct tern_acts *a = m->acts;
    float *w = m->scratch;
    struct tern_panel_codes *c = (void *)(w + EXACT_SUBS * TERN_SUB * TERN_PANEL_ROWS);
    const size_t n_subs = m->n_cols / TERN_SUB, each = m->format->n_elems / TERN_SUB;
    for (size_t p = first; p < first + n; p++) {
        const uint8_t *panel = m->panels + p * m->panel_bytes;
        for (size_t s = 0; s < n_subs; s += EXACT_SUBS) {
            const size_t n_now = n_subs - s < EXACT_SUBS ? n_subs - s : EXACT_SUBS;
            for (size_t i = 0; i < n_now; i++) {
                tern_panel_to_codes(m->format, panel + (s + i) / each * TERN_PANEL_ROWS *
                                    m->format->n_bytes, (uint32_t)((s + i) % each), c);
                floats_of(c, m->format->has_min, w + i * TERN_SUB * TERN_PANEL_ROWS);
            }
            struct float_tile t = tile_at(m, p, 0);
            t.w = (const uint8_t *)w;
            t.n_k = n_now * TERN_SUB;
            t.x += s * TERN_SUB;
            if (s > 0) {
                t.from = t.dst;
                t.from_stride = t.dst_stride;
            }
            panel_f32(&t, a->n_tokens);
        }
    }
}
