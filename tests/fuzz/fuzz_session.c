/* fuzz_session.c: a session that lies: words of it are overwritten as the input says, it is cut,
 * its hashes are made right again; it is read, taken back, and continued. What is refused says why
 * and leaves nothing behind; what is taken back runs to its end, whatever its keys and values. */
#include "runtime/hash.h"
#include "runtime/saved.h"
#include "tests/backend/trace.h"
#include "tests/fuzz/byte_model.h"
#include "tests/fuzz/script.h"
#include "tests/unit/open_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_CHANGES = 16, PAGE = 4096, N_TOKENS = 40, N_CTX = 64 };

struct file { unsigned char *bytes; size_t size; };
struct engine { tern_memory arenas[TERN_N_ARENAS]; tern_engine *e; };

static const tern_model *model_of(bool windowed)
{
    static struct opened *models[2];
    struct opened **o = &models[windowed];
    if (!*o) {
        struct gguf_writer w = byte_model(windowed);
        *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
        gw_free(&w);
        require((*o)->model);
    }
    return (*o)->model;
}

static struct engine open_engine(bool windowed, uint8_t how)
{
    struct engine r = {.e = NULL};
    tern_plan plan;
    const tern_backend *cpu = tern_backend_find("cpu");
    const tern_limits limits = {.n_ctx = N_CTX, .n_seqs = 2, .chunk = 16, .n_kv_tokens = 80,
                                .k_type = (tern_kv_type)(how & 3),
                                .v_type = (tern_kv_type)(how >> 2 & 3)};
    require(tern_plan_make(model_of(windowed), cpu, &limits, &plan, NULL) == TERN_OK);
    for (int i = 1; i < TERN_N_ARENAS; i++) {
        const size_t n = plan.arenas[i].bytes;
        r.arenas[i] = (tern_memory){aligned_alloc(PAGE, (n + PAGE - 1) / PAGE * PAGE + PAGE), n};
        require(r.arenas[i].data);
        memset(r.arenas[i].data, 0xa5, n);
    }
    require(tern_engine_init(&plan, r.arenas, model_of(windowed), cpu, NULL, &r.e, NULL) ==
            TERN_OK);
    while (tern_engine_load(r.e, 1 << 20, NULL, NULL) == TERN_AGAIN)
        ;
    return r;
}

static void close_engine(struct engine *r)
{
    tern_engine_close(r->e);
    for (int i = 1; i < TERN_N_ARENAS; i++)
        free(r->arenas[i].data);
}

static tern_seq open_seq(tern_engine *e)
{
    tern_seq_options o = {.max_tokens = 3};
    tern_seq seq;
    tern_sampling_default(&o.sampling);
    require(tern_seq_open(e, &o, &seq) == TERN_OK);
    return seq;
}

static void run(tern_engine *e)
{
    tern_event events[4];
    size_t n;
    tern_status status;
    int left = 1000;
    do
        status = tern_step(e, events, 4, &n);
    while (status == TERN_OK && --left);
    require(status == TERN_AGAIN);
    require(!trace_check_kv(e));
}

static bool write_file(void *self, uint64_t offset, const void *src, size_t n)
{
    struct file *f = self;
    require(offset <= f->size && n <= f->size - offset);
    memcpy(f->bytes + offset, src, n);
    return true;
}

static tern_memory scratch_of(tern_engine *e)
{
    uint64_t none;
    tern_memory m;
    require(tern_saved_size(e, 0, 0, &none, &m.size) == TERN_OK);
    m.data = aligned_alloc(64, (m.size + 63) / 64 * 64);
    require(m.data);
    return m;
}

static struct file make_base(bool windowed, uint8_t how)
{
    struct engine r = open_engine(windowed, how);
    tern_token tokens[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = 50 + i * 7 % 200;
    const tern_seq seq = open_seq(r.e);
    require(tern_seq_feed(r.e, seq, tokens, N_TOKENS) == TERN_OK);
    run(r.e);
    uint64_t bytes;
    size_t unused;
    require(tern_saved_size(r.e, seq, 5, &bytes, &unused) == TERN_OK);
    struct file f = {exactly(bytes), bytes};
    const tern_memory scratch = scratch_of(r.e);
    require(tern_saved_write(r.e, seq, (tern_bytes){"[{}]\n", 5}, scratch,
                             &(tern_sink){write_file, &f}) == TERN_OK);
    free(scratch.data);
    close_engine(&r);
    return f;
}

/* A place in the header, in tokens and note, or in a block. */
static size_t place_of(const struct file *f, struct script *in)
{
    const struct tern_saved_head *h = (const struct tern_saved_head *)f->bytes;
    const unsigned part = take(in) % 4;
    const size_t at = (size_t)take(in) << 8 | take(in), head = (size_t)h->head_bytes;
    if (part < 2)
        return at % sizeof *h;
    return part == 2 ? sizeof *h + at % (head - sizeof *h) : head + at % (f->size - head);
}

static struct file altered(struct script *in, bool windowed, uint8_t how)
{
    static struct file bases[2][16];
    struct file *base = &bases[windowed][how & 15];
    if (!base->bytes)
        *base = make_base(windowed, how);
    struct file f = {exactly(base->size), base->size};
    memcpy(f.bytes, base->bytes, f.size);
    for (unsigned n = take(in) % MOST_CHANGES; n; n--) {
        const size_t at = place_of(base, in), width = 1u << take(in) % 4;
        uint64_t value = take_u32(in);
        value = width == 8 ? value << 32 | take_u32(in) : value;
        for (size_t k = 0; k < width && at + k < f.size; k++)
            f.bytes[at + k] = (unsigned char)(value >> 8 * k);
    }
    struct tern_saved_head *h = (struct tern_saved_head *)f.bytes;
    const uint8_t seal = take(in);
    if (seal % 16 && h->head_bytes <= f.size) { /* as whoever alters it on purpose would */
        h->tail_hash = tern_hash_of(f.bytes + h->head_bytes, f.size - (size_t)h->head_bytes);
        h->head_hash = 0;
        h->head_hash = tern_hash_of(f.bytes, (size_t)h->head_bytes);
    }
    if (seal >= 240) { /* cut */
        f.size = ((size_t)take(in) << 8 | take(in)) % (f.size + 1);
        unsigned char *cut = exactly(f.size);
        memcpy(cut, f.bytes, f.size);
        free(f.bytes);
        f.bytes = cut;
    }
    return f;
}

static void check_info(const tern_source *source)
{
    tern_saved_info info;
    tern_error err = {0};
    if (tern_saved_read(source, &info, &err)) {
        require(err.text[0]);
        return;
    }
    require(info.file_bytes <= source->size && info.n_computed <= info.n_tokens);
    require(info.tokens_at + 4ull * info.n_tokens <= info.note_at);
    require(info.note_bytes <= source->size && info.note_at <= source->size - info.note_bytes);
    require(memchr(info.model, 0, sizeof info.model));
}

/* Taken back into one sequence, continued, and found by another. */
static void use(struct engine *r, const tern_source *source, struct script *in)
{
    static const tern_token more[] = {60, 61, 62};
    const tern_memory scratch = scratch_of(r->e);
    const tern_seq a = open_seq(r->e), b = open_seq(r->e);
    const uint8_t what = take(in);
    tern_seq_info info;
    if (what & 1) {
        require(tern_seq_feed(r->e, b, more, 1 + what % 3) == TERN_OK);
        if (what & 2)
            run(r->e);
    }
    const tern_status status = tern_saved_restore(r->e, a, source, scratch);
    require(tern_seq_describe(r->e, a, &info) == TERN_OK);
    require(status == TERN_OK || info.n_tokens == 0);
    require(status == TERN_OK || status == TERN_AGAIN || tern_engine_error(r->e)->text[0]);
    require(!trace_check_kv(r->e));
    tern_engine_clear_error(r->e);
    if (info.n_tokens && info.n_tokens < N_CTX - 4)
        require(tern_seq_feed(r->e, a, more, 3) == TERN_OK);
    run(r->e);
    tern_seq_close(r->e, a);
    const tern_seq c = open_seq(r->e);
    (void)!tern_saved_restore(r->e, c, source, scratch);
    tern_engine_clear_error(r->e);
    require(!trace_check_kv(r->e));
    free(scratch.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char window[TERN_SOURCE_WINDOW];
    struct script in = {data, size};
    check_info(&(tern_source){.base = data, .size = size}); /* as it is */
    const uint8_t which = take(&in), how = take(&in);
    struct file f = altered(&in, which & 1, how);
    struct opened_part part = {.bytes = f.bytes, .size = f.size,
                               .reads_left = which & 4 ? take(&in) : 1L << 40};
    tern_source source = {.base = f.bytes, .size = f.size};
    if (which & 2)
        source = (tern_source){.size = f.size, .read = opened_read, .self = &part,
                               .window = {window, sizeof window}};
    check_info(&source);
    /* Another model or types now and then: hashes of models are made right by nobody. */
    struct engine r = open_engine((which & 1) ^ (which >= 250), which >= 245 ? how + 1 : how);
    use(&r, &source, &in);
    close_engine(&r);
    free(f.bytes);
    return 0;
}
