/* program.h: a model as a flat list of ops on slots.
 *
 * A recipe (recipes/) emits it through the builder in reading order; backends execute it. A
 * slot is a named vector of floats that every row of a batch has its own of. A program is
 * data in the model's memory, holds indices and no pointers into other objects but the model's.
 */
#ifndef TERN_PROGRAM_H
#define TERN_PROGRAM_H

#include "runtime/tern.h"

struct tern_arena;
struct tern_model;

enum tern_op_kind {
    TERN_OP_EMBED,       /* dst = row `token` of weight, times x (x = 1: as it is)             */
    TERN_OP_RMS_NORM,    /* dst = a / sqrt(mean(a^2) + x) * weight                              */
    TERN_OP_HEAD_NORM,   /* the same inside each of n_heads heads of head_dim; dst may be a     */
    TERN_OP_MATMUL,      /* dst = weight a (+ bias)                                             */
    TERN_OP_ROPE,        /* dst = a rotated by table `index`, n_heads heads of head_dim; dst = a */
    TERN_OP_KV_STORE,    /* a (keys) and b (values) of this row go to KV layer `index`          */
    TERN_OP_ATTENTION,   /* dst = attention of a (queries, n_heads heads) over KV layer `index`;
                            scores are times x, then capped at y (0: not)                       */
    TERN_OP_ADD,         /* dst = a + b; dst may be a                                           */
    TERN_OP_SILU_MUL,    /* dst = silu(a) * b; dst may be a                                     */
    TERN_OP_GELU_MUL,    /* dst = gelu_tanh(a) * b; dst may be a                                */
    TERN_OP_LOGIT_ROWS,  /* dst = the rows of a whose logits are wanted, closed up: ops from here
                            on run over these rows alone                                        */
    TERN_OP_SOFTCAP,     /* dst = x * tanh(a / x); dst may be a                                 */
    TERN_OP_SCALE,       /* dst = a * x; dst may be a                                           */
    TERN_N_OPS,
};

struct tern_op {
    uint8_t kind;
    uint16_t layer;          /* UINT16_MAX outside layers */
    int16_t dst, a, b;       /* slots; -1: none */
    int32_t weight, bias;    /* indices of program weights; -1: none */
    uint32_t index;          /* ROPE: of ropes; KV_STORE, ATTENTION: of kv_layers */
    uint32_t n_heads, head_dim;
    float x, y;
};

struct tern_slot { const char *name; uint32_t width; }; /* floats a row */

/* A tensor that the program uses. A matrix is packed to panels; a vector is float32. */
struct tern_weight { uint32_t tensor; bool matrix; uint32_t n_rows, n_cols; };

struct tern_kv_layer { uint32_t group, index_in_group; };
/* Layers of equal geometry share a pool and one block table a sequence. */
struct tern_kv_group {
    uint32_t n_layers, n_kv_heads, k_dim, v_dim;
    uint32_t window; /* query p sees keys p - window + 1 .. p; 0: all */
};

enum tern_rope_style { TERN_ROPE_NORM, TERN_ROPE_NEOX }; /* pairs (2i, 2i+1) or (i, i + n_rot/2) */
struct tern_rope {
    uint32_t n_rot;                    /* even, at most head_dim */
    enum tern_rope_style style;
    float base, freq_scale;            /* freq_scale = 1 / factor */
    float mscale;                      /* cos and sin are multiplied by it */
    float ext_factor, corr_low, corr_high; /* YaRN's ramp; ext_factor 0: none */
    int32_t factors;                   /* weight of n_rot / 2 divisors; -1: none */
};

enum { TERN_MAX_KV_GROUPS = 4, TERN_MAX_ROPES = 4, TERN_MAX_SLOTS = 32 };

struct tern_program {
    uint32_t n_layers, n_embd, n_vocab, n_ctx_train;
    uint32_t n_ops, n_weights, n_kv_layers;
    uint32_t n_slots, n_kv_groups, n_ropes;
    int16_t logits;                    /* the slot that the last op writes */
    const struct tern_op *ops;
    const struct tern_weight *weights;
    const struct tern_kv_layer *kv_layers;
    struct tern_slot slots[TERN_MAX_SLOTS];
    struct tern_kv_group kv_groups[TERN_MAX_KV_GROUPS];
    struct tern_rope ropes[TERN_MAX_ROPES];
};

/* --- the builder that recipes call --- */

/* Two walks over one recipe: the first counts (program is NULL), the second writes. Counting
 * looks at metadata alone: tensors are not looked up, optional ones are taken as there, widths
 * do not matter. So a recipe may leave an op out, but never add one, for want of a tensor.
 * A failed lookup sets status and the error; calls after that do nothing, so recipes need no
 * test a line. */
struct tern_builder {
    struct tern_model *model;
    struct tern_program *program;      /* NULL while counting */
    struct tern_op *ops;
    struct tern_weight *weights;
    struct tern_kv_layer *kv_layers;
    uint32_t cap_ops, cap_weights, cap_kv_layers; /* what counting found */
    uint16_t layer;                    /* set by tern_b_layer */
    tern_status status;
    tern_error *err;
};

typedef int16_t tern_slot_id;
typedef int32_t tern_weight_id;

/* What a recipe may ask. Names are printf-free: "%u" in a tensor's name is the layer. */
void tern_b_layer(struct tern_builder *b, uint16_t layer); /* UINT16_MAX: outside of layers */
void tern_b_check(struct tern_builder *b, tern_status status); /* of a lookup; first one wins */
tern_slot_id tern_b_slot(struct tern_builder *b, const char *name, uint32_t width);
/* n_rows x n_cols matrix, or a vector of n; a shape that differs is a named error. The
 * optional ones return -1 when the file has no such tensor. */
tern_weight_id tern_b_matrix(struct tern_builder *b, const char *name, uint32_t n_rows,
                             uint32_t n_cols);
tern_weight_id tern_b_vector(struct tern_builder *b, const char *name, uint32_t n);
tern_weight_id tern_b_maybe_matrix(struct tern_builder *b, const char *name, uint32_t n_rows,
                                   uint32_t n_cols);
tern_weight_id tern_b_maybe_vector(struct tern_builder *b, const char *name, uint32_t n);
uint32_t tern_b_rope(struct tern_builder *b, const struct tern_rope *rope); /* equal ones are one */
uint32_t tern_b_kv_layer(struct tern_builder *b, uint32_t n_kv_heads, uint32_t k_dim,
                         uint32_t v_dim, uint32_t window);
void tern_b_op(struct tern_builder *b, struct tern_op op); /* layer is filled in */

/* The ops by name, as recipes write them: dst first. Heads are k_dim of the model wide. */
void tern_b_embed(struct tern_builder *b, tern_slot_id dst, tern_weight_id table, float scale);
void tern_b_rms_norm(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_weight_id w);
void tern_b_head_norm(struct tern_builder *b, tern_slot_id a, tern_weight_id w, uint32_t n_heads);
void tern_b_matmul(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_weight_id w,
                   tern_weight_id bias);
void tern_b_rotate(struct tern_builder *b, tern_slot_id a, uint32_t rope, uint32_t n_heads);
void tern_b_kv_store(struct tern_builder *b, tern_slot_id k, tern_slot_id v, uint32_t kv_layer);
void tern_b_attention(struct tern_builder *b, tern_slot_id dst, tern_slot_id q, uint32_t kv_layer,
                      float scale, float cap);
void tern_b_add(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_slot_id c);
void tern_b_silu_mul(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_slot_id c);
void tern_b_gelu_mul(struct tern_builder *b, tern_slot_id dst, tern_slot_id a, tern_slot_id c);
void tern_b_logit_rows(struct tern_builder *b, tern_slot_id dst, tern_slot_id a);
void tern_b_softcap(struct tern_builder *b, tern_slot_id a, float cap);
void tern_b_scale(struct tern_builder *b, tern_slot_id a, float x);

/* Runs the recipe of the model's architecture twice over the arena. Over a measuring arena the
 * second time is left out, and out is untouched. */
tern_status tern_program_build(struct tern_arena *arena, struct tern_model *model,
                               struct tern_program *out, tern_error *err);
/* One line for an op: "q = matmul(x_norm, blk.0.attn_q.weight Q4_1 576x576)". */
void tern_program_print(const struct tern_model *model, uint32_t i, char *text, size_t cap,
                        size_t *n);

#endif
