/* gguf_writer.h: GGUF files in memory, right or wrong as a test wants them.
 *
 * Keys and tensors are appended in any order and put together by gw_finish, which fills in the
 * counts, the padding and the data. Anything can be written raw, so anything can be wrong. */
#ifndef TERN_TEST_GGUF_WRITER_H
#define TERN_TEST_GGUF_WRITER_H

#include "runtime/model.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct gw_bytes { unsigned char *data; size_t n, cap; };

struct gguf_writer {
    struct gw_bytes keys, tensors, data, file;
    uint64_t n_keys, n_tensors; /* may be overwritten before gw_finish */
    uint32_t version, alignment;
    char magic[4];
};

static inline void gw_put(struct gw_bytes *b, const void *data, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n) + 64;
        b->data = realloc(b->data, b->cap);
        if (!b->data)
            abort();
    }
    if (n && data)
        memcpy(b->data + b->n, data, n);
    else if (n)
        memset(b->data + b->n, 0, n);
    b->n += n;
}

static inline void gw_put_int(struct gw_bytes *b, uint64_t u, int n)
{
    for (int i = 0; i < n; i++, u >>= 8) {
        const unsigned char c = (unsigned char)u;
        gw_put(b, &c, 1);
    }
}

static inline void gw_put_text(struct gw_bytes *b, const char *s)
{
    gw_put_int(b, strlen(s), 8);
    gw_put(b, s, strlen(s));
}

static inline struct gguf_writer gw_start(void)
{
    return (struct gguf_writer){.version = 3, .alignment = 32, .magic = {'G', 'G', 'U', 'F'}};
}

static inline void gw_free(struct gguf_writer *w)
{
    free(w->keys.data);
    free(w->tensors.data);
    free(w->data.data);
    free(w->file.data);
    *w = (struct gguf_writer){0};
}

static inline void gw_key(struct gguf_writer *w, const char *key, uint32_t type)
{
    gw_put_text(&w->keys, key);
    gw_put_int(&w->keys, type, 4);
    w->n_keys++;
}

/* Any integer or bool type. */
static inline void gw_int(struct gguf_writer *w, const char *key, uint32_t type, int64_t value)
{
    static const int bytes[TERN_N_META_TYPES] = {
        [TERN_META_U8] = 1, [TERN_META_I8] = 1, [TERN_META_U16] = 2, [TERN_META_I16] = 2,
        [TERN_META_BOOL] = 1, [TERN_META_U64] = 8, [TERN_META_I64] = 8, [TERN_META_U32] = 4,
        [TERN_META_I32] = 4,
    };
    gw_key(w, key, type);
    gw_put_int(&w->keys, (uint64_t)value, bytes[type]);
}

static inline void gw_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    gw_int(w, key, TERN_META_U32, value);
}

static inline void gw_f32(struct gguf_writer *w, const char *key, float value)
{
    gw_key(w, key, TERN_META_F32);
    gw_put(&w->keys, &value, 4);
}

static inline void gw_f64(struct gguf_writer *w, const char *key, double value)
{
    gw_key(w, key, TERN_META_F64);
    gw_put(&w->keys, &value, 8);
}

static inline void gw_text(struct gguf_writer *w, const char *key, const char *value)
{
    gw_key(w, key, TERN_META_STRING);
    gw_put_text(&w->keys, value);
}

/* The start of an array; its elements are put into w->keys. */
static inline void gw_array(struct gguf_writer *w, const char *key, uint32_t element, uint64_t n)
{
    gw_key(w, key, TERN_META_ARRAY);
    gw_put_int(&w->keys, element, 4);
    gw_put_int(&w->keys, n, 8);
}

static inline void gw_texts(struct gguf_writer *w, const char *key, const char *const *s, size_t n)
{
    gw_array(w, key, TERN_META_STRING, n);
    for (size_t i = 0; i < n; i++)
        gw_put_text(&w->keys, s[i]);
}

/* A line of the directory, true or not. */
static inline void gw_tensor_raw(struct gguf_writer *w, const char *name, uint32_t type,
                                 uint32_t n_dims, const uint64_t *dims, uint64_t offset)
{
    gw_put_text(&w->tensors, name);
    gw_put_int(&w->tensors, n_dims, 4);
    for (uint32_t i = 0; i < n_dims && i < 8; i++)
        gw_put_int(&w->tensors, dims[i], 8);
    gw_put_int(&w->tensors, type, 4);
    gw_put_int(&w->tensors, offset, 8);
    w->n_tensors++;
}

/* A float32 tensor with its data: zeros. rows 0: a vector. */
static inline void gw_tensor(struct gguf_writer *w, const char *name, uint64_t cols, uint64_t rows)
{
    const uint64_t dims[2] = {cols, rows};
    gw_tensor_raw(w, name, 0, rows ? 2 : 1, dims, w->data.n);
    gw_put(&w->data, NULL, (size_t)(4 * cols * (rows ? rows : 1)));
    gw_put(&w->data, NULL, (w->alignment - w->data.n % w->alignment) % w->alignment);
}

static inline void gw_finish(struct gguf_writer *w)
{
    struct gw_bytes *f = &w->file;
    f->n = 0;
    gw_put(f, w->magic, 4);
    gw_put_int(f, w->version, 4);
    gw_put_int(f, w->n_tensors, 8);
    gw_put_int(f, w->n_keys, 8);
    gw_put(f, w->keys.data, w->keys.n);
    gw_put(f, w->tensors.data, w->tensors.n);
    gw_put(f, NULL, (w->alignment - f->n % w->alignment) % w->alignment);
    gw_put(f, w->data.data, w->data.n);
}

#endif
