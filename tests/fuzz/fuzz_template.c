/* fuzz_template.c: a template, and behind a zero byte the JSON of its messages. It runs in memory
 * of exactly the sizes asked for, under small limits; what comes out is UTF-8 and its runs cover
 * it in turn. */
#include "runtime/unicode.h"
#include "tests/fuzz/script.h"
#include "runtime/tern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool noon(void *self, tern_date *out)
{
    (void)self;
    *out = (tern_date){2024, 2, 29, 12, 0, 0};
    return true;
}

static void check(const tern_rendered *r)
{
    size_t end = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
        require(r->runs[i].end > end && (i == 0 || r->runs[i].own != r->runs[i - 1].own));
        end = r->runs[i].end;
    }
    require(end == r->text.size);
    for (size_t i = 0; i < r->text.size;) {
        uint32_t cp;
        size_t n;
        require(tern_unicode_scan((const unsigned char *)r->text.data + i, r->text.size - i, &cp,
                                  &n) == TERN_UTF8_WHOLE);
        i += n;
    }
}

static void render(const tern_template *t, tern_text json)
{
    const tern_variable variables[] = {
        {"messages", json, {NULL, 0}}, {"add_generation_prompt", {"true", 4}, {NULL, 0}},
        {"bos_token", {NULL, 0}, {"<s>", 3}},
    };
    const tern_render options = {
        .variables = variables, .n_variables = 3, .now = noon, .output_bytes = 1 << 14,
        .text_bytes = 1 << 15, .value_bytes = 1 << 16, .depth = 20, .steps = 50000,
    };
    const size_t need = tern_render_scratch(&options);
    const tern_memory scratch = {exactly(need), need};
    tern_rendered r;
    tern_error err = {0};
    if (tern_template_render(t, &options, scratch, &r, &err) == TERN_OK)
        check(&r);
    else
        require(err.status != TERN_OK && err.text[0]);
    free(scratch.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    const size_t n = zero ? (size_t)(zero - data) : size;
    const tern_text source = {(const char *)data, n};
    tern_text json = {"[{\"role\": \"user\", \"content\": \"a\"}]", 36};
    if (zero)
        json = (tern_text){(const char *)zero + 1, size - n - 1};
    if (size > 1 << 16)
        return 0;
    const tern_memory mem = {exactly(tern_template_size(source)), tern_template_size(source)};
    tern_template *t;
    tern_error err = {0};
    if (tern_template_init(mem, source, &t, &err) == TERN_OK)
        render(t, json);
    else
        require(err.status != TERN_OK && err.text[0]);
    free(mem.data);
    return 0;
}
