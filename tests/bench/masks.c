/* masks.c: what a grammar costs a token.
 *
 *     masks MODEL.gguf GRAMMAR.gbnf TEXT [check]
 *
 * Reads the text's tokens under the grammar and times the mask before each of them, and the step
 * behind it, first visits included; prints the times in microseconds, one line a position with
 * check or TERN_EACH, and the median, the 99th percentile and the most. check compares every mask
 * with what each token of the vocabulary does by itself.
 */
#include "platform/os/host.h"
#include "runtime/arena.h"
#include "runtime/masks.h"
#include "runtime/model.h"
#include "runtime/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 22);
    if (!f || !text)
        exit(2);
    *n = fread(text, 1, 1 << 22, f);
    fclose(f);
    return text;
}

static tern_model *open_model(const char *path)
{
    static tern_os_model files;
    tern_error err = {0};
    tern_model *model = NULL;
    size_t need;
    if (tern_os_open_model(path, &files, &err) ||
        tern_model_size(files.parts, files.n_parts, TERN_MODEL_TEXT, &need, &err) ||
        tern_model_init(tern_os_map(need, 64), files.parts, files.n_parts, TERN_MODEL_TEXT, &model,
                        &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return model;
}

static struct tern_masks *open_masks(const tern_model *model)
{
    static struct tern_masks m;
    struct tern_arena size = tern_arena_measure();
    tern_masks_lay_out(&size, &m, model);
    struct tern_arena over = tern_arena_over(tern_os_map(size.used, 64).data, size.used);
    tern_masks_lay_out(&over, &m, model);
    const uint64_t start = tern_os_now_ns();
    tern_masks_build(&m);
    fprintf(stderr, "trie: %u and %u nodes of %zu bytes, %.1f ms\n", m.all.n, m.rest.n, size.used,
            (double)(tern_os_now_ns() - start) * 1e-6);
    return &m;
}

static size_t check(const tern_model *model, const tern_grammar_state *s, const uint32_t *bits)
{
    static tern_grammar_state copy;
    size_t wrong = 0;
    for (uint32_t i = 0; i < tern_vocab_size(model->vocab); i++) {
        tern_piece piece;
        tern_grammar_copy(&copy, s);
        const bool in = tern_token_piece(model, (tern_token)i, &piece) == TERN_OK && !piece.ends &&
                        tern_grammar_accept(&copy, model, (tern_token)i);
        const bool said = bits[i / 32] >> i % 32 & 1;
        if (in != said && wrong++ < 5)
            printf("token %u '%.*s': %s, the mask says %s\n", i, (int)piece.text.size,
                   piece.text.data, in ? "in" : "out", said ? "in" : "out");
    }
    return wrong;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static tern_token ids[MOST];
    static double us[MOST];
    static tern_grammar_state s;
    if (argc < 4)
        return 2;
    size_t n_gbnf, n_text, n = 0, used, wrong = 0;
    tern_error err = {0};
    tern_model *model = open_model(argv[1]);
    struct tern_masks *m = open_masks(model);
    char *gbnf = slurp(argv[2], &n_gbnf), *text = slurp(argv[3], &n_text);
    tern_grammar *g;
    const tern_memory mem = tern_os_map(TERN_GRAMMAR_BYTES, 64);
    const tern_memory scratch = tern_os_map(TERN_GRAMMAR_SCRATCH, 64);
    uint64_t start = tern_os_now_ns();
    if (tern_grammar_compile(mem, scratch, (tern_text){gbnf, n_gbnf}, model, &g, &used, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const double ms = (double)(tern_os_now_ns() - start) * 1e-6;
    const size_t tok = tern_tokenize_scratch(model, n_text) + 64;
    if (tern_tokenize(model, (tern_text){text, n_text}, TERN_TOKENIZE_NO_BOS, tern_os_map(tok, 64),
                      ids, MOST, &n, &err))
        return 1;
    uint32_t *bits = calloc(m->n_words, sizeof *bits);
    tern_grammar_start(g, &s);
    for (size_t i = 0; i < n; i++) {
        const uint64_t visited = m->n_visited;
        start = tern_os_now_ns();
        tern_masks_fill(m, &s, bits);
        us[i] = (double)(tern_os_now_ns() - start) * 1e-3;
        if (argc > 4)
            wrong += check(model, &s, bits);
        if (getenv("TERN_EACH")) {
            tern_piece p = {.text = {"", 0}};
            if (tern_token_piece(model, ids[i], &p))
                return 1;
            printf("%8.1f us %8llu nodes, ways %u, before %.*s\n", us[i],
                   (unsigned long long)(m->n_visited - visited), s.n_ways, (int)p.text.size,
                   p.text.data);
        }
        if (!(bits[ids[i] / 32] >> ids[i] % 32 & 1) || !tern_grammar_accept(&s, model, ids[i])) {
            printf("token %zu is refused\n", i);
            return 1;
        }
    }
    const bool ends = tern_grammar_may_end(&s);
    qsort(us, n, sizeof *us, by_size);
    printf("%s: compiled %.2f ms, %zu positions: median %.1f us, 99th %.1f us, most %.1f us%s%s\n",
           argv[2], ms, n, us[n / 2], us[n * 99 / 100], us[n - 1], ends ? "" : ", may not end",
           wrong ? ", WRONG" : "");
    return wrong != 0;
}
