/* model.h: a model in memory: what gguf.c read, checked, and what was built of it. */
#ifndef TERN_MODEL_H
#define TERN_MODEL_H

#include "runtime/program.h"
#include "runtime/tern.h"

struct tern_vocab;

enum tern_meta_type { /* ids of GGUF */
    TERN_META_U8, TERN_META_I8, TERN_META_U16, TERN_META_I16, TERN_META_U32, TERN_META_I32,
    TERN_META_F32, TERN_META_BOOL, TERN_META_STRING, TERN_META_ARRAY, TERN_META_U64,
    TERN_META_I64, TERN_META_F64, TERN_N_META_TYPES,
};

/* A key of the metadata. The value stays in the file: `at` is its offset (of the first element,
 * for an array) in part 0, read again when asked for; scalars are kept as well. */
struct tern_meta {
    tern_text key;
    uint32_t type, element;  /* enum tern_meta_type; element for arrays */
    uint64_t count, at;
    union { uint64_t u; int64_t i; double f; bool b; tern_text s; } v; /* widened; s for strings */
};

struct tern_tensor {
    tern_text name;
    uint32_t type, n_dims, part;
    uint64_t dims[4];        /* missing ones are 1 */
    uint64_t offset, bytes;  /* offset from the start of the part's file; bytes as in a GGUF */
    uint32_t form;           /* in an image: how it lies there (image.h) */
};

/* Sizes that recipes read, each checked to be within its range before planning. */
struct tern_hparams {
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, k_dim, v_dim, n_vocab, n_ctx_train;
    float rms_eps;
};

/* While a model is only measured there is no memory to keep its keys in. Then lookups walk the
 * file again; what they need to do it at a bearable price is here. */
enum { TERN_SCAN_JUMPS = 6, TERN_SCAN_TEXT = 64 };
struct tern_scan {
    uint64_t keys_at;                          /* in part 0 */
    struct { uint64_t at, end; } jumps[TERN_SCAN_JUMPS]; /* the longest arrays of strings */
    char architecture[TERN_SCAN_TEXT], text[TERN_SCAN_TEXT];
    bool io;                                   /* a read failed in a lookup */
};

struct tern_model {
    const tern_source *parts;
    uint32_t n_parts, n_metadata, n_tensors, file_version;
    const struct tern_meta *metadata;          /* in the order of the file */
    const struct tern_tensor *tensors;         /* in the order of the files */
    const uint32_t *metadata_by_key, *tensors_by_name; /* sorted by bytes; no two are equal */
    const struct tern_image_head *image;       /* the image that it is read from; or NULL */
    struct tern_scan *scan;                    /* while measuring, and NULL afterwards */
    tern_text architecture;
    struct tern_hparams hparams;
    const struct tern_vocab *vocab;   /* NULL for TERN_MODEL_HEADER */
    struct tern_program program;      /* n_ops 0 unless TERN_MODEL_WHOLE */
    uint64_t file_bytes;              /* all parts */
    bool any_type; /* tensors of types that are not read are kept, with bytes 0, to be shown */
    size_t memory_bytes;              /* what tern_model_size answered */
};

/* Lookups. Keys that begin with '.' are prefixed by the architecture: ".block_count". All of
 * them work while measuring too (except tern_tensor_find); a text is then cut to
 * TERN_SCAN_TEXT bytes and lives until the next lookup. */
bool tern_meta_find(const struct tern_model *m, const char *key, struct tern_meta *out);
/* Integers of any width and sign that fit; a key of another type or range is a named error.
 * *out is untouched if the key is absent: the caller puts the default there; required ones fail. */
tern_status tern_meta_u32(const struct tern_model *m, const char *key, bool required, uint32_t min,
                          uint32_t max, uint32_t *out, tern_error *err);
tern_status tern_meta_f32(const struct tern_model *m, const char *key, bool required, float min,
                          float max, float *out, tern_error *err);
tern_status tern_meta_bool(const struct tern_model *m, const char *key, bool *out, tern_error *err);
tern_status tern_meta_text(const struct tern_model *m, const char *key, tern_text *out,
                           tern_error *err);
/* The integer of a key if it is one and not negative. */
bool tern_meta_to_u64(const struct tern_meta *k, uint64_t *out);
/* The i-th element of an array, i below its count. A text without data is size bytes at `at`.
 * It reads the file: whole arrays are walked with a tern_reader from `at` on. */
tern_status tern_meta_element(const struct tern_model *m, const struct tern_meta *array, uint64_t i,
                              struct tern_meta *out, tern_error *err);
const char *tern_meta_type_name(uint32_t type, uint32_t element); /* "u32", "array of string" */

const struct tern_tensor *tern_tensor_find(const struct tern_model *m, tern_text name);

/* Where a weight of the program lies in the image, as backends use it, aligned to 64 bytes:
 * panels, or floats padded with zeros to a multiple of 32. NULL: there is no image, and the
 * weights come by upload. */
const void *tern_model_weight(const struct tern_model *m, uint32_t weight);

/* gguf.c: reads header, keys and tensor directory of all parts into the arena. */
struct tern_arena;
tern_status tern_gguf_read(struct tern_arena *arena, const tern_source *parts, size_t n_parts,
                           struct tern_model *m, tern_error *err);

#endif
