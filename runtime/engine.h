/* engine.h: the engine's parts, as its own files and tests see them. */
#ifndef TERN_ENGINE_H
#define TERN_ENGINE_H

#include "runtime/backend.h"
#include "runtime/constrain.h"
#include "runtime/events.h"
#include "runtime/kv.h"
#include "runtime/model.h"
#include "runtime/sampler.h"
#include "runtime/scheduler.h"
#include "runtime/sequence.h"

/* All that lies in the state and sampler arenas: laid out once, by the plan and by the init. */
struct tern_parts {
    struct tern_sequence *seqs; /* [n_seqs] */
    struct tern_kv kv;
    struct tern_scheduler scheduler;
    struct tern_events events;
    struct tern_sampler sampler;
    struct tern_masking masking;
    /* The batch in the making. */
    tern_token *tokens;         /* [chunk] */
    uint32_t *positions;        /* [chunk] */
    struct tern_span *spans;    /* [n_seqs] */
    uint32_t *logit_rows;       /* [n_logit_rows] */
    tern_timing *timings;       /* [n_logit_rows] of sampling, under limits.timings */
};

/* Where loading stands: weights are taken in steps of some rows, counted in each. */
struct tern_load { uint32_t weight, step; uint64_t done, total; bool whole; };

struct tern_engine {
    tern_error error;
    tern_limits limits;
    const tern_model *model;
    const tern_backend *backend;
    void *state;                /* the backend's */
    tern_host host;
    tern_memory staging;        /* the KV arena, while weights are loaded */
    bool lost;                  /* the device is: nothing but closing helps */
    uint64_t model_hash;        /* for sessions; 0: not worked out yet */
    struct tern_load load;
    struct tern_parts parts;
    struct tern_batch batch;
    const float *logits;        /* of the last batch */
    size_t logit_stride;
    uint32_t n_hand_logits;     /* what tern_logits may show */
    uint32_t step_rows;         /* of tern_step, at most; 0: the chunk */
    bool keeps_timings;
    uint32_t n_timings;         /* of sampling */
};

struct tern_engine *tern_engine_lay_out(struct tern_arena *state, struct tern_arena *sampler,
                                        struct tern_parts *parts, const tern_model *model,
                                        const tern_limits *limits);

/* The device is there and all weights are. */
tern_status tern_engine_ready(struct tern_engine *e);

/* The batch: begun, given spans of rows, and run. Rows of s are its next n_rows tokens, from
 * n_computed on; logits are wanted of those at positions from .. to - 1. */
void tern_batch_begin(struct tern_engine *e);
void tern_batch_add(struct tern_engine *e, struct tern_sequence *s, uint32_t n_rows,
                    uint32_t from, uint32_t to);
tern_status tern_batch_run(struct tern_engine *e);
/* After a run: the rows are computed; the index learns of them and windows move on. */
void tern_batch_settle(struct tern_engine *e, struct tern_sequence *s, uint32_t n_rows);

/* timing.c: the time, 0 where none is kept, and a stretch of sampling that began then. */
uint64_t tern_timing_begin(const struct tern_engine *e);
void tern_timing_end(struct tern_engine *e, uint64_t start_ns);

/* load.c: bytes of the scratch arena that weights pass through. */
tern_status tern_load_staging(const tern_model *model, size_t *bytes, tern_error *err);
uint64_t tern_load_total(const tern_model *model);

#endif
