/* gbnf.c: the text of a grammar to rules. The language is that of llama.cpp's grammars/README.md.
 *
 * A rule is read in one pass. Groups nest on a list of their own, so a text of parentheses alone
 * takes no stack. Each symbol becomes a piece of automaton between two new states; what repeats it
 * works on the last piece.
 */
#include "runtime/gbnf.h"

#include "runtime/error.h"
#include "runtime/model.h"
#include "runtime/text.h"
#include "runtime/vocab.h"

enum { MOST_GROUPS = 256 };

/* A group that is open: its alternatives lead from start to end; the current one has come to at. */
struct group { uint32_t start, end, at, first_state, first_call; };
struct groups { struct group list[MOST_GROUPS]; uint32_t n; };

bool tern_gbnf_wrong(struct tern_gbnf *b, size_t at, const char *what)
{
    uint64_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < b->text.size; i++, column++)
        if (b->text.data[i] == '\n') {
            line++;
            column = 0;
        }
    (void)tern_fail(b->err, TERN_BAD_MODEL, "grammar: line %u, column %u: %s", line, column, what);
    return false;
}

bool tern_gbnf_wrong_rule(struct tern_gbnf *b, uint32_t rule, const char *what)
{
    const tern_text name = b->rules[rule].name;
    struct tern_writer w = {(char[160]){0}, 160 - 1, 0};
    tern_write(&w, "rule %t %s", name, what);
    tern_write_end(&w);
    return tern_gbnf_wrong(b, b->rules[rule].at, w.out);
}

static int peek(const struct tern_gbnf *b)
{
    return b->at < b->text.size ? (unsigned char)b->text.data[b->at] : -1;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-';
}

static void skip_space(struct tern_gbnf *b, bool newlines)
{
    for (int c; (c = peek(b)) >= 0; b->at++) {
        if (c == '#')
            while (b->at + 1 < b->text.size && b->text.data[b->at + 1] != '\n' &&
                   b->text.data[b->at + 1] != '\r')
                b->at++;
        else if (c != ' ' && c != '\t' && !(newlines && (c == '\n' || c == '\r')))
            return;
    }
}

static tern_text take_word(struct tern_gbnf *b)
{
    const size_t from = b->at;
    while (is_word(peek(b)))
        b->at++;
    return (tern_text){b->text.data + from, b->at - from};
}

static bool take_number(struct tern_gbnf *b, uint32_t *out)
{
    const size_t from = b->at;
    uint64_t n;
    while (is_digit(peek(b)))
        b->at++;
    if (b->at == from)
        return tern_gbnf_wrong(b, from, "a number expected");
    if (!tern_text_to_u64((tern_text){b->text.data + from, b->at - from}, &n) ||
        n >= TERN_GBNF_NONE)
        return tern_gbnf_wrong(b, from, "a number above 4294967294");
    *out = (uint32_t)n;
    return true;
}

/* --- symbols --- */

static bool take_literal(struct tern_gbnf *b, uint32_t from, uint32_t to)
{
    const size_t open = b->at++;
    while (peek(b) != '"') {
        uint32_t cp;
        if (peek(b) < 0)
            return tern_gbnf_wrong(b, open, "a literal without its closing quote");
        const size_t at = b->at;
        if (!tern_gbnf_char(b, &cp))
            return false;
        if (cp >= 0xD800 && cp <= 0xDFFF)
            return tern_gbnf_wrong(b, at, "a surrogate, which is no character");
        const uint32_t next = tern_gbnf_state(b);
        if (next == TERN_GBNF_NONE || !tern_gbnf_range(b, from, next, cp, cp))
            return false;
        from = next;
    }
    b->at++;
    return tern_gbnf_edge(b, from, to, TERN_GBNF_EMPTY, 0);
}

/* The text from < to >, as the vocabulary spells a token. */
static bool named_token(struct tern_gbnf *b, size_t open, uint32_t *token)
{
    while (peek(b) >= 0 && peek(b) != '>')
        b->at++;
    if (peek(b) < 0)
        return tern_gbnf_wrong(b, open, "a token without its closing >");
    b->at++;
    *token = tern_vocab_find(b->model->vocab,
                             (tern_text){b->text.data + open, b->at - open});
    return *token != TERN_VOCAB_NONE ||
           tern_gbnf_wrong(b, open, "the vocabulary has no such token");
}

static bool take_token(struct tern_gbnf *b, uint32_t from, uint32_t to)
{
    const bool not = peek(b) == '!';
    const size_t begin = b->at;
    uint32_t token = 0;
    b->at += not;
    if (peek(b) != '<')
        return tern_gbnf_wrong(b, begin, "a token <...> expected behind !");
    if (!b->model || !b->model->vocab)
        return tern_gbnf_wrong(b, begin, "a token needs a model, whose vocabulary names it");
    const size_t open = b->at++;
    if (peek(b) == '[') {
        b->at++;
        if (!take_number(b, &token))
            return false;
        if (peek(b) != ']' || (b->at++, peek(b) != '>'))
            return tern_gbnf_wrong(b, open, "a token's number is written <[1000]>");
        b->at++;
        if (token >= b->model->vocab->n_tokens)
            return tern_gbnf_wrong(b, open, "the vocabulary has no such token");
    } else if (!named_token(b, open, &token)) {
        return false;
    }
    return tern_gbnf_edge(b, from, to, not ? TERN_GBNF_NOT_TOKEN : TERN_GBNF_TOKEN, token);
}

static bool take_reference(struct tern_gbnf *b, uint32_t from, uint32_t to)
{
    const size_t at = b->at;
    const uint32_t rule = tern_gbnf_rule(b, take_word(b), at);
    return rule != TERN_GBNF_NONE &&
           tern_gbnf_call(b, from, to, (struct tern_gbnf_call){.rule = rule, .least = 1,
                                                               .most = 1});
}

static bool take_symbol(struct tern_gbnf *b, uint32_t from, uint32_t to)
{
    const int c = peek(b);
    if (c == '"')
        return take_literal(b, from, to);
    if (c == '[') {
        b->at++;
        return tern_gbnf_class(b, from, to);
    }
    if (c == '.') {
        b->at++;
        return tern_gbnf_range(b, from, to, 0, 0x10FFFF);
    }
    if (c == '<' || c == '!')
        return take_token(b, from, to);
    return take_reference(b, from, to);
}

/* --- repetition --- */

/* * + ? {m} {m,} {m,n}; false without an error: it is none of them. */
static bool take_counts(struct tern_gbnf *b, uint32_t *least, uint32_t *most)
{
    const int c = peek(b);
    const size_t open = b->at++;
    *least = c == '+';
    *most = c == '?' ? 1 : TERN_GBNF_NONE;
    if (c != '{')
        return true;
    skip_space(b, false);
    if (!take_number(b, least))
        return false;
    *most = *least;
    skip_space(b, false);
    if (peek(b) == ',') {
        b->at++;
        skip_space(b, false);
        *most = TERN_GBNF_NONE;
        if (is_digit(peek(b)) && !take_number(b, most))
            return false;
        skip_space(b, false);
    }
    if (peek(b) != '}')
        return tern_gbnf_wrong(b, open, "a repetition is written {m}, {m,} or {m,n}");
    b->at++;
    return *least <= *most || tern_gbnf_wrong(b, open, "a repetition's least is above its most");
}

static bool repeats(int c)
{
    return c == '*' || c == '+' || c == '?' || c == '{';
}

/* --- rules --- */

static bool open_group(struct tern_gbnf *b, struct groups *g)
{
    if (g->n == MOST_GROUPS)
        return tern_gbnf_wrong(b, b->at, "more than 256 groups within one another");
    const uint32_t first = b->n_states;
    const uint32_t start = tern_gbnf_state(b), end = tern_gbnf_state(b);
    const uint32_t at = tern_gbnf_state(b);
    g->list[g->n++] = (struct group){start, end, at, first, b->n_calls};
    return at != TERN_GBNF_NONE && tern_gbnf_edge(b, start, at, TERN_GBNF_EMPTY, 0);
}

static bool next_alternative(struct tern_gbnf *b, struct group *g)
{
    const uint32_t at = tern_gbnf_state(b);
    if (at == TERN_GBNF_NONE || !tern_gbnf_edge(b, g->at, g->end, TERN_GBNF_EMPTY, 0) ||
        !tern_gbnf_edge(b, g->start, at, TERN_GBNF_EMPTY, 0))
        return false;
    g->at = at;
    return true;
}

/* A symbol, or a group that has been closed, stands; what repeats it follows. */
static bool finish_piece(struct tern_gbnf *b, struct group *g, struct tern_gbnf_piece piece,
                         bool nested)
{
    skip_space(b, nested);
    while (repeats(peek(b))) {
        uint32_t least, most;
        if (!take_counts(b, &least, &most) || !tern_gbnf_repeat(b, &piece, least, most))
            return false;
        skip_space(b, nested);
    }
    const uint32_t at = g->at;
    g->at = piece.to;
    return tern_gbnf_edge(b, at, piece.from, TERN_GBNF_EMPTY, 0);
}

static bool close_group(struct tern_gbnf *b, struct groups *g)
{
    const struct group done = g->list[--g->n];
    b->at++;
    return tern_gbnf_edge(b, done.at, done.end, TERN_GBNF_EMPTY, 0) &&
           finish_piece(b, &g->list[g->n - 1],
                        (struct tern_gbnf_piece){done.start, done.end, done.first_state,
                                                 done.first_call}, g->n > 1);
}

static bool take_one(struct tern_gbnf *b, struct groups *g)
{
    const uint32_t first = b->n_states, call = b->n_calls;
    const uint32_t from = tern_gbnf_state(b), to = tern_gbnf_state(b);
    return to != TERN_GBNF_NONE && take_symbol(b, from, to) &&
           finish_piece(b, &g->list[g->n - 1], (struct tern_gbnf_piece){from, to, first, call},
                        g->n > 1);
}

static bool begins_symbol(int c)
{
    return c == '"' || c == '[' || c == '.' || c == '<' || c == '!' || is_word(c);
}

/* Alternatives until the end of the line, or of the text. */
static bool take_body(struct tern_gbnf *b, struct groups *g)
{
    for (;;) {
        const int c = peek(b);
        bool ok = true;
        if (c == '(') {
            ok = open_group(b, g);
            b->at++;
            skip_space(b, true);
        } else if (c == ')' && g->n > 1) {
            ok = close_group(b, g);
        } else if (c == '|') {
            b->at++;
            skip_space(b, true);
            ok = next_alternative(b, &g->list[g->n - 1]);
        } else if (begins_symbol(c)) {
            ok = take_one(b, g);
        } else if (g->n > 1) {
            return tern_gbnf_wrong(b, b->at, c < 0 ? "the end of the text, a ) expected"
                                                   : "a symbol or ) expected");
        } else if (repeats(c)) {
            return tern_gbnf_wrong(b, b->at, "nothing to be repeated stands before this");
        } else if (c >= 0 && c != '\n' && c != '\r') {
            return tern_gbnf_wrong(b, b->at, "a symbol or the end of the line expected");
        } else {
            return true;
        }
        if (!ok)
            return false;
    }
}

static bool take_rule(struct tern_gbnf *b, struct groups *g)
{
    const size_t begin = b->at;
    const tern_text name = take_word(b);
    if (!name.size)
        return tern_gbnf_wrong(b, begin, "a rule's name expected");
    const uint32_t rule = tern_gbnf_rule(b, name, begin);
    if (rule == TERN_GBNF_NONE)
        return false;
    skip_space(b, false);
    if (b->text.size - b->at < 3 || b->text.data[b->at] != ':' || b->text.data[b->at + 1] != ':' ||
        b->text.data[b->at + 2] != '=')
        return tern_gbnf_wrong(b, b->at, "::= expected behind a rule's name");
    if (b->rules[rule].defined)
        return tern_gbnf_wrong(b, begin, "a rule of this name is there already");
    b->rules[rule].defined = true;
    b->rules[rule].at = begin;
    b->at += 3;
    skip_space(b, true);
    g->n = 0;
    if (!open_group(b, g))
        return false;
    b->rules[rule].start = g->list[0].start;
    b->rules[rule].end = g->list[0].end;
    return take_body(b, g) &&
           tern_gbnf_edge(b, g->list[0].at, g->list[0].end, TERN_GBNF_EMPTY, 0);
}

static bool check_rules(struct tern_gbnf *b)
{
    for (uint32_t i = 0; i < b->n_rules; i++)
        if (!b->rules[i].defined)
            return tern_gbnf_wrong_rule(b, i, "is not defined");
    for (b->root = 0; b->root < b->n_rules; b->root++)
        if (tern_text_is(b->rules[b->root].name, "root"))
            return true;
    return tern_gbnf_wrong(b, 0, "there is no rule root");
}

tern_status tern_gbnf_parse(struct tern_gbnf *b)
{
    static const struct groups none;
    struct groups g = none;
    skip_space(b, true);
    while (peek(b) >= 0) {
        if (!take_rule(b, &g))
            return TERN_BAD_MODEL;
        skip_space(b, true);
    }
    return check_rules(b) ? TERN_OK : TERN_BAD_MODEL;
}
