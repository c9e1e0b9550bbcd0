/* grammar_memory.h: memory that a test compiles its grammars in, one after the other. */
#ifndef TERN_TEST_GRAMMAR_MEMORY_H
#define TERN_TEST_GRAMMAR_MEMORY_H

#include <stdlib.h>

#include "runtime/tern.h"

struct grammar_memory { tern_memory grammar, scratch; };

static inline struct grammar_memory gm_open(size_t grammar, size_t scratch)
{
    const struct grammar_memory m = {{aligned_alloc(64, grammar), grammar},
                                     {aligned_alloc(64, scratch), scratch}};
    if (!m.grammar.data || !m.scratch.data)
        abort();
    return m;
}

static inline void gm_close(struct grammar_memory *m)
{
    free(m->grammar.data);
    free(m->scratch.data);
}

/* NULL: err says why. The grammar lies in m until the next one. */
static inline tern_grammar *gm_compile(const struct grammar_memory *m, tern_text text,
                                       const tern_model *model, tern_error *err)
{
    tern_grammar *g = NULL;
    size_t used;
    *err = (tern_error){0};
    const tern_status status =
        tern_grammar_compile(m->grammar, m->scratch, text, model, &g, &used, err);
    if ((status == TERN_OK) != (err->text[0] == 0))
        abort();
    return status == TERN_OK ? g : NULL;
}

#endif
