/* tiny_model.h: the smallest whole model, with one thing about it changed.
 *
 * Every key goes through tiny_int, tiny_f32, tiny_text or tiny_list, which look whether it is
 * the one to be left out, or given another value or type. */
#ifndef TERN_TEST_TINY_MODEL_H
#define TERN_TEST_TINY_MODEL_H

#include "tests/unit/gguf_writer.h"

#include <math.h>
#include <stdio.h>

enum change {
    SAME, DELETED, ZERO, MOST, NEGATIVE, ONE_LESS, ONE_MORE, AS_TEXT, AS_F32, AS_F64, AS_U8, AS_I32,
    AS_BOOL, AS_LIST, AS_NAN, AS_INFINITE, ROW_MORE, N_CHANGES,
};

struct tiny {
    const char *architecture;
    const char *key;       /* a key, or the name of a tensor */
    enum change change;
    uint64_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim;
    bool has_output;       /* of its own, not tied */
    const char *tokenizer; /* NULL: llama */
    void (*more)(struct gguf_writer *w);
};

static const char *const tiny_pieces[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b", "ab"};
enum { TINY_VOCAB = sizeof tiny_pieces / sizeof *tiny_pieces };

static inline struct tiny tiny_of(const char *architecture)
{
    return (struct tiny){.architecture = architecture, .n_layers = 2, .n_embd = 8, .n_ff = 12,
                         .n_heads = 2, .n_kv_heads = 1, .head_dim = 4};
}

static inline enum change change_of(const struct tiny *t, const char *key)
{
    return t->key && !strcmp(t->key, key) ? t->change : SAME;
}

/* A key in place of the right one. */
static inline void put_changed(struct gguf_writer *w, const char *key, enum change change)
{
    switch (change) {
    case ZERO: gw_u32(w, key, 0); break;
    case MOST: gw_u32(w, key, UINT32_MAX); break;
    case NEGATIVE: gw_int(w, key, TERN_META_I32, -1); break;
    case AS_TEXT: gw_text(w, key, "2"); break;
    case AS_F32: gw_f32(w, key, 2); break;
    case AS_F64: gw_f64(w, key, 2); break;
    case AS_U8: gw_int(w, key, TERN_META_U8, 2); break;
    case AS_I32: gw_int(w, key, TERN_META_I32, 2); break;
    case AS_BOOL: gw_int(w, key, TERN_META_BOOL, 1); break;
    case AS_LIST: gw_array(w, key, TERN_META_U8, 0); break;
    case AS_NAN: gw_f32(w, key, NAN); break;
    case AS_INFINITE: gw_f32(w, key, INFINITY); break;
    default: break;
    }
}

static inline void tiny_int(struct gguf_writer *w, const struct tiny *t, const char *key,
                            uint64_t u)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? t->architecture : "", key);
    const enum change change = change_of(t, key);
    if (change == SAME || change == ONE_LESS || change == ONE_MORE)
        gw_u32(w, full, (uint32_t)(u + (change == ONE_MORE) - (change == ONE_LESS)));
    else
        put_changed(w, full, change);
}

static inline void tiny_f32(struct gguf_writer *w, const struct tiny *t, const char *key, float f)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? t->architecture : "", key);
    if (change_of(t, key) == SAME)
        gw_f32(w, full, f);
    else
        put_changed(w, full, change_of(t, key));
}

static inline void tiny_text(struct gguf_writer *w, const struct tiny *t, const char *key,
                             const char *text)
{
    if (change_of(t, key) == SAME)
        gw_text(w, key, text);
    else
        put_changed(w, key, change_of(t, key));
}

/* A list of the vocabulary's length, of another type or length if it is the one to change. */
static inline void tiny_list(struct gguf_writer *w, const struct tiny *t, const char *key,
                             uint32_t element)
{
    static const uint32_t types[N_CHANGES] = {
        [AS_TEXT] = TERN_META_STRING, [AS_F32] = TERN_META_F32, [AS_F64] = TERN_META_F64,
        [AS_U8] = TERN_META_U8, [AS_I32] = TERN_META_I32, [AS_BOOL] = TERN_META_BOOL,
    };
    const enum change change = change_of(t, key);
    if (change == DELETED)
        return;
    if (change == AS_NAN || change == ZERO) {
        put_changed(w, key, change);
        return;
    }
    const size_t n = TINY_VOCAB + (size_t)(change == ONE_MORE) - (size_t)(change == ONE_LESS);
    if (change != SAME && change != ONE_LESS && change != ONE_MORE)
        element = types[change];
    gw_array(w, key, element, n);
    for (size_t i = 0; i < n; i++) {
        const float f = -(float)i;
        const double d = -(double)i;
        switch (element) {
        case TERN_META_STRING: gw_put_text(&w->keys, tiny_pieces[i % TINY_VOCAB]); break;
        case TERN_META_F32: gw_put(&w->keys, &f, 4); break;
        case TERN_META_F64: gw_put(&w->keys, &d, 8); break;
        case TERN_META_I32: gw_put_int(&w->keys, i == 0 ? 2 : i < 3 ? 3 : 1, 4); break;
        default: gw_put_int(&w->keys, 1, 1); break;
        }
    }
}

/* Changes of a tensor: DELETED, one column less or more, a row more. */
static inline void tiny_tensor(struct gguf_writer *w, const struct tiny *t, int layer,
                               const char *name, uint64_t cols, uint64_t rows)
{
    char full[64];
    const enum change change = change_of(t, name);
    snprintf(full, sizeof full, layer < 0 ? "%.0d%s" : "blk.%d.%s", layer < 0 ? 0 : layer, name);
    if (change == ROW_MORE)
        rows = rows ? rows + 1 : 2;
    if (change != DELETED)
        gw_tensor(w, full, cols + (change == ONE_MORE) - (change == ONE_LESS), rows);
}

static inline void tiny_layer(struct gguf_writer *w, const struct tiny *t, int i)
{
    const uint64_t q = t->n_heads * t->head_dim, kv = t->n_kv_heads * t->head_dim;
    const bool gemma = !strcmp(t->architecture, "gemma3");
    tiny_tensor(w, t, i, "attn_norm.weight", t->n_embd, 0);
    tiny_tensor(w, t, i, "attn_q.weight", t->n_embd, q);
    tiny_tensor(w, t, i, "attn_k.weight", t->n_embd, kv);
    tiny_tensor(w, t, i, "attn_v.weight", t->n_embd, kv);
    tiny_tensor(w, t, i, "attn_output.weight", q, t->n_embd);
    if (!strcmp(t->architecture, "qwen2")) {
        tiny_tensor(w, t, i, "attn_q.bias", q, 0);
        tiny_tensor(w, t, i, "attn_k.bias", kv, 0);
        tiny_tensor(w, t, i, "attn_v.bias", kv, 0);
    }
    if (gemma || !strcmp(t->architecture, "qwen3")) {
        tiny_tensor(w, t, i, "attn_q_norm.weight", t->head_dim, 0);
        tiny_tensor(w, t, i, "attn_k_norm.weight", t->head_dim, 0);
    }
    tiny_tensor(w, t, i, "ffn_norm.weight", t->n_embd, 0);
    tiny_tensor(w, t, i, "ffn_gate.weight", t->n_embd, t->n_ff);
    tiny_tensor(w, t, i, "ffn_up.weight", t->n_embd, t->n_ff);
    tiny_tensor(w, t, i, "ffn_down.weight", t->n_ff, t->n_embd);
    if (gemma) {
        tiny_tensor(w, t, i, "post_attention_norm.weight", t->n_embd, 0);
        tiny_tensor(w, t, i, "post_ffw_norm.weight", t->n_embd, 0);
    }
}

static inline struct gguf_writer tiny_make(const struct tiny *t)
{
    struct gguf_writer w = gw_start();
    tiny_text(&w, t, "general.architecture", t->architecture);
    tiny_text(&w, t, "general.name", "tiny");
    tiny_int(&w, t, ".block_count", t->n_layers);
    tiny_int(&w, t, ".context_length", 64);
    tiny_int(&w, t, ".embedding_length", t->n_embd);
    tiny_int(&w, t, ".feed_forward_length", t->n_ff);
    tiny_int(&w, t, ".attention.head_count", t->n_heads);
    tiny_int(&w, t, ".attention.head_count_kv", t->n_kv_heads);
    tiny_int(&w, t, ".attention.key_length", t->head_dim);
    tiny_int(&w, t, ".attention.value_length", t->head_dim);
    tiny_int(&w, t, ".rope.dimension_count", t->head_dim);
    tiny_f32(&w, t, ".rope.freq_base", 10000);
    tiny_f32(&w, t, ".attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_text(&w, t, "tokenizer.ggml.model", t->tokenizer ? t->tokenizer : "llama");
    tiny_list(&w, t, "tokenizer.ggml.tokens", TERN_META_STRING);
    tiny_list(&w, t, "tokenizer.ggml.scores", TERN_META_F32);
    tiny_list(&w, t, "tokenizer.ggml.token_type", TERN_META_I32);
    tiny_int(&w, t, "tokenizer.ggml.bos_token_id", 1);
    tiny_int(&w, t, "tokenizer.ggml.eos_token_id", 2);
    if (t->more)
        t->more(&w);
    tiny_tensor(&w, t, -1, "token_embd.weight", t->n_embd, TINY_VOCAB);
    for (uint64_t i = 0; i < t->n_layers; i++)
        tiny_layer(&w, t, (int)i);
    tiny_tensor(&w, t, -1, "output_norm.weight", t->n_embd, 0);
    if (t->has_output)
        tiny_tensor(&w, t, -1, "output.weight", t->n_embd, TINY_VOCAB);
    gw_finish(&w);
    return w;
}

#endif
