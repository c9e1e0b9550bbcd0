/* format.h: what a block of each tensor type is, and how rows become kernel panels.
 *
 * A type is described once, as data: its block, the planes of bytes inside a block, and one
 * function that turns 32 elements of a row into integer codes and float scales. Everything
 * else follows from these: decoding to floats, the reference dot product, the panel layout.
 *
 * A panel is 16 rows side by side. Along k it goes block by block; inside a block, plane by
 * plane; inside a plane, runs of `run` bytes of row 0, row 1, ... row 15, then the next run:
 *
 *   byte (i / run) * 16 * run + r * run + i % run  of a plane  =  byte i of row r's plane
 *
 * so the bytes of the file are permuted, never recoded, a panel is as large as its 16 rows,
 * and packing can be inverted. Rows past the end are zero bytes, which decode to zeros.
 *
 *   Q4_0:  | 16 x f16 d | 4 x 64 bytes of nibbles: byte 64 j + 4 r + b = source byte 4 j + b |
 */
#ifndef TERN_FORMAT_H
#define TERN_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which way panels are laid out: raised when the bytes of any type's panel move, for images hold
 * panels. tests/unit/test_image.c holds the bytes to this number. */
enum { TERN_PANEL_LAYOUT = 1 };

/* Ids as in GGUF. The numbers that are missing were removed from the format. */
enum tern_type {
    TERN_TYPE_F32 = 0, TERN_TYPE_F16 = 1, TERN_TYPE_Q4_0 = 2, TERN_TYPE_Q4_1 = 3,
    TERN_TYPE_Q5_0 = 6, TERN_TYPE_Q5_1 = 7, TERN_TYPE_Q8_0 = 8,
    TERN_TYPE_Q2_K = 10, TERN_TYPE_Q3_K = 11, TERN_TYPE_Q4_K = 12, TERN_TYPE_Q5_K = 13,
    TERN_TYPE_Q6_K = 14, TERN_TYPE_IQ2_XXS = 16, TERN_TYPE_IQ2_XS = 17, TERN_TYPE_IQ3_XXS = 18,
    TERN_TYPE_IQ1_S = 19, TERN_TYPE_IQ4_NL = 20, TERN_TYPE_IQ3_S = 21, TERN_TYPE_IQ2_S = 22,
    TERN_TYPE_IQ4_XS = 23, TERN_TYPE_IQ1_M = 29, TERN_TYPE_BF16 = 30, TERN_TYPE_TQ1_0 = 34,
    TERN_TYPE_TQ2_0 = 35, TERN_TYPE_MXFP4 = 39,
    TERN_N_TYPES = 40, /* one more than the largest */
};

enum { TERN_PANEL_ROWS = 16, TERN_SUB = 32, TERN_MAX_PLANES = 5, TERN_MAX_BLOCK_BYTES = 256 };

/* 32 elements of one row. The element's value, exactly what the file means, is
 *   scale * (sc[i / 16] * q[i]) - min * m[i / 16]
 * with at most one rounding (the subtraction). Formats without minimums leave min 0 and m 0;
 * formats with one scale every 32 elements have sc = {1, 1} (and m = {1, 1} with minimums).
 * |sc0 * dot0 + sc1 * dot1| stays below 2^24 for q of the format and activations within 127. */
struct tern_codes {
    int8_t q[TERN_SUB];
    float scale, min;
    int16_t sc[2], m[2];
};

/* Where it is in a block of the file; run is 1, 2 or 4. */
struct tern_plane { uint16_t offset, bytes, run; };

struct tern_format {
    const char *name;      /* "Q4_K"; NULL: no such type */
    uint16_t n_elems;      /* of a block: 1, 32 or 256 */
    uint16_t n_bytes;
    bool has_min;          /* the chain has its second fma */
    bool direct;           /* codes come out of the panel by shifts; others are looked up first */
    uint8_t n_planes;
    struct tern_plane planes[TERN_MAX_PLANES]; /* in the order of the panel */
    /* Codes of elements 32 sub .. 32 sub + 31 of a block; NULL for float types. */
    void (*codes)(const uint8_t *block, uint32_t sub, struct tern_codes *out);
};

/* The format of a GGUF type id, or NULL if it is not one that Tern knows. */
const struct tern_format *tern_format_of(uint32_t type);

/* Bytes of one row of n elements; 0 if n is no multiple of the block. No overflow below 2^56. */
uint64_t tern_row_bytes(uint32_t type, uint64_t n);
/* Bytes of one panel of rows of n elements: 16 rows. */
uint64_t tern_panel_bytes(uint32_t type, uint64_t n);

/* n elements of a row as it is in the file, to floats; n is a multiple of the block. */
void tern_decode_row(uint32_t type, const void *row, float *out, size_t n);

/* n_rows <= 16 rows, row_bytes apart, to one panel; the rest of the panel is zeroed. */
void tern_pack_panel(uint32_t type, const void *rows, size_t n_rows, size_t n, void *panel);
/* One row of a panel back to the bytes of the file. */
void tern_unpack_row(uint32_t type, const void *panel, size_t r, size_t n, void *row);
/* One block of one row of a panel back to the bytes of the file. `block` points at the panel's
 * block: panel + i_block * 16 * n_bytes. */
void tern_unpack_block(const struct tern_format *f, const uint8_t *block, size_t r, uint8_t *out);

/* 32 elements of all 16 rows of a panel's block, in the order that kernels want:
 * q[j][r][b] is element 4 j + b of row r. */
struct tern_panel_codes {
    int8_t q[TERN_SUB / 4][TERN_PANEL_ROWS][4];
    float scale[TERN_PANEL_ROWS], min[TERN_PANEL_ROWS];
    int16_t sc[TERN_PANEL_ROWS][2], m[TERN_PANEL_ROWS][2];
};
void tern_panel_to_codes(const struct tern_format *f, const uint8_t *block, uint32_t sub,
                         struct tern_panel_codes *out);
/* All of a block, n_elems / 32 of out; its rows are unpacked once. */
void tern_panel_block_to_codes(const struct tern_format *f, const uint8_t *block,
                               struct tern_panel_codes *out);

#endif
