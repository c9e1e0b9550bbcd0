/* reply_scan.h: one value as JSON or as Python writes it, a byte at a time, to JSON text. */
#ifndef TERN_REPLY_SCAN_H
#define TERN_REPLY_SCAN_H

#include "runtime/text.h"

enum { TERN_REPLY_DEPTH = 64, TERN_REPLY_WORD = 96, TERN_REPLY_SCANNED = 160 };

struct tern_reply_scan {
    bool python, is_key, comma;  /* comma: one is due before the next item */
    uint8_t state, depth, kind;  /* kind: of the value, TERN_VALUE_*; of a number once it ended */
    uint8_t n_word, n_hex;
    char quote, letter;          /* of the string, and of the escape, that it is in */
    uint16_t high;               /* the first half of a pair, not yet written */
    uint64_t objects, tuples;    /* what is open at each depth; neither: a list */
    char hex[8], word[TERN_REPLY_WORD];
};

enum tern_reply_scanned {
    TERN_SCANNED_MORE,   /* the value goes on */
    TERN_SCANNED_WHOLE,  /* it ended with this byte */
    TERN_SCANNED_BEFORE, /* it ended before this byte, which was not read */
    TERN_SCANNED_BAD,    /* it is no value; the byte was not read */
};

void tern_reply_scan_begin(struct tern_reply_scan *s, bool python);
/* Writes at most TERN_REPLY_SCANNED bytes. */
enum tern_reply_scanned tern_reply_scan_byte(struct tern_reply_scan *s, char c,
                                             struct tern_writer *w);
/* Whether the value may end here. */
bool tern_reply_scan_end(struct tern_reply_scan *s, struct tern_writer *w);

/* A byte inside of a JSON string. */
void tern_reply_write_quoted(struct tern_writer *w, char c);
bool tern_reply_is_space(char c);

#endif
