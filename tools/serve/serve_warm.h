/* serve_warm.h: what is computed before the server is ready. */
#ifndef TERN_SERVE_WARM_H
#define TERN_SERVE_WARM_H

#include "tools/serve/serve.h"

/* The file of --warm, on the engine's thread, before it serves. False: line says why. */
bool tern_serve_warm(struct tern_server *s, char line[TERN_ARGS_LINE]);

#endif
