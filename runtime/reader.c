#include "runtime/reader.h"

#include <string.h>

struct tern_reader tern_reader_at(const tern_source *source, uint64_t offset)
{
    return (struct tern_reader){.source = source, .at = offset, .failed = offset > source->size};
}

uint64_t tern_reader_left(const struct tern_reader *r)
{
    return r->failed ? 0 : r->source->size - r->at;
}

static bool fill(struct tern_reader *r)
{
    const tern_source *s = r->source;
    const uint64_t left = s->size - r->at;
    const size_t n = left < s->window.size ? (size_t)left : s->window.size;
    if (!s->read(s->self, r->at, s->window.data, n)) {
        r->failed = r->io = true;
        return false;
    }
    r->window_at = r->at;
    r->window_n = n;
    return true;
}

/* Copies through the window; a piece larger than it is read straight to where it goes. */
static void read_windowed(struct tern_reader *r, unsigned char *dst, size_t n)
{
    const tern_source *s = r->source;
    while (n) {
        if (r->at >= r->window_at && r->at - r->window_at < r->window_n) {
            const uint64_t skip = r->at - r->window_at, have = r->window_n - skip;
            const size_t take = have < n ? (size_t)have : n;
            memcpy(dst, (const unsigned char *)s->window.data + skip, take);
            r->at += take;
            dst += take;
            n -= take;
        } else if (n >= s->window.size) {
            if (!s->read(s->self, r->at, dst, n)) {
                r->failed = r->io = true;
                memset(dst, 0, n);
                return;
            }
            r->at += n;
            return;
        } else if (!fill(r)) {
            memset(dst, 0, n);
            return;
        }
    }
}

void tern_read(struct tern_reader *r, void *dst, size_t n)
{
    if (n > tern_reader_left(r)) {
        r->failed = true;
        memset(dst, 0, n);
        return;
    }
    if (r->source->base) {
        memcpy(dst, (const unsigned char *)r->source->base + r->at, n);
        r->at += n;
        return;
    }
    read_windowed(r, dst, n);
}

void tern_skip(struct tern_reader *r, uint64_t n)
{
    if (n > tern_reader_left(r))
        r->failed = true;
    else
        r->at += n;
}

uint8_t tern_read_u8(struct tern_reader *r)
{
    uint8_t b;
    tern_read(r, &b, 1);
    return b;
}

uint16_t tern_read_u16(struct tern_reader *r)
{
    uint8_t b[2];
    tern_read(r, b, 2);
    return (uint16_t)(b[0] | b[1] << 8);
}

uint32_t tern_read_u32(struct tern_reader *r)
{
    uint8_t b[4];
    tern_read(r, b, 4);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t tern_read_u64(struct tern_reader *r)
{
    const uint64_t low = tern_read_u32(r);
    return low | (uint64_t)tern_read_u32(r) << 32;
}
