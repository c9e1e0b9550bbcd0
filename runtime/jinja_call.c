/* jinja_call.c: calls: of macros, which get a frame and a scope, and of what is built in.
 *
 * A macro's arguments stay on the stack under its frame; the code that it begins with takes them
 * one after the other, and works out the defaults of those that are not there. */
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;
typedef const struct tern_jinja_code *code_at;

static bool call_macro(machine *m, struct tern_jv callee, uint32_t base, code_at c)
{
    struct tern_jinja_frame *f = tern_jinja_push_frame(m, JF_CALL);
    if (!f)
        return false;
    f->sp = base;
    f->n_given = c->n;
    f->n_named = (uint8_t)(c->arg >> 24);
    m->scope = tern_jinja_new_scope(m, callee.u.macro->scope);
    m->pc = callee.u.macro->at;
    return m->scope != NULL;
}

static bool call_native(machine *m, const struct tern_jinja_row *row, uint32_t base, code_at c)
{
    m->given = m->stack + base + 1;
    m->n_given = c->n;
    m->n_named = c->arg >> 24;
    struct tern_jv v = m->stack[base];
    if (v.kind == JV_METHOD)
        v = v.u.items[0];
    if (!tern_jinja_native_call(m, row, &v))
        return false;
    m->stack[base] = v;
    m->sp = base + 1;
    return true;
}

static const struct tern_jinja_row *row_of_method(struct tern_jv v)
{
    switch (v.u.items[0].kind) {
    case JV_TEXT:
        return &tern_jinja_text_methods[v.id];
    case JV_DICT:
        return &tern_jinja_dict_methods[v.id];
    case JV_LOOP:
        return &tern_jinja_loop_methods[v.id];
    default:
        return &tern_jinja_list_methods[v.id];
    }
}

bool tern_jinja_do_call(machine *m, code_at c)
{
    const uint32_t base = m->sp - c->n - 2 * (c->arg >> 24) - 1;
    const struct tern_jv v = m->stack[base];
    switch (v.kind) {
    case JV_MACRO:
        return call_macro(m, v, base, c);
    case JV_FUNCTION:
        return call_native(m, &tern_jinja_functions[v.id], base, c);
    case JV_METHOD:
        return call_native(m, row_of_method(v), base, c);
    case JV_JOINER:
        m->stack[base] = v.u.list->at++ ? v.u.list->items[0] : tern_jv_text("", 0);
        m->sp = base + 1;
        return true;
    case JV_UNDEFINED:
        return tern_jinja_fail(m, "'%t' is undefined", tern_jv_bytes(v));
    default:
        return tern_jinja_fail(m, "a %s cannot be called", tern_jv_type(v));
    }
}

bool tern_jinja_do_native(machine *m, code_at c)
{
    const struct tern_jinja_row *rows = c->op == JO_FILTER ? tern_jinja_filters : tern_jinja_tests;
    const uint32_t base = m->sp - c->n - 2 * (c->arg >> 24) - 1;
    struct tern_jv *v = &m->stack[base];
    m->given = v + 1;
    m->n_given = c->n;
    m->n_named = c->arg >> 24;
    struct tern_jv result = *v;
    if (!tern_jinja_native_call(m, &rows[c->arg & 0xffffff], &result))
        return false;
    m->stack[base] = result;
    m->sp = base + 1;
    return true;
}

bool tern_jinja_do_macro(machine *m, code_at c)
{
    struct tern_jinja_macro *macro = tern_jinja_make(m, sizeof *macro);
    if (!macro)
        return false;
    *macro = (struct tern_jinja_macro){m->scope, m->pc + 1, c->arg};
    return tern_jinja_push(m, (struct tern_jv){.kind = JV_MACRO, .u.macro = macro});
}

bool tern_jinja_do_arg(machine *m, code_at c)
{
    struct tern_jinja_frame *f = &m->frames[m->n_frames - 1];
    const struct tern_jv *given = m->stack + f->sp + 1, *named = given + f->n_given;
    const uint32_t name = c->arg & 0x7fffffff;
    const tern_text wanted = tern_jv_bytes(m->t->constants[name]);
    if (c->n < f->n_given)
        return tern_jinja_bind(m, m->scope, name, given[c->n]);
    for (uint32_t i = 0; i < f->n_named; i++) {
        if (tern_text_equal(tern_jv_bytes(named[2 * i]), wanted)) {
            f->taken |= 1u << i;
            return tern_jinja_bind(m, m->scope, name, named[2 * i + 1]);
        }
    }
    if (c->arg >> 31) {
        m->pc++;
        return true;
    }
    return tern_jinja_bind(m, m->scope, name,
                           tern_jv_undefined("a parameter that was not given"));
}

static bool bind_special(machine *m, const char *name, struct tern_jv v)
{
    for (uint32_t i = 0; i < m->t->n_constants; i++)
        if (m->t->constants[i].kind == JV_TEXT &&
            tern_text_is(tern_jv_bytes(m->t->constants[i]), name))
            return tern_jinja_bind(m, m->scope, i, v);
    return true;
}

/* What no parameter took goes to varargs, kwargs and caller, if the macro reads them. */
bool tern_jinja_do_args_end(machine *m, code_at c)
{
    const struct tern_jinja_frame *f = &m->frames[m->n_frames - 1];
    const struct tern_jv *given = m->stack + f->sp + 1, *named = given + f->n_given;
    const uint32_t extra = f->n_given > c->n ? f->n_given - c->n : 0;
    struct tern_jv caller = tern_jv_undefined("caller");
    struct tern_jv *pairs = tern_jinja_make(m, 2 * f->n_named * sizeof *pairs);
    uint32_t n = 0;
    if (!pairs)
        return false;
    for (uint32_t i = 0; i < f->n_named; i++) {
        if (f->taken & 1u << i)
            continue;
        if (c->arg & 1 && tern_text_is(tern_jv_bytes(named[2 * i]), "caller")) {
            caller = named[2 * i + 1];
            continue;
        }
        if (!(c->arg & 4))
            return tern_jinja_fail(m, "the macro takes no argument '%t'",
                                   tern_jv_bytes(named[2 * i]));
        pairs[2 * n] = named[2 * i];
        pairs[2 * n++ + 1] = named[2 * i + 1];
    }
    if (extra && !(c->arg & 2))
        return tern_jinja_fail(m, "%u arguments given, the macro takes at most %u",
                               (uint64_t)f->n_given, (uint64_t)c->n);
    if (c->arg & 2) {
        struct tern_jv *rest = tern_jinja_make(m, extra * sizeof *rest);
        if (!rest)
            return false;
        if (extra)
            memcpy(rest, given + c->n, extra * sizeof *rest);
        if (!bind_special(m, "varargs", tern_jv_list(JV_TUPLE, rest, extra)))
            return false;
    }
    return (!(c->arg & 1) || bind_special(m, "caller", caller)) &&
           (!(c->arg & 4) || bind_special(m, "kwargs", tern_jv_list(JV_DICT, pairs, n)));
}

bool tern_jinja_do_return(machine *m, code_at c)
{
    (void)c;
    struct tern_jv v;
    const struct tern_jinja_frame *f = tern_jinja_pop_frame(m);
    m->sp = f->sp;
    m->pc = f->at;
    return tern_jinja_take_output(m, f->n_out, &v) && tern_jinja_push(m, v);
}
