#include "runtime/arena.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/tokenizer.h"

#include <string.h>

/* The end of a text is at most four bytes, three each once they are U+FFFD, and what the stop
 * strings held; both pushes want room for all that could be held. */
static size_t end_bytes(const tern_limits *limits)
{
    return 16 + 2 * (size_t)limits->n_stop_bytes;
}

void tern_events_lay_out(struct tern_arena *state, struct tern_arena *sampler,
                         struct tern_events *ev, size_t n_embd, const tern_limits *limits)
{
    /* A step reports each row of logits once, and each sequence's end once. */
    const size_t n_rows = limits->n_logit_rows, n_seqs = limits->n_seqs;
    const size_t n_text = n_rows * (TERN_DETOK_CAP + limits->n_stop_bytes) +
                          n_seqs * end_bytes(limits);
    ev->list = tern_carve(state, n_rows + n_seqs, sizeof *ev->list, 64);
    ev->text = tern_carve(state, n_text, 1, 64);
    ev->piece = tern_carve(state, TERN_DETOK_CAP, 1, 64);
    ev->logprobs = tern_carve(sampler, n_rows * limits->n_logprobs, sizeof *ev->logprobs, 64);
    ev->hidden = tern_carve(sampler, limits->hidden ? n_rows * n_embd : 0, sizeof *ev->hidden, 64);
    tern_events_clear(ev);
}

void tern_events_clear(struct tern_events *ev)
{
    ev->n = ev->n_taken = ev->n_logprobs = 0;
    ev->n_text = 0;
}

static bool is_open(const struct tern_engine *e, tern_seq seq)
{
    tern_seq_info info;
    return tern_seq_describe(e, seq, &info) == TERN_OK;
}

bool tern_events_pending(const struct tern_engine *e)
{
    const struct tern_events *ev = &e->parts.events;
    for (uint32_t i = ev->n_taken; i < ev->n; i++)
        if (is_open(e, ev->list[i].seq))
            return true;
    return false;
}

size_t tern_events_take(struct tern_engine *e, tern_event *out, size_t cap)
{
    struct tern_events *ev = &e->parts.events;
    size_t n = 0;
    while (n < cap && ev->n_taken < ev->n) {
        const tern_event *event = &ev->list[ev->n_taken++];
        if (is_open(e, event->seq))
            out[n++] = *event;
    }
    return n;
}

static tern_event *new_event(struct tern_engine *e, const struct tern_sequence *s,
                             tern_event_kind kind)
{
    struct tern_events *ev = &e->parts.events;
    tern_event *event = &ev->list[ev->n++];
    *event = (tern_event){.kind = kind, .seq = atomic_load(&s->handle), .token = -1};
    event->position = s->n_tokens;
    event->text.data = ev->text + ev->n_text;
    return event;
}

/* --- log-probabilities --- */

static tern_status add_logprobs(struct tern_engine *e, struct tern_sequence *s,
                                const float *logits, uint32_t k, tern_event *event)
{
    struct tern_events *ev = &e->parts.events;
    const uint32_t n_vocab = e->model->program.n_vocab;
    event->n_logprobs = k < n_vocab ? k : n_vocab;
    event->logprobs = ev->logprobs + ev->n_logprobs;
    ev->n_logprobs += event->n_logprobs;
    return tern_logprobs(&e->parts.sampler, logits, event->n_logprobs,
                         ev->logprobs + (ev->n_logprobs - event->n_logprobs), event->token,
                         &event->logprob, &s->failure);
}

void tern_report_prompt(struct tern_engine *e, struct tern_sequence *s, const float *logits)
{
    tern_event *event = new_event(e, s, TERN_EVENT_PROMPT);
    event->position = s->report;
    event->token = s->tokens[s->report];
    const int32_t k = s->options.n_prompt_logprobs;
    if (add_logprobs(e, s, logits, k > 0 ? (uint32_t)k : 0, event)) {
        e->parts.events.n--;
        tern_finish(e, s, TERN_STOP_ERROR, -1);
        return;
    }
    s->report++;
}

void tern_report_hidden(struct tern_engine *e, struct tern_sequence *s, uint32_t position,
                        uint32_t i)
{
    float *to = e->parts.events.hidden + (size_t)i * e->model->program.n_embd;
    if (e->backend->hidden(e->state, i, to, &s->failure)) {
        tern_finish(e, s, TERN_STOP_ERROR, -1);
        return;
    }
    tern_event *event = new_event(e, s, TERN_EVENT_HIDDEN);
    event->position = position;
    event->token = s->tokens[position];
    event->hidden = to;
    s->report = position + 1;
}

/* --- text --- */

/* Pushes bytes through the stop strings to the end of an event's text; of reasoning, past them:
 * what it repeats of the question would else end the reply before there is an answer. */
static bool add_text(struct tern_engine *e, struct tern_sequence *s, size_t n, bool thinks,
                     tern_event *event)
{
    struct tern_events *ev = &e->parts.events;
    char *to = ev->text + ev->n_text;
    bool stopped = false;
    const bool quiet = thinks || s->n_generated <= s->options.min_tokens;
    size_t out = quiet ? tern_stops_end(&s->stops, to)
                       : tern_stops_push(&s->stops, ev->piece, n, to, &stopped);
    if (quiet) {
        memcpy(to + out, ev->piece, n);
        out += n;
    }
    ev->n_text += out;
    event->text.size += out;
    return stopped;
}

void tern_finish(struct tern_engine *e, struct tern_sequence *s, tern_stop stop, tern_token token)
{
    struct tern_events *ev = &e->parts.events;
    tern_event *event = new_event(e, s, TERN_EVENT_DONE);
    event->token = token;
    event->stop = stop;
    if (stop == TERN_STOP_ERROR)
        event->error = s->failure.text;
    if (stop != TERN_STOP_STRING &&
        !add_text(e, s, tern_detok_end(&s->detok, ev->piece), tern_thinking_is_on(&s->thinking),
                  event)) {
        const size_t out = tern_stops_end(&s->stops, ev->text + ev->n_text);
        ev->n_text += out;
        event->text.size += out;
    }
    tern_scheduler_remove(e, s);
}

static void read_thinking(const struct tern_engine *e, struct tern_sequence *s, tern_token token)
{
    char bytes[TERN_GRAMMAR_TOKEN_BYTES];
    size_t n = 0;
    if (!tern_token_bytes(e->model, token, true, bytes, sizeof bytes, &n))
        (void)tern_thinking_read(&s->thinking, bytes, n);
}

bool tern_is_early(const struct tern_sequence *s)
{
    return s->n_generated < s->options.min_tokens;
}

tern_status tern_draw(struct tern_engine *e, struct tern_sequence *s, const float *logits,
                      bool early, tern_token *token)
{
    tern_sampling how = s->options.sampling;
    if (!early)
        how.n_biases -= s->options.n_early;
    return tern_sampler_choose(&e->parts.sampler, &how, logits, s->tokens, s->n_tokens,
                               s->n_tokens, token, &s->failure);
}

static tern_status choose(struct tern_engine *e, struct tern_sequence *s, const float *logits,
                          tern_token *token, bool *ends)
{
    const struct tern_vocab *vocab = e->model->vocab;
    const tern_token forced = tern_thinking_forced(&s->thinking);
    if (forced >= 0) {
        *token = forced;
        return TERN_OK;
    }
    if (s->constrain.grammar)
        return tern_constrain_choose(e, s, logits, token, ends);
    const tern_status status = tern_draw(e, s, logits, tern_is_early(s), token);
    *ends = !status && vocab && !s->options.ignore_eos && tern_vocab_is_end(vocab, *token);
    if (!status && !tern_thinking_is_over(&s->thinking))
        read_thinking(e, s, *token);
    return status;
}

static bool is_shown(const struct tern_sequence *s, tern_token token)
{
    bool shown = s->options.special;
    for (uint32_t i = 0; i < s->n_shown; i++)
        shown |= s->shown[i] == token;
    return shown;
}

void tern_generate(struct tern_engine *e, struct tern_sequence *s, const float *logits)
{
    const struct tern_vocab *vocab = e->model->vocab;
    const tern_seq_options *o = &s->options;
    tern_token token = -1;
    bool ends = false, thinks = tern_thinking_is_on(&s->thinking);
    if (choose(e, s, logits, &token, &ends)) {
        tern_finish(e, s, TERN_STOP_ERROR, -1);
        return;
    }
    if (ends) {
        tern_finish(e, s, TERN_STOP_EOS, token);
        return;
    }
    tern_event *event = new_event(e, s, TERN_EVENT_TOKEN);
    event->token = token;
    if (o->n_logprobs && add_logprobs(e, s, logits, o->n_logprobs, event)) {
        e->parts.events.n--;
        tern_finish(e, s, TERN_STOP_ERROR, -1);
        return;
    }
    s->tokens[s->n_tokens++] = token;
    s->n_generated++;
    size_t n = 0;
    if (vocab)
        n = tern_detok_push(e->model, &s->detok, token, is_shown(s, token), e->parts.events.piece);
    thinks |= tern_thinking_is_on(&s->thinking); /* with both of its tags */
    if (add_text(e, s, n, thinks, event))
        tern_finish(e, s, TERN_STOP_STRING, -1);
    else if (s->n_generated == o->max_tokens)
        tern_finish(e, s, TERN_STOP_LENGTH, -1);
    else if (s->n_tokens == e->limits.n_ctx)
        tern_finish(e, s, TERN_STOP_CONTEXT, -1);
}
