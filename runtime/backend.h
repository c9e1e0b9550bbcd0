/* backend.h: what a backend must do. Every function is required.
 *
 * engine.c checks all arguments first, so a backend holds no such checks and all behave alike.
 * A backend's state is carved from the arenas at open; after open nothing is created.
 */
#ifndef TERN_BACKEND_H
#define TERN_BACKEND_H

#include "runtime/program.h"
#include "runtime/tern.h"

struct tern_device {
    char name[96];
    uint64_t memory_bytes; /* 0: the host's */
    bool shares_host_memory;
};

enum { TERN_BLOCK_TOKENS = 16 };  /* tokens of a KV block */
enum { TERN_WEIGHT_SAMPLE = 256 }; /* bytes of some elements of a weight, at most */
#define TERN_NO_BLOCK UINT32_MAX  /* in a block table: nothing there (freed, or not yet written) */

/* Rows of one step. Spans are runs of rows of one sequence at consecutive positions; rows of a
 * span stand together, spans in order. tables[group * n_slots + span.slot] is the block table
 * of the span's sequence in that KV group: entry i holds positions 16 i .. 16 i + 15. */
struct tern_span { uint32_t first_row, n_rows, position, slot; };
struct tern_batch {
    uint32_t n_rows, n_spans, n_logits, n_slots;
    const tern_token *tokens;        /* [n_rows] */
    const uint32_t *positions;       /* [n_rows] */
    const struct tern_span *spans;
    const uint32_t *const *tables;
    const uint32_t *logit_rows;      /* [n_logits] rows whose logits are wanted, ascending */
    bool hidden_only;                /* their hidden states are, and no logits need be made */
};

struct tern_block_copy { uint32_t from, to; };

/* What a plan needs besides the program: filled-in limits, and blocks of each group's pool. */
struct tern_backend_plan { const tern_limits *limits; uint32_t n_blocks[TERN_MAX_KV_GROUPS]; };

struct tern_backend {
    const char *name;
    uint32_t (*n_devices)(void);
    tern_status (*describe)(uint32_t device, struct tern_device *out, tern_error *err);
    bool (*can_run)(const struct tern_model *model, const struct tern_op *op);
    /* Fills bytes and align of the arenas it uses: weights, kv, activations, scratch. */
    tern_status (*plan)(const struct tern_model *model, const struct tern_backend_plan *plan,
                        tern_arena_need arenas[TERN_N_ARENAS], tern_error *err);
    tern_status (*open)(const struct tern_model *model, const struct tern_backend_plan *plan,
                        const tern_memory arenas[TERN_N_ARENAS], const tern_host *host,
                        void **state, tern_error *err);
    /* n_rows rows of a weight as they are in the file, from first_row (a multiple of 16) on; a
     * vector is one row. Each row of each weight comes once, in any order, and by several
     * threads of the host at a time. The rows may lie in the KV arena, which is not touched
     * before the first submit. Not called for the model of an image: there tern_model_weight
     * says where the weights lie ready. */
    tern_status (*upload)(void *state, uint32_t weight, uint32_t first_row, uint32_t n_rows,
                          const void *rows, tern_error *err);
    /* At least one row; perhaps none whose logits are wanted. */
    tern_status (*submit)(void *state, const struct tern_batch *batch, tern_error *err);
    /* The logits of the last submit: n_logits rows, *stride floats apart, in the backend's own
     * memory until the next submit. */
    tern_status (*wait)(void *state, const float **logits, size_t *stride, tern_error *err);
    /* The hidden state of the i-th of these rows: n_embd floats, what the program's last RMS_NORM
     * makes. */
    tern_status (*hidden)(const void *state, uint32_t i, float *out, tern_error *err);
    tern_status (*copy_blocks)(void *state, uint32_t group, const struct tern_block_copy *copies,
                               size_t n, tern_error *err);
    /* One layer's part of a block, as it stands in a session (quant/FORMATS.md, section 8), out of
     * a pool and into it. Its bytes are the same function of the keys and values everywhere. */
    size_t (*block_bytes)(const void *state, uint32_t group);
    tern_status (*read_block)(const void *state, uint32_t group, uint32_t layer, uint32_t block,
                              void *to, tern_error *err);
    tern_status (*write_block)(void *state, uint32_t group, uint32_t layer, uint32_t block,
                               const void *from, tern_error *err);
    /* A sample of a loaded weight: elements of a row from column col, a multiple of 256, on, as
     * they are in the file: 64, or a block of 256, or what the row has; of a vector as floats.
     * Answers its bytes, at most TERN_WEIGHT_SAMPLE. */
    size_t (*read_weight)(const void *state, uint32_t weight, uint32_t row, uint32_t col,
                          void *to);
    /* The sampler's passes over rows of logits: tern_highest and tern_exp_row of runtime/real.h, to
     * the bit. Rows are in the host's memory, of any length and alignment. */
    float (*highest)(const void *state, const float *x, size_t n);
    void (*exp_row)(const void *state, float *x, size_t n, float max, float t);
    /* Under limits.timings: whether submits keep their times, and the i-th of the last one. */
    void (*keep_timings)(void *state, bool on);
    bool (*timing_at)(const void *state, size_t i, tern_timing *out);
    void (*close)(void *state);
};

/* The float environment that the arithmetic asks for (nearest even, no flush to zero): entered
 * by every thread that computes, and given back. */
uint32_t tern_float_enter(void);
void tern_float_leave(uint32_t saved);

#endif
