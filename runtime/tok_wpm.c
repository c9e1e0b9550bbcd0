/* WordPiece: text is cleaned (accents and case dropped, controls left out), cut at white space
 * and around punctuation and ideographs, and each word is spelled by the longest pieces from
 * its left. A word that cannot be spelled to its end is one unknown token.
 *
 * In GGUF the first piece of a word begins with U+2581 and the others have no mark. */
#include "runtime/tok.h"
#include "runtime/unicode.h"

#include <string.h>

/* The word in t->text, U+2581 before it. */
static void emit_word(struct tern_tok *t, size_t size)
{
    const struct tern_vocab *v = t->vocab;
    const size_t before = t->out.n;
    for (size_t at = 0; at < size;) {
        size_t n = size - at < v->longest ? size - at : v->longest;
        uint32_t id = TERN_VOCAB_NONE;
        for (; n > 0 && id == TERN_VOCAB_NONE; n--)
            id = tern_vocab_find_plain(v, (tern_text){t->text + at, n});
        if (id == TERN_VOCAB_NONE) {
            t->out.n = before;
            if (v->unk >= 0)
                tern_tok_emit(&t->out, v->unk);
            return;
        }
        tern_tok_emit(&t->out, (tern_token)id);
        at += n + 1;
    }
}

struct word { size_t size; };

static void flush(struct tern_tok *t, struct word *w)
{
    if (w->size > 3)
        emit_word(t, w->size);
    memcpy(t->text, "\xe2\x96\x81", 3);
    w->size = 3;
}

static void add(struct tern_tok *t, struct word *w, uint32_t cp)
{
    const enum tern_cp_class class = tern_unicode_class(cp);
    if (class == TERN_CP_SPACE) {
        flush(t, w);
        return;
    }
    if (cp == 0 || cp == 0xfffd || cp == TERN_CP_INVALID || class == TERN_CP_CONTROL ||
        class == TERN_CP_MN)
        return;
    const bool alone = class == TERN_CP_P || (cp < 0x7f && class == TERN_CP_S) ||
                       tern_unicode_is_ideograph(cp);
    if (alone)
        flush(t, w);
    w->size += tern_unicode_encode(tern_unicode_lower(cp), t->text + w->size);
    if (alone)
        flush(t, w);
}

void tern_tok_wpm_run(struct tern_tok *t, tern_text text)
{
    struct word w = {0};
    flush(t, &w);
    for (size_t at = 0; at < text.size;) {
        uint32_t cp, base[3];
        at += tern_unicode_decode((const unsigned char *)text.data + at, text.size - at, &cp);
        const size_t n = tern_unicode_base(cp, base);
        for (size_t i = 0; i < n; i++)
            add(t, &w, base[i]);
    }
    flush(t, &w);
}
