/* tokenizer.c: a model without its tokenizer: nothing can be read of it yet. */
#include "runtime/tokenizer.h"

#include "runtime/error.h"

tern_status tern_vocab_read(struct tern_arena *arena, const struct tern_model *model,
                            const struct tern_vocab **out, tern_error *err)
{
    (void)arena;
    (void)model;
    *out = NULL;
    return tern_fail(err, TERN_UNSUPPORTED, "this build has no tokenizers");
}

uint32_t tern_vocab_size(const struct tern_vocab *v) { (void)v; return 0; }
tern_token tern_vocab_bos(const struct tern_vocab *v) { (void)v; return -1; }
tern_token tern_vocab_eos(const struct tern_vocab *v) { (void)v; return -1; }
tern_token tern_vocab_eot(const struct tern_vocab *v) { (void)v; return -1; }
tern_token tern_vocab_pad(const struct tern_vocab *v) { (void)v; return -1; }
bool tern_vocab_adds_bos(const struct tern_vocab *v) { (void)v; return false; }
tern_text tern_vocab_kind(const struct tern_vocab *v) { (void)v; return (tern_text){"", 0}; }
tern_text tern_vocab_pre(const struct tern_vocab *v) { (void)v; return (tern_text){"", 0}; }
