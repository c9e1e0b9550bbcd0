/* saved.h: a session: what quant/FORMATS.md, section 8, specifies, as structs that lie over the
 * bytes. Hosts are little-endian, and so are sessions.
 *
 *   head   header | tokens | the caller's note | zeros to a multiple of 64
 *   tail   the blocks of each KV group, one after the other, each with its layers in order
 *
 * The tail holds whole blocks alone. What is behind the last whole block is computed anew: at most
 * 15 rows, whose bits do not depend on how a text was cut. Kept they would be bytes with holes,
 * for what the pool has behind them is somebody else's.
 *
 * "The same model" is a hash over its program (ops, geometry, RoPE, shapes, types and names of all
 * weights) and over samples of each weight: four places, some 64 to 256 elements each. So it
 * takes a time that does not grow with the weights, and other weights differ everywhere: fine
 * tuning moves all of a tensor's scales, another quantisation its type. The samples are bytes of
 * the file, so an image and the GGUF that it was made of are one model. */
#ifndef TERN_SAVED_H
#define TERN_SAVED_H

#include "runtime/engine.h"

enum {
    TERN_SAVED_VERSION = 1,
    TERN_SAVED_ORDER = 0x01020304, /* as the host that wrote it writes a word */
    TERN_SAVED_ALIGN = 64,         /* of the tail's start */
    TERN_SAVED_MOST_TOKENS = 1 << 20,
    /* Raised when any bit of keys or values of the same tokens changes, or a recipe's program
     * for the same file; tests/unit/test_saved.c holds the bytes of sessions to it. */
    TERN_SAVED_ARITHMETIC = 1,
    TERN_SAVED_LAYOUT = 1,         /* of a block's bytes */
};
#define TERN_SAVED_MAGIC "TERNSEQ\n"

enum { TERN_SAVED_EXACT = 1, TERN_SAVED_K_ROTATED = 2, TERN_SAVED_V_ROTATED = 4 };

struct tern_saved_group {
    uint32_t n_layers, n_kv_heads, k_dim, v_dim, window;
    uint32_t first, n_blocks; /* blocks first .. first + n_blocks - 1 of the text */
    uint32_t block_bytes;     /* of one layer */
};

struct tern_saved_head {
    char magic[8];
    uint32_t order, version;
    uint64_t file_bytes, head_bytes;
    uint64_t head_hash;       /* of head_bytes bytes, this field taken as zero */
    uint64_t tail_hash;
    uint32_t arithmetic, layout;
    uint64_t model_hash, seed, stream;
    uint32_t n_tokens, n_computed, block_tokens, n_groups;
    uint32_t k_type, v_type, flags, zero;
    uint64_t note_bytes;
    char backend[16], model[56]; /* names, filled up with zeros */
    struct tern_saved_group groups[TERN_MAX_KV_GROUPS];
};

_Static_assert(sizeof(struct tern_saved_head) == 320, "quant/FORMATS.md says so");
_Static_assert(TERN_MAX_KV_GROUPS == 4, "quant/FORMATS.md says so");

/* All of a head that follows from the engine and these counts; the rest is zero. */
void tern_saved_expect(tern_engine *e, uint32_t n_tokens, uint32_t n_computed, uint64_t note_bytes,
                       struct tern_saved_head *out);
/* Whether the sequence of this handle still stands there, does not run and has n blocks. */
bool tern_saved_holds(const tern_engine *e, const struct tern_sequence *s, tern_seq seq,
                      uint32_t n);
/* Scratch for one block of one layer of any group. */
size_t tern_saved_step(const tern_engine *e);
/* saved_model.c: the hash of the engine's model. Never 0. */
uint64_t tern_saved_model(tern_engine *e);

#endif
