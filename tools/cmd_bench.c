/* cmd_bench.c: prefill and decode speed, beside the machine's own limits from the same run.
 *
 * A step of decode must read every weight once and what the cache holds; a prompt's token must
 * be multiplied by every matrix of the layers: that over the limits gives the ratios. */
#include "tools/bench/limits.h"
#include "tools/bench/measure.h"
#include "tools/bench/trace.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/options.h"
#include "tools/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_REPEATS = 64, MOST_RESULTS = 256, TIMED_STEPS = 8 };

struct times { uint32_t n; double at[MOST_REPEATS]; }; /* tokens/s */

struct result {
    uint32_t threads, batch;
    double prefill, decode, prefill_of_limit, decode_of_limit, prefill_spread, decode_spread;
    struct tern_shares prefill_shares, decode_shares;
};

struct work {
    const struct tern_settings *settings;
    struct tern_session session;
    double read_gbps[TERN_ARGS_LIST], int8_gmacs[TERN_ARGS_LIST];
    struct result results[MOST_RESULTS];
    uint32_t n_results;
    double macs, bytes; /* of a token's prefill; of a step's weights */
    char line[TERN_ARGS_LINE];
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct times *t, double *spread)
{
    qsort(t->at, t->n, sizeof t->at[0], by_value);
    double m = t->n ? (t->at[(t->n - 1) / 2] + t->at[t->n / 2]) / 2 : 0;
    *spread = m > 0 ? (t->at[t->n - 1] - t->at[0]) / m : 0;
    return m;
}

static double kv_bytes_per_step(const struct work *w, uint32_t batch)
{
    const tern_plan *plan = &w->session.plan;
    double per_token = (double)plan->arenas[TERN_ARENA_KV].bytes / plan->limits.n_kv_tokens;
    return per_token * batch * (double)w->settings->decode / 2;
}

/* A few steps more, with their times kept; then the times of the last one to the file. */
static bool measure_shares(struct work *w, struct result *r)
{
    const struct tern_settings *s = w->settings;
    const uint32_t n = s->decode < TIMED_STEPS ? (uint32_t)s->decode : TIMED_STEPS;
    bool ok = (!s->prefill || tern_measure_shares(&w->session, 0, (uint32_t)s->prefill,
                                                  &r->prefill_shares)) &&
              (!n || tern_measure_shares(&w->session, r->batch, n, &r->decode_shares));
    if (!ok) {
        snprintf(w->line, sizeof w->line, "%s", tern_session_line(&w->session));
    } else if (s->trace && !tern_trace_write(&w->session, s->trace)) {
        snprintf(w->line, sizeof w->line, "%s: %s", s->trace, strerror(errno));
        ok = false;
    }
    return tern_timings_keep(w->session.engine, false) == TERN_OK && ok;
}

static bool measure(struct work *w, uint32_t i_threads, uint32_t i_batch)
{
    struct times p = {0}, d = {0};
    uint32_t batch = w->settings->batches.at[i_batch];
    uint32_t n_prefill = (uint32_t)w->settings->prefill, n_decode = (uint32_t)w->settings->decode;
    double warm;
    bool ok = n_prefill == 0 || tern_measure_prefill(&w->session, n_prefill, &warm);
    for (int64_t i = 0; i < w->settings->repeat && ok && !tern_interrupted(); i++) {
        if (n_prefill)
            ok = tern_measure_prefill(&w->session, n_prefill, &p.at[p.n++]);
        if (n_decode && ok)
            ok = tern_measure_decode(&w->session, batch, n_decode, &d.at[d.n++]);
    }
    if (!ok || tern_interrupted()) {
        snprintf(w->line, sizeof w->line, "%s",
                 ok ? "interrupted" : tern_session_line(&w->session));
        return false;
    }
    struct result *r = &w->results[w->n_results++];
    *r = (struct result){.threads = w->settings->threads.at[i_threads], .batch = batch};
    r->prefill = median(&p, &r->prefill_spread);
    r->decode = median(&d, &r->decode_spread);
    r->prefill_of_limit = r->prefill * w->macs / (w->int8_gmacs[i_threads] * 1e9);
    r->decode_of_limit = r->decode / batch * (w->bytes + kv_bytes_per_step(w, batch)) /
                         (w->read_gbps[i_threads] * 1e9);
    return measure_shares(w, r);
}

static uint32_t largest(const struct tern_list *l)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < l->n; i++)
        most = l->at[i] > most ? l->at[i] : most;
    return most;
}

/* One number of threads: an engine of its own, its limits, then every batch. */
static bool with_threads(struct work *w, uint32_t i_threads)
{
    const struct tern_settings *s = w->settings;
    tern_limits limits = tern_session_limits(s);
    limits.n_threads = s->threads.at[i_threads];
    limits.n_seqs = largest(&s->batches);
    limits.n_ctx = (uint32_t)(s->prefill > s->decode ? s->prefill : s->decode) + 1;
    limits.n_logit_rows = limits.n_seqs;
    limits.timings = true;
    const uint32_t usual = limits.n_threads > 1 ? 256 : 128;
    if (limits.chunk == 0)
        limits.chunk = limits.n_seqs > usual ? limits.n_seqs : usual;
    bool ok = tern_session_open(&w->session, s->model, TERN_MODEL_WHOLE) &&
              tern_session_spares(&w->session, s->trace) &&
              tern_session_plan(&w->session, &limits) &&
              tern_session_start(&w->session, &s->affinity);
    if (!ok)
        snprintf(w->line, sizeof w->line, "%s", tern_session_line(&w->session));
    if (ok) {
        tern_measure_count(&w->session, &w->macs, &w->bytes);
        ok = tern_limits_read_gbps(&w->session, &w->read_gbps[i_threads]);
        if (!ok)
            snprintf(w->line, sizeof w->line, "no memory to measure the read bandwidth in");
        w->int8_gmacs[i_threads] = tern_limits_int8_gmacs(&w->session.host);
    }
    for (uint32_t i = 0; i < s->batches.n && ok; i++)
        ok = measure(w, i_threads, i);
    tern_session_close(&w->session);
    return ok;
}

static void write_list(struct tern_out *o, const char *key, const double *x, uint32_t n)
{
    tern_json_begin(o, key, '[');
    for (uint32_t i = 0; i < n; i++)
        tern_json_real(o, NULL, x[i]);
    tern_json_end(o, ']');
}

static void write_shares(struct tern_out *o, const char *key, const struct tern_shares *s)
{
    tern_json_begin(o, key, '{');
    for (tern_work i = 0; i < TERN_N_WORKS; i++)
        tern_json_real(o, tern_work_name(i), s->of[i]);
    tern_json_end(o, '}');
}

static void write_json(const struct work *w, struct tern_out *o)
{
    const char *instruction = tern_limits_instruction();
    tern_json_begin(o, NULL, '{');
    tern_json_begin(o, "limits", '{');
    write_list(o, "read_gbps", w->read_gbps, w->settings->threads.n);
    write_list(o, "int8_gmacs", w->int8_gmacs, w->settings->threads.n);
    tern_json_string(o, "int8_instruction", instruction);
    tern_json_end(o, '}');
    tern_json_begin(o, "results", '[');
    for (uint32_t i = 0; i < w->n_results; i++) {
        const struct result *r = &w->results[i];
        tern_json_begin(o, NULL, '{');
        tern_json_u64(o, "threads", r->threads);
        tern_json_u64(o, "batch", r->batch);
        tern_json_real(o, "prefill_tps", r->prefill);
        tern_json_real(o, "decode_tps", r->decode);
        tern_json_real(o, "prefill_of_limit", r->prefill_of_limit);
        tern_json_real(o, "decode_of_limit", r->decode_of_limit);
        tern_json_real(o, "spread", r->prefill_spread > r->decode_spread ? r->prefill_spread
                                                                         : r->decode_spread);
        tern_json_real(o, "prefill_spread", r->prefill_spread);
        tern_json_real(o, "decode_spread", r->decode_spread);
        write_shares(o, "prefill_shares", &r->prefill_shares);
        write_shares(o, "decode_shares", &r->decode_shares);
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
    tern_json_end(o, '}');
    tern_out_put(o, "\n", 1);
}

static void print_shares(struct tern_out *o, const char *what, const struct tern_shares *s)
{
    tern_out_print(o, "  %s:", what);
    for (tern_work i = 0; i < TERN_N_WORKS; i++)
        tern_out_print(o, " %s %.1f%%", tern_work_name(i), 100 * s->of[i]);
    tern_out_print(o, "\n");
}

static void write_text(const struct work *w, struct tern_out *o)
{
    const struct tern_settings *s = w->settings;
    for (uint32_t i = 0; i < s->threads.n; i++)
        tern_out_print(o, "%u thread%s: reads %.1f GB/s, %.1f int8 GMAC/s (%s)\n", s->threads.at[i],
                       s->threads.at[i] == 1 ? "" : "s", w->read_gbps[i], w->int8_gmacs[i],
                       tern_limits_instruction());
    tern_out_print(o, "threads batch  prefill t/s  of limit  spread"
                      "   decode t/s  of limit  spread\n");
    for (uint32_t i = 0; i < w->n_results; i++) {
        const struct result *r = &w->results[i];
        tern_out_print(o, "%7u %5u %12.1f %8.0f%% %6.1f%% %12.1f %8.0f%% %6.1f%%\n", r->threads,
                       r->batch, r->prefill, 100 * r->prefill_of_limit, 100 * r->prefill_spread,
                       r->decode, 100 * r->decode_of_limit, 100 * r->decode_spread);
        if (s->prefill)
            print_shares(o, "time of prefill", &r->prefill_shares);
        if (s->decode)
            print_shares(o, "time of decode and sampling", &r->decode_shares);
    }
}

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern bench: %s\n", line);
    return code;
}

static int run(const struct tern_settings *settings)
{
    static struct work w;
    static struct tern_settings s;
    static struct tern_out out;
    s = *settings;
    if (s.threads.n == 0)
        s.threads = (struct tern_list){1, {tern_os_cores()}};
    if (s.prefill + s.decode == 0)
        return refuse(2, "--prefill 0 and --decode 0 leave nothing to measure");
    w.settings = &s;
    bool ok = true;
    for (uint32_t i = 0; i < s.threads.n && ok; i++)
        ok = with_threads(&w, i);
    if (!ok)
        return refuse(1, w.line);
    tern_out_open(&out, STDOUT_FILENO);
    if (s.json)
        write_json(&w, &out);
    else
        write_text(&w, &out);
    return tern_out_flush(&out) ? 0 : refuse(1, strerror(out.error));
}

static const struct tern_option own[] = {
    {"--threads", "-t", TERN_OPTION_LIST, offsetof(struct tern_settings, threads), 1, 256, NULL,
     "LIST", "threads, one after the other: 1,2 (default: the physical cores)"},
    {"--affinity", NULL, TERN_OPTION_LIST, offsetof(struct tern_settings, affinity), 0, 1023, NULL,
     "LIST", "CPUs that the threads are tied to, one each in turn: 0,2 (default: none)"},
    {"--prefill", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, prefill), 0, 1 << 24, "512",
     "N", "tokens of the prompt; 0: none"},
    {"--decode", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, decode), 0, 1 << 24, "128",
     "N", "steps of decode; 0: none"},
    {"--batch", NULL, TERN_OPTION_LIST, offsetof(struct tern_settings, batches), 1,
     TERN_MEASURE_BATCH, "1", "LIST", "sequences decoded together, one after the other: 1,8"},
    {"--repeat", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, repeat), 1, MOST_REPEATS,
     "5", "N", "goes, of which the median counts"},
    {"--chunk", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, chunk), 0, 4096, NULL,
     "N", "rows of one step of a prompt (default 128, of several threads 256)"},
    {"--exact", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, exact), 0, 0, NULL,
     NULL, "activations stay float32"},
    {"--kv-k", NULL, TERN_OPTION_KV, offsetof(struct tern_settings, k_type), 0, 0, "f16",
     "TYPE", "type of the cached keys: f16, f32, q8_0, q4_0"},
    {"--kv-v", NULL, TERN_OPTION_KV, offsetof(struct tern_settings, v_type), 0, 0, "f16",
     "TYPE", "type of the cached values: f16, f32, q8_0, q4_0"},
    {"--trace", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, trace), 0, 0, NULL,
     "FILE", "writes what each thread did in the last step, for chrome://tracing"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {own, tern_options_json, NULL};

const struct tern_command tern_cmd_bench = {
    "bench", "bench MODEL [options]",
    "Measures tokens/s, and beside them the machine's read bandwidth and int8 peak.", tables,
    "JSON keys: limits {read_gbps, int8_gmacs: lists by threads, int8_instruction}, results: a\n"
    "list of {threads, batch, prefill_tps, decode_tps, prefill_of_limit, decode_of_limit, spread,\n"
    "prefill_spread, decode_spread, prefill_shares, decode_shares}; a spread is (largest -\n"
    "smallest) / median, shares are {matmul, attention, rows, barrier, sampler}, parts of the\n"
    "threads' time in steps of their own after the measured ones.",
    "model", "a GGUF file", run,
};
