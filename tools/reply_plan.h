/* reply_plan.h: from what a request asks for to how its reply is generated and read.
 *
 *     tern_reply_plan_open     what the template shows, and what the request asks of it
 *     tern_chat_render         with plan.tools and plan.variables
 *     tern_reply_plan_prompt   whether the prompt ends inside of the reasoning
 *     tern_reply_plan_options  the sequence: what is shown, the reasoning's tags and budget, the
 *                              grammar that calls are held to
 *     tern_reply_init          with plan.reader, once a reply
 *
 * A plan stays where it is while any of these use it.
 */
#ifndef TERN_REPLY_PLAN_H
#define TERN_REPLY_PLAN_H

#include "tools/constraint.h"
#include "tools/effort.h"

#include <jansson.h>

enum tern_tool_choice { TERN_TOOLS_AUTO, TERN_TOOLS_NONE, TERN_TOOLS_REQUIRED, TERN_TOOLS_NAMED };

struct tern_reply_request {
    json_t *tools;                /* a list as OpenAI's clients send it; NULL or empty: none */
    enum tern_tool_choice choice;
    const char *tool;             /* of NAMED: which */
    bool one_call;                /* parallel_tool_calls is false */
    const char *effort;           /* reasoning_effort: "none" turns thinking off; NULL: not said */
    bool has_thinking, thinking;  /* enable_thinking, where it is said */
    bool has_budget;
    uint32_t budget;              /* most tokens of reasoning */
    /* What the answer is held to, at most one of these: a schema, any JSON object, a grammar.
     * Beside tools a reply is either a call or of the schema; a grammar is refused. */
    json_t *schema;
    bool any_object;
    tern_text grammar;
    struct tern_effort *work; /* of its schemas; NULL: it is bounded all the same */
};

struct tern_reply_plan {
    tern_reply_options reader;
    json_t *tools;      /* for the template: NULL where no tool may be called */
    json_t *variables;  /* for the template: enable_thinking, reasoning_effort */
    const tern_model *model;
    struct tern_constraint constraint;
    tern_text trigger;
    struct tern_out gbnf;    /* the grammar's text; nothing: there is none */
    struct tern_out dropped; /* keywords of tools' schemas that are not kept to, a line each */
    tern_text shown[TERN_MAX_SHOWN];
    tern_token think_end[TERN_MAX_FORCED];
    uint32_t n_shown, n_think_end, budget;
    bool limited;
};

/* OpenAI's tool_choice, a text or an object; NULL: auto. */
bool tern_reply_choice(const json_t *tool_choice, struct tern_reply_request *r,
                       char line[TERN_ARGS_LINE]);
/* False: line says what can not be; the plan is to be closed all the same. compile: the grammar
 * is made ready, which needs the model's tokenizer; else its text alone is written. */
bool tern_reply_plan_open(struct tern_reply_plan *p, const tern_model *model,
                          tern_text template_source, const struct tern_reply_request *r,
                          bool compile, char line[TERN_ARGS_LINE]);
void tern_reply_plan_prompt(struct tern_reply_plan *p, tern_text rendered);
/* Sets the fields that the plan speaks of: shown, what begins with think, and the grammar if there
 * is one. */
void tern_reply_plan_options(const struct tern_reply_plan *p, tern_seq_options *o);
void tern_reply_plan_close(struct tern_reply_plan *p);

/* --- reply_grammar.c --- */

struct tern_reply_grammar {
    tern_call_format format;
    json_t *tools;          /* those that may be called; NULL: none */
    json_t *answer;         /* a schema that the answer is of; NULL: any text, if it may be one */
    bool at_start, one_call; /* at_start: not from the trigger on, but from the first token */
    const tern_model *model;
    struct tern_effort *work; /* or NULL */
};
bool tern_reply_grammar_write(const struct tern_reply_grammar *g, struct tern_out *gbnf,
                              struct tern_out *dropped, char line[TERN_ARGS_LINE]);
/* The name and the parameters' schema of a tool; NULL: it has none. */
const char *tern_reply_tool_name(const json_t *tool);
json_t *tern_reply_tool_schema(const json_t *tool);
/* The kinds of values that a schema lets in, as a tool's author means it; 0: it does not say. */
uint32_t tern_reply_kinds(const json_t *root, const json_t *schema, int depth);

#endif
