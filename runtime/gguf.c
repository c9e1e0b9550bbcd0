/* gguf.c: header, keys and tensor directory of a GGUF file, versions 2 and 3, little-endian.
 *
 *   magic, version, n_tensors, n_keys | keys | tensor directory | padding | data
 *
 * after ggml's docs/gguf.md. The file is hostile: a length is compared with the bytes that are
 * left before it is used, a count with the number of smallest records that would fit, a
 * product with its overflow. Nothing is trusted because something else was checked to exist.
 *
 * The same walk measures and carves. While measuring nothing can be kept, so what needs all
 * names or all places at once (duplicates, overlaps) is checked when carving alone. */
#include "runtime/gguf.h"

#include "quant/format.h"
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/text.h"

#include <string.h>

enum {
    HEADER_BYTES = 24,
    LEAST_KEY_BYTES = 8 + 1 + 4 + 1,             /* length, one letter, type, the smallest value */
    LEAST_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,  /* length, one letter, n_dims, dim, type, offset */
    MOST_KEYS = 65536, /* files have some dozens; a lookup while measuring walks them all */
    MOST_DIMS = 4,
    DEFAULT_ALIGNMENT = 32,
    LEAST_ALIGNMENT = 8,
    MOST_ALIGNMENT = 65536,
};

/* What one part says of itself; absent keys are ABSENT. */
static const uint64_t ABSENT = UINT64_MAX;
struct part {
    uint64_t version, n_tensors, n_keys;
    uint64_t alignment, split_no, split_count, split_tensors;
};

struct walk {
    struct tern_arena *arena;
    struct tern_model *m;
    const tern_source *source;
    struct tern_reader r;
    struct part part;
    struct tern_meta *metadata;  /* where the next go; NULL while measuring */
    struct tern_tensor *tensors;
    uint32_t i_part;
    tern_error *err;
};

/* --- the header --- */

static tern_status refuse_kind(const unsigned char b[16], tern_error *err)
{
    static const struct { const char *start, *kind; size_t at; } kinds[] = {
        {"FUGG", "a big-endian GGUF file", 0},
        {"lmgg", "a GGML file from before GGUF", 0},
        {"tjgg", "a GGML file from before GGUF", 0},
        {"version https", "a Git LFS pointer, not the file that it points to", 0},
        {"PK\003\004", "a zip archive (PyTorch checkpoints are)", 0},
        {"<!", "an HTML page", 0},
        {"<h", "an HTML page", 0},
        {"{\"", "a safetensors file", 8},
        {"{", "JSON", 0},
        {"\010", "perhaps an ONNX file", 0},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!memcmp(b + kinds[i].at, kinds[i].start, strlen(kinds[i].start)))
            return tern_fail(err, TERN_BAD_MODEL, "not a GGUF file: it is %s", kinds[i].kind);
    return tern_fail(err, TERN_BAD_MODEL,
                     "not a GGUF file: its first four bytes are %x %x %x %x, not \"GGUF\"",
                     (uint64_t)b[0], (uint64_t)b[1], (uint64_t)b[2], (uint64_t)b[3]);
}

static tern_status check_version(uint32_t version, tern_error *err)
{
    if ((version & 0xffff) == 0 && version)
        return tern_fail(err, TERN_UNSUPPORTED, "a big-endian GGUF file: little-endian ones are "
                         "read (gguf-convert-endian turns one into the other)");
    if (version != 2 && version != 3)
        return tern_fail(err, TERN_UNSUPPORTED, "GGUF version %u: versions 2 and 3 are read",
                         (uint64_t)version);
    return TERN_OK;
}

static tern_status read_header(const tern_source *s, struct part *p, struct tern_reader *r,
                               tern_error *err)
{
    unsigned char start[16] = {0};
    *r = tern_reader_at(s, 0);
    tern_read(r, start, s->size < sizeof start ? (size_t)s->size : sizeof start);
    if (r->failed)
        return tern_gguf_short(r, "header", err);
    if (s->size >= 4 && memcmp(start, "GGUF", 4))
        return refuse_kind(start, err);
    if (s->size < HEADER_BYTES)
        return tern_fail(err, TERN_BAD_MODEL, "file too short: %u bytes, a GGUF header has %u",
                         s->size, (uint64_t)HEADER_BYTES);
    *r = tern_reader_at(s, 4);
    *p = (struct part){.alignment = ABSENT, .split_no = ABSENT, .split_count = ABSENT,
                       .split_tensors = ABSENT};
    p->version = tern_read_u32(r);
    p->n_tensors = tern_read_u64(r);
    p->n_keys = tern_read_u64(r);
    if (r->failed)
        return tern_gguf_short(r, "header", err);
    const tern_status status = check_version((uint32_t)p->version, err);
    if (status)
        return status;
    const uint64_t left = tern_reader_left(r);
    if (p->n_keys > left / LEAST_KEY_BYTES)
        return tern_fail(err, TERN_BAD_MODEL, "metadata: %u keys, the file has room for %u",
                         p->n_keys, left / LEAST_KEY_BYTES);
    if (p->n_keys > MOST_KEYS)
        return tern_fail(err, TERN_UNSUPPORTED, "metadata: %u keys, at most %u", p->n_keys,
                         (uint64_t)MOST_KEYS);
    if (p->n_tensors > (left - p->n_keys * LEAST_KEY_BYTES) / LEAST_TENSOR_BYTES ||
        p->n_tensors > UINT32_MAX)
        return tern_fail(err, TERN_BAD_MODEL,
                         "tensor directory: %u tensors, the file has room for %u", p->n_tensors,
                         left / LEAST_TENSOR_BYTES);
    return TERN_OK;
}

/* --- keys --- */

/* A text of the file in memory: where it lies, or carved and copied. */
static tern_status keep(struct walk *w, uint64_t at, uint64_t n, tern_text *out)
{
    const char *base = w->source->base;
    if (base) {
        *out = (tern_text){base + at, (size_t)n};
        return TERN_OK;
    }
    char *copy = tern_carve_raw(w->arena, (size_t)n, 1, 1);
    *out = (tern_text){copy, (size_t)n};
    if (!copy)
        return TERN_OK; /* measuring, or a failure that the arena remembers */
    struct tern_reader r = tern_reader_at(w->source, at);
    tern_read(&r, copy, (size_t)n);
    return r.failed ? tern_gguf_short(&r, "metadata", w->err) : TERN_OK;
}

static tern_status note_number(const struct tern_meta *k, uint64_t most, uint64_t *out,
                               tern_error *err)
{
    uint64_t u;
    if (!tern_meta_to_u64(k, &u) || u > most)
        return tern_fail(err, TERN_BAD_MODEL, "%t: not an integer from 0 to %u", k->key, most);
    if (*out != ABSENT)
        return tern_fail(err, TERN_BAD_MODEL, "%t: the key is there twice", k->key);
    *out = u;
    return TERN_OK;
}

static tern_status note_alignment(const struct tern_meta *k, uint64_t *out, tern_error *err)
{
    if (k->type != TERN_META_U32)
        return tern_fail(err, TERN_BAD_MODEL, "%t: its type is not u32", k->key);
    const uint64_t u = k->v.u;
    if (u < LEAST_ALIGNMENT || u > MOST_ALIGNMENT || (u & (u - 1)))
        return tern_fail(err, TERN_BAD_MODEL, "%t: %u, must be a power of two from %u to %u",
                         k->key, u, (uint64_t)LEAST_ALIGNMENT, (uint64_t)MOST_ALIGNMENT);
    return note_number(k, MOST_ALIGNMENT, out, err);
}

/* Keys that say how to read the part itself. */
static tern_status note(struct part *p, const struct tern_meta *k, tern_error *err)
{
    if (tern_text_is(k->key, "general.alignment"))
        return note_alignment(k, &p->alignment, err);
    if (tern_text_is(k->key, "split.no"))
        return note_number(k, UINT16_MAX, &p->split_no, err);
    if (tern_text_is(k->key, "split.count"))
        return note_number(k, UINT16_MAX, &p->split_count, err);
    if (tern_text_is(k->key, "split.tensors.count"))
        return note_number(k, INT32_MAX, &p->split_tensors, err);
    return TERN_OK;
}

static tern_status read_keys(struct walk *w)
{
    struct tern_gguf_record record;
    for (uint64_t i = 0; i < w->part.n_keys; i++) {
        struct tern_scan *scan = w->i_part ? NULL : w->m->scan;
        tern_status status = tern_gguf_record(&w->r, scan, &record, w->err);
        if (!status)
            status = note(&w->part, &record.meta, w->err);
        if (status)
            return status;
        if (w->i_part)
            continue; /* the metadata of a split file is that of its first part */
        struct tern_meta *k = &record.meta;
        status = keep(w, record.key_at, record.key_size, &k->key);
        if (!status && k->type == TERN_META_STRING)
            status = keep(w, k->at, k->v.s.size, &k->v.s);
        if (status)
            return status;
        if (w->arena->failed)
            return TERN_NO_MEMORY;
        if (w->metadata)
            w->metadata[i] = *k;
    }
    return TERN_OK;
}

/* --- tensors --- */

/* Types that exist elsewhere are there so that a refusal can name them. */
const char *tern_gguf_type_name(uint32_t type)
{
    const struct tern_format *f = tern_format_of(type);
    if (f)
        return f->name;
    static const struct { uint32_t id; const char *name; } types[] = {
        {9, "Q8_1"}, {15, "Q8_K"}, {24, "I8"}, {25, "I16"}, {26, "I32"}, {27, "I64"},
        {28, "F64"}, {40, "NVFP4"}, {41, "Q1_0"}, {42, "Q2_0"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].id == type)
            return types[i].name;
    return type >= 97 ? "of another runtime" : "unknown";
}

/* Dims and type to bytes. No product is made before it is known to fit. */
tern_status tern_gguf_size_tensor(struct tern_tensor *t, bool any_type, tern_error *err)
{
    static const struct tern_format unknown = {.name = "this type", .n_elems = 1};
    const struct tern_format *f = tern_format_of(t->type);
    if (!f && !any_type)
        return tern_fail(err, TERN_UNSUPPORTED, "tensor %t: type %u (%s) is not read", t->name,
                         (uint64_t)t->type, tern_gguf_type_name(t->type));
    f = f ? f : &unknown;
    uint64_t n_rows = 1, n_elems;
    for (int i = 0; i < MOST_DIMS; i++) {
        if (t->dims[i] == 0)
            return tern_fail(err, TERN_BAD_MODEL, "tensor %t: dimension %u is 0", t->name,
                             (uint64_t)i);
        if (i && !tern_mul_u64(n_rows, t->dims[i], &n_rows))
            n_rows = UINT64_MAX;
    }
    if (t->dims[0] % f->n_elems)
        return tern_fail(err, TERN_BAD_MODEL,
                         "tensor %t: rows of %u elements, %s has blocks of %u", t->name,
                         t->dims[0], f->name, (uint64_t)f->n_elems);
    if (n_rows == UINT64_MAX || !tern_mul_u64(t->dims[0], n_rows, &n_elems) ||
        n_elems > INT64_MAX || !tern_mul_u64(n_elems / f->n_elems, f->n_bytes, &t->bytes))
        return tern_fail(err, TERN_BAD_MODEL, "tensor %t: %u x %u x %u x %u elements are too many",
                         t->name, t->dims[0], t->dims[1], t->dims[2], t->dims[3]);
    return TERN_OK;
}

static tern_status read_name(struct walk *w, uint64_t i, char name[TERN_GGUF_NAME], uint64_t *at,
                             size_t *size)
{
    const uint64_t n = tern_read_u64(&w->r);
    *at = w->r.at;
    if (w->r.failed)
        return tern_gguf_short(&w->r, "tensor directory", w->err);
    if (n == 0 || n > TERN_GGUF_NAME)
        return tern_fail(w->err, TERN_BAD_MODEL,
                         "tensor %u: a name of %u bytes, names have 1 to %u", i, n,
                         (uint64_t)TERN_GGUF_NAME);
    *size = (size_t)n;
    tern_read(&w->r, name, *size);
    if (w->r.failed)
        return tern_gguf_short(&w->r, "tensor directory", w->err);
    if (memchr(name, 0, *size))
        return tern_fail(w->err, TERN_BAD_MODEL, "tensor %t: a name must not hold a NUL",
                         (tern_text){name, *size});
    return TERN_OK;
}

static tern_status read_tensor(struct walk *w, uint64_t i, struct tern_tensor *t)
{
    char name[TERN_GGUF_NAME];
    uint64_t name_at = 0;
    size_t name_size = 0;
    const tern_status status = read_name(w, i, name, &name_at, &name_size);
    if (status)
        return status;
    *t = (struct tern_tensor){.name = {name, name_size}, .part = w->i_part, .dims = {1, 1, 1, 1}};
    t->n_dims = tern_read_u32(&w->r);
    if (!w->r.failed && (t->n_dims == 0 || t->n_dims > MOST_DIMS))
        return tern_fail(w->err, TERN_BAD_MODEL, "tensor %t: %u dimensions, 1 to %u are allowed",
                         t->name, (uint64_t)t->n_dims, (uint64_t)MOST_DIMS);
    for (uint32_t d = 0; d < t->n_dims && !w->r.failed; d++)
        t->dims[d] = tern_read_u64(&w->r);
    t->type = tern_read_u32(&w->r);
    t->offset = tern_read_u64(&w->r);
    if (w->r.failed)
        return tern_gguf_short(&w->r, "tensor directory", w->err);
    const tern_status sized = tern_gguf_size_tensor(t, w->m->any_type, w->err);
    return sized ? sized : keep(w, name_at, name_size, &t->name);
}

/* Offsets in the data section to offsets in the file, each with its end inside it. */
static tern_status place_tensors(struct walk *w, uint64_t n)
{
    const uint64_t align = w->part.alignment == ABSENT ? DEFAULT_ALIGNMENT : w->part.alignment;
    const uint64_t size = w->source->size;
    const uint64_t start = w->r.at + (align - w->r.at % align) % align;
    if (start < w->r.at || (n && start > size))
        return tern_fail(w->err, TERN_BAD_MODEL,
                         "file too short: the data would begin at byte %u of %u", start, size);
    for (uint64_t i = 0; w->tensors && i < n; i++) {
        struct tern_tensor *t = &w->tensors[i];
        if (t->offset % align)
            return tern_fail(w->err, TERN_BAD_MODEL,
                             "tensor %t: offset %u, the file's alignment is %u", t->name,
                             t->offset, align);
        if (t->offset > size - start || t->bytes > size - start - t->offset)
            return tern_fail(w->err, TERN_BAD_MODEL,
                             "tensor %t: %u bytes at %u pass the end of the data (%u bytes of a "
                             "file of %u): is the file whole?",
                             t->name, t->bytes, t->offset, size - start, size);
        t->offset += start;
    }
    return TERN_OK;
}

static tern_status read_tensors(struct walk *w)
{
    const uint64_t n = w->part.n_tensors;
    for (uint64_t i = 0; i < n; i++) {
        struct tern_tensor t;
        const tern_status status = read_tensor(w, i, &t);
        if (status)
            return status;
        if (w->arena->failed)
            return TERN_NO_MEMORY;
        if (w->tensors)
            w->tensors[i] = t;
    }
    const tern_status status = place_tensors(w, n);
    if (w->tensors)
        w->tensors += n;
    return status;
}

/* --- what is true of all of them together --- */

static int compare_text(tern_text a, tern_text b)
{
    const int c = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

static int compare_keys(const struct tern_model *m, uint32_t a, uint32_t b)
{
    return compare_text(m->metadata[a].key, m->metadata[b].key);
}

static int compare_names(const struct tern_model *m, uint32_t a, uint32_t b)
{
    return compare_text(m->tensors[a].name, m->tensors[b].name);
}

static int compare_places(const struct tern_model *m, uint32_t a, uint32_t b)
{
    const struct tern_tensor *s = &m->tensors[a], *t = &m->tensors[b];
    return s->part != t->part ? (s->part > t->part) - (s->part < t->part)
                              : (s->offset > t->offset) - (s->offset < t->offset);
}

typedef int compare_fn(const struct tern_model *m, uint32_t a, uint32_t b);

static void sift(uint32_t *order, size_t root, size_t n, const struct tern_model *m,
                 compare_fn *compare)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && compare(m, order[child], order[child + 1]) < 0)
            child++;
        if (compare(m, order[root], order[child]) >= 0)
            return;
        const uint32_t t = order[root];
        order[root] = order[child];
        order[child] = t;
    }
}

/* Heap sort: n log n whatever the file, in place, without recursion. */
static void sort(uint32_t *order, uint32_t n, const struct tern_model *m, compare_fn *compare)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n / 2; i-- > 0;)
        sift(order, i, n, m, compare);
    for (size_t end = n; end-- > 1;) {
        const uint32_t t = order[0];
        order[0] = order[end];
        order[end] = t;
        sift(order, 0, end, m, compare);
    }
}

static tern_status check_keys(const struct tern_model *m, uint32_t *order, tern_error *err)
{
    sort(order, m->n_metadata, m, compare_keys);
    for (uint32_t i = 1; i < m->n_metadata; i++)
        if (!compare_keys(m, order[i - 1], order[i]))
            return tern_fail(err, TERN_BAD_MODEL, "%t: the key is there twice",
                             m->metadata[order[i]].key);
    return TERN_OK;
}

static tern_status check_tensors(const struct tern_model *m, uint32_t *order, tern_error *err)
{
    sort(order, m->n_tensors, m, compare_places);
    for (uint32_t i = 1; i < m->n_tensors; i++) {
        const struct tern_tensor *a = &m->tensors[order[i - 1]], *b = &m->tensors[order[i]];
        if (a->part == b->part && b->offset - a->offset < a->bytes)
            return tern_fail(err, TERN_BAD_MODEL, "tensors %t and %t overlap at byte %u", a->name,
                             b->name, b->offset);
    }
    sort(order, m->n_tensors, m, compare_names);
    for (uint32_t i = 1; i < m->n_tensors; i++)
        if (!compare_names(m, order[i - 1], order[i]))
            return tern_fail(err, TERN_BAD_MODEL, "tensor %t is there twice",
                             m->tensors[order[i]].name);
    return TERN_OK;
}

tern_status tern_gguf_index(struct tern_model *m, uint32_t *by_key, uint32_t *by_name,
                            tern_error *err)
{
    tern_status status = check_keys(m, by_key, err);
    if (!status)
        status = check_tensors(m, by_name, err);
    m->metadata_by_key = by_key;
    m->tensors_by_name = by_name;
    return status;
}

/* --- parts --- */

static tern_status check_split(const struct walk *w, const struct part *p)
{
    const uint64_t n_parts = w->m->n_parts, i = w->i_part;
    if (n_parts == 1 && (p->split_count == ABSENT || p->split_count <= 1))
        return TERN_OK;
    if (p->split_count == ABSENT || p->split_no == ABSENT)
        return tern_fail(w->err, TERN_BAD_MODEL,
                         "part %u of %u: it has no split.no and split.count", i + 1, n_parts);
    if (p->split_count != n_parts)
        return tern_fail(w->err, TERN_BAD_MODEL,
                         "part %u: the model is split into %u files, %u are given", i + 1,
                         p->split_count, n_parts);
    if (p->split_no != i)
        return tern_fail(w->err, TERN_BAD_MODEL,
                         "part %u: the file says that it is part %u of %u", i + 1,
                         p->split_no + 1, p->split_count);
    if (p->split_tensors != ABSENT && p->split_tensors != w->m->n_tensors)
        return tern_fail(w->err, TERN_BAD_MODEL,
                         "part %u: split.tensors.count is %u, the parts have %u", i + 1,
                         p->split_tensors, (uint64_t)w->m->n_tensors);
    return TERN_OK;
}

static tern_status read_part(struct walk *w, uint32_t i)
{
    w->i_part = i;
    w->source = &w->m->parts[i];
    tern_status status = read_header(w->source, &w->part, &w->r, w->err);
    if (!status)
        status = read_keys(w);
    if (!status)
        status = check_split(w, &w->part);
    return status ? status : read_tensors(w);
}

static tern_status count_parts(struct tern_model *m, tern_error *err)
{
    uint64_t n_tensors = 0;
    for (uint32_t i = 0; i < m->n_parts; i++) {
        struct part part;
        struct tern_reader r;
        const tern_status status = read_header(&m->parts[i], &part, &r, err);
        if (status)
            return status;
        n_tensors += part.n_tensors;
        m->file_bytes += m->parts[i].size;
        if (i == 0) {
            m->n_metadata = (uint32_t)part.n_keys;
            m->file_version = (uint32_t)part.version;
            if (m->scan)
                m->scan->keys_at = r.at;
        }
    }
    if (n_tensors > INT32_MAX)
        return tern_fail(err, TERN_BAD_MODEL, "tensor directory: %u tensors, at most %u",
                         n_tensors, (uint64_t)INT32_MAX);
    m->n_tensors = (uint32_t)n_tensors;
    return TERN_OK;
}

tern_status tern_gguf_architecture(struct tern_model *m, tern_error *err)
{
    tern_text name = {0};
    const tern_status status = tern_meta_text(m, "general.architecture", &name, err);
    if (status)
        return status;
    if (name.size >= TERN_SCAN_TEXT)
        return tern_fail(err, TERN_UNSUPPORTED, "general.architecture: %t, at most %u bytes", name,
                         (uint64_t)TERN_SCAN_TEXT - 1);
    m->architecture = name;
    if (m->scan && name.size) {
        memcpy(m->scan->architecture, name.data, name.size);
        m->architecture.data = m->scan->architecture;
    }
    return TERN_OK;
}

tern_status tern_gguf_read(struct tern_arena *arena, const tern_source *parts, size_t n_parts,
                           struct tern_model *m, tern_error *err)
{
    m->parts = parts;
    m->n_parts = (uint32_t)n_parts;
    tern_status status = count_parts(m, err);
    if (status)
        return status;
    const size_t n_keys = m->n_metadata, n_tensors = m->n_tensors;
    struct tern_meta *metadata = tern_carve(arena, n_keys, sizeof *metadata, 8);
    struct tern_tensor *tensors = tern_carve(arena, n_tensors, sizeof *tensors, 8);
    uint32_t *by_key = tern_carve(arena, n_keys, sizeof *by_key, 4);
    uint32_t *by_name = tern_carve(arena, n_tensors, sizeof *by_name, 4);
    if (arena->failed)
        return TERN_NO_MEMORY;
    struct walk w = {.arena = arena, .m = m, .metadata = metadata, .tensors = tensors, .err = err};
    for (uint32_t i = 0; i < m->n_parts && !status; i++)
        status = read_part(&w, i);
    if (status)
        return status;
    if (arena->base) {
        m->metadata = metadata;
        m->tensors = tensors;
        status = tern_gguf_index(m, by_key, by_name, err);
    }
    return status ? status : tern_gguf_architecture(m, err);
}
