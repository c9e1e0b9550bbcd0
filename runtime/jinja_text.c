/* jinja_text.c: what is done with text: counted, cut and looked through in characters. */
#include "runtime/jinja.h"
#include "runtime/unicode.h"

#include <string.h>

typedef struct tern_jinja machine;

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

uint32_t tern_jinja_count(struct tern_jv text)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < text.n; i++)
        n += begins_character(text.u.s[i]);
    return n;
}

uint32_t tern_jinja_offset(struct tern_jv text, int64_t i)
{
    uint32_t at = 0;
    for (; i > 0 && at < text.n; i--)
        while (++at < text.n && !begins_character(text.u.s[at]))
            ;
    return at;
}

/* As str.isspace and the regular expression \s have it. */
bool tern_jinja_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

static bool is_stripped(struct tern_jv c, const struct tern_jv *chars)
{
    uint32_t cp;
    if (chars)
        return tern_jinja_search(*chars, c, 0) >= 0;
    tern_unicode_decode((const unsigned char *)c.u.s, c.n, &cp);
    return tern_jinja_is_space(cp);
}

struct tern_jv tern_jinja_strip(struct tern_jv text, const struct tern_jv *chars, int sides)
{
    while (sides & TERN_JINJA_LEFT && text.n) {
        const uint32_t n = tern_jinja_offset(text, 1);
        if (!is_stripped(tern_jv_text(text.u.s, n), chars))
            break;
        text.u.s += n;
        text.n -= n;
    }
    while (sides & TERN_JINJA_RIGHT && text.n) {
        uint32_t at = text.n - 1;
        while (at > 0 && !begins_character(text.u.s[at]))
            at--;
        if (!is_stripped(tern_jv_text(text.u.s + at, text.n - at), chars))
            break;
        text.n = at;
    }
    return text;
}

int64_t tern_jinja_search(struct tern_jv text, struct tern_jv what, uint32_t from)
{
    if (what.n == 0)
        return from <= text.n ? (int64_t)from : -1;
    for (uint32_t at = from; at + what.n <= text.n; at++) {
        const char *first = memchr(text.u.s + at, what.u.s[0], text.n - what.n - at + 1);
        if (!first)
            return -1;
        at = (uint32_t)(first - text.u.s);
        if (memcmp(first, what.u.s, what.n) == 0)
            return at;
    }
    return -1;
}

/* --- case --- */

static bool put_like(machine *m, const char *s, size_t n, const char *like)
{
    const bool own = tern_jinja_owns(m, like) || m->text_own[like - m->text];
    return tern_jinja_fill(m, s, n, own);
}

static bool is_letter(uint32_t cp)
{
    const enum tern_cp_class k = tern_unicode_class(cp);
    return k >= TERN_CP_LU && k <= TERN_CP_LM && k != TERN_CP_UNASSIGNED;
}

static bool is_upper(uint32_t cp)
{
    return tern_unicode_class(cp) == TERN_CP_LU || tern_unicode_class(cp) == TERN_CP_LT;
}

/* What stands before a word for str.title, and for Jinja's filter. */
static bool separates(uint32_t cp, enum tern_jinja_case how)
{
    if (how == JC_JINJA_TITLE)
        return tern_jinja_is_space(cp) || (cp < 128 && cp && strchr("-({[<", (int)cp));
    return !is_letter(cp);
}

static bool put_case(machine *m, const char *s, uint32_t n, bool upper)
{
    uint32_t cp;
    char out[12];
    size_t n_out = 0;
    tern_unicode_decode((const unsigned char *)s, n, &cp);
    if (!upper) {
        n_out = tern_unicode_encode(tern_unicode_lower(cp), out);
        if (cp == 0x130) /* the one letter whose small form is two characters */
            n_out = (size_t)((memcpy(out, "i\xcc\x87", 3), 3));
        return put_like(m, out, n_out, s);
    }
    uint32_t capitals[3];
    const size_t n_capitals = tern_unicode_upper(cp, capitals);
    for (size_t i = 0; i < n_capitals; i++)
        n_out += tern_unicode_encode(capitals[i], out + n_out);
    return put_like(m, out, n_out, s);
}

bool tern_jinja_case(machine *m, struct tern_jv *v, enum tern_jinja_case how)
{
    const size_t begin = m->n_text;
    const struct tern_jv text = *v;
    bool first = true;
    if (!tern_jinja_charge(m, text.n))
        return false;
    for (uint32_t at = 0; at < text.n;) {
        uint32_t cp;
        const uint32_t n = (uint32_t)tern_unicode_decode((const unsigned char *)text.u.s + at,
                                                         text.n - at, &cp);
        const bool upper = how == JC_UPPER || (how == JC_SWAP && !is_upper(cp)) ||
                           (first && how >= JC_TITLE && how != JC_SWAP);
        if (!put_case(m, text.u.s + at, n, upper))
            return false;
        first = how != JC_CAPITALIZE && separates(cp, how);
        at += n;
    }
    *v = tern_jinja_take(m, begin);
    v->flags = text.flags;
    return true;
}

/* --- pieces --- */

bool tern_jinja_replace(machine *m, struct tern_jv *v, struct tern_jv from, struct tern_jv to,
                        int64_t most)
{
    const struct tern_jv text = *v;
    const size_t begin = m->n_text;
    uint32_t at = 0;
    bool any = false;
    if (!tern_jinja_charge(m, text.n / 4))
        return false;
    for (; most != 0; most--) {
        const int64_t found = tern_jinja_search(text, from, at);
        if (found < 0)
            break;
        /* An empty text stands before every character, and at the end. */
        if (!tern_jinja_put(m, text.u.s + at, (size_t)found - at) ||
            !tern_jinja_put(m, to.u.s, to.n))
            return false;
        at = (uint32_t)found + from.n;
        any = true;
        if (from.n == 0) {
            const uint32_t n = at < text.n ? tern_jinja_offset(
                                                 tern_jv_text(text.u.s + at, text.n - at), 1) : 0;
            if (!tern_jinja_put(m, text.u.s + at, n))
                return false;
            at += n;
            if (n == 0)
                break;
        }
    }
    if (!any)
        return true;
    if (!tern_jinja_put(m, text.u.s + at, text.n - at))
        return false;
    *v = tern_jinja_take(m, begin);
    v->flags = text.flags;
    return true;
}

static bool ends_line(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

bool tern_jinja_split_lines(machine *m, struct tern_jv *v, bool keep)
{
    const struct tern_jv text = *v;
    uint32_t n = 0, begin = 0;
    /* Counted first, so that the list has its memory. */
    for (int pass = 0; pass < 2; pass++) {
        struct tern_jv *lines = pass ? tern_jinja_make(m, n * sizeof *lines) : NULL;
        if (pass && !lines)
            return false;
        n = begin = 0;
        for (uint32_t at = 0; at < text.n;) {
            uint32_t cp;
            const uint32_t end = at;
            at += (uint32_t)tern_unicode_decode((const unsigned char *)text.u.s + at, text.n - at,
                                                &cp);
            if (!ends_line(cp) && at < text.n)
                continue;
            const bool cr = cp == '\r' && at < text.n && text.u.s[at] == '\n';
            at += cr;
            const uint32_t stop = keep || !ends_line(cp) ? at : end;
            if (lines)
                lines[n] = tern_jv_text(text.u.s + begin, stop - begin);
            n++;
            begin = at;
        }
        *v = tern_jv_list(JV_LIST, lines, n);
    }
    return tern_jinja_charge(m, text.n / 8);
}
