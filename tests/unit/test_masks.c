/* test_masks.c: every mask beside what each token does by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "grammar_memory.h"
#include "runtime/arena.h"
#include "runtime/masks.h"
#include "small_vocab.h"

enum { SCRATCH = 4 << 20, MEMORY = 1 << 20 };

struct fixture {
    struct opened *o;
    struct tern_masks masks;
    struct grammar_memory memory;
    void *arena;
    uint32_t *bits;
};

/* Pieces of JSON, words, parts of characters, one piece twice, two that end a text. */
static struct opened *open_vocab(void)
{
    static struct small_vocab v;
    static const char *const words[] = {
        "ab", "abc", "the", "\xc4\xa0the", "\xc4\xa0", "\":", "\",", "\"}", "{\"", "\xc4\xa0\"",
        "\"name", "name", "name\":", "12", "123", "true", "}}", "}]", "],", "\\n", "\\\"",
        "\xc4\x8a", "\xc4\x8a\xc4\xa0\xc4\xa0", "\xc3\x83\xc2\xa9", "a\xc3\x83",
        "\xc2\xa9" "b", "xyz\",\xc4\xa0\"", "-->", "e-", "bend", "end", "d!",
        "abcabcabcabcabc", "a\"b", "<tool>",
    };
    memset(&v, 0, sizeof v);
    sv_add_bytes(&v);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sv_find(&v, words[i]) < 0)
            sv_add(&v, words[i], TERN_TOKEN_NORMAL, 0);
    sv_add(&v, "abc", TERN_TOKEN_USER, 0);
    sv_add(&v, "<|endoftext|>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "<|im_end|>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "<|other|>", TERN_TOKEN_CONTROL, 0);
    return sv_open(&v, "gpt2", "qwen2");
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->memory = gm_open(MEMORY, SCRATCH);
    f->o = open_vocab();
    *state = f;
    if (!f->o->model)
        return 1;
    struct tern_arena measure = tern_arena_measure();
    tern_masks_lay_out(&measure, &f->masks, f->o->model);
    const size_t n = (measure.used + 63) / 64 * 64;
    f->arena = aligned_alloc(64, n);
    memset(f->arena, 0xA5, n);
    struct tern_arena over = tern_arena_over(f->arena, measure.used);
    tern_masks_lay_out(&over, &f->masks, f->o->model);
    f->bits = calloc(f->masks.n_words, sizeof *f->bits);
    tern_masks_build(&f->masks);
    return over.failed;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    open_close(f->o);
    gm_close(&f->memory);
    free(f->arena);
    free(f->bits);
    free(f);
    return 0;
}

static tern_grammar *compile(struct fixture *f, const char *text)
{
    tern_error err;
    tern_grammar *g = gm_compile(&f->memory, (tern_text){text, strlen(text)}, f->o->model, &err);
    if (!g)
        fail_msg("%s: %s", text, err.text);
    return g;
}

/* Compares, and answers how many tokens are let in. */
static uint32_t compare(struct fixture *f, const char *text, tern_grammar_state *s)
{
    static tern_grammar_state copy;
    uint32_t n = 0;
    tern_masks_fill(&f->masks, s, f->bits);
    for (uint32_t i = 0; i < f->masks.n_vocab; i++) {
        tern_piece piece;
        tern_grammar_copy(&copy, s);
        assert_int_equal(tern_token_piece(f->o->model, (tern_token)i, &piece), TERN_OK);
        const bool in = !piece.ends && tern_grammar_accept(&copy, f->o->model, (tern_token)i);
        if (in != (f->bits[i / 32] >> i % 32 & 1))
            fail_msg("%s: token %u is %s, the mask is wrong", text, i, in ? "in" : "out");
        n += in;
    }
    return n;
}

/* Random tokens that the mask lets in, until there are none. */
static void walk(struct fixture *f, const char *text, uint32_t seed)
{
    static tern_grammar_state s;
    tern_grammar *g = compile(f, text);
    tern_grammar_start(g, &s);
    for (int step = 0; step < 40; step++) {
        const uint32_t n = compare(f, text, &s);
        if (!n) {
            assert_true(tern_grammar_may_end(&s));
            return;
        }
        seed = seed * 1664525u + 1013904223u;
        uint32_t pick = (seed >> 8) % n, i = 0;
        for (;; i++)
            if (f->bits[i / 32] >> i % 32 & 1 && !pick--)
                break;
        assert_true(tern_grammar_accept(&s, f->o->model, (tern_token)i));
    }
}

static void masks_are_what_each_token_does(void **state)
{
    struct fixture *f = *state;
    static const char *const grammars[] = {
        "root ::= \"{\" ws (str \":\" ws val (\",\" ws str \":\" ws val)*)? \"}\"\n"
        "val ::= str | [0-9]+ | root | \"[\" (val (\",\" ws val)*)? \"]\" | \"true\"\n"
        "str ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\n])* \"\\\"\"\n"
        "ws ::= (\" \" | \"\\n\" \" \"{0,9})?",
        "root ::= \"\\\"\" c{0,7} \"\\\"\" \",\" \" \"? \"\\\"\" c{3,40} \"\\\"\" \"}\"\n"
        "c ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\n]",
        "root ::= [a-z]{2,12} \"end!\"",           /* what follows overlaps */
        "root ::= [a-z]{0,9} [a-f]{0,9} \"-\"",
        "root ::= ([a-c]{1,20} \"\\\"\"){1,30}",
        "root ::= [a-z]+ (\"-\" [a-z]+)* \"-->\"",
        "root ::= \"a\" root \"b\" | \"a\" root | \"\"",
        "root ::= . root | \"end\"",
        "root ::= [^\\n]* \"\\n\" | (\"ab\" | \"abc\"){2,9} \"xyz\"",
        "root ::= ([^\"] | \"\\\"\" [a-z]){0,200}",
        "root ::= <tool> [a-z]{3} !<tool> <[260]>? \"x\"",
        "root ::= x*\nx ::= [a-z] | \"(\" x* \")\" | \"\\\"\"",
        "root ::= (x ws)*\nws ::= \" \"?\nx ::= [a-z]+ | \"{\" ws (x ws)* \"}\" | \":\"",
        "root ::= x \"!\"\nx ::= [a-z] x | \"\\\"\" x \"\\\"\" x | \"\"",
        "root ::= e (\",\" e)*\ne ::= [a-z0-9]+ | \"{\" e* \"}\" | \"[\" e{2,} \"]\"",
    };
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++)
        for (uint32_t seed = 0; seed < 12; seed++)
            walk(f, grammars[i], seed * 7919 + (uint32_t)i);
}

static void end_and_control_tokens_are_never_let_in_by_bytes(void **state)
{
    struct fixture *f = *state;
    static tern_grammar_state s;
    tern_grammar_start(compile(f, "root ::= .*"), &s);
    assert_true(tern_masks_fill(&f->masks, &s, f->bits));
    uint32_t n_ends = 0;
    for (uint32_t i = 0; i < f->masks.n_vocab; i++) {
        tern_piece piece;
        assert_int_equal(tern_token_piece(f->o->model, (tern_token)i, &piece), TERN_OK);
        if (piece.kind == TERN_TOKEN_CONTROL)
            assert_false(f->bits[i / 32] >> i % 32 & 1);
        n_ends += f->masks.ends[i / 32] >> i % 32 & 1;
    }
    assert_int_equal(n_ends, 2);
}

static void what_is_kept_of_one_grammar_is_not_anothers(void **state)
{
    struct fixture *f = *state;
    static tern_grammar_state s;
    static const char *const texts[] = {"root ::= \"\\\"\" [^\"\\n]* \"\\\"x\"",
                                        "root ::= \"\\\"\" [^\"\\nb]* \"\\\"y\""};
    for (int i = 0; i < 6; i++) {
        tern_grammar_start(compile(f, texts[i % 2]), &s);
        assert_int_equal(tern_grammar_advance(&s, "\"a", 2), 2);
        (void)compare(f, texts[i % 2], &s);
    }
}

/* More states that are worth keeping than there are slots. */
static void slots_are_used_again(void **state)
{
    struct fixture *f = *state;
    static tern_grammar_state s;
    char text[8192];
    size_t n = (size_t)sprintf(text, "root ::= ");
    for (int i = 0; i < 3 * TERN_MASK_SLOTS; i++)
        n += (size_t)sprintf(text + n, "\"\\\"\" [^\"\\\\\\n]* \"\\\"\" \"%d\" ", i);
    tern_grammar *g = compile(f, text);
    for (int round = 0; round < 2; round++) {
        tern_grammar_start(g, &s);
        for (int i = 0; i < 3 * TERN_MASK_SLOTS; i++) {
            char part[32];
            const size_t m = (size_t)sprintf(part, "\"a\"%d", i);
            assert_int_equal(tern_grammar_advance(&s, part, 2), 2);
            (void)compare(f, "many strings", &s);
            assert_int_equal(tern_grammar_advance(&s, part + 2, m - 2), m - 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(masks_are_what_each_token_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(end_and_control_tokens_are_never_let_in_by_bytes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_kept_of_one_grammar_is_not_anothers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(slots_are_used_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
