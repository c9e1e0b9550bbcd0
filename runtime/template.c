/* template.c: chat templates as a caller sees them: compiled into the caller's memory, rendered
 * in the caller's scratch, with the output's provenance as runs. */
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/jinja.h"
#include "runtime/text.h"
#include "runtime/unicode.h"

#include <string.h>

enum { MOST_SOURCE = 1 << 20, MOST_BYTES = 1 << 30 };

/* --- compiling --- */

size_t tern_template_size(tern_text source)
{
    /* An instruction is 8 bytes and has at least 2 of the source; a constant 16, and its name or
     * digits and what parts it from the next. The compiler's own stacks are 16 KiB. */
    return source.size > MOST_SOURCE ? 0 : 13 * source.size + (20 << 10);
}

static tern_status check_utf8(tern_text t, tern_error *err)
{
    for (size_t i = 0; i < t.size;) {
        uint32_t cp;
        size_t n;
        if (tern_unicode_scan((const unsigned char *)t.data + i, t.size - i, &cp, &n) !=
            TERN_UTF8_WHOLE)
            return tern_fail(err, TERN_BAD_MODEL, "template: byte %u is not UTF-8", (uint64_t)i);
        i += n;
    }
    return TERN_OK;
}

tern_status tern_template_init(tern_memory mem, tern_text source, tern_template **out,
                               tern_error *err)
{
    if (source.size > MOST_SOURCE)
        return tern_fail(err, TERN_BAD_MODEL, "template: %u bytes, at most %u",
                         (uint64_t)source.size, (uint64_t)MOST_SOURCE);
    const tern_status status = check_utf8(source, err);
    return status ? status : tern_jinja_compile(mem, source, out, err);
}

/* --- rendering --- */

struct sizes { size_t output, text, values; uint32_t depth; uint64_t steps; };

/* What the caller left to us follows the size of what is given: prompts are copied a few times
 * on their way, and a value is 16 bytes. */
static struct sizes sizes_of(const tern_render *o)
{
    size_t json = 0;
    for (size_t i = 0; i < o->n_variables; i++)
        json += o->variables[i].json.size + o->variables[i].own.size;
    return (struct sizes){
        .output = o->output_bytes ? o->output_bytes : 2 * json + (256 << 10),
        .text = o->text_bytes ? o->text_bytes : 6 * json + (512 << 10),
        .values = (o->value_bytes ? o->value_bytes : 8 * json + (1 << 20)) /
                  sizeof(struct tern_jv),
        .depth = o->depth ? o->depth : 200,
        .steps = o->steps ? o->steps : 20000000,
    };
}

static struct tern_jinja *lay_out(struct tern_arena *a, const struct sizes *s)
{
    struct tern_jinja *m = tern_carve(a, 1, sizeof *m, 16);
    struct tern_jinja local;
    struct tern_jinja *to = m ? m : &local;
    to->stack = tern_carve_raw(a, s->values, sizeof(struct tern_jv), 16);
    to->frames = tern_carve_raw(a, s->depth, sizeof(struct tern_jinja_frame), 16);
    to->walk = tern_carve_raw(a, TERN_JINJA_DEPTH, sizeof(struct tern_jinja_walk), 16);
    to->text = tern_carve_raw(a, s->text, 1, 1);
    to->text_own = tern_carve_raw(a, s->text, 1, 1);
    to->out = tern_carve_raw(a, s->output, 1, 1);
    to->out_own = tern_carve_raw(a, s->output, 1, 1);
    return m;
}

size_t tern_render_scratch(const tern_render *options)
{
    const struct sizes s = sizes_of(options);
    struct tern_arena a = tern_arena_measure();
    lay_out(&a, &s);
    return a.failed ? 0 : a.used + 16;
}

static uint32_t constant_of(const tern_template *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_constants; i++)
        if (t->constants[i].kind == JV_TEXT &&
            tern_text_is(tern_jv_bytes(t->constants[i]), name))
            return i;
    return UINT32_MAX;
}

/* Functions first, so that a variable can take their place. */
static bool bind_all(struct tern_jinja *m)
{
    const tern_render *o = m->options;
    for (uint16_t i = 0; tern_jinja_functions[i].name; i++) {
        const uint32_t name = constant_of(m->t, tern_jinja_functions[i].name);
        const struct tern_jv v = {.kind = JV_FUNCTION, .id = i};
        if (name != UINT32_MAX && !tern_jinja_bind(m, m->scope, name, v))
            return false;
    }
    for (size_t i = 0; i < o->n_variables; i++) {
        const tern_variable *from = &o->variables[i];
        const uint32_t name = constant_of(m->t, from->name);
        struct tern_jv v = tern_jv_text(from->own.data, from->own.size);
        if (from->json.data && !tern_jinja_read(m, from->json, from->name, &v))
            return false;
        if (name != UINT32_MAX && !tern_jinja_bind(m, m->scope, name, v))
            return false;
    }
    return true;
}

/* The bytes' marks become runs, in the memory of values, which nobody needs any more. */
static bool make_runs(struct tern_jinja *m, tern_rendered *out)
{
    tern_run *runs = (void *)m->stack;
    const size_t cap = m->n_values * sizeof(struct tern_jv) / sizeof *runs;
    size_t n = 0;
    for (size_t i = 0; i < m->n_out; i++) {
        const bool own = m->out_own[i];
        if (n == 0 || runs[n - 1].own != own) {
            if (n == cap)
                return tern_jinja_fail(m, "more than %u runs of text", (uint64_t)cap);
            runs[n++].own = own;
        }
        runs[n - 1].end = i + 1;
    }
    *out = (tern_rendered){{m->out, m->n_out}, runs, n};
    return true;
}

tern_status tern_template_render(const tern_template *t, const tern_render *options,
                                 tern_memory scratch, tern_rendered *out, tern_error *err)
{
    const struct sizes s = sizes_of(options);
    const size_t need = tern_render_scratch(options), skew = -(uintptr_t)scratch.data & 15;
    *out = (tern_rendered){{"", 0}, NULL, 0};
    if (s.output > MOST_BYTES || s.text > MOST_BYTES || s.values > MOST_BYTES ||
        s.depth > 100000)
        return tern_fail(err, TERN_BAD_ARGUMENT, "render: %u bytes of output, %u of text, at most "
                         "%u", (uint64_t)s.output, (uint64_t)s.text, (uint64_t)MOST_BYTES);
    if (scratch.size < need || need == 0)
        return tern_fail(err, TERN_TOO_SMALL, "render scratch: %u bytes given, %u needed",
                         (uint64_t)scratch.size, (uint64_t)need);
    struct tern_arena a = tern_arena_over((char *)scratch.data + skew, scratch.size - skew);
    struct tern_jinja *m = lay_out(&a, &s);
    m->t = t;
    m->options = options;
    m->steps = s.steps;
    m->cap_text = s.text;
    m->cap_out = s.output;
    m->heap = m->n_values = s.values;
    m->cap_frames = s.depth;
    m->loop_name = constant_of(t, "loop");
    m->scope = tern_jinja_make(m, sizeof *m->scope);
    if (m->scope) {
        *m->scope = (struct tern_jinja_scope){0};
        if (bind_all(m))
            tern_jinja_run(m);
    }
    if (!m->failed)
        make_runs(m, out);
    if (m->failed)
        return tern_fail(err, m->error.status, "%s", m->error.text);
    return TERN_OK;
}
