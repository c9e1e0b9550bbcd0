#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/out.h"

static struct tern_out o;

static const char *written(void)
{
    static char text[4096];
    assert_true(o.n < sizeof text);
    memcpy(text, o.grown, o.n);
    text[o.n] = 0;
    tern_out_free(&o);
    return text;
}

static void values_are_separated_and_nested(void **state)
{
    (void)state;
    tern_out_open(&o, -1);
    tern_json_begin(&o, NULL, '{');
    tern_json_begin(&o, "a", '[');
    tern_json_i64(&o, NULL, -1);
    tern_json_null(&o, NULL);
    tern_json_begin(&o, NULL, '{');
    tern_json_end(&o, '}');
    tern_json_end(&o, ']');
    tern_json_bool(&o, "b", true);
    tern_json_u64(&o, "c", UINT64_MAX);
    tern_json_end(&o, '}');
    assert_string_equal(written(),
                        "{\"a\": [-1, null, {}], \"b\": true, \"c\": 18446744073709551615}");
}

static void text_is_always_valid_json(void **state)
{
    (void)state;
    static const struct { const char *bytes; size_t n; const char *json; } rows[] = {
        {"a\"\\\n\t\x01\x7f", 7, "\"a\\\"\\\\\\n\\u0009\\u0001\\u007f\""},
        {"\0b", 2, "\"\\u0000b\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff", 1, "\"\xef\xbf\xbd\""},
        {"\xe6\xad", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf4\x90\x80\x80z", 5, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tern_out_open(&o, -1);
        tern_json_text(&o, NULL, (tern_text){rows[i].bytes, rows[i].n});
        assert_string_equal(written(), rows[i].json);
    }
    tern_out_open(&o, -1);
    tern_json_begin(&o, NULL, '{');
    tern_json_string(&o, "a", "b\"");
    tern_json_string(&o, "c", NULL);
    tern_json_end(&o, '}');
    assert_string_equal(written(), "{\"a\": \"b\\\"\", \"c\": null}");
}

static void floats_come_back_with_every_bit(void **state)
{
    (void)state;
    uint32_t x = 12345;
    for (int i = 0; i < 20000; i++) {
        x = x * 1664525u + 1013904223u;
        float f, g;
        memcpy(&f, &x, sizeof f);
        if (!isfinite(f))
            continue;
        tern_out_open(&o, -1);
        tern_json_float(&o, NULL, f);
        g = strtof(written(), NULL);
        assert_memory_equal(&f, &g, sizeof f);
    }
    tern_out_open(&o, -1);
    tern_json_begin(&o, NULL, '[');
    tern_json_float(&o, NULL, NAN);
    tern_json_float(&o, NULL, -INFINITY);
    tern_json_real(&o, NULL, INFINITY);
    tern_json_end(&o, ']');
    assert_string_equal(written(), "[null, -3.40282347e+38, null]");
}

static void a_full_disk_is_remembered(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        skip();
    tern_out_open(&o, fd);
    for (int i = 0; i < 3 * TERN_OUT_BYTES; i++)
        tern_out_put(&o, "x", 1);
    assert_false(tern_out_flush(&o));
    assert_int_equal(o.error, ENOSPC);
    close(fd);
}

static void nothing_is_lost_between_buffer_and_file(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    tern_out_open(&o, ends[1]);
    static char big[TERN_OUT_BYTES + 100], got[3 * TERN_OUT_BYTES];
    memset(big, 'b', sizeof big);
    tern_out_print(&o, "%d-", 42);
    tern_out_put(&o, big, sizeof big);
    tern_out_put(&o, "end", 3);
    assert_true(tern_out_flush(&o));
    close(ends[1]);
    size_t n = 0;
    for (ssize_t k; (k = read(ends[0], got + n, sizeof got - n)) > 0;)
        n += (size_t)k;
    close(ends[0]);
    assert_int_equal(n, 3 + sizeof big + 3);
    assert_memory_equal(got, "42-b", 4);
    assert_memory_equal(got + n - 4, "bend", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_separated_and_nested),
        cmocka_unit_test(text_is_always_valid_json),
        cmocka_unit_test(floats_come_back_with_every_bit),
        cmocka_unit_test(a_full_disk_is_remembered),
        cmocka_unit_test(nothing_is_lost_between_buffer_and_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
