/* fuzz_tokenizer.c: a vocabulary of the input's making, and a text to cut with it. Sizes must be
 * what was promised, the stream equal to the whole, and the bytes must come back. */
#include "runtime/unicode.h"
#include "runtime/vocab.h"
#include "tests/fuzz/script.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/open_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const families[] = {"gpt2", "gpt2", "llama", "llama", "bert"};
static const char *const splitters[] = {
    "default", "gpt-2", "llama-bpe", "qwen2", "qwen35", "smollm", "gpt-4o", "tekken",
    "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon", "bloom", "viking",
};
enum { N_FAMILIES = sizeof families / sizeof *families };
enum { N_SPLITTERS = sizeof splitters / sizeof *splitters, MOST_PIECES = 64, MOST_TEXT = 4096 };

struct piece { char text[40]; size_t size; int kind; };
struct pieces { struct piece list[256 + MOST_PIECES]; size_t n; };

static void add(struct pieces *p, const char *text, size_t size, int kind)
{
    struct piece *piece = &p->list[p->n++];
    memcpy(piece->text, text, size);
    piece->size = size;
    piece->kind = kind;
}

static void add_bytes(struct pieces *p, bool byte_level)
{
    static const char hex[] = "0123456789ABCDEF";
    for (unsigned b = 0; b < 256; b++) {
        char text[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        size_t n = 6;
        if (byte_level)
            n = tern_unicode_encode(tern_vocab_cp_of_byte((unsigned char)b), text);
        add(p, text, n, byte_level ? TERN_TOKEN_NORMAL : TERN_TOKEN_BYTE);
    }
}

/* Two earlier pieces joined, or a few letters, so that pieces are made of one another. */
static void add_piece(struct pieces *p, struct script *in, bool spm)
{
    static const char *const letters[] = {"a",        "b", "c", "\xe2\x96\x81",
                                          "\xc4\xa0", " ", "<", "\xe6\x97\xa5"};
    char text[40];
    size_t n = 0;
    const unsigned how = take(in);
    for (unsigned i = 0; i < 2; i++) {
        const size_t from = spm ? 256 : 0, k = take(in);
        const size_t id = p->n > from ? from + k % (p->n - from) : p->n;
        const char *letter = letters[k % (sizeof letters / sizeof *letters)];
        if (how & (1u << i) && id < p->n && n + p->list[id].size < 36) {
            memcpy(text + n, p->list[id].text, p->list[id].size);
            n += p->list[id].size;
        } else if (n + 3 < 36) {
            memcpy(text + n, letter, strlen(letter));
            n += strlen(letter);
        }
    }
    add(p, text, n, how & 0x80 ? (int)(how >> 2) % 7 : TERN_TOKEN_NORMAL);
}

static void put(struct gw_bytes *to, const char *text, size_t size)
{
    gw_put_int(to, size, 8);
    gw_put(to, text, size);
}

static struct opened *make(struct script *in)
{
    static struct pieces p;
    struct gguf_writer w = gw_start();
    const char *family = families[take(in) % N_FAMILIES];
    const bool bpe = strcmp(family, "gpt2") == 0, spm = strcmp(family, "llama") == 0;
    p.n = 0;
    gw_text(&w, "general.architecture", "llama");
    gw_text(&w, "tokenizer.ggml.model", family);
    gw_text(&w, "tokenizer.ggml.pre", splitters[take(in) % N_SPLITTERS]);
    if (bpe || take(in) % 4)
        add_bytes(&p, bpe);
    for (size_t n = 1 + take(in) % (MOST_PIECES - 1); n > 0; n--)
        add_piece(&p, in, spm);
    gw_array(&w, "tokenizer.ggml.tokens", TERN_META_STRING, p.n);
    for (size_t i = 0; i < p.n; i++)
        put(&w.keys, p.list[i].text, p.list[i].size);
    gw_array(&w, "tokenizer.ggml.token_type", TERN_META_I32, p.n);
    for (size_t i = 0; i < p.n; i++)
        gw_put_int(&w.keys, (uint64_t)p.list[i].kind, 4);
    gw_array(&w, "tokenizer.ggml.scores", TERN_META_F32, p.n);
    for (size_t i = 0; i < p.n; i++) {
        const float score = -(float)(take(in) % 16);
        gw_put(&w.keys, &score, 4);
    }
    const size_t n_merges = take(in);
    gw_array(&w, "tokenizer.ggml.merges", TERN_META_STRING, n_merges);
    for (size_t i = 0; i < n_merges; i++) {
        const size_t a = (take(in) | 256u) % p.n, b = (take(in) | 256u) % p.n;
        char line[81];
        memcpy(line, p.list[a].text, p.list[a].size);
        line[p.list[a].size] = ' ';
        memcpy(line + p.list[a].size + 1, p.list[b].text, p.list[b].size);
        put(&w.keys, line, p.list[a].size + 1 + p.list[b].size);
    }
    gw_finish(&w);
    struct opened *o = open_bytes(take(in) & 1, TERN_MODEL_TEXT, w.file.data, w.file.n);
    gw_free(&w);
    return o;
}

/* A vocabulary with all bytes loses none of them. */
static void check_round_trip(const tern_model *m, tern_text text, uint32_t flags)
{
    const tern_memory scratch = {exactly(tern_tokenize_scratch(m, text.size)),
                                 tern_tokenize_scratch(m, text.size)};
    const size_t most = tern_tokenize_most(m, text.size);
    tern_token *ids = exactly(most * sizeof *ids);
    char *back = exactly(text.size);
    size_t n, n_back;
    require(tern_tokenize(m, text, flags, scratch, ids, most, &n, NULL) == TERN_OK);
    require(tern_detokenize(m, ids, n, TERN_DETOKENIZE_SPECIAL, back, text.size, &n_back, NULL) ==
            TERN_OK);
    require(n_back == text.size && memcmp(back, text.data, text.size) == 0);
    free(scratch.data);
    free(ids);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script in = {data, size};
    struct opened *o = make(&in);
    if (o->model) {
        const uint32_t flags = take(&in) % 4;
        const unsigned times = 1 + take(&in) % 64;
        static char text[MOST_TEXT];
        size_t n = 0;
        for (unsigned i = 0; i < times && in.n && n + in.n <= sizeof text; i++) {
            memcpy(text + n, in.p, in.n);
            n += in.n;
        }
        check_text_to_tokens(o->model, (tern_text){text, n}, flags);
        if (o->model->vocab->family == TERN_VOCAB_BPE)
            check_round_trip(o->model, (tern_text){text, n}, flags | TERN_TOKENIZE_NO_BOS);
    }
    open_close(o);
    return 0;
}
