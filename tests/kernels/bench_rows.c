/* bench_rows.c: speed of attention's values and of the operations on rows, data in the cache. */
#define _GNU_SOURCE
#include "tests/kernels/check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N = 4096, MAX_DIM = 256, MAX_ROWS = 16, RUNS = 20 };

static float x[N], y[N], ones[N], scores[MAX_ROWS * TERN_CHUNK], o[MAX_ROWS * MAX_DIM];
static volatile float sink; /* so that a result is used */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds of the statement, the best of a few runs. */
#define BEST(result, statement)                                     \
    do {                                                            \
        (result) = 1e18;                                            \
        for (int run = 0; run < RUNS; run++) {                      \
            const double start = now();                             \
            for (int i = 0; i < RUNS; i++)                          \
                statement;                                          \
            const double taken = (now() - start) / RUNS;            \
            (result) = taken < (result) ? taken : (result);         \
        }                                                           \
    } while (0)

static void bench_values(tern_values_fn *f, const char *name, size_t row_bytes, size_t dim)
{
    static const size_t rows[] = {1, 2, 3, 4, 7, 8, 16};
    static uint8_t blocks[16][16 * 4 * MAX_DIM];
    static uint16_t lo[MAX_ROWS], hi[MAX_ROWS];
    static uint8_t scratch[TERN_ATTENTION_SCRATCH(MAX_DIM)] __attribute__((aligned(64)));
    const uint8_t *block[16];
    memset(blocks, 1, sizeof blocks);
    for (size_t b = 0; b < 16; b++) {
        block[b] = blocks[b];
        hi[b] = TERN_CHUNK;
    }
    printf("values %-4s %3zu dims:", name, dim);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tern_values v = {block, row_bytes, dim, rows[i], scores, lo, hi, o, MAX_DIM,
                                      scratch, NULL, 0};
        double t;
        BEST(t, f(&v));
        printf(" %zu: %.1f", rows[i], (double)(TERN_CHUNK * dim * rows[i]) / t);
    }
    printf(" GMAC/s\n");
}

void bench_rows(const struct tern_kernels *k)
{
    static const size_t dims[] = {64, 80, 128, 256};
    static int8_t q[N];
    static float d[N / 32];
    static int16_t sum[N / 16];
    float m, s[TERN_CHUNK];
    double t;
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)((int)(i * 37 % 101) - 50) * 0.16f;
        ones[i] = 1;
        scores[i] = 0.01f;
    }
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        bench_values(k->values_f32, "f32", 4 * dims[i], dims[i]);
        bench_values(k->values_f16, "f16", 2 * dims[i], dims[i]);
        bench_values(k->values_q8_0, "q8_0", (dims[i] + 31) / 32 * 34, dims[i]);
    }
    BEST(t, (memcpy(s, x, sizeof s), k->softmax(s, 0, TERN_CHUNK, &m)));
    printf("softmax of 256 %.0f ns; of 4096: ", t);
    BEST(t, k->quantize(q, d, sum, x, N));
    printf("quantize %.0f ns, ", t);
    BEST(t, k->rms_norm(y, x, ones, N, 1e-5f));
    printf("rms_norm %.0f ns, ", t);
    BEST(t, k->silu_mul(y, x, ones, N));
    printf("silu_mul %.0f ns, ", t);
    BEST(t, k->gelu_mul(y, x, ones, N));
    printf("gelu_mul %.0f ns, ", t);
    BEST(t, k->rope_norm(x, ones, 128));
    printf("rope_norm of 128 %.0f ns, ", t);
    BEST(t, (sink = k->highest(x, N)));
    printf("highest %.0f ns, ", t);
    BEST(t, (memcpy(y, x, sizeof y), k->exp_row(y, N, 9.0f, 1.0f)));
    printf("exp_row %.0f ns\n", t);
}
