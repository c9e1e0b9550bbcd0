/* live_check.h: the reference beside every kernel, in builds with -Dlive_check=true alone.
 *
 * tern_kernels_select then hands out wrappers: a call runs the variant's kernel and, on copies
 * of what it was given, the reference, and compares the bits of what both wrote (NaN equals
 * NaN). The caller gets the variant's result, so a run is the same run, only slower. */
#ifndef TERN_LIVE_CHECK_H
#define TERN_LIVE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tern_kernels;

/* What is known of one entry of the table. */
struct tern_live_check {
    const char *name;
    uint64_t n_compared, n_differ; /* calls */
    uint64_t n_skipped;            /* calls too large to be copied, or too many at a time */
    /* The first difference, where n_differ is not 0: which float of the output, and its words.
     * quantize: of q (bytes), then d, then sum (bytes), one after the other; softmax: of the
     * chunk, then m and the sum; merge: of o, then m and l. */
    uint64_t index;
    uint32_t reference, variant;
};

/* Entry i of the table, in its order; false past its end. A thread may ask while others
 * run kernels; what a call under way adds is then seen in part. */
bool tern_live_check_report(size_t i, struct tern_live_check *out);

/* Puts wrappers in place of what is not the reference. They know their kernels by static
 * storage: the last table that was wrapped decides for all. Not while kernels run, unless it
 * wraps the same ones. */
void tern_live_check_wrap(struct tern_kernels *k);

#endif
