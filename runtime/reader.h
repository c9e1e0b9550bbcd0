/* reader.h: the only way to touch hostile bytes: a bounds-checked little-endian cursor over a
 * tern_source, and checked arithmetic on what it reads.
 *
 * A read that would pass the end sets `failed` and yields zeros; callers test once a record.
 * Sources without a base are read through their window, which all readers of a source share:
 * several may be open, and those that take turns often only read more.
 */
#ifndef TERN_READER_H
#define TERN_READER_H

#include "runtime/tern.h"

struct tern_reader {
    const tern_source *source;
    uint64_t at; /* offset of the next byte */
    bool failed; /* past the end, or the source's read failed */
    bool io;     /* it was the source */
};

struct tern_reader tern_reader_at(const tern_source *source, uint64_t offset);
uint64_t tern_reader_left(const struct tern_reader *r);
void tern_read(struct tern_reader *r, void *dst, size_t n);
void tern_skip(struct tern_reader *r, uint64_t n);
uint8_t tern_read_u8(struct tern_reader *r);
uint16_t tern_read_u16(struct tern_reader *r);
uint32_t tern_read_u32(struct tern_reader *r);
uint64_t tern_read_u64(struct tern_reader *r);

static inline bool tern_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    *out = a + b;
    return *out >= a;
}

static inline bool tern_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    *out = a * b;
    return a == 0 || *out / a == b;
}

#endif
