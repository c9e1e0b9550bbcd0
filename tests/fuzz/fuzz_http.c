/* fuzz_http.c: bytes of a client, cut at any place, through the whole HTTP layer without sockets.
 * Whatever comes, every request is answered once, in its turn, and no block is lost. */
#include "tests/fuzz/script.h"
#include "tests/unit/http_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct http_client client;
static struct tern_http_exchange *kept;
static unsigned manner;

static void answer(struct tern_http_exchange *x)
{
    static const char event[] = "data: {}\n\n";
    if (manner & 1) {
        tern_http_begin(x, 200, "text/event-stream", true);
        (void)tern_http_write(x, event, sizeof event - 1);
        tern_http_end(x);
    } else {
        tern_http_reply(x, 200, "text/plain", (tern_text){client.last_body, client.last_body_size});
    }
}

static void handle(void *self, struct tern_http_exchange *x)
{
    (void)self;
    require(!kept && x->path.size && x->path.data[0] == '/');
    for (uint32_t i = 0; i < x->n_headers; i++)
        require(x->headers[i].name.size > 0);
    client_note(&client, x);
    if (manner & 2)
        kept = x;
    else
        answer(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tern_http_options o = client_options();
    struct script in = {data, size};
    manner = take(&in);
    o.handle = handle;
    require(client_init(&client, &o));
    client.conn = tern_http_open(client.http, -1);
    kept = NULL;
    while (in.n && client.conn->state != TERN_HTTP_CLOSING &&
           client.conn->state != TERN_HTTP_FREE) {
        size_t piece = 1 + take(&in);
        piece = piece < in.n ? piece : in.n;
        client_send(&client, (const char *)in.p, piece, piece);
        in.p += piece;
        in.n -= piece;
        client.n_sent = 0;
        if (kept && take(&in) & 1) {
            struct tern_http_exchange *x = kept;
            kept = NULL;
            answer(x);
            client_take(&client);
        }
    }
    if (client.conn->state != TERN_HTTP_FREE)
        tern_http_leave(client.conn);
    if (kept) {
        require(atomic_load(&kept->gone) && !tern_http_write(kept, "x", 1));
        tern_http_end(kept);
        tern_http_advance(client.http);
    }
    require(client.http->n_used == 0);
    require(tern_blocks_left(&client.http->pool) == CLIENT_POOL / TERN_BLOCK);
    client_free(&client);
    return 0;
}
