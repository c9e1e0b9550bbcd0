/* schema.h: JSON schemas to grammars.
 *
 * A schema becomes rules, one for each schema within it, that let in what it lets in, in one form:
 * members in the order of `properties`, others behind them; white space bounded. A keyword that can
 * not be kept to is an error that names it and where it stands; in a lenient setting it is dropped,
 * and reported.
 *
 *   schema.c         the rules, references, allOf, anyOf, oneOf, enum
 *   schema_merge.c   two schemas that both have to hold, as one; schemas that can not both hold
 *   schema_not.c     what a schema leaves out; if, not and dependencies by means of it
 *   schema_value.c   whether a value is let in: for those that are listed
 *   schema_kinds.c   objects and strings
 *   schema_array.c   arrays
 *   schema_number.c  numbers between bounds, digit by digit, and multiples
 */
#ifndef TERN_SCHEMA_H
#define TERN_SCHEMA_H

#include "tools/args.h"
#include "tools/out.h"
#include "tools/pattern.h"
#include "tools/effort.h"

#include <jansson.h>

enum { TERN_SCHEMA_AT = 200 };

/* dropped: where keywords that can not be kept to are reported, a line each; NULL: they are errors.
 * work: its steps are counted there; NULL: it is bounded all the same. False: line holds what is
 * wrong. */
bool tern_schema_write(tern_text json, struct tern_out *gbnf, struct tern_out *dropped,
                       struct tern_effort *work, char line[TERN_ARGS_LINE]);
/* The rules of several schemas, each the root of what it refers to, without a rule `root`; the i-th
 * schema's own is r and its number. A tool's is named in what is said of it. */
struct tern_schema_part { json_t *schema; const char *tool; uint32_t rule; }; /* tool: or NULL */
bool tern_schema_write_all(struct tern_schema_part *parts, uint32_t n, struct tern_out *gbnf,
                           struct tern_out *dropped, struct tern_effort *work,
                           char line[TERN_ARGS_LINE]);
/* What a compiler says of such a grammar, in words of the schema: comments in the text say what its
 * rules are of. */
void tern_schema_explain(tern_text gbnf, char line[TERN_ARGS_LINE]);
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
    json_t *texts;       /* numbers of automata that have been written, by their rules */
    struct tern_out *o, *dropped;
    struct tern_effort *work;
    const char *tool;    /* whose schema it is, or NULL */
    char *line;
    struct tern_schema_item *items; /* a rule each, r0 is the root's */
    uint32_t n_items, cap_items;
    uint32_t n_flattened; /* schemas being flattened, one within the other */
    uint32_t n_turned;   /* schemas turned round, which are bounded */
    uint32_t n_turning;  /* and those being so: what can not be flattened then is no error */
    bool failed;
};

/* Notes an error at a place; answers false. */
bool tern_schema_fail(struct tern_schema *s, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Counts steps; false, and an error: there are too many. */
bool tern_schema_work(struct tern_schema *s, const char *at, uint64_t steps);
/* How many values stand within one, itself included. */
uint64_t tern_schema_weight(const json_t *value);
/* A keyword that can not be kept to: an error, or reported. */
bool tern_schema_drop(struct tern_schema *s, const char *at, const char *keyword,
                      const char *why); /* or NULL */
/* The number of the rule of a schema. */
uint32_t tern_schema_rule(struct tern_schema *s, json_t *node, const char *at, const char *key);
unsigned tern_schema_types(const json_t *node);
unsigned tern_schema_type_of(const json_t *value);
json_t *tern_schema_keep(struct tern_schema *s, json_t *made); /* takes the reference over */
/* Text as a terminal of a grammar. */
void tern_schema_literal(struct tern_out *o, const char *text, size_t n);
void tern_schema_json(struct tern_out *o, const json_t *value);

/* Without references and allOf, which are merged in; NULL: it failed. */
json_t *tern_schema_flatten(struct tern_schema *s, json_t *node, const char *at);
json_t *tern_schema_merge(struct tern_schema *s, json_t *a, json_t *b, const char *at);
bool tern_schema_disjoint(struct tern_schema *s, json_t *a, json_t *b, const char *at, int depth);

/* What is let in where a schema is not; NULL: it can not be said, or it failed. */
json_t *tern_schema_negate(struct tern_schema *s, json_t *node, const char *at, int depth);
/* A keyword written with others; the node itself if there is none to be. */
json_t *tern_schema_rewrite(struct tern_schema *s, json_t *node, const char *at);
/* Whether a node's `not` is of the kind that texts are held to as it is. */
bool tern_schema_not_stays(const json_t *node);
/* Annotations and the like. */
bool tern_schema_says_nothing(const char *key);
/* Whether a value is let in, by one keyword of a node or by all: 1, 0, or -1 if it is not known. */
int tern_schema_keyword_holds(struct tern_schema *s, json_t *node, const char *key,
                              const json_t *value, int depth);
bool tern_schema_is_among(const json_t *list, const json_t *value);
int tern_schema_holds(struct tern_schema *s, json_t *node, const json_t *value, int depth);

/* A keyword that is a whole number from 0 to 1e9, if it is there; false: it is something else. */
bool tern_schema_whole(struct tern_schema *s, json_t *node, const char *at, const char *key,
                       int64_t *out);
/* {least,most}; most negative: without end. */
void tern_schema_counts(struct tern_out *o, int64_t least, int64_t most);
/* The rule of a schema, or of any value where there is none. */
void tern_schema_item(struct tern_schema *s, struct tern_out *o, json_t *schema, const char *at,
                      const char *key);
/* Narrows what is let in by what is in, or is not in, another automaton, which is freed; *p without
 * states: all texts so far. */
bool tern_schema_narrow(struct tern_schema *s, struct tern_pattern *p, struct tern_pattern *by,
                        bool in, const char *at, const char *keyword);
bool tern_schema_narrow_regex(struct tern_schema *s, struct tern_pattern *p, const char *regex,
                              bool in, const char *at, const char *keyword);
/* The rules of an automaton, TEXT0-0 and so on: the same ones for all that are alike. */
bool tern_schema_write_texts(struct tern_schema *s, struct tern_pattern *p, const char *end,
                             struct tern_out *more);
bool tern_schema_texts(struct tern_schema *s, json_t *node, const char *at, int64_t least,
                       int64_t most, struct tern_pattern *p);

/* The alternatives of a rule, without its name. */
bool tern_schema_object(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                        struct tern_out *more);
bool tern_schema_array(struct tern_schema *s, json_t *node, const char *at, uint32_t rule,
                       struct tern_out *more);
bool tern_schema_string(struct tern_schema *s, json_t *node, const char *at,
                        struct tern_out *more);
bool tern_schema_number(struct tern_schema *s, json_t *node, const char *at, bool integer,
                        struct tern_out *more);

#endif
