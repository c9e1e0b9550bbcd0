/* ids.h: the tokens of a text, in mapped memory of their own; what the tokenizer works in is the
 * system's again when they are there. */
#ifndef TERN_IDS_H
#define TERN_IDS_H

#include "runtime/tern.h"

struct tern_ids {
    tern_memory memory;
    tern_token *at;
    size_t n;
};

/* False: err says why, and there is nothing to be freed. */
bool tern_ids_of_rendered(const tern_model *model, const tern_rendered *text, uint32_t flags,
                          struct tern_ids *out, tern_error *err);
/* The same of a text that is all one's own. */
bool tern_ids_of(const tern_model *model, tern_text text, uint32_t flags, struct tern_ids *out,
                 tern_error *err);
void tern_ids_free(struct tern_ids *ids);

#endif
