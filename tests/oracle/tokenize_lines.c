/* tokenize_lines MODEL [special] [bos] [time]: texts from standard input, ids to standard
 * output, one line a text. Texts are divided by SEPARATOR, as in llama.cpp's test files. Every
 * text is decoded again: a line that does not come back ends with " !". With `time` the seconds
 * of opening the model and of each text are written to standard error. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/tern.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEPARATOR "\n__ggml_vocab_test__\n"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

static tern_model *open_model(const char *path, size_t *need)
{
    tern_source source = {0};
    tern_error err = {0};
    tern_model *model = NULL;
    struct stat st;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        perror(path);
        exit(1);
    }
    static tern_source kept;
    source.size = (uint64_t)st.st_size;
    source.base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    kept = source;
    if (tern_model_size(&kept, 1, TERN_MODEL_TEXT, need, &err) != TERN_OK ||
        tern_model_init((tern_memory){must(aligned_alloc(64, (*need + 63) / 64 * 64)), *need},
                        &kept, 1, TERN_MODEL_TEXT, &model, &err) != TERN_OK) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1);
    }
    return model;
}

static char *read_all(size_t *n)
{
    size_t cap = 1 << 16;
    char *text = must(malloc(cap));
    *n = 0;
    for (size_t got; (got = fread(text + *n, 1, cap - *n, stdin)) > 0;) {
        *n += got;
        if (*n == cap)
            text = must(realloc(text, cap *= 2));
    }
    return text;
}

static void run(const tern_model *model, tern_text text, uint32_t flags, bool timed)
{
    const size_t need = tern_tokenize_scratch(model, text.size);
    const size_t most = tern_tokenize_most(model, text.size);
    const tern_memory scratch = {must(malloc(need)), need};
    tern_token *ids = must(malloc((most + 1) * sizeof *ids));
    char *back = must(malloc(text.size * 4 + 64));
    size_t n, n_back;
    tern_error err = {0};
    const double start = now();
    if (tern_tokenize(model, text, flags, scratch, ids, most, &n, &err) != TERN_OK) {
        fprintf(stderr, "%s (%zu tokens of at most %zu)\n", err.text, n, most);
        exit(1);
    }
    if (timed)
        fprintf(stderr, "%zu bytes, %zu tokens: %.4f s\n", text.size, n, now() - start);
    if (n < tern_tokenize_least(model, text.size))
        fprintf(stderr, "%zu tokens of at least %zu\n", n, tern_tokenize_least(model, text.size));
    for (size_t i = 0; i < n; i++)
        printf("%s%d", i ? " " : "", (int)ids[i]);
    const bool whole = tern_detokenize(model, ids, n, TERN_DETOKENIZE_SPECIAL, back,
                                       text.size * 4 + 64, &n_back, &err) == TERN_OK &&
                       n_back == text.size && memcmp(back, text.data, n_back) == 0;
    printf("%s\n", whole ? "" : " !");
    free(scratch.data);
    free(ids);
    free(back);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    uint32_t flags = TERN_TOKENIZE_NO_BOS;
    bool timed = false;
    for (int i = 2; i < argc; i++) {
        timed |= strcmp(argv[i], "time") == 0;
        flags |= strcmp(argv[i], "special") == 0 ? TERN_TOKENIZE_SPECIAL : 0;
        flags &= strcmp(argv[i], "bos") == 0 ? ~(uint32_t)TERN_TOKENIZE_NO_BOS : ~0u;
    }
    size_t need, n;
    const double start = now();
    const tern_model *model = open_model(argv[1], &need);
    if (timed)
        fprintf(stderr, "model: %zu bytes, %.4f s\n", need, now() - start);
    char *all = read_all(&n);
    const size_t step = strlen(SEPARATOR);
    for (size_t at = 0;;) {
        size_t stop = at;
        while (stop < n && (n - stop < step || memcmp(all + stop, SEPARATOR, step) != 0))
            stop++;
        run(model, (tern_text){all + at, stop - at}, flags, timed);
        if (stop == n)
            break;
        at = stop + step;
    }
    free(all);
    return 0;
}
