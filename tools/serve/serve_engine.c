/* serve_engine.c: the engine's thread: jobs to sequences, steps, events to endpoints.
 *
 * Jobs are begun in the order they came, a choice whenever a sequence is free; from then on the
 * engine's scheduler gives every one that generates a token a step, prompts in pieces beside them.
 * Before each step those are ended whose client has left. Nothing here waits for a client: what
 * endpoints write lies in the exchange until the loop takes it. */
#include "tools/serve/serve.h"

#include "platform/os/host.h"

#include <stdio.h>
#include <string.h>

struct tern_stepper {
    struct tern_server *s;
    struct tern_out *o;
    struct tern_job *opening; /* not all of its choices have begun */
    uint32_t n_running;
    uint64_t turned_ns;       /* when those who run had their last step */
    bool lost;                /* the engine can not go on */
    /* What a step without prompts takes, and a row of a prompt beside it; 0: not known. */
    double base_ns, row_ns;
};

/* --- slots --- */

void tern_slot_clear(struct tern_server *s, struct tern_served *slot)
{
    if (slot->kept)
        tern_seq_close(s->session.engine, slot->kept);
    slot->kept = 0;
    atomic_store(&slot->n_tokens, 0);
}

void tern_slot_keep(struct tern_server *s, struct tern_served *slot, tern_seq seq)
{
    tern_seq_info info = {0};
    if (tern_seq_describe(s->session.engine, seq, &info) != TERN_OK)
        return;
    slot->kept = seq;
    slot->number = ++s->n_kept;
    atomic_store(&slot->n_tokens, info.n_tokens);
}

/* The one that is kept the longest makes room; false: none is kept. */
static bool clear_oldest(struct tern_server *s)
{
    struct tern_served *oldest = NULL;
    for (uint32_t i = 0; i < s->session.plan.limits.n_seqs; i++)
        if (s->slots[i].kept && !s->slots[i].held &&
            (!oldest || s->slots[i].number < oldest->number))
            oldest = &s->slots[i];
    if (oldest)
        tern_slot_clear(s, oldest);
    return oldest != NULL;
}

/* One with nobody and nothing in it: there is, once a sequence was opened for it. */
static void occupy(struct tern_server *s, struct tern_choice *c)
{
    c->slot = 0;
    while (s->slots[c->slot].choice || s->slots[c->slot].kept || s->slots[c->slot].held)
        c->slot++;
    s->slots[c->slot].choice = c;
    atomic_store(&s->slots[c->slot].busy, true);
    atomic_store(&s->slots[c->slot].n_tokens, c->job->prompts[c->prompt].n);
}

/* --- ending --- */

static void end_choice(struct tern_stepper *e, struct tern_choice *c)
{
    struct tern_job *j = c->job;
    if (c->state == TERN_CHOICE_ENDED)
        return;
    if (c->state == TERN_CHOICE_RUNS) {
        struct tern_served *slot = &e->s->slots[c->slot];
        slot->choice = NULL;
        atomic_store(&slot->busy, false);
        if (c->finish && e->s->settings->slot_save_path)
            tern_slot_keep(e->s, slot, c->seq);
        else
            tern_seq_close(e->s->session.engine, c->seq);
        for (uint32_t i = 0; i < e->n_running; i++)
            if (e->s->running[i] == c)
                e->s->running[i] = e->s->running[--e->n_running];
        atomic_store(&e->s->counts.running, e->n_running);
    }
    c->state = TERN_CHOICE_ENDED;
    j->n_ended++;
}

/* All choices have ended: so does the answer. */
static void end_job_if_done(struct tern_stepper *e, struct tern_job *j)
{
    struct tern_server *s = e->s;
    if (j->n_ended < j->n_choices)
        return;
    if (e->opening == j)
        e->opening = NULL;
    if (!atomic_load(&j->x->gone) && j->begun)
        j->kind->end(j, e->o);
    for (uint32_t i = 0; i < j->n_prompts; i++) {
        atomic_fetch_add(&s->counts.prompt_tokens, j->prompts[i].n);
        atomic_fetch_add(&s->counts.cached_tokens, j->prompts[i].n_cached);
    }
    atomic_fetch_add(&s->counts.requests, 1);
    tern_job_end(j);
}

static void drop_job(struct tern_stepper *e, struct tern_job *j)
{
    for (uint32_t i = 0; i < j->n_choices; i++)
        end_choice(e, &j->choices[i]);
    end_job_if_done(e, j);
}

/* What went wrong, told as early as the answer's state lets it be told. */
static void fail_job(struct tern_stepper *e, struct tern_job *j, int status, const char *line)
{
    struct tern_out *o = e->o;
    if (j->stream && j->begun) {
        tern_event_begin(j, o);
        tern_write_error(o, status, NULL, NULL, line);
        tern_event_end(o);
        tern_event_last(j, o);
    } else {
        tern_http_begin(j->x, status, "application/json", false);
        tern_write_to(j->x, o);
        tern_write_error(o, status, NULL, NULL, line);
        tern_out_flush(o);
    }
    j->begun = false; /* its end has nothing to add */
    drop_job(e, j);
}

/* --- beginning --- */

static void begin_answer(struct tern_stepper *e, struct tern_job *j)
{
    if (j->begun)
        return;
    j->begun = true;
    tern_http_begin(j->x, 200, j->stream ? "text/event-stream" : "application/json", j->stream);
    if (j->kind->begin)
        j->kind->begin(j, e->o);
}

/* A sequence for a choice; false: none is free. */
static bool begin_choice(struct tern_stepper *e, struct tern_choice *c)
{
    struct tern_job *j = c->job;
    tern_engine *engine = e->s->session.engine;
    const struct tern_job_prompt *p = &j->prompts[c->prompt];
    tern_seq_options options = j->options;
    options.sampling.stream = c->index;
    tern_engine_clear_error(engine);
    tern_status status = tern_seq_open(engine, &options, &c->seq);
    if (status == TERN_AGAIN && clear_oldest(e->s))
        status = tern_seq_open(engine, &options, &c->seq);
    if (status == TERN_AGAIN)
        return false;
    j->n_begun++;
    if (status == TERN_OK) {
        c->state = TERN_CHOICE_RUNS;
        c->begun_ns = tern_os_now_ns();
        occupy(e->s, c);
        e->s->running[e->n_running++] = c;
        atomic_store(&e->s->counts.running, e->n_running);
        status = tern_seq_feed(engine, c->seq, p->ids, p->n);
    }
    if (status == TERN_OK)
        begin_answer(e, j);
    else
        fail_job(e, j, status == TERN_BAD_ARGUMENT ? 400 : 500,
                 tern_engine_error(engine)->text);
    return true;
}

/* What needs no sequence. */
static void run_asides(struct tern_stepper *e)
{
    struct tern_job *j;
    while ((j = tern_queue_take(e->s, &e->s->asides, false)) != NULL) {
        if (!atomic_load(&j->x->gone))
            j->kind->aside(j, e->o);
        tern_job_end(j);
    }
}

/* Begins what there is room for; where it may, and nothing runs, it sleeps until there is
 * something. False: the server stops. */
static bool begin_jobs(struct tern_stepper *e, bool may_sleep)
{
    for (;;) {
        struct tern_job *j = e->opening;
        if (!j) {
            const bool sleeps = may_sleep && e->n_running == 0;
            if (sleeps)
                tern_pool_look(e->s, true);
            j = tern_queue_take(e->s, &e->s->cooked, sleeps);
            if (!j)
                return e->n_running > 0 || !atomic_load(&e->s->stopping);
            e->opening = j;
        }
        if (atomic_load(&j->x->gone)) {
            drop_job(e, j);
            continue;
        }
        while (e->opening == j && j->n_begun < j->n_choices)
            if (!begin_choice(e, &j->choices[j->n_begun]))
                return true;
        if (e->opening == j)
            e->opening = NULL;
    }
}

/* --- stepping --- */

static void end_those_who_left(struct tern_stepper *e)
{
    for (uint32_t i = 0; i < e->n_running;) {
        struct tern_job *j = e->s->running[i]->job;
        if (atomic_load(&j->x->gone)) {
            drop_job(e, j);
            i = 0;
        } else {
            i++;
        }
    }
}

static struct tern_choice *choice_of(const struct tern_stepper *e, tern_seq seq)
{
    for (uint32_t i = 0; i < e->n_running; i++)
        if (e->s->running[i]->seq == seq)
            return e->s->running[i];
    return NULL;
}

static const char *finish_of(tern_stop stop)
{
    return stop == TERN_STOP_LENGTH || stop == TERN_STOP_CONTEXT ? "length" : "stop";
}

static bool is_stop_token(const struct tern_job *j, const tern_event *event)
{
    for (uint32_t i = 0; i < j->n_stop_tokens && event->kind == TERN_EVENT_TOKEN; i++)
        if (j->stop_tokens[i] == event->token)
            return true;
    return false;
}

/* What usage tells. */
static void note(struct tern_stepper *e, struct tern_choice *c)
{
    struct tern_job_prompt *p = &c->job->prompts[c->prompt];
    tern_seq_info info;
    if (tern_seq_describe(e->s->session.engine, c->seq, &info) != TERN_OK)
        return;
    c->n_thought = info.n_thought;
    if (c->index % c->job->n_each == 0)
        p->n_cached = info.n_cached < p->n ? info.n_cached : p->n;
}

/* Told before the first token, so that what is processed is all of it there. */
static void tell_progress(struct tern_stepper *e)
{
    tern_seq_info info;
    for (uint32_t i = 0; i < e->n_running; i++) {
        struct tern_choice *c = e->s->running[i];
        const struct tern_job *j = c->job;
        const uint32_t n = j->prompts[c->prompt].n;
        if (!j->progress || !j->stream || !j->kind->progress || c->n_shown == n ||
            tern_seq_describe(e->s->session.engine, c->seq, &info) != TERN_OK ||
            info.n_computed <= c->n_shown)
            continue;
        c->n_shown = info.n_computed < n ? info.n_computed : n;
        j->kind->progress(c, &(struct tern_progress_made){
                                 n, info.n_cached < n ? info.n_cached : n, c->n_shown,
                                 (double)(tern_os_now_ns() - c->begun_ns) * 1e-6}, e->o);
    }
}

/* That no token is left to choose is the request's own doing where it forbids some. */
static void fail_choice(struct tern_stepper *e, struct tern_job *j, const char *line)
{
    static const char logits[] = "logits: ";
    if (j->options.sampling.n_biases && strncmp(line, logits, sizeof logits - 1) == 0)
        fail_job(e, j, 400, "logit_bias: it forbids all tokens that may come next");
    else
        fail_job(e, j, 500, line);
}

static void take_event(struct tern_stepper *e, const tern_event *event)
{
    struct tern_choice *c = choice_of(e, event->seq);
    tern_event stop = {.kind = TERN_EVENT_DONE, .token = -1, .stop = TERN_STOP_EOS};
    if (!c)
        return;
    struct tern_job *j = c->job;
    if (event->kind == TERN_EVENT_DONE && event->stop == TERN_STOP_ERROR) {
        fail_choice(e, j, event->error ? event->error : "the engine failed");
        return;
    }
    if (event->kind == TERN_EVENT_TOKEN) {
        c->n_generated++;
        atomic_fetch_add(&e->s->counts.generated_tokens, 1);
    }
    if (is_stop_token(j, event)) {
        stop.token = event->token;
        event = &stop;
    }
    if (event->kind == TERN_EVENT_DONE) {
        note(e, c);
        c->finish = finish_of(event->stop);
    }
    j->kind->event(c, event, e->o);
    if (j->failed) {
        fail_job(e, j, 503, "no memory for the answer now");
        return;
    }
    if (event->kind != TERN_EVENT_DONE)
        return;
    end_choice(e, c);
    end_job_if_done(e, j);
}

/* Rows in the cache of all that runs, and how many of them generate. */
static uint64_t rows_computed(const struct tern_stepper *e, uint32_t *n_generate)
{
    uint64_t n = 0;
    tern_seq_info info;
    *n_generate = 0;
    for (uint32_t i = 0; i < e->n_running; i++) {
        if (tern_seq_describe(e->s->session.engine, e->s->running[i]->seq, &info) != TERN_OK)
            continue;
        n += info.n_computed;
        *n_generate += info.n_generated > 0;
    }
    return n;
}

/* How many rows of prompts the next step may have, so that no stream waits longer for its token
 * than a person notices, whatever this machine and this model are, and with room for a machine
 * that is held up by others; with no stream to wait, more is faster. */
static void bound_step(struct tern_stepper *e, uint32_t n_generate)
{
    enum { FIRST = 32, LEAST = 16 };
    const double most_ns = n_generate ? 0.18e9 : 0.4e9;
    uint32_t rows = FIRST;
    if (e->row_ns > 0 && most_ns > e->base_ns)
        rows = (uint32_t)((most_ns - e->base_ns) / e->row_ns);
    tern_step_rows(e->s->session.engine, e->n_running + (rows > LEAST ? rows : LEAST));
}

/* A figure that one held-up step does not spoil. */
static void learn_one(double *known, double one)
{
    if (*known > 0 && one > 2 * *known)
        one = 2 * *known;
    *known += (*known > 0 ? 0.25 : 1) * (one - *known);
}

/* What is found by its prefix took nothing, and is more than a step may have. */
static void learn(struct tern_stepper *e, uint64_t rows, uint32_t n_generate, uint64_t ns)
{
    enum { SOME = 12 };
    if (rows > e->s->session.plan.limits.chunk || rows < n_generate)
        return;
    if (rows == n_generate)
        learn_one(&e->base_ns, (double)ns);
    else if (rows >= n_generate + SOME && (double)ns > e->base_ns)
        learn_one(&e->row_ns, ((double)ns - e->base_ns) / (double)(rows - n_generate));
}

static bool step(struct tern_stepper *e)
{
    enum { EVENTS = 64 };
    tern_event events[EVENTS];
    size_t n = 0;
    uint32_t n_generate, n_after;
    const uint64_t before = rows_computed(e, &n_generate);
    bound_step(e, n_generate);
    const uint64_t from = tern_os_now_ns();
    const tern_status status = tern_step(e->s->session.engine, events, EVENTS, &n);
    const uint64_t ns = tern_os_now_ns() - from;
    learn(e, rows_computed(e, &n_after) - before, n_generate, ns);
    atomic_fetch_add(&e->s->counts.busy_ns, ns);
    atomic_fetch_add(&e->s->counts.steps, 1);
    atomic_store(&e->s->counts.preemptions, tern_preemptions(e->s->session.engine));
    tell_progress(e);
    for (size_t i = 0; i < n; i++)
        take_event(e, &events[i]);
    tern_pool_look(e->s, false);
    tern_http_wake(e->s->http);
    return status == TERN_OK || status == TERN_AGAIN;
}

/* The engine can not go on: who waits is told. */
static void fail_all(struct tern_stepper *e)
{
    const char *line = tern_session_line(&e->s->session);
    while (e->n_running)
        fail_job(e, e->s->running[0]->job, 500, line);
    if (e->opening)
        fail_job(e, e->opening, 500, line);
}

static void step_all(struct tern_stepper *e)
{
    atomic_store(&e->s->counts.opening, e->opening != NULL);
    if (e->n_running && !step(e)) {
        fail_all(e);
        e->lost = tern_engine_error(e->s->session.engine)->status == TERN_DEVICE_LOST;
    }
    e->turned_ns = tern_os_now_ns();
}

bool tern_serve_elsewhere(struct tern_server *s, const struct tern_job *j,
                          void (*work)(void *arg), void *arg)
{
    enum { MILLION = 1000000, BETWEEN_MS = 20, A_LITTLE_MS = 10 };
    struct tern_stepper *e = s->stepper;
    tern_files_give(s, work, arg);
    bool done;
    do {
        done = tern_files_wait(s, e->n_running ? A_LITTLE_MS : 0, !e->opening);
        if (done && tern_os_now_ns() - e->turned_ns < BETWEEN_MS * MILLION)
            break;
        end_those_who_left(e);
        (void)begin_jobs(e, false);
        step_all(e);
    } while (!done);
    return !atomic_load(&j->x->gone) && !e->lost;
}

bool tern_serve_engine(struct tern_server *s)
{
    struct tern_stepper e = {.s = s, .o = &s->engine_out};
    s->stepper = &e;
    bool goes_on = true;
    while (goes_on && !e.lost) {
        end_those_who_left(&e);
        run_asides(&e);
        goes_on = begin_jobs(&e, true);
        step_all(&e);
    }
    s->stepper = NULL;
    return !e.lost;
}
