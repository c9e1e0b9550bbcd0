/* json_text.h: gives the text of json_dumps back to whom jansson had it from, which need not be
 * malloc. */
#ifndef TERN_JSON_TEXT_H
#define TERN_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

static inline void tern_json_drop(char *text)
{
    json_free_t give_back;
    json_get_alloc_funcs(NULL, &give_back);
    give_back(text);
}

#endif
