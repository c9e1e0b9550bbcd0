#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/chat_talk.h"

static tern_text text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

/* Messages by their first letters: "sua" is a system message, a user's and an answer. */
static struct tern_chat_talk talk_of(const char *letters)
{
    struct tern_chat_talk t;
    assert_true(tern_chat_talk_open(&t));
    for (; *letters; letters++) {
        const char text[2] = {*letters, 0};
        if (*letters == 's')
            assert_true(tern_chat_talk_set_system(&t, text_of(text)));
        else
            assert_true(tern_chat_talk_add(&t, *letters == 'u' ? "user" : *letters == 'a' ?
                                           "assistant" : "tool", text_of(text)));
    }
    return t;
}

static void expect_list(const json_t *list, const char *letters)
{
    char got[64] = "";
    size_t i;
    const json_t *m;
    json_array_foreach(list, i, m)
        strcat(got, json_string_value(json_object_get(m, "content")));
    assert_string_equal(got, letters);
}

static void turns_begin_with_a_users_message(void **state)
{
    (void)state;
    static const struct { const char *letters; size_t n; } rows[] = {
        {"", 0}, {"s", 0}, {"u", 1}, {"sua", 1}, {"uaua", 2}, {"suatatauau", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tern_chat_talk t = talk_of(rows[i].letters);
        assert_int_equal(tern_chat_talk_turns(&t), rows[i].n);
        tern_chat_talk_close(&t);
    }
}

static void the_oldest_turns_go_and_the_system_message_stays(void **state)
{
    (void)state;
    struct tern_chat_talk t = talk_of("suatauau");
    json_t *list = tern_chat_talk_without(&t, 1);
    expect_list(list, "suau");
    json_decref(list);
    list = tern_chat_talk_without(&t, 0);
    expect_list(list, "suatauau");
    json_decref(list);
    list = tern_chat_talk_without(&t, 9);
    expect_list(list, "s");
    json_decref(list);
    expect_list(t.messages, "suatauau");
    tern_chat_talk_drop(&t, 2);
    expect_list(t.messages, "su");
    tern_chat_talk_close(&t);
}

static void the_last_turn_or_its_answer_is_taken_back(void **state)
{
    (void)state;
    struct tern_chat_talk t = talk_of("suauata");
    assert_true(tern_chat_talk_undo(&t, true));
    expect_list(t.messages, "suau");
    assert_true(tern_chat_talk_undo(&t, true));
    expect_list(t.messages, "suau");
    assert_true(tern_chat_talk_undo(&t, false));
    expect_list(t.messages, "sua");
    assert_true(tern_chat_talk_undo(&t, false));
    assert_false(tern_chat_talk_undo(&t, false));
    assert_false(tern_chat_talk_undo(&t, true));
    expect_list(t.messages, "s");
    tern_chat_talk_close(&t);
}

static void the_system_message_is_set_and_taken_away(void **state)
{
    (void)state;
    struct tern_chat_talk t = talk_of("ua");
    assert_null(tern_chat_talk_system(&t));
    assert_true(tern_chat_talk_set_system(&t, text_of("x")));
    assert_true(tern_chat_talk_set_system(&t, text_of("y")));
    assert_string_equal(tern_chat_talk_system(&t), "y");
    expect_list(t.messages, "yua");
    assert_false(tern_chat_talk_set_system(&t, text_of("\xff")));
    expect_list(t.messages, "yua");
    assert_true(tern_chat_talk_set_system(&t, (tern_text){NULL, 0}));
    expect_list(t.messages, "ua");
    tern_chat_talk_close(&t);
}

static void messages_of_a_file_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}", "[1]", "[{\"role\": \"user\"}]", "[{\"role\": \"boss\", \"content\": \"\"}]",
        "[{\"role\": \"user\", \"content\": \"\"}, {\"role\": \"system\", \"content\": \"\"}]",
    };
    char line[TERN_ARGS_LINE];
    struct tern_chat_talk t = talk_of("ua");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *json = json_loads(wrong[i], 0, NULL);
        line[0] = 0;
        assert_false(tern_chat_talk_replace(&t, json, line));
        assert_true(line[0] != 0);
        json_decref(json);
    }
    expect_list(t.messages, "ua");
    struct tern_chat_talk other = talk_of("suatau");
    assert_true(tern_chat_talk_replace(&t, other.messages, line));
    tern_chat_talk_close(&other);
    expect_list(t.messages, "suatau");
    tern_chat_talk_close(&t);
}

/* --- what is dropped --- */

struct sizes { size_t n, at[40], calls; };

static size_t count(void *self, size_t dropped)
{
    struct sizes *s = self;
    size_t sum = 3;
    s->calls++;
    assert_true(dropped < s->n || s->n == 0);
    for (size_t i = dropped; i < s->n; i++)
        sum += s->at[i];
    return sum;
}

static void as_few_turns_go_as_have_to(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 400; seed++) {
        struct sizes s = {.n = seed % 40};
        for (size_t i = 0; i < s.n; i++)
            s.at[i] = seed * 7 * (i + 3) % 31;
        const size_t most = seed * 13 % 500;
        size_t n, want = 0;
        while (s.n > 0 && want + 1 < s.n && count(&s, want) > most)
            want++;
        s.calls = 0;
        assert_int_equal(tern_chat_talk_fit(s.n, most, count, &s, &n), want);
        assert_int_equal(n, count(&s, want));
        assert_true(s.calls <= 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_begin_with_a_users_message),
        cmocka_unit_test(the_oldest_turns_go_and_the_system_message_stays),
        cmocka_unit_test(the_last_turn_or_its_answer_is_taken_back),
        cmocka_unit_test(the_system_message_is_set_and_taken_away),
        cmocka_unit_test(messages_of_a_file_are_checked),
        cmocka_unit_test(as_few_turns_go_as_have_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
