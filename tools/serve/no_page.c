/* no_page.c: in place of the page, in a build without what it is made of. */
#include "tools/serve/page.h"

const struct tern_page_data tern_page = {"default-src 'none'", "\"none\"", {NULL, 0}, {NULL, 0}};
