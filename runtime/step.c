/* step.c: one forward pass: the batch, and what becomes of its logits.
 *
 * tern_step lets the scheduler fill the batch; tern_decode fills it with the caller's rows.
 * Both advance a sequence only after the backend has answered, so a pass that fails leaves
 * every sequence as it was.
 */
#include "runtime/engine.h"
#include "runtime/error.h"

#include <string.h>

/* --- the batch --- */

void tern_batch_begin(struct tern_engine *e)
{
    e->batch.n_rows = e->batch.n_spans = e->batch.n_logits = 0;
    e->batch.hidden_only = false;
    e->n_hand_logits = 0;
    e->n_timings = 0;
}

void tern_batch_add(struct tern_engine *e, struct tern_sequence *s, uint32_t n_rows,
                    uint32_t from, uint32_t to)
{
    struct tern_parts *p = &e->parts;
    const uint32_t first = e->batch.n_rows, at = s->n_computed;
    p->spans[e->batch.n_spans++] = (struct tern_span){
        .first_row = first, .n_rows = n_rows, .position = at, .slot = tern_slot_of(e, s)};
    memcpy(p->tokens + first, s->tokens + at, n_rows * sizeof *p->tokens);
    for (uint32_t i = 0; i < n_rows; i++) {
        p->positions[first + i] = at + i;
        if (at + i >= from && at + i < to)
            p->logit_rows[e->batch.n_logits++] = first + i;
    }
    e->batch.n_rows += n_rows;
}

tern_status tern_batch_run(struct tern_engine *e)
{
    tern_status status = e->backend->submit(e->state, &e->batch, &e->error);
    if (!status)
        status = e->backend->wait(e->state, &e->logits, &e->logit_stride, &e->error);
    e->lost |= status == TERN_DEVICE_LOST;
    return status;
}

void tern_batch_settle(struct tern_engine *e, struct tern_sequence *s, uint32_t n_rows)
{
    struct tern_kv *kv = &e->parts.kv;
    const uint32_t slot = tern_slot_of(e, s);
    s->n_computed += n_rows;
    e->parts.scheduler.n_rows += n_rows;
    if (!s->options.no_kv_sharing)
        tern_kv_index(kv, slot, s->tokens, s->n_computed);
    tern_kv_slide(kv, slot, s->n_computed);
}

static const float *logits_row(const struct tern_engine *e, uint32_t i)
{
    return e->logits + i * e->logit_stride;
}

tern_status tern_engine_ready(struct tern_engine *e)
{
    if (e->lost)
        return tern_fail(&e->error, TERN_DEVICE_LOST, "engine: the device is lost, close it");
    if (!e->load.whole)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "engine: %u of %u bytes are loaded",
                         e->load.done, e->load.total);
    return TERN_OK;
}

/* --- tern_step --- */

static void end_cancelled(struct tern_engine *e)
{
    const struct tern_scheduler *sch = &e->parts.scheduler;
    for (uint32_t i = 0; i < sch->n_running;) {
        struct tern_sequence *s = &e->parts.seqs[sch->order[i]];
        if (atomic_load(&s->cancelled) == atomic_load(&s->handle))
            tern_finish(e, s, TERN_STOP_CANCELLED, -1);
        else
            i++;
    }
}

/* The logits of one sequence's rows, in order of position: first those that tell of the prompt,
 * then the one that continues it. `row` is the first of its rows with logits. */
static uint32_t use_logits(struct tern_engine *e, struct tern_sequence *s, uint32_t at,
                           uint32_t n_rows, uint32_t row)
{
    const uint32_t from = tern_logits_from(s), to = tern_logits_to(s), end = s->n_tokens;
    for (uint32_t i = at; i < at + n_rows; i++) {
        if (i < from || i >= to)
            continue;
        const float *logits = logits_row(e, row++);
        if (!s->running)
            continue;
        if (s->options.hidden)
            tern_report_hidden(e, s, i, row - 1);
        else if (i + 1 < end)
            tern_report_prompt(e, s, logits);
        else
            tern_generate(e, s, logits);
    }
    if (s->running && s->options.prefill_only && s->n_computed == s->n_tokens)
        tern_finish(e, s, TERN_STOP_LENGTH, -1);
    return row;
}

static tern_status step(struct tern_engine *e)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    tern_events_clear(&e->parts.events);
    tern_batch_begin(e);
    end_cancelled(e);
    tern_status status = tern_schedule(e);
    if (status || !sch->n_turns)
        return status;
    e->batch.hidden_only = e->limits.hidden;
    for (uint32_t i = 0; i < sch->n_turns; i++) {
        struct tern_sequence *s = &e->parts.seqs[sch->turns[i].slot];
        e->batch.hidden_only &= s->options.hidden != TERN_HIDDEN_NONE;
        tern_batch_add(e, s, sch->turns[i].n_rows, tern_logits_from(s), tern_logits_to(s));
    }
    status = tern_batch_run(e);
    const uint64_t sampling = tern_timing_begin(e);
    uint32_t row = 0;
    for (uint32_t i = 0; !status && i < sch->n_turns; i++) {
        struct tern_sequence *s = &e->parts.seqs[sch->turns[i].slot];
        const uint32_t at = s->n_computed, n_rows = sch->turns[i].n_rows;
        tern_batch_settle(e, s, n_rows);
        row = use_logits(e, s, at, n_rows, row);
    }
    tern_timing_end(e, sampling);
    return status;
}

tern_status tern_step(tern_engine *e, tern_event *events, size_t cap, size_t *n)
{
    if (!e)
        return TERN_BAD_ARGUMENT;
    if (!n || (cap && !events))
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "step: an argument is NULL");
    *n = 0;
    tern_status status = tern_engine_ready(e);
    if (status)
        return status;
    if (!tern_events_pending(e)) {
        if (!e->parts.scheduler.n_running)
            return TERN_AGAIN;
        const uint32_t saved = tern_float_enter();
        status = step(e);
        tern_float_leave(saved);
    }
    if (!status)
        *n = tern_events_take(e, events, cap);
    return status;
}

void tern_step_rows(tern_engine *e, uint32_t rows)
{
    if (e)
        e->step_rows = rows;
}

/* --- the layer below --- */

static uint32_t run_length(const tern_row *rows, size_t n_rows, size_t i)
{
    size_t end = i;
    while (end < n_rows && rows[end].seq == rows[i].seq)
        end++;
    return (uint32_t)(end - i);
}

static tern_status check_rows(struct tern_engine *e, const tern_row *rows, size_t n_rows)
{
    tern_error *err = &e->error;
    const uint32_t n_vocab = e->model->program.n_vocab;
    size_t n_logits = 0;
    if (!rows || !n_rows || n_rows > e->limits.chunk)
        return tern_fail(err, TERN_BAD_ARGUMENT, "decode: %u rows, from 1 to %u", (uint64_t)n_rows,
                         (uint64_t)e->limits.chunk);
    for (size_t i = 0; i < n_rows; i++) {
        const struct tern_sequence *s = tern_sequence_of(e, rows[i].seq);
        const bool first = !i || rows[i].seq != rows[i - 1].seq;
        if (!s)
            return TERN_BAD_ARGUMENT;
        if (s->running)
            return tern_fail(err, TERN_BAD_ARGUMENT, "row %u: its sequence is running",
                             (uint64_t)i);
        if (first && s->pinned)
            return tern_fail(err, TERN_BAD_ARGUMENT, "row %u: its sequence's rows stand apart",
                             (uint64_t)i);
        e->parts.seqs[tern_slot_of(e, s)].pinned = true;
        if (rows[i].token < 0 || (uint32_t)rows[i].token >= n_vocab)
            return tern_fail(err, TERN_BAD_ARGUMENT, "row %u: token %i, vocabulary %u",
                             (uint64_t)i, (int64_t)rows[i].token, (uint64_t)n_vocab);
        const uint32_t n = first ? run_length(rows, n_rows, i) : 0;
        if (n > e->limits.n_ctx - s->n_tokens)
            return tern_fail(err, TERN_BAD_ARGUMENT, "decode: %u rows after %u tokens, context %u",
                             (uint64_t)n, (uint64_t)s->n_tokens, (uint64_t)e->limits.n_ctx);
        n_logits += rows[i].want_logits;
    }
    if (n_logits > e->limits.n_logit_rows)
        return tern_fail(err, TERN_BAD_ARGUMENT, "decode: %u rows with logits, at most %u",
                         (uint64_t)n_logits, (uint64_t)e->limits.n_logit_rows);
    return TERN_OK;
}

/* Computes what a sequence holds but the cache does not (it was never computed, or was taken
 * away since). */
static tern_status catch_up(struct tern_engine *e, struct tern_sequence *s)
{
    if (!s->n_computed && !s->options.no_kv_sharing)
        s->n_computed = tern_kv_match(&e->parts.kv, tern_slot_of(e, s), s->tokens, s->n_tokens);
    while (s->n_computed < s->n_tokens) {
        uint32_t n = s->n_tokens - s->n_computed;
        tern_status status = tern_schedule_blocks(
            e, s, 0, n < e->limits.chunk ? n : e->limits.chunk, &n);
        if (!status && !n)
            return TERN_AGAIN;
        tern_batch_begin(e);
        if (!status) {
            tern_batch_add(e, s, n, 0, 0);
            status = tern_batch_run(e);
        }
        if (status)
            return status;
        tern_batch_settle(e, s, n);
    }
    return TERN_OK;
}

/* Blocks for all rows, before any token is appended. */
static tern_status prepare(struct tern_engine *e, const tern_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i += run_length(rows, n_rows, i)) {
        struct tern_sequence *s = tern_sequence_of(e, rows[i].seq);
        const uint32_t n = run_length(rows, n_rows, i);
        uint32_t got = 0;
        tern_status status = catch_up(e, s);
        if (!status)
            status = tern_schedule_blocks(e, s, 0, n, &got);
        if (status)
            return status;
        if (got < n)
            return TERN_AGAIN;
    }
    return TERN_OK;
}

static tern_status decode(struct tern_engine *e, const tern_row *rows, size_t n_rows)
{
    tern_status status = prepare(e, rows, n_rows);
    if (status)
        return status;
    tern_batch_begin(e);
    for (size_t i = 0; i < n_rows; i += run_length(rows, n_rows, i)) {
        struct tern_sequence *s = tern_sequence_of(e, rows[i].seq);
        const uint32_t n = run_length(rows, n_rows, i), first = e->batch.n_rows;
        for (uint32_t k = 0; k < n; k++)
            s->tokens[s->n_tokens + k] = rows[i + k].token;
        tern_batch_add(e, s, n, 0, 0);
        for (uint32_t k = 0; k < n; k++)
            if (rows[i + k].want_logits)
                e->parts.logit_rows[e->batch.n_logits++] = first + k;
    }
    status = tern_batch_run(e);
    for (size_t i = 0; !status && i < n_rows; i += run_length(rows, n_rows, i)) {
        struct tern_sequence *s = tern_sequence_of(e, rows[i].seq);
        const uint32_t n = run_length(rows, n_rows, i);
        s->n_tokens += n;
        s->used = ++e->parts.scheduler.clock;
        tern_batch_settle(e, s, n);
    }
    if (!status)
        e->n_hand_logits = e->batch.n_logits;
    return status;
}

tern_status tern_decode(tern_engine *e, const tern_row *rows, size_t n_rows)
{
    if (!e)
        return TERN_BAD_ARGUMENT;
    tern_status status = tern_engine_ready(e);
    if (!status)
        status = check_rows(e, rows, n_rows);
    if (!status) {
        const uint32_t saved = tern_float_enter();
        status = decode(e, rows, n_rows);
        tern_float_leave(saved);
    }
    for (uint32_t i = 0; i < e->limits.n_seqs; i++)
        e->parts.seqs[i].pinned = false;
    return status;
}

const float *tern_logits(const tern_engine *e, size_t i)
{
    return e && i < e->n_hand_logits ? logits_row(e, (uint32_t)i) : NULL;
}

tern_status tern_sample(tern_engine *e, tern_seq seq, const float *logits, tern_token *out)
{
    struct tern_sequence *s = e ? tern_sequence_of(e, seq) : NULL;
    if (!s)
        return TERN_BAD_ARGUMENT;
    if (!logits || !out)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "sample: an argument is NULL");
    const uint32_t saved = tern_float_enter();
    const uint64_t start = tern_timing_begin(e);
    const tern_status status =
        tern_sampler_choose(&e->parts.sampler, &s->options.sampling, logits, s->tokens,
                            s->n_tokens, s->n_tokens, out, &e->error);
    tern_timing_end(e, start);
    tern_float_leave(saved);
    return status;
}
