/* sequence.h: one conversation: its tokens, its options, and how far it has come.
 *
 * A sequence keeps all its tokens; how many of them are in the KV cache is n_computed. So its
 * blocks can be taken away at any time, and are computed again when it next needs them.
 *
 *   free -> open -> (feed) running -> (eos, stop, length, context, error, cancel, trim) open
 *
 * A running one is admitted once there is room for what it holds, and stops being so when its
 * blocks are taken away (it is preempted); an open one that does not run may lose them too.
 */
#ifndef TERN_SEQUENCE_H
#define TERN_SEQUENCE_H

#include "runtime/constrain.h"
#include "runtime/stop.h"
#include "runtime/tern.h"
#include "runtime/thinking.h"

#include <stdatomic.h>

struct tern_arena;

struct tern_sequence {
    _Atomic uint32_t handle;    /* 0: the slot is free */
    _Atomic uint32_t cancelled; /* the handle that was asked to end */
    uint32_t generation;        /* of the slot's last handle */
    bool running, admitted;
    bool preempted;             /* its blocks were taken since it was fed */
    bool pinned;                /* the call being made works on it: its blocks stay */
    uint64_t age;               /* number of the feed that set it running: lower is older */
    uint64_t came;              /* the scheduler's n_rows at that feed, or when it had no block */
    uint64_t used;              /* when it last ran: which idle one loses its blocks first */

    tern_token *tokens;         /* [n_ctx] */
    uint32_t n_tokens, n_computed, n_cached, n_generated;
    uint32_t report;            /* the next position whose prompt log-probability is due ... */
    uint32_t report_end;        /* ... and where these end */

    tern_seq_options options;   /* biases point to the next field; other lists are not kept here */
    tern_bias *biases;          /* [TERN_MAX_BIASES] */
    struct tern_stops stops;
    struct tern_constrain constrain;
    struct tern_thinking thinking;
    tern_token shown[TERN_MAX_SHOWN]; /* control tokens that are written into text */
    uint32_t n_shown;
    tern_detok detok;
    tern_error failure;         /* what TERN_STOP_ERROR reports */
};

void tern_sequences_lay_out(struct tern_arena *state, struct tern_arena *sampler,
                            struct tern_sequence **seqs, const tern_limits *limits);
/* Pointers of all slots into what was laid out. */
void tern_sequences_start(struct tern_engine *e);

/* The open sequence of a handle; NULL, and the engine's error, if there is none. */
struct tern_sequence *tern_sequence_of(struct tern_engine *e, tern_seq seq);
uint32_t tern_slot_of(const struct tern_engine *e, const struct tern_sequence *s);

/* The rows whose logits are wanted are those of positions from .. to - 1. */
uint32_t tern_logits_from(const struct tern_sequence *s);
uint32_t tern_logits_to(const struct tern_sequence *s);

#endif
