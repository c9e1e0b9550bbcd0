#include "tests/unit/http_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct http_client client;

static void handle(void *self, struct tern_http_exchange *x)
{
    (void)self;
    client_note(&client, x);
    tern_http_reply(x, 200, "text/plain", (tern_text){"fine", 4});
}

static void begin(void)
{
    struct tern_http_options o = client_options();
    o.handle = handle;
    assert_true(client_init(&client, &o));
    client.conn = tern_http_open(client.http, -1);
    assert_non_null(client.conn);
}

static void end(void)
{
    if (client.conn->state != TERN_HTTP_FREE)
        tern_http_leave(client.conn);
    assert_int_equal(tern_blocks_left(&client.http->pool), CLIENT_POOL / TERN_BLOCK);
    client_free(&client);
}

/* The status of the i-th answer; 0: there are not so many. */
static int status_of(uint32_t i)
{
    const char *at = client.sent;
    for (;; i--, at++) {
        at = strstr(at, "HTTP/1.1 ");
        if (!at)
            return 0;
        if (i == 0)
            return atoi(at + 9);
    }
}

#define HOST "Host: a\r\n"
#define POST "POST /p HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

struct row { const char *request; int status; bool goes_on; };

static const struct row rows[] = {
    {"GET /x HTTP/1.1\r\n" HOST "\r\n", 200, true},
    {"GET /x HTTP/1.0\r\n\r\n", 200, false},
    {"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, true},
    {"GET /x HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, false},
    {"\r\n\r\nGET /x HTTP/1.1\r\n" HOST "\r\n", 200, true},
    {POST "Content-Length: 3\r\n\r\nabc", 200, true},
    {POST "Content-Length: 0\r\n\r\n", 200, true},
    {CHUNKED "3\r\nabc\r\n0\r\n\r\n", 200, true},
    {CHUNKED "3;name=value\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: x\r\n\r\n", 200, true},
    /* Lines. */
    {"GET /x HTTP/1.1\n" HOST "\n", 400, false},
    {"GET /x HTTP/1.1\r\nHost: a\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "\n", 400, false},
    {"GET /x HTTP/1.0\n\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "X: a\r b\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n Host: a\r\n\r\n", 400, false},
    /* Names and values. */
    {"GET /x HTTP/1.1\r\n" HOST "X Y: a\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "X : a\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST ": a\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "X\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n\r\n", 400, false},
    {"GET /x HTTP/1.1\r\n" HOST HOST "\r\n", 400, false},
    /* The request's line. */
    {"GET /x HTTP/2.0\r\n" HOST "\r\n", 505, false},
    {"GET /x HTTP/1.2\r\n" HOST "\r\n", 400, false},
    {"GET /x\r\n\r\n", 505, false},
    {"get /x HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"BREW /x HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"GET /a b HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"GET * HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"GET http://a/x HTTP/1.1\r\n" HOST "\r\n", 200, true},
    {"GET http://b/x HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", 400, false},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, false},
    {"\x16\x03\x01\x02\x03", 400, false},
    /* Lengths. */
    {POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, false},
    {POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400, false},
    {POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false},
    {POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", 400, false},
    {POST "Content-Length: +3\r\n\r\nabc", 400, false},
    {POST "Content-Length: -3\r\n\r\nabc", 400, false},
    {POST "Content-Length: 0x3\r\n\r\nabc", 400, false},
    {POST "Content-Length: 3 4\r\n\r\nabc", 400, false},
    {POST "Content-Length: 3,3\r\n\r\nabc", 400, false},
    {POST "Content-Length: \r\n\r\n", 400, false},
    {POST "Content-Length: 99999999999999999999\r\n\r\n", 400, false},
    {POST "Content-Length: 40001\r\n\r\n", 413, false},
    {POST "Content-Length: 1073741824\r\n\r\n", 413, false},
    /* Codings and chunks. */
    {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, false},
    {POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400, false},
    {POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, false},
    {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false},
    {"POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false},
    {CHUNKED "3\nabc\r\n0\r\n\r\n", 400, false},
    {CHUNKED "3\r\nabc\n0\r\n\r\n", 400, false},
    {CHUNKED "3\r\nabcd\r\n0\r\n\r\n", 400, false},
    {CHUNKED "0x3\r\nabc\r\n0\r\n\r\n", 400, false},
    {CHUNKED "-3\r\nabc\r\n0\r\n\r\n", 400, false},
    {CHUNKED "g\r\nabc\r\n0\r\n\r\n", 400, false},
    {CHUNKED "10000000000000000\r\nabc\r\n0\r\n\r\n", 400, false},
    {CHUNKED "80000000\r\nabc\r\n0\r\n\r\n", 413, false},
    {CHUNKED "3;a=b\nabc\r\n0\r\n\r\n", 400, false},
    {CHUNKED "0\n\n", 400, false},
    /* Expectations. */
    {POST "Expect: a miracle\r\nContent-Length: 1\r\n\r\n", 417, false},
    {POST "Expect: 100-continue\r\nContent-Length: 50000\r\n\r\n", 413, false},
};

static void answers_each_request_as_it_should_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = strlen(rows[i].request);
        for (size_t split = 0; split <= n; split++) {
            begin();
            client_send(&client, rows[i].request, split, split + 1);
            client_send(&client, rows[i].request + split, n - split, n + 1);
            if (status_of(0) != rows[i].status || status_of(1) ||
                (client.conn->state == TERN_HTTP_READING) != rows[i].goes_on)
                fail_msg("row %zu, split %zu: %s\nanswered: %s\nstate %d", i, split,
                         rows[i].request, client.sent, client.conn->state);
            assert_int_equal(client.n_requests, rows[i].status == 200);
            end();
        }
    }
}

static void reads_bodies_whole_however_they_come(void **state)
{
    static const char *const bodies[] = {
        POST "Content-Length: 11\r\n\r\nhello world",
        CHUNKED "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        CHUNKED "1;x\r\nh\r\nA\r\nello world\r\n000\r\nT: v\r\n\r\n",
    };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t piece = 1; piece < 40; piece++) {
            begin();
            client_send(&client, bodies[i], strlen(bodies[i]), piece);
            assert_int_equal(status_of(0), 200);
            assert_string_equal(client.last_body, "hello world");
            assert_string_equal(client.last_path, "/p");
            end();
        }
    }
}

static void answers_pipelined_requests_in_their_order(void **state)
{
    static const char three[] = "GET /1 HTTP/1.1\r\n" HOST "\r\n"
                                POST "Content-Length: 3\r\n\r\nabc"
                                "GET /3 HTTP/1.1\r\n" HOST "\r\n";
    (void)state;
    for (size_t piece = 1; piece < sizeof three; piece++) {
        begin();
        client_send(&client, three, sizeof three - 1, piece);
        assert_int_equal(client.n_requests, 3);
        assert_int_equal(status_of(2), 200);
        assert_string_equal(client.last_path, "/3");
        assert_int_equal(client.conn->state, TERN_HTTP_READING);
        end();
    }
}

static void does_not_serve_what_follows_a_refused_request(void **state)
{
    static const char two[] = POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "0\r\n\r\nGET /hidden HTTP/1.1\r\n" HOST "\r\n";
    (void)state;
    begin();
    client_send(&client, two, sizeof two - 1, sizeof two);
    assert_int_equal(status_of(0), 400);
    assert_int_equal(status_of(1), 0);
    assert_int_equal(client.n_requests, 0);
    assert_non_null(strstr(client.sent, "Connection: close\r\n"));
    end();
}

static void lets_a_body_come_that_waits_for_leave(void **state)
{
    static const char head[] = POST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    (void)state;
    begin();
    client_send(&client, head, sizeof head - 1, sizeof head);
    client_take(&client);
    assert_string_equal(client.sent, "HTTP/1.1 100 Continue\r\n\r\n");
    client_send(&client, "abc", 3, 3);
    assert_int_equal(status_of(1), 200);
    end();
}

static void bounds_heads_bodies_and_extensions(void **state)
{
    static char big[3 * TERN_HTTP_HEAD];
    (void)state;
    begin();
    int n = snprintf(big, sizeof big, "GET /x HTTP/1.1\r\n" HOST "X: ");
    memset(big + n, 'a', sizeof big - (size_t)n);
    client_send(&client, big, sizeof big, 4000);
    assert_int_equal(status_of(0), 431);
    end();
    begin();
    n = snprintf(big, sizeof big, "GET /x HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 100; i++)
        n += snprintf(big + n, sizeof big - (size_t)n, "X%d: y\r\n", i);
    client_send(&client, big, (size_t)n, 4000);
    assert_int_equal(status_of(0), 431);
    end();
    begin();
    n = snprintf(big, sizeof big, CHUNKED "1;");
    memset(big + n, 'e', sizeof big - (size_t)n);
    client_send(&client, big, sizeof big, 4000);
    assert_int_equal(status_of(0), 431);
    end();
    begin();
    client_send(&client, CHUNKED, sizeof CHUNKED - 1, sizeof CHUNKED);
    for (int i = 0; i < 41; i++) {
        static char chunk[1010];
        n = snprintf(chunk, sizeof chunk, "3e8\r\n%01000d\r\n", 0);
        client_send(&client, chunk, (size_t)n, sizeof chunk);
    }
    assert_int_equal(status_of(0), 413);
    assert_int_equal(client.n_requests, 0);
    end();
}

static void refuses_a_body_when_the_pool_is_empty(void **state)
{
    static char body[CLIENT_BODY];
    struct tern_chain all = {0};
    (void)state;
    begin();
    while (tern_blocks_left(&client.http->pool) > 4)
        assert_true(tern_chain_put(&client.http->pool, &all, body, TERN_BLOCK_BYTES));
    client_send(&client, POST "Content-Length: 40000\r\n\r\n",
                sizeof POST "Content-Length: 40000\r\n\r\n" - 1, 4096);
    client_send(&client, body, sizeof body, 4096);
    tern_chain_clear(&client.http->pool, &all);
    assert_int_equal(status_of(0), 503);
    assert_non_null(strstr(client.sent, "Retry-After: 1\r\n"));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_each_request_as_it_should_at_every_split),
        cmocka_unit_test(reads_bodies_whole_however_they_come),
        cmocka_unit_test(answers_pipelined_requests_in_their_order),
        cmocka_unit_test(does_not_serve_what_follows_a_refused_request),
        cmocka_unit_test(lets_a_body_come_that_waits_for_leave),
        cmocka_unit_test(bounds_heads_bodies_and_extensions),
        cmocka_unit_test(refuses_a_body_when_the_pool_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
