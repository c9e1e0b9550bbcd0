/* text.h: bounded formatting and number parsing without stdio.
 *
 * A tern_writer appends to a fixed buffer and counts what the whole would have needed, so it
 * serves both a size query and the writing itself.
 */
#ifndef TERN_TEXT_H
#define TERN_TEXT_H

#include "runtime/tern.h"

#include <stdarg.h>

struct tern_writer { char *out; size_t cap, n; }; /* n may pass cap: that much was needed */

void tern_write_bytes(struct tern_writer *w, const char *data, size_t size);
void tern_write_format(struct tern_writer *w, const char *format, va_list args); /* error.h's */
void tern_write(struct tern_writer *w, const char *format, ...);
/* A zero behind it all, or at cap where that was passed: one byte more is the buffer's. */
void tern_write_end(struct tern_writer *w);
/* A text of its own with a zero behind it, cut to size bytes. */
void tern_write_line(char *out, size_t size, const char *format, va_list args);

tern_text tern_text_of(const char *s);
bool tern_text_is(tern_text a, const char *s);
bool tern_text_equal(tern_text a, tern_text b);
/* How much of a word, not empty, a text ends with after a byte; at: how much, less than all of
 * it, it ended with before. Few bytes: begun anew by trying. */
size_t tern_text_overlap(tern_text word, size_t at, char byte);
/* Decimal digits alone, no sign or space, without overflow. */
bool tern_text_to_u64(tern_text a, uint64_t *out);

#endif
