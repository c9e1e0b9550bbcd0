/* mask_trie.c: a vocabulary's bytes, sorted, as tries; and which of its tokens are plain. */
#include "runtime/masks.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/unicode.h"
#include "runtime/vocab.h"

#include <string.h>

/* Bytes that a token stands for; 0: none, or more than are let in, or it ends the text. */
static size_t bytes_of(const struct tern_model *model, uint32_t token, char *out)
{
    size_t n = 0;
    if (tern_vocab_is_end(model->vocab, (tern_token)token))
        return 0;
    return tern_token_bytes(model, (tern_token)token, false, out, TERN_GRAMMAR_TOKEN_BYTES, &n) ||
                   n > TERN_GRAMMAR_TOKEN_BYTES ? 0 : n;
}

/* Characters that a JSON string holds as they are (without DEL, which some grammars leave out), and
 * how many; 0: there are others. */
static uint32_t plain_length(const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    uint32_t n = 0;
    for (size_t at = 0; at < size; n++) {
        uint32_t cp;
        at += tern_unicode_decode(s + at, size - at, &cp);
        if (cp < 0x20 || cp == '"' || cp == '\\' || cp == 0x7F || cp == TERN_CP_INVALID)
            return 0;
    }
    return n <= TERN_MASK_MOST_COUNT ? n : 0;
}

static size_t count_bytes(const struct tern_model *model, uint32_t n_vocab)
{
    size_t all = 0;
    char text[TERN_GRAMMAR_TOKEN_BYTES];
    for (uint32_t i = 0; i < n_vocab; i++)
        all += bytes_of(model, i, text);
    return all;
}

/* Nodes that the tries need at most, without memory to sort in: a token brings no more than those
 * behind the longest other one that it begins with. Most begin with one that is a few bytes
 * shorter, so this is within some percent of what is needed. */
struct sizes { size_t all, rest; };
enum { MOST_TRIES = 16 };

static void add_nodes(const struct tern_model *model, uint32_t token, struct sizes *s)
{
    char text[TERN_GRAMMAR_TOKEN_BYTES], other[TERN_GRAMMAR_TOKEN_BYTES];
    const size_t n = bytes_of(model, token, text);
    tern_text piece = tern_vocab_piece(model->vocab, token);
    size_t all = n, rest = plain_length(text, n) ? 0 : n;
    bool open = n > 0, rest_open = rest > 0;
    for (int tries = 0; (open || rest_open) && tries < MOST_TRIES; tries++) {
        while (piece.size && (piece.data[piece.size - 1] & 0xC0) == 0x80)
            piece.size--;
        if (piece.size <= 1)
            break;
        piece.size--;
        const uint32_t id = tern_vocab_find(model->vocab, piece);
        const size_t m = id == TERN_VOCAB_NONE ? 0 : bytes_of(model, id, other);
        if (!m || m >= n || memcmp(text, other, m) != 0)
            continue;
        if (open)
            all = n - m;
        if (rest_open && !plain_length(other, m)) {
            rest = n - m;
            rest_open = false;
        }
        open = false;
    }
    s->all += all;
    s->rest += rest;
}

static struct sizes count_nodes(const struct tern_model *model, uint32_t n_vocab)
{
    struct sizes s = {0, 0};
    for (uint32_t i = 0; i < n_vocab; i++)
        add_nodes(model, i, &s);
    return s;
}

tern_status tern_masks_check(const struct tern_model *model, tern_error *err)
{
    if (!model->vocab)
        return tern_fail(err, TERN_BAD_ARGUMENT, "grammars: the model has no tokenizer");
    const size_t n = count_bytes(model, model->vocab->n_tokens);
    if (n < TERN_TRIE_NO_TOKEN)
        return TERN_OK;
    return tern_fail(err, TERN_UNSUPPORTED, "grammars: tokens of %u bytes in all, below %u",
                     (uint64_t)n, (uint64_t)TERN_TRIE_NO_TOKEN);
}

static void lay_out_slots(struct tern_arena *a, struct tern_masks *m)
{
    for (uint32_t i = 0; i < TERN_MASK_ALL_SLOTS; i++) {
        const bool counted = i > TERN_MASK_SLOTS;
        struct tern_mask_slot s = {
            .cap_exits = counted ? TERN_MASK_COUNTED_EXITS : TERN_MASK_EXITS,
        };
        if (counted)
            s.counts = tern_carve_raw(a, 32 * (size_t)m->n_words, 1, 64);
        else
            s.bits = tern_carve_raw(a, m->n_words, sizeof *s.bits, 64);
        s.exits = tern_carve_raw(a, s.cap_exits, sizeof *s.exits, 64);
        if (m->slots)
            m->slots[i] = s;
    }
}

/* While the trie is built its lists lie where masks are kept later. */
static size_t building(const struct tern_masks *m, size_t bytes)
{
    return bytes + (2 * (size_t)m->n_vocab + (size_t)m->n_vocab + 1) * sizeof(uint32_t) +
           TERN_MASK_LEVELS * sizeof(uint32_t) + 256;
}

void tern_masks_lay_out(struct tern_arena *a, struct tern_masks *m, const struct tern_model *model)
{
    *m = (struct tern_masks){.model = model, .n_vocab = model->vocab->n_tokens};
    m->n_words = (m->n_vocab + 31) / 32;
    const struct sizes nodes = count_nodes(model, m->n_vocab);
    m->slots = tern_carve(a, TERN_MASK_ALL_SLOTS, sizeof *m->slots, 64);
    m->all.first = tern_carve_raw(a, 257, sizeof *m->all.first, 64);
    m->rest.first = tern_carve_raw(a, 257, sizeof *m->rest.first, 64);
    m->ends = tern_carve_raw(a, m->n_words, sizeof *m->ends, 64);
    m->all.nodes = tern_carve_raw(a, nodes.all, sizeof *m->all.nodes, 64);
    m->rest.nodes = tern_carve_raw(a, nodes.rest, sizeof *m->rest.nodes, 64);
    m->plain = tern_carve_raw(a, m->n_words, sizeof *m->plain, 64);
    m->plain_length = tern_carve_raw(a, 32 * (size_t)m->n_words, 1, 64);
    m->levels = tern_carve_raw(a, TERN_MASK_LEVELS, sizeof *m->levels, 64);
    m->ways = tern_carve_raw(a, TERN_MASK_WAYS, sizeof *m->ways, 64);
    m->nodes = tern_carve_raw(a, TERN_MASK_NODES, sizeof *m->nodes, 64);
    m->items = tern_carve_raw(a, TERN_MASK_ITEMS, sizeof *m->items, 64);
    m->starts = tern_carve_raw(a, TERN_MASK_ITEMS, sizeof *m->starts, 64);
    struct tern_arena over = *a;
    lay_out_slots(a, m);
    m->scratch_bytes = building(m, count_bytes(model, m->n_vocab));
    m->scratch = tern_carve_raw(&over, m->scratch_bytes, 1, 64);
    if (over.used > a->used)
        (void)tern_carve_raw(a, over.used - a->used, 1, 1);
}

/* --- building --- */

struct text_list {
    char *pool;
    uint32_t *starts;      /* [n_vocab + 1] */
    uint32_t *ids, *spare; /* [n_vocab] */
    uint32_t n;
};

static tern_text text_at(const struct text_list *t, uint32_t id)
{
    return (tern_text){t->pool + t->starts[id], t->starts[id + 1] - t->starts[id]};
}

static bool comes_first(const struct text_list *t, uint32_t a, uint32_t b)
{
    const tern_text x = text_at(t, a), y = text_at(t, b);
    const int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order ? order < 0 : x.size <= y.size;
}

static void merge(const struct text_list *t, const uint32_t *from, uint32_t *to, uint32_t left,
                  uint32_t right, uint32_t end)
{
    uint32_t a = left, b = right;
    for (uint32_t i = left; i < end; i++)
        to[i] = a < right && (b == end || comes_first(t, from[a], from[b])) ? from[a++]
                                                                            : from[b++];
}

static void sort(struct text_list *t)
{
    for (uint32_t run = 1; run < t->n; run *= 2) {
        for (uint32_t i = 0; i < t->n; i += 2 * run) {
            const uint32_t right = t->n - i > run ? i + run : t->n;
            const uint32_t end = t->n - right > run ? right + run : t->n;
            merge(t, t->ids, t->spare, i, right, end);
        }
        uint32_t *sorted = t->spare;
        t->spare = t->ids;
        t->ids = sorted;
    }
}

static void read_texts(struct tern_masks *m, struct text_list *t)
{
    struct tern_arena a = tern_arena_over(m->scratch, m->scratch_bytes);
    t->starts = tern_carve_raw(&a, (size_t)m->n_vocab + 1, sizeof *t->starts, 4);
    t->ids = tern_carve_raw(&a, m->n_vocab, sizeof *t->ids, 4);
    t->spare = tern_carve_raw(&a, m->n_vocab, sizeof *t->spare, 4);
    (void)tern_carve_raw(&a, TERN_MASK_LEVELS, sizeof(uint32_t), 4);
    t->pool = tern_carve_raw(&a, 1, 1, 1);
    t->n = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < m->n_vocab; i++) {
        t->starts[i] = at;
        const uint32_t n = (uint32_t)bytes_of(m->model, i, t->pool + at);
        const uint32_t length = plain_length(t->pool + at, n);
        if (n)
            t->ids[t->n++] = i;
        if (length)
            m->plain[i / 32] |= 1u << i % 32;
        m->plain_length[i] = length ? (uint8_t)length : TERN_MASK_NOT_IN;
        at += n;
    }
    t->starts[m->n_vocab] = at;
}

static uint32_t common(tern_text a, tern_text b)
{
    uint32_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n])
        n++;
    return n;
}

/* path[d]: the node at depth d that is still open. */
static void close_to(struct tern_trie *trie, uint32_t *path, uint32_t *depth, uint32_t to)
{
    for (; *depth > to; --*depth)
        trie->nodes[path[*depth]].skip = trie->n - path[*depth];
}

static void build(const struct tern_masks *m, const struct text_list *t, bool rest,
                  struct tern_trie *trie)
{
    uint32_t *path = t->spare < t->ids ? t->ids + m->n_vocab : t->spare + m->n_vocab;
    uint32_t depth = 0, byte = 0;
    tern_text before = {"", 0};
    trie->n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const uint32_t id = t->ids[i];
        const tern_text text = text_at(t, id);
        if (rest && m->plain_length[id] != TERN_MASK_NOT_IN)
            continue;
        uint32_t from = common(before, text);
        if (from == text.size) /* an equal one: its last byte again, beside the other's */
            from--;
        close_to(trie, path, &depth, from);
        for (; byte <= (unsigned char)text.data[0]; byte++)
            trie->first[byte] = trie->n;
        for (; depth < text.size; trie->n++) {
            path[++depth] = trie->n;
            trie->nodes[trie->n] = (struct tern_trie_node){
                1, (unsigned char)text.data[depth - 1],
                depth == text.size ? id : TERN_TRIE_NO_TOKEN, depth & 255};
        }
        before = text;
    }
    close_to(trie, path, &depth, 0);
    for (; byte <= 256; byte++)
        trie->first[byte] = trie->n;
}

void tern_masks_build(struct tern_masks *m)
{
    struct text_list t;
    if (m->built)
        return;
    memset(m->plain, 0, m->n_words * sizeof *m->plain);
    memset(m->ends, 0, m->n_words * sizeof *m->ends);
    for (uint32_t i = 0; i < m->n_vocab; i++)
        if (tern_vocab_is_end(m->model->vocab, (tern_token)i))
            m->ends[i / 32] |= 1u << i % 32;
    memset(m->plain_length, TERN_MASK_NOT_IN, 32 * (size_t)m->n_words);
    read_texts(m, &t);
    sort(&t);
    build(m, &t, false, &m->all);
    build(m, &t, true, &m->rest);
    m->built = true;
}
