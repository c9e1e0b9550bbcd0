/* trace_rig.h: what tests of an engine over the trace backend begin with. What is refused here is
 * a test's own mistake: they assert. */
#ifndef TERN_TEST_TRACE_RIG_H
#define TERN_TEST_TRACE_RIG_H

#include "tests/backend/trace.h"

/* A model of n_groups KV groups, the second of which has a window of 8, and its engine. */
static inline void trace_set_up(struct trace_rig *rig, const tern_limits *limits,
                                uint32_t n_groups)
{
    static const uint32_t windows[] = {0, 8};
    trace_model(rig, windows, n_groups);
    assert_int_equal(trace_open(rig, limits), TERN_OK);
}

/* Tokens by chance, the same of the same seed. */
static inline void trace_prompt(tern_token *tokens, uint32_t n, uint64_t seed)
{
    struct trace_random r = {seed};
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (tern_token)trace_below(&r, TRACE_VOCAB);
}

static inline tern_seq trace_seq(struct trace_rig *rig, const tern_seq_options *options)
{
    tern_seq seq = 0;
    assert_int_equal(tern_seq_open(rig->engine, options, &seq), TERN_OK);
    assert_int_not_equal(seq, 0);
    return seq;
}

/* n 0: nothing is fed, nothing runs. */
static inline tern_seq trace_begin(struct trace_rig *rig, const tern_seq_options *options,
                                   const tern_token *tokens, uint32_t n)
{
    const tern_seq seq = trace_seq(rig, options);
    if (n)
        assert_int_equal(tern_seq_feed(rig->engine, seq, tokens, n), TERN_OK);
    return seq;
}

/* Greedy, of `most` tokens at the most; 0: until the context is full. */
static inline tern_seq trace_start(struct trace_rig *rig, const tern_token *tokens, uint32_t n,
                                   uint32_t most)
{
    tern_seq_options options = trace_greedy();
    options.max_tokens = most;
    return trace_begin(rig, &options, tokens, n);
}

/* Nothing was broken in the backend's eyes or the cache's books. */
static inline void trace_tear_down(struct trace_rig *rig)
{
    assert_null(rig->trace->fault);
    assert_null(trace_check_kv(rig->engine));
    trace_close(rig);
}

#endif
