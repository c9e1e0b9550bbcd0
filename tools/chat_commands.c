/* chat_commands.c: what a line with a slash does. */
#include "tools/chat.h"
#include "tools/chat_settings.h"
#include "tools/prompt.h"

#include <stdio.h>
#include <string.h>

void tern_chat_refuse(struct tern_chat *c, const char *line)
{
    c->failed = true;
    tern_chat_screen_say(&c->screen, "tern: %s", line);
}

static void do_system(struct tern_chat *c, tern_text text)
{
    const char *now = tern_chat_talk_system(&c->talk);
    const bool none = text.size == 1 && text.data[0] == '-';
    if (text.size == 0)
        tern_chat_screen_tell_text(&c->screen, now ? (tern_text){now, strlen(now)} :
                                   (tern_text){"(no system message)", 19});
    else if (!tern_chat_talk_set_system(&c->talk, none ? (tern_text){NULL, 0} : text))
        tern_chat_refuse(c, "system message: no memory for it");
    else
        tern_chat_screen_say(&c->screen, "tern: the system message is %s", none ? "gone" : "set");
}

static void tell_settings(struct tern_chat *c)
{
    char value[64];
    const char *setting;
    for (size_t i = 0; (setting = tern_chat_setting_at(&c->settings, i, value)) != NULL; i++) {
        tern_chat_screen_tell(&c->screen, "  %-18s %s", setting, value);
        for (uint32_t k = 0; strcmp(setting, "stop") == 0 && k < c->settings.n_stops; k++)
            tern_chat_screen_tell(&c->screen, "  %18s \"%s\"", "", c->settings.stops[k]);
    }
}

static void do_set(struct tern_chat *c, tern_text rest)
{
    char line[TERN_ARGS_LINE];
    const tern_text name = tern_chat_first_word(&rest);
    if (name.size == 0) {
        tell_settings(c);
    } else if (!tern_chat_set(c, name, rest, line)) {
        tern_chat_refuse(c, line);
    } else {
        tern_chat_screen_say(&c->screen, "tern: %.*s %.*s", (int)name.size, name.data,
                             (int)rest.size, rest.data);
    }
}

/* A number of turns, 1 where none is said; 0: it is none. */
static size_t number_of(tern_text text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || n > 1000000)
            return 0;
        n = 10 * n + (size_t)(text.data[i] - '0');
    }
    return text.size ? n : 1;
}

static void do_undo(struct tern_chat *c, tern_text rest)
{
    char line[TERN_ARGS_LINE];
    const size_t n = number_of(rest), turns = tern_chat_talk_turns(&c->talk);
    if (n == 0)
        snprintf(line, sizeof line, "/undo: '%.*s' given, a number of messages needed",
                 (int)(rest.size < 40 ? rest.size : 40), rest.data);
    else if (turns == 0)
        snprintf(line, sizeof line, "/undo: there is no message to take back");
    else
        snprintf(line, sizeof line, "/undo: %zu given, there %s %zu to take back", n,
                 turns == 1 ? "is" : "are", turns);
    if (n == 0 || n > turns) {
        tern_chat_refuse(c, line);
        return;
    }
    for (size_t i = 0; i < n; i++)
        tern_chat_talk_undo(&c->talk, false);
    if (n == 1)
        tern_chat_screen_say(&c->screen, "tern: the last message and its answer are taken back");
    else
        tern_chat_screen_say(&c->screen, "tern: the last %zu messages and their answers are taken "
                             "back", n);
}

static bool answer(struct tern_chat *c)
{
    const bool ok = tern_chat_answer(c);
    if (ok && c->settings.stats)
        tern_chat_show_figures(c);
    tern_chat_screen_gap(&c->screen);
    return ok;
}

static void do_regen(struct tern_chat *c)
{
    json_t *before = json_copy(c->talk.messages);
    if (before == NULL || !tern_chat_talk_undo(&c->talk, true)) {
        json_decref(before);
        tern_chat_refuse(c, "/regen: there is no message to answer");
        return;
    }
    c->stream++;
    if (answer(c)) {
        json_decref(before);
        return;
    }
    json_decref(c->talk.messages);
    c->talk.messages = before; /* nothing came: the old answer stays */
}

/* --- what is asked --- */

static void do_context(struct tern_chat *c)
{
    char line[TERN_ARGS_LINE];
    size_t n;
    const uint32_t most = c->session->plan.limits.n_ctx;
    const size_t turns = tern_chat_talk_turns(&c->talk);
    if (!tern_chat_count(c, &n, line)) {
        tern_chat_refuse(c, line);
        return;
    }
    char whole[64] = "";
    if (n > most)
        snprintf(whole, sizeof whole, ", full: all of it would be %zu", n);
    const size_t in = n < most ? n : most;
    tern_chat_screen_tell(&c->screen, "%zu of %u tokens (%.0f%%%s), %zu held; %zu turn%s%s", in,
                          most, 100.0 * (double)in / most, whole, c->known.n, turns,
                          turns == 1 ? "" : "s",
                          tern_chat_talk_system(&c->talk) ? " and a system message" : "");
}

static bool encode(struct tern_chat *c, tern_text text, struct tern_prompt *p)
{
    char line[TERN_ARGS_LINE];
    memset(p, 0, sizeof *p);
    p->text = text;
    if (tern_prompt_encode(p, c->session->model, TERN_TOKENIZE_NO_BOS, SIZE_MAX, line))
        return true;
    tern_chat_refuse(c, line);
    tern_prompt_free(p);
    return false;
}

/* The bytes that a token stands for, between quotation marks: its blanks are seen, and bytes that
 * are no characters by themselves. */
static void tell_token(struct tern_chat *c, tern_token token)
{
    char bytes[TERN_MAX_PIECE], text[4 * TERN_MAX_PIECE + 1];
    size_t n = 0, k = 0;
    if (tern_token_bytes(c->session->model, token, true, bytes, sizeof bytes, &n) != TERN_OK)
        n = 0;
    for (size_t i = 0, step; i < n; i += step) {
        const size_t whole = tern_utf8_length((tern_text){bytes + i, n - i});
        step = whole ? whole : 1;
        if (bytes[i] == '\n' || bytes[i] == '"' || bytes[i] == '\\')
            k += (size_t)sprintf(text + k, "\\%c", bytes[i] == '\n' ? 'n' : bytes[i]);
        else if (whole > 1 || (whole == 1 && (unsigned char)bytes[i] >= ' ' && bytes[i] != 0x7f))
            k += (size_t)sprintf(text + k, "%.*s", (int)step, bytes + i);
        else
            k += (size_t)sprintf(text + k, "\\x%02x", (unsigned char)bytes[i]);
    }
    tern_chat_screen_tell(&c->screen, "%8d  \"%.*s\"", token, (int)k, text);
}

static void tell_tokens(struct tern_chat *c, tern_text text)
{
    struct tern_prompt p;
    if (!encode(c, text, &p))
        return;
    for (size_t i = 0; i < p.n; i++)
        tell_token(c, p.ids[i]);
    tern_chat_screen_tell(&c->screen, "%zu tokens", p.n);
    tern_prompt_free(&p);
}

/* Of each message its own tokens, without what a template puts around it. */
static void tell_messages(struct tern_chat *c)
{
    size_t i;
    const json_t *message;
    json_array_foreach(c->talk.messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        const char *text = json_string_value(content);
        struct tern_prompt p;
        if (!encode(c, (tern_text){text ? text : "", json_string_length(content)}, &p))
            return;
        int n = 0, most = 48;
        while (text && text[n] && text[n] != '\n' && (n < most || (text[n] & 0xc0) == 0x80))
            n++;
        tern_chat_screen_tell(&c->screen, "%6zu  %-9s  %.*s%s", p.n,
                              json_string_value(json_object_get(message, "role")), n,
                              text ? text : "", text && text[n] ? " ..." : "");
        tern_prompt_free(&p);
    }
}

static void do_help(struct tern_chat *c)
{
    const char *usage, *help;
    for (size_t i = 0; (usage = tern_chat_command_at(i, &help)) != NULL; i++)
        tern_chat_screen_tell(&c->screen, "  %-18s %s", usage, help);
    tern_chat_screen_tell(&c->screen,
        "A line that ends in \\ goes on with the next; \"\"\" begins and ends a text of many\n"
        "lines; // sends a text that begins with a slash. Ctrl-C stops an answer.");
}

/* --- files --- */

static void do_file(struct tern_chat *c, struct tern_chat_word word)
{
    char path[TERN_ARGS_LINE * 4], line[TERN_ARGS_LINE];
    const bool save = word.verb == TERN_CHAT_SAVE;
    if (word.rest.size >= sizeof path) {
        tern_chat_refuse(c, "the file's name is too long");
        return;
    }
    snprintf(path, sizeof path, "%.*s", (int)word.rest.size, word.rest.data);
    const char *file = path[0] ? path : save ? c->settings.session : NULL;
    if (file == NULL)
        tern_chat_refuse(c, save ? "/save: no file given, and no --session" :
                                   "/load: no file given");
    else if (!(save ? tern_chat_save(c, file, line) : tern_chat_load(c, file, false, line)))
        tern_chat_refuse(c, line);
    else if (save)
        tern_chat_screen_say(&c->screen, "tern: saved to %s", file);
    else
        tern_chat_say_restored(c, file);
}

/* Of the commands that stand alone. */
static bool has_too_much(struct tern_chat *c, struct tern_chat_word word)
{
    char line[TERN_ARGS_LINE];
    const bool alone = word.verb == TERN_CHAT_REGEN || word.verb == TERN_CHAT_CONTEXT ||
                       word.verb == TERN_CHAT_HELP || word.verb == TERN_CHAT_QUIT;
    if (!alone || word.rest.size == 0)
        return false;
    snprintf(line, sizeof line, "%.*s: '%.*s' given, it takes nothing", (int)word.name.size,
             word.name.data, (int)(word.rest.size < 40 ? word.rest.size : 40), word.rest.data);
    tern_chat_refuse(c, line);
    return true;
}

void tern_chat_do(struct tern_chat *c, struct tern_chat_word word)
{
    char line[TERN_ARGS_LINE];
    if (has_too_much(c, word))
        return;
    switch (word.verb) {
    case TERN_CHAT_NOTHING: break;
    case TERN_CHAT_MESSAGE:
        if (!tern_chat_talk_add(&c->talk, "user", word.rest))
            tern_chat_refuse(c, "message: no memory for it");
        else
            answer(c);
        break;
    case TERN_CHAT_SYSTEM: do_system(c, word.rest); break;
    case TERN_CHAT_SET: do_set(c, word.rest); break;
    case TERN_CHAT_SAVE:
    case TERN_CHAT_LOAD: do_file(c, word); break;
    case TERN_CHAT_REGEN: do_regen(c); break;
    case TERN_CHAT_UNDO: do_undo(c, word.rest); break;
    case TERN_CHAT_CONTEXT: do_context(c); break;
    case TERN_CHAT_TOKENS:
        if (word.rest.size > 0)
            tell_tokens(c, word.rest);
        else
            tell_messages(c);
        break;
    case TERN_CHAT_HELP: do_help(c); break;
    case TERN_CHAT_QUIT: c->ended = true; break;
    case TERN_CHAT_UNKNOWN:
        snprintf(line, sizeof line, "there is no command '%.*s'; /help lists them, // sends a "
                 "text that begins with a slash", (int)(word.name.size < 40 ? word.name.size : 40),
                 word.name.data);
        tern_chat_refuse(c, line);
        break;
    }
}
