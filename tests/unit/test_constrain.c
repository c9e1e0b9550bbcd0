/* test_constrain.c: sequences that are held to a grammar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar_memory.h"
#include "small_vocab.h"
#include "trace_rig.h"

enum { SCRATCH = 1 << 20, MEMORY = 1 << 18, END = 95 };

struct fixture {
    struct trace_rig rig;
    struct trace_log log;
    struct opened *o;
    struct grammar_memory memory;
    tern_grammar *grammar;
};

static const tern_limits usual = {.n_ctx = 64, .n_seqs = 3, .chunk = 16, .n_logit_rows = 8,
                                 .grammars = true};

/* Printable ASCII, an end, and one that is neither: as many tokens as the backend has logits. */
static struct opened *open_vocab(void)
{
    static struct small_vocab v;
    memset(&v, 0, sizeof v);
    for (int c = 0x20; c < 0x7f; c++) {
        char text[8] = {0};
        tern_unicode_encode(tern_vocab_cp_of_byte((unsigned char)c), text);
        sv_add(&v, text, TERN_TOKEN_NORMAL, 0);
    }
    sv_add(&v, "<|im_end|>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "a>b", TERN_TOKEN_NORMAL, 0);
    return sv_open(&v, "gpt2", "qwen2");
}

static int set_up(void **state)
{
    static const uint32_t windows[] = {0};
    struct fixture *f = calloc(1, sizeof *f);
    f->memory = gm_open(MEMORY, SCRATCH);
    f->o = open_vocab();
    *state = f;
    if (!f->o->model)
        return 1;
    trace_model(&f->rig, windows, 1);
    f->rig.model.vocab = f->o->model->vocab;
    return trace_open(&f->rig, &usual);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    trace_close(&f->rig);
    open_close(f->o);
    gm_close(&f->memory);
    free(f);
    return 0;
}

static tern_seq begin_with(struct fixture *f, const char *gbnf, const char *trigger,
                           tern_seq_options o)
{
    tern_error err;
    const tern_token prompt[] = {1, 2, 3};
    f->grammar = gm_compile(&f->memory, (tern_text){gbnf, strlen(gbnf)}, f->o->model, &err);
    assert_non_null(f->grammar);
    o.grammar = f->grammar;
    o.grammar_trigger = (tern_text){trigger, strlen(trigger)};
    return trace_begin(&f->rig, &o, prompt, 3);
}

static tern_seq begin(struct fixture *f, const char *gbnf, const char *trigger, uint64_t seed)
{
    tern_seq_options o = trace_greedy();
    o.sampling.temperature = seed ? 1.0f : 0.0f;
    o.sampling.seed = seed;
    return begin_with(f, gbnf, trigger, o);
}

/* The bytes that a sequence generated, a token each but the last. */
static size_t text_of(const struct fixture *f, tern_seq seq, char *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < f->log.n; i++) {
        const tern_event *e = &f->log.items[i].event;
        if (e->seq != seq || e->kind != TERN_EVENT_TOKEN)
            continue;
        if (e->token == END + 1) {
            memcpy(out + n, "a>b", 3);
            n += 3;
        } else {
            out[n++] = (char)(0x20 + e->token);
        }
    }
    out[n] = 0;
    return n;
}

static void drive(struct fixture *f)
{
    f->log.n = 0;
    assert_int_equal(trace_drive(&f->rig, &f->log, 16, 2000), TERN_AGAIN);
}

static bool is_of(const struct fixture *f, const char *text)
{
    static tern_grammar_state s;
    tern_grammar_start(f->grammar, &s);
    return tern_grammar_advance(&s, text, strlen(text)) == strlen(text) &&
           tern_grammar_may_end(&s);
}

static void what_is_generated_is_of_the_grammar_and_ends_with_it(void **state)
{
    struct fixture *f = *state;
    char text[256];
    for (uint64_t seed = 0; seed < 30; seed++) {
        const tern_seq seq = begin(f, "root ::= \"<\" [a-c]{2,9} \">\" ([0-9] | root)", "", seed);
        drive(f);
        text_of(f, seq, text);
        if (trace_stop_of(&f->log, seq) == TERN_STOP_EOS)
            assert_true(is_of(f, text));
        else
            assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_CONTEXT);
        tern_seq_close(f->rig.engine, seq);
    }
}

static void a_trigger_begins_the_grammar(void **state)
{
    struct fixture *f = *state;
    char text[256];
    uint32_t n_begun = 0;
    for (uint64_t seed = 1; seed < 40; seed++) {
        const tern_seq seq = begin(f, "root ::= [0-9]{3} \"!\"", ">", seed);
        drive(f);
        const size_t n = text_of(f, seq, text);
        const char *at = memchr(text, '>', n);
        if (at) {
            n_begun++;
            if (trace_stop_of(&f->log, seq) == TERN_STOP_EOS)
                assert_true(is_of(f, at + 1));
            else
                assert_true(strspn(at + 1, "0123456789!") == strlen(at + 1));
        }
        tern_seq_close(f->rig.engine, seq);
    }
    assert_true(n_begun > 3);
}

static void a_fork_goes_on_where_its_origin_stands(void **state)
{
    struct fixture *f = *state;
    char a[256], b[256];
    tern_seq other;
    tern_event events[8];
    size_t n;
    const tern_seq seq = begin(f, "root ::= \"ab\" \"cd\" [0-9]{30} \"!\"", "", 5);
    f->log.n = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(tern_step(f->rig.engine, events, 8, &n), TERN_OK);
    assert_int_equal(tern_seq_fork(f->rig.engine, seq, 77, &other), TERN_OK);
    drive(f);
    text_of(f, seq, a);
    text_of(f, other, b);
    assert_string_not_equal(a, b);
    assert_int_equal(strlen(a), strlen(b));
    assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_EOS);
    assert_int_equal(trace_stop_of(&f->log, other), TERN_STOP_EOS);
    assert_int_equal(strspn(b, "abcd0123456789!"), strlen(b));
}

static void a_batch_answers_as_each_alone(void **state)
{
    struct fixture *f = *state;
    static const char gbnf[] = "root ::= \"{\" ([a-z]{1,9} \":\" [0-9]+ \",\"){2,5} \"}\"";
    static char alone[3][256];
    char text[256];
    tern_seq seqs[3];
    for (uint64_t i = 0; i < 3; i++) {
        seqs[i] = begin(f, gbnf, "", i + 1);
        drive(f);
        text_of(f, seqs[i], alone[i]);
        tern_seq_close(f->rig.engine, seqs[i]);
    }
    for (uint64_t i = 0; i < 3; i++)
        seqs[i] = begin(f, gbnf, "", i + 1);
    drive(f);
    for (uint64_t i = 0; i < 3; i++) {
        text_of(f, seqs[i], text);
        assert_string_equal(text, alone[i]);
    }
    assert_string_not_equal(alone[0], alone[1]);
}

/* What a trimmed sequence is fed begins the grammar anew, in a fork of it too. */
static void a_trimmed_sequence_begins_it_anew(void **state)
{
    struct fixture *f = *state;
    char a[256], b[256];
    tern_seq other;
    tern_event events[8];
    size_t n;
    const tern_token more = 4;
    const tern_seq seq = begin(f, "root ::= \"ab\" \"cd\" [0-9]{9} \"!\"", "", 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tern_step(f->rig.engine, events, 8, &n), TERN_OK);
    assert_int_equal(tern_seq_trim(f->rig.engine, seq, 4), TERN_OK);
    assert_int_equal(tern_seq_fork(f->rig.engine, seq, 77, &other), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, &more, 1), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, other, &more, 1), TERN_OK);
    drive(f);
    text_of(f, seq, a);
    text_of(f, other, b);
    assert_true(is_of(f, a));
    assert_true(is_of(f, b));
    assert_string_not_equal(a, b);
}

static void feeding_again_begins_it_anew(void **state)
{
    struct fixture *f = *state;
    char text[256];
    const tern_seq seq = begin(f, "root ::= \"yes\" | \"no\"", "", 3);
    for (int i = 0; i < 3; i++) {
        const tern_token more = 4;
        drive(f);
        text_of(f, seq, text);
        assert_true(is_of(f, text));
        assert_int_equal(tern_seq_feed(f->rig.engine, seq, &more, 1), TERN_OK);
    }
}

enum { A = 'a' - 0x20, B = 'b' - 0x20, MORE = '>' - 0x20 };

/* What comes of a grammar when each token that is wished for lies in wishes, the last of them for
 * ever; `early` is forbidden for the first `least`. */
static void wished(struct fixture *f, const char *gbnf, const char *trigger, uint32_t least,
                   tern_token early, const char *wishes, char *text)
{
    tern_token script[64];
    const tern_bias biases[] = {{early, -INFINITY}};
    tern_seq_options o = trace_greedy();
    for (size_t i = 0, at = 0; i < 64; i++) {
        script[i] = wishes[at] == '$' ? END : wishes[at] - 0x20;
        at += i >= 3 && wishes[at + 1];
    }
    f->rig.trace->script = script;
    f->rig.trace->n_script = 64;
    o.min_tokens = least;
    o.sampling.biases = biases;
    o.sampling.n_biases = o.n_early = 1;
    o.max_tokens = 20;
    const tern_seq seq = begin_with(f, gbnf, trigger, o);
    drive(f);
    assert_true(text_of(f, seq, text) <= 20);
    assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_EOS);
    assert_int_equal(f->log.items[f->log.n - 1].event.token, END);
    tern_seq_close(f->rig.engine, seq);
}

static void a_text_that_may_end_goes_on_until_min_tokens(void **state)
{
    struct fixture *f = *state;
    char text[256];
    for (uint32_t least = 0; least < 9; least++) {
        wished(f, "root ::= [a-c]+", "", least, END, "$", text);
        assert_int_equal(strlen(text), least ? least : 1);
        assert_int_equal(strspn(text, "abc"), strlen(text));
        /* Before the trigger, in it, and behind it. */
        wished(f, "root ::= \"x\"{2,4}", ">", least, END, "y>$", text);
        assert_string_equal(text, least < 5 ? "y>xx" : least == 5 ? "y>xxx" : "y>xxxx");
        wished(f, "root ::= [^a]*", ">", least, END, "$", text);
        assert_int_equal(strlen(text), least);
    }
}

static void a_grammar_is_stronger_than_min_tokens(void **state)
{
    struct fixture *f = *state;
    char text[256];
    for (uint32_t least = 0; least < 9; least++) {
        wished(f, "root ::= \"ab\" | \"abc\" [de]", "", least, END, "ab$", text);
        assert_string_equal(text, least < 3 ? "ab" : text[3] == 'd' ? "abcd" : "abce");
        wished(f, "root ::= \"ab\"", "", least, END, "$", text);
        assert_string_equal(text, "ab");
        /* What may not come early is taken where nothing else is let in. */
        wished(f, "root ::= \"a\" [ab]{3} \"a\"", "", least, A, "a", text);
        assert_string_equal(text, least < 2 ? "aaaaa" : least == 2 ? "abaaa" : least == 3 ? "abbaa"
                                                      : "abbba");
    }
}

static void a_bias_that_always_holds_leaves_the_end_to_the_grammar(void **state)
{
    struct fixture *f = *state;
    static const tern_bias biases[] = {{A, -INFINITY}, {B, -INFINITY}, {END, -INFINITY}};
    tern_seq_options o = trace_greedy();
    char text[256];
    o.sampling.biases = biases;
    o.sampling.n_biases = 3;
    o.n_early = 1;
    o.min_tokens = 7;
    const tern_seq seq = begin_with(f, "root ::= \"!\" [ab]*", "", o);
    drive(f);
    text_of(f, seq, text);
    assert_string_equal(text, "!");
    assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_EOS);
}

static void a_grammar_without_a_fitting_token_is_an_error(void **state)
{
    struct fixture *f = *state;
    const tern_seq seq = begin(f, "root ::= \"a\" \"\\u00e9\"", "", 0);
    drive(f);
    assert_int_equal(trace_stop_of(&f->log, seq), TERN_STOP_ERROR);
    assert_string_equal(f->log.items[f->log.n - 1].error,
                        "grammar: no token of the vocabulary can go on");
}

static void limits_without_grammars_refuse_them(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = trace_greedy();
    tern_seq seq = begin(f, "root ::= \"a\"", "", 0);
    char long_trigger[TERN_MAX_TRIGGER + 1] = {0};
    o.grammar = f->grammar;
    o.grammar_trigger = (tern_text){long_trigger, sizeof long_trigger};
    assert_int_equal(tern_seq_open(f->rig.engine, &o, &seq), TERN_BAD_ARGUMENT);
    assert_string_equal(tern_engine_error(f->rig.engine)->text,
                        "grammar: a trigger of 65 bytes, at most 64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_generated_is_of_the_grammar_and_ends_with_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trigger_begins_the_grammar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fork_goes_on_where_its_origin_stands, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_answers_as_each_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trimmed_sequence_begins_it_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(feeding_again_begins_it_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_text_that_may_end_goes_on_until_min_tokens, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_grammar_is_stronger_than_min_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bias_that_always_holds_leaves_the_end_to_the_grammar,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_grammar_without_a_fitting_token_is_an_error, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(limits_without_grammars_refuse_them, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
