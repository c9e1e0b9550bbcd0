#include "tests/unit/http_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "platform/os/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A loop in a thread of its own, and sockets as any client has them. Requests for /now are
 * answered at once; others are left to the test. */
static struct http_client server;
static pthread_t thread;
static uint16_t port;
static _Atomic(struct tern_http_exchange *) kept;

static void handle(void *self, struct tern_http_exchange *x)
{
    (void)self;
    if (tern_http_is(x->path, "/now"))
        tern_http_reply(x, 200, "text/plain", (tern_text){"fine", 4});
    else
        atomic_store(&kept, x);
}

static void *run(void *self)
{
    (void)self;
    tern_http_run(server.http);
    return NULL;
}

static void begin(struct tern_http_options o)
{
    char line[TERN_ARGS_LINE];
    o.handle = handle;
    port = 0;
    assert_true(client_init(&server, &o));
    assert_true(tern_http_listen(server.http, "127.0.0.1", &port, line));
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
}

static void end(void)
{
    tern_http_stop(server.http, 0);
    pthread_join(thread, NULL);
    assert_int_equal(server.http->n_used, 0);
    assert_int_equal(tern_blocks_left(&server.http->pool), CLIENT_POOL / TERN_BLOCK);
    client_free(&server);
}

static int connect_to(void)
{
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void ask(int fd, const char *path)
{
    char request[128];
    const int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
}

/* What comes until there is `until` in it, the end, or nothing for two seconds. */
static const char *receive(int fd, const char *until)
{
    static char text[1 << 16];
    size_t n = 0;
    text[0] = 0;
    while (n < sizeof text - 1 && !(until && strstr(text, until))) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 2000) <= 0)
            break;
        const ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        text[n] = 0;
    }
    return text;
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static struct tern_http_exchange *wait_for_request(void)
{
    struct tern_http_exchange *x;
    for (int i = 0; (x = atomic_exchange(&kept, NULL)) == NULL; i++) {
        assert_true(i < 2000);
        pause_ms(1);
    }
    return x;
}

static bool soon(const _Atomic bool *flag)
{
    for (int i = 0; i < 2000 && !atomic_load(flag); i++)
        pause_ms(1);
    return atomic_load(flag);
}

static void answers_over_one_connection_again_and_again(void **state)
{
    (void)state;
    begin(client_options());
    const int fd = connect_to();
    for (int i = 0; i < 20; i++) {
        ask(fd, "/now");
        assert_non_null(strstr(receive(fd, "fine"), "200 OK"));
    }
    close(fd);
    end();
}

static void sends_a_stream_as_it_is_written_and_as_chunks(void **state)
{
    (void)state;
    begin(client_options());
    const int fd = connect_to();
    ask(fd, "/stream");
    struct tern_http_exchange *x = wait_for_request();
    tern_http_begin(x, 200, "text/event-stream", true);
    assert_true(tern_http_write(x, "data: 1\n\n", 9));
    tern_http_wake(server.http);
    assert_non_null(strstr(receive(fd, "data: 1\n\n\r\n"), "\r\n\r\n9\r\ndata: 1"));
    assert_true(tern_http_write(x, "data: 2\n\n", 9));
    tern_http_end(x);
    assert_string_equal(receive(fd, "0\r\n\r\n"), "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
    ask(fd, "/now");
    assert_non_null(strstr(receive(fd, "fine"), "200 OK"));
    close(fd);
    end();
}

static void sees_a_client_that_closes_or_half_closes_leave(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        begin(client_options());
        const int fd = connect_to();
        ask(fd, "/later");
        struct tern_http_exchange *x = wait_for_request();
        assert_false(atomic_load(&x->gone));
        if (half)
            shutdown(fd, SHUT_WR);
        else
            close(fd);
        assert_true(soon(&x->gone));
        assert_false(tern_http_write(x, "x", 1));
        tern_http_end(x);
        if (half)
            close(fd);
        end();
    }
}

static void cuts_a_stream_off_whose_client_does_not_read(void **state)
{
    static const char piece[1024];
    (void)state;
    begin(client_options());
    const int slow = connect_to(), fd = connect_to();
    const int small = 4096;
    setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ask(slow, "/stream");
    struct tern_http_exchange *x = wait_for_request();
    tern_http_begin(x, 200, "text/event-stream", true);
    int n = 0;
    while (n < 100000 && tern_http_write(x, piece, sizeof piece)) {
        n++;
        tern_http_wake(server.http);
        if (n % 100 == 0) {
            ask(fd, "/now"); /* others are served all the while */
            assert_non_null(strstr(receive(fd, "fine"), "200 OK"));
        }
    }
    assert_true(n < 100000);
    assert_true(soon(&x->gone));
    tern_http_end(x);
    close(slow);
    close(fd);
    end();
}

static void refuses_connections_beyond_its_number(void **state)
{
    int fds[4];
    (void)state;
    begin(client_options());
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_to();
        ask(fds[i], "/now");
        assert_non_null(strstr(receive(fds[i], "fine"), "200 OK"));
    }
    const int fd = connect_to();
    assert_non_null(strstr(receive(fd, NULL), "503 Service Unavailable"));
    close(fd);
    close(fds[0]);
    pause_ms(50);
    fds[0] = connect_to();
    ask(fds[0], "/now");
    assert_non_null(strstr(receive(fds[0], "fine"), "200 OK"));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    end();
}

static void gives_up_on_a_request_that_never_ends(void **state)
{
    struct tern_http_options o = client_options();
    (void)state;
    o.head_ms = 100;
    begin(o);
    const int fd = connect_to();
    assert_int_equal(send(fd, "GET /now HT", 11, MSG_NOSIGNAL), 11);
    assert_non_null(strstr(receive(fd, NULL), "408 Request Timeout"));
    close(fd);
    end();
}

static void says_something_in_a_silent_stream(void **state)
{
    struct tern_http_options o = client_options();
    (void)state;
    o.comment_ms = 50;
    begin(o);
    const int fd = connect_to();
    ask(fd, "/stream");
    struct tern_http_exchange *x = wait_for_request();
    tern_http_begin(x, 200, "text/event-stream", true);
    tern_http_wake(server.http);
    assert_non_null(strstr(receive(fd, ": wait\n\n"), "200 OK"));
    tern_http_end(x);
    close(fd);
    end();
}

static void sleeps_while_connections_are_idle(void **state)
{
    struct rusage before, after;
    int fds[3];
    (void)state;
    begin(client_options());
    for (int i = 0; i < 3; i++) {
        fds[i] = connect_to();
        ask(fds[i], "/now");
        receive(fds[i], "fine");
    }
    pause_ms(20);
    getrusage(RUSAGE_SELF, &before);
    pause_ms(300);
    getrusage(RUSAGE_SELF, &after);
    /* This thread's own sleep counts, and what a sanitizer's thread does. */
    assert_true(after.ru_nvcsw - before.ru_nvcsw <= 8);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    end();
}

static void finishes_what_is_under_way_before_it_stops(void **state)
{
    (void)state;
    begin(client_options());
    const int fd = connect_to(), idle = connect_to();
    ask(idle, "/now");
    receive(idle, "fine");
    ask(fd, "/later");
    struct tern_http_exchange *x = wait_for_request();
    tern_http_stop(server.http, 5000);
    assert_string_equal(receive(idle, NULL), "");
    tern_http_reply(x, 200, "text/plain", (tern_text){"done", 4});
    const char *answer = receive(fd, NULL);
    assert_non_null(strstr(answer, "done"));
    assert_non_null(strstr(answer, "Connection: close"));
    pthread_join(thread, NULL);
    close(fd);
    close(idle);
    client_free(&server);
}

static void cuts_off_what_does_not_end_in_time(void **state)
{
    (void)state;
    begin(client_options());
    const int fd = connect_to();
    ask(fd, "/later");
    struct tern_http_exchange *x = wait_for_request();
    tern_http_stop(server.http, 50);
    assert_string_equal(receive(fd, NULL), "");
    assert_true(soon(&x->gone));
    tern_http_end(x);
    pthread_join(thread, NULL);
    close(fd);
    client_free(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_over_one_connection_again_and_again),
        cmocka_unit_test(sends_a_stream_as_it_is_written_and_as_chunks),
        cmocka_unit_test(sees_a_client_that_closes_or_half_closes_leave),
        cmocka_unit_test(cuts_a_stream_off_whose_client_does_not_read),
        cmocka_unit_test(refuses_connections_beyond_its_number),
        cmocka_unit_test(gives_up_on_a_request_that_never_ends),
        cmocka_unit_test(says_something_in_a_silent_stream),
        cmocka_unit_test(sleeps_while_connections_are_idle),
        cmocka_unit_test(finishes_what_is_under_way_before_it_stops),
        cmocka_unit_test(cuts_off_what_does_not_end_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
