/* gemma.c: Gemma 3, text (Gemma Team 2025).
 *
 *   h = sqrt(n_embd) E[token]
 *   a layer:  x = norm(h);  q, k, v = Wq x, Wk x, Wv x
 *             q, k = norm of each head;  rotate by halves;  keep k and v
 *             h += norm(Wo attention(q))
 *             x = norm(h);  h += norm(Wdown (gelu(Wgate x) * Wup x))
 *   logits = W norm(h), W being E if the file has no other
 *
 * Five layers of six see a window of the last tokens alone and rotate on a base of their own,
 * unscaled; the sixth sees all. The weights of norms have their 1 added in the file. */
#include "runtime/recipe.h"

#include "runtime/error.h"

#include <math.h>

/* What differs between the layers that see a window and those that see all. */
struct sight { uint32_t rope, window; };

static void attention(struct tern_builder *b, const struct tern_recipe_slots *s, struct sight sight,
                      float scale, float cap)
{
    const struct tern_hparams *p = &b->model->hparams;
    const uint32_t q_dim = p->n_heads * p->k_dim, k_dim = p->n_kv_heads * p->k_dim,
                   v_dim = p->n_kv_heads * p->v_dim, o_dim = p->n_heads * p->v_dim;
    const uint32_t kv = tern_b_kv_layer(b, p->n_kv_heads, p->k_dim, p->v_dim, sight.window);
    tern_b_rms_norm(b, s->x, s->h, tern_b_vector(b, "blk.%u.attn_norm.weight", p->n_embd));
    tern_b_matmul(b, s->q, s->x, tern_b_matrix(b, "blk.%u.attn_q.weight", q_dim, p->n_embd), -1);
    tern_b_matmul(b, s->k, s->x, tern_b_matrix(b, "blk.%u.attn_k.weight", k_dim, p->n_embd), -1);
    tern_b_matmul(b, s->v, s->x, tern_b_matrix(b, "blk.%u.attn_v.weight", v_dim, p->n_embd), -1);
    tern_b_head_norm(b, s->q, tern_b_vector(b, "blk.%u.attn_q_norm.weight", p->k_dim), p->n_heads);
    tern_b_head_norm(b, s->k, tern_b_vector(b, "blk.%u.attn_k_norm.weight", p->k_dim),
                     p->n_kv_heads);
    tern_b_rotate(b, s->q, sight.rope, p->n_heads);
    tern_b_rotate(b, s->k, sight.rope, p->n_kv_heads);
    tern_b_kv_store(b, s->k, s->v, kv);
    tern_b_attention(b, s->o, s->q, kv, scale, cap);
    tern_b_matmul(b, s->y, s->o, tern_b_matrix(b, "blk.%u.attn_output.weight", p->n_embd, o_dim),
                  -1);
    tern_b_rms_norm(b, s->z, s->y,
                    tern_b_vector(b, "blk.%u.post_attention_norm.weight", p->n_embd));
    tern_b_add(b, s->h, s->h, s->z);
}

static void feed_forward(struct tern_builder *b, const struct tern_recipe_slots *s)
{
    const uint32_t n_embd = b->model->hparams.n_embd, n_ff = b->model->hparams.n_ff;
    tern_b_rms_norm(b, s->x, s->h, tern_b_vector(b, "blk.%u.ffn_norm.weight", n_embd));
    tern_b_matmul(b, s->gate, s->x, tern_b_matrix(b, "blk.%u.ffn_gate.weight", n_ff, n_embd), -1);
    tern_b_matmul(b, s->up, s->x, tern_b_matrix(b, "blk.%u.ffn_up.weight", n_ff, n_embd), -1);
    tern_b_gelu_mul(b, s->gate, s->gate, s->up);
    tern_b_matmul(b, s->y, s->gate, tern_b_matrix(b, "blk.%u.ffn_down.weight", n_embd, n_ff), -1);
    tern_b_rms_norm(b, s->z, s->y, tern_b_vector(b, "blk.%u.post_ffw_norm.weight", n_embd));
    tern_b_add(b, s->h, s->h, s->z);
}

/* Which layers are local: unless (layer + 1) % 6 == 0; the key may give another period, or a
 * bool for each layer. */
struct pattern { uint32_t period; bool listed; struct tern_meta list; };

static struct pattern read_pattern(struct tern_builder *b)
{
    static const char key[] = ".attention.sliding_window_pattern";
    struct pattern p = {.period = 6};
    p.listed = tern_meta_find(b->model, key, &p.list) && p.list.type == TERN_META_ARRAY;
    if (!p.listed)
        tern_b_check(b, tern_meta_u32(b->model, key, false, 1, 1024, &p.period, b->err));
    else if (p.list.element != TERN_META_BOOL || p.list.count < b->model->hparams.n_layers)
        tern_b_check(b, tern_fail(b->err, TERN_BAD_MODEL, "%t%s: %u elements, must be a bool for "
                                  "each of %u layers", b->model->architecture, key, p.list.count,
                                  (uint64_t)b->model->hparams.n_layers));
    return p;
}

static bool is_local(struct tern_builder *b, const struct pattern *p, uint32_t layer)
{
    struct tern_meta e;
    if (b->status || !p->listed)
        return (layer + 1) % p->period != 0;
    tern_b_check(b, tern_meta_element(b->model, &p->list, layer, &e, b->err));
    return e.v.b;
}

void tern_recipe_gemma3(struct tern_builder *b)
{
    const struct tern_hparams *p = &b->model->hparams;
    const struct tern_rope far = tern_recipe_rope(b, TERN_ROPE_NEOX);
    struct tern_rope near = {.n_rot = far.n_rot, .style = TERN_ROPE_NEOX, .base = 10000,
                             .freq_scale = 1, .mscale = 1, .factors = -1};
    uint32_t window = 0;
    float attention_cap = 0, final_cap = 0;
    tern_recipe_f32(b, ".rope.freq_base_swa", 2, 1e15f, &near.base);
    tern_recipe_f32(b, ".attn_logit_softcapping", 0, 1e6f, &attention_cap);
    tern_recipe_f32(b, ".final_logit_softcapping", 0, 1e6f, &final_cap);
    tern_b_check(b, tern_meta_u32(b->model, ".attention.sliding_window", false, 0, INT32_MAX,
                                  &window, b->err));
    const struct sight all = {tern_b_rope(b, &far), 0};
    const struct sight local = {tern_b_rope(b, &near), window};
    const struct pattern pattern = read_pattern(b);
    /* The 27B alone, known by its 62 layers, scales by n_embd / n_heads. */
    const float scale = tern_recipe_attention_scale(
        b, p->n_layers == 62 ? p->n_embd / p->n_heads : p->k_dim);
    struct tern_recipe_slots s = tern_recipe_make_slots(b, true);

    const tern_weight_id embedding = tern_b_matrix(b, "token_embd.weight", p->n_vocab, p->n_embd);
    tern_b_embed(b, s.h, embedding, sqrtf((float)p->n_embd));
    for (uint16_t layer = 0; layer < p->n_layers; layer++) {
        tern_b_layer(b, layer);
        const bool windowed = window && is_local(b, &pattern, layer);
        attention(b, &s, windowed ? local : all, scale, attention_cap);
        if (layer + 1u == p->n_layers)
            s.h = tern_recipe_logit_rows(b, s.h);
        feed_forward(b, &s);
    }
    const tern_slot_id logits = tern_recipe_output(b, &s, embedding);
    if (final_cap > 0)
        tern_b_softcap(b, logits, final_cap);
}
