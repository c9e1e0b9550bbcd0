/* A session that is not this engine's, damaged or forged is refused and leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/saved_rig.h"

static void refused(const tern_model *model, tern_limits limits, const struct file *f,
                    tern_status with, const char *text)
{
    struct rig *r = open_rig(model, limits);
    const tern_seq seq = open_seq(r->engine, 1, 1);
    assert_int_equal(try_restore(r->engine, seq, f), with);
    assert_non_null(strstr(tern_engine_error(r->engine)->text, text));
    tern_seq_info info;
    assert_int_equal(tern_seq_describe(r->engine, seq, &info), TERN_OK);
    assert_int_equal(info.n_tokens + info.n_computed, 0);
    assert_null(trace_check_kv(r->engine));
    close_rig(r);
}

static void what_is_not_the_same_is_refused_by_name(void **state)
{
    (void)state;
    const tern_limits plain = {.n_seqs = 1};
    const tern_model *m = model_of(false);
    struct file f = small_session(m, plain);
    refused(model_of(true), plain, &f, TERN_UNSUPPORTED, "of another model, 'bytes' (");
    refused(m, (tern_limits){.k_type = TERN_KV_Q8_0, .v_type = TERN_KV_F32}, &f, TERN_UNSUPPORTED,
            "K f16 and V f16, this engine has K q8_0 and V f32");
    refused(m, (tern_limits){.exact = true}, &f, TERN_UNSUPPORTED, "without --exact");
    refused(m, (tern_limits){.n_ctx = 40}, &f, TERN_UNSUPPORTED,
            "49 tokens, at most 40 in this context");
    struct tern_saved_head *h = (struct tern_saved_head *)f.bytes;
    h->version++;
    refused(m, plain, &f, TERN_UNSUPPORTED, "version 2, this Tern reads 1");
    h->version--;
    h->arithmetic++;
    refused(m, plain, &f, TERN_UNSUPPORTED, "arithmetic 2");
    h->arithmetic--;
    h->order = 0x04030201;
    refused(m, plain, &f, TERN_UNSUPPORTED, "byte order");
    h->order = TERN_SAVED_ORDER;
    h->backend[0] = 'x';
    seal(&f);
    refused(m, plain, &f, TERN_UNSUPPORTED, "of backend xpu, this is cpu");
    h->magic[0] = 'x';
    refused(m, plain, &f, TERN_BAD_MODEL, "not a session");
    free(f.bytes);
}

/* One weight that differs by its last bit is another model. */
static void other_weights_are_another_model(void **state)
{
    (void)state;
    struct gguf_writer w = byte_model(true);
    struct opened *a = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
    uint32_t n_found = 0;
    struct rig *ra = open_rig(a->model, (tern_limits){.n_seqs = 1});
    for (uint32_t i = 0; i < a->model->n_tensors; i++) {
        const struct tern_tensor *t = &a->model->tensors[i];
        w.file.data[t->offset] ^= 1;
        struct opened *b = open_bytes(OPEN_READ, TERN_MODEL_WHOLE, w.file.data, w.file.n);
        struct rig *rb = open_rig(b->model, (tern_limits){.n_seqs = 1});
        n_found += tern_saved_model(ra->engine) != tern_saved_model(rb->engine);
        close_rig(rb);
        open_close(b);
        w.file.data[t->offset] ^= 1;
    }
    assert_int_equal(n_found, a->model->n_tensors);
    close_rig(ra);
    open_close(a);
    gw_free(&w);
}

static bool write_image(void *self, uint64_t offset, const void *src, size_t n)
{
    memcpy((char *)self + offset, src, n);
    return true;
}

static void an_image_and_its_gguf_are_one_model(void **state)
{
    (void)state;
    for (int windowed = 0; windowed < 2; windowed++) {
        const tern_model *m = model_of(windowed);
        uint64_t bytes;
        size_t scratch, need;
        assert_int_equal(tern_image_size(m, &bytes, &scratch, NULL), TERN_OK);
        unsigned char *image = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        void *mem = aligned_alloc(64, (scratch + 63) / 64 * 64);
        assert_int_equal(tern_image_write(m, 0, (tern_memory){mem, scratch},
                                          &(tern_sink){write_image, image}, NULL), TERN_OK);
        const tern_source source = {.base = image, .size = bytes};
        assert_int_equal(tern_model_size(&source, 1, TERN_MODEL_WHOLE, &need, NULL), TERN_OK);
        void *memory = malloc(need);
        tern_model *of_image;
        assert_int_equal(tern_model_init((tern_memory){memory, need}, &source, 1,
                                         TERN_MODEL_WHOLE, &of_image, NULL), TERN_OK);
        struct rig *a = open_rig(m, (tern_limits){.n_seqs = 1});
        struct rig *b = open_rig(of_image, (tern_limits){.n_seqs = 1});
        assert_int_equal(tern_saved_model(a->engine), tern_saved_model(b->engine));
        close_rig(a);
        close_rig(b);
        free(memory);
        free(mem);
        free(image);
    }
}

static void an_altered_byte_a_cut_or_a_byte_more_is_refused(void **state)
{
    (void)state;
    struct file f = small_session(model_of(true), (tern_limits){.n_seqs = 1});
    struct rig *r = open_rig(model_of(true), (tern_limits){.n_seqs = 1});
    const tern_seq seq = open_seq(r->engine, 1, 1);
    for (uint64_t i = 0; i < f.size; i++) {
        f.bytes[i] ^= 0x10;
        assert_int_not_equal(try_restore(r->engine, seq, &f), TERN_OK);
        assert_true(tern_engine_error(r->engine)->text[0]);
        tern_engine_clear_error(r->engine);
        f.bytes[i] ^= 0x10;
    }
    for (struct file cut = f; cut.size-- > 0;) {
        unsigned char *exact = malloc(cut.size ? cut.size : 1);
        memcpy(exact, f.bytes, cut.size);
        cut.bytes = exact;
        assert_int_equal(try_restore(r->engine, seq, &cut), TERN_BAD_MODEL);
        assert_non_null(strstr(tern_engine_error(r->engine)->text,
                               cut.size < 8 ? "not a session" : "session too short"));
        tern_engine_clear_error(r->engine);
        free(exact);
    }
    struct file longer = {.bytes = malloc(f.size + 1), .size = f.size + 1};
    memcpy(longer.bytes, f.bytes, f.size);
    longer.bytes[f.size] = 0;
    assert_int_equal(try_restore(r->engine, seq, &longer), TERN_BAD_MODEL);
    assert_non_null(strstr(tern_engine_error(r->engine)->text, "session too long"));
    tern_engine_clear_error(r->engine);
    free(longer.bytes);
    assert_null(trace_check_kv(r->engine));
    assert_int_equal(try_restore(r->engine, seq, &f), TERN_OK);
    close_rig(r);
    free(f.bytes);
}

/* Seed, stream and name may be any; how what lies behind the header is divided into tokens and a
 * note may move within its last 64 bytes; and the hash is made anew. */
static bool is_free(size_t at)
{
    return (at >= offsetof(struct tern_saved_head, head_hash) &&
            at < offsetof(struct tern_saved_head, tail_hash)) ||
           (at >= offsetof(struct tern_saved_head, seed) &&
            at < offsetof(struct tern_saved_head, n_computed)) ||
           at == offsetof(struct tern_saved_head, note_bytes) ||
           (at >= offsetof(struct tern_saved_head, model) &&
            at < offsetof(struct tern_saved_head, groups));
}

/* Each word of the header set to odd values, its hash made right again. */
static void a_head_that_lies_is_refused(void **state)
{
    (void)state;
    static const uint32_t odd[] = {0, 1, 2, 15, 16, 17, 48, 0x10000, 0x7fffffff, 0xffffffff};
    struct file f = small_session(model_of(true), (tern_limits){.n_seqs = 1});
    struct rig *r = open_rig(model_of(true), (tern_limits){.n_seqs = 1});
    const tern_seq seq = open_seq(r->engine, 1, 1);
    unsigned char saved[sizeof(struct tern_saved_head)];
    memcpy(saved, f.bytes, sizeof saved);
    for (size_t at = 0; at < sizeof saved; at += 4)
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            memcpy(f.bytes + at, &odd[i], 4);
            seal(&f);
            const tern_status status = try_restore(r->engine, seq, &f);
            if (!is_free(at) && memcmp(saved + at, &odd[i], 4))
                assert_int_not_equal(status, TERN_OK);
            if (!status)
                assert_int_equal(tern_seq_trim(r->engine, seq, 0), TERN_OK);
            tern_engine_clear_error(r->engine);
            assert_null(trace_check_kv(r->engine));
            memcpy(f.bytes, saved, sizeof saved);
        }
    tern_token outside = BYTE_VOCAB;
    memcpy(f.bytes + sizeof saved + 8, &outside, sizeof outside);
    seal(&f);
    assert_int_equal(try_restore(r->engine, seq, &f), TERN_BAD_MODEL);
    assert_non_null(strstr(tern_engine_error(r->engine)->text, "token 266 at 2, vocabulary 266"));
    close_rig(r);
    free(f.bytes);
}

/* By reading it alone, where there is no engine to compare it with. */
static void counts_that_no_session_has_are_refused(void **state)
{
    (void)state;
    struct file f = small_session(model_of(true), (tern_limits){.n_seqs = 1});
    struct tern_saved_head *h = (struct tern_saved_head *)f.bytes, saved = *h;
    const struct { uint32_t *at, value; } never[] = {
        {&h->n_computed, (h->n_tokens / 16 + 1) * 16}, {&h->n_computed, h->n_computed - 1},
        {&h->block_tokens, 8}, {&h->k_type, TERN_N_KV_TYPES}, {&h->v_type, TERN_N_KV_TYPES},
        {&h->n_tokens, TERN_SAVED_MOST_TOKENS + 1},
    };
    tern_saved_info info;
    const tern_source source = {.base = f.bytes, .size = f.size};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        *never[i].at = never[i].value;
        seal(&f);
        assert_int_equal(tern_saved_read(&source, &info, NULL), TERN_BAD_MODEL);
        *h = saved;
    }
    assert_int_equal(tern_saved_read(&source, &info, NULL), TERN_OK);
    free(f.bytes);
}

static void a_source_or_a_sink_that_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    struct rig *r = open_rig(model_of(true), (tern_limits){.n_seqs = 2});
    struct file f = small_session(model_of(true), (tern_limits){.n_seqs = 1});
    unsigned char window[TERN_SOURCE_WINDOW];
    tern_memory scratch;
    scratch_of(r->engine, &scratch);
    const tern_seq seq = open_seq(r->engine, 1, 1);
    tern_status status = TERN_IO;
    for (long reads = 0; status; reads++) {
        struct opened_part part = {.bytes = f.bytes, .size = f.size, .reads_left = reads};
        const tern_source source = {.size = f.size, .read = opened_read, .self = &part,
                                    .window = {window, sizeof window}};
        status = tern_saved_restore(r->engine, seq, &source, scratch);
        assert_true(status == TERN_OK || status == TERN_IO);
        assert_null(trace_check_kv(r->engine));
        for (uint32_t g = 0; status && g < 2; g++)
            assert_int_equal(r->engine->parts.kv.pools[g].n_free,
                             r->engine->parts.kv.pools[g].n_blocks);
        tern_engine_clear_error(r->engine);
    }
    for (long writes = 0; writes < 1000; writes++) {
        struct file out;
        status = try_save(r->engine, seq, (tern_bytes){"note", 4}, writes, &out);
        if (status) {
            assert_int_equal(status, TERN_IO);
            assert_memory_equal(out.bytes, "\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5", 8); /* no header */
            tern_engine_clear_error(r->engine);
        }
        free(out.bytes);
        if (!status)
            break;
    }
    assert_int_equal(status, TERN_OK);
    free(scratch.data);
    close_rig(r);
    free(f.bytes);
}

static void calls_out_of_turn_are_refused(void **state)
{
    (void)state;
    struct rig *r = open_rig(model_of(false), (tern_limits){.n_seqs = 2});
    struct file f = small_session(model_of(false), (tern_limits){.n_seqs = 1}), out;
    const tern_seq seq = open_seq(r->engine, 1, 1);
    uint64_t bytes;
    size_t scratch;
    assert_int_equal(tern_saved_size(r->engine, seq, TERN_SAVED_MOST_NOTE + 1, &bytes, &scratch),
                     TERN_BAD_ARGUMENT);
    tern_engine_clear_error(r->engine);
    struct file empty = save(r->engine, seq); /* of no tokens: ordinary */
    assert_int_equal(try_restore(r->engine, seq, &empty), TERN_OK);
    assert_int_equal(try_restore(r->engine, seq, &f), TERN_OK);
    assert_int_equal(try_restore(r->engine, seq, &f), TERN_BAD_ARGUMENT); /* it holds tokens */
    tern_engine_clear_error(r->engine);
    assert_int_equal(tern_seq_feed(r->engine, seq, NULL, 0), TERN_OK);
    assert_int_equal(try_save(r->engine, seq, (tern_bytes){NULL, 0}, 9, &out), TERN_BAD_ARGUMENT);
    assert_non_null(strstr(tern_engine_error(r->engine)->text, "running"));
    tern_engine_clear_error(r->engine);
    tern_seq_close(r->engine, seq);
    assert_int_equal(try_save(r->engine, seq, (tern_bytes){NULL, 0}, 9, &out), TERN_BAD_ARGUMENT);
    assert_int_equal(try_restore(r->engine, seq, &f), TERN_BAD_ARGUMENT);
    close_rig(r);
    free(f.bytes);
    free(empty.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_the_same_is_refused_by_name),
        cmocka_unit_test(other_weights_are_another_model),
        cmocka_unit_test(an_image_and_its_gguf_are_one_model),
        cmocka_unit_test(an_altered_byte_a_cut_or_a_byte_more_is_refused),
        cmocka_unit_test(a_head_that_lies_is_refused),
        cmocka_unit_test(counts_that_no_session_has_are_refused),
        cmocka_unit_test(a_source_or_a_sink_that_fails_leaves_nothing_behind),
        cmocka_unit_test(calls_out_of_turn_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
