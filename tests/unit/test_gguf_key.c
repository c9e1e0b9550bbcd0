/* Hostile GGUF files, one a case, with the answer that each must get, through a mapped source
 * and through one that is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/gguf_writer.h"
#include "tests/unit/open_model.h"

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
static void keys_65537(struct gguf_writer *w)
{
    for (int i = 0; i < 65537; i++)
        gw_int(w, "k", TERN_META_U8, 0);
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
static void dims_2_64_of_three(struct gguf_writer *w)
{
    with_dims(w, 0, 3, 4, 1ull << 31, 1ull << 31);
}
static void q4_k_bytes_wrap(struct gguf_writer *w) { with_dims(w, 12, 2, 256, 1ull << 54, 1); }
static void bytes_wrap(struct gguf_writer *w) { with_dims(w, 0, 1, 1ull << 62, 1, 1); }
static void dim0_zero(struct gguf_writer *w) { with_dims(w, 0, 2, 0, 2, 1); }
static void dim1_zero(struct gguf_writer *w) { with_dims(w, 0, 2, 8, 0, 1); }
static void dim2_zero(struct gguf_writer *w) { with_dims(w, 0, 3, 8, 2, 0); }
static void dim3_zero(struct gguf_writer *w)
{
    const uint64_t dims[4] = {8, 2, 2, 0};
    gw_tensor_raw(w, "some.weight", 0, 4, dims, 0);
    gw_put(&w->data, NULL, 4096);
}
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
/* A tensor of 32 bytes and one of 64, each where the other lies. */
static void offsets_exchanged(struct gguf_writer *w)
{
    gw_tensor_raw(w, "small", 0, 1, (const uint64_t[]){8}, 32);
    gw_tensor_raw(w, "large", 0, 1, (const uint64_t[]){16}, 0);
    gw_put(&w->data, NULL, 96);
}
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
    {"65537 keys", keys_65537, TERN_UNSUPPORTED, {"65537 keys", "at most 65536"}},
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
    {"fourth dimension 0", dim3_zero, BAD, {"some.weight", "dimension 3 is 0"}},
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
    {"exchanged offsets", offsets_exchanged, BAD, {"large and small", "overlap at byte"}},
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
        /* A header alone may hold tensors of types that are not read. */
        struct opened *o = open_bytes((enum open_how)how, h->status == TERN_UNSUPPORTED ?
                                      TERN_MODEL_TEXT : TERN_MODEL_HEADER, w.file.data, w.file.n);
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

int main(void)
{
    enum { N = sizeof hostile / sizeof *hostile };
    struct CMUnitTest tests[N];
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){.name = hostile[i].name,
                                       .test_func = hostile_file_is_refused_with_thing_and_value,
                                       .initial_state = (void *)(uintptr_t)&hostile[i]};
    return _cmocka_run_group_tests("hostile gguf", tests, N, NULL, NULL);
}
