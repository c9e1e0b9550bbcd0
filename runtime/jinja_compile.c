/* Everything lies in the caller's memory: the template, the compiler, which is of no use
 * afterwards, a copy of the source, and code and constants, which grow towards each other. */
#include "runtime/jinja_compile.h"

#include "runtime/arena.h"
#include "runtime/error.h"

typedef struct tern_jinja_compiler compiler;

/* Line ends become one kind, and the last of all goes, as Jinja has it. */
static void copy_source(compiler *c, tern_text source)
{
    for (size_t i = 0; i < source.size; i++) {
        char byte = source.data[i];
        if (byte == '\r') {
            i += i + 1 < source.size && source.data[i + 1] == '\n';
            byte = '\n';
        }
        c->source[c->n_source++] = byte;
    }
    if (c->n_source && c->source[c->n_source - 1] == '\n')
        c->n_source--;
}

static void finish(compiler *c)
{
    struct tern_template *t = c->t;
    struct tern_jv *base = c->constants - c->n_constants;
    t->code = c->code;
    t->n_code = c->n_code;
    t->constants = base;
    t->n_constants = c->n_constants;
    for (uint32_t i = 0; i < c->n_constants / 2; i++) {
        const struct tern_jv x = base[i];
        base[i] = base[c->n_constants - 1 - i];
        base[c->n_constants - 1 - i] = x;
    }
    for (uint32_t i = 0; i < c->n_constants; i++)
        base[i].id = 0;
}

tern_status tern_jinja_compile(tern_memory mem, tern_text source, tern_template **out,
                               tern_error *err)
{
    const size_t skew = -(uintptr_t)mem.data & 15;
    const size_t need = tern_template_size(source);
    if (mem.size < need)
        return tern_fail(err, TERN_NO_MEMORY, "template: %u bytes given, %u needed",
                         (uint64_t)mem.size, (uint64_t)need);
    struct tern_arena a = tern_arena_over((char *)mem.data + skew, mem.size - skew);
    struct tern_template *t = tern_carve(&a, 1, sizeof *t, 16);
    compiler *c = tern_carve(&a, 1, sizeof *c, 16);
    char *copy = tern_carve_raw(&a, source.size + 1, 1, 16);
    const size_t room = (tern_template_size(source) - skew - a.used - 16) & ~(size_t)15;
    char *code = tern_carve_raw(&a, room, 1, 16);
    if (a.failed || !c || !t)
        return tern_fail(err, TERN_NO_MEMORY, "template: its memory is too small");
    c->err = err;
    c->t = t;
    c->source = copy;
    c->code = (void *)code;
    c->constants = (void *)(code + room);
    c->room = room;
    c->lexer.line = 1;
    c->token.line = 1;
    c->line_starting = true;
    c->unknown = TERN_JINJA_NO_JUMP;
    copy_source(c, source);
    tern_jinja_parse(c);
    if (c->failed)
        return TERN_BAD_MODEL;
    finish(c);
    *out = t;
    return TERN_OK;
}
