/* error.h: one line of error text, "thing, value, limit"; the first error wins. */
#ifndef TERN_ERROR_H
#define TERN_ERROR_H

#include "runtime/tern.h"

/* Sets *err (may be NULL) unless it already holds an error, and returns status. The format
 * knows only:  %s  const char *      %t  tern_text by value, bytes outside printable ASCII
 * and UTF-8 shown as ?, cut at 64 bytes      %u  uint64_t      %i  int64_t      %x  uint64_t
 * as hex      %f  double, six significant digits      %%  a percent sign. */
tern_status tern_fail(tern_error *err, tern_status status, const char *format, ...);

#endif
