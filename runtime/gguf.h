/* gguf.h: one key of a GGUF file, for those who walk them, and what image.c shares with gguf.c. */
#ifndef TERN_GGUF_H
#define TERN_GGUF_H

#include "runtime/model.h"
#include "runtime/reader.h"

enum { TERN_GGUF_SHOWN = 128, TERN_GGUF_NAME = 63 }; /* bytes: of a key shown, of a name at most */

/* meta.key and a text value point into the file if the source has a base. Otherwise the key is
 * its first TERN_GGUF_SHOWN bytes in `shown`, and a text has a size and an offset alone. */
struct tern_gguf_record {
    struct tern_meta meta;
    uint64_t key_at, key_size;
    char shown[TERN_GGUF_SHOWN];
};

/* Reads and checks the key where the reader stands, and leaves it at the next. Long arrays of
 * strings are remembered in scan (may be NULL) and jumped over the next time. */
tern_status tern_gguf_record(struct tern_reader *r, struct tern_scan *scan,
                             struct tern_gguf_record *out, tern_error *err);

/* The value alone, of the type that out->type says. */
tern_status tern_gguf_value(struct tern_reader *r, struct tern_scan *scan, struct tern_meta *out,
                            tern_error *err);
/* Bytes of a scalar, at least; 0 for an array. */
uint64_t tern_gguf_value_bytes(uint32_t type);

/* "Q4_K"; "F64" for a type that is not read; "unknown" for one that nobody wrote down. */
const char *tern_gguf_type_name(uint32_t type);
/* Dims and type of a tensor to its bytes, checked; any_type: of a type that is not read, too. */
tern_status tern_gguf_size_tensor(struct tern_tensor *t, bool any_type, tern_error *err);
/* The sorted orders of m's keys and tensors: no two may be equal, no two tensors overlap. */
tern_status tern_gguf_index(struct tern_model *m, uint32_t *by_key, uint32_t *by_name,
                            tern_error *err);
tern_status tern_gguf_architecture(struct tern_model *m, tern_error *err);

/* Why a reader failed: the source, or a file that ends too early while reading `what`. */
tern_status tern_gguf_short(const struct tern_reader *r, const char *what, tern_error *err);

#endif
