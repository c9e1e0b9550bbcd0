/* recipe.h: the architectures that Tern knows, and what their recipes share. */
#ifndef TERN_RECIPE_H
#define TERN_RECIPE_H

#include "runtime/model.h"
#include "runtime/program.h"

/* A recipe emits the program of its architecture through the builder, in the order in which
 * its paper tells it. */
struct tern_recipe {
    const char *architecture;
    void (*emit)(struct tern_builder *b);
};

/* NULL, and an error that lists those that are known, for another name. */
const struct tern_recipe *tern_recipe_find(tern_text architecture, tern_error *err);

void tern_recipe_llama(struct tern_builder *b);
void tern_recipe_qwen2(struct tern_builder *b);
void tern_recipe_qwen3(struct tern_builder *b);
void tern_recipe_gemma3(struct tern_builder *b);

/* The key's value if it is there, within its range. */
void tern_recipe_f32(struct tern_builder *b, const char *key, float min, float max, float *out);
/* RoPE as the metadata describes it: base, scaling (none, linear, yarn), rotated dimensions;
 * without factors. */
struct tern_rope tern_recipe_rope(struct tern_builder *b, enum tern_rope_style style);
/* attention.scale, or 1 / sqrt(head_dim). */
float tern_recipe_attention_scale(struct tern_builder *b, uint32_t head_dim);
/* The rows of h whose logits are wanted, in a slot of their own that stands for h from here on.
 * Called in the last layer once its keys and values are kept: what follows is for them alone. */
tern_slot_id tern_recipe_logit_rows(struct tern_builder *b, tern_slot_id h);
/* Slots of a layer: the stream h, its norm x, queries, keys and values, what attention gives, what
 * a half of the layer adds (z: its norm, for those that have one), and the wide feed-forward. */
struct tern_recipe_slots { tern_slot_id h, x, q, k, v, o, y, z, gate, up; };
struct tern_recipe_slots tern_recipe_make_slots(struct tern_builder *b, bool has_z);
/* Behind the last layer: logits = W norm(h), W being the embedding if the file has no other. */
tern_slot_id tern_recipe_output(struct tern_builder *b, const struct tern_recipe_slots *s,
                                tern_weight_id embedding);
/* A key that would change the arithmetic in a way that the recipe does not follow: refused
 * unless absent or 0. */
void tern_recipe_refuse(struct tern_builder *b, const char *key);

#endif
