/* meta.c: lookups in what gguf.c read.
 *
 * Once carved, keys are found by bisection in their sorted order. While measuring the file is
 * walked again; its long arrays are jumped over, so a lookup reads a few kilobytes. */
#include "runtime/gguf.h"

#include "runtime/error.h"
#include "runtime/text.h"

#include <float.h>
#include <string.h>

/* The architecture, for a key that begins with '.'. */
static tern_text prefix_of(const struct tern_model *m, const char *key)
{
    return key[0] == '.' ? m->architecture : (tern_text){"", 0};
}

static int compare_bytes(tern_text a, tern_text b)
{
    const size_t n = a.size < b.size ? a.size : b.size;
    const int c = n ? memcmp(a.data, b.data, n) : 0;
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

/* Compares a with the two texts b and c written one after the other. */
static int compare_joined(tern_text a, tern_text b, const char *c)
{
    const size_t n = b.size < a.size ? b.size : a.size;
    const int start = compare_bytes((tern_text){a.data, n}, b);
    return start ? start : compare_bytes((tern_text){a.data + n, a.size - n}, tern_text_of(c));
}

static bool find_sorted(const struct tern_model *m, const char *key, struct tern_meta *out)
{
    uint32_t low = 0, high = m->n_metadata;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct tern_meta *k = &m->metadata[m->metadata_by_key[middle]];
        const int c = compare_joined(k->key, prefix_of(m, key), key);
        if (c == 0) {
            *out = *k;
            return true;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* The value of a text as far as a scan keeps it. */
static void cut_text(const struct tern_model *m, struct tern_meta *k)
{
    if (k->v.s.size > TERN_SCAN_TEXT)
        k->v.s.size = TERN_SCAN_TEXT;
    if (k->v.s.data)
        return;
    struct tern_reader r = tern_reader_at(&m->parts[0], k->at);
    tern_read(&r, m->scan->text, k->v.s.size);
    k->v.s.data = m->scan->text;
    m->scan->io |= r.io;
}

static bool find_scanning(const struct tern_model *m, const char *key, struct tern_meta *out)
{
    struct tern_reader r = tern_reader_at(&m->parts[0], m->scan->keys_at);
    struct tern_gguf_record record;
    for (uint32_t i = 0; i < m->n_metadata; i++) {
        if (tern_gguf_record(&r, m->scan, &record, NULL)) {
            m->scan->io |= r.io;
            return false;
        }
        if (record.key_size != record.meta.key.size ||
            compare_joined(record.meta.key, prefix_of(m, key), key))
            continue;
        *out = record.meta;
        out->key = tern_text_of(key);
        if (out->type == TERN_META_STRING)
            cut_text(m, out);
        return true;
    }
    return false;
}

bool tern_meta_find(const struct tern_model *m, const char *key, struct tern_meta *out)
{
    return m->metadata ? find_sorted(m, key, out) : m->scan && find_scanning(m, key, out);
}

bool tern_meta_to_u64(const struct tern_meta *k, uint64_t *out)
{
    switch (k->type) {
    case TERN_META_U8: case TERN_META_U16: case TERN_META_U32: case TERN_META_U64:
        *out = k->v.u;
        return true;
    case TERN_META_I8: case TERN_META_I16: case TERN_META_I32: case TERN_META_I64:
        *out = (uint64_t)k->v.i;
        return k->v.i >= 0;
    default:
        return false;
    }
}

static tern_status fail_missing(const struct tern_model *m, const char *key, tern_error *err)
{
    return tern_fail(err, TERN_BAD_MODEL, "%t%s: the key is missing", prefix_of(m, key), key);
}

static tern_status fail_type(const struct tern_model *m, const char *key, const char *wanted,
                             const struct tern_meta *k, tern_error *err)
{
    return tern_fail(err, TERN_BAD_MODEL, "%t%s: its type is %s, must be %s", prefix_of(m, key),
                     key, tern_meta_type_name(k->type, k->element), wanted);
}

/* An integer within its range. */
static tern_status check_u32(const struct tern_model *m, const char *key, const struct tern_meta *k,
                             uint32_t min, uint32_t max, uint32_t *out, tern_error *err)
{
    uint64_t u;
    const bool fits = tern_meta_to_u64(k, &u), integer = k->type <= TERN_META_I32 ||
                      k->type == TERN_META_U64 || k->type == TERN_META_I64;
    if (!integer)
        return fail_type(m, key, "an integer", k, err);
    if (!fits)
        return tern_fail(err, TERN_BAD_MODEL, "%t%s: %i, must be from %u to %u", prefix_of(m, key),
                         key, k->v.i, (uint64_t)min, (uint64_t)max);
    if (u < min || u > max)
        return tern_fail(err, TERN_BAD_MODEL, "%t%s: %u, must be from %u to %u", prefix_of(m, key),
                         key, u, (uint64_t)min, (uint64_t)max);
    *out = (uint32_t)u;
    return TERN_OK;
}

tern_status tern_meta_u32(const struct tern_model *m, const char *key, bool required, uint32_t min,
                          uint32_t max, uint32_t *out, tern_error *err)
{
    struct tern_meta k;
    if (!tern_meta_find(m, key, &k))
        return required ? fail_missing(m, key, err) : TERN_OK;
    return check_u32(m, key, &k, min, max, out, err);
}

tern_status tern_meta_f32(const struct tern_model *m, const char *key, bool required, float min,
                          float max, float *out, tern_error *err)
{
    struct tern_meta k;
    if (!tern_meta_find(m, key, &k))
        return required ? fail_missing(m, key, err) : TERN_OK;
    if (k.type != TERN_META_F32 && k.type != TERN_META_F64)
        return fail_type(m, key, "a float", &k, err);
    if (!(k.v.f >= (double)min && k.v.f <= (double)max))
        return tern_fail(err, TERN_BAD_MODEL, "%t%s: %f, must be from %f to %f", prefix_of(m, key),
                         key, k.v.f, (double)min, (double)max);
    *out = (float)k.v.f;
    return TERN_OK;
}

tern_status tern_meta_bool(const struct tern_model *m, const char *key, bool *out, tern_error *err)
{
    struct tern_meta k;
    if (!tern_meta_find(m, key, &k))
        return TERN_OK;
    if (k.type != TERN_META_BOOL)
        return fail_type(m, key, "a bool", &k, err);
    *out = k.v.b;
    return TERN_OK;
}

tern_status tern_meta_text(const struct tern_model *m, const char *key, tern_text *out,
                           tern_error *err)
{
    struct tern_meta k;
    if (!tern_meta_find(m, key, &k))
        return TERN_OK;
    if (k.type != TERN_META_STRING)
        return fail_type(m, key, "a string", &k, err);
    *out = k.v.s;
    return TERN_OK;
}

tern_status tern_meta_element(const struct tern_model *m, const struct tern_meta *array, uint64_t i,
                              struct tern_meta *out, tern_error *err)
{
    *out = (struct tern_meta){.key = array->key, .type = array->element, .count = 1};
    struct tern_reader r = tern_reader_at(&m->parts[0], array->at);
    if (array->element == TERN_META_STRING)
        for (uint64_t k = 0; k < i && !r.failed; k++)
            tern_skip(&r, tern_read_u64(&r));
    else
        tern_skip(&r, i * tern_gguf_value_bytes(array->element));
    return tern_gguf_value(&r, NULL, out, err);
}

const char *tern_meta_type_name(uint32_t type, uint32_t element)
{
    static const char *const names[TERN_N_META_TYPES] = {
        "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64",
        "f64",
    };
    static const char *const arrays[TERN_N_META_TYPES] = {
        "array of u8", "array of i8", "array of u16", "array of i16", "array of u32",
        "array of i32", "array of f32", "array of bool", "array of string", "array of array",
        "array of u64", "array of i64", "array of f64",
    };
    return type == TERN_META_ARRAY ? arrays[element] : names[type];
}

const struct tern_tensor *tern_tensor_find(const struct tern_model *m, tern_text name)
{
    uint32_t low = 0, high = m->tensors ? m->n_tensors : 0;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct tern_tensor *t = &m->tensors[m->tensors_by_name[middle]];
        const int c = compare_bytes(t->name, name);
        if (c == 0)
            return t;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
