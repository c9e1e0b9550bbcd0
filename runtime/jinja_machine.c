/* jinja_machine.c: runs a template's code.
 *
 * Everything that is open (loops, calls, captured output) has a frame; names live in scopes,
 * which outlive their frames, as a macro keeps the one that it was made in. Output is written to
 * one buffer; what a macro or a set block writes is taken off its end when it is complete. */
#include "runtime/error.h"
#include "runtime/jinja.h"
#include "runtime/text.h"

#include <string.h>

typedef struct tern_jinja machine;
typedef const struct tern_jinja_code *code_at;

bool tern_jinja_fail(machine *m, const char *format, ...)
{
    char reason[200];
    va_list args;
    va_start(args, format);
    tern_write_line(reason, sizeof reason, format, args);
    va_end(args);
    const uint32_t line = m->pc ? m->t->code[m->pc - 1].line : 0;
    if (!m->failed && line)
        tern_fail(&m->error, TERN_BAD_MODEL, "template line %u: %s", (uint64_t)line, reason);
    else if (!m->failed)
        tern_fail(&m->error, TERN_BAD_ARGUMENT, "template: %s", reason);
    m->failed = true;
    return false;
}

bool tern_jinja_charge(machine *m, uint64_t steps)
{
    if (steps <= m->steps) {
        m->steps -= steps;
        return true;
    }
    m->steps = 0;
    return tern_jinja_fail(m, "more steps than the limit");
}

static bool out_of(machine *m, const char *what, uint64_t most)
{
    if (!m->failed)
        m->error.status = TERN_OK;
    const uint32_t line = m->pc ? m->t->code[m->pc - 1].line : 0;
    if (!m->failed)
        tern_fail(&m->error, TERN_NO_MEMORY, "template line %u: more than %u %s", (uint64_t)line,
                  most, what);
    m->failed = true;
    return false;
}

void *tern_jinja_make(machine *m, size_t bytes)
{
    const size_t n = (bytes + sizeof(struct tern_jv) - 1) / sizeof(struct tern_jv);
    if (n > m->heap - m->sp) {
        out_of(m, "bytes of values", m->n_values * sizeof(struct tern_jv));
        return NULL;
    }
    if (!tern_jinja_charge(m, n / 8))
        return NULL;
    m->heap -= n;
    return m->stack + m->heap;
}

bool tern_jinja_push(machine *m, struct tern_jv v)
{
    if (m->sp == m->heap)
        return out_of(m, "bytes of values", m->n_values * sizeof v);
    m->stack[m->sp++] = v;
    return true;
}

static struct tern_jv pop(machine *m)
{
    return m->stack[--m->sp];
}

bool tern_jinja_output(machine *m, const char *s, size_t n)
{
    if (n > m->cap_out - m->n_out)
        return out_of(m, "bytes of output", m->cap_out);
    if (!tern_jinja_charge(m, n / 16))
        return false;
    if (n)
        memcpy(m->out + m->n_out, s, n);
    if (tern_jinja_owns(m, s) || n == 0)
        memset(m->out_own + m->n_out, 1, n);
    else
        memcpy(m->out_own + m->n_out, m->text_own + (s - m->text), n);
    m->n_out += n;
    return true;
}

/* The output from `from` on becomes a text. */
bool tern_jinja_take_output(machine *m, size_t from, struct tern_jv *out)
{
    const size_t n = m->n_out - from, begin = m->n_text;
    if (!tern_jinja_fill(m, m->out + from, n, false))
        return false;
    memcpy(m->text_own + begin, m->out_own + from, n);
    m->n_out = from;
    *out = tern_jinja_take(m, begin);
    return true;
}

/* --- names --- */

struct tern_jinja_scope *tern_jinja_new_scope(machine *m, struct tern_jinja_scope *up)
{
    struct tern_jinja_scope *s = tern_jinja_make(m, sizeof *s);
    if (s)
        *s = (struct tern_jinja_scope){up, NULL};
    return s;
}

bool tern_jinja_bind(machine *m, struct tern_jinja_scope *s, uint32_t name, struct tern_jv v)
{
    struct tern_jinja_bound *b = s->first;
    while (b && b->name != name)
        b = b->next;
    if (!b) {
        b = m->spare;
        if (b)
            m->spare = b->next;
        else
            b = tern_jinja_make(m, sizeof *b);
        if (!b)
            return false;
        *b = (struct tern_jinja_bound){s->first, name, v};
        s->first = b;
    }
    b->v = v;
    return true;
}

static bool do_name(machine *m, code_at c)
{
    for (const struct tern_jinja_scope *s = m->scope; s; s = s->up)
        for (const struct tern_jinja_bound *b = s->first; b; b = b->next)
            if (b->name == c->arg)
                return tern_jinja_push(m, b->v);
    struct tern_jv v = m->t->constants[c->arg];
    v.kind = JV_UNDEFINED;
    return tern_jinja_push(m, v);
}

static bool do_store(machine *m, code_at c)
{
    return tern_jinja_bind(m, m->scope, c->arg, pop(m));
}

static bool do_set_attr(machine *m, code_at c)
{
    const struct tern_jv space = pop(m), v = pop(m), key = m->t->constants[c->arg];
    if (space.kind != JV_NAMESPACE)
        return tern_jinja_fail(m, "an attribute of %s is set, only a namespace's can be",
                               tern_jv_type(space));
    struct tern_jinja_list *l = space.u.list;
    const struct tern_jv *old = tern_jinja_find(m, l->items, l->n, key);
    if (m->failed)
        return false;
    if (old) {
        l->items[old - l->items] = v;
        return true;
    }
    if (l->n == l->cap) {
        const uint32_t cap = l->cap ? 2 * l->cap : 4;
        struct tern_jv *more = tern_jinja_make(m, 2 * cap * sizeof *more);
        if (!more)
            return false;
        if (l->n)
            memcpy(more, l->items, 2 * l->n * sizeof *more);
        l->items = more;
        l->cap = cap;
    }
    l->items[2 * l->n] = key;
    l->items[2 * l->n + 1] = v;
    l->n++;
    return true;
}

static bool do_unpack(machine *m, code_at c)
{
    const struct tern_jv *items;
    uint32_t n;
    if (!tern_jinja_items(m, pop(m), &items, &n))
        return false;
    if (n != c->n)
        return tern_jinja_fail(m, "%u values to unpack, %u names", (uint64_t)n, (uint64_t)c->n);
    for (uint32_t i = n; i > 0; i--)
        if (!tern_jinja_push(m, items[i - 1]))
            return false;
    return true;
}

/* --- plain instructions --- */

static bool do_text(machine *m, code_at c)
{
    const struct tern_jv v = m->t->constants[c->arg];
    return tern_jinja_output(m, v.u.s, v.n);
}

static bool do_print(machine *m, code_at c)
{
    (void)c;
    const struct tern_jv v = pop(m);
    if (v.kind == JV_TEXT)
        return tern_jinja_output(m, v.u.s, v.n);
    const size_t begin = m->n_text;
    const bool ok = tern_jinja_show(m, v) &&
                    tern_jinja_output(m, m->text + begin, m->n_text - begin);
    m->n_text = begin;
    return ok;
}

static bool do_const(machine *m, code_at c)
{
    return tern_jinja_push(m, m->t->constants[c->arg]);
}

static bool do_attr(machine *m, code_at c)
{
    return tern_jinja_attr(m, &m->stack[m->sp - 1], m->t->constants[c->arg]);
}

static bool do_item(machine *m, code_at c)
{
    (void)c;
    const struct tern_jv key = pop(m);
    return tern_jinja_item(m, &m->stack[m->sp - 1], key);
}

static bool do_slice(machine *m, code_at c)
{
    (void)c;
    m->sp -= 3;
    return tern_jinja_slice(m, &m->stack[m->sp - 1], &m->stack[m->sp]);
}

static bool do_list(machine *m, code_at c)
{
    struct tern_jv *items = tern_jinja_make(m, c->arg * sizeof *items);
    if (!items)
        return false;
    m->sp -= c->arg;
    if (c->arg)
        memcpy(items, m->stack + m->sp, c->arg * sizeof *items);
    const enum tern_jv_kind kind = c->op == JO_TUPLE ? JV_TUPLE : JV_LIST;
    return tern_jinja_push(m, tern_jv_list(kind, items, c->arg));
}

static bool do_dict(machine *m, code_at c)
{
    uint32_t n = 0;
    struct tern_jv *pairs = tern_jinja_make(m, 2 * c->arg * sizeof *pairs);
    if (!pairs)
        return false;
    m->sp -= 2 * c->arg;
    for (uint32_t i = 0; i < c->arg; i++) {
        const struct tern_jv *pair = &m->stack[m->sp + 2 * i];
        if (pair->kind == JV_LIST || pair->kind == JV_DICT)
            return tern_jinja_fail(m, "a %s is no key", tern_jv_type(*pair));
        const struct tern_jv *old = tern_jinja_find(m, pairs, n, pair[0]);
        if (m->failed)
            return false;
        if (!old)
            pairs[2 * n++] = pair[0];
        pairs[old ? old - pairs : 2 * (ptrdiff_t)n - 1] = pair[1];
    }
    return tern_jinja_push(m, tern_jv_list(JV_DICT, pairs, n));
}

static bool do_not(machine *m, code_at c)
{
    (void)c;
    const bool truth = tern_jv_truth(m->stack[m->sp - 1]);
    m->stack[m->sp - 1] = tern_jv_bool(!truth);
    return true;
}

static bool do_sign(machine *m, code_at c)
{
    return tern_jinja_sign(m, c->op, &m->stack[m->sp - 1]);
}

static bool do_binary(machine *m, code_at c)
{
    const struct tern_jv b = pop(m);
    return tern_jinja_binary(m, c->op, m->stack[m->sp - 1], b, &m->stack[m->sp - 1]);
}

static bool do_concat(machine *m, code_at c)
{
    struct tern_jv *v = &m->stack[m->sp - c->arg], all = v[0];
    if (!tern_jinja_to_text(m, &all))
        return false;
    all.flags = 0;
    for (uint32_t i = 1; i < c->arg; i++) {
        struct tern_jv next = v[i];
        if (!tern_jinja_to_text(m, &next) || !tern_jinja_join_two(m, all, next, &all))
            return false;
    }
    m->sp -= c->arg;
    return tern_jinja_push(m, all);
}

static bool do_compare(machine *m, code_at c)
{
    bool holds;
    const struct tern_jv b = pop(m);
    if (!tern_jinja_compare(m, c->op, m->stack[m->sp - 1], b, &holds))
        return false;
    m->stack[m->sp - 1] = tern_jv_bool(holds);
    return true;
}

/* --- jumps --- */

static bool jump(machine *m, code_at c)
{
    m->pc = m->pc - 1 + c->arg;
    return true;
}

/* a op b, and then the next comparison is of b. */
static bool do_chain(machine *m, code_at c)
{
    bool holds;
    const struct tern_jv b = pop(m), a = pop(m);
    if (!tern_jinja_compare(m, c->n, a, b, &holds))
        return false;
    return tern_jinja_push(m, holds ? b : tern_jv_bool(false)) && (holds || jump(m, c));
}

static bool do_jump_false(machine *m, code_at c)
{
    return tern_jv_truth(pop(m)) || jump(m, c);
}

static bool do_and_or(machine *m, code_at c)
{
    if (tern_jv_truth(m->stack[m->sp - 1]) == (c->op == JO_OR))
        return jump(m, c);
    m->sp--;
    return true;
}

static bool do_no_else(machine *m, code_at c)
{
    (void)c;
    return tern_jinja_push(m, tern_jv_undefined("the inline if without an else"));
}

static bool do_unknown(machine *m, code_at c)
{
    return tern_jinja_fail(m, "there is no %s '%t'", c->n ? "test" : "filter",
                           tern_jv_bytes(m->t->constants[c->arg]));
}

/* --- frames --- */

struct tern_jinja_frame *tern_jinja_push_frame(machine *m, enum tern_jinja_frame_kind kind)
{
    if (m->n_frames == m->cap_frames) {
        out_of(m, "calls and loops in one another", m->cap_frames);
        return NULL;
    }
    struct tern_jinja_frame *f = &m->frames[m->n_frames++];
    *f = (struct tern_jinja_frame){.kind = (uint8_t)kind, .at = m->pc, .sp = m->sp,
                                   .n_out = m->n_out, .scope = m->scope};
    return f;
}

struct tern_jinja_frame *tern_jinja_pop_frame(machine *m)
{
    struct tern_jinja_frame *f = &m->frames[--m->n_frames];
    m->scope = f->scope;
    return f;
}

static bool begin_loop(machine *m, enum tern_jinja_frame_kind kind, code_at c)
{
    struct tern_jinja_loop *loop = tern_jinja_make(m, sizeof *loop);
    if (!loop)
        return false;
    *loop = (struct tern_jinja_loop){.at = UINT32_MAX};
    if (!tern_jinja_items(m, pop(m), &loop->items, &loop->n))
        return false;
    if (kind == JF_LOOP && loop->n == 0)
        return jump(m, c);
    struct tern_jinja_frame *f = tern_jinja_push_frame(m, kind);
    loop->scope = f ? tern_jinja_new_scope(m, m->scope) : NULL;
    if (!loop->scope)
        return false;
    f->loop = loop;
    return true;
}

static bool do_for(machine *m, code_at c)
{
    return begin_loop(m, JF_LOOP, c);
}

static bool do_pick(machine *m, code_at c)
{
    return begin_loop(m, JF_PICK, c);
}

static bool next_item(machine *m, struct tern_jinja_loop *loop)
{
    struct tern_jinja_scope *s = loop->scope;
    while (s->first) {
        struct tern_jinja_bound *b = s->first;
        s->first = b->next;
        b->next = m->spare;
        m->spare = b;
    }
    m->scope = s;
    return tern_jinja_push(m, loop->items[loop->at]);
}

static bool do_next(machine *m, code_at c)
{
    struct tern_jinja_loop *loop = m->frames[m->n_frames - 1].loop;
    if (++loop->at >= loop->n) {
        tern_jinja_pop_frame(m);
        return jump(m, c);
    }
    const struct tern_jv v = {.kind = JV_LOOP, .u.loop = loop};
    return next_item(m, loop) &&
           (m->loop_name == UINT32_MAX || tern_jinja_bind(m, m->scope, m->loop_name, v));
}

static bool do_pick_next(machine *m, code_at c)
{
    struct tern_jinja_frame *f = &m->frames[m->n_frames - 1];
    if (++f->loop->at < f->loop->n)
        return next_item(m, f->loop);
    tern_jinja_pop_frame(m);
    const struct tern_jinja_code list = {.op = JO_LIST, .arg = m->sp - f->sp};
    return do_list(m, &list) && jump(m, c);
}

static bool do_keep(machine *m, code_at c)
{
    (void)c;
    const struct tern_jinja_loop *loop = m->frames[m->n_frames - 1].loop;
    return !tern_jv_truth(pop(m)) || tern_jinja_push(m, loop->items[loop->at]);
}

static bool do_leave(machine *m, code_at c)
{
    struct tern_jinja_frame *f = &m->frames[m->n_frames - 1];
    while (f->kind != JF_LOOP) {
        m->n_out = f->n_out;
        tern_jinja_pop_frame(m);
        f--;
    }
    m->sp = f->sp;
    m->pc = f->at;
    if (c->op == JO_BREAK) {
        tern_jinja_pop_frame(m);
        m->pc += m->t->code[f->at].arg;
    }
    return true;
}

static bool do_scope(machine *m, code_at c)
{
    const bool begins = c->op == JO_SCOPE;
    struct tern_jinja_scope *s = begins ? tern_jinja_new_scope(m, m->scope) : m->scope->up;
    m->scope = s ? s : m->scope;
    return s != NULL;
}

static bool do_capture(machine *m, code_at c)
{
    (void)c;
    struct tern_jinja_scope *s = NULL;
    if (tern_jinja_push_frame(m, JF_CAPTURE))
        s = tern_jinja_new_scope(m, m->scope);
    m->scope = s ? s : m->scope;
    return s != NULL;
}

static bool do_end_capture(machine *m, code_at c)
{
    (void)c;
    struct tern_jv v;
    return tern_jinja_take_output(m, tern_jinja_pop_frame(m)->n_out, &v) && tern_jinja_push(m, v);
}

void tern_jinja_run(machine *m)
{
    static bool (*const run[])(machine *, code_at) = {
        [JO_TEXT] = do_text, [JO_PRINT] = do_print, [JO_CONST] = do_const, [JO_NAME] = do_name,
        [JO_STORE] = do_store, [JO_SET_ATTR] = do_set_attr, [JO_UNPACK] = do_unpack,
        [JO_ATTR] = do_attr, [JO_ITEM] = do_item, [JO_SLICE] = do_slice, [JO_LIST] = do_list,
        [JO_TUPLE] = do_list, [JO_DICT] = do_dict, [JO_NOT] = do_not, [JO_NEG] = do_sign,
        [JO_POS] = do_sign, [JO_ADD] = do_binary, [JO_SUB] = do_binary, [JO_MUL] = do_binary,
        [JO_DIV] = do_binary, [JO_FLOORDIV] = do_binary, [JO_MOD] = do_binary,
        [JO_POW] = do_binary, [JO_CONCAT] = do_concat, [JO_EQ] = do_compare,
        [JO_NE] = do_compare, [JO_LT] = do_compare, [JO_LE] = do_compare, [JO_GT] = do_compare,
        [JO_GE] = do_compare, [JO_IN] = do_compare, [JO_NOT_IN] = do_compare,
        [JO_CHAIN] = do_chain, [JO_JUMP] = jump, [JO_JUMP_FALSE] = do_jump_false,
        [JO_AND] = do_and_or, [JO_OR] = do_and_or, [JO_CALL] = tern_jinja_do_call,
        [JO_FILTER] = tern_jinja_do_native, [JO_TEST] = tern_jinja_do_native,
        [JO_NO_ELSE] = do_no_else, [JO_UNKNOWN] = do_unknown,
        [JO_FOR] = do_for, [JO_NEXT] = do_next, [JO_BREAK] = do_leave, [JO_CONTINUE] = do_leave,
        [JO_PICK] = do_pick, [JO_PICK_NEXT] = do_pick_next, [JO_KEEP] = do_keep,
        [JO_SCOPE] = do_scope, [JO_END_SCOPE] = do_scope, [JO_CAPTURE] = do_capture,
        [JO_END_CAPTURE] = do_end_capture, [JO_MACRO] = tern_jinja_do_macro,
        [JO_ARG] = tern_jinja_do_arg, [JO_ARGS_END] = tern_jinja_do_args_end,
        [JO_RETURN] = tern_jinja_do_return,
    };
    for (;;) {
        code_at c = &m->t->code[m->pc++];
        if (c->op == JO_END || !tern_jinja_charge(m, 1) || !run[c->op](m, c))
            return;
    }
}
