/* jinja.h: what the parts of the template interpreter share: code, values and the machine.
 *
 *   source -> jinja_lex, jinja_expr, jinja_parse -> code -> jinja_machine -> output and runs
 *
 * Code is a list of small instructions for a machine with a stack of values; jumps are relative,
 * so that the parts of an inline if can change places. Nothing recurses over input: operators
 * and blocks that are open while parsing, calls and loops while running, and lists in lists while
 * they are compared or written all stand on stacks of stated depth.
 *
 * Values do not change once they are made, namespaces and loops aside, so a slice of a text or a
 * list is a pointer into it. All text that comes from the caller or is computed lies in one
 * region, and beside each of its bytes stands whether it is the template's own; text outside of
 * that region is the template's. So whoever copies text looks its provenance up by its address,
 * and nothing else has to think of it.
 */
#ifndef TERN_JINJA_H
#define TERN_JINJA_H

#include "runtime/tern.h"

/* --- values --- */

enum tern_jv_kind {
    JV_ABSENT, /* an argument that was not given */
    JV_UNDEFINED, JV_NONE, JV_BOOL, JV_INT, JV_FLOAT, JV_TEXT,
    JV_LIST, JV_TUPLE, JV_VIEW, JV_RANGE, /* n items each */
    JV_DICT,                              /* n pairs: key, value, key, value, in order */
    JV_GENERATOR, JV_NAMESPACE, JV_MACRO, JV_METHOD, JV_FUNCTION, JV_LOOP, JV_JOINER,
    JV_N_KINDS,
};
enum {
    JV_SAFE = 1, /* text that was marked as markup: adding other text to it escapes that */
    JV_USER = 2, /* a number or constant out of the caller's data: so is its text */
};

struct tern_jv {
    uint8_t kind, flags;
    uint16_t id; /* of a method or function; in the template: the next constant of a bucket */
    uint32_t n;  /* bytes of a text, items, pairs */
    union {
        int64_t i; /* BOOL, INT */
        double f;
        const char *s;               /* TEXT, UNDEFINED (its name), valid UTF-8 */
        const struct tern_jv *items; /* LIST .. DICT; METHOD: what it belongs to */
        struct tern_jinja_list *list;   /* GENERATOR, NAMESPACE (pairs), JOINER */
        struct tern_jinja_macro *macro;
        struct tern_jinja_loop *loop;
    } u;
};

struct tern_jinja_list { struct tern_jv *items; uint32_t n, cap, at; };
struct tern_jinja_bound { struct tern_jinja_bound *next; uint32_t name; struct tern_jv v; };
struct tern_jinja_scope { struct tern_jinja_scope *up; struct tern_jinja_bound *first; };
struct tern_jinja_macro { struct tern_jinja_scope *scope; uint32_t at, name; };
struct tern_jinja_loop {
    const struct tern_jv *items;
    uint32_t n, at;
    struct tern_jinja_scope *scope; /* its names, made new for each item */
    struct tern_jv seen; /* by changed() */
};

/* --- code --- */

enum tern_jinja_op {
    JO_TEXT, JO_PRINT, JO_CONST, JO_NAME, JO_STORE, JO_SET_ATTR, JO_UNPACK, JO_ATTR, JO_ITEM,
    JO_SLICE, JO_LIST, JO_TUPLE, JO_DICT, JO_NOT, JO_NEG, JO_POS, JO_ADD, JO_SUB, JO_MUL, JO_DIV,
    JO_FLOORDIV, JO_MOD, JO_POW, JO_CONCAT, JO_EQ, JO_NE, JO_LT, JO_LE, JO_GT, JO_GE, JO_IN,
    JO_NOT_IN, JO_CHAIN, JO_JUMP, JO_JUMP_FALSE, JO_AND, JO_OR, JO_CALL, JO_FILTER, JO_TEST,
    JO_NO_ELSE, JO_UNKNOWN, JO_FOR, JO_NEXT, JO_BREAK, JO_CONTINUE, JO_PICK, JO_PICK_NEXT, JO_KEEP,
    JO_SCOPE, JO_END_SCOPE, JO_CAPTURE, JO_END_CAPTURE, JO_MACRO, JO_ARG, JO_ARGS_END, JO_RETURN,
    JO_END,
};

/* arg: a jump's distance from the instruction itself, a constant, a count, or for calls the
 * index of what is called and in its top byte the number of named arguments. */
struct tern_jinja_code { uint8_t op, n; uint16_t line; uint32_t arg; };

enum { TERN_JINJA_BUCKETS = 256 };
struct tern_template {
    const struct tern_jinja_code *code;
    const struct tern_jv *constants; /* names among them: texts are there once each */
    uint32_t n_code, n_constants;
    size_t used; /* bytes of the caller's memory */
};

/* --- the machine --- */

enum tern_jinja_frame_kind { JF_LOOP, JF_PICK, JF_CAPTURE, JF_CALL };
struct tern_jinja_frame {
    uint8_t kind, n_named;
    uint16_t n_given;
    uint32_t at;    /* where a call returns to, a loop goes on */
    uint32_t sp;    /* the stack below it */
    uint32_t taken; /* a call's named arguments that a parameter took, a bit each */
    size_t n_out;   /* where its captured output begins */
    struct tern_jinja_scope *scope; /* around it */
    struct tern_jinja_loop *loop;
};
enum { TERN_JINJA_DEPTH = 64, TERN_JINJA_MOST_ARGS = 6 };

/* A list in a list that is being gone through. */
struct tern_jinja_walk { struct tern_jv a, b; uint32_t i; };

struct tern_jinja {
    const struct tern_template *t;
    const tern_render *options;
    tern_error error;
    bool failed;
    uint64_t steps;          /* left */
    uint32_t pc;
    char *text;              /* [cap_text] and beside it: is the byte the template's own? */
    uint8_t *text_own;
    size_t n_text, cap_text;
    char *out;
    uint8_t *out_own;
    size_t n_out, cap_out;
    struct tern_jv *stack;   /* grows up; made values lie above it and grow down */
    uint32_t sp;
    size_t heap, n_values;   /* in values */
    struct tern_jinja_frame *frames;
    uint32_t n_frames, cap_frames;
    struct tern_jinja_scope *scope;
    struct tern_jinja_bound *spare; /* bindings of items that are done */
    uint32_t loop_name;            /* the constant "loop", or UINT32_MAX */
    struct tern_jinja_list grown;  /* the list that was added to last, and its room */
    struct tern_jinja_walk *walk;  /* [TERN_JINJA_DEPTH] */
    const struct tern_jv *given;   /* arguments of the call at hand, named ones in pairs */
    uint32_t n_given, n_named;
};

/* jinja_machine.c */
void tern_jinja_run(struct tern_jinja *m);
/* The line that runs, and a reason as error.h's format has it; false, always. */
bool tern_jinja_fail(struct tern_jinja *m, const char *format, ...);
bool tern_jinja_charge(struct tern_jinja *m, uint64_t steps);
void *tern_jinja_make(struct tern_jinja *m, size_t bytes); /* 16-aligned; NULL: failed */
bool tern_jinja_push(struct tern_jinja *m, struct tern_jv v);
bool tern_jinja_bind(struct tern_jinja *m, struct tern_jinja_scope *s, uint32_t name,
                     struct tern_jv v);
bool tern_jinja_output(struct tern_jinja *m, const char *s, size_t n);
/* The output from a place on, as a text. */
bool tern_jinja_take_output(struct tern_jinja *m, size_t from, struct tern_jv *out);
struct tern_jinja_scope *tern_jinja_new_scope(struct tern_jinja *m, struct tern_jinja_scope *up);
struct tern_jinja_frame *tern_jinja_push_frame(struct tern_jinja *m,
                                               enum tern_jinja_frame_kind kind);
struct tern_jinja_frame *tern_jinja_pop_frame(struct tern_jinja *m);

/* jinja_call.c */
typedef bool tern_jinja_do(struct tern_jinja *m, const struct tern_jinja_code *c);
tern_jinja_do tern_jinja_do_call, tern_jinja_do_native, tern_jinja_do_macro, tern_jinja_do_arg,
    tern_jinja_do_args_end, tern_jinja_do_return;

/* jinja_value.c */
static inline struct tern_jv tern_jv_int(int64_t i)
{
    return (struct tern_jv){.kind = JV_INT, .u.i = i};
}
static inline struct tern_jv tern_jv_bool(bool b)
{
    return (struct tern_jv){.kind = JV_BOOL, .u.i = b};
}
static inline struct tern_jv tern_jv_text(const char *s, size_t n)
{
    return (struct tern_jv){.kind = JV_TEXT, .n = (uint32_t)n, .u.s = s};
}
static inline struct tern_jv tern_jv_none(void)
{
    return (struct tern_jv){.kind = JV_NONE};
}
struct tern_jv tern_jv_undefined(const char *name);
struct tern_jv tern_jv_list(enum tern_jv_kind kind, const struct tern_jv *items, uint32_t n);
static inline bool tern_jv_is_items(struct tern_jv v)
{
    return v.kind >= JV_LIST && v.kind <= JV_RANGE;
}
static inline tern_text tern_jv_bytes(struct tern_jv v)
{
    return (tern_text){v.u.s, v.n};
}
const char *tern_jv_type(struct tern_jv v); /* as Python calls it */
bool tern_jv_truth(struct tern_jv v);
bool tern_jv_number(struct tern_jv v, double *out); /* BOOL, INT, FLOAT */
/* What iterating over v gives: n items that stay. */
bool tern_jinja_items(struct tern_jinja *m, struct tern_jv v, const struct tern_jv **items,
                      uint32_t *n);
bool tern_jinja_length(struct tern_jinja *m, struct tern_jv v, int64_t *n);
bool tern_jinja_equal(struct tern_jinja *m, struct tern_jv a, struct tern_jv b, bool *equal);
/* -1, 0, 1; values without an order fail. */
bool tern_jinja_order(struct tern_jinja *m, struct tern_jv a, struct tern_jv b, int *order);
/* The value of a key, or NULL. */
const struct tern_jv *tern_jinja_find(struct tern_jinja *m, const struct tern_jv *pairs, uint32_t n,
                                      struct tern_jv key);
bool tern_jinja_contains(struct tern_jinja *m, struct tern_jv in, struct tern_jv item, bool *found);

/* jinja_access.c */
bool tern_jinja_attr(struct tern_jinja *m, struct tern_jv *v, struct tern_jv name);
bool tern_jinja_item(struct tern_jinja *m, struct tern_jv *v, struct tern_jv key);
bool tern_jinja_slice(struct tern_jinja *m, struct tern_jv *v, const struct tern_jv bounds[3]);
/* "a.b.0" from v, as the filters' attribute= has it. */
bool tern_jinja_path(struct tern_jinja *m, struct tern_jv *v, struct tern_jv path);

/* jinja_math.c */
bool tern_jinja_binary(struct tern_jinja *m, enum tern_jinja_op op, struct tern_jv a,
                       struct tern_jv b, struct tern_jv *out);
bool tern_jinja_sign(struct tern_jinja *m, enum tern_jinja_op op, struct tern_jv *v);
bool tern_jinja_compare(struct tern_jinja *m, enum tern_jinja_op op, struct tern_jv a,
                        struct tern_jv b, bool *out);

/* jinja_show.c: text is built at the end of its region, between begin and take. */
struct tern_jinja_json { uint32_t n_indent; struct tern_jv indent, item, key; bool ascii, sorted; };
bool tern_jinja_put(struct tern_jinja *m, const char *s, size_t n); /* provenance by address */
bool tern_jinja_fill(struct tern_jinja *m, const char *s, size_t n, bool own);
struct tern_jv tern_jinja_take(struct tern_jinja *m, size_t begin);
bool tern_jinja_owns(const struct tern_jinja *m, const char *s);
bool tern_jinja_show(struct tern_jinja *m, struct tern_jv v);  /* str(v) */
bool tern_jinja_repr(struct tern_jinja *m, struct tern_jv v);
bool tern_jinja_json(struct tern_jinja *m, struct tern_jv v, const struct tern_jinja_json *how);
bool tern_jinja_to_text(struct tern_jinja *m, struct tern_jv *v);
bool tern_jinja_escape(struct tern_jinja *m, struct tern_jv *v); /* to safe text */
/* a + b, written after a where a lies at the end. */
bool tern_jinja_join_two(struct tern_jinja *m, struct tern_jv a, struct tern_jv b,
                         struct tern_jv *out);

/* jinja_text.c */
uint32_t tern_jinja_count(struct tern_jv text); /* characters */
/* The byte where the i-th character begins. */
uint32_t tern_jinja_offset(struct tern_jv text, int64_t i);
bool tern_jinja_is_space(uint32_t cp);
enum { TERN_JINJA_LEFT = 1, TERN_JINJA_RIGHT = 2 };
struct tern_jv tern_jinja_strip(struct tern_jv text, const struct tern_jv *chars, int sides);
int64_t tern_jinja_search(struct tern_jv text, struct tern_jv what, uint32_t from);
enum tern_jinja_case { JC_LOWER, JC_UPPER, JC_TITLE, JC_CAPITALIZE, JC_SWAP, JC_JINJA_TITLE };
bool tern_jinja_case(struct tern_jinja *m, struct tern_jv *v, enum tern_jinja_case how);
bool tern_jinja_replace(struct tern_jinja *m, struct tern_jv *v, struct tern_jv from,
                        struct tern_jv to, int64_t most);
bool tern_jinja_split_lines(struct tern_jinja *m, struct tern_jv *v, bool keep);

/* jinja_format.c */
bool tern_jinja_percent(struct tern_jinja *m, struct tern_jv format, struct tern_jv values,
                        struct tern_jv *out);
bool tern_jinja_format(struct tern_jinja *m, struct tern_jv *v); /* str.format with the call's */

/* Natives take their value in *v and leave their result there; args[i] is ABSENT if not given. */
typedef bool tern_jinja_native(struct tern_jinja *m, struct tern_jv *v, const struct tern_jv *args);
struct tern_jinja_row {
    const char *name;
    tern_jinja_native *run;
    const char *params; /* "width first blank", * alone: any, in m->given */
    uint32_t least;     /* that must be given */
};
int tern_jinja_row_of(const struct tern_jinja_row *rows, tern_text name); /* -1: none */
/* Sorts the call's arguments to a row's parameters and runs it. */
bool tern_jinja_native_call(struct tern_jinja *m, const struct tern_jinja_row *row,
                            struct tern_jv *v);
extern const struct tern_jinja_row tern_jinja_filters[], tern_jinja_tests[];
extern const struct tern_jinja_row tern_jinja_functions[];
extern const struct tern_jinja_row tern_jinja_text_methods[], tern_jinja_dict_methods[];
extern const struct tern_jinja_row tern_jinja_list_methods[], tern_jinja_loop_methods[];
tern_jinja_native tern_jinja_filter_sort, tern_jinja_filter_dictsort, tern_jinja_filter_unique,
    tern_jinja_filter_groupby, tern_jinja_filter_min, tern_jinja_filter_max, tern_jinja_filter_map,
    tern_jinja_filter_select, tern_jinja_filter_reject, tern_jinja_filter_selectattr,
    tern_jinja_filter_rejectattr, tern_jinja_filter_batch, tern_jinja_filter_slice,
    tern_jinja_filter_sum, tern_jinja_filter_join;

/* jinja_json.c: a JSON text to a value. */
bool tern_jinja_read(struct tern_jinja *m, tern_text json, const char *name, struct tern_jv *out);

/* jinja_compile.c */
tern_status tern_jinja_compile(tern_memory mem, tern_text source, tern_template **out,
                               tern_error *err);

#endif
