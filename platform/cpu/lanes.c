/* lanes.c: whose rows are whose.
 *
 * The later a token, the more keys it sees. Were a lane neighbouring rows, threads with early ones
 * would end attention first and then help in lanes of later ones, and queries, keys and results
 * would go from core to core. So a lane takes rows from both ends of what is left, as machines that
 * share a long context do (Llama 3, arXiv:2407.21783, section 3.3.2): of one prompt, each lane's
 * rows see as many keys. Rows lie in the order of their lanes then, and spans are cut. */
#include "platform/cpu/cpu.h"

#include <string.h>

/* Rows first .. last - 1 of the batch become the order's next ones. */
static void append(struct tern_cpu_order *o, const struct tern_batch *from, uint32_t first,
                   uint32_t last)
{
    struct tern_batch *to = &o->batch;
    const uint32_t at = to->n_rows, n = last - first;
    memcpy(o->tokens + at, from->tokens + first, n * sizeof *o->tokens);
    memcpy(o->positions + at, from->positions + first, n * sizeof *o->positions);
    to->n_rows += n;
    for (uint32_t i = 0; i < from->n_spans; i++) {
        const struct tern_span *s = &from->spans[i];
        const uint32_t begin = s->first_row > first ? s->first_row : first;
        const uint32_t after = s->first_row + s->n_rows, end = after < last ? after : last;
        if (begin < end)
            o->spans[to->n_spans++] = (struct tern_span){at + begin - first, end - begin,
                                                         s->position + begin - s->first_row,
                                                         s->slot};
    }
    for (uint32_t i = 0; i < from->n_logits; i++)
        if (from->logit_rows[i] >= first && from->logit_rows[i] < last)
            o->logit_rows[i] = at + from->logit_rows[i] - first;
}

void tern_cpu_order_rows(struct tern_cpu *c, const struct tern_batch *batch)
{
    const uint32_t n = batch->n_rows / c->lane_rows;
    c->lanes = n < 1 ? 1 : n < c->n_lanes ? n : c->n_lanes;
    for (uint32_t i = 0; i <= c->lanes; i++)
        c->lane_first[i] = batch->n_rows * i / c->lanes;
    c->batch = batch;
    if (c->lanes == 1)
        return;
    struct tern_cpu_order *o = &c->order;
    o->batch = *batch;
    o->batch.n_rows = o->batch.n_spans = 0;
    o->batch.tokens = o->tokens;
    o->batch.positions = o->positions;
    o->batch.spans = o->spans;
    o->batch.logit_rows = o->logit_rows;
    for (uint32_t i = 0, low = 0, high = batch->n_rows; i < c->lanes; i++) {
        const uint32_t rows = c->lane_first[i + 1] - c->lane_first[i], early = rows / 2;
        append(o, batch, low, low + early);
        append(o, batch, high - (rows - early), high);
        low += early;
        high -= rows - early;
    }
    c->batch = &o->batch;
}
