/* cpu.h: the state of the CPU backend, and who walks which phase. */
#ifndef TERN_CPU_H
#define TERN_CPU_H

#include "platform/cpu/kernels.h"
#include "platform/cpu/lower.h"
#include "runtime/backend.h"
#include "runtime/program.h"

#include <stdatomic.h>

enum {
    TERN_TILE_ROWS = 16, /* query rows of an attention tile: tokens times heads of one KV head */
    TERN_TILES_TOGETHER = 4, /* that walk chunks side by side, at most */
    TERN_FEW_ROWS = 4,   /* up to so many rows attention may be split by chunks */
    TERN_OWN_ROWS = 8,   /* up to so many rows every thread repeats norm and quantising itself,
                            and one does what rows need by themselves */
    TERN_LANE_ROWS = 32, /* many rows are lanes of at least so many; see struct tern_lane */
    TERN_LARGE_LANE_ROWS = 128, /* the same for a model with large matrices */
    TERN_MAX_LANES = 16,
    TERN_PIECE_FLOATS = 64 * 1024, /* of a product, made before what is fused to it: stays in a
                                      second cache */
    TERN_PHASE_TIMINGS = 4, /* work and barrier, and again where a phase has a second half */
};

/* Records of some rows: the planes of struct tern_acts. */
struct tern_records {
    int8_t *q;
    float *d;
    int16_t *sum;
};

/* What a thread has for itself. */
struct tern_cpu_thread {
    struct tern_records own; /* TERN_OWN_ROWS rows of the widest input */
    float *norm;             /* TERN_OWN_ROWS rows of the widest input */
    uint8_t *row;            /* one row of the embedding as it is in the file */
    void *matmul;            /* the kernels' scratch */
    const struct tern_format *multiplied; /* of the matrix that used it last in this phase */
    float *turned;           /* keys or values of a head, rotated to be stored */
    float *queries;          /* of tiles side by side: [TILE_ROWS][k_dim], padded to 32 */
    struct tern_records query_records;
    float *pieces;           /* [n_inner][piece_floats] of products that only their phase reads */
    float *scores;     /* [TILE_ROWS][256] */
    float *part, *sum; /* o of a chunk of a tile, o so far of each: [TILE_ROWS][v_dim] */
    tern_timing *timings; /* TERN_PHASE_TIMINGS of each phase, under limits.timings */
    uint32_t n_timings, op;
    tern_work work;    /* what it has been at since `since_ns` */
    uint64_t since_ns;
};

/* Of one KV group. The blocks of one layer's and head's keys lie side by side, then those of its
 * values: attention reads one head at a time, and where a sequence has neighbouring blocks, that
 * is a stream that memory is good at. */
struct tern_cpu_pool {
    uint8_t *base;
    size_t k_bytes, v_bytes; /* of a block, one KV head */
    size_t v_row_bytes;      /* from one token's values to the next one's */
    size_t head_bytes, layer_bytes;
    uint32_t n_blocks;
};

/* Partial results of attention that was split by chunks: [row][head][chunk]. */
struct tern_cpu_partials {
    float *m, *l, *o;
    uint32_t n_chunks, widest;
};

/* A batch whose rows stand in the order of their lanes. */
struct tern_cpu_order {
    struct tern_batch batch;
    tern_token *tokens;               /* [chunk] */
    uint32_t *positions, *logit_rows; /* [chunk], [n_logit_rows] */
    struct tern_span *spans;          /* [chunk] */
};

struct tern_cpu {
    const struct tern_model *model;
    const struct tern_program *program;
    tern_limits limits;
    enum tern_type k_type, v_type; /* of the cache */
    tern_host host;
    struct tern_kernels *kernels;
    struct tern_lowered low;
    uint8_t **weights; /* [n_weights] panels, or floats */
    struct tern_cpu_pool pools[TERN_MAX_KV_GROUPS];
    float *rows, *logit_rows;    /* the two areas of slots */
    struct tern_records records; /* of all rows, shared */
    float *normed;               /* of all rows, where products take floats behind a norm */
    size_t piece_floats;         /* of a thread's piece */
    double *inv_freq[TERN_MAX_ROPES];
    float *angles[TERN_MAX_ROPES]; /* [chunk][n_rot]: cos and sin of each row */
    uint32_t *row_span;            /* [chunk] */
    struct tern_cpu_partials partials;
    atomic_uint *items; /* [n_lanes][n_phases][2] counters: of a phase, and of its second half (of
                           rows: threads that came to it) */
    uint32_t lane_rows; /* of a lane, at least */
    uint32_t n_lanes;   /* at most, in any batch */
    uint32_t lanes, lane_first[TERN_MAX_LANES + 1]; /* of the rows of the submit under way */
    struct tern_cpu_thread *threads;
    const struct tern_batch *batch; /* of the submit under way, in the order of lanes */
    struct tern_cpu_order order;
    bool keeps_timings;
};

/* Asks for memory that is read soon. A compiler without the builtin has slower code, no other. GCC
 * takes who only asks for a function that does nothing, and drops the call: hence the empty asm. */
static inline void tern_cpu_ask(const void *at, size_t bytes)
{
#if defined(__GNUC__)
    __asm__ volatile("");
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i);
#else
    (void)at, (void)bytes;
#endif
}

/* The lane of a row (struct tern_lane). */
static inline uint32_t tern_cpu_lane_of(const struct tern_cpu *c, uint32_t row)
{
    return c->lanes == 1 ? 0 : ((row + 1) * c->lanes - 1) / c->lane_first[c->lanes];
}

/* A row of a slot; the next one is a stride behind it, if it is of the same lane. All slots of a
 * lane lie together: slots have unlike strides, and where all rows of a slot did, one's rows would
 * lie where another thread has just written its rows of another slot, and be fetched from there.
 * on_logits: in a phase of the rows with logits, which are one lane, whatever was there before. */
static inline float *tern_cpu_row(const struct tern_cpu *c, bool on_logits, int16_t slot,
                                  uint32_t row)
{
    const struct tern_slot_place *s = &c->low.slots[slot];
    if (s->on_logits)
        return c->logit_rows + (size_t)s->offset * c->limits.n_logit_rows + (size_t)row * s->stride;
    const uint32_t lane = on_logits ? 0 : tern_cpu_lane_of(c, row), first = c->lane_first[lane];
    const uint32_t n = c->lane_first[on_logits ? c->lanes : lane + 1] - first;
    return c->rows + (size_t)first * c->low.row_floats + (size_t)s->offset * n +
           (size_t)(row - first) * s->stride;
}

static inline uint32_t tern_cpu_phase_rows(const struct tern_cpu *c, const struct tern_phase *ph)
{
    return ph->on_logits ? c->batch->n_logits : c->batch->n_rows;
}

static inline uint8_t *tern_cpu_keys(const struct tern_cpu_pool *p, uint32_t layer, uint32_t head,
                                     uint32_t block)
{
    return p->base + layer * p->layer_bytes + head * p->head_bytes + block * p->k_bytes;
}

static inline uint8_t *tern_cpu_values(const struct tern_cpu_pool *p, uint32_t layer,
                                       uint32_t head, uint32_t block)
{
    return tern_cpu_keys(p, layer, head, p->n_blocks) + block * p->v_bytes;
}

/* Some of a phase's rows, or of items that are made of them, with counters of their own. Of many
 * rows a thread takes those of its lane first, in each phase the same ones, so that most of what it
 * reads it has written itself; then it helps others with theirs. */
struct tern_lane {
    uint32_t first, n;
    atomic_uint *counters; /* 2 */
};

/* Rows with logits have one: nobody reads logits but the sampler, and the largest matrix would be
 * read by each lane. */
static inline uint32_t tern_cpu_lanes(const struct tern_cpu *c, const struct tern_phase *ph)
{
    return ph->on_logits ? 1 : c->lanes;
}

/* Where the thread goes as the k-th of n_lanes; items are parted evenly. */
static inline struct tern_lane tern_cpu_lane(const struct tern_cpu *c, const struct tern_phase *ph,
                                             uint32_t thread, uint32_t k, uint32_t n_lanes,
                                             uint32_t n_items)
{
    atomic_uint *counters = c->items + 2 * (size_t)(ph - c->low.phases);
    if (n_lanes == 1)
        return (struct tern_lane){0, n_items, counters};
    const uint32_t i = (thread * n_lanes / c->limits.n_threads + k) % n_lanes;
    const uint32_t first = (uint32_t)((uint64_t)n_items * i / n_lanes);
    const uint32_t last = (uint32_t)((uint64_t)n_items * (i + 1) / n_lanes);
    return (struct tern_lane){first, last - first, counters + 2 * (size_t)i * c->low.n_phases};
}

/* The next `step` items of n, or false when all are taken. */
static inline bool tern_cpu_take(atomic_uint *counter, uint32_t n, uint32_t step, uint32_t *first,
                                 uint32_t *last)
{
    const uint32_t at = atomic_fetch_add_explicit(counter, step, memory_order_relaxed);
    if (at >= n)
        return false;
    *first = at;
    *last = n - at < step ? n : at + step;
    return true;
}

/* timed.c: the end of a stretch of work, and a barrier that ends one and keeps its own time. */
void tern_cpu_timed_end(const struct tern_cpu *c, uint32_t thread);
void tern_cpu_timed_barrier(const struct tern_cpu *c, uint32_t thread);

/* The same in steps that shrink: a part of what is left, at least `least`. Large at first, since
 * an item has work of its own, small at the end, so that the threads end together. */
static inline bool tern_cpu_take_part(atomic_uint *counter, uint32_t n, uint32_t part,
                                      uint32_t least, uint32_t *first, uint32_t *last)
{
    unsigned at = atomic_load_explicit(counter, memory_order_relaxed);
    uint32_t step;
    do {
        if (at >= n)
            return false;
        step = (n - at) / part;
        step = step < least ? least : step;
        step = step > n - at ? n - at : step;
    } while (!atomic_compare_exchange_weak_explicit(counter, &at, at + step, memory_order_relaxed,
                                                    memory_order_relaxed));
    *first = at;
    *last = at + step;
    return true;
}

/* Of what is left in one of n_lanes, for tern_cpu_take_part: something stays for helpers. */
static inline uint32_t tern_cpu_parts(const struct tern_cpu *c, uint32_t n_lanes)
{
    const uint32_t n = (c->limits.n_threads + n_lanes - 1) / n_lanes;
    return c->limits.n_threads == 1 ? 1 : n == 1 ? 2 : (3 * n + 1) / 2;
}

/* Whether to work in the lane that is the k-th to a thread, where so many of n items are taken. Two
 * threads leave each other an eighth: less is done before its rows have come from the other core.
 * Of more threads one is often held up, and all the others would wait for it. */
static inline bool tern_cpu_joins(const struct tern_cpu *c, atomic_uint *taken, uint32_t n,
                                  uint32_t k)
{
    if (k == 0 || c->limits.n_threads > 2)
        return true;
    const unsigned at = atomic_load_explicit(taken, memory_order_relaxed);
    return at < n && n - at > n / 8;
}

/* Rows for a thread, first .. last - 1. They are neighbours: two threads that write every other row
 * have cache lines in common, and no hardware fetches every other row ahead. */
static inline bool tern_cpu_take_rows(const struct tern_cpu *c, const struct tern_lane *lane,
                                      uint32_t n_lanes, uint32_t *first, uint32_t *last)
{
    if (!tern_cpu_take_part(lane->counters, lane->n, tern_cpu_parts(c, n_lanes), 1, first, last))
        return false;
    *first += lane->first;
    *last += lane->first;
    return true;
}

static inline void tern_cpu_barrier(const struct tern_cpu *c, uint32_t thread)
{
    if (c->keeps_timings)
        tern_cpu_timed_barrier(c, thread);
    else if (c->limits.n_threads > 1)
        c->host.barrier(c->host.self, thread);
}

void tern_cpu_timed_start(const struct tern_cpu *c, uint32_t thread);

/* What the thread is at, from op on. */
static inline void tern_cpu_timed_work(const struct tern_cpu *c, uint32_t thread, uint32_t op,
                                       tern_work work)
{
    if (c->keeps_timings) {
        c->threads[thread].op = op;
        c->threads[thread].work = work;
    }
}

bool tern_cpu_timed_at(const void *state, size_t i, tern_timing *out);

/* transfer.c: blocks and samples of weights as they stand in files (runtime/backend.h). */
size_t tern_cpu_block_bytes(const void *state, uint32_t group);
tern_status tern_cpu_read_block(const void *state, uint32_t group, uint32_t layer, uint32_t block,
                                void *to, tern_error *err);
tern_status tern_cpu_write_block(void *state, uint32_t group, uint32_t layer, uint32_t block,
                                 const void *from, tern_error *err);
size_t tern_cpu_read_weight(const void *state, uint32_t weight, uint32_t row, uint32_t col,
                            void *to);

/* One of the ops that take each element for itself, on n elements; dst may be a or b. */
void tern_cpu_elementwise(const struct tern_cpu *c, const struct tern_op *op, float *dst,
                          const float *a, const float *b, size_t n);

/* lanes.c: parts the batch's rows into lanes, and has c->batch be the batch in their order. */
void tern_cpu_order_rows(struct tern_cpu *c, const struct tern_batch *batch);

/* What each kind of phase does, by one thread. */
void tern_cpu_rows(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread);
void tern_cpu_multiply(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread);
void tern_cpu_attend(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread);

#endif
