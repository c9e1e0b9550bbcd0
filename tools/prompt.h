/* prompt.h: the text or ids that a command is given, in mapped memory of its own.
 *
 * A prompt is encoded before weights are loaded, so the scratch that this needs is given back
 * before the arenas are touched, and one that cannot fit is refused by its length alone. */
#ifndef TERN_PROMPT_H
#define TERN_PROMPT_H

#include "tools/args.h"

struct tern_prompt {
    tern_memory text_memory, ids_memory;
    tern_text text;
    tern_token *ids;
    size_t n;
};

/* Takes -p, -f or standard input. With a model, reading ends as soon as so many bytes cannot be
 * as few as most_tokens. False: line says why. */
bool tern_prompt_read(struct tern_prompt *p, const struct tern_settings *s,
                      const tern_model *model, size_t most_tokens, char line[TERN_ARGS_LINE]);
/* text to ids; more than most_tokens of them are refused. */
bool tern_prompt_encode(struct tern_prompt *p, const tern_model *model, uint32_t flags,
                        size_t most_tokens, char line[TERN_ARGS_LINE]);
/* "1,2,3" to ids below n_vocab. */
bool tern_prompt_ids(struct tern_prompt *p, const char *list, uint32_t n_vocab,
                     size_t most_tokens, char line[TERN_ARGS_LINE]);
/* False, and line names the first byte that is not UTF-8. */
bool tern_prompt_check_utf8(const struct tern_prompt *p, char line[TERN_ARGS_LINE]);
void tern_prompt_free_text(struct tern_prompt *p);
void tern_prompt_free(struct tern_prompt *p);
/* Nothing was given, and standard input is a terminal. */
bool tern_prompt_missing(const struct tern_settings *s);

#endif
