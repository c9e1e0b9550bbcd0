/* regex.c: regular expressions as JSON schemas have them (ECMA-262, and Python's as far as they
 * agree) to automata. See pattern.h.
 *
 * A parser makes an automaton with empty edges; what is repeated is parsed again for each copy, up
 * to a bound on states. A match may begin and end anywhere: so the text is thought to stand between
 * two marks, which ^ and $ read, and anything may come before and behind. Where dialects differ
 * (what \d, \w and \s hold beyond ASCII) a class holds what all of them let in.
 */
#include "tools/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STATES = 20000, MOST_DEPTH = 50, MOST_REPEAT = 4096, MOST_SPANS = 256 };
enum { BEGIN = 0x110000, END = 0x110001, EMPTY = 0x110002, LAST = 0x10FFFF };

struct edge { uint32_t first, last, to, next; };
struct regex {
    tern_text text;
    size_t at;
    int depth;
    char *why;
    uint32_t *states; /* [MOST_STATES] first edge, plus 1 */
    struct edge *edges;
    uint32_t n_states, n_edges, cap_edges;
    struct tern_effort *work;
    bool failed;
};

static uint32_t fail(struct regex *r, const char *what)
{
    if (!r->failed)
        snprintf(r->why, TERN_ARGS_LINE, "%s at character %zu", what, r->at + 1);
    r->failed = true;
    return 0;
}

static uint32_t state(struct regex *r)
{
    if (r->n_states == MOST_STATES)
        return fail(r, "more states than 20000");
    r->states[r->n_states] = 0;
    return r->n_states++;
}

static void edge(struct regex *r, uint32_t from, uint32_t to, uint32_t first, uint32_t last)
{
    if (r->n_edges == r->cap_edges) {
        uint32_t cap = r->cap_edges ? 2 * r->cap_edges : 256;
        struct edge *more = realloc(r->edges, cap * sizeof *more);
        if (!more) {
            fail(r, "no memory");
            return;
        }
        r->edges = more;
        r->cap_edges = cap;
    }
    r->edges[r->n_edges] = (struct edge){first, last, to, r->states[from]};
    r->states[from] = ++r->n_edges;
}

static void empty(struct regex *r, uint32_t from, uint32_t to)
{
    edge(r, from, to, EMPTY, EMPTY);
}

static int peek(const struct regex *r)
{
    return r->at < r->text.size ? (unsigned char)r->text.data[r->at] : -1;
}

static bool take(struct regex *r, const char *what)
{
    size_t n = strlen(what);
    if (r->text.size - r->at < n || memcmp(r->text.data + r->at, what, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* --- classes --- */

struct spans { uint32_t n; struct { uint32_t first, last; } list[MOST_SPANS]; };

static void span(struct regex *r, struct spans *s, uint32_t first, uint32_t last)
{
    if (s->n == MOST_SPANS) {
        fail(r, "a class of too many ranges");
        return;
    }
    s->list[s->n].first = first;
    s->list[s->n++].last = last;
}

/* \d \w \s and what they leave out; false: c is none of them. */
static bool named_class(struct regex *r, int c, struct spans *s)
{
    static const struct { char name; uint8_t n; uint32_t spans[5][2]; } rows[] = {
        {'d', 1, {{'0', '9'}}},
        {'D', 2, {{0, '0' - 1}, {'9' + 1, 0x65F}}},
        {'w', 4, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {'W', 5, {{0, '0' - 1}, {'9' + 1, 'A' - 1}, {'Z' + 1, '_' - 1}, {'`', '`'}, {'{', 0x7F}}},
        {'s', 2, {{9, 13}, {' ', ' '}}},
        {'S', 3, {{0, 8}, {14, 0x1B}, {0x21, 0x84}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].name == c) {
            for (uint32_t k = 0; k < rows[i].n; k++)
                span(r, s, rows[i].spans[k][0], rows[i].spans[k][1]);
            if (c == 'S')
                span(r, s, 0xA1, 0x167F);
            return true;
        }
    return false;
}

static uint32_t hex(struct regex *r, int digits)
{
    uint32_t cp = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        int c = peek(r), low = c | 0x20;
        if (c >= '0' && c <= '9')
            cp = 16 * cp + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            cp = 16 * cp + (uint32_t)(low - 'a' + 10);
        else
            return fail(r, "an escape with too few hexadecimal digits");
    }
    return cp;
}

static uint32_t plain(struct regex *r)
{
    uint32_t cp = 0;
    tern_text left = {r->text.data + r->at, r->text.size - r->at};
    size_t n = tern_utf8_length(left);
    if (!n)
        return fail(r, "what is not UTF-8");
    cp = (unsigned char)left.data[0] & (n > 1 ? 0xFFu >> (n + 1) : 0xFFu);
    for (size_t i = 1; i < n; i++)
        cp = cp << 6 | ((unsigned char)left.data[i] & 0x3F);
    r->at += n;
    return cp;
}

/* Behind a backslash: one character. */
static uint32_t escaped(struct regex *r)
{
    static const char letters[] = "tnrfv0", values[] = "\t\n\r\f\v";
    int c = peek(r);
    const char *known = c > 0 ? strchr(letters, c) : NULL;
    if (c < 0)
        return fail(r, "nothing behind a backslash");
    r->at++;
    if (known)
        return (unsigned char)values[known - letters];
    if (c == 'x')
        return hex(r, 2);
    if (c == 'u')
        return hex(r, 4);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return fail(r, "an escape that can not be kept to");
    r->at--;
    return plain(r);
}

static int by_value(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void add_spans(struct regex *r, struct spans *s, bool not, uint32_t from, uint32_t to)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->n && !not; i++)
        edge(r, from, to, s->list[i].first, s->list[i].last);
    if (!not)
        return;
    qsort(s->list, s->n, sizeof *s->list, by_value);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->list[i].first > next)
            edge(r, from, to, next, s->list[i].first - 1);
        next = s->list[i].last + 1 > next ? s->list[i].last + 1 : next;
    }
    if (next <= LAST)
        edge(r, from, to, next, LAST);
}

/* One end of a range in a class, or all of a named class (*single false). */
static uint32_t class_end(struct regex *r, struct spans *s, bool not, bool *single)
{
    *single = true;
    if (!take(r, "\\"))
        return plain(r);
    int c = peek(r);
    if (take(r, "b"))
        return '\b';
    if (not && c > 0 && strchr("DWS", c))
        return fail(r, "a class without what is no digit, word or space");
    /* What is left out must be left out in all dialects. */
    if (not && c > 0 && strchr("dws", c))
        span(r, s, 0x80, LAST);
    if (named_class(r, c, s)) {
        r->at++;
        *single = false;
        return 0;
    }
    return escaped(r);
}

static void class(struct regex *r, uint32_t from, uint32_t to)
{
    static const struct spans none;
    struct spans s = none;
    bool not = take(r, "^"), single;
    while (!r->failed && peek(r) != ']') {
        if (peek(r) < 0) {
            fail(r, "a class without its end");
            return;
        }
        uint32_t first = class_end(r, &s, not, &single), last = first;
        if (!single)
            continue;
        if (peek(r) == '-' && r->at + 1 < r->text.size && r->text.data[r->at + 1] != ']') {
            r->at++;
            last = class_end(r, &s, not, &single);
            if (!single || last < first)
                fail(r, "a range that ends before it begins");
        }
        span(r, &s, first, last);
    }
    r->at++;
    if (!r->failed)
        add_spans(r, &s, not, from, to);
}

/* --- the expression --- */

static uint32_t alternatives(struct regex *r, uint32_t from);

static uint32_t group(struct regex *r, uint32_t from)
{
    if (take(r, "?")) {
        (void)take(r, "P");
        if (take(r, "<") && peek(r) != '=' && peek(r) != '!') {
            while (peek(r) >= 0 && peek(r) != '>')
                r->at++;
            r->at++;
        } else if (!take(r, ":")) {
            return fail(r, "a look around, or a flag, which can not be kept to,");
        }
    }
    if (r->depth == MOST_DEPTH)
        return fail(r, "more than 50 groups within one another");
    r->depth++;
    uint32_t to = alternatives(r, from);
    r->depth--;
    if (!r->failed && !take(r, ")"))
        return fail(r, "a group without its end");
    return to;
}

static uint32_t atom(struct regex *r, uint32_t from)
{
    static const struct spans none;
    uint32_t to = state(r);
    struct spans s = none;
    int c = peek(r);
    if (r->failed)
        return 0;
    if (c > 0 && strchr("*+?{", c))
        return fail(r, "nothing to be repeated");
    if (take(r, "("))
        return group(r, from);
    if (take(r, "[")) {
        class(r, from, to);
    } else if (take(r, ".")) {
        static const uint32_t ends[] = {'\n', '\r', 0x2028, 0x2029};
        for (size_t i = 0; i < 4; i++)
            span(r, &s, ends[i], ends[i]);
        add_spans(r, &s, true, from, to);
    } else if (take(r, "^")) {
        edge(r, from, to, BEGIN, BEGIN);
    } else if (take(r, "$")) {
        edge(r, from, to, END, END);
    } else if (take(r, "\\")) {
        if (named_class(r, peek(r), &s)) {
            r->at++;
            add_spans(r, &s, false, from, to);
        } else {
            uint32_t cp = escaped(r);
            edge(r, from, to, cp, cp);
        }
    } else {
        uint32_t cp = plain(r);
        edge(r, from, to, cp, cp);
    }
    return to;
}

static bool number(struct regex *r, long *n)
{
    size_t from = r->at;
    for (*n = 0; peek(r) >= '0' && peek(r) <= '9' && *n <= MOST_REPEAT; r->at++)
        *n = 10 * *n + (peek(r) - '0');
    return r->at > from;
}

/* How often what stands before is repeated; most -1: without end. False: it is not. */
static bool counts(struct regex *r, long *least, long *most)
{
    *least = 0;
    *most = -1;
    if (take(r, "*"))
        return true;
    if (take(r, "?"))
        return *most = 1, true;
    if (take(r, "+"))
        return *least = 1, true;
    if (!take(r, "{"))
        return false;
    if (!number(r, least))
        return fail(r, "a repetition without a number");
    *most = *least;
    if (take(r, ",") && !number(r, most))
        *most = -1;
    if (!take(r, "}") || *least > MOST_REPEAT || *most > MOST_REPEAT ||
        (*most >= 0 && *most < *least)) {
        fail(r, "a repetition that can not be kept to");
        return false;
    }
    return true;
}

static uint32_t copy(struct regex *r, size_t at, uint32_t from, uint32_t *start)
{
    size_t back = r->at;
    *start = state(r);
    r->at = at;
    if (!r->failed)
        empty(r, from, *start);
    uint32_t to = atom(r, *start);
    r->at = back;
    return to;
}

static uint32_t piece(struct regex *r, uint32_t from)
{
    size_t at = r->at;
    uint32_t start = state(r), now, end;
    long least, most;
    if (r->failed)
        return 0;
    empty(r, from, start);
    now = atom(r, start);
    if (r->failed || !counts(r, &least, &most))
        return now;
    (void)take(r, "?"); /* which match is found does not matter */
    if (peek(r) >= 0 && strchr("*+?{", peek(r)))
        return fail(r, "a repetition of a repetition");
    end = state(r);
    if (least == 0 && !r->failed)
        empty(r, start, end);
    if (most == 0)
        return end;
    for (long i = 1; !r->failed && (i < least || i < most); i++) {
        if (i >= least)
            empty(r, now, end);
        now = copy(r, at, now, &start);
    }
    if (r->failed)
        return 0;
    if (most < 0)
        empty(r, now, start);
    empty(r, now, end);
    return end;
}

static uint32_t alternatives(struct regex *r, uint32_t from)
{
    uint32_t to = state(r);
    do {
        uint32_t now = from;
        while (!r->failed && peek(r) >= 0 && peek(r) != '|' && peek(r) != ')')
            now = piece(r, now);
        if (!r->failed)
            empty(r, now, to);
    } while (!r->failed && take(r, "|"));
    return to;
}

/* --- made deterministic --- */

struct sets {
    struct regex *r;
    struct tern_pattern *p;
    uint32_t *members, *starts, n_members, cap_members; /* of each state, sorted */
    uint32_t *list, *stack, n;
    uint8_t *seen;
};

static void close_set(struct sets *x)
{
    uint32_t n_stack = x->n, n_steps = x->r->n_states;
    memset(x->seen, 0, x->r->n_states);
    memcpy(x->stack, x->list, x->n * sizeof *x->list);
    for (uint32_t i = 0; i < x->n; i++)
        x->seen[x->list[i]] = 1;
    while (n_stack) {
        uint32_t s = x->stack[--n_stack];
        for (uint32_t e = x->r->states[s]; e; e = x->r->edges[e - 1].next, n_steps++)
            if (x->r->edges[e - 1].first == EMPTY && !x->seen[x->r->edges[e - 1].to]) {
                x->seen[x->r->edges[e - 1].to] = 1;
                x->stack[n_stack++] = x->r->edges[e - 1].to;
            }
    }
    x->n = 0;
    for (uint32_t s = 0; s < x->r->n_states; s++)
        if (x->seen[s])
            x->list[x->n++] = s;
    (void)tern_effort_on(x->r->work, n_steps);
}

static bool reads(struct sets *x, const uint32_t *set, uint32_t n, uint32_t cp)
{
    uint32_t n_steps = n + x->r->n_states / 16;
    memset(x->seen, 0, x->r->n_states);
    x->n = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = x->r->states[set[i]]; e; e = x->r->edges[e - 1].next, n_steps++) {
            const struct edge *d = &x->r->edges[e - 1];
            if (d->first <= cp && cp <= d->last && !x->seen[d->to]) {
                x->seen[d->to] = 1;
                x->list[x->n++] = d->to;
            }
        }
    (void)tern_effort_on(x->r->work, n_steps);
    if (x->n)
        close_set(x);
    return x->n > 0;
}

/* The state of the set in the list; UINT32_MAX: there are too many. */
static uint32_t set_state(struct sets *x, uint32_t end)
{
    (void)tern_effort_on(x->r->work, x->p->n / 4);
    for (uint32_t i = 0; i < x->p->n; i++)
        if (x->starts[i + 1] - x->starts[i] == x->n &&
            memcmp(x->members + x->starts[i], x->list, x->n * sizeof *x->list) == 0)
            return i;
    if (x->p->n == TERN_PATTERN_MOST) {
        fail(x->r, "more states than 4000");
        return UINT32_MAX;
    }
    if (x->n_members + x->n > x->cap_members) {
        uint32_t cap = 2 * (x->n_members + x->n);
        uint32_t *more = realloc(x->members, cap * sizeof *more);
        if (!more)
            return UINT32_MAX;
        x->members = more;
        x->cap_members = cap;
    }
    memcpy(x->members + x->n_members, x->list, x->n * sizeof *x->list);
    x->n_members += x->n;
    uint32_t i = x->p->n, first = x->starts[i], n = x->n;
    x->starts[i + 1] = x->n_members;
    bool accepts = reads(x, x->members + first, n, END) && x->seen[end];
    struct tern_pattern_state *more = realloc(x->p->states, (i + 1) * sizeof *more);
    if (!more)
        return UINT32_MAX;
    x->p->states = more;
    x->p->states[i] = (struct tern_pattern_state){.accepts = accepts};
    x->p->n = x->p->cap = i + 1;
    return i;
}

/* Places at which the edges of a state's members begin or have ended. */
static uint32_t *cuts_of(struct sets *x, uint32_t at, uint32_t *n)
{
    uint32_t cap = 64, *cuts = malloc(cap * sizeof *cuts);
    *n = 0;
    for (uint32_t i = x->starts[at]; cuts && i < x->starts[at + 1]; i++)
        for (uint32_t e = x->r->states[x->members[i]]; cuts && e; e = x->r->edges[e - 1].next) {
            const struct edge *d = &x->r->edges[e - 1];
            if (d->first > LAST)
                continue;
            if (*n + 8 > cap) {
                uint32_t *more = realloc(cuts, 2 * cap * sizeof *cuts);
                if (!more)
                    free(cuts);
                cuts = more;
                cap *= 2;
            }
            if (cuts) {
                cuts[(*n)++] = d->first;
                cuts[(*n)++] = d->last + 1;
            }
        }
    if (!cuts)
        return NULL;
    cuts[(*n)++] = 0xD800;
    cuts[(*n)++] = 0xE000;
    qsort(cuts, *n, sizeof *cuts, by_value);
    return cuts;
}

static bool join(struct sets *x, uint32_t at, uint32_t first, uint32_t last, uint32_t to)
{
    struct tern_pattern_state *s = &x->p->states[at];
    if (s->n && s->edges[s->n - 1].to == to && s->edges[s->n - 1].last + 1 == first) {
        s->edges[s->n - 1].last = last;
        return true;
    }
    struct tern_pattern_edge *more = realloc(s->edges, (s->n + 1) * sizeof *more);
    if (!more)
        return false;
    s->edges = more;
    s->edges[s->n++] = (struct tern_pattern_edge){first, last, to};
    s->cap = s->n;
    return true;
}

static bool find_edges(struct sets *x, uint32_t at, uint32_t end)
{
    uint32_t n, *cuts = cuts_of(x, at, &n);
    bool ok = cuts != NULL;
    for (uint32_t i = 0; ok && i + 1 < n; i++) {
        if (cuts[i] == cuts[i + 1] || cuts[i] == 0xD800 || cuts[i] > LAST)
            continue;
        if (!tern_effort_on(x->r->work, 1)) {
            fail(x->r, "more work than is allowed");
            break;
        }
        if (!reads(x, x->members + x->starts[at], x->starts[at + 1] - x->starts[at], cuts[i]))
            continue;
        uint32_t to = set_state(x, end);
        ok = to != UINT32_MAX && join(x, at, cuts[i], cuts[i + 1] - 1, to);
    }
    free(cuts);
    return ok && !x->r->failed;
}

static bool determine(struct regex *r, uint32_t from, uint32_t end, struct tern_pattern *p)
{
    struct sets x = {.r = r, .p = p};
    x.list = malloc(MOST_STATES * sizeof *x.list);
    x.stack = malloc(MOST_STATES * sizeof *x.stack);
    x.starts = calloc(TERN_PATTERN_MOST + 2, sizeof *x.starts);
    x.seen = malloc(MOST_STATES);
    bool ok = x.list && x.stack && x.starts && x.seen;
    if (ok) {
        x.list[0] = from;
        x.n = 1;
        close_set(&x);
        uint32_t *first = malloc(x.n * sizeof *first), n = x.n;
        if (first)
            memcpy(first, x.list, n * sizeof *first);
        ok = first && reads(&x, first, n, BEGIN) && set_state(&x, end) == 0;
        free(first);
    }
    for (uint32_t i = 0; ok && i < p->n; i++)
        ok = find_edges(&x, i, end);
    tern_pattern_trim(p, r->work);
    free(x.members);
    free(x.list);
    free(x.stack);
    free(x.starts);
    free(x.seen);
    return ok;
}

bool tern_pattern_regex(struct tern_pattern *p, tern_text regex, struct tern_effort *work,
                        char why[TERN_ARGS_LINE])
{
    struct regex r = {.text = regex, .work = work, .why = why};
    memset(p, 0, sizeof *p);
    r.states = malloc(MOST_STATES * sizeof *r.states);
    if (!r.states)
        return false;
    uint32_t from = state(&r), end = state(&r);
    edge(&r, from, from, 0, LAST);
    edge(&r, from, from, BEGIN, BEGIN);
    edge(&r, end, end, 0, LAST);
    edge(&r, end, end, END, END);
    uint32_t found = alternatives(&r, from);
    if (!r.failed && r.at < r.text.size)
        fail(&r, "a ) without its group");
    if (!r.failed)
        empty(&r, found, end);
    bool ok = !r.failed && determine(&r, from, end, p);
    if (!ok) {
        fail(&r, "no memory");
        tern_pattern_free(p);
    }
    free(r.states);
    free(r.edges);
    return ok;
}
