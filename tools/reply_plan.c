#include "tools/reply_plan.h"

#include "tools/ids.h"
#include "tools/schema.h"

#include <stdio.h>
#include <string.h>

/* --- tools --- */

bool tern_reply_choice(const json_t *choice, struct tern_reply_request *r,
                       char line[TERN_ARGS_LINE])
{
    static const char *const names[] = {"auto", "none", "required"};
    r->choice = TERN_TOOLS_AUTO;
    if (choice == NULL || json_is_null(choice))
        return true;
    for (int i = 0; json_is_string(choice) && i < 3; i++)
        if (strcmp(json_string_value(choice), names[i]) == 0) {
            r->choice = (enum tern_tool_choice)i;
            return true;
        }
    const json_t *function = json_object_get(choice, "function");
    r->tool = json_string_value(json_object_get(function ? function : choice, "name"));
    r->choice = TERN_TOOLS_NAMED;
    if (r->tool)
        return true;
    snprintf(line, TERN_ARGS_LINE, "tool_choice: auto, none, required or a function needed");
    return false;
}

static uint32_t kinds(void *self, tern_text tool, tern_text parameter)
{
    const struct tern_reply_plan *p = self;
    size_t i;
    json_t *each;
    json_array_foreach(p->tools, i, each) {
        const char *name = tern_reply_tool_name(each);
        if (!name || strlen(name) != tool.size || memcmp(name, tool.data, tool.size) != 0)
            continue;
        const json_t *schema = tern_reply_tool_schema(each);
        const json_t *properties = json_object_get(schema, "properties");
        return tern_reply_kinds(schema, json_object_getn(properties, parameter.data,
                                                         parameter.size), 0);
    }
    return 0;
}

/* Those that may be called, in p->tools. */
static bool choose_tools(struct tern_reply_plan *p, const struct tern_reply_request *r,
                         char line[TERN_ARGS_LINE])
{
    const bool must = r->choice == TERN_TOOLS_REQUIRED || r->choice == TERN_TOOLS_NAMED;
    size_t i;
    json_t *tool;
    if (json_array_size(r->tools) == 0 || r->choice == TERN_TOOLS_NONE) {
        if (must)
            snprintf(line, TERN_ARGS_LINE, "tool_choice: a call is asked for, and there are no "
                     "tools");
        p->reader.calls = TERN_CALLS_NONE;
        return !must;
    }
    bool found = r->choice != TERN_TOOLS_NAMED;
    json_array_foreach(r->tools, i, tool) {
        const char *name = tern_reply_tool_name(tool);
        found |= name && r->tool && strcmp(name, r->tool) == 0;
    }
    if (!found) {
        snprintf(line, TERN_ARGS_LINE, "tool_choice: there is no tool '%.64s'", r->tool);
        return false;
    }
    p->tools = json_incref(r->tools);
    if (must && p->reader.calls == TERN_CALLS_NONE)
        snprintf(line, TERN_ARGS_LINE, "tool_choice: how this model writes calls is not known");
    return !must || p->reader.calls != TERN_CALLS_NONE;
}

static json_t *named(json_t *tools, const char *wanted)
{
    size_t i;
    json_t *tool;
    json_array_foreach(tools, i, tool) {
        const char *name = tern_reply_tool_name(tool);
        if (name && strcmp(name, wanted) == 0)
            return json_pack("[O]", tool);
    }
    return NULL;
}

static bool write_grammar(struct tern_reply_plan *p, const struct tern_reply_request *r,
                          char line[TERN_ARGS_LINE])
{
    const bool calls = p->tools && p->reader.calls != TERN_CALLS_NONE;
    json_t *any = json_pack("{s:s}", "type", "object");
    if (r->grammar.size) {
        if (calls)
            snprintf(line, TERN_ARGS_LINE, "grammar: not together with tools");
        tern_out_put(&p->gbnf, r->grammar.data, r->grammar.size);
        json_decref(any);
        return !calls;
    }
    struct tern_reply_grammar g = {
        .format = p->reader.calls,
        .answer = r->schema ? r->schema : r->any_object ? any : NULL,
        .one_call = r->one_call,
        .at_start = r->choice == TERN_TOOLS_REQUIRED || r->choice == TERN_TOOLS_NAMED,
        .model = p->model,
        .work = r->work,
    };
    if (g.at_start)
        g.answer = NULL;
    g.at_start |= g.answer != NULL;
    if (calls)
        g.tools = r->choice == TERN_TOOLS_NAMED ? named(p->tools, r->tool) : json_incref(p->tools);
    bool ok = true;
    if (g.tools || g.answer)
        ok = tern_reply_grammar_write(&g, &p->gbnf, &p->dropped, line);
    if (g.tools && !g.at_start)
        p->trigger = tern_reply_trigger(p->reader.calls);
    json_decref(g.tools);
    json_decref(any);
    return ok;
}

/* --- thinking --- */

/* The closing tag in lines of its own, as templates that turn thinking off write it. */
static bool spell_end(struct tern_reply_plan *p, char line[TERN_ARGS_LINE])
{
    char text[TERN_MAX_TAG + 8];
    const tern_text close = p->reader.think_close;
    const size_t n = (size_t)snprintf(text, sizeof text, "\n%.*s\n\n", (int)close.size, close.data);
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of(p->model, (tern_text){text, n}, TERN_TOKENIZE_SPECIAL | TERN_TOKENIZE_NO_BOS,
                     &ids, &err)) {
        snprintf(line, TERN_ARGS_LINE, "thinking: %.200s", err.text);
        return false;
    }
    const bool ok = ids.n <= TERN_MAX_FORCED;
    if (ok)
        memcpy(p->think_end, ids.at, ids.n * sizeof *ids.at);
    else
        snprintf(line, TERN_ARGS_LINE, "thinking: %zu tokens to end it, at most %d", ids.n,
                 (int)TERN_MAX_FORCED);
    p->n_think_end = ok ? (uint32_t)ids.n : 0;
    tern_ids_free(&ids);
    return ok;
}

static bool set_thinking(struct tern_reply_plan *p, const struct tern_reply_request *r,
                         char line[TERN_ARGS_LINE])
{
    const bool none = r->effort && strcmp(r->effort, "none") == 0;
    const bool off = none || (r->has_thinking && !r->thinking);
    p->variables = json_object();
    if (off || r->has_thinking)
        json_object_set_new(p->variables, "enable_thinking", json_boolean(!off));
    if (r->effort)
        json_object_set_new(p->variables, "reasoning_effort", json_string(r->effort));
    if (!p->reader.think_close.size || (!off && !r->has_budget))
        return true;
    p->limited = true;
    p->budget = off ? 0 : r->budget;
    return spell_end(p, line);
}

/* --- a plan --- */

bool tern_reply_plan_open(struct tern_reply_plan *p, const tern_model *model,
                          tern_text template_source, const struct tern_reply_request *r,
                          bool compile, char line[TERN_ARGS_LINE])
{
    memset(p, 0, sizeof *p);
    p->model = model;
    tern_out_open(&p->gbnf, -1);
    tern_out_open(&p->dropped, -1);
    tern_reply_detect(template_source, &p->reader);
    p->reader.kinds = kinds;
    p->reader.self = p;
    if (!choose_tools(p, r, line) || !set_thinking(p, r, line) || !write_grammar(p, r, line))
        return false;
    p->n_shown = (uint32_t)tern_reply_markers(&p->reader, p->shown);
    if (!compile || p->gbnf.n == 0)
        return true;
    const tern_text gbnf = {p->gbnf.grown, p->gbnf.n};
    const bool ok = !tern_effort_left(r->work) &&
                    tern_constraint_compile(&p->constraint, gbnf, model, line);
    if (!ok && !r->grammar.size)
        tern_schema_explain(gbnf, line);
    return ok;
}

void tern_reply_plan_prompt(struct tern_reply_plan *p, tern_text rendered)
{
    p->reader.thinks = tern_reply_thinks(&p->reader, rendered);
}

void tern_reply_plan_options(const struct tern_reply_plan *p, tern_seq_options *o)
{
    o->shown = p->shown;
    o->n_shown = p->n_shown;
    o->think_open = p->reader.think_open;
    o->think_close = p->reader.think_close;
    o->thinks = p->reader.thinks;
    o->think_limited = p->limited;
    o->think_tokens = p->budget;
    o->think_end = p->think_end;
    o->n_think_end = p->n_think_end;
    if (!p->constraint.grammar)
        return;
    o->grammar = p->constraint.grammar;
    o->grammar_trigger = p->trigger;
}

void tern_reply_plan_close(struct tern_reply_plan *p)
{
    tern_constraint_free(&p->constraint);
    tern_out_free(&p->gbnf);
    tern_out_free(&p->dropped);
    json_decref(p->tools);
    json_decref(p->variables);
    memset(p, 0, sizeof *p);
}
