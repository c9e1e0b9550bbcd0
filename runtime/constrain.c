/* constrain.c: between the logits and the sampler, where a sequence is held to a grammar.
 *
 * Logits of tokens that are not let in become -infinity before anything else is done with them;
 * tokens that end a text are let in where the grammar may end. The first min_tokens tokens are
 * chosen among those that no bias forbids; where the grammar lets in nothing else, it is stronger,
 * and the early biases are passed over.
 *
 * A sequence that waits for its trigger samples freely. The token that completes the trigger may
 * hold bytes of what follows; one whose bytes the grammar refuses is taken back, and chosen anew
 * among the others.
 */
#include "runtime/constrain.h"

#include "runtime/arena.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/text.h"
#include "runtime/tokenizer.h"

#include <math.h>
#include <string.h>

enum { MOST_TAKEN_BACK = 64 };

void tern_masking_lay_out(struct tern_arena *a, struct tern_masking *m,
                          const struct tern_model *model, const tern_limits *limits)
{
    *m = (struct tern_masking){.bits = NULL};
    if (!limits->grammars)
        return;
    tern_masks_lay_out(a, &m->masks, model);
    m->bits = tern_carve_raw(a, m->masks.n_words, sizeof *m->bits, 64);
    m->row = tern_carve_raw(a, model->program.n_vocab, sizeof *m->row, 64);
}

tern_status tern_constrain_check(const struct tern_engine *e, const tern_seq_options *o,
                                 tern_error *err)
{
    if (!o->grammar)
        return TERN_OK;
    if (!e->limits.grammars)
        return tern_fail(err, TERN_BAD_ARGUMENT, "grammar: the limits have no room for any");
    if (o->grammar_trigger.size > TERN_MAX_TRIGGER)
        return tern_fail(err, TERN_BAD_ARGUMENT, "grammar: a trigger of %u bytes, at most %u",
                         (uint64_t)o->grammar_trigger.size, (uint64_t)TERN_MAX_TRIGGER);
    return TERN_OK;
}

void tern_constrain_set(struct tern_engine *e, struct tern_constrain *c,
                        const tern_seq_options *o)
{
    c->grammar = o->grammar;
    if (!c->grammar)
        return;
    c->n_trigger = (uint8_t)o->grammar_trigger.size;
    if (c->n_trigger)
        memmove(c->trigger, o->grammar_trigger.data, c->n_trigger);
    tern_masks_build(&e->parts.masking.masks);
    tern_constrain_start(c);
}

void tern_constrain_copy(struct tern_constrain *to, const struct tern_constrain *from)
{
    tern_grammar_state *const state = to->state;
    *to = *from;
    to->state = state;
    if (to->grammar)
        tern_grammar_copy(state, from->state);
}

void tern_constrain_start(struct tern_constrain *c)
{
    if (!c->grammar)
        return;
    c->waiting = c->n_trigger > 0;
    c->at = 0;
    tern_grammar_start(c->grammar, c->state);
}

/* --- while it waits --- */

/* Reads bytes. False: they complete the trigger, and the grammar refuses the rest. */
static bool read_waiting(struct tern_constrain *c, const char *bytes, size_t n)
{
    const tern_text trigger = {c->trigger, c->n_trigger};
    const uint8_t before = c->at;
    for (size_t i = 0; i < n; i++) {
        c->at = (uint8_t)tern_text_overlap(trigger, c->at, bytes[i]);
        if (c->at < c->n_trigger)
            continue;
        if (tern_grammar_advance(c->state, bytes + i + 1, n - i - 1) == n - i - 1) {
            c->waiting = false;
            return true;
        }
        tern_grammar_start(c->grammar, c->state);
        c->at = before;
        return false;
    }
    return true;
}

/* What follows the reasoning in the token that ends it. */
static bool read_rest(struct tern_constrain *c, const char *bytes, size_t n)
{
    if (c->waiting)
        return read_waiting(c, bytes, n);
    if (tern_grammar_advance(c->state, bytes, n) == n)
        return true;
    tern_grammar_start(c->grammar, c->state);
    return false;
}

/* While there may be reasoning. A first token that does not open it begins the answer; a tag
 * that has begun must go on. */
static bool read_thinking(const struct tern_engine *e, struct tern_sequence *s, tern_token token,
                          const char *bytes, size_t n)
{
    struct tern_constrain *c = &s->constrain;
    struct tern_thinking *t = &s->thinking, next = *t;
    const bool ends = tern_vocab_is_end(e->model->vocab, token);
    if (ends && t->state == TERN_THINKING_IN)
        return true;
    next.at = ends ? 0 : next.at;
    const size_t used = ends ? 0 : tern_thinking_read(&next, bytes, n);
    if (!ends && !tern_thinking_is_over(&next)) {
        *t = next;
        return true;
    }
    if (t->state == TERN_THINKING_MAY && next.at == 0) {
        if (t->at > 0)
            return false;
        t->state = TERN_THINKING_OVER;
        c->begins = !c->waiting;
        return ends || !c->waiting || read_waiting(c, bytes, n);
    }
    if (!read_rest(c, bytes + used, n - used))
        return false;
    *t = next;
    return true;
}

static bool read_token(const struct tern_engine *e, struct tern_sequence *s, tern_token token)
{
    char bytes[TERN_GRAMMAR_TOKEN_BYTES];
    size_t n = 0;
    if (tern_token_bytes(e->model, token, true, bytes, sizeof bytes, &n))
        return true;
    if (tern_thinking_is_over(&s->thinking))
        return read_waiting(&s->constrain, bytes, n);
    return read_thinking(e, s, token, bytes, n);
}

/* Only what goes on with an opening tag that has begun. */
static void keep_to_tag(const struct tern_engine *e, const struct tern_thinking *t, float *row)
{
    const size_t left = (size_t)(t->n_open - t->at);
    for (uint32_t i = 0; i < e->model->program.n_vocab; i++) {
        char bytes[TERN_GRAMMAR_TOKEN_BYTES];
        size_t n = 0;
        if (tern_token_bytes(e->model, (tern_token)i, true, bytes, sizeof bytes, &n) || n == 0 ||
            memcmp(bytes, t->open + t->at, n < left ? n : left) != 0)
            row[i] = -INFINITY;
    }
}

/* Chosen freely; what goes on with what the grammar refuses is taken back. */
static tern_status choose_freely(struct tern_engine *e, struct tern_sequence *s,
                                 const float *logits, tern_token *token)
{
    float *row = e->parts.masking.row;
    const bool early = tern_is_early(s);
    tern_status status = tern_draw(e, s, logits, early, token);
    for (uint32_t i = 0; !status && !read_token(e, s, *token); i++) {
        if (!i)
            memcpy(row, logits, e->model->program.n_vocab * sizeof *row);
        if (!i && s->thinking.state == TERN_THINKING_MAY)
            keep_to_tag(e, &s->thinking, row);
        if (i == MOST_TAKEN_BACK)
            return tern_fail(&s->failure, TERN_BAD_ARGUMENT, "grammar: %u tokens that complete "
                             "the trigger go on with what it refuses", (uint64_t)i);
        row[*token] = -INFINITY;
        status = tern_draw(e, s, row, early, token);
    }
    return status;
}

/* --- the mask --- */

/* A word of the mask at a time: its bits are tested in place, which compilers do with vectors. */
static void mask_word(float *row, const float *logits, uint32_t word)
{
    static const uint32_t bit[32] = {
        1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
        1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
        1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
        1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
    };
    for (uint32_t k = 0; k < 32; k++) {
        const float x = logits[k];
        row[k] = word & bit[k] ? x : -INFINITY;
    }
}

static const float *mask_row(struct tern_engine *e, const float *logits)
{
    const struct tern_masking *m = &e->parts.masking;
    const uint32_t n = e->model->program.n_vocab;
    const uint32_t n_both = n < m->masks.n_vocab ? n : m->masks.n_vocab;
    uint32_t i = 0;
    for (; n_both - i >= 32; i += 32)
        mask_word(m->row + i, logits + i, m->bits[i / 32]);
    for (; i < n; i++) {
        const bool in = i < n_both && m->bits[i / 32] >> i % 32 & 1;
        m->row[i] = in ? logits[i] : -INFINITY;
    }
    return m->row;
}

/* Takes out what a bias forbids, and answers whether anything is left. */
static bool forbid(struct tern_masking *m, const tern_sampling *how)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < how->n_biases; i++) {
        const uint32_t t = (uint32_t)how->biases[i].token;
        if (how->biases[i].bias == -INFINITY && t < m->masks.n_vocab)
            m->bits[t / 32] &= ~(1u << t % 32);
    }
    for (uint32_t i = 0; i < m->masks.n_words; i++)
        left |= m->bits[i];
    return left != 0;
}

/* Whether any token is let in; those that end a text are where the grammar may end. */
static bool fill(struct tern_engine *e, struct tern_constrain *c, bool may_end)
{
    struct tern_masking *m = &e->parts.masking;
    const uint32_t n_vocab = e->model->program.n_vocab;
    bool any = tern_masks_fill(&m->masks, c->state, m->bits);
    for (uint32_t i = 0; may_end && i < m->masks.n_words; i++) {
        m->bits[i] |= m->masks.ends[i];
        any |= m->masks.ends[i] != 0;
    }
    /* A tokenizer may have more tokens than the model has logits. */
    for (uint32_t i = n_vocab; i < m->masks.n_vocab; i++)
        m->bits[i / 32] &= ~(1u << i % 32);
    return any;
}

tern_status tern_constrain_choose(struct tern_engine *e, struct tern_sequence *s,
                                  const float *logits, tern_token *token, bool *ends)
{
    struct tern_constrain *c = &s->constrain;
    tern_status status;
    c->begins = false;
    if (c->waiting || !tern_thinking_is_over(&s->thinking)) {
        const bool thinks = s->thinking.state == TERN_THINKING_IN;
        status = choose_freely(e, s, logits, token);
        *ends = !status && tern_vocab_is_end(e->model->vocab, *token);
        /* What must be of the grammar is not over before it has begun. */
        if (*ends && thinks && !c->waiting && tern_thinking_force(&s->thinking)) {
            *token = tern_thinking_forced(&s->thinking);
            *ends = false;
        }
        if (status || !c->begins || c->waiting)
            return status;
    }
    const bool may_end = tern_grammar_may_end(c->state);
    bool early = tern_is_early(s), any = fill(e, c, may_end);
    if (any && early && !forbid(&e->parts.masking, &s->options.sampling)) {
        early = false;
        any = fill(e, c, may_end);
    }
    *token = -1;
    *ends = may_end;
    if (!any)
        return may_end ? TERN_OK
                       : tern_fail(&s->failure, TERN_BAD_ARGUMENT, "grammar: no token of the "
                                   "vocabulary can go on%s", c->state->overflow ?
                                   ": it is too deep, or there are too many ways" : "");
    status = tern_draw(e, s, mask_row(e, logits), early, token);
    if (status)
        return status;
    *ends = may_end && tern_vocab_is_end(e->model->vocab, *token);
    if (!*ends && !tern_grammar_accept(c->state, e->model, *token))
        return tern_fail(&s->failure, TERN_BAD_ARGUMENT, "grammar: token %i was let in and is "
                         "refused", (int64_t)*token);
    return TERN_OK;
}
