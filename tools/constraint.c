#include "tools/constraint.h"

#include "platform/os/host.h"
#include "tools/prompt.h"
#include "tools/schema.h"
#include "tools/session.h"

#include <stdio.h>
#include <string.h>

static bool compile(struct tern_constraint *c, tern_text gbnf, const tern_model *model,
                    size_t scratch_bytes, tern_error *err)
{
    size_t used;
    tern_memory scratch = tern_os_map_sparse(scratch_bytes);
    c->memory = tern_os_map_sparse(TERN_GRAMMAR_BYTES);
    *err = (tern_error){0};
    if (!scratch.data || !c->memory.data)
        snprintf(err->text, sizeof err->text, "grammar: no memory for it");
    else if (tern_grammar_compile(c->memory, scratch, gbnf, model, &c->grammar, &used, err))
        c->grammar = NULL;
    c->bytes = tern_os_taken(c->memory);
    size_t compiling = c->bytes + tern_os_taken(scratch) + gbnf.size;
    c->compiling = compiling > c->compiling ? compiling : c->compiling;
    tern_os_unmap(scratch);
    if (c->grammar == NULL)
        tern_os_unmap(c->memory);
    return c->grammar != NULL;
}

/* Scratch is touched before the arenas are. The compiler divides up all that it is given, so it
 * is given little at first: with a small model scratch would be the peak of the process. */
bool tern_constraint_compile(struct tern_constraint *c, tern_text gbnf, const tern_model *model,
                             char line[TERN_ARGS_LINE])
{
    tern_error err;
    memset(c, 0, sizeof *c);
    for (size_t n = TERN_GRAMMAR_SCRATCH / 8; n <= TERN_GRAMMAR_SCRATCH; n *= 2) {
        if (compile(c, gbnf, model, n, &err))
            return true;
        c->memory = (tern_memory){NULL, 0};
        if (!strstr(err.text, "memory holds"))
            break;
    }
    snprintf(line, TERN_ARGS_LINE, "%s", err.text);
    tern_constraint_free(c);
    return false;
}

bool tern_constraint_open(struct tern_constraint *c, const struct tern_settings *s,
                          const tern_model *model, char line[TERN_ARGS_LINE])
{
    const struct tern_settings from = {.file = s->schema ? s->schema : s->grammar};
    struct tern_prompt text = {.n = 0};
    static struct tern_out gbnf;
    tern_out_open(&gbnf, -1);
    memset(c, 0, sizeof *c);
    bool ok = true, any = s->schema || s->grammar || s->json_mode;
    if (from.file)
        ok = tern_prompt_read(&text, &from, NULL, 0, line);
    if (ok && s->schema)
        ok = tern_schema_write(text.text, &gbnf, NULL, NULL, line);
    if (ok && s->json_mode)
        tern_schema_write_object(&gbnf);
    const tern_text own = {gbnf.grown, gbnf.n};
    if (ok && any)
        ok = tern_constraint_compile(c, s->grammar ? text.text : own, model, line);
    if (!ok && s->schema)
        tern_schema_explain(own, line);
    tern_prompt_free(&text);
    tern_out_free(&gbnf);
    return ok;
}

bool tern_constraint_of_session(struct tern_session *s, const struct tern_settings *settings)
{
    char line[TERN_ARGS_LINE];
    if (tern_constraint_open(&s->constraint, settings, s->model, line))
        return true;
    s->error.status = TERN_BAD_MODEL;
    snprintf(s->error.text, sizeof s->error.text, "%.*s", (int)sizeof s->error.text - 1, line);
    return false;
}

void tern_constraint_free(struct tern_constraint *c)
{
    tern_os_unmap(c->memory);
    memset(c, 0, sizeof *c);
}
