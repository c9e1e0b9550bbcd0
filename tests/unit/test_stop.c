#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/arena.h"
#include "runtime/stop.h"

enum { CAP = 32768 };

static _Alignas(64) unsigned char memory[2 * 1024 * 1024];
static struct tern_stops stops;
static char out[2 * CAP];

static int setup(void **state)
{
    (void)state;
    struct tern_arena a = tern_arena_over(memory, sizeof memory);
    tern_stops_lay_out(&a, &stops, CAP);
    return a.failed;
}

static tern_text text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

static bool ends_with(const char *text, size_t n, tern_text s)
{
    return s.size <= n && memcmp(text + n - s.size, s.data, s.size) == 0;
}

/* By trying everything: bytes before the stop that is complete first, n if none is. */
static size_t kept_of(const char *text, size_t n, const tern_text *set, size_t n_set, bool *stopped)
{
    *stopped = false;
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (size_t i = 0; i < n_set; i++)
            if (set[i].size > longest && ends_with(text, end, set[i]))
                longest = set[i].size;
        *stopped = longest > 0;
        if (longest)
            return end - longest;
    }
    return n;
}

/* Bytes at the end of text that may become a stop string. */
static size_t held_of(const char *text, size_t n, const tern_text *set, size_t n_set)
{
    size_t held = 0;
    for (size_t i = 0; i < n_set; i++)
        for (size_t k = 1; k < set[i].size; k++)
            if (k > held && ends_with(text, n, (tern_text){set[i].data, k}))
                held = k;
    return held;
}

/* Pushes text cut after byte i where bit i of cuts is set, and checks every step. */
static void check_chunks(const char *text, size_t n, uint64_t cuts, const tern_text *set,
                         size_t n_set)
{
    bool must_stop, stopped = false;
    const size_t kept = kept_of(text, n, set, n_set, &must_stop);
    size_t n_out = 0, from = 0;
    for (size_t i = 0; i < n && !stopped; i++) {
        if (i + 1 < n && !(cuts >> i & 1))
            continue;
        n_out += tern_stops_push(&stops, text + from, i + 1 - from, out + n_out, &stopped);
        from = i + 1;
        if (!stopped)
            assert_int_equal(n_out, from - held_of(text, from, set, n_set));
    }
    assert_int_equal(stopped, must_stop);
    n_out += tern_stops_end(&stops, out + n_out);
    assert_int_equal(n_out, kept);
    assert_memory_equal(out, text, kept);
}

static void every_chunking(const char *text, const tern_text *set, size_t n_set)
{
    const size_t n = strlen(text);
    tern_error err = {0};
    assert_int_equal(tern_stops_set(&stops, set, (uint32_t)n_set, &err), TERN_OK);
    assert_in_range(n, 0, 13);
    for (uint64_t cuts = 0; cuts < (n ? UINT64_C(1) << (n - 1) : 1); cuts++)
        check_chunks(text, n, cuts, set, n_set);
}

static void any_chunking_gives_the_text_before_the_first_stop(void **state)
{
    (void)state;
    static const char *const sets[][4] = {
        {"ab", "abc", "aab", "\n\n"}, {"ab", "abc"}, {"abc", "ab"}, {"abc", "b"}, {"bc", "abcd"},
        {"aab"}, {"aaa"}, {"\nUser:"}, {"日本"}, {"🌍"}, {"日本", "🌍", "a"}, {"abab", "ba"},
        {"aabaac", "abaad", "aac"}, {NULL},
    };
    static const char *const texts[] = {
        "", "a", "ab", "abc", "aab", "aaab", "aaaaab", "xabx", "xab", "a\n\nb", "\n\n", "\n \n",
        "xx\nUser:yy", "\nUser\nUser:", "\n\nUser:", "\nUser", "ein日本x", "日日本", "日",
        "\xe6\x97\xe6\x97\xa5\xe6\x9c\xac", "a🌍b", "\xf0\x9f\x8c", "abaabaac", "aabaabaac",
        "aabaaabaad", "bababab", "aaaaaaaaaaaa", "abcdabcdabcd", "caabaad",
    };
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
        for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
            tern_text set[4];
            size_t n = 0;
            while (n < 4 && sets[s][n]) {
                set[n] = text_of(sets[s][n]);
                n++;
            }
            every_chunking(texts[t], set, n);
        }
}

static void random_texts_over_few_letters_agree_with_trying_everything(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        char letters[17][6], text[60];
        tern_text set[17];
        tern_error err = {0};
        const size_t n_set = (const size_t[]){0, 1, 4, 17}[round % 4];
        for (size_t i = 0; i < n_set; i++) {
            set[i] = (tern_text){letters[i], 1 + (seed >> 33) % (n_set == 17 ? 6 : 5)};
            for (size_t j = 0; j < 6; j++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                letters[i][j] = "abcab"[(seed >> 33) % (n_set == 17 ? 5 : 2)];
            }
        }
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[i] = "abcx"[(seed >> 33) % (n_set == 17 ? 4 : 3)];
        }
        assert_int_equal(tern_stops_set(&stops, set, (uint32_t)n_set, &err), TERN_OK);
        check_chunks(text, sizeof text, 0, set, n_set);
        check_chunks(text, sizeof text, UINT64_MAX, set, n_set);
        check_chunks(text, sizeof text, seed, set, n_set);
    }
}

static void text_after_a_stop_inside_one_token_is_dropped(void **state)
{
    (void)state;
    const tern_text set[] = {{"STOP", 4}};
    tern_error err = {0};
    bool stopped;
    assert_int_equal(tern_stops_set(&stops, set, 1, &err), TERN_OK);
    assert_int_equal(tern_stops_push(&stops, "say S", 5, out, &stopped), 4);
    assert_int_equal(tern_stops_push(&stops, "STOP and more", 13, out, &stopped), 1);
    assert_true(stopped && out[0] == 'S');
    assert_int_equal(tern_stops_end(&stops, out), 0);
}

static void a_stop_of_ten_kilobytes_is_found_and_its_prefix_released(void **state)
{
    (void)state;
    static char long_text[10000];
    memset(long_text, 'a', sizeof long_text);
    long_text[9999] = 'b';
    const tern_text set[] = {{long_text, sizeof long_text}};
    tern_error err = {0};
    bool stopped;
    assert_int_equal(tern_stops_set(&stops, set, 1, &err), TERN_OK);
    size_t n_out = 0;
    for (int i = 0; i < 30000; i++) {
        n_out += tern_stops_push(&stops, "a", 1, out + n_out, &stopped);
        assert_false(stopped);
    }
    assert_int_equal(n_out, 30000 - 9999);
    n_out += tern_stops_push(&stops, "b!", 2, out + n_out, &stopped);
    assert_true(stopped);
    assert_int_equal(n_out, 30000 - 9999);

    assert_int_equal(tern_stops_push(&stops, long_text, 9999, out, &stopped), 0);
    assert_int_equal(tern_stops_push(&stops, "c", 1, out, &stopped), 10000);
    assert_int_equal(tern_stops_end(&stops, out), 0);
}

static void bad_stops_are_named_and_leave_none(void **state)
{
    (void)state;
    static char big[CAP + 1];
    tern_text set[33];
    tern_error err = {0};
    bool stopped;
    for (size_t i = 0; i < 33; i++)
        set[i] = text_of("x");
    assert_int_equal(tern_stops_set(&stops, set, 33, &err), TERN_BAD_ARGUMENT);
    assert_string_equal(err.text, "stop strings: 33, at most 32");
    assert_int_equal(tern_stops_set(&stops, set, 32, NULL), TERN_OK);

    set[1] = text_of("");
    err = (tern_error){0};
    assert_int_equal(tern_stops_set(&stops, set, 3, &err), TERN_BAD_ARGUMENT);
    assert_string_equal(err.text, "stop string 1: 0 bytes, at least 1");
    assert_int_equal(tern_stops_push(&stops, "x", 1, out, &stopped), 1);
    assert_false(stopped);

    memset(big, 'y', sizeof big);
    set[1] = (tern_text){big, CAP};
    err = (tern_error){0};
    assert_int_equal(tern_stops_set(&stops, set, 2, &err), TERN_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "stop string 1: 32768 bytes after 1"));
    set[1].size = SIZE_MAX;
    assert_int_equal(tern_stops_set(&stops, set, 2, NULL), TERN_BAD_ARGUMENT);
    set[1].size = CAP - 1;
    assert_int_equal(tern_stops_set(&stops, set, 2, NULL), TERN_OK);
}

static void a_copy_goes_on_by_itself(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char other[64 * 1024];
    static _Alignas(64) unsigned char one[64 * 1024];
    struct tern_stops from, to;
    const tern_text set[] = {{"abc", 3}};
    bool stopped;
    struct tern_arena a = tern_arena_over(one, sizeof one);
    tern_stops_lay_out(&a, &from, 100);
    a = tern_arena_over(other, sizeof other);
    tern_stops_lay_out(&a, &to, 100);
    assert_int_equal(tern_stops_set(&from, set, 1, NULL), TERN_OK);
    assert_int_equal(tern_stops_push(&from, "xab", 3, out, &stopped), 1);
    tern_stops_copy(&to, &from);
    assert_int_equal(tern_stops_push(&from, "c", 1, out, &stopped), 0);
    assert_true(stopped);
    assert_int_equal(tern_stops_push(&to, "d", 1, out, &stopped), 3);
    assert_memory_equal(out, "abd", 3);
    assert_false(stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_chunking_gives_the_text_before_the_first_stop),
        cmocka_unit_test(random_texts_over_few_letters_agree_with_trying_everything),
        cmocka_unit_test(text_after_a_stop_inside_one_token_is_dropped),
        cmocka_unit_test(a_stop_of_ten_kilobytes_is_found_and_its_prefix_released),
        cmocka_unit_test(bad_stops_are_named_and_leave_none),
        cmocka_unit_test(a_copy_goes_on_by_itself),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
