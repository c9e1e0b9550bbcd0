/* Text to ids.
 *
 * Special pieces are found first, as reference tokenizers do it: the longest of them is taken
 * out of the text wherever it occurs, then the next in what is left between, and so on. So a
 * piece loses to a longer one that it overlaps, even to one that begins later. Here the text is
 * walked once: from the first place where a piece matches, longer pieces that begin inside of
 * it take its place, until none does; that one is certain. It is held back while what stands to
 * its left is gone through again, with its beginning as the limit. Pieces found there are
 * shorter, so that no more are held than pieces have lengths.
 *
 * What is between goes to the tokenizer's family. All scratch is carved by one walk, which
 * tern_tokenize_scratch runs over an arena without memory.
 */
#include "runtime/tokenizer.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/tok.h"

/* --- accessors --- */

uint32_t tern_vocab_size(const struct tern_vocab *v)
{
    return v->n_tokens;
}

bool tern_vocab_is_end(const struct tern_vocab *v, tern_token token)
{
    return token >= 0 && (uint32_t)token < v->n_tokens && v->kinds[token] & TERN_VOCAB_ENDS;
}

tern_token tern_vocab_bos(const struct tern_vocab *v)
{
    return v->bos;
}

tern_token tern_vocab_eos(const struct tern_vocab *v)
{
    return v->eos;
}

tern_token tern_vocab_eot(const struct tern_vocab *v)
{
    return v->eot;
}

tern_token tern_vocab_pad(const struct tern_vocab *v)
{
    return v->pad;
}

bool tern_vocab_adds_bos(const struct tern_vocab *v)
{
    return v->adds_bos && v->bos >= 0;
}

tern_text tern_vocab_kind(const struct tern_vocab *v)
{
    return v->kind;
}

tern_text tern_vocab_pre(const struct tern_vocab *v)
{
    return v->pre_name;
}

/* --- sizes --- */

static void lay_out(struct tern_arena *a, struct tern_tok *t, size_t n)
{
    const struct tern_vocab *v = t->vocab;
    const bool bpe = v->family == TERN_VOCAB_BPE, wpm = v->family == TERN_VOCAB_WPM;
    /* A character can grow from one byte to three (a space), and two to three (small letters);
     * a Hangul syllable is three parts of three bytes. One more is the space before. */
    t->text = tern_carve_raw(a, bpe ? 0 : n + 1, 3, 8);
    t->word = tern_carve_raw(a, bpe ? 2 * TERN_MAX_PIECE : 0, 1, 8);
    t->held = tern_carve_raw(a, (size_t)v->longest_special + 1, sizeof *t->held, 8);
    tern_merge_lay_out(a, &t->merge, wpm ? 0 : n + 1, bpe ? v->n_merges : v->n_tokens);
}

size_t tern_tokenize_scratch(const tern_model *model, size_t text_bytes)
{
    if (!model->vocab || text_bytes > TERN_TOK_MAX_TEXT)
        return 0;
    struct tern_tok t = {.vocab = model->vocab};
    struct tern_arena a = tern_arena_measure();
    lay_out(&a, &t, text_bytes);
    return a.used + 64; /* the caller's memory need not be aligned */
}

size_t tern_tokenize_most(const tern_model *model, size_t text_bytes)
{
    const struct tern_vocab *v = model->vocab;
    if (!v)
        return 0;
    if (v->family == TERN_VOCAB_BPE)
        return text_bytes + 2;
    if (v->family == TERN_VOCAB_WPM) /* each byte a word, grown to three, after U+2581 */
        return 6 * text_bytes + 2;
    /* A space that is no piece is three bytes, and there can be one more behind every special
     * token, which are at least as many bytes as they are. */
    const bool space = tern_vocab_find_plain(v, (tern_text){"\xe2\x96\x81", 3}) != TERN_VOCAB_NONE;
    const size_t spaces = v->adds_space ? text_bytes / 2 + 1 : 0;
    return (text_bytes + spaces) * (space ? 1 : 3) + 2;
}

size_t tern_tokenize_least(const tern_model *model, size_t text_bytes)
{
    const struct tern_vocab *v = model->vocab;
    if (!v || v->family == TERN_VOCAB_WPM) /* controls and white space leave nothing */
        return 0;
    if (v->family == TERN_VOCAB_BPE && v->unk < 0)
        for (int b = 0; b < 256; b++)
            if (v->bytes[b] < 0)
                return 0;
    const size_t longest = v->longest < 4 ? 4 : v->longest;
    return text_bytes / longest + (text_bytes % longest != 0);
}

/* --- the walk over special pieces --- */

static void emit_plain(struct tern_tok *t, tern_text text)
{
    if (text.size == 0)
        return;
    switch (t->vocab->family) {
    case TERN_VOCAB_SPM:
        tern_tok_spm_run(t, text);
        break;
    case TERN_VOCAB_BPE:
        tern_tok_bpe_run(t, text);
        break;
    case TERN_VOCAB_WPM:
        tern_tok_wpm_run(t, text);
        break;
    }
}

/* A text, and where control tokens may be spelled in it: everywhere or nowhere, or, with runs,
 * inside of one that is the template's own. */
struct marked {
    const struct tern_vocab *vocab;
    tern_text text;
    bool control;
    const tern_run *runs;
    size_t n_runs;
};

static const tern_run *run_at(const struct marked *x, size_t at)
{
    size_t low = 0, high = x->n_runs - 1;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (x->runs[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return &x->runs[low];
}

static bool special_at(const struct marked *x, size_t at, size_t limit, struct tern_special *out)
{
    if (!x->control || x->n_runs == 0)
        return tern_vocab_special(x->vocab, x->text, at, limit, x->control, out);
    const tern_run *run = run_at(x, at);
    struct tern_special own;
    const bool found = tern_vocab_special(x->vocab, x->text, at, limit, false, out);
    if (!run->own || !tern_vocab_special(x->vocab, x->text, at, run->end < limit ? run->end : limit,
                                         true, &own))
        return found;
    if (!found || own.size >= out->size)
        *out = own;
    return true;
}

/* The piece that is certain of those that overlap the first one at or after `from`. */
static bool next_special(const struct marked *x, size_t *from, size_t limit,
                         struct tern_special *out)
{
    const struct tern_vocab *v = x->vocab;
    const unsigned char *s = (const unsigned char *)x->text.data;
    for (;; ++*from) {
        while (*from < limit && v->special_reach[s[*from]] == 0)
            ++*from;
        if (*from == limit)
            return false;
        if (special_at(x, *from, limit, out))
            break;
    }
    for (size_t at = *from + 1; at < out->at + out->size; at++) {
        struct tern_special other;
        if (v->special_reach[s[at]] > out->size && special_at(x, at, limit, &other) &&
            other.size > out->size)
            *out = other;
    }
    return true;
}

static void emit_all(struct tern_tok *t, const struct marked *x)
{
    const tern_text text = x->text;
    size_t begin = 0, from = 0, n_held = 0;
    for (;;) {
        const size_t limit = n_held ? t->held[n_held - 1].at : text.size;
        struct tern_special found;
        if (next_special(x, &from, limit, &found)) {
            t->held[n_held++] = found;
            if (found.at != from && n_held <= t->vocab->longest_special)
                continue; /* what is left of it comes first */
        }
        const size_t stop = n_held ? t->held[n_held - 1].at : text.size;
        emit_plain(t, (tern_text){text.data + begin, stop - begin});
        if (n_held == 0)
            return;
        const struct tern_special *s = &t->held[--n_held];
        tern_tok_emit(&t->out, s->id);
        begin = from = s->at + s->size;
    }
}

static tern_status check_runs(const tern_rendered *r, tern_error *err)
{
    size_t end = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
        if (r->runs[i].end <= end || r->runs[i].end > r->text.size)
            return tern_fail(err, TERN_BAD_ARGUMENT, "run %u: it ends at %u, after %u needed",
                             (uint64_t)i, (uint64_t)r->runs[i].end, (uint64_t)end);
        end = r->runs[i].end;
    }
    if (r->n_runs && end != r->text.size)
        return tern_fail(err, TERN_BAD_ARGUMENT, "runs: they end at %u of %u bytes", (uint64_t)end,
                         (uint64_t)r->text.size);
    return TERN_OK;
}

tern_status tern_tokenize(const tern_model *model, tern_text text, uint32_t flags,
                          tern_memory scratch, tern_token *out, size_t cap, size_t *n,
                          tern_error *err)
{
    const tern_rendered all = {text, NULL, 0};
    return tern_tokenize_rendered(model, &all, flags, scratch, out, cap, n, err);
}

tern_status tern_tokenize_rendered(const tern_model *model, const tern_rendered *rendered,
                                   uint32_t flags, tern_memory scratch, tern_token *out,
                                   size_t cap, size_t *n, tern_error *err)
{
    const struct tern_vocab *v = model->vocab;
    const tern_text text = rendered->text;
    *n = 0;
    if (!v)
        return tern_fail(err, TERN_BAD_ARGUMENT, "model: read without its tokenizer");
    if (text.size > TERN_TOK_MAX_TEXT)
        return tern_fail(err, TERN_BAD_ARGUMENT, "text: %u bytes, at most %u",
                         (uint64_t)text.size, (uint64_t)TERN_TOK_MAX_TEXT);
    if (check_runs(rendered, err))
        return TERN_BAD_ARGUMENT;
    struct tern_tok t = {.vocab = v, .out = {out, cap, 0}};
    const size_t skew = -(uintptr_t)scratch.data & 63;
    const size_t need = tern_tokenize_scratch(model, text.size);
    if (scratch.size < need)
        return tern_fail(err, TERN_TOO_SMALL, "tokenizer scratch: %u bytes given, %u needed",
                         (uint64_t)scratch.size, (uint64_t)need);
    struct tern_arena a = tern_arena_over((char *)scratch.data + skew, scratch.size - skew);
    lay_out(&a, &t, text.size);
    const struct marked x = {v, text, flags & TERN_TOKENIZE_SPECIAL, rendered->runs,
                             rendered->n_runs};
    const bool edges = !(flags & TERN_TOKENIZE_NO_BOS);
    if (edges && v->adds_bos && v->bos >= 0)
        tern_tok_emit(&t.out, v->bos);
    emit_all(&t, &x);
    const tern_token last = v->family == TERN_VOCAB_WPM ? v->sep : v->eos;
    if (edges && v->adds_eos && last >= 0)
        tern_tok_emit(&t.out, last);
    *n = t.out.n;
    return t.out.n > cap ? TERN_TOO_SMALL : TERN_OK;
}
