#include "runtime/tern.h"

const char *tern_status_name(tern_status status)
{
    static const char *const names[] = {
        [TERN_OK] = "ok", [TERN_AGAIN] = "again", [TERN_TOO_SMALL] = "too small",
        [TERN_BAD_ARGUMENT] = "bad argument", [TERN_BAD_MODEL] = "bad model",
        [TERN_UNSUPPORTED] = "unsupported", [TERN_NO_MEMORY] = "no memory",
        [TERN_DEVICE_LOST] = "device lost", [TERN_IO] = "read failed",
    };
    return status >= 0 && (size_t)status < sizeof names / sizeof *names ? names[status] : "?";
}

const char *tern_stop_name(tern_stop stop)
{
    static const char *const names[] = {
        [TERN_STOP_NONE] = "none", [TERN_STOP_EOS] = "eos", [TERN_STOP_STRING] = "stop",
        [TERN_STOP_LENGTH] = "length", [TERN_STOP_CONTEXT] = "context",
        [TERN_STOP_CANCELLED] = "interrupt", [TERN_STOP_ERROR] = "error",
    };
    return stop >= 0 && (size_t)stop < sizeof names / sizeof *names ? names[stop] : "?";
}

const char *tern_version(void)
{
    return "0.1.0";
}
