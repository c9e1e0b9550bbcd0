#include "platform/cpu/lower.h"

#include "quant/format.h"
#include "runtime/error.h"
#include "runtime/model.h"

#include <string.h>

static bool elementwise(const struct tern_op *op)
{
    return op->kind == TERN_OP_ADD || op->kind == TERN_OP_SILU_MUL ||
           op->kind == TERN_OP_GELU_MUL || op->kind == TERN_OP_SOFTCAP || op->kind == TERN_OP_SCALE;
}

/* Does any op after i read the slot before something else writes it whole? */
static bool read_later(const struct tern_program *p, uint32_t i, int16_t slot)
{
    for (i++; i < p->n_ops; i++) {
        const struct tern_op *op = &p->ops[i];
        if (op->a == slot || op->b == slot)
            return true;
        if (op->dst == slot)
            return false;
    }
    return false;
}

static uint32_t count_matmuls(const struct tern_program *p, uint32_t i)
{
    uint32_t n = 0;
    while (i + n < p->n_ops && p->ops[i + n].kind == TERN_OP_MATMUL &&
           p->ops[i + n].a == p->ops[i].a)
        n++;
    return n;
}

/* The norm at i can be part of the products behind it: they alone read it. */
static bool norm_fuses(const struct tern_program *p, uint32_t i)
{
    const struct tern_op *op = &p->ops[i];
    if (op->kind != TERN_OP_RMS_NORM || op->dst == op->a || i + 1 >= p->n_ops)
        return false;
    const uint32_t n = count_matmuls(p, i + 1);
    return n && p->ops[i + 1].a == op->dst && !read_later(p, i + n, op->dst);
}

static uint32_t products_of(const struct tern_phase *ph, const struct tern_program *p, int16_t slot,
                            uint32_t n_ops)
{
    uint32_t n = 0;
    for (uint32_t i = ph->n_norm; i < n_ops; i++)
        n += p->ops[ph->first + i].dst == slot;
    return n;
}

/* Elementwise ops are taken while all they read at a column is of that column: products of
 * this phase, or slots that it does not write. A slot that the phase's input is made of must
 * not be written either. */
static void take_elementwise(const struct tern_program *p, struct tern_phase *ph)
{
    const uint32_t base = ph->first + ph->n_norm;
    const uint32_t width = p->slots[p->ops[base].dst].width;
    for (uint32_t i = 0; i < ph->n_matmuls; i++)
        if (p->slots[p->ops[base + i].dst].width != width)
            return;
    const int16_t input = p->ops[base].a, source = ph->n_norm ? p->ops[ph->first].a : -1;
    while (ph->first + ph->n < p->n_ops) {
        const struct tern_op *op = &p->ops[ph->first + ph->n];
        if (!elementwise(op) || p->slots[op->dst].width != width || op->dst == input)
            return;
        const uint32_t from_a = products_of(ph, p, op->a, ph->n);
        const uint32_t from_b = op->b < 0 ? 0 : products_of(ph, p, op->b, ph->n);
        if (!from_a && !from_b)
            return;
        if (ph->n_matmuls > 1)
            ph->coupled = true;
        if (op->dst == source)
            ph->alone = false;
        ph->n++;
    }
}

static tern_status multiply_phase(const struct tern_model *m, bool exact, struct tern_phase *ph,
                                  tern_error *err)
{
    const struct tern_program *p = &m->program;
    ph->kind = TERN_PHASE_MULTIPLY;
    ph->n_norm = p->ops[ph->first].kind == TERN_OP_RMS_NORM;
    ph->n_matmuls = (uint16_t)count_matmuls(p, ph->first + ph->n_norm);
    ph->n = ph->n_norm + ph->n_matmuls;
    ph->alone = true;
    for (uint32_t i = ph->n_norm; i < ph->n; i++) {
        const struct tern_weight *w = &p->weights[p->ops[ph->first + i].weight];
        const struct tern_format *f = tern_format_of(m->tensors[w->tensor].type);
        if (!f)
            return tern_fail(err, TERN_UNSUPPORTED, "tensor %t: type %u has no kernel",
                             m->tensors[w->tensor].name, (uint64_t)m->tensors[w->tensor].type);
        if (f->codes && !exact)
            ph->needs_q = true;
        else
            ph->needs_x = true;
    }
    take_elementwise(p, ph);
    return TERN_OK;
}

static void rows_phase(const struct tern_program *p, struct tern_phase *ph)
{
    ph->kind = TERN_PHASE_ROWS;
    ph->n = 1; /* the first may be LOGIT_ROWS; a later one begins a phase of its own */
    while (ph->first + ph->n < p->n_ops) {
        const uint8_t kind = p->ops[ph->first + ph->n].kind;
        if (kind == TERN_OP_MATMUL || kind == TERN_OP_ATTENTION || kind == TERN_OP_LOGIT_ROWS ||
            norm_fuses(p, ph->first + ph->n))
            return;
        ph->n++;
    }
}

static tern_status next_phase(const struct tern_model *m, bool exact, struct tern_phase *ph,
                              tern_error *err)
{
    const struct tern_op *op = &m->program.ops[ph->first];
    if (op->kind == TERN_OP_LOGIT_ROWS)
        ph->on_logits = true;
    if (op->kind == TERN_OP_MATMUL || norm_fuses(&m->program, ph->first))
        return multiply_phase(m, exact, ph, err);
    if (op->kind == TERN_OP_ATTENTION) {
        ph->kind = TERN_PHASE_ATTEND;
        ph->n = 1;
    } else {
        rows_phase(&m->program, ph);
    }
    return TERN_OK;
}

/* --- where slots lie --- */

/* What a slot holds lives from the phase that writes it to the last one that reads it; then it may
 * be written anew, and others may lie there meanwhile. */
struct lives {
    bool stored[TERN_MAX_SLOTS], on_logits[TERN_MAX_SLOTS];
    bool outer[TERN_MAX_SLOTS]; /* in some phase it is more than a product of that phase alone */
    uint32_t written[TERN_MAX_SLOTS], last[TERN_MAX_SLOTS]; /* phases: of what it holds, touched */
    uint32_t beside[TERN_MAX_SLOTS]; /* a bit for each slot that holds something meanwhile */
};
_Static_assert(TERN_MAX_SLOTS <= 32, "a bit for each slot");

static void touch(struct lives *l, int16_t slot, uint32_t phase, bool on_logits, bool read)
{
    if (!l->stored[slot] || (!read && l->last[slot] != phase))
        l->written[slot] = phase;
    l->on_logits[slot] = on_logits && (!l->stored[slot] || l->on_logits[slot]);
    l->stored[slot] = true;
    l->last[slot] = phase;
    for (uint32_t o = 0; o < TERN_MAX_SLOTS; o++)
        if (l->stored[o] && l->last[o] >= l->written[slot]) {
            l->beside[slot] |= (uint32_t)1 << o;
            l->beside[o] |= (uint32_t)1 << slot;
        }
}

/* Is the slot a product of this phase that is read here, and nowhere else? */
static bool is_inner(const struct tern_program *p, const struct tern_phase *ph, int16_t slot)
{
    const uint32_t made = ph->n_norm + ph->n_matmuls;
    return ph->kind == TERN_PHASE_MULTIPLY && ph->n > made && slot != p->logits &&
           products_of(ph, p, slot, made) && slot != p->ops[ph->first].a &&
           !read_later(p, ph->first + ph->n - 1, slot);
}

static void touch_phase(const struct tern_program *p, const struct tern_phase *ph, uint32_t phase,
                        struct lives *lives)
{
    for (uint32_t i = 0; i < ph->n; i++) {
        const struct tern_op *op = &p->ops[ph->first + i];
        const bool normed = ph->kind == TERN_PHASE_MULTIPLY && ph->n_norm; /* into no slot */
        const bool product = i >= ph->n_norm && i < (uint32_t)ph->n_norm + ph->n_matmuls;
        const int16_t slots[] = {normed && product ? -1 : op->a, op->b,
                                 normed && i == 0 ? -1 : op->dst};
        for (int k = 0; k < 3; k++) {
            const bool gathers = k == 0 && op->kind == TERN_OP_LOGIT_ROWS;
            if (slots[k] < 0)
                continue;
            touch(lives, slots[k], phase, ph->on_logits && !gathers, k < 2);
            lives->outer[slots[k]] |= !is_inner(p, ph, slots[k]);
        }
    }
}

static bool overlap(const struct lives *l, uint32_t a, uint32_t b)
{
    return l->on_logits[a] == l->on_logits[b] && (l->beside[a] >> b & 1);
}

static void place_inner(const struct lives *lives, uint32_t s, uint32_t width,
                        struct tern_lowered *out)
{
    uint32_t at = 0;
    for (uint32_t o = 0; o < TERN_MAX_SLOTS; o++)
        if (out->slots[o].inner && (lives->beside[s] >> o & 1) && at <= out->slots[o].offset)
            at = out->slots[o].offset + 1;
    out->slots[s] = (struct tern_slot_place){.offset = at, .inner = true};
    out->n_inner = at + 1 > out->n_inner ? at + 1 : out->n_inner;
    out->widest_inner = width > out->widest_inner ? width : out->widest_inner;
}

/* Greedy by size: each slot at the lowest offset that is free during all its lives (the
 * planner of TensorFlow Lite Micro). Lives are counted in phases, because inside one the
 * threads are at different ops. */
static void place_slots(const struct tern_program *p, const struct lives *lives,
                        struct tern_lowered *out)
{
    bool placed[TERN_MAX_SLOTS] = {false};
    memset(out->slots, 0, sizeof out->slots);
    out->row_floats = out->logit_floats = out->n_inner = out->widest_inner = 0;
    for (uint32_t round = 0; round < p->n_slots; round++) {
        uint32_t s = UINT32_MAX;
        for (uint32_t i = 0; i < p->n_slots; i++)
            if (!placed[i] && (s == UINT32_MAX || p->slots[i].width > p->slots[s].width))
                s = i;
        placed[s] = true;
        if (!lives->stored[s])
            continue;
        const uint32_t stride = (p->slots[s].width + 15) & ~15u;
        if (!lives->outer[s]) {
            place_inner(lives, s, stride, out);
            continue;
        }
        uint32_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t o = 0; o < p->n_slots; o++) {
                const struct tern_slot_place *q = &out->slots[o];
                if (o != s && placed[o] && overlap(lives, s, o) &&
                    at < q->offset + q->stride && q->offset < at + stride) {
                    at = q->offset + q->stride;
                    moved = true;
                }
            }
        }
        out->slots[s] = (struct tern_slot_place){at, stride, lives->on_logits[s], false};
        uint32_t *area = lives->on_logits[s] ? &out->logit_floats : &out->row_floats;
        *area = at + stride > *area ? at + stride : *area;
    }
}

tern_status tern_lower(const struct tern_model *model, bool exact, struct tern_lowered *out,
                       tern_error *err)
{
    const struct tern_program *p = &model->program;
    struct lives lives = {0};
    out->n_phases = out->widest_in = 0;
    out->norm_floats = false;
    bool on_logits = false;
    for (uint32_t i = 0; i < p->n_ops;) {
        struct tern_phase ph = {.first = i, .on_logits = on_logits};
        const tern_status status = next_phase(model, exact, &ph, err);
        if (status != TERN_OK)
            return status;
        on_logits = ph.on_logits;
        touch_phase(p, &ph, out->n_phases, &lives);
        if (ph.kind == TERN_PHASE_MULTIPLY) {
            const uint32_t in = p->slots[p->ops[i + ph.n_norm].a].width;
            out->widest_in = in > out->widest_in ? in : out->widest_in;
            out->norm_floats |= ph.needs_x && ph.n_norm;
        }
        if (out->phases)
            out->phases[out->n_phases] = ph;
        out->n_phases++;
        i += ph.n;
    }
    /* What the engine reads after the last phase. */
    if (p->logits >= 0 && out->n_phases)
        touch(&lives, p->logits, out->n_phases - 1, on_logits, true);
    place_slots(p, &lives, out);
    return TERN_OK;
}
