/* jinja_compile.h: what lexer, expressions and statements share while a template is compiled. */
#ifndef TERN_JINJA_COMPILE_H
#define TERN_JINJA_COMPILE_H

#include "runtime/jinja.h"

enum tern_jinja_token_kind {
    JT_END,       /* of the tag */
    JT_NAME, JT_TEXT, JT_INT, JT_FLOAT,
    JT_OPERATOR,  /* op: its first character, and its second shifted by eight bits */
    JT_BAD,
};
struct tern_jinja_token {
    enum tern_jinja_token_kind kind;
    uint32_t op, line;
    tern_text text; /* a name, a decoded text, a number's digits */
};
enum { JT_TWO = 8 };
static inline uint32_t tern_jinja_two(char a, char b)
{
    return (uint32_t)(unsigned char)a | (uint32_t)(unsigned char)b << JT_TWO;
}

enum tern_jinja_open_kind {
    /* Brackets: what is inside is finished when they close. */
    JX_ROOT, JX_PAREN, JX_LIST, JX_DICT, JX_CALL, JX_FILTER, JX_TEST, JX_SUBSCRIPT,
    JX_COND, JX_ELSE,
    /* Operators. */
    JX_OR, JX_AND, JX_NOT, JX_COMPARE, JX_BINARY, JX_CONCAT, JX_SIGN, JX_TEST_ARG,
};
/* An operator or bracket that waits for its right side or its end. */
struct tern_jinja_open {
    uint8_t kind, level, op;
    bool fresh;   /* nothing of the element at hand was read */
    bool negated; /* a test with not; a subscript that is a slice */
    bool comma;   /* one was seen */
    uint16_t line;
    uint32_t n, n_named; /* finished elements; of a slice, its bounds */
    uint32_t start;      /* where the code of the element begins */
    uint32_t mid;        /* COND: where its condition's begins; AND, OR, ELSE: jump to patch */
    uint32_t id;
};

enum tern_jinja_block_kind {
    JB_IF, JB_FOR, JB_MACRO, JB_CALL, JB_SET, JB_FILTER, JB_WITH, JB_GENERATION,
};
struct tern_jinja_block {
    uint8_t kind;
    bool has_else, was_soft;
    uint16_t line;
    uint32_t test; /* the jump to the next branch; NEXT of a loop; to the end of what is aside */
    uint32_t ends; /* jumps to the end, chained by arg; FOR of a loop; code that is aside */
    uint32_t name;
};

enum { TERN_JINJA_OPEN = 200, TERN_JINJA_BLOCKS = 64, TERN_JINJA_NO_JUMP = UINT32_MAX };

struct tern_jinja_lexer {
    uint32_t at, line, depth; /* of brackets */
    bool variable;            /* in {{ }} */
};
struct tern_jinja_compiler {
    tern_error *err;
    bool failed;
    struct tern_template *t;
    char *source; /* line ends made one; texts are decoded in place */
    uint32_t n_source;
    struct tern_jinja_lexer lexer;
    struct tern_jinja_token token;
    uint32_t skip_space;  /* characters of data to leave out, set by a tag's end */
    bool line_starting;
    struct tern_jinja_code *code;
    uint32_t n_code;
    struct tern_jv *constants; /* grow down from the end: constant i is constants[-1 - i] */
    uint32_t n_constants;
    size_t room;               /* bytes that code and constants share */
    uint16_t buckets[TERN_JINJA_BUCKETS]; /* 1 + the first constant with a hash; 0: none */
    struct tern_jinja_open open[TERN_JINJA_OPEN];
    uint32_t n_open;
    struct tern_jinja_block blocks[TERN_JINJA_BLOCKS];
    uint32_t n_blocks;
    uint32_t unknown;  /* an instruction for a filter or test that is not known, or NO_JUMP */
    uint32_t filtered; /* the end of a filter's or test's code: no attribute follows it */
    bool soft;         /* directly in an if: what is not known there fails when it is reached */
};

/* jinja_lex.c */
bool tern_jinja_refuse(struct tern_jinja_compiler *c, uint32_t line, const char *format, ...);
/* Reads the next token of a tag into c->token. */
bool tern_jinja_next(struct tern_jinja_compiler *c);
bool tern_jinja_peek_is(struct tern_jinja_compiler *c, uint32_t op); /* the one after c->token */
bool tern_jinja_peek_name(struct tern_jinja_compiler *c, const char *name);
/* The text up to the next tag as output; c->token is the tag's first, or *done. */
enum tern_jinja_tag { JG_DONE, JG_VARIABLE, JG_BLOCK, JG_BAD };
enum tern_jinja_tag tern_jinja_data(struct tern_jinja_compiler *c);
static inline bool tern_jinja_at(const struct tern_jinja_compiler *c, uint32_t op)
{
    return c->token.kind == JT_OPERATOR && c->token.op == op;
}
bool tern_jinja_at_name(const struct tern_jinja_compiler *c, const char *name);
bool tern_jinja_expect(struct tern_jinja_compiler *c, uint32_t op, const char *what);
bool tern_jinja_unexpected(struct tern_jinja_compiler *c);

/* jinja_code.c */
uint32_t tern_jinja_emit(struct tern_jinja_compiler *c, enum tern_jinja_op op, uint32_t n,
                         uint32_t arg); /* where it stands */
void tern_jinja_patch(struct tern_jinja_compiler *c, uint32_t jump); /* to here */
void tern_jinja_patch_all(struct tern_jinja_compiler *c, uint32_t jumps); /* chained by arg */
uint32_t tern_jinja_constant(struct tern_jinja_compiler *c, struct tern_jv v);
uint32_t tern_jinja_text_constant(struct tern_jinja_compiler *c, tern_text text);
/* Turns two neighbouring pieces of code round. */
void tern_jinja_swap(struct tern_jinja_compiler *c, uint32_t from, uint32_t mid, uint32_t to);

/* jinja_operand.c: c->token is a name or a constant. */
bool tern_jinja_operand(struct tern_jinja_compiler *c);

/* jinja_parse.c: the whole source, to its end or what is wrong. */
void tern_jinja_parse(struct tern_jinja_compiler *c);

/* jinja_expr.c */
enum { TERN_JINJA_TUPLE = 1, TERN_JINJA_NO_IF = 2, TERN_JINJA_FILTERS = 4 };
/* Compiles an expression; c->token is the first that does not belong to it. With FILTERS its
 * value is there already, and filters of it are read: the first without its bar. */
bool tern_jinja_expression(struct tern_jinja_compiler *c, uint32_t flags);

#endif
