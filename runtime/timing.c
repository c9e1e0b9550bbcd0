/* timing.c: the times of a step: the backend's, and those of sampling, which is the engine's. */
#include "runtime/engine.h"
#include "runtime/error.h"

const char *tern_work_name(tern_work work)
{
    static const char *const names[TERN_N_WORKS] = {"matmul", "attention", "rows", "barrier",
                                                    "sampler"};
    return (unsigned)work < TERN_N_WORKS ? names[work] : "?";
}

tern_status tern_timings_keep(tern_engine *e, bool on)
{
    if (!e)
        return TERN_BAD_ARGUMENT;
    if (!e->limits.timings || !e->host.now_ns)
        return tern_fail(&e->error, TERN_BAD_ARGUMENT, "timings: %s",
                         e->limits.timings ? "the host has no clock" : "not in the limits");
    e->keeps_timings = on;
    e->n_timings = 0;
    e->backend->keep_timings(e->state, on);
    return TERN_OK;
}

uint64_t tern_timing_begin(const struct tern_engine *e)
{
    return e->keeps_timings ? e->host.now_ns(e->host.self) : 0;
}

void tern_timing_end(struct tern_engine *e, uint64_t start_ns)
{
    if (!e->keeps_timings || e->n_timings == e->limits.n_logit_rows)
        return;
    e->parts.timings[e->n_timings++] = (tern_timing){
        start_ns, e->host.now_ns(e->host.self), TERN_WORK_SAMPLER, 0, UINT32_MAX};
}

bool tern_timing_at(const tern_engine *e, size_t i, tern_timing *out)
{
    if (!e || !out || !e->keeps_timings)
        return false;
    if (i >= e->n_timings)
        return e->backend->timing_at(e->state, i - e->n_timings, out);
    *out = e->parts.timings[i];
    return true;
}
