/* http.h: HTTP/1.1 for a server whose answers take long.
 *
 * One thread has all sockets (tern_http_run). A request that is whole is handed to the server's
 * handle function, on that thread, as an exchange; from then on the exchange is the server's, who
 * may give it to another thread and answers it there, at once or piece by piece, until
 * tern_http_end gives it back. One exchange of a connection is under way at a time; what is sent
 * behind it (pipelining) waits.
 *
 * Who is gone: a client that closes or shuts its side down has left. `gone` is then true; what is
 * still written is dropped, and who works for it stops. A client that reads too slowly for what
 * its answer may hold back, or takes nothing for too long, is cut off, and counts as gone.
 *
 * Memory: all connections with their buffers, and the pool of blocks that bodies and answers lie
 * in, are mapped once; tern_http_bytes says how much that is. The pool's last quarter is kept for
 * streams and what is short, so that nobody's large bodies and answers end them; and where a good
 * half is in use, those who take their answers the slowest are cut off.
 *
 *   http_parse.c   bytes to an exchange: llhttp, and what it lets pass and we do not
 *   http_reply.c   what is written to an exchange, and its way to the socket's side
 *   http_loop.c    poll, sockets, deadlines
 *   http_listen.c  memory, the socket that listens, being told to stop
 */
#ifndef TERN_HTTP_H
#define TERN_HTTP_H

#include "tools/args.h"
#include "tools/serve/chain.h"

#include <stdatomic.h>

enum {
    TERN_HTTP_HEAD = 16 << 10,  /* bytes of a request's line and headers; more is 431 */
    TERN_HTTP_HEADERS = 100,
    TERN_HTTP_EXTRA = 1024,     /* bytes of headers that an answer adds */
    TERN_HTTP_SHORT = 64 << 10, /* a body or an answer that has room while there is any */
};

struct tern_http;

struct tern_http_header { tern_text name, value; };

enum tern_http_answer {
    TERN_HTTP_OPEN,   /* nothing is decided */
    TERN_HTTP_WHOLE,  /* sent when it has ended, with its length */
    TERN_HTTP_STREAM, /* sent as it comes */
    TERN_HTTP_ENDED,
};

struct tern_http_exchange {
    struct tern_http *http;
    /* The request; stays until the end. */
    tern_text method, path, query; /* query: behind the question mark */
    struct tern_http_header headers[TERN_HTTP_HEADERS];
    uint32_t n_headers;
    struct tern_chain body;
    uint64_t begun_ns;      /* when its first byte came */
    _Atomic bool gone;
    void *job;              /* the server's own */
    /* The answer; under the lock of http. */
    enum tern_http_answer answer;
    int status;
    const char *type;       /* lives on */
    char extra[TERN_HTTP_EXTRA];
    size_t n_extra;
    struct tern_chain pending; /* written, and not yet taken by the loop */
    size_t n_unsent;        /* pending, and what the loop holds */
    bool streams, head_sent;
    bool overflown;         /* it was longer than may be */
    bool listed;            /* something was written since the loop looked */
    struct tern_http_exchange *next_ready;
};

struct tern_http_options {
    uint32_t n_connections; /* more are answered 503 */
    size_t body_bytes;      /* a larger one is 413 */
    size_t pool_bytes;      /* of blocks, for bodies and answers together */
    size_t stream_bytes;    /* a stream may hold back so much */
    size_t answer_bytes;    /* of an answer that is sent whole */
    uint32_t head_ms;       /* from its first byte, a head is whole in so long, or 408 */
    uint32_t body_ms;       /* and a body; and a client takes something in so long, or is cut */
    uint32_t idle_ms;       /* a connection without a request is kept so long */
    uint32_t comment_ms;    /* a stream of events that is silent so long gets a comment */
    void (*handle)(void *self, struct tern_http_exchange *x);
    void *self;
};

size_t tern_http_bytes(const struct tern_http_options *o);
/* mem: so many bytes, mapped (zero), aligned to 64. False: line says why. */
bool tern_http_init(tern_memory mem, const struct tern_http_options *o, struct tern_http **out,
                    char line[TERN_ARGS_LINE]);
/* Port 0 takes a free one; the one it is comes back. */
bool tern_http_listen(struct tern_http *h, const char *host, uint16_t *port,
                      char line[TERN_ARGS_LINE]);
/* Until it was told to stop and all exchanges have ended. */
void tern_http_run(struct tern_http *h);
/* From any thread, or a signal's handler: no more is accepted, and after so long what is under
 * way is cut off. A second time: at once. */
void tern_http_stop(struct tern_http *h, uint32_t drain_ms);
void tern_http_close(struct tern_http *h);

/* For figures: connections open, of them with an exchange under way. */
void tern_http_count(struct tern_http *h, uint32_t *n_open, uint32_t *n_busy);
/* Answers that have ended, by the hundreds of their status. */
enum { TERN_HTTP_CLASSES = 6 };
void tern_http_answers(struct tern_http *h, uint64_t out[TERN_HTTP_CLASSES]);

/* The pool, for what a server keeps until it is sent; and whether it may keep more
 * of what is not short; who is slow is made to give some back meanwhile. */
struct tern_blocks *tern_http_blocks(struct tern_http *h);
bool tern_http_has_room(struct tern_http *h);

/* --- the request --- */

/* The value of a header, name in lower case; data NULL: there is none. */
tern_text tern_http_header(const struct tern_http_exchange *x, const char *name);
bool tern_http_is(tern_text t, const char *text);          /* equal */
bool tern_http_is_nocase(tern_text t, const char *text);   /* equal, A to Z as a to z */

/* --- the answer, from the thread that has the exchange --- */

/* Adds a header; before the first of what follows. What has no room is left out. */
void tern_http_add_header(struct tern_http_exchange *x, const char *name, const char *value);
/* Begins it. type NULL: there is no body. */
void tern_http_begin(struct tern_http_exchange *x, int status, const char *type, bool stream);
/* Adds to the body; false: the client is gone (or the answer too long, and it is cut off). */
bool tern_http_write(struct tern_http_exchange *x, const char *data, size_t n);
/* The same of a chain's blocks, which it takes over. */
bool tern_http_write_chain(struct tern_http_exchange *x, struct tern_chain *c);
/* The answer is complete, and the exchange given back: it must not be used again. */
void tern_http_end(struct tern_http_exchange *x);
/* All of these at once. */
void tern_http_reply(struct tern_http_exchange *x, int status, const char *type, tern_text body);
/* What was written since is sent. Writers other than the loop's thread call it when they pause;
 * tern_http_end does it by itself. */
void tern_http_wake(struct tern_http *h);

/* The answer to what is no valid request: an error as OpenAI's interface has it. */
void tern_http_refuse(struct tern_http_exchange *x, int status, const char *line);
const char *tern_http_reason(int status);

#endif
