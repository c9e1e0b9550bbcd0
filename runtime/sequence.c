#include "runtime/arena.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/vocab.h"

#include <string.h>

/* A handle is a slot in its low bits and a generation, never 0, above. */
enum { SLOT_BITS = 10, GENERATIONS = 1 << (32 - SLOT_BITS) };

void tern_sequences_lay_out(struct tern_arena *state, struct tern_arena *sampler,
                            struct tern_sequence **seqs, const tern_limits *limits)
{
    struct tern_sequence *list = tern_carve(state, limits->n_seqs, sizeof *list, 64);
    for (uint32_t i = 0; i < limits->n_seqs; i++) {
        struct tern_sequence spare;
        struct tern_sequence *s = list ? &list[i] : &spare;
        s->tokens = tern_carve(state, limits->n_ctx, sizeof *s->tokens, 64);
        tern_stops_lay_out(state, &s->stops, limits->n_stop_bytes);
        if (limits->grammars)
            s->constrain.state = tern_carve(state, 1, sizeof *s->constrain.state, 64);
        s->biases = tern_carve(sampler, TERN_MAX_BIASES, sizeof *s->biases, 64);
    }
    *seqs = list;
}

uint32_t tern_slot_of(const struct tern_engine *e, const struct tern_sequence *s)
{
    return (uint32_t)(s - e->parts.seqs);
}

static struct tern_sequence *find(const struct tern_engine *e, tern_seq seq)
{
    const uint32_t slot = seq & ((1u << SLOT_BITS) - 1);
    if (!e || !seq || slot >= e->limits.n_seqs)
        return NULL;
    struct tern_sequence *s = &e->parts.seqs[slot];
    return atomic_load(&s->handle) == seq ? s : NULL;
}

struct tern_sequence *tern_sequence_of(struct tern_engine *e, tern_seq seq)
{
    struct tern_sequence *s = find(e, seq);
    if (!s && e)
        (void)tern_fail(&e->error, TERN_BAD_ARGUMENT, "sequence %x: not open", (uint64_t)seq);
    return s;
}

uint32_t tern_logits_to(const struct tern_sequence *s)
{
    return s->options.prefill_only && !s->options.hidden ? s->n_tokens - 1 : s->n_tokens;
}

uint32_t tern_logits_from(const struct tern_sequence *s)
{
    if (s->options.hidden)
        return s->report < s->n_tokens ? s->report : s->n_tokens;
    if (s->report < s->report_end)
        return s->report - 1;
    return s->options.prefill_only ? s->n_tokens : s->n_tokens - 1;
}

/* --- opening --- */

static tern_status check_options(struct tern_engine *e, const tern_seq_options *o)
{
    const int64_t most = e->limits.n_logprobs;
    if ((int64_t)o->n_logprobs > most)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "n_logprobs: %u, at most %i of the limits",
                         (uint64_t)o->n_logprobs, most);
    if (o->n_prompt_logprobs < -1 || o->n_prompt_logprobs > most)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT,
                         "n_prompt_logprobs: %i, from -1 to %i of the limits",
                         (int64_t)o->n_prompt_logprobs, most);
    if (o->n_stops > TERN_MAX_STOPS)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "stop strings: %u, at most %u",
                         (uint64_t)o->n_stops, (uint64_t)TERN_MAX_STOPS);
    if ((o->n_stops && !o->stops) || (o->sampling.n_biases && !o->sampling.biases))
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "options: a list is NULL");
    if (o->n_shown > TERN_MAX_SHOWN || (o->n_shown && !o->shown))
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "shown: %u tokens, at most %u, in a list",
                         (uint64_t)o->n_shown, (uint64_t)TERN_MAX_SHOWN);
    if ((uint32_t)o->hidden > TERN_HIDDEN_ALL ||
        (o->hidden && (!e->limits.hidden || o->n_prompt_logprobs)))
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "hidden: %u, not in the limits, or beside "
                         "log-probabilities of the prompt", (uint64_t)o->hidden);
    if (o->n_early > o->sampling.n_biases)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "n_early: %u, at most the %u biases",
                         (uint64_t)o->n_early, (uint64_t)o->sampling.n_biases);
    tern_status status = tern_constrain_check(e, o, &e->error);
    if (!status)
        status = tern_thinking_check(e, o, &e->error);
    return status ? status
                  : tern_sampling_check(&o->sampling, e->model->program.n_vocab, &e->error);
}

static struct tern_sequence *free_slot(struct tern_engine *e)
{
    for (uint32_t i = 0; i < e->limits.n_seqs; i++)
        if (!atomic_load(&e->parts.seqs[i].handle))
            return &e->parts.seqs[i];
    return NULL;
}

static tern_seq occupy(struct tern_engine *e, struct tern_sequence *s)
{
    s->generation = s->generation % (GENERATIONS - 1) + 1;
    const tern_seq handle = s->generation << SLOT_BITS | tern_slot_of(e, s);
    atomic_store(&s->handle, handle);
    return handle;
}

/* Fields of a slot back to those of a sequence without tokens; what was laid out stays. */
static void reset(struct tern_sequence *s)
{
    s->running = s->admitted = s->preempted = s->pinned = false;
    s->age = s->used = 0;
    s->n_tokens = s->n_computed = s->n_cached = s->n_generated = 0;
    s->report = s->report_end = 0;
    s->detok = (tern_detok){0};
    s->failure.status = TERN_OK;
}

static void keep_options(struct tern_sequence *s, const tern_seq_options *o)
{
    s->options = *o;
    s->options.stops = s->options.shown = NULL;
    s->options.think_end = NULL;
    s->options.grammar_trigger.data = NULL;
    s->options.think_open.data = s->options.think_close.data = NULL;
    if (o->sampling.n_biases)
        memmove(s->biases, o->sampling.biases, o->sampling.n_biases * sizeof *s->biases);
    s->options.sampling.biases = s->biases;
    s->options.prefill_only |= o->hidden != TERN_HIDDEN_NONE;
}

static void keep_shown(const struct tern_engine *e, struct tern_sequence *s,
                       const tern_seq_options *o)
{
    const struct tern_vocab *vocab = e->model->vocab;
    s->n_shown = 0;
    for (uint32_t i = 0; vocab && i < o->n_shown; i++) {
        const uint32_t id = tern_vocab_find(vocab, o->shown[i]);
        if (id != TERN_VOCAB_NONE)
            s->shown[s->n_shown++] = (tern_token)id;
    }
}

/* Options that were checked; on an error a sequence keeps its old ones. */
static tern_status take_options(struct tern_engine *e, struct tern_sequence *s,
                                const tern_seq_options *o)
{
    const tern_status status = tern_stops_set(&s->stops, o->stops, o->n_stops, &e->error);
    if (status)
        return status;
    keep_options(s, o);
    keep_shown(e, s, o);
    tern_thinking_set(e, &s->thinking, o);
    tern_constrain_set(e, &s->constrain, o);
    return TERN_OK;
}

tern_status tern_seq_open(tern_engine *e, const tern_seq_options *options, tern_seq *out)
{
    if (!e)
        return TERN_BAD_ARGUMENT;
    if (!options || !out)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "open: an argument is NULL");
    *out = 0;
    tern_status status = check_options(e, options);
    if (status)
        return status;
    struct tern_sequence *s = free_slot(e);
    if (!s)
        return TERN_AGAIN;
    status = take_options(e, s, options);
    if (status)
        return status;
    reset(s);
    *out = occupy(e, s);
    return TERN_OK;
}

tern_status tern_seq_set_options(tern_engine *e, tern_seq seq, const tern_seq_options *options)
{
    struct tern_sequence *s = tern_sequence_of(e, seq);
    if (!s)
        return TERN_BAD_ARGUMENT;
    if (!options)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "options: an argument is NULL");
    if (s->running)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "options: the sequence runs");
    const tern_status status = check_options(e, options);
    return status ? status : take_options(e, s, options);
}

tern_status tern_seq_fork(tern_engine *e, tern_seq seq, uint64_t stream, tern_seq *out)
{
    const struct tern_sequence *from = tern_sequence_of(e, seq);
    if (!from)
        return TERN_BAD_ARGUMENT;
    if (!out)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "fork: an argument is NULL");
    *out = 0;
    struct tern_sequence *to = free_slot(e);
    if (!to)
        return TERN_AGAIN;
    reset(to);
    keep_options(to, &from->options);
    to->options.sampling.stream = stream;
    tern_stops_copy(&to->stops, &from->stops);
    tern_constrain_copy(&to->constrain, &from->constrain);
    to->thinking = from->thinking;
    memcpy(to->shown, from->shown, sizeof to->shown);
    to->n_shown = from->n_shown;
    to->detok = from->detok;
    memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    to->n_tokens = from->n_tokens;
    to->n_computed = to->n_cached = from->n_computed;
    to->n_generated = from->n_generated;
    to->report = from->report;
    to->report_end = from->report_end;
    to->preempted = from->preempted;
    to->used = from->used;
    tern_kv_fork(&e->parts.kv, tern_slot_of(e, from), tern_slot_of(e, to));
    *out = occupy(e, to);
    if (from->running) {
        to->admitted = from->admitted;
        tern_scheduler_add(e, to);
    }
    return TERN_OK;
}

/* --- tokens in and out --- */

static tern_status check_feed(struct tern_engine *e, const struct tern_sequence *s,
                              const tern_token *tokens, size_t n)
{
    if (n && !tokens)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "feed: an argument is NULL");
    if (s->running && s->n_generated)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "feed: the sequence is generating");
    if (!n && !s->n_tokens)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "feed: 0 tokens, at least 1");
    const uint32_t room = e->limits.n_ctx - (s->options.prefill_only ? 0 : 1);
    if (s->n_tokens > room || n > room - s->n_tokens)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT,
                         "prompt: %u tokens after %u held, at most %u in a context of %u",
                         (uint64_t)n, (uint64_t)s->n_tokens, (uint64_t)room,
                         (uint64_t)e->limits.n_ctx);
    const uint32_t n_vocab = e->model->program.n_vocab;
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= n_vocab)
            return tern_fail(&e->error, TERN_BAD_ARGUMENT, "token %i at %u, vocabulary %u",
                             (int64_t)tokens[i], (uint64_t)i, (uint64_t)n_vocab);
    return TERN_OK;
}

/* The last token's logits, or those before the first reported one, are needed: if their row
 * was computed before, it is computed again (with the same bits). */
static void keep_computed(struct tern_engine *e, struct tern_sequence *s, uint32_t n_keep)
{
    struct tern_kv *kv = &e->parts.kv;
    const uint32_t slot = tern_slot_of(e, s);
    if (s->n_computed > n_keep)
        s->n_computed = n_keep;
    tern_kv_trim(kv, slot, s->n_computed);
    if (!tern_kv_sees(kv, slot, s->n_computed)) {
        tern_kv_trim(kv, slot, 0);
        s->n_computed = 0;
    }
    if (s->n_cached > s->n_computed)
        s->n_cached = s->n_computed;
}

/* Whether a word came before, so that no space is taken away from what is generated. */
static bool has_text(const struct tern_engine *e, const struct tern_sequence *s)
{
    tern_piece piece;
    for (uint32_t i = 0; i < s->n_tokens; i++)
        if (!tern_token_piece(e->model, s->tokens[i], &piece) &&
            piece.kind != TERN_TOKEN_CONTROL && piece.kind != TERN_TOKEN_UNKNOWN)
            return true;
    return false;
}

tern_status tern_seq_feed(tern_engine *e, tern_seq seq, const tern_token *tokens,
                          size_t n_tokens)
{
    struct tern_sequence *s = tern_sequence_of(e, seq);
    if (!s)
        return TERN_BAD_ARGUMENT;
    const tern_status status = check_feed(e, s, tokens, n_tokens);
    if (status)
        return status;
    const uint32_t held = s->n_tokens;
    if (n_tokens)
        memcpy(s->tokens + held, tokens, n_tokens * sizeof *tokens);
    s->n_tokens += (uint32_t)n_tokens;
    if (s->options.n_prompt_logprobs) {
        if (!s->running)
            s->report = held ? held : 1;
        s->report_end = s->n_tokens;
    }
    if (s->options.hidden == TERN_HIDDEN_LAST)
        s->report = s->n_tokens - 1;
    else if (s->options.hidden && !s->running)
        s->report = held;
    keep_computed(e, s, tern_logits_from(s));
    if (s->running)
        return TERN_OK;
    s->n_generated = 0;
    s->preempted = false;
    s->failure.status = TERN_OK;
    s->detok = (tern_detok){.started = has_text(e, s)};
    s->stops.at = s->stops.n_held = 0;
    tern_constrain_start(&s->constrain);
    tern_thinking_start(&s->thinking);
    atomic_store(&s->cancelled, 0);
    tern_scheduler_add(e, s);
    return TERN_OK;
}

tern_status tern_seq_trim(tern_engine *e, tern_seq seq, uint32_t n_keep)
{
    struct tern_sequence *s = tern_sequence_of(e, seq);
    if (!s)
        return TERN_BAD_ARGUMENT;
    if (n_keep > s->n_tokens)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "trim: to %u tokens of %u",
                         (uint64_t)n_keep, (uint64_t)s->n_tokens);
    if (s->running)
        tern_scheduler_remove(e, s);
    s->n_tokens = n_keep;
    s->report = s->report_end = 0;
    keep_computed(e, s, n_keep);
    return TERN_OK;
}

void tern_seq_close(tern_engine *e, tern_seq seq)
{
    struct tern_sequence *s = find(e, seq);
    if (!s)
        return;
    if (s->running)
        tern_scheduler_remove(e, s);
    tern_kv_trim(&e->parts.kv, tern_slot_of(e, s), 0);
    atomic_store(&s->handle, 0);
}

/* The flag names the handle it is meant for, so one that comes late ends nobody else; and it
 * replaces only the flag it saw, so it cannot undo a newer one. */
void tern_seq_cancel(tern_engine *e, tern_seq seq)
{
    struct tern_sequence *s = find(e, seq);
    if (!s)
        return;
    uint32_t seen = atomic_load(&s->cancelled);
    while (seen != seq && atomic_load(&s->handle) == seq &&
           !atomic_compare_exchange_weak(&s->cancelled, &seen, seq))
        ;
}

tern_status tern_seq_describe(const tern_engine *e, tern_seq seq, tern_seq_info *out)
{
    const struct tern_sequence *s = find(e, seq);
    if (!s || !out)
        return TERN_BAD_ARGUMENT;
    *out = (tern_seq_info){.n_tokens = s->n_tokens,
                           .n_computed = s->n_computed,
                           .n_cached = s->n_cached,
                           .n_generated = s->n_generated,
                           .n_thought = s->thinking.n,
                           .running = s->running};
    return TERN_OK;
}

bool tern_block_at(const tern_engine *e, uint32_t group, uint32_t i, tern_block_use *use,
                   uint32_t *window)
{
    if (!e || group >= e->parts.kv.n_groups || i >= e->parts.kv.pools[group].n_blocks)
        return false;
    const struct tern_kv_pool *pool = &e->parts.kv.pools[group];
    const struct tern_kv_block *b = &pool->blocks[i];
    *use = b->n_refs > 1   ? TERN_BLOCK_SHARED
           : b->n_refs     ? TERN_BLOCK_USED
           : b->node != TERN_NO_NODE ? TERN_BLOCK_KEPT : TERN_BLOCK_FREE;
    *window = pool->window;
    return true;
}
