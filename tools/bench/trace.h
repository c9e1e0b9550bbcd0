/* trace.h: a step's times as a file that chrome://tracing and Perfetto open. */
#ifndef TERN_TRACE_H
#define TERN_TRACE_H

#include "tools/session.h"

/* The times that the engine keeps, times in microseconds from the first on, a row a thread.
 * False: errno says why the file could not be written. */
bool tern_trace_write(const struct tern_session *s, const char *path);

#endif
