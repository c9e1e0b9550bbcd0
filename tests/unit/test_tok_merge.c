/* Texts that break tokenizers: one character a hundred thousand times, and no characters. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "small_vocab.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { PLAIN = TERN_TOKENIZE_NO_BOS, SPECIAL = TERN_TOKENIZE_NO_BOS | TERN_TOKENIZE_SPECIAL };

static struct small_vocab vocab;
static uint32_t seed = 1;

static struct small_vocab *fresh(void)
{
    memset(&vocab, 0, sizeof vocab);
    return &vocab;
}

struct job { const tern_model *model; const char *text; size_t size, n; double seconds; };

static void *tokenize_in_thread(void *arg)
{
    struct job *j = arg;
    struct timespec a, b;
    const size_t need = tern_tokenize_scratch(j->model, j->size);
    void *scratch = malloc(need);
    if (!scratch)
        abort();
    memset(scratch, 0, need); /* its pages are not what is timed */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    const tern_status status = tern_tokenize(j->model, (tern_text){j->text, j->size}, SPECIAL,
                                             (tern_memory){scratch, need}, NULL, 0, &j->n, NULL);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    if (status != TERN_TOO_SMALL)
        abort();
    free(scratch);
    j->seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    return NULL;
}

enum { SMALL = 64 * 1024 };

static void run_on_small_stack(struct job *j)
{
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN); /* 128 KiB on some systems */
    assert_int_equal(pthread_attr_setstacksize(&attr, least > SMALL ? least : SMALL), 0);
    assert_int_equal(pthread_create(&thread, &attr, tokenize_in_thread, j), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
}

static void repeat(char *text, size_t n, const char *unit)
{
    const size_t size = strlen(unit);
    for (size_t i = 0; i < n; i++)
        text[i] = unit[i % size];
}

/* Pieces that double a letter, so that a run is joined to the end in many rounds. */
static struct opened *run_model(bool spm)
{
    struct small_vocab *v = fresh();
    if (spm)
        sv_add_spm(v);
    else
        sv_add_bytes(v);
    static const char *const units[] = {
        "A", "a", "b", "7", ".", "=", "\xe6\x97\xa5", "\xcc\x81", "\xe2\x96\x81"};
    for (size_t i = 0; spm && i < sizeof units / sizeof *units; i++) {
        char piece[SV_TEXT] = {0};
        for (int k = 1; k <= 8; k *= 2) {
            for (int j = 0; j < k; j++)
                memcpy(piece + (size_t)j * strlen(units[i]), units[i], strlen(units[i]));
            sv_add(v, piece, TERN_TOKEN_NORMAL, -(float)k);
        }
    }
    static const char *const letters[] = {"A", "a", "7", ".", "=", "\xc4\xa0"};
    for (size_t i = 0; !spm && i < sizeof letters / sizeof *letters; i++) {
        char piece[SV_TEXT];
        snprintf(piece, sizeof piece, "%s", letters[i]);
        for (int k = 1; k <= 8; k *= 2) {
            char half[SV_TEXT];
            snprintf(half, sizeof half, "%s", piece);
            sv_merge(v, half, half);
            strcat(piece, half);
        }
    }
    sv_add(v, "<|x|>", TERN_TOKEN_CONTROL, 0);
    sv_add(v, "\n\n", TERN_TOKEN_USER, 0);
    sv_add(v, "\n\n\n\n\n", TERN_TOKEN_USER, 0);
    struct opened *o = sv_open(v, spm ? "llama" : "gpt2", "llama-bpe");
    assert_non_null(o->model);
    return o;
}

static const char *const units[] = {
    "A", "\xc3\xa9", "\xe6\x97\xa5", "7", " ", "\n", "\t", ".", "=", "\xcc\x81", "\x80", "ab", " a",
    "\xf0\x9f\x98\x80", "<", "<|x", "\n\n\n ",
};

static void long_runs_need_a_small_stack(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *text = malloc(N);
    for (int spm = 0; spm < 2; spm++) {
        struct opened *o = run_model(spm);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            repeat(text, N, units[i]);
            struct job j = {.model = o->model, .text = text, .size = N};
            run_on_small_stack(&j);
            assert_in_range(j.n, N / 48, 2 * N);
        }
        open_close(o);
    }
    free(text);
}

static double best_time(struct job *j, size_t size)
{
    double best = 1e9;
    j->size = size;
    for (int i = 0; i < 3; i++) {
        tokenize_in_thread(j);
        best = j->seconds < best ? j->seconds : best;
    }
    return best;
}

static void time_grows_with_the_text_and_not_faster(void **state)
{
    (void)state;
    enum { N = 1 << 17 };
    char *text = malloc(N);
    for (int spm = 0; spm < 2; spm++) {
        struct opened *o = run_model(spm);
        for (size_t i = 0; i <= sizeof units / sizeof *units; i++) {
            if (i < sizeof units / sizeof *units)
                repeat(text, N, units[i]);
            for (size_t k = 0; i == sizeof units / sizeof *units && k < N; k++)
                text[k] = (char)sv_dice(&seed, 256);
            struct job j = {.model = o->model, .text = text};
            double ratio = 99;
            for (int tries = 0; tries < 5 && ratio > 4.6; tries++) /* others use this machine */
                ratio = best_time(&j, N) / (best_time(&j, N / 4) + 1e-4);
            if (ratio > 10) /* 16 would be quadratic, 4 is linear */
                fail_msg("%s, unit %zu: four times the text takes %f times as long",
                         spm ? "SPM" : "BPE", i, ratio);
        }
        open_close(o);
    }
    free(text);
}

static void any_bytes_come_back_from_byte_level_ids(void **state)
{
    (void)state;
    struct opened *o = run_model(false);
    static const char *const bad[] = {
        "\xe6\xad", "\xe2\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5", "\xff\xff",
        "a\xe6\xad" "b", "\xf0\x9f\x98", "\x80\x80 \x80",
    };
    for (int i = 0; i < 3000; i++) {
        char text[64], back[64];
        size_t size = sv_dice(&seed, 64), n, n_back;
        for (size_t k = 0; k < size; k++)
            text[k] = (char)sv_dice(&seed, i % 2 ? 256 : 40);
        if (i < 256) {
            text[0] = (char)i;
            size = 1;
        } else if (i < 256 + (int)(sizeof bad / sizeof *bad)) {
            size = strlen(bad[i - 256]);
            memcpy(text, bad[i - 256], size);
        }
        tern_token *ids = sv_tokenize(o->model, text, size, PLAIN, &n);
        assert_int_equal(tern_detokenize(o->model, ids, n, TERN_DETOKENIZE_SPECIAL, back,
                                         sizeof back, &n_back, NULL),
                         TERN_OK);
        assert_int_equal(n_back, size);
        assert_memory_equal(back, text, size);
        free(ids);
    }
    open_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_runs_need_a_small_stack),
        cmocka_unit_test(time_grows_with_the_text_and_not_faster),
        cmocka_unit_test(any_bytes_come_back_from_byte_level_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
