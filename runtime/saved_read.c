/* saved_read.c: a session is checked, and taken back into an engine.
 *
 * Hashes find accidents; who makes a file on purpose makes its hashes too. So each number is
 * checked against what the engine would have written for the same counts: nothing else of the
 * head is ever used. Blocks are read into the pool as they come and are entered into the index
 * once their hash is right; before that nobody can find them. */
#include "runtime/error.h"
#include "runtime/hash.h"
#include "runtime/reader.h"
#include "runtime/saved.h"

#include <string.h>

enum { BLOCK = TERN_BLOCK_TOKENS, PIECE = 256 };

/* --- the head --- */

static tern_status short_read(const struct tern_reader *r, tern_error *err)
{
    return tern_fail(err, TERN_IO, "session: reading at %u of %u failed", r->at, r->source->size);
}

static tern_status check_source(const tern_source *file, tern_error *err)
{
    if (!file || (!file->base && (!file->read || !file->window.data ||
                                  file->window.size < TERN_SOURCE_WINDOW)))
        return tern_fail(err, TERN_BAD_ARGUMENT, "session: no source, or one that is read without "
                         "a window of %u bytes", (uint64_t)TERN_SOURCE_WINDOW);
    char magic[8] = {0};
    struct tern_reader r = tern_reader_at(file, 0);
    if (file->size >= sizeof magic)
        tern_read(&r, magic, sizeof magic);
    if (r.failed)
        return short_read(&r, err);
    if (memcmp(magic, TERN_SAVED_MAGIC, sizeof magic))
        return tern_fail(err, TERN_BAD_MODEL, "not a session: it does not begin with TERNSEQ");
    if (file->size < sizeof(struct tern_saved_head))
        return tern_fail(err, TERN_BAD_MODEL, "session too short: %u bytes, its header has %u",
                         file->size, (uint64_t)sizeof(struct tern_saved_head));
    return TERN_OK;
}

/* What the rest can only be read under. */
static tern_status check_kind(const struct tern_saved_head *h, tern_error *err)
{
    if (h->order != TERN_SAVED_ORDER)
        return tern_fail(err, TERN_UNSUPPORTED, "session: word order mark %x, %x needed: it was "
                         "made on a machine of another byte order", (uint64_t)h->order,
                         (uint64_t)TERN_SAVED_ORDER);
    if (h->version != TERN_SAVED_VERSION)
        return tern_fail(err, TERN_UNSUPPORTED, "session: version %u, this Tern reads %u",
                         (uint64_t)h->version, (uint64_t)TERN_SAVED_VERSION);
    if (h->arithmetic != TERN_SAVED_ARITHMETIC || h->layout != TERN_SAVED_LAYOUT)
        return tern_fail(err, TERN_UNSUPPORTED, "session: arithmetic %u, block layout %u, this "
                         "Tern has %u and %u", (uint64_t)h->arithmetic, (uint64_t)h->layout,
                         (uint64_t)TERN_SAVED_ARITHMETIC, (uint64_t)TERN_SAVED_LAYOUT);
    return TERN_OK;
}

static tern_status check_sizes(const struct tern_saved_head *h, uint64_t size, tern_error *err)
{
    if (h->file_bytes > size)
        return tern_fail(err, TERN_BAD_MODEL, "session too short: %u bytes of %u: is it whole?",
                         size, h->file_bytes);
    if (h->file_bytes < size)
        return tern_fail(err, TERN_BAD_MODEL, "session too long: %u bytes, it ends at %u", size,
                         h->file_bytes);
    if (h->n_tokens > TERN_SAVED_MOST_TOKENS || h->note_bytes > TERN_SAVED_MOST_NOTE)
        return tern_fail(err, TERN_BAD_MODEL, "session: %u tokens and a note of %u bytes, at most "
                         "%u and %u", (uint64_t)h->n_tokens, h->note_bytes,
                         (uint64_t)TERN_SAVED_MOST_TOKENS, (uint64_t)TERN_SAVED_MOST_NOTE);
    const uint64_t used = sizeof *h + sizeof(tern_token) * (uint64_t)h->n_tokens + h->note_bytes;
    const uint64_t head = (used + TERN_SAVED_ALIGN - 1) / TERN_SAVED_ALIGN * TERN_SAVED_ALIGN;
    if (h->head_bytes != head || h->file_bytes < head)
        return tern_fail(err, TERN_BAD_MODEL, "session: a head of %u bytes in %u, %u needed",
                         h->head_bytes, h->file_bytes, head);
    return TERN_OK;
}

static tern_status check_hash(const struct tern_saved_head *h, struct tern_reader *r,
                              tern_error *err)
{
    unsigned char piece[PIECE];
    struct tern_saved_head own = *h;
    struct tern_hash hash = tern_hash_begin();
    own.head_hash = 0;
    tern_hash_add(&hash, &own, sizeof own);
    while (r->at < h->head_bytes) {
        const uint64_t left = h->head_bytes - r->at;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        tern_read(r, piece, n);
        if (r->failed)
            return short_read(r, err);
        tern_hash_add(&hash, piece, n);
    }
    const uint64_t found = tern_hash_end(&hash);
    if (found != h->head_hash)
        return tern_fail(err, TERN_BAD_MODEL, "session: the head's hash is %x, it says %x: the "
                         "file is damaged", found, h->head_hash);
    return TERN_OK;
}

/* Counts that no session has, whatever the engine. */
static tern_status check_counts(const struct tern_saved_head *h, tern_error *err)
{
    if (h->n_computed > h->n_tokens || h->n_computed % BLOCK || h->block_tokens != BLOCK)
        return tern_fail(err, TERN_BAD_MODEL, "session: %u of %u tokens computed in blocks of %u",
                         (uint64_t)h->n_computed, (uint64_t)h->n_tokens,
                         (uint64_t)h->block_tokens);
    if (h->k_type >= TERN_N_KV_TYPES || h->v_type >= TERN_N_KV_TYPES)
        return tern_fail(err, TERN_BAD_MODEL, "session: K of type %u and V of type %u, below %u",
                         (uint64_t)h->k_type, (uint64_t)h->v_type, (uint64_t)TERN_N_KV_TYPES);
    return TERN_OK;
}

/* The head into *h, checked as far as it can be without an engine. */
static tern_status open_head(const tern_source *file, struct tern_saved_head *h, tern_error *err)
{
    tern_status status = check_source(file, err);
    if (status)
        return status;
    struct tern_reader r = tern_reader_at(file, 0);
    tern_read(&r, h, sizeof *h);
    if (r.failed)
        return short_read(&r, err);
    status = check_kind(h, err);
    if (!status)
        status = check_sizes(h, file->size, err);
    if (!status)
        status = check_hash(h, &r, err);
    return status ? status : check_counts(h, err);
}

tern_status tern_saved_read(const tern_source *file, tern_saved_info *out, tern_error *err)
{
    struct tern_saved_head h;
    if (!out)
        return tern_fail(err, TERN_BAD_ARGUMENT, "session: an argument is NULL");
    *out = (tern_saved_info){.n_tokens = 0};
    const tern_status status = open_head(file, &h, err);
    if (status)
        return status;
    *out = (tern_saved_info){
        .file_bytes = h.file_bytes, .n_tokens = h.n_tokens, .n_computed = h.n_computed,
        .k_type = (tern_kv_type)h.k_type, .v_type = (tern_kv_type)h.v_type,
        .exact = h.flags & TERN_SAVED_EXACT, .seed = h.seed, .stream = h.stream,
        .tokens_at = sizeof h, .note_at = sizeof h + sizeof(tern_token) * (uint64_t)h.n_tokens,
        .note_bytes = h.note_bytes,
    };
    memcpy(out->model, h.model, sizeof out->model - 1);
    return TERN_OK;
}

/* --- against the engine --- */

static tern_text name_of(const char *name, size_t cap)
{
    const char *end = memchr(name, 0, cap);
    return (tern_text){name, end ? (size_t)(end - name) : cap};
}

static tern_status check_same(const struct tern_saved_head *h, const struct tern_saved_head *want,
                              tern_error *err)
{
    static const char *const types[TERN_N_KV_TYPES] = {"f16", "f32", "q8_0", "q4_0"};
    if (memcmp(h->backend, want->backend, sizeof h->backend))
        return tern_fail(err, TERN_UNSUPPORTED, "session: of backend %t, this is %t",
                         name_of(h->backend, sizeof h->backend),
                         name_of(want->backend, sizeof want->backend));
    if (h->model_hash != want->model_hash)
        return tern_fail(err, TERN_UNSUPPORTED, "session: of another model, '%t' (%x); this is "
                         "'%t' (%x)", name_of(h->model, sizeof h->model), h->model_hash,
                         name_of(want->model, sizeof want->model), want->model_hash);
    if ((h->flags ^ want->flags) & TERN_SAVED_EXACT)
        return tern_fail(err, TERN_UNSUPPORTED, "session: saved %s --exact, this runs %s",
                         h->flags & TERN_SAVED_EXACT ? "with" : "without",
                         want->flags & TERN_SAVED_EXACT ? "with it" : "without it");
    if (h->k_type != want->k_type || h->v_type != want->v_type)
        return tern_fail(err, TERN_UNSUPPORTED, "session: K %s and V %s, this engine has K %s and "
                         "V %s", types[h->k_type], types[h->v_type], types[want->k_type],
                         types[want->v_type]);
    if (h->flags != want->flags || h->zero || h->n_groups != want->n_groups ||
        memcmp(h->groups, want->groups, sizeof h->groups) || h->file_bytes != want->file_bytes)
        return tern_fail(err, TERN_BAD_MODEL, "session: its blocks are not those of %u tokens of "
                         "this model", (uint64_t)h->n_computed);
    return TERN_OK;
}

static tern_status check_target(const tern_engine *e, const struct tern_sequence *s,
                                tern_memory scratch, tern_error *err)
{
    if (s->running || s->n_tokens)
        return tern_fail(err, TERN_BAD_ARGUMENT, "session: the sequence holds %u tokens, it must "
                         "hold none", (uint64_t)s->n_tokens);
    if (!scratch.data || (uintptr_t)scratch.data % 64 || scratch.size < tern_saved_step(e))
        return tern_fail(err, TERN_NO_MEMORY, "session: scratch of %u bytes, %u needed, aligned "
                         "to 64", (uint64_t)scratch.size, (uint64_t)tern_saved_step(e));
    return TERN_OK;
}

/* --- taking back --- */

struct restoring {
    tern_engine *e;
    struct tern_sequence *s;
    tern_seq seq;
    struct tern_reader reader;
    struct tern_hash hash;
    uint32_t n_known; /* blocks that the index had: they are others' too, and not written */
    void *scratch;
};

static tern_status read_tokens(struct restoring *r, uint32_t n)
{
    tern_error *err = &r->e->error;
    const uint32_t n_vocab = r->e->model->program.n_vocab;
    tern_read(&r->reader, r->s->tokens, sizeof *r->s->tokens * n);
    if (r->reader.failed)
        return short_read(&r->reader, err);
    for (uint32_t i = 0; i < n; i++)
        if (r->s->tokens[i] < 0 || (uint32_t)r->s->tokens[i] >= n_vocab)
            return tern_fail(err, TERN_BAD_MODEL, "session: token %i at %u, vocabulary %u",
                             (int64_t)r->s->tokens[i], (uint64_t)i, (uint64_t)n_vocab);
    return TERN_OK;
}

static tern_status read_blocks(struct restoring *r, uint32_t group,
                               const struct tern_saved_group *g)
{
    tern_engine *e = r->e;
    const struct tern_kv *kv = &e->parts.kv;
    const uint32_t *table = kv->tables[(size_t)group * kv->n_slots + tern_slot_of(e, r->s)];
    for (uint32_t i = g->first; i < g->first + g->n_blocks; i++)
        for (uint32_t layer = 0; layer < g->n_layers; layer++) {
            tern_status status = TERN_OK;
            tern_read(&r->reader, r->scratch, g->block_bytes);
            if (r->reader.failed)
                return short_read(&r->reader, &e->error);
            if (!tern_saved_holds(e, r->s, r->seq, g->first + g->n_blocks))
                return TERN_AGAIN;
            tern_hash_add(&r->hash, r->scratch, g->block_bytes);
            if (i >= r->n_known)
                status = e->backend->write_block(e->state, group, layer, table[i], r->scratch,
                                                 &e->error);
            if (status)
                return status;
        }
    return TERN_OK;
}

static bool shares(const struct restoring *r)
{
    return !r->s->options.no_kv_sharing && !r->e->limits.no_kv_sharing;
}

/* Blocks for the session: those that the index knows, and others that are taken. */
static tern_status take_blocks(struct restoring *r, uint32_t n_computed)
{
    struct tern_kv *kv = &r->e->parts.kv;
    const uint32_t slot = tern_slot_of(r->e, r->s);
    bool room = true;
    if (!tern_saved_holds(r->e, r->s, r->seq, 0))
        return TERN_AGAIN;
    if (shares(r))
        r->n_known = tern_kv_match(kv, slot, r->s->tokens, n_computed) / BLOCK;
    r->s->pinned = true;
    while (room && !tern_kv_extend(kv, slot, n_computed / BLOCK))
        room = tern_schedule_evict(r->e);
    r->s->pinned = false;
    r->s->used = ++r->e->parts.scheduler.clock; /* the others lose theirs before it */
    return room ? TERN_OK : TERN_AGAIN;
}

static tern_status take_back(struct restoring *r, const struct tern_saved_head *h)
{
    tern_status status = read_tokens(r, h->n_tokens);
    if (!status)
        status = take_blocks(r, h->n_computed);
    r->reader = tern_reader_at(r->reader.source, h->head_bytes);
    for (uint32_t g = 0; !status && g < h->n_groups; g++)
        status = read_blocks(r, g, &h->groups[g]);
    if (status)
        return status;
    const uint64_t found = tern_hash_end(&r->hash);
    if (found != h->tail_hash)
        return tern_fail(&r->e->error, TERN_BAD_MODEL, "session: the hash of its blocks is %x, it "
                         "says %x: the file is damaged", found, h->tail_hash);
    if (shares(r))
        tern_kv_index(&r->e->parts.kv, tern_slot_of(r->e, r->s), r->s->tokens, h->n_computed);
    return TERN_OK;
}

static tern_status check(tern_engine *e, const struct tern_sequence *s, const tern_source *file,
                         tern_memory scratch, struct tern_saved_head *h)
{
    struct tern_saved_head want;
    tern_status status = check_target(e, s, scratch, &e->error);
    if (!status)
        status = open_head(file, h, &e->error);
    if (!status && h->n_tokens > e->limits.n_ctx)
        return tern_fail(&e->error, TERN_UNSUPPORTED, "session: %u tokens, at most %u in this "
                         "context", (uint64_t)h->n_tokens, (uint64_t)e->limits.n_ctx);
    if (status)
        return status;
    tern_saved_expect(e, h->n_tokens, h->n_computed, h->note_bytes, &want);
    return check_same(h, &want, &e->error);
}

tern_status tern_saved_restore(tern_engine *e, tern_seq seq, const tern_source *file,
                               tern_memory scratch)
{
    struct tern_saved_head h;
    if (!e)
        return TERN_BAD_ARGUMENT;
    tern_status status = tern_engine_ready(e);
    struct tern_sequence *s = status ? NULL : tern_sequence_of(e, seq);
    if (!s)
        return status ? status : TERN_BAD_ARGUMENT;
    status = check(e, s, file, scratch, &h);
    if (status)
        return status;
    struct restoring r = {.e = e, .s = s, .seq = seq, .reader = tern_reader_at(file, sizeof h),
                          .hash = tern_hash_begin(), .scratch = scratch.data};
    status = take_back(&r, &h);
    if (!tern_saved_holds(e, s, seq, 0))
        return status ? status : TERN_AGAIN;
    if (status) {
        tern_kv_trim(&e->parts.kv, tern_slot_of(e, s), 0);
        return status;
    }
    s->n_tokens = h.n_tokens;
    s->n_computed = s->n_cached = h.n_computed;
    s->used = ++e->parts.scheduler.clock;
    return TERN_OK;
}
