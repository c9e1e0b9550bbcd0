/* http_parse.c: bytes to an exchange.
 *
 * llhttp finds the parts of a request, strictly; what it lets pass and another server in the way
 * might read differently is refused here: bare line feeds anywhere in a head, folded headers,
 * names without a letter, more or less than one Host, transfer codings other than chunked.
 * Whatever is refused is answered once, and the connection closed: where one request is not
 * understood, the place of the next is not known. */
#include "platform/os/host.h"
#include "tools/serve/http_conn.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static struct tern_http_conn *conn_of(llhttp_t *p)
{
    return p->data;
}

/* The first refusal counts; it ends the parsing. */
static int refuse(struct tern_http_conn *c, int status, const char *line)
{
    if (c->refused)
        return -1;
    c->refused = true;
    c->close_after = true;
    tern_chain_clear(&c->http->pool, &c->x.body);
    tern_http_hand_over(c);
    tern_http_refuse(&c->x, status, line);
    return -1;
}

static int keep(struct tern_http_conn *c, tern_text *t, const char *at, size_t n)
{
    if (n > sizeof c->head - c->n_head)
        return refuse(c, 431, "the request's head has more than 16384 bytes");
    if (t->size == 0)
        t->data = c->head + c->n_head;
    memcpy(c->head + c->n_head, at, n);
    c->n_head += n;
    t->size += n;
    return 0;
}

static int on_method(llhttp_t *p, const char *at, size_t n)
{
    return keep(conn_of(p), &conn_of(p)->x.method, at, n);
}

static int on_url(llhttp_t *p, const char *at, size_t n)
{
    return keep(conn_of(p), &conn_of(p)->x.path, at, n);
}

/* A trailer says nothing that we need. */
static int pass_trailer(struct tern_http_conn *c, size_t n)
{
    c->n_head_bytes += n;
    return c->n_head_bytes > TERN_HTTP_HEAD ? refuse(c, 431, "head and trailers: too long") : 0;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
    struct tern_http_conn *c = conn_of(p);
    struct tern_http_exchange *x = &c->x;
    if (c->body_known) {
        c->in_value = c->in_value && n == 0;
        return pass_trailer(c, n);
    }
    if (c->in_value || x->n_headers == 0) {
        if (x->n_headers == TERN_HTTP_HEADERS)
            return refuse(c, 431, "the request has more than 100 headers");
        x->headers[x->n_headers++] = (struct tern_http_header){{NULL, 0}, {NULL, 0}};
        c->in_value = false;
    }
    return keep(c, &x->headers[x->n_headers - 1].name, at, n);
}

static int on_field_end(llhttp_t *p)
{
    struct tern_http_conn *c = conn_of(p);
    if (c->in_value || (!c->body_known && (c->x.n_headers == 0 ||
                                           c->x.headers[c->x.n_headers - 1].name.size == 0)))
        return refuse(c, 400, "a header has no name");
    c->in_value = true;
    return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct tern_http_conn *c = conn_of(p);
    if (c->body_known)
        return pass_trailer(c, n);
    return keep(c, &c->x.headers[c->x.n_headers - 1].value, at, n);
}

/* A head of its own is kept per request, so its texts can be trimmed in place. */
static void trim(tern_text *t)
{
    while (t->size && (t->data[0] == ' ' || t->data[0] == '\t')) {
        t->data++;
        t->size--;
    }
    while (t->size && (t->data[t->size - 1] == ' ' || t->data[t->size - 1] == '\t'))
        t->size--;
}

static int check_headers(struct tern_http_conn *c, bool *expects)
{
    struct tern_http_exchange *x = &c->x;
    const bool old = c->parser.http_minor == 0;
    uint32_t n_hosts = 0;
    for (uint32_t i = 0; i < x->n_headers; i++) {
        struct tern_http_header *h = &x->headers[i];
        trim(&h->value);
        n_hosts += tern_http_is_nocase(h->name, "host");
        if (tern_http_is_nocase(h->name, "transfer-encoding") &&
            (old || !tern_http_is_nocase(h->value, "chunked")))
            return refuse(c, old ? 400 : 501, "transfer-encoding: chunked alone is understood");
        if (!tern_http_is_nocase(h->name, "expect"))
            continue;
        if (!tern_http_is_nocase(h->value, "100-continue"))
            return refuse(c, 417, "expect: 100-continue alone is understood");
        *expects = !old;
    }
    if (n_hosts > 1 || (n_hosts == 0 && !old))
        return refuse(c, 400, "one Host header needed");
    return 0;
}

/* A target that names its server, as proxies are sent: what is behind the name, if that is the one
 * that Host has; otherwise it stays, and is no path. */
static tern_text without_server(const struct tern_http_exchange *x)
{
    static const char scheme[] = "http://";
    const tern_text host = tern_http_header(x, "host");
    const size_t n = sizeof scheme - 1 + host.size;
    const bool ours = host.size && x->path.size > n && x->path.data[n] == '/' &&
                      strncasecmp(x->path.data, scheme, sizeof scheme - 1) == 0 &&
                      strncasecmp(x->path.data + sizeof scheme - 1, host.data, host.size) == 0;
    return ours ? (tern_text){x->path.data + n, x->path.size - n} : x->path;
}

static int on_head(llhttp_t *p)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct tern_http_conn *c = conn_of(p);
    struct tern_http_exchange *x = &c->x;
    bool expects = false;
    c->in_head = false;
    c->body_known = c->in_value = true;
    if (p->http_major != 1 || p->http_minor > 1)
        return refuse(c, 505, "HTTP/1.1 and HTTP/1.0 are understood");
    if (check_headers(c, &expects))
        return -1;
    x->path = without_server(x);
    if (x->path.size == 0 || x->path.data[0] != '/')
        return refuse(c, 400, "the request's target is no path");
    const char *mark = memchr(x->path.data, '?', x->path.size);
    if (mark) {
        x->query = (tern_text){mark + 1, (size_t)(x->path.data + x->path.size - mark) - 1};
        x->path.size = (size_t)(mark - x->path.data);
    }
    if (p->content_length > c->http->options.body_bytes)
        return refuse(c, 413, "the request's body is larger than this server takes");
    const bool body = p->content_length > 0 || (p->flags & F_CHUNKED);
    if (expects && body &&
        !tern_chain_put(&c->http->pool, &c->out, go_on, sizeof go_on - 1))
        return refuse(c, 503, "no memory for another body now");
    c->keep_alive = llhttp_should_keep_alive(p) && !p->upgrade;
    c->http10 = p->http_minor == 0;
    const uint64_t since = x->begun_ns;
    c->deadline_ns = since + (uint64_t)c->http->options.body_ms * 1000000;
    return 0;
}

/* Large bodies leave half of the pool. */
static bool has_room(const struct tern_http_conn *c, size_t n)
{
    struct tern_http *h = c->http;
    return tern_blocks_left(&h->pool) >
           h->pool.n_all / (c->x.body.size + n <= TERN_HTTP_SHORT ? 8 : 2);
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct tern_http_conn *c = conn_of(p);
    if (n > c->http->options.body_bytes - c->x.body.size)
        return refuse(c, 413, "the request's body is larger than this server takes");
    if (!has_room(c, n) || !tern_chain_put(&c->http->pool, &c->x.body, at, n))
        return refuse(c, 503, "no memory for another body now");
    return 0;
}

/* Whatever a chunk says of itself counts as head: it has no bound of its own. */
static int on_extension(llhttp_t *p, const char *at, size_t n)
{
    struct tern_http_conn *c = conn_of(p);
    (void)at;
    c->n_head_bytes += n;
    return c->n_head_bytes > TERN_HTTP_HEAD ? refuse(c, 431, "chunk extensions: too long") : 0;
}

static int on_chunk(llhttp_t *p)
{
    struct tern_http_conn *c = conn_of(p);
    if (p->content_length > c->http->options.body_bytes - c->x.body.size)
        return refuse(c, 413, "the request's body is larger than this server takes");
    return 0;
}

static int on_message(llhttp_t *p)
{
    (void)p;
    return HPE_PAUSED;
}

void tern_http_settings(llhttp_settings_t *s)
{
    llhttp_settings_init(s);
    s->on_method = on_method;
    s->on_url = on_url;
    s->on_header_field = on_field;
    s->on_header_field_complete = on_field_end;
    s->on_header_value = on_value;
    s->on_headers_complete = on_head;
    s->on_body = on_body;
    s->on_chunk_header = on_chunk;
    s->on_chunk_extension_name = on_extension;
    s->on_chunk_extension_value = on_extension;
    s->on_message_complete = on_message;
}

/* --- the connection --- */

void tern_http_reset(struct tern_http_conn *c)
{
    struct tern_http_exchange *x = &c->x;
    tern_chain_clear(&c->http->pool, &x->body);
    x->http = c->http;
    x->method = x->path = x->query = (tern_text){NULL, 0};
    x->n_headers = 0;
    x->begun_ns = 0;
    atomic_store(&x->gone, false);
    x->job = NULL;
    x->answer = TERN_HTTP_OPEN;
    x->status = 0;
    x->type = NULL;
    x->n_extra = x->n_unsent = 0;
    x->streams = x->head_sent = x->overflown = false;
    llhttp_init(&c->parser, HTTP_REQUEST, &c->http->settings);
    c->parser.data = c;
    c->in_head = true;
    c->seen_head_byte = c->last_cr = c->in_value = c->body_known = c->refused = false;
    c->n_newlines = 0;
    c->n_head = c->n_head_bytes = 0;
    c->keep_alive = c->close_after = c->chunks = c->http10 = false;
    c->state = TERN_HTTP_READING;
}

struct tern_http_conn *tern_http_open(struct tern_http *h, int fd)
{
    struct tern_http_conn *c = h->free;
    if (!c)
        return NULL;
    h->free = c->next_free;
    c->http = h;
    c->fd = fd;
    c->n_in = 0;
    c->polled = 0;
    c->spoke_ns = tern_os_now_ns();
    c->waits_ns = 0;
    c->place = h->n_used;
    h->used[h->n_used++] = c;
    atomic_store(&h->n_open, h->n_used);
    tern_http_reset(c);
    c->deadline_ns = c->spoke_ns + (uint64_t)h->options.idle_ms * 1000000;
    return c;
}

/* Looks at the bytes of a head before the parser does, up to the head's end. */
static int look_at_head(struct tern_http_conn *c, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char byte = at[i];
        const bool line_end = byte == '\r' || byte == '\n';
        if (byte == '\n' && !c->last_cr)
            return refuse(c, 400, "a line of the head ends without a carriage return");
        /* A name does not begin with a blank: this line goes on with the one before. */
        if (c->seen_head_byte && c->n_newlines == 1 && !c->last_cr &&
            (byte == ' ' || byte == '\t'))
            return refuse(c, 400, "a header goes on in a second line");
        c->last_cr = byte == '\r';
        if (!c->seen_head_byte && line_end)
            continue; /* empty lines before a request */
        c->seen_head_byte = true;
        if (++c->n_head_bytes > TERN_HTTP_HEAD)
            return refuse(c, 431, "the request's head has more than 16384 bytes");
        if (byte == '\n')
            c->n_newlines++;
        else if (!line_end)
            c->n_newlines = 0;
        if (c->n_newlines == 2)
            return 0;
    }
    return 0;
}

static int refuse_syntax(struct tern_http_conn *c)
{
    char line[TERN_ARGS_LINE];
    const char *reason = llhttp_get_error_reason(&c->parser);
    snprintf(line, sizeof line, "HTTP: %s", reason && reason[0] ? reason : "not a request");
    return refuse(c, 400, line);
}

static void begin_clock(struct tern_http_conn *c)
{
    c->x.begun_ns = tern_os_now_ns();
    c->deadline_ns = c->x.begun_ns + (uint64_t)c->http->options.head_ms * 1000000;
}

void tern_http_parse(struct tern_http_conn *c)
{
    if (c->state != TERN_HTTP_READING || c->n_in == 0)
        return;
    if (c->x.begun_ns == 0)
        begin_clock(c);
    if (c->in_head && look_at_head(c, c->in, c->n_in)) {
        c->n_in = 0;
        return;
    }
    const enum llhttp_errno e = llhttp_execute(&c->parser, c->in, c->n_in);
    size_t eaten = c->n_in;
    if (e != HPE_OK) {
        const char *at = llhttp_get_error_pos(&c->parser);
        eaten = at ? (size_t)(at - c->in) : c->n_in;
    }
    if (c->refused) {
        c->n_in = 0;
        return;
    }
    if (e != HPE_OK && e != HPE_PAUSED) {
        refuse_syntax(c);
        c->n_in = 0;
        return;
    }
    memmove(c->in, c->in + eaten, c->n_in - eaten);
    c->n_in -= eaten;
    if (e != HPE_PAUSED)
        return;
    tern_http_hand_over(c);
    c->http->options.handle(c->http->options.self, &c->x);
}
