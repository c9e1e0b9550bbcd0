/* load.c: weights from the model's sources to the backend, some rows at a time.
 *
 * A source that lies in memory hands its rows over as they are; one that is read goes through a
 * staging area at the start of the KV arena, which nobody uses before the first batch.
 * Rows go in groups of 16, as many as a panel has, and what was read is given back. An image has
 * its weights ready, and there is nothing to do.
 *
 * Reading, permuting and, most of all, the first touch of the arena's pages keep one core busy,
 * so all threads of the host do it where the source can be read by several. A call takes a range
 * of steps; each thread takes steps from a counter, through a staging area of its own, as far as
 * the KV arena holds that many.
 */
#include "runtime/engine.h"
#include "runtime/error.h"

#include <stdatomic.h>

enum { PANEL_ROWS = 16, STAGING = 256 * 1024, STAGING_ALIGN = 64 };

static const struct tern_tensor *tensor_of(const tern_model *model, uint32_t weight)
{
    return &model->tensors[model->program.weights[weight].tensor];
}

/* A vector is one row. */
static uint32_t rows_of(const tern_model *model, uint32_t weight)
{
    const struct tern_weight *w = &model->program.weights[weight];
    return w->matrix && w->n_rows ? w->n_rows : 1;
}

/* Rows of a weight that go at once: all, or whole groups of about the staging's size. */
static uint64_t rows_at_once(const tern_model *model, uint32_t weight)
{
    const uint64_t n_rows = rows_of(model, weight);
    const uint64_t row = tensor_of(model, weight)->bytes / n_rows;
    const uint64_t groups = row ? STAGING / PANEL_ROWS / row : 1;
    const uint64_t rows = (groups ? groups : 1) * PANEL_ROWS;
    return rows < n_rows ? rows : n_rows;
}

tern_status tern_load_staging(const tern_model *model, size_t *bytes, tern_error *err)
{
    *bytes = 0;
    for (uint32_t w = 0; w < model->program.n_weights; w++) {
        const struct tern_tensor *tensor = tensor_of(model, w);
        if (model->parts[tensor->part].base)
            continue;
        const uint64_t need = tensor->bytes / rows_of(model, w) * rows_at_once(model, w);
        if (need > SIZE_MAX)
            return tern_fail(err, TERN_NO_MEMORY, "%t: 16 rows of %u bytes, at most %u",
                             tensor->name, need, (uint64_t)SIZE_MAX);
        if (need > *bytes)
            *bytes = (size_t)need;
    }
    return TERN_OK;
}

uint64_t tern_load_total(const tern_model *model)
{
    uint64_t total = 0;
    for (uint32_t w = 0; !model->image && w < model->program.n_weights; w++)
        total += tensor_of(model, w)->bytes;
    return total;
}

/* Bytes of one step of a weight; the last may be smaller. */
static uint64_t step_bytes(const tern_model *model, uint32_t weight)
{
    return tensor_of(model, weight)->bytes / rows_of(model, weight) * rows_at_once(model, weight);
}

static uint32_t steps_of(const tern_model *model, uint32_t weight)
{
    const uint64_t at_once = rows_at_once(model, weight);
    return (uint32_t)((rows_of(model, weight) + at_once - 1) / at_once);
}

static bool by_many(const tern_model *model)
{
    for (uint32_t i = 0; i < model->n_parts; i++)
        if (!model->parts[i].base && !model->parts[i].by_many)
            return false;
    return true;
}

/* One step: rows of a weight, by way of staging where the source is read. */
static tern_status load_step(const struct tern_engine *e, uint32_t weight, uint32_t step,
                             void *staging, tern_error *err)
{
    const struct tern_tensor *tensor = tensor_of(e->model, weight);
    const tern_source *source = &e->model->parts[tensor->part];
    const uint32_t n_rows = rows_of(e->model, weight);
    const uint64_t row = tensor->bytes / n_rows, at_once = rows_at_once(e->model, weight);
    const uint64_t first = step * at_once, at = tensor->offset + row * first;
    const uint64_t n = at_once < n_rows - first ? at_once : n_rows - first, bytes = n * row;

    const void *rows = staging;
    if (source->base)
        rows = (const unsigned char *)source->base + at;
    else if (!source->read(source->self, at, staging, (size_t)bytes))
        return tern_fail(err, TERN_IO, "%t: reading %u bytes at %u failed", tensor->name, bytes,
                         at);
    const tern_status status = e->backend->upload(e->state, weight, (uint32_t)first, (uint32_t)n,
                                                  rows, err);
    if (!status && source->release)
        source->release(source->self, at, bytes);
    return status;
}

/* A range of steps that the threads share. The first error wins. */
struct sharing {
    struct tern_engine *e;
    uint32_t weight, step; /* the first */
    uint32_t n_steps, n_threads;
    size_t staging;        /* bytes of each thread */
    atomic_uint next, failed;
    tern_error error;
};

static void load_shared(void *arg, uint32_t thread)
{
    struct sharing *s = arg;
    if (thread >= s->n_threads)
        return;
    unsigned char *staging = (unsigned char *)s->e->staging.data + thread * s->staging;
    uint32_t weight = s->weight, before = 0; /* steps of the range before this weight's first */
    uint32_t skipped = s->step;              /* steps of this weight before the range */
    const uint32_t saved = tern_float_enter();
    for (;;) {
        const uint32_t i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (i >= s->n_steps || atomic_load_explicit(&s->failed, memory_order_relaxed))
            break;
        while (i - before >= steps_of(s->e->model, weight) - skipped) {
            before += steps_of(s->e->model, weight++) - skipped;
            skipped = 0;
        }
        tern_error err = {0};
        if (load_step(s->e, weight, i - before + skipped, staging, &err) &&
            !atomic_exchange(&s->failed, 1))
            s->error = err;
    }
    tern_float_leave(saved);
}

/* The steps from where loading stands, of about budget bytes; loading then stands behind them. */
static uint32_t take_range(struct tern_engine *e, uint64_t budget)
{
    struct tern_load *load = &e->load;
    uint64_t bytes = 0;
    uint32_t n = 0;
    while (load->weight < e->model->program.n_weights && (!n || bytes < budget)) {
        const uint64_t step = step_bytes(e->model, load->weight);
        const uint64_t left = tensor_of(e->model, load->weight)->bytes - step * load->step;
        bytes += left < step ? left : step;
        n++;
        if (++load->step == steps_of(e->model, load->weight)) {
            load->weight++;
            load->step = 0;
        }
    }
    load->done += bytes;
    return n;
}

static tern_status load_range(struct tern_engine *e, uint64_t budget)
{
    const struct tern_load from = e->load;
    size_t staging;
    struct sharing s = {.e = e, .weight = from.weight, .step = from.step, .n_threads = 1};
    const tern_status status = tern_load_staging(e->model, &staging, &e->error);
    if (status)
        return status;
    s.staging = (staging + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    if (e->host.n_threads > 1 && by_many(e->model)) {
        const size_t most = s.staging ? e->staging.size / s.staging : e->host.n_threads;
        s.n_threads = most < e->host.n_threads ? (uint32_t)most : e->host.n_threads;
    }
    s.n_steps = take_range(e, budget);
    if (s.n_threads > 1) {
        e->host.parallel(e->host.self, load_shared, &s);
    } else {
        s.n_threads = 1;
        load_shared(&s, 0);
    }
    if (!s.failed)
        return TERN_OK;
    e->load = from;
    return tern_fail(&e->error, s.error.status, "%s", s.error.text);
}

tern_status tern_engine_load(tern_engine *e, size_t budget, uint64_t *done, uint64_t *total)
{
    if (!e)
        return TERN_BAD_ARGUMENT;
    struct tern_load *load = &e->load;
    tern_status status = TERN_OK;
    if (load->weight < e->model->program.n_weights)
        status = load_range(e, budget);
    load->whole = load->weight == e->model->program.n_weights;
    if (done)
        *done = load->done;
    if (total)
        *total = load->total;
    return status ? status : load->whole ? TERN_OK : TERN_AGAIN;
}
