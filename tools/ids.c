#include "tools/ids.h"

#include "platform/os/host.h"

bool tern_ids_of_rendered(const tern_model *model, const tern_rendered *text, uint32_t flags,
                          struct tern_ids *out, tern_error *err)
{
    const size_t cap = tern_tokenize_most(model, text->text.size) + 1;
    tern_memory scratch = tern_os_map(tern_tokenize_scratch(model, text->text.size) + 64, 64);
    *out = (struct tern_ids){.memory = tern_os_map(cap * sizeof(tern_token), 0)};
    out->at = out->memory.data;
    *err = (tern_error){.status = TERN_NO_MEMORY, .text = "no memory for so long a text"};
    if (scratch.data && out->at) {
        *err = (tern_error){.status = TERN_OK};
        err->status = tern_tokenize_rendered(model, text, flags, scratch, out->at, cap, &out->n,
                                             err);
    }
    tern_os_unmap(scratch);
    if (err->status)
        tern_ids_free(out);
    return err->status == TERN_OK;
}

bool tern_ids_of(const tern_model *model, tern_text text, uint32_t flags, struct tern_ids *out,
                 tern_error *err)
{
    const tern_rendered all = {.text = text};
    return tern_ids_of_rendered(model, &all, flags, out, err);
}

void tern_ids_free(struct tern_ids *ids)
{
    tern_os_unmap(ids->memory);
    *ids = (struct tern_ids){.n = 0};
}
