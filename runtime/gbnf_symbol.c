/* gbnf_symbol.c: the parts that automata are made of: states, edges, characters, repetition.
 *
 * A range of code points becomes ranges of bytes: it is cut where UTF-8 changes its length, at the
 * surrogates, and then so that in each part every byte runs over a range of its own.
 *
 * What is repeated a few times is written out, so that it becomes part of its unit's automaton.
 * What is repeated often is a rule of its own, which is called and counted: so {0,100000} takes
 * no more states than {0,100}. What is repeated without end and calls rules is a rule too: where
 * one of these comes back to it, the whole loop is a unit, and not each of its rounds.
 */
#include "runtime/gbnf.h"

#include "runtime/error.h"
#include "runtime/hash.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

enum { MOST_RANGES = 256 };     /* of one class */
enum { MOST_WRITTEN_OUT = 16 }; /* states; calls: */
enum { MOST_CALLS_OUT = 4 };

/* --- states, rules, edges --- */

static bool too_many(struct tern_gbnf *b, const char *what, uint32_t most)
{
    struct tern_writer w = {(char[96]){0}, 96 - 1, 0};
    tern_write(&w, "more %s than the scratch memory holds (%u)", what, (uint64_t)most);
    return tern_gbnf_wrong(b, b->at, w.out);
}

uint32_t tern_gbnf_state(struct tern_gbnf *b)
{
    if (b->n_states == b->cap_states) {
        too_many(b, "states", b->cap_states);
        return TERN_GBNF_NONE;
    }
    b->states[b->n_states] = (struct tern_gbnf_state){TERN_GBNF_NONE, 0};
    return b->n_states++;
}

bool tern_gbnf_edge(struct tern_gbnf *b, uint32_t from, uint32_t to,
                    enum tern_gbnf_edge_kind kind, uint32_t arg)
{
    if (b->n_edges == b->cap_edges)
        return too_many(b, "edges", b->cap_edges);
    if (from == TERN_GBNF_NONE || to == TERN_GBNF_NONE)
        return false;
    b->edges[b->n_edges] = (struct tern_gbnf_edge){b->states[from].edges, to, arg, (uint8_t)kind,
                                                   0, 0};
    b->states[from].edges = b->n_edges++;
    return true;
}

bool tern_gbnf_call(struct tern_gbnf *b, uint32_t from, uint32_t to, struct tern_gbnf_call call)
{
    if (b->n_calls == b->cap_calls)
        return too_many(b, "references to rules", b->cap_calls);
    struct tern_gbnf_rule *rule = &b->rules[call.rule];
    call.from = from;
    call.to = to;
    call.next = rule->calls;
    rule->calls = b->n_calls;
    rule->n_calls++;
    b->calls[b->n_calls] = call;
    return tern_gbnf_edge(b, from, to, TERN_GBNF_CALL, b->n_calls++);
}

/* The rule of a name; an empty name makes one that no other has. */
uint32_t tern_gbnf_rule(struct tern_gbnf *b, tern_text name, size_t at)
{
    const uint32_t n_slots = 2 * b->cap_rules;
    uint32_t slot = (uint32_t)tern_hash_of(name.data, name.size) % n_slots;
    while (name.size && b->slots[slot]) {
        const uint32_t rule = b->slots[slot] - 1;
        if (tern_text_equal(b->rules[rule].name, name))
            return rule;
        slot = (slot + 1) % n_slots;
    }
    if (b->n_rules == b->cap_rules) {
        too_many(b, "rules", b->cap_rules);
        return TERN_GBNF_NONE;
    }
    if (name.size)
        b->slots[slot] = b->n_rules + 1;
    b->rules[b->n_rules] = (struct tern_gbnf_rule){.name = name, .at = at,
                                                   .calls = TERN_GBNF_NONE};
    return b->n_rules++;
}

/* --- characters --- */

static bool take_hex(struct tern_gbnf *b, size_t digits, uint32_t *cp)
{
    const size_t at = b->at;
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++, b->at++) {
        const int c = b->at < b->text.size ? (unsigned char)b->text.data[b->at] : -1;
        const int low = c | 0x20;
        if (c >= '0' && c <= '9')
            value = 16 * value + (uint64_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            value = 16 * value + (uint64_t)(low - 'a' + 10);
        else
            return tern_gbnf_wrong(b, at, "an escape with too few hexadecimal digits");
    }
    *cp = (uint32_t)value;
    return value <= 0x10FFFF || tern_gbnf_wrong(b, at, "a code point above 10FFFF");
}

static bool take_escape(struct tern_gbnf *b, uint32_t *cp)
{
    const int c = b->at + 1 < b->text.size ? (unsigned char)b->text.data[b->at + 1] : -1;
    const size_t at = b->at;
    b->at += 2;
    switch (c) {
    case 'x': return take_hex(b, 2, cp);
    case 'u': return take_hex(b, 4, cp);
    case 'U': return take_hex(b, 8, cp);
    case 't': *cp = '\t'; return true;
    case 'r': *cp = '\r'; return true;
    case 'n': *cp = '\n'; return true;
    case '\\': case '"': case '[': case ']': case '-': *cp = (uint32_t)c; return true;
    default: return tern_gbnf_wrong(b, at, "an escape that is not known");
    }
}

bool tern_gbnf_char(struct tern_gbnf *b, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)b->text.data + b->at;
    if (*s == '\\')
        return take_escape(b, cp);
    const size_t n = tern_unicode_decode(s, b->text.size - b->at, cp);
    if (*cp == TERN_CP_INVALID)
        return tern_gbnf_wrong(b, b->at, "a byte that is not UTF-8");
    b->at += n;
    return true;
}

static bool byte_edge(struct tern_gbnf *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi)
{
    if (!tern_gbnf_edge(b, from, to, TERN_GBNF_BYTE, 0))
        return false;
    b->edges[b->n_edges - 1].lo = (uint8_t)lo;
    b->edges[b->n_edges - 1].hi = (uint8_t)hi;
    return true;
}

/* Code points of equal length whose bytes run over ranges that do not depend on one another. */
static bool straight(struct tern_gbnf *b, uint32_t from, uint32_t to, uint32_t first,
                     uint32_t last)
{
    char lo[4], hi[4];
    const size_t n = tern_unicode_encode(first, lo);
    tern_unicode_encode(last, hi);
    for (size_t i = 0; i < n; i++) {
        const uint32_t next = i + 1 < n ? tern_gbnf_state(b) : to;
        if (next == TERN_GBNF_NONE ||
            !byte_edge(b, from, next, (unsigned char)lo[i], (unsigned char)hi[i]))
            return false;
        from = next;
    }
    return true;
}

/* Cut into parts, from the first on: each goes as far as its bytes stay independent, which they do
 * where what varies above a group of six bits runs over all values of that group. */
static bool same_length(struct tern_gbnf *b, uint32_t from, uint32_t to, uint32_t first,
                        uint32_t last)
{
    while (first <= last) {
        uint32_t end = last;
        for (uint32_t low = 63; first > 0x7F && low <= 0x3FFFF; low = low << 6 | 63) {
            if ((first & ~low) == (end & ~low))
                break;
            if (first & low)
                end = first | low;
            else if ((end & low) != low)
                end = (end & ~low) - 1;
        }
        if (!straight(b, from, to, first, end))
            return false;
        first = end + 1;
    }
    return true;
}

bool tern_gbnf_range(struct tern_gbnf *b, uint32_t from, uint32_t to, uint32_t first,
                     uint32_t last)
{
    static const struct { uint32_t first, last; } parts[] = {
        {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const uint32_t lo = first > parts[i].first ? first : parts[i].first;
        const uint32_t hi = last < parts[i].last ? last : parts[i].last;
        if (lo <= hi && !same_length(b, from, to, lo, hi))
            return false;
    }
    return true;
}

/* --- classes --- */

struct span { uint32_t first, last; };

/* In order, and none overlaps another. */
static uint32_t add_span(struct span *list, uint32_t n, struct span s)
{
    uint32_t at = 0;
    while (at < n && list[at].last < s.first)
        at++;
    uint32_t end = at;
    for (; end < n && list[end].first <= s.last; end++) {
        s.first = list[end].first < s.first ? list[end].first : s.first;
        s.last = list[end].last > s.last ? list[end].last : s.last;
    }
    if (end == at)
        for (uint32_t i = n; i > at; i--)
            list[i] = list[i - 1];
    else
        for (uint32_t i = end; i < n; i++)
            list[at + 1 + i - end] = list[i];
    list[at] = s;
    return n + 1 - (end - at);
}

static bool take_span(struct tern_gbnf *b, struct span *s)
{
    const size_t at = b->at;
    if (!tern_gbnf_char(b, &s->first))
        return false;
    s->last = s->first;
    if (b->at + 1 < b->text.size && b->text.data[b->at] == '-' && b->text.data[b->at + 1] != ']') {
        b->at++;
        if (!tern_gbnf_char(b, &s->last))
            return false;
    }
    return s->first <= s->last ||
           tern_gbnf_wrong(b, at, "a range whose first character is above its last");
}

bool tern_gbnf_class(struct tern_gbnf *b, uint32_t from, uint32_t to)
{
    const size_t open = b->at - 1;
    struct span *list = (struct span *)(void *)b->order; /* a list that is not in use yet */
    uint32_t n = 0;
    const bool not = b->at < b->text.size && b->text.data[b->at] == '^';
    b->at += not;
    for (;;) {
        struct span s;
        if (b->at >= b->text.size)
            return tern_gbnf_wrong(b, open, "a class without its closing bracket");
        if (b->text.data[b->at] == ']')
            break;
        if (n == MOST_RANGES)
            return tern_gbnf_wrong(b, open, "a class of more than 256 ranges");
        if (!take_span(b, &s))
            return false;
        n = add_span(list, n, s);
    }
    b->at++;
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!not && !tern_gbnf_range(b, from, to, list[i].first, list[i].last))
            return false;
        if (not && next < list[i].first &&
            !tern_gbnf_range(b, from, to, next, list[i].first - 1))
            return false;
        next = list[i].last + 1;
    }
    return !not || next > 0x10FFFF || tern_gbnf_range(b, from, to, next, 0x10FFFF);
}

/* --- repetition --- */

/* Another piece like it. Edges that leave the piece are not part of it. */
static bool copy_piece(struct tern_gbnf *b, struct tern_gbnf_piece piece, uint32_t n,
                       struct tern_gbnf_piece *out)
{
    const uint32_t first = piece.first_state, base = b->n_states;
    for (uint32_t i = 0; i < n; i++)
        if (tern_gbnf_state(b) == TERN_GBNF_NONE)
            return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = b->states[first + i].edges; e != TERN_GBNF_NONE; e = b->edges[e].next) {
            const struct tern_gbnf_edge edge = b->edges[e];
            if (edge.to < first || edge.to >= first + n)
                continue;
            const uint32_t to = base + (edge.to - first);
            const bool ok = edge.kind == TERN_GBNF_CALL
                                ? tern_gbnf_call(b, base + i, to, b->calls[edge.arg])
                                : tern_gbnf_edge(b, base + i, to, edge.kind, edge.arg);
            if (!ok)
                return false;
            b->edges[b->n_edges - 1].lo = edge.lo;
            b->edges[b->n_edges - 1].hi = edge.hi;
        }
    *out = (struct tern_gbnf_piece){base + (piece.from - first), base + (piece.to - first), base,
                                    piece.first_call};
    return true;
}

/* n: the piece's states. */
static bool write_out(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t n,
                      uint32_t least, uint32_t most)
{
    const struct tern_gbnf_piece whole = *piece;
    const uint32_t copies = most == TERN_GBNF_NONE ? least : most;
    const uint32_t end = tern_gbnf_state(b);
    struct tern_gbnf_piece now = whole;
    for (uint32_t i = 1; i <= copies; i++) {
        struct tern_gbnf_piece next = now;
        if (i > least && !tern_gbnf_edge(b, now.from, end, TERN_GBNF_EMPTY, 0))
            return false;
        if (i < copies && (!copy_piece(b, whole, n, &next) ||
                           !tern_gbnf_edge(b, now.to, next.from, TERN_GBNF_EMPTY, 0)))
            return false;
        if (i == copies && most == TERN_GBNF_NONE &&
            !tern_gbnf_edge(b, now.to, now.from, TERN_GBNF_EMPTY, 0))
            return false;
        if (i == copies && !tern_gbnf_edge(b, now.to, end, TERN_GBNF_EMPTY, 0))
            return false;
        now = next;
    }
    piece->to = end;
    return end != TERN_GBNF_NONE;
}

/* The call that is all of a piece, or NONE. */
static uint32_t only_call(const struct tern_gbnf *b, const struct tern_gbnf_piece *piece)
{
    const uint32_t e = b->states[piece->from].edges;
    if (e == TERN_GBNF_NONE || b->edges[e].next != TERN_GBNF_NONE ||
        b->edges[e].kind != TERN_GBNF_CALL || b->edges[e].to != piece->to)
        return TERN_GBNF_NONE;
    const struct tern_gbnf_call *c = &b->calls[b->edges[e].arg];
    return c->least == 1 && c->most == 1 ? b->edges[e].arg : TERN_GBNF_NONE;
}

/* A rule of a piece, and a call of it in its place. */
static bool make_rule(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t least,
                      uint32_t most, bool loop)
{
    const uint32_t rule = tern_gbnf_rule(b, (tern_text){b->text.data, 0}, b->at);
    if (rule == TERN_GBNF_NONE)
        return false;
    b->rules[rule].defined = true;
    b->rules[rule].loop = loop;
    b->rules[rule].start = piece->from;
    b->rules[rule].end = piece->to;
    piece->from = tern_gbnf_state(b);
    piece->to = tern_gbnf_state(b);
    return piece->to != TERN_GBNF_NONE &&
           tern_gbnf_call(b, piece->from, piece->to,
                          (struct tern_gbnf_call){.rule = rule, .least = least, .most = most});
}

static bool count(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t least,
                  uint32_t most)
{
    const uint32_t call = only_call(b, piece);
    if (call == TERN_GBNF_NONE)
        return make_rule(b, piece, least, most, false);
    b->calls[call].least = least;
    b->calls[call].most = most;
    return true;
}

/* Nothing leads on from a rule's end: so the loop has one of its own. */
static bool loop(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t least)
{
    const uint32_t end = tern_gbnf_state(b), last = piece->to;
    if (!tern_gbnf_edge(b, last, end, TERN_GBNF_EMPTY, 0) ||
        !tern_gbnf_edge(b, last, piece->from, TERN_GBNF_EMPTY, 0) ||
        (!least && !tern_gbnf_edge(b, piece->from, end, TERN_GBNF_EMPTY, 0)))
        return false;
    piece->to = end;
    return make_rule(b, piece, 1, 1, true);
}

static bool repeat(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t n, uint32_t least,
                   uint32_t most)
{
    const uint32_t copies = most == TERN_GBNF_NONE ? least : most;
    if (only_call(b, piece) != TERN_GBNF_NONE ? copies <= MOST_CALLS_OUT
                                              : (uint64_t)copies * n <= MOST_WRITTEN_OUT)
        return write_out(b, piece, n, least, most);
    return count(b, piece, least, most);
}

bool tern_gbnf_repeat(struct tern_gbnf *b, struct tern_gbnf_piece *piece, uint32_t least,
                      uint32_t most)
{
    const uint32_t n = b->n_states - piece->first_state;
    const bool loops = most == TERN_GBNF_NONE && b->n_calls > piece->first_call;
    struct tern_gbnf_piece rest;
    if (most == 0) { /* what stood there is reached no more */
        piece->from = tern_gbnf_state(b);
        piece->to = tern_gbnf_state(b);
        return tern_gbnf_edge(b, piece->from, piece->to, TERN_GBNF_EMPTY, 0);
    }
    if (loops && least <= 1)
        return loop(b, piece, least);
    if (least <= 1 && (most == 1 || most == TERN_GBNF_NONE))
        return (least || tern_gbnf_edge(b, piece->from, piece->to, TERN_GBNF_EMPTY, 0)) &&
               (most == 1 || tern_gbnf_edge(b, piece->to, piece->from, TERN_GBNF_EMPTY, 0));
    if (!loops)
        return repeat(b, piece, n, least, most);
    /* So many, and then a loop. */
    if (!copy_piece(b, *piece, n, &rest) || !loop(b, &rest, 0) ||
        !repeat(b, piece, n, least, least) ||
        !tern_gbnf_edge(b, piece->to, rest.from, TERN_GBNF_EMPTY, 0))
        return false;
    piece->to = rest.to;
    return true;
}
