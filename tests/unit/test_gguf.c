/* Hostile and right GGUF files, each through a mapped source and one that is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "tests/unit/gguf_writer.h"
#include "tests/unit/open_model.h"

/* --- one file a case, with the answer it must get --- */

struct hostile {
    const char *name;
    void (*make)(struct gguf_writer *w);
    tern_status status;
    const char *words[2]; /* both are in the message */
};

static void key_u32(struct gguf_writer *w) { gw_u32(w, "a.b", 7); }
static void tensor_f32(struct gguf_writer *w) { gw_tensor(w, "t", 8, 2); }

static void tensors_2_61(struct gguf_writer *w) { w->n_tensors = 1ull << 61; }
static void tensors_2_62(struct gguf_writer *w) { w->n_tensors = (1ull << 62) + 1; }
static void tensors_2_63(struct gguf_writer *w) { w->n_tensors = 1ull << 63; }
static void tensors_most(struct gguf_writer *w) { w->n_tensors = UINT64_MAX; }
static void tensors_record(struct gguf_writer *w)
{
    w->n_tensors = SIZE_MAX / sizeof(struct tern_tensor) - 1;
}
static void keys_2_61(struct gguf_writer *w) { w->n_keys = 1ull << 61; }
static void keys_2_63(struct gguf_writer *w) { w->n_keys = 1ull << 63; }
static void keys_most(struct gguf_writer *w) { w->n_keys = UINT64_MAX; }
static void keys_record(struct gguf_writer *w)
{
    w->n_keys = SIZE_MAX / sizeof(struct tern_meta) - 1;
}
static void both_2_40(struct gguf_writer *w)
{
    gw_put(&w->data, NULL, 100);
    w->n_keys = w->n_tensors = 1ull << 40;
}
static void one_tensor_too_many(struct gguf_writer *w)
{
    tensor_f32(w);
    gw_put(&w->data, NULL, 64);
    w->n_tensors = 2;
}

static void array_2_63(struct gguf_writer *w)
{
    gw_array(w, "k", TERN_META_U8, 1ull << 63);
}
static void array_wraps(struct gguf_writer *w)
{
    gw_array(w, "k", TERN_META_U64, (1ull << 61) + 1);
}
static void array_strings(struct gguf_writer *w)
{
    gw_array(w, "k", TERN_META_STRING, 1ull << 62);
}
static void array_string_long(struct gguf_writer *w)
{
    gw_array(w, "k", TERN_META_STRING, 1);
    gw_put_int(&w->keys, UINT64_MAX, 8);
}
static void array_nested(struct gguf_writer *w)
{
    gw_array(w, "k", TERN_META_ARRAY, 1);
    gw_put_int(&w->keys, TERN_META_U8, 4);
    gw_put_int(&w->keys, 0, 8);
}
static void array_type(struct gguf_writer *w)
{
    gw_array(w, "k", 13, 0);
}
static void array_bool(struct gguf_writer *w)
{
    gw_array(w, "k", TERN_META_BOOL, 2);
    gw_put_int(&w->keys, 0x0201, 2);
}
static void string_most(struct gguf_writer *w)
{
    gw_key(w, "k", TERN_META_STRING);
    gw_put_int(&w->keys, UINT64_MAX, 8);
}
static void string_past_end(struct gguf_writer *w)
{
    gw_key(w, "k", TERN_META_STRING);
    gw_put_int(&w->keys, 1000, 8);
}
static void value_type(struct gguf_writer *w) { gw_key(w, "k", 99); }
static void value_bool(struct gguf_writer *w) { gw_int(w, "k", TERN_META_BOOL, 2); }
static void key_empty(struct gguf_writer *w) { gw_u32(w, "", 1); }
static void key_long(struct gguf_writer *w)
{
    gw_put_int(&w->keys, 65536, 8);
    gw_put(&w->keys, NULL, 65536);
    gw_put_int(&w->keys, TERN_META_U8, 4);
    gw_put_int(&w->keys, 0, 1);
    w->n_keys = 1;
}
static void key_past_end(struct gguf_writer *w)
{
    gw_put_int(&w->keys, 60000, 8);
    gw_put(&w->keys, NULL, 100);
    w->n_keys = 1;
}
static void key_with_nul(struct gguf_writer *w)
{
    gw_put_int(&w->keys, 3, 8);
    gw_put(&w->keys, "a\0b", 3);
    gw_put_int(&w->keys, TERN_META_U8, 4);
    gw_put_int(&w->keys, 0, 1);
    w->n_keys = 1;
}
static void key_long_with_nul(struct gguf_writer *w)
{
    char key[300];
    memset(key, 'k', sizeof key);
    key[299] = '\0';
    gw_put_int(&w->keys, 300, 8);
    gw_put(&w->keys, key, 300);
    gw_put_int(&w->keys, TERN_META_U8, 4);
    gw_put_int(&w->keys, 0, 1);
    w->n_keys = 1;
}

static void with_dims(struct gguf_writer *w, uint32_t type, uint32_t n_dims, uint64_t d0,
                      uint64_t d1, uint64_t d2)
{
    const uint64_t dims[8] = {d0, d1, d2, 1, 1, 1, 1, 1};
    gw_tensor_raw(w, "some.weight", type, n_dims, dims, 0);
    gw_put(&w->data, NULL, 4096);
}
static void dim_wraps(struct gguf_writer *w) { with_dims(w, 0, 2, 1152, (1ull << 42) + 1, 1); }
static void dim_2_32(struct gguf_writer *w) { with_dims(w, 0, 2, 8, 1ull << 32, 1); }
static void dim_2_63(struct gguf_writer *w) { with_dims(w, 0, 2, 8, INT64_MAX, 1); }
static void dim_negative(struct gguf_writer *w) { with_dims(w, 0, 2, 8, UINT64_MAX, 1); }
static void dims_2_64(struct gguf_writer *w) { with_dims(w, 0, 2, 1ull << 32, 1ull << 32, 1); }
static void dims_2_64_of_three(struct gguf_writer *w) { with_dims(w, 0, 3, 4, 1ull << 31, 1ull << 31); }
static void q4_k_bytes_wrap(struct gguf_writer *w) { with_dims(w, 12, 2, 256, 1ull << 54, 1); }
static void bytes_wrap(struct gguf_writer *w) { with_dims(w, 0, 1, 1ull << 62, 1, 1); }
static void dim0_zero(struct gguf_writer *w) { with_dims(w, 0, 2, 0, 2, 1); }
static void dim1_zero(struct gguf_writer *w) { with_dims(w, 0, 2, 8, 0, 1); }
static void dim2_zero(struct gguf_writer *w) { with_dims(w, 0, 3, 8, 2, 0); }
static void n_dims_0(struct gguf_writer *w) { with_dims(w, 0, 0, 1, 1, 1); }
static void n_dims_5(struct gguf_writer *w) { with_dims(w, 0, 5, 1, 1, 1); }
static void n_dims_most(struct gguf_writer *w) { with_dims(w, 0, UINT32_MAX, 1, 1, 1); }
static void row_of_no_block(struct gguf_writer *w) { with_dims(w, 2, 2, 33, 2, 1); }
static void type_removed(struct gguf_writer *w) { with_dims(w, 4, 2, 32, 2, 1); }
static void type_named(struct gguf_writer *w) { with_dims(w, 40, 2, 64, 2, 1); }
static void type_of_another(struct gguf_writer *w) { with_dims(w, 137, 2, 256, 2, 1); }
static void type_most(struct gguf_writer *w) { with_dims(w, UINT32_MAX, 2, 256, 2, 1); }

static void with_offset(struct gguf_writer *w, uint64_t offset)
{
    const uint64_t dims[2] = {8, 2};
    gw_tensor_raw(w, "some.weight", 0, 2, dims, offset);
    gw_put(&w->data, NULL, 96);
}
static void offset_wraps(struct gguf_writer *w) { with_offset(w, UINT64_MAX - 31); }
static void offset_past(struct gguf_writer *w) { with_offset(w, 128); }
static void offset_tail(struct gguf_writer *w) { with_offset(w, 64); }
static void offset_odd(struct gguf_writer *w) { with_offset(w, 16); }
static void overlap(struct gguf_writer *w)
{
    const uint64_t dims[2] = {8, 2};
    gw_tensor_raw(w, "first", 0, 2, dims, 32);
    gw_tensor_raw(w, "second", 0, 2, dims, 0);
    gw_put(&w->data, NULL, 128);
}
static void alignment_of_64_laid_for_32(struct gguf_writer *w)
{
    gw_u32(w, "general.alignment", 64);
    gw_tensor(w, "first", 8, 1);
    gw_tensor(w, "second", 8, 1);
}

static void align_0(struct gguf_writer *w) { gw_u32(w, "general.alignment", 0); }
static void align_3(struct gguf_writer *w) { gw_u32(w, "general.alignment", 3); }
static void align_2_31(struct gguf_writer *w) { gw_u32(w, "general.alignment", 1u << 31); }
static void align_i32(struct gguf_writer *w) { gw_int(w, "general.alignment", TERN_META_I32, 32); }
static void align_text(struct gguf_writer *w) { gw_text(w, "general.alignment", "32"); }

static void two_keys(struct gguf_writer *w)
{
    key_u32(w);
    gw_u32(w, "other", 1);
    gw_text(w, "a.b", "of another type");
}
static void two_alignments(struct gguf_writer *w)
{
    gw_u32(w, "general.alignment", 32);
    gw_u32(w, "general.alignment", 32);
}
static void two_tensors(struct gguf_writer *w)
{
    tensor_f32(w);
    gw_tensor(w, "u", 8, 2);
    tensor_f32(w);
}
static void name_empty(struct gguf_writer *w) { gw_tensor(w, "", 8, 2); }
static void name_of_64(struct gguf_writer *w)
{
    gw_tensor(w, "0123456789012345678901234567890123456789012345678901234567890123", 8, 2);
}
static void name_with_nul(struct gguf_writer *w)
{
    gw_tensor(w, "abc", 8, 2);
    w->tensors.data[9] = '\0';
}

static void magic_zip(struct gguf_writer *w) { memcpy(w->magic, "PK\3\4", 4); }
static void magic_html(struct gguf_writer *w) { memcpy(w->magic, "<!DO", 4); }
static void magic_reversed(struct gguf_writer *w) { memcpy(w->magic, "FUGG", 4); }
static void magic_none(struct gguf_writer *w) { memcpy(w->magic, "\1\2\3\4", 4); }
static void version_0(struct gguf_writer *w) { w->version = 0; }
static void version_1(struct gguf_writer *w) { w->version = 1; }
static void version_4(struct gguf_writer *w) { w->version = 4; }
static void version_big(struct gguf_writer *w) { w->version = 0x03000000; }
static void split_alone(struct gguf_writer *w)
{
    gw_int(w, "split.no", TERN_META_U16, 0);
    gw_int(w, "split.count", TERN_META_U16, 3);
}
static void split_text(struct gguf_writer *w) { gw_text(w, "split.count", "3"); }
static void architecture_number(struct gguf_writer *w) { gw_u32(w, "general.architecture", 3); }
static void architecture_long(struct gguf_writer *w)
{
    gw_text(w, "general.architecture",
            "0123456789012345678901234567890123456789012345678901234567890123");
}

#define BAD TERN_BAD_MODEL
static const struct hostile hostile[] = {
    {"2^61 tensors", tensors_2_61, BAD, {"2305843009213693952", "room for"}},
    {"2^62 + 1 tensors", tensors_2_62, BAD, {"tensors", "room for"}},
    {"2^63 tensors", tensors_2_63, BAD, {"tensors", "room for"}},
    {"2^64 - 1 tensors", tensors_most, BAD, {"tensors", "room for"}},
    {"tensors whose bytes nearly wrap", tensors_record, BAD, {"tensors", "room for"}},
    {"2^61 keys", keys_2_61, BAD, {"2305843009213693952", "room for"}},
    {"2^63 keys", keys_2_63, BAD, {"keys", "room for"}},
    {"2^64 - 1 keys", keys_most, BAD, {"keys", "room for"}},
    {"keys whose bytes nearly wrap", keys_record, BAD, {"keys", "room for"}},
    {"2^40 of both", both_2_40, BAD, {"1099511627776", "room for"}},
    {"one tensor too many", one_tensor_too_many, BAD, {"tensor 1", "name of 0"}},
    {"array of 2^63 bytes", array_2_63, BAD, {"k", "elements"}},
    {"array whose bytes wrap", array_wraps, BAD, {"k", "elements"}},
    {"array of 2^62 strings", array_strings, BAD, {"k", "elements"}},
    {"string of 2^64 - 1 bytes in an array", array_string_long, BAD, {"k", "passes the end"}},
    {"array of arrays", array_nested, TERN_UNSUPPORTED, {"k", "arrays of arrays"}},
    {"array of an unknown type", array_type, BAD, {"k", "type 13"}},
    {"array of bools with a 2", array_bool, BAD, {"element 1 is 2", "bool"}},
    {"string of 2^64 - 1 bytes", string_most, BAD, {"18446744073709551615", "left"}},
    {"string past the end", string_past_end, BAD, {"1000", "left"}},
    {"value of an unknown type", value_type, BAD, {"k", "type 99"}},
    {"bool of 2", value_bool, BAD, {"k", "bool is 0 or 1"}},
    {"empty key", key_empty, BAD, {"key of 0 bytes", "1 to 65535"}},
    {"key of 65536 bytes", key_long, BAD, {"key of 65536 bytes", "1 to 65535"}},
    {"key past the end", key_past_end, BAD, {"60000", "left"}},
    {"key with a NUL", key_with_nul, BAD, {"a?b", "NUL"}},
    {"long key with a NUL at its end", key_long_with_nul, BAD, {"kkk", "NUL"}},
    {"dims 1152 x 2^42 + 1", dim_wraps, BAD, {"some.weight", "pass the end"}},
    {"dim of 2^32", dim_2_32, BAD, {"some.weight", "pass the end"}},
    {"dim of 2^63 - 1", dim_2_63, BAD, {"some.weight", "too many"}},
    {"dim of -1", dim_negative, BAD, {"some.weight", "too many"}},
    {"dims whose product is 2^64", dims_2_64, BAD, {"some.weight", "too many"}},
    {"three dims whose product is 2^64", dims_2_64_of_three, BAD, {"some.weight", "too many"}},
    {"Q4_K of 2^62 elements", q4_k_bytes_wrap, BAD, {"some.weight", "pass the end"}},
    {"2^62 floats", bytes_wrap, BAD, {"some.weight", "too many"}},
    {"first dimension 0", dim0_zero, BAD, {"some.weight", "dimension 0 is 0"}},
    {"second dimension 0", dim1_zero, BAD, {"some.weight", "dimension 1 is 0"}},
    {"third dimension 0", dim2_zero, BAD, {"some.weight", "dimension 2 is 0"}},
    {"no dimension", n_dims_0, BAD, {"some.weight", "0 dimensions"}},
    {"five dimensions", n_dims_5, BAD, {"some.weight", "5 dimensions"}},
    {"2^32 - 1 dimensions", n_dims_most, BAD, {"some.weight", "4294967295 dimensions"}},
    {"rows of no whole block", row_of_no_block, BAD, {"some.weight", "blocks of 32"}},
    {"a removed type", type_removed, TERN_UNSUPPORTED, {"some.weight", "type 4"}},
    {"a type of ggml that is not read", type_named, TERN_UNSUPPORTED, {"type 40", "NVFP4"}},
    {"a type of another runtime", type_of_another, TERN_UNSUPPORTED, {"type 137", "another"}},
    {"type 2^32 - 1", type_most, TERN_UNSUPPORTED, {"some.weight", "type 4294967295"}},
    {"offset of 2^64 - 32", offset_wraps, BAD, {"some.weight", "pass the end"}},
    {"offset at the end", offset_past, BAD, {"some.weight", "pass the end"}},
    {"offset with its tail past the end", offset_tail, BAD, {"64 bytes at 64", "(96 bytes"}},
    {"offset that is not aligned", offset_odd, BAD, {"some.weight", "alignment is 32"}},
    {"overlapping tensors", overlap, BAD, {"second and first", "overlap"}},
    {"alignment of 64 over data for 32", alignment_of_64_laid_for_32, BAD, {"second", "64"}},
    {"alignment 0", align_0, BAD, {"general.alignment: 0", "power of two"}},
    {"alignment 3", align_3, BAD, {"general.alignment: 3", "power of two"}},
    {"alignment 2^31", align_2_31, BAD, {"2147483648", "65536"}},
    {"alignment as i32", align_i32, BAD, {"general.alignment", "u32"}},
    {"alignment as text", align_text, BAD, {"general.alignment", "u32"}},
    {"a key twice", two_keys, BAD, {"a.b", "twice"}},
    {"the alignment twice", two_alignments, BAD, {"general.alignment", "twice"}},
    {"a tensor twice", two_tensors, BAD, {"tensor t", "twice"}},
    {"a tensor without a name", name_empty, BAD, {"tensor 0", "name of 0"}},
    {"a tensor's name of 64 bytes", name_of_64, BAD, {"tensor 0", "name of 64"}},
    {"a tensor's name with a NUL", name_with_nul, BAD, {"a?c", "NUL"}},
    {"a zip archive", magic_zip, BAD, {"not a GGUF", "zip"}},
    {"a web page", magic_html, BAD, {"not a GGUF", "HTML"}},
    {"GGUF written backwards", magic_reversed, BAD, {"not a GGUF", "big-endian"}},
    {"no magic that is known", magic_none, BAD, {"1 2 3 4", "GGUF"}},
    {"version 0", version_0, TERN_UNSUPPORTED, {"version 0", "2 and 3"}},
    {"version 1", version_1, TERN_UNSUPPORTED, {"version 1", "2 and 3"}},
    {"version 4", version_4, TERN_UNSUPPORTED, {"version 4", "2 and 3"}},
    {"version 3 in the other byte order", version_big, TERN_UNSUPPORTED, {"big-endian", ""}},
    {"one part of three", split_alone, BAD, {"3 files", "1"}},
    {"a split count of text", split_text, BAD, {"split.count", "integer"}},
    {"an architecture that is a number", architecture_number, BAD, {"general.arch", "string"}},
    {"an architecture of 64 bytes", architecture_long, TERN_UNSUPPORTED, {"general.arch", "63"}},
};
#undef BAD

static void hostile_file_is_refused_with_thing_and_value(void **state)
{
    const struct hostile *h = *state;
    struct gguf_writer w = gw_start();
    h->make(&w);
    gw_finish(&w);
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_HEADER, w.file.data, w.file.n);
        if (o->status != h->status || !strstr(o->error.text, h->words[0]) ||
            !strstr(o->error.text, h->words[1]))
            print_message("%s: %s: \"%s\"\n", h->name, tern_status_name(o->status), o->error.text);
        assert_int_equal(o->status, h->status);
        assert_null(o->model);
        assert_non_null(strstr(o->error.text, h->words[0]));
        assert_non_null(strstr(o->error.text, h->words[1]));
        open_close(o);
    }
    gw_free(&w);
}

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
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(values_read_as_they_were_written),
        cmocka_unit_test(directory_is_as_it_was_written),
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
    enum { N_HOSTILE = sizeof hostile / sizeof *hostile, N_OTHERS = sizeof others / sizeof *others };
    struct CMUnitTest tests[N_HOSTILE + N_OTHERS];
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < N_HOSTILE; i++)
        tests[i] = (struct CMUnitTest){.name = hostile[i].name,
                                       .test_func = hostile_file_is_refused_with_thing_and_value,
                                       .initial_state = (void *)(uintptr_t)&hostile[i]};
    memcpy(tests + N_HOSTILE, others, sizeof others);
    return _cmocka_run_group_tests("gguf", tests, N_HOSTILE + N_OTHERS, NULL, NULL);
}
