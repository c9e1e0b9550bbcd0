/* script.h: arguments out of a fuzzer's bytes, and what is held of any text and its tokens. */
#ifndef TERN_TEST_SCRIPT_H
#define TERN_TEST_SCRIPT_H

#include "runtime/tern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are left; zeros after the last. */
struct script { const uint8_t *p; size_t n; };

/* Says what was broken, since a fuzzer's own report names the function alone. */
#define require(condition) require_that(condition, #condition, __FILE__, __LINE__)
static inline void require_that(bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

static inline uint8_t take(struct script *s)
{
    if (!s->n)
        return 0;
    s->n--;
    return *s->p++;
}

static inline uint32_t take_u32(struct script *s)
{
    uint32_t u = 0;
    for (int i = 0; i < 4; i++)
        u = u << 8 | take(s);
    return u;
}

/* Whole characters as the standard's table 3-7 has them. */
static inline bool is_utf8(const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    while (p < end) {
        const uint8_t c = *p++;
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || more > end - p)
            return false;
        if ((c == 0xe0 && *p < 0xa0) || (c == 0xed && *p > 0x9f) || (c == 0xf0 && *p < 0x90) ||
            (c == 0xf4 && *p > 0x8f))
            return false;
        for (int i = 0; i < more; i++)
            if ((*p++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

/* Memory of the exact size, so that a sanitizer sees what is beside it. */
static inline void *exactly(size_t n)
{
    void *p = malloc(n ? n : 1);
    require(p);
    return p;
}

/* The same tokens as bytes at once, into a buffer that just holds them, and as a stream. */
static inline void check_detokenizer(const tern_model *m, const tern_token *tokens, size_t n_tokens,
                                     bool special)
{
    size_t n, again;
    const uint32_t flags = special ? TERN_DETOKENIZE_SPECIAL : 0;
    const tern_status asked = tern_detokenize(m, tokens, n_tokens, flags, NULL, 0, &n, NULL);
    require(asked == (n ? TERN_TOO_SMALL : TERN_OK));
    char *roomy = exactly(n + 8), *exact = exactly(n);
    require(tern_detokenize(m, tokens, n_tokens, flags, roomy, n + 8, &again, NULL) == TERN_OK);
    require(again == n);
    require(tern_detokenize(m, tokens, n_tokens, flags, exact, n, &again, NULL) == TERN_OK);
    require(again == n && memcmp(exact, roomy, n) == 0);
    if (n)
        require(tern_detokenize(m, tokens, n_tokens, flags, exact, n - 1, &again, NULL) ==
                TERN_TOO_SMALL && again == n);
    tern_detok d = {0};
    char piece[TERN_DETOK_CAP];
    size_t at = 0;
    const bool whole = is_utf8(roomy, n);
    for (size_t i = 0; i <= n_tokens; i++) {
        const size_t k = i < n_tokens ? tern_detok_push(m, &d, tokens[i], special, piece)
                                      : tern_detok_end(&d, piece);
        require(k <= TERN_DETOK_CAP && is_utf8(piece, k));
        require(!whole || (k <= n - at && memcmp(roomy + at, piece, k) == 0));
        at += k;
    }
    require(!whole || at == n);
    free(roomy);
    free(exact);
}

/* Any bytes as text, with the sizes that were promised. */
static inline void check_text_to_tokens(const tern_model *m, tern_text text, uint32_t flags)
{
    const size_t scratch_bytes = tern_tokenize_scratch(m, text.size);
    const size_t most = tern_tokenize_most(m, text.size), least = tern_tokenize_least(m, text.size);
    size_t n, again;
    tern_piece piece;
    tern_error err = {0};
    const tern_memory scratch = {exactly(scratch_bytes), scratch_bytes};
    tern_token *tokens = exactly(most * sizeof *tokens);
    require(tern_tokenize(m, text, flags, scratch, tokens, most, &n, &err) == TERN_OK);
    require(n <= most && n >= least);
    for (size_t i = 0; i < n; i++)
        require(tern_token_piece(m, tokens[i], &piece) == TERN_OK);
    require(tern_tokenize(m, text, flags, scratch, NULL, 0, &again, &err) ==
            (n ? TERN_TOO_SMALL : TERN_OK));
    require(again == n);
    check_detokenizer(m, tokens, n, flags & TERN_TOKENIZE_SPECIAL);
    free(scratch.data);
    free(tokens);
}

static inline void check_pieces(struct script *in, const tern_model *m, tern_token n_vocab)
{
    const tern_token token = (tern_token)take_u32(in) % (n_vocab + 2);
    char bytes[TERN_MAX_PIECE];
    tern_piece piece;
    size_t n;
    const bool known = token >= 0 && token < n_vocab;
    require((tern_token_piece(m, token, &piece) == TERN_OK) == known);
    require((tern_token_bytes(m, token, true, bytes, sizeof bytes, &n) == TERN_OK) == known);
    require(!known || n <= sizeof bytes);
}

static inline void check_tokenizer(struct script *in, const tern_model *m, tern_token n_vocab)
{
    const uint8_t how = take(in);
    const size_t n = take(in) % 64;
    check_pieces(in, m, n_vocab);
    if (how & 4) {
        tern_token tokens[64];
        for (size_t i = 0; i < n; i++)
            tokens[i] = (tern_token)(take(in) + (take(in) & 15)) % n_vocab;
        check_detokenizer(m, tokens, n, how & 1);
        return;
    }
    char *text = exactly(n);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)take(in);
    check_text_to_tokens(m, (tern_text){text, n}, how & 3);
    free(text);
}

#endif
