/* rows.c: phases whose items are rows: embedding, norms of heads, rotation, storing keys and
 * values, and whatever is not part of a product. */
#include "platform/cpu/cpu.h"
#include "platform/cpu/kv_store.h"

#include "runtime/model.h"
#include "runtime/rope.h"

#include <string.h>

/* Cos and sin for the row's position, once for each table; all later phases read them. */
static void fill_angles(const struct tern_cpu *c, uint32_t row)
{
    for (uint32_t i = 0; i < c->program->n_ropes; i++) {
        const struct tern_rope *rope = &c->program->ropes[i];
        tern_rope_angles(rope, c->inv_freq[i], c->batch->positions[row],
                         c->angles[i] + (size_t)row * rope->n_rot);
    }
}

static void embed(const struct tern_cpu *c, const struct tern_op *op, uint32_t row, uint8_t *bytes,
                  float *dst)
{
    const struct tern_weight *w = &c->program->weights[op->weight];
    const uint32_t type = c->model->tensors[w->tensor].type;
    const uint32_t token = (uint32_t)c->batch->tokens[row];
    const uint8_t *panel = c->weights[op->weight] +
                           token / TERN_PANEL_ROWS * (size_t)tern_panel_bytes(type, w->n_cols);
    tern_unpack_row(type, panel, token % TERN_PANEL_ROWS, w->n_cols, bytes);
    tern_decode_row(type, bytes, dst, w->n_cols);
    if (op->x != 1.0f)
        c->kernels->scale(dst, dst, op->x, w->n_cols);
}

/* Keys or values of a head as they are stored in this type: rotated, if it is quantised. */
static const float *turn(const struct tern_cpu *c, enum tern_type type, const float *x, size_t dim,
                         float *turned)
{
    if (!tern_kv_is_rotated(type))
        return x;
    memcpy(turned, x, dim * sizeof *x);
    c->kernels->hadamard(turned, dim);
    return turned;
}

static void store_kv(const struct tern_cpu *c, const struct tern_op *op, uint32_t row,
                     const float *k, const float *v, float *turned)
{
    const struct tern_kv_layer *layer = &c->program->kv_layers[op->index];
    const struct tern_kv_group *g = &c->program->kv_groups[layer->group];
    const struct tern_cpu_pool *pool = &c->pools[layer->group];
    const struct tern_span *span = &c->batch->spans[c->row_span[row]];
    const uint32_t position = c->batch->positions[row], token = position % TERN_BLOCK_TOKENS;
    const uint32_t block =
        c->batch
            ->tables[layer->group * c->batch->n_slots + span->slot][position / TERN_BLOCK_TOKENS];
    const uint32_t at = layer->index_in_group;
    for (uint32_t h = 0; h < g->n_kv_heads; h++) {
        tern_kv_store_k(c->kernels, c->k_type, tern_cpu_keys(pool, at, h, block), token,
                        turn(c, c->k_type, k + (size_t)h * g->k_dim, g->k_dim, turned), g->k_dim);
        tern_kv_store_v(c->kernels, c->v_type, tern_cpu_values(pool, at, h, block), token,
                        turn(c, c->v_type, v + (size_t)h * g->v_dim, g->v_dim, turned), g->v_dim);
    }
}

static void rotate(const struct tern_cpu *c, const struct tern_op *op, uint32_t row, float *dst,
                   const float *a)
{
    const struct tern_rope *rope = &c->program->ropes[op->index];
    const float *cs = c->angles[op->index] + (size_t)row * rope->n_rot;
    if (dst != a)
        memcpy(dst, a, (size_t)op->n_heads * op->head_dim * sizeof *dst);
    for (uint32_t h = 0; h < op->n_heads; h++)
        (rope->style == TERN_ROPE_NEOX ? c->kernels->rope_neox : c->kernels->rope_norm)(
            dst + (size_t)h * op->head_dim, cs, rope->n_rot);
}

static void head_norm(const struct tern_cpu *c, const struct tern_op *op, float *dst,
                      const float *a)
{
    for (uint32_t h = 0; h < op->n_heads; h++)
        c->kernels->rms_norm(dst + (size_t)h * op->head_dim, a + (size_t)h * op->head_dim,
                             (const float *)c->weights[op->weight], op->head_dim, op->x);
}

static float *row_of(const struct tern_cpu *c, bool on_logits, int16_t slot, uint32_t row)
{
    return slot < 0 ? NULL : tern_cpu_row(c, on_logits, slot, row);
}

void tern_cpu_elementwise(const struct tern_cpu *c, const struct tern_op *op, float *dst,
                          const float *a, const float *b, size_t n)
{
    const struct tern_kernels *k = c->kernels;
    switch (op->kind) {
    case TERN_OP_ADD:
        k->add(dst, a, b, n);
        break;
    case TERN_OP_SILU_MUL:
        k->silu_mul(dst, a, b, n);
        break;
    case TERN_OP_GELU_MUL:
        k->gelu_mul(dst, a, b, n);
        break;
    case TERN_OP_SOFTCAP:
        k->softcap(dst, a, op->x, n);
        break;
    default:
        k->scale(dst, a, op->x, n);
        break;
    }
}

static void run_op(const struct tern_cpu *c, bool on_logits, const struct tern_op *op, uint32_t row,
                   const struct tern_cpu_thread *t)
{
    const struct tern_kernels *k = c->kernels;
    const bool gathers = op->kind == TERN_OP_LOGIT_ROWS;
    const uint32_t from = gathers ? c->batch->logit_rows[row] : row;
    float *dst = row_of(c, on_logits, op->dst, row);
    const float *a = row_of(c, on_logits && !gathers, op->a, from);
    const float *b = row_of(c, on_logits, op->b, row);
    const size_t n = op->dst < 0 ? 0 : c->program->slots[op->dst].width;
    switch ((enum tern_op_kind)op->kind) {
    case TERN_OP_EMBED:
        embed(c, op, row, t->row, dst);
        break;
    case TERN_OP_RMS_NORM:
        k->rms_norm(dst, a, (const float *)c->weights[op->weight], n, op->x);
        break;
    case TERN_OP_HEAD_NORM:
        head_norm(c, op, dst, a);
        break;
    case TERN_OP_ROPE:
        rotate(c, op, row, dst, a);
        break;
    case TERN_OP_KV_STORE:
        store_kv(c, op, row, a, b, t->turned);
        break;
    case TERN_OP_LOGIT_ROWS:
        memcpy(dst, a, n * sizeof *dst);
        break;
    case TERN_OP_ADD:
    case TERN_OP_SILU_MUL:
    case TERN_OP_GELU_MUL:
    case TERN_OP_SOFTCAP:
    case TERN_OP_SCALE:
        tern_cpu_elementwise(c, op, dst, a, b, n);
        break;
    case TERN_OP_MATMUL:
    case TERN_OP_ATTENTION:
    case TERN_N_OPS:
        break; /* phases of their own */
    }
}

static void row_ops(const struct tern_cpu *c, const struct tern_phase *ph, uint32_t row,
                    const struct tern_cpu_thread *t)
{
    if (ph->first == 0)
        fill_angles(c, row);
    for (uint32_t i = 0; i < ph->n; i++)
        run_op(c, ph->on_logits, &c->program->ops[ph->first + i], row, t);
}

void tern_cpu_rows(struct tern_cpu *c, const struct tern_phase *ph, uint32_t thread)
{
    const uint32_t n_rows = tern_cpu_phase_rows(c, ph), n_lanes = tern_cpu_lanes(c, ph);
    uint32_t row, last;
    for (uint32_t k = 0; k < n_lanes; k++) {
        const struct tern_lane lane = tern_cpu_lane(c, ph, thread, k, n_lanes, n_rows);
        if (!tern_cpu_joins(c, lane.counters, lane.n, k))
            continue;
        while (tern_cpu_take_rows(c, &lane, n_lanes, &row, &last))
            for (; row < last; row++)
                row_ops(c, ph, row, &c->threads[thread]);
    }
}
