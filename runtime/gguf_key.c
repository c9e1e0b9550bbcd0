/* gguf_key.c: one key of a GGUF file and its value, checked. */
#include "runtime/gguf.h"

#include "runtime/error.h"

#include <string.h>

tern_status tern_gguf_short(const struct tern_reader *r, const char *what, tern_error *err)
{
    if (r->io)
        return tern_fail(err, TERN_IO, "reading the file failed at byte %u (%s)", r->at, what);
    return tern_fail(err, TERN_BAD_MODEL, "file too short: its %u bytes end inside the %s",
                     r->source->size, what);
}

static const uint8_t value_bytes[TERN_N_META_TYPES] = {
    [TERN_META_U8] = 1, [TERN_META_I8] = 1, [TERN_META_U16] = 2, [TERN_META_I16] = 2,
    [TERN_META_U32] = 4, [TERN_META_I32] = 4, [TERN_META_F32] = 4, [TERN_META_BOOL] = 1,
    [TERN_META_U64] = 8, [TERN_META_I64] = 8, [TERN_META_F64] = 8,
    [TERN_META_STRING] = 8, /* its length at least */
};

static void remember_jump(struct tern_scan *scan, uint64_t at, uint64_t end)
{
    int least = 0;
    for (int i = 1; i < TERN_SCAN_JUMPS; i++)
        if (scan->jumps[i].end - scan->jumps[i].at <
            scan->jumps[least].end - scan->jumps[least].at)
            least = i;
    if (end - at > scan->jumps[least].end - scan->jumps[least].at) {
        scan->jumps[least].at = at;
        scan->jumps[least].end = end;
    }
}

static void skip_strings(struct tern_reader *r, struct tern_scan *scan, uint64_t count)
{
    const uint64_t at = r->at;
    for (int i = 0; scan && i < TERN_SCAN_JUMPS; i++)
        if (scan->jumps[i].at == at && at) {
            r->at = scan->jumps[i].end;
            return;
        }
    for (uint64_t i = 0; i < count && !r->failed; i++)
        tern_skip(r, tern_read_u64(r));
    if (scan && !r->failed)
        remember_jump(scan, at, r->at);
}

static tern_status read_array(struct tern_reader *r, struct tern_scan *scan, struct tern_meta *k,
                              tern_error *err)
{
    k->element = tern_read_u32(r);
    k->count = tern_read_u64(r);
    k->at = r->at;
    if (r->failed)
        return tern_gguf_short(r, "metadata", err);
    if (k->element == TERN_META_ARRAY)
        return tern_fail(err, TERN_UNSUPPORTED, "%t: arrays of arrays are not read", k->key);
    if (k->element >= TERN_N_META_TYPES)
        return tern_fail(err, TERN_BAD_MODEL, "%t: element type %u, types are 0 to %u", k->key,
                         (uint64_t)k->element, (uint64_t)TERN_N_META_TYPES - 1);
    if (k->count > tern_reader_left(r) / value_bytes[k->element])
        return tern_fail(err, TERN_BAD_MODEL, "%t: %u elements, the file has room for %u", k->key,
                         k->count, tern_reader_left(r) / value_bytes[k->element]);
    if (k->element == TERN_META_STRING) {
        skip_strings(r, scan, k->count);
        if (r->failed && !r->io)
            return tern_fail(err, TERN_BAD_MODEL,
                             "%t: a string among its %u passes the end of the file", k->key,
                             k->count);
    } else if (k->element == TERN_META_BOOL) {
        for (uint64_t i = 0; i < k->count && !r->failed; i++) {
            const uint8_t b = tern_read_u8(r);
            if (b > 1)
                return tern_fail(err, TERN_BAD_MODEL, "%t: element %u is %u, a bool is 0 or 1",
                                 k->key, i, (uint64_t)b);
        }
    } else {
        tern_skip(r, k->count * value_bytes[k->element]);
    }
    return r->failed ? tern_gguf_short(r, "metadata", err) : TERN_OK;
}

static tern_status read_string(struct tern_reader *r, struct tern_meta *k, tern_error *err)
{
    const uint64_t n = tern_read_u64(r);
    k->at = r->at;
    if (r->failed)
        return tern_gguf_short(r, "metadata", err);
    if (n > tern_reader_left(r) || n > SIZE_MAX)
        return tern_fail(err, TERN_BAD_MODEL, "%t: a string of %u bytes, %u are left in the file",
                         k->key, n, tern_reader_left(r));
    const char *base = r->source->base;
    k->v.s = (tern_text){base ? base + r->at : NULL, (size_t)n};
    tern_skip(r, n);
    return TERN_OK;
}

static tern_status read_scalar(struct tern_reader *r, struct tern_meta *k, tern_error *err)
{
    k->at = r->at;
    unsigned char b[8] = {0};
    tern_read(r, b, value_bytes[k->type]);
    if (r->failed)
        return tern_gguf_short(r, "metadata", err);
    uint64_t u = 0;
    for (int i = 0; i < 8; i++)
        u |= (uint64_t)b[i] << 8 * i;
    const uint32_t low = (uint32_t)u;
    float f;
    switch (k->type) {
    case TERN_META_I8: k->v.i = (int8_t)low; break;
    case TERN_META_I16: k->v.i = (int16_t)low; break;
    case TERN_META_I32: k->v.i = (int32_t)low; break;
    case TERN_META_F32: memcpy(&f, &low, 4); k->v.f = (double)f; break;
    case TERN_META_F64: memcpy(&k->v.f, &u, 8); break;
    case TERN_META_BOOL:
        if (u > 1)
            return tern_fail(err, TERN_BAD_MODEL, "%t: %u, a bool is 0 or 1", k->key, u);
        k->v.b = u != 0;
        break;
    default: k->v.u = u; /* I64 has the same bits */
    }
    return TERN_OK;
}

/* The key's bytes: seen all, for a NUL among them; shown up to a point. */
static tern_status read_key(struct tern_reader *r, struct tern_gguf_record *out, tern_error *err)
{
    const uint64_t n = tern_read_u64(r);
    out->key_at = r->at;
    out->key_size = n;
    if (r->failed)
        return tern_gguf_short(r, "metadata", err);
    if (n == 0 || n > UINT16_MAX)
        return tern_fail(err, TERN_BAD_MODEL,
                         "metadata: a key of %u bytes at byte %u, keys have 1 to 65535", n, r->at);
    if (n > tern_reader_left(r))
        return tern_fail(err, TERN_BAD_MODEL,
                         "metadata: a key of %u bytes, %u are left in the file", n,
                         tern_reader_left(r));
    const char *base = r->source->base;
    bool nul = false;
    if (base) {
        out->meta.key = (tern_text){base + r->at, (size_t)n};
        nul = memchr(base + r->at, 0, (size_t)n) != NULL;
        tern_skip(r, n);
    } else {
        size_t shown = n < TERN_GGUF_SHOWN ? (size_t)n : TERN_GGUF_SHOWN;
        tern_read(r, out->shown, shown);
        out->meta.key = (tern_text){out->shown, shown};
        nul = memchr(out->shown, 0, shown) != NULL;
        for (uint64_t i = shown; i < n && !r->failed; i++)
            nul |= tern_read_u8(r) == 0;
        if (r->failed)
            return tern_gguf_short(r, "metadata", err);
    }
    return nul ? tern_fail(err, TERN_BAD_MODEL, "%t: a key must not hold a NUL", out->meta.key)
               : TERN_OK;
}

tern_status tern_gguf_record(struct tern_reader *r, struct tern_scan *scan,
                             struct tern_gguf_record *out, tern_error *err)
{
    struct tern_meta *k = &out->meta;
    *k = (struct tern_meta){.count = 1};
    const tern_status status = read_key(r, out, err);
    if (status)
        return status;
    k->type = tern_read_u32(r);
    if (r->failed)
        return tern_gguf_short(r, "metadata", err);
    if (k->type >= TERN_N_META_TYPES)
        return tern_fail(err, TERN_BAD_MODEL, "%t: type %u, types are 0 to %u", k->key,
                         (uint64_t)k->type, (uint64_t)TERN_N_META_TYPES - 1);
    return tern_gguf_value(r, scan, k, err);
}

tern_status tern_gguf_value(struct tern_reader *r, struct tern_scan *scan, struct tern_meta *out,
                            tern_error *err)
{
    return out->type == TERN_META_ARRAY    ? read_array(r, scan, out, err)
           : out->type == TERN_META_STRING ? read_string(r, out, err)
                                           : read_scalar(r, out, err);
}

uint64_t tern_gguf_value_bytes(uint32_t type)
{
    return value_bytes[type];
}
