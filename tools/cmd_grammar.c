/* cmd_grammar.c: what a grammar lets in, and what it costs. */
#include "tools/commands.h"
#include "tools/constraint.h"
#include "tools/match.h"
#include "tools/options.h"
#include "tools/prompt.h"
#include "tools/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WRONG_GRAMMAR = 3 };

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern grammar: %s\n", line);
    return code;
}

/* With a model, by its tokens as well. */
static int match(const struct tern_settings *settings, const struct tern_constraint *c,
                 const tern_model *model)
{
    static struct tern_out out;
    struct tern_settings from = {.file = "-"};
    struct tern_prompt text = {.text = {settings->match, strlen(settings->match)}};
    char line[TERN_ARGS_LINE];
    if (strcmp(settings->match, "-") == 0 && !tern_prompt_read(&text, &from, NULL, 0, line))
        return refuse(1, line);
    if (model && !tern_prompt_encode(&text, model, TERN_TOKENIZE_SPECIAL | TERN_TOKENIZE_NO_BOS,
                                     SIZE_MAX, line)) {
        tern_prompt_free(&text);
        return refuse(1, line);
    }
    tern_out_open(&out, STDOUT_FILENO);
    int code = tern_match(c->grammar, model, &text, &out);
    tern_prompt_free(&text);
    return tern_out_flush(&out) ? code : refuse(1, strerror(out.error));
}

static int describe(const struct tern_constraint *c)
{
    tern_grammar_info info;
    tern_grammar_describe(c->grammar, &info);
    printf("units %u, states %u, ranges %u, calls %u, bytes %zu\n", info.n_units, info.n_states,
           info.n_ranges, info.n_calls, c->bytes);
    return 0;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    struct tern_settings from = {.file = settings->model};
    struct tern_prompt text;
    struct tern_constraint c;
    char line[TERN_ARGS_LINE];
    if (!tern_prompt_read(&text, &from, NULL, 0, line))
        return refuse(1, line);
    if (settings->vocabulary && !tern_session_open(&s, settings->vocabulary, TERN_MODEL_TEXT)) {
        tern_session_report(&s);
        tern_session_close(&s);
        return 1;
    }
    int code;
    if (!tern_constraint_compile(&c, text.text, s.model, line))
        code = refuse(WRONG_GRAMMAR, line);
    else
        code = settings->match ? match(settings, &c, s.model) : describe(&c);
    tern_constraint_free(&c);
    tern_prompt_free(&text);
    tern_session_close(&s);
    return code;
}

static const struct tern_option own[] = {
    {"--match", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, match), 0, 0, NULL,
     "TEXT", "holds a text against it; - is standard input"},
    {"--model", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, vocabulary), 0, 0, NULL,
     "FILE", "the model whose tokens the grammar names, and the text is made of"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {own, NULL};

const struct tern_command tern_cmd_grammar = {
    "grammar", "grammar FILE.gbnf [options]", "Checks a grammar, and texts against it.", tables,
    "Exit codes: 0 accepted, 1 refused (where, and what was expected), 3 the grammar is wrong.",
    "grammar", "a GBNF file", run,
};
