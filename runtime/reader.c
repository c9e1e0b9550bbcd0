#include "runtime/reader.h"

#include <string.h>

/* What a window holds is written at its end, so that readers over one source share it and none
 * takes another's bytes for its own. */
struct tag { uint64_t at, n; };

static size_t window_bytes(const tern_source *s)
{
    return s->window.size - sizeof(struct tag);
}

static void set_tag(const tern_source *s, struct tag tag)
{
    memcpy((unsigned char *)s->window.data + window_bytes(s), &tag, sizeof tag);
}

static struct tag get_tag(const tern_source *s)
{
    struct tag tag;
    memcpy(&tag, (unsigned char *)s->window.data + window_bytes(s), sizeof tag);
    return tag;
}

struct tern_reader tern_reader_at(const tern_source *source, uint64_t offset)
{
    if (!source->base)
        set_tag(source, (struct tag){0, 0});
    return (struct tern_reader){.source = source, .at = offset, .failed = offset > source->size};
}

uint64_t tern_reader_left(const struct tern_reader *r)
{
    return r->failed ? 0 : r->source->size - r->at;
}

static bool read_source(struct tern_reader *r, void *dst, size_t n)
{
    if (!r->source->read(r->source->self, r->at, dst, n))
        r->failed = r->io = true;
    return !r->io;
}

/* Copies through the window; a piece larger than it is read straight to where it goes. */
static bool read_windowed(struct tern_reader *r, unsigned char *dst, size_t n)
{
    const tern_source *s = r->source;
    while (n) {
        const struct tag tag = get_tag(s);
        if (r->at >= tag.at && r->at - tag.at < tag.n) {
            const uint64_t skip = r->at - tag.at, have = tag.n - skip;
            const size_t take = have < n ? (size_t)have : n;
            memcpy(dst, (const unsigned char *)s->window.data + skip, take);
            r->at += take;
            dst += take;
            n -= take;
        } else if (n >= window_bytes(s)) {
            if (!read_source(r, dst, n))
                return false;
            r->at += n;
            return true;
        } else {
            const uint64_t left = s->size - r->at;
            const size_t fill = left < window_bytes(s) ? (size_t)left : window_bytes(s);
            set_tag(s, (struct tag){0, 0}); /* a read that fails may have written half of it */
            if (!read_source(r, s->window.data, fill))
                return false;
            set_tag(s, (struct tag){r->at, fill});
        }
    }
    return true;
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
    if (!read_windowed(r, dst, n))
        memset(dst, 0, n);
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
    uint8_t b[8];
    tern_read(r, b, 8);
    uint64_t u = 0;
    for (int i = 0; i < 8; i++)
        u |= (uint64_t)b[i] << 8 * i;
    return u;
}
