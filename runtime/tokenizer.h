/* tokenizer.h: what the rest of runtime/ sees of the tokenizer. */
#ifndef TERN_TOKENIZER_H
#define TERN_TOKENIZER_H

#include "runtime/tern.h"

struct tern_arena;
struct tern_model;
struct tern_vocab;

/* Reads the vocabulary of the model's metadata (tokens, scores, types, merges, special ids)
 * into the arena and builds the tables that tokenising needs. Over a measuring arena it only
 * measures (*out is NULL then). A model without a tokenizer ("none", "no_vocab", no key) is
 * TERN_UNSUPPORTED; a pre-tokenizer that is not known is refused by name. */
tern_status tern_vocab_read(struct tern_arena *arena, const struct tern_model *model,
                            const struct tern_vocab **out, tern_error *err);

uint32_t tern_vocab_size(const struct tern_vocab *v);
bool tern_vocab_is_end(const struct tern_vocab *v, tern_token token); /* eos, eot, eom and kin */
tern_token tern_vocab_bos(const struct tern_vocab *v);                /* -1: none */
tern_token tern_vocab_eos(const struct tern_vocab *v);
tern_token tern_vocab_eot(const struct tern_vocab *v);
tern_token tern_vocab_pad(const struct tern_vocab *v);
bool tern_vocab_adds_bos(const struct tern_vocab *v);
tern_text tern_vocab_kind(const struct tern_vocab *v); /* "llama", "gpt2", "bert" */
tern_text tern_vocab_pre(const struct tern_vocab *v);

#endif
