/* body_model.c: the model of fuzz_body.c, apart from the server's headers, since the core's own
 * have other things by the names of theirs. */
#include "tests/fuzz/byte_model.h"
#include "tests/fuzz/script.h"
#include "tests/unit/open_model.h"

tern_model *body_model(void);

tern_model *body_model(void)
{
    struct gguf_writer w = byte_model(false);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
    gw_free(&w);
    require(o->model);
    return o->model;
}
