/* reply_scan.c: see reply_scan.h.
 *
 * What comes out is valid JSON, or a prefix of it, whatever goes in. So a byte is written only
 * when it is certain: numbers and words at their end, escapes when they are whole, and half of a
 * surrogate pair when its other half has been seen or can no longer come. Python's commas are
 * written with the item that follows, since one may stand before the closing bracket.
 */
#include "runtime/reply_scan.h"

#include <string.h>

enum state {
    AT_VALUE, AT_FIRST_ITEM, AT_FIRST_KEY, AT_KEY, AT_COLON, AT_COMMA,
    IN_WORD, IN_STRING, IN_ESCAPE, IN_HEX, BEHIND_HIGH, BEHIND_HIGH_ESCAPE, WHOLE,
};

void tern_reply_scan_begin(struct tern_reply_scan *s, bool python)
{
    *s = (struct tern_reply_scan){.python = python, .state = AT_VALUE};
}

bool tern_reply_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_word_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.' || c == '_';
}

static void put(struct tern_writer *w, const char *text)
{
    tern_write_bytes(w, text, strlen(text));
}

static void put_unit(struct tern_writer *w, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";
    const char text[] = {'\\', 'u', digits[unit >> 12 & 15], digits[unit >> 8 & 15],
                         digits[unit >> 4 & 15], digits[unit & 15]};
    tern_write_bytes(w, text, sizeof text);
}

void tern_reply_write_quoted(struct tern_writer *w, char c)
{
    switch (c) {
    case '"': put(w, "\\\""); break;
    case '\\': put(w, "\\\\"); break;
    case '\n': put(w, "\\n"); break;
    case '\r': put(w, "\\r"); break;
    case '\t': put(w, "\\t"); break;
    default:
        if ((unsigned char)c < 0x20)
            put_unit(w, (unsigned char)c);
        else
            tern_write_bytes(w, &c, 1);
    }
}

/* --- words --- */

static size_t digits(const char *p, size_t n, size_t at)
{
    while (at < n && is_digit(p[at]))
        at++;
    return at;
}

static bool is_number(const char *p, size_t n)
{
    size_t at = n && p[0] == '-', from = at;
    at = digits(p, n, at);
    if (at == from || (p[from] == '0' && at > from + 1))
        return false;
    if (at < n && p[at] == '.') {
        from = at + 1;
        at = digits(p, n, from);
        if (at == from)
            return false;
    }
    if (at < n && (p[at] == 'e' || p[at] == 'E')) {
        at++;
        at += at < n && (p[at] == '+' || p[at] == '-');
        from = at;
        at = digits(p, n, from);
        if (at == from)
            return false;
    }
    return at == n;
}

/* Python's .5, 5., +5 and 5_000 as JSON has them. */
static size_t as_json_number(const struct tern_reply_scan *s, char out[3 * TERN_REPLY_WORD])
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_word; i++) {
        const char c = s->word[i];
        const bool before = i > 0 && is_digit(s->word[i - 1]);
        const bool after = i + 1 < s->n_word && is_digit(s->word[i + 1]);
        if (s->python && ((c == '+' && i == 0) || (c == '_' && before && after)))
            continue;
        if (s->python && c == '.' && !before)
            out[n++] = '0';
        out[n++] = c;
        if (s->python && c == '.' && !after)
            out[n++] = '0';
    }
    return n;
}

static bool put_word(struct tern_reply_scan *s, struct tern_writer *w)
{
    static const struct { const char *text, *json; uint8_t kind; bool python; } words[] = {
        {"true", "true", TERN_VALUE_BOOLEAN, false}, {"false", "false", TERN_VALUE_BOOLEAN, false},
        {"null", "null", TERN_VALUE_NULL, false}, {"True", "true", TERN_VALUE_BOOLEAN, true},
        {"False", "false", TERN_VALUE_BOOLEAN, true}, {"None", "null", TERN_VALUE_NULL, true},
    };
    const tern_text word = {s->word, s->n_word};
    uint8_t kind = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tern_text_is(word, words[i].text) && (s->python || !words[i].python)) {
            put(w, words[i].json);
            kind = words[i].kind;
        }
    if (!kind) {
        char number[3 * TERN_REPLY_WORD];
        const size_t n = as_json_number(s, number);
        if (n > TERN_REPLY_WORD || !is_number(number, n))
            return false;
        tern_write_bytes(w, number, n);
        kind = TERN_VALUE_INTEGER;
        for (size_t i = 0; i < n; i++)
            if (number[i] == '.' || number[i] == 'e' || number[i] == 'E')
                kind = TERN_VALUE_NUMBER;
    }
    if (!s->depth)
        s->kind = kind;
    return true;
}

/* --- what stands between words and strings --- */

static bool is_object(const struct tern_reply_scan *s)
{
    return s->depth && s->objects >> (s->depth - 1) & 1;
}

/* A value has ended. */
static enum tern_reply_scanned settle(struct tern_reply_scan *s)
{
    s->state = s->depth ? AT_COMMA : WHOLE;
    return s->depth ? TERN_SCANNED_MORE : TERN_SCANNED_WHOLE;
}

static enum tern_reply_scanned open_list(struct tern_reply_scan *s, char c, struct tern_writer *w)
{
    if (s->depth == TERN_REPLY_DEPTH)
        return TERN_SCANNED_BAD;
    if (!s->depth)
        s->kind = c == '{' ? TERN_VALUE_OBJECT : TERN_VALUE_ARRAY;
    const uint64_t bit = (uint64_t)1 << s->depth++;
    s->objects = c == '{' ? s->objects | bit : s->objects & ~bit;
    s->tuples = c == '(' ? s->tuples | bit : s->tuples & ~bit;
    put(w, c == '{' ? "{" : "[");
    s->state = c == '{' ? AT_FIRST_KEY : AT_FIRST_ITEM;
    return TERN_SCANNED_MORE;
}

static bool closes(const struct tern_reply_scan *s, char c)
{
    return c == (is_object(s) ? '}' : s->tuples >> (s->depth - 1) & 1 ? ')' : ']');
}

static enum tern_reply_scanned close_list(struct tern_reply_scan *s, struct tern_writer *w)
{
    put(w, is_object(s) ? "}" : "]");
    s->depth--;
    s->comma = false;
    return settle(s);
}

/* A value or, for a key, a string. */
static enum tern_reply_scanned begin(struct tern_reply_scan *s, char c, bool is_key,
                                     struct tern_writer *w)
{
    const bool quote = c == '"' || (s->python && c == '\'');
    const bool list = c == '[' || c == '{' || (s->python && c == '(');
    if (!quote && (is_key || (!list && !is_word_char(c))))
        return TERN_SCANNED_BAD;
    if (s->comma)
        put(w, ", ");
    s->comma = false;
    s->is_key = is_key;
    if (list)
        return open_list(s, c, w);
    s->state = quote ? IN_STRING : IN_WORD;
    if (quote) {
        s->quote = c;
        put(w, "\"");
        if (!s->depth)
            s->kind = TERN_VALUE_STRING;
        return TERN_SCANNED_MORE;
    }
    s->word[0] = c;
    s->n_word = 1;
    return TERN_SCANNED_MORE;
}

static enum tern_reply_scanned comma(struct tern_reply_scan *s, struct tern_writer *w)
{
    const bool object = is_object(s);
    if (s->python) {
        s->comma = true;
        s->state = object ? AT_FIRST_KEY : AT_FIRST_ITEM;
        return TERN_SCANNED_MORE;
    }
    put(w, ",");
    s->state = object ? AT_KEY : AT_VALUE;
    return TERN_SCANNED_MORE;
}

static enum tern_reply_scanned between(struct tern_reply_scan *s, char c, struct tern_writer *w)
{
    if (tern_reply_is_space(c)) {
        if (!s->python)
            tern_write_bytes(w, &c, 1);
        return TERN_SCANNED_MORE;
    }
    switch (s->state) {
    case AT_COLON:
        if (c != ':')
            return TERN_SCANNED_BAD;
        put(w, s->python ? ": " : ":");
        s->state = AT_VALUE;
        return TERN_SCANNED_MORE;
    case AT_COMMA:
        if (c == ',')
            return comma(s, w);
        return closes(s, c) ? close_list(s, w) : TERN_SCANNED_BAD;
    case AT_FIRST_KEY: case AT_FIRST_ITEM:
        if (closes(s, c))
            return close_list(s, w);
        return begin(s, c, s->state == AT_FIRST_KEY, w);
    default:
        return begin(s, c, s->state == AT_KEY, w);
    }
}

/* --- strings --- */

static void give_up_high(struct tern_reply_scan *s, struct tern_writer *w)
{
    if (s->high)
        put(w, "\\ufffd");
    s->high = 0;
}

static void put_code(struct tern_reply_scan *s, struct tern_writer *w)
{
    uint32_t code = 0;
    for (size_t i = 0; i < s->n_hex; i++)
        code = code << 4 | (uint32_t)hex_value(s->hex[i]);
    s->state = IN_STRING;
    if (s->high && code >= 0xDC00 && code <= 0xDFFF) {
        put_unit(w, s->high);
        put_unit(w, code);
        s->high = 0;
        return;
    }
    give_up_high(s, w);
    if (code >= 0xD800 && code <= 0xDBFF) {
        s->high = (uint16_t)code;
        s->state = BEHIND_HIGH;
    } else if ((code >= 0xDC00 && code <= 0xDFFF) || code > 0x10FFFF) {
        put(w, "\\ufffd");
    } else if (code > 0xFFFF) {
        put_unit(w, 0xD800 + ((code - 0x10000) >> 10));
        put_unit(w, 0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
        put_unit(w, code);
    }
}

static void escape(struct tern_reply_scan *s, char c, struct tern_writer *w)
{
    s->state = IN_STRING;
    if (c == 'u' || (s->python && (c == 'x' || c == 'U'))) {
        s->state = IN_HEX;
        s->letter = c;
        s->n_hex = 0;
    } else if (c == '"' || c == '\\' || (c && strchr("bfnrt", c)) || (c == '/' && !s->python)) {
        const char text[] = {'\\', c};
        tern_write_bytes(w, text, 2);
    } else if (c == '\'') {
        put(w, "'");
    } else if (!s->python || c != '\n') {
        put(w, "\\\\");
        tern_reply_write_quoted(w, c);
    }
}

/* Answers whether the byte was read; if not, the state has moved on. */
static bool in_hex(struct tern_reply_scan *s, char c, struct tern_writer *w)
{
    if (hex_value(c) < 0) {
        const char begin_of[] = {'\\', '\\', s->letter};
        give_up_high(s, w);
        tern_write_bytes(w, begin_of, sizeof begin_of);
        tern_write_bytes(w, s->hex, s->n_hex);
        s->state = IN_STRING;
        return false;
    }
    s->hex[s->n_hex++] = c;
    if (s->n_hex == (s->letter == 'x' ? 2 : s->letter == 'u' ? 4 : 8))
        put_code(s, w);
    return true;
}

static enum tern_reply_scanned in_string(struct tern_reply_scan *s, char c, struct tern_writer *w)
{
    if (s->state == IN_HEX && in_hex(s, c, w))
        return TERN_SCANNED_MORE;
    if (s->state == BEHIND_HIGH) {
        s->state = c == '\\' ? BEHIND_HIGH_ESCAPE : IN_STRING;
        if (c == '\\')
            return TERN_SCANNED_MORE;
        give_up_high(s, w);
    }
    if (s->state == BEHIND_HIGH_ESCAPE) {
        if (c != 'u')
            give_up_high(s, w);
        s->state = IN_ESCAPE;
    }
    if (s->state == IN_ESCAPE) {
        escape(s, c, w);
    } else if (c == '\\') {
        s->state = IN_ESCAPE;
    } else if (c == s->quote) {
        put(w, "\"");
        if (!s->is_key)
            return settle(s);
        s->state = AT_COLON;
    } else {
        tern_reply_write_quoted(w, c);
    }
    return TERN_SCANNED_MORE;
}

/* --- all --- */

enum tern_reply_scanned tern_reply_scan_byte(struct tern_reply_scan *s, char c,
                                             struct tern_writer *w)
{
    switch (s->state) {
    case IN_STRING: case IN_ESCAPE: case IN_HEX: case BEHIND_HIGH: case BEHIND_HIGH_ESCAPE:
        return in_string(s, c, w);
    case IN_WORD:
        if (is_word_char(c)) {
            if (s->n_word == TERN_REPLY_WORD)
                return TERN_SCANNED_BAD;
            s->word[s->n_word++] = c;
            return TERN_SCANNED_MORE;
        }
        if (!put_word(s, w))
            return TERN_SCANNED_BAD;
        if (settle(s) == TERN_SCANNED_WHOLE)
            return TERN_SCANNED_BEFORE;
        return between(s, c, w);
    case WHOLE:
        return TERN_SCANNED_BAD;
    default:
        return between(s, c, w);
    }
}

bool tern_reply_scan_end(struct tern_reply_scan *s, struct tern_writer *w)
{
    if (s->state == IN_WORD && !s->depth && put_word(s, w))
        s->state = WHOLE;
    return s->state == WHOLE;
}
