#include "tools/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { LAST = 0x10FFFF, SURROGATE = 0xD800, BEHIND_SURROGATES = 0xE000 };

uint32_t tern_pattern_state(struct tern_pattern *p, bool accepts)
{
    if (p->n == p->cap) {
        uint32_t cap = p->cap ? 2 * p->cap : 16;
        struct tern_pattern_state *more = realloc(p->states, cap * sizeof *more);
        if (!more)
            return 0;
        p->states = more;
        p->cap = cap;
    }
    p->states[p->n] = (struct tern_pattern_state){.accepts = accepts};
    return p->n++;
}

/* Edges come in order; one that goes on where the last ended is joined to it. */
void tern_pattern_edge(struct tern_pattern *p, uint32_t from, uint32_t first, uint32_t last,
                       uint32_t to)
{
    struct tern_pattern_state *s = &p->states[from];
    if (s->n && s->edges[s->n - 1].to == to && s->edges[s->n - 1].last + 1 == first) {
        s->edges[s->n - 1].last = last;
        return;
    }
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? 2 * s->cap : 4;
        struct tern_pattern_edge *more = realloc(s->edges, cap * sizeof *more);
        if (!more)
            return;
        s->edges = more;
        s->cap = cap;
    }
    s->edges[s->n++] = (struct tern_pattern_edge){first, last, to};
}

static void add_any(struct tern_pattern *p, uint32_t from, uint32_t to)
{
    tern_pattern_edge(p, from, 0, SURROGATE - 1, to);
    tern_pattern_edge(p, from, BEHIND_SURROGATES, LAST, to);
}

void tern_pattern_free(struct tern_pattern *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        free(p->states[i].edges);
    free(p->states);
    memset(p, 0, sizeof *p);
}

static uint32_t next_of(const struct tern_pattern *p, uint32_t state, uint32_t cp)
{
    const struct tern_pattern_state *s = &p->states[state];
    for (uint32_t i = 0; i < s->n; i++)
        if (s->edges[i].first <= cp && cp <= s->edges[i].last)
            return s->edges[i].to;
    return UINT32_MAX;
}

static size_t decode(tern_text t, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)t.data;
    size_t n = tern_utf8_length(t);
    if (n < 2) {
        *cp = *s;
        return 1;
    }
    *cp = *s & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        *cp = *cp << 6 | (s[i] & 0x3F);
    return n;
}

/* The last edge of a state is the only one that a text can have in common with those before it. */
static void add_text(struct tern_pattern *p, tern_text text)
{
    uint32_t at = 0, cp;
    for (size_t i = 0; i < text.size && p->n < TERN_PATTERN_MOST;) {
        i += decode((tern_text){text.data + i, text.size - i}, &cp);
        const struct tern_pattern_state *s = &p->states[at];
        if (s->n && s->edges[s->n - 1].first == cp) {
            at = s->edges[s->n - 1].to;
            continue;
        }
        const uint32_t to = tern_pattern_state(p, false);
        tern_pattern_edge(p, at, cp, cp, to);
        at = to;
    }
    p->states[at].accepts = true;
}

bool tern_pattern_texts(struct tern_pattern *p, const tern_text *texts, size_t n)
{
    memset(p, 0, sizeof *p);
    tern_pattern_state(p, false);
    for (size_t i = 0; i < n && p->n < TERN_PATTERN_MOST; i++)
        add_text(p, texts[i]);
    return p->n < TERN_PATTERN_MOST;
}

bool tern_pattern_text(struct tern_pattern *p, tern_text text)
{
    return tern_pattern_texts(p, &text, 1);
}

bool tern_pattern_length(struct tern_pattern *p, int64_t least, int64_t most)
{
    memset(p, 0, sizeof *p);
    int64_t n = most < 0 ? least : most;
    if (n >= TERN_PATTERN_MOST)
        return false;
    for (int64_t i = 0; i <= n; i++)
        tern_pattern_state(p, i >= least);
    for (int64_t i = 0; i < n; i++)
        add_any(p, (uint32_t)i, (uint32_t)i + 1);
    if (most < 0)
        add_any(p, (uint32_t)n, (uint32_t)n);
    return true;
}

bool tern_pattern_has(const struct tern_pattern *p, tern_text text)
{
    uint32_t at = 0;
    for (size_t i = 0; i < text.size && at != UINT32_MAX;) {
        uint32_t cp;
        i += decode((tern_text){text.data + i, text.size - i}, &cp);
        at = next_of(p, at, cp);
    }
    return at != UINT32_MAX && p->states[at].accepts;
}

/* Every state is reached from the first. */
bool tern_pattern_is_empty(const struct tern_pattern *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->states[i].accepts)
            return false;
    return true;
}

/* Edges to states from which nothing is accepted are dropped. Later states come first, as most
 * edges lead to such. Where there are too many steps nothing is dropped. */
void tern_pattern_trim(struct tern_pattern *p, struct tern_effort *work)
{
    uint64_t n_edges = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        p->states[i].alive = p->states[i].accepts;
        n_edges += p->states[i].n;
    }
    for (bool changed = true; changed;) {
        if (!tern_effort_on(work, p->n + n_edges))
            return;
        changed = false;
        for (uint32_t i = p->n; i-- > 0;)
            for (uint32_t k = 0; !p->states[i].alive && k < p->states[i].n; k++)
                if (p->states[p->states[i].edges[k].to].alive)
                    p->states[i].alive = changed = true;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        struct tern_pattern_state *s = &p->states[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < s->n; k++)
            if (p->states[s->edges[k].to].alive)
                s->edges[n++] = s->edges[k];
        s->n = n;
    }
}

/* --- what two have in common --- */

/* Pairs of states; the second may be gone (NONE). */
struct product {
    struct tern_pattern *out;
    const struct tern_pattern *a, *b;
    uint32_t *pairs, *slots; /* [MOST][2], [2 * MOST] */
    bool in_b;
    struct tern_effort *work;
};
enum { SLOTS = 2 * TERN_PATTERN_MOST };

static bool accepts_pair(const struct product *x, uint32_t a, uint32_t b)
{
    bool other = b != UINT32_MAX && x->b->states[b].accepts;
    return x->a->states[a].accepts && other == x->in_b;
}

static uint32_t pair_state(struct product *x, uint32_t a, uint32_t b)
{
    uint32_t slot = (a * 2654435761u ^ b * 40503u) % SLOTS;
    for (; x->slots[slot]; slot = (slot + 1) % SLOTS) {
        uint32_t i = x->slots[slot] - 1;
        if (x->pairs[2 * i] == a && x->pairs[2 * i + 1] == b)
            return i;
    }
    if (x->out->n == TERN_PATTERN_MOST)
        return UINT32_MAX;
    uint32_t i = tern_pattern_state(x->out, accepts_pair(x, a, b));
    x->pairs[2 * i] = a;
    x->pairs[2 * i + 1] = b;
    x->slots[slot] = i + 1;
    return i;
}

/* One edge of a, cut where b's edges begin and end. */
static bool cut_edge(struct product *x, uint32_t state, const struct tern_pattern_edge *e,
                     uint32_t b)
{
    uint32_t at = e->first;
    const struct tern_pattern_state *s = b == UINT32_MAX ? NULL : &x->b->states[b];
    if (!tern_effort_on(x->work, 8 + (s ? s->n : 0)))
        return false;
    for (uint32_t i = 0; at <= e->last; i++) {
        uint32_t end = e->last, to_b = UINT32_MAX, next = e->last + 1;
        while (s && i < s->n && s->edges[i].last < at)
            i++;
        if (s && i < s->n && s->edges[i].first <= e->last) {
            if (s->edges[i].first > at) {
                end = s->edges[i].first - 1;
                i--;
            } else {
                end = s->edges[i].last < end ? s->edges[i].last : end;
                to_b = s->edges[i].to;
            }
            next = end + 1;
        }
        if (to_b != UINT32_MAX || !x->in_b) {
            uint32_t to = pair_state(x, e->to, to_b);
            if (to == UINT32_MAX)
                return false;
            tern_pattern_edge(x->out, state, at, end, to);
        }
        at = next;
    }
    return true;
}

bool tern_pattern_meet(struct tern_pattern *p, const struct tern_pattern *a,
                       const struct tern_pattern *b, bool in_b, struct tern_effort *work)
{
    memset(p, 0, sizeof *p);
    if (!tern_effort_on(work, 4 * TERN_PATTERN_MOST)) /* which are cleared */
        return false;
    struct product x = {p, a, b, calloc(2 * TERN_PATTERN_MOST, sizeof(uint32_t)),
                        calloc(SLOTS, sizeof(uint32_t)), in_b, work};
    bool ok = x.pairs && x.slots && pair_state(&x, 0, 0) == 0;
    for (uint32_t i = 0; ok && i < p->n; i++) {
        const struct tern_pattern_state *s = &a->states[x.pairs[2 * i]];
        for (uint32_t k = 0; ok && k < s->n; k++)
            ok = cut_edge(&x, i, &s->edges[k], x.pairs[2 * i + 1]);
    }
    free(x.pairs);
    free(x.slots);
    if (ok)
        tern_pattern_trim(p, work);
    return ok;
}

/* --- as a grammar --- */

static void write_class(struct tern_out *o, uint32_t first, uint32_t last, bool *open)
{
    if (first > last)
        return;
    if (!*open)
        tern_out_print(o, "[");
    *open = true;
    tern_out_print(o, first == last ? "\\U%08X" : "\\U%08X-\\U%08X", first, last);
}

/* The part of an edge, up to a code point, that stands in a string as it is. */
static bool write_raw(struct tern_out *o, const struct tern_pattern_edge *e, uint32_t most)
{
    static const uint32_t parts[][2] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, LAST}};
    bool open = false;
    for (size_t i = 0; i < 3; i++) {
        uint32_t first = e->first > parts[i][0] ? e->first : parts[i][0];
        uint32_t last = e->last < parts[i][1] ? e->last : parts[i][1];
        write_class(o, first, last < most ? last : most, &open);
    }
    if (open)
        tern_out_print(o, "]");
    return open;
}

/* The part that is escaped, in the shortest way each: few states, as there are many such edges. */
static void write_escapes(struct tern_out *o, const struct tern_pattern_edge *e, bool any)
{
    static const char *const short_ones[] = {
        ['\b'] = "b", ['\t'] = "t", ['\n'] = "n", ['\f'] = "f", ['\r'] = "r", [0x1F] = NULL,
        ['"'] = "\\\"", ['\\'] = "\\\\",
    };
    char shorts[16] = "", rows[2][20] = {"", ""};
    for (uint32_t cp = e->first; cp <= e->last && cp <= '\\'; cp++) {
        const char digit[] = {"0123456789abcdef"[cp & 15], 0};
        if (short_ones[cp])
            strcat(shorts, short_ones[cp]);
        else if (cp < 0x20)
            strcat(rows[cp >> 4], digit);
    }
    if (!*shorts && !*rows[0] && !*rows[1]) {
        tern_out_print(o, any ? "" : "[]");
        return;
    }
    tern_out_print(o, any ? " | \"\\\\\" (" : "\"\\\\\" (");
    if (*shorts)
        tern_out_print(o, *rows[0] || *rows[1] ? "[%s] | " : "[%s]", shorts);
    if (*rows[0] || *rows[1])
        tern_out_print(o, "\"u00\" (");
    for (int i = 0; i < 2; i++)
        if (*rows[i])
            tern_out_print(o, i && *rows[0] ? " | \"%d\" [%s]" : "\"%d\" [%s]", i, rows[i]);
    tern_out_print(o, *rows[0] || *rows[1] ? "))" : ")");
}

/* Where all characters of a kind lead to, or UINT32_MAX. */
static uint32_t target_of(const struct tern_pattern *p, uint32_t state,
                          const uint32_t (*kind)[2], size_t n)
{
    const struct tern_pattern_state *s = &p->states[state];
    const uint32_t to = next_of(p, state, kind[0][0]);
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++)
        for (uint32_t at = kind[i][0]; at <= kind[i][1];) {
            while (k < s->n && !(s->edges[k].first <= at && at <= s->edges[k].last &&
                                 s->edges[k].to == to))
                k++;
            if (k == s->n)
                return UINT32_MAX;
            at = s->edges[k].last + 1;
        }
    return to;
}

static const uint32_t upper[][2] = {{0x80, SURROGATE - 1}, {BEHIND_SURROGATES, LAST}};
static const uint32_t escaped[][2] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};

static void write_state(struct tern_pattern *p, struct tern_out *o, const char *name, uint32_t i)
{
    const struct tern_pattern_state *s = &p->states[i];
    const uint32_t to_upper = target_of(p, i, upper, 2), to_escaped = target_of(p, i, escaped, 3);
    if (to_upper != UINT32_MAX) {
        p->states[to_upper].upper = true;
        tern_out_print(o, " | %s-u%u", name, to_upper);
    }
    if (to_escaped != UINT32_MAX) {
        p->states[to_escaped].escaped = true;
        tern_out_print(o, " | %s-e%u", name, to_escaped);
    }
    for (uint32_t k = 0; k < s->n; k++) {
        const struct tern_pattern_edge *e = &s->edges[k];
        const bool no_upper = e->to == to_upper, no_escaped = e->to == to_escaped;
        if (no_upper && e->first >= 0x80)
            continue;
        tern_out_print(o, " | (");
        bool any = write_raw(o, e, no_upper ? 0x7F : LAST);
        if (!no_escaped)
            write_escapes(o, e, any);
        else if (!any)
            tern_out_print(o, "[]");
        tern_out_print(o, ") %s-%u", name, e->to);
    }
}

void tern_pattern_write(struct tern_pattern *p, struct tern_out *o, const char *name,
                        const char *end)
{
    static const struct tern_pattern_edge controls = {.first = 0, .last = '\\'};
    tern_pattern_trim(p, NULL);
    for (uint32_t i = 0; i < p->n; i++)
        p->states[i].upper = p->states[i].escaped = false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (i && !p->states[i].alive)
            continue;
        tern_out_print(o, "%s-%u ::= %s", name, i, p->states[i].accepts ? end : "[]");
        write_state(p, o, name, i);
        tern_out_print(o, "\n");
    }
    for (uint32_t i = 0; i < p->n; i++) { /* what many call in last place is there once */
        if (p->states[i].upper)
            tern_out_print(o, "%s-u%u ::= [\\U00000080-\\U0010FFFF] %s-%u\n", name, i, name, i);
        if (p->states[i].escaped) {
            tern_out_print(o, "%s-e%u ::= ", name, i);
            write_escapes(o, &controls, false);
            tern_out_print(o, " %s-%u\n", name, i);
        }
    }
}
