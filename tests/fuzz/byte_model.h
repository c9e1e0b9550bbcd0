/* byte_model.h: a small whole model that can write any bytes, for runs that compute.
 *
 * Its weights are noise of a fixed seed. One token's row of the embedding is NaN and one is huge,
 * so that text can bring activations that are not finite. The windowed model has two KV groups
 * and a BPE vocabulary, the other one SentencePiece pieces with byte tokens. */
#ifndef TERN_TEST_BYTE_MODEL_H
#define TERN_TEST_BYTE_MODEL_H

#include "tests/unit/gguf_writer.h"

#include <stdio.h>

enum { BYTE_EMBD = 32, BYTE_HEADS = 2, BYTE_HEAD_DIM = 16, BYTE_FF = 32, BYTE_WINDOW = 5 };
enum { BYTE_NAN_TOKEN = 40, BYTE_HUGE_TOKEN = 41, BYTE_VOCAB = 266 };

static inline uint32_t byte_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static inline void byte_floats(struct gw_bytes *b, size_t n, float centre, float size)
{
    static uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        const float x = centre + size * (float)(int32_t)byte_random(&state) * 0x1p-31f;
        gw_put(b, &x, 4);
    }
}

/* Blocks of random codes behind one scale: Q8_0 or Q4_0. */
static inline void byte_blocks(struct gw_bytes *b, size_t n, uint32_t bytes, uint16_t scale)
{
    uint32_t state = (uint32_t)b->n + 1;
    for (size_t i = 0; i < n; i++) {
        gw_put_int(b, scale, 2);
        for (uint32_t k = 0; k < bytes; k++)
            gw_put_int(b, byte_random(&state) >> 9, 1);
    }
}

/* layer < 0: of no layer. rows 0: a vector, a norm's. */
static inline void byte_tensor(struct gguf_writer *w, int layer, const char *name, uint32_t type,
                               uint64_t cols, uint64_t rows)
{
    char full[64];
    const uint64_t dims[2] = {cols, rows};
    snprintf(full, sizeof full, layer < 0 ? "%.0d%s.weight" : "blk.%d.%s.weight",
             layer < 0 ? 0 : layer, name);
    gw_tensor_raw(w, full, type, rows ? 2 : 1, dims, w->data.n);
    if (type == 8)
        byte_blocks(&w->data, (size_t)(cols * rows / 32), 32, 0x1800);
    else if (type == 2)
        byte_blocks(&w->data, (size_t)(cols * rows / 32), 16, 0x2800);
    else
        byte_floats(&w->data, (size_t)(cols * (rows ? rows : 1)), !rows, rows ? 0.5f : 0.25f);
    gw_put(&w->data, NULL, (w->alignment - w->data.n % w->alignment) % w->alignment);
}

static inline void byte_layer(struct gguf_writer *w, int i, bool windowed)
{
    enum { Q = BYTE_HEADS * BYTE_HEAD_DIM };
    byte_tensor(w, i, "attn_norm", 0, BYTE_EMBD, 0);
    byte_tensor(w, i, "attn_q", 8, BYTE_EMBD, Q);
    byte_tensor(w, i, "attn_k", 2, BYTE_EMBD, BYTE_HEAD_DIM);
    byte_tensor(w, i, "attn_v", 0, BYTE_EMBD, BYTE_HEAD_DIM);
    byte_tensor(w, i, "attn_output", 8, Q, BYTE_EMBD);
    byte_tensor(w, i, "ffn_norm", 0, BYTE_EMBD, 0);
    byte_tensor(w, i, "ffn_gate", 2, BYTE_EMBD, BYTE_FF);
    byte_tensor(w, i, "ffn_up", 8, BYTE_EMBD, BYTE_FF);
    byte_tensor(w, i, "ffn_down", 8, BYTE_FF, BYTE_EMBD);
    if (!windowed)
        return;
    byte_tensor(w, i, "attn_q_norm", 0, BYTE_HEAD_DIM, 0);
    byte_tensor(w, i, "attn_k_norm", 0, BYTE_HEAD_DIM, 0);
    byte_tensor(w, i, "post_attention_norm", 0, BYTE_EMBD, 0);
    byte_tensor(w, i, "post_ffw_norm", 0, BYTE_EMBD, 0);
}

/* --- vocabularies of BYTE_VOCAB pieces, the first three of them special --- */

static inline void byte_spm(struct gguf_writer *w)
{
    static const char *const more[] = {"\xe2\x96\x81", "a", "b", "ab", "\xe2\x96\x81\x61\x62",
                                       "\xe2\x82", "<|im_end|>"};
    char name[8];
    gw_text(w, "tokenizer.ggml.model", "llama");
    gw_array(w, "tokenizer.ggml.tokens", TERN_META_STRING, BYTE_VOCAB);
    gw_put_text(&w->keys, "<unk>");
    gw_put_text(&w->keys, "<s>");
    gw_put_text(&w->keys, "</s>");
    for (unsigned i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", i);
        gw_put_text(&w->keys, name);
    }
    for (int i = 0; i < 7; i++)
        gw_put_text(&w->keys, more[i]);
    gw_array(w, "tokenizer.ggml.scores", TERN_META_F32, BYTE_VOCAB);
    for (int i = 0; i < BYTE_VOCAB; i++) {
        const float score = -(float)i;
        gw_put(&w->keys, &score, 4);
    }
    gw_array(w, "tokenizer.ggml.token_type", TERN_META_I32, BYTE_VOCAB);
    for (int i = 0; i < BYTE_VOCAB; i++)
        gw_put_int(&w->keys, i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : i == 265 ? 4 : 1, 4);
}

/* The letter that stands for a byte in byte-level BPE (GPT-2): itself if it can be seen. */
static inline size_t byte_letter(unsigned byte, char *out)
{
    unsigned c = byte, moved = 256;
    for (unsigned i = 0; i <= byte; i++) {
        const bool seen = (i >= 33 && i < 127) || (i >= 161 && i < 256 && i != 173);
        c = seen ? i : moved++;
    }
    if (c < 128)
        return (size_t)sprintf(out, "%c", (int)c);
    return (size_t)sprintf(out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
}

static inline void byte_bpe(struct gguf_writer *w)
{
    static const char *const more[] = {"ab", "\xc4\xa0\x61\x62", "aa", "aaaa", "<|im_end|>", "bb",
                                       "\xc4\xa0\xc4\xa0"};
    static const char *const merges[] = {"a b", "\xc4\xa0 ab", "a a", "aa aa", "b b",
                                         "\xc4\xa0 \xc4\xa0"};
    gw_text(w, "tokenizer.ggml.model", "gpt2");
    gw_text(w, "tokenizer.ggml.pre", "gpt-2");
    gw_array(w, "tokenizer.ggml.tokens", TERN_META_STRING, BYTE_VOCAB);
    gw_put_text(&w->keys, "<|pad|>");
    gw_put_text(&w->keys, "<|start|>");
    gw_put_text(&w->keys, "<|endoftext|>");
    for (unsigned i = 0; i < 256; i++) {
        char letter[8];
        byte_letter(i, letter);
        gw_put_text(&w->keys, letter);
    }
    for (int i = 0; i < 7; i++)
        gw_put_text(&w->keys, more[i]);
    gw_texts(w, "tokenizer.ggml.merges", merges, sizeof merges / sizeof *merges);
    gw_array(w, "tokenizer.ggml.token_type", TERN_META_I32, BYTE_VOCAB);
    for (int i = 0; i < BYTE_VOCAB; i++)
        gw_put_int(&w->keys, i < 3 ? 3 : i == 263 ? 4 : 1, 4);
}

/* --- the file --- */

static inline void byte_key(struct gguf_writer *w, const char *architecture, const char *key,
                            uint32_t value)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", architecture, key);
    gw_u32(w, full, value);
}

static inline void byte_keys(struct gguf_writer *w, const char *a, bool windowed)
{
    char full[96];
    gw_text(w, "general.architecture", a);
    gw_text(w, "general.name", "bytes");
    byte_key(w, a, "block_count", 2);
    byte_key(w, a, "context_length", 128);
    byte_key(w, a, "embedding_length", BYTE_EMBD);
    byte_key(w, a, "feed_forward_length", BYTE_FF);
    byte_key(w, a, "attention.head_count", BYTE_HEADS);
    byte_key(w, a, "attention.head_count_kv", 1);
    byte_key(w, a, "attention.key_length", BYTE_HEAD_DIM);
    byte_key(w, a, "attention.value_length", BYTE_HEAD_DIM);
    byte_key(w, a, "rope.dimension_count", BYTE_HEAD_DIM);
    snprintf(full, sizeof full, "%s.attention.layer_norm_rms_epsilon", a);
    gw_f32(w, full, 1e-5f);
    if (windowed) {
        byte_key(w, a, "attention.sliding_window", BYTE_WINDOW);
        byte_key(w, a, "attention.sliding_window_pattern", 2);
        byte_bpe(w);
    } else {
        byte_spm(w);
    }
    gw_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gw_u32(w, "tokenizer.ggml.eos_token_id", 2);
}

static inline struct gguf_writer byte_model(bool windowed)
{
    static const uint32_t nan_bits = 0x7fc00000, huge_bits = 0x7d000000;
    struct gguf_writer w = gw_start();
    byte_keys(&w, windowed ? "gemma3" : "llama", windowed);
    byte_tensor(&w, -1, "token_embd", 0, BYTE_EMBD, BYTE_VOCAB);
    for (size_t i = 0; i < BYTE_EMBD; i++) {
        memcpy(w.data.data + 4 * (BYTE_EMBD * BYTE_NAN_TOKEN + i), &nan_bits, 4);
        memcpy(w.data.data + 4 * (BYTE_EMBD * BYTE_HUGE_TOKEN + i), &huge_bits, 4);
    }
    for (int i = 0; i < 2; i++)
        byte_layer(&w, i, windowed);
    byte_tensor(&w, -1, "output_norm", 0, BYTE_EMBD, 0);
    byte_tensor(&w, -1, "output", 8, BYTE_EMBD, BYTE_VOCAB);
    gw_finish(&w);
    return w;
}

#endif
