/* jinja_code.c: instructions and constants as they are written: code from the front of the
 * memory, constants from its end. */
#include "runtime/jinja_compile.h"
#include "runtime/text.h"

#include <string.h>

static bool has_room(struct tern_jinja_compiler *c, size_t more)
{
    const size_t used = c->n_code * sizeof *c->code + c->n_constants * sizeof *c->constants;
    if (used + more <= c->room)
        return true;
    return tern_jinja_refuse(c, c->token.line, "the code needs more than %u bytes",
                             (uint64_t)c->room);
}

uint32_t tern_jinja_emit(struct tern_jinja_compiler *c, enum tern_jinja_op op, uint32_t n,
                         uint32_t arg)
{
    if (c->failed || !has_room(c, sizeof *c->code))
        return 0;
    if (n > UINT8_MAX) {
        tern_jinja_refuse(c, c->token.line, "%u of them, at most 255", (uint64_t)n);
        return 0;
    }
    const uint32_t line = c->token.line < UINT16_MAX ? c->token.line : UINT16_MAX;
    c->code[c->n_code] = (struct tern_jinja_code){(uint8_t)op, (uint8_t)n, (uint16_t)line, arg};
    return c->n_code++;
}

void tern_jinja_patch(struct tern_jinja_compiler *c, uint32_t jump)
{
    if (!c->failed)
        c->code[jump].arg = c->n_code - jump;
}

void tern_jinja_patch_all(struct tern_jinja_compiler *c, uint32_t jumps)
{
    while (!c->failed && jumps != TERN_JINJA_NO_JUMP) {
        const uint32_t next = c->code[jumps].arg;
        tern_jinja_patch(c, jumps);
        jumps = next;
    }
}

uint32_t tern_jinja_constant(struct tern_jinja_compiler *c, struct tern_jv v)
{
    if (c->failed || !has_room(c, sizeof v))
        return 0;
    c->constants[-1 - (ptrdiff_t)c->n_constants] = v;
    return c->n_constants++;
}

uint32_t tern_jinja_text_constant(struct tern_jinja_compiler *c, tern_text text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
    uint16_t *bucket = &c->buckets[(hash ^ hash >> 16) % TERN_JINJA_BUCKETS];
    for (uint32_t i = *bucket; i;) {
        const struct tern_jv *v = &c->constants[-(ptrdiff_t)i];
        if (tern_text_equal(tern_jv_bytes(*v), text))
            return i - 1;
        i = v->id;
    }
    struct tern_jv v = tern_jv_text(text.data, text.size);
    v.id = *bucket;
    const uint32_t at = tern_jinja_constant(c, v);
    if (at + 1 > UINT16_MAX)
        tern_jinja_refuse(c, c->token.line, "more than %u constants", (uint64_t)UINT16_MAX);
    else
        *bucket = (uint16_t)(at + 1);
    return at;
}

static void reverse(struct tern_jinja_code *from, struct tern_jinja_code *to)
{
    for (; from + 1 < to; from++) {
        const struct tern_jinja_code x = *from;
        *from = *--to;
        *to = x;
    }
}

void tern_jinja_swap(struct tern_jinja_compiler *c, uint32_t from, uint32_t mid, uint32_t to)
{
    if (c->failed)
        return;
    reverse(c->code + from, c->code + mid);
    reverse(c->code + mid, c->code + to);
    reverse(c->code + from, c->code + to);
}
