/* make_image.c: writes an image in one of three shapes. In each a byte of the image has a place
 * that is known beforehand, so all are written as the core hands the bytes over, in one pass. */
#include "tools/make_image.h"

#include "tools/interrupt.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 16, LINE_TEXT = 5 * LINE_BYTES + 1, LINES = 256 };

struct making {
    const struct tern_make_image *asked;
    struct tern_output *file;
    struct tern_progress progress;
    uint64_t bytes, done, text_at; /* text_at: where the first byte of a C array stands */
};

/* The text of n bytes from `offset` on: "0x1f," each, sixteen a line. */
static bool write_text(struct making *m, uint64_t offset, const unsigned char *from, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char text[LINES * LINE_TEXT];
    while (n > 0) {
        uint64_t column = offset % LINE_BYTES;
        uint64_t at = m->text_at + offset / LINE_BYTES * LINE_TEXT + 5 * column;
        size_t take = LINES * LINE_BYTES - LINE_BYTES, size = 0;
        take = n < take ? n : take;
        for (size_t i = 0; i < take; i++) {
            const char byte[5] = {'0', 'x', digits[from[i] >> 4], digits[from[i] & 15], ','};
            memcpy(text + size, byte, 5);
            size += 5;
            if ((offset + i) % LINE_BYTES == LINE_BYTES - 1)
                text[size++] = '\n';
        }
        if (!tern_output_write(m->file, at, text, size))
            return false;
        offset += take;
        from += take;
        n -= take;
    }
    return true;
}

static bool take(void *self, uint64_t offset, const void *src, size_t n)
{
    struct making *m = self;
    m->done += n;
    if (!m->asked->quiet)
        tern_progress_show(&m->progress, m->done, m->bytes);
    if (m->asked->shape == TERN_MAKE_C_ARRAY)
        return write_text(m, offset, src, n);
    return tern_output_write(m->file, offset + (m->asked->shape == TERN_MAKE_OBJECT
                                                    ? TERN_ELF_IMAGE_AT : 0), src, n);
}

/* What stands around the image. */
static bool write_around(struct making *m)
{
    static struct tern_elf elf;
    const struct tern_make_image *o = m->asked;
    char text[1024];
    if (o->shape == TERN_MAKE_OBJECT)
        return tern_elf_make(&elf, o->symbol, o->machine, m->bytes) &&
               tern_output_write(m->file, 0, elf.head, sizeof elf.head) &&
               tern_output_write(m->file, elf.tail_at, elf.tail, elf.tail_bytes);
    if (o->shape == TERN_MAKE_FILE)
        return true;
    int n = snprintf(text, sizeof text,
                     "/* A Tern image, made by tern build. */\n"
                     "#include <stdint.h>\n\n"
                     "extern const unsigned char %s[];\nextern const uint64_t %s_size;\n\n"
                     "const uint64_t %s_size = %llu;\n"
                     "_Alignas(4096) const unsigned char %s[%llu] = {\n",
                     o->symbol, o->symbol, o->symbol, (unsigned long long)m->bytes, o->symbol,
                     (unsigned long long)m->bytes);
    m->text_at = (uint64_t)n;
    uint64_t end = m->text_at + m->bytes / LINE_BYTES * LINE_TEXT + m->bytes % LINE_BYTES * 5;
    return tern_output_write(m->file, 0, text, (size_t)n) &&
           tern_output_write(m->file, end, "\n};\n", 4);
}

/* An image itself, through the same sink. */
static bool copy(struct making *m, const struct tern_session *s, tern_error *err)
{
    enum { PIECE = 1 << 20 };
    const unsigned char *from = s->files.image.data;
    if (tern_image_verify(&s->files.parts[0], err) != TERN_OK)
        return false;
    for (uint64_t at = 0; at < m->bytes; at += PIECE)
        if (!take(m, at, from + at, (size_t)(m->bytes - at < PIECE ? m->bytes - at : PIECE)))
            return false;
    return true;
}

static bool build(struct making *m, struct tern_session *s)
{
    size_t scratch_bytes = 0;
    if (s->info.is_image)
        m->bytes = s->info.file_bytes;
    else if (tern_image_size(s->model, &m->bytes, &scratch_bytes, &s->error) != TERN_OK)
        return false;
    if (!write_around(m))
        return false;
    if (s->info.is_image)
        return copy(m, s, &s->error);
    tern_memory scratch = tern_os_map(scratch_bytes, 64);
    const tern_sink sink = {take, m};
    bool ok = scratch.data && tern_image_write(s->model, m->asked->identity, scratch, &sink,
                                               &s->error) == TERN_OK;
    tern_os_unmap(scratch);
    return ok;
}

bool tern_make_image(struct tern_session *s, const struct tern_make_image *o, uint64_t *bytes,
                     char line[TERN_ARGS_LINE])
{
    static struct tern_output file;
    struct making m = {.asked = o, .file = &file};
    if (!tern_output_open(&file, o->path, line))
        return false;
    if (!o->quiet)
        tern_progress_begin(&m.progress, "building");
    bool ok = build(&m, s);
    *bytes = m.bytes;
    if (!o->quiet)
        tern_progress_end(&m.progress);
    if (ok || file.error)
        return tern_output_finish(&file, line);
    tern_output_drop(&file);
    snprintf(line, TERN_ARGS_LINE, "%s", tern_session_line(s));
    return false;
}
