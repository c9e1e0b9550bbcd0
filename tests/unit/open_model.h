/* open_model.h: a file in memory to a model, in memory of exactly the sizes asked for, so that
 * a sanitizer sees every byte read or written beside it. */
#ifndef TERN_TEST_OPEN_MODEL_H
#define TERN_TEST_OPEN_MODEL_H

#include "runtime/model.h"
#include "runtime/tern.h"

#include <stdlib.h>
#include <string.h>

enum open_how { OPEN_MAPPED, OPEN_READ, N_OPEN_HOWS };

/* A part as a source. Reads fail after `reads_left` of them. */
struct opened_part { unsigned char *bytes, *window; uint64_t size; long reads_left; };

struct opened {
    struct opened_part parts[4];
    tern_source sources[4];
    size_t n_parts, need;
    void *memory;
    tern_model *model; /* NULL: status and error say why */
    tern_status status;
    tern_error error;
};

static inline bool opened_read(void *self, uint64_t offset, void *dst, size_t n)
{
    struct opened_part *p = self;
    if (p->reads_left-- <= 0 || offset > p->size || n > p->size - offset)
        return false;
    memcpy(dst, p->bytes + offset, n);
    return true;
}

static inline void open_part(struct opened *o, enum open_how how, const void *bytes, size_t n)
{
    const size_t i = o->n_parts++;
    struct opened_part *p = &o->parts[i];
    *p = (struct opened_part){.size = n, .reads_left = 1L << 40};
    p->bytes = malloc(n ? n : 1);
    p->window = malloc(TERN_SOURCE_WINDOW);
    if (!p->bytes || !p->window)
        abort();
    if (n)
        memcpy(p->bytes, bytes, n);
    o->sources[i] = (tern_source){.size = n};
    if (how == OPEN_MAPPED) {
        o->sources[i].base = p->bytes;
    } else {
        o->sources[i].read = opened_read;
        o->sources[i].self = p;
        o->sources[i].window = (tern_memory){p->window, TERN_SOURCE_WINDOW};
    }
}

static inline void open_run(struct opened *o, tern_model_parts what)
{
    o->status = tern_model_size(o->sources, o->n_parts, what, &o->need, &o->error);
    if (o->status)
        return;
    o->memory = malloc(o->need);
    if (!o->memory)
        abort();
    memset(o->memory, 0xa5, o->need);
    o->status = tern_model_init((tern_memory){o->memory, o->need}, o->sources, o->n_parts, what,
                                &o->model, &o->error);
}

static inline struct opened *open_bytes(enum open_how how, tern_model_parts what, const void *bytes,
                                        size_t n)
{
    struct opened *o = calloc(1, sizeof *o);
    if (!o)
        abort();
    open_part(o, how, bytes, n);
    open_run(o, what);
    return o;
}

static inline void open_close(struct opened *o)
{
    for (size_t i = 0; i < o->n_parts; i++) {
        free(o->parts[i].bytes);
        free(o->parts[i].window);
    }
    free(o->memory);
    free(o);
}

#endif
