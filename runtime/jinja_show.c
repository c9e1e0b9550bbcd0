/* jinja_show.c: values to text: as Python prints them, as it shows them inside of lists, and as
 * JSON with the settings of Hugging Face's tojson.
 *
 * Punctuation counts as the template's own, and what an escape stands for keeps the provenance of
 * the character that it replaces. */
#include "runtime/decimal.h"
#include "runtime/jinja.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

#include <string.h>

typedef struct tern_jinja machine;

/* --- text that grows --- */

bool tern_jinja_owns(const machine *m, const char *s)
{
    return (uintptr_t)s < (uintptr_t)m->text || (uintptr_t)s >= (uintptr_t)m->text + m->cap_text;
}

static bool has_room(machine *m, size_t n)
{
    if (n > m->cap_text - m->n_text)
        return tern_jinja_fail(m, "more than %u bytes of text", (uint64_t)m->cap_text);
    return tern_jinja_charge(m, n / 16);
}

bool tern_jinja_fill(machine *m, const char *s, size_t n, bool own)
{
    if (!has_room(m, n))
        return false;
    if (n)
        memcpy(m->text + m->n_text, s, n);
    memset(m->text_own + m->n_text, own, n);
    m->n_text += n;
    return true;
}

bool tern_jinja_put(machine *m, const char *s, size_t n)
{
    const size_t begin = m->n_text;
    if (!tern_jinja_fill(m, s, n, true))
        return false;
    if (n && !tern_jinja_owns(m, s))
        memcpy(m->text_own + begin, m->text_own + (s - m->text), n);
    return true;
}

struct tern_jv tern_jinja_take(machine *m, size_t begin)
{
    return tern_jv_text(m->text + begin, m->n_text - begin);
}

bool tern_jinja_join_two(machine *m, struct tern_jv a, struct tern_jv b, struct tern_jv *out)
{
    size_t begin = m->n_text;
    const char *end = a.u.s + a.n;
    if (a.n && b.n && end == b.u.s && !tern_jinja_owns(m, a.u.s)) { /* neighbours already */
        *out = tern_jv_text(a.u.s, (size_t)a.n + b.n);
        return true;
    }
    if (a.n && end == m->text + m->n_text && !tern_jinja_owns(m, a.u.s))
        begin -= a.n;
    else if (!tern_jinja_put(m, a.u.s, a.n))
        return false;
    if (!tern_jinja_put(m, b.u.s, b.n))
        return false;
    *out = tern_jinja_take(m, begin);
    return true;
}

static bool put_word(machine *m, const char *s, bool own)
{
    return tern_jinja_fill(m, s, strlen(s), own);
}

/* --- single values --- */

static bool put_int(machine *m, int64_t i, bool own)
{
    char digits[24];
    struct tern_writer w = {digits, sizeof digits, 0};
    tern_write(&w, "%i", i);
    return tern_jinja_fill(m, digits, w.n, own);
}

static bool put_float(machine *m, double x, bool json, bool own)
{
    char digits[TERN_DECIMAL_CAP];
    const size_t n = tern_decimal_repr(x, digits);
    if (!tern_jinja_charge(m, 500))
        return false;
    if (json && digits[n - 1] == 'n')
        return put_word(m, "NaN", own);
    if (json && digits[n - 1] == 'f')
        return put_word(m, x < 0 ? "-Infinity" : "Infinity", own);
    return tern_jinja_fill(m, digits, n, own);
}

static bool put_hex(machine *m, const char *before, uint32_t x, int digits, bool own)
{
    char hex[8];
    for (int i = 0; i < digits; i++)
        hex[i] = "0123456789abcdef"[x >> 4 * (digits - 1 - i) & 15];
    return put_word(m, before, own) && tern_jinja_fill(m, hex, (size_t)digits, own);
}

static bool own_at(const machine *m, const char *s)
{
    return tern_jinja_owns(m, s) || m->text_own[s - m->text];
}

static bool put_json_escape(machine *m, uint32_t cp, bool own)
{
    static const char plain[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i + 1 < sizeof plain; i += 2) {
        if (cp == (unsigned char)plain[i]) {
            const char two[2] = {'\\', plain[i + 1]};
            return tern_jinja_fill(m, two, 2, own);
        }
    }
    if (cp < 0x10000)
        return put_hex(m, "\\u", cp, 4, own);
    cp -= 0x10000;
    return put_hex(m, "\\u", 0xd800 + (cp >> 10), 4, own) &&
           put_hex(m, "\\u", 0xdc00 + (cp & 0x3ff), 4, own);
}

static bool prints(uint32_t cp)
{
    const enum tern_cp_class k = tern_unicode_class(cp);
    return cp == ' ' || (k != TERN_CP_SPACE && k != TERN_CP_CONTROL && k != TERN_CP_UNASSIGNED);
}

static bool put_python_escape(machine *m, uint32_t cp, bool own)
{
    const char two[2] = {'\\', cp == '\n' ? 'n' : cp == '\r' ? 'r' : cp == '\t' ? 't' : (char)cp};
    if (cp == '\n' || cp == '\r' || cp == '\t' || (cp < 0x7f && cp >= 0x20))
        return tern_jinja_fill(m, two, 2, own);
    return cp < 0x100 ? put_hex(m, "\\x", cp, 2, own)
           : cp < 0x10000 ? put_hex(m, "\\u", cp, 4, own) : put_hex(m, "\\U", cp, 8, own);
}

static bool put_quoted(machine *m, struct tern_jv v, const struct tern_jinja_json *json)
{
    const bool doubles = v.n && memchr(v.u.s, '\'', v.n) && !memchr(v.u.s, '"', v.n);
    const char *quote = json || doubles ? "\"" : "'";
    uint32_t plain = 0;
    if (!put_word(m, quote, true))
        return false;
    for (uint32_t at = 0; at < v.n;) {
        uint32_t cp;
        const uint32_t n = (uint32_t)tern_unicode_decode((const unsigned char *)v.u.s + at,
                                                         v.n - at, &cp);
        const bool escaped = cp == '\\' || cp == (unsigned char)*quote ||
                             (json ? cp < 0x20 || (json->ascii && cp > 0x7e) : !prints(cp));
        if (escaped) {
            const bool own = own_at(m, v.u.s + at);
            if (!tern_jinja_put(m, v.u.s + plain, at - plain) ||
                !(json ? put_json_escape(m, cp, own) : put_python_escape(m, cp, own)))
                return false;
            plain = at + n;
        }
        at += n;
    }
    return tern_jinja_put(m, v.u.s + plain, v.n - plain) && put_word(m, quote, true);
}

static bool put_single(machine *m, struct tern_jv v, const struct tern_jinja_json *json)
{
    const bool own = !(v.flags & JV_USER);
    switch (v.kind) {
    case JV_NONE:
        return put_word(m, json ? "null" : "None", own);
    case JV_BOOL:
        return put_word(m, json ? (v.u.i ? "true" : "false") : v.u.i ? "True" : "False", own);
    case JV_INT:
        return put_int(m, v.u.i, own);
    case JV_FLOAT:
        return put_float(m, v.u.f, json != NULL, own);
    case JV_TEXT:
        if (v.flags & JV_SAFE && !json)
            return put_word(m, "Markup(", true) && put_quoted(m, v, json) &&
                   put_word(m, ")", true);
        return put_quoted(m, v, json);
    case JV_UNDEFINED:
        if (json)
            return tern_jinja_fail(m, "'%t' is undefined, and no JSON", tern_jv_bytes(v));
        return put_word(m, "Undefined", true);
    default:
        return tern_jinja_fail(m, json ? "a %s is no JSON" : "a %s has no text", tern_jv_type(v));
    }
}

/* --- lists and dicts --- */

static bool new_line(machine *m, const struct tern_jinja_json *json, uint32_t depth)
{
    if (!json || json->indent.kind == JV_ABSENT)
        return true;
    if (!put_word(m, "\n", true))
        return false;
    for (uint32_t i = 0; i < depth; i++)
        if (!tern_jinja_put(m, json->indent.u.s, json->indent.n))
            return false;
    return true;
}

/* A dict with its keys in order, by insertion. */
static bool sort_keys(machine *m, struct tern_jv *v)
{
    struct tern_jv *pairs = tern_jinja_make(m, 2 * v->n * sizeof *pairs);
    if (!pairs)
        return false;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t at = i;
        for (; at > 0; at--) {
            const struct tern_jv a = pairs[2 * at - 2], b = v->u.items[2 * i];
            if (a.kind != JV_TEXT || b.kind != JV_TEXT)
                return tern_jinja_fail(m, "keys that have no order");
            const int c = memcmp(a.u.s, b.u.s, a.n < b.n ? a.n : b.n);
            if (c < 0 || (c == 0 && a.n <= b.n))
                break;
            pairs[2 * at] = pairs[2 * at - 2];
            pairs[2 * at + 1] = pairs[2 * at - 1];
        }
        pairs[2 * at] = v->u.items[2 * i];
        pairs[2 * at + 1] = v->u.items[2 * i + 1];
        if (!tern_jinja_charge(m, i - at))
            return false;
    }
    v->u.items = pairs;
    return true;
}

static bool put_key(machine *m, struct tern_jv key, const struct tern_jinja_json *json)
{
    const bool bare = json && key.kind != JV_TEXT;
    if (json && (key.kind == JV_TUPLE || key.kind == JV_UNDEFINED))
        return tern_jinja_fail(m, "a %s is no key in JSON", tern_jv_type(key));
    return (!bare || put_word(m, "\"", true)) && put_single(m, key, json) &&
           (!bare || put_word(m, "\"", true)) &&
           (json ? tern_jinja_put(m, json->key.u.s, json->key.n) : put_word(m, ": ", true));
}

static bool put_end(machine *m, struct tern_jv v, const struct tern_jinja_json *json)
{
    if (v.kind == JV_DICT)
        return put_word(m, "}", true);
    if (v.kind == JV_LIST || json)
        return put_word(m, "]", true);
    return put_word(m, v.n == 1 ? ",)" : ")", true);
}

/* The separator, and a dict's key, before the i-th item, which is left in *v. */
static bool put_next(machine *m, uint32_t depth, const struct tern_jinja_json *json,
                     struct tern_jv *v)
{
    struct tern_jinja_walk *w = &m->walk[depth - 1];
    const uint32_t i = w->i++;
    if (i > 0 && !(json ? tern_jinja_put(m, json->item.u.s, json->item.n)
                        : put_word(m, ", ", true)))
        return false;
    if (!new_line(m, json, depth))
        return false;
    const bool dict = w->a.kind == JV_DICT;
    *v = w->a.u.items[dict ? 2 * i + 1 : i];
    return !dict || put_key(m, w->a.u.items[2 * i], json);
}

static bool write(machine *m, struct tern_jv v, const struct tern_jinja_json *json)
{
    uint32_t depth = 0;
    for (;;) {
        const bool nests = v.kind == JV_LIST || v.kind == JV_TUPLE || v.kind == JV_DICT;
        if (!tern_jinja_charge(m, 1) || (!nests && !put_single(m, v, json)))
            return false;
        if (nests) {
            const char *open = v.kind == JV_DICT ? "{" : v.kind == JV_LIST || json ? "[" : "(";
            if (depth == TERN_JINJA_DEPTH)
                return tern_jinja_fail(m, "values nested deeper than %u",
                                       (uint64_t)TERN_JINJA_DEPTH);
            if (json && json->sorted && v.kind == JV_DICT && !sort_keys(m, &v))
                return false;
            m->walk[depth++] = (struct tern_jinja_walk){.a = v};
            if (!put_word(m, open, true))
                return false;
        }
        while (depth && m->walk[depth - 1].i == m->walk[depth - 1].a.n) {
            const struct tern_jv done = m->walk[--depth].a;
            if ((done.n && !new_line(m, json, depth)) || !put_end(m, done, json))
                return false;
        }
        if (depth == 0)
            return true;
        if (!put_next(m, depth, json, &v))
            return false;
    }
}

bool tern_jinja_repr(machine *m, struct tern_jv v)
{
    return write(m, v, NULL);
}

bool tern_jinja_json(machine *m, struct tern_jv v, const struct tern_jinja_json *how)
{
    return write(m, v, how);
}

bool tern_jinja_show(machine *m, struct tern_jv v)
{
    if (v.kind == JV_TEXT)
        return tern_jinja_put(m, v.u.s, v.n);
    if (v.kind == JV_UNDEFINED)
        return true;
    if (v.kind == JV_NAMESPACE)
        return put_word(m, "<Namespace ", true) &&
               write(m, tern_jv_list(JV_DICT, v.u.list->items, v.u.list->n), NULL) &&
               put_word(m, ">", true);
    if (v.kind == JV_MACRO)
        return put_word(m, "<Macro ", true) &&
               put_quoted(m, m->t->constants[v.u.macro->name], NULL) && put_word(m, ">", true);
    return write(m, v, NULL);
}

bool tern_jinja_to_text(machine *m, struct tern_jv *v)
{
    const size_t begin = m->n_text;
    if (v->kind == JV_TEXT)
        return true;
    if (!tern_jinja_show(m, *v))
        return false;
    *v = tern_jinja_take(m, begin);
    return true;
}

bool tern_jinja_escape(machine *m, struct tern_jv *v)
{
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    static const char special[] = "&<>'\"";
    if (!tern_jinja_to_text(m, v))
        return false;
    const size_t begin = m->n_text;
    const struct tern_jv text = *v;
    uint32_t plain = 0;
    for (uint32_t at = 0; at < text.n; at++) {
        const char *found = text.u.s[at] ? strchr(special, text.u.s[at]) : NULL;
        if (!found)
            continue;
        if (!tern_jinja_put(m, text.u.s + plain, at - plain) ||
            !put_word(m, escapes[found - special], own_at(m, text.u.s + at)))
            return false;
        plain = at + 1;
    }
    if (plain) {
        if (!tern_jinja_put(m, text.u.s + plain, text.n - plain))
            return false;
        *v = tern_jinja_take(m, begin);
    }
    v->flags |= JV_SAFE;
    return true;
}
