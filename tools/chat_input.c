#include "tools/chat_input.h"

#include "tools/chat_edit.h"
#include "tools/chat_line.h"
#include "tools/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void tern_chat_input_open(struct tern_chat_input *in, bool edits, bool colour)
{
    memset(in, 0, sizeof *in);
    tern_out_open(&in->line, -1);
    in->terminal = isatty(STDIN_FILENO);
    in->editor = edits ? tern_chat_edit_open(colour) : NULL;
}

void tern_chat_input_close(struct tern_chat_input *in)
{
    if (in->editor)
        tern_chat_edit_close(in->editor);
    tern_out_free(&in->line);
    memset(in, 0, sizeof *in);
}

void tern_chat_input_remember(struct tern_chat_input *in, tern_text message)
{
    if (in->editor)
        tern_chat_edit_remember(in->editor, message);
}

/* Waits for more bytes; a signal may come just before the poll, so it looks now and then. */
static enum tern_chat_got fill(struct tern_chat_input *in)
{
    enum { LOOK_MS = 200 };
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        if (tern_interrupted())
            return TERN_CHAT_GOT_INTERRUPT;
        int ready = poll(&p, 1, LOOK_MS);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        ssize_t n = read(STDIN_FILENO, in->bytes, sizeof in->bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        in->at = 0;
        in->n = n > 0 ? (size_t)n : 0;
        return n > 0 ? TERN_CHAT_GOT_LINE : n == 0 ? TERN_CHAT_GOT_END : TERN_CHAT_GOT_ERROR;
    }
}

static void take(struct tern_chat_input *in, size_t n)
{
    const size_t room = TERN_CHAT_MOST_BYTES - in->line.n;
    tern_out_put(&in->line, in->bytes + in->at, n < room ? n : room);
    in->lost += n > room ? n - room : 0;
    in->at += n;
}

/* The last line may lack its end. */
static enum tern_chat_got read_line(struct tern_chat_input *in)
{
    in->line.n = in->lost = 0;
    for (;;) {
        if (in->at == in->n) {
            const enum tern_chat_got got = fill(in);
            if (got == TERN_CHAT_GOT_END && in->line.n > 0)
                break;
            if (got != TERN_CHAT_GOT_LINE)
                return got;
        }
        const char *from = in->bytes + in->at, *end = memchr(from, '\n', in->n - in->at);
        take(in, end ? (size_t)(end - from) : in->n - in->at);
        if (end) {
            in->at++;
            break;
        }
    }
    if (in->line.n > 0 && in->line.grown[in->line.n - 1] == '\r')
        in->line.n--;
    return TERN_CHAT_GOT_LINE;
}

enum tern_chat_got tern_chat_input_line(struct tern_chat_input *in, bool more)
{
    if (in->editor) {
        in->line.n = in->lost = 0;
        return tern_chat_edit_line(in->editor, more, &in->line);
    }
    if (in->terminal && write(STDERR_FILENO, more ? ". " : "> ", 2) < 0)
        return TERN_CHAT_GOT_ERROR;
    return read_line(in);
}
