/* cmd_chat.c: a conversation, in a terminal or through a pipe. */
#include "tools/chat.h"
#include "tools/chat_settings.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/keep.h"
#include "tools/make_image.h"
#include "tools/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- one message --- */

static bool is_utf8(tern_text t, size_t *at)
{
    for (size_t n; t.size > 0; t.data += n, t.size -= n, *at += n)
        if ((n = tern_utf8_length(t)) == 0)
            return false;
    return true;
}

static void take_message(struct tern_chat *c)
{
    char line[TERN_ARGS_LINE];
    const struct tern_chat_lines *l = &c->lines;
    const tern_text text = {l->text.n ? l->text.grown : "", l->text.n};
    size_t at = 0;
    if (l->too_many) {
        snprintf(line, sizeof line, "message: %zu bytes, at most %d", text.size + l->too_many,
                 TERN_CHAT_MOST_BYTES);
        tern_chat_refuse(c, line);
    } else if (l->text.error) {
        tern_chat_refuse(c, "message: no memory for it");
    } else if (!is_utf8(text, &at)) {
        snprintf(line, sizeof line, "message: byte 0x%02x at offset %zu is not UTF-8",
                 (unsigned char)text.data[at], at);
        tern_chat_refuse(c, line);
    } else {
        const struct tern_chat_word word = tern_chat_read_word(text, l->literal);
        if (word.verb != TERN_CHAT_NOTHING)
            tern_chat_input_remember(&c->input, text);
        tern_chat_do(c, word);
    }
    tern_chat_lines_start(&c->lines);
}

/* Ctrl-C where nothing is answered clears what was typed; without a terminal it ends. */
static void take_interrupt(struct tern_chat *c)
{
    tern_chat_lines_start(&c->lines);
    if (!c->input.terminal || tern_interrupt_ends())
        c->ended = true;
    else
        tern_chat_screen_say(&c->screen, "tern: Ctrl-D or /quit ends");
}

static void talk(struct tern_chat *c)
{
    tern_chat_lines_start(&c->lines);
    while (!c->ended) {
        const enum tern_chat_got got = tern_chat_input_line(&c->input, c->lines.open);
        bool whole = false;
        if (got == TERN_CHAT_GOT_INTERRUPT) {
            take_interrupt(c);
        } else if (got == TERN_CHAT_GOT_LINE) {
            whole = tern_chat_lines_add(&c->lines, (tern_text){c->input.line.n
                                        ? c->input.line.grown : "", c->input.line.n});
            c->lines.too_many += c->input.lost;
        } else {
            if (got == TERN_CHAT_GOT_ERROR)
                tern_chat_refuse(c, strerror(errno));
            /* A pipe may end within a message; who types takes it back. */
            whole = c->lines.open && !c->input.terminal;
            c->ended = !c->lines.open || !c->input.terminal;
            if (!c->ended)
                tern_chat_lines_start(&c->lines);
        }
        if (whole)
            take_message(c);
        if (tern_interrupt_ends() || (tern_interrupted() && !c->input.terminal))
            c->ended = true;
        tern_interrupt_forget();
    }
}

/* --- from the options to the first line --- */

static bool fail(struct tern_chat *c, const char *line)
{
    (void)c;
    fprintf(stderr, "tern chat: %s\n", line);
    return false;
}

static bool open_model(struct tern_chat *c, char line[TERN_ARGS_LINE])
{
    struct tern_session *s = c->session;
    const tern_limits limits = tern_session_limits(&c->settings);
    if (!tern_session_open_cached(s, c->settings.model, c->settings.cache) ||
        !tern_constraint_of_session(s, &c->settings) || !tern_session_plan(s, &limits)) {
        snprintf(line, TERN_ARGS_LINE, "%s", tern_session_line(s));
        return false;
    }
    if (!tern_chat_template_open(&c->template, s->model, c->settings.chat_template, line) ||
        !tern_chat_make_plan(c, line))
        return false;
    if (tern_session_start(s, &c->settings.affinity))
        return true;
    snprintf(line, TERN_ARGS_LINE, "%s", tern_session_line(s));
    return false;
}

static bool open_sequence(struct tern_chat *c, char line[TERN_ARGS_LINE])
{
    tern_text stops[TERN_MAX_STOPS];
    const tern_seq_options options = tern_chat_options(c, stops);
    if (!tern_chat_known_open(&c->known, c->session->plan.limits.n_ctx) ||
        !tern_chat_talk_open(&c->talk)) {
        snprintf(line, TERN_ARGS_LINE, "conversation: no memory for it");
        return false;
    }
    if (tern_seq_open(c->session->engine, &options, &c->seq) == TERN_OK)
        return true;
    snprintf(line, TERN_ARGS_LINE, "%s", tern_session_line(c->session));
    return false;
}

static bool open_conversation(struct tern_chat *c, char line[TERN_ARGS_LINE])
{
    const struct tern_settings *s = &c->settings;
    if (s->session && !tern_keep_check(s->session, line))
        return false;
    if (s->session && access(s->session, F_OK) == 0) {
        if (!tern_chat_load(c, s->session, true, line))
            return false;
        tern_chat_say_restored(c, s->session);
    }
    const tern_text system = {s->system && *s->system ? s->system : NULL,
                              s->system ? strlen(s->system) : 0};
    if (s->system == NULL || tern_chat_talk_set_system(&c->talk, system))
        return true;
    snprintf(line, TERN_ARGS_LINE, "--system: not UTF-8, or no memory for it");
    return false;
}

static void greet(struct tern_chat *c)
{
    const tern_text name = c->session->info.name;
    if (c->screen.terminal && c->input.terminal)
        tern_chat_screen_say(&c->screen, "tern: %.*s, context %u; /help lists commands, Ctrl-D "
                             "ends", (int)(name.size < 80 ? name.size : 80), name.data,
                             c->session->plan.limits.n_ctx);
}

static int end(struct tern_chat *c)
{
    char line[TERN_ARGS_LINE];
    const char *file = c->settings.session;
    if (file && !tern_chat_save(c, file, line)) {
        fail(c, line);
        c->failed = true;
    } else if (file) {
        tern_chat_screen_say(&c->screen, "tern: saved to %s", file);
    }
    if (c->screen.out.error)
        fprintf(stderr, "tern chat: standard output: %s\n", strerror(c->screen.out.error));
    return c->screen.out.error || c->broken || (c->failed && (file || !c->input.terminal));
}

static void close_all(struct tern_chat *c)
{
    tern_chat_input_close(&c->input);
    tern_chat_lines_free(&c->lines);
    tern_chat_talk_close(&c->talk);
    tern_chat_known_close(&c->known);
    tern_reply_plan_close(&c->plan);
    tern_chat_template_close(&c->template);
    tern_session_close(c->session);
}

static bool check(const struct tern_settings *s, char line[TERN_ARGS_LINE])
{
    return tern_chat_check_variables(s->variables, line) && tern_chat_check_settings(s, "--", line);
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session session;
    static struct tern_chat c;
    char line[TERN_ARGS_LINE] = "";
    int code = 1;
    if (!check(settings, line)) {
        fail(&c, line);
        return 2;
    }
    c.session = &session;
    c.settings = *settings;
    if (!settings->has_seed)
        c.settings.seed = (uint64_t)time(NULL) * 1000003u ^ tern_os_now_ns();
    tern_chat_screen_open(&c.screen);
    if (open_model(&c, line) && open_sequence(&c, line) && open_conversation(&c, line)) {
        tern_interrupt_survive();
        tern_chat_input_open(&c.input, c.screen.terminal, c.screen.colour);
        greet(&c);
        talk(&c);
        code = end(&c);
    } else {
        fail(&c, line);
    }
    close_all(&c);
    tern_interrupt_end();
    return code;
}

static const struct tern_option own[] = {
    {"--system", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, system), 0, 0, NULL,
     "TEXT", "the system message"},
    {"--session", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, session), 0, 0, NULL,
     "FILE", "goes on with the conversation of this file, if it is there, and saves it at the end"},
    {"--seed", NULL, TERN_OPTION_SEED, 0, 0, 0, NULL,
     "N", "of the random numbers (default: from the clock; /set shows it)"},
    {"--chat-template", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, chat_template), 0,
     0, NULL, "FILE|NAME", "a template, or the name of a built-in one (default: the model's)"},
    {"--variables", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, variables), 0, 0, NULL,
     "JSON", "further names for the template, as {\"reasoning_effort\": \"low\"}"},
    {"--cache", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, cache), 0, 0, NULL,
     "DIR", "keeps an image of a GGUF there, made once, and starts from it (default: off)"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    own, tern_chat_live_options, tern_options_sampling, tern_options_grammar, tern_options_engine,
    NULL,
};

const struct tern_command tern_cmd_chat = {
    "chat", "chat MODEL [options]", "Talks with a model, in the terminal or through a pipe.",
    tables,
    "Each line is a message. One that ends in \\ goes on with the next line, \"\"\" begins and\n"
    "ends a message of many lines, and a pasted text is one message. Lines that begin with / are\n"
    "commands: /system /set /save /load /regen /undo /context /tokens /help /quit; // sends a\n"
    "text that begins with a slash. Ctrl-C stops an answer, Ctrl-D ends.\n"
    "A full context drops the oldest turns and says so; the system message stays.\n"
    "From a pipe, answers alone go to standard output, reasoning and all else to standard error;\n"
    "what is refused makes the exit code 1.\n"
    "Environment: NO_COLOR, TERN_HISTORY (a file that keeps the lines typed; default: none).",
    "model", "a GGUF file", run,
};
