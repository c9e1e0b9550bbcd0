/* trace.h: a backend without arithmetic, a model without weights, and the engine over both.
 *
 * The trace backend keeps a number for each token in its KV blocks. The number of position p is
 * a hash of the token, of p and of the numbers of all positions that p sees, read back through
 * the block tables; the logits are a function of it. So whatever is wrong in a table, a copy, a
 * window or a shared block changes what comes out, and `struct trace_text` computes what must
 * come out from the tokens alone. It also holds each batch against the contract of backend.h.
 */
#ifndef TRACE_H
#define TRACE_H

#include "runtime/engine.h"

enum { TRACE_VOCAB = 97, TRACE_MAX_CTX = 512 };

/* Which numbers a text makes, one token after the other. */
struct trace_text {
    const struct tern_program *program;
    uint32_t n;
    tern_token tokens[TRACE_MAX_CTX];
    uint64_t cells[TERN_MAX_KV_GROUPS][TRACE_MAX_CTX], state;
};
void trace_text_push(struct trace_text *t, tern_token token);
void trace_logits(uint64_t state, float *logits);
/* The greedy choice after the text so far. */
tern_token trace_text_next(const struct trace_text *t);

struct trace_state {
    struct tern_program program;
    tern_limits limits;
    uint32_t n_blocks[TERN_MAX_KV_GROUPS];
    uint64_t *cells[TERN_MAX_KV_GROUPS];
    float *logits;
    uint64_t n_submits, n_rows, n_copies, uploaded;
    uint32_t most_rows, least_rows; /* of a batch */
    const char *fault;      /* the first break of the contract */
    tern_token nan_token;   /* logits after it are NaN; -1: none */
    const tern_token *script; /* the best token at position i is script[i]; NULL: none is told */
    uint32_t n_script;
    uint32_t fail_in;       /* the n-th submit from now fails with fail_with; 0: none */
    tern_status fail_with;
    bool closed;
};

extern const struct tern_backend trace_backend;

/* A model of so many KV groups (windows[i]; 0: full attention) and an engine over it. */
struct trace_rig {
    tern_model model;
    struct tern_op op;
    struct tern_weight weights[3];
    struct tern_tensor tensors[3];
    tern_source source;
    unsigned char *file;
    uint64_t n_reads, n_released;
    bool read_fails;
    tern_plan plan;
    tern_memory arenas[TERN_N_ARENAS];
    tern_engine *engine;
    struct trace_state *trace;
    tern_error error;
};
void trace_model(struct trace_rig *rig, const uint32_t *windows, uint32_t n_groups);
/* Plans, maps arenas and makes the engine, with its weights loaded. */
tern_status trace_open(struct trace_rig *rig, const tern_limits *limits);
void trace_close(struct trace_rig *rig);

/* Greedy options that generate until the context is full. */
tern_seq_options trace_greedy(void);

/* Counts of every block's references, free lists, tables and prefix nodes add up. NULL, or
 * what is wrong. */
const char *trace_check_kv(const tern_engine *e);

/* Events of a run, without what they point to. */
struct trace_log {
    uint32_t n;
    struct { tern_event event; char error[64]; } items[8192];
};
/* Steps with room for cap events until nothing runs, n_steps steps at most; its last status. */
tern_status trace_drive(struct trace_rig *rig, struct trace_log *log, size_t cap,
                        uint32_t n_steps);
/* The tokens logged of a sequence are what follows its prompt. Their number, or -1. */
int trace_matches(const struct trace_rig *rig, const struct trace_log *log, tern_seq seq,
                  const tern_token *prompt, uint32_t n_prompt);
tern_stop trace_stop_of(const struct trace_log *log, tern_seq seq); /* the last one */

struct trace_random { uint64_t state; };
uint32_t trace_below(struct trace_random *r, uint32_t n);

#endif
