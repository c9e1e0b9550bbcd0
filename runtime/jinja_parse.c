/* jinja_parse.c: statements to code.
 *
 * What a block's head says and only its end needs (filters of a captured text, the call that a
 * block is given to) is compiled where it stands, aside from the way that the code takes:
 *
 *     capture; jump a; aside: filters, store; jump b; a: body; end of capture; jump aside; b:
 */
#include "runtime/jinja_compile.h"
#include "runtime/text.h"

#include <string.h>

enum { MOST_TARGETS = 8 };
typedef struct tern_jinja_compiler compiler;
struct targets { uint32_t n, names[MOST_TARGETS]; bool tuple; };

static bool end_of_tag(compiler *c)
{
    if (c->failed)
        return false;
    return c->token.kind == JT_END || tern_jinja_unexpected(c);
}

static struct tern_jinja_block *push(compiler *c, enum tern_jinja_block_kind kind, bool soft)
{
    if (c->failed)
        return NULL;
    if (c->n_blocks == TERN_JINJA_BLOCKS) {
        tern_jinja_refuse(c, c->token.line, "blocks nested deeper than %u",
                          (uint64_t)TERN_JINJA_BLOCKS);
        return NULL;
    }
    struct tern_jinja_block *b = &c->blocks[c->n_blocks++];
    *b = (struct tern_jinja_block){.kind = (uint8_t)kind, .line = (uint16_t)c->token.line,
                                   .was_soft = c->soft, .ends = TERN_JINJA_NO_JUMP};
    c->soft = soft;
    return b;
}

static const char *block_name(uint32_t kind)
{
    static const char *const names[] = {
        [JB_IF] = "if", [JB_FOR] = "for", [JB_MACRO] = "macro", [JB_CALL] = "call",
        [JB_SET] = "set", [JB_FILTER] = "filter", [JB_WITH] = "with",
        [JB_GENERATION] = "generation",
    };
    return names[kind];
}

/* The innermost block, which must be of this kind for the tag at hand. */
static struct tern_jinja_block *innermost(compiler *c, enum tern_jinja_block_kind kind)
{
    if (c->n_blocks && c->blocks[c->n_blocks - 1].kind == kind)
        return &c->blocks[c->n_blocks - 1];
    if (c->n_blocks)
        tern_jinja_refuse(c, c->token.line, "'%t' inside of '%s' of line %u", c->token.text,
                          block_name(c->blocks[c->n_blocks - 1].kind),
                          (uint64_t)c->blocks[c->n_blocks - 1].line);
    else
        tern_jinja_refuse(c, c->token.line, "'%t' without its beginning", c->token.text);
    return NULL;
}

static void pop(compiler *c)
{
    c->soft = c->blocks[--c->n_blocks].was_soft;
}

static void jump_back(compiler *c, uint32_t to)
{
    tern_jinja_emit(c, JO_JUMP, 0, to - c->n_code);
}

static uint32_t name_of(compiler *c)
{
    if (c->token.kind != JT_NAME) {
        tern_jinja_unexpected(c);
        return 0;
    }
    return tern_jinja_text_constant(c, c->token.text);
}

/* --- targets --- */

static bool read_targets(compiler *c, struct targets *t)
{
    const bool bracket = tern_jinja_at(c, '(');
    *t = (struct targets){.tuple = bracket};
    if (bracket && !tern_jinja_next(c))
        return false;
    for (;;) {
        if (t->n == MOST_TARGETS)
            return tern_jinja_refuse(c, c->token.line, "more than %u names",
                                     (uint64_t)MOST_TARGETS);
        t->names[t->n++] = name_of(c);
        if (c->failed || !tern_jinja_next(c))
            return false;
        if (!tern_jinja_at(c, ','))
            break;
        t->tuple = true;
        if (!tern_jinja_next(c))
            return false;
    }
    return !bracket || tern_jinja_expect(c, ')', ")");
}

static void store(compiler *c, const struct targets *t)
{
    if (t->tuple)
        tern_jinja_emit(c, JO_UNPACK, t->n, 0);
    for (uint32_t i = 0; i < t->n; i++)
        tern_jinja_emit(c, JO_STORE, 0, t->names[i]);
}

/* --- if --- */

static void do_if(compiler *c)
{
    struct tern_jinja_block *b = push(c, JB_IF, true);
    if (!b || !tern_jinja_next(c) || !tern_jinja_expression(c, TERN_JINJA_NO_IF) ||
        !end_of_tag(c))
        return;
    b->test = tern_jinja_emit(c, JO_JUMP_FALSE, 0, 0);
}

/* The branch before ends here. */
static bool next_branch(compiler *c, struct tern_jinja_block *b)
{
    if (b->has_else)
        return tern_jinja_refuse(c, c->token.line, "'%t' after else", c->token.text);
    b->ends = tern_jinja_emit(c, JO_JUMP, 0, b->ends);
    tern_jinja_patch(c, b->test);
    return true;
}

static void do_elif(compiler *c)
{
    struct tern_jinja_block *b = innermost(c, JB_IF);
    if (!b || !next_branch(c, b) || !tern_jinja_next(c) ||
        !tern_jinja_expression(c, TERN_JINJA_NO_IF) || !end_of_tag(c))
        return;
    b->test = tern_jinja_emit(c, JO_JUMP_FALSE, 0, 0);
}

static void do_else(compiler *c)
{
    const bool loop = c->n_blocks && c->blocks[c->n_blocks - 1].kind == JB_FOR;
    struct tern_jinja_block *b = innermost(c, loop ? JB_FOR : JB_IF);
    if (!b)
        return;
    if (loop && !b->has_else) {
        jump_back(c, b->test);
        tern_jinja_patch(c, b->ends);
        c->soft = b->was_soft;
    } else if (!next_branch(c, b)) {
        return;
    }
    b->has_else = true;
    if (tern_jinja_next(c))
        end_of_tag(c);
}

static void do_endif(compiler *c)
{
    struct tern_jinja_block *b = innermost(c, JB_IF);
    if (!b || !tern_jinja_next(c) || !end_of_tag(c))
        return;
    if (!b->has_else)
        tern_jinja_patch(c, b->test);
    tern_jinja_patch_all(c, b->ends);
    pop(c);
}

/* --- for --- */

/* The condition of a loop: its items are picked first, then gone through. */
static bool pick(compiler *c, const struct targets *t)
{
    tern_jinja_emit(c, JO_PICK, 0, 0);
    const uint32_t next = tern_jinja_emit(c, JO_PICK_NEXT, 0, 0);
    store(c, t);
    if (!tern_jinja_next(c) || !tern_jinja_expression(c, 0))
        return false;
    tern_jinja_emit(c, JO_KEEP, 0, 0);
    jump_back(c, next);
    tern_jinja_patch(c, next);
    return true;
}

static void do_for(compiler *c)
{
    struct targets t;
    if (!tern_jinja_next(c) || !read_targets(c, &t))
        return;
    if (!tern_jinja_at_name(c, "in")) {
        tern_jinja_refuse(c, c->token.line, "'in' is missing");
        return;
    }
    if (!tern_jinja_next(c) ||
        !tern_jinja_expression(c, TERN_JINJA_TUPLE | TERN_JINJA_NO_IF) ||
        (tern_jinja_at_name(c, "if") && !pick(c, &t)) || !end_of_tag(c))
        return;
    struct tern_jinja_block *b = push(c, JB_FOR, false);
    if (!b)
        return;
    b->ends = tern_jinja_emit(c, JO_FOR, 0, 0);
    b->test = tern_jinja_emit(c, JO_NEXT, 0, 0);
    store(c, &t);
}

static void do_endfor(compiler *c)
{
    struct tern_jinja_block *b = innermost(c, JB_FOR);
    if (!b || !tern_jinja_next(c) || !end_of_tag(c))
        return;
    if (!b->has_else) {
        jump_back(c, b->test);
        tern_jinja_patch(c, b->ends);
    }
    tern_jinja_patch(c, b->test);
    pop(c);
}

static void leave(compiler *c, enum tern_jinja_op op)
{
    uint32_t i = c->n_blocks;
    while (i > 0 && (c->blocks[i - 1].kind != JB_FOR || c->blocks[i - 1].has_else) &&
           c->blocks[i - 1].kind != JB_MACRO && c->blocks[i - 1].kind != JB_CALL)
        i--;
    if (i == 0 || c->blocks[i - 1].kind != JB_FOR)
        tern_jinja_refuse(c, c->token.line, "'%t' outside of a loop", c->token.text);
    else if (tern_jinja_next(c) && end_of_tag(c))
        tern_jinja_emit(c, op, 0, 0);
}

static void do_break(compiler *c)
{
    leave(c, JO_BREAK);
}

static void do_continue(compiler *c)
{
    leave(c, JO_CONTINUE);
}

/* --- set, filter --- */

/* A block whose output becomes a value; what is done with it is written by `aside`. */
static struct tern_jinja_block *begin_aside(compiler *c, enum tern_jinja_block_kind kind,
                                            uint32_t *jump)
{
    struct tern_jinja_block *b = push(c, kind, false);
    if (!b)
        return NULL;
    tern_jinja_emit(c, JO_CAPTURE, 0, 0);
    *jump = tern_jinja_emit(c, JO_JUMP, 0, 0);
    b->ends = c->n_code;
    return b;
}

static void end_aside(compiler *c, struct tern_jinja_block *b, uint32_t jump)
{
    b->test = tern_jinja_emit(c, JO_JUMP, 0, 0);
    tern_jinja_patch(c, jump);
}

static void do_set(compiler *c)
{
    struct targets t;
    uint32_t space = TERN_JINJA_NO_JUMP, jump = 0;
    if (!tern_jinja_next(c) || !read_targets(c, &t))
        return;
    if (tern_jinja_at(c, '.') && !t.tuple) {
        space = t.names[0];
        if (!tern_jinja_next(c))
            return;
        t.names[0] = name_of(c);
        if (c->failed || !tern_jinja_next(c))
            return;
    }
    struct tern_jinja_block *b = NULL;
    if (tern_jinja_at(c, '=')) {
        if (!tern_jinja_next(c) || !tern_jinja_expression(c, TERN_JINJA_TUPLE))
            return;
    } else {
        b = begin_aside(c, JB_SET, &jump);
        if (!b || (tern_jinja_at(c, '|') && (!tern_jinja_next(c) ||
                                             !tern_jinja_expression(c, TERN_JINJA_FILTERS))))
            return;
    }
    if (!end_of_tag(c))
        return;
    if (space != TERN_JINJA_NO_JUMP) {
        tern_jinja_emit(c, JO_NAME, 0, space);
        tern_jinja_emit(c, JO_SET_ATTR, 0, t.names[0]);
    } else {
        store(c, &t);
    }
    if (b)
        end_aside(c, b, jump);
}

static void do_filter(compiler *c)
{
    uint32_t jump;
    struct tern_jinja_block *b = begin_aside(c, JB_FILTER, &jump);
    if (!b || !tern_jinja_next(c) || !tern_jinja_expression(c, TERN_JINJA_FILTERS) ||
        !end_of_tag(c))
        return;
    tern_jinja_emit(c, JO_PRINT, 0, 0);
    end_aside(c, b, jump);
}

static void end_capture(compiler *c, enum tern_jinja_block_kind kind)
{
    struct tern_jinja_block *b = innermost(c, kind);
    if (!b || !tern_jinja_next(c) || !end_of_tag(c))
        return;
    tern_jinja_emit(c, JO_END_CAPTURE, 0, 0);
    jump_back(c, b->ends);
    tern_jinja_patch(c, b->test);
    pop(c);
}

static void do_endset(compiler *c)
{
    end_capture(c, JB_SET);
}

static void do_endfilter(compiler *c)
{
    end_capture(c, JB_FILTER);
}

/* --- macro, call --- */

/* Parameters in their brackets, as code that a call begins with. */
static bool parameters(compiler *c)
{
    uint32_t n = 0;
    if (!tern_jinja_expect(c, '(', "("))
        return false;
    while (!tern_jinja_at(c, ')')) {
        if (n && !tern_jinja_expect(c, ',', ","))
            return false;
        if (tern_jinja_at(c, ')'))
            break;
        const uint32_t name = name_of(c);
        if (c->failed || !tern_jinja_next(c))
            return false;
        const bool has_default = tern_jinja_at(c, '=');
        tern_jinja_emit(c, JO_ARG, n++, name | (uint32_t)has_default << 31);
        if (!has_default)
            continue;
        const uint32_t given = tern_jinja_emit(c, JO_JUMP, 0, 0);
        if (!tern_jinja_next(c) || !tern_jinja_expression(c, 0))
            return false;
        tern_jinja_emit(c, JO_STORE, 0, name);
        tern_jinja_patch(c, given);
    }
    return tern_jinja_next(c) && (tern_jinja_emit(c, JO_ARGS_END, n, 0), !c->failed);
}

static void do_macro(compiler *c)
{
    if (!tern_jinja_next(c))
        return;
    const uint32_t name = name_of(c);
    struct tern_jinja_block *b = push(c, JB_MACRO, false);
    if (!b)
        return;
    tern_jinja_emit(c, JO_MACRO, 0, name);
    b->name = name;
    b->test = tern_jinja_emit(c, JO_JUMP, 0, 0);
    if (tern_jinja_next(c) && parameters(c))
        end_of_tag(c);
}

/* Which of the special names the body reads: what else is given to it is an error. */
static void mark_special(compiler *c, uint32_t from)
{
    static const char *const special[] = {"caller", "varargs", "kwargs"};
    uint32_t end = from, names[3], uses = 0;
    for (uint32_t k = 0; k < 3; k++)
        names[k] = tern_jinja_text_constant(c, tern_text_of(special[k]));
    if (c->failed)
        return;
    while (c->code[end].op != JO_ARGS_END)
        end++;
    for (uint32_t i = end; i < c->n_code; i++)
        for (uint32_t k = 0; k < 3; k++)
            uses |= (uint32_t)(c->code[i].op == JO_NAME && c->code[i].arg == names[k]) << k;
    c->code[end].arg = uses;
}

static void do_endmacro(compiler *c)
{
    struct tern_jinja_block *b = innermost(c, JB_MACRO);
    if (!b || !tern_jinja_next(c) || (c->token.kind == JT_NAME && !tern_jinja_next(c)) ||
        !end_of_tag(c))
        return;
    tern_jinja_emit(c, JO_RETURN, 0, 0);
    mark_special(c, b->test);
    tern_jinja_patch(c, b->test);
    tern_jinja_emit(c, JO_STORE, 0, b->name);
    pop(c);
}

static void do_call(compiler *c)
{
    if (!tern_jinja_next(c))
        return;
    /* No template can spell a name with a space. */
    const uint32_t hidden = tern_jinja_text_constant(c, tern_text_of("caller block"));
    const uint32_t caller = tern_jinja_text_constant(c, tern_text_of("caller"));
    struct tern_jinja_block *b = push(c, JB_CALL, false);
    if (!b)
        return;
    tern_jinja_emit(c, JO_MACRO, 0, caller);
    const uint32_t head = tern_jinja_emit(c, JO_JUMP, 0, 0);
    if (tern_jinja_at(c, '(')) {
        if (!parameters(c))
            return;
    } else {
        tern_jinja_emit(c, JO_ARGS_END, 0, 0);
    }
    const uint32_t body = tern_jinja_emit(c, JO_JUMP, 0, 0);
    tern_jinja_patch(c, head);
    tern_jinja_emit(c, JO_STORE, 0, hidden);
    if (!tern_jinja_expression(c, 0) || !end_of_tag(c))
        return;
    const struct tern_jinja_code call = c->code[c->n_code - 1];
    if (call.op != JO_CALL) {
        tern_jinja_refuse(c, c->token.line, "call: something that is called is missing");
        return;
    }
    c->n_code--;
    tern_jinja_emit(c, JO_CONST, 0, caller);
    tern_jinja_emit(c, JO_NAME, 0, hidden);
    tern_jinja_emit(c, JO_CALL, call.n, call.arg + (1u << 24));
    tern_jinja_emit(c, JO_PRINT, 0, 0);
    b->test = tern_jinja_emit(c, JO_JUMP, 0, 0);
    tern_jinja_patch(c, body);
}

static void do_endcall(compiler *c)
{
    struct tern_jinja_block *b = innermost(c, JB_CALL);
    if (!b || !tern_jinja_next(c) || !end_of_tag(c))
        return;
    tern_jinja_emit(c, JO_RETURN, 0, 0);
    tern_jinja_patch(c, b->test);
    pop(c);
}

/* --- with, generation --- */

static void do_with(compiler *c)
{
    struct targets t = {0};
    if (!tern_jinja_next(c))
        return;
    while (c->token.kind != JT_END) {
        if ((t.n && !tern_jinja_expect(c, ',', ",")) || t.n == MOST_TARGETS)
            return;
        t.names[t.n] = name_of(c);
        t.n++;
        if (c->failed || !tern_jinja_next(c) || !tern_jinja_expect(c, '=', "=") ||
            !tern_jinja_expression(c, 0))
            return;
    }
    if (!push(c, JB_WITH, false))
        return;
    tern_jinja_emit(c, JO_SCOPE, 0, 0);
    while (t.n > 0)
        tern_jinja_emit(c, JO_STORE, 0, t.names[--t.n]);
}

static void do_generation(compiler *c)
{
    if (push(c, JB_GENERATION, false) && tern_jinja_next(c) && end_of_tag(c))
        tern_jinja_emit(c, JO_SCOPE, 0, 0);
}

static void end_scope(compiler *c, enum tern_jinja_block_kind kind)
{
    if (!innermost(c, kind) || !tern_jinja_next(c) || !end_of_tag(c))
        return;
    tern_jinja_emit(c, JO_END_SCOPE, 0, 0);
    pop(c);
}

static void do_endwith(compiler *c)
{
    end_scope(c, JB_WITH);
}

static void do_endgeneration(compiler *c)
{
    end_scope(c, JB_GENERATION);
}

/* --- the whole --- */

static const struct { const char *name; void (*run)(compiler *c); } statements[] = {
    {"if", do_if}, {"elif", do_elif}, {"else", do_else}, {"endif", do_endif}, {"for", do_for},
    {"endfor", do_endfor}, {"break", do_break}, {"continue", do_continue}, {"set", do_set},
    {"endset", do_endset}, {"macro", do_macro}, {"endmacro", do_endmacro}, {"call", do_call},
    {"endcall", do_endcall}, {"filter", do_filter}, {"endfilter", do_endfilter},
    {"with", do_with}, {"endwith", do_endwith}, {"generation", do_generation},
    {"endgeneration", do_endgeneration},
};

static void statement(compiler *c)
{
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (tern_jinja_at_name(c, statements[i].name)) {
            statements[i].run(c);
            return;
        }
    }
    if (c->token.kind == JT_NAME)
        tern_jinja_refuse(c, c->token.line, "there is no tag '%t'", c->token.text);
    else
        tern_jinja_unexpected(c);
}

void tern_jinja_parse(compiler *c)
{
    for (;;) {
        const enum tern_jinja_tag tag = tern_jinja_data(c);
        if (tag == JG_DONE || tag == JG_BAD || c->failed)
            break;
        if (tag == JG_BLOCK)
            statement(c);
        else if (tern_jinja_expression(c, TERN_JINJA_TUPLE) && end_of_tag(c))
            tern_jinja_emit(c, JO_PRINT, 0, 0);
        if (c->failed)
            break;
    }
    if (!c->failed && c->n_blocks)
        tern_jinja_refuse(c, c->blocks[c->n_blocks - 1].line, "'%s' has no end",
                          block_name(c->blocks[c->n_blocks - 1].kind));
    tern_jinja_emit(c, JO_END, 0, 0);
}
