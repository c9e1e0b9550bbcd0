/* cmd_schema.c: a JSON schema as a grammar, and documents against it. */
#include "tools/commands.h"
#include "tools/constraint.h"
#include "tools/match.h"
#include "tools/options.h"
#include "tools/prompt.h"
#include "tools/schema.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WRONG_SCHEMA = 3 };

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern schema: %s\n", line);
    return code;
}

static int refuse_schema(const struct tern_out *gbnf, char line[TERN_ARGS_LINE])
{
    tern_schema_explain((tern_text){gbnf->grown, gbnf->n}, line);
    return refuse(WRONG_SCHEMA, line);
}

/* A line feed at the end of a file is not part of the document. */
static int match(const char *file, const struct tern_constraint *c, struct tern_out *out)
{
    struct tern_settings from = {.file = file};
    struct tern_prompt text;
    char line[TERN_ARGS_LINE];
    if (!tern_prompt_read(&text, &from, NULL, 0, line))
        return refuse(1, line);
    if (text.text.size && text.text.data[text.text.size - 1] == '\n')
        text.text.size--;
    int code = tern_match(c->grammar, NULL, &text, out);
    tern_prompt_free(&text);
    return code;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_out gbnf, dropped, out;
    struct tern_settings from = {.file = settings->model};
    struct tern_prompt text;
    struct tern_constraint c = {.grammar = NULL};
    char line[TERN_ARGS_LINE];
    if (!tern_prompt_read(&text, &from, NULL, 0, line))
        return refuse(1, line);
    tern_out_open(&gbnf, -1);
    tern_out_open(&dropped, STDERR_FILENO);
    tern_out_open(&out, STDOUT_FILENO);
    int code = 0;
    if (!tern_schema_write(text.text, &gbnf, settings->lenient ? &dropped : NULL, NULL, line) ||
        !tern_constraint_compile(&c, (tern_text){gbnf.grown, gbnf.n}, NULL, line))
        code = refuse_schema(&gbnf, line);
    else if (settings->match)
        code = match(settings->match, &c, &out);
    else
        tern_out_put(&out, gbnf.grown, gbnf.n);
    tern_out_flush(&dropped);
    tern_prompt_free(&text);
    tern_constraint_free(&c);
    tern_out_free(&gbnf);
    return tern_out_flush(&out) ? code : refuse(1, strerror(out.error));
}

static const struct tern_option own[] = {
    {"--match", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, match), 0, 0, NULL,
     "FILE", "holds a document against it; - is standard input"},
    {"--lenient", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, lenient), 0, 0, NULL,
     NULL, "keywords that can not be enforced are dropped and reported, not refused"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {own, NULL};

const struct tern_command tern_cmd_schema = {
    "schema", "schema FILE.json [options]", "Prints a JSON schema as a grammar, or checks "
    "documents against it.", tables,
    "Exit codes: 0 accepted, 1 refused (where, and what was expected), 3 the schema is wrong, or\n"
    "says what can not be enforced. Documents are accepted in one form: members in the order of\n"
    "`properties`, then others; white space between values at most a space or a line's indent.",
    "schema", "a JSON file", run,
};
