/* http_reply.c: the answer to an exchange, from whatever thread, and its way to the loop.
 *
 * What is written lies in the exchange's chain until the loop takes it, whole chains at a time;
 * so the lock is held for a copy of some hundred bytes, never for a system call. An answer that
 * is sent whole waits for its end, since its length stands before it. */
#include "platform/os/host.h"
#include "tools/serve/http_conn.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static struct tern_http_conn *conn_of(struct tern_http_exchange *x)
{
    return (struct tern_http_conn *)x; /* its first member */
}

const char *tern_http_reason(int status)
{
    static const struct { int status; const char *reason; } reasons[] = {
        {200, "OK"}, {204, "No Content"}, {304, "Not Modified"}, {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
        {408, "Request Timeout"}, {409, "Conflict"}, {413, "Content Too Large"},
        {415, "Unsupported Media Type"}, {417, "Expectation Failed"},
        {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"}, {501, "Not Implemented"}, {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Answer";
}

bool tern_http_is(tern_text t, const char *text)
{
    return t.size == strlen(text) && memcmp(t.data, text, t.size) == 0;
}

bool tern_http_is_nocase(tern_text t, const char *text)
{
    return t.size == strlen(text) && strncasecmp(t.data, text, t.size) == 0;
}

tern_text tern_http_header(const struct tern_http_exchange *x, const char *name)
{
    for (uint32_t i = 0; i < x->n_headers; i++)
        if (tern_http_is_nocase(x->headers[i].name, name))
            return x->headers[i].value.data ? x->headers[i].value : (tern_text){"", 0};
    return (tern_text){NULL, 0};
}

/* --- the writer's side --- */

static void list(struct tern_http_exchange *x)
{
    if (x->listed)
        return;
    x->listed = true;
    x->next_ready = x->http->ready;
    x->http->ready = x;
}

void tern_http_add_header(struct tern_http_exchange *x, const char *name, const char *value)
{
    const size_t room = sizeof x->extra - x->n_extra;
    const int n = snprintf(x->extra + x->n_extra, room, "%s: %s\r\n", name, value);
    if (n > 0 && (size_t)n < room)
        x->n_extra += (size_t)n;
}

void tern_http_begin(struct tern_http_exchange *x, int status, const char *type, bool stream)
{
    pthread_mutex_lock(&x->http->lock);
    x->status = status;
    x->type = type;
    x->streams = stream;
    x->answer = stream ? TERN_HTTP_STREAM : TERN_HTTP_WHOLE;
    if (stream)
        list(x);
    pthread_mutex_unlock(&x->http->lock);
}

/* A stream that holds back too much is cut off; another answer becomes an error: that it is too
 * long, or that there is no room now. */
static void overflow(struct tern_http_exchange *x, bool too_long)
{
    static const char format[] = "{\"error\": {\"message\": \"%s\", \"type\": \"%s\", "
                                 "\"param\": null, \"code\": null}}";
    char sorry[256];
    struct tern_http *h = x->http;
    x->overflown = true;
    if (x->answer == TERN_HTTP_STREAM) {
        atomic_store(&x->gone, true);
        list(x);
        return;
    }
    tern_chain_clear(&h->pool, &x->pending);
    x->status = too_long ? 500 : 503;
    x->type = "application/json";
    snprintf(sorry, sizeof sorry, format,
             too_long ? "the answer is longer than this server keeps; ask for it as a stream"
                      : "no memory for the answer now",
             too_long ? "server_error" : "unavailable_error");
    if (!too_long)
        tern_http_add_header(x, "Retry-After", "1");
    if (!tern_chain_put(&h->pool, &x->pending, sorry, strlen(sorry)))
        x->type = NULL;
}

/* Under the lock: whether n bytes more may be written. */
static bool has_room(const struct tern_http_exchange *x, size_t n)
{
    const struct tern_http_options *o = &x->http->options;
    const size_t most = x->answer == TERN_HTTP_STREAM ? o->stream_bytes : o->answer_bytes;
    return x->n_unsent <= most && n <= most - x->n_unsent;
}

/* data, or the blocks of a chain. */
static bool add(struct tern_http_exchange *x, const char *data, size_t n,
                struct tern_chain *chain)
{
    struct tern_http *h = x->http;
    pthread_mutex_lock(&h->lock);
    bool ok = !atomic_load(&x->gone) && !x->overflown;
    if (ok) {
        const bool fits = has_room(x, n);
        const bool may = chain || x->answer == TERN_HTTP_STREAM ||
                         x->pending.size + n <= TERN_HTTP_SHORT || tern_http_has_room(h);
        ok = fits && may && (chain || tern_chain_put(&h->pool, &x->pending, data, n));
        if (!ok)
            overflow(x, !fits);
    }
    if (ok && chain)
        tern_chain_join(&h->pool, &x->pending, chain);
    if (ok) {
        x->n_unsent += n;
        if (x->answer == TERN_HTTP_STREAM)
            list(x);
    }
    pthread_mutex_unlock(&h->lock);
    return ok;
}

bool tern_http_write(struct tern_http_exchange *x, const char *data, size_t n)
{
    return n == 0 || add(x, data, n, NULL);
}

bool tern_http_write_chain(struct tern_http_exchange *x, struct tern_chain *c)
{
    const bool ok = c->size == 0 || add(x, NULL, c->size, c);
    tern_chain_clear(&x->http->pool, c);
    return ok;
}

void tern_http_end(struct tern_http_exchange *x)
{
    struct tern_http *h = x->http;
    pthread_mutex_lock(&h->lock);
    if (x->answer == TERN_HTTP_OPEN)
        x->status = 500;
    h->n_answers[x->status / 100 % TERN_HTTP_CLASSES]++;
    x->answer = TERN_HTTP_ENDED;
    list(x);
    pthread_mutex_unlock(&h->lock);
    tern_http_wake(h);
}

void tern_http_reply(struct tern_http_exchange *x, int status, const char *type, tern_text body)
{
    tern_http_begin(x, status, type, false);
    (void)tern_http_write(x, body.data, body.size);
    tern_http_end(x);
}

void tern_http_refuse(struct tern_http_exchange *x, int status, const char *line)
{
    char body[512];
    const int n = snprintf(body, sizeof body,
                           "{\"error\": {\"message\": \"%.300s\", \"type\": \"%s\", "
                           "\"param\": null, \"code\": null}}",
                           line, status >= 500 ? "server_error" : "invalid_request_error");
    if (status == 503)
        tern_http_add_header(x, "Retry-After", "1");
    tern_http_reply(x, status, "application/json", (tern_text){body, n > 0 ? (size_t)n : 0});
}

void tern_http_wake(struct tern_http *h)
{
    pthread_mutex_lock(&h->lock);
    const bool wake = h->ready && !h->woken;
    h->woken |= wake;
    pthread_mutex_unlock(&h->lock);
    if (wake && write(h->wake_in, "w", 1) < 0)
        return; /* a full pipe wakes as well */
}

/* --- the loop's side --- */

void tern_http_hand_over(struct tern_http_conn *c)
{
    c->state = TERN_HTTP_BUSY;
    c->deadline_ns = 0;
    atomic_fetch_add(&c->http->n_busy, 1);
}

struct tern_http_conn *tern_http_next_ready(struct tern_http *h)
{
    pthread_mutex_lock(&h->lock);
    struct tern_http_exchange *x = h->ready;
    if (x) {
        h->ready = x->next_ready;
        x->listed = false;
    } else {
        h->woken = false;
    }
    pthread_mutex_unlock(&h->lock);
    return x ? conn_of(x) : NULL;
}

static bool put(struct tern_http_conn *c, const char *text, size_t n)
{
    return tern_chain_put(&c->http->pool, &c->out, text, n);
}

static bool put_head(struct tern_http_conn *c)
{
    struct tern_http_exchange *x = &c->x;
    char head[TERN_HTTP_EXTRA + 512], length[64] = "", date[64];
    struct tm tm;
    const time_t t = time(NULL);
    gmtime_r(&t, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    c->chunks = x->streams && !c->http10;
    if (c->chunks)
        snprintf(length, sizeof length, "Transfer-Encoding: chunked\r\n");
    else if (x->streams)
        c->close_after = true;
    else if (x->type || (x->status != 204 && x->status != 304))
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", x->type ? x->pending.size : 0);
    if (!c->keep_alive || c->http->draining)
        c->close_after = true;
    x->head_sent = true;
    const int n = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%s%s%.*s%s\r\n",
                           x->status, tern_http_reason(x->status), date,
                           x->type ? "Content-Type: " : "", x->type ? x->type : "",
                           x->type ? "\r\n" : "", length, (int)x->n_extra, x->extra,
                           c->close_after ? "Connection: close\r\n" :
                           c->http10 ? "Connection: keep-alive\r\n" : "");
    return put(c, head, (size_t)n);
}

/* What is pending, framed, behind what waits for the socket. */
static bool put_body(struct tern_http_conn *c, bool ended)
{
    struct tern_http_exchange *x = &c->x;
    char size[32];
    if (tern_http_is(x->method, "HEAD"))
        tern_chain_clear(&c->http->pool, &x->pending);
    const size_t n = x->pending.size;
    bool ok = true;
    if (c->chunks && n) {
        snprintf(size, sizeof size, "%zx\r\n", n);
        ok = put(c, size, strlen(size));
    }
    tern_chain_join(&c->http->pool, &c->out, &x->pending);
    if (c->chunks && n)
        ok = ok && put(c, "\r\n", 2);
    if (c->chunks && ended)
        ok = ok && put(c, "0\r\n\r\n", 5);
    return ok;
}

bool tern_http_collect(struct tern_http_conn *c)
{
    struct tern_http_exchange *x = &c->x;
    struct tern_http *h = c->http;
    pthread_mutex_lock(&h->lock);
    const bool ended = x->answer == TERN_HTTP_ENDED;
    bool ok = true;
    if (c->out.size == 0)
        c->spoke_ns = tern_os_now_ns();
    if (ended || x->answer == TERN_HTTP_STREAM) {
        if (!x->head_sent)
            ok = put_head(c);
        ok = ok && put_body(c, ended);
    }
    x->n_unsent = c->out.size;
    if (!ok)
        atomic_store(&x->gone, true);
    pthread_mutex_unlock(&h->lock);
    if (ended) {
        tern_chain_clear(&h->pool, &x->pending);
        atomic_fetch_sub(&h->n_busy, 1);
    }
    return ended;
}

void tern_http_comment(struct tern_http_conn *c)
{
    static const char text[] = ": wait\n\n", framed[] = "8\r\n: wait\n\n\r\n";
    if (c->chunks)
        (void)put(c, framed, sizeof framed - 1);
    else
        (void)put(c, text, sizeof text - 1);
}
