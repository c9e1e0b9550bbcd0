/* The vocabulary's tables, built from the metadata.
 *
 * The file is walked twice: once to learn how many bytes the pieces have and how many of them
 * can be special, which is all that the layout depends on, and once to fill the tables.
 * Everything is checked here, so that the rest of the tokenizer can index without looking.
 *
 * What other engines accept is accepted where that is harmless: merges that name no token are
 * skipped, an empty piece is never matched, ids of padding and the like that lie outside the
 * vocabulary count as absent. What would make a model go wrong silently is refused by name.
 */
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/image.h"
#include "runtime/model.h"
#include "runtime/reader.h"
#include "runtime/text.h"
#include "runtime/unicode.h"
#include "runtime/vocab.h"

#include <string.h>

#define KEY "tokenizer.ggml."

/* Where the arrays stand, and what the layout needs to know of them. */
struct arrays {
    struct tern_meta tokens, scores, types, merges;
    bool has_types;
    uint64_t pool_bytes;
    uint32_t n_specials; /* at most */
};

/* Pieces with a meaning that files do not state. EOT in order of preference. All of them are
 * control tokens, even where a file says otherwise, as llama.cpp has it. */
enum { EOT = 1, EOM = 2, END = 4 };
static const struct { const char *piece; int roles; } known[] = {
    {"<|eot_id|>", EOT | END},
    {"<|im_end|>", EOT | END},
    {"<|end|>", EOT | END},
    {"<end_of_turn>", EOT | END},
    {"<|endoftext|>", EOT | END},
    {"<|end_of_text|>", EOT | END},
    {"<EOT>", EOT | END},
    {"_<EOT>", EOT | END},
    {"<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>", EOT | END},
    {"<|eom_id|>", EOM | END},
    {"<|return|>", END},
    {"<|call|>", END},
    {"<|fim_pad|>", END}, /* fill-in-the-middle: these end a file or a repository */
    {"<fim_pad>", END},
    {"<fim-pad>", END},
    {"<|fim_repo|>", END},
    {"<|repo_name|>", END},
    {"<fim-repo>", END},
    {"<reponame>", END},
    {"<|file_sep|>", END},
    {"<|fim_prefix|>", 0},
    {"<fim_prefix>", 0},
    {"<fim-prefix>", 0},
    {"<|fim_suffix|>", 0},
    {"<fim_suffix>", 0},
    {"<fim-suffix>", 0},
    {"<|fim_middle|>", 0},
    {"<fim_middle>", 0},
    {"<fim-middle>", 0},
};
enum { N_KNOWN = sizeof known / sizeof *known };

static tern_status unreadable(const struct tern_reader *r, const char *key, tern_error *err)
{
    if (r->io)
        return tern_fail(err, TERN_IO, "%s: the source could not be read", key);
    return tern_fail(err, TERN_BAD_MODEL, "%s: runs past the end of the file, %u bytes", key,
                     r->source->size);
}

/* --- headers --- */

static tern_status find_array(const struct tern_model *m, const char *key, uint32_t element,
                              uint32_t other, struct tern_meta *out, tern_error *err)
{
    if (!tern_meta_find(m, key, out))
        return tern_fail(err, TERN_BAD_MODEL, "%s: missing", key);
    if (out->type != TERN_META_ARRAY || (out->element != element && out->element != other))
        return tern_fail(err, TERN_BAD_MODEL,
                         "%s: not an array of the right type: GGUF type %u of %u, expected %u",
                         key, (uint64_t)out->type, (uint64_t)out->element, (uint64_t)element);
    return TERN_OK;
}

static tern_status find_beside(const struct tern_model *m, const char *key, uint32_t element,
                               uint32_t other, uint64_t n_tokens, struct tern_meta *out,
                               tern_error *err)
{
    const tern_status status = find_array(m, key, element, other, out, err);
    if (status == TERN_OK && out->count != n_tokens)
        return tern_fail(err, TERN_BAD_MODEL, "%s: %u elements for %u tokens", key, out->count,
                         n_tokens);
    return status;
}

static tern_status find_arrays(const struct tern_model *m, struct tern_vocab *v,
                               struct arrays *a, tern_error *err)
{
    tern_status status = find_array(m, KEY "tokens", TERN_META_STRING, TERN_META_STRING,
                                    &a->tokens, err);
    if (status)
        return status;
    if (a->tokens.count == 0 || a->tokens.count > TERN_VOCAB_MAX_TOKENS)
        return tern_fail(err, TERN_BAD_MODEL, KEY "tokens: %u tokens, 1 to %u allowed",
                         a->tokens.count, (uint64_t)TERN_VOCAB_MAX_TOKENS);
    v->n_tokens = (uint32_t)a->tokens.count;
    v->n_slots = v->n_tokens + v->n_tokens / 2 + 1;
    struct tern_meta types;
    a->has_types = tern_meta_find(m, KEY "token_type", &types);
    if (a->has_types) {
        status = find_beside(m, KEY "token_type", TERN_META_I32, TERN_META_U32, v->n_tokens,
                             &a->types, err);
        if (status)
            return status;
    }
    if (v->family == TERN_VOCAB_SPM)
        return find_beside(m, KEY "scores", TERN_META_F32, TERN_META_F32, v->n_tokens, &a->scores,
                           err);
    if (v->family != TERN_VOCAB_BPE)
        return TERN_OK;
    status = find_array(m, KEY "merges", TERN_META_STRING, TERN_META_STRING, &a->merges, err);
    if (status)
        return status;
    if (a->merges.count > TERN_VOCAB_MAX_MERGES)
        return tern_fail(err, TERN_BAD_MODEL, KEY "merges: %u, at most %u", a->merges.count,
                         (uint64_t)TERN_VOCAB_MAX_MERGES);
    v->n_merges = (uint32_t)a->merges.count;
    v->n_pairs = v->n_merges + v->n_merges / 2 + 1;
    return TERN_OK;
}

static tern_status read_family(const struct tern_model *m, struct tern_vocab *v, tern_error *err)
{
    tern_text kind = {NULL, 0}, pre = {NULL, 0};
    tern_status status = tern_meta_text(m, KEY "model", &kind, err);
    if (status)
        return status;
    if (kind.size == 0 || tern_text_is(kind, "none") || tern_text_is(kind, "no_vocab"))
        return tern_fail(err, TERN_UNSUPPORTED, KEY "model: the file has no tokenizer");
    if (tern_text_is(kind, "llama"))
        v->family = TERN_VOCAB_SPM;
    else if (tern_text_is(kind, "gpt2"))
        v->family = TERN_VOCAB_BPE;
    else if (tern_text_is(kind, "bert"))
        v->family = TERN_VOCAB_WPM;
    else
        return tern_fail(err, TERN_UNSUPPORTED,
                         KEY "model: %t is not known; llama, gpt2 and bert are", kind);
    v->kind = kind;
    status = tern_meta_text(m, KEY "pre", &pre, err);
    v->pre_name = pre;
    if (status || v->family != TERN_VOCAB_BPE)
        return status;
    v->pre = tern_pretokenize_find(pre);
    if (!v->pre)
        return tern_fail(err, TERN_UNSUPPORTED, KEY "pre: %t is not known", pre);
    return TERN_OK;
}

/* --- measuring --- */

static tern_status measure_pieces(const struct tern_model *m, struct arrays *a, uint32_t *longest,
                                  tern_error *err)
{
    struct tern_reader r = tern_reader_at(&m->parts[0], a->tokens.at);
    for (uint64_t i = 0; i < a->tokens.count; i++) {
        const uint64_t n = tern_read_u64(&r);
        if (!r.failed && n > TERN_MAX_PIECE)
            return tern_fail(err, TERN_BAD_MODEL, KEY "tokens: token %u has %u bytes, at most %u",
                             i, n, (uint64_t)TERN_MAX_PIECE);
        tern_skip(&r, n);
        if (r.failed)
            return unreadable(&r, KEY "tokens", err);
        a->pool_bytes += n;
        if (n > *longest)
            *longest = (uint32_t)n;
    }
    return TERN_OK;
}

static tern_status measure_types(const struct tern_model *m, struct arrays *a, tern_error *err)
{
    a->n_specials = N_KNOWN;
    if (!a->has_types)
        return TERN_OK;
    struct tern_reader r = tern_reader_at(&m->parts[0], a->types.at);
    for (uint64_t i = 0; i < a->types.count; i++) {
        const uint32_t kind = tern_read_u32(&r);
        if (kind > TERN_TOKEN_BYTE)
            return tern_fail(err, TERN_BAD_MODEL, KEY "token_type: token %u is of type %u, 0 to 6 "
                             "are known", i, (uint64_t)kind);
        a->n_specials += kind == TERN_TOKEN_UNKNOWN || kind == TERN_TOKEN_CONTROL ||
                         kind == TERN_TOKEN_USER;
    }
    return r.failed ? unreadable(&r, KEY "token_type", err) : TERN_OK;
}

/* --- filling --- */

struct tables {
    char *pool, *line;
    uint32_t *starts, *slots, *merged, *specials, *special_first;
    uint8_t *kinds;
    float *scores;
    uint64_t *pairs;
    tern_token *bytes;
    uint16_t *special_reach;
};

static void lay_out(struct tern_arena *arena, const struct tern_vocab *v, const struct arrays *a,
                    struct tables *t)
{
    const bool bpe = v->family == TERN_VOCAB_BPE, spm = v->family == TERN_VOCAB_SPM;
    t->pairs = tern_carve_raw(arena, bpe ? v->n_pairs : 0, sizeof *t->pairs, 64);
    t->slots = tern_carve_raw(arena, v->n_slots, sizeof *t->slots, 64);
    t->starts = tern_carve_raw(arena, (size_t)v->n_tokens + 1, sizeof *t->starts, 64);
    t->scores = tern_carve_raw(arena, spm ? v->n_tokens : 0, sizeof *t->scores, 64);
    t->merged = tern_carve_raw(arena, v->n_merges, sizeof *t->merged, 64);
    t->bytes = tern_carve_raw(arena, 256, sizeof *t->bytes, 64);
    t->specials = tern_carve_raw(arena, a->n_specials, sizeof *t->specials, 4);
    t->special_first = tern_carve(arena, 257, sizeof *t->special_first, 4);
    t->special_reach = tern_carve(arena, 256, sizeof *t->special_reach, 4);
    t->kinds = tern_carve_raw(arena, v->n_tokens, 1, 1);
    t->line = tern_carve_raw(arena, bpe ? 2 * TERN_MAX_PIECE + 1 : 0, 1, 1);
    t->pool = tern_carve_raw(arena, (size_t)a->pool_bytes, 1, 1);
}

static tern_status read_pieces(const struct tern_model *m, const struct arrays *a,
                               struct tern_vocab *v, struct tables *t, tern_error *err)
{
    struct tern_reader r = tern_reader_at(&m->parts[0], a->tokens.at);
    uint32_t at = 0;
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        const uint64_t n = tern_read_u64(&r);
        if (n > a->pool_bytes - at) /* the file was another one when it was measured */
            return unreadable(&r, KEY "tokens", err);
        t->starts[i] = at;
        tern_read(&r, t->pool + at, (size_t)n);
        at += (uint32_t)n;
    }
    t->starts[v->n_tokens] = at;
    if (r.failed)
        return unreadable(&r, KEY "tokens", err);
    memset(t->kinds, TERN_TOKEN_NORMAL, v->n_tokens);
    if (a->has_types) {
        r = tern_reader_at(&m->parts[0], a->types.at);
        for (uint32_t i = 0; i < v->n_tokens; i++) {
            const uint32_t kind = tern_read_u32(&r);
            t->kinds[i] = (uint8_t)(kind == 0 ? TERN_TOKEN_UNUSED : kind % 7);
        }
        if (r.failed)
            return unreadable(&r, KEY "token_type", err);
    }
    v->pool = t->pool;
    v->pool_bytes = at;
    v->starts = t->starts;
    v->kinds = t->kinds;
    if (!tern_vocab_index(v, t->slots))
        return tern_fail(err, TERN_BAD_MODEL, KEY "tokens: the pieces are made to collide");
    return TERN_OK;
}

static tern_status read_scores(const struct tern_model *m, const struct arrays *a,
                               struct tern_vocab *v, struct tables *t, tern_error *err)
{
    struct tern_reader r = tern_reader_at(&m->parts[0], a->scores.at);
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        const uint32_t bits = tern_read_u32(&r);
        memcpy(&t->scores[i], &bits, sizeof bits);
        if (t->scores[i] != t->scores[i])
            return tern_fail(err, TERN_BAD_MODEL, KEY "scores: that of token %u is not a number",
                             (uint64_t)i);
    }
    v->scores = t->scores;
    return r.failed ? unreadable(&r, KEY "scores", err) : TERN_OK;
}

/* The piece of this text. Most vocabularies number their tokens as the merges make them, so the
 * one after the last is looked at before the table is. */
static uint32_t find_joined(const struct tern_vocab *v, tern_text piece, uint32_t last)
{
    const uint32_t next = last + 1; /* 0 if there is no last */
    if (v->unique && next < v->n_tokens && tern_text_equal(tern_vocab_piece(v, next), piece) &&
        tern_vocab_piece_kind(v, next) == TERN_TOKEN_NORMAL)
        return next;
    return tern_vocab_find_plain(v, piece);
}

/* One merge, "left right": the space is the first from the second byte on. */
static bool add_merge(struct tern_vocab *v, struct tables *t, size_t n, uint32_t rank)
{
    char *space = n > 1 ? memchr(t->line + 1, ' ', n - 1) : NULL;
    t->merged[rank] = TERN_VOCAB_NONE;
    if (!space)
        return true;
    const size_t k = (size_t)(space - t->line);
    const uint32_t left = tern_vocab_find_plain(v, (tern_text){t->line, k});
    const uint32_t right = tern_vocab_find_plain(v, (tern_text){space + 1, n - k - 1});
    if (left == TERN_VOCAB_NONE || right == TERN_VOCAB_NONE)
        return true;
    memmove(space, space + 1, n - k - 1);
    const uint32_t last = rank ? t->merged[rank - 1] : TERN_VOCAB_NONE;
    t->merged[rank] = find_joined(v, (tern_text){t->line, n - 1}, last);
    if (t->merged[rank] == TERN_VOCAB_NONE)
        return true;
    return tern_vocab_add_pair(v, t->pairs, left, right, rank);
}

static tern_status read_merges(const struct tern_model *m, const struct arrays *a,
                               struct tern_vocab *v, struct tables *t, tern_error *err)
{
    struct tern_reader r = tern_reader_at(&m->parts[0], a->merges.at);
    memset(t->pairs, 0xff, v->n_pairs * sizeof *t->pairs);
    v->pairs = t->pairs;
    v->merged = t->merged;
    for (uint32_t rank = 0; rank < v->n_merges; rank++) {
        uint64_t n = tern_read_u64(&r);
        if (n > 2 * TERN_MAX_PIECE + 1) { /* longer than any two tokens: it names none */
            tern_skip(&r, n);
            n = 0;
        }
        tern_read(&r, t->line, (size_t)n);
        if (r.failed)
            return unreadable(&r, KEY "merges", err);
        if (!add_merge(v, t, (size_t)n, rank))
            return tern_fail(err, TERN_BAD_MODEL, KEY "merges: the pairs are made to collide");
    }
    return TERN_OK;
}

/* --- special tokens --- */

/* An id of the metadata; *id is kept where the key is absent or says that there is none. */
static tern_status read_id(const struct tern_model *m, const char *key, bool matters,
                           const struct tern_vocab *v, tern_token *id, tern_error *err)
{
    if ((uint32_t)*id >= v->n_tokens)
        *id = -1;
    struct tern_meta meta;
    if (!tern_meta_find(m, key, &meta) || (meta.type == TERN_META_I32 && meta.v.i < 0))
        return TERN_OK;
    uint32_t u = UINT32_MAX;
    const tern_status status = tern_meta_u32(m, key, false, 0, UINT32_MAX, &u, err);
    if (status)
        return status;
    if (u >= v->n_tokens && u != UINT32_MAX && matters)
        return tern_fail(err, TERN_BAD_MODEL, "%s: %u, but there are %u tokens", key, (uint64_t)u,
                         (uint64_t)v->n_tokens);
    *id = u < v->n_tokens ? (tern_token)u : -1;
    return TERN_OK;
}

static tern_status read_ids(const struct tern_model *m, struct tern_vocab *v, tern_error *err)
{
    const bool spm = v->family == TERN_VOCAB_SPM, wpm = v->family == TERN_VOCAB_WPM;
    v->bos = spm ? 1 : wpm ? 101 : -1;
    v->eos = spm ? 2 : -1;
    v->unk = spm ? 0 : wpm ? 100 : -1;
    v->sep = wpm ? 102 : -1;
    v->pad = wpm ? 0 : -1;
    v->eot = v->eom = -1;
    const struct { const char *key; tern_token *id; bool matters; } ids[] = {
        {KEY "bos_token_id", &v->bos, true},      {KEY "eos_token_id", &v->eos, true},
        {KEY "eot_token_id", &v->eot, true},      {KEY "eom_token_id", &v->eom, true},
        {KEY "unknown_token_id", &v->unk, false}, {KEY "padding_token_id", &v->pad, false},
        {KEY "seperator_token_id", &v->sep, false},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const tern_status status = read_id(m, ids[i].key, ids[i].matters, v, ids[i].id, err);
        if (status)
            return status;
    }
    v->adds_bos = spm || wpm || v->pre->adds_bos;
    v->adds_eos = wpm;
    v->adds_space = spm;
    tern_status status = tern_meta_bool(m, KEY "add_bos_token", &v->adds_bos, err);
    if (!status)
        status =
            tern_meta_bool(m, wpm ? KEY "add_sep_token" : KEY "add_eos_token", &v->adds_eos, err);
    if (!status && spm)
        status = tern_meta_bool(m, KEY "add_space_prefix", &v->adds_space, err);
    if (wpm)
        v->eos = v->eos < 0 ? v->sep : v->eos;
    return status;
}

static uint32_t find_text(const struct tern_vocab *v, const char *piece)
{
    return tern_vocab_find(v, tern_text_of(piece));
}

static void mark_known(struct tern_vocab *v, uint8_t *kinds)
{
    const bool harmony = find_text(v, "<|return|>") != TERN_VOCAB_NONE &&
                         find_text(v, "<|call|>") != TERN_VOCAB_NONE;
    for (size_t i = 0; i < N_KNOWN; i++) {
        const uint32_t id = find_text(v, known[i].piece);
        if (id == TERN_VOCAB_NONE)
            continue;
        /* gpt-oss: this one ends a message, and the turn goes on. */
        const int roles = harmony && strcmp(known[i].piece, "<|end|>") == 0 ? 0 : known[i].roles;
        kinds[id] = (uint8_t)(TERN_TOKEN_CONTROL | (roles & END ? TERN_VOCAB_ENDS : 0));
        if (roles & EOT && v->eot < 0)
            v->eot = (tern_token)id;
        if (roles & EOM && v->eom < 0)
            v->eom = (tern_token)id;
    }
    const tern_token ends[] = {v->eos, v->eot, v->eom};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] >= 0)
            kinds[ends[i]] |= TERN_VOCAB_ENDS;
}

static void find_bytes(struct tern_vocab *v, tern_token *bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    for (unsigned b = 0; b < 256; b++) {
        char piece[8] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        size_t n = 6;
        if (v->family == TERN_VOCAB_BPE)
            n = tern_unicode_encode(tern_vocab_cp_of_byte((unsigned char)b), piece);
        const uint32_t id = v->family == TERN_VOCAB_WPM ? TERN_VOCAB_NONE
                                                        : tern_vocab_find(v, (tern_text){piece, n});
        bytes[b] = id == TERN_VOCAB_NONE ? -1 : (tern_token)id;
    }
    v->bytes = bytes;
}

/* Whether a piece that text may become has U+2581 after something else: then a word cannot be
 * merged without the next. */
static bool words_stand_alone(const struct tern_vocab *v)
{
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        const tern_text piece = tern_vocab_piece(v, id);
        if (tern_vocab_piece_kind(v, id) == TERN_TOKEN_CONTROL)
            continue;
        bool inside = false;
        for (size_t i = 0; i < piece.size; i++) {
            const bool space =
                piece.size - i >= 3 && memcmp(piece.data + i, "\xe2\x96\x81", 3) == 0;
            if (space && inside)
                return false;
            inside = !space;
            i += space ? 2 : 0;
        }
    }
    return true;
}

static tern_status fill(const struct tern_model *m, const struct arrays *a, struct tern_vocab *v,
                        struct tables *t, tern_error *err)
{
    tern_status status = read_pieces(m, a, v, t, err);
    if (!status)
        status = read_ids(m, v, err);
    if (status)
        return status;
    mark_known(v, t->kinds);
    find_bytes(v, t->bytes);
    if (v->family == TERN_VOCAB_SPM) {
        status = read_scores(m, a, v, t, err);
        v->words_stand_alone = words_stand_alone(v);
    } else if (v->family == TERN_VOCAB_BPE) {
        status = read_merges(m, a, v, t, err);
    }
    tern_vocab_sort_specials(v, t->specials, t->special_first, t->special_reach);
    v->specials = t->specials;
    v->special_first = t->special_first;
    v->special_reach = t->special_reach;
    return status;
}

tern_status tern_vocab_read(struct tern_arena *arena, const struct tern_model *model,
                            const struct tern_vocab **out, tern_error *err)
{
    *out = NULL;
    struct tern_vocab v = {0};
    struct arrays a = {0};
    struct tables t;
    tern_status status = read_family(model, &v, err);
    if (!status && model->image)
        return tern_image_vocab(arena, model, &v, out, err);
    if (!status)
        status = find_arrays(model, &v, &a, err);
    if (!status)
        status = measure_pieces(model, &a, &v.longest, err);
    if (!status)
        status = measure_types(model, &a, err);
    if (status)
        return status;
    struct tern_vocab *kept = tern_carve(arena, 1, sizeof *kept, 64);
    lay_out(arena, &v, &a, &t);
    if (arena->failed)
        return tern_fail(err, TERN_NO_MEMORY, "model arena: the tokenizer does not fit");
    if (!arena->base)
        return TERN_OK;
    status = fill(model, &a, &v, &t, err);
    *kept = v;
    *out = status ? NULL : kept;
    return status;
}
