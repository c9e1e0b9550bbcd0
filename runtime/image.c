/* image.c: opens a Tern image where it lies, and verifies it.
 *
 * An image is as hostile as any file: the hash of its head finds accidents, and whoever makes an
 * image on purpose makes its hash too. So each field of the head is checked as a GGUF's is, and
 * the tail is left alone: weights may hold any bits, and the tokenizer checks what it reads in
 * its tables when it reads it (vocab.h). The head is at most 16 MiB, in practice some ten
 * kilobytes, so opening takes a bounded time, and none that grows with weights or vocabulary. */
#include "runtime/image.h"

#include "quant/format.h"
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/gguf.h"
#include "runtime/hash.h"
#include "runtime/text.h"

#include <string.h>

static const char *const part_names[TERN_IMAGE_N_PARTS] = {
    "metadata", "tensors", "names", "vocabulary", "pieces", "starts", "kinds", "scores", "slots",
    "pairs", "merged", "bytes", "specials", "firsts", "reaches", "weights",
};

const char *const tern_image_cut_keys[TERN_IMAGE_N_CUT] = {
    "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges",
};

/* --- the head --- */

bool tern_image_is(const tern_source *source)
{
    char magic[4] = {0};
    struct tern_reader r = tern_reader_at(source, 0);
    if (source->size >= sizeof magic)
        tern_read(&r, magic, sizeof magic);
    return !memcmp(magic, TERN_IMAGE_MAGIC, sizeof magic);
}

static tern_status check_place(const tern_source *s, size_t n_parts, tern_error *err)
{
    if (n_parts != 1)
        return tern_fail(err, TERN_BAD_ARGUMENT, "image: %u parts given, an image is one",
                         (uint64_t)n_parts);
    if (!s->base)
        return tern_fail(err, TERN_UNSUPPORTED, "image: the source is read, an image has to lie "
                         "in memory (mapped, linked in, or in flash)");
    if ((uintptr_t)s->base % TERN_IMAGE_ALIGN)
        return tern_fail(err, TERN_BAD_ARGUMENT, "image: it begins at %x, %u-byte alignment needed",
                         (uint64_t)(uintptr_t)s->base, (uint64_t)TERN_IMAGE_ALIGN);
    if (s->size < sizeof(struct tern_image_head))
        return tern_fail(err, TERN_BAD_MODEL, "image too short: %u bytes, its header has %u",
                         s->size, (uint64_t)sizeof(struct tern_image_head));
    return TERN_OK;
}

/* What the rest of the header can only be read under. */
static tern_status check_kind(const struct tern_image_head *h, tern_error *err)
{
    if (memcmp(h->magic, TERN_IMAGE_MAGIC, sizeof h->magic))
        return tern_fail(err, TERN_BAD_MODEL, "not a Tern image: it does not begin with TERNIMG");
    if (h->order != TERN_IMAGE_ORDER)
        return tern_fail(err, TERN_UNSUPPORTED, "image: word order mark %x, %x needed: it was made "
                         "for a machine of another byte order", (uint64_t)h->order,
                         (uint64_t)TERN_IMAGE_ORDER);
    if (h->version != TERN_IMAGE_VERSION)
        return tern_fail(err, TERN_UNSUPPORTED, "image: version %u, this Tern reads %u: build it "
                         "again", (uint64_t)h->version, (uint64_t)TERN_IMAGE_VERSION);
    if (h->layout != TERN_PANEL_LAYOUT)
        return tern_fail(err, TERN_UNSUPPORTED, "image: panel layout %u, this Tern has %u: build "
                         "it again", (uint64_t)h->layout, (uint64_t)TERN_PANEL_LAYOUT);
    return TERN_OK;
}

static uint64_t hash_head(const struct tern_image_head *h)
{
    static const uint64_t zero = 0;
    const size_t at = offsetof(struct tern_image_head, head_hash);
    struct tern_hash hash = tern_hash_begin();
    tern_hash_add(&hash, h, at);
    tern_hash_add(&hash, &zero, sizeof zero);
    tern_hash_add(&hash, (const char *)h + at + sizeof zero,
                  (size_t)h->head_bytes - at - sizeof zero);
    return tern_hash_end(&hash);
}

static tern_status check_sizes(const struct tern_image_head *h, uint64_t size, tern_error *err)
{
    if (h->image_bytes > size)
        return tern_fail(err, TERN_BAD_MODEL, "image too short: %u bytes of %u: is it whole?", size,
                         h->image_bytes);
    if (h->head_bytes < sizeof *h || h->head_bytes > TERN_IMAGE_MOST_HEAD ||
        h->head_bytes > h->image_bytes || h->head_bytes % TERN_IMAGE_ALIGN)
        return tern_fail(err, TERN_BAD_MODEL, "image: a head of %u bytes, from %u to %u are "
                         "possible", h->head_bytes, (uint64_t)sizeof *h,
                         (uint64_t)TERN_IMAGE_MOST_HEAD);
    const uint64_t hash = hash_head(h);
    if (hash != h->head_hash)
        return tern_fail(err, TERN_BAD_MODEL, "image: the head's hash is %x, it says %x: the file "
                         "is damaged", hash, h->head_hash);
    if (h->n_sections != TERN_IMAGE_N_PARTS)
        return tern_fail(err, TERN_BAD_MODEL, "image: %u sections, %u needed",
                         (uint64_t)h->n_sections, (uint64_t)TERN_IMAGE_N_PARTS);
    return TERN_OK;
}

static tern_status check_sections(const struct tern_image_head *h, tern_error *err)
{
    uint64_t end = sizeof *h;
    for (uint32_t i = 0; i < TERN_IMAGE_N_PARTS; i++) {
        const struct tern_image_section *s = &h->sections[i];
        const bool in_head = i < TERN_IMAGE_N_IN_HEAD;
        const uint64_t limit = in_head ? h->head_bytes : h->image_bytes;
        const uint64_t align = in_head ? TERN_IMAGE_ALIGN : TERN_IMAGE_PAGE;
        if (i == TERN_IMAGE_N_IN_HEAD)
            end = h->head_bytes;
        if (s->type != i + 1 || s->zero)
            return tern_fail(err, TERN_BAD_MODEL, "image: section %u is of type %u, %u needed",
                             (uint64_t)i, (uint64_t)s->type, (uint64_t)i + 1);
        if (!s->bytes && !s->offset)
            continue;
        if (!s->bytes || s->offset < end || s->offset > limit || s->bytes > limit - s->offset ||
            s->offset % align)
            return tern_fail(err, TERN_BAD_MODEL, "image: section %s of %u bytes at %u, %u to %u "
                             "are free", part_names[i], s->bytes, s->offset, end, limit);
        end = s->offset + s->bytes;
    }
    return TERN_OK;
}

static tern_status check_head(const tern_source *s, tern_error *err)
{
    const struct tern_image_head *h = s->base;
    tern_status status = check_kind(h, err);
    if (!status)
        status = check_sizes(h, s->size, err);
    return status ? status : check_sections(h, err);
}

/* --- metadata: records as in a GGUF --- */

/* Arrays that became tables have their first elements alone here; they are shown as they were. */
static tern_status restore_count(const struct tern_model *m, struct tern_meta *k, tern_error *err)
{
    const struct tern_image_section *s = &m->image->sections[TERN_IMAGE_VOCAB];
    const struct tern_image_vocab *v = tern_image_at(m->image, TERN_IMAGE_VOCAB);
    if (k->type != TERN_META_ARRAY || s->bytes != sizeof *v)
        return TERN_OK;
    for (int i = 0; i < TERN_IMAGE_N_CUT; i++) {
        if (!tern_text_is(k->key, tern_image_cut_keys[i]))
            continue;
        const uint64_t count = v->cut_counts[i];
        if (k->count != (count < TERN_IMAGE_SHOWN ? count : TERN_IMAGE_SHOWN))
            return tern_fail(err, TERN_BAD_MODEL, "image: %t: %u of %u elements are there", k->key,
                             k->count, count);
        k->count = count;
    }
    return TERN_OK;
}

static tern_status read_metadata(struct tern_model *m, struct tern_meta *metadata, tern_error *err)
{
    const struct tern_image_section *s = &m->image->sections[TERN_IMAGE_METADATA];
    const uint64_t end = s->offset + s->bytes;
    struct tern_reader r = tern_reader_at(&m->parts[0], s->offset);
    struct tern_gguf_record record;
    for (uint32_t i = 0; i < m->n_metadata; i++) {
        tern_status status = tern_gguf_record(&r, m->scan, &record, err);
        if (!status)
            status = restore_count(m, &record.meta, err);
        if (status)
            return status;
        if (metadata)
            metadata[i] = record.meta;
    }
    if (r.at != end)
        return tern_fail(err, TERN_BAD_MODEL, "image: %u keys end at byte %u, the metadata at %u",
                         (uint64_t)m->n_metadata, r.at, end);
    return TERN_OK;
}

/* --- tensors --- */

static bool is_flat(const struct tern_tensor *t)
{
    return t->dims[2] == 1 && t->dims[3] == 1;
}

uint64_t tern_image_tensor_bytes(const struct tern_tensor *t, uint32_t form)
{
    uint64_t bytes = UINT64_MAX;
    if (form == TERN_IMAGE_AS_ROWS)
        return t->bytes;
    if (form == TERN_IMAGE_AS_PANELS && is_flat(t)) {
        const uint64_t panels = (t->dims[1] - 1) / TERN_PANEL_ROWS + 1;
        const uint64_t row = t->bytes / t->dims[1];
        if (!tern_mul_u64(panels, TERN_PANEL_ROWS * row, &bytes) ||
            row > UINT64_MAX / TERN_PANEL_ROWS)
            return UINT64_MAX;
    }
    if (form == TERN_IMAGE_AS_FLOATS && is_flat(t) && t->dims[1] == 1 && t->dims[0] <= UINT32_MAX)
        bytes = (t->dims[0] + TERN_IMAGE_FLOATS - 1) / TERN_IMAGE_FLOATS * TERN_IMAGE_FLOATS *
                sizeof(float);
    return bytes;
}

static tern_status read_name(const struct tern_model *m, const struct tern_image_tensor *e,
                             struct tern_tensor *t, tern_error *err)
{
    const uint64_t have = m->image->sections[TERN_IMAGE_NAMES].bytes;
    const char *names = tern_image_at(m->image, TERN_IMAGE_NAMES);
    if (!e->name_bytes || e->name_bytes > TERN_GGUF_NAME || e->name_at > have ||
        e->name_bytes > have - e->name_at)
        return tern_fail(err, TERN_BAD_MODEL, "image: a name of %u bytes at %u of %u",
                         (uint64_t)e->name_bytes, (uint64_t)e->name_at, have);
    t->name = (tern_text){names + e->name_at, e->name_bytes};
    if (memchr(t->name.data, 0, t->name.size))
        return tern_fail(err, TERN_BAD_MODEL, "tensor %t: a name must not hold a NUL", t->name);
    return TERN_OK;
}

static tern_status read_tensor(const struct tern_model *m, const struct tern_image_tensor *e,
                               struct tern_tensor *t, tern_error *err)
{
    const struct tern_image_section *w = &m->image->sections[TERN_IMAGE_WEIGHTS];
    *t = (struct tern_tensor){.type = e->type, .n_dims = e->n_dims, .offset = e->offset,
                              .form = e->form};
    memcpy(t->dims, e->dims, sizeof t->dims);
    tern_status status = read_name(m, e, t, err);
    if (status)
        return status;
    if (e->n_dims == 0 || e->n_dims > 4 || e->zero)
        return tern_fail(err, TERN_BAD_MODEL, "tensor %t: %u dimensions, 1 to 4 are allowed",
                         t->name, (uint64_t)e->n_dims);
    status = tern_gguf_size_tensor(t, false, err);
    if (status)
        return status;
    const uint64_t bytes = tern_image_tensor_bytes(t, e->form);
    if (bytes == UINT64_MAX || bytes != e->bytes)
        return tern_fail(err, TERN_BAD_MODEL, "tensor %t: %u bytes in form %u, %u needed", t->name,
                         e->bytes, (uint64_t)e->form, bytes);
    if (e->offset % TERN_IMAGE_ALIGN || e->offset < w->offset ||
        e->offset - w->offset > w->bytes || bytes > w->bytes - (e->offset - w->offset))
        return tern_fail(err, TERN_BAD_MODEL, "tensor %t: %u bytes at %u, the weights are %u at %u",
                         t->name, bytes, e->offset, w->bytes, w->offset);
    return TERN_OK;
}

static tern_status read_tensors(struct tern_model *m, struct tern_tensor *tensors, tern_error *err)
{
    const struct tern_image_tensor *e = tern_image_at(m->image, TERN_IMAGE_TENSORS);
    struct tern_tensor t;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const tern_status status = read_tensor(m, &e[i], &t, err);
        if (status)
            return status;
        if (tensors)
            tensors[i] = t;
    }
    return TERN_OK;
}

/* --- all of it --- */

static tern_status check_counts(const struct tern_image_head *h, tern_error *err)
{
    enum { LEAST_KEY = 8 + 1 + 4 + 1, MOST_KEYS = 65536 };
    const uint64_t keys = h->sections[TERN_IMAGE_METADATA].bytes;
    const uint64_t tensors = h->sections[TERN_IMAGE_TENSORS].bytes;
    if (h->n_metadata > keys / LEAST_KEY || h->n_metadata > MOST_KEYS)
        return tern_fail(err, TERN_BAD_MODEL, "image: %u keys in %u bytes of metadata",
                         (uint64_t)h->n_metadata, keys);
    if (tensors != (uint64_t)h->n_tensors * sizeof(struct tern_image_tensor))
        return tern_fail(err, TERN_BAD_MODEL, "image: %u tensors in %u bytes, %u each",
                         (uint64_t)h->n_tensors, tensors,
                         (uint64_t)sizeof(struct tern_image_tensor));
    return TERN_OK;
}

tern_status tern_image_read(struct tern_arena *arena, const tern_source *parts, size_t n_parts,
                            struct tern_model *m, tern_error *err)
{
    tern_status status = check_place(&parts[0], n_parts, err);
    if (!status)
        status = check_head(&parts[0], err);
    if (!status)
        status = check_counts(parts[0].base, err);
    if (status)
        return status;
    m->image = parts[0].base;
    m->parts = parts;
    m->n_parts = 1;
    m->n_metadata = m->image->n_metadata;
    m->n_tensors = m->image->n_tensors;
    m->file_version = m->image->file_version;
    m->file_bytes = m->image->image_bytes;
    if (m->scan)
        m->scan->keys_at = m->image->sections[TERN_IMAGE_METADATA].offset;
    struct tern_meta *metadata = tern_carve(arena, m->n_metadata, sizeof *metadata, 8);
    struct tern_tensor *tensors = tern_carve(arena, m->n_tensors, sizeof *tensors, 8);
    uint32_t *by_key = tern_carve(arena, m->n_metadata, sizeof *by_key, 4);
    uint32_t *by_name = tern_carve(arena, m->n_tensors, sizeof *by_name, 4);
    if (arena->failed)
        return TERN_NO_MEMORY;
    status = read_metadata(m, metadata, err);
    if (!status)
        status = read_tensors(m, tensors, err);
    if (!status && arena->base) {
        m->metadata = metadata;
        m->tensors = tensors;
        status = tern_gguf_index(m, by_key, by_name, err);
    }
    return status ? status : tern_gguf_architecture(m, err);
}

tern_status tern_image_check_program(const struct tern_model *m, tern_error *err)
{
    for (uint32_t i = 0; m->tensors && i < m->program.n_weights; i++) {
        const struct tern_weight *w = &m->program.weights[i];
        const struct tern_tensor *t = &m->tensors[w->tensor];
        const uint32_t form = w->matrix ? TERN_IMAGE_AS_PANELS : TERN_IMAGE_AS_FLOATS;
        if (t->form != form)
            return tern_fail(err, TERN_BAD_MODEL, "tensor %t: the image has it in form %u, %u "
                             "needed", t->name, (uint64_t)t->form, (uint64_t)form);
    }
    return TERN_OK;
}

const void *tern_model_weight(const struct tern_model *m, uint32_t weight)
{
    if (!m->image)
        return NULL;
    return (const char *)m->image + m->tensors[m->program.weights[weight].tensor].offset;
}

/* --- verifying --- */

static tern_status verify_zeros(const struct tern_image_head *h, uint64_t from, uint64_t to,
                                tern_error *err)
{
    for (; from < to; from++)
        if (((const char *)h)[from])
            return tern_fail(err, TERN_BAD_MODEL, "image: byte %u, between sections, is not 0",
                             from);
    return TERN_OK;
}

tern_status tern_image_verify(const tern_source *source, tern_error *err)
{
    if (!source || !tern_image_is(source))
        return tern_fail(err, TERN_UNSUPPORTED, "not a Tern image: nothing else has hashes");
    tern_status status = check_place(source, 1, err);
    if (!status)
        status = check_head(source, err);
    const struct tern_image_head *h = source->base;
    uint64_t end = status ? 0 : sizeof *h;
    for (uint32_t i = 0; !status && i < TERN_IMAGE_N_PARTS; i++) {
        const struct tern_image_section *s = &h->sections[i];
        const void *data = tern_image_at(h, (enum tern_image_part)i);
        const uint64_t hash = tern_hash_of(data, (size_t)s->bytes);
        if (hash != s->hash)
            return tern_fail(err, TERN_BAD_MODEL, "image: the hash of the %s is %x, it says %x: "
                             "the file is damaged", part_names[i], hash, s->hash);
        if (s->bytes)
            status = verify_zeros(h, end, s->offset, err);
        end = s->bytes ? s->offset + s->bytes : end;
    }
    return status ? status : verify_zeros(h, end, h->image_bytes, err);
}
