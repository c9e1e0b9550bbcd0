#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "small_vocab.h"

static struct small_vocab vocab;

enum { BYTE = 3 }; /* id of <0x00> */

/* Words with and without U+2581, one of two spaces, a piece of spaces alone. */
static struct opened *spm_model(bool add_space)
{
    struct small_vocab *v = &vocab;
    memset(v, 0, sizeof *v);
    sv_add_spm(v);
    static const char *const pieces[] = {
        "\xe2\x96\x81", "\xe2\x96\x81word", "word", "\xe2\x96\x81\xe2\x96\x81", "\xc3\xa9",
        "\xe2\x96\x81\xe2\x96\x81" "a", "x\xe2\x96\x81y",
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        sv_add(v, pieces[i], TERN_TOKEN_NORMAL, -1);
    sv_add(v, " u", TERN_TOKEN_USER, 0);
    struct gguf_writer w = gw_start();
    sv_write(v, &w, "llama", NULL);
    gw_int(&w, "tokenizer.ggml.add_space_prefix", TERN_META_BOOL, add_space);
    struct opened *o = sv_finish(&w, OPEN_MAPPED);
    assert_non_null(o->model);
    return o;
}

struct text { char data[8 * TERN_DETOK_CAP]; size_t n; };

static void push(const tern_model *model, tern_detok *d, tern_token token, bool special,
                 struct text *t)
{
    t->n += tern_detok_push(model, d, token, special, t->data + t->n);
}

static void stream(const tern_model *model, const tern_token *ids, size_t n, struct text *t)
{
    tern_detok d = {0};
    t->n = 0;
    for (size_t i = 0; i < n; i++)
        push(model, &d, ids[i], false, t);
    t->n += tern_detok_end(&d, t->data + t->n);
}

static void expect_stream(const tern_model *model, const tern_token *ids, size_t n,
                          const char *right)
{
    static struct text t;
    stream(model, ids, n, &t);
    assert_int_equal(t.n, strlen(right));
    assert_memory_equal(t.data, right, t.n);
}

#define STREAM(model, right, ...)                                                                  \
    expect_stream(model, (const tern_token[]){__VA_ARGS__},                                        \
                  sizeof(const tern_token[]){__VA_ARGS__} / sizeof(tern_token), right)

static void characters_come_whole_and_bad_bytes_as_replacements(void **state)
{
    (void)state;
    struct opened *o = spm_model(false);
    const tern_model *m = o->model;
    const int x = BYTE;
    STREAM(m, "\xf0\x9f\x8c\x8d", x + 0xf0, x + 0x9f, x + 0x8c, x + 0x8d);
    STREAM(m, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", x + 0xf0, x + 0x9f, x + 0x91,
           x + 0xa9, x + 0xe2, x + 0x80, x + 0x8d, x + 0xf0, x + 0x9f, x + 0x91, x + 0xa7);
    STREAM(m, "\xef\xbf\xbd" "A", x + 0xe6, x + 0xad, x + 'A');
    STREAM(m, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", x + 0xff, x + 0xff, x + 0xff);
    STREAM(m, "\xef\xbf\xbd", x + 0xf0, x + 0x9f, x + 0x8c); /* cut off by the end */
    STREAM(m, "\xef\xbf\xbd\xc3\xa9", x + 0xe6, sv_find(&vocab, "\xc3\xa9"));
    STREAM(m, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", x + 0xed, x + 0xa0, x + 0x80);
    tern_detok d = {0};
    char out[TERN_DETOK_CAP];
    assert_int_equal(tern_detok_push(m, &d, x + 0xf0, false, out), 0);
    assert_int_equal(tern_detok_push(m, &d, x + 0x9f, false, out), 0);
    assert_int_equal(tern_detok_push(m, &d, x + 'A', false, out), 4); /* not held any longer */
    assert_int_equal(tern_detok_end(&d, out), 0);
    open_close(o);
}

static void one_space_goes_from_the_first_word(void **state)
{
    (void)state;
    struct opened *o = spm_model(true);
    const tern_model *m = o->model;
    const int space = sv_find(&vocab, "\xe2\x96\x81"), word = sv_find(&vocab, "\xe2\x96\x81word");
    const int two = sv_find(&vocab, "\xe2\x96\x81\xe2\x96\x81"), bare = sv_find(&vocab, "word");
    STREAM(m, "word word", word, word);
    STREAM(m, "word", 1, word);         /* after <s> */
    STREAM(m, " word", two, bare);      /* one of two */
    STREAM(m, " word", space, word);
    STREAM(m, "word word", bare, word); /* none to take, and none is taken later */
    STREAM(m, " u", sv_find(&vocab, " u"));
    open_close(o);
    o = spm_model(false);
    STREAM(o->model, " word", word);
    open_close(o);
}

static void control_tokens_are_written_if_asked_for(void **state)
{
    (void)state;
    struct opened *o = spm_model(true);
    static struct text t;
    tern_detok d = {0};
    const int word = sv_find(&vocab, "\xe2\x96\x81word");
    push(o->model, &d, 1, true, &t);
    push(o->model, &d, word, true, &t);
    push(o->model, &d, 2, false, &t);
    push(o->model, &d, 2, true, &t);
    assert_int_equal(t.n, 11);
    assert_memory_equal(t.data, "<s>word</s>", 11);
    char out[8];
    size_t n;
    assert_int_equal(tern_token_bytes(o->model, 1, false, out, 8, &n), TERN_OK);
    assert_int_equal(n, 0);
    assert_int_equal(tern_token_bytes(o->model, 1, true, out, 2, &n), TERN_TOO_SMALL);
    assert_int_equal(n, 3);
    assert_int_equal(tern_token_bytes(o->model, word, false, out, 8, &n), TERN_OK);
    assert_memory_equal(out, " word", 5);
    assert_int_equal(tern_token_bytes(o->model, 1000, false, out, 8, &n), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_detok_push(o->model, &d, -1, true, t.data), 0);
    open_close(o);
}

/* Whole, in two parts and one by one; the stream, from its bytes read as text. */
static void parts_add_up_to_the_whole(void **state)
{
    (void)state;
    uint32_t seed = 3;
    for (int i = 0; i < 400; i++) {
        struct opened *o = spm_model(i % 2);
        tern_token ids[24];
        const size_t n = sv_dice(&seed, 24);
        for (size_t k = 0; k < n; k++)
            ids[k] =
                (tern_token)(sv_dice(&seed, 3) ? sv_dice(&seed, (uint32_t)vocab.n_pieces)
                                               : (uint32_t)vocab.n_pieces - 1 - sv_dice(&seed, 8));
        char whole[512];
        size_t n_whole, need;
        assert_int_equal(tern_detokenize(o->model, ids, n, 0, whole, sizeof whole, &n_whole, NULL),
                         TERN_OK);
        if (n_whole) {
            char small[512];
            assert_int_equal(tern_detokenize(o->model, ids, n, 0, small, n_whole - 1, &need, NULL),
                             TERN_TOO_SMALL);
            assert_int_equal(need, n_whole);
            assert_memory_equal(small, whole, n_whole - 1);
        }
        /* What the stream must be: the whole text, with what is no character replaced. */
        static struct text right, all, cut;
        right.n = 0;
        for (size_t at = 0; at < n_whole;) {
            uint32_t cp;
            size_t size;
            const enum tern_utf8 is =
                tern_unicode_scan((unsigned char *)whole + at, n_whole - at, &cp, &size);
            size = is == TERN_UTF8_CUT ? n_whole - at : size;
            const char *from = is == TERN_UTF8_WHOLE ? whole + at : "\xef\xbf\xbd";
            memcpy(right.data + right.n, from, is == TERN_UTF8_WHOLE ? size : 3);
            right.n += is == TERN_UTF8_WHOLE ? size : 3;
            at += size;
        }
        stream(o->model, ids, n, &all);
        assert_int_equal(all.n, right.n);
        assert_memory_equal(all.data, right.data, right.n);
        for (size_t k = 0; k <= n; k++) { /* a stream that is set down and taken up again */
            tern_detok d = {0};
            cut.n = 0;
            for (size_t j = 0; j < k; j++)
                push(o->model, &d, ids[j], false, &cut);
            tern_detok later = d;
            for (size_t j = k; j < n; j++)
                push(o->model, &later, ids[j], false, &cut);
            cut.n += tern_detok_end(&later, cut.data + cut.n);
            assert_int_equal(cut.n, right.n);
            assert_memory_equal(cut.data, right.data, right.n);
        }
        open_close(o);
    }
}

static void the_longest_piece_of_bad_bytes_fits(void **state)
{
    (void)state;
    static char piece[TERN_MAX_PIECE + 1], out[TERN_DETOK_CAP];
    memset(piece, 0xff, TERN_MAX_PIECE);
    const char *const tokens[] = {"<0xF0>", "<0x9F>", "<0x8C>", piece};
    struct gguf_writer w = gw_start();
    gw_text(&w, "general.architecture", "llama");
    gw_text(&w, "tokenizer.ggml.model", "llama");
    gw_texts(&w, "tokenizer.ggml.tokens", tokens, 4);
    gw_array(&w, "tokenizer.ggml.scores", TERN_META_F32, 4);
    gw_put(&w.keys, NULL, 16);
    gw_array(&w, "tokenizer.ggml.token_type", TERN_META_I32, 4);
    for (int i = 0; i < 4; i++)
        gw_put_int(&w.keys, i < 3 ? TERN_TOKEN_BYTE : TERN_TOKEN_NORMAL, 4);
    struct opened *o = sv_finish(&w, OPEN_MAPPED);
    assert_non_null(o->model);
    tern_detok d = {0};
    for (tern_token t = 0; t < 3; t++)
        assert_int_equal(tern_detok_push(o->model, &d, t, false, out), 0);
    assert_int_equal(tern_detok_push(o->model, &d, 3, false, out), 3 * (TERN_MAX_PIECE + 1));
    for (size_t i = 0; i < 3 * (TERN_MAX_PIECE + 1); i += 3)
        assert_memory_equal(out + i, "\xef\xbf\xbd", 3);
    open_close(o);
}

static void byte_level_pieces_are_bytes(void **state)
{
    (void)state;
    memset(&vocab, 0, sizeof vocab);
    sv_add_bytes(&vocab);
    sv_add(&vocab, "\xc4\xa0\xc3\xa9", TERN_TOKEN_NORMAL, 0); /* space, and the byte E9 */
    sv_add(&vocab, "\xc4\xa0\xe6\x97\xa5", TERN_TOKEN_USER, 0); /* verbatim */
    struct opened *o = sv_open(&vocab, "gpt2", "gpt-2");
    char out[8];
    size_t n;
    for (int b = 0; b < 256; b++) {
        assert_int_equal(tern_token_bytes(o->model, b, false, out, 8, &n), TERN_OK);
        assert_int_equal(n, 1);
        assert_int_equal((unsigned char)out[0], b);
    }
    assert_int_equal(tern_token_bytes(o->model, 256, false, out, 8, &n), TERN_OK);
    assert_int_equal(n, 2);
    assert_memory_equal(out, " \xe9", 2);
    assert_int_equal(tern_token_bytes(o->model, 257, false, out, 8, &n), TERN_OK);
    assert_int_equal(n, 5);
    open_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_come_whole_and_bad_bytes_as_replacements),
        cmocka_unit_test(one_space_goes_from_the_first_word),
        cmocka_unit_test(control_tokens_are_written_if_asked_for),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(the_longest_piece_of_bad_bytes_fits),
        cmocka_unit_test(byte_level_pieces_are_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
