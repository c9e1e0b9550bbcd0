#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/chat_line.h"

static tern_text text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

/* Lines, each ended by a line feed, to what they are together; answers how many were taken until
 * the first message was whole. */
static int take(struct tern_chat_lines *l, const char *lines)
{
    int n = 0;
    tern_chat_lines_start(l);
    while (*lines) {
        const size_t size = strcspn(lines, "\n");
        n++;
        if (tern_chat_lines_add(l, (tern_text){lines, size}))
            return n;
        lines += size + 1;
    }
    return -n;
}

static void expect(const char *lines, int n, const char *text, bool literal)
{
    struct tern_chat_lines l = {.open = false};
    assert_int_equal(take(&l, lines), n);
    assert_int_equal(l.text.n, strlen(text));
    assert_true(l.text.n == 0 || memcmp(l.text.grown, text, l.text.n) == 0);
    assert_int_equal(l.literal, literal);
    assert_int_equal(l.open, n < 0);
    tern_chat_lines_free(&l);
}

static void a_line_is_a_message(void **state)
{
    (void)state;
    expect("hello there\nnext\n", 1, "hello there", false);
    expect("\n", 1, "", false);
    expect("/help\n", 1, "/help", false);
}

static void a_backslash_at_the_end_goes_on(void **state)
{
    (void)state;
    expect("one\\\ntwo\\\nthree\nfour\n", 3, "one\ntwo\nthree", false);
    expect("one\\\n", -1, "one", false);
    expect("one \\ two\n", 1, "one \\ two", false);
    expect("\\\nx\n", 2, "\nx", false);
}

static void quotation_marks_hold_any_lines(void **state)
{
    (void)state;
    expect("\"\"\"\n/quit\n\n  b\\\n\"\"\"\nmore\n", 5, "/quit\n\n  b\\", true);
    expect("\"\"\"one\ntwo\"\"\"\n", 2, "one\ntwo", true);
    expect("\"\"\"all\"\"\"  \n", 1, "all", true);
    expect("\"\"\"\n\n\na\n\"\"\"\n", 5, "\n\na", true);
    expect("\"\"\"\nopen\n", -2, "open", true);
    expect("a \"\"\"\n", 1, "a \"\"\"", false);
}

static void what_a_message_cannot_hold_is_counted(void **state)
{
    (void)state;
    struct tern_chat_lines l = {.open = false};
    const size_t n = TERN_CHAT_MOST_BYTES + 5;
    char *text = calloc(1, n);
    memset(text, 'x', n);
    tern_chat_lines_start(&l);
    assert_true(tern_chat_lines_add(&l, (tern_text){text, n}));
    assert_int_equal(l.text.n, TERN_CHAT_MOST_BYTES);
    assert_int_equal(l.too_many, 5);
    tern_chat_lines_start(&l);
    assert_int_equal(l.text.n + l.too_many, 0);
    tern_chat_lines_free(&l);
    free(text);
}

static void expect_word(const char *text, enum tern_chat_verb verb, const char *rest)
{
    const struct tern_chat_word w = tern_chat_read_word(text_of(text), false);
    assert_int_equal(w.verb, verb);
    assert_int_equal(w.rest.size, strlen(rest));
    assert_memory_equal(w.rest.data, rest, strlen(rest));
}

static void commands_are_told_from_messages(void **state)
{
    (void)state;
    expect_word("hello", TERN_CHAT_MESSAGE, "hello");
    expect_word("  hello ", TERN_CHAT_MESSAGE, "  hello ");
    expect_word(" /quit", TERN_CHAT_MESSAGE, " /quit");
    expect_word("/quit", TERN_CHAT_QUIT, "");
    expect_word("/bye ", TERN_CHAT_QUIT, "");
    expect_word("/system  be brief\nand kind ", TERN_CHAT_SYSTEM, "be brief\nand kind");
    expect_word("/set temp 0.5", TERN_CHAT_SET, "temp 0.5");
    expect_word("/sets temp", TERN_CHAT_UNKNOWN, "temp");
    expect_word("/", TERN_CHAT_UNKNOWN, "");
    expect_word("//etc/passwd", TERN_CHAT_MESSAGE, "/etc/passwd");
    expect_word(" \t\n", TERN_CHAT_NOTHING, " \t\n");
    expect_word("", TERN_CHAT_NOTHING, "");
    assert_int_equal(tern_chat_read_word(text_of("/quit"), true).verb, TERN_CHAT_MESSAGE);
}

static void help_names_every_command(void **state)
{
    (void)state;
    size_t n = 0;
    const char *help, *usage;
    for (; (usage = tern_chat_command_at(n, &help)) != NULL; n++) {
        tern_text t = text_of(usage);
        const tern_text name = tern_chat_first_word(&t);
        assert_int_not_equal(tern_chat_read_word(name, false).verb, TERN_CHAT_UNKNOWN);
        assert_true(help[0] != 0);
    }
    assert_int_equal(n, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_message),
        cmocka_unit_test(a_backslash_at_the_end_goes_on),
        cmocka_unit_test(quotation_marks_hold_any_lines),
        cmocka_unit_test(what_a_message_cannot_hold_is_counted),
        cmocka_unit_test(commands_are_told_from_messages),
        cmocka_unit_test(help_names_every_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
