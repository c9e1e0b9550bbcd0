/* qwen.c: Qwen2, Qwen2.5 and Qwen3, dense (Yang et al. 2024, 2025).
 *
 *   h = E[token]
 *   a layer:  x = norm(h);  q, k, v = Wq x + bq, Wk x + bk, Wv x + bv    (Qwen2 has the biases)
 *             q, k = norm of each head of q and k                        (Qwen3)
 *             rotate q and k by halves;  keep k and v
 *             h += Wo attention(q)
 *             x = norm(h);  h += Wdown (silu(Wgate x) * Wup x)
 *   logits = W norm(h), W being E if the file has no other
 *
 * Heads of Qwen3 have a width of their own: n_heads * head_dim need not be n_embd. */
#include "runtime/recipe.h"

enum family { QWEN2, QWEN3 };

/* Weights are numbered as they are asked for, and arguments of one call come in any order. */
static void linear(struct tern_builder *b, int16_t dst, int16_t src, const char *weight,
                   const char *bias, uint32_t n_out, uint32_t n_in)
{
    const int32_t biases = bias ? tern_b_vector(b, bias, n_out) : -1;
    tern_b_matmul(b, dst, src, tern_b_matrix(b, weight, n_out, n_in), biases);
}

static void attention(struct tern_builder *b, const struct tern_recipe_slots *s, enum family family,
                      uint32_t rope, float scale)
{
    const struct tern_hparams *p = &b->model->hparams;
    const uint32_t q_dim = p->n_heads * p->k_dim, k_dim = p->n_kv_heads * p->k_dim,
                   v_dim = p->n_kv_heads * p->v_dim, o_dim = p->n_heads * p->v_dim;
    const uint32_t kv = tern_b_kv_layer(b, p->n_kv_heads, p->k_dim, p->v_dim, 0);
    const bool biases = family == QWEN2;
    tern_b_rms_norm(b, s->x, s->h, tern_b_vector(b, "blk.%u.attn_norm.weight", p->n_embd));
    linear(b, s->q, s->x, "blk.%u.attn_q.weight",
           biases ? "blk.%u.attn_q.bias" : NULL, q_dim, p->n_embd);
    linear(b, s->k, s->x, "blk.%u.attn_k.weight",
           biases ? "blk.%u.attn_k.bias" : NULL, k_dim, p->n_embd);
    linear(b, s->v, s->x, "blk.%u.attn_v.weight",
           biases ? "blk.%u.attn_v.bias" : NULL, v_dim, p->n_embd);
    if (family == QWEN3) {
        tern_b_head_norm(b, s->q, tern_b_vector(b, "blk.%u.attn_q_norm.weight", p->k_dim),
                         p->n_heads);
        tern_b_head_norm(b, s->k, tern_b_vector(b, "blk.%u.attn_k_norm.weight", p->k_dim),
                         p->n_kv_heads);
    }
    tern_b_rotate(b, s->q, rope, p->n_heads);
    tern_b_rotate(b, s->k, rope, p->n_kv_heads);
    tern_b_kv_store(b, s->k, s->v, kv);
    tern_b_attention(b, s->o, s->q, kv, scale, 0);
    tern_b_matmul(b, s->y, s->o, tern_b_matrix(b, "blk.%u.attn_output.weight", p->n_embd, o_dim),
                  -1);
    tern_b_add(b, s->h, s->h, s->y);
}

static void feed_forward(struct tern_builder *b, const struct tern_recipe_slots *s)
{
    const uint32_t n_embd = b->model->hparams.n_embd, n_ff = b->model->hparams.n_ff;
    tern_b_rms_norm(b, s->x, s->h, tern_b_vector(b, "blk.%u.ffn_norm.weight", n_embd));
    tern_b_matmul(b, s->gate, s->x, tern_b_matrix(b, "blk.%u.ffn_gate.weight", n_ff, n_embd), -1);
    tern_b_matmul(b, s->up, s->x, tern_b_matrix(b, "blk.%u.ffn_up.weight", n_ff, n_embd), -1);
    tern_b_silu_mul(b, s->gate, s->gate, s->up);
    tern_b_matmul(b, s->y, s->gate, tern_b_matrix(b, "blk.%u.ffn_down.weight", n_embd, n_ff), -1);
    tern_b_add(b, s->h, s->h, s->y);
}

static void emit(struct tern_builder *b, enum family family)
{
    const struct tern_hparams *p = &b->model->hparams;
    const struct tern_rope rotation = tern_recipe_rope(b, TERN_ROPE_NEOX);
    const uint32_t rope = tern_b_rope(b, &rotation);
    const float scale = tern_recipe_attention_scale(b, p->k_dim);
    struct tern_recipe_slots s = tern_recipe_make_slots(b, false);

    const tern_weight_id embedding = tern_b_matrix(b, "token_embd.weight", p->n_vocab, p->n_embd);
    tern_b_embed(b, s.h, embedding, 1);
    for (uint16_t layer = 0; layer < p->n_layers; layer++) {
        tern_b_layer(b, layer);
        attention(b, &s, family, rope, scale);
        if (layer + 1u == p->n_layers)
            s.h = tern_recipe_logit_rows(b, s.h);
        feed_forward(b, &s);
    }
    (void)tern_recipe_output(b, &s, embedding);
}

void tern_recipe_qwen2(struct tern_builder *b)
{
    emit(b, QWEN2);
}

void tern_recipe_qwen3(struct tern_builder *b)
{
    emit(b, QWEN3);
}
