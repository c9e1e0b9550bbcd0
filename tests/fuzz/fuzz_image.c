/* fuzz_image.c: an image that lies: words of it are overwritten as the input says, its hash is
 * made right again, and all that opens is used: described, tokenised with, and run. */
#include "runtime/hash.h"
#include "runtime/image.h"
#include "tests/fuzz/script.h"
#include "tests/unit/open_model.h"
#include "tests/unit/tiny_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_BASES = 3, MOST_CHANGES = 16, PAGE = 4096 };

struct image { unsigned char *bytes; size_t size; };

static bool write_image(void *self, uint64_t offset, const void *src, size_t n)
{
    struct image *i = self;
    memcpy(i->bytes + offset, src, n);
    return true;
}

static void add_merges(struct gguf_writer *w)
{
    gw_text(w, "tokenizer.ggml.pre", "default");
    gw_array(w, "tokenizer.ggml.merges", TERN_META_STRING, 2);
    gw_put_text(&w->keys, "a b");
    gw_put_text(&w->keys, "a a");
}

/* The images that are altered: SentencePiece, byte-level BPE, windows and more norms. */
static struct image make_base(unsigned which)
{
    struct tiny t = tiny_of(which == 0 ? "llama" : which == 1 ? "qwen2" : "gemma3");
    if (which == 1) {
        t.tokenizer = "gpt2";
        t.more = add_merges;
    }
    struct gguf_writer w = tiny_make(&t);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
    require(o->status == TERN_OK);
    uint64_t bytes;
    size_t scratch;
    require(tern_image_size(o->model, &bytes, &scratch, NULL) == TERN_OK);
    struct image i = {aligned_alloc(64, (bytes + 63) / 64 * 64), bytes};
    void *mem = aligned_alloc(64, (scratch + 63) / 64 * 64);
    require(i.bytes && mem);
    require(tern_image_write(o->model, 1, (tern_memory){mem, scratch},
                             &(tern_sink){write_image, &i}, NULL) == TERN_OK);
    free(mem);
    open_close(o);
    gw_free(&w);
    return i;
}

/* A place in the header, in a section of the head, or in a table: those matter, not weights. */
static size_t place_of(const struct image *i, struct script *in)
{
    const struct tern_image_head *h = (const struct tern_image_head *)i->bytes;
    const unsigned part = take(in) % (TERN_IMAGE_N_PARTS + 1);
    const size_t at = (size_t)take(in) << 8 | take(in);
    if (part == TERN_IMAGE_N_PARTS || !h->sections[part].bytes)
        return at % sizeof *h;
    return h->sections[part].offset + at % h->sections[part].bytes;
}

static struct image altered(struct script *in)
{
    static struct image bases[N_BASES];
    const unsigned which = take(in) % N_BASES;
    if (!bases[which].bytes)
        bases[which] = make_base(which);
    const struct image *base = &bases[which];
    struct image i = {aligned_alloc(64, (base->size + 63) / 64 * 64), base->size};
    require(i.bytes);
    memcpy(i.bytes, base->bytes, i.size);
    for (unsigned n = take(in) % MOST_CHANGES; n; n--) {
        const size_t at = place_of(base, in), width = 1u << take(in) % 4;
        uint64_t value = take_u32(in);
        value = width == 8 ? value << 32 | take_u32(in) : value;
        for (size_t k = 0; k < width && at + k < i.size; k++)
            i.bytes[at + k] = (unsigned char)(value >> 8 * k);
    }
    struct tern_image_head *h = (struct tern_image_head *)i.bytes;
    if (take(in) % 16) { /* as whoever alters it on purpose would */
        h->head_hash = 0;
        h->head_hash = h->head_bytes <= i.size ? tern_hash_of(h, (size_t)h->head_bytes) : 0;
    }
    return i;
}

static void use_text(const tern_model *m, struct script *in)
{
    char text[256];
    size_t size = 0, n = 0;
    while (in->n && size < sizeof text)
        text[size++] = (char)take(in);
    const size_t need = tern_tokenize_scratch(m, size), most = tern_tokenize_most(m, size);
    const tern_memory scratch = {exactly(need), need};
    tern_token *ids = exactly(most * sizeof *ids);
    for (uint32_t flags = 0; flags < 4; flags++) {
        tern_error err = {0};
        const tern_status status =
            tern_tokenize(m, (tern_text){text, size}, flags, scratch, ids, most, &n, &err);
        require(status == TERN_OK || status == TERN_TOO_SMALL);
        for (size_t i = 0; status == TERN_OK && i < n; i++) {
            tern_piece piece;
            require(tern_token_piece(m, ids[i], &piece) == TERN_OK);
        }
        if (status == TERN_OK)
            check_detokenizer(m, ids, n, flags & TERN_TOKENIZE_SPECIAL);
    }
    tern_model_info info;
    tern_model_describe(m, &info);
    for (tern_token id = 0; id < 64 && (uint32_t)id < info.n_vocab; id++)
        check_detokenizer(m, &id, 1, true);
    free(scratch.data);
    free(ids);
}

/* Two tokens through the engine, if it is a small one. */
static void use_engine(const tern_model *m)
{
    enum { MOST_BYTES = 8 << 20 };
    const tern_backend *cpu = tern_backend_at(0);
    const tern_limits limits = {.n_ctx = 32, .chunk = 4};
    tern_plan plan;
    tern_memory arenas[TERN_N_ARENAS];
    tern_engine *e;
    tern_seq seq;
    const tern_row rows[2] = {{0, 1, true}, {0, 2, true}};
    tern_error err = {0};
    if (tern_plan_make(m, cpu, &limits, &plan, &err) != TERN_OK || plan.bytes > MOST_BYTES)
        return;
    require(plan.arenas[TERN_ARENA_WEIGHTS].bytes == 0);
    for (int i = 0; i < TERN_N_ARENAS; i++) {
        const size_t n = plan.arenas[i].bytes;
        arenas[i] = (tern_memory){aligned_alloc(4096, (n + PAGE - 1) / PAGE * PAGE + PAGE), n};
        require(arenas[i].data);
    }
    if (tern_engine_init(&plan, arenas, m, cpu, NULL, &e, &err) == TERN_OK) {
        require(tern_engine_load(e, 1, NULL, NULL) == TERN_OK);
        tern_seq_options options = {.max_tokens = 1};
        tern_sampling_default(&options.sampling);
        require(tern_seq_open(e, &options, &seq) == TERN_OK);
        for (int i = 0; i < 2; i++) {
            const tern_row row = {seq, rows[i].token, true};
            (void)!tern_decode(e, &row, 1);
        }
        tern_engine_close(e);
    }
    for (int i = 0; i < TERN_N_ARENAS; i++)
        free(arenas[i].data);
}

static void open_and_use(const struct image *i, tern_model_parts what, struct script in)
{
    const tern_source source = {.base = i->bytes, .size = i->size};
    size_t need;
    tern_model *m = NULL;
    tern_error err = {0};
    tern_status status = tern_model_size(&source, 1, what, &need, &err);
    if (status == TERN_OK) {
        const tern_memory mem = {exactly(need), need};
        status = tern_model_init(mem, &source, 1, what, &m, &err);
        require((status == TERN_OK) == (m != NULL));
        if (m && what != TERN_MODEL_HEADER)
            use_text(m, &in);
        if (m && what == TERN_MODEL_WHOLE)
            use_engine(m);
        free(mem.data);
    }
    require(status == TERN_OK || err.text[0]);
    err = (tern_error){0};
    (void)!tern_image_verify(&source, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script in = {data, size};
    struct image i = altered(&in);
    open_and_use(&i, TERN_MODEL_WHOLE, in);
    open_and_use(&i, TERN_MODEL_TEXT, in);
    open_and_use(&i, TERN_MODEL_HEADER, in);
    free(i.bytes);
    return 0;
}
