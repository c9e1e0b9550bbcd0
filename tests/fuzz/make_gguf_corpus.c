/* make_gguf_corpus.c: writes tests/fuzz/corpus/gguf: a tiny model of each architecture, and
 * files that show every kind of value, each below 4 KB.
 *
 *     make_gguf_corpus tests/fuzz/corpus/gguf */
#include "tests/unit/tiny_model.h"

#include <stdio.h>

static int write_file(const char *folder, const char *name, const struct gguf_writer *w)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f) {
        perror(path);
        return 1;
    }
    const size_t n = fwrite(w->file.data, 1, w->file.n, f);
    return fclose(f) || n != w->file.n;
}

static void scaled(struct gguf_writer *w)
{
    gw_text(w, "llama.rope.scaling.type", "yarn");
    gw_f32(w, "llama.rope.scaling.factor", 4);
    gw_array(w, "llama.attention.head_count_kv", TERN_META_U32, 1);
    gw_put_int(&w->keys, 1, 4);
}

static void windowed(struct gguf_writer *w)
{
    gw_u32(w, "gemma3.attention.sliding_window", 3);
    gw_array(w, "gemma3.attention.sliding_window_pattern", TERN_META_BOOL, 1);
    gw_put_int(&w->keys, 1, 1);
    gw_f32(w, "gemma3.final_logit_softcapping", 30);
}

static struct gguf_writer values(void)
{
    static const char *const texts[] = {"one", "", "two"};
    struct gguf_writer w = gw_start();
    w.version = 2;
    w.alignment = 64;
    gw_u32(&w, "general.alignment", 64);
    gw_text(&w, "general.architecture", "none");
    for (uint32_t type = 0; type < TERN_N_META_TYPES; type++) {
        char key[16];
        snprintf(key, sizeof key, "k.%u", (unsigned)type);
        if (type == TERN_META_STRING)
            gw_text(&w, key, "text \xff");
        else if (type == TERN_META_ARRAY)
            gw_texts(&w, key, texts, 3);
        else if (type == TERN_META_F32)
            gw_f32(&w, key, 0.5f);
        else if (type == TERN_META_F64)
            gw_f64(&w, key, 0.5);
        else
            gw_int(&w, key, type, 1);
    }
    gw_tensor(&w, "a", 4, 2);
    gw_tensor(&w, "b", 8, 0);
    gw_finish(&w);
    return w;
}

static struct gguf_writer bpe(void)
{
    static const char *const pieces[] = {"<|endoftext|>", "a", "b", "ab", "\xc4\xa0",
                                         "\xc4\xa0" "ab"};
    static const char *const merges[] = {"a b", "\xc4\xa0 ab"};
    struct gguf_writer w = gw_start();
    gw_text(&w, "general.architecture", "none");
    gw_text(&w, "tokenizer.ggml.model", "gpt2");
    gw_text(&w, "tokenizer.ggml.pre", "gpt-2");
    gw_texts(&w, "tokenizer.ggml.tokens", pieces, 6);
    gw_texts(&w, "tokenizer.ggml.merges", merges, 2);
    gw_array(&w, "tokenizer.ggml.token_type", TERN_META_I32, 6);
    for (int i = 0; i < 6; i++)
        gw_put_int(&w.keys, i ? 1 : 3, 4);
    gw_u32(&w, "tokenizer.ggml.eos_token_id", 0);
    gw_finish(&w);
    return w;
}

/* Shown, and not run. */
static struct gguf_writer unknown_types(void)
{
    struct gguf_writer w = gw_start();
    gw_text(&w, "general.architecture", "llama");
    gw_tensor(&w, "a", 4, 2);
    gw_tensor_raw(&w, "b", 28, 2, (const uint64_t[]){3, 5}, 32);
    gw_tensor_raw(&w, "c", 99, 1, (const uint64_t[]){7}, 32);
    gw_finish(&w);
    return w;
}

int main(int argc, char **argv)
{
    static const char *const architectures[] = {"llama", "qwen2", "qwen3", "gemma3"};
    if (argc != 2)
        return 2;
    int failed = 0;
    for (int a = 0; a < 4; a++) {
        struct tiny t = tiny_of(architectures[a]);
        t.n_layers = 1;
        t.n_embd = t.n_ff = t.head_dim = 2;
        t.n_heads = 1;
        t.more = a == 0 ? scaled : a == 3 ? windowed : NULL;
        t.key = a == 0 ? ".attention.head_count_kv" : NULL;
        t.change = DELETED;
        struct gguf_writer w = tiny_make(&t);
        failed |= write_file(argv[1], architectures[a], &w);
        gw_free(&w);
    }
    struct gguf_writer v = values(), b = bpe(), u = unknown_types();
    failed |= write_file(argv[1], "values", &v) | write_file(argv[1], "bpe", &b) |
              write_file(argv[1], "unknown_types", &u);
    gw_free(&v);
    gw_free(&b);
    gw_free(&u);
    return failed;
}
