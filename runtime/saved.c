/* saved.c: a sequence as a session, through a sink: its blocks, and then the head, which holds
 * their hash. So what was interrupted has no header and is nobody's session. Bytes are a function
 * of tokens, model and note: nothing of the pool's other owners, the machine or the clock gets
 * in. */
#include "runtime/saved.h"

#include "runtime/error.h"
#include "runtime/hash.h"
#include "runtime/text.h"

#include <string.h>

enum { BLOCK = TERN_BLOCK_TOKENS };

/* --- what an engine's sessions look like --- */

static void put_name(char *to, size_t cap, tern_text name)
{
    const size_t n = name.size < cap - 1 ? name.size : cap - 1;
    if (n)
        memcpy(to, name.data, n);
}

static uint64_t head_bytes(uint32_t n_tokens, uint64_t note_bytes)
{
    const uint64_t n = sizeof(struct tern_saved_head) + sizeof(tern_token) * (uint64_t)n_tokens +
                       note_bytes;
    return (n + TERN_SAVED_ALIGN - 1) / TERN_SAVED_ALIGN * TERN_SAVED_ALIGN;
}

void tern_saved_expect(tern_engine *e, uint32_t n_tokens, uint32_t n_computed, uint64_t note_bytes,
                       struct tern_saved_head *h)
{
    const tern_limits *l = &e->limits;
    const struct tern_program *p = &e->model->program;
    tern_text name = {NULL, 0};
    (void)tern_meta_text(e->model, "general.name", &name, NULL);
    *h = (struct tern_saved_head){
        .order = TERN_SAVED_ORDER, .version = TERN_SAVED_VERSION,
        .head_bytes = head_bytes(n_tokens, note_bytes), .arithmetic = TERN_SAVED_ARITHMETIC,
        .layout = TERN_SAVED_LAYOUT, .model_hash = tern_saved_model(e), .n_tokens = n_tokens,
        .n_computed = n_computed, .block_tokens = BLOCK, .n_groups = p->n_kv_groups,
        .k_type = (uint32_t)l->k_type, .v_type = (uint32_t)l->v_type,
        .flags = (l->exact ? TERN_SAVED_EXACT : 0u) |
                 (l->k_type >= TERN_KV_Q8_0 ? TERN_SAVED_K_ROTATED : 0u) |
                 (l->v_type >= TERN_KV_Q8_0 ? TERN_SAVED_V_ROTATED : 0u),
        .note_bytes = note_bytes,
    };
    memcpy(h->magic, TERN_SAVED_MAGIC, sizeof h->magic);
    put_name(h->backend, sizeof h->backend, tern_text_of(e->backend->name));
    put_name(h->model, sizeof h->model, name);
    h->file_bytes = h->head_bytes;
    for (uint32_t g = 0; g < p->n_kv_groups; g++) {
        const struct tern_kv_group *from = &p->kv_groups[g];
        const uint32_t first = tern_kv_first(from->window, n_computed);
        h->groups[g] = (struct tern_saved_group){
            .n_layers = from->n_layers, .n_kv_heads = from->n_kv_heads, .k_dim = from->k_dim,
            .v_dim = from->v_dim, .window = from->window, .first = first,
            .n_blocks = n_computed / BLOCK - first,
            .block_bytes = (uint32_t)e->backend->block_bytes(e->state, g),
        };
        h->file_bytes += (uint64_t)h->groups[g].n_blocks * from->n_layers *
                         h->groups[g].block_bytes;
    }
}

size_t tern_saved_step(const tern_engine *e)
{
    size_t most = TERN_SAVED_ALIGN;
    for (uint32_t g = 0; g < e->model->program.n_kv_groups; g++) {
        const size_t n = e->backend->block_bytes(e->state, g);
        most = n > most ? n : most;
    }
    return most;
}

bool tern_saved_holds(const tern_engine *e, const struct tern_sequence *s, tern_seq seq,
                      uint32_t n)
{
    return atomic_load(&s->handle) == seq && !s->running &&
           e->parts.kv.seqs[tern_slot_of(e, s)].hi >= n;
}

/* --- saving --- */

/* The sequence, if it can be saved; what the index still has of it is taken back first, and is
 * what others lose their blocks before. */
static struct tern_sequence *to_save(tern_engine *e, tern_seq seq)
{
    struct tern_sequence *s = tern_engine_ready(e) ? NULL : tern_sequence_of(e, seq);
    if (s && s->running) {
        (void)tern_fail(&e->error, TERN_BAD_ARGUMENT, "session: the sequence is running");
        return NULL;
    }
    if (s && !s->n_computed && !s->options.no_kv_sharing)
        s->n_computed = tern_kv_match(&e->parts.kv, tern_slot_of(e, s), s->tokens, s->n_tokens);
    if (s)
        s->used = ++e->parts.scheduler.clock;
    return s;
}

static tern_status check_note(tern_engine *e, uint64_t note_bytes)
{
    if (note_bytes <= TERN_SAVED_MOST_NOTE)
        return TERN_OK;
    return tern_fail(&e->error, TERN_BAD_ARGUMENT, "session: a note of %u bytes, at most %u",
                     note_bytes, (uint64_t)TERN_SAVED_MOST_NOTE);
}

static void expect(tern_engine *e, const struct tern_sequence *s, uint64_t note_bytes,
                   struct tern_saved_head *h)
{
    const uint32_t whole = tern_kv_whole(&e->parts.kv, tern_slot_of(e, s), s->n_computed);
    tern_saved_expect(e, s->n_tokens, whole * BLOCK, note_bytes, h);
    h->seed = s->options.sampling.seed;
    h->stream = s->options.sampling.stream;
}

tern_status tern_saved_size(tern_engine *e, tern_seq seq, size_t note_bytes, uint64_t *bytes,
                            size_t *scratch)
{
    struct tern_saved_head h;
    if (!e)
        return TERN_BAD_ARGUMENT;
    if (!bytes || !scratch)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "session: an argument is NULL");
    *bytes = 0;
    *scratch = tern_saved_step(e);
    if (!seq)
        return TERN_OK;
    const struct tern_sequence *s = to_save(e, seq);
    if (!s)
        return e->lost ? TERN_DEVICE_LOST : TERN_BAD_ARGUMENT;
    const tern_status status = check_note(e, note_bytes);
    if (status)
        return status;
    expect(e, s, note_bytes, &h);
    *bytes = h.file_bytes;
    return TERN_OK;
}

struct saving {
    tern_engine *e;
    tern_seq seq;
    const tern_sink *sink;
    uint64_t at;
    struct tern_hash hash;
};

static tern_status emit(struct saving *w, const void *data, size_t n)
{
    if (!n)
        return TERN_OK;
    if (!w->sink->write(w->sink->self, w->at, data, n))
        return tern_fail(&w->e->error, TERN_IO, "session: writing %u bytes at %u failed",
                         (uint64_t)n, w->at);
    w->at += n;
    return TERN_OK;
}

static tern_status emit_blocks(struct saving *w, const struct tern_sequence *s, uint32_t group,
                               const struct tern_saved_group *g, void *scratch)
{
    const struct tern_kv *kv = &w->e->parts.kv;
    const uint32_t *table = kv->tables[(size_t)group * kv->n_slots + tern_slot_of(w->e, s)];
    for (uint32_t i = g->first; i < g->first + g->n_blocks; i++)
        for (uint32_t layer = 0; layer < g->n_layers; layer++) {
            tern_status status = TERN_AGAIN;
            if (tern_saved_holds(w->e, s, w->seq, g->first + g->n_blocks))
                status = w->e->backend->read_block(w->e->state, group, layer, table[i], scratch,
                                                   &w->e->error);
            if (!status)
                status = emit(w, scratch, g->block_bytes);
            if (status)
                return status;
            tern_hash_add(&w->hash, scratch, g->block_bytes);
        }
    return TERN_OK;
}

/* Tokens, note and zeros, hashed behind the header and written; then the header. */
static tern_status emit_head(struct saving *w, struct tern_saved_head *h,
                             const struct tern_sequence *s, tern_bytes note)
{
    static const unsigned char zeros[TERN_SAVED_ALIGN];
    const size_t tokens = sizeof *s->tokens * h->n_tokens;
    const size_t gap = (size_t)(h->head_bytes - sizeof *h - tokens - note.size);
    struct tern_hash hash = tern_hash_begin();
    tern_hash_add(&hash, h, sizeof *h);
    tern_hash_add(&hash, s->tokens, tokens);
    if (note.size)
        tern_hash_add(&hash, note.data, note.size);
    tern_hash_add(&hash, zeros, gap);
    h->head_hash = tern_hash_end(&hash);
    w->at = sizeof *h;
    tern_status status = emit(w, s->tokens, tokens);
    if (!status)
        status = emit(w, note.data, note.size);
    if (!status)
        status = emit(w, zeros, gap);
    w->at = 0;
    return status ? status : emit(w, h, sizeof *h);
}

static tern_status check_write(tern_engine *e, tern_bytes note, tern_memory scratch,
                               const tern_sink *sink)
{
    if (!sink || !sink->write || (note.size && !note.data))
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "session: an argument is NULL");
    if (!scratch.data || (uintptr_t)scratch.data % 64 || scratch.size < tern_saved_step(e))
        return tern_fail(&e->error, TERN_NO_MEMORY, "session: scratch of %u bytes, %u needed, "
                         "aligned to 64", (uint64_t)scratch.size, (uint64_t)tern_saved_step(e));
    return check_note(e, note.size);
}

tern_status tern_saved_write(tern_engine *e, tern_seq seq, tern_bytes note, tern_memory scratch,
                             const tern_sink *sink)
{
    struct tern_saved_head h;
    if (!e)
        return TERN_BAD_ARGUMENT;
    const struct tern_sequence *s = to_save(e, seq);
    if (!s)
        return e->lost ? TERN_DEVICE_LOST : TERN_BAD_ARGUMENT;
    tern_status status = check_write(e, note, scratch, sink);
    if (status)
        return status;
    expect(e, s, note.size, &h);
    struct saving w = {.e = e, .seq = seq, .sink = sink, .at = h.head_bytes,
                       .hash = tern_hash_begin()};
    for (uint32_t g = 0; !status && g < h.n_groups; g++)
        status = emit_blocks(&w, s, g, &h.groups[g], scratch.data);
    h.tail_hash = tern_hash_end(&w.hash);
    if (!status && !tern_saved_holds(e, s, seq, 0))
        status = TERN_AGAIN;
    return status ? status : emit_head(&w, &h, s, note);
}
