/* test_reply_plan.c: what is generated under tools' grammars is read as calls of their schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "small_vocab.h"
#include "tools/reply_plan.h"

static const char tools_text[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"find\", \"parameters\": {"
    "\"type\": \"object\", \"properties\": {"
    "\"what\": {\"type\": \"string\"}, \"n\": {\"type\": \"integer\", \"minimum\": 1, "
    "\"maximum\": 9}, \"deep\": {\"type\": \"boolean\"}, \"where\": {\"$ref\": \"#/$defs/place\"}, "
    "\"tags\": {\"type\": \"array\", \"items\": {\"enum\": [\"a\", \"b\"]}, \"maxItems\": 3}}, "
    "\"required\": [\"what\", \"n\"], \"$defs\": {\"place\": {\"type\": \"object\", "
    "\"properties\": {\"x\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 9}}, "
    "\"required\": [\"x\"], "
    "\"additionalProperties\": false}}}}},"
    " {\"type\": \"function\", \"function\": {\"name\": \"now\"}}]";

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    return json;
}

static const char *const sources[TERN_N_CALL_FORMATS] = {
    "tools [TOOL_CALLS]",
    "tools <tool_call>{\"name\": , \"arguments\": }</tool_call> </think>",
    "tools <tool_call><function=x><parameter=y></parameter></function></tool_call>",
    "tools {\"name\": function name, \"parameters\": dictionary}",
    "tools <|tool_list_start|>",
};

static bool open_plan(struct tern_reply_plan *p, tern_call_format format,
                      const struct tern_reply_request *r, char line[TERN_ARGS_LINE])
{
    const tern_text source = {sources[format], strlen(sources[format])};
    line[0] = 0;
    const bool ok = tern_reply_plan_open(p, NULL, source, r, true, line);
    assert_int_equal(p->reader.calls == format || r->choice == TERN_TOOLS_NONE, true);
    return ok;
}

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

/* A text of the grammar, ended as soon as it may be, some of the time. */
static bool generate(const tern_grammar *g, char *out, size_t cap)
{
    static tern_grammar_state s;
    size_t n = 0;
    tern_grammar_start(g, &s);
    while (n + 1 < cap) {
        uint8_t set[32];
        unsigned bytes[256], k = 0;
        if (tern_grammar_may_end(&s) && below(3)) {
            out[n] = 0;
            return true;
        }
        tern_grammar_expected(&s, set);
        for (unsigned b = 0x0a; b < 0x7f; b++)
            if (set[b / 8] >> b % 8 & 1)
                bytes[k++] = b;
        if (!k) {
            out[n] = 0;
            return tern_grammar_may_end(&s);
        }
        /* What closes is preferred, so that texts come to an end. */
        const char *ends = strchr("\"}])<", (int)bytes[0]);
        out[n] = (char)(ends && below(2) ? bytes[0] : bytes[below(k)]);
        for (unsigned i = 0; i < k && below(2); i++)
            if (strchr("\"}])", (int)bytes[i]))
                out[n] = (char)bytes[i];
        if (tern_grammar_advance(&s, out + n, 1) != 1)
            fail_msg("byte %d was expected and is refused", out[n]);
        n++;
    }
    return false;
}

static void check_find(const json_t *args)
{
    const json_t *n = json_object_get(args, "n"), *where = json_object_get(args, "where");
    const json_t *deep = json_object_get(args, "deep"), *tags = json_object_get(args, "tags");
    assert_true(json_is_string(json_object_get(args, "what")));
    assert_true(json_is_integer(n) && json_integer_value(n) >= 1 && json_integer_value(n) <= 9);
    assert_true(!where || json_is_number(json_object_get(where, "x")));
    assert_true(!deep || json_is_boolean(deep));
    assert_true(!tags || (json_is_array(tags) && json_array_size(tags) <= 3));
}

/* Reads a reply of calls alone; answers how many. */
static uint32_t read_calls(const struct tern_reply_plan *p, const char *text)
{
    static _Alignas(16) unsigned char memory[TERN_REPLY_BYTES];
    static char args[1 << 16];
    char name[32] = "";
    tern_reply *r;
    tern_part part;
    size_t n = 0;
    uint32_t n_calls = 0;
    assert_int_equal(tern_reply_init((tern_memory){memory, sizeof memory}, &p->reader, &r, NULL),
                     TERN_OK);
    tern_reply_push(r, (tern_text){text, strlen(text)}, true);
    while (tern_reply_next(r, &part)) {
        if (part.kind == TERN_PART_CALL) {
            snprintf(name, sizeof name, "%.*s", (int)part.text.size, part.text.data);
            n = 0;
        } else if (part.kind == TERN_PART_ARGUMENTS) {
            memcpy(args + n, part.text.data, part.text.size);
            n += part.text.size;
        } else if (part.kind == TERN_PART_CALL_END) {
            json_t *json = part.whole ? json_loadb(args, n, 0, NULL) : NULL;
            if (!json)
                fail_msg("no JSON: %.*s\nof: %s", (int)n, args, text);
            if (strcmp(name, "find") == 0)
                check_find(json);
            else
                assert_true(strcmp(name, "now") == 0 && json_object_size(json) == 0);
            json_decref(json);
            n_calls++;
        } else {
            fail_msg("text: %.*s\nof: %s", (int)part.text.size, part.text.data, text);
        }
    }
    return n_calls;
}

static void what_a_grammar_lets_in_is_read_as_calls(void **state)
{
    (void)state;
    static char text[1 << 14];
    char line[TERN_ARGS_LINE];
    json_t *tools = parse(tools_text);
    for (int f = TERN_CALLS_HERMES; f < TERN_N_CALL_FORMATS; f++)
        for (int must = 0; must < 2; must++) {
            static struct tern_reply_plan p;
            uint32_t n_calls = 0, n_texts = 0;
            const struct tern_reply_request r = {
                .tools = tools, .choice = must ? TERN_TOOLS_REQUIRED : TERN_TOOLS_AUTO};
            if (!open_plan(&p, (tern_call_format)f, &r, line))
                fail_msg("%s\n%.*s", line, (int)p.gbnf.n, p.gbnf.grown);
            assert_int_equal(p.trigger.size > 0, !must);
            for (random_state = 0; random_state < 60; random_state++) {
                const uint64_t seed = random_state;
                memcpy(text, p.trigger.data ? p.trigger.data : "", p.trigger.size);
                if (generate(p.constraint.grammar, text + p.trigger.size, 8000)) {
                    n_calls += read_calls(&p, text);
                    n_texts++;
                }
                random_state = seed;
            }
            if (n_texts < 20 || n_calls < n_texts)
                fail_msg("format %d: %u calls in %u texts", f, n_calls, n_texts);
            tern_reply_plan_close(&p);
        }
    json_decref(tools);
}

static bool lets_in(const struct tern_reply_plan *p, const char *text)
{
    static tern_grammar_state s;
    tern_grammar_start(p->constraint.grammar, &s);
    return tern_grammar_advance(&s, text, strlen(text)) == strlen(text) &&
           tern_grammar_may_end(&s);
}

struct row { tern_call_format format; bool must, one, in; const char *text; };

static void grammars_let_in_what_models_write(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {TERN_CALLS_HERMES, false, false, true,
         "\n{\"name\": \"find\", \"arguments\": {\"what\": \"x\", \"n\": 3}}\n</tool_call>\n"
         "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
        {TERN_CALLS_HERMES, false, true, false,
         "\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n"
         "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
        {TERN_CALLS_HERMES, false, false, false,
         "\n{\"name\": \"find\", \"arguments\": {\"what\": \"x\"}}\n</tool_call>"},
        {TERN_CALLS_HERMES, false, false, false,
         "\n{\"name\": \"lost\", \"arguments\": {}}\n</tool_call>"},
        {TERN_CALLS_HERMES, true, false, true,
         "\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
        {TERN_CALLS_HERMES, true, false, false, "Hello"},
        {TERN_CALLS_XML, false, false, true,
         "find>\n<parameter=what>\na < b </p>\n\"</param>\"\n</parameter>\n<parameter=n>\n3\n"
         "</parameter>\n<parameter=tags>\n[\"a\"]\n</parameter>\n</function>\n</tool_call>"},
        {TERN_CALLS_XML, false, false, false,
         "find>\n<parameter=what>\nx\n</parameter>\n</function>\n</tool_call>"},
        {TERN_CALLS_XML, true, false, true,
         "<tool_call>\n<function=now>\n</function>\n</tool_call>\n"
         "<tool_call>\n<function=now>\n</function>\n</tool_call>"},
        {TERN_CALLS_LLAMA3, false, false, true,
         " \"find\", \"parameters\": {\"what\": \"x\", \"n\": 3, \"deep\": true}}"},
        {TERN_CALLS_LLAMA3, true, false, true, "{\"name\": \"now\", \"parameters\": {}}"},
        {TERN_CALLS_LFM2, false, false, true,
         "[find(what=\"x\", n=3, deep=True, where={\"x\": 1.5}), now()]<|tool_call_end|>"},
        {TERN_CALLS_LFM2, false, false, false, "[find(n=3)]<|tool_call_end|>"},
        {TERN_CALLS_LFM2, false, false, false, "[find(what=\"x\"n=3)]<|tool_call_end|>"},
        {TERN_CALLS_LFM2, true, false, true, "<|tool_call_start|>[now()]<|tool_call_end|>"},
    };
    char line[TERN_ARGS_LINE];
    json_t *tools = parse(tools_text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct tern_reply_plan p;
        const struct tern_reply_request r = {
            .tools = tools, .one_call = rows[i].one,
            .choice = rows[i].must ? TERN_TOOLS_REQUIRED : TERN_TOOLS_AUTO};
        if (!open_plan(&p, rows[i].format, &r, line))
            fail_msg("%s", line);
        if (lets_in(&p, rows[i].text) != rows[i].in)
            fail_msg("row %zu: %s\n%.*s", i, rows[i].text, (int)p.gbnf.n, p.gbnf.grown);
        tern_reply_plan_close(&p);
    }
    json_decref(tools);
}

static void one_tool_may_be_named_and_none_be_wanted(void **state)
{
    (void)state;
    char line[TERN_ARGS_LINE];
    static struct tern_reply_plan p;
    json_t *tools = parse(tools_text);
    struct tern_reply_request r = {.tools = tools};
    json_t *choice = parse("{\"type\": \"function\", \"function\": {\"name\": \"now\"}}");
    assert_true(tern_reply_choice(choice, &r, line));
    json_decref(choice);
    choice = parse("{\"type\": \"function\", \"function\": {\"name\": \"now\"}}");
    assert_true(tern_reply_choice(choice, &r, line));
    assert_true(open_plan(&p, TERN_CALLS_HERMES, &r, line));
    assert_true(lets_in(&p, "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"));
    assert_false(lets_in(&p, "<tool_call>{\"name\":\"find\",\"arguments\":{\"what\":\"\","
                             "\"n\":1}}</tool_call>"));
    tern_reply_plan_close(&p);
    r.tool = "lost";
    assert_false(open_plan(&p, TERN_CALLS_HERMES, &r, line));
    assert_string_equal(line, "tool_choice: there is no tool 'lost'");
    tern_reply_plan_close(&p);
    json_decref(choice);
    r.choice = TERN_TOOLS_NONE;
    assert_true(open_plan(&p, TERN_CALLS_HERMES, &r, line));
    assert_null(p.tools);
    assert_null(p.constraint.grammar);
    assert_int_equal(p.reader.calls, TERN_CALLS_NONE);
    tern_reply_plan_close(&p);
    r.choice = TERN_TOOLS_REQUIRED;
    assert_false(open_plan(&p, TERN_CALLS_NONE, &r, line));
    assert_string_equal(line, "tool_choice: how this model writes calls is not known");
    tern_reply_plan_close(&p);
    choice = json_integer(3);
    assert_false(tern_reply_choice(choice, &r, line));
    json_decref(choice);
    json_decref(tools);
}

static void an_answer_may_be_held_to_a_schema_beside_tools(void **state)
{
    (void)state;
    char line[TERN_ARGS_LINE];
    static struct tern_reply_plan p;
    json_t *tools = parse(tools_text);
    json_t *schema = parse("{\"type\": \"object\", \"required\": [\"a\"], "
                           "\"properties\": {\"a\": {\"type\": \"integer\"}}, "
                           "\"additionalProperties\": false}");
    struct tern_reply_request r = {.tools = tools, .schema = schema};
    assert_true(open_plan(&p, TERN_CALLS_HERMES, &r, line));
    assert_int_equal(p.trigger.size, 0);
    assert_true(lets_in(&p, "\n\n{\"a\": 1}"));
    assert_true(lets_in(&p, "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"));
    assert_false(lets_in(&p, "{\"b\": 1}"));
    tern_reply_plan_close(&p);
    r.tools = NULL;
    assert_true(open_plan(&p, TERN_CALLS_HERMES, &(struct tern_reply_request){.schema = schema,
                          .choice = TERN_TOOLS_NONE}, line));
    assert_true(lets_in(&p, "{\"a\": 1}"));
    tern_reply_plan_close(&p);
    json_decref(schema);
    json_decref(tools);
}

static void kinds_are_what_schemas_mean(void **state)
{
    (void)state;
    static const struct { const char *schema; uint32_t kinds; } rows[] = {
        {"{\"type\": \"string\"}", TERN_VALUE_STRING},
        {"{\"type\": [\"integer\", \"null\"]}", TERN_VALUE_INTEGER | TERN_VALUE_NULL},
        {"{\"type\": \"float\"}", TERN_VALUE_NUMBER},
        {"{\"enum\": [1, \"a\", null]}", TERN_VALUE_INTEGER | TERN_VALUE_STRING | TERN_VALUE_NULL},
        {"{\"anyOf\": [{\"type\": \"array\"}, {\"const\": true}]}",
         TERN_VALUE_ARRAY | TERN_VALUE_BOOLEAN},
        {"{\"$ref\": \"#/$defs/a\"}", TERN_VALUE_OBJECT},
        {"{\"$ref\": \"#/$defs/loop\"}", TERN_VALUE_ANY},
        {"{}", 0},
    };
    json_t *root = parse("{\"$defs\": {\"a\": {\"type\": \"object\"}, "
                         "\"loop\": {\"$ref\": \"#/$defs/loop\"}}}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *schema = parse(rows[i].schema);
        assert_int_equal(tern_reply_kinds(root, schema, 0), rows[i].kinds);
        json_decref(schema);
    }
    json_decref(root);
}

/* --- with a vocabulary --- */

static struct opened *open_vocabulary(void)
{
    static struct small_vocab v;
    memset(&v, 0, sizeof v);
    sv_add_bytes(&v);
    sv_add(&v, "</think>", TERN_TOKEN_USER, 0);
    sv_add(&v, "<|tool_call_start|>", TERN_TOKEN_CONTROL, 0);
    sv_add(&v, "<|tool_call_end|>", TERN_TOKEN_CONTROL, 0);
    return sv_open(&v, "gpt2", "qwen2");
}

static bool says_thinking(const struct tern_reply_plan *p, bool on)
{
    const json_t *said = json_object_get(p->variables, "enable_thinking");
    return on ? json_is_true(said) : json_is_false(said);
}

static void thinking_is_turned_off_or_bounded(void **state)
{
    (void)state;
    static struct tern_reply_plan p;
    char line[TERN_ARGS_LINE];
    struct opened *o = open_vocabulary();
    const tern_text source = {sources[TERN_CALLS_HERMES], strlen(sources[TERN_CALLS_HERMES])};
    static const tern_token end[] = {'\n', 256, '\n', '\n'};
    struct tern_reply_request r = {.effort = "none"};
    tern_seq_options options = {.max_tokens = 5};
    assert_true(tern_reply_plan_open(&p, o->model, source, &r, true, line));
    assert_true(says_thinking(&p, false));
    assert_string_equal(json_string_value(json_object_get(p.variables, "reasoning_effort")),
                        "none");
    tern_reply_plan_prompt(&p, (tern_text){"<think>\n", 8});
    tern_reply_plan_options(&p, &options);
    assert_true(options.thinks && options.think_limited && options.think_tokens == 0);
    assert_int_equal(options.n_think_end, 4);
    assert_memory_equal(options.think_end, end, sizeof end);
    assert_int_equal(options.think_close.size, 8);
    assert_int_equal(options.n_shown, 2);
    assert_int_equal(options.max_tokens, 5);
    tern_reply_plan_close(&p);

    r = (struct tern_reply_request){.effort = "high", .has_budget = true, .budget = 100};
    assert_true(tern_reply_plan_open(&p, o->model, source, &r, true, line));
    assert_null(json_object_get(p.variables, "enable_thinking"));
    assert_true(p.limited && p.budget == 100);
    tern_reply_plan_close(&p);

    r = (struct tern_reply_request){.has_thinking = true, .thinking = true};
    assert_true(tern_reply_plan_open(&p, o->model, source, &r, true, line));
    assert_true(says_thinking(&p, true) && !p.limited);
    tern_reply_plan_close(&p);

    /* A template without tags has nothing to bound. */
    r = (struct tern_reply_request){.has_budget = true};
    assert_true(tern_reply_plan_open(&p, o->model, (tern_text){"x", 1}, &r, true, line));
    assert_false(p.limited);
    tern_reply_plan_close(&p);
    open_close(o);
}

static void tags_that_are_control_tokens_stand_as_such_in_grammars(void **state)
{
    (void)state;
    static struct tern_reply_plan p;
    static tern_grammar_state s;
    char line[TERN_ARGS_LINE];
    struct opened *o = open_vocabulary();
    json_t *tools = parse(tools_text);
    const tern_text source = {sources[TERN_CALLS_LFM2], strlen(sources[TERN_CALLS_LFM2])};
    const struct tern_reply_request r = {.tools = tools, .choice = TERN_TOOLS_REQUIRED};
    if (!tern_reply_plan_open(&p, o->model, source, &r, true, line))
        fail_msg("%s", line);
    tern_grammar_start(p.constraint.grammar, &s);
    assert_true(tern_grammar_accept(&s, o->model, 257));
    assert_int_equal(tern_grammar_advance(&s, "[now()]", 7), 7);
    assert_false(tern_grammar_may_end(&s));
    assert_true(tern_grammar_accept(&s, o->model, 258));
    assert_true(tern_grammar_may_end(&s));
    tern_reply_plan_close(&p);
    json_decref(tools);
    open_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_grammar_lets_in_is_read_as_calls),
        cmocka_unit_test(grammars_let_in_what_models_write),
        cmocka_unit_test(one_tool_may_be_named_and_none_be_wanted),
        cmocka_unit_test(an_answer_may_be_held_to_a_schema_beside_tools),
        cmocka_unit_test(kinds_are_what_schemas_mean),
        cmocka_unit_test(thinking_is_turned_off_or_bounded),
        cmocka_unit_test(tags_that_are_control_tokens_stand_as_such_in_grammars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
