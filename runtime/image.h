/* image.h: the Tern image in memory: what quant/FORMATS.md specifies, as structs that lie over
 * the bytes. Hosts are little-endian, and so are images.
 *
 *   head   header, table of sections | metadata | tensors | names | vocabulary
 *   tail   the tokenizer's tables, each from a page on | weights
 *
 * The head has one hash, which opening an image checks; every section has its own, which
 * tern_image_verify checks. All fields of the head are checked as a GGUF's are, whatever the
 * hash says. Nothing of the tail is looked at before it is used.
 */
#ifndef TERN_IMAGE_H
#define TERN_IMAGE_H

#include "runtime/model.h"

enum {
    TERN_IMAGE_VERSION = 1,
    TERN_IMAGE_ORDER = 0x01020304, /* as the host that wrote it writes a word */
    TERN_IMAGE_ALIGN = 64,         /* of the image, of sections of the head, of each weight */
    TERN_IMAGE_PAGE = 4096,        /* of sections of the tail */
    TERN_IMAGE_MOST_HEAD = 16 << 20,
    TERN_IMAGE_SHOWN = 8,          /* elements kept of arrays that became tables */
    TERN_IMAGE_FLOATS = 32,        /* a vector is padded with zeros to a multiple of it */
};
#define TERN_IMAGE_MAGIC "TERNIMG\n"

enum tern_image_part { /* sections, in their order; the table's types are these plus 1 */
    TERN_IMAGE_METADATA, TERN_IMAGE_TENSORS, TERN_IMAGE_NAMES, TERN_IMAGE_VOCAB,
    TERN_IMAGE_PIECES, TERN_IMAGE_STARTS, TERN_IMAGE_KINDS, TERN_IMAGE_SCORES, TERN_IMAGE_SLOTS,
    TERN_IMAGE_PAIRS, TERN_IMAGE_MERGED, TERN_IMAGE_BYTES, TERN_IMAGE_SPECIALS,
    TERN_IMAGE_FIRSTS, TERN_IMAGE_REACHES, TERN_IMAGE_WEIGHTS,
    TERN_IMAGE_N_PARTS, TERN_IMAGE_N_IN_HEAD = TERN_IMAGE_PIECES,
};

struct tern_image_section { uint32_t type, zero; uint64_t offset, bytes, hash; };

struct tern_image_head {
    char magic[8];
    uint32_t order, version, layout, n_sections;
    uint64_t image_bytes, head_bytes;
    uint64_t head_hash; /* of head_bytes bytes, this field taken as zero */
    uint32_t n_metadata, n_tensors, file_version, n_parts; /* the last two: of the GGUF */
    uint64_t identity;  /* of the GGUF, for a cache; 0: none */
    uint64_t zeros[7];
    struct tern_image_section sections[TERN_IMAGE_N_PARTS];
};

enum tern_image_form { TERN_IMAGE_AS_ROWS, TERN_IMAGE_AS_PANELS, TERN_IMAGE_AS_FLOATS };

struct tern_image_tensor {
    uint32_t name_at, type;
    uint16_t name_bytes;
    uint8_t n_dims, form;
    uint32_t zero;
    uint64_t dims[4], offset, bytes; /* offset from the image's start */
};

/* The arrays of the metadata that became tables. */
enum { TERN_IMAGE_N_CUT = 4 };
extern const char *const tern_image_cut_keys[TERN_IMAGE_N_CUT];

struct tern_image_vocab {
    uint32_t family, flags;
    int32_t ids[7]; /* bos eos eot eom pad unk sep; -1: none */
    uint32_t n_tokens, n_slots, n_merges, n_pairs, n_specials, longest, longest_special;
    uint64_t cut_counts[TERN_IMAGE_N_CUT]; /* elements that the GGUF's arrays had; 0: no such key */
    uint64_t zeros[4];
};
enum { /* flags */
    TERN_IMAGE_ADDS_BOS = 1, TERN_IMAGE_ADDS_EOS = 2, TERN_IMAGE_ADDS_SPACE = 4,
    TERN_IMAGE_WORDS_ALONE = 8, TERN_IMAGE_UNIQUE = 16, TERN_IMAGE_ALL_FLAGS = 31,
};

_Static_assert(sizeof(struct tern_image_head) == 640, "quant/FORMATS.md says so");
_Static_assert(sizeof(struct tern_image_tensor) == 64, "quant/FORMATS.md says so");
_Static_assert(sizeof(struct tern_image_vocab) == 128, "quant/FORMATS.md says so");

/* Whether the source begins like an image; what is no more than that is not looked at. */
bool tern_image_is(const tern_source *source);
/* Head, metadata and tensors into m, as tern_gguf_read. */
tern_status tern_image_read(struct tern_arena *arena, const tern_source *parts, size_t n_parts,
                            struct tern_model *m, tern_error *err);
/* Every weight of the program lies there in the form that backends use. */
tern_status tern_image_check_program(const struct tern_model *m, tern_error *err);
/* image_vocab.c: v, whose family is known, over tables that stay where they lie; it is kept in
 * the arena (*out; NULL while measuring). */
struct tern_vocab;
tern_status tern_image_vocab(struct tern_arena *arena, const struct tern_model *m,
                             struct tern_vocab *v, const struct tern_vocab **out, tern_error *err);

/* Bytes of a tensor in an image; UINT64_MAX: it cannot have this form. */
uint64_t tern_image_tensor_bytes(const struct tern_tensor *t, uint32_t form);
static inline const void *tern_image_at(const struct tern_image_head *h, enum tern_image_part part)
{
    return (const char *)h + h->sections[part].offset;
}

#endif
