/* GGUF files that are right, cut short, split, or changed at random, through a mapped source
 * and through one that is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "tests/unit/gguf_writer.h"
#include "tests/unit/open_model.h"

/* --- files that are right --- */

static void every_kind_of_value(struct gguf_writer *w)
{
    static const char *const texts[] = {"one", "", "drei"};
    gw_text(w, "general.architecture", "none");
    gw_int(w, "v.u8", TERN_META_U8, 200);
    gw_int(w, "v.i8", TERN_META_I8, -100);
    gw_int(w, "v.u16", TERN_META_U16, 60000);
    gw_int(w, "v.i16", TERN_META_I16, -30000);
    gw_int(w, "v.u32", TERN_META_U32, 4000000000);
    gw_int(w, "v.i32", TERN_META_I32, -2000000000);
    gw_f32(w, "v.f32", 0.5f);
    gw_int(w, "v.bool", TERN_META_BOOL, 1);
    gw_text(w, "v.text", "caf\xc3\xa9 \xff.");
    gw_int(w, "v.u64", TERN_META_U64, INT64_MIN);
    gw_int(w, "v.i64", TERN_META_I64, INT64_MIN);
    gw_f64(w, "v.f64", -1e100);
    gw_texts(w, "v.texts", texts, 3);
    gw_array(w, "v.long", TERN_META_I16, 10);
    for (int i = 0; i < 10; i++)
        gw_put_int(&w->keys, (uint64_t)-i, 2);
    gw_array(w, "v.none", TERN_META_F32, 0);
    gw_tensor(w, "b", 8, 3);
    gw_tensor(w, "a", 16, 0);
}

static void values_read_as_they_were_written(void **state)
{
    (void)state;
    static const struct { const char *key, *type, *text; } want[] = {
        {"general.architecture", "string", "none"},
        {"v.u8", "u8", "200"}, {"v.i8", "i8", "-100"}, {"v.u16", "u16", "60000"},
        {"v.i16", "i16", "-30000"}, {"v.u32", "u32", "4000000000"},
        {"v.i32", "i32", "-2000000000"}, {"v.f32", "f32", "0.5"}, {"v.bool", "bool", "true"},
        {"v.text", "string", "caf\xc3\xa9 \xef\xbf\xbd."}, {"v.u64", "u64", "9223372036854775808"},
        {"v.i64", "i64", "-9223372036854775808"}, {"v.f64", "f64", "-1e100"},
        {"v.texts", "array of string", "[one, , drei]"},
        {"v.long", "array of i16", "[0, -1, -2, -3, -4, -5, -6, -7, ...]"},
        {"v.none", "array of f32", "[]"},
    };
    struct gguf_writer w = gw_start();
    every_kind_of_value(&w);
    gw_finish(&w);
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_HEADER, w.file.data, w.file.n);
        assert_int_equal(o->status, TERN_OK);
        assert_int_equal(o->model->memory_bytes, o->need);
        assert_int_equal(o->model->n_metadata, sizeof want / sizeof *want);
        for (uint32_t i = 0; i < o->model->n_metadata; i++) {
            tern_metadata md;
            char text[64];
            size_t n;
            assert_int_equal(tern_model_metadata(o->model, i, &md, text, sizeof text, &n), TERN_OK);
            assert_int_equal(md.key.size, strlen(want[i].key));
            assert_memory_equal(md.key.data, want[i].key, md.key.size);
            assert_string_equal(md.type, want[i].type);
            assert_int_equal(n, strlen(want[i].text));
            assert_memory_equal(text, want[i].text, n);
            assert_int_equal(tern_model_metadata(o->model, i, &md, text, 1, &n),
                             n > 1 ? TERN_TOO_SMALL : TERN_OK);
        }
        open_close(o);
    }
    gw_free(&w);
}

static void directory_is_as_it_was_written(void **state)
{
    (void)state;
    struct gguf_writer w = gw_start();
    every_kind_of_value(&w);
    w.version = 2;
    gw_finish(&w);
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_HEADER, w.file.data, w.file.n);
        assert_int_equal(o->status, TERN_OK);
        tern_tensor_info t;
        assert_int_equal(tern_model_tensor(o->model, 0, &t), TERN_OK);
        assert_int_equal(t.n_dims, 2);
        assert_int_equal(t.dims[0], 8);
        assert_int_equal(t.dims[1], 3);
        assert_int_equal(t.dims[2], 1);
        assert_int_equal(t.bytes, 96);
        assert_int_equal(t.offset, w.file.n - w.data.n);
        assert_string_equal(t.type, "F32");
        assert_int_equal(tern_model_tensor(o->model, 1, &t), TERN_OK);
        assert_int_equal(t.n_dims, 1);
        assert_int_equal(t.offset, w.file.n - w.data.n + 96);
        assert_int_equal(tern_model_tensor(o->model, 2, &t), TERN_BAD_ARGUMENT);
        assert_ptr_equal(tern_tensor_find(o->model, (tern_text){"a", 1}), &o->model->tensors[1]);
        assert_ptr_equal(tern_tensor_find(o->model, (tern_text){"b", 1}), &o->model->tensors[0]);
        assert_null(tern_tensor_find(o->model, (tern_text){"c", 1}));
        assert_null(tern_tensor_find(o->model, (tern_text){"", 0}));
        open_close(o);
    }
    gw_free(&w);
}

/* To be shown, not run: what can be known of them is still checked. */
static void tensors_of_unknown_types_are_in_the_header_alone(void **state)
{
    (void)state;
    static const uint64_t dims[4] = {33, 3}, many[4] = {1ull << 40, 1ull << 40};
    struct gguf_writer w = gw_start();
    gw_tensor(&w, "whole", 8, 1);
    gw_tensor_raw(&w, "odd", 99, 2, dims, 32);
    gw_tensor_raw(&w, "half", 28, 1, dims, 32);
    gw_finish(&w);
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_HEADER, w.file.data, w.file.n);
        assert_int_equal(o->status, TERN_OK);
        static const char *const types[] = {"F32", "of another runtime", "F64"};
        static const uint32_t ids[] = {0, 99, 28};
        for (uint32_t i = 0; i < 3; i++) {
            tern_tensor_info t;
            assert_int_equal(tern_model_tensor(o->model, i, &t), TERN_OK);
            assert_string_equal(t.type, types[i]);
            assert_int_equal(t.type_id, ids[i]);
            assert_string_equal(t.path, i ? "none" : "direct");
            assert_int_equal(t.bytes, i ? 0 : 32);
        }
        open_close(o);
        o = open_bytes((enum open_how)how, TERN_MODEL_TEXT, w.file.data, w.file.n);
        assert_int_equal(o->status, TERN_UNSUPPORTED);
        open_close(o);
    }
    gw_free(&w);
    w = gw_start();
    gw_tensor_raw(&w, "odd", 99, 2, many, 0);
    gw_finish(&w);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_HEADER, w.file.data, w.file.n);
    assert_int_equal(o->status, TERN_BAD_MODEL);
    assert_non_null(strstr(o->error.text, "too many"));
    open_close(o);
    gw_free(&w);
}

static void larger_alignment_is_followed(void **state)
{
    (void)state;
    struct gguf_writer w = gw_start();
    w.alignment = 4096;
    gw_u32(&w, "general.alignment", 4096);
    gw_tensor(&w, "first", 8, 1);
    gw_tensor(&w, "second", 8, 1);
    gw_finish(&w);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_HEADER, w.file.data, w.file.n);
    assert_int_equal(o->status, TERN_OK);
    assert_int_equal(o->model->tensors[0].offset, 4096);
    assert_int_equal(o->model->tensors[1].offset, 8192);
    open_close(o);
    gw_free(&w);
}

static void thousands_of_names_are_found_and_none_twice(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct gguf_writer w = gw_start();
    char name[32];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t.%d", i * 7919 % N);
        gw_tensor(&w, name, 1, 0);
        snprintf(name, sizeof name, "k.%d", i * 7919 % N);
        gw_u32(&w, name, (uint32_t)i);
    }
    gw_finish(&w);
    struct opened *o = open_bytes(OPEN_READ, TERN_MODEL_HEADER, w.file.data, w.file.n);
    assert_int_equal(o->status, TERN_OK);
    for (int i = 0; i < N; i++) {
        uint32_t u = UINT32_MAX;
        snprintf(name, sizeof name, "t.%d", i);
        const struct tern_tensor *t = tern_tensor_find(o->model, (tern_text){name, strlen(name)});
        assert_non_null(t);
        snprintf(name, sizeof name, "k.%d", i);
        assert_int_equal(tern_meta_u32(o->model, name, true, 0, N, &u, NULL), TERN_OK);
        assert_int_equal(u, t - o->model->tensors);
    }
    open_close(o);
    gw_free(&w);
}

/* --- files that end too early, reads that fail --- */

static void every_shorter_file_is_refused(void **state)
{
    (void)state;
    struct gguf_writer w = gw_start();
    every_kind_of_value(&w);
    gw_finish(&w);
    for (size_t n = 0; n < w.file.n; n++)
        for (int how = 0; how < N_OPEN_HOWS; how++) {
            struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_HEADER, w.file.data, n);
            assert_int_equal(o->status, TERN_BAD_MODEL);
            assert_true(strlen(o->error.text) > 10);
            open_close(o);
        }
    gw_free(&w);
}

static void failing_reads_are_reported_as_such(void **state)
{
    (void)state;
    struct gguf_writer w = gw_start();
    every_kind_of_value(&w);
    gw_finish(&w);
    for (long reads = 0, done = 0; !done; reads++) {
        struct opened *o = calloc(1, sizeof *o);
        open_part(o, OPEN_READ, w.file.data, w.file.n);
        o->parts[0].reads_left = reads;
        open_run(o, TERN_MODEL_HEADER);
        done = o->status == TERN_OK;
        if (!done) {
            assert_int_equal(o->status, TERN_IO);
            assert_non_null(strstr(o->error.text, "reading the file failed"));
        }
        open_close(o);
        assert_in_range(reads, 0, 1000);
    }
    gw_free(&w);
}

static void too_little_memory_is_named(void **state)
{
    (void)state;
    struct gguf_writer w = gw_start();
    every_kind_of_value(&w);
    gw_finish(&w);
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_HEADER, w.file.data, w.file.n);
        assert_int_equal(o->status, TERN_OK);
        for (size_t n = 0; n < o->need; n += o->need - n < 40 ? 1 : 37) {
            tern_error e = {0};
            void *memory = malloc(n ? n : 1);
            tern_model *m;
            assert_int_equal(tern_model_init((tern_memory){memory, n}, o->sources, 1,
                                             TERN_MODEL_HEADER, &m, &e), TERN_NO_MEMORY);
            assert_non_null(strstr(e.text, "model arena"));
            assert_null(m);
            free(memory);
        }
        open_close(o);
    }
    gw_free(&w);
}

/* --- split files --- */

static void make_part(struct gguf_writer *w, int no, int count, int tensors)
{
    *w = gw_start();
    gw_int(w, "split.no", TERN_META_U16, no);
    gw_int(w, "split.count", TERN_META_U16, count);
    gw_int(w, "split.tensors.count", TERN_META_I32, tensors);
    char name[16];
    snprintf(name, sizeof name, "part.%d", no);
    gw_tensor(w, name, 8, 0);
    gw_finish(w);
}

static struct opened *open_parts(enum open_how how, struct gguf_writer *w, int a, int b)
{
    struct opened *o = calloc(1, sizeof *o);
    open_part(o, how, w[a].file.data, w[a].file.n);
    open_part(o, how, w[b].file.data, w[b].file.n);
    open_run(o, TERN_MODEL_HEADER);
    return o;
}

static void parts_are_read_as_one(void **state)
{
    (void)state;
    struct gguf_writer w[2];
    make_part(&w[0], 0, 2, 2);
    make_part(&w[1], 1, 2, 2);
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_parts((enum open_how)how, w, 0, 1);
        assert_int_equal(o->status, TERN_OK);
        assert_int_equal(o->model->n_tensors, 2);
        assert_int_equal(o->model->n_metadata, 3);
        assert_int_equal(o->model->file_bytes, w[0].file.n + w[1].file.n);
        assert_int_equal(tern_tensor_find(o->model, (tern_text){"part.1", 6})->part, 1);
        open_close(o);
    }
    gw_free(&w[0]);
    gw_free(&w[1]);
}

static void parts_that_disagree_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w[5];
    make_part(&w[0], 0, 2, 2);
    make_part(&w[1], 1, 2, 2);
    make_part(&w[2], 1, 3, 2);
    make_part(&w[3], 1, 2, 7);
    w[4] = gw_start();
    gw_tensor(&w[4], "part.1", 8, 0);
    gw_finish(&w[4]);
    static const struct { int a, b; const char *words; } cases[] = {
        {1, 0, "it is part 2"}, {0, 0, "part 2: the file says that it is part 1"},
        {0, 2, "split into 3 files"}, {0, 3, "split.tensors.count is 7"},
        {0, 4, "part 2 of 2: it has no split.no"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct opened *o = open_parts(OPEN_MAPPED, w, cases[i].a, cases[i].b);
        assert_int_equal(o->status, TERN_BAD_MODEL);
        if (!strstr(o->error.text, cases[i].words))
            print_message("\"%s\"\n", o->error.text);
        assert_non_null(strstr(o->error.text, cases[i].words));
        open_close(o);
    }
    for (int i = 0; i < 5; i++)
        gw_free(&w[i]);
}

/* --- anything at all --- */

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static void mutate(unsigned char *bytes, size_t n, uint64_t *seed)
{
    static const uint64_t values[] = {0, 1, 0x7f, 0xff, 0x80000000u, 0xffffffffu, 1ull << 62,
                                      1ull << 63, UINT64_MAX};
    for (uint64_t k = next_random(seed) % 3 + 1; k > 0; k--) {
        const size_t at = next_random(seed) % n, kind = next_random(seed) % 3;
        if (kind == 0) {
            bytes[at] ^= (unsigned char)(1u << next_random(seed) % 8);
        } else if (kind == 1) {
            bytes[at] = (unsigned char)next_random(seed);
        } else {
            const uint64_t v = values[next_random(seed) % 9];
            const size_t width = 4 + 4 * (next_random(seed) % 2);
            memcpy(bytes + at, &v, width < n - at ? width : n - at);
        }
    }
}

static void touch_all(const tern_model *m)
{
    tern_model_info info;
    tern_model_describe(m, &info);
    tern_metadata md;
    tern_tensor_info t;
    char text[40];
    size_t n;
    for (uint32_t i = 0; i < info.n_metadata; i++)
        assert_in_range(tern_model_metadata(m, i, &md, text, sizeof text, &n), TERN_OK,
                        TERN_TOO_SMALL);
    for (uint32_t i = 0; i < info.n_tensors; i++) {
        assert_int_equal(tern_model_tensor(m, i, &t), TERN_OK);
        assert_true(t.offset <= m->parts[0].size && t.bytes <= m->parts[0].size - t.offset);
    }
}

static void random_changes_never_do_harm(void **state)
{
    (void)state;
    struct gguf_writer w = gw_start();
    every_kind_of_value(&w);
    gw_finish(&w);
    unsigned char *copy = malloc(w.file.n);
    uint64_t seed = 88172645463325252u;
    int opened = 0;
    for (int i = 0; i < 4000; i++) {
        memcpy(copy, w.file.data, w.file.n);
        mutate(copy, w.file.n - w.data.n, &seed);
        struct opened *o = open_bytes((enum open_how)(i % N_OPEN_HOWS), TERN_MODEL_HEADER, copy,
                                      w.file.n);
        if (o->model) {
            touch_all(o->model);
            opened++;
        } else {
            assert_true(o->status == TERN_BAD_MODEL || o->status == TERN_UNSUPPORTED);
            assert_true(o->error.text[0] != '\0');
        }
        open_close(o);
    }
    assert_in_range(opened, 100, 3900); /* both answers were given */
    free(copy);
    gw_free(&w);
}

static void sources_are_checked(void **state)
{
    (void)state;
    static const char bytes[64] = "GGUF";
    static char window[TERN_SOURCE_WINDOW];
    const tern_source sources[] = {
        {.size = 64},
        {.size = 64, .read = opened_read},
        {.size = 64, .read = opened_read, .window = {window, TERN_SOURCE_WINDOW - 1}},
        {.base = bytes, .size = 64},
    };
    size_t need;
    for (int i = 0; i < 3; i++) {
        tern_error e = {0};
        assert_int_equal(tern_model_size(&sources[i], 1, TERN_MODEL_HEADER, &need, &e),
                         TERN_BAD_ARGUMENT);
        assert_non_null(strstr(e.text, "source 0"));
    }
    assert_int_equal(tern_model_size(&sources[3], 0, TERN_MODEL_HEADER, &need, NULL),
                     TERN_BAD_ARGUMENT);
    assert_int_equal(tern_model_size(&sources[3], 65, TERN_MODEL_HEADER, &need, NULL),
                     TERN_BAD_ARGUMENT);
    assert_int_equal(tern_model_size(NULL, 1, TERN_MODEL_HEADER, &need, NULL), TERN_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_read_as_they_were_written),
        cmocka_unit_test(directory_is_as_it_was_written),
        cmocka_unit_test(tensors_of_unknown_types_are_in_the_header_alone),
        cmocka_unit_test(larger_alignment_is_followed),
        cmocka_unit_test(thousands_of_names_are_found_and_none_twice),
        cmocka_unit_test(every_shorter_file_is_refused),
        cmocka_unit_test(failing_reads_are_reported_as_such),
        cmocka_unit_test(too_little_memory_is_named),
        cmocka_unit_test(parts_are_read_as_one),
        cmocka_unit_test(parts_that_disagree_are_refused),
        cmocka_unit_test(random_changes_never_do_harm),
        cmocka_unit_test(sources_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
