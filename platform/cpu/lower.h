/* lower.h: a program as the phases that a thread team walks.
 *
 * Between two phases stands a barrier; inside one, threads take items from a counter. Ops that
 * need a whole row of what others computed begin a phase; the rest is fused into the phase that
 * computes its inputs, so a dense decoder layer is six phases:
 *
 *   multiply   [norm, quantise] q, k, v            panels
 *   rows       rope, store k and v                 rows
 *   attend     one tile of queries and one KV head; merge when it was split by chunks
 *   multiply   [quantise] o; x += o                panels
 *   multiply   [norm, quantise] gate, up; act      panels, gate and up side by side
 *   multiply   [quantise] down; x += down          panels
 *
 * What stands in brackets is done by every thread for itself when there are few rows, and is shared
 * out by rows, with a barrier of its own, when there are many (of very many, a thread has some of
 * its own: struct tern_lane of cpu.h). A rows phase of few rows is done by whoever is last to the
 * end of the phase before, so that a layer has five barriers.
 */
#ifndef TERN_CPU_LOWER_H
#define TERN_CPU_LOWER_H

#include "runtime/program.h"
#include "runtime/tern.h"

enum tern_phase_kind { TERN_PHASE_ROWS, TERN_PHASE_MULTIPLY, TERN_PHASE_ATTEND };

/* Ops first .. first + n - 1 of the program. A multiply phase is norm (n_norm is 0 or 1), then
 * n_matmuls products of one slot, then elementwise ops on their columns. */
struct tern_phase {
    uint8_t kind;
    bool on_logits;        /* rows are those whose logits are wanted */
    bool coupled;          /* an elementwise op joins several products: items span all of them */
    bool alone;            /* the norm may be repeated by every thread: nobody writes its source */
    bool needs_q, needs_x; /* what the products take: records, floats */
    uint16_t n_norm, n_matmuls;
    uint32_t first, n;
};

/* Where a slot lies: floats a row, in the area of all rows or in that of rows with logits. A
 * slot whose stride is 0 is never stored, or inner: products that nobody reads but what is fused to
 * them. Of these a thread has only the columns that it is at, in its offset-th piece. */
struct tern_slot_place {
    uint32_t offset, stride : 30, on_logits : 1, inner : 1;
};

struct tern_lowered {
    uint32_t n_phases;
    struct tern_phase *phases; /* NULL while counting */
    struct tern_slot_place slots[TERN_MAX_SLOTS];
    uint32_t row_floats, logit_floats; /* a row of either area */
    uint32_t n_inner, widest_inner;    /* pieces of a thread; floats: the widest slot there */
    uint32_t widest_in;                /* floats: input of a product */
    bool norm_floats;                  /* a product takes floats behind a norm */
};

/* Fills out; phases, when not NULL, has room for as many as a first call counted. exact: no
 * product takes records. */
tern_status tern_lower(const struct tern_model *model, bool exact, struct tern_lowered *out,
                       tern_error *err);

#endif
