/* fuzz_schema.c: whatever text as a JSON schema. What becomes a grammar must be one, unless it is
 * too large for the memory given. */
#include "tests/fuzz/script.h"
#include "tools/schema.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 1 << 20, SCRATCH = 4 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(64) unsigned char mem[MEMORY], scratch[SCRATCH];
    static struct tern_out gbnf, dropped;
    char line[TERN_ARGS_LINE] = "", *text;
    struct script in = {data, size};
    const bool lenient = take(&in) & 1;
    if (in.n > 2048)
        return 0;
    text = exactly(in.n);
    if (in.n)
        memcpy(text, in.p, in.n);
    tern_out_open(&gbnf, -1);
    tern_out_open(&dropped, -1);
    const bool ok = tern_schema_write((tern_text){text, in.n}, &gbnf, lenient ? &dropped : NULL,
                                      NULL, line);
    require(ok == (line[0] == 0));
    free(text);
    if (ok) {
        tern_grammar *g;
        size_t used;
        tern_error err = {0};
        const tern_status status =
            tern_grammar_compile((tern_memory){mem, MEMORY}, (tern_memory){scratch, SCRATCH},
                                 (tern_text){gbnf.grown, gbnf.n}, NULL, &g, &used, &err);
        require(status == TERN_OK || status == TERN_NO_MEMORY ||
                strstr(err.text, "memory holds") || strstr(err.text, "left-recursive") ||
                strstr(err.text, "can never come to its end"));
    }
    tern_out_free(&gbnf);
    tern_out_free(&dropped);
    return 0;
}
