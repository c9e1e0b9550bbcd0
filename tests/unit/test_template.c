/* Templates rendered to text and to marks: a byte of the marks is 1 where the template wrote the
 * byte of the text, 0 where a user did. What Jinja itself makes of templates is compared in
 * tests/oracle/templates.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/tern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char text[1 << 16], marks[1 << 16];
    tern_error error;
    tern_status status;
} got;

static tern_text text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

static bool noon(void *self, tern_date *out)
{
    (void)self;
    *out = (tern_date){2024, 2, 29, 12, 5, 9};
    return true;
}

/* Renders with the variable `u` from JSON, in memory of exactly the sizes asked for. */
static void render_with(const char *source, const char *json, tern_render options)
{
    tern_template *t;
    const tern_text s = text_of(source);
    tern_memory mem = {malloc(tern_template_size(s)), tern_template_size(s)};
    memset(&got, 0, sizeof got);
    got.status = tern_template_init(mem, s, &t, &got.error);
    if (got.status == TERN_OK) {
        const tern_variable variables[] = {
            {"u", text_of(json), {NULL, 0}}, {"bos_token", {NULL, 0}, text_of("<s>")},
        };
        options.variables = variables;
        options.n_variables = 2;
        tern_memory scratch = {malloc(tern_render_scratch(&options)),
                               tern_render_scratch(&options)};
        tern_rendered r;
        got.status = tern_template_render(t, &options, scratch, &r, &got.error);
        size_t from = 0;
        for (size_t i = 0; i < r.n_runs; from = r.runs[i++].end)
            memset(got.marks + from, r.runs[i].own ? '1' : '0', r.runs[i].end - from);
        assert_int_equal(from, r.text.size);
        memcpy(got.text, r.text.data, r.text.size);
        free(scratch.data);
    }
    free(mem.data);
}

static void render(const char *source, const char *json)
{
    render_with(source, json, (tern_render){.now = noon});
}

static void check_error(const char *source, const char *json, const char *line)
{
    render(source, json);
    assert_int_not_equal(got.status, TERN_OK);
    assert_string_equal(got.error.text, line);
}

static void templates_render(void **state)
{
    (void)state;
    static const struct { const char *source, *json, *text; } rows[] = {
        {"{{ u }}", "\"a\"", "a"},
        {"{% for x in u %}{{ x }};{% endfor %}", "[1, 2.5, \"a\", null, true]",
         "1;2.5;a;None;True;"},
        {"{{ u.a['b'][-1] }}{{ u.zz }}", "{\"a\": {\"b\": [1, 2]}}", "2"},
        {"{{ u }}", "{\"a\": [1, \"it's\"]}", "{'a': [1, \"it's\"]}"},
        {"{{ u|tojson(indent=1) }}", "{\"a\": [1], \"b\": {}}",
         "{\n \"a\": [\n  1\n ],\n \"b\": {}\n}"},
        {"{% macro m(a, b=1) %}{{ a }}{{ b }}{{ caller() }}{% endmacro %}"
         "{% call m(2) %}c{% endcall %}", "0", "21c"},
        {"a\n  {% if u %}\n  b\n  {% endif %}\nc\n", "1", "a\n  b\nc"},
        {"{{ strftime_now('%d %b %Y, %A') }}", "0", "29 Feb 2024, Thursday"},
        {"{{ u[::-1] }}{{ u|length }}", "\"\\u00e9\\u65e5a\"", "a\u65e5\u00e9" "3"},
        {"{{ bos_token }}{{ u is mapping }}", "[]", "<s>False"},
        {"{% set ns = namespace(n=0) %}{% for x in u %}{% set ns.n = ns.n + x %}{% endfor %}"
         "{{ ns.n }}", "[1, 2, 3]", "6"},
        {"{% for a in u %}{% for b in u if b != a %}{% if b == 3 %}{% break %}{% endif %}"
         "{{ a }}{{ b }} {% endfor %}{% endfor %}", "[1, 2, 3]", "12 21 31 32 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        render(rows[i].source, rows[i].json);
        if (got.status)
            print_message("%s: %s\n", rows[i].source, got.error.text);
        assert_int_equal(got.status, TERN_OK);
        assert_string_equal(got.text, rows[i].text);
    }
}

static void errors_name_the_line_and_the_reason(void **state)
{
    (void)state;
    check_error("a\n{{ u.b.c }}", "{}", "template line 2: 'b' is undefined");
    check_error("\n\n{{ raise_exception('no ' ~ u) }}", "1",
                "template line 3: the template refuses: no 1");
    check_error("{% if u %}\n", "1", "template line 1: 'if' has no end");
    check_error("\n{% foo %}", "1", "template line 2: there is no tag 'foo'");
    check_error("\n{{ u|foo }}", "1", "template line 2: there is no filter 'foo'");
    check_error("{{ u is foo }}", "1", "template line 1: there is no test 'foo'");
    check_error("{{ u + 'a' }}", "1", "template line 1: a int + a str");
    check_error("{{ 9223372036854775807 + u }}", "1", "template line 1: + passes 64 bits");
    check_error("{{ u }", "1", "template line 1: unexpected '}'");
    check_error("{% for x in u %}{% endif %}", "1",
                "template line 1: 'endif' inside of 'for' of line 1");
    check_error("\xff", "1", "template: byte 0 is not UTF-8");
}

/* What the template engine of another host ran as code. */
static void nothing_lies_behind_a_value(void **state)
{
    (void)state;
    check_error("{{ u.__class__.__mro__ }}", "\"\"", "template line 1: '__class__' is undefined");
    check_error("{{ u['__class__']['x'] }}", "[]", "template line 1: '__class__' is undefined");
    check_error("{{ u.append(1) }}", "[]", "template line 1: 'append' is undefined");
    check_error("{{ u.pop('a') }}", "{\"a\": 1}", "template line 1: 'pop' is undefined");
    check_error("{% import 'os' as o %}", "1", "template line 1: there is no tag 'import'");
    check_error("{{ lipsum.__globals__ }}", "1", "template line 1: 'lipsum' is undefined");
}

static void work_is_bounded(void **state)
{
    (void)state;
    check_error("{% for i in range(10 ** 9) %}{% endfor %}", "1",
                "template line 1: range: 1000000000 numbers, at most 100000");
    check_error("{% set r = range(9000) %}{% for i in r %}{% for j in r %}{% endfor %}"
                "{% endfor %}", "1", "template line 1: more steps than the limit");
    render("{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
           "{% endfor %}", "1");
    assert_int_equal(got.status, TERN_BAD_MODEL);
    assert_non_null(strstr(got.error.text, "bytes of text"));
    render("{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
           "{% endfor %}", "1");
    assert_int_equal(got.status, TERN_NO_MEMORY);
    check_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "1",
                "template line 1: more than 200 calls and loops in one another");
    check_error("{% set ns = namespace(s=[]) %}{% for i in range(99) %}{% set ns.s = [ns.s] %}"
                "{% endfor %}{{ ns.s }}", "1", "template line 1: values nested deeper than 64");
    render_with("{{ u }}{{ u }}", "\"abc\"", (tern_render){.output_bytes = 5});
    assert_int_equal(got.status, TERN_NO_MEMORY);
    render_with("{{ u }}{{ u }}", "\"abc\"", (tern_render){.output_bytes = 6});
    assert_int_equal(got.status, TERN_OK);
    render_with("{{ 'a' * 1000000000000 }}", "1", (tern_render){.steps = 1000});
    assert_int_equal(got.status, TERN_BAD_MODEL);
}

static void nesting_in_a_template_is_bounded(void **state)
{
    (void)state;
    static char source[100000];
    static const struct { const char *piece; size_t times; } rows[] = {
        {"(", 20000}, {"[", 20000}, {"-", 20000}, {"not ", 20000}, {"(a if ", 10000},
        {"a|d(", 10000}, {"{'a':", 10000}, {"a[", 20000}, {"a and (", 9000}, {"a**", 20000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strcpy(source, "{{ ");
        char *end = source + 3;
        for (size_t k = 0; k < rows[i].times; k++, end += strlen(rows[i].piece))
            strcpy(end, rows[i].piece);
        strcpy(end, "1 }}");
        render(source, "1");
        assert_int_not_equal(got.status, TERN_OK);
    }
    source[0] = 0;
    for (size_t k = 0; k < 1000; k++)
        strcat(source, "{% if 1 %}");
    check_error(source, "1", "template line 1: blocks nested deeper than 64");
}

static void json_is_read_strictly_and_to_a_depth(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "01", "1.", ".5", "+1", "1e", "nul", "\"a",
        "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\x01\"", "\"\xff\"", "[1 2]", "1 2", "NaN", "'a'",
        "99999999999999999999", "{1:2}", "\"\\ud800\\u0041\"", "[", "]",
        "// a\n1", "\xef\xbb\xbf" "1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        render("{{ u }}", wrong[i]);
        if (got.status == TERN_OK)
            print_message("accepted: %s\n", wrong[i]);
        assert_int_equal(got.status, TERN_BAD_ARGUMENT);
    }
    static char deep[300001];
    for (size_t depth = 63; depth <= 100000; depth = depth < 65 ? depth + 1 : depth * 40) {
        for (int object = 0; object < 2; object++) {
            char *p = deep;
            for (size_t i = 0; i < depth; i++)
                p += sprintf(p, object ? "{\"\":" : "[");
            p += sprintf(p, "1");
            for (size_t i = 0; i < depth; i++)
                *p++ = object ? '}' : ']';
            *p = 0;
            render("{{ 1 }}", deep);
            assert_int_equal(got.status == TERN_OK, depth <= 64);
            if (depth * 5 > 250000)
                break;
        }
    }
    render("{{ u.a }}{{ u|length }}", "{\"a\": 1, \"b\": 2, \"a\": 3}");
    assert_string_equal(got.text, "32");
    render("{{ u }}", "\"\\ud83d\\ude00\\u00e9\\n\\/\"");
    assert_string_equal(got.text, "\U0001f600\u00e9\n/");
}

static void check_marks(const char *source, const char *json, const char *text, const char *marks)
{
    render(source, json);
    if (strcmp(got.text, text) || strcmp(got.marks, marks))
        print_message("%s: %s\n%s\n%s\n", source, got.error.text, got.text, got.marks);
    assert_string_equal(got.text, text);
    assert_string_equal(got.marks, marks);
}

static void marks_follow_each_byte(void **state)
{
    (void)state;
    check_marks("<a>{{ u }}</a>", "\"</a>\"", "<a></a></a>", "11100001111");
    check_marks("{{ '<' ~ u ~ '>' }}", "\"ab\"", "<ab>", "1001");
    check_marks("{{ '<' + u|trim|upper + '>' }}", "\" \\u00e9b \"", "<\u00c9" "B>", "10001");
    check_marks("{{ u[1:] + 'ab'[0] }}", "\"xyz\"", "yza", "001");
    check_marks("{{ (u ~ 'AB')[::-1] }}", "\"xy\"", "BAyx", "1100");
    check_marks("{{ u.replace('x', '<>') }}", "\"axb\"", "a<>b", "0110");
    check_marks("{{ 'a%sb' % u }}{{ '{}.'.format(u) }}", "\"xy\"", "axybxy.", "1001001");
    check_marks("{{ [u, 'b']|join('-') }}", "\"xy\"", "xy-b", "0011");
    check_marks("{{ u|tojson }}", "\"<|im|>\\n\"", "\"<|im|>\\n\"", "1000000001");
    check_marks("{{ u }}", "[\"a\", 1, true]", "['a', 1, True]", "11011101100001");
    check_marks("{{ u|e }}", "\"<a\"", "&lt;a", "00000");
    check_marks("{% set b %}({{ u }}){% endset %}{{ b ~ b|lower }}", "\"X\"", "(X)(x)", "101101");
    check_marks("{% macro m(a) %}[{{ a }}{{ caller() }}]{% endmacro %}"
                "{% call m(u) %}{{ u }}c{% endcall %}", "\"x\"", "[xxc]", "10011");
    check_marks("{% for c in u %}{{ c }}.{% endfor %}", "\"ab\"", "a.b.", "0101");
    check_marks("{{ u.split(',')[1] ~ u.split(',')|first }}", "\"a,b\"", "ba", "00");
    check_marks("{{ (u ~ '\\n<x>')|indent(2) }}", "\"a\"", "a\n  <x>", "0111111");
    check_marks("{{ u.a ~ u['a']|string ~ u|items|first|last }}", "{\"a\": \"b\"}", "bbb", "000");
    check_marks("{{ u ~ 5 ~ (u + 1) ~ u|int ~ '7'|int }}", "3", "35437", "01000");
    check_marks("{{ u|capitalize ~ u|title ~ u|reverse ~ u|center(4) }}", "\"ab\"",
                "AbAbba ab ", "0000001001");
    check_marks("{{ '<%d %s>' % (u, 5) ~ '{:03d}'.format(u) }}", "3", "<3 5>003", "10111110");
    check_marks("{{ 'x' if u else u }}{{ u or 'x' }}", "\"y\"", "xy", "10");
    check_marks("{{ u|replace('', '<') }}", "\"ab\"", "<a<b<", "10101");
    check_marks("{{ {'k': u}|tojson }}{{ u|safe + '<' }}", "\"<\"", "{\"k\": \"<\"}<&lt;",
                "1111111011" "0" "1111");
    check_marks("{{ u.items()|list }}{{ u.keys()|join }}", "{\"<k>\": \"v\"}",
                "[('<k>', 'v')]<k>", "11100011110111000");
}

static void scratch_is_what_was_asked_for(void **state)
{
    (void)state;
    tern_template *t;
    const tern_text s = text_of("{{ 1 }}");
    static char mem[1 << 16];
    tern_error err = {0};
    assert_int_equal(tern_template_init((tern_memory){mem, sizeof mem}, s, &t, &err), TERN_OK);
    const tern_render options = {.n_variables = 0};
    const size_t need = tern_render_scratch(&options);
    char *scratch = malloc(need);
    tern_rendered r;
    assert_int_equal(tern_template_render(t, &options, (tern_memory){scratch, need - 1}, &r, &err),
                     TERN_TOO_SMALL);
    err = (tern_error){0};
    assert_int_equal(tern_template_render(t, &options, (tern_memory){scratch, need}, &r, &err),
                     TERN_OK);
    free(scratch);
    assert_int_equal(tern_template_init((tern_memory){mem, tern_template_size(s) - 1}, s, &t, &err),
                     TERN_NO_MEMORY);
}

/* The bound of a template's size is linear; the densest sources keep within it. */
static void dense_templates_fit_their_bound(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "{{1}}", "{{a}}", "{%set a=1%}", "{{a.b.c.d}}", "{{[1,2,3,4]}}", "{{a|d|d}}",
        "{%if a%}{%endif%}", "{%for a in b%}{%endfor%}", "{{1+1+1+1}}", "{{-1*-1}}", "{{a[1:]}}",
        "{{a if b}}", "{{f(a=1,b=2)}}", "{%macro a(b=1)%}{%endmacro%}", "{%raw%}x{%endraw%}y",
        "x{{1}}", "{{0.1}}", "{{a is b}}", "{{a<1<2}}",
    };
    static char source[20000];
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        source[0] = 0;
        for (size_t n = 0; n + strlen(pieces[i]) < 4000; n += strlen(pieces[i]))
            strcat(source, pieces[i]);
        render(source, "1");
        if (strstr(got.error.text, "the code needs"))
            fail_msg("%s: %s", pieces[i], got.error.text);
    }
}

static void builtins_put_messages_between_their_markers(void **state)
{
    (void)state;
    size_t n = 0;
    for (const char *name; (name = tern_template_name_at(n)) != NULL; n++) {
        tern_template *t;
        const tern_text s = tern_template_builtin(name);
        assert_non_null(s.data);
        tern_memory mem = {malloc(tern_template_size(s)), tern_template_size(s)};
        tern_error err = {0};
        assert_int_equal(tern_template_init(mem, s, &t, &err), TERN_OK);
        const tern_variable variables[] = {
            {"messages", text_of("[{\"role\": \"system\", \"content\": \"SYS\"}, "
                                 "{\"role\": \"user\", \"content\": \"ONE\"}, "
                                 "{\"role\": \"assistant\", \"content\": \"TWO\"}, "
                                 "{\"role\": \"user\", \"content\": null}]"), {NULL, 0}},
            {"add_generation_prompt", text_of("true"), {NULL, 0}},
            {"bos_token", {NULL, 0}, text_of("<s>")}, {"eos_token", {NULL, 0}, text_of("</s>")},
        };
        const tern_render options = {.variables = variables, .n_variables = 4};
        tern_memory scratch = {malloc(tern_render_scratch(&options)),
                               tern_render_scratch(&options)};
        tern_rendered r;
        assert_int_equal(tern_template_render(t, &options, scratch, &r, &err), TERN_OK);
        static char out[4096];
        snprintf(out, sizeof out, "%.*s", (int)r.text.size, r.text.data);
        assert_true(strstr(out, "SYS") < strstr(out, "ONE"));
        assert_true(strstr(out, "SYS") && strstr(out, "ONE") < strstr(out, "TWO"));
        free(scratch.data);
        free(mem.data);
    }
    assert_true(n >= 7);
    assert_null(tern_template_builtin("no such").data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_render),
        cmocka_unit_test(errors_name_the_line_and_the_reason),
        cmocka_unit_test(nothing_lies_behind_a_value),
        cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(nesting_in_a_template_is_bounded),
        cmocka_unit_test(json_is_read_strictly_and_to_a_depth),
        cmocka_unit_test(marks_follow_each_byte),
        cmocka_unit_test(scratch_is_what_was_asked_for),
        cmocka_unit_test(dense_templates_fit_their_bound),
        cmocka_unit_test(builtins_put_messages_between_their_markers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
