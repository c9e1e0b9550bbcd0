#include "runtime/recipe.h"

#include "runtime/error.h"
#include "runtime/real.h"
#include "runtime/text.h"

#include <math.h>

static const struct tern_recipe recipes[] = {
    {"llama", tern_recipe_llama},
    {"qwen2", tern_recipe_qwen2},
    {"qwen3", tern_recipe_qwen3},
    {"gemma3", tern_recipe_gemma3},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

const struct tern_recipe *tern_recipe_find(tern_text architecture, tern_error *err)
{
    for (size_t i = 0; i < N_RECIPES; i++)
        if (tern_text_is(architecture, recipes[i].architecture))
            return &recipes[i];
    char known[128];
    struct tern_writer w = {known, sizeof known - 1, 0};
    for (size_t i = 0; i < N_RECIPES; i++)
        tern_write(&w, i ? ", %s" : "%s", recipes[i].architecture);
    tern_write_end(&w);
    if (architecture.size == 0)
        tern_fail(err, TERN_BAD_MODEL, "general.architecture: the key is missing");
    else
        tern_fail(err, TERN_UNSUPPORTED, "architecture %t is not known; these are: %s",
                  architecture, known);
    return NULL;
}

/* --- RoPE --- */

void tern_recipe_f32(struct tern_builder *b, const char *key, float min, float max,
                     float *out)
{
    tern_b_check(b, tern_meta_f32(b->model, key, false, min, max, out, b->err));
}

/* The pair at which a frequency turns beta times over the original context. */
static float corr_dim(const struct tern_rope *r, float n_ctx, float beta)
{
    const float two_pi = 6.28318530717958647692f;
    return (float)r->n_rot * tern_log(n_ctx / (two_pi * beta)) / (2 * tern_log(r->base));
}

/* YaRN (Peng et al. 2023): high frequencies stay, low ones are interpolated, a ramp lies
 * between them; cos and sin grow with the logarithm of the factor. */
static void apply_yarn(struct tern_builder *b, struct tern_rope *r, float factor)
{
    uint32_t n_ctx = b->model->hparams.n_ctx_train;
    tern_b_check(b, tern_meta_u32(b->model, ".rope.scaling.original_context_length", false, 1,
                                  INT32_MAX, &n_ctx, b->err));
    float fast = 32, slow = 1, attn = 1;
    r->ext_factor = 1;
    tern_recipe_f32(b, ".rope.scaling.yarn_ext_factor", 0, 1, &r->ext_factor);
    tern_recipe_f32(b, ".rope.scaling.yarn_attn_factor", 1e-3f, 1e3f, &attn);
    tern_recipe_f32(b, ".rope.scaling.yarn_beta_fast", 1e-3f, 1e6f, &fast);
    tern_recipe_f32(b, ".rope.scaling.yarn_beta_slow", 1e-3f, 1e6f, &slow);
    r->mscale *= attn;
    if (r->ext_factor == 0)
        return;
    r->mscale *= 1 + 0.1f * tern_log(factor);
    const float low = floorf(corr_dim(r, (float)n_ctx, fast));
    const float high = ceilf(corr_dim(r, (float)n_ctx, slow));
    r->corr_low = low > 0 ? low : 0;
    r->corr_high = high < (float)r->n_rot - 1 ? high : (float)r->n_rot - 1;
}

static void apply_scaling(struct tern_builder *b, struct tern_rope *r)
{
    tern_text type = {0};
    float factor = 0;
    tern_b_check(b, tern_meta_text(b->model, ".rope.scaling.type", &type, b->err));
    const bool none = tern_text_is(type, "none"), yarn = tern_text_is(type, "yarn");
    if (type.size && !none && !yarn && !tern_text_is(type, "linear"))
        tern_b_check(b, tern_fail(b->err, TERN_UNSUPPORTED,
                                  "%t.rope.scaling.type: %t, these are known: none, linear, yarn",
                                  b->model->architecture, type));
    tern_recipe_f32(b, ".rope.scale_linear", 0, 1e6f, &factor);
    tern_recipe_f32(b, ".rope.scaling.factor", 0, 1e6f, &factor);
    tern_recipe_f32(b, ".rope.scaling.attn_factor", 1e-3f, 1e3f, &r->mscale);
    if (none || factor == 0) /* 0 stands in files for "not scaled" */
        factor = 1;
    r->freq_scale = 1 / factor;
    if (yarn)
        apply_yarn(b, r, factor);
}

struct tern_rope tern_recipe_rope(struct tern_builder *b, enum tern_rope_style style)
{
    const uint32_t head_dim = b->model->hparams.k_dim;
    struct tern_rope r = {.n_rot = head_dim, .style = style, .base = 10000, .freq_scale = 1,
                          .mscale = 1, .factors = -1};
    tern_b_check(b, tern_meta_u32(b->model, ".rope.dimension_count", false, 2, head_dim, &r.n_rot,
                                  b->err));
    if (!b->status && r.n_rot % 2)
        b->status = tern_fail(b->err, TERN_BAD_MODEL, "%t: %u dimensions rotate, must be even",
                              b->model->architecture, (uint64_t)r.n_rot);
    tern_recipe_f32(b, ".rope.freq_base", 2, 1e15f, &r.base);
    apply_scaling(b, &r);
    return r;
}

/* --- what else recipes share --- */

/* Slots are numbered as they are asked for. */
struct tern_recipe_slots tern_recipe_make_slots(struct tern_builder *b, bool has_z)
{
    const struct tern_hparams *p = &b->model->hparams;
    struct tern_recipe_slots s = {.z = -1};
    s.h = tern_b_slot(b, "h", p->n_embd);
    s.x = tern_b_slot(b, "x", p->n_embd);
    s.q = tern_b_slot(b, "q", p->n_heads * p->k_dim);
    s.k = tern_b_slot(b, "k", p->n_kv_heads * p->k_dim);
    s.v = tern_b_slot(b, "v", p->n_kv_heads * p->v_dim);
    s.o = tern_b_slot(b, "o", p->n_heads * p->v_dim);
    s.y = tern_b_slot(b, "y", p->n_embd);
    if (has_z)
        s.z = tern_b_slot(b, "z", p->n_embd);
    s.gate = tern_b_slot(b, "gate", p->n_ff);
    s.up = tern_b_slot(b, "up", p->n_ff);
    return s;
}

tern_slot_id tern_recipe_output(struct tern_builder *b, const struct tern_recipe_slots *s,
                                tern_weight_id embedding)
{
    const struct tern_hparams *p = &b->model->hparams;
    tern_b_layer(b, UINT16_MAX);
    const tern_slot_id logits = tern_b_slot(b, "logits", p->n_vocab);
    tern_b_rms_norm(b, s->x, s->h, tern_b_vector(b, "output_norm.weight", p->n_embd));
    const tern_weight_id output = tern_b_maybe_matrix(b, "output.weight", p->n_vocab, p->n_embd);
    tern_b_matmul(b, logits, s->x, output < 0 ? embedding : output, -1);
    return logits;
}

float tern_recipe_attention_scale(struct tern_builder *b, uint32_t head_dim)
{
    float scale = 0;
    tern_recipe_f32(b, ".attention.scale", 0, 1e3f, &scale);
    return scale > 0 ? scale : 1 / sqrtf((float)head_dim);
}

tern_slot_id tern_recipe_logit_rows(struct tern_builder *b, tern_slot_id h)
{
    const tern_slot_id last = tern_b_slot(b, "last", b->model->hparams.n_embd);
    tern_b_logit_rows(b, last, h);
    return last;
}

void tern_recipe_refuse(struct tern_builder *b, const char *key)
{
    struct tern_meta k;
    if (b->status || !tern_meta_find(b->model, key, &k))
        return;
    uint64_t u;
    if ((tern_meta_to_u64(&k, &u) && u == 0) || (k.type == TERN_META_F32 && k.v.f == 0))
        return;
    b->status = tern_fail(b->err, TERN_UNSUPPORTED, "%t%s: the recipe of %t does not know it",
                          b->model->architecture, key, b->model->architecture);
}
