/* fuzz_gbnf.c: a grammar of the input's making, in memory of the input's size, and a text read
 * under it. What the machine says may come next must be read, and a copy must go the same way. */
#include "runtime/tern.h"
#include "tests/fuzz/script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 256 << 10, SCRATCH = 512 << 10, STEPS = 200 };

static void read_on(const tern_grammar *g, struct script *in)
{
    static tern_grammar_state s, copy;
    tern_grammar_start(g, &s);
    for (int i = 0; i < STEPS; i++) {
        uint8_t set[32], byte = (uint8_t)take(in);
        tern_grammar_expected(&s, set);
        unsigned tries = 0;
        while (tries < 256 && !(set[byte / 8] >> byte % 8 & 1)) {
            byte++;
            tries++;
        }
        tern_grammar_copy(&copy, &s);
        const bool ends = tern_grammar_may_end(&s);
        require(ends == tern_grammar_may_end(&copy));
        if (tries == 256) {
            require(ends || s.overflow || tern_grammar_advance(&s, &byte, 1) == 0);
            return;
        }
        const size_t n = tern_grammar_advance(&s, &byte, 1);
        require(n == 1 || s.overflow);
        require(tern_grammar_advance(&copy, &byte, 1) == n);
        require(copy.n_ways == s.n_ways && copy.n_nodes == s.n_nodes);
        require(s.n_ways > 0 && s.n_ways <= TERN_GRAMMAR_WAYS && s.n_nodes <= TERN_GRAMMAR_NODES);
        if (!n)
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(64) unsigned char mem[MEMORY], scratch[SCRATCH];
    struct script in = {data, size};
    const size_t room = MEMORY >> (take(&in) % 8), text_bytes = in.n > 8 ? in.n - in.n / 8 : in.n;
    char *text = exactly(text_bytes);
    if (text_bytes)
        memcpy(text, in.p, text_bytes);
    tern_grammar *g = NULL;
    size_t used = 0;
    tern_error err = {0};
    const tern_status status =
        tern_grammar_compile((tern_memory){mem, room}, (tern_memory){scratch, SCRATCH},
                             (tern_text){text, text_bytes}, NULL, &g, &used, &err);
    require((status == TERN_OK) == (err.text[0] == 0));
    free(text);
    in.p += text_bytes;
    in.n -= text_bytes;
    if (status == TERN_OK) {
        require(used <= room);
        read_on(g, &in);
    }
    return 0;
}
