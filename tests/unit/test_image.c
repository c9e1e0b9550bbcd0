/* Images: what is built of a GGUF opens to the same model, and nothing else opens at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant/format.h"
#include "runtime/hash.h"
#include "runtime/image.h"
#include "runtime/vocab.h"
#include "tests/unit/open_model.h"
#include "tests/unit/tiny_model.h"

/* --- an image in memory --- */

struct image {
    unsigned char *bytes; /* aligned */
    uint64_t size, written;
    uint64_t fails_at; /* a write that reaches it fails */
};

static bool write_image(void *self, uint64_t offset, const void *src, size_t n)
{
    struct image *i = self;
    if (offset + n > i->fails_at)
        return false;
    assert_true(offset + n <= i->size);
    memcpy(i->bytes + offset, src, n);
    i->written += n;
    return true;
}

static tern_status make(const tern_model *model, struct image *i, uint64_t fails_at,
                        tern_error *err)
{
    size_t scratch = 0;
    *i = (struct image){.fails_at = fails_at};
    const tern_status status = tern_image_size(model, &i->size, &scratch, err);
    if (status)
        return status;
    i->bytes = aligned_alloc(4096, (i->size + 4095) / 4096 * 4096);
    void *mem = aligned_alloc(64, (scratch + 63) / 64 * 64);
    assert_true(i->bytes && mem);
    memset(i->bytes, 0xa5, i->size);
    memset(mem, 0xa5, scratch);
    const tern_sink sink = {write_image, i};
    const tern_status written = tern_image_write(model, 77, (tern_memory){mem, scratch}, &sink,
                                                 err);
    free(mem);
    return written;
}

static void add_merges(struct gguf_writer *w)
{
    gw_text(w, "tokenizer.ggml.pre", "default");
    gw_array(w, "tokenizer.ggml.merges", TERN_META_STRING, 2);
    gw_put_text(&w->keys, "a b");
    gw_put_text(&w->keys, "x y");
}

/* qwen2 has byte-level BPE, the others SentencePiece. */
static struct tiny tiny_for(const char *architecture)
{
    struct tiny t = tiny_of(architecture);
    t.n_ff = 20; /* rows and columns that fill no panel and no vector */
    if (!strcmp(architecture, "qwen2")) {
        t.tokenizer = "gpt2";
        t.more = add_merges;
    }
    return t;
}

static struct image image_of(const char *architecture, enum open_how how)
{
    struct tiny t = tiny_for(architecture);
    struct gguf_writer w = tiny_make(&t);
    struct opened *o = open_bytes(how, TERN_MODEL_WHOLE, w.file.data, w.file.n);
    assert_int_equal(o->status, TERN_OK);
    struct image i;
    tern_error err = {0};
    assert_int_equal(make(o->model, &i, UINT64_MAX, &err), TERN_OK);
    assert_int_equal(i.written, i.size); /* each byte once */
    open_close(o);
    gw_free(&w);
    return i;
}

/* The image as a model; the caller frees what *memory points to. */
static tern_status open_image(const struct image *i, tern_model_parts what, tern_source *source,
                              void **memory, tern_model **out, tern_error *err)
{
    size_t need = 0;
    *source = (tern_source){.base = i->bytes, .size = i->size};
    *memory = NULL;
    *out = NULL;
    *err = (tern_error){0};
    const tern_status status = tern_model_size(source, 1, what, &need, err);
    if (status)
        return status;
    *memory = malloc(need);
    assert_non_null(*memory);
    memset(*memory, 0xa5, need);
    return tern_model_init((tern_memory){*memory, need}, source, 1, what, out, err);
}

static tern_status try_image(const struct image *i, tern_error *err)
{
    tern_source source;
    void *memory;
    tern_model *model;
    const tern_status status = open_image(i, TERN_MODEL_WHOLE, &source, &memory, &model, err);
    assert_true(status == TERN_OK ? model != NULL : model == NULL && err->text[0]);
    free(memory);
    return status;
}

/* The hash as whoever alters a head on purpose would make it. */
static void seal(struct image *i)
{
    struct tern_image_head *h = (struct tern_image_head *)i->bytes;
    h->head_hash = 0;
    h->head_hash = tern_hash_of(h, (size_t)h->head_bytes);
}

/* --- tests --- */

static void hashes_are_those_of_the_specification(void **state)
{
    (void)state;
    unsigned char bytes[101];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    assert_true(tern_hash_of("", 0) == 0xef46db3751d8e999);
    assert_true(tern_hash_of("abc", 3) == 0x44bc2cf5ad770999);
    assert_true(tern_hash_of("xxhash is a fast non-cryptographic hash", 39) ==
                0x1845f095fdda7f2c);
    assert_true(tern_hash_of(bytes, sizeof bytes) == 0xe99038495f85381e);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        struct tern_hash h = tern_hash_begin();
        tern_hash_add(&h, bytes, cut);
        tern_hash_add(&h, bytes + cut, (sizeof bytes - cut) / 2);
        tern_hash_add(&h, bytes + cut + (sizeof bytes - cut) / 2,
                      sizeof bytes - cut - (sizeof bytes - cut) / 2);
        assert_true(tern_hash_end(&h) == 0xe99038495f85381e);
    }
}

static const char *const architectures[] = {"llama", "qwen2", "qwen3", "gemma3"};

static void the_same_model_gives_the_same_bytes_however_it_is_read(void **state)
{
    (void)state;
    for (size_t a = 0; a < 4; a++) {
        struct image i = image_of(architectures[a], OPEN_MAPPED);
        struct image j = image_of(architectures[a], OPEN_READ);
        assert_int_equal(i.size, j.size);
        assert_memory_equal(i.bytes, j.bytes, i.size);
        free(i.bytes);
        free(j.bytes);
    }
}

/* Each weight of the image against the rows of the file. */
static void compare_weights(const tern_model *file, const tern_model *image)
{
    assert_int_equal(file->program.n_weights, image->program.n_weights);
    for (uint32_t i = 0; i < file->program.n_weights; i++) {
        const struct tern_weight *w = &file->program.weights[i];
        const struct tern_tensor *t = &file->tensors[w->tensor];
        const unsigned char *rows = (const unsigned char *)file->parts[0].base + t->offset;
        const unsigned char *there = tern_model_weight(image, i);
        const size_t row = t->bytes / w->n_rows;
        unsigned char back[256];
        assert_int_equal((uintptr_t)there % 64, 0);
        if (!w->matrix) { /* float32, and zeros up to the next 32 */
            assert_memory_equal(there, rows, row);
            for (size_t k = row; k < (w->n_cols + 31) / 32 * 128; k++)
                assert_int_equal(there[k], 0);
            continue;
        }
        for (uint32_t r = 0; r < (w->n_rows + 15) / 16 * 16; r++) {
            static const unsigned char zeros[256];
            assert_true(row <= sizeof back);
            tern_unpack_row(t->type, there + r / 16 * 16 * row, r % 16, w->n_cols, back);
            assert_memory_equal(back, r < w->n_rows ? rows + r * row : zeros, row);
        }
    }
}

static void an_image_holds_what_the_file_held(void **state)
{
    (void)state;
    for (size_t a = 0; a < 4; a++) {
        struct tiny t = tiny_for(architectures[a]);
        struct gguf_writer w = tiny_make(&t);
        struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
        struct image i;
        tern_error err = {0};
        tern_source source;
        void *memory;
        tern_model *m;
        tern_model_info x, y;
        assert_int_equal(make(o->model, &i, UINT64_MAX, &err), TERN_OK);
        assert_int_equal(open_image(&i, TERN_MODEL_WHOLE, &source, &memory, &m, &err), TERN_OK);
        tern_model_describe(o->model, &x);
        tern_model_describe(m, &y);
        assert_true(y.is_image && !x.is_image && y.identity == 77 && y.file_bytes == i.size);
        assert_true(y.n_vocab == x.n_vocab && y.n_ops == x.n_ops && y.bos == x.bos &&
                    y.eos == x.eos && y.n_params == x.n_params &&
                    y.weight_bytes == x.weight_bytes && y.n_tensors == x.n_tensors);
        for (uint32_t k = 0; k < y.n_metadata; k++) {
            tern_metadata p, q;
            char s[200], u[200];
            size_t n, n2;
            assert_int_equal(tern_model_metadata(o->model, k, &p, s, sizeof s, &n), TERN_OK);
            assert_int_equal(tern_model_metadata(m, k, &q, u, sizeof u, &n2), TERN_OK);
            assert_true(n == n2 && !memcmp(s, u, n) && p.count == q.count && p.type == q.type);
        }
        compare_weights(o->model, m);
        assert_true(tern_image_verify(&source, &err) == TERN_OK);
        struct image none; /* m is one already */
        assert_int_equal(make(m, &none, UINT64_MAX, &err), TERN_BAD_ARGUMENT);
        free(memory);
        free(i.bytes);
        open_close(o);
        gw_free(&w);
    }
}

static void ids_come_from_an_image_as_from_its_file(void **state)
{
    (void)state;
    static const char text[] = "ab <s> aab b\xc3\xa4</s>ba";
    for (size_t a = 0; a < 4; a++) {
        struct tiny t = tiny_for(architectures[a]);
        struct gguf_writer w = tiny_make(&t);
        struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
        struct image i = image_of(architectures[a], OPEN_MAPPED);
        tern_error err;
        tern_source source;
        void *memory;
        tern_model *m;
        assert_int_equal(open_image(&i, TERN_MODEL_TEXT, &source, &memory, &m, &err), TERN_OK);
        for (uint32_t flags = 0; flags < 4; flags++) {
            static _Alignas(64) char scratch[1 << 16];
            tern_token x[64], y[64];
            size_t n, k;
            const tern_memory mem = {scratch, sizeof scratch};
            const tern_text s = {text, sizeof text - 1};
            assert_int_equal(tern_tokenize(o->model, s, flags, mem, x, 64, &n, &err), TERN_OK);
            assert_int_equal(tern_tokenize(m, s, flags, mem, y, 64, &k, &err), TERN_OK);
            assert_int_equal(n, k);
            assert_memory_equal(x, y, n * sizeof *x);
        }
        free(memory);
        free(i.bytes);
        open_close(o);
        gw_free(&w);
    }
}

static void each_byte_of_the_head_is_guarded(void **state)
{
    (void)state;
    struct image i = image_of("llama", OPEN_MAPPED);
    const uint64_t head = ((struct tern_image_head *)i.bytes)->head_bytes;
    for (uint64_t at = 0; at < head; at++)
        for (unsigned flip = 1; flip < 256; flip *= 16) {
            tern_error err;
            i.bytes[at] ^= (unsigned char)flip;
            assert_int_not_equal(try_image(&i, &err), TERN_OK);
            assert_null(strchr(err.text, '\n'));
            i.bytes[at] ^= (unsigned char)flip;
        }
    tern_error err;
    assert_int_equal(try_image(&i, &err), TERN_OK);
    free(i.bytes);
}

static void verifying_finds_any_byte_that_changed(void **state)
{
    (void)state;
    struct image i = image_of("qwen2", OPEN_MAPPED);
    const tern_source source = {.base = i.bytes, .size = i.size};
    tern_error err = {0};
    assert_int_equal(tern_image_verify(&source, &err), TERN_OK);
    for (uint64_t at = 0; at < i.size; at += at < 8192 ? 1 : 37) {
        i.bytes[at] ^= 1;
        err = (tern_error){0};
        assert_int_not_equal(tern_image_verify(&source, &err), TERN_OK);
        i.bytes[at] ^= 1;
    }
    free(i.bytes);
}

static void an_image_that_was_cut_is_refused(void **state)
{
    (void)state;
    struct image i = image_of("llama", OPEN_MAPPED);
    const struct tern_image_head *h = (const struct tern_image_head *)i.bytes;
    uint64_t cuts[2 * TERN_IMAGE_N_PARTS + 4] = {0, 8, sizeof *h, h->head_bytes};
    size_t n = 4;
    for (int k = 0; k < TERN_IMAGE_N_PARTS; k++) {
        cuts[n++] = h->sections[k].offset;
        cuts[n++] = h->sections[k].offset + h->sections[k].bytes - (h->sections[k].bytes > 0);
    }
    for (size_t k = 0; k < n; k++) {
        struct image cut = {.bytes = aligned_alloc(64, (cuts[k] + 64) / 64 * 64), .size = cuts[k]};
        tern_error err;
        memcpy(cut.bytes, i.bytes, cut.size);
        assert_int_not_equal(try_image(&cut, &err), TERN_OK);
        free(cut.bytes);
    }
    free(i.bytes);
}

static void expect_line(struct image *i, tern_status status, const char *words)
{
    tern_error err;
    assert_int_equal(try_image(i, &err), status);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" has no \"%s\"", err.text, words);
}

static void other_versions_layouts_and_orders_are_named(void **state)
{
    (void)state;
    struct image i = image_of("llama", OPEN_MAPPED);
    struct tern_image_head *h = (struct tern_image_head *)i.bytes;
    h->version++;
    seal(&i);
    expect_line(&i, TERN_UNSUPPORTED, "version 2");
    h->version--;
    h->layout++;
    seal(&i);
    expect_line(&i, TERN_UNSUPPORTED, "panel layout");
    h->layout--;
    h->order = 0x04030201;
    seal(&i);
    expect_line(&i, TERN_UNSUPPORTED, "byte order");
    h->order = TERN_IMAGE_ORDER;
    seal(&i);
    expect_line(&i, TERN_OK, "");
    free(i.bytes);
}

/* Every word of the head, with its hash made right again: refused, or harmless. */
static void a_head_that_lies_is_refused_or_harmless(void **state)
{
    (void)state;
    static const uint32_t values[] = {0, 1, 63, 640, 0x7fffffff, 0xffffffff};
    struct image i = image_of("gemma3", OPEN_MAPPED);
    const uint64_t head = ((struct tern_image_head *)i.bytes)->head_bytes;
    for (uint64_t at = 8; at < head; at += 4)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            uint32_t was;
            tern_error err;
            memcpy(&was, i.bytes + at, 4);
            memcpy(i.bytes + at, &values[k], 4);
            const struct tern_image_head *h = (const struct tern_image_head *)i.bytes;
            if (h->head_bytes <= i.size)
                seal(&i);
            (void)try_image(&i, &err);
            memcpy(i.bytes + at, &was, 4);
            seal(&i);
        }
    free(i.bytes);
}

static void places_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    struct image i = image_of("llama", OPEN_MAPPED);
    unsigned char *moved = malloc(i.size + 64);
    struct image off = {.bytes = (unsigned char *)(((uintptr_t)moved + 63) / 64 * 64 + 8),
                        .size = i.size - 8};
    memcpy(off.bytes, i.bytes, off.size);
    expect_line(&off, TERN_BAD_ARGUMENT, "alignment");
    struct opened *o = open_bytes(OPEN_READ, TERN_MODEL_WHOLE, i.bytes, i.size);
    assert_int_equal(o->status, TERN_UNSUPPORTED);
    assert_non_null(strstr(o->error.text, "has to lie in memory"));
    open_close(o);
    tern_source two[2] = {{.base = i.bytes, .size = i.size}, {.base = i.bytes, .size = i.size}};
    size_t need;
    tern_error err = {0};
    assert_int_equal(tern_model_size(two, 2, TERN_MODEL_WHOLE, &need, &err), TERN_BAD_ARGUMENT);
    free(moved);
    free(i.bytes);
}

static void a_sink_that_fails_ends_it(void **state)
{
    (void)state;
    struct tiny t = tiny_of("llama");
    struct gguf_writer w = tiny_make(&t);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
    for (uint64_t at = 0; at < 60000; at += 4096) {
        struct image i;
        tern_error err = {0};
        const tern_status status = make(o->model, &i, at, &err);
        assert_int_equal(status, at >= i.size ? TERN_OK : TERN_IO);
        free(i.bytes);
    }
    open_close(o);
    gw_free(&w);
}

/* Images hold panels: where their bytes move, TERN_PANEL_LAYOUT must be raised, and the hash
 * here follows. */
static void panels_are_those_of_their_layout_number(void **state)
{
    (void)state;
    enum { COLS = 512 };
    static unsigned char rows[16 * COLS * 4], panel[sizeof rows];
    struct tern_hash h = tern_hash_begin();
    for (uint32_t type = 0; type < TERN_N_TYPES; type++) {
        const size_t row = tern_format_of(type) ? (size_t)tern_row_bytes(type, COLS) : 0;
        for (size_t k = 0; k < 16 * row; k++)
            rows[k] = (unsigned char)(k * 2654435761u >> 13);
        if (row)
            tern_pack_panel(type, rows, 16, COLS, panel);
        tern_hash_add(&h, panel, 16 * row);
    }
    assert_int_equal(TERN_PANEL_LAYOUT, 1);
    if (tern_hash_end(&h) != 0xb345f367ad61ba25)
        fail_msg("panels of layout %d hash to %llx", TERN_PANEL_LAYOUT,
                 (unsigned long long)tern_hash_end(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_the_specification),
        cmocka_unit_test(the_same_model_gives_the_same_bytes_however_it_is_read),
        cmocka_unit_test(an_image_holds_what_the_file_held),
        cmocka_unit_test(ids_come_from_an_image_as_from_its_file),
        cmocka_unit_test(each_byte_of_the_head_is_guarded),
        cmocka_unit_test(verifying_finds_any_byte_that_changed),
        cmocka_unit_test(an_image_that_was_cut_is_refused),
        cmocka_unit_test(other_versions_layouts_and_orders_are_named),
        cmocka_unit_test(a_head_that_lies_is_refused_or_harmless),
        cmocka_unit_test(places_that_cannot_be_used_are_named),
        cmocka_unit_test(a_sink_that_fails_ends_it),
        cmocka_unit_test(panels_are_those_of_their_layout_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
