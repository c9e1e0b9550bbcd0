/* http_client.h: the HTTP layer without sockets: bytes are put where they would be received, and
 * what would be sent is collected. */
#ifndef TERN_TEST_HTTP_CLIENT_H
#define TERN_TEST_HTTP_CLIENT_H

#include "tools/serve/http_conn.h"

#include <stdlib.h>
#include <string.h>

enum { CLIENT_BODY = 40000, CLIENT_POOL = 64 * TERN_BLOCK, CLIENT_SENT = 1 << 16 };

struct http_client {
    struct tern_http *http;
    struct tern_http_conn *conn;
    void *memory;
    char sent[CLIENT_SENT];
    size_t n_sent;
    uint32_t n_requests;
    char last_path[64], last_body[CLIENT_BODY + 1];
    size_t last_body_size;
};

static inline struct tern_http_options client_options(void)
{
    return (struct tern_http_options){
        .n_connections = 4, .body_bytes = CLIENT_BODY, .pool_bytes = CLIENT_POOL,
        .stream_bytes = 8192, .answer_bytes = CLIENT_BODY + 8192, .head_ms = 1000,
        .body_ms = 2000, .idle_ms = 60000, .comment_ms = 60000,
    };
}

static inline bool client_init(struct http_client *c, const struct tern_http_options *o)
{
    char line[TERN_ARGS_LINE];
    const size_t bytes = tern_http_bytes(o);
    memset(c, 0, sizeof *c);
    c->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!c->memory)
        return false;
    memset(c->memory, 0, bytes);
    return tern_http_init((tern_memory){c->memory, bytes}, o, &c->http, line);
}

static inline void client_free(struct http_client *c)
{
    tern_http_close(c->http);
    free(c->memory);
}

/* Notes a request; its body is read here. */
static inline void client_note(struct http_client *c, struct tern_http_exchange *x)
{
    const size_t n = x->path.size < sizeof c->last_path ? x->path.size : sizeof c->last_path - 1;
    memcpy(c->last_path, x->path.data, n);
    c->last_path[n] = 0;
    c->last_body_size = tern_chain_get(tern_http_blocks(c->http), &x->body, c->last_body,
                                       CLIENT_BODY);
    c->last_body[c->last_body_size] = 0;
    c->n_requests++;
}

/* What would be sent now; then the next request begins. */
static inline void client_take(struct http_client *c)
{
    tern_http_advance(c->http);
    while (c->conn->out.size && c->n_sent < CLIENT_SENT - 1) {
        c->n_sent += tern_chain_get(&c->http->pool, &c->conn->out, c->sent + c->n_sent,
                                    CLIENT_SENT - 1 - c->n_sent);
        if (c->conn->out.size == 0)
            tern_http_flush(c->conn);
        tern_http_advance(c->http);
    }
    c->sent[c->n_sent] = 0;
}

/* Bytes arrive, at most `piece` at a time. */
static inline void client_send(struct http_client *c, const char *bytes, size_t n, size_t piece)
{
    while (n && c->conn->state != TERN_HTTP_CLOSING) {
        const size_t room = sizeof c->conn->in - c->conn->n_in;
        size_t part = n < piece ? n : piece;
        part = part < room ? part : room;
        if (part == 0)
            return;
        memcpy(c->conn->in + c->conn->n_in, bytes, part);
        c->conn->n_in += part;
        bytes += part;
        n -= part;
        tern_http_parse(c->conn);
        client_take(c);
    }
}

#endif
