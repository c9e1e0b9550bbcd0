/* small_vocab.h: vocabularies for tests, as models with a tokenizer and nothing else. */
#ifndef TERN_TEST_SMALL_VOCAB_H
#define TERN_TEST_SMALL_VOCAB_H

#include "gguf_writer.h"
#include "open_model.h"
#include "runtime/unicode.h"
#include "runtime/vocab.h"

#include <stdio.h>

enum { SV_CAP = 1024 };

enum { SV_TEXT = 48 }; /* of a piece, with its NUL */
struct sv_merge { char left[SV_TEXT], right[SV_TEXT]; };

struct small_vocab {
    struct { char text[SV_TEXT]; int kind; float score; } pieces[SV_CAP];
    struct sv_merge merges[SV_CAP];
    int n_pieces, n_merges;
};

static inline int sv_add(struct small_vocab *v, const char *text, int kind, float score)
{
    if (v->n_pieces == SV_CAP || strlen(text) >= SV_TEXT)
        abort();
    strcpy(v->pieces[v->n_pieces].text, text);
    v->pieces[v->n_pieces].kind = kind;
    v->pieces[v->n_pieces].score = score;
    return v->n_pieces++;
}

static inline int sv_find(const struct small_vocab *v, const char *text)
{
    for (int i = 0; i < v->n_pieces; i++)
        if (strcmp(v->pieces[i].text, text) == 0)
            return i;
    return -1;
}

/* The 256 bytes as byte-level BPE spells them; token ids equal bytes in an empty vocabulary. */
static inline void sv_add_bytes(struct small_vocab *v)
{
    for (int b = 0; b < 256; b++) {
        char text[8] = {0};
        tern_unicode_encode(tern_vocab_cp_of_byte((unsigned char)b), text);
        sv_add(v, text, TERN_TOKEN_NORMAL, 0);
    }
}

/* A merge, and the token that it makes. */
static inline int sv_merge(struct small_vocab *v, const char *left, const char *right)
{
    char joined[2 * SV_TEXT];
    if (v->n_merges == SV_CAP || strlen(left) + strlen(right) >= SV_TEXT)
        abort();
    strcat(strcpy(joined, left), right);
    strcpy(v->merges[v->n_merges].left, left);
    strcpy(v->merges[v->n_merges].right, right);
    v->n_merges++;
    const int id = sv_find(v, joined);
    return id >= 0 ? id : sv_add(v, joined, TERN_TOKEN_NORMAL, 0);
}

/* <unk> <s> </s> and the 256 byte tokens, which begin at 3. */
static inline void sv_add_spm(struct small_vocab *v)
{
    sv_add(v, "<unk>", TERN_TOKEN_UNKNOWN, 0);
    sv_add(v, "<s>", TERN_TOKEN_CONTROL, 0);
    sv_add(v, "</s>", TERN_TOKEN_CONTROL, 0);
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        sv_add(v, text, TERN_TOKEN_BYTE, 0);
    }
}

static inline void sv_write(const struct small_vocab *v, struct gguf_writer *w, const char *kind,
                            const char *pre)
{
    gw_text(w, "general.architecture", "llama");
    gw_text(w, "tokenizer.ggml.model", kind);
    if (pre)
        gw_text(w, "tokenizer.ggml.pre", pre);
    gw_array(w, "tokenizer.ggml.tokens", TERN_META_STRING, (uint64_t)v->n_pieces);
    for (int i = 0; i < v->n_pieces; i++)
        gw_put_text(&w->keys, v->pieces[i].text);
    gw_array(w, "tokenizer.ggml.token_type", TERN_META_I32, (uint64_t)v->n_pieces);
    for (int i = 0; i < v->n_pieces; i++)
        gw_put_int(&w->keys, (uint64_t)v->pieces[i].kind, 4);
    gw_array(w, "tokenizer.ggml.scores", TERN_META_F32, (uint64_t)v->n_pieces);
    for (int i = 0; i < v->n_pieces; i++)
        gw_put(&w->keys, &v->pieces[i].score, 4);
    gw_array(w, "tokenizer.ggml.merges", TERN_META_STRING, (uint64_t)v->n_merges);
    for (int i = 0; i < v->n_merges; i++) {
        char line[100];
        snprintf(line, sizeof line, "%s %s", v->merges[i].left, v->merges[i].right);
        gw_put_text(&w->keys, line);
    }
}

/* Closes the writer. */
static inline struct opened *sv_finish(struct gguf_writer *w, enum open_how how)
{
    gw_finish(w);
    struct opened *o = open_bytes(how, TERN_MODEL_TEXT, w->file.data, w->file.n);
    gw_free(w);
    return o;
}

static inline struct opened *sv_open(const struct small_vocab *v, const char *kind, const char *pre)
{
    struct gguf_writer w = gw_start();
    sv_write(v, &w, kind, pre);
    return sv_finish(&w, OPEN_MAPPED);
}

/* Tokens of a text, in memory of exactly the sizes that the library asks for; the caller frees
 * them. */
static inline tern_token *sv_tokenize(const tern_model *model, const char *text, size_t size,
                                      uint32_t flags, size_t *n)
{
    const size_t need = tern_tokenize_scratch(model, size), most = tern_tokenize_most(model, size);
    void *scratch = malloc(need);
    tern_token *out = malloc(most * sizeof *out);
    tern_error err = {0};
    if (!scratch || !out ||
        tern_tokenize(model, (tern_text){text, size}, flags, (tern_memory){scratch, need}, out,
                      most, n, &err) != TERN_OK)
        abort();
    if (*n > most || *n < tern_tokenize_least(model, size))
        abort();
    free(scratch);
    return out;
}

/* These ids of this text, no more and no less. */
static inline void sv_expect(const tern_model *model, const char *text, size_t size, uint32_t flags,
                             const tern_token *ids, size_t n_ids)
{
    size_t n;
    tern_token *out = sv_tokenize(model, text, size, flags, &n);
    assert_int_equal(n, n_ids);
    if (n)
        assert_memory_equal(out, ids, n * sizeof *ids);
    free(out);
}

#define SV_EXPECT(model, text, flags, ...)                                                         \
    sv_expect(model, text, strlen(text), flags, (const tern_token[]){__VA_ARGS__},                 \
              sizeof(const tern_token[]){__VA_ARGS__} / sizeof(tern_token))

/* Numbers from a seed, the same on every machine. */
static inline uint32_t sv_dice(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)*seed * n >> 32);
}

#endif
