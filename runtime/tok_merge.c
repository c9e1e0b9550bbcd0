/* Joining of neighbours, as byte-pair encoding and SentencePiece define it: again and again the
 * pair with the best key, the leftmost of equals.
 *
 * Words are short, so mostly a scan for the least key is best. A long list (a run of one
 * letter, base64, a text without spaces) would make that quadratic. There a priority queue of
 * pairs works, but jumps about in memory. Keys repeat much more than they differ, so the queue
 * is one of keys: a bucket for each key that occurs, a heap over the buckets, and in each
 * bucket the chain of its pairs from left to right. Joining "aaaa..." then walks the list from
 * left to right in memory.
 *
 * Chains are put in order when their bucket first comes to the top of the heap. From then on
 * pairs enter it only by joins of better keys near its first pair, to the left of all others;
 * so they are put in place from the front. A pair is in one chain at most: it leaves it when
 * one of its symbols changes, and no entry is ever stale.
 */
#include "runtime/tok_merge.h"

#include "runtime/arena.h"

#include <stdbool.h>
#include <string.h>

enum { SHORT = 40 };
#define NONE UINT32_MAX

void tern_merge_lay_out(struct tern_arena *a, struct tern_merge *m, size_t cap, size_t n_keys)
{
    /* Each join can bring two new keys. */
    const bool many = cap > SIZE_MAX / 4 || 3 * cap > n_keys;
    const size_t most = cap <= SHORT ? 0 : many ? n_keys : 3 * cap;
    m->n_slots = (uint32_t)(most + most / 2 + 1);
    m->values = tern_carve_raw(a, cap + 1, sizeof *m->values, 4);
    m->keys = tern_carve_raw(a, SHORT, sizeof *m->keys, 4);
    m->symbols = tern_carve_raw(a, cap <= SHORT ? 0 : cap + 1, sizeof *m->symbols, 8);
    m->buckets = tern_carve_raw(a, most, sizeof *m->buckets, 4);
    m->heap = tern_carve_raw(a, most, sizeof *m->heap, 4);
    m->slots = tern_carve_raw(a, m->n_slots, sizeof *m->slots, 4);
}

static uint32_t run_short(struct tern_merge *m, uint32_t n, const struct tern_merge_rule *rule)
{
    uint32_t *values = m->values, *keys = m->keys;
    for (uint32_t i = 0; i + 1 < n; i++)
        keys[i] = rule->key(rule->self, values[i], values[i + 1], values[i + 2]);
    while (n > 1) {
        uint32_t at = 0;
        for (uint32_t i = 1; i + 1 < n; i++)
            at = keys[i] < keys[at] ? i : at;
        if (keys[at] == NONE)
            break;
        if (rule->joined)
            values[at] = rule->joined[keys[at]];
        memmove(values + at + 1, values + at + 2, (n - at - 1) * sizeof *values);
        memmove(keys + at, keys + at + 1, (n - at - 2) * sizeof *keys);
        n--;
        if (at + 1 < n)
            keys[at] = rule->key(rule->self, values[at], values[at + 1], values[at + 2]);
        if (at > 0)
            keys[at - 1] = rule->key(rule->self, values[at - 1], values[at], values[at + 1]);
    }
    return n;
}

/* --- the heap of buckets --- */

static bool heap_less(const struct tern_merge *m, uint32_t i, uint32_t j)
{
    return m->buckets[m->heap[i]].key < m->buckets[m->heap[j]].key;
}

static void heap_swap(struct tern_merge *m, uint32_t i, uint32_t j)
{
    const uint32_t b = m->heap[i];
    m->heap[i] = m->heap[j];
    m->heap[j] = b;
}

static void heap_push(struct tern_merge *m, uint32_t bucket)
{
    uint32_t i = m->n_heap++;
    m->heap[i] = bucket;
    for (; i > 0 && heap_less(m, i, (i - 1) / 2); i = (i - 1) / 2)
        heap_swap(m, i, (i - 1) / 2);
}

static void heap_pop(struct tern_merge *m)
{
    m->heap[0] = m->heap[--m->n_heap];
    for (uint32_t i = 0;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m->n_heap)
            return;
        if (child + 1 < m->n_heap && heap_less(m, child + 1, child))
            child++;
        if (!heap_less(m, child, i))
            return;
        heap_swap(m, i, child);
        i = child;
    }
}

/* --- buckets and their chains --- */

static uint32_t bucket_of(struct tern_merge *m, uint32_t key)
{
    uint32_t at = (uint32_t)((uint64_t)(key * 0x9e3779b1u) * m->n_slots >> 32);
    while (m->slots[at] != NONE) {
        if (m->buckets[m->slots[at]].key == key)
            return m->slots[at];
        at = at + 1 == m->n_slots ? 0 : at + 1;
    }
    m->slots[at] = m->n_buckets;
    m->buckets[m->n_buckets] = (struct tern_merge_bucket){key, NONE, NONE, 0, 0};
    return m->n_buckets++;
}

/* Links `at` behind `left`, or to the front if that is NONE. */
static void chain(struct tern_merge *m, struct tern_merge_bucket *b, uint32_t left, uint32_t at)
{
    const uint32_t right = left == NONE ? b->head : m->symbols[left].after;
    m->symbols[at].before = left;
    m->symbols[at].after = right;
    if (left == NONE)
        b->head = at;
    else
        m->symbols[left].after = at;
    if (right == NONE)
        b->tail = at;
    else
        m->symbols[right].before = at;
}

/* Puts the pair that begins at `at` into the bucket of its key, if it has one. */
static void add(struct tern_merge *m, uint32_t at, const struct tern_merge_rule *rule)
{
    struct tern_merge_symbol *a = &m->symbols[at];
    const struct tern_merge_symbol *b = &m->symbols[a->next];
    a->bucket = NONE;
    if (a->next == m->end)
        return;
    const uint32_t key = rule->key(rule->self, a->value, b->value, m->symbols[b->next].value);
    if (key == NONE)
        return;
    a->bucket = bucket_of(m, key);
    struct tern_merge_bucket *bucket = &m->buckets[a->bucket];
    if (!bucket->in_heap) {
        bucket->in_heap = 1;
        bucket->in_order = 0;
        heap_push(m, a->bucket);
    }
    uint32_t left = bucket->tail;
    if (bucket->in_order) {
        left = NONE;
        for (uint32_t p = bucket->head; p != NONE && p < at; p = m->symbols[p].after)
            left = p;
    }
    chain(m, bucket, left, at);
}

static void drop(struct tern_merge *m, uint32_t at)
{
    struct tern_merge_symbol *s = &m->symbols[at];
    if (s->bucket == NONE)
        return;
    struct tern_merge_bucket *b = &m->buckets[s->bucket];
    if (s->before == NONE)
        b->head = s->after;
    else
        m->symbols[s->before].after = s->after;
    if (s->after == NONE)
        b->tail = s->before;
    else
        m->symbols[s->after].before = s->before;
    s->bucket = NONE;
}

/* Two ascending chains, linked by `after` alone, into one. */
static uint32_t merge_chains(struct tern_merge *m, uint32_t a, uint32_t b)
{
    uint32_t head = NONE, tail = NONE;
    while (a != NONE || b != NONE) {
        const bool first = b == NONE || (a != NONE && a < b);
        const uint32_t at = first ? a : b;
        if (first)
            a = m->symbols[a].after;
        else
            b = m->symbols[b].after;
        if (tail == NONE)
            head = at;
        else
            m->symbols[tail].after = at;
        tail = at;
    }
    return head;
}

/* Cuts the chain into ascending runs and merges them like a binary counter: few runs cost
 * little, and any number of them n log n. */
static void put_in_order(struct tern_merge *m, struct tern_merge_bucket *b)
{
    uint32_t parts[32], n_parts = 0;
    for (int i = 0; i < 32; i++)
        parts[i] = NONE;
    for (uint32_t at = b->head; at != NONE;) {
        uint32_t run = at, last = at;
        for (at = m->symbols[at].after; at != NONE && at > last; at = m->symbols[at].after)
            last = at;
        m->symbols[last].after = NONE;
        uint32_t i = 0;
        for (; i < 31 && parts[i] != NONE; i++) {
            run = merge_chains(m, parts[i], run);
            parts[i] = NONE;
        }
        parts[i] = i == 31 && parts[i] != NONE ? merge_chains(m, parts[i], run) : run;
        n_parts = i + 1 > n_parts ? i + 1 : n_parts;
    }
    uint32_t head = NONE;
    for (uint32_t i = 0; i < n_parts; i++)
        head = merge_chains(m, parts[i], head);
    b->head = head;
    b->tail = NONE;
    for (uint32_t at = head; at != NONE; at = m->symbols[at].after) {
        m->symbols[at].before = b->tail;
        b->tail = at;
    }
    b->in_order = 1;
}

static void join(struct tern_merge *m, uint32_t at, const struct tern_merge_rule *rule)
{
    struct tern_merge_symbol *s = &m->symbols[at];
    const uint32_t left = s->prev, right = s->next, key = m->buckets[s->bucket].key;
    drop(m, at);
    drop(m, right);
    if (left != NONE)
        drop(m, left);
    if (rule->joined)
        s->value = rule->joined[key];
    s->next = m->symbols[right].next;
    m->symbols[s->next].prev = at;
    add(m, at, rule);
    if (left != NONE)
        add(m, left, rule);
}

static void run_long(struct tern_merge *m, uint32_t n, const struct tern_merge_rule *rule)
{
    m->end = n;
    m->n_buckets = m->n_heap = 0;
    memset(m->slots, 0xff, m->n_slots * sizeof *m->slots);
    for (uint32_t i = 0; i <= n; i++)
        m->symbols[i] = (struct tern_merge_symbol){m->values[i], i < n ? i + 1 : n, i - 1, NONE,
                                                   NONE, NONE};
    for (uint32_t i = 0; i < n; i++) /* NONE is what is left of the first */
        add(m, i, rule);
    while (m->n_heap) {
        struct tern_merge_bucket *b = &m->buckets[m->heap[0]];
        if (b->head == NONE) {
            b->in_heap = 0;
            heap_pop(m);
        } else {
            if (!b->in_order)
                put_in_order(m, b);
            join(m, b->head, rule);
        }
    }
}

uint32_t tern_merge_run(struct tern_merge *m, uint32_t n, const struct tern_merge_rule *rule)
{
    if (n <= SHORT)
        return run_short(m, n, rule);
    const uint32_t n_slots = m->n_slots;
    if (n_slots / 5 > n) /* clear no more of the table than this list can fill */
        m->n_slots = 5 * n;
    run_long(m, n, rule);
    m->n_slots = n_slots;
    uint32_t left = 0;
    for (uint32_t i = 0; i != n; i = m->symbols[i].next)
        m->values[left++] = m->symbols[i].value;
    m->values[left] = m->values[n];
    return left;
}
