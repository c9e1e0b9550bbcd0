/* test_schema.c: JSON schemas, the documents that they let in, and what can not be kept to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grammar_memory.h"
#include "tools/schema.h"

enum { SCRATCH = 16 << 20, MEMORY = 4 << 20 };

struct fixture { struct grammar_memory memory; char line[TERN_ARGS_LINE]; };

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->memory = gm_open(MEMORY, SCRATCH);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    gm_close(&f->memory);
    free(f);
    return 0;
}

/* dropped: reports, or NULL for a strict setting. */
static tern_grammar *compile(struct fixture *f, const char *schema, struct tern_out *dropped)
{
    static struct tern_out gbnf;
    tern_grammar *g = NULL;
    tern_error err;
    f->line[0] = 0;
    tern_out_open(&gbnf, -1);
    const bool ok = tern_schema_write((tern_text){schema, strlen(schema)}, &gbnf, dropped, NULL,
                                      f->line);
    assert_true(ok == (f->line[0] == 0));
    if (ok)
        g = gm_compile(&f->memory, (tern_text){gbnf.grown, gbnf.n}, NULL, &err);
    if (ok && !g) {
        snprintf(f->line, sizeof f->line, "%.200s", err.text);
        tern_schema_explain((tern_text){gbnf.grown, gbnf.n}, f->line);
    }
    tern_out_free(&gbnf);
    return g;
}

static bool takes(const tern_grammar *g, const char *text)
{
    static tern_grammar_state s;
    tern_grammar_start(g, &s);
    return tern_grammar_advance(&s, text, strlen(text)) == strlen(text) &&
           tern_grammar_may_end(&s);
}

struct row { const char *schema, *in, *out; };

/* in and out: documents with a NUL each, and an empty one behind the last. */
static void expect(struct fixture *f, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tern_grammar *g = compile(f, rows[i].schema, NULL);
        if (!g)
            fail_msg("%s: %s", rows[i].schema, f->line);
        for (const char *p = rows[i].in; *p; p += strlen(p) + 1)
            if (!takes(g, p))
                fail_msg("%s refuses %s", rows[i].schema, p);
        for (const char *p = rows[i].out; *p; p += strlen(p) + 1)
            if (takes(g, p))
                fail_msg("%s takes %s", rows[i].schema, p);
    }
}

static void expect_wrong(struct fixture *f, const char *schema, const char *part)
{
    if (compile(f, schema, NULL))
        fail_msg("%s is let through", schema);
    if (!strstr(f->line, part))
        fail_msg("%s: %s", schema, f->line);
}

/* None of these is accepted and then not kept to. */
static void keywords_are_kept_to_or_refused_by_name(void **state)
{
    struct fixture *f = *state;
    static const struct row kept[] = {
        {"{\"type\":\"integer\",\"minimum\":5,\"maximum\":12}", "5\0" "12\0" "9\0", "4\0" "13\0"},
        {"{\"type\":\"integer\",\"multipleOf\":4}", "0\0" "-8\0" "104\0", "2\0" "10\0" "7\0"},
        {"{\"const\":\"a\"}", "\"a\"\0", "\"b\"\0"},
        {"{\"type\":\"string\",\"not\":{\"const\":\"a\"}}", "\"b\"\0" "\"\"\0" "\"aa\"\0",
         "\"a\"\0"},
        {"{\"allOf\":[{\"minimum\":3},{\"type\":\"integer\",\"maximum\":4}]}", "3\0" "4\0",
         "2\0" "5\0"},
        {"{\"type\":\"string\",\"format\":\"ipv4\"}", "\"1.2.3.4\"\0", "\"1.2.3\"\0"},
        {"{\"type\":\"array\",\"items\":{\"enum\":[1,2]},\"uniqueItems\":true}",
         "[]\0[1]\0[2,1]\0", "[1,1]\0[1,2,1]\0"},
        {"{\"patternProperties\":{\"^a\":{\"type\":\"integer\"}},\"type\":\"object\"}",
         "{}\0{\"ab\":1}\0{\"b\":\"x\"}\0", "{\"ab\":\"x\"}\0"},
        {"{\"type\":\"object\",\"propertyNames\":{\"maxLength\":2}}", "{\"ab\":1}\0{}\0",
         "{\"abc\":1}\0"},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"}],\"items\":{\"const\":1}}",
         "[]\0[null]\0[null,1,1]\0", "[1]\0[null,2]\0"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},"
         "\"dependentRequired\":{\"a\":[\"b\"]}}", "{}\0{\"b\":1}\0{\"a\":1,\"b\":2}\0",
         "{\"a\":1}\0"},
        {"{\"type\":\"array\",\"contains\":{\"type\":\"null\"}}", "[null]\0[1,null]\0",
         "[]\0[1]\0"},
        {"{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":2}",
         "{\"a\":1}\0{\"a\":1,\"b\":2}\0", "{}\0{\"a\":1,\"b\":2,\"c\":3}\0"},
    };
    static const char *const refused[][2] = {
        {"{\"type\":\"array\",\"uniqueItems\":true}", "'uniqueItems'"},
        {"{\"type\":\"number\",\"multipleOf\":0.123456}", "'multipleOf'"},
        {"{\"not\":{\"format\":\"date\"}}", "'not'"},
        {"{\"if\":{\"format\":\"date\"},\"then\":{\"minLength\":3}}", "'if'"},
        {"{\"type\":\"string\",\"format\":\"hostname-or-so\"}", "format: hostname-or-so"},
        {"{\"properties\":{\"a\":{\"unevaluatedProperties\":false}}}", "'unevaluatedProperties'"},
        {"{\"type\":\"thing\"}", "'type'"},
        {"{\"type\":\"integer\",\"multipleOf\":0}", "'multipleOf'"},
    };
    expect(f, kept, sizeof kept / sizeof *kept);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_wrong(f, refused[i][0], refused[i][1]);
}

static void what_is_dropped_is_reported_with_its_place(void **state)
{
    struct fixture *f = *state;
    static struct tern_out dropped;
    tern_out_open(&dropped, -1);
    tern_grammar *g = compile(f, "{\"properties\":{\"a\":{\"type\":\"array\",\"uniqueItems\":true},"
                                 "\"b\":{\"not\":{\"format\":\"date\"}}}}", &dropped);
    assert_non_null(g);
    assert_true(takes(g, "{\"a\":[1,1],\"b\":\"2024-01-01\"}"));
    tern_out_put(&dropped, "", 1);
    assert_string_equal(dropped.grown,
                        "schema: at #/properties/a: keyword 'uniqueItems' is dropped\n"
                        "schema: at #/properties/b: keyword 'not' is dropped\n");
    tern_out_free(&dropped);
}

/* Schemas of tools are written for others: what can not be kept to is no error there, for whatever
 * reason. */
static void what_can_not_be_read_is_dropped_too(void **state)
{
    struct fixture *f = *state;
    static const struct { const char *schema, *in, *said; } rows[] = {
        {"{\"properties\":{\"a\":{\"pattern\":\"(?=x)\",\"maxLength\":2}}}", "{\"a\":\"xy\"}",
         "schema: at #/properties/a: keyword 'pattern' is dropped\n"},
        {"{\"patternProperties\":{\"(?!a)\":{\"const\":1}},"
         "\"additionalProperties\":false}",
         "{\"a\":2}", "schema: at #: keyword 'patternProperties' is dropped\n"},
        {"{\"properties\":{\"a\":{\"$ref\":\"https://example.com/a\"}}}", "{\"a\":1}",
         "schema: at #/properties/a: keyword '$ref' is dropped\n"},
        {"{\"minimum\":1e30}", "1", "schema: at #: keyword 'minimum' is dropped\n"},
        {"{\"allOf\":[{\"contains\":{\"const\":1}},{\"contains\":{\"const\":2}}]}", "[1]",
         "schema: at #: keyword 'contains' is dropped\n"},
        {"{\"pattern\":\"^a*$\",\"maxLength\":5000}", "\"aa\"",
         "schema: at #: keyword 'maxLength' is dropped\n"},
        {"{\"format\":\"regex\",\"minLength\":1}", "\"(\"",
         "schema: at #: keyword 'format: regex' is dropped\n"},
    };
    static struct tern_out dropped;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_out_open(&dropped, -1);
        tern_grammar *g = compile(f, rows[i].schema, &dropped);
        if (!g || !takes(g, rows[i].in))
            fail_msg("%s: %s", rows[i].schema, f->line);
        tern_out_put(&dropped, "", 1);
        assert_string_equal(dropped.grown, rows[i].said);
        tern_out_free(&dropped);
        assert_null(compile(f, rows[i].schema, NULL));
    }
}

/* Read as a double, 512810581037430201.5 is an integer, and 0.1000000000000000055 is 0.1. */
static void digits_that_a_double_can_not_hold_are_left_out_where_they_count(void **state)
{
    struct fixture *f = *state;
    static const struct row rows[] = {
        {"{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}", "1.5\0" "12345678.1234567\0",
         "512810581037430201.5\0" "123456789.00000000001\0"},
        {"{\"type\":\"number\",\"not\":{\"const\":0.1}}", "0.11\0", "0.1000000000000000055\0"},
        {"{\"type\":\"number\",\"multipleOf\":3}", "6\0" "999999999999999999\0",
         "512810581037430201.0\0"},
        {"{\"type\":\"number\",\"exclusiveMaximum\":1}", "0.9999999999999\0",
         "0.99999999999999999999\0"},
        {"{\"type\":\"number\",\"maximum\":1,\"minimum\":0}", "0.12345678901234567\0",
         "1.1\0"},
    };
    expect(f, rows, sizeof rows / sizeof *rows);
}

static void references_are_followed_within_the_schema_alone(void **state)
{
    struct fixture *f = *state;
    static const struct row kept[] = {
        {"{\"$defs\":{\"childresources\":{\"type\":\"array\",\"items\":{\"$ref\":"
         "\"#/$defs/childresource\"}},\"childresource\":{\"type\":\"object\",\"properties\":"
         "{\"r\":{\"$ref\":\"#/$defs/childresources\"}}}},\"$ref\":\"#/$defs/childresources\"}",
         "[]\0[{}]\0[{\"r\":[{\"r\":[]},{}]}]\0", "{}\0[[]]\0"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}]}",
         "null\0[null,[[]]]\0", "[1]\0"},
        {"{\"$defs\":{\"a/b\":{\"const\":1},\"c~d\":{\"const\":2},\"e%f\":{\"const\":3}},"
         "\"anyOf\":[{\"$ref\":\"#/$defs/a~1b\"},{\"$ref\":\"#/$defs/c~0d\"},"
         "{\"$ref\":\"#/$defs/e%25f\"}]}", "1\0" "2\0" "3\0", "4\0"},
        {"{\"$defs\":{\"n\":{\"type\":\"integer\",\"minimum\":3}},\"$ref\":\"#/$defs/n\","
         "\"maximum\":5}", "3\0" "5\0", "2\0" "6\0"},
    };
    expect(f, kept, sizeof kept / sizeof *kept);
    expect_wrong(f, "{\"$ref\":\"#\"}", "comes back to itself");
    expect_wrong(f, "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},"
                    "\"$ref\":\"#/$defs/a\"}", "comes back to itself");
    expect_wrong(f, "{\"$ref\":\"#/$defs/none\"}", "leads nowhere");
    expect_wrong(f, "{\"$ref\":\"https://example.com/schema.json\"}", "is not within this schema");
    expect_wrong(f, "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},"
                    "\"required\":[\"a\"]}", "schema: no document can be of it");
}

static void expressions_are_read_or_refused_with_their_place(void **state)
{
    struct fixture *f = *state;
    static const struct row kept[] = {
        {"{\"type\":\"string\",\"pattern\":\"(?:ab)+\"}", "\"xabab\"\0", "\"a\"\0"},
        {"{\"type\":\"string\",\"pattern\":\"^(?:a|(?<n>b)){2}$\"}", "\"ab\"\0", "\"abc\"\0"},
    };
    static const char *const wrong[] = {
        "((((", "*a", "(?<=x)+", "a{2,1}", "a{,}", "[z-a]", "[", "\\\\", "foo**", "a)", "(?=a)",
        "a{99999}", "\\\\1", "\\\\bword", "x{3,4}{5}",
    };
    expect(f, kept, sizeof kept / sizeof *kept);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char schema[200];
        snprintf(schema, sizeof schema, "{\"type\":\"string\",\"pattern\":\"%s\"}", wrong[i]);
        expect_wrong(f, schema, "schema: at #: keyword 'pattern': ");
        assert_non_null(strstr(f->line, "character"));
    }
}

static void deep_or_wide_expressions_take_bounded_work(void **state)
{
    struct fixture *f = *state;
    char *schema = malloc(400000);
    const clock_t start = clock();
    for (int kind = 0; kind < 3; kind++) {
        size_t at = (size_t)sprintf(schema, "{\"type\":\"string\",\"pattern\":\"^");
        for (int i = 0; i < (kind == 0 ? 60000 : 60); i++)
            at += (size_t)sprintf(schema + at, kind == 0 ? "(" : kind == 1 ? "(a|b|" : "(a?b?");
        if (kind == 2)
            for (int i = 0; i < 60; i++)
                at += (size_t)sprintf(schema + at, "){0,9}");
        sprintf(schema + at, "$\"}");
        expect_wrong(f, schema, "'pattern'");
    }
    /* Dates with nested alternatives, of 240 characters. */
    size_t at = (size_t)sprintf(schema, "{\"type\":\"string\",\"pattern\":\"^(");
    for (int i = 0; i < 8; i++)
        at += (size_t)sprintf(schema + at, "(20[0-9]{2}|19[0-9]{2})-(0[1-9]|1[0-2])|");
    sprintf(schema + at, "x)$\"}");
    assert_non_null(compile(f, schema, NULL));
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10.0);
    free(schema);
}

static void large_bounds_are_counted_at_any_depth(void **state)
{
    struct fixture *f = *state;
    static const int bounds[] = {1999, 2000, 2001, 1000000};
    static char text[3000];
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (int depth = 1; depth <= 4; depth++) {
            char schema[1000] = "", tail[16] = "";
            for (int d = 0; d < depth; d++) {
                strcat(schema, "{\"type\":\"object\",\"properties\":{\"a\":");
                strcat(tail, "}}");
            }
            sprintf(schema + strlen(schema), "{\"type\":\"string\",\"maxLength\":%d}%s", bounds[i],
                    tail);
            tern_grammar *g = compile(f, schema, NULL);
            assert_non_null(g);
            for (int length = 1998; length <= 2003; length++) {
                size_t at = 0;
                for (int d = 0; d < depth; d++)
                    at += (size_t)sprintf(text + at, "{\"a\":");
                text[at++] = '"';
                memset(text + at, 'x', (size_t)length);
                at += (size_t)length;
                text[at++] = '"';
                memset(text + at, '}', (size_t)depth);
                text[at + (size_t)depth] = 0;
                assert_true(takes(g, text) == (length <= bounds[i]));
            }
        }
    tern_grammar_info info;
    tern_grammar *g = compile(f, "{\"type\":\"array\",\"items\":{\"type\":\"null\"},"
                                 "\"maxItems\":100000}", NULL);
    assert_non_null(g);
    tern_grammar_describe(g, &info);
    assert_in_range(info.n_states, 1, 100);
    assert_null(compile(f, "{\"type\":\"string\",\"minLength\":5,\"maxLength\":4}", NULL));
    assert_non_null(strstr(f->line, "schema: no document can be of it"));
}

/* As many tools as a request may bring, each with texts that are bounded. */
static void many_tools_are_one_grammar(void **state)
{
    struct fixture *f = *state;
    char *schema = malloc(100000);
    size_t at = (size_t)sprintf(schema, "{\"anyOf\":[");
    for (int i = 0; i < 32; i++)
        at += (size_t)sprintf(schema + at, "%s{\"type\":\"object\",\"properties\":{\"name\":"
                              "{\"const\":\"tool_%d\"},\"arguments\":{\"type\":\"object\","
                              "\"properties\":{\"text\":{\"type\":\"string\",\"maxLength\":2000},"
                              "\"list\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},"
                              "\"maxItems\":100000},\"when\":{\"type\":\"string\",\"format\":"
                              "\"date-time\"}},\"required\":[\"text\"]}},\"required\":[\"name\","
                              "\"arguments\"]}", i ? "," : "", i);
    sprintf(schema + at, "]}");
    const clock_t start = clock();
    tern_grammar *g = compile(f, schema, NULL);
    assert_non_null(g);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
    assert_true(takes(g, "{\"name\":\"tool_31\",\"arguments\":{\"text\":\"a\",\"list\":[1,2]}}"));
    assert_false(takes(g, "{\"name\":\"tool_32\",\"arguments\":{\"text\":\"a\"}}"));
    free(schema);
}

/* What a schema leaves out is found by turning it round: without end for one that is in a circle,
 * and for many that refer to one another. */
static void turning_round_is_bounded(void **state)
{
    struct fixture *f = *state;
    char *schema = malloc(100000);
    size_t at = (size_t)sprintf(schema, "{\"not\":{\"$ref\":\"#/$defs/d0\"},\"$defs\":{");
    for (int i = 0; i < 12; i++) {
        at += (size_t)sprintf(schema + at, "\"d%d\":{\"properties\":{", i);
        for (int k = 0; k < 20; k++)
            at += (size_t)sprintf(schema + at, "%s\"p%d\":{\"$ref\":\"#/$defs/d%d\"}",
                                  k ? "," : "", k, i + 1);
        at += (size_t)sprintf(schema + at, "}},");
    }
    sprintf(schema + at, "\"d12\":{\"const\":1}}}");
    const clock_t start = clock();
    expect_wrong(f, schema, "'not' can not be enforced");
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10.0);
    free(schema);
    expect_wrong(f, "{\"not\":{\"properties\":{\"a\":{\"$ref\":\"#\"}}}}", "'not'");
    expect_wrong(f, "{\"type\":\"object\",\"if\":{\"properties\":{\"a\":{\"$ref\":\"#\"}}},"
                    "\"then\":{\"required\":[\"b\"]}}", "'if'");
}

/* --- what asks for more work than anyone waits for --- */

/* head, then `each` so many times with a comma between them, then tail; a @ is the number of the
 * time, a ~ the next one's. */
struct hostile { const char *head, *each, *tail; int n; const char *said; };

static char *expanded(const struct hostile *h)
{
    char *out = malloc(strlen(h->head) + strlen(h->tail) + (size_t)h->n * (strlen(h->each) + 40) +
                       1), *to = out + sprintf(out, "%s", h->head);
    for (int i = 0; i < h->n; i++) {
        if (i)
            *to++ = ',';
        for (const char *p = h->each; *p; p++)
            if (*p == '@' || *p == '~')
                to += sprintf(to, "%d", i + (*p == '~'));
            else
                *to++ = *p;
    }
    strcpy(to, h->tail);
    return out;
}

static const struct hostile hostile[] = {
    {"{\"properties\":{", "\"k@\":{\"type\":\"string\",\"pattern\":\"^(a?){900}a{900}$\"}", "}}",
     60, "at #/properties/k0: keyword 'pattern': more than 100000000 steps of work"},
    {"{\"type\":\"object\",\"patternProperties\":{", "\"^(a?){900}a{900}@$\":{}", "}}", 60,
     "at #: keyword 'patternProperties': more than 100000000 steps of work"},
    {"{\"prefixItems\":[", "{\"type\":\"string\",\"pattern\":\"^[a-z]{300}[A-Z]*@$\"}", "]}", 3000,
     "at #/prefixItems/"},
    {"{\"allOf\":[", "{\"properties\":{\"k@\":{\"type\":\"null\"}}}", "]}", 9000, "steps of work"},
    {"{\"allOf\":[", "{\"properties\":{\"k\":{\"minLength\":@}}}", "]}", 20000, "steps of work"},
    {"{\"type\":\"string\",\"allOf\":[", "{\"not\":{\"const\":\"v@\"}}", "]}", 20000,
     "steps of work"},
    {"{\"allOf\":[{\"enum\":[", "\"v@\"", "]},{\"enum\":[1,2,3]},{\"enum\":[1,2]}]}", 2000000,
     "steps of work"},
    {"{\"oneOf\":[", "{\"type\":\"integer\",\"minimum\":@,\"maximum\":@}", "]}", 3000,
     "steps of work"},
    {"{\"type\":\"object\",\"properties\":{", "\"k@\":{\"type\":\"null\"}", "},"
     "\"additionalProperties\":false}", 9000, "at #: more than 8192 schemas within it"},
    {"{\"anyOf\":[", "{\"type\":\"object\",\"properties\":{\"k@\":{\"const\":@}}}", "]}", 9000,
     "more than 8192 schemas within it"},
    {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d@\":{\"allOf\":[{\"$ref\":\"#/$defs/d~\"}]}",
     ",\"d20000\":{}}}", 20000, "more than 128 references and lists within one another"},
    {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d@\":{\"not\":{\"$ref\":\"#/$defs/d~\"}}",
     ",\"d20000\":{}}}", 20000, "more than 128 references and lists within one another"},
    {"{\"properties\":{", "\"k@\":{\"type\":\"object\",\"maxProperties\":50}", "}}", 300,
     "its grammar takes more than 4194304 bytes of text"},
    {"{\"type\":\"object\",\"minProperties\":2,\"properties\":{", "\"k@\":{}", "}}", 20000,
     "at #: keyword 'minProperties': members times their most number above 4096"},
};

static double seconds_since(clock_t start)
{
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* What as many of the smallest steps take here, where instructions may be emulated. */
static double seconds_of_steps(void)
{
    const clock_t start = clock();
    for (volatile uint32_t n = 0; n < 100000000; n++)
        continue;
    return seconds_since(start);
}

static void the_work_that_a_schema_makes_is_bounded(void **state)
{
    struct fixture *f = *state;
    const double most = 5 + 25 * seconds_of_steps();
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char *schema = expanded(&hostile[i]);
        const clock_t start = clock();
        expect_wrong(f, schema, hostile[i].said);
        assert_non_null(strstr(f->line, "schema: at #"));
        assert_true(seconds_since(start) < most);
        free(schema);
    }
}

/* Nobody wrote the lines and rules of the grammar that a schema becomes. */
static void what_is_wrong_with_the_grammar_is_said_of_the_schema(void **state)
{
    struct fixture *f = *state;
    static const char *const rows[][2] = {
        {"{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]}",
         "schema: at #: a reference comes back to itself"},
        {"{\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/properties/a\"}]}}}",
         "schema: at #/properties/a: a reference comes back to itself"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
         "schema: no document can be of it"},
        {"{\"allOf\":[true,false]}", "schema: no document can be of it"},
    };
    static const struct hostile many = {"{\"properties\":{\"a\":{\"enum\":[", "\"v@\"", "]}}}",
                                        50000, ""};
    char *schema = expanded(&many);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(compile(f, rows[i][0], NULL));
        assert_string_equal(f->line, rows[i][1]);
    }
    assert_null(compile(f, schema, NULL));
    assert_string_equal(f->line, "schema: at #/properties/a: its grammar: more states than the "
                                 "scratch memory holds (74898)");
    free(schema);
}

static void what_is_said_neither_steers_a_terminal_nor_ends_a_line(void **state)
{
    struct fixture *f = *state;
    static const char schema[] = "{\"properties\":{\"a\\nroot ::= value\\u001b[1m\":{\"format\":"
                                 "\"\\n\\u001b]0;x\\u0007\"}}}";
    static struct tern_out dropped;
    expect_wrong(f, schema, "schema: at #/properties/a\\nroot ::= value?[1m: keyword 'format: "
                            "\\n?]0;x?' can not be enforced");
    tern_out_open(&dropped, -1);
    tern_grammar *g = compile(f, schema, &dropped);
    assert_non_null(g);
    assert_false(takes(g, "1,"));
    assert_ptr_equal(memchr(dropped.grown, '\n', dropped.n), dropped.grown + dropped.n - 1);
    assert_null(memchr(dropped.grown, 27, dropped.n));
    tern_out_free(&dropped);
}

static bool leaves_at_once(void *asked)
{
    ++*(int *)asked;
    return true;
}

static void it_ends_where_nobody_waits_for_it(void **state)
{
    struct fixture *f = *state;
    static struct tern_out gbnf;
    char *schema = expanded(&hostile[0]);
    int asked = 0;
    struct tern_effort effort = {.left = leaves_at_once, .self = &asked};
    tern_out_open(&gbnf, -1);
    assert_false(tern_schema_write((tern_text){schema, strlen(schema)}, &gbnf, NULL, &effort,
                                   f->line));
    assert_int_equal(asked, 1);
    assert_in_range(effort.steps, 0, 2 * TERN_EFFORT_ASKS);
    tern_out_free(&gbnf);
    free(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keywords_are_kept_to_or_refused_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_dropped_is_reported_with_its_place, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_can_not_be_read_is_dropped_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            digits_that_a_double_can_not_hold_are_left_out_where_they_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(references_are_followed_within_the_schema_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(expressions_are_read_or_refused_with_their_place, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(deep_or_wide_expressions_take_bounded_work, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(large_bounds_are_counted_at_any_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_tools_are_one_grammar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turning_round_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_work_that_a_schema_makes_is_bounded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_with_the_grammar_is_said_of_the_schema,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_said_neither_steers_a_terminal_nor_ends_a_line,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_ends_where_nobody_waits_for_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
