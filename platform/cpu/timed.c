/* timed.c: what each thread did during a submit, and when.
 *
 * Time is read where a thread passes from one thing to another, which is at barriers and where it
 * is the last to come to one, so a step costs two readings a barrier, and nothing when no times
 * are kept. */
#include "platform/cpu/cpu.h"

static void keep(struct tern_cpu_thread *t, uint32_t thread, tern_work work, uint64_t end_ns)
{
    t->timings[t->n_timings++] = (tern_timing){t->since_ns, end_ns, work, thread, t->op};
    t->since_ns = end_ns;
}

void tern_cpu_timed_start(const struct tern_cpu *c, uint32_t thread)
{
    struct tern_cpu_thread *t = &c->threads[thread];
    if (!c->keeps_timings)
        return;
    t->n_timings = 0;
    t->since_ns = c->host.now_ns(c->host.self);
}

void tern_cpu_timed_end(const struct tern_cpu *c, uint32_t thread)
{
    struct tern_cpu_thread *t = &c->threads[thread];
    if (c->keeps_timings && t->n_timings < TERN_PHASE_TIMINGS * c->low.n_phases)
        keep(t, thread, t->work, c->host.now_ns(c->host.self));
}

void tern_cpu_timed_barrier(const struct tern_cpu *c, uint32_t thread)
{
    struct tern_cpu_thread *t = &c->threads[thread];
    const bool room = t->n_timings + 2 <= TERN_PHASE_TIMINGS * c->low.n_phases;
    if (room)
        keep(t, thread, t->work, c->host.now_ns(c->host.self));
    if (c->limits.n_threads == 1)
        return;
    c->host.barrier(c->host.self, thread);
    if (room)
        keep(t, thread, TERN_WORK_BARRIER, c->host.now_ns(c->host.self));
}

bool tern_cpu_timed_at(const void *state, size_t i, tern_timing *out)
{
    const struct tern_cpu *c = state;
    for (uint32_t t = 0; t < c->limits.n_threads; i -= c->threads[t++].n_timings)
        if (i < c->threads[t].n_timings) {
            *out = c->threads[t].timings[i];
            return true;
        }
    return false;
}
