/* chat_edit.c: libedit with what it lacks: bracketed paste, line feeds within a line, Ctrl-C that
 * clears the line and nothing else, and UTF-8 whatever the locale says.
 *
 * Bytes are read and decoded here, so signals are seen between two keys; libedit's own handlers,
 * which pass signals on to the whole process group, stay off. Characters it is given are wide
 * ones: for showing them the C library must know UTF-8, and where the locale's is another
 * encoding, C.UTF-8 takes its place. */
#include "tools/chat_edit.h"

#include "tools/interrupt.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HISTORY = 1000, MOST_PASTED = 1 << 20 };

struct tern_chat_editor {
    EditLine *line;
    HistoryW *history;
    const char *file; /* where the history is kept; NULL: nowhere */
    bool colour, more, interrupted, ended;
    char bytes[256];
    size_t at, n;
};

/* --- signals --- */

static volatile sig_atomic_t resized, continued;

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else
        continued = 1;
}

static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(SIGWINCH, &a, NULL);
    sigaction(SIGCONT, &a, NULL);
}

static void follow_terminal(EditLine *line)
{
    if (resized) {
        resized = 0;
        el_resize(line);
        el_wset(line, EL_REFRESH);
    }
    if (continued) {
        continued = 0;
        el_wset(line, EL_PREP_TERM, 1);
        el_wset(line, EL_REFRESH);
    }
}

/* --- keys --- */

static struct tern_chat_editor *editor_of(EditLine *line)
{
    void *e = NULL;
    el_wget(line, EL_CLIENTDATA, &e);
    return e;
}

/* False: the input ended, or the user interrupts. */
static bool wait_for_byte(struct tern_chat_editor *e, unsigned char *byte)
{
    enum { LOOK_MS = 200 };
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    while (e->at == e->n) {
        if (tern_interrupted()) {
            e->interrupted = true;
            return false;
        }
        follow_terminal(e->line);
        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, e->bytes, sizeof e->bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0) {
            e->ended = true;
            return false;
        }
        e->at = 0;
        e->n = (size_t)n;
    }
    *byte = (unsigned char)e->bytes[e->at++];
    return true;
}

/* libedit's way to read a key: 1, or what is no key. Bytes that are not UTF-8 are passed over. */
static int read_key(EditLine *line, wchar_t *key)
{
    struct tern_chat_editor *e = editor_of(line);
    char c[4];
    size_t n = 0;
    for (;;) {
        unsigned char byte;
        if (!wait_for_byte(e, &byte))
            return 0;
        if (n > 0 && (byte & 0xc0) != 0x80)
            n = 0;
        c[n++] = (char)byte;
        const size_t want = (unsigned char)c[0] < 0x80 ? 1 : (unsigned char)c[0] >= 0xf0 ? 4 :
                            (unsigned char)c[0] >= 0xe0 ? 3 : 2;
        if (n < want)
            continue;
        if (tern_utf8_length((tern_text){c, n}) == n)
            break;
        n = 0;
    }
    uint32_t x = (unsigned char)c[0] & (n == 1 ? 0x7f : 0x7f >> n);
    for (size_t i = 1; i < n; i++)
        x = x << 6 | ((unsigned char)c[i] & 0x3f);
    *key = (wchar_t)x;
    return 1;
}

static unsigned char add_line_feed(EditLine *line, wint_t key)
{
    (void)key;
    return el_winsertstr(line, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

/* Everything up to the terminal's mark for the end of a paste goes into the line as it is, but
 * line ends become line feeds, those at its end go, and so do control characters. */
static unsigned char take_paste(EditLine *line, wint_t key)
{
    static const wchar_t end[] = L"\033[201~";
    enum { N_END = sizeof end / sizeof *end - 1 };
    size_t n = 0, cap = 256;
    wchar_t *text = malloc(cap * sizeof *text), c, last = 0;
    (void)key;
    while (text && read_key(line, &c) == 1) {
        if (n + 2 > cap) {
            wchar_t *more = realloc(text, 2 * cap * sizeof *text);
            if (more == NULL)
                break;
            text = more;
            cap *= 2;
        }
        if (n < MOST_PASTED && !(c == L'\n' && last == L'\r'))
            text[n++] = c == L'\r' ? L'\n' : c;
        last = c;
        if (n >= N_END && c == L'~' && wmemcmp(text + n - N_END, end, N_END) == 0) {
            n -= N_END;
            break;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 0x20 ? text[i] != 0x7f : text[i] == L'\n' || text[i] == L'\t')
            text[kept++] = text[i];
    while (kept > 0 && text[kept - 1] == L'\n')
        kept--;
    unsigned char done = CC_REFRESH;
    if (kept > 0) {
        text[kept] = 0;
        done = el_winsertstr(line, text) == 0 ? CC_REFRESH : CC_ERROR;
    }
    free(text);
    return done;
}

static wchar_t *prompt(EditLine *line)
{
    static wchar_t plain[] = L"> ", more[] = L". ";
    /* What stands behind its last character is not written. */
    static wchar_t coloured[] = L"\1\033[1;32m\1>\1\033[0m\1 ";
    const struct tern_chat_editor *e = editor_of(line);
    return e->more ? more : e->colour ? coloured : plain;
}

/* --- the editor --- */

static bool know_utf8(void)
{
    return setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0
               ? true
               : setlocale(LC_CTYPE, "C.UTF-8") != NULL;
}

static void set_up_keys(EditLine *line)
{
    el_wset(line, EL_EDITOR, L"emacs");
    el_wset(line, EL_ADDFN, L"tern-paste", L"Take a pasted text", take_paste);
    el_wset(line, EL_ADDFN, L"tern-line-feed", L"Begin a new line of the message", add_line_feed);
    el_wset(line, EL_BIND, L"\\e[200~", L"tern-paste", NULL);
    el_wset(line, EL_BIND, L"\\e^M", L"tern-line-feed", NULL);
    el_wset(line, EL_BIND, L"\\e^J", L"tern-line-feed", NULL);
    el_wset(line, EL_BIND, L"^R", L"em-inc-search-prev", NULL);
    el_wset(line, EL_BIND, L"\\e[1~", L"ed-move-to-beg", NULL);
    el_wset(line, EL_BIND, L"\\e[4~", L"ed-move-to-end", NULL);
    el_wset(line, EL_BIND, L"\\e[3~", L"ed-delete-next-char", NULL);
    el_source(line, NULL);
}

static void set_up_history(struct tern_chat_editor *e)
{
    HistEventW event;
    e->history = history_winit();
    if (e->history == NULL)
        return;
    history_w(e->history, &event, H_SETSIZE, HISTORY);
    history_w(e->history, &event, H_SETUNIQUE, 1);
    e->file = getenv("TERN_HISTORY");
    if (e->file && *e->file)
        history_w(e->history, &event, H_LOAD, e->file);
    else
        e->file = NULL;
    el_wset(e->line, EL_HIST, history_w, e->history);
}

struct tern_chat_editor *tern_chat_edit_open(bool colour)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || term == NULL || *term == 0 || strcmp(term, "dumb") == 0)
        return NULL;
    struct tern_chat_editor *e = calloc(1, sizeof *e);
    if (e == NULL || !know_utf8()) {
        free(e);
        return NULL;
    }
    e->colour = colour;
    e->line = el_init("tern", stdin, stdout, stderr);
    if (e->line == NULL) {
        free(e);
        return NULL;
    }
    el_wset(e->line, EL_CLIENTDATA, e);
    el_wset(e->line, EL_SIGNAL, 0);
    el_wset(e->line, EL_GETCFN, read_key);
    el_wset(e->line, EL_PROMPT_ESC, prompt, L'\1');
    set_up_keys(e->line);
    set_up_history(e);
    catch_signals();
    return e;
}

static void put_wide(struct tern_out *o, const wchar_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = (uint32_t)text[i];
        char c[4];
        size_t k = 0;
        if (x < 0x80) {
            c[k++] = (char)x;
        } else if (x < 0x800) {
            c[k++] = (char)(0xc0 | x >> 6);
        } else if (x < 0x10000) {
            c[k++] = (char)(0xe0 | x >> 12);
            c[k++] = (char)(0x80 | (x >> 6 & 0x3f));
        } else {
            c[k++] = (char)(0xf0 | x >> 18);
            c[k++] = (char)(0x80 | (x >> 12 & 0x3f));
            c[k++] = (char)(0x80 | (x >> 6 & 0x3f));
        }
        if (x >= 0x80)
            c[k++] = (char)(0x80 | (x & 0x3f));
        tern_out_put(o, c, k);
    }
}

static void tell_terminal(const char *code)
{
    fputs(code, stdout);
    fflush(stdout);
}

enum tern_chat_got tern_chat_edit_line(struct tern_chat_editor *e, bool more,
                                       struct tern_out *line)
{
    int n = 0;
    e->more = more;
    e->interrupted = e->ended = false;
    /* Before the prompt is there: a Ctrl-D behind it would else be the terminal's own. */
    el_wset(e->line, EL_PREP_TERM, 1);
    tell_terminal("\033[?2004h");
    const wchar_t *text = el_wgets(e->line, &n);
    tell_terminal("\033[?2004l");
    if (text == NULL || n <= 0) {
        tell_terminal(e->interrupted ? "^C\n" : "\n");
        return e->interrupted ? TERN_CHAT_GOT_INTERRUPT : TERN_CHAT_GOT_END;
    }
    put_wide(line, text, (size_t)n - (text[n - 1] == L'\n'));
    return TERN_CHAT_GOT_LINE;
}

void tern_chat_edit_remember(struct tern_chat_editor *e, tern_text message)
{
    HistEventW event;
    wchar_t *text = calloc(message.size + 1, sizeof *text);
    size_t n = 0;
    for (size_t i = 0, k; text && i < message.size; i += k) {
        k = tern_utf8_length((tern_text){message.data + i, message.size - i});
        uint32_t x = (unsigned char)message.data[i] & (k < 2 ? 0x7f : 0x7f >> k);
        for (size_t j = 1; j < k; j++)
            x = x << 6 | ((unsigned char)message.data[i + j] & 0x3f);
        text[n++] = (wchar_t)x;
        k = k ? k : 1;
    }
    if (text && n > 0 && e->history && history_w(e->history, &event, H_ENTER, text) >= 0 &&
        e->file)
        history_w(e->history, &event, H_SAVE, e->file);
    free(text);
}

void tern_chat_edit_close(struct tern_chat_editor *e)
{
    el_end(e->line);
    if (e->history)
        history_wend(e->history);
    free(e);
}
