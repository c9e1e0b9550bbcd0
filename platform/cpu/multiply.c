/* multiply.c: products of one input with one or more matrices, and what is fused to them.
 *
 * The input is prepared once (norm, records), by every thread for itself when rows are few.
 * Items are ranges of panels; a matrix's columns of the result belong to whoever computed
 * them, so bias and elementwise ops follow at once, in the same thread, from its cache.
 */
#include "platform/cpu/cpu.h"

#include "runtime/model.h"

#include <string.h>

static const struct tern_op *op_at(const struct tern_cpu *c, const struct tern_phase *ph,
                                   uint32_t i)
{
    return &c->program->ops[ph->first + i];
}

static uint32_t width_in(const struct tern_cpu *c, const struct tern_phase *ph)
{
    return c->program->slots[op_at(c, ph, ph->n_norm)->a].width;
}

/* The planes from a lane's first record on: those of its rows are closed up, and lanes as far apart
 * as the widest input has them, since the next input's records come to lie here too. */
static struct tern_records records_of(const struct tern_cpu *c, const struct tern_lane *lane)
{
    const size_t blocks = (size_t)lane->first * ((c->low.widest_in + 31) / 32);
    const struct tern_records *r = &c->records;
    return (struct tern_records){r->q + 32 * blocks, r->d + blocks, r->sum + 2 * blocks};
}

/* Row `row` of the input: through the norm into `normed`, and to records, the at-th ones of r. */
static void prepare_row(const struct tern_cpu *c, const struct tern_phase *ph, uint32_t row,
                        float *normed, const struct tern_records *r, uint32_t at)
{
    const uint32_t n = width_in(c, ph), blocks = (n + 31) / 32;
    const float *x = tern_cpu_row(c, ph->on_logits, op_at(c, ph, 0)->a, row);
    if (ph->n_norm) {
        const struct tern_op *norm = op_at(c, ph, 0);
        c->kernels->rms_norm(normed, x, (const float *)c->weights[norm->weight], n, norm->x);
        x = normed;
    }
    if (ph->needs_q)
        c->kernels->quantize(r->q + (size_t)at * blocks * 32, r->d + (size_t)at * blocks,
                             r->sum + (size_t)at * blocks * 2, x, n);
}

/* Of all rows, by all threads, of which each takes some. */
static void prepare_together(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread)
{
    const uint32_t n_rows = tern_cpu_phase_rows(c, ph), n_lanes = tern_cpu_lanes(c, ph);
    uint32_t row, last;
    for (uint32_t k = 0; k < n_lanes; k++) {
        const struct tern_lane lane = tern_cpu_lane(c, ph, thread, k, n_lanes, n_rows);
        if (!tern_cpu_joins(c, lane.counters, lane.n, k))
            continue;
        const struct tern_records r = records_of(c, &lane);
        while (tern_cpu_take_rows(c, &lane, n_lanes, &row, &last))
            for (; row < last; row++)
                prepare_row(c, ph, row,
                            ph->needs_x ? c->normed + (size_t)row * c->low.widest_in
                                        : c->threads[thread].norm,
                            &r, row - lane.first);
    }
    tern_cpu_timed_work(c, thread, ph->first, TERN_WORK_ROWS);
    tern_cpu_barrier(c, thread);
    tern_cpu_timed_work(c, thread, ph->first, TERN_WORK_MATMUL);
}

/* Few rows are prepared by each thread for itself. */
static bool prepares_own(const struct tern_cpu *c, const struct tern_phase *ph)
{
    return ph->alone && tern_cpu_phase_rows(c, ph) <= TERN_OWN_ROWS;
}

static void prepare(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread)
{
    const struct tern_cpu_thread *t = &c->threads[thread];
    if (!prepares_own(c, ph)) {
        if (ph->n_norm || ph->needs_q)
            prepare_together(c, ph, thread);
        return;
    }
    for (uint32_t row = 0; row < tern_cpu_phase_rows(c, ph); row++)
        prepare_row(c, ph, row, t->norm + (size_t)row * c->low.widest_in, &t->own, row);
}

/* Some rows of a phase, and their prepared input; how many panels are made of them before what is
 * fused to products takes these. */
struct some {
    struct tern_acts acts;
    uint32_t row, most;
};

/* Columns of those rows, and how far one row's lie from the next one's. */
struct columns {
    float *at;
    size_t stride;
};

/* Of a slot, from this panel on: the one that pieces begin with. */
static struct columns columns_of(const struct tern_cpu *c, const struct tern_phase *ph,
                                 const struct tern_cpu_thread *t, int16_t slot,
                                 const struct some *s, uint32_t panel)
{
    const struct tern_slot_place *place = &c->low.slots[slot];
    if (place->inner) {
        const uint32_t all = c->program->slots[slot].width / TERN_PANEL_ROWS + 1;
        return (struct columns){t->pieces + place->offset * c->piece_floats,
                                ((s->most < all ? s->most : all) + 1) * (size_t)TERN_PANEL_ROWS};
    }
    return (struct columns){tern_cpu_row(c, ph->on_logits, slot, s->row) +
                                (size_t)panel * TERN_PANEL_ROWS,
                            place->stride};
}

/* Panels whose results are still in a second cache when what is fused to products reads them. The
 * columns of a piece are one panel fewer than a row of it has room for: rows a power of two apart
 * would lie in the same sets of a cache. */
static uint32_t panels_in_cache(const struct tern_cpu *c, const struct tern_phase *ph,
                                uint32_t n_rows)
{
    const uint32_t side_by_side = ph->coupled ? ph->n_matmuls : 1;
    uint32_t n = 2 * TERN_PIECE_FLOATS / (TERN_PANEL_ROWS * n_rows * side_by_side);
    const uint32_t in_piece = (uint32_t)(c->piece_floats / (TERN_PANEL_ROWS * n_rows)) - 1;
    if (ph->n > (uint32_t)ph->n_norm + ph->n_matmuls && n > in_piece)
        n = in_piece;
    return n < 2 ? 2 : n / 2 * 2;
}

static struct some lane_rows(const struct tern_cpu *c, const struct tern_phase *ph,
                             const struct tern_cpu_thread *t, const struct tern_lane *lane)
{
    const bool own = prepares_own(c, ph);
    const struct tern_records r = own ? t->own : records_of(c, lane);
    const int16_t slot = op_at(c, ph, 0)->a;
    struct some s = {{.n_tokens = lane->n,
                      .x = tern_cpu_row(c, ph->on_logits, slot, lane->first),
                      .x_stride = c->low.slots[slot].stride,
                      .q = r.q,
                      .d = r.d,
                      .sum = r.sum,
                      .n_blocks = (width_in(c, ph) + 31) / 32},
                     lane->first,
                     panels_in_cache(c, ph, lane->n)};
    if (ph->n_norm) {
        s.acts.x_stride = c->low.widest_in;
        s.acts.x = own ? t->norm : c->normed ? c->normed + lane->first * s.acts.x_stride : NULL;
    }
    return s;
}

/* Panels first .. last - 1 of the i-th product, with its bias. */
static void product(const struct tern_cpu *c, const struct tern_phase *ph, uint32_t i,
                    const struct some *s, struct tern_cpu_thread *t, uint32_t first, uint32_t last)
{
    const struct tern_op *op = op_at(c, ph, ph->n_norm + i);
    const struct tern_weight *w = &c->program->weights[op->weight];
    const uint32_t type = c->model->tensors[w->tensor].type;
    const size_t panel_bytes = (size_t)tern_panel_bytes(type, w->n_cols);
    const struct columns dst = columns_of(c, ph, t, op->dst, s, first);
    const struct tern_matmul m = {
        .format = tern_format_of(type),
        .panels = c->weights[op->weight] + first * panel_bytes,
        .panel_bytes = panel_bytes,
        .n_cols = w->n_cols,
        .acts = &s->acts,
        .dst = dst.at,
        .dst_stride = dst.stride,
        .scratch = t->matmul,
        .again = t->multiplied == tern_format_of(type),
    };
    t->multiplied = m.format;
    tern_kernels_matmul(c->kernels, type, c->limits.exact)(&m, 0, last - first);
    if (op->bias < 0)
        return;
    const float *bias = (const float *)c->weights[op->bias] + first * TERN_PANEL_ROWS;
    for (size_t row = 0; row < s->acts.n_tokens; row++) {
        float *d = m.dst + row * m.dst_stride;
        c->kernels->add(d, d, bias, (size_t)(last - first) * TERN_PANEL_ROWS);
    }
}

/* One elementwise op on n columns of some rows. Of a row these are few, and the next row's lie far
 * from them, so that no hardware fetches them ahead. */
static void elementwise_op(const struct tern_cpu *c, const struct tern_op *op, size_t n_rows,
                           struct columns dst, struct columns a, struct columns b, size_t n)
{
    enum { AHEAD = 4 };
    for (size_t row = 0; row < n_rows; row++) {
        if (row + AHEAD < n_rows) {
            tern_cpu_ask(a.at + (row + AHEAD) * a.stride, n * sizeof *a.at);
            if (b.at)
                tern_cpu_ask(b.at + (row + AHEAD) * b.stride, n * sizeof *b.at);
        }
        tern_cpu_elementwise(c, op, dst.at + row * dst.stride, a.at + row * a.stride,
                             b.at ? b.at + row * b.stride : NULL, n);
    }
}

static uint32_t panels_of(const struct tern_cpu *c, const struct tern_phase *ph, uint32_t i)
{
    return (c->program->weights[op_at(c, ph, ph->n_norm + i)->weight].n_rows + TERN_PANEL_ROWS -
            1) /
           TERN_PANEL_ROWS;
}

static void elementwise_ops(const struct tern_cpu *c, const struct tern_phase *ph,
                            const struct some *s, const struct tern_cpu_thread *t, uint32_t first,
                            uint32_t last)
{
    for (uint32_t i = ph->n_norm + ph->n_matmuls; i < ph->n; i++) {
        const struct tern_op *op = op_at(c, ph, i);
        const size_t width = c->program->slots[op->dst].width, at = (size_t)first * TERN_PANEL_ROWS;
        const size_t end =
            (size_t)last * TERN_PANEL_ROWS < width ? (size_t)last * TERN_PANEL_ROWS : width;
        if (at < end)
            elementwise_op(c, op, s->acts.n_tokens, columns_of(c, ph, t, op->dst, s, first),
                           columns_of(c, ph, t, op->a, s, first),
                           op->b < 0 ? (struct columns){NULL, 0}
                                     : columns_of(c, ph, t, op->b, s, first),
                           end - at);
    }
}

/* Panels first .. last - 1 of all products side by side, and what is fused to them. */
static void panels(const struct tern_cpu *c, const struct tern_phase *ph, const struct some *s,
                   struct tern_cpu_thread *t, uint32_t first, uint32_t last)
{
    uint32_t start = 0;
    for (uint32_t i = 0; i < ph->n_matmuls; i++) {
        const uint32_t n = panels_of(c, ph, i);
        const uint32_t from = first > start ? first - start : 0,
                       to = last - start < n ? last - start : n;
        if (last > start && from < to)
            product(c, ph, i, s, t, from, to);
        if (!ph->coupled)
            start += n;
    }
    elementwise_ops(c, ph, s, t, first, last);
}

void tern_cpu_multiply(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread)
{
    struct tern_cpu_thread *t = &c->threads[thread];
    prepare(c, ph, thread);
    uint32_t total = 0, first, last;
    for (uint32_t i = 0; i < ph->n_matmuls; i++)
        total = ph->coupled ? panels_of(c, ph, 0) : total + panels_of(c, ph, i);
    const uint32_t n_rows = tern_cpu_phase_rows(c, ph), n_lanes = tern_cpu_lanes(c, ph);
    const uint32_t parts = tern_cpu_parts(c, n_lanes);
    /* Of many rows, kernels multiply two panels together. */
    const uint32_t beside = n_rows > TERN_OWN_ROWS ? 2 : 1, n = (total + beside - 1) / beside;
    const uint32_t least = n_rows < 64 * n_lanes ? 1 + n / (c->limits.n_threads * 24) : 1;
    for (uint32_t k = 0; k < n_lanes; k++) {
        const struct tern_lane lane = tern_cpu_lane(c, ph, thread, k, n_lanes, n_rows);
        if (!tern_cpu_joins(c, lane.counters + 1, n, k))
            continue;
        const struct some s = lane_rows(c, ph, t, &lane);
        t->multiplied = NULL;
        while (tern_cpu_take_part(lane.counters + 1, n, parts, least, &first, &last)) {
            const uint32_t end = beside * last < total ? beside * last : total;
            for (uint32_t p = beside * first; p < end; p += s.most)
                panels(c, ph, &s, t, p, end - p < s.most ? end : p + s.most);
        }
    }
}
