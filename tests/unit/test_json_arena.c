#include "tools/serve/json_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 64 * TERN_BLOCK, ARENA = 1 << 20 };

static struct tern_blocks pool;
static _Alignas(64) char blocks[POOL], memory[ARENA];
static struct tern_json_arena arena = {.base = memory, .size = ARENA};
static char line[TERN_ARGS_LINE];

static int setup(void **state)
{
    (void)state;
    tern_blocks_init(&pool, (tern_memory){blocks, POOL});
    tern_json_arenas_install();
    tern_json_arena_use(&arena);
    return 0;
}

static json_t *read_text(const char *text, size_t n, int *status)
{
    struct tern_chain body = {0};
    assert_true(tern_chain_put(&pool, &body, text, n));
    tern_json_arena_empty(&arena);
    line[0] = 0;
    json_t *json = tern_json_read(&pool, &body, status, line);
    assert_int_equal(body.size, 0);
    assert_int_equal(tern_blocks_left(&pool), POOL / TERN_BLOCK);
    return json;
}

static void reads_what_is_json(void **state)
{
    (void)state;
    int status;
    const char text[] = "{\"a\": [1, 2.5, \"x\\\"[{\", {\"b\": null}], \"c\": true}";
    json_t *json = read_text(text, sizeof text - 1, &status);
    assert_true(json_is_object(json));
    assert_int_equal(json_array_size(json_object_get(json, "a")), 4);
    json_decref(json);
}

static void names_the_place_of_what_is_wrong(void **state)
{
    static const struct { const char *text, *where, *what; } rows[] = {
        {"{\"a\": 1,\n \"a\": 2}", "line 2", "stands twice"},
        {"{\"a\": 1e999}", "line 1", "out of range"},
        {"{\"a\": 99999999999999999999}", "line 1", "out of range"},
        {"{\"a\": \"\xff\"}", "line 1", "UTF-8"},
        {"{\"a\": \"\\u0000\"}", "line 1", "zero byte"},
        {"{\"a\": \"\\ud83d\"}", "line 1", "no JSON value"},
        {"{\"a\": tru}", "line 1", "no JSON value"},
        {"{\"a\": 1} x", "line 1", "follows"},
        {"{\"a\": ", "line 1", "ends before"},
        {"", "line 1", "ends before"},
        {"\xef\xbb\xbf{}", "line 1", "no JSON value"},
        {"\"text\"", "line 1", "no JSON value"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = 0;
        assert_null(read_text(rows[i].text, strlen(rows[i].text), &status));
        assert_int_equal(status, 400);
        if (!strstr(line, rows[i].where) || !strstr(line, rows[i].what))
            fail_msg("%s: %s", rows[i].text, line);
        for (const char *p = line; *p; p++)
            assert_in_range(*p, 0x20, 0x7e);
    }
}

static void bounds_depth_of_objects_and_lists(void **state)
{
    static char text[200000];
    (void)state;
    for (int object = 0; object < 2; object++) {
        for (int depth = 63; depth <= 66; depth++) {
            const char *open = object ? "{\"a\":" : "[";
            size_t n = 0;
            int status;
            for (int i = 0; i < depth; i++)
                n += (size_t)sprintf(text + n, "%s", open);
            n += (size_t)sprintf(text + n, "1");
            for (int i = 0; i < depth; i++)
                text[n++] = object ? '}' : ']';
            json_t *json = read_text(text, n, &status);
            assert_int_equal(json != NULL, depth <= TERN_JSON_DEPTH);
            if (!json)
                assert_non_null(strstr(line, "nested deeper than 64"));
            json_decref(json);
        }
    }
    int status;
    memset(text, '[', 100000);
    assert_null(read_text(text, 100000, &status));
    assert_non_null(strstr(line, "column 65"));
}

static void refuses_more_values_than_its_memory_holds(void **state)
{
    static char text[150000];
    int status;
    (void)state;
    text[0] = '[';
    for (size_t i = 1; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "1,", 2);
    text[sizeof text - 3] = '1';
    text[sizeof text - 2] = ']';
    assert_null(read_text(text, sizeof text - 1, &status));
    assert_int_equal(status, 413);
}

static void leaves_other_threads_and_memory_alone(void **state)
{
    (void)state;
    int status;
    tern_json_arena_use(NULL);
    json_t *own = json_pack("{s:i}", "a", 1);
    tern_json_arena_use(&arena);
    const size_t used = arena.used;
    json_decref(own); /* made by malloc, and goes back there */
    assert_int_equal(arena.used, used);
    json_decref(read_text("{}", 2, &status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_json),
        cmocka_unit_test(names_the_place_of_what_is_wrong),
        cmocka_unit_test(bounds_depth_of_objects_and_lists),
        cmocka_unit_test(refuses_more_values_than_its_memory_holds),
        cmocka_unit_test(leaves_other_threads_and_memory_alone),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
