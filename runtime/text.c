#include "runtime/text.h"

#include <string.h>

void tern_write_bytes(struct tern_writer *w, const char *data, size_t size)
{
    if (w->n < w->cap)
        memcpy(w->out + w->n, data, size < w->cap - w->n ? size : w->cap - w->n);
    w->n += size;
}

static void write_number(struct tern_writer *w, uint64_t u, unsigned base)
{
    char digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = "0123456789abcdef"[u % base];
        u /= base;
    } while (u);
    tern_write_bytes(w, digits + n, sizeof digits - n);
}

/* What a file calls itself may hold anything: shown as printable text, cut. */
static void write_quoted(struct tern_writer *w, tern_text t)
{
    enum { MOST = 64 };
    for (size_t i = 0; i < t.size && i < MOST; i++) {
        const unsigned char c = (unsigned char)t.data[i];
        const char shown = c < 0x20 || c == 0x7f || c >= 0x80 ? '?' : (char)c;
        tern_write_bytes(w, &shown, 1);
    }
    if (t.size > MOST)
        tern_write_bytes(w, "...", 3);
}

/* Six significant digits: enough to recognise a parameter, and exact for what people type. */
static void write_double(struct tern_writer *w, double x)
{
    if (x != x) {
        tern_write_bytes(w, "nan", 3);
        return;
    }
    if (x < 0) {
        tern_write_bytes(w, "-", 1);
        x = -x;
    }
    if (x > 1.7e308) {
        tern_write_bytes(w, "inf", 3);
        return;
    }
    int exponent = 0;
    while (x >= 1e6) {
        x /= 10;
        exponent++;
    }
    while (x != 0 && x < 1e5) {
        x *= 10;
        exponent--;
    }
    uint64_t digits = (uint64_t)(x + 0.5);
    while (digits && digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    if (exponent >= 0 && exponent < 7) {
        for (; exponent; exponent--)
            digits *= 10;
        write_number(w, digits, 10);
    } else if (exponent < 0 && exponent > -10) {
        uint64_t scale = 1;
        for (int i = exponent; i < 0; i++)
            scale *= 10;
        write_number(w, digits / scale, 10);
        tern_write_bytes(w, ".", 1);
        for (uint64_t rest = digits % scale, s = scale / 10; s; s /= 10)
            write_number(w, rest / s % 10, 10);
    } else {
        write_number(w, digits, 10);
        tern_write_bytes(w, exponent < 0 ? "e-" : "e", exponent < 0 ? 2 : 1);
        write_number(w, (uint64_t)(exponent < 0 ? -exponent : exponent), 10);
    }
}

static void write_field(struct tern_writer *w, char kind, va_list *args)
{
    switch (kind) {
    case 's': {
        const char *s = va_arg(*args, const char *);
        tern_write_bytes(w, s, strlen(s));
        break;
    }
    case 't':
        write_quoted(w, va_arg(*args, tern_text));
        break;
    case 'u':
        write_number(w, va_arg(*args, uint64_t), 10);
        break;
    case 'x':
        write_number(w, va_arg(*args, uint64_t), 16);
        break;
    case 'i': {
        const int64_t i = va_arg(*args, int64_t);
        if (i < 0)
            tern_write_bytes(w, "-", 1);
        write_number(w, i < 0 ? 0 - (uint64_t)i : (uint64_t)i, 10);
        break;
    }
    case 'f':
        write_double(w, va_arg(*args, double));
        break;
    default:
        tern_write_bytes(w, &kind, 1);
    }
}

void tern_write_format(struct tern_writer *w, const char *format, va_list args)
{
    va_list copy;
    va_copy(copy, args);
    for (const char *p = format; *p; p++) {
        const char *end = strchr(p, '%');
        const size_t plain = end ? (size_t)(end - p) : strlen(p);
        tern_write_bytes(w, p, plain);
        if (!end || !end[1])
            break;
        p = end + 1;
        write_field(w, *p, &copy);
    }
    va_end(copy);
}

void tern_write(struct tern_writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tern_write_format(w, format, args);
    va_end(args);
}

void tern_write_end(struct tern_writer *w)
{
    w->out[w->n < w->cap ? w->n : w->cap] = '\0';
}

void tern_write_line(char *out, size_t size, const char *format, va_list args)
{
    struct tern_writer w = {out, size - 1, 0};
    tern_write_format(&w, format, args);
    tern_write_end(&w);
}

tern_text tern_text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

bool tern_text_equal(tern_text a, tern_text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool tern_text_is(tern_text a, const char *s)
{
    return tern_text_equal(a, tern_text_of(s));
}

size_t tern_text_overlap(tern_text word, size_t at, char byte)
{
    for (size_t n = at + 1; n; n--) {
        if (word.data[n - 1] == byte &&
            memcmp(word.data + (at + 1 - n), word.data, n - 1) == 0)
            return n;
    }
    return 0;
}

bool tern_text_to_u64(tern_text a, uint64_t *out)
{
    uint64_t u = 0;
    for (size_t i = 0; i < a.size; i++) {
        if (a.data[i] < '0' || a.data[i] > '9')
            return false;
        const uint64_t digit = (uint64_t)(a.data[i] - '0');
        if (u > (UINT64_MAX - digit) / 10)
            return false;
        u = u * 10 + digit;
    }
    *out = u;
    return a.size > 0;
}
