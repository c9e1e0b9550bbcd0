/* test_grammar.c: grammars in text, and the texts that they let in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar_memory.h"

enum { SCRATCH = 4 << 20, MEMORY = 1 << 20 };

struct fixture { struct grammar_memory memory; tern_error err; };

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->memory = gm_open(MEMORY, SCRATCH);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    gm_close(&f->memory);
    free(f);
    return 0;
}

static tern_grammar *compile(struct fixture *f, const char *text)
{
    return gm_compile(&f->memory, (tern_text){text, strlen(text)}, NULL, &f->err);
}

static bool takes(const tern_grammar *g, const char *text)
{
    static tern_grammar_state s;
    tern_grammar_start(g, &s);
    return tern_grammar_advance(&s, text, strlen(text)) == strlen(text) &&
           tern_grammar_may_end(&s);
}

/* in and out: texts, each with a NUL, and an empty one behind the last; "" itself is asked for by
 * its own function. */
static void expect(struct fixture *f, const char *grammar, const char *in, const char *out)
{
    tern_grammar *g = compile(f, grammar);
    if (!g)
        fail_msg("%s: %s", grammar, f->err.text);
    for (; *in; in += strlen(in) + 1)
        if (!takes(g, in))
            fail_msg("%s refuses %s", grammar, in);
    for (; *out; out += strlen(out) + 1)
        if (takes(g, out))
            fail_msg("%s takes %s", grammar, out);
}

static void expect_wrong(struct fixture *f, const char *grammar, const char *text)
{
    assert_null(compile(f, grammar));
    assert_string_equal(f->err.text, text);
}

static void literals_ranges_and_their_escapes_are_read(void **state)
{
    struct fixture *f = *state;
    expect(f, "root ::= \"a\\\"\\\\\\n\\x41\\u00e9\\U0001F600\"",
           "a\"\\\nA\xc3\xa9\xf0\x9f\x98\x80\0", "a\0");
    expect(f, "root ::= [a-c\\]\\-x]+", "abc]-x\0", "d\0a[\0");
    expect(f, "root ::= [^a-c\\n]", "d\0\xc3\xa9\0\xf0\x9f\x98\x80\0", "a\0\n\0\xc3\0dd\0");
    expect(f, "root ::= . .", "a\n\0\xe2\x82\xac" "b\0", "a\0abc\0\xff\xff\0");
    expect(f, "root ::= [a-]", "a\0-\0", "b\0");
}

static void ranges_of_characters_become_ranges_of_bytes(void **state)
{
    struct fixture *f = *state;
    static const uint32_t ends[] = {0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000,
                                    0x3ffff, 0x10ffff, 0x1234, 0x4e00, 0x9fff, 0x10fffe};
    const size_t n = sizeof ends / sizeof *ends;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            char text[64];
            if (ends[i] > ends[k])
                continue;
            snprintf(text, sizeof text, "root ::= [\\U%08X-\\U%08X]", ends[i], ends[k]);
            tern_grammar *g = compile(f, text);
            assert_non_null(g);
            for (uint32_t cp = 1; cp <= 0x10ffff; cp += cp < 0x1000 ? 7 : 997) {
                char utf8[5] = {0};
                uint32_t c = cp >= 0xd800 && cp < 0xe000 ? 0xe000 : cp;
                if (c < 0x80) {
                    utf8[0] = (char)c;
                } else if (c < 0x800) {
                    utf8[0] = (char)(0xc0 | c >> 6);
                    utf8[1] = (char)(0x80 | (c & 63));
                } else if (c < 0x10000) {
                    utf8[0] = (char)(0xe0 | c >> 12);
                    utf8[1] = (char)(0x80 | (c >> 6 & 63));
                    utf8[2] = (char)(0x80 | (c & 63));
                } else {
                    utf8[0] = (char)(0xf0 | c >> 18);
                    utf8[1] = (char)(0x80 | (c >> 12 & 63));
                    utf8[2] = (char)(0x80 | (c >> 6 & 63));
                    utf8[3] = (char)(0x80 | (c & 63));
                }
                if (takes(g, utf8) != (c >= ends[i] && c <= ends[k]))
                    fail_msg("%s and %x", text, c);
            }
        }
}

static void pieces_are_repeated(void **state)
{
    struct fixture *f = *state;
    expect(f, "root ::= \"ab\"* \"c\"", "c\0ababc\0", "abac\0");
    expect(f, "root ::= \"a\"+ \"b\"?", "a\0aab\0", "b\0abb\0");
    expect(f, "root ::= \"a\"{2} [b]{1,} \"c\"{0,2} \"d\"{0}", "aab\0aabbbcc\0", "ab\0aa\0aabccc\0"
           "aabd\0");
    expect(f, "root ::= ([a-c] \"-\"){3,5} \"!\"", "a-b-c-!\0a-b-c-a-b-!\0", "a-b-!\0"
           "a-a-a-a-a-a-!\0");
    expect(f, "root ::= x{2,} \"!\"\nx ::= \"a\" | \"b\"", "ab!\0aabbab!\0", "a!\0!\0");
    expect(f, "root ::= (\"a\" | \"aa\"){3} \"b\"", "aaab\0aaaaaab\0aaaaab\0", "aab\0aaaaaaab\0");
    expect(f, "root ::= x{0} (x | \"c\"){0,0} \"b\"\nx ::= \"a\" x | \"d\"", "b\0", "ab\0db\0");
    expect(f, "root ::= (\"a\"*)* (\"\" | \"b\")+ \"c\"", "c\0aabbc\0", "abac\0");
    expect(f, "root ::= x* \"z\"\nx ::= \"y\"?", "z\0yyz\0", "yx\0");
    expect(f, "root ::= (\"a\" \"b\"?)? (\"c\"+){2}", "cc\0abccc\0", "c\0abb\0");
}

static void large_counts_take_no_more_states(void **state)
{
    struct fixture *f = *state;
    static char text[20002];
    tern_grammar_info few, many;
    tern_grammar_describe(compile(f, "root ::= [a-z]{1,100} \"!\""), &few);
    tern_grammar *g = compile(f, "root ::= [a-z]{9999,20000} \"!\"");
    tern_grammar_describe(g, &many);
    assert_int_equal(few.n_states, many.n_states);
    memset(text, 'q', 20000);
    strcpy(text + 20000, "!");
    assert_true(takes(g, text));
    assert_true(takes(g, text + 20000 - 9999));
    assert_false(takes(g, text + 20000 - 9998));
    memmove(text + 1, text, 20000);
    assert_false(takes(g, text));
}

static void rules_call_themselves_and_one_another(void **state)
{
    struct fixture *f = *state;
    expect(f, "root ::= \"(\" root \")\" | \"\"", "()\0((()))\0", "(\0())\0");
    expect(f, "root ::= \"a\" root | \"b\"", "aaaaab\0b\0", "a\0ba\0");
    expect(f, "root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9] | \"(\" e \")\"",
           "1+2\0(1+(2))+3\0", "1+\0(1\0");
    expect(f, "root ::= a \"x\" | b \"y\"\na ::= \"q\" a | \"\"\nb ::= \"q\" b | \"\"",
           "qqx\0qqqy\0x\0", "qq\0xy\0");
    expect(f, "root ::= s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"\"", "ab\0aacb\0aaabcb\0",
           "aab\0abc\0");
    expect(f, "root ::= (\n  # a comment\n \"a\" |\n\n  \"b\"\n) other-1\nother-1 ::= \"c\" # end",
           "ac\0bc\0", "a\0");
}

/* A list in last place is no deeper than its first item. */
static void a_call_in_last_place_needs_no_depth(void **state)
{
    struct fixture *f = *state;
    static char text[40001];
    tern_grammar *g = compile(f, "root ::= list\nlist ::= item \",\" list | item\n"
                                 "item ::= [a-z] | \"(\" list \")\"");
    for (int i = 0; i < 20000; i++)
        memcpy(text + 2 * i, "a,", 2);
    text[39999] = 0;
    assert_true(takes(g, text));
}

static void depth_and_ways_are_bounded(void **state)
{
    struct fixture *f = *state;
    static char text[4096];
    static tern_grammar_state s;
    tern_grammar *g = compile(f, "root ::= \"(\" root \")\" | \"\"");
    memset(text, '(', sizeof text);
    tern_grammar_start(g, &s);
    const size_t n = tern_grammar_advance(&s, text, sizeof text);
    assert_in_range(n, TERN_GRAMMAR_DEPTH, TERN_GRAMMAR_DEPTH + 1);
    assert_true(s.overflow);
    /* Twice as many ways with each byte: those that there is no room for are left out. */
    g = compile(f, "root ::= s\ns ::= \"a\" s \"b\" | \"a\" t \"c\" | \"\"\n"
                   "t ::= \"a\" s \"d\" | \"a\" t \"e\" | \"\"");
    memset(text, 'a', sizeof text);
    tern_grammar_start(g, &s);
    (void)tern_grammar_advance(&s, text, 100);
    assert_true(s.overflow);
}

static void many_optional_pieces_stay_cheap(void **state)
{
    struct fixture *f = *state;
    static tern_grammar_state s;
    for (int n = 10; n <= 60; n += 10) {
        char text[2048] = "root ::=";
        for (int i = 0; i < n; i++)
            strcat(text, " \"a\"?");
        for (int i = 0; i < n; i++)
            strcat(text, " \"a\"");
        tern_grammar *g = compile(f, text);
        memset(text, 'a', 200);
        tern_grammar_start(g, &s);
        assert_int_equal(tern_grammar_advance(&s, text, 200), 2 * n);
        assert_int_equal(s.n_ways, 1);
        assert_true(tern_grammar_may_end(&s));
    }
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    struct fixture *f = *state;
    expect_wrong(f, "", "grammar: line 1, column 1: there is no rule root");
    expect_wrong(f, "root ::= a\n", "grammar: line 1, column 10: rule a is not defined");
    expect_wrong(f, "root ::= \"a", "grammar: line 1, column 10: a literal without its closing "
                                    "quote");
    expect_wrong(f, "root ::= [a", "grammar: line 1, column 10: a class without its closing "
                                   "bracket");
    expect_wrong(f, "root ::= [c-a]", "grammar: line 1, column 11: a range whose first character "
                                      "is above its last");
    expect_wrong(f, "root ::= \"\\q\"", "grammar: line 1, column 11: an escape that is not known");
    expect_wrong(f, "root ::= (\"a\"", "grammar: line 1, column 14: the end of the text, a ) "
                                       "expected");
    expect_wrong(f, "root ::= * \"a\"", "grammar: line 1, column 10: nothing to be repeated stands "
                                        "before this");
    expect_wrong(f, "root ::= \"a\"{3,2}", "grammar: line 1, column 13: a repetition's least is "
                                           "above its most");
    expect_wrong(f, "root ::= \"a\"\n\nroot ::= \"b\"", "grammar: line 3, column 1: a rule of this "
                                                        "name is there already");
    expect_wrong(f, "root ::= <think>", "grammar: line 1, column 10: a token needs a model, whose "
                                        "vocabulary names it");
    expect_wrong(f, "root ::= \"a\" root", "grammar: line 1, column 1: rule root can never come to "
                                           "its end");
}

static void left_recursion_is_refused_however_hidden(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {
        "root ::= root \"x\" | \"y\"",
        "root ::= \"\" root \"x\" | \"y\"",
        "root ::= a \"x\" | \"y\"\na ::= b | \"z\"\nb ::= \"q\"? root",
        "root ::= \"x\"* root | \"y\"",
        "root ::= (\"x\" | root){0,9} \"y\"",
        "root ::= a\na ::= b \"x\"\nb ::= a | \"\"",
        "root ::= a\na ::= a \"x\"",
        "root ::= (root \"x\")* \"y\"",
        "root ::= a\na ::= (\"\" | a)+ \"x\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_null(compile(f, texts[i]));
        assert_non_null(strstr(f->err.text, "is left-recursive"));
    }
    expect(f, "root ::= \"x\" root | \"y\"", "xxy\0", "x\0");
}

static void nesting_and_chains_take_no_stack(void **state)
{
    struct fixture *f = *state;
    enum { N = 60000 };
    char *text = malloc(N * 24);
    size_t at = (size_t)sprintf(text, "root ::= ");
    memset(text + at, '(', N);
    text[at + N] = 0;
    assert_null(compile(f, text));
    static const int depths[] = {100, 255, 256, 999, 1000, 1001};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        const size_t n = (size_t)depths[i];
        at = (size_t)sprintf(text, "root ::= ");
        memset(text + at, '(', n);
        sprintf(text + at + n, "\"a\"");
        memset(text + at + n + 3, ')', n);
        text[at + 2 * n + 3] = 0;
        const bool ok = compile(f, text) != NULL;
        assert_true(ok == (n <= 255));
        assert_true(ok || strstr(f->err.text, "more than 256 groups within one another"));
    }
    for (int n = 2000; n <= 5000; n += 3000) {
        at = (size_t)sprintf(text, "root ::= r0\n");
        for (int i = 0; i < n; i++)
            at += (size_t)sprintf(text + at, "r%d ::= r%d \"x\"\n", i, i + 1);
        sprintf(text + at, "r%d ::= \"y\"", n);
        assert_true((compile(f, text) != NULL) == (n == 2000));
    }
    assert_non_null(strstr(f->err.text, "more rules than the scratch memory holds"));
    free(text);
}

static void too_much_text_and_too_many_states_are_said(void **state)
{
    struct fixture *f = *state;
    enum { BIG = 24 << 20, N = 70000 };
    void *scratch = aligned_alloc(64, BIG);
    char *text = calloc(1, TERN_GRAMMAR_MOST_TEXT + 1);
    tern_grammar *g;
    size_t used;
    const tern_memory mem = f->memory.grammar, big = {scratch, BIG};
    memset(text, ' ', TERN_GRAMMAR_MOST_TEXT + 1);
    f->err = (tern_error){0};
    assert_int_equal(tern_grammar_compile(mem, big, (tern_text){text, TERN_GRAMMAR_MOST_TEXT + 1},
                                          NULL, &g, &used, &f->err), TERN_BAD_MODEL);
    assert_string_equal(f->err.text, "grammar: 4194305 bytes of text, at most 4194304");
    memcpy(text, "root ::= \"", 10);
    memset(text + 10, 'a', N);
    text[10 + N] = '"';
    f->err = (tern_error){0};
    assert_int_equal(tern_grammar_compile(mem, big, (tern_text){text, 11 + N}, NULL, &g, &used,
                                          &f->err), TERN_BAD_MODEL);
    assert_string_equal(f->err.text, "grammar: more states (65535) than its memory holds");
    free(text);
    free(scratch);
}

/* Three characters in an order of which there are many, again and again: each leads back to all. */
static void the_work_that_a_grammar_makes_is_bounded(void **state)
{
    struct fixture *f = *state;
    char *text = malloc(100000);
    static const int sizes[] = {200, 2400};
    for (size_t i = 0; i < 2; i++) {
        size_t at = (size_t)sprintf(text, "root ::= (");
        for (int k = 0; k < sizes[i]; k++)
            at += (size_t)sprintf(text + at, "%s\"%c%c%c\"", k ? " | " : "", 'a' + k / 400 % 20,
                                  'a' + k / 20 % 20, 'a' + k % 20);
        sprintf(text + at, ")*");
        assert_true((compile(f, text) != NULL) == (i == 0));
    }
    assert_string_equal(f->err.text, "grammar: more steps (800 a state) than its memory holds");
    free(text);
}

static void memory_that_is_too_small_is_said(void **state)
{
    struct fixture *f = *state;
    static const char rule[] = "root ::= \"abcdefgh\"{3} [a-z]{0,50}";
    const tern_text text = {rule, sizeof rule - 1};
    tern_memory mem = f->memory.grammar, scratch = f->memory.scratch;
    tern_grammar *g;
    size_t used, need;
    assert_int_equal(tern_grammar_compile(mem, scratch, text, NULL, &g, &need, NULL), TERN_OK);
    for (mem.size = 0; mem.size < need; mem.size += 64)
        assert_int_equal(tern_grammar_compile(mem, scratch, text, NULL, &g, &used, NULL),
                         TERN_NO_MEMORY);
    mem.size = need;
    assert_int_equal(tern_grammar_compile(mem, scratch, text, NULL, &g, &used, NULL), TERN_OK);
    scratch.size = 1 << 16;
    assert_int_not_equal(tern_grammar_compile(mem, scratch, text, NULL, &g, &used, NULL), TERN_OK);
}

static void a_copy_goes_its_own_way(void **state)
{
    struct fixture *f = *state;
    static tern_grammar_state a, b;
    tern_grammar *g = compile(f, "root ::= \"(\" root \")\" | \"x\"{2,9}");
    tern_grammar_start(g, &a);
    assert_int_equal(tern_grammar_advance(&a, "((x", 3), 3);
    tern_grammar_copy(&b, &a);
    assert_int_equal(tern_grammar_advance(&a, "x))", 3), 3);
    assert_true(tern_grammar_may_end(&a));
    assert_false(tern_grammar_may_end(&b));
    assert_int_equal(tern_grammar_advance(&b, "y", 1), 0);
    assert_int_equal(tern_grammar_advance(&b, "xx))", 4), 4);
    assert_true(tern_grammar_may_end(&b));
}

/* What a draft does: goes ahead from a copy of each place, rightly and wrongly, and comes back. */
static void every_place_can_be_gone_back_to(void **state)
{
    struct fixture *f = *state;
    static tern_grammar_state s, kept, fresh;
    static const char *const rows[][3] = {
        {"root ::= \"(\" root \")\" root | [a-c]{2,40} | \"\"", "((ab)(abcabc)cc)", ")a(xb)"},
        {"root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= root | [0-9]+ | \"-\"{3,5}",
         "[[1,22,[333]],----,[-----,4]]", "]-,1[x"},
        {"root ::= s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"\"", "aaaaaabcbcbb", "abcb"},
        {"root ::= word{2,9} \"!\"\nword ::= [a-z]{1,300} \" \"", "abc defg h !", "!a z"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_grammar *g = compile(f, rows[i][0]);
        const char *text = rows[i][1], *wrong = rows[i][2];
        const size_t n = strlen(text);
        tern_grammar_start(g, &s);
        tern_grammar_start(g, &fresh);
        for (size_t at = 0; at < n; at++) {
            uint8_t a[32], b[32];
            tern_grammar_copy(&kept, &s);
            (void)tern_grammar_advance(&s, text + at, (at * 7 + 3) % (n - at) + 1);
            (void)tern_grammar_advance(&s, wrong, strlen(wrong));
            tern_grammar_copy(&s, &kept);
            tern_grammar_expected(&s, a);
            tern_grammar_expected(&fresh, b);
            assert_memory_equal(a, b, 32);
            assert_int_equal(tern_grammar_may_end(&s), tern_grammar_may_end(&fresh));
            assert_int_equal(tern_grammar_advance(&s, text + at, 1), 1);
            assert_int_equal(tern_grammar_advance(&fresh, text + at, 1), 1);
        }
        assert_true(tern_grammar_may_end(&s));
    }
}

/* A dead end that is the first of all ranges, and one behind others. */
static void dead_ends_are_left_out(void **state)
{
    struct fixture *f = *state;
    expect(f, "root ::= s\ns ::= \"a\" t \"c\" | \"\"\nt ::= \"a\" t \"c\" | []", "", "a\0aac\0");
    assert_true(takes(compile(f, "root ::= \"a\" [] | \"\""), ""));
    expect(f, "root ::= \"a\" [] | \"ab\" | \"c\" [] | \"d\"", "ab\0d\0", "a\0c\0");
    expect(f, "root ::= x \"!\" | \"b\"\nx ::= \"a\" x \"c\"", "b\0", "aac!\0");
}

/* Empty loops, and rules that are nothing but the empty text, come to an end. */
static void what_may_be_empty_is_repeated(void **state)
{
    struct fixture *f = *state;
    expect(f, "root ::= (\"a\"*)* \"c\"", "c\0aac\0", "ab\0");
    expect(f, "root ::= (\"\" | \"a\")+ \"c\"", "c\0aac\0", "b\0");
    expect(f, "root ::= x \"c\"\nx ::= y*\ny ::= x2?\nx2 ::= \"q\" | e\ne ::= \"\"",
           "c\0qqc\0", "q\0");
    assert_true(takes(compile(f, "root ::= \"\""), ""));
    assert_true(takes(compile(f, "root ::= e e* (e | e){2,70}\ne ::= \"\""), ""));
    assert_false(takes(compile(f, "root ::= e*\ne ::= \"\""), "a"));
    assert_null(compile(f, "root ::= x\nx ::= y*\ny ::= x?"));
    assert_non_null(strstr(f->err.text, "is left-recursive"));
}

/* A list within a list is one unit, so a text of its letters stays in one automaton. */
static void loops_are_units_where_they_come_back(void **state)
{
    struct fixture *f = *state;
    static const char *const grammars[] = {
        "root ::= x*\nx ::= [a-z] | \"(\" x* \")\"",
        "root ::= (x ws)*\nws ::= \" \"?\nx ::= [a-z]+ | \"(\" ws (x ws)* \")\"",
        "root ::= x\nx ::= [a-z] x | \"(\" x \")\" x | \"\"",
        "root ::= (text | tag)+\ntext ::= [a-z]\ntag ::= \"(\" (text | tag)* \")\"",
    };
    static tern_grammar_state s;
    static char deep[400];
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        expect(f, grammars[i], "abc\0a(bc)d\0((a)(b(c)))d\0", "(\0a)\0(a))\0A\0");
        tern_grammar *g = compile(f, grammars[i]);
        tern_grammar_start(g, &s);
        assert_int_equal(tern_grammar_advance(&s, "ab(cd(ef", 8), 8);
        assert_int_equal(s.n_ways, 1);
        assert_int_equal(s.n_nodes, 2);
        memset(deep, '(', 200);
        memset(deep + 200, ')', 199);
        assert_false(takes(g, deep));
        deep[399] = ')';
        tern_grammar_start(g, &s);
        assert_int_equal(tern_grammar_advance(&s, deep, 400), 400);
        assert_true(tern_grammar_may_end(&s));
        deep[399] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(literals_ranges_and_their_escapes_are_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(ranges_of_characters_become_ranges_of_bytes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(pieces_are_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_counts_take_no_more_states, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rules_call_themselves_and_one_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_in_last_place_needs_no_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(depth_and_ways_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_optional_pieces_stay_cheap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said_with_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(left_recursion_is_refused_however_hidden, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nesting_and_chains_take_no_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_work_that_a_grammar_makes_is_bounded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(too_much_text_and_too_many_states_are_said, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(memory_that_is_too_small_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_goes_its_own_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_place_can_be_gone_back_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dead_ends_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_may_be_empty_is_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loops_are_units_where_they_come_back, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
