#include "tools/logits_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CODES = 65535, RANGE_NATS = 24, LINE = 320 };

size_t tern_logits_row_bytes(uint32_t n_vocab)
{
    size_t n = sizeof(struct tern_logits_row) + (size_t)n_vocab * sizeof(uint16_t);
    return (n + 3) / 4 * 4;
}

/* What lies more than RANGE_NATS below the top is written as if it lay there: all of it together
 * weighs less than 1e-5 in a vocabulary of 262,144. */
void tern_logits_encode(struct tern_logits_row *row, const float *logits, size_t n, double lse)
{
    float top = logits[0], low = logits[0];
    for (size_t i = 1; i < n; i++) {
        top = logits[i] > top ? logits[i] : top;
        low = logits[i] < low ? logits[i] : low;
    }
    double range = (double)top - low < RANGE_NATS ? (double)top - low : RANGE_NATS;
    row->top = (float)((double)top - lse);
    row->step = (float)(range / CODES);
    double scale = range > 0 ? CODES / range : 0;
    for (size_t i = 0; i < n; i++) {
        double code = ((double)top - logits[i]) * scale + 0.5;
        row->codes[i] = (uint16_t)(code < CODES ? code : CODES);
    }
}

double tern_logits_kl(const struct tern_logits_row *row, const float *logits, size_t n, double lse,
                      bool *same)
{
    double sum = 0;
    size_t best = 0, best_base = 0;
    for (size_t i = 0; i < n; i++) {
        float base = row->top - row->step * (float)row->codes[i];
        if (row->codes[i] < row->codes[best_base])
            best_base = i;
        if (logits[i] > logits[best])
            best = i;
        sum += (double)expf(base) * (base - ((double)logits[i] - lse));
    }
    *same = best == best_base || row->codes[best] == row->codes[best_base];
    return sum;
}

bool tern_logits_write(int fd, const void *data, size_t n)
{
    for (const char *p = data; n > 0;) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

bool tern_logits_read(int fd, void *data, size_t n)
{
    errno = 0;
    for (char *p = data; n > 0;) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

int tern_logits_create(const char *path, const struct tern_logits_head *head,
                       const tern_token *tokens, char line[LINE])
{
    size_t n = (size_t)head->n_windows * head->n_ctx * sizeof *tokens;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0 && tern_logits_write(fd, head, sizeof *head) && tern_logits_write(fd, tokens, n))
        return fd;
    snprintf(line, LINE, "%.100s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool same_tokens(int fd, const tern_token *tokens, size_t n)
{
    tern_token piece[1024];
    for (size_t i = 0; i < n;) {
        size_t some = n - i < 1024 ? n - i : 1024;
        if (!tern_logits_read(fd, piece, some * sizeof *piece) ||
            memcmp(piece, tokens + i, some * sizeof *piece) != 0)
            return false;
        i += some;
    }
    return true;
}

int tern_logits_open(const char *path, const struct tern_logits_head *head,
                     const tern_token *tokens, char line[LINE])
{
    struct tern_logits_head found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(line, LINE, "%.100s: %s", path, strerror(errno));
        return -1;
    }
    if (!tern_logits_read(fd, &found, sizeof found) || memcmp(found.magic, head->magic, 8) != 0 ||
        found.version != head->version)
        snprintf(line, LINE, "%.100s: is no file of perplexity --save-logits, version %u", path,
                 head->version);
    else if (found.n_vocab != head->n_vocab || found.n_ctx != head->n_ctx ||
             found.n_windows != head->n_windows)
        snprintf(line, LINE, "%.100s: %u windows of %u, vocabulary %u; here %u of %u, %u", path,
                 found.n_windows, found.n_ctx, found.n_vocab, head->n_windows, head->n_ctx,
                 head->n_vocab);
    else if (!same_tokens(fd, tokens, (size_t)head->n_windows * head->n_ctx))
        snprintf(line, LINE, "%.100s: was made on another text, or other tokens", path);
    else
        return fd;
    close(fd);
    return -1;
}
