/* schema.h: JSON schemas to grammars.
 *
 * A schema becomes rules, one for each schema within it, that let in what it lets in, in one form:
 * members in the order of `properties`, others behind them; white space bounded. A keyword that can
 * not be kept to is an error that names it and where it stands; in a lenient setting it is dropped,
 * and reported.
 *
 *   schema.c         the rules, references, allOf, anyOf, oneOf, enum
 *   schema_merge.c   two schemas that both have to hold, as one; schemas that can not both hold
 *   schema_kinds.c   objects, arrays, strings
 *   schema_number.c  numbers between bounds, digit by digit
 */
#ifndef TERN_SCHEMA_H
#define TERN_SCHEMA_H

#include "tools/args.h"
#include "tools/out.h"
#include "tools/pattern.h"

#include <jansson.h>

enum { TERN_SCHEMA_AT = 200 };

/* dropped: where keywords that can not be kept to are reported, a line each; NULL: they are errors.
 * False: line holds what is wrong. */
bool tern_schema_write(tern_text json, struct tern_out *gbnf, struct tern_out *dropped,
                       char line[TERN_ARGS_LINE]);
/* The rules of several schemas, each the root of what it refers to, without a rule `root`; the i-th
 * schema's own is r and the number rules[i]. */
bool tern_schema_write_all(json_t *const *schemas, uint32_t n, uint32_t *rules,
                           struct tern_out *gbnf, struct tern_out *dropped,
                           char line[TERN_ARGS_LINE]);
/* Any JSON object. */
void tern_schema_write_object(struct tern_out *gbnf);

/* --- for the files of the schema --- */

enum tern_schema_type {
    TERN_SCHEMA_NULL = 1, TERN_SCHEMA_BOOLEAN = 2, TERN_SCHEMA_INTEGER = 4, TERN_SCHEMA_NUMBER = 8,
    TERN_SCHEMA_STRING = 16, TERN_SCHEMA_ARRAY = 32, TERN_SCHEMA_OBJECT = 64, TERN_SCHEMA_ALL = 127,
};

struct tern_schema_item { json_t *node; char at[TERN_SCHEMA_AT]; };
struct tern_schema {
    json_t *root, *made; /* made: an array that holds schemas put together here */
    json_t *flat_of;     /* what a schema was flattened to, by its address */
    struct tern_out *o, *dropped;
    char *line;
    struct tern_schema_item *items; /* a rule each, r0 is the root's */
    uint32_t n_items, cap_items;
    bool failed;
};

/* Notes an error at a place; answers false. */
bool tern_schema_fail(struct tern_schema *s, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A keyword that can not be kept to: an error, or reported. */
bool tern_schema_drop(struct tern_schema *s, const char *at, const char *keyword);
/* The number of the rule of a schema. */
uint32_t tern_schema_rule(struct tern_schema *s, json_t *node, const char *at, const char *key);
unsigned tern_schema_types(const json_t *node);
json_t *tern_schema_keep(struct tern_schema *s, json_t *made); /* takes the reference over */
/* Text as a terminal of a grammar. */
void tern_schema_literal(struct tern_out *o, const char *text, size_t n);
void tern_schema_json(struct tern_out *o, const json_t *value);

/* Without references and allOf, which are merged in; NULL: it failed. */
json_t *tern_schema_flatten(struct tern_schema *s, json_t *node, const char *at);
json_t *tern_schema_merge(struct tern_schema *s, json_t *a, json_t *b, const char *at);
bool tern_schema_disjoint(struct tern_schema *s, json_t *a, json_t *b, const char *at, int depth);

/* The alternatives of a rule, without its name. */
bool tern_schema_object(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        struct tern_out *more);
bool tern_schema_array(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                       struct tern_out *more);
bool tern_schema_string(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        struct tern_out *more);
bool tern_schema_number(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        bool integer, struct tern_out *more);

#endif
