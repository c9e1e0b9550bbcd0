/* constraint.h: a grammar from a file or text, compiled in mapped memory of its own. */
#ifndef TERN_CONSTRAINT_H
#define TERN_CONSTRAINT_H

#include "tools/args.h"
#include "tools/out.h"

struct tern_constraint {
    tern_memory memory;
    tern_grammar *grammar; /* NULL: there is none */
    size_t bytes;          /* that it takes */
    size_t compiling;      /* that it took at most while it was compiled, itself included */
};

/* The one that settings name, if any: a grammar, a schema, or any JSON object. */
bool tern_constraint_open(struct tern_constraint *c, const struct tern_settings *s,
                          const tern_model *model, char line[TERN_ARGS_LINE]);
/* The same for a session, whose error it becomes. */
struct tern_session;
bool tern_constraint_of_session(struct tern_session *s, const struct tern_settings *settings);
/* False: line says what is wrong with the text. */
bool tern_constraint_compile(struct tern_constraint *c, tern_text gbnf, const tern_model *model,
                             char line[TERN_ARGS_LINE]);
void tern_constraint_free(struct tern_constraint *c);

#endif
