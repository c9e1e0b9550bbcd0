/* scheduler.h: which sequences get rows in the next step, and whose blocks are taken.
 *
 * Order of service: a sequence that needs one row (it is generating) comes before those that
 * need many, whose prompts have what is left of the step. Where rows or logits do not suffice for
 * all that generate, turns go round. Prompts go one after the other, the shortest first: that
 * brings most first tokens soonest, and prompts that end one by one leave work beside which others
 * generate. Two rows of what a prompt lacks count as much as one row computed since it came: who
 * comes later may pass it, but not for long, so nobody starves.
 *
 * Order of blocks: age, the number of its feed. Who lacks blocks takes them first from idle
 * sequences, the longest idle first, then from the youngest running one that is younger than
 * itself. So the oldest always gets on, and a plan gives it room for a whole context. A
 * sequence whose blocks were taken waits until all that it holds fits; those that wait are let
 * in by age, none passing another, except that one whose prefix another is just computing waits
 * to share it.
 */
#ifndef TERN_SCHEDULER_H
#define TERN_SCHEDULER_H

#include "runtime/tern.h"

struct tern_arena;
struct tern_sequence;

struct tern_turn { uint32_t slot, n_rows; };

struct tern_scheduler {
    uint32_t *order;         /* [n_seqs] slots of running sequences, oldest first */
    uint32_t *quota;         /* [n_seqs] rows that a slot may have in this step */
    struct tern_turn *turns; /* [n_seqs] the step, oldest first */
    uint32_t n_running, n_turns, start;
    uint64_t clock, n_preempted;
    uint64_t n_rows;         /* computed by all steps: the time by which prompts wait */
};

void tern_scheduler_lay_out(struct tern_arena *a, struct tern_scheduler *s,
                            const tern_limits *limits);
void tern_scheduler_add(struct tern_engine *e, struct tern_sequence *s);
void tern_scheduler_remove(struct tern_engine *e, struct tern_sequence *s);

/* Fills turns and reserves their blocks. Sequences that turn out to be done are ended. */
tern_status tern_schedule(struct tern_engine *e);
/* Makes the blocks of n rows the sequence's own, taking them from others; *got rows could be
 * had. An age of 0 is older than all. */
tern_status tern_schedule_blocks(struct tern_engine *e, struct tern_sequence *s, uint64_t age,
                                 uint32_t n, uint32_t *got);
/* Takes all blocks of the sequence that has been idle the longest; false: none has any. */
bool tern_schedule_evict(struct tern_engine *e);
/* Takes all blocks of a sequence: it will be computed again. */
void tern_preempt(struct tern_engine *e, struct tern_sequence *s);

#endif
