/* fuzz_body.c: an input is an endpoint (its first byte) and the body of a request to it, which goes
 * through HTTP and the kitchen: JSON, fields, templates, tokens, grammars, schemas, tools. Nothing
 * runs behind it: a job that the engine would get is looked at and ended. Held to: each request is
 * answered once, with a status that a client's mistake may have, in JSON; what the engine would get
 * is within its limits; no block, job or byte of the JSON's arena stays. */
#include "tests/fuzz/script.h"
#include "tests/unit/http_client.h"
#include "tools/serve/serve.h"

tern_model *body_model(void); /* body_model.c */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CTX = 128, SEQS = 4, JOBS = 2 };

static struct http_client client;
static struct tern_server server;
static struct tern_settings settings;
static uint32_t n_ended;

/* --- what the engine would get --- */

static void end(struct tern_job *j)
{
    n_ended++;
    if (j->x->answer == TERN_HTTP_OPEN)
        tern_http_begin(j->x, 200, "application/json", false);
    (void)tern_http_write(j->x, "{}", 2);
    tern_job_end(j);
}

static void look_at(struct tern_job *j)
{
    require(j->kind && (j->kind->aside || j->n_choices > 0));
    require(j->n_choices <= TERN_SERVE_CHOICES && j->n_top <= TERN_SERVE_LOGPROBS);
    for (uint32_t i = 0; i < j->n_prompts; i++) {
        require(j->prompts[i].n <= CTX);
        for (uint32_t k = 0; k < j->prompts[i].n; k++)
            require(j->prompts[i].ids[k] >= 0 &&
                    (uint32_t)j->prompts[i].ids[k] < server.session.info.n_vocab);
    }
    for (uint32_t i = 0; i < j->n_choices; i++)
        require(j->choices[i].job == j && j->choices[i].prompt < j->n_prompts);
    require(j->options.sampling.temperature >= 0);
    require(j->options.sampling.n_biases <= TERN_MAX_BIASES);
    end(j);
}

static void handle(void *self, struct tern_http_exchange *x)
{
    struct tern_job *j;
    (void)self;
    tern_routes_handle(&server, x);
    while ((j = tern_queue_take(&server, &server.raw, false)) != NULL)
        tern_kitchen_cook(&server, j);
    while ((j = tern_queue_take(&server, &server.asides, false)) != NULL)
        end(j);
    while ((j = tern_queue_take(&server, &server.cooked, false)) != NULL)
        look_at(j);
    require(server.json.used == 0);
}

/* --- a server without an engine --- */

static void open_server(void)
{
    char line[TERN_ARGS_LINE];
    settings.n_predict = -1;
    settings.top_p = settings.repeat_penalty = settings.typical_p = 1;
    server.settings = &settings;
    server.name = "bytes";
    server.session.model = body_model();
    tern_model_describe(server.session.model, &server.session.info);
    server.session.plan.limits = (tern_limits){.n_ctx = CTX, .n_seqs = SEQS, .chunk = CTX,
                                               .n_logit_rows = SEQS, .n_threads = 1,
                                               .n_logprobs = TERN_SERVE_LOGPROBS, .hidden = true,
                                               .n_stop_bytes = TERN_SERVE_STOP_BYTES,
                                               .grammars = true};
    server.pooling = TERN_POOLING_MEAN;
    require(tern_chat_template_open(&server.chat, server.session.model, "chatml", line));
    server.n_jobs = JOBS;
    pthread_mutex_init(&server.lock, NULL);
    pthread_cond_init(&server.to_cook, NULL);
    pthread_cond_init(&server.to_run, NULL);
    require(tern_jobs_init(&server, line));
    server.json = (struct tern_json_arena){.base = exactly(TERN_SERVE_JSON),
                                           .size = TERN_SERVE_JSON};
    tern_json_arenas_install();
    tern_json_arena_use(&server.json);
    atomic_store(&server.ready, true);
}

/* --- an input --- */

static const char *path_of(uint8_t byte)
{
    uint32_t n = 0, k = 0;
    for (const struct tern_route *r = tern_routes; r->path; r++)
        n += r->takes_json && !strchr(r->path, '#');
    for (const struct tern_route *r = tern_routes; r->path; r++)
        if (r->takes_json && !strchr(r->path, '#') && k++ == byte % n)
            return r->path;
    return "/";
}

/* The status and body of the one answer there is. */
static void check_answer(void)
{
    const char *body = strstr(client.sent, "\r\n\r\n");
    int status = 0;
    require(sscanf(client.sent, "HTTP/1.1 %d ", &status) == 1 && body);
    require(status == 200 || status == 400 || status == 404 || status == 413 || status == 501 ||
            status == 503);
    require(is_utf8(client.sent, client.n_sent));
    json_t *said = json_loads(body + 4, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    require(said || n_ended || client.n_sent >= CLIENT_SENT - 1);
    require(status == 200 || json_is_string(json_object_get(json_object_get(said, "error"),
                                                            "message")));
    json_decref(said);
    tern_json_arena_empty(&server.json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tern_http_options o = client_options();
    struct script in = {data, size < CLIENT_BODY ? size : CLIENT_BODY};
    char head[256];
    if (!server.name)
        open_server();
    const char *path = path_of(take(&in));
    o.handle = handle;
    require(client_init(&client, &o));
    server.http = client.http;
    client.conn = tern_http_open(client.http, -1);
    n_ended = 0;
    const int n = snprintf(head, sizeof head,
                           "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nContent-Length: %zu\r\n\r\n", path, in.n);
    client_send(&client, head, (size_t)n, (size_t)n);
    client_send(&client, (const char *)in.p, in.n, in.n ? in.n : 1);
    client_take(&client);
    check_answer();
    uint32_t n_free = 0;
    for (const struct tern_job *j = server.free; j; j = j->next)
        n_free++;
    require(n_free == JOBS);
    if (client.conn->state != TERN_HTTP_FREE)
        tern_http_leave(client.conn);
    require(client.http->n_used == 0);
    require(tern_blocks_left(&client.http->pool) == CLIENT_POOL / TERN_BLOCK);
    client_free(&client);
    return 0;
}
