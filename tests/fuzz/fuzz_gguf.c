/* fuzz_gguf.c: any bytes as a model file, mapped and read, in memory of the exact sizes. */
#include "tests/unit/open_model.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Everything that can be asked of a model that opened. */
static void ask(const struct opened *o)
{
    const tern_model *m = o->model;
    tern_model_info info;
    tern_metadata md;
    tern_tensor_info t;
    char text[64];
    size_t n;
    uint32_t layer;
    require(m->memory_bytes == o->need);
    tern_model_describe(m, &info);
    for (uint32_t i = 0; i < info.n_metadata; i++) {
        const tern_status status = tern_model_metadata(m, i, &md, text, sizeof text, &n);
        require(status == (n > sizeof text ? TERN_TOO_SMALL : TERN_OK));
    }
    for (uint32_t i = 0; i < info.n_tensors; i++) {
        require(tern_model_tensor(m, i, &t) == TERN_OK);
        require(t.bytes <= o->parts[0].size && t.offset <= o->parts[0].size - t.bytes);
    }
    for (uint32_t i = 0; i < info.n_ops; i++)
        require(tern_model_op(m, i, text, sizeof text, &n, &layer) ==
                (n > sizeof text ? TERN_TOO_SMALL : TERN_OK));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tern_model_parts whats[] = {TERN_MODEL_WHOLE, TERN_MODEL_TEXT, TERN_MODEL_HEADER};
    if (size >= 4 && !memcmp(data, "TERN", 4))
        return 0; /* images are fuzz_image's, and must lie in memory */
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        tern_status answers[N_OPEN_HOWS];
        for (int how = 0; how < N_OPEN_HOWS; how++) {
            struct opened *o = open_bytes((enum open_how)how, whats[i], data, size);
            answers[how] = o->status;
            require(o->status == TERN_OK ? o->model != NULL : o->error.text[0] != '\0');
            require(o->status == TERN_OK || o->status == TERN_BAD_MODEL ||
                    o->status == TERN_UNSUPPORTED);
            if (o->model)
                ask(o);
            open_close(o);
        }
        require(answers[OPEN_MAPPED] == answers[OPEN_READ]);
    }
    return 0;
}
