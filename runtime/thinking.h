/* thinking.h: where a sequence stands in its reasoning, and the end of its budget. */
#ifndef TERN_THINKING_H
#define TERN_THINKING_H

#include "runtime/tern.h"

struct tern_engine;

enum tern_thinking_state {
    TERN_THINKING_OVER, /* or there is none */
    TERN_THINKING_MAY,  /* nothing but white space, or the beginning of the tag, was generated */
    TERN_THINKING_IN,
};

/* Of one sequence. at: how much of the tag that is looked for the text ends with; all of the
 * closing one behind it, 0 where the text began otherwise. forcing: only while it is IN. */
struct tern_thinking {
    uint8_t state, n_open, n_close, n_end, at, n_forced;
    bool begins_in, limited, forcing;
    uint32_t budget, n; /* n: tokens of reasoning so far */
    char open[TERN_MAX_TAG], close[TERN_MAX_TAG];
    tern_token end[TERN_MAX_FORCED];
};

tern_status tern_thinking_check(const struct tern_engine *e, const tern_seq_options *o,
                                tern_error *err);
void tern_thinking_set(const struct tern_engine *e, struct tern_thinking *t,
                       const tern_seq_options *o);
/* At the start of what is generated. */
void tern_thinking_start(struct tern_thinking *t);
/* The token that must come next, whatever the logits say; -1: none. It counts as generated. */
tern_token tern_thinking_forced(struct tern_thinking *t);
/* From now on the closing tag is forced; false: nobody knows its tokens. */
bool tern_thinking_force(struct tern_thinking *t);
/* Reads a token's bytes (control tokens' too); answers how many of them belong to the reasoning,
 * or to the white space and the tags around it. */
size_t tern_thinking_read(struct tern_thinking *t, const char *bytes, size_t n);
/* It has begun, and is not over: what comes next is of it, or its closing tag. */
bool tern_thinking_is_on(const struct tern_thinking *t);
/* Nothing of it is left to come. */
bool tern_thinking_is_over(const struct tern_thinking *t);

#endif
