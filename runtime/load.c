/* load.c: weights from the model's sources to the backend, some rows at a time.
 *
 * A source that lies in memory hands its rows over as they are; one that is read goes through a
 * staging area at the start of the KV arena, which nobody uses before the first batch.
 * Rows go in groups of 16, as many as a panel has, and what was read is given back.
 */
#include "runtime/engine.h"
#include "runtime/error.h"

enum { PANEL_ROWS = 16, STAGING = 256 * 1024 };

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

static tern_status load_rows(struct tern_engine *e, uint64_t *bytes)
{
    struct tern_load *load = &e->load;
    const struct tern_tensor *tensor = tensor_of(e->model, load->weight);
    const tern_source *source = &e->model->parts[tensor->part];
    const uint32_t n_rows = rows_of(e->model, load->weight);
    const uint64_t row = tensor->bytes / n_rows, at = tensor->offset + row * load->row;
    uint64_t n = rows_at_once(e->model, load->weight);
    if (n > n_rows - load->row)
        n = n_rows - load->row;
    *bytes = n * row;

    const void *rows = e->staging.data;
    if (source->base)
        rows = (const unsigned char *)source->base + at;
    else if (!source->read(source->self, at, e->staging.data, (size_t)*bytes))
        return tern_fail(&e->error, TERN_IO, "%t: reading %u bytes at %u failed", tensor->name,
                         *bytes, at);
    const tern_status status = e->backend->upload(e->state, load->weight, load->row, (uint32_t)n,
                                                  rows, &e->error);
    if (status)
        return status;
    if (source->release)
        source->release(source->self, at, *bytes);
    load->done += *bytes;
    load->row += (uint32_t)n;
    if (load->row == n_rows) {
        load->weight++;
        load->row = 0;
    }
    return TERN_OK;
}

tern_status tern_engine_load(tern_engine *e, size_t budget, uint64_t *done, uint64_t *total)
{
    if (!e)
        return TERN_BAD_ARGUMENT;
    struct tern_load *load = &e->load;
    tern_status status = TERN_OK;
    uint64_t spent = 0, bytes = 0;
    const uint32_t saved = tern_float_enter();
    while (!status && load->weight < e->model->program.n_weights && (!spent || spent < budget)) {
        status = load_rows(e, &bytes);
        spent += bytes;
    }
    tern_float_leave(saved);
    load->whole = load->weight == e->model->program.n_weights;
    if (done)
        *done = load->done;
    if (total)
        *total = load->total;
    return status ? status : load->whole ? TERN_OK : TERN_AGAIN;
}
