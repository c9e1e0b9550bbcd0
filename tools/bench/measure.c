#include "tools/bench/measure.h"

#include <string.h>

enum { MOST_CHUNK = 4096 };

static bool is_named(tern_text name, const char *what)
{
    return name.size == strlen(what) && memcmp(name.data, what, name.size) == 0;
}

/* What the limits count: matrices of layers for prefill; all that a step reads for decode. The
 * embedding's matrix is read whole only where it is the output's too. */
void tern_measure_count(const struct tern_session *s, double *macs, double *bytes)
{
    const tern_model *model = s->model;
    double embedding = 0;
    bool tied = true;
    *macs = *bytes = 0;
    for (uint32_t i = 0; i < s->info.n_tensors; i++) {
        tern_tensor_info t;
        if (tern_model_tensor(model, i, &t) != TERN_OK)
            continue;
        bool input = is_named(t.name, "token_embd.weight");
        bool output = is_named(t.name, "output.weight");
        *bytes += (double)t.bytes;
        if (input)
            embedding = (double)t.bytes;
        tied = tied && !output;
        if (t.n_dims == 2 && !input && !output)
            *macs += (double)t.dims[0] * (double)t.dims[1];
    }
    if (!tied)
        *bytes -= embedding;
}

static tern_token some_token(const struct tern_session *s, uint32_t i)
{
    return (tern_token)((i * 7919u + 1013u) % s->info.n_vocab);
}

static bool open_seq(struct tern_session *s, tern_seq *seq)
{
    tern_seq_options options = {.no_kv_sharing = true};
    tern_sampling_default(&options.sampling);
    return tern_seq_open(s->engine, &options, seq) == TERN_OK;
}

bool tern_measure_prefill(struct tern_session *s, uint32_t n, double *tps)
{
    static tern_row rows[MOST_CHUNK];
    uint32_t chunk = s->plan.limits.chunk < MOST_CHUNK ? s->plan.limits.chunk : MOST_CHUNK;
    tern_seq seq;
    if (!open_seq(s, &seq))
        return false;
    tern_status status = TERN_OK;
    uint64_t start = tern_os_now_ns();
    for (uint32_t at = 0; at < n && status == TERN_OK;) {
        uint32_t some = n - at < chunk ? n - at : chunk;
        for (uint32_t i = 0; i < some; i++)
            rows[i] = (tern_row){seq, some_token(s, at + i), at + i + 1 == n};
        status = tern_decode(s->engine, rows, some);
        at += some;
    }
    *tps = n / ((double)(tern_os_now_ns() - start) * 1e-9);
    tern_seq_close(s->engine, seq);
    return status == TERN_OK;
}

bool tern_measure_decode(struct tern_session *s, uint32_t batch, uint32_t n, double *tps)
{
    static tern_row rows[TERN_MEASURE_BATCH];
    static tern_seq seqs[TERN_MEASURE_BATCH];
    uint32_t n_open = 0;
    bool ok = true;
    for (; n_open < batch && ok; n_open += ok)
        ok = open_seq(s, &seqs[n_open]);
    uint64_t start = tern_os_now_ns();
    for (uint32_t at = 0; at < n && ok; at++) {
        for (uint32_t i = 0; i < batch; i++)
            rows[i] = (tern_row){seqs[i], some_token(s, at * batch + i), true};
        ok = tern_decode(s->engine, rows, batch) == TERN_OK;
    }
    *tps = (double)n * batch / ((double)(tern_os_now_ns() - start) * 1e-9);
    for (uint32_t i = 0; i < n_open; i++)
        tern_seq_close(s->engine, seqs[i]);
    return ok;
}

/* Adds the times of the last step. While one thread samples the others have nothing to do, so
 * that counts for all of them. */
static void add_times(const struct tern_session *s, struct tern_shares *sum)
{
    tern_timing t;
    for (size_t i = 0; tern_timing_at(s->engine, i, &t); i++)
        sum->of[t.work] += (double)(t.end_ns - t.start_ns) *
                           (t.work == TERN_WORK_SAMPLER ? s->plan.limits.n_threads : 1);
}

static bool sample_all(struct tern_session *s, const tern_seq *seqs, uint32_t batch)
{
    tern_token token;
    bool ok = true;
    for (uint32_t i = 0; i < batch && ok; i++)
        ok = tern_sample(s->engine, seqs[i], tern_logits(s->engine, i), &token) == TERN_OK;
    return ok;
}

bool tern_measure_shares(struct tern_session *s, uint32_t batch, uint32_t n,
                         struct tern_shares *out)
{
    static tern_row rows[MOST_CHUNK];
    static tern_seq seqs[TERN_MEASURE_BATCH];
    const uint32_t chunk = s->plan.limits.chunk < MOST_CHUNK ? s->plan.limits.chunk : MOST_CHUNK;
    const uint32_t n_seqs = batch ? batch : 1, most = batch ? n * batch : n;
    uint32_t n_open = 0;
    *out = (struct tern_shares){0};
    bool ok = tern_timings_keep(s->engine, true) == TERN_OK;
    for (; n_open < n_seqs && ok; n_open += ok)
        ok = open_seq(s, &seqs[n_open]);
    for (uint32_t at = 0; at < most && ok;) {
        const uint32_t step = batch ? batch : chunk, some = most - at < step ? most - at : step;
        for (uint32_t i = 0; i < some; i++)
            rows[i] = (tern_row){seqs[batch ? i : 0], some_token(s, at + i),
                                 batch || at + i + 1 == most};
        ok = tern_decode(s->engine, rows, some) == TERN_OK && sample_all(s, seqs, batch);
        add_times(s, out);
        at += some;
    }
    for (uint32_t i = 0; i < n_open; i++)
        tern_seq_close(s->engine, seqs[i]);
    double sum = 0;
    for (uint32_t i = 0; i < TERN_N_WORKS; i++)
        sum += out->of[i];
    for (uint32_t i = 0; i < TERN_N_WORKS; i++)
        out->of[i] = sum > 0 ? out->of[i] / sum : 0;
    return ok;
}
