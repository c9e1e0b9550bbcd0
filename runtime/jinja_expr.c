/* jinja_expr.c: expressions to code.
 *
 * Operators wait on a stack until one of lower precedence, or the end of their bracket, says that
 * their right side is complete; then their instruction is written. So code comes out in the order
 * in which a stack machine wants it, and brackets cost an entry and no recursion. Levels, from
 * loose to tight: or, and, not, comparisons, + -, ~, products, powers, signs. Filters and tests
 * take all of a signed operand, attributes and calls only what the sign stands before, as in Jinja.
 *
 * An inline if says its value first and its condition second, but the condition has to run first:
 * when its else (or end) is seen, the two pieces of code change places. */
#include "runtime/jinja_compile.h"
#include "runtime/text.h"

#include <string.h>

enum {
    LEVEL_OR = 1, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_ADD, LEVEL_CONCAT, LEVEL_MUL,
    LEVEL_POW, LEVEL_SIGN,
};

typedef struct tern_jinja_compiler compiler;

static struct tern_jinja_open *top(compiler *c)
{
    return &c->open[c->n_open - 1];
}

static bool refuse_here(compiler *c, const char *why)
{
    return tern_jinja_refuse(c, c->token.line, "%s", why);
}

static bool push(compiler *c, enum tern_jinja_open_kind kind, uint32_t level)
{
    if (c->n_open == TERN_JINJA_OPEN)
        return tern_jinja_refuse(c, c->token.line, "an expression nested deeper than %u",
                                 (uint64_t)TERN_JINJA_OPEN);
    c->open[c->n_open++] = (struct tern_jinja_open){
        .kind = (uint8_t)kind, .level = (uint8_t)level, .fresh = true, .start = c->n_code,
        .line = (uint16_t)c->token.line, .mid = TERN_JINJA_NO_JUMP,
    };
    return true;
}

static void emit_call(compiler *c, enum tern_jinja_op op, const struct tern_jinja_open *o)
{
    if (o->n_named > 32)
        refuse_here(c, "a call with more than 32 named arguments");
    tern_jinja_emit(c, op, o->n, o->id | o->n_named << 24);
}

static void emit_test(compiler *c, const struct tern_jinja_open *o)
{
    emit_call(c, o->op, o);
    if (o->negated)
        tern_jinja_emit(c, JO_NOT, 0, 0);
    c->filtered = c->n_code;
}

/* Writes the operator on top, whose right side is complete. */
static void finish_operator(compiler *c)
{
    const struct tern_jinja_open o = *top(c);
    c->n_open--;
    switch (o.kind) {
    case JX_AND: case JX_OR:
        tern_jinja_patch(c, o.mid);
        break;
    case JX_COMPARE:
        tern_jinja_emit(c, o.op, 0, 0);
        tern_jinja_patch_all(c, o.mid);
        break;
    case JX_CONCAT:
        tern_jinja_emit(c, JO_CONCAT, 0, o.n);
        break;
    case JX_TEST_ARG:
        emit_test(c, &o);
        break;
    default:
        tern_jinja_emit(c, o.op, 0, 0);
    }
}

static void reduce(compiler *c, uint32_t level)
{
    while (top(c)->level >= level && top(c)->level)
        finish_operator(c);
}

/* [value][condition] to condition, jump, value, jump to the end: ELSE waits for the other. */
static void turn_round(compiler *c)
{
    struct tern_jinja_open *o = top(c);
    const uint32_t n_value = o->mid - o->start;
    if (c->unknown != TERN_JINJA_NO_JUMP && c->unknown >= o->start)
        c->unknown = TERN_JINJA_NO_JUMP;
    const uint32_t end = tern_jinja_emit(c, JO_JUMP_FALSE, 0, n_value + 2);
    tern_jinja_swap(c, o->start, o->mid, end + 1); /* condition, jump, value */
    o->mid = tern_jinja_emit(c, JO_JUMP, 0, 0);
    o->kind = JX_ELSE;
    o->start = c->n_code;
}

/* All that is open down to the bracket: an element of it is complete. */
static void finish_element(compiler *c)
{
    for (;;) {
        reduce(c, LEVEL_OR);
        if (top(c)->kind == JX_COND) {
            turn_round(c);
            tern_jinja_emit(c, JO_NO_ELSE, 0, 0);
        }
        if (top(c)->kind != JX_ELSE)
            return;
        tern_jinja_patch(c, top(c)->mid);
        c->n_open--;
    }
}

/* --- operands --- */

static bool is_call(const struct tern_jinja_open *o)
{
    return o->kind == JX_CALL || o->kind == JX_FILTER || o->kind == JX_TEST;
}

/* The name of a named argument is pushed before its value. */
static bool named_argument(compiler *c)
{
    struct tern_jinja_open *o = top(c);
    tern_jinja_emit(c, JO_CONST, 0, tern_jinja_text_constant(c, c->token.text));
    o->n_named++;
    o->fresh = false;
    o->start = c->n_code;
    return tern_jinja_next(c) && tern_jinja_next(c);
}

static bool begin_bracket(compiler *c, enum tern_jinja_open_kind kind)
{
    return push(c, kind, 0) && tern_jinja_next(c);
}

static bool close_bracket(compiler *c, bool *operand);

/* c->token begins an operand, or closes a bracket behind a comma or with nothing in it. */
static bool operand_or_close(compiler *c, bool *operand)
{
    struct tern_jinja_open *o = top(c);
    const uint32_t op = c->token.kind == JT_OPERATOR ? c->token.op : 0;
    if (o->fresh && !o->level && (op == ')' || op == ']' || op == '}') && o->kind != JX_SUBSCRIPT)
        return close_bracket(c, operand);
    if (o->fresh && is_call(o) && c->token.kind == JT_NAME && tern_jinja_peek_is(c, '='))
        return named_argument(c);
    if (o->fresh && is_call(o) && o->n_named)
        return refuse_here(c, "an argument without a name behind one with a name");
    if (o->kind == JX_SUBSCRIPT && o->fresh && op == ':') { /* a bound that is left out */
        tern_jinja_emit(c, JO_CONST, 0, tern_jinja_constant(c, tern_jv_none()));
        *operand = true;
        return true;
    }
    if (o->kind == JX_SUBSCRIPT && o->fresh && op == ']' && o->negated) {
        tern_jinja_emit(c, JO_CONST, 0, tern_jinja_constant(c, tern_jv_none()));
        *operand = true;
        return true;
    }
    o->fresh = false;
    if (op == '(')
        return begin_bracket(c, JX_PAREN);
    if (op == '[')
        return begin_bracket(c, JX_LIST);
    if (op == '{')
        return begin_bracket(c, JX_DICT);
    if (op == '-' || op == '+') {
        if (!push(c, JX_SIGN, LEVEL_SIGN))
            return false;
        top(c)->op = op == '-' ? JO_NEG : JO_POS;
        return tern_jinja_next(c);
    }
    if (tern_jinja_at_name(c, "not") && (o->level <= LEVEL_NOT)) {
        if (!push(c, JX_NOT, LEVEL_NOT))
            return false;
        top(c)->op = JO_NOT;
        return tern_jinja_next(c);
    }
    *operand = true;
    return tern_jinja_operand(c);
}

/* --- what follows an operand --- */

static bool attribute(compiler *c)
{
    if (!tern_jinja_next(c))
        return false;
    if (c->token.kind == JT_INT) {
        if (!tern_jinja_operand(c))
            return false;
        tern_jinja_emit(c, JO_ITEM, 0, 0);
        return true;
    }
    if (c->token.kind != JT_NAME)
        return tern_jinja_unexpected(c);
    tern_jinja_emit(c, JO_ATTR, 0, tern_jinja_text_constant(c, c->token.text));
    return tern_jinja_next(c);
}

/* The name of a filter or test to its row; one that is not known becomes an instruction that
 * fails, and fails at once unless it stands in a condition. */
static bool find_row(compiler *c, const struct tern_jinja_row *rows, uint32_t *row)
{
    if (c->token.kind != JT_NAME)
        return tern_jinja_unexpected(c);
    const int at = tern_jinja_row_of(rows, c->token.text);
    *row = (uint32_t)at;
    if (at < 0 || tern_jinja_peek_is(c, '.')) {
        const uint32_t code = tern_jinja_emit(c, JO_UNKNOWN, rows == tern_jinja_tests,
                                              tern_jinja_text_constant(c, c->token.text));
        if (c->unknown == TERN_JINJA_NO_JUMP)
            c->unknown = code;
        *row = 0;
    }
    if (!tern_jinja_next(c))
        return false;
    while (tern_jinja_at(c, '.'))
        if (!tern_jinja_next(c) || c->token.kind != JT_NAME || !tern_jinja_next(c))
            return c->failed ? false : tern_jinja_unexpected(c);
    return true;
}

static bool filter(compiler *c)
{
    struct tern_jinja_open o = {0};
    if (!find_row(c, tern_jinja_filters, &o.id))
        return false;
    if (!tern_jinja_at(c, '(')) {
        emit_call(c, JO_FILTER, &o);
        c->filtered = c->n_code;
        return true;
    }
    if (!begin_bracket(c, JX_FILTER))
        return false;
    top(c)->id = o.id;
    top(c)->op = JO_FILTER;
    return true;
}

static bool begins_argument(const compiler *c)
{
    if (c->token.kind == JT_NAME)
        return !tern_jinja_at_name(c, "else") && !tern_jinja_at_name(c, "or") &&
               !tern_jinja_at_name(c, "and");
    return c->token.kind == JT_TEXT || c->token.kind == JT_INT || c->token.kind == JT_FLOAT ||
           tern_jinja_at(c, '[') || tern_jinja_at(c, '{');
}

static bool test(compiler *c, bool *operand)
{
    struct tern_jinja_open o = {.op = JO_TEST};
    if (!tern_jinja_next(c))
        return false;
    o.negated = tern_jinja_at_name(c, "not");
    if ((o.negated && !tern_jinja_next(c)) || !find_row(c, tern_jinja_tests, &o.id))
        return false;
    const bool bracket = tern_jinja_at(c, '(');
    if (!bracket && !begins_argument(c)) {
        emit_test(c, &o);
        return true;
    }
    if (tern_jinja_at_name(c, "is"))
        return refuse_here(c, "a test of a test");
    if (!(bracket ? begin_bracket(c, JX_TEST) : push(c, JX_TEST_ARG, LEVEL_SIGN)))
        return false;
    top(c)->id = o.id;
    top(c)->op = JO_TEST;
    top(c)->negated = o.negated;
    top(c)->n = !bracket;
    *operand = false;
    return true;
}

static void close_call(compiler *c, const struct tern_jinja_open *o)
{
    static const enum tern_jinja_op ops[] = {
        [JX_CALL] = JO_CALL, [JX_FILTER] = JO_FILTER, [JX_TEST] = JO_TEST,
    };
    if (o->kind == JX_TEST)
        emit_test(c, o);
    else
        emit_call(c, ops[o->kind], o);
    c->filtered = o->kind == JX_CALL ? 0 : c->n_code;
}

static void close_subscript(compiler *c, const struct tern_jinja_open *o)
{
    for (uint32_t n = o->n; o->negated && n < 3; n++)
        tern_jinja_emit(c, JO_CONST, 0, tern_jinja_constant(c, tern_jv_none()));
    tern_jinja_emit(c, o->negated ? JO_SLICE : JO_ITEM, 0, 0);
}

/* c->token closes the bracket on top, in which nothing is left open. */
static bool close_bracket(compiler *c, bool *operand)
{
    static const char ends[] = {
        [JX_ROOT] = 0, [JX_PAREN] = ')', [JX_LIST] = ']', [JX_DICT] = '}', [JX_CALL] = ')',
        [JX_FILTER] = ')', [JX_TEST] = ')', [JX_SUBSCRIPT] = ']', [JX_COND] = 0, [JX_ELSE] = 0,
    };
    struct tern_jinja_open o = *top(c);
    if (!tern_jinja_at(c, (unsigned char)ends[o.kind]))
        return tern_jinja_unexpected(c);
    if (o.kind == JX_DICT && o.n % 2)
        return refuse_here(c, "a key without its value");
    c->n_open--;
    c->filtered = 0;
    switch (o.kind) {
    case JX_PAREN:
        if (o.comma || o.n == 0)
            tern_jinja_emit(c, JO_TUPLE, 0, o.n);
        break;
    case JX_LIST:
        tern_jinja_emit(c, JO_LIST, 0, o.n);
        break;
    case JX_DICT:
        tern_jinja_emit(c, JO_DICT, 0, o.n / 2);
        break;
    case JX_SUBSCRIPT:
        close_subscript(c, &o);
        break;
    default:
        close_call(c, &o);
    }
    *operand = true;
    return tern_jinja_next(c);
}

/* An element is complete, and a comma, colon or closing bracket follows. */
static bool separator(compiler *c, bool *operand, bool *done)
{
    const uint32_t op = c->token.kind == JT_OPERATOR ? c->token.op : 0;
    finish_element(c);
    struct tern_jinja_open *o = top(c);
    if (o->kind == JX_ROOT && !(op == ',' && o->id & TERN_JINJA_TUPLE)) {
        *done = true;
        return true;
    }
    const bool named = is_call(o) && o->n_named && !o->fresh;
    if (!(is_call(o) && named))
        o->n++;
    if (op == ')' || op == ']' || op == '}')
        return close_bracket(c, operand);
    const bool slices = op == ':' && o->kind == JX_SUBSCRIPT && o->n < 3;
    const bool pair = o->kind == JX_DICT && op == (o->n % 2 ? ':' : ',');
    if (!slices && !pair && !(op == ',' && o->kind != JX_DICT && o->kind != JX_SUBSCRIPT))
        return tern_jinja_unexpected(c);
    o->negated |= slices;
    o->comma |= op == ',';
    o->fresh = true;
    o->start = c->n_code;
    *operand = false;
    return tern_jinja_next(c);
}

static bool condition(compiler *c, bool *operand, bool *done)
{
    reduce(c, LEVEL_OR);
    if (top(c)->kind == JX_ROOT && top(c)->id & TERN_JINJA_NO_IF) {
        finish_element(c);
        *done = true;
        return true;
    }
    if (top(c)->kind == JX_COND) { /* a if b if c */
        turn_round(c);
        tern_jinja_emit(c, JO_NO_ELSE, 0, 0);
        tern_jinja_patch(c, top(c)->mid);
        c->n_open--;
    }
    const uint32_t start = top(c)->start;
    if (!push(c, JX_COND, 0))
        return false;
    top(c)->start = start;
    top(c)->mid = c->n_code;
    top(c)->fresh = false;
    *operand = false;
    return tern_jinja_next(c);
}

static bool logical(compiler *c, bool is_and, bool *operand)
{
    reduce(c, is_and ? LEVEL_AND : LEVEL_OR);
    const uint32_t jump = tern_jinja_emit(c, is_and ? JO_AND : JO_OR, 0, 0);
    if (!push(c, is_and ? JX_AND : JX_OR, is_and ? LEVEL_AND : LEVEL_OR))
        return false;
    top(c)->mid = jump;
    *operand = false;
    return tern_jinja_next(c);
}

static bool comparison(compiler *c, enum tern_jinja_op op, bool *operand)
{
    reduce(c, LEVEL_ADD);
    if (top(c)->kind == JX_COMPARE) { /* a < b < c */
        top(c)->mid = tern_jinja_emit(c, JO_CHAIN, top(c)->op, top(c)->mid);
    } else if (!push(c, JX_COMPARE, LEVEL_COMPARE)) {
        return false;
    }
    top(c)->op = (uint8_t)op;
    *operand = false;
    return tern_jinja_next(c);
}

static bool binary(compiler *c, enum tern_jinja_op op, uint32_t level, bool *operand)
{
    reduce(c, level + (op == JO_CONCAT));
    if (op == JO_CONCAT && top(c)->kind == JX_CONCAT) {
        top(c)->n++;
    } else {
        if (!push(c, op == JO_CONCAT ? JX_CONCAT : JX_BINARY, level))
            return false;
        top(c)->n = 2;
    }
    top(c)->op = (uint8_t)op;
    *operand = false;
    return tern_jinja_next(c);
}

static bool operator_word(compiler *c, bool *operand, bool *done)
{
    if (tern_jinja_at_name(c, "is")) {
        reduce(c, LEVEL_SIGN);
        return test(c, operand);
    }
    if (tern_jinja_at_name(c, "and") || tern_jinja_at_name(c, "or"))
        return logical(c, tern_jinja_at_name(c, "and"), operand);
    if (tern_jinja_at_name(c, "in"))
        return comparison(c, JO_IN, operand);
    if (tern_jinja_at_name(c, "not") && tern_jinja_peek_name(c, "in"))
        return tern_jinja_next(c) && comparison(c, JO_NOT_IN, operand);
    if (tern_jinja_at_name(c, "if"))
        return condition(c, operand, done);
    if (tern_jinja_at_name(c, "else")) {
        for (;;) { /* of the condition that waits; elses before it are complete */
            reduce(c, LEVEL_OR);
            if (top(c)->kind != JX_ELSE)
                break;
            tern_jinja_patch(c, top(c)->mid);
            c->n_open--;
        }
        if (top(c)->kind == JX_COND) {
            turn_round(c);
            *operand = false;
            return tern_jinja_next(c);
        }
    }
    return separator(c, operand, done);
}

static bool operator_sign(compiler *c, bool *operand, bool *done)
{
    static const struct { const char *sign; uint8_t op, level; } rows[] = {
        {"==", JO_EQ, LEVEL_COMPARE}, {"!=", JO_NE, LEVEL_COMPARE}, {"<", JO_LT, LEVEL_COMPARE},
        {"<=", JO_LE, LEVEL_COMPARE}, {">", JO_GT, LEVEL_COMPARE}, {">=", JO_GE, LEVEL_COMPARE},
        {"+", JO_ADD, LEVEL_ADD}, {"-", JO_SUB, LEVEL_ADD}, {"~", JO_CONCAT, LEVEL_CONCAT},
        {"*", JO_MUL, LEVEL_MUL}, {"/", JO_DIV, LEVEL_MUL}, {"//", JO_FLOORDIV, LEVEL_MUL},
        {"%", JO_MOD, LEVEL_MUL}, {"**", JO_POW, LEVEL_POW},
    };
    if (c->filtered == c->n_code && (c->token.op == '.' || c->token.op == '['))
        return tern_jinja_unexpected(c);
    switch (c->token.op) {
    case '.':
        return attribute(c);
    case '(': case '[':
        *operand = false;
        return begin_bracket(c, c->token.op == '(' ? JX_CALL : JX_SUBSCRIPT);
    case '|':
        reduce(c, LEVEL_SIGN);
        if (!tern_jinja_next(c) || !filter(c))
            return false;
        *operand = top(c)->kind != JX_FILTER || !top(c)->fresh || top(c)->n;
        return true;
    default:
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (c->token.op == tern_jinja_two(rows[i].sign[0], rows[i].sign[1]))
                return rows[i].level == LEVEL_COMPARE
                           ? comparison(c, rows[i].op, operand)
                           : binary(c, rows[i].op, rows[i].level, operand);
        return separator(c, operand, done);
    }
}

bool tern_jinja_expression(compiler *c, uint32_t flags)
{
    bool operand = false, done = false;
    if (!push(c, JX_ROOT, 0))
        return false;
    top(c)->id = flags;
    c->unknown = TERN_JINJA_NO_JUMP;
    if (flags & TERN_JINJA_FILTERS) {
        top(c)->fresh = false;
        if (!filter(c))
            return false;
        operand = top(c)->kind == JX_ROOT;
    }
    while (!done && !c->failed) {
        if (operand) {
            if (c->token.kind == JT_OPERATOR)
                operator_sign(c, &operand, &done);
            else if (c->token.kind == JT_NAME)
                operator_word(c, &operand, &done);
            else
                separator(c, &operand, &done);
        } else if (top(c)->kind == JX_ROOT && top(c)->comma && c->token.kind == JT_END) {
            done = true; /* a tuple that ends with a comma */
        } else {
            operand_or_close(c, &operand);
        }
    }
    if (c->failed)
        return false;
    const struct tern_jinja_open root = *top(c);
    c->n_open--;
    if (root.comma)
        tern_jinja_emit(c, JO_TUPLE, 0, root.n + operand);
    if (c->unknown != TERN_JINJA_NO_JUMP && !c->soft)
        return tern_jinja_refuse(c, c->code[c->unknown].line, "there is no %s '%t'",
                                 c->code[c->unknown].n ? "test" : "filter",
                                 tern_jv_bytes(c->constants[-1 - (ptrdiff_t)
                                                            c->code[c->unknown].arg]));
    return !c->failed;
}
