#include "tools/score.h"

#include "tools/logits_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One batch of rows with logits, shared out to the threads. */
struct batch {
    struct tern_score *s;
    const struct tern_session *session;
    uint32_t n_rows, n_threads;
    const tern_token *next;      /* the token that follows each */
    double nll[TERN_SCORE_ROWS], kl[TERN_SCORE_ROWS];
    bool same[TERN_SCORE_ROWS];
};

static double log_sum_exp(const float *x, size_t n)
{
    float top = x[0];
    for (size_t i = 1; i < n; i++)
        top = x[i] > top ? x[i] : top;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)expf(x[i] - top);
    return (double)top + log(sum);
}

static void score_rows(void *arg, uint32_t thread)
{
    struct batch *b = arg;
    struct tern_score *s = b->s;
    size_t n = b->session->info.n_vocab, bytes = tern_logits_row_bytes((uint32_t)n);
    for (uint32_t i = thread; i < b->n_rows; i += b->n_threads) {
        const float *logits = tern_logits(b->session->engine, i);
        void *row = (char *)s->rows_memory.data + i * bytes;
        double lse = log_sum_exp(logits, n);
        b->nll[i] = lse - (double)logits[b->next[i]];
        if (s->base >= 0)
            b->kl[i] = tern_logits_kl(row, logits, n, lse, &b->same[i]);
        else if (s->save >= 0)
            tern_logits_encode(row, logits, n, lse);
    }
}

bool tern_score_rows(struct tern_score *s, const struct tern_session *session, uint32_t n_rows,
                     const tern_token *next, char line[TERN_ARGS_LINE])
{
    static struct batch b;
    size_t bytes = n_rows * tern_logits_row_bytes(session->info.n_vocab);
    const tern_host *host = &session->host;
    b = (struct batch){s, session, n_rows, host->n_threads, next, {0}, {0}, {0}};
    if (s->base >= 0 && !tern_logits_read(s->base, s->rows_memory.data, bytes)) {
        snprintf(line, TERN_ARGS_LINE, "--kl-base: the file ends before its last row");
        return false;
    }
    if (host->parallel)
        host->parallel(host->self, score_rows, &b);
    else
        score_rows(&b, 0);
    if (s->save >= 0 && !tern_logits_write(s->save, s->rows_memory.data, bytes)) {
        snprintf(line, TERN_ARGS_LINE, "--save-logits: %s", strerror(errno));
        return false;
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        if (!isfinite(b.nll[i])) {
            snprintf(line, TERN_ARGS_LINE, "logits of scored token %llu are not finite",
                     (unsigned long long)s->n_scored);
            return false;
        }
        s->nll += b.nll[i];
        s->nll2 += b.nll[i] * b.nll[i];
        if (s->base >= 0)
            s->kl[s->n_scored] = (float)b.kl[i];
        s->n_same += b.same[i];
        s->n_scored++;
    }
    return true;
}

bool tern_score_map(struct tern_score *s, uint32_t row_cap, uint32_t n_vocab, uint64_t n_scored,
                    char line[TERN_ARGS_LINE])
{
    s->rows_memory = tern_os_map(row_cap * tern_logits_row_bytes(n_vocab), 64);
    s->kl_memory = tern_os_map(n_scored * sizeof *s->kl, 64);
    s->kl = s->kl_memory.data;
    if (s->rows_memory.data && s->kl)
        return true;
    snprintf(line, TERN_ARGS_LINE, "no memory for the rows of %llu positions",
             (unsigned long long)n_scored);
    return false;
}

void tern_score_unmap(struct tern_score *s)
{
    tern_os_unmap(s->rows_memory);
    tern_os_unmap(s->kl_memory);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(const struct tern_score *s, double part)
{
    return s->kl[(size_t)(part * (double)(s->n_scored - 1) + 0.5)];
}

void tern_score_write_kl(struct tern_score *s, struct tern_out *o, bool json)
{
    double sum = 0;
    for (uint64_t i = 0; i < s->n_scored; i++)
        sum += (double)s->kl[i];
    qsort(s->kl, s->n_scored, sizeof *s->kl, by_value);
    const struct { const char *key; double value; } rows[] = {
        {"kl_mean", sum / (double)s->n_scored}, {"kl_p50", percentile(s, 0.5)},
        {"kl_p90", percentile(s, 0.9)}, {"kl_p99", percentile(s, 0.99)},
        {"kl_max", percentile(s, 1)},
        {"top1_agreement", (double)s->n_same / (double)s->n_scored},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (json)
            tern_json_real(o, rows[i].key, rows[i].value);
        else
            tern_out_print(o, "%-16s %.6g\n", rows[i].key, rows[i].value);
    }
}
