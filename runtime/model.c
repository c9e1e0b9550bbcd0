/* model.c: from a file to a model in the caller's memory: directory, tokenizer, sizes, program.
 *
 * tern_model_size and tern_model_init are one walk: the first over an arena without memory. */
#include "runtime/model.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/image.h"
#include "runtime/recipe.h"
#include "runtime/text.h"
#include "runtime/tokenizer.h"

#include <stddef.h>

enum {
    ALIGNMENT = 16, /* of the caller's memory */
    MOST_LAYERS = 1024,
    MOST_EMBD = 1 << 18,
    MOST_FF = 1 << 20,
    MOST_HEADS = 1024,
    MOST_HEAD_DIM = 1024,
};

/* --- sizes --- */

/* A size that may be given layer by layer, as long as all layers have the same. */
static tern_status uniform_u32(const struct tern_model *m, const char *key, bool required,
                               uint32_t max, uint32_t *out, tern_error *err)
{
    struct tern_meta k;
    if (!tern_meta_find(m, key, &k) || k.type != TERN_META_ARRAY)
        return tern_meta_u32(m, key, required, 1, max, out, err);
    const uint32_t n_layers = m->hparams.n_layers;
    if (k.count < n_layers)
        return tern_fail(err, TERN_BAD_MODEL, "%t%s: %u elements for %u layers", m->architecture,
                         key, k.count, (uint64_t)n_layers);
    for (uint32_t i = 0; i < n_layers; i++) {
        struct tern_meta e;
        uint64_t u;
        const tern_status status = tern_meta_element(m, &k, i, &e, err);
        if (status)
            return status;
        if (!tern_meta_to_u64(&e, &u) || u == 0 || u > max)
            return tern_fail(err, TERN_BAD_MODEL,
                             "%t%s: element %u is no integer from 1 to %u", m->architecture, key,
                             (uint64_t)i, (uint64_t)max);
        if (i && u != *out)
            return tern_fail(err, TERN_UNSUPPORTED, "%t%s: %u at layer %u after %u, layers must "
                             "be alike", m->architecture, key, u, (uint64_t)i, (uint64_t)*out);
        *out = (uint32_t)u;
    }
    return TERN_OK;
}

static tern_status read_head_dims(const struct tern_model *m, struct tern_hparams *p,
                                  tern_error *err)
{
    struct tern_meta k;
    const bool given = tern_meta_find(m, ".attention.key_length", &k);
    if (!given && p->n_embd % p->n_heads)
        return tern_fail(err, TERN_BAD_MODEL,
                         "%t.attention.head_count: %u does not divide embedding_length %u",
                         m->architecture, (uint64_t)p->n_heads, (uint64_t)p->n_embd);
    p->k_dim = p->n_embd / p->n_heads;
    tern_status status = tern_meta_u32(m, ".attention.key_length", false, 1, MOST_HEAD_DIM,
                                       &p->k_dim, err);
    if (status)
        return status;
    p->v_dim = p->k_dim;
    status = tern_meta_u32(m, ".attention.value_length", false, 1, MOST_HEAD_DIM, &p->v_dim, err);
    if (status)
        return status;
    if (p->k_dim < 1 || p->k_dim > MOST_HEAD_DIM)
        return tern_fail(err, TERN_BAD_MODEL, "%t: heads of %u, must be from 1 to %u",
                         m->architecture, (uint64_t)p->k_dim, (uint64_t)MOST_HEAD_DIM);
    return TERN_OK;
}

static tern_status read_hparams(const struct tern_model *m, struct tern_hparams *p, tern_error *err)
{
    tern_status s = tern_meta_u32(m, ".block_count", true, 1, MOST_LAYERS, &p->n_layers, err);
    if (!s)
        s = tern_meta_u32(m, ".embedding_length", true, 1, MOST_EMBD, &p->n_embd, err);
    if (!s)
        s = tern_meta_u32(m, ".context_length", true, 1, INT32_MAX, &p->n_ctx_train, err);
    if (!s)
        s = uniform_u32(m, ".feed_forward_length", true, MOST_FF, &p->n_ff, err);
    if (!s)
        s = uniform_u32(m, ".attention.head_count", true, MOST_HEADS, &p->n_heads, err);
    if (s)
        return s;
    p->n_kv_heads = p->n_heads;
    s = uniform_u32(m, ".attention.head_count_kv", false, MOST_HEADS, &p->n_kv_heads, err);
    if (s)
        return s;
    if (p->n_heads % p->n_kv_heads)
        return tern_fail(err, TERN_BAD_MODEL,
                         "%t.attention.head_count: %u is no multiple of head_count_kv %u",
                         m->architecture, (uint64_t)p->n_heads, (uint64_t)p->n_kv_heads);
    s = read_head_dims(m, p, err);
    static const char eps[] = ".attention.layer_norm_rms_epsilon";
    return s ? s : tern_meta_f32(m, eps, true, 0, 1, &p->rms_eps, err);
}

/* The vocabulary's size is that of the embedding: known once there are tensors. */
static tern_status read_n_vocab(const struct tern_model *m, uint32_t *out, tern_error *err)
{
    static const char name[] = "token_embd.weight";
    const struct tern_tensor *t = tern_tensor_find(m, tern_text_of(name));
    if (!t)
        return tern_fail(err, TERN_BAD_MODEL, "tensor %s is missing", name);
    if (t->dims[1] > INT32_MAX)
        return tern_fail(err, TERN_BAD_MODEL, "tensor %s: %u rows, at most %u", name, t->dims[1],
                         (uint64_t)INT32_MAX);
    const uint32_t n = tern_vocab_size(m->vocab);
    if (t->dims[1] != n)
        return tern_fail(err, TERN_BAD_MODEL,
                         "the vocabulary has %u tokens, but tensor %s has %u rows", (uint64_t)n,
                         name, t->dims[1]);
    *out = n;
    return TERN_OK;
}

/* --- the walk --- */

static tern_status check_sources(const tern_source *parts, size_t n_parts, tern_model_parts what,
                                 tern_error *err)
{
    if (!parts || n_parts < 1 || n_parts > TERN_MAX_PARTS)
        return tern_fail(err, TERN_BAD_ARGUMENT, "model: %u parts, must be from 1 to %u",
                         (uint64_t)n_parts, (uint64_t)TERN_MAX_PARTS);
    if (what != TERN_MODEL_WHOLE && what != TERN_MODEL_TEXT && what != TERN_MODEL_HEADER)
        return tern_fail(err, TERN_BAD_ARGUMENT, "model: %i is no choice of parts to read",
                         (int64_t)what);
    for (size_t i = 0; i < n_parts; i++) {
        const tern_source *s = &parts[i];
        if (s->base && s->size > SIZE_MAX)
            return tern_fail(err, TERN_BAD_ARGUMENT, "source %u: %u bytes cannot be mapped",
                             (uint64_t)i, s->size);
        if (!s->base && (!s->read || !s->window.data || s->window.size < TERN_SOURCE_WINDOW))
            return tern_fail(err, TERN_BAD_ARGUMENT,
                             "source %u: no base, nor read with a window of %u bytes or more",
                             (uint64_t)i, (uint64_t)TERN_SOURCE_WINDOW);
    }
    return TERN_OK;
}

static tern_status read_parts(struct tern_arena *arena, struct tern_model *m,
                              const tern_source *parts, size_t n_parts, tern_model_parts what,
                              tern_error *err)
{
    m->any_type = what == TERN_MODEL_HEADER;
    tern_status status = tern_image_is(&parts[0]) ? tern_image_read(arena, parts, n_parts, m, err)
                                                  : tern_gguf_read(arena, parts, n_parts, m, err);
    if (status)
        return status;
    if (what != TERN_MODEL_WHOLE) {
        (void)read_hparams(m, &m->hparams, NULL); /* what there is of them, to be shown */
        return what == TERN_MODEL_HEADER ? TERN_OK : tern_vocab_read(arena, m, &m->vocab, err);
    }
    if (!tern_recipe_find(m->architecture, err))
        return TERN_UNSUPPORTED;
    status = read_hparams(m, &m->hparams, err);
    if (!status)
        status = tern_vocab_read(arena, m, &m->vocab, err);
    if (!status && arena->base)
        status = read_n_vocab(m, &m->hparams.n_vocab, err);
    if (!status)
        status = tern_program_build(arena, m, &m->program, err);
    return status || !m->image ? status : tern_image_check_program(m, err);
}

static tern_status walk(struct tern_arena *arena, struct tern_model *m, const tern_source *parts,
                        size_t n_parts, tern_model_parts what, tern_error *err)
{
    const tern_status status = read_parts(arena, m, parts, n_parts, what, err);
    if (m->scan && m->scan->io)
        return tern_fail(err, TERN_IO, "reading the file failed in its metadata");
    if (arena->failed)
        return tern_fail(err, TERN_NO_MEMORY,
                         "model arena: %u bytes given are less than tern_model_size asks for",
                         (uint64_t)arena->size);
    return status;
}

/* Apart from its caller, so that neither stack frame grows beyond what a small stack bears. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static tern_status measure(struct tern_arena *arena, struct tern_scan *scan,
                           const tern_source *parts, size_t n_parts, tern_model_parts what,
                           tern_error *err)
{
    struct tern_model m = {.scan = scan};
    tern_carve(arena, 1, sizeof m, ALIGNMENT);
    return walk(arena, &m, parts, n_parts, what, err);
}

tern_status tern_model_size(const tern_source *parts, size_t n_parts, tern_model_parts what,
                            size_t *need, tern_error *err)
{
    tern_status status = check_sources(parts, n_parts, what, err);
    if (status)
        return status;
    struct tern_arena arena = tern_arena_measure();
    struct tern_scan scan = {.io = false};
    status = measure(&arena, &scan, parts, n_parts, what, err);
    *need = status ? 0 : arena.used;
    return status;
}

tern_status tern_model_init(tern_memory mem, const tern_source *parts, size_t n_parts,
                            tern_model_parts what, tern_model **out, tern_error *err)
{
    *out = NULL;
    tern_status status = check_sources(parts, n_parts, what, err);
    if (status)
        return status;
    if (!mem.data || (uintptr_t)mem.data % ALIGNMENT)
        return tern_fail(err, TERN_BAD_ARGUMENT, "model arena: its start must be aligned to %u",
                         (uint64_t)ALIGNMENT);
    struct tern_arena arena = tern_arena_over(mem.data, mem.size);
    struct tern_model *m = tern_carve(&arena, 1, sizeof *m, ALIGNMENT);
    if (!m)
        return tern_fail(err, TERN_NO_MEMORY, "model arena: %u bytes given, a model has %u at "
                         "least", (uint64_t)mem.size, (uint64_t)sizeof *m);
    status = walk(&arena, m, parts, n_parts, what, err);
    if (status)
        return status;
    m->memory_bytes = arena.used;
    *out = m;
    return TERN_OK;
}
