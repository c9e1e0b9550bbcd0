/* bench_matmul.c: speed of the matmuls beside what the machine could do at best.
 *
 * One token: GB/s of weights, over a matrix larger than the caches. Several: GMAC/s, over one
 * that a layer of a small model has. Best of a few runs, since other work disturbs. */
#define _GNU_SOURCE
#include "tests/kernels/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BIG_BYTES = 96 << 20, MAX_TOKENS = 128, N_COLS = 1024, N_ROWS = 256 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double read_bandwidth(const uint8_t *big)
{
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        __m256i sum[4] = {0};
        const double start = now();
        for (size_t i = 0; i < BIG_BYTES; i += 128)
            for (size_t j = 0; j < 4; j++)
                sum[j] = _mm256_add_epi8(sum[j], _mm256_loadu_si256(
                             (const __m256i *)(const void *)(big + i + 32 * j)));
        const double taken = now() - start;
        for (size_t j = 1; j < 4; j++)
            sum[0] = _mm256_add_epi8(sum[0], sum[j]);
        volatile int sink = _mm256_extract_epi32(sum[0], 0);
        (void)sink;
        best = taken < best ? taken : best;
    }
    return (double)BIG_BYTES / best / 1e9;
}

/* maddubs and madd in equal numbers: 32 products of bytes every two instructions. */
__attribute__((target("avx2"))) static double peak_products(void)
{
    double best = 1e9;
    const size_t n = 1 << 20;
    for (int run = 0; run < 5; run++) {
        __m256i acc[8];
        const __m256i ones = _mm256_set1_epi16(1);
        for (size_t j = 0; j < 8; j++)
            acc[j] = _mm256_set1_epi8((char)j);
        const double start = now();
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < 8; j++) {
                __asm__ volatile("vpmaddubsw %1, %0, %0\n\tvpmaddwd %1, %0, %0"
                                 : "+x"(acc[j]) : "x"(ones));
            }
        const double taken = now() - start;
        best = taken < best ? taken : best;
    }
    return (double)n * 8 * 32 / best / 1e9;
}
#else
static double read_bandwidth(const uint8_t *big)
{
    (void)big;
    return 0;
}

static double peak_products(void)
{
    return 0;
}
#endif

static void *allocate(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!p)
        abort();
    return p;
}

/* Random bytes, with the float fields of blocks small. */
static void fill_panels(uint32_t type, uint8_t *panels, size_t n_panels, size_t panel_bytes)
{
    const struct tern_format *f = tern_format_of(type);
    const size_t row_bytes = tern_row_bytes(type, N_COLS);
    uint8_t *rows = allocate(TERN_PANEL_ROWS * row_bytes);
    for (size_t i = 0; i < TERN_PANEL_ROWS * row_bytes; i++)
        rows[i] = f->codes ? (uint8_t)rnd() : (uint8_t)(i % 2 ? 0x20 : rnd());
    for (size_t i = 0; f->codes && i < TERN_PANEL_ROWS * row_bytes; i += f->n_bytes)
        for (size_t j = 0; j < f->n_planes; j++)
            if (f->planes[j].bytes == 2)
                memcpy(rows + i + f->planes[j].offset, "\x10\x20", 2);
    tern_pack_panel(type, rows, TERN_PANEL_ROWS, N_COLS, panels);
    for (size_t p = 1; p < n_panels; p++)
        memcpy(panels + p * panel_bytes, panels, panel_bytes);
    free(rows);
}

static double best_time(tern_matmul_fn *f, const struct tern_matmul *m, size_t n_panels, int runs)
{
    double best = 1e9;
    for (int run = 0; run < runs; run++) {
        const double start = now();
        f(m, 0, n_panels);
        const double taken = now() - start;
        best = taken < best ? taken : best;
    }
    return best;
}

static void bench_type(const struct tern_kernels *k, uint32_t type, bool exact,
                       struct tern_acts *acts, uint8_t *big)
{
    static const size_t tokens[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128};
    struct tern_matmul m = {.format = tern_format_of(type), .n_cols = N_COLS, .acts = acts};
    tern_matmul_fn *f = tern_kernels_matmul(k, type, exact);
    m.panel_bytes = tern_panel_bytes(type, N_COLS);
    m.panels = big;
    const size_t n_big = BIG_BYTES / m.panel_bytes, n_small = N_ROWS / TERN_PANEL_ROWS;
    fill_panels(type, big, n_big, m.panel_bytes);
    m.dst_stride = TERN_PANEL_ROWS * n_big;
    if (m.dst_stride < N_ROWS)
        m.dst_stride = N_ROWS;
    m.dst = allocate(m.dst_stride * sizeof(float) + MAX_TOKENS * N_ROWS * sizeof(float));
    m.scratch = allocate(TERN_MATMUL_SCRATCH(N_COLS));
    acts->n_tokens = 1;
    const double t = best_time(f, &m, n_big, 5);
    printf("%-5s%s %6.1f GB/s |", m.format->name, exact ? " exact" : "",
           (double)(n_big * m.panel_bytes) / t / 1e9);
    m.dst_stride = N_ROWS;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        acts->n_tokens = tokens[i];
        const double s = best_time(f, &m, n_small, tokens[i] < 8 ? 200 : 50);
        printf(" %zu: %.1f", tokens[i], (double)(N_ROWS * N_COLS * tokens[i]) / s / 1e9);
    }
    printf(" GMAC/s\n");
    free(m.dst);
    free(m.scratch);
}

/* One token: a type's bytes a second, beside what the same memory gives when it is only read. */
static void bench_read(const struct tern_kernels *k, uint32_t type, bool exact,
                       struct tern_acts *acts, uint8_t *big)
{
    struct tern_matmul m = {.format = tern_format_of(type), .n_cols = N_COLS, .acts = acts};
    tern_matmul_fn *f = tern_kernels_matmul(k, type, exact);
    m.panel_bytes = tern_panel_bytes(type, N_COLS);
    m.panels = big;
    const size_t n = BIG_BYTES / m.panel_bytes;
    fill_panels(type, big, n, m.panel_bytes);
    m.dst_stride = TERN_PANEL_ROWS * n;
    m.dst = allocate(m.dst_stride * sizeof(float));
    m.scratch = allocate(TERN_MATMUL_SCRATCH(N_COLS));
    acts->n_tokens = 1;
    double limit = 0, best = 1e9;
    for (int round = 0; round < 3; round++) {
        const double bandwidth = read_bandwidth(big), taken = best_time(f, &m, n, 3);
        limit = bandwidth > limit ? bandwidth : limit;
        best = taken < best ? taken : best;
    }
    const double speed = (double)(n * m.panel_bytes) / best / 1e9;
    printf("%-7s %-8s %6.2f GB/s of %6.2f: %.2f\n", m.format->name,
           exact ? "exact" : m.format->direct ? "direct" : "expanded", speed, limit,
           speed / limit);
    free(m.dst);
    free(m.scratch);
}

void bench_matmul(const struct tern_kernels *k, bool read)
{
    const size_t n_blocks = N_COLS / TERN_SUB;
    uint8_t *big = allocate(BIG_BYTES);
    int8_t *q = allocate(MAX_TOKENS * N_COLS);
    float *x = allocate(MAX_TOKENS * N_COLS * sizeof *x);
    float *d = allocate(MAX_TOKENS * n_blocks * sizeof *d);
    int16_t *sum = allocate(MAX_TOKENS * n_blocks * 2 * sizeof *sum);
    for (size_t i = 0; i < MAX_TOKENS * N_COLS; i++) {
        q[i] = (int8_t)((int)(rnd() % 255) - 127);
        x[i] = (float)q[i];
    }
    for (size_t i = 0; i < MAX_TOKENS * n_blocks; i++) {
        d[i] = 0.01f;
        sum[2 * i] = sum[2 * i + 1] = 5;
    }
    memset(big, 1, BIG_BYTES);
    if (!read)
        printf("read %.1f GB/s, maddubs + madd %.1f GMAC/s\n", read_bandwidth(big),
               peak_products());
    struct tern_acts acts = {1, x, N_COLS, q, d, sum, n_blocks};
    const char *only = getenv("TERN_BENCH_TYPE");
    for (uint32_t type = 0; type < TERN_N_TYPES; type++) {
        const struct tern_format *f = tern_format_of(type);
        if (!f || (only && strcmp(only, f->name) != 0))
            continue;
        for (int exact = 0; exact < (f->codes ? 2 : 1); exact++)
            if (read)
                bench_read(k, type, exact, &acts, big);
            else if (!exact || type == TERN_TYPE_Q5_K)
                bench_type(k, type, exact, &acts, big);
    }
    free(big);
    free(q);
    free(x);
    free(d);
    free(sum);
}
