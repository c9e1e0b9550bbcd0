/* serve_jobs.c: the jobs, their memory, and the queues between the threads. */
#include "platform/os/host.h"
#include "tools/serve/serve.h"

#include <stdio.h>
#include <string.h>

/* What is given back to the system after a request: all but a page, and that is touched at the
 * start, so that memory in use is the same whatever there was and however much of it at a time. */
enum { JOB_BYTES = 384 << 10, KEPT = 4 << 10 };

static size_t job_bytes(uint32_t n_ctx)
{
    const size_t page = tern_os_page();
    const size_t bytes = JOB_BYTES + 8 * (size_t)n_ctx;
    return (bytes + page - 1) / page * page;
}

static size_t slot_bytes(uint32_t n_embd)
{
    return sizeof(struct tern_choice *) + sizeof(struct tern_served) + n_embd * sizeof(double);
}

size_t tern_jobs_bytes(uint32_t n_jobs, const tern_limits *l, uint32_t n_embd)
{
    return n_jobs * (job_bytes(l->n_ctx) + sizeof(struct tern_job)) +
           l->n_seqs * slot_bytes(n_embd);
}

bool tern_jobs_init(struct tern_server *s, char line[TERN_ARGS_LINE])
{
    const tern_limits *l = &s->session.plan.limits;
    const size_t bytes = job_bytes(l->n_ctx);
    s->jobs_memory = tern_os_map_sparse(tern_jobs_bytes(s->n_jobs, l, s->session.info.n_embd));
    char *at = s->jobs_memory.data;
    if (!at) {
        snprintf(line, TERN_ARGS_LINE, "jobs: no memory for %u of them; use a smaller --queue",
                 s->n_jobs);
        return false;
    }
    s->jobs = (struct tern_job *)(void *)(at + s->n_jobs * bytes);
    s->sums = (double *)(void *)(s->jobs + s->n_jobs);
    s->slots = (struct tern_served *)(void *)(s->sums +
                                            (size_t)l->n_seqs * s->session.info.n_embd);
    s->running = (struct tern_choice **)(void *)(s->slots + l->n_seqs);
    for (uint32_t i = s->n_jobs; i-- > 0;) {
        s->jobs[i].server = s;
        s->jobs[i].memory = (tern_memory){at + i * bytes, bytes};
        memset(at + i * bytes, 0, KEPT);
        s->jobs[i].next = s->free;
        s->free = &s->jobs[i];
    }
    return true;
}

void *tern_job_take(struct tern_job *j, size_t count, size_t item)
{
    enum { ALIGN = 16 };
    const size_t left = j->memory.size - j->used;
    if (left < ALIGN || (count && item > (left - ALIGN) / count))
        return NULL;
    char *at = (char *)j->memory.data + j->used;
    j->used += (count * item + ALIGN - 1) / ALIGN * ALIGN;
    memset(at, 0, count * item);
    return at;
}

tern_text tern_job_keep(struct tern_job *j, const char *data, size_t n)
{
    char *at = tern_job_take(j, n + 1, 1);
    if (at)
        memcpy(at, data, n);
    return (tern_text){at, n};
}

struct tern_job *tern_job_new(struct tern_server *s, struct tern_http_exchange *x,
                              const struct tern_route *r)
{
    pthread_mutex_lock(&s->lock);
    struct tern_job *j = s->free;
    if (j)
        s->free = j->next;
    const uint64_t number = ++s->n_requests;
    pthread_mutex_unlock(&s->lock);
    if (!j)
        return NULL;
    *j = (struct tern_job){.server = s, .x = x, .route = r, .memory = j->memory,
                           .number = number};
    x->job = j;
    return j;
}

void tern_job_end(struct tern_job *j)
{
    struct tern_server *s = j->server;
    for (uint32_t i = 0; i < j->n_choices && j->choices; i++)
        for (uint32_t k = 0; k < TERN_SERVE_PARTS; k++)
            tern_chain_clear(tern_http_blocks(s->http), &j->choices[i].parts[k]);
    tern_constraint_free(&j->constraint);
    if (j->used > KEPT)
        tern_os_give_back((char *)j->memory.data + KEPT, j->memory.size - KEPT);
    struct tern_http_exchange *x = j->x;
    pthread_mutex_lock(&s->lock);
    j->next = s->free;
    s->free = j;
    pthread_mutex_unlock(&s->lock);
    tern_http_end(x);
}

/* --- queues --- */

static pthread_cond_t *condition_of(struct tern_server *s, const struct tern_queue *q)
{
    return q == &s->raw ? &s->to_cook : &s->to_run; /* the engine waits for both of its own */
}

void tern_queue_put(struct tern_server *s, struct tern_queue *q, struct tern_job *j)
{
    pthread_mutex_lock(&s->lock);
    j->next = NULL;
    if (q->last)
        q->last->next = j;
    else
        q->first = j;
    q->last = j;
    q->n++;
    pthread_cond_signal(condition_of(s, q));
    pthread_mutex_unlock(&s->lock);
}

/* Those whose client has left, out of a queue and onto a list; under the lock. */
static struct tern_job *take_left(struct tern_queue *q, struct tern_job *list)
{
    struct tern_job **at = &q->first;
    q->last = NULL;
    while (*at) {
        struct tern_job *j = *at;
        if (atomic_load(&j->x->gone)) {
            *at = j->next;
            j->next = list;
            list = j;
            q->n--;
        } else {
            q->last = j;
            at = &j->next;
        }
    }
    return list;
}

bool tern_queues_clear(struct tern_server *s)
{
    pthread_mutex_lock(&s->lock);
    struct tern_job *list = take_left(&s->cooked, take_left(&s->raw, NULL));
    pthread_mutex_unlock(&s->lock);
    const bool any = list != NULL;
    while (list) {
        struct tern_job *j = list;
        list = j->next;
        tern_job_end(j);
    }
    return any;
}

struct tern_job *tern_queue_take(struct tern_server *s, struct tern_queue *q, bool wait)
{
    pthread_mutex_lock(&s->lock);
    while (wait && !q->first && !(q == &s->cooked && s->asides.first) &&
           !atomic_load(&s->stopping))
        pthread_cond_wait(condition_of(s, q), &s->lock);
    struct tern_job *j = q->first;
    if (j) {
        q->first = j->next;
        q->last = q->first ? q->last : NULL;
        q->n--;
    }
    pthread_mutex_unlock(&s->lock);
    return j;
}
