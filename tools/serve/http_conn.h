/* http_conn.h: a connection, for the files of the HTTP layer and their tests.
 *
 *   free -> reading -> (a whole request) busy -> (its answer ended) flushing -> reading ...
 *                                                                          \-> closing -> free
 *
 * A connection whose client has left while an exchange is under way keeps its place, without a
 * socket, until the exchange has ended: so nobody has a pointer to what is not there. */
#ifndef TERN_HTTP_CONN_H
#define TERN_HTTP_CONN_H

#include "tools/serve/http.h"

#include <llhttp.h>

enum { TERN_HTTP_INPUT = 8 << 10, TERN_HTTP_SPARE = 8 };

enum tern_http_state {
    TERN_HTTP_FREE,
    TERN_HTTP_READING,
    TERN_HTTP_BUSY,
    TERN_HTTP_FLUSHING,
    TERN_HTTP_CLOSING, /* its side is shut; what still comes is thrown away for a while */
    TERN_HTTP_LEFT,    /* no socket; the exchange is still the server's */
};

struct tern_http_conn {
    struct tern_http_exchange x; /* first: an exchange is its connection */
    struct tern_http *http;
    enum tern_http_state state;
    int fd;
    llhttp_t parser;
    bool in_head, seen_head_byte, last_cr;
    uint8_t n_newlines;        /* of line ends in a row, to find the head's end */
    bool in_value, body_known; /* a header's value has begun; the head was accepted */
    bool refused, keep_alive, close_after;
    bool chunks, http10;       /* how an answer is framed; what the client speaks */
    char head[TERN_HTTP_HEAD]; /* target, names and values, one after the other */
    size_t n_head, n_head_bytes;
    char in[TERN_HTTP_INPUT];  /* received and not yet parsed */
    size_t n_in;
    size_t n_thrown;           /* away, behind the last answer */
    struct tern_chain out;     /* bytes for the socket */
    uint64_t deadline_ns;      /* of its state; 0: none */
    uint64_t spoke_ns;         /* when something last went out */
    uint64_t waits_ns;         /* since when something waits for the socket; 0: nothing does */
    struct tern_http_conn *next_free;
    uint32_t place;            /* in the list of those in use */
    uint32_t polled;           /* in the list of poll; 0: not there */
};

struct tern_http {
    struct tern_http_options options;
    llhttp_settings_t settings;
    struct tern_blocks pool;
    pthread_mutex_t lock;      /* of answers, the ready list and the counts */
    struct tern_http_exchange *ready;
    bool woken;
    struct tern_http_conn *conns, *free;
    struct tern_http_conn **used; /* [n_used] */
    struct pollfd *polls;         /* [n_used + 2] */
    uint32_t n_used;
    _Atomic uint32_t n_open, n_busy; /* for figures */
    uint64_t n_answers[TERN_HTTP_CLASSES];
    uint64_t deaf_until_ns;       /* nobody is accepted; 0: they are */
    int listener, wake_in, wake_out; /* the two are a pipe */
    _Atomic bool pressed;         /* for memory: the loop was woken */
    _Atomic uint32_t stop, drain_ms;
    uint64_t cut_ns;
    bool draining;
    int reserve; /* a descriptor, given up to answer when there are no more */
};

/* --- http_parse.c --- */
void tern_http_settings(llhttp_settings_t *s);
/* A connection for a socket (or -1, in tests); NULL: no place is left. */
struct tern_http_conn *tern_http_open(struct tern_http *h, int fd);
/* Parses what lies in `in` as far as it goes. */
void tern_http_parse(struct tern_http_conn *c);
/* Ready for the next request. */
void tern_http_reset(struct tern_http_conn *c);

/* --- http_reply.c --- */
/* Moves what was written to an exchange to its connection; true: the answer has ended. */
bool tern_http_collect(struct tern_http_conn *c);
/* A comment between the events of a stream. */
void tern_http_comment(struct tern_http_conn *c);
/* The first exchange that something was written to since; NULL: none. */
struct tern_http_conn *tern_http_next_ready(struct tern_http *h);
/* The exchange is the server's from now on. */
void tern_http_hand_over(struct tern_http_conn *c);

/* --- http_loop.c --- */
/* What was written to exchanges goes to their connections, and on; what was pipelined is begun. */
void tern_http_advance(struct tern_http *h);
/* Sends what it can; after an answer's last byte the next request begins, or the end. */
void tern_http_flush(struct tern_http_conn *c);
void tern_http_leave(struct tern_http_conn *c); /* the client has left */

/* --- http_listen.c --- */
bool tern_http_is_short(struct tern_http *h); /* of memory: those who are slow are to give some */
int tern_http_accept(struct tern_http *h); /* a socket that does not block; -1: none */
void tern_http_deafen(struct tern_http *h);

#endif
