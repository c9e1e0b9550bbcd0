/* What a file can say of its vocabulary that is not so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "small_vocab.h"

enum { PLAIN = TERN_TOKENIZE_NO_BOS };

static struct small_vocab vocab;
static uint32_t seed = 1;

static struct small_vocab *fresh(void)
{
    memset(&vocab, 0, sizeof vocab);
    return &vocab;
}

static void expect_refused(struct gguf_writer *w, tern_status status, const char *words)
{
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        gw_finish(w);
        struct opened *o = open_bytes(how, TERN_MODEL_TEXT, w->file.data, w->file.n);
        assert_int_equal(o->status, status);
        if (!strstr(o->error.text, words))
            fail_msg("\"%s\" has no \"%s\"", o->error.text, words);
        open_close(o);
    }
    gw_free(w);
}

static struct gguf_writer minimal(const char *kind, const char *pre)
{
    struct gguf_writer w = gw_start();
    gw_text(&w, "general.architecture", "llama");
    gw_text(&w, "tokenizer.ggml.model", kind);
    if (pre)
        gw_text(&w, "tokenizer.ggml.pre", pre);
    return w;
}

static const char *const abc[] = {"a", "b", "c"};

static void metadata_of_the_wrong_shape_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *tokens, *key;
        uint32_t element;
        uint64_t count;
        const char *words;
    } cases[] = {
        {"llama", "abc", "tokenizer.ggml.scores", TERN_META_U8, 3, "scores: not an array"},
        {"llama", "abc", "tokenizer.ggml.scores", TERN_META_F64, 3, "scores: not an array"},
        {"llama", "abc", "tokenizer.ggml.scores", TERN_META_F32, 2, "scores: 2 elements for 3"},
        {"llama", "abc", "tokenizer.ggml.scores", TERN_META_F32, 4, "scores: 4 elements for 3"},
        {"llama", "abc", "tokenizer.ggml.other", TERN_META_F32, 3, "scores: missing"},
        {"llama", "abc", "tokenizer.ggml.token_type", TERN_META_F32, 3, "token_type: not an array"},
        {"llama", "abc", "tokenizer.ggml.token_type", TERN_META_BOOL, 3,
         "token_type: not an array"},
        {"llama", "abc", "tokenizer.ggml.token_type", TERN_META_I32, 2,
         "token_type: 2 elements for 3"},
        {"gpt2", "abc", "tokenizer.ggml.merges", TERN_META_I32, 3, "merges: not an array"},
        {"gpt2", "abc", "tokenizer.ggml.other", TERN_META_I32, 3, "merges: missing"},
        {"gpt2", "", "tokenizer.ggml.tokens", TERN_META_I32, 3, "tokens: not an array"},
        {"gpt2", "", "tokenizer.ggml.tokens", TERN_META_STRING, 0, "tokens: 0 tokens"},
        {"gpt2", "", "tokenizer.ggml.other", TERN_META_I32, 3, "tokens: missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const int bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
        struct gguf_writer w = minimal(cases[i].kind, "gpt-2");
        if (*cases[i].tokens)
            gw_texts(&w, "tokenizer.ggml.tokens", abc, 3);
        gw_array(&w, cases[i].key, cases[i].element, cases[i].count);
        gw_put(&w.keys, NULL, cases[i].count * (size_t)bytes[cases[i].element]);
        expect_refused(&w, TERN_BAD_MODEL, cases[i].words);
    }
}

static void what_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    struct gguf_writer w = minimal("gpt2", "no-such-splitter");
    gw_texts(&w, "tokenizer.ggml.tokens", abc, 3);
    gw_texts(&w, "tokenizer.ggml.merges", abc, 0);
    expect_refused(&w, TERN_UNSUPPORTED, "no-such-splitter");
    w = minimal("t5", NULL);
    expect_refused(&w, TERN_UNSUPPORTED, "t5");
    w = minimal("none", NULL);
    expect_refused(&w, TERN_UNSUPPORTED, "no tokenizer");
    w = gw_start();
    gw_text(&w, "general.architecture", "llama");
    expect_refused(&w, TERN_UNSUPPORTED, "no tokenizer");
}

static void ids_outside_the_vocabulary_are_refused_where_they_matter(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    struct gguf_writer w = gw_start();
    sv_write(v, &w, "gpt2", "gpt-2");
    gw_u32(&w, "tokenizer.ggml.eos_token_id", 256);
    gw_finish(&w);
    struct opened *o = open_bytes(OPEN_READ, TERN_MODEL_TEXT, w.file.data, w.file.n);
    assert_int_equal(o->status, TERN_BAD_MODEL);
    assert_non_null(strstr(o->error.text, "eos_token_id: 256, but there are 256"));
    open_close(o);
    gw_free(&w);
    w = gw_start();
    sv_write(v, &w, "gpt2", "gpt-2");
    gw_u32(&w, "tokenizer.ggml.padding_token_id", 256);
    gw_u32(&w, "tokenizer.ggml.eos_token_id", 255);
    o = sv_finish(&w, OPEN_READ);
    assert_non_null(o->model);
    assert_int_equal(tern_vocab_pad(o->model->vocab), -1);
    assert_true(tern_vocab_is_end(o->model->vocab, 255));
    open_close(o);
}

static void every_end_ends_whatever_the_file_says_of_it(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>",
        "<|return|>", "<EOT>", "_<EOT>", "<|end_of_text|>",
        ("<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"),
    };
    enum { N = sizeof ends / sizeof *ends };
    for (int kind = 0; kind < 2; kind++) {
        struct small_vocab *v = fresh();
        tern_piece piece;
        sv_add_bytes(v);
        for (int i = 0; i < N; i++)
            sv_add(v, ends[i], kind ? TERN_TOKEN_USER : TERN_TOKEN_CONTROL, 0);
        const int other = sv_add(v, "<|start|>", TERN_TOKEN_CONTROL, 0);
        struct opened *o = sv_open(v, "gpt2", "gpt-2");
        for (int i = 0; i < N; i++) {
            assert_int_equal(tern_token_piece(o->model, 256 + i, &piece), TERN_OK);
            assert_true(piece.ends);
        }
        assert_int_equal(tern_token_piece(o->model, other, &piece), TERN_OK);
        assert_false(piece.ends);
        open_close(o);
    }
}

static void merges_that_name_no_token_are_passed_over(void **state)
{
    (void)state;
    static const char *const merges[] = {"a", "", " ", "a zz", "zz a", "a  b", "b c", "a b"};
    static const char *const tokens[] = {"a", "b", "c", "ab"};
    struct gguf_writer w = minimal("gpt2", "gpt-2");
    gw_texts(&w, "tokenizer.ggml.tokens", tokens, 4);
    gw_texts(&w, "tokenizer.ggml.merges", merges, 8);
    struct opened *o = sv_finish(&w, OPEN_READ);
    assert_non_null(o->model);
    SV_EXPECT(o->model, "abc", PLAIN, 3, 2);
    open_close(o);
}

static void long_pieces_and_odd_scores_and_kinds_are_refused(void **state)
{
    (void)state;
    static char longest[TERN_MAX_PIECE + 2];
    memset(longest, 'x', TERN_MAX_PIECE + 1);
    const char *const tokens[] = {"a", longest};
    struct gguf_writer w = minimal("llama", NULL);
    gw_texts(&w, "tokenizer.ggml.tokens", tokens, 2);
    gw_array(&w, "tokenizer.ggml.scores", TERN_META_F32, 2);
    gw_put(&w.keys, NULL, 8);
    expect_refused(&w, TERN_BAD_MODEL, "token 1 has 1025 bytes, at most 1024");
    w = minimal("llama", NULL);
    gw_texts(&w, "tokenizer.ggml.tokens", abc, 3);
    gw_array(&w, "tokenizer.ggml.token_type", TERN_META_I32, 3);
    for (int i = 5; i < 8; i++)
        gw_put_int(&w.keys, (uint64_t)i, 4);
    gw_array(&w, "tokenizer.ggml.scores", TERN_META_F32, 3);
    gw_put(&w.keys, NULL, 12);
    expect_refused(&w, TERN_BAD_MODEL, "token 2 is of type 7");
    w = minimal("llama", NULL);
    gw_texts(&w, "tokenizer.ggml.tokens", abc, 3);
    gw_array(&w, "tokenizer.ggml.scores", TERN_META_F32, 3);
    gw_put_int(&w.keys, 0, 4);
    gw_put_int(&w.keys, 0x7fc00000, 4);
    gw_put_int(&w.keys, 0, 4);
    gw_finish(&w);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_TEXT, w.file.data, w.file.n);
    assert_int_equal(o->status, TERN_BAD_MODEL);
    assert_non_null(strstr(o->error.text, "token 1 is not a number"));
    open_close(o);
    gw_free(&w);
}

/* Seconds of this process that a vocabulary of n tokens takes to be read. */
static double time_to_read(size_t n, enum open_how how)
{
    struct gguf_writer w = minimal("gpt2", "gpt-2");
    gw_array(&w, "tokenizer.ggml.tokens", TERN_META_STRING, n);
    for (size_t i = 0; i < n; i++) {
        char piece[24];
        snprintf(piece, sizeof piece, "p%zu", i * 7919 % n);
        gw_put_text(&w.keys, piece);
    }
    gw_texts(&w, "tokenizer.ggml.merges", abc, 0);
    gw_finish(&w);
    const clock_t begun = clock();
    struct opened *o = open_bytes(how, TERN_MODEL_TEXT, w.file.data, w.file.n);
    const double s = (double)(clock() - begun) / CLOCKS_PER_SEC;
    assert_int_equal(o->status, TERN_OK);
    open_close(o);
    gw_free(&w);
    return s;
}

static void a_quarter_of_a_million_pieces_are_read_in_linear_time(void **state)
{
    (void)state;
    enum { N = 1 << 18 };
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        double ratio = 99;
        for (int tries = 0; tries < 5 && ratio > 6; tries++) /* others use this machine */
            ratio = time_to_read(N, how) / (time_to_read(N / 4, how) + 1e-4);
        if (ratio > 10) /* 16 would be quadratic, 4 is linear */
            fail_msg("four times the pieces take %f times as long", ratio);
    }
}

static void the_same_tables_come_of_a_source_that_is_read(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    for (int i = 0; i < 27; i++) {
        const char left[] = {(char)('a' + i / 9), (char)('a' + i / 3 % 3), 0};
        sv_merge(v, (char[]){left[0], 0}, left + 1);
        sv_merge(v, left, (char[]){(char)('a' + i % 3), 0});
    }
    const int user = sv_add(v, "<u>", TERN_TOKEN_USER, 0);
    struct gguf_writer w = gw_start();
    sv_write(v, &w, "gpt2", "gpt-2");
    struct opened *read = sv_finish(&w, OPEN_READ), *mapped = sv_open(v, "gpt2", "gpt-2");
    char text[200];
    for (int i = 0; i < 200; i++)
        text[i] = (char)('a' + sv_dice(&seed, 3));
    memcpy(text + 77, "<u>", 3);
    size_t n;
    tern_token *ids = sv_tokenize(mapped->model, text, sizeof text, PLAIN, &n);
    sv_expect(read->model, text, sizeof text, PLAIN, ids, n);
    bool found = false;
    for (size_t i = 0; i < n; i++)
        found |= ids[i] == user;
    assert_true(found);
    free(ids);
    open_close(read);
    open_close(mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_of_the_wrong_shape_is_named),
        cmocka_unit_test(what_is_not_known_is_refused_by_name),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused_where_they_matter),
        cmocka_unit_test(every_end_ends_whatever_the_file_says_of_it),
        cmocka_unit_test(merges_that_name_no_token_are_passed_over),
        cmocka_unit_test(long_pieces_and_odd_scores_and_kinds_are_refused),
        cmocka_unit_test(a_quarter_of_a_million_pieces_are_read_in_linear_time),
        cmocka_unit_test(the_same_tables_come_of_a_source_that_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
