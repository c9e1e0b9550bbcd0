/* jinja_json.c: JSON text (RFC 8259, nothing beyond it) to a value.
 *
 * What is open stands on a stack of TERN_JINJA_DEPTH; items that are read wait on the machine's
 * own until their bracket closes. A key that comes twice keeps its first place and its last
 * value, as in Python. All text is the caller's. */
#include "runtime/decimal.h"
#include "runtime/jinja.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

#include <string.h>

struct reader {
    struct tern_jinja *m;
    const char *name;
    const unsigned char *s;
    size_t n, at;
    uint32_t depth;
};

static bool refuse(struct reader *r, const char *why)
{
    return tern_jinja_fail(r->m, "%s: byte %u: %s", r->name, (uint64_t)r->at, why);
}

static int peek(struct reader *r)
{
    while (r->at < r->n && (r->s[r->at] == ' ' || r->s[r->at] == '\n' || r->s[r->at] == '\t' ||
                            r->s[r->at] == '\r'))
        r->at++;
    return r->at < r->n ? r->s[r->at] : -1;
}

/* Four hexadecimal digits behind \u. */
static bool read_hex(struct reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const int c = r->at < r->n ? r->s[r->at] : -1, low = c | 0x20;
        const int d = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10
                                                                             : -1;
        if (d < 0)
            return refuse(r, "\\u without four digits");
        *out = *out << 4 | (uint32_t)d;
    }
    return true;
}

static bool read_escape(struct reader *r)
{
    static const char plain[] = "\"\"\\\\//n\nr\rt\tb\bf\f";
    char utf8[4];
    uint32_t cp = 0, second;
    const char c = r->at < r->n ? (char)r->s[r->at] : 0;
    r->at++;
    for (size_t i = 0; i + 1 < sizeof plain; i += 2)
        if (c == plain[i])
            return tern_jinja_fill(r->m, &plain[i + 1], 1, false);
    if (c != 'u')
        return refuse(r, "an escape that is none");
    if (!read_hex(r, &cp))
        return false;
    if (cp >= 0xd800 && cp < 0xdc00 && r->n - r->at >= 2 && r->s[r->at] == '\\' &&
        r->s[r->at + 1] == 'u') {
        r->at += 2;
        if (!read_hex(r, &second))
            return false;
        if (second < 0xdc00 || second > 0xdfff)
            return refuse(r, "half of a surrogate pair");
        cp = 0x10000 + ((cp & 0x3ff) << 10) + (second & 0x3ff);
    }
    if (cp >= 0xd800 && cp < 0xe000)
        return refuse(r, "half of a surrogate pair");
    return tern_jinja_fill(r->m, utf8, tern_unicode_encode(cp, utf8), false);
}

static bool read_string(struct reader *r, struct tern_jv *out)
{
    const size_t begin = r->m->n_text;
    for (r->at++;;) {
        size_t end = r->at;
        while (end < r->n && r->s[end] != '"' && r->s[end] != '\\' && r->s[end] >= 0x20) {
            uint32_t cp;
            size_t size;
            if (tern_unicode_scan(r->s + end, r->n - end, &cp, &size) != TERN_UTF8_WHOLE) {
                r->at = end;
                return refuse(r, "not UTF-8");
            }
            end += size;
        }
        if (!tern_jinja_fill(r->m, (const char *)r->s + r->at, end - r->at, false))
            return false;
        r->at = end;
        if (end == r->n)
            return refuse(r, "a text without its closing quote");
        if (r->s[end] < 0x20)
            return refuse(r, "a control character in a text");
        r->at++;
        if (r->s[end] == '"')
            break;
        if (!read_escape(r))
            return false;
    }
    *out = tern_jinja_take(r->m, begin);
    return true;
}

static size_t skip_digits(const struct reader *r, size_t at)
{
    while (at < r->n && r->s[at] >= '0' && r->s[at] <= '9')
        at++;
    return at;
}

static bool read_number(struct reader *r, struct tern_jv *out)
{
    const size_t begin = r->at + (r->s[r->at] == '-');
    size_t end = skip_digits(r, begin);
    bool whole = true;
    bool ok = end > begin && (r->s[begin] != '0' || end == begin + 1);
    if (ok && end < r->n && r->s[end] == '.') {
        const size_t from = end + 1;
        whole = false;
        end = skip_digits(r, from);
        ok = end > from;
    }
    if (ok && end < r->n && (r->s[end] | 0x20) == 'e') {
        size_t from = end + 1;
        whole = false;
        from += from < r->n && (r->s[from] == '-' || r->s[from] == '+');
        end = skip_digits(r, from);
        ok = end > from;
    }
    if (!ok)
        return refuse(r, "a number that is none");
    const char *s = (const char *)r->s;
    uint64_t u = 0;
    *out = (struct tern_jv){.kind = whole ? JV_INT : JV_FLOAT, .flags = JV_USER};
    if (!whole && !tern_decimal_read(s + r->at, end - r->at, &out->u.f))
        return refuse(r, "a number that cannot be read");
    if (whole && (!tern_text_to_u64((tern_text){s + begin, end - begin}, &u) || u > INT64_MAX))
        return refuse(r, "a whole number past 64 bits");
    if (whole)
        out->u.i = begin > r->at ? -(int64_t)u : (int64_t)u;
    r->at = end;
    return true;
}

static bool read_word(struct reader *r, const char *word, struct tern_jv v)
{
    const size_t n = strlen(word);
    if (r->n - r->at < n || memcmp(r->s + r->at, word, n) != 0)
        return refuse(r, "neither text, number, list, object, true, false nor null");
    r->at += n;
    v.flags = JV_USER;
    return tern_jinja_push(r->m, v);
}

static bool read_single(struct reader *r, int c)
{
    struct tern_jv v;
    switch (c) {
    case '"':
        return read_string(r, &v) && tern_jinja_push(r->m, v);
    case 't':
        return read_word(r, "true", tern_jv_bool(true));
    case 'f':
        return read_word(r, "false", tern_jv_bool(false));
    case 'n':
        return read_word(r, "null", tern_jv_none());
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7':
    case '8': case '9':
        return read_number(r, &v) && tern_jinja_push(r->m, v);
    default:
        return refuse(r, c < 0 ? "the end, a value needed" : "a value needed");
    }
}

static bool read_key(struct reader *r)
{
    struct tern_jv key;
    if (peek(r) != '"')
        return refuse(r, "a key needed");
    if (!read_string(r, &key) || !tern_jinja_push(r->m, key))
        return false;
    if (peek(r) != ':')
        return refuse(r, "a colon needed");
    r->at++;
    return true;
}

/* The items since the innermost bracket become its value. */
static bool close(struct reader *r)
{
    struct tern_jinja *m = r->m;
    const struct tern_jinja_walk w = m->walk[--r->depth];
    const uint32_t n = m->sp - w.i;
    struct tern_jv *items = tern_jinja_make(m, n * sizeof *items);
    uint32_t kept = 0;
    if (!items)
        return false;
    m->sp = w.i;
    r->at++;
    if (w.a.kind == JV_LIST) {
        if (n)
            memcpy(items, m->stack + m->sp, n * sizeof *items);
        return tern_jinja_push(m, tern_jv_list(JV_LIST, items, n));
    }
    for (uint32_t i = 0; i < n; i += 2) {
        const struct tern_jv *pair = m->stack + m->sp + i;
        const struct tern_jv *old = tern_jinja_find(m, items, kept, pair[0]);
        if (m->failed)
            return false;
        if (!old)
            items[2 * kept++] = pair[0];
        items[old ? old - items : 2 * (ptrdiff_t)kept - 1] = pair[1];
    }
    return tern_jinja_push(m, tern_jv_list(JV_DICT, items, kept));
}

/* A bracket that opens, with its first key; *single: it was empty, and is a value already. */
static bool open(struct reader *r, bool dict, bool *single)
{
    if (r->depth == TERN_JINJA_DEPTH)
        return refuse(r, "nested too deep");
    r->m->walk[r->depth++] = (struct tern_jinja_walk){
        .a = {.kind = dict ? JV_DICT : JV_LIST}, .i = r->m->sp,
    };
    r->at++;
    *single = peek(r) == (dict ? '}' : ']');
    return *single ? close(r) : !dict || read_key(r);
}

bool tern_jinja_read(struct tern_jinja *m, tern_text json, const char *name, struct tern_jv *out)
{
    struct reader r = {.m = m, .name = name, .s = (const unsigned char *)json.data,
                       .n = json.size};
    for (;;) {
        const int c = peek(&r);
        bool single = c != '{' && c != '[';
        if (!tern_jinja_charge(m, 1) ||
            !(single ? read_single(&r, c) : open(&r, c == '{', &single)))
            return false;
        while (single && r.depth) {
            const bool dict = m->walk[r.depth - 1].a.kind == JV_DICT;
            const int next = peek(&r);
            if (next == (dict ? '}' : ']')) {
                if (!close(&r))
                    return false;
                continue;
            }
            if (next != ',')
                return refuse(&r, "a comma or a closing bracket needed");
            r.at++;
            if (dict && !read_key(&r))
                return false;
            single = false;
        }
        if (single)
            break;
    }
    if (peek(&r) >= 0)
        return refuse(&r, "something behind the value");
    *out = m->stack[--m->sp];
    return true;
}
