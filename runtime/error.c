#include "runtime/error.h"

#include "runtime/text.h"

#include <stdarg.h>

tern_status tern_fail(tern_error *err, tern_status status, const char *format, ...)
{
    if (!err || err->status != TERN_OK)
        return status;
    err->status = status;
    struct tern_writer w = {err->text, sizeof err->text - 1, 0};
    va_list args;
    va_start(args, format);
    tern_write_format(&w, format, args);
    va_end(args);
    err->text[w.n < w.cap ? w.n : w.cap] = '\0';
    return status;
}
