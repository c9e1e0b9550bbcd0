/* elf.c: an ELF64 relocatable object around an image, as the System V ABI has it. Little-endian,
 * like every machine that images are for. No relocations and no code: data and names. */
#include "tools/make_image.h"

#include <string.h>

enum { NAME_MOST = 200, PIECES = 7, SYMBOLS = 4 };
enum { SHT_PROGBITS = 1, SHT_SYMTAB = 2, SHT_STRTAB = 3, SHF_ALLOC = 2 };

/* The names of sections; where each begins is their order's. */
static const char names[] = "\0.rodata.tern\0.rodata.tern_size\0.note.GNU-stack\0.symtab\0.strtab\0"
                            ".shstrtab";

struct put { unsigned char *at; };

static void put(struct put *p, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p->at++ = (unsigned char)(x >> 8 * i);
}

struct section { uint32_t type; uint64_t flags, offset, size; uint32_t link, info, align, entry; };

static void put_section(struct put *p, uint32_t name, const struct section *s)
{
    put(p, name, 4);
    put(p, s->type, 4);
    put(p, s->flags, 8);
    put(p, 0, 8);
    put(p, s->offset, 8);
    put(p, s->size, 8);
    put(p, s->link, 4);
    put(p, s->info, 4);
    put(p, s->align, 8);
    put(p, s->entry, 8);
}

static void put_symbol(struct put *p, uint32_t name, uint16_t section, uint64_t value,
                       uint64_t size)
{
    enum { GLOBAL_OBJECT = 1 << 4 | 1 };
    put(p, name, 4);
    put(p, GLOBAL_OBJECT, 1);
    put(p, 0, 1);
    put(p, section, 2);
    put(p, value, 8);
    put(p, size, 8);
}

static void put_header(struct tern_elf *e, uint16_t machine, uint64_t sections)
{
    struct put p = {e->head};
    static const unsigned char ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    memcpy(p.at, ident, sizeof ident);
    p.at += sizeof ident;
    put(&p, 1, 2); /* relocatable */
    put(&p, machine, 2);
    put(&p, 1, 4);
    put(&p, 0, 8);
    put(&p, 0, 8);
    put(&p, sections, 8);
    put(&p, 0, 4);
    put(&p, sizeof e->head, 2);
    put(&p, 0, 2);
    put(&p, 0, 2);
    put(&p, 64, 2);
    put(&p, PIECES, 2);
    put(&p, PIECES - 1, 2);
}

bool tern_elf_make(struct tern_elf *e, const char *symbol, uint16_t machine, uint64_t bytes)
{
    const size_t n = strlen(symbol);
    if (n == 0 || n > NAME_MOST)
        return false;
    memset(e, 0, sizeof *e);
    e->tail_at = (TERN_ELF_IMAGE_AT + bytes + 7) / 8 * 8;
    struct put p = {e->tail};
    const uint64_t size_at = e->tail_at, symbols_at = size_at + 8;
    put(&p, bytes, 8);
    p.at += 24; /* the symbol of no name */
    put_symbol(&p, 1, 1, 0, bytes);
    put_symbol(&p, (uint32_t)(n + 2), 1, bytes, 0);
    put_symbol(&p, (uint32_t)(2 * n + 7), 2, 0, 8);
    const uint64_t strings_at = e->tail_at + (uint64_t)(p.at - e->tail);
    p.at++;
    const char *const ends[] = {"", "_end", "_size"};
    for (int i = 0; i < 3; i++) {
        memcpy(p.at, symbol, n);
        memcpy(p.at + n, ends[i], strlen(ends[i]));
        p.at += n + strlen(ends[i]) + 1;
    }
    const uint64_t names_at = e->tail_at + (uint64_t)(p.at - e->tail);
    memcpy(p.at, names, sizeof names);
    p.at += sizeof names;
    p.at += (8 - (p.at - e->tail) % 8) % 8;
    const uint64_t sections_at = e->tail_at + (uint64_t)(p.at - e->tail);
    const struct section sections[PIECES] = {
        {0},
        {SHT_PROGBITS, SHF_ALLOC, TERN_ELF_IMAGE_AT, bytes, 0, 0, 4096, 0},
        {SHT_PROGBITS, SHF_ALLOC, size_at, 8, 0, 0, 8, 0},
        {SHT_PROGBITS, 0, size_at, 0, 0, 0, 1, 0},
        {SHT_SYMTAB, 0, symbols_at, 24 * SYMBOLS, 5, 1, 8, 24},
        {SHT_STRTAB, 0, strings_at, names_at - strings_at, 0, 0, 1, 0},
        {SHT_STRTAB, 0, names_at, sizeof names, 0, 0, 1, 0},
    };
    const char *name = names;
    for (int i = 0; i < PIECES; i++) {
        put_section(&p, (uint32_t)(name - names), &sections[i]);
        name += strlen(name) + 1;
    }
    e->tail_bytes = (size_t)(p.at - e->tail);
    put_header(e, machine, sections_at);
    return true;
}
