/* no_serve.c: serve, in a build without a parser of requests. */
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/serve/serve_plan.h"
#include "tools/session.h"

#include <stdio.h>

tern_limits tern_serve_limits(const struct tern_settings *s, const tern_model *model)
{
    (void)model;
    return tern_session_limits(s);
}

uint64_t tern_serve_bytes(const struct tern_settings *s, const struct tern_session *session)
{
    (void)s;
    (void)session;
    return 0;
}

static int run(const struct tern_settings *s)
{
    (void)s;
    fprintf(stderr, "tern serve: not in this build: llhttp was not there (Debian: node-llhttp)\n");
    return 1;
}

static const struct tern_option *const tables[] = {NULL};

const struct tern_command tern_cmd_serve = {
    "serve", "serve MODEL", "Serves a model over HTTP, as OpenAI's clients ask for it.", tables,
    "Not in this build: llhttp was not there (Debian: node-llhttp).", "model",
    "a GGUF file", run,
};
