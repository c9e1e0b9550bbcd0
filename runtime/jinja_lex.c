/* jinja_lex.c: a template's text to tokens, and its data to output, with white space taken away
 * as Jinja does under trim_blocks and lstrip_blocks: the line end behind a block tag goes, and
 * blanks before one that begins its line; a minus takes all white space on its side, a plus none.
 *
 * Texts are decoded where they stand, as no escape is shorter than what it means. So the lexer
 * never goes back, and looks ahead by characters alone. */
#include "runtime/error.h"
#include "runtime/jinja_compile.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

#include <string.h>

bool tern_jinja_refuse(struct tern_jinja_compiler *c, uint32_t line, const char *format, ...)
{
    char reason[180];
    va_list args;
    va_start(args, format);
    tern_write_line(reason, sizeof reason, format, args);
    va_end(args);
    if (!c->failed)
        tern_fail(c->err, TERN_BAD_MODEL, "template line %u: %s", (uint64_t)line, reason);
    c->failed = true;
    return false;
}

/* --- data --- */

static void go_to(struct tern_jinja_compiler *c, uint32_t to)
{
    for (; c->lexer.at < to; c->lexer.at++)
        c->lexer.line += c->source[c->lexer.at] == '\n';
}

static uint32_t skip_space(const struct tern_jinja_compiler *c, uint32_t at)
{
    while (at < c->n_source) {
        uint32_t cp;
        const size_t n = tern_unicode_decode((const unsigned char *)c->source + at,
                                             c->n_source - at, &cp);
        if (!tern_jinja_is_space(cp))
            break;
        at += (uint32_t)n;
    }
    return at;
}

/* Past what a tag's end takes with it: sign is the character before it. */
static void end_tag(struct tern_jinja_compiler *c, uint32_t after, char sign, bool trims)
{
    if (sign == '-')
        after = skip_space(c, after);
    else if (trims && sign != '+' && after < c->n_source && c->source[after] == '\n')
        after++;
    c->line_starting = c->source[after - 1] == '\n';
    go_to(c, after);
}

static bool blank(const struct tern_jinja_compiler *c, uint32_t from, uint32_t to)
{
    return skip_space(c, from) >= to;
}

/* The data before a tag that begins at `to`, without what its sign takes away. */
static void put_data(struct tern_jinja_compiler *c, uint32_t from, uint32_t to, char sign,
                     bool lstrips)
{
    if (sign == '-') {
        const struct tern_jv all = tern_jv_text(c->source + from, to - from);
        to = from + tern_jinja_strip(all, NULL, TERN_JINJA_RIGHT).n;
    } else if (lstrips && sign != '+') {
        uint32_t line = to;
        while (line > from && c->source[line - 1] != '\n')
            line--;
        if ((line > from || c->line_starting) && blank(c, line, to))
            to = line;
    }
    if (to > from)
        tern_jinja_emit(c, JO_TEXT, 0, tern_jinja_constant(c, tern_jv_text(c->source + from,
                                                                            to - from)));
}

static bool starts(const struct tern_jinja_compiler *c, uint32_t at, const char *s)
{
    const size_t n = strlen(s);
    return c->n_source - at >= n && memcmp(c->source + at, s, n) == 0;
}

static uint32_t find(const struct tern_jinja_compiler *c, uint32_t from, const char *s)
{
    for (uint32_t at = from; at < c->n_source; at++)
        if (starts(c, at, s))
            return at;
    return c->n_source;
}

/* Whether a block tag from `at` (behind {%) is this word alone; *after is behind it. */
static bool is_word_tag(const struct tern_jinja_compiler *c, uint32_t at, const char *word,
                        char *sign, uint32_t *after)
{
    at += at < c->n_source && (c->source[at] == '-' || c->source[at] == '+');
    at = skip_space(c, at);
    if (!starts(c, at, word))
        return false;
    at = skip_space(c, at + (uint32_t)strlen(word));
    *sign = at < c->n_source ? c->source[at] : 0;
    at += *sign == '-' || *sign == '+';
    *after = at + 2;
    return starts(c, at, "%}");
}

static bool raw(struct tern_jinja_compiler *c, uint32_t after, char sign)
{
    const uint32_t line = c->lexer.line;
    uint32_t end = 0;
    end_tag(c, after, sign, false);
    const uint32_t from = c->lexer.at;
    for (uint32_t at = from;; at += 2) {
        at = find(c, at, "{%");
        if (at == c->n_source)
            return tern_jinja_refuse(c, line, "raw: its endraw is missing");
        if (!is_word_tag(c, at + 2, "endraw", &sign, &end))
            continue;
        put_data(c, from, at, c->source[at + 2], true);
        end_tag(c, end, sign, true);
        return true;
    }
}

static bool comment(struct tern_jinja_compiler *c, uint32_t at)
{
    at += 2;
    at += at < c->n_source && (c->source[at] == '-' || c->source[at] == '+');
    const uint32_t end = find(c, at, "#}");
    if (end == c->n_source)
        return tern_jinja_refuse(c, c->lexer.line, "a comment without its end");
    end_tag(c, end + 2, end > at ? c->source[end - 1] : 0, true);
    return true;
}

enum tern_jinja_tag tern_jinja_data(struct tern_jinja_compiler *c)
{
    for (;;) {
        const uint32_t from = c->lexer.at;
        uint32_t at = from, after;
        while (at < c->n_source && !(c->source[at] == '{' && at + 1 < c->n_source &&
                                     strchr("{%#", c->source[at + 1]) && c->source[at + 1]))
            at++;
        const char kind = at < c->n_source ? c->source[at + 1] : 0;
        char sign = kind && at + 2 < c->n_source ? c->source[at + 2] : 0;
        put_data(c, from, at, kind ? sign : 0, kind == '%' || kind == '#');
        go_to(c, at);
        if (!kind)
            return JG_DONE;
        c->line_starting = false;
        if (kind == '#') {
            if (!comment(c, at))
                return JG_BAD;
            continue;
        }
        if (kind == '%' && is_word_tag(c, at + 2, "raw", &sign, &after)) {
            if (!raw(c, after, sign))
                return JG_BAD;
            continue;
        }
        sign = at + 2 < c->n_source ? c->source[at + 2] : 0;
        go_to(c, at + 2 + (sign == '-' || sign == '+'));
        c->lexer.variable = kind == '{';
        c->lexer.depth = 0;
        if (!tern_jinja_next(c))
            return JG_BAD;
        return kind == '{' ? JG_VARIABLE : JG_BLOCK;
    }
}

/* --- tokens --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Digits of a base, at most n of them, to a number; how many there are. */
static uint32_t read_digits(const char *s, uint32_t n, uint32_t base, uint32_t *out)
{
    uint32_t i = 0;
    for (*out = 0; i < n; i++) {
        const char low = (char)(s[i] | 0x20);
        const uint32_t d = is_digit(s[i]) ? (uint32_t)(s[i] - '0')
                           : low >= 'a' && low <= 'f' ? (uint32_t)(low - 'a') + 10 : 99;
        if (d >= base)
            break;
        *out = *out * base + d;
    }
    return i;
}

/* The escape behind a backslash at s[0], to out; how many bytes of s it is, 0: it cannot be. */
static uint32_t read_escape(const char *s, uint32_t n, char *out, uint32_t *n_out)
{
    static const char letters[] = "n\nt\tr\r\\\\'\'\"\"a\ab\bf\fv\v";
    for (uint32_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (s[0] == letters[i]) {
            out[(*n_out)++] = letters[i + 1];
            return 1;
        }
    }
    const uint32_t digits = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    uint32_t cp, taken = 1;
    if (s[0] == '\n')
        return 1;
    if (digits) {
        if (n < 1 + digits || read_digits(s + 1, digits, 16, &cp) != digits)
            return 0;
        taken = 1 + digits;
    } else if (s[0] >= '0' && s[0] <= '7') {
        taken = read_digits(s, n < 3 ? n : 3, 8, &cp);
    } else if (s[0] == 'N') {
        return 0;
    } else {
        out[(*n_out)++] = '\\';
        out[(*n_out)++] = s[0];
        return 1;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return 0;
    char utf8[4];
    const uint32_t n_utf8 = (uint32_t)tern_unicode_encode(cp, utf8);
    memcpy(out + *n_out, utf8, n_utf8);
    *n_out += n_utf8;
    return taken;
}

static bool read_text(struct tern_jinja_compiler *c)
{
    char *s = c->source;
    const char quote = s[c->lexer.at];
    const uint32_t begin = c->lexer.at + 1, line = c->lexer.line;
    uint32_t end = begin, n = 0;
    while (end < c->n_source && s[end] != quote)
        end += s[end] == '\\' ? 2 : 1;
    if (end >= c->n_source)
        return tern_jinja_refuse(c, line, "a text without its closing quote");
    go_to(c, end + 1);
    for (uint32_t at = begin; at < end;) {
        if (s[at] != '\\') {
            s[begin + n++] = s[at++];
            continue;
        }
        const uint32_t taken = read_escape(s + at + 1, end - at - 1, s + begin, &n);
        if (!taken)
            return tern_jinja_refuse(c, line, "a text with the escape \\%t, which is none",
                                     (tern_text){s + at + 1, 1});
        at += 1 + taken;
    }
    c->token.kind = JT_TEXT;
    c->token.text = (tern_text){s + begin, n};
    return true;
}

static bool read_number(struct tern_jinja_compiler *c)
{
    const char *s = c->source;
    const uint32_t begin = c->lexer.at, n = c->n_source;
    uint32_t at = begin;
    c->token.kind = JT_INT;
    const char base = at + 1 < n ? (char)(s[at + 1] | 0x20) : 0;
    const bool prefix = s[at] == '0' && (base == 'x' || base == 'o' || base == 'b');
    at += prefix ? 2 : 0;
    while (at < n && (is_digit(s[at]) || s[at] == '_' || (prefix && is_word(s[at]))))
        at++;
    if (!prefix && (begin == 0 || s[begin - 1] != '.')) {
        uint32_t more = at;
        if (more + 1 < n && s[more] == '.' && is_digit(s[more + 1]))
            for (more++; more < n && is_digit(s[more]);)
                more++;
        if (more + 1 < n && (s[more] | 0x20) == 'e') {
            uint32_t e = more + 1 + (s[more + 1] == '-' || s[more + 1] == '+');
            const uint32_t first = e;
            while (e < n && is_digit(s[e]))
                e++;
            more = e > first ? e : more;
        }
        c->token.kind = more > at ? JT_FLOAT : JT_INT;
        at = more;
    }
    c->token.text = (tern_text){s + begin, at - begin};
    go_to(c, at);
    return true;
}

/* The end of a tag, if one stands here. */
static bool read_end(struct tern_jinja_compiler *c)
{
    const char *end = c->lexer.variable ? "}}" : "%}";
    const uint32_t at = c->lexer.at;
    char sign = c->source[at];
    sign = sign == '-' || (sign == '+' && !c->lexer.variable) ? sign : 0;
    if (c->lexer.depth || !starts(c, at + (sign != 0), end))
        return false;
    c->token.kind = JT_END;
    end_tag(c, at + (sign != 0) + 2, sign, !c->lexer.variable);
    return true;
}

bool tern_jinja_next(struct tern_jinja_compiler *c)
{
    static const char pairs[] = "==!=>=<=//**";
    go_to(c, skip_space(c, c->lexer.at));
    const uint32_t at = c->lexer.at;
    c->token = (struct tern_jinja_token){.kind = JT_BAD, .line = c->lexer.line};
    if (at == c->n_source)
        return tern_jinja_refuse(c, c->lexer.line, "a tag without its end");
    const char first = c->source[at];
    if (read_end(c))
        return true;
    if (first == '"' || first == '\'')
        return read_text(c);
    if (is_digit(first))
        return read_number(c);
    if (is_word(first)) {
        uint32_t end = at;
        while (end < c->n_source && is_word(c->source[end]))
            end++;
        c->token.kind = JT_NAME;
        c->token.text = (tern_text){c->source + at, end - at};
        go_to(c, end);
        return true;
    }
    if (!first || !strchr("+-/*%~[](){}=!><.:|,;", first))
        return tern_jinja_refuse(c, c->lexer.line, "unexpected character '%t'",
                                 (tern_text){c->source + at, 1});
    c->token.kind = JT_OPERATOR;
    c->token.op = (unsigned char)first;
    for (size_t i = 0; i + 1 < sizeof pairs - 1; i += 2)
        if (at + 1 < c->n_source && first == pairs[i] && c->source[at + 1] == pairs[i + 1])
            c->token.op = tern_jinja_two(pairs[i], pairs[i + 1]);
    c->lexer.depth += strchr("([{", first) != NULL;
    if (strchr(")]}", first)) {
        if (c->lexer.depth == 0)
            return tern_jinja_unexpected(c);
        c->lexer.depth--;
    }
    go_to(c, at + (c->token.op > 0xff ? 2 : 1));
    return true;
}

bool tern_jinja_peek_is(struct tern_jinja_compiler *c, uint32_t op)
{
    const uint32_t at = skip_space(c, c->lexer.at);
    return at < c->n_source && (unsigned char)c->source[at] == op &&
           !(at + 1 < c->n_source && c->source[at + 1] == '=');
}

bool tern_jinja_peek_name(struct tern_jinja_compiler *c, const char *name)
{
    const uint32_t at = skip_space(c, c->lexer.at), end = at + (uint32_t)strlen(name);
    return starts(c, at, name) && !(end < c->n_source && is_word(c->source[end]));
}

bool tern_jinja_at_name(const struct tern_jinja_compiler *c, const char *name)
{
    return c->token.kind == JT_NAME && tern_text_is(c->token.text, name);
}

bool tern_jinja_unexpected(struct tern_jinja_compiler *c)
{
    const struct tern_jinja_token *t = &c->token;
    char op[3] = {(char)t->op, (char)(t->op >> JT_TWO), 0};
    if (t->kind == JT_END)
        return tern_jinja_refuse(c, t->line, "unexpected end of the tag");
    if (t->kind == JT_OPERATOR)
        return tern_jinja_refuse(c, t->line, "unexpected '%s'", op);
    return tern_jinja_refuse(c, t->line, "unexpected '%t'", t->text);
}

bool tern_jinja_expect(struct tern_jinja_compiler *c, uint32_t op, const char *what)
{
    if (!tern_jinja_at(c, op))
        return c->failed ? false
                         : tern_jinja_refuse(c, c->token.line, "'%s' is missing", what);
    return tern_jinja_next(c);
}
