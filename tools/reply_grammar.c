/* reply_grammar.c: the calls of tools as a grammar, from the schemas of their parameters.
 *
 * What is written within a call is JSON in the forms of Hermes and Llama 3, and one grammar of its
 * object does. In the others each parameter has its own: for XML, text up to the next tag if it is
 * a string, else JSON; for LFM2 JSON, whose values Python reads, but for true, false and null,
 * which may have their capital. Parameters come in their declared order, required ones always.
 * Tags that are control tokens are written as such, since no text becomes one.
 */
#include "tools/ids.h"
#include "tools/reply_plan.h"
#include "tools/schema.h"

#include <string.h>

enum { MOST_SCHEMAS = 1024, MOST_LOOKED_AT = 1000 };

struct writer {
    const struct tern_reply_grammar *g;
    struct tern_out *o;
    char *line;
    struct tern_schema_part schemas[MOST_SCHEMAS]; /* each of which has a rule */
    uint32_t n_schemas, n_used;
};

const char *tern_reply_tool_name(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    return json_string_value(json_object_get(function ? function : tool, "name"));
}

json_t *tern_reply_tool_schema(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    return json_object_get(function ? function : tool, "parameters");
}

/* --- kinds --- */

static uint32_t kind_named(const char *name)
{
    static const struct { const char *begin; uint32_t kind; } names[] = {
        {"null", TERN_VALUE_NULL}, {"none", TERN_VALUE_NULL}, {"bool", TERN_VALUE_BOOLEAN},
        {"int", TERN_VALUE_INTEGER}, {"uint", TERN_VALUE_INTEGER}, {"long", TERN_VALUE_INTEGER},
        {"short", TERN_VALUE_INTEGER}, {"num", TERN_VALUE_NUMBER}, {"float", TERN_VALUE_NUMBER},
        {"double", TERN_VALUE_NUMBER}, {"str", TERN_VALUE_STRING}, {"text", TERN_VALUE_STRING},
        {"arr", TERN_VALUE_ARRAY}, {"list", TERN_VALUE_ARRAY}, {"obj", TERN_VALUE_OBJECT},
        {"dict", TERN_VALUE_OBJECT},
    };
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i].begin, strlen(names[i].begin)) == 0)
            return names[i].kind;
    return 0;
}

static uint32_t kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL: return TERN_VALUE_NULL;
    case JSON_TRUE: case JSON_FALSE: return TERN_VALUE_BOOLEAN;
    case JSON_INTEGER: return TERN_VALUE_INTEGER;
    case JSON_REAL: return TERN_VALUE_NUMBER;
    case JSON_STRING: return TERN_VALUE_STRING;
    case JSON_ARRAY: return TERN_VALUE_ARRAY;
    default: return TERN_VALUE_OBJECT;
    }
}

static const json_t *referred(const json_t *root, const char *ref)
{
    static const char *const lists[] = {"$defs", "definitions"};
    const char *name = strrchr(ref, '/');
    for (int i = 0; name && i < 2; i++) {
        const json_t *found = json_object_get(json_object_get(root, lists[i]), name + 1);
        if (found)
            return found;
    }
    return NULL;
}

/* left: schemas that may still be looked at. */
static uint32_t kinds_of(const json_t *root, const json_t *schema, int depth, uint32_t *left)
{
    static const char *const branches[] = {"anyOf", "oneOf", "allOf"};
    const json_t *type = json_object_get(schema, "type"), *value;
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    uint32_t kinds = kind_named(json_string_value(type));
    size_t i;
    if (depth > 8 || (*left)-- == 0) {
        *left = 0;
        return TERN_VALUE_ANY;
    }
    if (ref)
        return kinds_of(root, referred(root, ref), depth + 1, left);
    json_array_foreach(type, i, value)
        kinds |= kind_named(json_string_value(value));
    if (type)
        return kinds;
    json_array_foreach(json_object_get(schema, "enum"), i, value)
        kinds |= kind_of(value);
    value = json_object_get(schema, "const");
    kinds |= value ? kind_of(value) : 0;
    for (int k = 0; k < 3; k++) {
        const json_t *list = json_object_get(schema, branches[k]);
        json_array_foreach(list, i, value)
            kinds |= kinds_of(root, value, depth + 1, left);
    }
    return kinds;
}

uint32_t tern_reply_kinds(const json_t *root, const json_t *schema, int depth)
{
    uint32_t left = MOST_LOOKED_AT;
    return kinds_of(root, schema, depth, &left);
}

/* --- what rules are made of --- */

static bool fail(struct writer *w, const char *name, const char *why)
{
    snprintf(w->line, TERN_ARGS_LINE, "tool '%.64s': %s", name ? name : "", why);
    return false;
}

static void literal(struct writer *w, const char *text)
{
    tern_schema_literal(w->o, text, strlen(text));
}

/* The control token that a tag is; -1: it is text. */
static tern_token control_token(const tern_model *model, const char *tag)
{
    struct tern_ids ids;
    tern_piece piece;
    tern_error err;
    if (!tern_ids_of(model, (tern_text){tag, strlen(tag)},
                     TERN_TOKENIZE_SPECIAL | TERN_TOKENIZE_NO_BOS, &ids, &err))
        return -1;
    const tern_token token = ids.n == 1 ? ids.at[0] : -1;
    tern_ids_free(&ids);
    return token >= 0 && tern_token_piece(model, token, &piece) == TERN_OK &&
           piece.kind == TERN_TOKEN_CONTROL ? token : -1;
}

static void tag(struct writer *w, const char *text)
{
    const tern_token token = w->g->model ? control_token(w->g->model, text) : -1;
    if (token >= 0)
        tern_out_print(w->o, "<[%d]>", token);
    else
        literal(w, text);
}

/* A schema to have a rule, of a tool or not; takes the reference over. */
static bool want_rule(struct writer *w, json_t *schema, const json_t *tool)
{
    if (!schema || w->n_schemas == MOST_SCHEMAS) {
        json_decref(schema);
        snprintf(w->line, TERN_ARGS_LINE, "tools: more than %d schemas", (int)MOST_SCHEMAS);
        return false;
    }
    w->schemas[w->n_schemas++] = (struct tern_schema_part){schema, tern_reply_tool_name(tool), 0};
    return true;
}

/* The rule of the next schema, in the order in which they were wanted. */
static uint32_t next_rule(struct writer *w)
{
    return w->schemas[w->n_used++].rule;
}

static bool is_json_form(const struct writer *w)
{
    return w->g->format == TERN_CALLS_HERMES || w->g->format == TERN_CALLS_LLAMA3;
}

static bool is_text(const struct writer *w, const json_t *root, const json_t *schema)
{
    const uint32_t kinds = tern_reply_kinds(root, schema, 0);
    return w->g->format == TERN_CALLS_XML && (kinds == 0 || kinds & TERN_VALUE_STRING);
}

/* A parameter's schema with what it may refer to. */
static json_t *with_definitions(const json_t *root, json_t *schema)
{
    static const char *const lists[] = {"$defs", "definitions"};
    json_t *out = json_copy(schema);
    for (int i = 0; out && json_is_object(schema) && i < 2; i++) {
        json_t *list = json_object_get(root, lists[i]);
        if (list)
            json_object_set(out, lists[i], list);
    }
    return out;
}

/* Arguments are an object, of what is declared. */
static json_t *as_object(json_t *schema)
{
    json_t *out = json_is_object(schema) ? json_copy(schema) : json_object();
    if (json_object_size(out) == 0)
        json_object_set_new(out, "properties", json_object());
    if (json_object_get(out, "properties") && !json_object_get(out, "type"))
        json_object_set_new(out, "type", json_string("object"));
    if (json_object_get(out, "properties") && !json_object_get(out, "additionalProperties"))
        json_object_set_new(out, "additionalProperties", json_false());
    return out;
}

static bool check_name(struct writer *w, const json_t *tool)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.-";
    const char *name = tern_reply_tool_name(tool);
    if (!name || !*name || strlen(name) > 128 || strspn(name, allowed) != strlen(name))
        return fail(w, name, "a name of up to 128 letters, digits, _ . and - needed");
    return true;
}

static bool gather(struct writer *w)
{
    size_t i;
    json_t *tool, *schema;
    const char *key;
    if (w->g->answer && !want_rule(w, json_deep_copy(w->g->answer), NULL))
        return false;
    json_array_foreach(w->g->tools, i, tool) {
        json_t *root = tern_reply_tool_schema(tool);
        if (!check_name(w, tool))
            return false;
        if (is_json_form(w)) {
            if (!want_rule(w, as_object(root), tool))
                return false;
            continue;
        }
        json_object_foreach(json_object_get(root, "properties"), key, schema) {
            if (strpbrk(key, "<>\n=(), \"'") || !*key)
                return fail(w, tern_reply_tool_name(tool), "a parameter's name can not be written");
            if (!is_text(w, root, schema) && !want_rule(w, with_definitions(root, schema), tool))
                return false;
        }
    }
    return true;
}

/* --- text up to a tag --- */

static const char *const value_ends[] = {"</parameter>", "<parameter=", "</function>"};

/* The first of the tags that begins like the i-th does. */
static int first_like(int i, size_t n)
{
    int k = 0;
    while (strncmp(value_ends[k], value_ends[i], n) != 0)
        k++;
    return k;
}

/* Rules of an automaton that reads anything but one of the tags: xI-N has read N bytes of the
 * I-th. All of them begin with <, which none has elsewhere. */
static void write_text_rules(struct tern_out *o)
{
    for (int i = 0; i < 3; i++)
        for (size_t n = 0; n < strlen(value_ends[i]); n++) {
            char taken[8] = "<";
            if (first_like(i, n) != i)
                continue;
            tern_out_print(o, "x%d-%zu ::= \"\" | \"<\" x0-1", i, n);
            for (int k = i; n && k < 3; k++) {
                const char next = value_ends[k][n];
                if (strncmp(value_ends[k], value_ends[i], n) != 0 || strchr(taken, next))
                    continue;
                taken[strlen(taken)] = next;
                if (value_ends[k][n + 1])
                    tern_out_print(o, " | \"%c\" x%d-%zu", next, first_like(k, n + 1), n + 1);
            }
            tern_out_print(o, " | [^%s] x0-0\n", taken);
        }
}

/* --- the forms --- */

/* "name" and what stands between it and the arguments, to the object's end. */
static void write_json_calls(struct writer *w)
{
    const char *key = w->g->format == TERN_CALLS_LLAMA3 ? "\"parameters\"" : "\"arguments\"";
    size_t i;
    json_t *tool;
    json_array_foreach(w->g->tools, i, tool) {
        tern_out_print(w->o, "c%zu ::= ws \"\\\"%s\\\"\" ws \",\" ws ", i,
                       tern_reply_tool_name(tool));
        literal(w, key);
        tern_out_print(w->o, " ws \":\" ws r%u ws \"}\"\n", next_rule(w));
    }
}

static bool is_required(const json_t *root, const char *key)
{
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(root, "required"), i, each)
        if (json_is_string(each) && strcmp(json_string_value(each), key) == 0)
            return true;
    return false;
}

static void write_value(struct writer *w, const json_t *root, const json_t *schema)
{
    if (is_text(w, root, schema)) {
        tern_out_print(w->o, "x0-0");
        return;
    }
    const uint32_t rule = next_rule(w), kinds = tern_reply_kinds(root, schema, 0);
    tern_out_print(w->o, "(r%u", rule);
    if (w->g->format == TERN_CALLS_LFM2 && kinds & TERN_VALUE_BOOLEAN)
        tern_out_print(w->o, " | \"True\" | \"False\"");
    if (w->g->format == TERN_CALLS_LFM2 && kinds & TERN_VALUE_NULL)
        tern_out_print(w->o, " | \"None\"");
    tern_out_print(w->o, ")");
}

static void write_member(struct writer *w, const json_t *root, const char *key,
                         const json_t *schema)
{
    const bool xml = w->g->format == TERN_CALLS_XML;
    if (xml)
        literal(w, "<parameter=");
    tern_out_print(w->o, " ");
    literal(w, key);
    tern_out_print(w->o, " ");
    literal(w, xml ? ">\n" : "=");
    tern_out_print(w->o, " ");
    write_value(w, root, schema);
    if (xml) {
        tern_out_print(w->o, " ");
        literal(w, "\n</parameter>\n");
    }
    tern_out_print(w->o, "\n");
}

/* mI-K is the K-th parameter, bI-K what may stand from there on behind others, and aI-K with none
 * before it. */
static void write_members(struct writer *w, size_t i, const json_t *root)
{
    const char *key;
    json_t *schema, *properties = json_object_get(root, "properties");
    const char *comma = w->g->format == TERN_CALLS_LFM2 ? "\",\" \" \"? " : "";
    size_t k = 0;
    json_object_foreach(properties, key, schema) {
        const bool required = is_required(root, key);
        tern_out_print(w->o, "m%zu-%zu ::= ", i, k);
        write_member(w, root, key, schema);
        tern_out_print(w->o, "b%zu-%zu ::= (%sm%zu-%zu)%s b%zu-%zu\n", i, k, comma, i, k,
                       required ? "" : "?", i, k + 1);
        tern_out_print(w->o, "a%zu-%zu ::= m%zu-%zu b%zu-%zu", i, k, i, k, i, k + 1);
        if (!required)
            tern_out_print(w->o, " | a%zu-%zu", i, k + 1);
        tern_out_print(w->o, "\n");
        k++;
    }
    tern_out_print(w->o, "a%zu-%zu ::= \"\"\nb%zu-%zu ::= \"\"\n", i, k, i, k);
}

static void write_function_calls(struct writer *w)
{
    const bool xml = w->g->format == TERN_CALLS_XML;
    size_t i;
    json_t *tool;
    json_array_foreach(w->g->tools, i, tool) {
        tern_out_print(w->o, "c%zu ::= ", i);
        literal(w, tern_reply_tool_name(tool));
        if (xml)
            tern_out_print(w->o, " \">\\n\" a%zu-0 \"</function>\\n\"\n", i);
        else
            tern_out_print(w->o, " \"(\" a%zu-0 \")\"\n", i);
        write_members(w, i, tern_reply_tool_schema(tool));
    }
    if (xml)
        write_text_rules(w->o);
}

static void write_any_call(struct writer *w)
{
    tern_out_print(w->o, "call ::= ");
    for (size_t i = 0; i < json_array_size(w->g->tools); i++)
        tern_out_print(w->o, i ? " | c%zu" : "c%zu", i);
    tern_out_print(w->o, "\n");
}

/* calls: what stands behind the trigger; first: what stands before that. */
static void write_calls(struct writer *w)
{
    struct tern_out *o = w->o;
    const bool many = !w->g->one_call;
    const char *more = many ? " (\"\\n\"? first body)*" : "";
    switch (w->g->format) {
    case TERN_CALLS_HERMES:
        tern_out_print(o, "first ::= ");
        tag(w, "<tool_call>");
        tern_out_print(o, "\nbody ::= ws \"{\" ws \"\\\"name\\\"\" ws \":\" call ws ");
        tag(w, "</tool_call>");
        tern_out_print(o, "\ncalls ::= body%s\n", more);
        break;
    case TERN_CALLS_XML:
        tern_out_print(o, "first ::= ");
        tag(w, "<tool_call>");
        tern_out_print(o, " \"\\n<function=\"\nbody ::= call ");
        tag(w, "</tool_call>");
        tern_out_print(o, "\ncalls ::= body%s\n", more);
        break;
    case TERN_CALLS_LFM2:
        tern_out_print(o, "first ::= ");
        tag(w, "<|tool_call_start|>");
        tern_out_print(o, "\ncalls ::= \"[\" call %s\"]\" ", many ? "(\",\" \" \"? call)* " : "");
        tag(w, "<|tool_call_end|>");
        tern_out_print(o, "\n");
        break;
    default:
        tern_out_print(o, "first ::= \"{\\\"name\\\":\"\ncalls ::= call\n");
    }
    write_any_call(w);
    if (is_json_form(w))
        write_json_calls(w);
    else
        write_function_calls(w);
}

static void write_root(struct writer *w)
{
    const struct tern_reply_grammar *g = w->g;
    if (!g->at_start) {
        tern_out_print(w->o, "root ::= calls\n");
        return;
    }
    /* Behind reasoning models begin with empty lines. */
    tern_out_print(w->o, "root ::= \"\\n\"{0,2} (");
    if (g->answer)
        tern_out_print(w->o, "r%u", next_rule(w));
    if (g->tools)
        tern_out_print(w->o, "%sfirst calls", g->answer ? " | " : "");
    tern_out_print(w->o, ")\n");
}

bool tern_reply_grammar_write(const struct tern_reply_grammar *g, struct tern_out *gbnf,
                              struct tern_out *dropped, char line[TERN_ARGS_LINE])
{
    static struct writer w;
    static struct tern_out rules;
    memset(&w, 0, sizeof w);
    w.g = g;
    w.o = gbnf;
    w.line = line;
    tern_out_open(&rules, -1);
    bool ok = gather(&w) && tern_schema_write_all(w.schemas, w.n_schemas, &rules,
                                                  g->answer && !g->tools ? NULL : dropped,
                                                  g->work, line);
    if (ok) {
        write_root(&w);
        if (g->tools)
            write_calls(&w);
        tern_out_put(gbnf, rules.grown, rules.n);
    }
    tern_out_free(&rules);
    for (uint32_t i = 0; i < w.n_schemas; i++)
        json_decref(w.schemas[i].schema);
    return ok;
}
