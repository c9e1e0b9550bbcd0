/* check.h: runs every variant of every kernel against the reference. */
#ifndef TERN_TESTS_CHECK_H
#define TERN_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/cpu/kernels.h"

/* One kernel of one variant; the checks get it as cmocka's state. */
struct candidate {
    const char *kernel, *variant;
    size_t offset; /* of the kernel in the table */
    const struct tern_kernels *ref, *under_test;
};

void check_matmul(void **state); /* of every type: the kernel's name says which */

void check_rms_norm(void **state);
void check_quantize(void **state);
void check_halves(void **state);
void check_hadamard(void **state);
void check_rope(void **state);
void check_mul_act(void **state);
void check_add(void **state);
void check_scale(void **state);
void check_scores(void **state); /* of every type: the kernel's name says which */
void check_softmax(void **state);
void check_values(void **state); /* of every type: the kernel's name says which */
void check_merge(void **state);
void check_finish(void **state);

void check_highest(void **state);
void check_exp_row(void **state);

/* Speed of the kernels of a table, printed; read: one token beside the memory's own speed. */
void bench_matmul(const struct tern_kernels *k, bool read);
void bench_rows(const struct tern_kernels *k);

uint32_t rnd(void);            /* seeded; the seed is printed and settable by TERN_SEED */
float rnd_float(void);         /* any exponent a weight can have, both signs, zeros */
float *rnd_row(size_t n, int round); /* n guarded floats of a class that the round chooses */
void *guarded(size_t size);    /* size bytes that end where a page without access begins */
void *guarded_aligned(size_t size); /* the same, aligned to 64: up to 63 bytes before the page */
void guarded_free(void);       /* gives back all of them */

/* Any NaN equals any NaN; otherwise every bit counts. */
void assert_same_floats(const float *ref, const float *got, size_t n, const char *what);
void assert_same_bits(const void *ref, const void *got, size_t size, const char *what);

#endif
