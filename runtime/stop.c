/* stop.c: the automaton of Aho and Corasick ("Efficient string matching", 1975). See stop.h.
 *
 * The strings are a tree of bytes. Each node is a prefix of some of them; its fallback is the
 * longest proper suffix of it that is a prefix too. The current node is the longest suffix of
 * the text that may still become a stop string, so its bytes, and no others, are held back.
 *
 * The first string to be complete stops; of those complete at the same byte, the longest, as
 * it began first. So a string that contains another one is never seen: the inner one ends first,
 * unless it is the other's suffix.
 */
#include "runtime/stop.h"

#include "runtime/arena.h"
#include "runtime/error.h"

#include <string.h>

/* Links are indices; 0, the root, means none for child and sibling. */
struct tern_stop_node {
    uint32_t child, sibling, fallback;
    uint32_t depth;
    uint32_t match; /* bytes of the longest stop string that ends here; 0: none does */
    uint32_t queue; /* the next one in order of depth, while fallbacks are found */
    uint8_t byte;
};

static void reset(struct tern_stops *s)
{
    s->at = 0;
    s->n_held = 0;
}

void tern_stops_lay_out(struct tern_arena *a, struct tern_stops *s, uint32_t cap_bytes)
{
    s->cap_bytes = cap_bytes;
    s->n_nodes = 1;
    s->nodes = tern_carve(a, (size_t)cap_bytes + 1, sizeof *s->nodes, 64);
    s->held = tern_carve(a, cap_bytes, 1, 1);
    reset(s);
}

static uint32_t child_by(const struct tern_stop_node *nodes, uint32_t node, uint8_t byte)
{
    uint32_t child = nodes[node].child;
    while (child && nodes[child].byte != byte)
        child = nodes[child].sibling;
    return child;
}

/* The node of the longest suffix of (node's text, byte) that is in the tree. */
static uint32_t step(const struct tern_stop_node *nodes, uint32_t node, uint8_t byte)
{
    for (;;) {
        const uint32_t child = child_by(nodes, node, byte);
        if (child || !node)
            return child;
        node = nodes[node].fallback;
    }
}

static void insert(struct tern_stops *s, tern_text text)
{
    struct tern_stop_node *nodes = s->nodes;
    uint32_t at = 0;
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t byte = (uint8_t)text.data[i];
        uint32_t child = child_by(nodes, at, byte);
        if (!child) {
            child = s->n_nodes++;
            nodes[child] = (struct tern_stop_node){
                .sibling = nodes[at].child, .depth = nodes[at].depth + 1, .byte = byte,
            };
            nodes[at].child = child;
        }
        at = child;
    }
    nodes[at].match = nodes[at].depth;
}

/* Shorter prefixes first: a fallback is shorter, so it has its own by then. */
static void find_fallbacks(struct tern_stop_node *nodes)
{
    uint32_t last = 0;
    nodes[0].queue = 0;
    for (uint32_t node = 0;;) {
        for (uint32_t c = nodes[node].child; c; c = nodes[c].sibling) {
            nodes[c].fallback = node ? step(nodes, nodes[node].fallback, nodes[c].byte) : 0;
            if (!nodes[c].match)
                nodes[c].match = nodes[nodes[c].fallback].match;
            nodes[c].queue = 0;
            nodes[last].queue = c;
            last = c;
        }
        node = nodes[node].queue;
        if (!node)
            return;
    }
}

tern_status tern_stops_set(struct tern_stops *s, const tern_text *stops, uint32_t n_stops,
                           tern_error *err)
{
    size_t bytes = 0;
    s->n_nodes = 1;
    s->nodes[0] = (struct tern_stop_node){0};
    reset(s);
    if (n_stops > TERN_MAX_STOPS)
        return tern_fail(err, TERN_BAD_ARGUMENT, "stop strings: %u, at most %u",
                         (uint64_t)n_stops, (uint64_t)TERN_MAX_STOPS);
    for (uint32_t i = 0; i < n_stops; i++) {
        if (!stops[i].size)
            return tern_fail(err, TERN_BAD_ARGUMENT, "stop string %u: 0 bytes, at least 1",
                             (uint64_t)i);
        if (stops[i].size > s->cap_bytes - bytes)
            return tern_fail(err, TERN_BAD_ARGUMENT,
                             "stop string %u: %u bytes after %u of others, at most %u in all",
                             (uint64_t)i, (uint64_t)stops[i].size, (uint64_t)bytes,
                             (uint64_t)s->cap_bytes);
        bytes += stops[i].size;
    }
    for (uint32_t i = 0; i < n_stops; i++)
        insert(s, stops[i]);
    find_fallbacks(s->nodes);
    return TERN_OK;
}

void tern_stops_copy(struct tern_stops *to, const struct tern_stops *from)
{
    to->n_nodes = from->n_nodes;
    to->at = from->at;
    to->n_held = from->n_held;
    memcpy(to->nodes, from->nodes, from->n_nodes * sizeof *to->nodes);
    memcpy(to->held, from->held, from->n_held);
}

/* The first n bytes of what is held and then text. */
static size_t emit(const struct tern_stops *s, const char *text, size_t n, char *out)
{
    const size_t from_held = n < s->n_held ? n : s->n_held;
    if (from_held)
        memcpy(out, s->held, from_held);
    if (n > from_held)
        memcpy(out + from_held, text, n - from_held);
    return n;
}

/* Holds the last n_keep bytes of what was held and then text. */
static void hold(struct tern_stops *s, const char *text, size_t n, uint32_t n_keep)
{
    const size_t of_text = n_keep < n ? n_keep : n;
    const size_t of_held = n_keep - of_text;
    if (of_held)
        memmove(s->held, s->held + (s->n_held - of_held), of_held);
    if (of_text)
        memcpy(s->held + of_held, text + (n - of_text), of_text);
    s->n_held = n_keep;
}

size_t tern_stops_push(struct tern_stops *s, const char *text, size_t n, char *out, bool *stopped)
{
    *stopped = false;
    for (size_t i = 0; i < n; i++) {
        s->at = step(s->nodes, s->at, (uint8_t)text[i]);
        const uint32_t match = s->nodes[s->at].match;
        if (match) {
            const size_t n_out = emit(s, text, s->n_held + i + 1 - match, out);
            reset(s);
            *stopped = true;
            return n_out;
        }
    }
    const uint32_t depth = s->nodes[s->at].depth;
    const size_t n_out = emit(s, text, s->n_held + n - depth, out);
    hold(s, text, n, depth);
    return n_out;
}

size_t tern_stops_end(struct tern_stops *s, char *out)
{
    const size_t n = s->n_held;
    memcpy(out, s->held, n);
    reset(s);
    return n;
}
