/* SentencePiece's BPE: spaces are spelled U+2581, and neighbouring characters are joined as
 * long as the joined text is a piece, the piece of the best score first. What stays alone and
 * is no piece becomes its bytes, or the unknown token.
 *
 * The text is one long word. In most vocabularies no piece has a space after something else; a
 * join can then never reach over the beginning of a word, and words are done one by one. */
#include "runtime/tok.h"
#include "runtime/unicode.h"

#include <string.h>

/* Scores as keys that ascend while scores fall. */
static uint32_t key_of(float score)
{
    uint32_t bits;
    score += 0.0f; /* minus zero is zero */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : 0x7fffffffu ^ bits;
}

/* Values are where the symbols begin in t->text. */
static uint32_t score(const void *self, uint32_t a, uint32_t b, uint32_t c)
{
    (void)b;
    const struct tern_tok *t = self;
    const uint32_t id = tern_vocab_find_plain(t->vocab, (tern_text){t->text + a, c - a});
    return id == TERN_VOCAB_NONE ? TERN_VOCAB_NONE : key_of(t->vocab->scores[id]);
}

static void emit_symbol(struct tern_tok *t, tern_text symbol)
{
    const struct tern_vocab *v = t->vocab;
    const uint32_t id = tern_vocab_find_plain(v, symbol);
    if (id != TERN_VOCAB_NONE) {
        tern_tok_emit(&t->out, (tern_token)id);
        return;
    }
    for (size_t i = 0; i < symbol.size; i++) {
        const tern_token byte = v->bytes[(unsigned char)symbol.data[i]];
        if (byte < 0) {
            if (v->unk >= 0)
                tern_tok_emit(&t->out, v->unk);
            return;
        }
        tern_tok_emit(&t->out, byte);
    }
}

/* The n symbols of t->text, which is size bytes long. */
static void flush(struct tern_tok *t, uint32_t n, uint32_t size)
{
    uint32_t *values = t->merge.values;
    values[n] = size;
    const struct tern_merge_rule rule = {score, t, NULL};
    n = tern_merge_run(&t->merge, n, &rule);
    for (uint32_t i = 0; i < n; i++)
        emit_symbol(t, (tern_text){t->text + values[i], values[i + 1] - values[i]});
}

void tern_tok_spm_run(struct tern_tok *t, tern_text text)
{
    static const char space[] = "\xe2\x96\x81";
    uint32_t n = 0, size = 0;
    bool in_word = false;
    size_t at = 0;
    if (t->vocab->adds_space) {
        t->merge.values[n++] = 0;
        memcpy(t->text, space, 3);
        size = 3;
    }
    while (at < text.size) {
        uint32_t cp;
        const char *from = text.data + at;
        size_t length = tern_unicode_decode((const unsigned char *)from, text.size - at, &cp);
        at += length;
        const bool is_space = cp == ' ' || cp == 0x2581;
        if (cp == ' ') {
            from = space;
            length = 3;
        }
        if (is_space && in_word && t->vocab->words_stand_alone) {
            flush(t, n, size);
            n = size = 0;
        }
        in_word = !is_space;
        t->merge.values[n++] = size;
        memcpy(t->text + size, from, length);
        size += (uint32_t)length;
    }
    flush(t, n, size);
}
