/* program.c: the builder that recipes call, and lifetimes of slots. */
#include "runtime/program.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/recipe.h"
#include "runtime/text.h"

#include <string.h>

/* --- what recipes ask --- */

static bool is_counting(const struct tern_builder *b)
{
    return !b->program;
}

void tern_b_check(struct tern_builder *b, tern_status status)
{
    if (!b->status)
        b->status = status;
}

void tern_b_layer(struct tern_builder *b, uint16_t layer)
{
    b->layer = layer;
}

static tern_status fail_many(struct tern_builder *b, const char *what, uint64_t limit)
{
    return b->status = tern_fail(b->err, TERN_UNSUPPORTED, "program of %t: more than %u %s",
                                 b->model->architecture, limit, what);
}

tern_slot_id tern_b_slot(struct tern_builder *b, const char *name, uint32_t width)
{
    if (b->status || is_counting(b))
        return 0;
    struct tern_program *p = b->program;
    if (p->n_slots == TERN_MAX_SLOTS) {
        fail_many(b, "slots", TERN_MAX_SLOTS);
        return 0;
    }
    p->slots[p->n_slots] = (struct tern_slot){name, width};
    return (tern_slot_id)p->n_slots++;
}

/* The name with the layer in place of "%u". */
static tern_text expand(const struct tern_builder *b, const char *name, char *out, size_t cap)
{
    struct tern_writer w = {out, cap, 0};
    tern_write(&w, name, (uint64_t)b->layer);
    return (tern_text){out, w.n < cap ? w.n : cap};
}

static tern_weight_id take_weight(struct tern_builder *b, const char *name, bool required,
                                  struct tern_weight want)
{
    if (b->status)
        return -1;
    if (is_counting(b)) {
        b->cap_weights++;
        return 0;
    }
    char buffer[64];
    const tern_text full = expand(b, name, buffer, sizeof buffer);
    const struct tern_tensor *t = tern_tensor_find(b->model, full);
    if (!t && !required)
        return -1;
    if (!t) {
        b->status = tern_fail(b->err, TERN_BAD_MODEL,
                              "tensor %t is missing: %t needs one of %u x %u", full,
                              b->model->architecture, (uint64_t)want.n_cols, (uint64_t)want.n_rows);
        return -1;
    }
    if (t->dims[0] != want.n_cols || t->dims[1] != want.n_rows || t->dims[2] != 1 ||
        t->dims[3] != 1) {
        b->status = tern_fail(b->err, TERN_BAD_MODEL,
                              "tensor %t: %u x %u x %u x %u, must be %u x %u", full, t->dims[0],
                              t->dims[1], t->dims[2], t->dims[3], (uint64_t)want.n_cols,
                              (uint64_t)want.n_rows);
        return -1;
    }
    if (b->program->n_weights == b->cap_weights) {
        fail_many(b, "weights", b->cap_weights);
        return -1;
    }
    want.tensor = (uint32_t)(t - b->model->tensors);
    b->weights[b->program->n_weights] = want;
    return (tern_weight_id)b->program->n_weights++;
}

tern_weight_id tern_b_matrix(struct tern_builder *b, const char *name, uint32_t n_rows,
                             uint32_t n_cols)
{
    return take_weight(b, name, true,
                       (struct tern_weight){.matrix = true, .n_rows = n_rows, .n_cols = n_cols});
}

tern_weight_id tern_b_maybe_matrix(struct tern_builder *b, const char *name, uint32_t n_rows,
                                   uint32_t n_cols)
{
    return take_weight(b, name, false,
                       (struct tern_weight){.matrix = true, .n_rows = n_rows, .n_cols = n_cols});
}

tern_weight_id tern_b_vector(struct tern_builder *b, const char *name, uint32_t n)
{
    return take_weight(b, name, true, (struct tern_weight){.n_rows = 1, .n_cols = n});
}

tern_weight_id tern_b_maybe_vector(struct tern_builder *b, const char *name, uint32_t n)
{
    return take_weight(b, name, false, (struct tern_weight){.n_rows = 1, .n_cols = n});
}

static bool ropes_equal(const struct tern_rope *a, const struct tern_rope *b)
{
    return a->n_rot == b->n_rot && a->style == b->style && a->base == b->base &&
           a->freq_scale == b->freq_scale && a->mscale == b->mscale &&
           a->ext_factor == b->ext_factor && a->corr_low == b->corr_low &&
           a->corr_high == b->corr_high && a->factors == b->factors;
}

uint32_t tern_b_rope(struct tern_builder *b, const struct tern_rope *rope)
{
    if (b->status || is_counting(b))
        return 0;
    struct tern_program *p = b->program;
    for (uint32_t i = 0; i < p->n_ropes; i++)
        if (ropes_equal(&p->ropes[i], rope))
            return i;
    if (p->n_ropes == TERN_MAX_ROPES) {
        fail_many(b, "rotary tables", TERN_MAX_ROPES);
        return 0;
    }
    p->ropes[p->n_ropes] = *rope;
    return p->n_ropes++;
}

static uint32_t find_group(struct tern_builder *b, const struct tern_kv_group *want)
{
    struct tern_program *p = b->program;
    for (uint32_t i = 0; i < p->n_kv_groups; i++) {
        const struct tern_kv_group *g = &p->kv_groups[i];
        if (g->n_kv_heads == want->n_kv_heads && g->k_dim == want->k_dim &&
            g->v_dim == want->v_dim && g->window == want->window)
            return i;
    }
    if (p->n_kv_groups == TERN_MAX_KV_GROUPS) {
        fail_many(b, "kinds of KV layers", TERN_MAX_KV_GROUPS);
        return 0;
    }
    p->kv_groups[p->n_kv_groups] = *want;
    return p->n_kv_groups++;
}

uint32_t tern_b_kv_layer(struct tern_builder *b, uint32_t n_kv_heads, uint32_t k_dim,
                         uint32_t v_dim, uint32_t window)
{
    if (b->status)
        return 0;
    if (is_counting(b))
        return b->cap_kv_layers++;
    const uint32_t group = find_group(b, &(struct tern_kv_group){0, n_kv_heads, k_dim, v_dim,
                                                                 window});
    struct tern_program *p = b->program;
    if (!b->status && p->n_kv_layers == b->cap_kv_layers)
        fail_many(b, "KV layers", b->cap_kv_layers);
    if (b->status)
        return 0;
    b->kv_layers[p->n_kv_layers] = (struct tern_kv_layer){group, p->kv_groups[group].n_layers++};
    return p->n_kv_layers++;
}

void tern_b_op(struct tern_builder *b, struct tern_op op)
{
    if (b->status)
        return;
    if (is_counting(b)) {
        b->cap_ops++;
        return;
    }
    if (b->program->n_ops == b->cap_ops) {
        fail_many(b, "ops", b->cap_ops);
        return;
    }
    op.layer = b->layer;
    b->ops[b->program->n_ops++] = op;
    b->program->logits = op.dst;
}

/* --- the ops by name --- */

/* An op whose operands are absent, to be filled in. */
static struct tern_op blank(enum tern_op_kind kind, tern_slot_id dst, tern_slot_id a)
{
    return (struct tern_op){.kind = (uint8_t)kind, .dst = dst, .a = a, .b = -1, .weight = -1,
                            .bias = -1};
}

void tern_b_embed(struct tern_builder *b, tern_slot_id dst, tern_weight_id table, float scale)
{
    struct tern_op op = blank(TERN_OP_EMBED, dst, -1);
    op.weight = table;
    op.x = scale;
    tern_b_op(b, op);
}

void tern_b_rms_norm(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_weight_id w)
{
    struct tern_op op = blank(TERN_OP_RMS_NORM, dst, a);
    op.weight = w;
    op.x = b->model->hparams.rms_eps;
    tern_b_op(b, op);
}

void tern_b_head_norm(struct tern_builder *b, tern_slot_id a, tern_weight_id w, uint32_t n_heads)
{
    struct tern_op op = blank(TERN_OP_HEAD_NORM, a, a);
    op.weight = w;
    op.n_heads = n_heads;
    op.head_dim = b->model->hparams.k_dim;
    op.x = b->model->hparams.rms_eps;
    tern_b_op(b, op);
}

void tern_b_matmul(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_weight_id w,
                   tern_weight_id bias)
{
    struct tern_op op = blank(TERN_OP_MATMUL, dst, a);
    op.weight = w;
    op.bias = bias;
    tern_b_op(b, op);
}

void tern_b_rotate(struct tern_builder *b, tern_slot_id a, uint32_t rope, uint32_t n_heads)
{
    struct tern_op op = blank(TERN_OP_ROPE, a, a);
    op.index = rope;
    op.n_heads = n_heads;
    op.head_dim = b->model->hparams.k_dim;
    tern_b_op(b, op);
}

void tern_b_kv_store(struct tern_builder *b, tern_slot_id k, tern_slot_id v, uint32_t kv_layer)
{
    struct tern_op op = blank(TERN_OP_KV_STORE, -1, k);
    op.b = v;
    op.index = kv_layer;
    op.n_heads = b->model->hparams.n_kv_heads;
    op.head_dim = b->model->hparams.k_dim;
    tern_b_op(b, op);
}

void tern_b_attention(struct tern_builder *b, tern_slot_id dst, tern_slot_id q, uint32_t kv_layer,
                      float scale, float cap)
{
    struct tern_op op = blank(TERN_OP_ATTENTION, dst, q);
    op.index = kv_layer;
    op.n_heads = b->model->hparams.n_heads;
    op.head_dim = b->model->hparams.k_dim;
    op.x = scale;
    op.y = cap;
    tern_b_op(b, op);
}

static void two_operands(struct tern_builder *b, enum tern_op_kind kind, tern_slot_id dst,
                         tern_slot_id a, tern_slot_id c)
{
    struct tern_op op = blank(kind, dst, a);
    op.b = c;
    tern_b_op(b, op);
}

void tern_b_add(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_slot_id c)
{
    two_operands(b, TERN_OP_ADD, dst, a, c);
}

void tern_b_silu_mul(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_slot_id c)
{
    two_operands(b, TERN_OP_SILU_MUL, dst, a, c);
}

void tern_b_gelu_mul(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_slot_id c)
{
    two_operands(b, TERN_OP_GELU_MUL, dst, a, c);
}

void tern_b_logit_rows(struct tern_builder *b, tern_slot_id dst, tern_slot_id a)
{
    tern_b_op(b, blank(TERN_OP_LOGIT_ROWS, dst, a));
}

void tern_b_softcap(struct tern_builder *b, tern_slot_id a, float cap)
{
    struct tern_op op = blank(TERN_OP_SOFTCAP, a, a);
    op.x = cap;
    tern_b_op(b, op);
}

void tern_b_scale(struct tern_builder *b, tern_slot_id a, float x)
{
    struct tern_op op = blank(TERN_OP_SCALE, a, a);
    op.x = x;
    tern_b_op(b, op);
}

/* --- the two walks --- */

tern_status tern_program_build(struct tern_arena *arena, struct tern_model *model,
                               struct tern_program *out, tern_error *err)
{
    const struct tern_recipe *recipe = tern_recipe_find(model->architecture, err);
    if (!recipe)
        return TERN_UNSUPPORTED;
    struct tern_builder b = {.model = model, .layer = UINT16_MAX, .err = err};
    recipe->emit(&b);
    if (b.status)
        return b.status;
    b.ops = tern_carve(arena, b.cap_ops, sizeof *b.ops, 8);
    b.weights = tern_carve(arena, b.cap_weights, sizeof *b.weights, 8);
    b.kv_layers = tern_carve(arena, b.cap_kv_layers, sizeof *b.kv_layers, 8);
    if (arena->failed)
        return TERN_NO_MEMORY;
    if (!arena->base)
        return TERN_OK;
    const struct tern_hparams *p = &model->hparams;
    *out = (struct tern_program){
        .n_layers = p->n_layers, .n_embd = p->n_embd, .n_vocab = p->n_vocab,
        .n_ctx_train = p->n_ctx_train, .ops = b.ops, .weights = b.weights,
        .kv_layers = b.kv_layers,
    };
    b.program = out;
    b.layer = UINT16_MAX;
    recipe->emit(&b);
    return b.status;
}
