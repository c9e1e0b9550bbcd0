#include "tools/chat_screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char dim[] = "\033[2m", call[] = "\033[36m", plain[] = "\033[0m";

void tern_chat_screen_open(struct tern_chat_screen *s)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    memset(s, 0, sizeof *s);
    tern_out_open(&s->out, STDOUT_FILENO);
    tern_out_open(&s->err, STDERR_FILENO);
    s->terminal = isatty(STDOUT_FILENO);
    s->colour = s->terminal && term && *term && strcmp(term, "dumb") != 0 && !(no && *no);
}

static struct tern_out *out_of(struct tern_chat_screen *s, enum tern_chat_part part)
{
    return part == TERN_CHAT_REASONING && !s->terminal ? &s->err : &s->out;
}

static void put(struct tern_out *o, const char *text)
{
    tern_out_put(o, text, strlen(text));
}

static void end_part(struct tern_chat_screen *s)
{
    struct tern_out *o = out_of(s, s->part);
    if (s->colour && (s->part == TERN_CHAT_REASONING || s->part == TERN_CHAT_CALL))
        put(o, plain);
    if (s->mid_line)
        put(o, "\n");
    /* Without colours, words say where reasoning ends. */
    if (s->part == TERN_CHAT_REASONING)
        put(o, s->colour ? "\n" : "[end of thinking]\n");
    tern_out_flush(o);
    s->mid_line = false;
    s->part = TERN_CHAT_NO_PART;
}

static void begin_part(struct tern_chat_screen *s, enum tern_chat_part part)
{
    struct tern_out *o = out_of(s, part);
    if (s->part != TERN_CHAT_NO_PART)
        end_part(s);
    s->part = part;
    if (part == TERN_CHAT_REASONING)
        put(o, s->colour ? dim : "[thinking]\n");
    else if (part == TERN_CHAT_CALL && s->colour)
        put(o, call);
}

void tern_chat_screen_text(struct tern_chat_screen *s, enum tern_chat_part part, tern_text text)
{
    if (text.size == 0)
        return;
    if (part != s->part)
        begin_part(s, part);
    struct tern_out *o = out_of(s, part);
    for (size_t i = 0, n; i < text.size; i += n) {
        n = tern_utf8_length((tern_text){text.data + i, text.size - i});
        n = n ? n : 1;
        const unsigned char c = (unsigned char)text.data[i];
        const bool c1 = n == 2 && c == 0xc2 && (unsigned char)text.data[i + 1] < 0xa0;
        if (s->terminal && c != '\n' && c != '\t' && (c < 0x20 || c == 0x7f || c1))
            put(o, "?");
        else
            tern_out_put(o, text.data + i, n);
    }
    s->mid_line = text.data[text.size - 1] != '\n';
    s->any = true;
    s->answered |= part != TERN_CHAT_REASONING;
    tern_out_flush(o);
}

void tern_chat_screen_end(struct tern_chat_screen *s)
{
    if (s->part != TERN_CHAT_NO_PART)
        end_part(s);
    if (!s->terminal && !s->answered)
        put(&s->out, "\n");
    tern_out_flush(&s->out);
    s->answered = false;
}

void tern_chat_screen_gap(struct tern_chat_screen *s)
{
    if (s->terminal && s->any)
        put(&s->out, "\n");
    tern_out_flush(&s->out);
    s->any = false;
}

/* Lines as they are, but nothing in them steers a terminal. */
static void put_lines(struct tern_out *o, tern_text t)
{
    while (t.size > 0) {
        const char *end = memchr(t.data, '\n', t.size);
        const size_t n = end ? (size_t)(end - t.data) : t.size;
        tern_out_plain(o, (tern_text){t.data, n});
        if (end)
            put(o, "\n");
        t = (tern_text){t.data + n + (end != NULL), t.size - n - (end != NULL)};
    }
    put(o, "\n");
}

static tern_text print(char text[1024], const char *format, va_list args)
{
    const int n = vsnprintf(text, 1024, format, args);
    return (tern_text){text, n < 0 ? 0 : n < 1024 ? (size_t)n : 1023};
}

void tern_chat_screen_say(struct tern_chat_screen *s, const char *format, ...)
{
    struct tern_out *o = s->terminal ? &s->out : &s->err;
    char text[1024];
    va_list args;
    va_start(args, format);
    const tern_text t = print(text, format, args);
    va_end(args);
    tern_out_flush(&s->out);
    if (s->colour)
        put(o, dim);
    put_lines(o, t);
    if (s->colour)
        put(o, plain);
    tern_out_flush(o);
}

void tern_chat_screen_tell_text(struct tern_chat_screen *s, tern_text text)
{
    put_lines(&s->out, text);
    tern_out_flush(&s->out);
}

void tern_chat_screen_tell(struct tern_chat_screen *s, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    tern_chat_screen_tell_text(s, print(text, format, args));
    va_end(args);
}
