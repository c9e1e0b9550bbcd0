/* The lookups of a vocabulary.
 *
 * Hashing is open addressing with linear probing over tables that are two thirds full. A file
 * made so that its pieces collide is refused, for no honest one probes MAX_PROBES slots.
 */
#include "runtime/vocab.h"

#include "runtime/text.h"

#include <string.h>

enum { MAX_PROBES = 2048 };
#define EMPTY_SLOT UINT32_MAX
enum { TAG_BITS = 32 - TERN_VOCAB_ID_BITS };
#define EMPTY_PAIR UINT64_MAX

/* --- hashing --- */

static uint64_t mix(uint64_t h)
{
    h *= 0x9e3779b97f4a7c15;
    return h ^ h >> 29;
}

static uint64_t hash_piece(tern_text t)
{
    uint64_t h = mix(t.size + 1);
    size_t i = 0;
    for (; i + 8 <= t.size; i += 8) {
        uint64_t word;
        memcpy(&word, t.data + i, 8);
        h = mix(h ^ word);
    }
    uint64_t word = 0;
    for (size_t j = 0; i + j < t.size; j++)
        word |= (uint64_t)(unsigned char)t.data[i + j] << (8 * j);
    return mix(mix(h ^ word));
}

/* Spreads the upper half of a hash over n slots. */
static uint32_t slot_of(uint64_t hash, uint32_t n)
{
    return (uint32_t)((hash >> 32) * n >> 32);
}

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)hash & ((1u << TAG_BITS) - 1);
}

/* The slot where the piece is, or the empty one where it would be; n_slots if it is too far. */
static uint32_t probe_piece(const struct tern_vocab *v, tern_text piece, uint64_t hash)
{
    uint32_t at = slot_of(hash, v->n_slots);
    for (int i = 0; i < MAX_PROBES; i++) {
        const uint32_t word = v->slots[at];
        if (word == EMPTY_SLOT)
            return at;
        if (word >> TERN_VOCAB_ID_BITS == tag_of(hash) &&
            tern_text_equal(tern_vocab_piece(v, word & TERN_VOCAB_MAX_TOKENS), piece))
            return at;
        at = at + 1 == v->n_slots ? 0 : at + 1;
    }
    return v->n_slots;
}

uint32_t tern_vocab_find(const struct tern_vocab *v, tern_text piece)
{
    if (piece.size == 0 || piece.size > v->longest)
        return TERN_VOCAB_NONE;
    const uint32_t at = probe_piece(v, piece, hash_piece(piece));
    if (at == v->n_slots || v->slots[at] == EMPTY_SLOT)
        return TERN_VOCAB_NONE;
    return v->slots[at] & TERN_VOCAB_MAX_TOKENS;
}

/* A byte-level vocabulary writes a user's token as it is spelled, others by their bytes. Of a
 * spelling for which the two differ, text that has the bytes must not become the token. */
static bool reads_otherwise(const struct tern_vocab *v, tern_text piece, tern_token_kind kind)
{
    if (v->family != TERN_VOCAB_BPE || kind != TERN_TOKEN_USER)
        return false;
    for (size_t i = 0; i < piece.size; i++)
        if ((unsigned char)piece.data[i] >= 0x80)
            return true;
    return false;
}

uint32_t tern_vocab_find_plain(const struct tern_vocab *v, tern_text piece)
{
    const uint32_t id = tern_vocab_find(v, piece);
    if (id == TERN_VOCAB_NONE)
        return id;
    const tern_token_kind kind = tern_vocab_piece_kind(v, id);
    return kind == TERN_TOKEN_CONTROL || kind == TERN_TOKEN_UNKNOWN || kind == TERN_TOKEN_BYTE ||
                   reads_otherwise(v, piece, kind)
               ? TERN_VOCAB_NONE
               : id;
}

bool tern_vocab_index(struct tern_vocab *v, uint32_t *slots)
{
    memset(slots, 0xff, v->n_slots * sizeof *slots);
    v->slots = slots;
    v->unique = true;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        const tern_text piece = tern_vocab_piece(v, id);
        if (piece.size == 0)
            continue;
        const uint64_t hash = hash_piece(piece);
        const uint32_t at = probe_piece(v, piece, hash);
        if (at == v->n_slots)
            return false;
        if (slots[at] == EMPTY_SLOT)
            slots[at] = tag_of(hash) << TERN_VOCAB_ID_BITS | id;
        else
            v->unique = false;
    }
    return true;
}

/* The slot where the pair is, or the empty one where it would be; n_pairs if it is too far. */
static uint32_t probe_pair(const struct tern_vocab *v, uint64_t pair)
{
    uint32_t at = slot_of(mix(pair), v->n_pairs);
    for (int i = 0; i < MAX_PROBES; i++) {
        if (v->pairs[at] == EMPTY_PAIR || v->pairs[at] >> TERN_VOCAB_RANK_BITS == pair)
            return at;
        at = at + 1 == v->n_pairs ? 0 : at + 1;
    }
    return v->n_pairs;
}

uint32_t tern_vocab_rank(const struct tern_vocab *v, uint32_t left, uint32_t right)
{
    const uint32_t at = probe_pair(v, (uint64_t)left << TERN_VOCAB_ID_BITS | right);
    if (at == v->n_pairs || v->pairs[at] == EMPTY_PAIR)
        return TERN_VOCAB_NONE;
    const uint32_t rank = (uint32_t)v->pairs[at] & TERN_VOCAB_MAX_MERGES;
    return rank < v->n_merges ? rank : TERN_VOCAB_NONE;
}

bool tern_vocab_add_pair(struct tern_vocab *v, uint64_t *pairs, uint32_t left, uint32_t right,
                         uint32_t rank)
{
    const uint64_t pair = (uint64_t)left << TERN_VOCAB_ID_BITS | right;
    const uint32_t at = probe_pair(v, pair);
    if (at == v->n_pairs)
        return false;
    if (pairs[at] == EMPTY_PAIR)
        pairs[at] = pair << TERN_VOCAB_RANK_BITS | rank;
    return true;
}

/* --- bytes --- */

/* Byte-level BPE spells a byte by a printable character: itself if it is one in Latin-1, and
 * otherwise, in ascending order, the characters from U+0100 on. */
uint32_t tern_vocab_cp_of_byte(unsigned char byte)
{
    if (byte <= 32)
        return 256u + byte;
    if (byte >= 127 && byte <= 160)
        return 256u + 33 + byte - 127;
    return byte == 173 ? 256 + 67 : byte;
}

int tern_vocab_byte_of_cp(uint32_t cp)
{
    if (cp < 256)
        return tern_vocab_cp_of_byte((unsigned char)cp) == cp ? (int)cp : -1;
    const uint32_t k = cp - 256;
    return k <= 32 ? (int)k : k < 67 ? (int)(k - 33 + 127) : k == 67 ? 173 : -1;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int tern_vocab_byte_of_piece(tern_text piece)
{
    if (piece.size != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>')
        return -1;
    const int high = digit_of(piece.data[3]), low = digit_of(piece.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* --- special pieces --- */

static bool is_special(const struct tern_vocab *v, uint32_t id)
{
    const tern_token_kind kind = tern_vocab_piece_kind(v, id);
    return tern_vocab_piece(v, id).size > 0 &&
           (kind == TERN_TOKEN_CONTROL || kind == TERN_TOKEN_UNKNOWN || kind == TERN_TOKEN_USER);
}

/* Where in [low, high) of the sorted list the byte at this depth reaches c; all are longer. */
static uint32_t lower_bound(const struct tern_vocab *v, uint32_t low, uint32_t high, size_t depth,
                            unsigned c)
{
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const tern_text piece = tern_vocab_piece(v, v->specials[mid]);
        if (depth >= piece.size || (unsigned char)piece.data[depth] < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool tern_vocab_special(const struct tern_vocab *v, tern_text text, size_t at, size_t limit,
                        bool control, struct tern_special *out)
{
    const unsigned char *t = (const unsigned char *)text.data;
    uint32_t low = v->special_first[t[at]], high = v->special_first[t[at] + 1];
    out->at = at;
    out->size = 0;
    for (size_t depth = 1; low < high; depth++) {
        /* Those that end here come first; of equal ones the lowest id. */
        for (; low < high && tern_vocab_piece(v, v->specials[low]).size == depth; low++) {
            const uint32_t id = v->specials[low];
            if (out->size != depth &&
                (control || tern_vocab_piece_kind(v, id) == TERN_TOKEN_USER)) {
                out->size = depth;
                out->id = (tern_token)id;
            }
        }
        if (at + depth == limit)
            break;
        low = lower_bound(v, low, high, depth, t[at + depth]);
        high = lower_bound(v, low, high, depth, t[at + depth] + 1u);
    }
    return out->size > 0;
}

static int compare_pieces(const struct tern_vocab *v, uint32_t a, uint32_t b)
{
    const tern_text s = tern_vocab_piece(v, a), t = tern_vocab_piece(v, b);
    const int order = memcmp(s.data, t.data, s.size < t.size ? s.size : t.size);
    if (order)
        return order;
    return s.size != t.size ? (s.size < t.size ? -1 : 1) : a < b ? -1 : 1;
}

static void sift(const struct tern_vocab *v, uint32_t *ids, uint32_t at, uint32_t n)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            return;
        if (child + 1 < n && compare_pieces(v, ids[child], ids[child + 1]) < 0)
            child++;
        if (compare_pieces(v, ids[at], ids[child]) >= 0)
            return;
        const uint32_t id = ids[at];
        ids[at] = ids[child];
        ids[child] = id;
        at = child;
    }
}

/* Heap sort: in place, and n log n whatever the file says. */
static void sort_pieces(const struct tern_vocab *v, uint32_t *ids, uint32_t n)
{
    for (uint32_t i = n / 2; i > 0; i--)
        sift(v, ids, i - 1, n);
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t id = ids[0];
        ids[0] = ids[i - 1];
        ids[i - 1] = id;
        sift(v, ids, 0, i - 1);
    }
}

void tern_vocab_sort_specials(struct tern_vocab *v, uint32_t *ids, uint32_t *first,
                              uint16_t *reach)
{
    v->n_specials = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++)
        if (is_special(v, id))
            ids[v->n_specials++] = id;
    sort_pieces(v, ids, v->n_specials);
    for (uint32_t i = 0; i < v->n_specials; i++) {
        const tern_text piece = tern_vocab_piece(v, ids[i]);
        const unsigned char c = (unsigned char)piece.data[0];
        first[c + 1] = i + 1;
        if (piece.size > reach[c])
            reach[c] = (uint16_t)piece.size;
        if (piece.size > v->longest_special)
            v->longest_special = (uint32_t)piece.size;
    }
    for (int c = 0; c < 256; c++)
        if (first[c + 1] < first[c])
            first[c + 1] = first[c];
}
