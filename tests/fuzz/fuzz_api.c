/* fuzz_api.c: an input is a script of calls on an engine over a small model.
 *
 * Its first bytes choose the model and the limits, the rest are calls with their arguments:
 * right ones, absurd ones, and handles that are stale. Held to: no call crashes or reads and
 * writes beside what it was given; a call that is refused says why; counts stay within limits;
 * text is whole UTF-8 and holds no stop string; everything that runs comes to an end; blocks add
 * up. Arenas are of the exact sizes. */
#include "tests/backend/trace.h"
#include "tests/fuzz/byte_model.h"
#include "tests/fuzz/script.h"
#include "tests/unit/open_model.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ARENAS = 1 << 22, MOST_CALLS = 96, MOST_STEPS = 256, N_HANDLES = 6, TEXT = 4096 };

/* What is known of a handle: the text since its run began, unless it was disturbed. */
struct known { tern_seq seq; char text[TEXT]; size_t n; bool disturbed; char stop[8]; };

struct fuzz {
    struct script in;
    const tern_model *model;
    tern_limits limits;
    tern_memory arenas[TERN_N_ARENAS];
    tern_engine *engine;
    struct known known[N_HANDLES];
    uint32_t n_steps;
};

/* --- the engine --- */

static const tern_model *model_of(bool windowed)
{
    static struct opened *models[2];
    struct opened **o = &models[windowed];
    if (!*o) {
        struct gguf_writer w = byte_model(windowed);
        *o = open_bytes(windowed ? OPEN_READ : OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data,
                        w.file.n);
        gw_free(&w);
        require((*o)->model);
    }
    return (*o)->model;
}

static tern_limits take_limits(struct script *in)
{
    const uint8_t how = take(in);
    tern_limits l = {.n_ctx = 1 + take(in) % 48, .n_seqs = 1 + take(in) % 4};
    l.chunk = 1 + take(in) % l.n_ctx;
    l.n_logit_rows = 1 + take(in) % l.chunk;
    l.n_logprobs = take(in) % 5;
    l.hidden = l.n_ctx & 1;
    l.n_kv_tokens = how & 1 ? l.n_ctx + take(in) % 64 : 0;
    l.n_stop_bytes = how & 2 ? 1 + take(in) % 16 : 0;
    l.k_type = (tern_kv_type)(how >> 2 & 3);
    l.v_type = (tern_kv_type)(how >> 4 & 3);
    l.exact = how & 64;
    l.no_kv_sharing = how & 128;
    if (take(in) == 255) { /* the whole range */
        l.n_ctx = take_u32(in);
        l.n_seqs = take_u32(in);
        l.n_kv_tokens = take_u32(in);
        l.chunk = take_u32(in);
    }
    return l;
}

static bool open_engine(struct fuzz *f)
{
    tern_plan plan;
    tern_error err = {0};
    const tern_backend *cpu = tern_backend_find("cpu");
    const tern_limits asked = take_limits(&f->in);
    const tern_status status = tern_plan_make(f->model, cpu, &asked, &plan, &err);
    require(status == TERN_OK || err.text[0]);
    if (status || plan.bytes > MOST_ARENAS)
        return false;
    f->limits = plan.limits;
    for (uint32_t i = 1; i < TERN_N_ARENAS; i++) {
        tern_memory *a = &f->arenas[i];
        a->size = plan.arenas[i].bytes;
        a->data = aligned_alloc(plan.arenas[i].align, a->size ? a->size : plan.arenas[i].align);
        require(a->data);
        memset(a->data, 0xa5, a->size);
    }
    static const char *const variants[] = {"reference", NULL};
    const tern_host host = {.cpu = variants[take(&f->in) & 1]};
    require(tern_engine_init(&plan, f->arenas, f->model, cpu, &host, &f->engine, &err) == TERN_OK);
    size_t n;
    require(tern_step(f->engine, NULL, 0, &n) == TERN_BAD_ARGUMENT); /* nothing is loaded */
    tern_engine_clear_error(f->engine);
    const size_t budget = 1 + 256u * take(&f->in);
    tern_status loaded;
    do
        loaded = tern_engine_load(f->engine, budget, NULL, NULL);
    while (loaded == TERN_AGAIN);
    require(loaded == TERN_OK);
    return true;
}

/* --- answers --- */

/* A refusal has a text, and the text is taken away again. */
static tern_status answered(struct fuzz *f, tern_status status)
{
    require(status == TERN_OK || status == TERN_AGAIN || status == TERN_BAD_ARGUMENT);
    if (status == TERN_BAD_ARGUMENT) {
        require(tern_engine_error(f->engine)->status == TERN_BAD_ARGUMENT);
        require(tern_engine_error(f->engine)->text[0]);
        tern_engine_clear_error(f->engine);
    }
    return status;
}

static struct known *find(struct fuzz *f, tern_seq seq)
{
    for (int i = 0; i < N_HANDLES; i++)
        if (f->known[i].seq == seq)
            return &f->known[i];
    return NULL;
}

/* A handle, open, closed or of nothing. */
static tern_seq take_seq(struct fuzz *f)
{
    const uint8_t u = take(&f->in);
    if (u < 240)
        return f->known[u % N_HANDLES].seq;
    return u < 250 ? (tern_seq)(u - 240) << 10 : take_u32(&f->in);
}

static void keep(struct fuzz *f, tern_seq seq, const struct known *like)
{
    struct known *k = &f->known[take(&f->in) % N_HANDLES];
    tern_seq_close(f->engine, k->seq);
    *k = like ? *like : (struct known){0};
    k->seq = seq;
}

static void check_counts(struct fuzz *f)
{
    for (int i = 0; i < N_HANDLES; i++) {
        tern_seq_info info;
        if (tern_seq_describe(f->engine, f->known[i].seq, &info))
            continue;
        require(info.n_tokens <= f->limits.n_ctx && info.n_computed <= info.n_tokens);
        require(info.n_cached <= info.n_computed && info.n_generated <= f->limits.n_ctx);
    }
    require(!trace_check_kv(f->engine));
}

/* --- events --- */

static void check_text(struct known *k, const tern_event *event)
{
    if (k->n + event->text.size > TEXT)
        k->disturbed = true;
    if (!k->disturbed) {
        memcpy(k->text + k->n, event->text.data, event->text.size);
        k->n += event->text.size;
        const size_t n = strlen(k->stop);
        for (size_t i = 0; n && i + n <= k->n; i++)
            require(memcmp(k->text + i, k->stop, n) != 0);
    }
    if (event->kind == TERN_EVENT_DONE) {
        k->n = 0;
        k->disturbed = false;
    }
}

static void check_event(struct fuzz *f, const tern_event *event)
{
    tern_seq_info info;
    require(tern_seq_describe(f->engine, event->seq, &info) == TERN_OK);
    require(event->kind <= TERN_EVENT_DONE && event->position <= f->limits.n_ctx);
    require(event->token >= (event->kind == TERN_EVENT_DONE ? -1 : 0) && event->token < BYTE_VOCAB);
    require(is_utf8(event->text.data, event->text.size));
    require(event->n_logprobs <= f->limits.n_logprobs);
    require(!(event->logprob > 0));
    for (uint32_t i = 0; i < event->n_logprobs; i++) {
        require(event->logprobs[i].token >= 0 && event->logprobs[i].token < BYTE_VOCAB);
        require(event->logprobs[i].logprob <= (i ? event->logprobs[i - 1].logprob : 0));
    }
    if (event->kind == TERN_EVENT_DONE) {
        require(event->stop > TERN_STOP_NONE && event->stop <= TERN_STOP_ERROR);
        require((event->stop == TERN_STOP_ERROR) == (event->error && event->error[0]));
    }
    require((event->kind == TERN_EVENT_HIDDEN) == (event->hidden != NULL));
    static volatile float seen; /* each of them can be read */
    for (uint32_t i = 0; event->hidden && i < f->model->program.n_embd; i++)
        seen = event->hidden[i];
    (void)seen;
    struct known *k = find(f, event->seq);
    require(k);
    check_text(k, event);
}

static tern_status step(struct fuzz *f, size_t cap)
{
    tern_event events[4];
    size_t n = 99;
    f->n_steps++;
    const tern_status status = answered(f, tern_step(f->engine, events, cap, &n));
    require(n <= cap && status != TERN_BAD_ARGUMENT && (status == TERN_OK || n == 0));
    for (size_t i = 0; i < n; i++)
        check_event(f, &events[i]);
    return status;
}

/* --- calls --- */

static float take_float(struct script *in)
{
    static const float odd[] = {0, 1, -1, 0.5f, 1e-30f, -1e30f, 3e38f, INFINITY, -INFINITY, NAN, 2};
    const uint8_t u = take(in);
    return u < 44 ? odd[u % 11] : (float)u / 128;
}

static tern_token take_token(struct script *in)
{
    const uint8_t u = take(in);
    return u < 250 ? u + (take(in) & 15) : u < 254 ? BYTE_VOCAB - 1 : (tern_token)take_u32(in);
}

static void take_sampling(struct script *in, tern_sampling *s, tern_bias biases[4])
{
    tern_sampling_default(s);
    const uint8_t which = take(in);
    if (which & 1)
        s->temperature = take_float(in);
    if (which & 2)
        s->top_p = take_float(in), s->min_p = take_float(in), s->typical_p = take_float(in);
    if (which & 4)
        s->repeat_penalty = take_float(in), s->repeat_last_n = (int32_t)take_u32(in);
    if (which & 8)
        s->presence_penalty = take_float(in), s->frequency_penalty = take_float(in);
    if (which & 16)
        s->top_k = (int32_t)take_u32(in);
    if (which & 32) {
        s->n_biases = take(in) % 5;
        for (uint32_t i = 0; i < s->n_biases; i++)
            biases[i] = (tern_bias){take_token(in), take_float(in)};
        s->biases = biases;
    }
    if (which & 64)
        s->n_biases = take_u32(in);
    s->seed = which >> 7;
}

static void call_open(struct fuzz *f)
{
    struct script *in = &f->in;
    tern_seq_options o = {0};
    tern_bias biases[4];
    char stop[8] = {0};
    take_sampling(in, &o.sampling, biases);
    if (o.sampling.n_biases > 4) /* refused before they are read */
        o.sampling.n_biases |= 1u << 20;
    const uint8_t how = take(in), counts = take(in);
    for (size_t i = 0; i < (how & 7); i++)
        stop[i] = (char)(take(in) % 127 + 1);
    const tern_text stops[] = {{stop, strlen(stop)}};
    o.stops = how & 7 ? stops : NULL;
    o.n_stops = how & 7 ? 1 : how == 248 ? UINT32_MAX : 0;
    o.ignore_eos = how & 8;
    o.special = how & 16;
    o.no_kv_sharing = how & 32;
    o.prefill_only = how & 64;
    o.hidden = (tern_hidden)((how & 96) == 96 ? counts % 4 : 0);
    o.min_tokens = how & 7 ? 0 : counts >> 6; /* stop strings would be let through */
    o.n_early = how & 128 ? counts & 3 : 0;
    o.max_tokens = how & 128 ? 1 + counts % 16 : 0;
    o.n_logprobs = counts & 3;
    o.n_prompt_logprobs = counts == 255 ? INT32_MIN : (int32_t)(counts >> 2 & 7) - 2;
    const tern_token think_end[] = {how & 31, counts & 31, take_token(in)};
    o.think_close = (tern_text){"a", counts & 32 ? 1 : 0};
    o.think_limited = counts & 64;
    o.thinks = counts & 128;
    o.think_tokens = how & 7;
    o.think_end = think_end;
    o.n_think_end = how >> 3 & 3;
    tern_seq seq = 99;
    const tern_status status = answered(f, tern_seq_open(f->engine, &o, &seq));
    require((status == TERN_OK) == (seq != 0));
    if (status == TERN_OK) {
        struct known fresh = {0};
        memcpy(fresh.stop, stop, sizeof stop);
        keep(f, seq, &fresh);
    }
}

static void call_feed(struct fuzz *f)
{
    tern_token tokens[32];
    const tern_seq seq = take_seq(f);
    const size_t n = take(&f->in) % 33;
    for (size_t i = 0; i < n; i++)
        tokens[i] = take_token(&f->in);
    (void)answered(f, tern_seq_feed(f->engine, seq, take(&f->in) == 255 ? NULL : tokens, n));
}

static void call_fork(struct fuzz *f)
{
    tern_seq to = 99;
    const struct known *from = find(f, take_seq(f));
    const tern_seq seq = from ? from->seq : 12345;
    struct known copy = from ? *from : (struct known){0};
    const tern_status status = answered(f, tern_seq_fork(f->engine, seq, take(&f->in), &to));
    copy.disturbed = true; /* events under way are the older one's alone */
    if (status == TERN_OK)
        keep(f, to, &copy);
}

static void call_trim(struct fuzz *f)
{
    struct known *k = find(f, take_seq(f));
    const uint8_t n = take(&f->in);
    if (answered(f, tern_seq_trim(f->engine, k ? k->seq : 77, n == 255 ? UINT32_MAX : n % 50)) ==
        TERN_OK)
        k->disturbed = true;
}

static void call_decode(struct fuzz *f)
{
    tern_row rows[24];
    const size_t n = take(&f->in) % 25;
    tern_seq seq = take_seq(f);
    for (size_t i = 0; i < n; i++) {
        const uint8_t how = take(&f->in);
        if (how >= 224)
            seq = take_seq(f);
        rows[i] = (tern_row){seq, take_token(&f->in), how & 1};
    }
    if (answered(f, tern_decode(f->engine, n ? rows : NULL, n)) != TERN_OK)
        return;
    size_t n_logits = 0;
    for (size_t i = 0; i < n; i++)
        n_logits += rows[i].want_logits;
    require(!n_logits == !tern_logits(f->engine, 0) && !tern_logits(f->engine, n_logits));
    tern_token token = -1;
    for (size_t i = 0; i < n_logits; i++)
        if (tern_sample(f->engine, seq, tern_logits(f->engine, i), &token) == TERN_OK)
            require(token >= 0 && token < BYTE_VOCAB);
    tern_engine_clear_error(f->engine);
}

/* Logits of the caller's own. */
static void call_sample(struct fuzz *f)
{
    float logits[BYTE_VOCAB];
    const uint8_t step = take(&f->in);
    for (int i = 0; i < BYTE_VOCAB; i++)
        logits[i] = (float)(i * step % 37);
    for (int i = take(&f->in) % 16; i-- > 0;)
        logits[take(&f->in)] = take_float(&f->in);
    tern_token token = -1;
    if (tern_sample(f->engine, take_seq(f), take(&f->in) == 255 ? NULL : logits, &token) == TERN_OK)
        require(token >= 0 && token < BYTE_VOCAB);
    else
        require(tern_engine_error(f->engine)->text[0]);
    tern_engine_clear_error(f->engine);
}

static void call(struct fuzz *f)
{
    const uint8_t which = take(&f->in);
    switch (which % 16) {
    case 0: case 1: call_open(f); break;
    case 2: case 3: call_feed(f); break;
    case 4: call_fork(f); break;
    case 5: call_trim(f); break;
    case 6: tern_seq_cancel(f->engine, take_seq(f)); break;
    case 7: tern_seq_close(f->engine, take_seq(f)); break;
    case 8: call_decode(f); break;
    case 9: call_sample(f); break;
    case 10: check_tokenizer(&f->in, f->model, BYTE_VOCAB); break;
    default:
        for (int i = which / 16; i >= 0 && f->n_steps < MOST_STEPS; i--)
            (void)step(f, which % 16 - 11);
        break;
    }
    check_counts(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    f->in = (struct script){data, size};
    f->model = model_of(take(&f->in) & 1);
    if (open_engine(f)) {
        for (int i = 0; i < MOST_CALLS && f->in.n; i++)
            call(f);
        /* All that runs ends: within its context, an event or a step of a prompt at a time. */
        for (int i = 0; size % 2 && step(f, 1) != TERN_AGAIN; i++)
            require(i < 4096);
        for (int i = 0; i < N_HANDLES; i++)
            tern_seq_close(f->engine, f->known[i].seq);
        check_counts(f);
        tern_engine_close(f->engine);
    }
    for (uint32_t i = 1; i < TERN_N_ARENAS; i++)
        free(f->arenas[i].data);
    free(f);
    return 0;
}
