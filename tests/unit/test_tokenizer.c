/* The rules of merging and of special pieces are checked against naive programs that follow
 * their definitions: look at everything, take the best, start again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "small_vocab.h"

enum { PLAIN = TERN_TOKENIZE_NO_BOS, SPECIAL = TERN_TOKENIZE_NO_BOS | TERN_TOKENIZE_SPECIAL };

static struct small_vocab vocab;
static uint32_t seed;

static uint32_t dice(uint32_t n)
{
    return sv_dice(&seed, n);
}

static struct small_vocab *fresh(void)
{
    memset(&vocab, 0, sizeof vocab);
    return &vocab;
}

/* --- naive programs --- */

struct list { char s[600][SV_TEXT]; int n; };

static void list_join(struct list *l, int at)
{
    memcpy(l->s[at] + strlen(l->s[at]), l->s[at + 1], strlen(l->s[at + 1]) + 1);
    memmove(l->s[at + 1], l->s[at + 2], sizeof l->s[0] * (size_t)(l->n - at - 2));
    l->n--;
}

/* Place of the pair that joins next, or -1. */
static int best_merge(const struct small_vocab *v, const struct list *l)
{
    for (int r = 0; r < v->n_merges; r++)
        for (int i = 0; i + 1 < l->n; i++)
            if (strcmp(l->s[i], v->merges[r].left) == 0 &&
                strcmp(l->s[i + 1], v->merges[r].right) == 0)
                return i;
    return -1;
}

static int best_score(const struct small_vocab *v, const struct list *l)
{
    int best = -1;
    float score = 0;
    for (int i = 0; i + 1 < l->n; i++) {
        char joined[2 * SV_TEXT];
        snprintf(joined, sizeof joined, "%s%s", l->s[i], l->s[i + 1]);
        const int id = sv_find(v, joined);
        if (id >= 0 && v->pieces[id].kind == TERN_TOKEN_NORMAL &&
            (best < 0 || v->pieces[id].score > score)) {
            best = i;
            score = v->pieces[id].score;
        }
    }
    return best;
}

static void random_pieces(struct small_vocab *v, int n, bool merges, bool in_order)
{
    for (int i = 0; i < n; i++) {
        const char *letters[] = {"a", "b", "c"};
        char left[2 * SV_TEXT], right[SV_TEXT];
        const int base = v->n_pieces > 270 ? v->n_pieces : 0; /* often what was made before */
        const int a = base ? 256 + (int)dice((uint32_t)(base - 256)) : 0;
        const int b = base ? 256 + (int)dice((uint32_t)(base - 256)) : 0;
        snprintf(left, sizeof left, "%s", base && dice(2) ? v->pieces[a].text : letters[dice(3)]);
        snprintf(right, sizeof right, "%s", base && dice(2) ? v->pieces[b].text : letters[dice(3)]);
        if (strlen(left) + strlen(right) > 12 || strpbrk(left, "<\xc4") || strpbrk(right, "<\xc4"))
            continue;
        if (merges) {
            sv_merge(v, left, right);
        } else {
            strcat(left, right);
            if (sv_find(v, left) < 0)
                sv_add(v, left, TERN_TOKEN_NORMAL, -(float)dice(in_order ? 1000 : 6));
        }
    }
    if (!in_order && merges) /* ranks without sense: a merge before those that make its parts */
        for (int i = v->n_merges - 1; i > 0; i--) {
            const int j = (int)dice((uint32_t)i + 1);
            const struct sv_merge m = v->merges[i];
            v->merges[i] = v->merges[j];
            v->merges[j] = m;
        }
}

static void check_merging(bool spm, bool in_order, uint32_t letters, int length)
{
    static struct list l;
    struct small_vocab *v = fresh();
    if (spm)
        sv_add_spm(v);
    else
        sv_add_bytes(v);
    for (int i = 0; spm && i < 3; i++)
        sv_add(v, (char[]){(char)('a' + i), 0}, TERN_TOKEN_NORMAL, -5000);
    random_pieces(v, 60, !spm, in_order);
    struct gguf_writer w = gw_start();
    sv_write(v, &w, spm ? "llama" : "gpt2", "gpt-2");
    gw_int(&w, "tokenizer.ggml.add_space_prefix", TERN_META_BOOL, 0);
    struct opened *o = sv_finish(&w, OPEN_MAPPED);
    assert_non_null(o->model);
    char text[600] = {0};
    l.n = length;
    for (int i = 0; i < length; i++) {
        text[i] = (char)('a' + dice(letters));
        snprintf(l.s[i], sizeof l.s[i], "%c", text[i]);
    }
    for (int at; (at = spm ? best_score(v, &l) : best_merge(v, &l)) >= 0;)
        list_join(&l, at);
    tern_token ids[600];
    for (int i = 0; i < l.n; i++)
        ids[i] = sv_find(v, l.s[i]);
    sv_expect(o->model, text, (size_t)length, PLAIN, ids, (size_t)l.n);
    open_close(o);
}

static void merges_are_taken_by_rank_and_then_from_the_left(void **state)
{
    (void)state;
    for (seed = 1; seed < 400000000; seed += 52345677)
        for (uint32_t letters = 1; letters <= 3; letters++) {
            const uint32_t kept = seed;
            check_merging(false, true, letters, 30);
            check_merging(false, true, letters, 150);
            check_merging(false, false, letters, 150);
            seed = kept;
        }
}

static void pieces_are_joined_by_score_and_then_from_the_left(void **state)
{
    (void)state;
    for (seed = 1; seed < 400000000; seed += 52345677)
        for (uint32_t letters = 1; letters <= 3; letters++) {
            const uint32_t kept = seed;
            check_merging(true, true, letters, 30);
            check_merging(true, true, letters, 150);
            check_merging(true, false, letters, 150);
            seed = kept;
        }
}

/* Longest first over the whole text, then shorter ones in what is left: marks what is taken. */
static size_t naive_specials(const struct small_vocab *v, const char *text, tern_token *ids)
{
    const int n = (int)strlen(text);
    int taken[64], id_at[64];
    for (int i = 0; i < n; i++)
        taken[i] = id_at[i] = -1;
    for (int size = 40; size > 0; size--)
        for (int i = 0; i + size <= n; i++)
            for (int id = 256; id < v->n_pieces; id++) {
                bool fits = (int)strlen(v->pieces[id].text) == size &&
                            strncmp(text + i, v->pieces[id].text, (size_t)size) == 0;
                for (int k = 0; k < size; k++)
                    fits &= taken[i + k] < 0;
                for (int k = 0; fits && k < size; k++)
                    taken[i + k] = i;
                id_at[i] = fits ? id : id_at[i];
            }
    size_t n_ids = 0;
    for (int i = 0; i < n; i++)
        if (taken[i] < 0)
            ids[n_ids++] = (unsigned char)text[i];
        else if (taken[i] == i)
            ids[n_ids++] = id_at[i];
    return n_ids;
}

static void special_pieces_are_found_longest_first(void **state)
{
    (void)state;
    for (seed = 7; seed < 2000000000; seed += 9345677) {
        struct small_vocab *v = fresh();
        sv_add_bytes(v);
        for (int i = 0; i < 8; i++) {
            char piece[12] = {0};
            const uint32_t size = 2 + dice(7), letters = 1 + dice(3);
            for (uint32_t k = 0; k < size; k++)
                piece[k] = (char)('a' + dice(letters));
            if (sv_find(v, piece) < 0)
                sv_add(v, piece, dice(2) ? TERN_TOKEN_USER : TERN_TOKEN_CONTROL, 0);
        }
        struct opened *o = sv_open(v, "gpt2", "gpt-2");
        assert_non_null(o->model);
        for (int i = 0; i < 20; i++) {
            char text[64] = {0};
            const uint32_t size = dice(40), letters = 1 + dice(3);
            for (uint32_t k = 0; k < size; k++)
                text[k] = (char)('a' + dice(letters));
            tern_token ids[64];
            sv_expect(o->model, text, size, SPECIAL, ids, naive_specials(v, text, ids));
        }
        open_close(o);
    }
}

/* --- rules --- */

static void control_tokens_come_of_text_only_if_asked_for(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    const int end = sv_add(v, "<|im_end|>", TERN_TOKEN_CONTROL, 0);
    const int user = sv_add(v, "<u>", TERN_TOKEN_USER, 0);
    sv_merge(v, "<", "|");
    struct opened *o = sv_open(v, "gpt2", "qwen2");
    SV_EXPECT(o->model, "a<|im_end|>b", SPECIAL, 'a', end, 'b');
    SV_EXPECT(o->model, "a<u>", PLAIN, 'a', user);
    size_t n;
    tern_token *ids = sv_tokenize(o->model, "<|im_end|>", 10, PLAIN, &n);
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(ids[i], end);
    free(ids);
    assert_true(tern_vocab_is_end(o->model->vocab, end));
    assert_false(tern_vocab_is_end(o->model->vocab, user));
    assert_int_equal(tern_vocab_eot(o->model->vocab), end);
    open_close(o);
}

/* Its spelling is what it writes: U+0120, and not the space that this is the letter of. */
static void bytes_become_no_user_token_that_writes_others(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    sv_merge(v, "\xc4\xa0", "b");
    v->pieces[v->n_pieces - 1].kind = TERN_TOKEN_USER;
    const int user = v->n_pieces - 1;
    sv_merge(v, "c", "d");
    v->pieces[v->n_pieces - 1].kind = TERN_TOKEN_USER;
    struct opened *o = sv_open(v, "gpt2", "llama-bpe");
    SV_EXPECT(o->model, "a b", PLAIN, 'a', ' ', 'b');
    SV_EXPECT(o->model, "a\xc4\xa0" "b", PLAIN, 'a', user);
    SV_EXPECT(o->model, "cd", PLAIN, user + 1);
    open_close(o);
}

static void spm_text_can_spell_no_control_token(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_spm(v);
    const int less = sv_add(v, "<", TERN_TOKEN_NORMAL, -1),
              s = sv_add(v, "s", TERN_TOKEN_NORMAL, -2);
    const int greater = sv_add(v, ">", TERN_TOKEN_NORMAL, -3);
    const int both = sv_add(v, "<s", TERN_TOKEN_NORMAL, -4); /* and "<s>" would be next */
    const int space = sv_add(v, "\xe2\x96\x81", TERN_TOKEN_NORMAL, -5);
    struct opened *o = sv_open(v, "llama", NULL);
    SV_EXPECT(o->model, "<s>", PLAIN, space, both, greater);
    SV_EXPECT(o->model, "s<", PLAIN, space, s, less);
    open_close(o);
}

/* SentencePiece puts a space before the text, and llama.cpp after each special token as well. */
static void a_space_stands_before_words_at_the_start_and_after_special_tokens(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_spm(v);
    const int space = sv_add(v, "\xe2\x96\x81", TERN_TOKEN_NORMAL, -5);
    const int g = sv_add(v, "G", TERN_TOKEN_NORMAL, -6);
    const int sg = sv_add(v, "\xe2\x96\x81G", TERN_TOKEN_NORMAL, -1);
    const int two = sv_add(v, "\xe2\x96\x81\xe2\x96\x81", TERN_TOKEN_NORMAL, -2);
    struct opened *o = sv_open(v, "llama", NULL);
    SV_EXPECT(o->model, "<s>G", SPECIAL, 1, sg);
    SV_EXPECT(o->model, "</s> G", SPECIAL, 2, space, sg);
    SV_EXPECT(o->model, "G</s>  G", SPECIAL, sg, 2, two, sg);
    SV_EXPECT(o->model, "GG", PLAIN, sg, g);
    SV_EXPECT(o->model, " ", PLAIN, two);
    SV_EXPECT(o->model, "\n", PLAIN, space, 3 + '\n');
    SV_EXPECT(o->model, " \n", PLAIN, two, 3 + '\n');
    SV_EXPECT(o->model, "G", 0, 1, sg);
    SV_EXPECT(o->model, "", 0, 1);
    sv_expect(o->model, "", 0, PLAIN, NULL, 0);
    open_close(o);
}

static void a_piece_may_go_on_past_a_space(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_spm(v);
    sv_add(v, "\xe2\x96\x81", TERN_TOKEN_NORMAL, -5);
    const int x = sv_add(v, "x", TERN_TOKEN_NORMAL, -5), y = sv_add(v, "y", TERN_TOKEN_NORMAL, -5);
    const int sy = sv_add(v, "\xe2\x96\x81y", TERN_TOKEN_NORMAL, -3);
    const int sx = sv_add(v, "\xe2\x96\x81x", TERN_TOKEN_NORMAL, -1);
    struct opened *o = sv_open(v, "llama", NULL);
    SV_EXPECT(o->model, "x y", PLAIN, sx, sy);
    open_close(o);
    const int both = sv_add(v, "\xe2\x96\x81x\xe2\x96\x81", TERN_TOKEN_NORMAL, -2);
    o = sv_open(v, "llama", NULL);
    SV_EXPECT(o->model, "x yx", PLAIN, both, y, x);
    open_close(o);
}

static void a_whole_word_is_taken_first_where_the_family_says_so(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    const int whole = sv_add(v, "\xc4\xa0word", TERN_TOKEN_NORMAL, 0); /* no merge makes it */
    struct opened *o = sv_open(v, "gpt2", "llama-bpe");
    SV_EXPECT(o->model, " word", PLAIN, whole);
    open_close(o);
    o = sv_open(v, "gpt2", "qwen2");
    SV_EXPECT(o->model, " word", PLAIN, ' ', 'w', 'o', 'r', 'd');
    open_close(o);
}

static void wordpiece_takes_the_longest_from_the_left_or_nothing(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    const int unk = sv_add(v, "[UNK]", TERN_TOKEN_UNKNOWN, 0);
    const int cls = sv_add(v, "[CLS]", TERN_TOKEN_CONTROL, 0),
              sep = sv_add(v, "[SEP]", TERN_TOKEN_CONTROL, 0);
    const int un = sv_add(v, "\xe2\x96\x81un", TERN_TOKEN_NORMAL, 0);
    const int able = sv_add(v, "able", TERN_TOKEN_NORMAL, 0),
              aff = sv_add(v, "aff", TERN_TOKEN_NORMAL, 0);
    const int cafe = sv_add(v, "\xe2\x96\x81" "cafe", TERN_TOKEN_NORMAL, 0);
    const int dot = sv_add(v, "\xe2\x96\x81.", TERN_TOKEN_NORMAL, 0);
    const int sun = sv_add(v, "\xe2\x96\x81\xe6\x97\xa5", TERN_TOKEN_NORMAL, 0);
    struct gguf_writer w = gw_start();
    sv_write(v, &w, "bert", NULL);
    gw_u32(&w, "tokenizer.ggml.bos_token_id", (uint32_t)cls);
    gw_u32(&w, "tokenizer.ggml.seperator_token_id", (uint32_t)sep);
    gw_u32(&w, "tokenizer.ggml.unknown_token_id", (uint32_t)unk);
    struct opened *o = sv_finish(&w, OPEN_MAPPED);
    SV_EXPECT(o->model, "UNaffable", PLAIN, un, aff, able);
    SV_EXPECT(o->model, "unaffabl", PLAIN, unk);
    SV_EXPECT(o->model, "Caf\xc3\xa9.Cafe\xcc\x81 .", PLAIN, cafe, dot, cafe, dot);
    SV_EXPECT(o->model, "\xe6\x97\xa5\xe6\x97\xa5", PLAIN, sun, sun);
    SV_EXPECT(o->model, " un\xe2\x80\x8d\n", 0, cls, un, sep);
    open_close(o);
}

static void gpt_oss_goes_on_after_a_message(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    const int end = sv_add(v, "<|end|>", TERN_TOKEN_CONTROL, 0);
    struct opened *o = sv_open(v, "gpt2", "gpt-4o");
    assert_true(tern_vocab_is_end(o->model->vocab, end));
    open_close(o);
    const int back = sv_add(v, "<|return|>", TERN_TOKEN_CONTROL, 0);
    const int call = sv_add(v, "<|call|>", TERN_TOKEN_CONTROL, 0);
    o = sv_open(v, "gpt2", "gpt-4o");
    assert_false(tern_vocab_is_end(o->model->vocab, end));
    assert_true(tern_vocab_is_end(o->model->vocab, back));
    assert_true(tern_vocab_is_end(o->model->vocab, call));
    open_close(o);
}

static void of_equal_pieces_the_lower_id_is_meant(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    const int first = sv_merge(v, "a", "b");
    sv_add(v, "ab", TERN_TOKEN_NORMAL, 0);
    sv_merge(v, "b", "a");
    sv_add(v, "<x>", TERN_TOKEN_USER, 0);
    const int user = v->n_pieces - 1;
    sv_add(v, "<x>", TERN_TOKEN_USER, 0);
    struct opened *o = sv_open(v, "gpt2", "gpt-2");
    SV_EXPECT(o->model, "ab<x>", PLAIN, first, user);
    open_close(o);
}

/* --- the contract of the calls --- */

static void sizes_are_told_and_kept(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    struct opened *o = sv_open(v, "gpt2", "gpt-2");
    const tern_text text = {"hello", 5};
    const size_t need = tern_tokenize_scratch(o->model, 5);
    char *scratch = malloc(need + 1);
    tern_token out[5] = {-7, -7, -7, -7, -7};
    tern_error err = {0};
    size_t n;
    assert_int_equal(
        tern_tokenize(o->model, text, PLAIN, (tern_memory){scratch, need - 1}, out, 5, &n, &err),
        TERN_TOO_SMALL);
    assert_non_null(strstr(err.text, "bytes given"));
    /* Scratch may begin anywhere. */
    assert_int_equal(
        tern_tokenize(o->model, text, PLAIN, (tern_memory){scratch + 1, need}, out, 3, &n, NULL),
        TERN_TOO_SMALL);
    assert_int_equal(n, 5);
    assert_int_equal(out[2], 'l');
    assert_int_equal(out[3], -7);
    assert_int_equal(tern_tokenize(o->model, text, PLAIN, (tern_memory){scratch, need}, NULL, 0, &n,
                                   NULL), TERN_TOO_SMALL);
    assert_int_equal(n, 5);
    /* Linear: of twice the text no more than twice the bytes. */
    for (size_t size = 64; size < 1 << 24; size *= 2)
        assert_true(tern_tokenize_scratch(o->model, 2 * size) <=
                    2 * tern_tokenize_scratch(o->model, size) + 4096);
    free(scratch);
    tern_piece piece;
    assert_int_equal(tern_token_piece(o->model, 256, &piece), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_token_piece(o->model, -1, &piece), TERN_BAD_ARGUMENT);
    assert_int_equal(tern_token_piece(o->model, 'A', &piece), TERN_OK);
    assert_int_equal(piece.kind, TERN_TOKEN_NORMAL);
    open_close(o);
}

/* Ids of a text whose bytes are the template's own where marks say 1. */
static void expect_marked(struct opened *o, const char *text, const char *marks,
                          const tern_token *ids, size_t n_ids)
{
    tern_run runs[64];
    size_t n_runs = 0, n = 0, size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (i == 0 || marks[i] != marks[i - 1])
            runs[n_runs++].own = marks[i] == '1';
    for (size_t i = 0, k = 0; i < size; i++)
        if (i + 1 == size || marks[i + 1] != marks[i])
            runs[k++].end = i + 1;
    const size_t need = tern_tokenize_scratch(o->model, size);
    void *scratch = malloc(need);
    tern_token out[64];
    const tern_rendered r = {{text, size}, runs, n_runs};
    assert_int_equal(tern_tokenize_rendered(o->model, &r, SPECIAL, (tern_memory){scratch, need},
                                            out, 64, &n, NULL), TERN_OK);
    free(scratch);
    assert_int_equal(n, n_ids);
    assert_memory_equal(out, ids, n * sizeof *ids);
}

#define EXPECT_MARKED(text, marks, ...) \
    expect_marked(o, text, marks, (const tern_token[]){__VA_ARGS__}, \
                  sizeof(const tern_token[]){__VA_ARGS__} / sizeof(tern_token))

static void only_a_templates_own_text_spells_control_tokens(void **state)
{
    (void)state;
    struct small_vocab *v = fresh();
    sv_add_bytes(v);
    const tern_token ab = sv_merge(v, "a", "b");
    const tern_token end = sv_add(v, "<e>", TERN_TOKEN_CONTROL, 0);
    const tern_token tag = sv_add(v, "<u>", TERN_TOKEN_USER, 0);
    const tern_token longer = sv_add(v, "<e>x<u>", TERN_TOKEN_CONTROL, 0);
    struct opened *o = sv_open(v, "gpt2", "gpt-2");
    EXPECT_MARKED("<e>", "111", end);
    EXPECT_MARKED("<e>", "000", '<', 'e', '>');
    EXPECT_MARKED("<e>", "100", '<', 'e', '>');
    EXPECT_MARKED("<e>", "001", '<', 'e', '>');
    EXPECT_MARKED("<e><e>", "000111", '<', 'e', '>', end);
    EXPECT_MARKED("a<e>b<e>", "01110000", 'a', end, 'b', '<', 'e', '>');
    /* What a user wrote beside the template's words is cut together with them. */
    EXPECT_MARKED("ab", "10", ab);
    /* Pieces of the user's kind stand for text, and are found in it whoever wrote it. */
    EXPECT_MARKED("<u>", "010", tag);
    EXPECT_MARKED("<e>x<u>", "1111111", longer);
    EXPECT_MARKED("<e>x<u>", "1110111", end, 'x', tag);
    EXPECT_MARKED("<e>x<u>", "1111110", end, 'x', tag);
    const tern_run wrong[] = {{2, true}, {2, false}};
    tern_rendered r = {{"ab", 2}, wrong, 2};
    size_t n;
    assert_int_equal(tern_tokenize_rendered(o->model, &r, SPECIAL, (tern_memory){0}, NULL, 0, &n,
                                            NULL), TERN_BAD_ARGUMENT);
    r.text.size = 3;
    r.n_runs = 1;
    assert_int_equal(tern_tokenize_rendered(o->model, &r, SPECIAL, (tern_memory){0}, NULL, 0, &n,
                                            NULL), TERN_BAD_ARGUMENT);
    open_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_are_taken_by_rank_and_then_from_the_left),
        cmocka_unit_test(pieces_are_joined_by_score_and_then_from_the_left),
        cmocka_unit_test(special_pieces_are_found_longest_first),
        cmocka_unit_test(control_tokens_come_of_text_only_if_asked_for),
        cmocka_unit_test(bytes_become_no_user_token_that_writes_others),
        cmocka_unit_test(spm_text_can_spell_no_control_token),
        cmocka_unit_test(a_space_stands_before_words_at_the_start_and_after_special_tokens),
        cmocka_unit_test(a_piece_may_go_on_past_a_space),
        cmocka_unit_test(a_whole_word_is_taken_first_where_the_family_says_so),
        cmocka_unit_test(wordpiece_takes_the_longest_from_the_left_or_nothing),
        cmocka_unit_test(gpt_oss_goes_on_after_a_message),
        cmocka_unit_test(of_equal_pieces_the_lower_id_is_meant),
        cmocka_unit_test(only_a_templates_own_text_spells_control_tokens),
        cmocka_unit_test(sizes_are_told_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
