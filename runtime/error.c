#include "runtime/error.h"

#include "runtime/text.h"

#include <stdarg.h>

tern_status tern_fail(tern_error *err, tern_status status, const char *format, ...)
{
    if (!err || err->status != TERN_OK)
        return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    tern_write_line(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}
