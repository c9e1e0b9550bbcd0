/* program_print.c: an op as a line that reads like the recipe that emitted it. */
#include "runtime/program.h"

#include "quant/format.h"
#include "runtime/model.h"
#include "runtime/text.h"

static void write_slot(struct tern_writer *w, const struct tern_program *p, int16_t slot)
{
    tern_write(w, "%s", slot < 0 ? "-" : p->slots[slot].name);
}

/* "blk.0.attn_q.weight Q4_1 576x576" */
static void write_weight(struct tern_writer *w, const struct tern_model *m, int32_t weight)
{
    const struct tern_weight *v = &m->program.weights[weight];
    const struct tern_tensor *t = &m->tensors[v->tensor];
    tern_write(w, "%t %s %u", t->name, tern_format_of(t->type)->name, (uint64_t)v->n_cols);
    if (v->matrix)
        tern_write(w, "x%u", (uint64_t)v->n_rows);
}

static void write_heads(struct tern_writer *w, const struct tern_op *op)
{
    tern_write(w, "%u heads of %u", (uint64_t)op->n_heads, (uint64_t)op->head_dim);
}

static void write_rope(struct tern_writer *w, const struct tern_program *p,
                       const struct tern_op *op)
{
    const struct tern_rope *r = &p->ropes[op->index];
    tern_write(w, ", %u of ", (uint64_t)r->n_rot);
    write_heads(w, op);
    tern_write(w, ", %s, base %f", r->style == TERN_ROPE_NORM ? "pairs" : "halves",
               (double)r->base);
    if (r->freq_scale != 1)
        tern_write(w, ", %s by %f", r->ext_factor != 0 ? "yarn" : "linear",
                   (double)(1 / r->freq_scale));
    if (r->factors >= 0)
        tern_write(w, ", with factors");
}

static void write_attention(struct tern_writer *w, const struct tern_program *p,
                            const struct tern_op *op)
{
    const struct tern_kv_group *g = &p->kv_groups[p->kv_layers[op->index].group];
    tern_write(w, ", kv %u, ", (uint64_t)op->index);
    write_heads(w, op);
    tern_write(w, " over %u, scale %f", (uint64_t)g->n_kv_heads, (double)op->x);
    if (op->y > 0)
        tern_write(w, ", cap %f", (double)op->y);
    if (g->window)
        tern_write(w, ", window %u", (uint64_t)g->window);
}

static void write_details(struct tern_writer *w, const struct tern_model *m,
                          const struct tern_op *op)
{
    switch (op->kind) {
    case TERN_OP_EMBED:
        tern_write(w, "token, ");
        write_weight(w, m, op->weight);
        if (op->x != 1)
            tern_write(w, ", times %f", (double)op->x);
        break;
    case TERN_OP_HEAD_NORM:
        tern_write(w, ", ");
        write_heads(w, op);
        /* fall through */
    case TERN_OP_RMS_NORM:
        tern_write(w, ", ");
        write_weight(w, m, op->weight);
        tern_write(w, ", eps %f", (double)op->x);
        break;
    case TERN_OP_MATMUL:
        tern_write(w, ", ");
        write_weight(w, m, op->weight);
        if (op->bias >= 0) {
            tern_write(w, ", plus ");
            write_weight(w, m, op->bias);
        }
        break;
    case TERN_OP_ROPE: write_rope(w, &m->program, op); break;
    case TERN_OP_ATTENTION: write_attention(w, &m->program, op); break;
    case TERN_OP_KV_STORE: tern_write(w, ", kv %u", (uint64_t)op->index); break;
    case TERN_OP_SOFTCAP: tern_write(w, ", cap %f", (double)op->x); break;
    case TERN_OP_SCALE: tern_write(w, ", times %f", (double)op->x); break;
    default: break;
    }
}

void tern_program_print(const struct tern_model *m, uint32_t i, char *text, size_t cap, size_t *n)
{
    static const char *const names[TERN_N_OPS] = {
        "embed", "rms_norm", "head_norm", "matmul", "rope", "kv_store", "attention", "add",
        "silu_mul", "gelu_mul", "logit_rows", "softcap", "scale",
    };
    const struct tern_program *p = &m->program;
    const struct tern_op *op = &p->ops[i];
    struct tern_writer w = {text, cap, 0};
    if (op->dst >= 0) {
        write_slot(&w, p, op->dst);
        tern_write(&w, " = ");
    }
    tern_write(&w, "%s(", names[op->kind]);
    if (op->a >= 0)
        write_slot(&w, p, op->a);
    if (op->b >= 0) {
        tern_write(&w, ", ");
        write_slot(&w, p, op->b);
    }
    write_details(&w, m, op);
    tern_write(&w, ")");
    *n = w.n;
}
