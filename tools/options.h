/* options.h: the tables of options that commands share. */
#ifndef TERN_OPTIONS_H
#define TERN_OPTIONS_H

#include "tools/args.h"

extern const struct tern_option tern_options_prompt[];   /* -p -f --special */
extern const struct tern_option tern_options_engine[];   /* -c -t --chunk --exact --kv-k ... */
extern const struct tern_option tern_options_sampling[]; /* -n --temp --seed --stop ... */
extern const struct tern_option tern_options_logprobs[]; /* --logprobs --prompt-logprobs */
extern const struct tern_option tern_options_grammar[];  /* --grammar --schema --json-mode */
extern const struct tern_option tern_options_session[];  /* --session */
extern const struct tern_option tern_options_server[];   /* --sequences --queue --max-body ... */
extern const struct tern_option tern_options_json[];     /* --json */

#define TERN_END_OF_OPTIONS {NULL, NULL, TERN_OPTION_FLAG, 0, 0, 0, NULL, NULL, NULL}

#endif
