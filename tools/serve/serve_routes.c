/* serve_routes.c: what can be asked for, and the loop's part in answering. */
#include "tools/serve/endpoints.h"

#include <string.h>

const struct tern_route tern_routes[] = {
    {"GET", "/", true, true, tern_page_now, NULL, false, false},
    {"GET", "/index.html", true, true, tern_page_now, NULL, false, false},
    {"GET", "/health", true, true, tern_health_now, NULL, false, false},
    {"GET", "/v1/health", true, true, tern_health_now, NULL, false, false},
    {"GET", "/v1/models", false, true, tern_models_now, NULL, false, false},
    {"GET", "/v1/models/*", false, true, tern_model_now, NULL, false, false},
    {"GET", "/models", false, true, tern_models_now, NULL, false, false},
    {"GET", "/props", false, false, tern_props_now, NULL, false, false},
    {"GET", "/slots", false, false, tern_slots_now, NULL, false, false},
    {"POST", "/slots/#", false, false, NULL, tern_slot_prepare, true, true},
    {"GET", "/pool", false, false, tern_pool_now, NULL, false, false},
    {"GET", "/metrics", false, false, tern_metrics_now, NULL, false, false},
    {"POST", "/v1/completions", false, false, NULL, tern_completions_prepare, true, false},
    {"POST", "/completions", false, false, NULL, tern_completions_prepare, true, false},
    {"POST", "/v1/chat/completions", false, false, NULL, tern_chat_prepare, true, false},
    {"POST", "/chat/completions", false, false, NULL, tern_chat_prepare, true, false},
    {"POST", "/v1/responses", false, false, NULL, tern_responses_prepare, true, false},
    {"POST", "/v1/embeddings", false, false, NULL, tern_embeddings_prepare, true, false},
    {"POST", "/embeddings", false, false, NULL, tern_embeddings_prepare, true, false},
    {"POST", "/infill", false, false, NULL, tern_infill_prepare, true, false},
    {"POST", "/tokenize", false, false, NULL, tern_tokenize_prepare, true, false},
    {"POST", "/detokenize", false, false, NULL, tern_detokenize_prepare, true, false},
    {"POST", "/apply-template", false, false, NULL, tern_apply_template_prepare, true, false},
    {NULL, NULL, false, false, NULL, NULL, false, false},
};

/* A row's path; # at its end is a number, * any text. */
static bool is_path(tern_text path, const char *row)
{
    const size_t n = strlen(row) - 1;
    if (row[n] == '*')
        return path.size > n && memcmp(path.data, row, n) == 0;
    if (row[n] != '#')
        return tern_http_is(path, row);
    size_t digits = n;
    while (digits < path.size && path.data[digits] >= '0' && path.data[digits] <= '9')
        digits++;
    return path.size > n && digits == path.size && memcmp(path.data, row, n) == 0;
}

/* The route of a path and method; NULL, and with what methods the path is there, or NULL. */
static const struct tern_route *find(const struct tern_http_exchange *x, const char **methods)
{
    *methods = NULL;
    for (const struct tern_route *r = tern_routes; r->path; r++) {
        if (!is_path(x->path, r->path))
            continue;
        if (tern_http_is(x->method, r->method) ||
            (strcmp(r->method, "GET") == 0 && tern_http_is(x->method, "HEAD")))
            return r;
        *methods = strcmp(r->method, "GET") == 0 ? "GET, HEAD" : r->method;
    }
    return NULL;
}

static bool is_json(const struct tern_http_exchange *x)
{
    tern_text type = tern_http_header(x, "content-type");
    if (!type.data)
        return false;
    const char *end = memchr(type.data, ';', type.size);
    if (end)
        type.size = (size_t)(end - type.data);
    while (type.size && (type.data[type.size - 1] == ' ' || type.data[type.size - 1] == '\t'))
        type.size--;
    return tern_http_is_nocase(type, "application/json");
}

static void refuse(struct tern_server *s, struct tern_http_exchange *x, int status,
                   const char *code, const char *line)
{
    struct tern_out *o = &s->loop_out;
    if (status == 401)
        tern_http_add_header(x, "WWW-Authenticate", "Bearer");
    if (status == 429 || status == 503)
        tern_http_add_header(x, "Retry-After", "1");
    tern_http_begin(x, status, "application/json", false);
    tern_write_to(x, o);
    tern_write_error(o, status, NULL, code, line);
    tern_out_flush(o);
    tern_http_end(x);
}

static void refuse_method(struct tern_server *s, struct tern_http_exchange *x, const char *methods)
{
    tern_http_add_header(x, "Allow", methods);
    refuse(s, x, 405, NULL, "the path is there, but not with this method");
}

void tern_routes_handle(void *self, struct tern_http_exchange *x)
{
    struct tern_server *s = self;
    const char *methods;
    if (!tern_guard_admits(s, x))
        return;
    const struct tern_route *r = find(x, &methods);
    struct tern_job *j = NULL;
    if (!(r && r->open) && !tern_guard_has_key(s, x))
        refuse(s, x, 401, "invalid_api_key", "a valid API key needed: Authorization: Bearer KEY");
    else if (!r && methods)
        refuse_method(s, x, methods);
    else if (!r)
        refuse(s, x, 404, NULL, "there is no such path");
    else if (!atomic_load(&s->ready) && !r->early)
        refuse(s, x, 503, NULL, "the model is loading");
    else if (r->now)
        r->now(s, x);
    else if (r->takes_json && !is_json(x))
        refuse(s, x, 415, NULL, "Content-Type: application/json needed");
    else if (!(j = tern_job_new(s, x, r)) &&
             !(tern_queues_clear(s) && (j = tern_job_new(s, x, r))))
        refuse(s, x, 429, "queue_full", "as many requests wait as may; try again later");
    else
        tern_queue_put(s, &s->raw, j);
}
