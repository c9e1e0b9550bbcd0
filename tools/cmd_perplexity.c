/* cmd_perplexity.c: how well a model predicts a text, by llama.cpp's method, so that figures
 * compare: the text is cut into windows of n_ctx tokens, each evaluated on its own from an empty
 * cache; a model that wants a BOS gets it in place of the window's first token; the tokens of
 * the second half are scored (positions n_ctx / 2 .. n_ctx - 2 predict the next one).
 * perplexity = exp(mean of -log p), and its standard error is that of the mean times it. */
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/logits_file.h"
#include "tools/options.h"
#include "tools/prompt.h"
#include "tools/score.h"
#include "tools/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOGITS_BYTES = 32 << 20, MOST_ROWS = TERN_SCORE_ROWS };

struct work {
    struct tern_session session;
    struct tern_prompt text;
    struct tern_score score;
    uint32_t n_ctx, n_windows, first, row_cap;
    char line[TERN_ARGS_LINE];
};

/* The last token of a window is only predicted, so it is not evaluated. */
static bool evaluate(struct work *w, tern_token *window)
{
    static tern_row rows[MOST_ROWS];
    struct tern_session *s = &w->session;
    tern_seq seq;
    tern_seq_options options = {.no_kv_sharing = true, .prefill_only = true};
    tern_sampling_default(&options.sampling);
    tern_status status = tern_seq_open(s->engine, &options, &seq);
    uint32_t chunk = s->plan.limits.chunk < MOST_ROWS ? s->plan.limits.chunk : MOST_ROWS;
    bool ok = true;
    for (uint32_t at = 0; status == TERN_OK && ok && at < w->n_ctx - 1;) {
        uint32_t end = at < w->first ? w->first : w->n_ctx - 1;
        uint32_t most = at < w->first || w->row_cap > chunk ? chunk : w->row_cap;
        uint32_t n = end - at < most ? end - at : most;
        for (uint32_t i = 0; i < n; i++)
            rows[i] = (tern_row){seq, window[at + i], at >= w->first};
        status = tern_decode(s->engine, rows, n);
        if (status == TERN_OK && at >= w->first)
            ok = tern_score_rows(&w->score, s, n, window + at + 1, w->line);
        at += n;
    }
    tern_seq_close(s->engine, seq);
    if (status != TERN_OK)
        snprintf(w->line, sizeof w->line, "%s", tern_session_line(s));
    return ok && status == TERN_OK;
}

static bool prepare_text(struct work *w, const struct tern_settings *settings)
{
    uint32_t flags = settings->special ? TERN_TOKENIZE_SPECIAL : 0;
    if (!tern_prompt_read(&w->text, settings, NULL, SIZE_MAX, w->line) ||
        !tern_prompt_encode(&w->text, w->session.model, flags, SIZE_MAX, w->line))
        return false;
    tern_prompt_free_text(&w->text);
    w->n_windows = (uint32_t)(w->text.n / w->n_ctx);
    if (w->n_windows == 0) {
        snprintf(w->line, sizeof w->line, "the text has %zu tokens, at least %u needed (-c)",
                 w->text.n, w->n_ctx);
        return false;
    }
    if (w->session.info.add_bos && w->session.info.bos >= 0)
        for (uint32_t i = 0; i < w->n_windows; i++)
            w->text.ids[(size_t)i * w->n_ctx] = w->session.info.bos;
    return true;
}

static bool open_files(struct work *w, const struct tern_settings *settings)
{
    struct tern_logits_head head = {"TERNLOGP", 1, w->session.info.n_vocab, w->n_ctx, w->n_windows};
    struct tern_score *s = &w->score;
    if (settings->kl_base)
        s->base = tern_logits_open(settings->kl_base, &head, w->text.ids, w->line);
    if (settings->kl_base && s->base < 0)
        return false;
    if (settings->save_logits)
        s->save = tern_logits_create(settings->save_logits, &head, w->text.ids, w->line);
    if (settings->save_logits && s->save < 0)
        return false;
    uint64_t n_scored = (uint64_t)w->n_windows * (w->n_ctx - 1 - w->first);
    return tern_score_map(s, w->row_cap, head.n_vocab, n_scored, w->line);
}

static bool work_through(struct work *w)
{
    struct tern_progress progress;
    tern_progress_begin(&progress, "perplexity");
    bool ok = true;
    for (uint32_t i = 0; i < w->n_windows && ok; i++) {
        ok = evaluate(w, w->text.ids + (size_t)i * w->n_ctx);
        tern_progress_show(&progress, i + 1, w->n_windows);
        if (ok && tern_interrupted()) {
            snprintf(w->line, sizeof w->line, "interrupted after %u of %u windows", i + 1,
                     w->n_windows);
            ok = false;
        }
    }
    tern_progress_end(&progress);
    return ok;
}

static int write_result(struct work *w, bool json)
{
    static struct tern_out out;
    const struct tern_score *s = &w->score;
    double n = (double)s->n_scored, mean = s->nll / n, perplexity = exp(mean);
    double variance = s->nll2 / n - mean * mean;
    double error = variance > 0 && n > 1 ? sqrt(variance / (n - 1)) * perplexity : 0;
    tern_out_open(&out, STDOUT_FILENO);
    if (json) {
        tern_json_begin(&out, NULL, '{');
        tern_json_real(&out, "perplexity", perplexity);
        tern_json_u64(&out, "tokens", s->n_scored);
        tern_json_real(&out, "stderr", error);
        tern_json_real(&out, "nll", mean);
        tern_json_u64(&out, "windows", w->n_windows);
        tern_json_u64(&out, "context", w->n_ctx);
    } else {
        tern_out_print(&out, "perplexity       %.4f +/- %.4f (%llu tokens, %u windows of %u)\n",
                       perplexity, error, (unsigned long long)s->n_scored, w->n_windows, w->n_ctx);
    }
    if (s->base >= 0)
        tern_score_write_kl(&w->score, &out, json);
    if (json)
        tern_out_print(&out, "}\n");
    if (tern_out_flush(&out))
        return 0;
    fprintf(stderr, "tern perplexity: standard output: %s\n", strerror(out.error));
    return 1;
}

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern perplexity: %s\n", line);
    return code;
}

/* A file that is not whole is made empty, so that nobody takes it for one. */
static int end_file(int fd, int code)
{
    if (fd < 0)
        return code;
    if (code && ftruncate(fd, 0) != 0)
        return code; /* it is no regular file: there is nothing to empty */
    return close(fd) != 0 ? refuse(1, strerror(errno)) : code;
}

static int run(const struct tern_settings *settings)
{
    static struct work w;
    w.score.save = w.score.base = -1;
    w.n_ctx = (uint32_t)settings->n_ctx;
    w.first = w.n_ctx / 2;
    if (tern_prompt_missing(settings))
        return refuse(2, "no text given: -f, -p or standard input needed");
    if (settings->save_logits && settings->kl_base)
        return refuse(2, "--save-logits and --kl-base given, one at a time needed");
    tern_limits limits = tern_session_limits(settings);
    limits.n_ctx = w.n_ctx;
    limits.n_seqs = 1;
    limits.no_kv_sharing = true;
    int code = 1;
    if (!tern_session_open(&w.session, settings->model, TERN_MODEL_WHOLE))
        return tern_session_report(&w.session);
    w.row_cap = LOGITS_BYTES / (4 * w.session.info.n_vocab + 1);
    w.row_cap = w.row_cap < 1 ? 1 : w.row_cap > MOST_ROWS ? MOST_ROWS : w.row_cap;
    uint32_t chunk = limits.chunk ? limits.chunk : MOST_ROWS;
    chunk = chunk < w.n_ctx ? chunk : w.n_ctx;
    limits.n_logit_rows = w.row_cap < chunk ? w.row_cap : chunk;
    w.row_cap = limits.n_logit_rows;
    if (!tern_session_spares(&w.session, settings->save_logits) ||
        !tern_session_plan(&w.session, &limits))
        tern_session_report(&w.session);
    else if (!prepare_text(&w, settings) || !open_files(&w, settings))
        refuse(1, w.line);
    else if (!tern_session_start(&w.session, &settings->affinity))
        tern_session_report(&w.session);
    else
        code = work_through(&w) ? write_result(&w, settings->json) : refuse(1, w.line);
    code = end_file(w.score.save, code);
    tern_score_unmap(&w.score);
    tern_prompt_free(&w.text);
    tern_session_close(&w.session);
    return code;
}

static const struct tern_option own[] = {
    {"--ctx", "-c", TERN_OPTION_INT, offsetof(struct tern_settings, n_ctx), 4, 1 << 30, "512",
     "N", "tokens of a window, of which the second half is scored"},
    {"--save-logits", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, save_logits), 0, 0,
     NULL, "FILE", "writes the distributions (tools/LOGITS.md)"},
    {"--kl-base", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, kl_base), 0, 0,
     NULL, "FILE", "KL divergence of such a file from this run"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    tern_options_prompt, own, tern_options_engine, tern_options_json, NULL,
};

const struct tern_command tern_cmd_perplexity = {
    "perplexity", "perplexity MODEL -f TEXT [options]",
    "Measures how well a model predicts a text, in windows of -c tokens (default 512).", tables,
    "JSON keys: perplexity, tokens (scored), stderr (of the perplexity), nll, windows, context;\n"
    "with --kl-base KL(FILE || this run) in nats: kl_mean, kl_p50, kl_p90, kl_p99, kl_max,\n"
    "top1_agreement.",
    "model", "a GGUF file", run,
};
