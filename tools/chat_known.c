#include "tools/chat_known.h"

#include "platform/os/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tern_chat_known_open(struct tern_chat_known *k, size_t n_ctx)
{
    memset(k, 0, sizeof *k);
    tern_out_open(&k->text, -1);
    tern_out_open(&k->whose, -1);
    k->memory = tern_os_map(n_ctx * sizeof *k->ids, 64);
    k->ids = k->memory.data;
    k->cap = n_ctx;
    return k->ids != NULL;
}

void tern_chat_known_close(struct tern_chat_known *k)
{
    tern_out_free(&k->text);
    tern_out_free(&k->whose);
    tern_os_unmap(k->memory);
    memset(k, 0, sizeof *k);
}

void tern_chat_known_clear(struct tern_chat_known *k)
{
    k->n = k->n_marks = k->text.n = k->whose.n = 0;
    k->text.error = k->whose.error = 0;
}

/* --- what two texts have in common --- */

size_t tern_chat_same(const tern_token *a, size_t n, const tern_token *b, size_t n_b)
{
    const size_t most = n < n_b ? n : n_b;
    size_t i = 0;
    while (i < most && a[i] == b[i])
        i++;
    return i;
}

/* The bytes of a role that stands there as a word of its own. Templates write "assistant" of their
 * own where an answer begins, and take it from the message once it is one: it is the same word,
 * which no user wrote either time. */
static size_t role_at(tern_text text, size_t at)
{
    static const char *const roles[] = {"assistant", "user", "system", "tool"};
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        const size_t n = strlen(roles[k]), end = at + n;
        if (n < text.size - at && memcmp(text.data + at, roles[k], n) == 0 &&
            !(text.data[end] >= 'a' && text.data[end] <= 'z'))
            return n;
    }
    return 0;
}

/* Bytes that a rendering and the known text begin with in common, origins too. */
static size_t same_bytes(const struct tern_chat_known *k, const tern_rendered *r)
{
    const size_t known = k->text.n < k->whose.n ? k->text.n : k->whose.n;
    const size_t most = known < r->text.size ? known : r->text.size;
    size_t i = 0, role_end = 0;
    for (size_t run = 0; i < most; i++) {
        while (run < r->n_runs && i >= r->runs[run].end)
            run++;
        const char own = run < r->n_runs && r->runs[run].own ? TERN_CHAT_OF_TEMPLATE
                                                             : TERN_CHAT_OF_USER;
        const char whose = k->whose.grown[i];
        if (k->text.grown[i] != r->text.data[i])
            break;
        if (whose == TERN_CHAT_OF_MODEL || whose == own || i < role_end)
            continue;
        role_end = i + role_at((tern_text){k->text.grown, most}, i);
        if (i >= role_end)
            break;
    }
    return i;
}

size_t tern_chat_known_reach(const struct tern_chat_known *k, const tern_rendered *r, size_t n)
{
    const size_t same = n ? same_bytes(k, r) : 0;
    while (n > 0 && k->marks[n - 1].bytes > same)
        n--;
    return n;
}

/* --- a rendering to tokens --- */

static bool no_memory(char line[TERN_ARGS_LINE])
{
    snprintf(line, TERN_ARGS_LINE, "conversation: no memory to encode it");
    return false;
}

/* A rendering's rest from a byte on; its runs are written to runs, of which there are enough. */
static tern_rendered rest_of(const tern_rendered *r, size_t from, tern_run *runs)
{
    tern_rendered rest = {{r->text.data + from, r->text.size - from}, runs, 0};
    for (size_t i = 0; i < r->n_runs; i++)
        if (r->runs[i].end > from)
            runs[rest.n_runs++] = (tern_run){r->runs[i].end - from, r->runs[i].own};
    return rest;
}

static bool begins_with_control(const tern_model *model, const tern_token *ids, size_t n)
{
    tern_piece piece;
    return n > 0 && tern_token_piece(model, ids[0], &piece) == TERN_OK &&
           (piece.kind == TERN_TOKEN_CONTROL || piece.ends);
}

/* Appends the tokens of a text to out. */
static bool append(const tern_model *model, const tern_rendered *r, uint32_t flags, size_t cap,
                   struct tern_chat_ids *out, char line[TERN_ARGS_LINE])
{
    tern_error err = {0};
    size_t n = 0;
    tern_memory scratch = tern_os_map(tern_tokenize_scratch(model, r->text.size) + 64, 64);
    if (scratch.data == NULL)
        return no_memory(line);
    const bool ok = tern_tokenize_rendered(model, r, flags, scratch, out->ids + out->n,
                                           cap - out->n, &n, &err) == TERN_OK;
    if (!ok)
        snprintf(line, TERN_ARGS_LINE, "conversation: %s", err.text);
    out->n += n;
    tern_os_unmap(scratch);
    return ok;
}

/* By the known tokens up to a mark; false, and line is empty: they may not be used. */
static bool encode_from(const struct tern_chat_known *k, const tern_model *model,
                        const tern_rendered *r, size_t n_marks, struct tern_chat_ids *out,
                        size_t cap, char line[TERN_ARGS_LINE])
{
    const struct tern_chat_mark *m = &k->marks[n_marks - 1];
    tern_run *runs = malloc((r->n_runs + 1) * sizeof *runs);
    if (runs == NULL)
        return no_memory(line);
    const tern_rendered rest = rest_of(r, m->bytes, runs);
    memcpy(out->ids, k->ids, m->tokens * sizeof *out->ids);
    out->n = m->tokens;
    line[0] = 0;
    const bool ok = append(model, &rest, TERN_TOKENIZE_SPECIAL | TERN_TOKENIZE_NO_BOS, cap, out,
                           line);
    free(runs);
    out->kept = n_marks;
    return ok && begins_with_control(model, out->ids + m->tokens, out->n - m->tokens);
}

bool tern_chat_known_encode(const struct tern_chat_known *k, const tern_model *model,
                            const tern_rendered *r, uint32_t flags, struct tern_chat_ids *out,
                            char line[TERN_ARGS_LINE])
{
    enum { TRIES = 2 };
    const size_t cap = k->n + tern_tokenize_most(model, r->text.size) + 1;
    memset(out, 0, sizeof *out);
    out->memory = tern_os_map(cap * sizeof *out->ids, 64);
    out->ids = out->memory.data;
    if (out->ids == NULL)
        return no_memory(line);
    size_t n = tern_chat_known_reach(k, r, k->n_marks);
    for (size_t i = 0; i < TRIES && n > 0; i++, n--) {
        if (encode_from(k, model, r, n, out, cap, line))
            return true;
        if (line[0])
            return false;
    }
    out->n = out->kept = 0;
    return append(model, r, flags, cap, out, line);
}

void tern_chat_ids_free(struct tern_chat_ids *ids)
{
    tern_os_unmap(ids->memory);
    memset(ids, 0, sizeof *ids);
}

/* --- what the sequence holds --- */

bool tern_chat_known_take(struct tern_chat_known *k, const tern_rendered *r,
                          const struct tern_chat_ids *ids)
{
    const size_t n = ids->n < k->cap ? ids->n : k->cap;
    memcpy(k->ids, ids->ids, n * sizeof *k->ids);
    k->n = n;
    k->n_marks = ids->kept < k->n_marks ? ids->kept : k->n_marks;
    const size_t same = k->n_marks ? k->marks[k->n_marks - 1].bytes : 0;
    k->text.n = k->whose.n = same;
    tern_out_put(&k->text, r->text.data + same, r->text.size - same);
    for (size_t i = same, run = 0; i < r->text.size; i++) {
        while (run < r->n_runs && i >= r->runs[run].end)
            run++;
        const char own = run < r->n_runs && r->runs[run].own ? TERN_CHAT_OF_TEMPLATE
                                                             : TERN_CHAT_OF_USER;
        tern_out_put(&k->whose, &own, 1);
    }
    k->detok = (tern_detok){.started = 1};
    return !k->text.error && !k->whose.error;
}

static void add_text(struct tern_chat_known *k, const char *text, size_t n)
{
    char model[64];
    memset(model, TERN_CHAT_OF_MODEL, sizeof model);
    tern_out_put(&k->text, text, n);
    for (size_t i = 0; i < n; i += sizeof model)
        tern_out_put(&k->whose, model, n - i < sizeof model ? n - i : sizeof model);
}

void tern_chat_known_add(struct tern_chat_known *k, const tern_model *model, tern_token token)
{
    char text[TERN_DETOK_CAP];
    if (k->n == k->cap)
        return;
    k->ids[k->n++] = token;
    add_text(k, text, tern_detok_push(model, &k->detok, token, true, text));
}

void tern_chat_known_end(struct tern_chat_known *k, size_t n)
{
    char text[TERN_DETOK_CAP];
    add_text(k, text, tern_detok_end(&k->detok, text));
    k->detok = (tern_detok){.started = 1};
    /* Tokens that were taken back, or text that could not be kept: nothing is said of an end. */
    if (n != k->n || k->text.error || k->whose.error || k->text.n != k->whose.n) {
        k->n = n < k->n ? n : k->n;
        while (k->n_marks > 0 && k->marks[k->n_marks - 1].tokens > k->n)
            k->n_marks--;
        return;
    }
    if (k->n_marks > 0 && k->marks[k->n_marks - 1].bytes == k->text.n)
        return;
    if (k->n_marks == TERN_CHAT_MARKS)
        memmove(k->marks, k->marks + 1, --k->n_marks * sizeof *k->marks);
    k->marks[k->n_marks++] = (struct tern_chat_mark){k->text.n, k->n};
}
