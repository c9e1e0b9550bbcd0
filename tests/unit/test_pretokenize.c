/* The right words were computed by hand from the patterns, and agree with a backtracking engine
 * (Python's `regex`) that runs the patterns themselves: tests/oracle/splits.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/pretokenize.h"
#include "runtime/text.h"

#include <string.h>

static void check(const char *pre, const char *text, size_t n, const char *expected)
{
    static char out[4096];
    size_t at = 0;
    struct tern_split split =
        tern_pretokenize_start(tern_pretokenize_find(tern_text_of(pre)), (tern_text){text, n});
    tern_text word;
    while (tern_pretokenize_next(&split, &word)) {
        if (at)
            out[at++] = '|';
        memcpy(out + at, word.data, word.size);
        at += word.size;
    }
    out[at] = 0;
    assert_string_equal(out, expected);
}

static void each_family_cuts_as_its_pattern_says(void **state)
{
    (void)state;
    static const struct { const char *pre, *text, *words;
    } cases[] = {
        {"gpt-2", "I'll go  to \n\n x1'LL", "I|'ll| go| | to| \n\n| x|1|'|LL"},
        {"gpt-2", "a\tb", "a|\t|b"},
        {"gpt-2", "12345 678", "12345| 678"},
        {"gpt-2", "trail   ", "trail|   "},
        {"smollm", "a12 345", "a|1|2| |3|4|5"},
        {"qwen2", "3.14159", "3|.|1|4|1|5|9"},
        {"qwen2", "I'LL don't", "I|'LL| don|'t"},
        {"qwen2", "\n\n\nx", "\n\n\n|x"},
        {"qwen2", "\t\n x", "\t\n| x"},
        {"qwen2", "a \r\n\r\n b", "a| \r\n\r\n| b"},
        {"qwen2", "\\n", "\\n"},
        {"qwen2", "x:\n\ny", "x|:\n\n|y"},
        {"qwen2", "(word)", "(word|)"},
        {"llama3", "33333333333", "333|333|333|33"},
        {"llama3", "1 000 000", "1| |000| |000"},
        {"llama3", "12a345", "12|a|345"},
        {"llama3", "   x", "  | x"},
        {"llama3", " \xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8",
         " \xe0\xa4\xb9|\xe0\xa4\xbf\xe0\xa4\xa8"},
        {"qwen35", " \xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8",
         " \xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8"},
        {"gpt-4o", "HelloWorld ABCdef", "Hello|World| ABCdef"},
        {"gpt-4o", "camelCaseHTTPServer's", "camel|Case|HTTPServer's"},
        {"gpt-4o", "a//\n/b", "a|//\n/|b"},
        {"gpt-4o", "ABC 1234", "ABC| |123|4"},
        {"gpt-4o",
         "\xc3\x89"
         "A\xc2\xaa"
         "B",
         "\xc3\x89"
         "A\xc2\xaa|B"},
        {"tekken", "It's 12", "It|'s| |1|2"},
        {"falcon", "3..3", "3|..|3"},
        {"falcon", "$1,234.56", "$|1|,|234|.|56"},
        {"falcon", "a--b---c", "a|--|b|---|c"},
        {"falcon", "123456 7", "123|456| 7"},
        {"falcon", "''''''```````\"\"\"", "''''''```````\"\"\""},
        {"default", "a``b 1234", "a|``|b| |123|4"},
        {"deepseek-coder", "foo (bar) 12\n", "foo| (|bar|)| |1|2|\n"},
        {"deepseek-llm", "foo bar12  ", "foo| bar|12|  "},
        {"deepseek-v3", "12345 _abc \xe6\x97\xa5\xe6\x9c\xac",
         "123|45| _|abc| |\xe6\x97\xa5\xe6\x9c\xac"},
        {"bloom", "one, two", "one|,| two"},
        {"viking", "a12", "a|1|2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].pre, cases[i].text, strlen(cases[i].text), cases[i].words);
}

static void apostrophes_fold_ascii_letters_alone(void **state)
{
    (void)state;
    check("qwen2", "it\xe2\x80\x99s", 6, "it|\xe2\x80\x99s"); /* U+2019 is none */
    check("qwen2", "it'\xc5\xbf", 5, "it|'\xc5\xbf"); /* nor does U+017F count as s */
    check("gpt-2", "it'S", 4, "it|'|S");
}

static const char *const names[] = {
    "",       "default", "llama3", "qwen2",        "qwen35",         "smollm",
    "gpt-2",  "gpt-4o",  "tekken", "deepseek-llm", "deepseek-coder", "deepseek-v3",
    "falcon", "bloom",   "viking",
};

/* All texts of up to seven of these, so every order of classes around every border. */
static void words_are_never_empty_and_add_up(void **state)
{
    (void)state;
    static const char *const parts[] = {"a", "B", "1", " ", "\n", "'", "\xcc\x81", "\xff"};
    enum { N = sizeof parts / sizeof *parts };
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        const struct tern_pre *pre = tern_pretokenize_find(tern_text_of(names[f]));
        assert_non_null(pre);
        for (size_t i = 0; i < (size_t)N * N * N * N * N; i++) {
            char text[16];
            size_t n = 0;
            for (size_t k = 0, rest = i; k < 5; k++, rest /= N) {
                memcpy(text + n, parts[rest % N], strlen(parts[rest % N]));
                n += strlen(parts[rest % N]);
            }
            struct tern_split split = tern_pretokenize_start(pre, (tern_text){text, n});
            const char *at = text;
            tern_text word;
            while (tern_pretokenize_next(&split, &word)) {
                assert_ptr_equal(word.data, at);
                assert_int_not_equal(word.size, 0);
                at += word.size;
            }
            assert_ptr_equal(at, text + n);
        }
    }
}

static void unknown_names_are_not_guessed(void **state)
{
    (void)state;
    assert_null(tern_pretokenize_find(tern_text_of("qwen")));
    assert_null(tern_pretokenize_find(tern_text_of("llama-bpe2")));
    assert_null(tern_pretokenize_find(tern_text_of("LLAMA3")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_cuts_as_its_pattern_says),
        cmocka_unit_test(apostrophes_fold_ascii_letters_alone),
        cmocka_unit_test(words_are_never_empty_and_add_up),
        cmocka_unit_test(unknown_names_are_not_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
