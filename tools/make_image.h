/* make_image.h: images as files, as objects for a linker, and as arrays for a compiler. */
#ifndef TERN_MAKE_IMAGE_H
#define TERN_MAKE_IMAGE_H

#include "tools/output.h"
#include "tools/session.h"

enum tern_make_shape { TERN_MAKE_FILE, TERN_MAKE_OBJECT, TERN_MAKE_C_ARRAY };

/* Writes the image of the session's model (read whole from a GGUF, or an image itself) to path;
 * symbol and machine (an ELF machine number) are for the two shapes that have them. bytes: of the
 * image. */
struct tern_make_image {
    enum tern_make_shape shape;
    const char *path, *symbol;
    uint16_t machine;
    uint64_t identity;
    bool quiet; /* no progress is shown */
};
bool tern_make_image(struct tern_session *s, const struct tern_make_image *o, uint64_t *bytes,
                     char line[TERN_ARGS_LINE]);

/* elf.c: what stands around an image in a relocatable object: a section of read-only data, page
 * aligned, with the symbols NAME, NAME_end and NAME_size (a 64-bit number). */
enum { TERN_ELF_X86_64 = 62, TERN_ELF_AARCH64 = 183, TERN_ELF_IMAGE_AT = 4096 };
struct tern_elf {
    unsigned char head[64], tail[2048];
    size_t tail_bytes;
    uint64_t tail_at; /* the image lies from TERN_ELF_IMAGE_AT on */
};
bool tern_elf_make(struct tern_elf *e, const char *symbol, uint16_t machine, uint64_t bytes);

/* cache.c: opens path as tern_session_open does, by way of an image in folder (NULL: off): the
 * one made of the same file before, verified, or one that is made now. Where no image can be
 * had the GGUF is opened, and a line on standard error says why. */
bool tern_session_open_cached(struct tern_session *s, const char *path, const char *folder);

#endif
