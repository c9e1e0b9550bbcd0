/* saved_model.c: which model this is, as far as keys and values depend on it. */
#include "runtime/hash.h"
#include "runtime/saved.h"

#include <string.h>

static void add_u32(struct tern_hash *h, uint32_t x)
{
    tern_hash_add(h, &x, sizeof x);
}

static void add_f32(struct tern_hash *h, float x)
{
    tern_hash_add(h, &x, sizeof x);
}

static void add_text(struct tern_hash *h, tern_text text)
{
    add_u32(h, (uint32_t)text.size);
    tern_hash_add(h, text.data, text.size);
}

/* Field by field, since structs have gaps. */
static void add_op(struct tern_hash *h, const struct tern_op *op)
{
    const uint32_t fields[] = {op->kind, op->layer, (uint32_t)op->dst, (uint32_t)op->a,
                               (uint32_t)op->b, (uint32_t)op->weight, (uint32_t)op->bias,
                               op->index, op->n_heads, op->head_dim};
    tern_hash_add(h, fields, sizeof fields);
    add_f32(h, op->x);
    add_f32(h, op->y);
}

static void add_rope(struct tern_hash *h, const struct tern_rope *r)
{
    const uint32_t fields[] = {r->n_rot, (uint32_t)r->style, (uint32_t)r->factors};
    const float floats[] = {r->base, r->freq_scale, r->mscale, r->ext_factor, r->corr_low,
                            r->corr_high};
    tern_hash_add(h, fields, sizeof fields);
    tern_hash_add(h, floats, sizeof floats);
}

static void add_program(struct tern_hash *h, const struct tern_program *p)
{
    const uint32_t fields[] = {p->n_layers, p->n_embd, p->n_vocab, p->n_ops, p->n_weights,
                               p->n_kv_layers, p->n_kv_groups, p->n_ropes};
    tern_hash_add(h, fields, sizeof fields);
    for (uint32_t i = 0; i < p->n_ops; i++)
        add_op(h, &p->ops[i]);
    for (uint32_t i = 0; i < p->n_ropes; i++)
        add_rope(h, &p->ropes[i]);
    for (uint32_t i = 0; i < p->n_kv_layers; i++) {
        add_u32(h, p->kv_layers[i].group);
        add_u32(h, p->kv_layers[i].index_in_group);
    }
    for (uint32_t i = 0; i < p->n_kv_groups; i++) {
        const struct tern_kv_group *g = &p->kv_groups[i];
        const uint32_t geometry[] = {g->n_layers, g->n_kv_heads, g->k_dim, g->v_dim, g->window};
        tern_hash_add(h, geometry, sizeof geometry);
    }
}

/* Its shape, and what stands at its start, its end and two places between. */
static void add_weight(struct tern_hash *h, const tern_engine *e, uint32_t weight)
{
    enum { PLACES = 4, BESIDE = 256 };
    unsigned char sample[TERN_WEIGHT_SAMPLE];
    const struct tern_weight *w = &e->model->program.weights[weight];
    const struct tern_tensor *t = &e->model->tensors[w->tensor];
    const uint32_t n_rows = w->matrix && w->n_rows ? w->n_rows : 1;
    const uint32_t last_col = w->n_cols ? (w->n_cols - 1) / BESIDE : 0;
    add_text(h, t->name);
    add_u32(h, w->matrix ? t->type : 0); /* a vector is floats, whatever the file has */
    add_u32(h, n_rows);
    add_u32(h, w->n_cols);
    for (uint64_t i = 0; i < PLACES; i++) {
        const uint32_t row = (uint32_t)((n_rows - 1) * i / (PLACES - 1));
        const uint32_t col = (uint32_t)(last_col * i / (PLACES - 1)) * BESIDE;
        tern_hash_add(h, sample, e->backend->read_weight(e->state, weight, row, col, sample));
    }
}

uint64_t tern_saved_model(tern_engine *e)
{
    if (e->model_hash)
        return e->model_hash;
    struct tern_hash h = tern_hash_begin();
    add_text(&h, e->model->architecture);
    add_program(&h, &e->model->program);
    for (uint32_t i = 0; i < e->model->program.n_weights; i++)
        add_weight(&h, e, i);
    e->model_hash = tern_hash_end(&h);
    e->model_hash += !e->model_hash;
    return e->model_hash;
}
