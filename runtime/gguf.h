/* gguf.h: one key of a GGUF file, for those who walk them. */
#ifndef TERN_GGUF_H
#define TERN_GGUF_H

#include "runtime/model.h"
#include "runtime/reader.h"

enum { TERN_GGUF_SHOWN = 128 };

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

/* Why a reader failed: the source, or a file that ends too early while reading `what`. */
tern_status tern_gguf_short(const struct tern_reader *r, const char *what, tern_error *err);

#endif
