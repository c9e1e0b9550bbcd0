/* match.c: a text held against a grammar, by bytes or by a model's tokens.
 *
 * Terminals that are tokens can not be met by bytes. So with a model the text is what its tokens
 * spell, control tokens included, and the grammar reads one of these after the other, as it does
 * where they are generated. */
#include "tools/match.h"

#include <string.h>

static void write_byte(struct tern_out *o, unsigned c)
{
    if (c == '\n')
        tern_out_print(o, "'\\n'");
    else if (c == '\t')
        tern_out_print(o, "'\\t'");
    else if (c == '\'' || c == '\\')
        tern_out_print(o, "'\\%c'", (int)c);
    else if (c >= 0x20 && c < 0x7f)
        tern_out_print(o, "'%c'", (int)c);
    else
        tern_out_print(o, "0x%02x", c);
}

static void write_expected(struct tern_out *o, tern_grammar_state *s)
{
    uint8_t set[32];
    bool any = false;
    tern_grammar_expected(s, set);
    for (unsigned lo = 0, hi; lo < 256; lo = hi + 1) {
        hi = lo;
        if (!(set[lo / 8] >> lo % 8 & 1))
            continue;
        while (hi < 255 && set[(hi + 1) / 8] >> (hi + 1) % 8 & 1)
            hi++;
        tern_out_print(o, any ? ", " : "");
        any = true;
        write_byte(o, lo);
        if (hi > lo) {
            tern_out_print(o, "-");
            write_byte(o, hi);
        }
    }
    if (tern_grammar_may_end(s))
        tern_out_print(o, any ? " or the end" : "the end");
    else if (!any)
        tern_out_print(o, "a token");
}

/* found: a token's spelling; without text: a byte, or the end. */
static int refuse(tern_grammar_state *s, tern_text text, size_t at, tern_text found,
                  struct tern_out *o)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; i++, column++)
        if (text.data[i] == '\n') {
            line++;
            column = 0;
        }
    tern_out_print(o, "refused at byte %zu (line %zu, column %zu): ", at, line, column);
    if (found.size) {
        tern_out_print(o, "token ");
        tern_out_plain(o, found);
    } else if (at < text.size) {
        write_byte(o, (unsigned char)text.data[at]);
    } else {
        tern_out_print(o, "the end");
    }
    tern_out_print(o, " found, expected ");
    write_expected(o, s);
    tern_out_print(o, s->overflow ? "; beyond %d calls within one another or %d ways at once\n" :
                   "\n", TERN_GRAMMAR_DEPTH, TERN_GRAMMAR_WAYS);
    return 1;
}

static int finish(tern_grammar_state *s, tern_text text, struct tern_out *o)
{
    if (!tern_grammar_may_end(s))
        return refuse(s, text, text.size, (tern_text){NULL, 0}, o);
    tern_out_print(o, "accepted\n");
    return 0;
}

/* The token that follows at a place: how many of its bytes are the text's; a space that a tokenizer
 * puts before the first word, and behind a control token, is not. SIZE_MAX: it spells another. */
static size_t spell(const tern_model *model, tern_token token, tern_text text, size_t at,
                    char *bytes, size_t *skipped)
{
    size_t n = 0;
    *skipped = 0;
    if (tern_token_bytes(model, token, true, bytes, TERN_MAX_PIECE, &n))
        return SIZE_MAX;
    const size_t left = text.size - at;
    if (n <= left && memcmp(bytes, text.data + at, n) == 0)
        return n;
    *skipped = 1;
    return n && n - 1 <= left && bytes[0] == ' ' &&
                   memcmp(bytes + 1, text.data + at, n - 1) == 0 ? n - 1 : SIZE_MAX;
}

static int match_tokens(const tern_grammar *grammar, const tern_model *model,
                        const struct tern_prompt *p, struct tern_out *o)
{
    static tern_grammar_state s, before;
    char bytes[TERN_MAX_PIECE];
    size_t at = 0, skipped;
    tern_grammar_start(grammar, &s);
    for (size_t i = 0; i < p->n; i++) {
        const size_t n = spell(model, p->ids[i], p->text, at, bytes, &skipped);
        tern_piece piece;
        if (n == SIZE_MAX || tern_token_piece(model, p->ids[i], &piece)) {
            tern_out_print(o, "refused at byte %zu: its tokens spell another text\n", at);
            return 1;
        }
        tern_grammar_copy(&before, &s);
        if (skipped ? tern_grammar_advance(&s, bytes + 1, n) == n
                    : tern_grammar_accept(&s, model, p->ids[i])) {
            at += n;
            continue;
        }
        const bool spelled = piece.kind == TERN_TOKEN_CONTROL || piece.kind == TERN_TOKEN_UNKNOWN;
        const size_t read = spelled ? 0 : tern_grammar_advance(&before, bytes + skipped, n);
        return refuse(&before, p->text, at + read, spelled ? piece.text : (tern_text){NULL, 0}, o);
    }
    return finish(&s, p->text, o);
}

int tern_match(const tern_grammar *grammar, const tern_model *model, const struct tern_prompt *p,
               struct tern_out *o)
{
    static tern_grammar_state s;
    tern_grammar_start(grammar, &s);
    const size_t n = tern_grammar_advance(&s, p->text.data, p->text.size);
    if (n == p->text.size && (!p->ids || tern_grammar_may_end(&s)))
        return finish(&s, p->text, o);
    if (p->ids)
        return match_tokens(grammar, model, p, o);
    return refuse(&s, p->text, n, (tern_text){NULL, 0}, o);
}
