/* serve_kitchen.c: the thread that makes of a request what the engine can run, or an error. */
#include "platform/os/host.h"
#include "tools/serve/serve.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void tern_call_begin(struct tern_call *c)
{
    tern_http_begin(c->x, 200, "application/json", false);
    tern_write_to(c->x, c->out);
}

void tern_call_end(struct tern_call *c)
{
    tern_out_flush(c->out);
    c->answered = true;
}

static const char needs_more[] = "the request needs more memory than one may have";

bool tern_call_fail(struct tern_call *c, int status, const char *param, const char *code,
                    const char *format, ...)
{
    char line[TERN_ARGS_LINE];
    if (c->answered)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (status == 400 && c->server->json.failed) {
        status = 413; /* what is missing or wrong may be so for want of memory */
        param = code = NULL;
        snprintf(line, sizeof line, "%s", needs_more);
    }
    tern_http_begin(c->x, status, "application/json", false);
    tern_write_to(c->x, c->out);
    tern_write_error(c->out, status, param, code, line);
    tern_call_end(c);
    return false;
}

static bool read_body(struct tern_call *c)
{
    char line[TERN_ARGS_LINE] = "";
    int status = 400;
    if (!c->job->route->takes_json)
        return true;
    if (c->job->route->may_lack_body && c->x->body.size == 0)
        return (c->body = json_object()) != NULL;
    c->body = tern_json_read(tern_http_blocks(c->server->http), &c->x->body, &status, line);
    if (!c->body)
        return tern_call_fail(c, status, NULL, "invalid_json", "%s", line);
    return json_is_object(c->body) ||
           tern_call_fail(c, 400, NULL, "invalid_json", "the body is a list, an object needed");
}

static bool nobody_waits(void *job)
{
    const struct tern_job *j = job;
    return atomic_load(&j->x->gone) || atomic_load(&j->server->stopping);
}

/* Bytes of the arena that are never given back to the system. */
enum { KEPT = 64 << 10 };

void tern_kitchen_cook(struct tern_server *s, struct tern_job *j)
{
    struct tern_call c = {.server = s, .job = j, .x = j->x, .out = &s->kitchen_out,
                          .effort = {.left = nobody_waits, .self = j}};
    j->created = (int64_t)time(NULL);
    const bool run = !atomic_load(&j->x->gone) && read_body(&c) && j->route->prepare(&c) &&
                     !c.answered;
    json_decref(c.body);
    const bool short_of_memory = s->json.failed;
    if (s->json.used > KEPT)
        tern_os_give_back(s->json.base + KEPT, s->json.size - KEPT);
    tern_json_arena_empty(&s->json);
    if (run && !short_of_memory) {
        tern_queue_put(s, j->kind->aside ? &s->asides : &s->cooked, j);
        return;
    }
    (void)tern_call_fail(&c, 413, NULL, NULL, "%s", needs_more);
    tern_job_end(j);
}

void *tern_kitchen_run(void *server)
{
    struct tern_server *s = server;
    struct tern_job *j;
    memset(s->json.base, 0, KEPT);
    tern_json_arena_use(&s->json);
    while ((j = tern_queue_take(s, &s->raw, true)) != NULL)
        tern_kitchen_cook(s, j);
    return NULL;
}
