/* Byte-level BPE: text is cut into words (pretokenize.c), and within each word bytes are joined
 * by the ranks of the merges. Symbols are token ids from the start, so that a merge is one
 * lookup of two ids and no text is compared. */
#include "runtime/tok.h"
#include "runtime/unicode.h"

static uint32_t rank(const void *self, uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    return tern_vocab_rank(self, a, b);
}

/* The whole word as one piece, for vocabularies that look that up before they merge. */
static uint32_t find_word(const struct tern_tok *t, tern_text word)
{
    const struct tern_vocab *v = t->vocab;
    if (!v->pre->whole_words || word.size > v->longest)
        return TERN_VOCAB_NONE;
    size_t n = 0;
    for (size_t i = 0; i < word.size; i++)
        n += tern_unicode_encode(tern_vocab_cp_of_byte((unsigned char)word.data[i]), t->word + n);
    return tern_vocab_find_plain(v, (tern_text){t->word, n});
}

static void emit_word(struct tern_tok *t, tern_text word)
{
    const struct tern_vocab *v = t->vocab;
    const uint32_t whole = find_word(t, word);
    if (whole != TERN_VOCAB_NONE) {
        tern_tok_emit(&t->out, (tern_token)whole);
        return;
    }
    uint32_t n = 0;
    for (size_t i = 0; i < word.size; i++) {
        const tern_token id = v->bytes[(unsigned char)word.data[i]];
        if (id >= 0)
            t->merge.values[n++] = (uint32_t)id;
        else if (v->unk >= 0) /* few vocabularies lack a byte; it joins with nothing */
            t->merge.values[n++] = (uint32_t)v->unk;
    }
    t->merge.values[n] = 0;
    const struct tern_merge_rule rule = {rank, v, v->merged};
    n = tern_merge_run(&t->merge, n, &rule);
    for (uint32_t i = 0; i < n; i++)
        if (t->merge.values[i] < v->n_tokens) /* an image's merges may name anything */
            tern_tok_emit(&t->out, (tern_token)t->merge.values[i]);
}

void tern_tok_bpe_run(struct tern_tok *t, tern_text text)
{
    struct tern_split split = tern_pretokenize_start(t->vocab->pre, text);
    tern_text word;
    while (tern_pretokenize_next(&split, &word))
        emit_word(t, word);
}
