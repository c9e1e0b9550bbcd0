/* jinja_operand.c: names and constants in expressions. */
#include "runtime/decimal.h"
#include "runtime/jinja_compile.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja_compiler compiler;

static bool is_reserved(tern_text name)
{
    static const char *const words[] = {"and", "or", "not", "if", "else", "in", "is"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tern_text_is(name, words[i]))
            return true;
    return false;
}

static bool constant(compiler *c, struct tern_jv v)
{
    tern_jinja_emit(c, JO_CONST, 0, tern_jinja_constant(c, v));
    return tern_jinja_next(c);
}

static bool number(compiler *c)
{
    const tern_text t = c->token.text;
    double x;
    if (c->token.kind == JT_FLOAT) {
        if (!tern_decimal_read(t.data, t.size, &x))
            return tern_jinja_refuse(c, c->token.line, "a number that cannot be read");
        return constant(c, (struct tern_jv){.kind = JV_FLOAT, .u.f = x});
    }
    const char mark = t.size > 1 ? (char)(t.data[1] | 0x20) : 0;
    const uint64_t base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    uint64_t u = 0;
    for (size_t i = base == 10 ? 0 : 2; i < t.size; i++) {
        const char low = (char)(t.data[i] | 0x20);
        if (t.data[i] == '_')
            continue;
        const uint64_t d = low >= 'a' ? (uint64_t)(low - 'a') + 10 : (uint64_t)(t.data[i] - '0');
        if (d >= base || u > (INT64_MAX - d) / base)
            return tern_jinja_refuse(c, c->token.line, "the number %t, at most %u", t,
                                     (uint64_t)INT64_MAX);
        u = u * base + d;
    }
    return constant(c, tern_jv_int((int64_t)u));
}

/* Neighbouring texts are one. */
static bool text(compiler *c)
{
    tern_text all = c->token.text;
    char *end = c->source + (all.data - c->source) + all.size;
    for (;;) {
        if (!tern_jinja_next(c))
            return false;
        if (c->token.kind != JT_TEXT)
            break;
        memmove(end, c->token.text.data, c->token.text.size);
        end += c->token.text.size;
        all.size += c->token.text.size;
    }
    tern_jinja_emit(c, JO_CONST, 0, tern_jinja_text_constant(c, all));
    return true;
}

static bool name(compiler *c)
{
    const tern_text t = c->token.text;
    if (tern_text_is(t, "true") || tern_text_is(t, "True"))
        return constant(c, tern_jv_bool(true));
    if (tern_text_is(t, "false") || tern_text_is(t, "False"))
        return constant(c, tern_jv_bool(false));
    if (tern_text_is(t, "none") || tern_text_is(t, "None"))
        return constant(c, tern_jv_none());
    if (is_reserved(t))
        return tern_jinja_unexpected(c);
    tern_jinja_emit(c, JO_NAME, 0, tern_jinja_text_constant(c, t));
    return tern_jinja_next(c);
}

bool tern_jinja_operand(compiler *c)
{
    switch (c->token.kind) {
    case JT_NAME:
        return name(c);
    case JT_TEXT:
        return text(c);
    case JT_INT: case JT_FLOAT:
        return number(c);
    default:
        return tern_jinja_unexpected(c);
    }
}
