/* http_loop.c: poll, sockets, deadlines.
 *
 * The loop sleeps until a socket can go on, a writer wakes it, or the earliest deadline of all
 * connections is reached; with nothing under way there is no deadline but those of connections
 * that are kept open, so an idle server does not wake up. */
#include "platform/os/host.h"
#include "tools/serve/http_conn.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CLOSING_MS = 5000, FAILED_MS = 50, MILLION = 1000000 };

#ifdef POLLRDHUP
enum { CLIENT_LEFT = POLLRDHUP };
#else
enum { CLIENT_LEFT = 0 };
#endif

/* --- a connection's end --- */

static void release(struct tern_http_conn *c)
{
    struct tern_http *h = c->http;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    tern_chain_clear(&h->pool, &c->out);
    tern_chain_clear(&h->pool, &c->x.body);
    tern_chain_clear(&h->pool, &c->x.pending);
    h->used[c->place] = h->used[--h->n_used];
    h->used[c->place]->place = c->place;
    atomic_store(&h->n_open, h->n_used);
    c->state = TERN_HTTP_FREE;
    tern_os_give_back((char *)c + offsetof(struct tern_http_conn, head),
                      offsetof(struct tern_http_conn, n_in) -
                          offsetof(struct tern_http_conn, head));
    c->next_free = h->free;
    h->free = c;
}

void tern_http_leave(struct tern_http_conn *c)
{
    const bool busy = c->state == TERN_HTTP_BUSY;
    if (c->state == TERN_HTTP_LEFT)
        return;
    atomic_store(&c->x.gone, true);
    if (!busy) {
        release(c);
        return;
    }
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->state = TERN_HTTP_LEFT;
    tern_chain_clear(&c->http->pool, &c->out);
}

/* Ours is said; what the client still sends is thrown away for a while, since a socket that is
 * closed over unread bytes takes the answer back. */
static void shut(struct tern_http_conn *c)
{
    if (c->fd >= 0)
        shutdown(c->fd, SHUT_WR);
    c->state = TERN_HTTP_CLOSING;
    c->n_in = 0;
    c->n_thrown = 0;
    c->deadline_ns = tern_os_now_ns() + (uint64_t)CLOSING_MS * MILLION;
}

/* --- writing --- */

/* Sends what it can; false: the client has left. */
static bool send_some(struct tern_http_conn *c)
{
    enum { PIECES = 16 };
    while (c->out.size) {
        struct iovec v[PIECES];
        struct msghdr m = {.msg_iov = v};
        for (struct tern_block *b = c->out.first; b && m.msg_iovlen < PIECES; b = b->next)
            v[m.msg_iovlen++] = (struct iovec){b->bytes + b->begin, b->end - b->begin};
        const ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        tern_chain_drop(&c->http->pool, &c->out, (size_t)n);
        c->spoke_ns = tern_os_now_ns();
    }
    return true;
}

/* After an answer: the next request, which may have come already, or the end. */
static void next_request(struct tern_http_conn *c)
{
    if (c->close_after || c->http->draining) {
        shut(c);
        return;
    }
    tern_http_reset(c);
    c->deadline_ns = tern_os_now_ns() + (uint64_t)c->http->options.idle_ms * MILLION;
    tern_http_parse(c);
}

void tern_http_flush(struct tern_http_conn *c)
{
    if (c->fd >= 0 && !send_some(c)) {
        tern_http_leave(c);
        return;
    }
    if (c->out.size == 0)
        c->waits_ns = 0;
    else if (c->waits_ns == 0)
        c->waits_ns = tern_os_now_ns();
    pthread_mutex_lock(&c->http->lock);
    c->x.n_unsent = c->x.pending.size + c->out.size;
    pthread_mutex_unlock(&c->http->lock);
    if (c->state == TERN_HTTP_FLUSHING && c->out.size == 0)
        next_request(c);
}

void tern_http_advance(struct tern_http *h)
{
    struct tern_http_conn *c;
    while ((c = tern_http_next_ready(h)) != NULL) {
        const bool ended = tern_http_collect(c);
        if (c->state == TERN_HTTP_LEFT) {
            tern_chain_clear(&h->pool, &c->out);
            if (ended)
                release(c);
            continue;
        }
        if (ended)
            c->state = TERN_HTTP_FLUSHING;
        if (ended)
            tern_chain_clear(&h->pool, &c->x.body);
        if (atomic_load(&c->x.gone))
            tern_http_leave(c);
        else
            tern_http_flush(c);
    }
}

/* Where memory is short, whoever has kept it waiting the longest gives it back. */
static void cut_off_the_slowest(struct tern_http *h)
{
    enum { SOME = 16 << 10 };
    atomic_store(&h->pressed, false);
    while (tern_http_is_short(h)) {
        struct tern_http_conn *slowest = NULL;
        for (uint32_t i = 0; i < h->n_used; i++) {
            struct tern_http_conn *c = h->used[i];
            if (c->waits_ns && c->out.size >= SOME &&
                (!slowest || c->waits_ns < slowest->waits_ns))
                slowest = c;
        }
        if (!slowest)
            return;
        slowest->waits_ns = 0;
        tern_http_leave(slowest);
    }
}

/* --- reading --- */

/* Who goes on after so much has not looked for an answer, and is not waited for. */
static void throw_away(struct tern_http_conn *c)
{
    enum { ROUNDS = 64, MOST = 16 << 20 };
    for (int i = 0; i < ROUNDS; i++) {
        const ssize_t n = recv(c->fd, c->in, sizeof c->in, MSG_DONTWAIT);
        c->n_thrown += n > 0 ? (size_t)n : 0;
        if (n > 0 && c->n_thrown < MOST)
            continue;
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            release(c);
        return;
    }
}

static void receive(struct tern_http_conn *c)
{
    if (c->state == TERN_HTTP_CLOSING) {
        throw_away(c);
        return;
    }
    if (c->n_in == sizeof c->in)
        return;
    const ssize_t n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        tern_http_leave(c);
        return;
    }
    c->n_in += (size_t)n;
    tern_http_parse(c);
}

/* A place for one more: who has had an answer, and was to close, is not waited for any longer. */
static bool make_place(struct tern_http *h)
{
    struct tern_http_conn *first = NULL;
    for (uint32_t i = 0; i < h->n_used && !h->free; i++) {
        struct tern_http_conn *c = h->used[i];
        if (c->state == TERN_HTTP_CLOSING && (!first || c->deadline_ns < first->deadline_ns))
            first = c;
    }
    if (first)
        release(first);
    return h->free != NULL;
}

static void accept_some(struct tern_http *h)
{
    enum { AT_ONCE = 16 };
    for (int i = 0; i < AT_ONCE && make_place(h); i++) {
        const int fd = tern_http_accept(h);
        if (fd < 0)
            return;
        struct tern_http_conn *c = tern_http_open(h, fd);
        if (h->n_used <= h->options.n_connections)
            continue;
        c->refused = c->close_after = true;
        tern_http_hand_over(c);
        tern_http_refuse(&c->x, 503, "the server has as many connections as it takes");
    }
}

/* --- deadlines --- */

/* When something is to be done about a connection though nothing happens; 0: never. */
static uint64_t deadline_of(const struct tern_http_conn *c)
{
    const struct tern_http_options *o = &c->http->options;
    switch (c->state) {
    case TERN_HTTP_READING:
    case TERN_HTTP_CLOSING:
        return c->deadline_ns;
    case TERN_HTTP_BUSY:
    case TERN_HTTP_FLUSHING:
        if (c->out.size)
            return c->spoke_ns + (uint64_t)o->body_ms * MILLION;
        return c->x.head_sent && c->x.streams ? c->spoke_ns + (uint64_t)o->comment_ms * MILLION
                                              : 0;
    default:
        return 0;
    }
}

static void expire(struct tern_http_conn *c)
{
    switch (c->state) {
    case TERN_HTTP_READING:
        if (c->x.begun_ns == 0) {
            release(c);
            return;
        }
        c->refused = c->close_after = true;
        tern_http_hand_over(c);
        tern_http_refuse(&c->x, 408, "the request took too long to come");
        return;
    case TERN_HTTP_CLOSING:
        release(c);
        return;
    default:
        break;
    }
    if (c->out.size) {
        tern_http_leave(c);
        return;
    }
    tern_http_comment(c);
    c->spoke_ns = tern_os_now_ns();
    tern_http_flush(c);
}

static void do_what_is_due(struct tern_http *h)
{
    const uint64_t now = tern_os_now_ns();
    if (h->deaf_until_ns <= now)
        h->deaf_until_ns = 0;
    for (uint32_t i = h->n_used; i-- > 0;) {
        const uint64_t due = deadline_of(h->used[i]);
        if (due && due <= now)
            expire(h->used[i]);
    }
    tern_http_advance(h);
}

/* 0: there is none. */
static uint64_t earliest_deadline(const struct tern_http *h)
{
    uint64_t earliest = h->draining ? h->cut_ns : 0;
    if (h->deaf_until_ns && (!earliest || h->deaf_until_ns < earliest))
        earliest = h->deaf_until_ns;
    for (uint32_t i = 0; i < h->n_used; i++) {
        const uint64_t due = deadline_of(h->used[i]);
        if (due && (!earliest || due < earliest))
            earliest = due;
    }
    return earliest;
}

/* --- the end of it all --- */

static void begin_to_drain(struct tern_http *h)
{
    h->draining = true;
    h->cut_ns = tern_os_now_ns() + (uint64_t)atomic_load(&h->drain_ms) * MILLION;
    tern_http_deafen(h);
    for (uint32_t i = h->n_used; i-- > 0;)
        if (h->used[i]->state == TERN_HTTP_READING && h->used[i]->x.begun_ns == 0)
            release(h->used[i]);
}

/* Whether all has ended. */
static bool drain(struct tern_http *h)
{
    if (!atomic_load(&h->stop))
        return false;
    if (!h->draining)
        begin_to_drain(h);
    const bool cut = atomic_load(&h->stop) > 1 || tern_os_now_ns() >= h->cut_ns;
    bool all = true;
    for (uint32_t i = h->n_used; i-- > 0;) {
        struct tern_http_conn *c = h->used[i];
        if (cut && c->state != TERN_HTTP_LEFT) {
            const bool stays = c->state == TERN_HTTP_BUSY;
            tern_http_leave(c);
            all = all && !stays;
        } else {
            all = all && c->state == TERN_HTTP_CLOSING;
        }
    }
    if (cut)
        h->cut_ns = UINT64_MAX;
    for (uint32_t i = h->n_used; all && i-- > 0;)
        release(h->used[i]);
    return all;
}

/* --- the loop --- */

static size_t fill_polls(struct tern_http *h)
{
    size_t n = 0;
    h->polls[n++] = (struct pollfd){.fd = h->wake_out, .events = POLLIN};
    h->polls[n++] = (struct pollfd){.fd = -1, .events = POLLIN};
    bool place = h->free != NULL;
    for (uint32_t i = 0; i < h->n_used; i++) {
        struct tern_http_conn *c = h->used[i];
        place = place || c->state == TERN_HTTP_CLOSING;
        c->polled = c->fd >= 0 ? (uint32_t)n : 0;
        if (c->fd < 0)
            continue; /* poll takes no longer lists than a process may have descriptors */
        short events = (short)(c->out.size ? POLLOUT : 0);
        if (c->n_in < sizeof c->in)
            events |= POLLIN;
        if (c->state != TERN_HTTP_CLOSING)
            events |= CLIENT_LEFT;
        h->polls[n++] = (struct pollfd){.fd = c->fd, .events = events};
    }
    if (place && !h->deaf_until_ns)
        h->polls[1].fd = h->listener;
    return n;
}

static void serve_one(struct tern_http_conn *c, short events)
{
    if (c->state == TERN_HTTP_CLOSING && (events & (POLLERR | POLLHUP)) && !(events & POLLIN)) {
        release(c);
        return;
    }
    if (events & POLLOUT)
        tern_http_flush(c);
    if (c->fd < 0 || c->state == TERN_HTTP_FREE)
        return;
    /* What came before it left is read first: a request may be whole, and is answered if that
     * takes no time. */
    if (events & POLLIN)
        receive(c);
    if (c->state == TERN_HTTP_BUSY)
        tern_http_advance(c->http);
    if (c->fd >= 0 && c->state != TERN_HTTP_CLOSING && c->state != TERN_HTTP_FREE &&
        (events & (POLLERR | POLLHUP | CLIENT_LEFT)) &&
        (c->state == TERN_HTTP_BUSY || !(events & POLLIN)))
        tern_http_leave(c);
}

static int timeout_until(uint64_t due)
{
    if (due == 0 || due == UINT64_MAX)
        return -1;
    const uint64_t now = tern_os_now_ns();
    const uint64_t ms = due > now ? (due - now + MILLION - 1) / MILLION : 0;
    return ms > 1 << 30 ? 1 << 30 : (int)ms;
}

void tern_http_run(struct tern_http *h)
{
    for (;;) {
        tern_http_advance(h);
        cut_off_the_slowest(h);
        do_what_is_due(h);
        if (drain(h))
            return;
        const size_t n = fill_polls(h);
        if (poll(h->polls, n, timeout_until(earliest_deadline(h))) < 0) {
            if (errno != EINTR)
                poll(NULL, 0, FAILED_MS);
            continue;
        }
        if (h->polls[0].revents) {
            char bytes[64];
            while (read(h->wake_out, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
                ;
        }
        /* From the back: who is released is replaced by one that was looked at. */
        for (uint32_t i = h->n_used; i-- > 0;) {
            struct tern_http_conn *c = i < h->n_used ? h->used[i] : NULL;
            const struct pollfd p = h->polls[c ? c->polled : 0];
            if (!c || !c->polled || !p.revents || c->fd != p.fd)
                continue;
            c->polled = 0;
            serve_one(c, p.revents);
        }
        if (h->polls[1].revents)
            accept_some(h);
    }
}
