/* test_reply.c: what replies say, whatever pieces they come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reply.h"

/* What came out, as text: T(..) R(..) C0(name) A0(..) E0+ or E0-; pieces put together. */
struct heard { char text[20000]; size_t n; tern_part last; bool any; uint64_t at[16]; };

static void hear_text(struct heard *h, const char *text, size_t n)
{
    assert_true(h->n + n < sizeof h->text);
    memcpy(h->text + h->n, text, n);
    h->n += n;
    h->text[h->n] = 0;
}

static void hear(struct heard *h, const tern_part *p)
{
    static const char letters[] = "TRCAE";
    const bool goes_on = h->any && h->last.kind == p->kind && p->kind != TERN_PART_CALL &&
                         p->kind != TERN_PART_CALL_END && h->last.call == p->call;
    char head[3] = {letters[p->kind], (char)('0' + p->call), 0};
    const bool numbered = p->kind >= TERN_PART_CALL;
    if (h->any && !goes_on && h->last.kind != TERN_PART_CALL_END)
        hear_text(h, ")", 1);
    if (!goes_on)
        hear_text(h, head, numbered ? 2 : 1);
    if (p->kind == TERN_PART_CALL_END) {
        hear_text(h, p->whole ? "+" : "-", 1);
    } else {
        assert_true(p->text.size > 0);
        if (!goes_on)
            hear_text(h, "(", 1);
        hear_text(h, p->text.data, p->text.size);
    }
    if (p->kind == TERN_PART_CALL && p->call < 16)
        h->at[p->call] = p->at;
    h->last = *p;
    h->any = true;
}

static _Alignas(16) unsigned char memory[TERN_REPLY_BYTES];

static tern_reply *begin(const tern_reply_options *o, struct heard *h)
{
    tern_reply *r = NULL;
    memset(h, 0, sizeof *h);
    memset(memory, 0xa5, sizeof memory);
    assert_int_equal(tern_reply_init((tern_memory){memory, sizeof memory}, o, &r, NULL), TERN_OK);
    return r;
}

static void push(tern_reply *r, struct heard *h, const char *text, size_t n, bool last)
{
    char *copy = malloc(n + 1);
    tern_part p;
    memcpy(copy, text, n);
    tern_reply_push(r, (tern_text){copy, n}, last);
    while (tern_reply_next(r, &p))
        hear(h, &p);
    free(copy);
}

static void end(tern_reply *r, struct heard *h)
{
    push(r, h, "", 0, true);
    if (h->any && h->last.kind != TERN_PART_CALL_END)
        hear_text(h, ")", 1);
}

/* In one piece, byte by byte, and cut at each place. */
static void expect(const tern_reply_options *o, const char *text, const char *wanted)
{
    static struct heard h;
    const size_t n = strlen(text);
    const size_t step = n > 1000 ? 97 : 1;
    for (size_t cut = 0; cut <= n + step; cut += step) {
        tern_reply *r = begin(o, &h);
        if (cut <= n) {
            push(r, &h, text, cut, false);
            push(r, &h, text + cut, n - cut, false);
        }
        for (size_t i = 0; cut > n && i < n; i++)
            push(r, &h, text + i, 1, false);
        end(r, &h);
        if (strcmp(h.text, wanted) != 0)
            fail_msg("cut at %zu of %s:\n  %s\nwanted\n  %s", cut, text, h.text, wanted);
    }
}

struct sample { const char *text, *wanted; };

static void expect_all(const tern_reply_options *o, const struct sample *samples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect(o, samples[i].text, samples[i].wanted);
}
#define ALL(o, samples) expect_all(o, samples, sizeof samples / sizeof *samples)

static const tern_reply_options hermes = {
    .calls = TERN_CALLS_HERMES, .think_open = {"<think>", 7}, .think_close = {"</think>", 8}};

/* --- text and reasoning --- */

static void text_is_text(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"", ""},
        {"Hello, world!\n", "T(Hello, world!\n)"},
        {" \n lead and trail \n\n", "T( \n lead and trail \n\n)"},
        {"a < b <tool <<think> </think> x", "T(a < b <tool <<think> </think> x)"},
        {"<tool_ca", "T(<tool_ca)"},
        {"{\"name\": \"f\", \"size\": 2}", "T({\"name\": \"f\", \"size\": 2})"},
        {"```json\n{\"a\": {}}\n```\n", "T(```json\n{\"a\": {}}\n```\n)"},
        {"a {\"name\": \"f\", \"arguments\": {}}", "T(a {\"name\": \"f\", \"arguments\": {}})"},
        {"Gr\xc3\xbc\xc3\x9f" "e \xf0\x9f\x8c\x8d", "T(Gr\xc3\xbc\xc3\x9f" "e \xf0\x9f\x8c\x8d)"},
        {"\n", "T(\n)"},
    };
    static const tern_reply_options none = {.calls = TERN_CALLS_NONE};
    ALL(&hermes, samples);
    ALL(&none, samples);
    expect(&none, "<think>a</think>\n<tool_call>{}", "T(<think>a</think>\n<tool_call>{})");
}

static void reasoning_is_told_apart(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"<think>\nhm, 2 < 3\n</think>\n\nYes.", "R(hm, 2 < 3)T(Yes.)"},
        {"\n<think>a\n\nb</think>c", "R(a\n\nb)T(c)"},
        {"<think>\n\n</think>\n\nYes.\n", "T(Yes.\n)"},
        {"<think>never ends\n", "R(never ends)"},
        {"<think>a</thin</think>b", "R(a</thin)T(b)"},
        {"<think>a</think>b</think>c", "R(a)T(b</think>c)"},
        {"x<think>a</think>", "T(x<think>a</think>)"},
        {"<think>see <tool_call>{\"name\": \"f\"}</tool_call></think>ok",
         "R(see <tool_call>{\"name\": \"f\"}</tool_call>)T(ok)"},
        {"<think>a</think>\n", "R(a)"},
    };
    ALL(&hermes, samples);
}

static void a_prompt_may_have_begun_the_reasoning(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"\nhm\n</think>\n\nYes.", "R(hm)T(Yes.)"},
        {"</think>\n\nYes.", "T(Yes.)"},
        {"hm", "R(hm)"},
        {"<think>\nhm</think>Yes.", "R(hm)T(Yes.)"},
        {"\n</think>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
         "C0(f)A0({})E0+"},
    };
    tern_reply_options o = hermes;
    o.thinks = true;
    ALL(&o, samples);
}

static void a_long_run_of_white_space_is_kept(void **state)
{
    (void)state;
    static char text[700], wanted[700];
    const int runs[] = {256, 257, 513};
    for (int i = 0; i < 3; i++) {
        const int n = runs[i];
        snprintf(text, sizeof text, "a%*s<tool_call>{\"name\":\"f\"}", n, "");
        snprintf(wanted, sizeof wanted, "T(a%*s)C0(f)A0({})E0+", (n - 1) / 256 * 256, "");
        expect(&hermes, text, wanted);
    }
}

/* --- Hermes --- */

#define OPEN "<tool_call>\n"
#define CLOSE "\n</tool_call>"

static void calls_as_json_are_read(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {OPEN "{\"name\": \"f\", \"arguments\": {\"a\": 1}}" CLOSE, "C0(f)A0({\"a\": 1})E0+"},
        {"Let me see.\n" OPEN "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Z\xc3\xbc"
         "rich\", \"deep\": {\"l\": [1, -2.5e3, true, null, {}], \"s\": \"{[}]\\\"\"}}}" CLOSE
         "\n" OPEN "{\"name\": \"g\", \"arguments\": {}}" CLOSE "\n",
         "T(Let me see.)C0(get_weather)A0({\"city\": \"Z\xc3\xbc" "rich\", \"deep\": "
         "{\"l\": [1, -2.5e3, true, null, {}], \"s\": \"{[}]\\\"\"}})E0+C1(g)A1({})E1+"},
        {"a " OPEN "{\"name\": \"f\", \"arguments\": {}}" CLOSE "\n\nand more ",
         "T(a)C0(f)A0({})E0+T(and more)"},
        {OPEN "{\"arguments\": {\"a\": [1,\n2]}, \"name\": \"f\"}" CLOSE,
         "C0(f)A0({\"a\": [1,\n2]})E0+"},
        {OPEN "{\"id\": 12, \"type\": \"function\", \"name\": \"f\", \"arguments\": {}, "
         "\"x\": [{\"y\": 1}]}" CLOSE, "C0(f)A0({})E0+"},
        {OPEN "{\"name\": \"f\"}" CLOSE, "C0(f)A0({})E0+"},
        {OPEN "{\"name\": \"f\", \"arguments\": null}" CLOSE, "C0(f)A0({})E0+"},
        {OPEN "{\"name\": \"f\", \"arguments\": {}}", "C0(f)A0({})E0+"},
        {OPEN "{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {}}" CLOSE,
         "C0(f)A0({})E0+C1(g)A1({})E1+"},
        {OPEN "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]" CLOSE,
         "C0(f)A0({})E0+C1(g)A1({})E1+"},
        {"<think>t</think>\n\n" OPEN "{\"name\": \"f\", \"arguments\": {}}" CLOSE
         "<think>u</think>v", "R(t)C0(f)A0({})E0+R(u)T(v)"},
        {"{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "C0(f)A0({\"a\": 1})E0+"},
        {"```json\n{\n  \"name\": \"f\", \"arguments\": {}\n}\n```\n", "C0(f)A0({})E0+"},
        {"```json\n{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {}}\n```"
         "\nDone.", "C0(f)A0({})E0+C1(g)A1({})E1+T(Done.)"},
        /* The last brace is missing: the arguments are whole. */
        {OPEN "{\"name\": \"f\", \"arguments\": {\"a\": 1}" CLOSE "x",
         "C0(f)A0({\"a\": 1})E0+T(x)"},
    };
    ALL(&hermes, samples);
}

static void what_is_no_call_is_text(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"a\n" OPEN "not JSON" CLOSE, "T(a\n" OPEN "not JSON" CLOSE ")"},
        {OPEN "{\"name\": 5, \"arguments\": {}}" CLOSE,
         "T(" OPEN "{\"name\": 5, \"arguments\": {}}" CLOSE ")"},
        {OPEN "{\"name\": \"\", \"arguments\": {}}",
         "T(" OPEN "{\"name\": \"\", \"arguments\": {}})"},
        {OPEN "{\"name\": \"f\", \"arguments\": [1]}",
         "T(" OPEN "{\"name\": \"f\", \"arguments\": [1]})"},
        {OPEN "{\"arguments\": {}}" CLOSE, "T(" OPEN "{\"arguments\": {}}" CLOSE ")"},
        {OPEN "{\"arguments\": {\"a\": tru}, \"name\": \"f\"}",
         "T(" OPEN "{\"arguments\": {\"a\": tru}, \"name\": \"f\"})"},
        {OPEN "{\"name\": \"f\", ", "T(" OPEN "{\"name\": \"f\", )"},
        {"<tool_call><tool_call>{\"name\": \"f\"}</tool_call>",
         "T(<tool_call>)C0(f)A0({})E0+"},
        {"<tool_call>", "T(<tool_call>)"},
    };
    ALL(&hermes, samples);
}

static void arguments_that_break_are_cut_short(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {OPEN "{\"name\": \"f\", \"arguments\": {\"a\":}}" CLOSE,
         "C0(f)A0({\"a\":)E0-T(}}" CLOSE ")"},
        {OPEN "{\"name\": \"f\", \"arguments\": {\"a\":1,}}", "C0(f)A0({\"a\":1,)E0-T(}})"},
        {OPEN "{\"name\": \"f\", \"arguments\": {\"a\": \"b", "C0(f)A0({\"a\": \"b)E0-"},
        {OPEN "{\"name\": \"f\", \"arguments\": {\"a\": 01}} x", "C0(f)A0({\"a\": )E0-T(}} x)"},
        {OPEN "{\"name\": \"f\", \"arguments\": {a: 1}} " OPEN "{\"name\": \"g\"}",
         "C0(f)A0({)E0-T(a: 1}})C1(g)A1({})E1+"},
    };
    ALL(&hermes, samples);
}

static void text_within_arguments_is_put_right(void **state)
{
    (void)state;
#define ARGS(text) OPEN "{\"name\": \"f\", \"arguments\": {\"a\": \"" text "\"}}" CLOSE
#define GIVES(text) "C0(f)A0({\"a\": \"" text "\"})E0+"
    static const struct sample samples[] = {
        {ARGS("C:\\\\users\\\\n"), GIVES("C:\\\\users\\\\n")},
        {ARGS("C:\\users"), GIVES("C:\\\\users")},
        {ARGS("\\u00e9\\/\\\"\\n"), GIVES("\\u00e9\\/\\\"\\n")},
        {ARGS("\\ud83d\\ude00"), GIVES("\\ud83d\\ude00")},
        {ARGS("\\ud83d"), GIVES("\\ufffd")},
        {ARGS("\\ude00x"), GIVES("\\ufffdx")},
        {ARGS("\\ud83d\\ud83d\\ude00"), GIVES("\\ufffd\\ud83d\\ude00")},
        {ARGS("\\ud83d\\n"), GIVES("\\ufffd\\n")},
        {ARGS("\\ud83d\\u12x"), GIVES("\\ufffd\\\\u12x")},
        {ARGS("two\nlines\tand \\d+ \\'q\\'"), GIVES("two\\nlines\\tand \\\\d+ 'q'")},
        {ARGS("\xf0\x9f\x8c\x8d </tool_call> <think>"),
         GIVES("\xf0\x9f\x8c\x8d </tool_call> <think>")},
        {ARGS("\x01"), GIVES("\\u0001")},
    };
    ALL(&hermes, samples);
}

static void bounds_are_kept(void **state)
{
    (void)state;
    static char text[9000], wanted[9100];
    static const struct { int depth; bool whole; } depths[] = {{63, true}, {64, false}};
    for (int k = 0; k < 2; k++) { /* the arguments themselves are one */
        const int depth = depths[k].depth;
        int n = snprintf(text, sizeof text, "%s", OPEN "{\"name\": \"f\", \"arguments\": {\"a\": ");
        for (int i = 0; i < depth; i++)
            text[n++] = '[';
        for (int i = 0; i < depth; i++)
            text[n++] = ']';
        strcpy(text + n, "}}");
        static struct heard h;
        tern_reply *r = begin(&hermes, &h);
        push(r, &h, text, strlen(text), true);
        end(r, &h);
        assert_int_equal(strstr(h.text, "E0+") != NULL, depths[k].whole);
    }
    for (int size = 255; size < 258; size++) {
        snprintf(text, sizeof text, OPEN "{\"name\": \"%0*d\", \"arguments\": {}}", size, 1);
        snprintf(wanted, sizeof wanted, size <= 256 ? "C0(%0*d)A0({})E0+"
                 : "T(" OPEN "{\"name\": \"%0*d\", \"arguments\": {}})", size, 1);
        expect(&hermes, text, wanted);
    }
    /* What stands before the name is held: not without end. */
    snprintf(text, sizeof text, OPEN "{\"arguments\": {\"a\": \"%0*d\"}, \"name\": \"f\"}",
             5000, 1);
    snprintf(wanted, sizeof wanted, "T(%s)", text);
    expect(&hermes, text, wanted);
    /* Arguments have no bound. */
    snprintf(text, sizeof text, OPEN "{\"name\": \"f\", \"arguments\": {\"a\": \"%0*d\"}}",
             6000, 1);
    snprintf(wanted, sizeof wanted, "C0(f)A0({\"a\": \"%0*d\"})E0+", 6000, 1);
    expect(&hermes, text, wanted);
}

static void a_call_says_where_it_stands(void **state)
{
    (void)state;
    static struct heard h;
    static const char text[] = "So.\n" OPEN "{\"name\": \"f\", \"arguments\": {\"a\":}}";
    tern_reply *r = begin(&hermes, &h);
    push(r, &h, text, 20, false);
    push(r, &h, text + 20, strlen(text) - 20, true);
    end(r, &h);
    assert_int_equal(h.at[0], 4);
    assert_string_equal(h.text, "T(So.)C0(f)A0({\"a\":)E0-T(}})");
}

static void arguments_stream(void **state)
{
    (void)state;
    static struct heard h;
    static const char head[] = OPEN "{\"name\": \"f\", \"arguments\": {";
    tern_reply *r = begin(&hermes, &h);
    push(r, &h, head, sizeof head - 1, false);
    assert_string_equal(h.text, "C0(f)A0({");
    push(r, &h, "\"a\": \"b", 7, false);
    assert_string_equal(h.text, "C0(f)A0({\"a\": \"b");
}

/* --- Llama 3 --- */

static void calls_of_llama_3_are_read(void **state)
{
    (void)state;
    static const tern_reply_options o = {.calls = TERN_CALLS_LLAMA3};
    static const struct sample samples[] = {
        {"{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}", "C0(f)A0({\"a\": \"b\"})E0+"},
        {"\n{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}\n", "C0(f)A0({})E0+"},
        {"<|python_tag|>{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "C0(f)A0({\"a\": 1})E0+"},
        {"{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}",
         "C0(f)A0({})E0+C1(g)A1({})E1+"},
        {"{\"name\": \"f\", \"parameters\": {}}; and", "C0(f)A0({})E0+T(; and)"},
        {"<|python_tag|>brave_search.call(query=\"a b\")",
         "C0(brave_search)A0({\"query\": \"a b\"})E0+"},
        {"<|python_tag|>print(\"hi\")", "T(<|python_tag|>print(\"hi\"))"},
        {"<|python_tag|>f(a=1)", "T(<|python_tag|>f(a=1))"},
        {"{\"name\": \"f\", \"parameters\": {}}\n\nDone", "C0(f)A0({})E0+T(Done)"},
        {"{\"name\": \"f\", \"age\": 3, \"parameters\": {}}",
         "T({\"name\": \"f\", \"age\": 3, \"parameters\": {}})"},
        {"{\"answer\": 42}", "T({\"answer\": 42})"},
        {"{\"name\": \"Bob\", \"age\": 3}", "T({\"name\": \"Bob\", \"age\": 3})"},
        {"{\"name\": \"Bob\"}", "T({\"name\": \"Bob\"})"},
        {"{}", "T({})"},
        {"A {\"name\": \"f\", \"parameters\": {}}", "T(A {\"name\": \"f\", \"parameters\": {}})"},
    };
    ALL(&o, samples);
}

/* --- LFM2 --- */

#define PY(text) "<|tool_call_start|>[" text "]<|tool_call_end|>"

static void calls_as_python_are_read(void **state)
{
    (void)state;
    static const tern_reply_options o = {.calls = TERN_CALLS_LFM2};
    static const struct sample samples[] = {
        {PY("f(a=1, b=\"x\")"), "C0(f)A0({\"a\": 1, \"b\": \"x\"})E0+"},
        {PY("f()"), "C0(f)A0({})E0+"},
        {"Sure.\n" PY("get.x(city='Z\xc3\xbc" "rich', n=-1.5e3), g(ok=True, no=None)") "\nDone",
         "T(Sure.)C0(get.x)A0({\"city\": \"Z\xc3\xbc" "rich\", \"n\": -1.5e3})E0+"
         "C1(g)A1({\"ok\": true, \"no\": null})E1+T(Done)"},
        {PY("f(a=[1, 'b', {'c': (2, 3,)}, ], d={}, )"),
         "C0(f)A0({\"a\": [1, \"b\", {\"c\": [2, 3]}], \"d\": {}})E0+"},
        {PY("f(a='it\\'s \"x\"\\n', b=\"\\x41\\U0001F30D\\u00e9\")"),
         "C0(f)A0({\"a\": \"it's \\\"x\\\"\\n\", \"b\": \"\\u0041\\ud83c\\udf0d\\u00e9\"})E0+"},
        {PY("f(a=.5, b=5., c=+1_000, d=false)"),
         "C0(f)A0({\"a\": 0.5, \"b\": 5.0, \"c\": 1000, \"d\": false})E0+"},
        {PY(" f( a = 1 , b=2 ) , g( ) "), "C0(f)A0({\"a\": 1, \"b\": 2})E0+C1(g)A1({})E1+"},
        {PY("{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}}"),
         "C0(f)A0({\"a\": 1})E0+C1(g)A1({})E1+"},
        {"<|tool_call_start|>f(a=1)<|tool_call_end|>", "C0(f)A0({\"a\": 1})E0+"},
        {PY("f(\"x\")"), "T(" PY("f(\"x\")") ")"},
        {PY("[1]"), "T(" PY("[1]") ")"},
        {PY(""), "T(" PY("") ")"},
        {PY("f(a=1, b)"), "C0(f)A0({\"a\": 1)E0-T()]<|tool_call_end|>)"},
        {PY("f(a={1, 2})"), "C0(f)A0({\"a\": {)E0-T(1, 2})]<|tool_call_end|>)"},
        {PY("f(a=007)"), "C0(f)A0({\"a\": )E0-T()]<|tool_call_end|>)"},
        {"<|tool_call_start|>[f(a='b", "C0(f)A0({\"a\": \"b)E0-"},
        {"f(a=1)", "T(f(a=1))"},
    };
    ALL(&o, samples);
}

/* --- XML --- */

static uint32_t kinds(void *self, tern_text tool, tern_text key)
{
    (void)self;
    assert_memory_equal(tool.data, "f", tool.size);
    switch (key.data[0]) {
    case 'n': return TERN_VALUE_NUMBER;
    case 'i': return TERN_VALUE_INTEGER;
    case 'b': return TERN_VALUE_BOOLEAN;
    case 'l': return TERN_VALUE_ARRAY;
    case 'o': return TERN_VALUE_OBJECT | TERN_VALUE_NULL;
    case 'm': return TERN_VALUE_STRING | TERN_VALUE_NULL | TERN_VALUE_INTEGER;
    default: return TERN_VALUE_STRING;
    }
}

static const tern_reply_options xml = {.calls = TERN_CALLS_XML, .kinds = kinds};
#define X(text) "<tool_call>\n<function=f>\n" text "</function>\n</tool_call>"
#define P(key, text) "<parameter=" key ">\n" text "\n</parameter>\n"

static void calls_as_xml_are_read(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {X(P("s", "Paris")), "C0(f)A0({\"s\": \"Paris\"})E0+"},
        {X(""), "C0(f)A0({})E0+"},
        {"I look.\n\n" X(P("s", "two\n  \"lines\"\\\n") P("t", "")) "\n" X(P("u", "</param> <b>")),
         "T(I look.)C0(f)A0({\"s\": \"two\\n  \\\"lines\\\"\\\\\\n\", \"t\": \"\"})E0+"
         "C1(f)A1({\"u\": \"</param> <b>\"})E1+"},
        {"<function=f>\n" P("s", "x") "</function>", "C0(f)A0({\"s\": \"x\"})E0+"},
        {"<function=f><parameter=s>x</parameter></function></tool_call> y",
         "C0(f)A0({\"s\": \"x\"})E0+T(y)"},
        {"<tool_call><function=f><parameter=s>x<parameter=t>y</function></tool_call>",
         "C0(f)A0({\"s\": \"x\", \"t\": \"y\"})E0+"},
        {"<tool_call><function=f>" P("s", "x") "</tool_call>z", "C0(f)A0({\"s\": \"x\"})E0+T(z)"},
        {"<tool_call>\n<function=f>\nnothing", "T(<tool_call>\n<function=f>\nnothing)"},
        {"<tool_call>{\"name\": \"f\"}</tool_call>", "T(<tool_call>{\"name\": \"f\"}</tool_call>)"},
        {"<tool_call>\n<function=f>\n<parameter=s>\ncut off", "C0(f)A0({\"s\": \"cut off)E0-"},
        {"<function=f>" P("s", "x") "junk", "C0(f)A0({\"s\": \"x\")E0-T(junk)"},
    };
    ALL(&xml, samples);
}

static void values_of_xml_get_the_declared_kind(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {X(P("n", "5") P("i", "-7") P("b", "true")),
         "C0(f)A0({\"n\": 5, \"i\": -7, \"b\": true})E0+"},
        {X(P("n", "five") P("i", "1.5") P("b", "False")),
         "C0(f)A0({\"n\": \"five\", \"i\": \"1.5\", \"b\": false})E0+"},
        {X(P("l", " [1, \"a\",\n 2] ") P("o", "{\"k\": [true]}") P("p", "[1]")),
         "C0(f)A0({\"l\": [1, \"a\",\n 2], \"o\": {\"k\": [true]}, \"p\": \"[1]\"})E0+"},
        {X(P("l", "['a', (1, 2)]") P("o", "None")),
         "C0(f)A0({\"l\": [\"a\", [1, 2]], \"o\": null})E0+"},
        {X(P("m", "null") P("m", "3") P("m", "x") P("m", "\"q\"") P("s", "3")),
         "C0(f)A0({\"m\": null, \"m\": 3, \"m\": \"x\", \"m\": \"\\\"q\\\"\", \"s\": \"3\"})E0+"},
        {X(P("l", "[1, 2") P("o", "")), "C0(f)A0({\"l\": \"[1, 2\", \"o\": \"\"})E0+"},
        {X(P("n", " a\n")), "C0(f)A0({\"n\": \" a\\n\"})E0+"},
    };
    ALL(&xml, samples);
    expect(&xml, "<function=f><parameter=n>5</function>", "C0(f)A0({\"n\": 5})E0+");
    static const tern_reply_options untyped = {.calls = TERN_CALLS_XML};
    expect(&untyped, X(P("n", "5") P("o", "{}")), "C0(f)A0({\"n\": \"5\", \"o\": \"{}\"})E0+");
}

static void a_long_value_is_judged_by_its_beginning(void **state)
{
    (void)state;
    static char text[9000], wanted[9100];
    snprintf(text, sizeof text, X(P("l", "[\"%0*d\", 7]")), 4000, 1);
    snprintf(wanted, sizeof wanted, "C0(f)A0({\"l\": [\"%0*d\", 7]})E0+", 4000, 1);
    expect(&xml, text, wanted);
    snprintf(text, sizeof text, X(P("l", "%0*d")), 4000, 1);
    snprintf(wanted, sizeof wanted, "C0(f)A0({\"l\": \"%0*d\"})E0+", 4000, 1);
    expect(&xml, text, wanted);
    snprintf(text, sizeof text, X(P("l", "[\"%0*d\" <7>]")), 4000, 1);
    snprintf(wanted, sizeof wanted, "C0(f)A0({\"l\": [\"%0*d\" )E0-T(<7>]\n</parameter>\n"
             "</function>\n</tool_call>)", 4000, 1);
    expect(&xml, text, wanted);
}

/* --- templates --- */

static tern_call_format format_of(const char *source, const char **close)
{
    tern_reply_options o = {.thinks = true};
    tern_reply_detect((tern_text){source, strlen(source)}, &o);
    assert_true(o.thinks);
    *close = o.think_close.size ? o.think_close.data : "";
    return o.calls;
}

static void a_template_shows_its_forms(void **state)
{
    (void)state;
    static const struct { const char *source, *close; tern_call_format format; } rows[] = {
        {"<tool_call>{\"name\": , \"arguments\": }</tool_call> tools </think>", "</think>",
         TERN_CALLS_HERMES},
        {"tools <tool_call><function=x><parameter=y></parameter></function></tool_call>", "",
         TERN_CALLS_XML},
        {"{% if add_generation_prompt %}assistant: <think>{% endif %}", "</think>",
         TERN_CALLS_HERMES},
        {"tools <tool_call>f<arg_key>k</arg_key></tool_call> \"name\" arguments", "",
         TERN_CALLS_NONE},
        {"tools {\"name\": function name, \"parameters\": dictionary}", "", TERN_CALLS_LLAMA3},
        {"tools <|python_tag|>", "", TERN_CALLS_LLAMA3},
        {"tools <|python_tag|><function=f>{}</function>", "", TERN_CALLS_NONE},
        {"tools <|tool_list_start|>", "", TERN_CALLS_LFM2},
        {"tools [TOOL_CALLS] [/THINK]", "[/THINK]", TERN_CALLS_NONE},
        {"{% for message in messages %}", "", TERN_CALLS_HERMES},
        {"", "", TERN_CALLS_HERMES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *close;
        assert_int_equal(format_of(rows[i].source, &close), rows[i].format);
        assert_string_equal(close, rows[i].close);
    }
    tern_text shown[TERN_MAX_SHOWN];
    assert_int_equal(tern_reply_markers(&hermes, shown), 4);
    assert_memory_equal(shown[2].data, "<tool_call>", shown[2].size);
    assert_string_equal(tern_call_format_name(TERN_CALLS_LFM2), "lfm2");
    assert_string_equal(tern_call_format_name((tern_call_format)99), "none");
    assert_true(tern_reply_thinks(&hermes, (tern_text){"assistant\n<think>\n", 18}));
    assert_false(tern_reply_thinks(&hermes, (tern_text){"<think>\n\n</think>\n\n", 19}));
    assert_false(tern_reply_thinks(&hermes, (tern_text){"hink>", 5}));
}

static void memory_and_options_are_checked(void **state)
{
    (void)state;
    tern_reply *r;
    tern_error err = {0};
    char tag[TERN_MAX_TAG + 1] = {0};
    tern_reply_options o = {.think_close = {tag, sizeof tag}};
    assert_int_equal(tern_reply_init((tern_memory){memory, sizeof memory - 1}, &hermes, &r, &err),
                     TERN_NO_MEMORY);
    err = (tern_error){0};
    assert_int_equal(tern_reply_init((tern_memory){memory, sizeof memory}, &o, &r, &err),
                     TERN_BAD_ARGUMENT);
    assert_string_equal(err.text, "reply: a tag of 65 bytes, at most 64");
    o = (tern_reply_options){.calls = TERN_N_CALL_FORMATS};
    assert_int_equal(tern_reply_init((tern_memory){memory, sizeof memory}, &o, &r, NULL),
                     TERN_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_text),
        cmocka_unit_test(reasoning_is_told_apart),
        cmocka_unit_test(a_prompt_may_have_begun_the_reasoning),
        cmocka_unit_test(a_long_run_of_white_space_is_kept),
        cmocka_unit_test(calls_as_json_are_read),
        cmocka_unit_test(what_is_no_call_is_text),
        cmocka_unit_test(arguments_that_break_are_cut_short),
        cmocka_unit_test(text_within_arguments_is_put_right),
        cmocka_unit_test(bounds_are_kept),
        cmocka_unit_test(a_call_says_where_it_stands),
        cmocka_unit_test(arguments_stream),
        cmocka_unit_test(calls_of_llama_3_are_read),
        cmocka_unit_test(calls_as_python_are_read),
        cmocka_unit_test(calls_as_xml_are_read),
        cmocka_unit_test(values_of_xml_get_the_declared_kind),
        cmocka_unit_test(a_long_value_is_judged_by_its_beginning),
        cmocka_unit_test(a_template_shows_its_forms),
        cmocka_unit_test(memory_and_options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
