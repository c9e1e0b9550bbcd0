#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backend/trace.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/open_model.h"

/* --- a vocabulary, and a backend that says what a script tells it --- */

enum { UNK, BOS, END, F0, F9F, F8C, F8D, AB, CD, E, USER, COLON, WORD, N_PIECES };
static const char *const pieces[N_PIECES] = {
    "<unk>", "<s>", "</s>", "<0xF0>", "<0x9F>", "<0x8C>", "<0x8D>", "ab", "cd", "e", "\nUser", ":",
    ("\xe2\x96\x81" "word")};

struct fixture {
    struct opened *text;
    struct trace_rig rig;
    char out[4096], held_back[256]; /* of TOKEN events, and of DONE */
    uint32_t n_tokens;
    tern_event done;
};

static struct opened *open_vocabulary(void)
{
    struct gguf_writer w = gw_start();
    gw_text(&w, "general.architecture", "llama");
    gw_text(&w, "tokenizer.ggml.model", "llama");
    gw_array(&w, "tokenizer.ggml.tokens", TERN_META_STRING, TRACE_VOCAB);
    for (int i = 0; i < TRACE_VOCAB; i++) {
        char filler[3] = {(char)('A' + i % 26), (char)('A' + i / 26), 0};
        gw_put_text(&w.keys, i < N_PIECES ? pieces[i] : filler);
    }
    gw_array(&w, "tokenizer.ggml.scores", TERN_META_F32, TRACE_VOCAB);
    gw_put(&w.keys, NULL, 4 * TRACE_VOCAB);
    gw_array(&w, "tokenizer.ggml.token_type", TERN_META_I32, TRACE_VOCAB);
    for (int i = 0; i < TRACE_VOCAB; i++)
        gw_put_int(&w.keys, i == UNK ? 2 : i < F0 ? 3 : i < AB ? 6 : 1, 4);
    gw_u32(&w, "tokenizer.ggml.bos_token_id", BOS);
    gw_u32(&w, "tokenizer.ggml.eos_token_id", END);
    gw_finish(&w);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_TEXT, w.file.data, w.file.n);
    if (o->status)
        fail_msg("%s", o->error.text);
    gw_free(&w);
    return o;
}

static int set_up(void **state)
{
    static const uint32_t windows[] = {0};
    struct fixture *f = calloc(1, sizeof *f);
    f->text = open_vocabulary();
    trace_model(&f->rig, windows, 1);
    f->rig.model.vocab = f->text->model->vocab;
    *state = f;
    return trace_open(&f->rig, &(tern_limits){.n_ctx = 64, .n_seqs = 3, .n_logprobs = 2});
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    trace_close(&f->rig);
    open_close(f->text);
    free(f);
    return 0;
}

/* Feeds the first token, lets the rest be generated, and gathers the text. */
static tern_seq run(struct fixture *f, const tern_seq_options *o, const tern_token *script,
                    uint32_t n, size_t cap)
{
    tern_seq seq = 0;
    f->rig.trace->script = script;
    f->rig.trace->n_script = n;
    f->out[0] = f->held_back[0] = 0;
    f->n_tokens = 0;
    assert_int_equal(tern_seq_open(f->rig.engine, o, &seq), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, script, 1), TERN_OK);
    for (;;) {
        tern_event events[4];
        size_t k = 0;
        if (tern_step(f->rig.engine, events, cap, &k) == TERN_AGAIN)
            break;
        for (size_t i = 0; i < k; i++) {
            char *to = events[i].kind == TERN_EVENT_DONE ? f->held_back : f->out;
            strncat(to, events[i].text.data, events[i].text.size);
            f->n_tokens += events[i].kind == TERN_EVENT_TOKEN;
            if (events[i].kind == TERN_EVENT_DONE)
                f->done = events[i];
        }
    }
    tern_seq_close(f->rig.engine, seq);
    return seq;
}

static void an_unfinished_character_is_held_back_and_never_lost(void **state)
{
    struct fixture *f = *state;
    static const tern_token whole[] = {AB, F0, F9F, F8C, F8D, CD}, cut[] = {AB, F0, F9F, F8C};
    tern_seq_options o = trace_greedy();
    for (size_t cap = 1; cap < 5; cap++) {
        o.max_tokens = 5;
        run(f, &o, whole, 6, cap);
        assert_string_equal(f->out, "\xf0\x9f\x8c\x8d" "cd");
        assert_string_equal(f->held_back, "");
        o.max_tokens = 3;
        run(f, &o, cut, 4, cap);
        assert_string_equal(f->out, "");
        assert_string_equal(f->held_back, "\xef\xbf\xbd");
        assert_int_equal(f->done.stop, TERN_STOP_LENGTH);
    }
}

static void before_min_tokens_nothing_stops(void **state)
{
    struct fixture *f = *state;
    static const tern_token script[] = {AB, CD, E, CD, E, CD, E, CD};
    static const tern_token ending[] = {AB, END, END, END, CD};
    const tern_text stop = {"ecd", 3};
    tern_seq_options o = trace_greedy();
    o.max_tokens = 7;
    o.stops = &stop;
    o.n_stops = 1;
    for (uint32_t least = 0; least < 7; least++) {
        o.min_tokens = least;
        run(f, &o, script, 8, 4);
        /* What was written before is no part of a stop string. */
        assert_string_equal(f->out, least < 2 ? "cd" : least < 4 ? "cdecd"
                                       : least < 6 ? "cdecdecd" : "cdecdecdecd");
        assert_int_equal(f->done.stop, least < 6 ? TERN_STOP_STRING : TERN_STOP_LENGTH);
    }
    const tern_bias biases[] = {{E, -1}, {END, -INFINITY}};
    o.n_stops = 0;
    o.sampling.biases = biases;
    o.sampling.n_biases = 2;
    o.n_early = 1;
    for (uint32_t least = 0; least < 3; least++) {
        o.min_tokens = least;
        run(f, &o, ending, 5, 4);
        assert_int_equal(f->n_tokens, least);
        assert_int_equal(f->done.stop, TERN_STOP_EOS);
    }
    o.n_early = 3;
    tern_seq seq;
    assert_int_equal(tern_seq_open(f->rig.engine, &o, &seq), TERN_BAD_ARGUMENT);
    tern_engine_clear_error(f->rig.engine);
}

static void an_end_token_ends_and_is_not_kept(void **state)
{
    struct fixture *f = *state;
    static const tern_token script[] = {AB, CD, END, E, E};
    tern_seq_options o = trace_greedy();
    o.max_tokens = 4;
    run(f, &o, script, 5, 4);
    assert_string_equal(f->out, "cd");
    assert_int_equal(f->n_tokens, 1);
    assert_int_equal(f->done.stop, TERN_STOP_EOS);
    assert_int_equal(f->done.token, END);
    assert_int_equal(f->done.position, 2);
    o.ignore_eos = true;
    run(f, &o, script, 5, 4);
    assert_string_equal(f->out, "cdee");
    assert_int_equal(f->n_tokens, 4);
    o.special = true;
    run(f, &o, script, 5, 4);
    assert_string_equal(f->out, "cd</s>ee");
}

static void text_from_a_stop_string_on_is_never_shown(void **state)
{
    struct fixture *f = *state;
    static const tern_token script[] = {AB, CD, USER, COLON, E, E}, other[] = {AB, CD, USER, E, CD};
    static const tern_text stops[] = {{"\nUser:", 6}, {"xyz", 3}};
    tern_seq_options o = trace_greedy();
    o.stops = stops;
    o.n_stops = 2;
    o.max_tokens = 5;
    for (size_t cap = 1; cap < 5; cap++) {
        run(f, &o, script, 6, cap);
        assert_string_equal(f->out, "cd");
        assert_string_equal(f->held_back, "");
        assert_int_equal(f->done.stop, TERN_STOP_STRING);
        assert_int_equal(f->n_tokens, 3);
        o.max_tokens = 4;
        run(f, &o, other, 5, cap); /* a part of one that goes another way is shown */
        assert_string_equal(f->out, "cd\nUserecd");
        o.max_tokens = 2;
        run(f, &o, script, 6, cap); /* and so is what is held at the end */
        assert_string_equal(f->out, "cd");
        assert_string_equal(f->held_back, "\nUser");
        o.max_tokens = 5;
    }
}

static void a_stop_that_is_complete_flushes_nothing(void **state)
{
    struct fixture *f = *state;
    static const tern_token script[] = {AB, CD, F0, F9F, E};
    static const tern_text stops[] = {{"cd", 2}};
    tern_seq_options o = trace_greedy();
    o.stops = stops;
    o.n_stops = 1;
    run(f, &o, script, 5, 4);
    assert_string_equal(f->out, "");
    assert_string_equal(f->held_back, "");
    assert_int_equal(f->done.stop, TERN_STOP_STRING);
    /* The next run of the same slot starts afresh. */
    o.n_stops = 0;
    o.max_tokens = 1;
    run(f, &o, script, 5, 4);
    assert_string_equal(f->out, "cd");
}

static void the_space_before_the_first_word_is_taken_away_at_the_start_alone(void **state)
{
    struct fixture *f = *state;
    static const tern_token first[] = {BOS, WORD, WORD}, later[] = {AB, WORD, WORD};
    tern_seq_options o = trace_greedy();
    o.max_tokens = 2;
    run(f, &o, first, 3, 4);
    assert_string_equal(f->out, "word word");
    run(f, &o, later, 3, 4);
    assert_string_equal(f->out, " word word");
}

static void preemption_keeps_half_a_character_and_half_a_stop(void **state)
{
    struct fixture *f = *state;
    static const tern_token script[] = {AB, F0, F9F, F8C, F8D, USER, COLON, CD};
    static const tern_text stops[] = {{"\nUser:c", 7}};
    tern_seq_options o = trace_greedy();
    tern_seq seq;
    f->rig.trace->script = script;
    f->rig.trace->n_script = 8;
    o.stops = stops;
    o.n_stops = 1;
    assert_int_equal(tern_seq_open(f->rig.engine, &o, &seq), TERN_OK);
    assert_int_equal(tern_seq_feed(f->rig.engine, seq, script, 1), TERN_OK);
    tern_stop stop = TERN_STOP_NONE;
    while (!stop) {
        tern_event events[4];
        size_t n = 0;
        assert_int_equal(tern_step(f->rig.engine, events, 4, &n), TERN_OK);
        for (size_t i = 0; i < n; i++) {
            strncat(f->out, events[i].text.data, events[i].text.size);
            stop = events[i].stop;
        }
        tern_preempt(f->rig.engine, &f->rig.engine->parts.seqs[0]);
    }
    assert_string_equal(f->out, "\xf0\x9f\x8c\x8d");
    assert_int_equal(stop, TERN_STOP_STRING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(an_unfinished_character_is_held_back_and_never_lost),
        TEST(before_min_tokens_nothing_stops),
        TEST(an_end_token_ends_and_is_not_kept),
        TEST(text_from_a_stop_string_on_is_never_shown),
        TEST(a_stop_that_is_complete_flushes_nothing),
        TEST(the_space_before_the_first_word_is_taken_away_at_the_start_alone),
        TEST(preemption_keeps_half_a_character_and_half_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
