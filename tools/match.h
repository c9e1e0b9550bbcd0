/* match.h: texts held against a grammar. */
#ifndef TERN_MATCH_H
#define TERN_MATCH_H

#include "tools/out.h"
#include "tools/prompt.h"

/* "accepted", or where the text is refused and what was expected, one line. By bytes; with ids by
 * the model's tokens, whose spellings make up the text, as far as they are not accepted by bytes.
 * Answers the exit code, 0 or 1. */
int tern_match(const tern_grammar *grammar, const tern_model *model, const struct tern_prompt *p,
               struct tern_out *o);

#endif
