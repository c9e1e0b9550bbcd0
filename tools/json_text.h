/* json_text.h: jansson's texts: given back to whom it had them from, which need not be malloc, or
 * put out piece by piece. */
#ifndef TERN_JSON_TEXT_H
#define TERN_JSON_TEXT_H

#include "tools/out.h"

#include <jansson.h>
#include <stddef.h>

static inline void tern_json_drop(char *text)
{
    json_free_t give_back;
    json_get_alloc_funcs(NULL, &give_back);
    give_back(text);
}

/* For json_dump_callback: to a struct tern_out. */
static inline int tern_json_put(const char *piece, size_t size, void *out)
{
    tern_out_put(out, piece, size);
    return 0;
}

#endif
