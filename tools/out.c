#include "tools/out.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tern_out_open(struct tern_out *o, int fd)
{
    o->fd = fd;
    o->error = 0;
    o->n = 0;
    o->grown = NULL;
    o->cap = 0;
    o->comma = false;
    o->sink = NULL;
    o->self = NULL;
}

void tern_out_open_sink(struct tern_out *o,
                        bool (*sink)(void *self, const char *data, size_t size), void *self)
{
    tern_out_open(o, -1);
    o->sink = sink;
    o->self = self;
}

static void write_all(struct tern_out *o, const char *data, size_t size)
{
    if (o->sink) {
        if (size && o->error == 0 && !o->sink(o->self, data, size))
            o->error = EPIPE;
        return;
    }
    while (size > 0 && o->error == 0) {
        ssize_t n = write(o->fd, data, size);
        if (n < 0 && errno != EINTR)
            o->error = errno;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
}

static void grow(struct tern_out *o, const char *data, size_t size)
{
    if (o->n + size > o->cap) {
        size_t cap = 2 * (o->n + size) + 256;
        char *p = o->error ? NULL : realloc(o->grown, cap);
        if (p == NULL) {
            o->error = ENOMEM;
            return;
        }
        o->grown = p;
        o->cap = cap;
    }
    memcpy(o->grown + o->n, data, size);
    o->n += size;
}

void tern_out_put(struct tern_out *o, const char *data, size_t size)
{
    if (size == 0)
        return;
    if (o->fd < 0 && !o->sink) {
        grow(o, data, size);
        return;
    }
    if (o->n + size > sizeof o->bytes)
        tern_out_flush(o);
    if (size > sizeof o->bytes) {
        write_all(o, data, size);
        return;
    }
    memcpy(o->bytes + o->n, data, size);
    o->n += size;
}

void tern_out_print(struct tern_out *o, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        tern_out_put(o, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void tern_out_plain(struct tern_out *o, tern_text t)
{
    for (size_t i = 0, n; i < t.size; i += n) {
        n = tern_utf8_length((tern_text){t.data + i, t.size - i});
        unsigned char c = (unsigned char)t.data[i];
        bool c1 = n == 2 && c == 0xc2 && (unsigned char)t.data[i + 1] < 0xa0;
        if (c == '\n')
            tern_out_put(o, "\\n", 2);
        else if (n == 0 || c < 0x20 || c == 0x7f || c1)
            tern_out_put(o, "?", 1);
        else
            tern_out_put(o, t.data + i, n);
        n = n ? n : 1;
    }
}

bool tern_out_flush(struct tern_out *o)
{
    if (o->fd >= 0 || o->sink) {
        write_all(o, o->bytes, o->n);
        o->n = 0;
    }
    return o->error == 0;
}

void tern_out_free(struct tern_out *o)
{
    free(o->grown);
    o->grown = NULL;
    o->n = o->cap = 0;
}

size_t tern_utf8_length(tern_text t)
{
    const unsigned char *s = (const unsigned char *)t.data;
    if (t.size == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || t.size < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and what lies past U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void tern_json_inside(struct tern_out *o, tern_text t)
{
    static const char lost[] = "\xef\xbf\xbd";
    for (size_t i = 0, n; i < t.size; i += n) {
        unsigned char c = (unsigned char)t.data[i];
        n = tern_utf8_length((tern_text){t.data + i, t.size - i});
        if (n == 0) {
            n = 1;
            tern_out_put(o, lost, 3);
        } else if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            tern_out_put(o, escaped, 2);
        } else if (c == '\n') {
            tern_out_put(o, "\\n", 2);
        } else if (c < 0x20 || c == 0x7f) {
            tern_out_print(o, "\\u%04x", c);
        } else {
            tern_out_put(o, t.data + i, n);
        }
    }
}

static void put_quoted(struct tern_out *o, tern_text t)
{
    tern_out_put(o, "\"", 1);
    tern_json_inside(o, t);
    tern_out_put(o, "\"", 1);
}

void tern_json_key(struct tern_out *o, const char *key)
{
    if (o->comma)
        tern_out_put(o, ", ", 2);
    o->comma = true;
    if (key) {
        put_quoted(o, (tern_text){key, strlen(key)});
        tern_out_put(o, ": ", 2);
    }
}

void tern_json_begin(struct tern_out *o, const char *key, char bracket)
{
    tern_json_key(o, key);
    tern_out_put(o, &bracket, 1);
    o->comma = false;
}

void tern_json_end(struct tern_out *o, char bracket)
{
    tern_out_put(o, &bracket, 1);
    o->comma = true;
}

void tern_json_text(struct tern_out *o, const char *key, tern_text text)
{
    tern_json_key(o, key);
    put_quoted(o, text);
}

void tern_json_string(struct tern_out *o, const char *key, const char *text)
{
    if (text)
        tern_json_text(o, key, (tern_text){text, strlen(text)});
    else
        tern_json_null(o, key);
}

void tern_json_u64(struct tern_out *o, const char *key, uint64_t x)
{
    tern_json_key(o, key);
    tern_out_print(o, "%llu", (unsigned long long)x);
}

void tern_json_i64(struct tern_out *o, const char *key, int64_t x)
{
    tern_json_key(o, key);
    tern_out_print(o, "%lld", (long long)x);
}

void tern_json_real(struct tern_out *o, const char *key, double x)
{
    tern_json_key(o, key);
    tern_out_print(o, isfinite(x) ? "%.9g" : "null", x);
}

/* Nine digits are enough to give every float32 back. JSON has no infinity: what cannot be
 * drawn has the lowest number there is. */
void tern_json_float(struct tern_out *o, const char *key, float x)
{
    tern_json_key(o, key);
    if (isnan(x))
        tern_out_put(o, "null", 4);
    else
        tern_out_print(o, "%.9g", isinf(x) ? (x < 0 ? -3.40282347e38 : 3.40282347e38) : (double)x);
}

void tern_json_bool(struct tern_out *o, const char *key, bool x)
{
    tern_json_key(o, key);
    tern_out_put(o, x ? "true" : "false", x ? 4 : 5);
}

void tern_json_null(struct tern_out *o, const char *key)
{
    tern_json_key(o, key);
    tern_out_put(o, "null", 4);
}
