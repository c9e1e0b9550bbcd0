/* saved_rig.h: sessions in memory, and engines of the byte model that make and take them. */
#ifndef TERN_TEST_SAVED_RIG_H
#define TERN_TEST_SAVED_RIG_H

#include <stdlib.h>
#include <string.h>

#include "runtime/hash.h"
#include "runtime/saved.h"
#include "tests/backend/trace.h"
#include "tests/fuzz/byte_model.h"
#include "tests/unit/open_model.h"

/* --- a session in memory --- */

struct file {
    unsigned char *bytes;
    uint64_t size, written;
    long writes_left;
};

static inline bool write_file(void *self, uint64_t offset, const void *src, size_t n)
{
    struct file *f = self;
    if (f->writes_left-- <= 0)
        return false;
    assert_true(offset + n <= f->size);
    memcpy(f->bytes + offset, src, n);
    f->written += n;
    return true;
}

static inline void scratch_of(tern_engine *e, tern_memory *out)
{
    uint64_t none;
    assert_int_equal(tern_saved_size(e, 0, 0, &none, &out->size), TERN_OK);
    out->data = aligned_alloc(64, (out->size + 63) / 64 * 64);
    assert_non_null(out->data);
}

static inline tern_status try_save(tern_engine *e, tern_seq seq, tern_bytes note, long writes,
                            struct file *f)
{
    size_t scratch_bytes;
    tern_memory scratch;
    *f = (struct file){.writes_left = writes};
    const tern_status status = tern_saved_size(e, seq, note.size, &f->size, &scratch_bytes);
    if (status)
        return status;
    f->bytes = malloc(f->size);
    assert_non_null(f->bytes);
    memset(f->bytes, 0xa5, f->size);
    scratch_of(e, &scratch);
    assert_int_equal(scratch.size, scratch_bytes);
    const tern_status written = tern_saved_write(e, seq, note, scratch,
                                                 &(tern_sink){write_file, f});
    free(scratch.data);
    return written;
}

static inline struct file save(tern_engine *e, tern_seq seq)
{
    struct file f;
    assert_int_equal(try_save(e, seq, (tern_bytes){"[\"note\"]", 8}, 1L << 40, &f), TERN_OK);
    assert_int_equal(f.written, f.size); /* each byte once */
    return f;
}

static inline tern_status try_restore(tern_engine *e, tern_seq seq, const struct file *f)
{
    tern_memory scratch;
    scratch_of(e, &scratch);
    const tern_source source = {.base = f->bytes, .size = f->size};
    const tern_status status = tern_saved_restore(e, seq, &source, scratch);
    free(scratch.data);
    return status;
}

static inline tern_saved_info read_info(const struct file *f)
{
    tern_saved_info info;
    tern_error err = {0};
    assert_int_equal(tern_saved_read(&(tern_source){.base = f->bytes, .size = f->size}, &info,
                                     &err), TERN_OK);
    return info;
}

/* The hash as whoever alters a head on purpose would make it. */
static inline void seal(struct file *f)
{
    struct tern_saved_head *h = (struct tern_saved_head *)f->bytes;
    if (h->head_bytes > f->size)
        return;
    h->head_hash = 0;
    h->head_hash = tern_hash_of(f->bytes, (size_t)h->head_bytes);
}

/* --- engines that compute --- */

struct rig {
    tern_plan plan;
    tern_memory arenas[TERN_N_ARENAS];
    tern_engine *engine;
};

static inline const tern_model *model_of(bool windowed)
{
    static struct opened *models[2];
    if (!models[windowed]) {
        struct gguf_writer w = byte_model(windowed);
        models[windowed] = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
        gw_free(&w);
        assert_int_equal(models[windowed]->status, TERN_OK);
    }
    return models[windowed]->model;
}

static inline struct rig *open_rig(const tern_model *model, tern_limits limits)
{
    struct rig *r = calloc(1, sizeof *r);
    const tern_backend *cpu = tern_backend_find("cpu");
    limits.n_ctx = limits.n_ctx ? limits.n_ctx : 96;
    limits.n_logprobs = 3;
    tern_error err = {0};
    assert_int_equal(tern_plan_make(model, cpu, &limits, &r->plan, &err), TERN_OK);
    for (uint32_t i = 1; i < TERN_N_ARENAS; i++) {
        const size_t n = r->plan.arenas[i].bytes;
        r->arenas[i] = (tern_memory){aligned_alloc(4096, (n + 4095) / 4096 * 4096 + 4096), n};
        memset(r->arenas[i].data, 0xa5, n);
    }
    assert_int_equal(tern_engine_init(&r->plan, r->arenas, model, cpu, NULL, &r->engine, &err),
                     TERN_OK);
    while (tern_engine_load(r->engine, 1 << 20, NULL, NULL) == TERN_AGAIN)
        ;
    return r;
}

static inline void close_rig(struct rig *r)
{
    tern_engine_close(r->engine);
    for (uint32_t i = 1; i < TERN_N_ARENAS; i++)
        free(r->arenas[i].data);
    free(r);
}

static inline tern_seq open_seq(tern_engine *e, uint64_t seed, uint64_t stream)
{
    /* Tokens that would end the text, or fill it with what is not finite. */
    static const tern_bias never[] = {{BYTE_NAN_TOKEN, -1e30f}, {BYTE_HUGE_TOKEN, -1e30f},
                                      {2, -1e30f}};
    tern_seq_options o = {.n_logprobs = 3, .max_tokens = 9, .ignore_eos = true};
    tern_sampling_default(&o.sampling);
    o.sampling.temperature = 1.2f;
    o.sampling.repeat_penalty = 1.1f;
    o.sampling.biases = never;
    o.sampling.n_biases = 3;
    o.sampling.seed = seed;
    o.sampling.stream = stream;
    tern_seq seq = 0;
    assert_int_equal(tern_seq_open(e, &o, &seq), TERN_OK);
    return seq;
}

struct answer {
    uint32_t n;
    tern_token tokens[64];
    float logprobs[64][4];
};

static inline struct answer answer_of(tern_engine *e, tern_seq seq, const tern_token *tokens,
                                      size_t n)
{
    struct answer a = {0};
    tern_event events[8];
    size_t got = 0;
    assert_int_equal(tern_seq_feed(e, seq, tokens, n), TERN_OK);
    while (tern_step(e, events, 8, &got) == TERN_OK)
        for (size_t i = 0; i < got; i++)
            if (events[i].kind == TERN_EVENT_TOKEN) {
                a.tokens[a.n] = events[i].token;
                a.logprobs[a.n][3] = events[i].logprob;
                for (int k = 0; k < 3; k++)
                    a.logprobs[a.n][k] = events[i].logprobs[k].logprob;
                a.n++;
            }
    return a;
}

static inline uint32_t n_cached(const tern_engine *e, tern_seq seq)
{
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(e, seq, &info), TERN_OK);
    return info.n_cached;
}

static inline void make_prompt(tern_token *tokens, uint32_t n, uint64_t seed)
{
    struct trace_random r = {seed};
    for (uint32_t i = 0; i < n; i++) {
        tokens[i] = (tern_token)trace_below(&r, BYTE_VOCAB);
        if (tokens[i] == BYTE_NAN_TOKEN || tokens[i] == BYTE_HUGE_TOKEN)
            tokens[i] = 3;
    }
}

static inline struct file small_session(const tern_model *model, tern_limits limits)
{
    tern_token prompt[40];
    make_prompt(prompt, 40, 1);
    struct rig *r = open_rig(model, limits);
    const tern_seq seq = open_seq(r->engine, 7, 3);
    (void)answer_of(r->engine, seq, prompt, 40);
    struct file f = save(r->engine, seq);
    close_rig(r);
    return f;
}

#endif
