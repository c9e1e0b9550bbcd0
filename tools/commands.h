/* commands.h: every command of tern, one a file. run returns the exit code: 0, 1 (the work
 * failed) or 2 (wrong usage), with one line on standard error where it is not 0. */
#ifndef TERN_COMMANDS_H
#define TERN_COMMANDS_H

#include "tools/args.h"

extern const struct tern_command tern_cmd_run, tern_cmd_chat, tern_cmd_plan,
    tern_cmd_inspect, tern_cmd_tokenize,
    tern_cmd_perplexity, tern_cmd_bench, tern_cmd_devices, tern_cmd_build,
    tern_cmd_grammar, tern_cmd_schema, tern_cmd_template, tern_cmd_serve;

/* run with --prompts. */
int tern_run_prompts(const struct tern_settings *s);

#endif
