/* http_listen.c: the HTTP layer's memory, its listening socket, and how it is told to stop. */
#include "platform/os/host.h"
#include "tools/serve/http_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- memory: one walk that measures, or carves --- */

struct walk { unsigned char *base; size_t used; };

static void *carve(struct walk *w, size_t count, size_t item)
{
    enum { ALIGN = 64 };
    void *at = w->base ? w->base + w->used : NULL;
    w->used += (count * item + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void lay_out(struct walk *w, const struct tern_http_options *o, struct tern_http *h,
                    tern_memory *pool)
{
    const size_t n = (size_t)o->n_connections + TERN_HTTP_SPARE;
    (void)carve(w, 1, sizeof *h);
    h->conns = carve(w, n, sizeof *h->conns);
    h->used = carve(w, n, sizeof *h->used);
    h->polls = carve(w, n + 2, sizeof *h->polls);
    pool->size = o->pool_bytes;
    pool->data = carve(w, 1, o->pool_bytes);
}

size_t tern_http_bytes(const struct tern_http_options *o)
{
    struct walk w = {NULL, 0};
    struct tern_http h;
    tern_memory pool;
    lay_out(&w, o, &h, &pool);
    return w.used;
}

static bool fail(char line[TERN_ARGS_LINE], const char *what, const char *why)
{
    snprintf(line, TERN_ARGS_LINE, "%.100s: %.200s", what, why);
    return false;
}

static bool make_pipe(struct tern_http *h)
{
    int fds[2];
    if (pipe(fds) < 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK) < 0 || fcntl(fds[i], F_SETFD, FD_CLOEXEC) < 0)
            return false;
    h->wake_out = fds[0];
    h->wake_in = fds[1];
    return true;
}

bool tern_http_init(tern_memory mem, const struct tern_http_options *o, struct tern_http **out,
                    char line[TERN_ARGS_LINE])
{
    enum { TOUCHED = 32 }; /* connections whose memory is taken now: as many as there mostly are */
    struct walk w = {mem.data, 0};
    struct tern_http *h = mem.data;
    tern_memory pool;
    lay_out(&w, o, h, &pool);
    h->options = *o;
    tern_blocks_init(&h->pool, pool);
    pthread_mutex_init(&h->lock, NULL);
    tern_http_settings(&h->settings);
    h->listener = h->wake_in = h->wake_out = -1;
    for (size_t i = (size_t)o->n_connections + TERN_HTTP_SPARE; i-- > 0;) {
        if (i < TOUCHED)
            memset(&h->conns[i], 0, offsetof(struct tern_http_conn, head));
        h->conns[i].fd = -1;
        h->conns[i].next_free = h->free;
        h->free = &h->conns[i];
    }
    h->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *out = h;
    return make_pipe(h) || fail(line, "pipe", strerror(errno));
}

/* --- sockets --- */

static int listen_at(const struct addrinfo *a)
{
    enum { WAITING = 128 };
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          a->ai_protocol);
    const int on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, WAITING) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &n);
    const uint16_t port = at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                                   : ((struct sockaddr_in *)&at)->sin_port;
    return ntohs(port);
}

bool tern_http_listen(struct tern_http *h, const char *host, uint16_t *port,
                      char line[TERN_ARGS_LINE])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char name[TERN_ARGS_LINE], service[16];
    snprintf(service, sizeof service, "%u", (unsigned)*port);
    snprintf(name, sizeof name, "--host %.80s, port %s", host, service);
    const int code = getaddrinfo(host, service, &hints, &list);
    if (code)
        return fail(line, name, gai_strerror(code));
    int error = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a && h->listener < 0; a = a->ai_next) {
        h->listener = listen_at(a);
        error = h->listener < 0 ? errno : 0;
    }
    freeaddrinfo(list);
    if (h->listener < 0)
        return fail(line, name, strerror(error));
    *port = port_of(h->listener);
    return true;
}

/* Without descriptors the next in line would be neither served nor refused, and poll would not
 * sleep: one is kept for this. False: it is not there, as others may take it meanwhile. */
static bool refuse_for_want_of_descriptors(struct tern_http *h)
{
    if (h->reserve < 0)
        return false;
    close(h->reserve);
    const int fd = accept(h->listener, NULL, NULL);
    if (fd >= 0)
        close(fd);
    h->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

/* Whoever is next in line stays there, and poll would not sleep: it looks away for a while. */
static void look_away(struct tern_http *h)
{
    enum { AWAY_NS = 100000000 };
    h->deaf_until_ns = tern_os_now_ns() + AWAY_NS;
    if (h->reserve < 0)
        h->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int tern_http_accept(struct tern_http *h)
{
    /* What lies in the system's buffers is taken by nobody yet. */
    const int on = 1, buffer = 256 << 10;
    const int fd = accept(h->listener, NULL, NULL);
    if (fd < 0) {
        const bool none = errno == EMFILE || errno == ENFILE;
        const bool passes = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
                            errno == ECONNABORTED;
        if (none ? !refuse_for_want_of_descriptors(h) : !passes)
            look_away(h);
        return -1;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    return fd;
}

void tern_http_deafen(struct tern_http *h)
{
    if (h->listener >= 0)
        close(h->listener);
    h->listener = -1;
}

/* --- the end --- */

void tern_http_stop(struct tern_http *h, uint32_t drain_ms)
{
    atomic_store(&h->drain_ms, drain_ms);
    atomic_fetch_add(&h->stop, 1);
    if (write(h->wake_in, "s", 1) < 0)
        return; /* full: it wakes up anyway */
}

void tern_http_close(struct tern_http *h)
{
    tern_http_deafen(h);
    const int fds[] = {h->wake_in, h->wake_out, h->reserve};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void tern_http_count(struct tern_http *h, uint32_t *n_open, uint32_t *n_busy)
{
    *n_open = atomic_load(&h->n_open);
    *n_busy = atomic_load(&h->n_busy);
}

void tern_http_answers(struct tern_http *h, uint64_t out[TERN_HTTP_CLASSES])
{
    pthread_mutex_lock(&h->lock);
    memcpy(out, h->n_answers, sizeof h->n_answers);
    pthread_mutex_unlock(&h->lock);
}

struct tern_blocks *tern_http_blocks(struct tern_http *h)
{
    return &h->pool;
}

bool tern_http_is_short(struct tern_http *h)
{
    return tern_blocks_left(&h->pool) < h->pool.n_all / 8 * 3;
}

bool tern_http_has_room(struct tern_http *h)
{
    if (tern_http_is_short(h) && !atomic_exchange(&h->pressed, true) &&
        write(h->wake_in, "p", 1) < 0)
        atomic_store(&h->pressed, false); /* full: it wakes up anyway */
    return tern_blocks_left(&h->pool) > h->pool.n_all / 4;
}
