#include "tools/chat_line.h"

#include <string.h>

static const char quotes[] = "\"\"\"";
enum { N_QUOTES = sizeof quotes - 1 };

/* --- lines to a message --- */

void tern_chat_lines_start(struct tern_chat_lines *l)
{
    tern_out_free(&l->text);
    tern_out_open(&l->text, -1);
    l->open = l->block = l->literal = l->any = false;
    l->too_many = 0;
}

void tern_chat_lines_free(struct tern_chat_lines *l)
{
    tern_out_free(&l->text);
}

static void put(struct tern_chat_lines *l, const char *data, size_t n)
{
    const size_t room = TERN_CHAT_MOST_BYTES - l->text.n;
    l->too_many += n > room ? n - room : 0;
    tern_out_put(&l->text, data, n > room ? room : n);
}

static bool ends_with(tern_text t, const char *end, size_t n)
{
    return t.size >= n && memcmp(t.data + t.size - n, end, n) == 0;
}

static bool is_blank(tern_text t)
{
    while (t.size > 0 && (t.data[t.size - 1] == ' ' || t.data[t.size - 1] == '\t'))
        t.size--;
    return t.size == 0;
}

/* Without the quotation marks, and the blanks behind them, at its end; false: it has none. */
static bool cut_quotes(tern_text *line)
{
    tern_text t = *line;
    while (t.size > 0 && (t.data[t.size - 1] == ' ' || t.data[t.size - 1] == '\t'))
        t.size--;
    if (!ends_with(t, quotes, N_QUOTES))
        return false;
    *line = (tern_text){t.data, t.size - N_QUOTES};
    return true;
}

static bool add_to_block(struct tern_chat_lines *l, tern_text line, bool first)
{
    const bool ends = cut_quotes(&line);
    /* Marks that stand alone on their line do not make it one of the message. */
    const bool counts = !is_blank(line) || !(first || ends);
    if (counts && l->any)
        put(l, "\n", 1);
    if (counts)
        put(l, line.data, line.size);
    l->any |= counts;
    l->block = l->open = !ends;
    return ends;
}

bool tern_chat_lines_add(struct tern_chat_lines *l, tern_text line)
{
    if (l->block)
        return add_to_block(l, line, false);
    if (!l->open && line.size >= N_QUOTES && memcmp(line.data, quotes, N_QUOTES) == 0) {
        l->literal = true;
        return add_to_block(l, (tern_text){line.data + N_QUOTES, line.size - N_QUOTES}, true);
    }
    if (l->open)
        put(l, "\n", 1);
    l->open = ends_with(line, "\\", 1);
    put(l, line.data, line.size - l->open);
    return !l->open;
}

/* --- commands --- */

static const struct command {
    enum tern_chat_verb verb;
    const char *name, *usage, *help;
} commands[] = {
    {TERN_CHAT_SYSTEM, "/system", "/system [TEXT]",
     "shows the system message, or sets it; /system - takes it away"},
    {TERN_CHAT_SET, "/set", "/set [NAME VALUE]",
     "shows the settings, or sets one: /set temp 0.5, /set think off"},
    {TERN_CHAT_SAVE, "/save", "/save [FILE]", "keeps the conversation in a file"},
    {TERN_CHAT_LOAD, "/load", "/load FILE", "goes on with a conversation that was kept"},
    {TERN_CHAT_REGEN, "/regen", "/regen", "answers the last message anew"},
    {TERN_CHAT_UNDO, "/undo", "/undo [N]",
     "takes the last message, or N of them, and the answers back"},
    {TERN_CHAT_CONTEXT, "/context", "/context", "shows how full the context is"},
    {TERN_CHAT_TOKENS, "/tokens", "/tokens [TEXT]",
     "shows the tokens of a text, or how many each message has"},
    {TERN_CHAT_HELP, "/help", "/help", "shows this"},
    {TERN_CHAT_QUIT, "/quit", "/quit", "ends, as does Ctrl-D"},
    {TERN_CHAT_HELP, "/?", NULL, NULL},
    {TERN_CHAT_QUIT, "/exit", NULL, NULL},
    {TERN_CHAT_QUIT, "/bye", NULL, NULL},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

const char *tern_chat_command_at(size_t i, const char **help)
{
    if (i >= N_COMMANDS || commands[i].usage == NULL)
        return NULL;
    *help = commands[i].help;
    return commands[i].usage;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static tern_text trim(tern_text t)
{
    while (t.size > 0 && blank(t.data[0])) {
        t.data++;
        t.size--;
    }
    while (t.size > 0 && blank(t.data[t.size - 1]))
        t.size--;
    return t;
}

tern_text tern_chat_first_word(tern_text *text)
{
    const tern_text t = trim(*text);
    size_t n = 0;
    while (n < t.size && !blank(t.data[n]))
        n++;
    *text = trim((tern_text){t.data + n, t.size - n});
    return (tern_text){t.data, n};
}

struct tern_chat_word tern_chat_read_word(tern_text text, bool literal)
{
    struct tern_chat_word w = {.verb = TERN_CHAT_MESSAGE, .rest = text};
    const tern_text t = trim(text);
    if (t.size == 0) {
        w.verb = TERN_CHAT_NOTHING;
    } else if (!literal && text.data[0] == '/') {
        if (text.size > 1 && text.data[1] == '/') {
            w.rest = (tern_text){text.data + 1, text.size - 1};
            return w;
        }
        w.verb = TERN_CHAT_UNKNOWN;
        w.name = tern_chat_first_word(&text);
        w.rest = text;
        for (size_t i = 0; i < N_COMMANDS; i++)
            if (w.name.size == strlen(commands[i].name) &&
                memcmp(w.name.data, commands[i].name, w.name.size) == 0)
                w.verb = commands[i].verb;
    }
    return w;
}
