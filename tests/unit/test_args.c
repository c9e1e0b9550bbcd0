#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tools/args.h"
#include "tools/options.h"

static const struct tern_option *const tables[] = {
    tern_options_prompt, tern_options_engine, tern_options_sampling, tern_options_logprobs,
    tern_options_grammar, tern_options_json, NULL,
};
static const struct tern_command command = {
    "run", "run MODEL", "", tables, NULL, "model", "a GGUF file", NULL,
};
static struct tern_settings s;
static char line[TERN_ARGS_LINE];

static bool parse(const char *words)
{
    static char copy[512];
    char *argv[32];
    int argc = 0;
    strcpy(copy, words);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    line[0] = 0;
    tern_args_defaults(&command, &s);
    return tern_args_parse(&command, argc, argv, &s, line);
}

static void defaults_are_those_that_help_prints(void **state)
{
    (void)state;
    assert_true(parse("m.gguf"));
    assert_string_equal(s.model, "m.gguf");
    assert_true(s.temperature == 0.8 && s.top_p == 0.95 && s.min_p == 0.05 && s.typical_p == 1);
    assert_int_equal(s.top_k, 40);
    assert_int_equal(s.n_predict, -1);
    assert_int_equal(s.k_type, TERN_KV_F16);
    assert_false(s.has_seed);
}

static void values_are_taken_apart_or_joined(void **state)
{
    (void)state;
    assert_true(parse("m --temp=0 -n 5 --kv-k q8_0 --kv-v=f32 --seed 18446744073709551615 --json"));
    assert_true(s.temperature == 0 && s.n_predict == 5 && s.json && s.has_seed);
    assert_int_equal(s.k_type, TERN_KV_Q8_0);
    assert_int_equal(s.v_type, TERN_KV_F32);
    assert_true(s.seed == UINT64_MAX);
    assert_true(parse("-p -x m")); /* what follows an option that wants a value is its value */
    assert_string_equal(s.prompt, "-x");
    assert_true(parse("-- -m"));
    assert_string_equal(s.model, "-m");
}

static void options_that_repeat_collect(void **state)
{
    (void)state;
    assert_true(parse("m --stop a --stop b --logit-bias 7=-1.5 --logit-bias 8=-inf"));
    assert_int_equal(s.n_stops, 2);
    assert_string_equal(s.stops[1], "b");
    assert_int_equal(s.n_biases, 2);
    assert_int_equal(s.biases[0].token, 7);
    assert_true(s.biases[0].bias == -1.5f);
    assert_true(isinf(s.biases[1].bias));
}

static void each_wrong_word_is_refused_with_its_name(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "no model"}, {"m n", "'n'"}, {"m --nosuch", "--nosuch"}, {"m -z", "-z"},
        {"m -n", "-n"}, {"m --temp nan", "--temp"}, {"m --temp inf", "--temp"},
        {"m --temp 0x10", "--temp"}, {"m --temp 1x", "--temp"}, {"m --temp .", "--temp"},
        {"m --temp -1", "--temp"}, {"m --top-p 1.5", "--top-p"}, {"m --top-k 1.5", "--top-k"},
        {"m -t 0", "--threads"}, {"m -t 10000", "1 to 256"}, {"m -t -1", "--threads"},
        {"m -t 99999999999999999999", "--threads"}, {"m -c x", "--ctx"}, {"m -c -5", "--ctx"},
        {"m --seed -1", "--seed"}, {"m --seed 18446744073709551616", "--seed"},
        {"m --kv-k f64", "f16, f32, q8_0 or q4_0"}, {"m --logit-bias 5", "ID=X"},
        {"m --logit-bias x=1", "--logit-bias"}, {"m --logit-bias 1=nan", "--logit-bias"},
        {"m --json=1", "--json"}, {"m --logprobs 1025", "--logprobs"}, {"m --temp 1e999", "--temp"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (parse(wrong[i][0]))
            fail_msg("'%s' is taken", wrong[i][0]);
        if (!strstr(line, wrong[i][1]))
            fail_msg("'%s': '%s' does not say '%s'", wrong[i][0], line, wrong[i][1]);
        assert_null(strchr(line, '\n'));
    }
}

static void options_are_set_by_name(void **state)
{
    (void)state;
    assert_true(parse("m"));
    assert_true(tern_args_set(&command, "top_k", "3", &s, line));
    assert_true(tern_args_set(&command, "top-p", "0.5", &s, line));
    assert_true(tern_args_set(&command, "n", "9", &s, line));
    assert_true(tern_args_set(&command, "ignore_eos", "true", &s, line));
    assert_true(s.top_k == 3 && s.top_p == 0.5 && s.n_predict == 9 && s.ignore_eos);
    assert_true(tern_args_set(&command, "ignore_eos", "false", &s, line));
    assert_false(s.ignore_eos);
    assert_true(tern_args_set(&command, "ignore_eos", "1", &s, line) && s.ignore_eos);
    assert_true(tern_args_set(&command, "ignore_eos", "0", &s, line) && !s.ignore_eos);
    assert_false(tern_args_set(&command, "ignore_eos", "no", &s, line));
    assert_false(tern_args_set(&command, "ignore_eos", "maybe", &s, line));
    assert_int_equal(tern_args_find(&command, "ignore_eos")->kind, TERN_OPTION_FLAG);
    assert_null(tern_args_find(&command, "--temp"));
    assert_false(tern_args_set(&command, "no such", "1", &s, line));
    assert_false(tern_args_set(&command, "", "1", &s, line));
    assert_false(tern_args_set(&command, "temp", "hot", &s, line));
    assert_string_equal(line, "temp: 'hot' given, a number from 0 to 1000 needed");
    assert_false(tern_args_set(&command, "top_k", "x", &s, line));
    assert_string_equal(line, "top_k: 'x' given, a whole number from 0 to 1073741824 needed");
}

static void texts_and_files_are_given_once(void **state)
{
    (void)state;
    assert_false(parse("m -p a --prompt b"));
    assert_string_equal(line, "--prompt: given twice");
    assert_false(parse("m --grammar a --grammar a"));
    assert_string_equal(line, "--grammar: given twice");
    assert_false(parse("m --grammar a --json-mode"));
    assert_string_equal(line, "more than one of --grammar, --schema, --json-mode given");
    /* Of numbers the last counts. */
    assert_true(parse("m --temp 1 --temp 0.5 -n 3 -n 4") && s.temperature == 0.5);
    assert_int_equal(s.n_predict, 4);
}

static void what_is_missing_is_called_by_its_name(void **state)
{
    (void)state;
    static const struct tern_command grammar = {"grammar", "", "", tables, NULL, "grammar",
                                                "a GBNF file", NULL};
    tern_args_defaults(&grammar, &s);
    assert_false(tern_args_parse(&grammar, 0, NULL, &s, line));
    assert_string_equal(line, "no grammar given, a GBNF file needed");
    assert_string_equal(tern_args_who(), "grammar");
}

static void help_ends_parsing(void **state)
{
    (void)state;
    assert_true(parse("--help --nosuch"));
    assert_true(s.help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_that_help_prints),
        cmocka_unit_test(values_are_taken_apart_or_joined),
        cmocka_unit_test(options_that_repeat_collect),
        cmocka_unit_test(each_wrong_word_is_refused_with_its_name),
        cmocka_unit_test(options_are_set_by_name),
        cmocka_unit_test(texts_and_files_are_given_once),
        cmocka_unit_test(what_is_missing_is_called_by_its_name),
        cmocka_unit_test(help_ends_parsing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
