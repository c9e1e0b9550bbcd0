/* cmd_template.c: what a model would be given for a conversation. */
#include "tools/chat_prompt.h"
#include "tools/commands.h"
#include "tools/ids.h"
#include "tools/options.h"
#include "tools/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_request(const struct tern_settings *s, struct tern_chat_request *r,
                         char line[TERN_ARGS_LINE])
{
    *r = (struct tern_chat_request){.generation = !s->no_generation, .adapt = s->adapt};
    r->messages = tern_chat_read_json(s->messages, "list", line);
    if (r->messages && s->tools)
        r->tools = tern_chat_read_json(s->tools, "list", line);
    if (r->messages == NULL || (s->tools && r->tools == NULL))
        return false;
    r->variables = s->variables ? json_loads(s->variables, JSON_ALLOW_NUL, NULL) : NULL;
    return true;
}

static bool write_ids(const tern_model *model, const struct tern_chat_template *t,
                      const struct tern_chat_prompt *p, struct tern_out *o,
                      char line[TERN_ARGS_LINE])
{
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of_rendered(model, &p->rendered, tern_chat_flags(t, p), &ids, &err)) {
        snprintf(line, TERN_ARGS_LINE, "--ids: %s", err.text);
        return false;
    }
    for (size_t i = 0; i < ids.n; i++)
        tern_out_print(o, "%s%d", i ? "," : "", ids.at[i]);
    tern_out_put(o, "\n", 1);
    tern_ids_free(&ids);
    return true;
}

static bool work(struct tern_session *s, const struct tern_settings *settings,
                 struct tern_out *o, char line[TERN_ARGS_LINE])
{
    struct tern_chat_template t;
    struct tern_chat_request r;
    struct tern_chat_prompt p = {0};
    bool ok = tern_chat_template_open(&t, s->model, settings->chat_template, line) &&
              read_request(settings, &r, line);
    if (ok) {
        ok = tern_chat_render(&t, &r, &p, line);
        json_decref(r.messages);
        json_decref(r.tools);
        json_decref(r.variables);
    }
    if (ok && settings->as_ids)
        ok = write_ids(s->model, &t, &p, o, line);
    else if (ok)
        tern_out_put(o, p.rendered.text.data, p.rendered.text.size);
    tern_out_flush(o);
    tern_chat_prompt_free(&p);
    tern_chat_template_close(&t);
    return ok;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    static struct tern_out out;
    char line[TERN_ARGS_LINE] = "";
    int code = 1;
    if (settings->messages == NULL)
        snprintf(line, sizeof line, "no messages given: --messages FILE needed");
    else
        tern_chat_check_variables(settings->variables, line);
    if (line[0]) {
        fprintf(stderr, "tern template: %s\n", line);
        return 2;
    }
    tern_out_open(&out, STDOUT_FILENO);
    if (!tern_session_open(&s, settings->model, TERN_MODEL_TEXT))
        tern_session_report(&s);
    else if (!work(&s, settings, &out, line))
        fprintf(stderr, "tern template: %s\n", line);
    else if (!tern_out_flush(&out))
        fprintf(stderr, "tern template: standard output: %s\n", strerror(out.error));
    else
        code = 0;
    tern_session_close(&s);
    return code;
}

static const struct tern_option own[] = {
    {"--messages", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, messages), 0, 0, NULL,
     "FILE", "JSON, a list of messages as OpenAI's API has them; - is standard input"},
    {"--template", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, chat_template), 0, 0,
     NULL, "FILE|NAME", "a template, or the name of a built-in one (default: the model's)"},
    {"--tools", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, tools), 0, 0, NULL, "FILE",
     "JSON, a list of tools"},
    {"--variables", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, variables), 0, 0, NULL,
     "JSON", "an object of further names, as {\"enable_thinking\": false}"},
    {"--no-generation-prompt", NULL, TERN_OPTION_FLAG,
     offsetof(struct tern_settings, no_generation), 0, 0, NULL, NULL,
     "ends behind the last message"},
    {"--adapt", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, adapt), 0, 0, NULL, NULL,
     "changes messages and tools that the template does not take as they are"},
    {"--ids", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, as_ids), 0, 0, NULL, NULL,
     "prints the tokens' ids"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {own, NULL};

const struct tern_command tern_cmd_template = {
    "template", "template MODEL --messages FILE [options]",
    "Prints what the model would be given for a conversation.", tables,
    "Built-in templates: chatml, llama2, llama3, gemma, mistral, phi3, zephyr, vicuna, alpaca,\n"
    "deepseek, command-r, granite, phi4. A user's text never becomes a control token.\n"
    "--adapt: arguments that the template raises on are given as text, lists of text parts that\n"
    "it does not go through as one text, developer as system, and tools that it does not know\n"
    "are described in the system message.", "model", "a GGUF file", run,
};
