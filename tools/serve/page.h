/* page.h: the page that people talk to the model by, as the build put it together. */
#ifndef TERN_PAGE_H
#define TERN_PAGE_H

#include "runtime/tern.h"

struct tern_page_data {
    const char *policy;      /* Content-Security-Policy */
    const char *tag;         /* ETag */
    tern_text plain, zipped; /* data NULL: this build has none */
};

extern const struct tern_page_data tern_page;

#endif
