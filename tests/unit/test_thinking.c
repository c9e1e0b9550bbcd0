/* test_thinking.c: reasoning, its budget, and a grammar that begins behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "grammar_memory.h"
#include "small_vocab.h"
#include "trace_rig.h"

enum { SCRATCH = 1 << 20, MEMORY = 1 << 18 };
/* Printable ASCII without ~ and |, then these: as many tokens as the backend has logits. */
enum { THINK = 93, THOUGHT, END, MARK };

struct fixture {
    struct trace_rig rig;
    struct opened *o;
    struct grammar_memory memory;
    tern_grammar *grammar;
    tern_token script[64], tokens[64];
    uint32_t n_script, n_tokens;
    char text[512];
    tern_event done;
};

static tern_token token_of(char c)
{
    return c - 0x20 - (c > '|');
}

static struct opened *open_vocab(void)
{
    static struct small_vocab v;
    memset(&v, 0, sizeof v);
    for (int c = 0x20; c < '~'; c++) {
        char text[8] = {0};
        tern_unicode_encode(tern_vocab_cp_of_byte((unsigned char)c), text);
        if (c != '|')
            sv_add(&v, text, TERN_TOKEN_NORMAL, 0);
    }
    sv_add(&v, "<think>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "</think>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "<|im_end|>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "<|mark|>", TERN_TOKEN_CONTROL, 0);
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
    return trace_open(&f->rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .chunk = 16,
                                              .n_logit_rows = 8, .grammars = true});
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

/* What the model would say, as text: [ is <think>, ] </think>, ^ the end, @ a mark; behind a
 * prompt of one token. */
static void say(struct fixture *f, const char *text)
{
    f->n_script = 0;
    f->script[f->n_script++] = token_of('P');
    for (; *text; text++)
        f->script[f->n_script++] = *text == '['   ? THINK
                                   : *text == ']' ? THOUGHT
                                   : *text == '^' ? END
                                   : *text == '@' ? MARK
                                                  : token_of(*text);
    f->rig.trace->script = f->script;
    f->rig.trace->n_script = f->n_script;
}

static tern_seq_options thinking(void)
{
    tern_seq_options o = trace_greedy();
    o.think_open = (tern_text){"<think>", 7};
    o.think_close = (tern_text){"</think>", 8};
    o.special = true;
    o.max_tokens = 24;
    return o;
}

static void gather(struct fixture *f, tern_seq seq)
{
    f->n_tokens = 0;
    f->text[0] = 0;
    for (;;) {
        tern_event events[4];
        size_t n = 0;
        if (tern_step(f->rig.engine, events, 4, &n) == TERN_AGAIN)
            return;
        for (size_t i = 0; i < n; i++) {
            if (events[i].seq != seq)
                continue;
            strncat(f->text, events[i].text.data, events[i].text.size);
            if (events[i].kind == TERN_EVENT_DONE)
                f->done = events[i];
            else
                f->tokens[f->n_tokens++] = events[i].token;
        }
    }
}

static tern_seq begin(struct fixture *f, const tern_seq_options *o)
{
    const tern_token prompt = token_of('P');
    return trace_begin(&f->rig, o, &prompt, 1);
}

static void run_any(struct fixture *f, const tern_seq_options *o, const char *says)
{
    say(f, says);
    const tern_seq seq = begin(f, o);
    gather(f, seq);
    tern_seq_close(f->rig.engine, seq);
}

static void run(struct fixture *f, const tern_seq_options *o, const char *says, const char *wanted)
{
    run_any(f, o, says);
    assert_string_equal(f->text, wanted);
}

static void compile(struct fixture *f, tern_seq_options *o, const char *gbnf, const char *trigger)
{
    tern_error err;
    f->grammar = gm_compile(&f->memory, (tern_text){gbnf, strlen(gbnf)}, f->o->model, &err);
    assert_non_null(f->grammar);
    o->grammar = f->grammar;
    o->grammar_trigger = (tern_text){trigger, strlen(trigger)};
}

/* --- the budget --- */

static void a_spent_budget_closes_the_reasoning(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = thinking();
    o.think_limited = true;
    o.think_tokens = 3;
    run(f, &o, "[abcdefgh^", "<think>abc</think>efgh");
    run(f, &o, " [abcdefgh^", " <think>abc</think>efgh");
    run(f, &o, "[ab]cdefgh^", "<think>ab</think>cdefgh");
    run(f, &o, "[abc]defgh^", "<think>abc</think>defgh");
    run(f, &o, "abcdefgh^", "abcdefgh");
    run(f, &o, "a[bcdefgh^", "a<think>bcdefgh");
    o.think_tokens = 0;
    run(f, &o, "[abcd^", "<think></think>bcd");
    o.thinks = true;
    run(f, &o, "abcd^", "</think>bcd");
    o.think_tokens = 2;
    run(f, &o, "abcd^", "ab</think>d");
    run(f, &o, "a]cd^", "a</think>cd");
    assert_int_equal(f->done.stop, TERN_STOP_EOS);
    o.think_limited = false;
    run(f, &o, "abcd^", "abcd");
}

static void the_tokens_that_end_it_may_be_given(void **state)
{
    struct fixture *f = *state;
    const tern_token end[] = {token_of('.'), THOUGHT, token_of('!')};
    tern_seq_options o = thinking();
    o.think_limited = true;
    o.think_tokens = 1;
    o.think_end = end;
    o.n_think_end = 3;
    run(f, &o, "[abcdefgh^", "<think>a.</think>!efgh");
    /* They end it even if they do not spell the tag. */
    o.n_think_end = 1;
    run(f, &o, "[abcdefgh^", "<think>a.cdefgh");
}

static void a_tag_that_has_begun_runs_on(void **state)
{
    struct fixture *f = *state;
    const tern_token end[] = {token_of('<'), token_of('/'), token_of('t'), token_of('>')};
    tern_seq_options o = thinking();
    o.think_open = (tern_text){"<t>", 3};
    o.think_close = (tern_text){"</t>", 4};
    o.think_limited = true;
    o.think_tokens = 3;
    o.think_end = end;
    o.n_think_end = 4;
    run(f, &o, "<t>ab</t>cd^", "<t>ab</t>cd");
    run(f, &o, "<t>ab</x>cdef^", "<t>ab</x</t>f");
}

static void nothing_else_changes(void **state)
{
    struct fixture *f = *state;
    char without[512];
    f->rig.trace->script = NULL;
    for (uint64_t seed = 1; seed < 40; seed++) {
        tern_seq_options o = trace_greedy();
        o.special = true;
        o.max_tokens = 24;
        o.sampling.temperature = 1.0f;
        o.sampling.seed = seed;
        tern_seq seq = begin(f, &o);
        gather(f, seq);
        tern_seq_close(f->rig.engine, seq);
        strcpy(without, f->text);
        o.think_open = (tern_text){"<think>", 7};
        o.think_close = (tern_text){"</think>", 8};
        o.think_limited = o.thinks = true;
        o.think_tokens = 24;
        seq = begin(f, &o);
        gather(f, seq);
        tern_seq_close(f->rig.engine, seq);
        assert_string_equal(without, f->text);
    }
}

static void a_fork_is_closed_where_its_origin_is(void **state)
{
    struct fixture *f = *state;
    const tern_token end[] = {token_of('.'), THOUGHT, token_of('!')};
    tern_event events[4];
    size_t n;
    for (int steps = 1; steps < 7; steps++) {
        tern_seq_options o = thinking();
        tern_seq other = 0;
        o.think_limited = true;
        o.think_tokens = 2;
        o.think_end = end;
        o.n_think_end = 3;
        say(f, "[abcdefgh^");
        const tern_seq seq = begin(f, &o);
        for (int i = 0; i < steps; i++)
            assert_int_equal(tern_step(f->rig.engine, events, 4, &n), TERN_OK);
        assert_int_equal(tern_seq_fork(f->rig.engine, seq, 7, &other), TERN_OK);
        gather(f, other);
        const char *whole[] = {"<think>", "a", "b", ".", "</think>", "!", "f", "g", "h"};
        char wanted[64] = "";
        for (int i = steps; i < 9; i++)
            strcat(wanted, whole[i]);
        assert_string_equal(f->text, wanted);
        tern_seq_close(f->rig.engine, seq);
        tern_seq_close(f->rig.engine, other);
    }
}

static void it_begins_anew_with_each_feed(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = thinking();
    o.think_limited = true;
    o.think_tokens = 1;
    o.max_tokens = 4;
    say(f, "[abcQ[abc");
    const tern_seq seq = begin(f, &o);
    gather(f, seq);
    assert_string_equal(f->text, "<think>a</think>c");
    const tern_token more = token_of('Q');
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, &more, 1), TERN_OK);
    gather(f, seq);
    assert_string_equal(f->text, "<think>a</think>c");
    tern_seq_close(f->rig.engine, seq);
}

/* --- grammars --- */

static void a_grammar_begins_behind_the_reasoning(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = thinking();
    compile(f, &o, "root ::= [0-9] \"!\"", "");
    run(f, &o, "[ab]7!^", "<think>ab</think>7!");
    run(f, &o, "7!^", "7!");
    run(f, &o, " 7!^", " 7!");
    /* What the model would rather say is not of the grammar. */
    run_any(f, &o, "[ab]xyz");
    assert_int_equal(strlen(f->text), strlen("<think>ab</think>7!"));
    assert_memory_equal(f->text, "<think>ab</think>", 17);
    assert_int_equal(f->done.stop, TERN_STOP_EOS);
    o.think_limited = true;
    o.think_tokens = 2;
    run(f, &o, "[abc7!^", "<think>ab</think>7!");
    o.think_tokens = 0;
    o.thinks = true;
    run(f, &o, "a7!^", "</think>7!");
    /* Nor in what is spelled behind the tag to end it. */
    static const tern_token end[] = {'.' - 0x20, THOUGHT, '!' - 0x20};
    o.think_end = end;
    o.n_think_end = 3;
    run(f, &o, "abc7!^", ".</think>!7!");
}

static void a_trigger_counts_behind_the_reasoning(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = thinking();
    compile(f, &o, "root ::= [0-9] \"!\"", "{");
    run(f, &o, "[a{b]c{7!^", "<think>a{b</think>c{7!");
    run(f, &o, "c{7!^", "c{7!");
    run(f, &o, "{7!^", "{7!");
    run(f, &o, "[a{b]c^", "<think>a{b</think>c");
}

static void reasoning_does_not_end_a_text_that_must_be_of_a_grammar(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = thinking();
    compile(f, &o, "root ::= [0-9] \"!\"", "");
    run(f, &o, "[a^7!^", "<think>a</think>7!");
    /* Without a grammar, or with one that need not begin, it does. */
    compile(f, &o, "root ::= [0-9] \"!\"", "{");
    run(f, &o, "[a^7!^", "<think>a");
    assert_int_equal(f->done.stop, TERN_STOP_EOS);
}

static void a_tag_of_several_tokens_goes_on_under_a_grammar(void **state)
{
    struct fixture *f = *state;
    tern_seq_options o = thinking();
    o.think_open = (tern_text){"<t>", 3};
    o.think_close = (tern_text){"</t>", 4};
    compile(f, &o, "root ::= [0-9] \"!\"", "");
    run(f, &o, "<t>a</t>7!^", "<t>a</t>7!");
    run_any(f, &o, "<xyzzzzzzz");
    assert_memory_equal(f->text, "<t>", 3);
}

/* --- what is shown --- */

static void named_control_tokens_are_shown_and_no_others(void **state)
{
    struct fixture *f = *state;
    static const tern_text shown[] = {{"</think>", 8}, {"<|not there|>", 13}};
    tern_seq_options o = thinking();
    o.special = false;
    run(f, &o, "[a@]b@c^", "abc");
    o.shown = shown;
    o.n_shown = 2;
    run(f, &o, "[a@]b@c^", "a</think>bc");
}

static void stop_strings_count_in_the_answer_alone(void **state)
{
    struct fixture *f = *state;
    static const tern_text stops[] = {{"k>b", 3}, {"XY", 2}, {"</think>", 8}, {"<think>", 7}};
    tern_seq_options o = thinking();
    o.stops = stops;
    o.n_stops = 4;
    run(f, &o, "[aXYb]cXYd^", "<think>aXYb</think>c");
    assert_int_equal(f->done.stop, TERN_STOP_STRING);
    /* Neither a tag nor what begins within the reasoning becomes one behind it. */
    run(f, &o, "[aX]Ybd^", "<think>aX</think>Ybd");
    run(f, &o, "[aXc]bd^", "<think>aXc</think>bd");
    assert_int_equal(f->done.stop, TERN_STOP_EOS);
    /* What was held back before it comes out before it. */
    run(f, &o, " [a]d^", " <think>a</think>d");
    /* Text without reasoning has its stops from the first byte on, tags in it too. */
    run(f, &o, "XY^", "");
    run(f, &o, "a[b^", "a");
    assert_int_equal(f->done.stop, TERN_STOP_STRING);
    /* Nor does a closing tag that the budget forced. */
    const tern_token end[] = {token_of('X'), THOUGHT, token_of('X'), token_of('Y')};
    o.think_limited = true;
    o.think_tokens = 1;
    run(f, &o, "[abcXYd^", "<think>a</think>c");
    o.think_end = end;
    o.n_think_end = 4;
    run(f, &o, "[abcdefXYg^", "<think>aX</think>XYf");
    assert_int_equal(f->done.stop, TERN_STOP_STRING);
    o.think_tokens = 0;
    o.thinks = true;
    run(f, &o, "abcdeXYg^", "X</think>XYe");
}

/* --- errors --- */

static void refuse(struct fixture *f, const tern_seq_options *o, const char *line)
{
    tern_seq seq;
    assert_int_equal(tern_seq_open(f->rig.engine, o, &seq), TERN_BAD_ARGUMENT);
    assert_string_equal(tern_engine_error(f->rig.engine)->text, line);
    tern_engine_clear_error(f->rig.engine);
}

static void what_can_not_be_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char tag[TERN_MAX_TAG + 1];
    const tern_token end[TERN_MAX_FORCED + 1] = {TRACE_VOCAB};
    tern_seq_options o = thinking();
    o.think_limited = true;
    o.think_close = (tern_text){"</t>", 4};
    refuse(f, &o, "thinking: no token is the tag '</t>', and none are given to end it");
    o.think_close.size = 0;
    refuse(f, &o, "thinking: limited, and it has no closing tag");
    o.think_close = (tern_text){tag, sizeof tag};
    refuse(f, &o, "thinking: a tag of 65 bytes, at most 64");
    o = thinking();
    o.think_end = end;
    o.n_think_end = TERN_MAX_FORCED + 1;
    refuse(f, &o, "thinking: 65 tokens to end it, at most 64");
    o.n_think_end = 1;
    refuse(f, &o, "thinking: token 97 to end it, vocabulary 97");
    o = thinking();
    o.n_shown = 1;
    refuse(f, &o, "shown: 1 tokens, at most 16, in a list");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_spent_budget_closes_the_reasoning),
        WITH_FIXTURE(the_tokens_that_end_it_may_be_given),
        WITH_FIXTURE(a_tag_that_has_begun_runs_on),
        WITH_FIXTURE(nothing_else_changes),
        WITH_FIXTURE(a_fork_is_closed_where_its_origin_is),
        WITH_FIXTURE(it_begins_anew_with_each_feed),
        WITH_FIXTURE(a_grammar_begins_behind_the_reasoning),
        WITH_FIXTURE(a_trigger_counts_behind_the_reasoning),
        WITH_FIXTURE(reasoning_does_not_end_a_text_that_must_be_of_a_grammar),
        WITH_FIXTURE(a_tag_of_several_tokens_goes_on_under_a_grammar),
        WITH_FIXTURE(named_control_tokens_are_shown_and_no_others),
        WITH_FIXTURE(stop_strings_count_in_the_answer_alone),
        WITH_FIXTURE(what_can_not_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
