/* thinking.c: reasoning as the engine sees it: its tags in the text, its tokens counted.
 *
 * Tags are looked for in the bytes of tokens, so it is the same whether a tag is a token of its
 * own or several. When the budget is spent, tokens that spell the closing tag are generated
 * instead of sampled ones; those that come after are sampled as ever, and since a random number
 * depends on its position alone, nothing else changes. A tag that has just begun is let run on.
 */
#include "runtime/thinking.h"

#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/text.h"
#include "runtime/vocab.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static tern_token token_of(const struct tern_engine *e, tern_text tag)
{
    const uint32_t id = e->model->vocab ? tern_vocab_find(e->model->vocab, tag) : TERN_VOCAB_NONE;
    return id < e->model->program.n_vocab ? (tern_token)id : -1;
}

tern_status tern_thinking_check(const struct tern_engine *e, const tern_seq_options *o,
                                tern_error *err)
{
    const tern_text open = o->think_open, close = o->think_close;
    const size_t most = open.size > close.size ? open.size : close.size;
    const uint32_t n_vocab = e->model->program.n_vocab;
    if (most > TERN_MAX_TAG)
        return tern_fail(err, TERN_BAD_ARGUMENT, "thinking: a tag of %u bytes, at most %u",
                         (uint64_t)most, (uint64_t)TERN_MAX_TAG);
    if (o->n_think_end > TERN_MAX_FORCED)
        return tern_fail(err, TERN_BAD_ARGUMENT, "thinking: %u tokens to end it, at most %u",
                         (uint64_t)o->n_think_end, (uint64_t)TERN_MAX_FORCED);
    if ((open.size && !open.data) || (close.size && !close.data) ||
        (o->n_think_end && !o->think_end))
        return tern_fail(err, TERN_BAD_ARGUMENT, "thinking: a list or tag is NULL");
    for (uint32_t i = 0; i < o->n_think_end; i++)
        if (o->think_end[i] < 0 || (uint32_t)o->think_end[i] >= n_vocab)
            return tern_fail(err, TERN_BAD_ARGUMENT, "thinking: token %i to end it, vocabulary %u",
                             (int64_t)o->think_end[i], (uint64_t)n_vocab);
    if (!o->think_limited)
        return TERN_OK;
    if (!close.size)
        return tern_fail(err, TERN_BAD_ARGUMENT, "thinking: limited, and it has no closing tag");
    if (!o->n_think_end && token_of(e, close) < 0)
        return tern_fail(err, TERN_BAD_ARGUMENT, "thinking: no token is the tag '%t', and none "
                         "are given to end it", close);
    return TERN_OK;
}

void tern_thinking_set(const struct tern_engine *e, struct tern_thinking *t,
                       const tern_seq_options *o)
{
    *t = (struct tern_thinking){.n_open = (uint8_t)o->think_open.size,
                                .n_close = (uint8_t)o->think_close.size,
                                .begins_in = o->thinks,
                                .limited = o->think_limited,
                                .budget = o->think_tokens};
    if (!t->n_close)
        return;
    if (t->n_open)
        memcpy(t->open, o->think_open.data, t->n_open);
    memcpy(t->close, o->think_close.data, t->n_close);
    t->n_end = (uint8_t)o->n_think_end;
    if (t->n_end)
        memcpy(t->end, o->think_end, t->n_end * sizeof *t->end);
    else if (token_of(e, o->think_close) >= 0)
        t->end[t->n_end++] = token_of(e, o->think_close);
    tern_thinking_start(t);
}

void tern_thinking_start(struct tern_thinking *t)
{
    t->state = TERN_THINKING_OVER;
    t->at = t->n_forced = 0;
    t->n = 0;
    t->forcing = false;
    if (t->n_close && t->begins_in)
        t->state = TERN_THINKING_IN;
    else if (t->n_close && t->n_open)
        t->state = TERN_THINKING_MAY;
}

bool tern_thinking_force(struct tern_thinking *t)
{
    t->forcing |= t->n_end > 0;
    return t->forcing;
}

tern_token tern_thinking_forced(struct tern_thinking *t)
{
    const bool spent = t->state == TERN_THINKING_IN && t->limited && t->n >= t->budget &&
                       (t->at == 0 || t->n - t->budget >= t->n_close);
    if (spent)
        (void)tern_thinking_force(t);
    if (!t->forcing)
        return -1;
    const tern_token token = t->end[t->n_forced++];
    /* Tokens that do not spell the tag end it all the same. */
    if (t->n_forced == t->n_end) {
        t->forcing = false;
        t->state = TERN_THINKING_OVER;
    }
    return token;
}

/* The opening tag stands at the start alone. */
static bool may_begin(struct tern_thinking *t, char c)
{
    if (t->at == 0 && is_space(c))
        return true;
    if (c != t->open[t->at]) {
        t->state = TERN_THINKING_OVER;
        t->at = 0;
        return false;
    }
    if (++t->at == t->n_open) {
        t->at = 0;
        t->state = TERN_THINKING_IN;
    }
    return true;
}

size_t tern_thinking_read(struct tern_thinking *t, const char *bytes, size_t n)
{
    const bool was_in = t->state == TERN_THINKING_IN;
    const tern_text close = {t->close, t->n_close};
    size_t i = 0;
    for (; i < n && t->state != TERN_THINKING_OVER; i++) {
        if (t->state == TERN_THINKING_MAY) {
            if (!may_begin(t, bytes[i]))
                break;
            continue;
        }
        t->at = (uint8_t)tern_text_overlap(close, t->at, bytes[i]);
        if (t->at == t->n_close)
            t->state = TERN_THINKING_OVER;
    }
    t->n += was_in;
    return i;
}

bool tern_thinking_is_on(const struct tern_thinking *t)
{
    return t->state == TERN_THINKING_IN;
}

bool tern_thinking_is_over(const struct tern_thinking *t)
{
    return t->state == TERN_THINKING_OVER;
}
