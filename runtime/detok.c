/* Ids to bytes, and a stream of ids to whole characters.
 *
 * A piece's bytes do not depend on its neighbours, with one exception: where the tokenizer puts
 * a space before the first word, that space is taken away again from the first token that is
 * not a control token, once. So whatever is decoded whole or token by token adds up. */
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/text.h"
#include "runtime/unicode.h"
#include "runtime/vocab.h"

#include <string.h>

static bool is_token(const struct tern_model *model, tern_token token)
{
    return model->vocab && token >= 0 && (uint32_t)token < model->vocab->n_tokens;
}

tern_status tern_token_piece(const tern_model *model, tern_token token, tern_piece *out)
{
    if (!is_token(model, token))
        return TERN_BAD_ARGUMENT;
    const struct tern_vocab *v = model->vocab;
    *out = (tern_piece){
        .text = tern_vocab_piece(v, (uint32_t)token),
        .score = v->scores ? v->scores[token] : 0.0f,
        .kind = tern_vocab_piece_kind(v, (uint32_t)token),
        .ends = tern_vocab_is_end(v, token),
    };
    return TERN_OK;
}

static void write_byte(struct tern_writer *w, int byte)
{
    const char c = (char)byte;
    tern_write_bytes(w, &c, 1);
}

/* Each character of the piece stands for a byte; one that does not is written as it is. */
static void write_byte_level(struct tern_writer *w, tern_text piece)
{
    for (size_t at = 0; at < piece.size;) {
        uint32_t cp;
        const char *from = piece.data + at;
        const size_t n = tern_unicode_decode((const unsigned char *)from, piece.size - at, &cp);
        const int byte = tern_vocab_byte_of_cp(cp);
        if (byte >= 0)
            write_byte(w, byte);
        else
            tern_write_bytes(w, from, n);
        at += n;
    }
}

/* U+2581 is a space. The first byte of what that gives is left out if skip. */
static void write_spaced(struct tern_writer *w, tern_text piece, bool skip)
{
    for (size_t at = 0; at < piece.size; skip = false) {
        const bool space = piece.size - at >= 3 && memcmp(piece.data + at, "\xe2\x96\x81", 3) == 0;
        tern_write_bytes(w, space ? " " : piece.data + at, skip ? 0 : 1);
        at += space ? 3 : 1;
    }
}

/* skip: the first byte is the space before the first word, and is left out. */
static void write_token(struct tern_writer *w, const struct tern_vocab *v, tern_token token,
                        bool special, bool skip)
{
    const tern_text piece = tern_vocab_piece(v, (uint32_t)token);
    const int byte = tern_vocab_byte_of_piece(piece);
    switch (tern_vocab_piece_kind(v, (uint32_t)token)) {
    case TERN_TOKEN_CONTROL:
    case TERN_TOKEN_UNKNOWN:
        if (special)
            tern_write_bytes(w, piece.data, piece.size);
        break;
    case TERN_TOKEN_USER:
        tern_write_bytes(w, piece.data, piece.size);
        break;
    case TERN_TOKEN_BYTE:
        if (byte >= 0) {
            if (!skip)
                write_byte(w, byte);
            break;
        }
        /* fall through */
    default:
        if (v->family == TERN_VOCAB_BPE)
            write_byte_level(w, piece);
        else
            write_spaced(w, piece, skip);
    }
}

tern_status tern_token_bytes(const tern_model *model, tern_token token, bool special, char *out,
                             size_t cap, size_t *n)
{
    *n = 0;
    if (!is_token(model, token))
        return TERN_BAD_ARGUMENT;
    struct tern_writer w = {out, cap, 0};
    write_token(&w, model->vocab, token, special, false);
    *n = w.n;
    return w.n > cap ? TERN_TOO_SMALL : TERN_OK;
}

/* Whether this token begins with the space before the first word. */
static bool space_before(const struct tern_vocab *v, tern_token token, uint8_t *started)
{
    const tern_token_kind kind = tern_vocab_piece_kind(v, (uint32_t)token);
    if (*started || kind == TERN_TOKEN_CONTROL || kind == TERN_TOKEN_UNKNOWN)
        return false;
    *started = 1;
    char first;
    struct tern_writer w = {&first, 1, 0};
    if (!v->adds_space || kind == TERN_TOKEN_USER)
        return false;
    write_token(&w, v, token, false, false);
    return w.n > 0 && first == ' ';
}

tern_status tern_detokenize(const tern_model *model, const tern_token *tokens, size_t n_tokens,
                            uint32_t flags, char *out, size_t cap, size_t *n, tern_error *err)
{
    const bool special = flags & TERN_DETOKENIZE_SPECIAL;
    struct tern_writer w = {out, cap, 0};
    uint8_t started = 0;
    *n = 0;
    for (size_t i = 0; i < n_tokens; i++) {
        if (!is_token(model, tokens[i]))
            return tern_fail(err, TERN_BAD_ARGUMENT, "token %u: id %i, %u in the vocabulary",
                             (uint64_t)i, (int64_t)tokens[i],
                             (uint64_t)(model->vocab ? model->vocab->n_tokens : 0));
        const bool skip = space_before(model->vocab, tokens[i], &started);
        write_token(&w, model->vocab, tokens[i], special, skip);
    }
    *n = w.n;
    return w.n > cap ? TERN_TOO_SMALL : TERN_OK;
}

/* --- streams --- */

/* Moves what is certain of in to out. A cut character at the end is held unless at_end. */
static size_t settle(tern_detok *d, const unsigned char *in, size_t n, bool at_end, char *out)
{
    struct tern_writer w = {out, TERN_DETOK_CAP, 0};
    size_t at = 0;
    d->n_held = 0;
    while (at < n) {
        uint32_t cp;
        size_t size;
        const enum tern_utf8 state = tern_unicode_scan(in + at, n - at, &cp, &size);
        if (state == TERN_UTF8_CUT && !at_end) {
            d->n_held = (uint8_t)(n - at);
            memcpy(d->held, in + at, n - at);
            break;
        }
        if (state == TERN_UTF8_WHOLE)
            tern_write_bytes(&w, (const char *)in + at, size);
        else
            tern_write_bytes(&w, "\xef\xbf\xbd", 3);
        at += state == TERN_UTF8_CUT ? n - at : size;
    }
    return w.n;
}

size_t tern_detok_push(const tern_model *model, tern_detok *d, tern_token token, bool special,
                       char out[TERN_DETOK_CAP])
{
    if (!is_token(model, token))
        return 0;
    /* The bytes go to the end of out and are settled towards its front. A settled byte takes at
     * most three; so what is written never passes what is still to be read. */
    enum { MOST = TERN_MAX_PIECE + 4 };
    unsigned char *in = (unsigned char *)out + TERN_DETOK_CAP - MOST;
    const size_t n_held = d->n_held;
    memcpy(in, d->held, n_held);
    const bool skip = space_before(model->vocab, token, &d->started);
    struct tern_writer w = {(char *)in + n_held, MOST - n_held, 0};
    write_token(&w, model->vocab, token, special, skip);
    const size_t n = n_held + w.n;
    /* Flush to the very end, where every byte has three times its place before it. */
    unsigned char *from = (unsigned char *)out + TERN_DETOK_CAP - n;
    memmove(from, in, n);
    return settle(d, from, n, false, out);
}

size_t tern_detok_end(tern_detok *d, char out[TERN_DETOK_CAP])
{
    const size_t n = d->n_held;
    unsigned char in[sizeof d->held];
    memcpy(in, d->held, n);
    return settle(d, in, n, true, out);
}
