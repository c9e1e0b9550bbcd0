/* image_write.c: a model as an image, through a sink, from front to back.
 *
 * The head is put together in scratch memory, by one walk that measures or writes. It goes out
 * last, since it holds the hashes of all the rest: an image whose writing was interrupted has no
 * head and is nobody's image. Weights stand in the order in which the program uses them, each
 * once however often it is used; tensors that the program leaves alone follow as they are.
 * The same model gives the same bytes: nothing of the machine or the clock gets in. */
#include "quant/format.h"
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/gguf.h"
#include "runtime/hash.h"
#include "runtime/image.h"
#include "runtime/text.h"
#include "runtime/vocab.h"

#include <string.h>

enum { PIECE = 64 << 10 };

struct build {
    const tern_model *m;
    const tern_sink *sink;
    tern_error *err;
    unsigned char *head_bytes;    /* NULL while measuring */
    struct tern_image_head *head; /* the start of it, or where it is measured */
    uint64_t *offsets;            /* [n_tensors] where each lies; 0: not placed yet */
    unsigned char *zeros, *rows, *packed;
    struct tern_hash hash;        /* of the section under way */
    bool changed;                 /* the head does not fit where it was measured */
    uint64_t at;                  /* where the next byte goes */
};

/* --- sizes --- */

static uint32_t form_of(const tern_model *m, uint32_t tensor)
{
    for (uint32_t i = 0; i < m->program.n_weights; i++)
        if (m->program.weights[i].tensor == tensor)
            return m->program.weights[i].matrix ? TERN_IMAGE_AS_PANELS : TERN_IMAGE_AS_FLOATS;
    return TERN_IMAGE_AS_ROWS;
}

static uint64_t align(uint64_t at, uint64_t to)
{
    return (at + to - 1) / to * to;
}

/* Scratch for one step of a tensor: rows of a panel, a vector, or a piece. */
static uint64_t step_bytes(const struct tern_tensor *t, uint32_t form)
{
    if (form == TERN_IMAGE_AS_PANELS)
        return t->bytes / t->dims[1] * TERN_PANEL_ROWS;
    const uint64_t floats = tern_image_tensor_bytes(t, TERN_IMAGE_AS_FLOATS);
    return form == TERN_IMAGE_AS_ROWS ? PIECE : floats > t->bytes ? floats : t->bytes;
}

static tern_status measure_weights(const tern_model *m, uint64_t *bytes, uint64_t *step,
                                   tern_error *err)
{
    *bytes = *step = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const struct tern_tensor *t = &m->tensors[i];
        const uint32_t form = form_of(m, i);
        const uint64_t n = tern_image_tensor_bytes(t, form);
        if (n > INT64_MAX - *bytes)
            return tern_fail(err, TERN_UNSUPPORTED, "tensor %t: %u bytes after %u", t->name, n,
                             *bytes);
        *bytes += align(n, TERN_IMAGE_ALIGN);
        const uint64_t s = step_bytes(t, form);
        *step = s > *step ? s : *step;
    }
    return TERN_OK;
}

/* --- the head's sections: measured while there is no memory for them --- */

static void *put(struct build *b, const void *data, uint64_t n)
{
    const uint64_t most = b->head->head_bytes; /* as it was measured */
    if (b->head_bytes && (b->at > most || n > most - b->at))
        b->changed = true;
    unsigned char *to = b->head_bytes && !b->changed ? b->head_bytes + b->at : NULL;
    if (to && data)
        memcpy(to, data, (size_t)n);
    b->at += n;
    return to;
}

static void put_u32(struct build *b, uint32_t x)
{
    put(b, &x, sizeof x);
}

static void put_u64(struct build *b, uint64_t x)
{
    put(b, &x, sizeof x);
}

/* n bytes of the file. */
static tern_status put_file(struct build *b, uint64_t at, uint64_t n)
{
    void *to = put(b, NULL, n);
    struct tern_reader r = tern_reader_at(&b->m->parts[0], at);
    if (to)
        tern_read(&r, to, (size_t)n);
    return r.failed ? tern_gguf_short(&r, "metadata", b->err) : TERN_OK;
}

static bool is_cut(tern_text key)
{
    for (int i = 0; i < TERN_IMAGE_N_CUT; i++)
        if (tern_text_is(key, tern_image_cut_keys[i]))
            return true;
    return false;
}

static tern_status put_array(struct build *b, const struct tern_meta *k)
{
    const bool cut = is_cut(k->key) && k->count > TERN_IMAGE_SHOWN;
    const uint64_t count = cut ? TERN_IMAGE_SHOWN : k->count;
    put_u32(b, k->element);
    put_u64(b, count);
    if (k->element != TERN_META_STRING)
        return put_file(b, k->at, count * tern_gguf_value_bytes(k->element));
    struct tern_reader r = tern_reader_at(&b->m->parts[0], k->at);
    for (uint64_t i = 0; i < count && !r.failed; i++)
        tern_skip(&r, tern_read_u64(&r));
    return r.failed ? tern_gguf_short(&r, "metadata", b->err) : put_file(b, k->at, r.at - k->at);
}

/* Keys about the file itself, which an image is no part of. */
static bool is_left_out(tern_text key)
{
    return tern_text_is(key, "split.no") || tern_text_is(key, "split.count") ||
           tern_text_is(key, "split.tensors.count") || tern_text_is(key, "general.alignment");
}

static tern_status put_metadata(struct build *b)
{
    b->head->n_metadata = 0;
    for (uint32_t i = 0; i < b->m->n_metadata; i++) {
        const struct tern_meta *k = &b->m->metadata[i];
        tern_status status = TERN_OK;
        if (is_left_out(k->key))
            continue;
        put_u64(b, k->key.size);
        put(b, k->key.data, k->key.size);
        put_u32(b, k->type);
        if (k->type == TERN_META_ARRAY) {
            status = put_array(b, k);
        } else if (k->type == TERN_META_STRING) {
            put_u64(b, k->v.s.size);
            put(b, k->v.s.data, k->v.s.size);
        } else {
            status = put_file(b, k->at, tern_gguf_value_bytes(k->type));
        }
        if (status)
            return status;
        if (b->at > TERN_IMAGE_MOST_HEAD)
            return tern_fail(b->err, TERN_UNSUPPORTED, "image: metadata of more than %u bytes",
                             (uint64_t)TERN_IMAGE_MOST_HEAD);
        b->head->n_metadata++;
    }
    return TERN_OK;
}

static tern_status put_tensors(struct build *b)
{
    uint32_t name_at = 0;
    for (uint32_t i = 0; i < b->m->n_tensors; i++) {
        const struct tern_tensor *t = &b->m->tensors[i];
        struct tern_image_tensor e = {
            .name_at = name_at, .name_bytes = (uint16_t)t->name.size, .type = t->type,
            .n_dims = (uint8_t)t->n_dims, .form = (uint8_t)form_of(b->m, i),
            .offset = b->offsets ? b->offsets[i] : 0,
        };
        memcpy(e.dims, t->dims, sizeof e.dims);
        e.bytes = tern_image_tensor_bytes(t, e.form);
        put(b, &e, sizeof e);
        name_at += (uint32_t)t->name.size;
        if (b->at > TERN_IMAGE_MOST_HEAD)
            return tern_fail(b->err, TERN_UNSUPPORTED, "image: more tensors than %u bytes hold",
                             (uint64_t)TERN_IMAGE_MOST_HEAD);
    }
    return TERN_OK;
}

static tern_status put_names(struct build *b)
{
    for (uint32_t i = 0; i < b->m->n_tensors; i++)
        put(b, b->m->tensors[i].name.data, b->m->tensors[i].name.size);
    return TERN_OK;
}

static tern_status put_vocab(struct build *b)
{
    const struct tern_vocab *v = b->m->vocab;
    struct tern_image_vocab r = {
        .family = (uint32_t)v->family,
        .flags = (v->adds_bos ? TERN_IMAGE_ADDS_BOS : 0) |
                 (v->adds_eos ? TERN_IMAGE_ADDS_EOS : 0) |
                 (v->adds_space ? TERN_IMAGE_ADDS_SPACE : 0) |
                 (v->words_stand_alone ? TERN_IMAGE_WORDS_ALONE : 0) |
                 (v->unique ? TERN_IMAGE_UNIQUE : 0),
        .ids = {v->bos, v->eos, v->eot, v->eom, v->pad, v->unk, v->sep},
        .n_tokens = v->n_tokens, .n_slots = v->n_slots, .n_merges = v->n_merges,
        .n_pairs = v->n_pairs, .n_specials = v->n_specials, .longest = v->longest,
        .longest_special = v->longest_special,
    };
    struct tern_meta k;
    for (int i = 0; i < TERN_IMAGE_N_CUT; i++)
        if (tern_meta_find(b->m, tern_image_cut_keys[i], &k) && k.type == TERN_META_ARRAY)
            r.cut_counts[i] = k.count;
    put(b, &r, sizeof r);
    return TERN_OK;
}

/* All sections of the head, and the bytes of the head, into b->head. */
static tern_status put_head(struct build *b)
{
    static tern_status (*const puts[TERN_IMAGE_N_IN_HEAD])(struct build *) = {
        put_metadata, put_tensors, put_names, put_vocab,
    };
    b->at = sizeof *b->head;
    for (uint32_t i = 0; i < TERN_IMAGE_N_IN_HEAD; i++) {
        struct tern_image_section *s = &b->head->sections[i];
        const uint64_t from = b->at = align(b->at, TERN_IMAGE_ALIGN);
        const tern_status status = puts[i](b);
        if (status)
            return status;
        s->bytes = b->at - from;
        s->offset = s->bytes ? from : 0;
        if (b->changed)
            return tern_fail(b->err, TERN_IO, "image: the file changed while it was read");
        if (b->head_bytes)
            s->hash = tern_hash_of(b->head_bytes + s->offset, (size_t)s->bytes);
    }
    b->head->head_bytes = align(b->at, TERN_IMAGE_ALIGN);
    if (b->head->head_bytes > TERN_IMAGE_MOST_HEAD)
        return tern_fail(b->err, TERN_UNSUPPORTED, "image: a head of %u bytes, at most %u",
                         b->head->head_bytes, (uint64_t)TERN_IMAGE_MOST_HEAD);
    return TERN_OK;
}

/* --- the tail --- */

struct table { const void *data; uint64_t bytes; };

static struct table table_of(const struct tern_vocab *v, enum tern_image_part part)
{
    switch (part) {
    case TERN_IMAGE_PIECES: return (struct table){v->pool, v->pool_bytes};
    case TERN_IMAGE_STARTS: return (struct table){v->starts, 4 * ((uint64_t)v->n_tokens + 1)};
    case TERN_IMAGE_KINDS: return (struct table){v->kinds, v->n_tokens};
    case TERN_IMAGE_SCORES: return (struct table){v->scores, v->scores ? 4 * (uint64_t)v->n_tokens
                                                                       : 0};
    case TERN_IMAGE_SLOTS: return (struct table){v->slots, 4 * (uint64_t)v->n_slots};
    case TERN_IMAGE_PAIRS: return (struct table){v->pairs, 8 * (uint64_t)v->n_pairs};
    case TERN_IMAGE_MERGED: return (struct table){v->merged, 4 * (uint64_t)v->n_merges};
    case TERN_IMAGE_BYTES: return (struct table){v->bytes, 256 * sizeof *v->bytes};
    case TERN_IMAGE_SPECIALS: return (struct table){v->specials, 4 * (uint64_t)v->n_specials};
    case TERN_IMAGE_FIRSTS: return (struct table){v->special_first, 257 * sizeof(uint32_t)};
    default: return (struct table){v->special_reach, 256 * sizeof(uint16_t)};
    }
}

/* The places of the tail's sections, behind a head of this size. */
static void place(const tern_model *m, struct tern_image_head *h, uint64_t weights)
{
    uint64_t at = h->head_bytes;
    for (uint32_t i = TERN_IMAGE_N_IN_HEAD; i < TERN_IMAGE_N_PARTS; i++) {
        struct tern_image_section *s = &h->sections[i];
        s->bytes = i == TERN_IMAGE_WEIGHTS ? weights
                                           : table_of(m->vocab, (enum tern_image_part)i).bytes;
        if (!s->bytes)
            continue;
        s->offset = align(at, TERN_IMAGE_PAGE);
        at = s->offset + s->bytes;
    }
    h->image_bytes = at;
}

static tern_status emit(struct build *b, const void *data, uint64_t n)
{
    if (!n)
        return TERN_OK;
    if (!b->sink->write(b->sink->self, b->at, data, (size_t)n))
        return tern_fail(b->err, TERN_IO, "image: writing %u bytes at %u failed", n, b->at);
    tern_hash_add(&b->hash, data, (size_t)n);
    b->at += n;
    return TERN_OK;
}

static tern_status emit_zeros(struct build *b, uint64_t to)
{
    tern_status status = TERN_OK;
    while (!status && b->at < to)
        status = emit(b, b->zeros, to - b->at < TERN_IMAGE_PAGE ? to - b->at : TERN_IMAGE_PAGE);
    return status;
}

/* n bytes of a tensor from `at` of its own on, in memory. */
static tern_status fetch(struct build *b, const struct tern_tensor *t, uint64_t at, uint64_t n,
                         const void **out)
{
    const tern_source *s = &b->m->parts[t->part];
    *out = s->base ? (const unsigned char *)s->base + t->offset + at : b->rows;
    if (!s->base && !s->read(s->self, t->offset + at, b->rows, (size_t)n))
        return tern_fail(b->err, TERN_IO, "%t: reading %u bytes at %u failed", t->name, n,
                         t->offset + at);
    return TERN_OK;
}

static tern_status emit_panels(struct build *b, const struct tern_tensor *t)
{
    const uint64_t row = t->bytes / t->dims[1];
    for (uint64_t r = 0; r < t->dims[1]; r += TERN_PANEL_ROWS) {
        const uint64_t left = t->dims[1] - r, n = left < TERN_PANEL_ROWS ? left : TERN_PANEL_ROWS;
        const void *rows;
        tern_status status = fetch(b, t, r * row, n * row, &rows);
        if (status)
            return status;
        tern_pack_panel(t->type, rows, (size_t)n, (size_t)t->dims[0], b->packed);
        status = emit(b, b->packed, TERN_PANEL_ROWS * row);
        if (status)
            return status;
    }
    return TERN_OK;
}

static tern_status emit_floats(struct build *b, const struct tern_tensor *t)
{
    const uint64_t n = tern_image_tensor_bytes(t, TERN_IMAGE_AS_FLOATS);
    const void *rows;
    const tern_status status = fetch(b, t, 0, t->bytes, &rows);
    if (status)
        return status;
    memset(b->packed, 0, (size_t)n);
    tern_decode_row(t->type, rows, (float *)(void *)b->packed, (size_t)t->dims[0]);
    return emit(b, b->packed, n);
}

static tern_status emit_rows(struct build *b, const struct tern_tensor *t)
{
    for (uint64_t at = 0; at < t->bytes; at += PIECE) {
        const uint64_t n = t->bytes - at < PIECE ? t->bytes - at : PIECE;
        const void *rows;
        tern_status status = fetch(b, t, at, n, &rows);
        if (!status)
            status = emit(b, rows, n);
        if (status)
            return status;
    }
    return TERN_OK;
}

static tern_status emit_tensor(struct build *b, uint32_t i)
{
    const struct tern_tensor *t = &b->m->tensors[i];
    if (b->offsets[i])
        return TERN_OK;
    b->offsets[i] = b->at;
    const uint32_t form = form_of(b->m, i);
    const tern_status status = form == TERN_IMAGE_AS_PANELS   ? emit_panels(b, t)
                               : form == TERN_IMAGE_AS_FLOATS ? emit_floats(b, t)
                                                              : emit_rows(b, t);
    return status ? status : emit_zeros(b, align(b->at, TERN_IMAGE_ALIGN));
}

static tern_status emit_weights(struct build *b)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; !status && i < b->m->program.n_weights; i++)
        status = emit_tensor(b, b->m->program.weights[i].tensor);
    for (uint32_t i = 0; !status && i < b->m->n_tensors; i++)
        status = emit_tensor(b, i);
    return status;
}

static tern_status emit_tail(struct build *b)
{
    b->at = b->head->head_bytes;
    for (uint32_t i = TERN_IMAGE_N_IN_HEAD; i < TERN_IMAGE_N_PARTS; i++) {
        struct tern_image_section *s = &b->head->sections[i];
        tern_status status = s->bytes ? emit_zeros(b, s->offset) : TERN_OK;
        b->hash = tern_hash_begin();
        const struct table table = table_of(b->m->vocab, (enum tern_image_part)i);
        if (!status)
            status = i == TERN_IMAGE_WEIGHTS ? emit_weights(b) : emit(b, table.data, table.bytes);
        if (status)
            return status;
        s->hash = tern_hash_end(&b->hash);
    }
    return TERN_OK;
}

/* --- all of it --- */

static tern_status measure(const tern_model *m, struct tern_image_head *h, uint64_t *step,
                           tern_error *err)
{
    memset(h, 0, sizeof *h);
    if (!m || !m->program.n_ops || !m->vocab)
        return tern_fail(err, TERN_BAD_ARGUMENT, "image: the model was read without its program");
    if (m->image)
        return tern_fail(err, TERN_BAD_ARGUMENT, "image: the model is an image already");
    struct build b = {.m = m, .err = err, .head = h};
    uint64_t weights;
    tern_status status = measure_weights(m, &weights, step, err);
    if (!status)
        status = put_head(&b);
    if (!status)
        place(m, h, weights);
    return status;
}

static void lay_out(struct tern_arena *a, struct build *b, const struct tern_image_head *h,
                    uint64_t step)
{
    const size_t most = step > SIZE_MAX ? SIZE_MAX : (size_t)step;
    b->head_bytes = tern_carve(a, (size_t)h->head_bytes, 1, 64);
    b->offsets = tern_carve(a, b->m->n_tensors, sizeof *b->offsets, 64);
    b->zeros = tern_carve(a, TERN_IMAGE_PAGE, 1, 64);
    b->rows = tern_carve_raw(a, most, 1, 64);
    b->packed = tern_carve_raw(a, most, 1, 64);
}

tern_status tern_image_size(const tern_model *model, uint64_t *bytes, size_t *scratch,
                            tern_error *err)
{
    struct tern_image_head h;
    uint64_t step;
    *bytes = 0;
    *scratch = 0;
    const tern_status status = measure(model, &h, &step, err);
    if (status)
        return status;
    struct build b = {.m = model};
    struct tern_arena a = tern_arena_measure();
    lay_out(&a, &b, &h, step);
    if (a.failed)
        return tern_fail(err, TERN_NO_MEMORY, "image: a row of %u bytes cannot be held", step);
    *bytes = h.image_bytes;
    *scratch = a.used;
    return TERN_OK;
}

static void fill_header(struct tern_image_head *h, const tern_model *m, uint64_t identity)
{
    memcpy(h->magic, TERN_IMAGE_MAGIC, sizeof h->magic);
    h->order = TERN_IMAGE_ORDER;
    h->version = TERN_IMAGE_VERSION;
    h->layout = TERN_PANEL_LAYOUT;
    h->n_sections = TERN_IMAGE_N_PARTS;
    for (uint32_t i = 0; i < TERN_IMAGE_N_PARTS; i++)
        h->sections[i].type = i + 1;
    h->n_tensors = m->n_tensors;
    h->file_version = m->file_version;
    h->n_parts = m->n_parts;
    h->identity = identity;
    h->head_hash = 0;
    h->head_hash = tern_hash_of(h, (size_t)h->head_bytes);
}

tern_status tern_image_write(const tern_model *model, uint64_t identity, tern_memory scratch,
                             const tern_sink *sink, tern_error *err)
{
    struct tern_image_head h;
    uint64_t step;
    tern_status status = measure(model, &h, &step, err);
    if (status)
        return status;
    struct build b = {.m = model, .sink = sink, .err = err};
    struct tern_arena a = tern_arena_over(scratch.data, scratch.size);
    if (!sink || !sink->write || !scratch.data || (uintptr_t)scratch.data % 64)
        return tern_fail(err, TERN_BAD_ARGUMENT, "image: no sink, or scratch that is not aligned "
                         "to 64");
    lay_out(&a, &b, &h, step);
    if (a.failed)
        return tern_fail(err, TERN_NO_MEMORY, "image: scratch of %u bytes, more needed",
                         (uint64_t)scratch.size);
    b.head = (struct tern_image_head *)(void *)b.head_bytes;
    *b.head = h;
    status = emit_tail(&b);
    if (!status)
        status = put_head(&b);
    if (status)
        return status;
    fill_header(b.head, model, identity);
    b.at = 0;
    return emit(&b, b.head_bytes, b.head->head_bytes);
}
