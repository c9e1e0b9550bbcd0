#include "tools/prompt.h"

#include "platform/os/host.h"
#include "tools/ids.h"
#include "tools/interrupt.h"
#include "tools/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(char line[TERN_ARGS_LINE], const char *name, const char *why)
{
    snprintf(line, TERN_ARGS_LINE, "%.100s: %s", name, why);
    return false;
}

static bool too_long(char line[TERN_ARGS_LINE], size_t bytes, size_t least, size_t most)
{
    snprintf(line, TERN_ARGS_LINE,
             "prompt: %zu bytes, at least %zu tokens, %zu fit the context (-c)", bytes, least,
             most);
    return false;
}

static bool check_length(const tern_model *model, size_t bytes, size_t most,
                         char line[TERN_ARGS_LINE])
{
    size_t least = model ? tern_tokenize_least(model, bytes) : 0;
    return least <= most || too_long(line, bytes, least, most);
}

/* What has no end of its own, as a device, must not fill the memory. */
static bool check_bytes(const char *name, uint64_t bytes, char line[TERN_ARGS_LINE])
{
    enum { MOST = 1 << 30 };
    if (bytes <= MOST)
        return true;
    snprintf(line, TERN_ARGS_LINE, "%.100s: %llu bytes, at most %d in a text", name,
             (unsigned long long)bytes, MOST);
    return false;
}

static bool make_room(struct tern_prompt *p)
{
    size_t size = p->text_memory.size ? 2 * p->text_memory.size : 64 << 10;
    tern_memory more = tern_os_map(size, 0);
    if (more.data == NULL)
        return false;
    if (p->text.size)
        memcpy(more.data, p->text_memory.data, p->text.size);
    tern_os_unmap(p->text_memory);
    p->text_memory = more;
    p->text.data = more.data;
    return true;
}

/* A read goes on after Ctrl-C, a poll does not: who types a text can end the command. It looks
 * now and then, as a signal may come just before the poll. */
static bool wait_for_text(int fd)
{
    enum { LOOK_MS = 200 };
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!tern_interrupted()) {
        int n = poll(&p, 1, LOOK_MS);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
    }
    return false;
}

static bool read_all(struct tern_prompt *p, int fd, const char *name, const tern_model *model,
                     size_t most, char line[TERN_ARGS_LINE])
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return fail(line, name, "is a directory, a text needed");
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (!check_length(model, (size_t)st.st_size, most, line) ||
         !check_bytes(name, (uint64_t)st.st_size, line)))
        return false;
    for (;;) {
        if (p->text.size == p->text_memory.size && !make_room(p))
            return fail(line, name, "no memory for so long a text");
        if (!wait_for_text(fd))
            return fail(line, name, "interrupted before its end");
        ssize_t n = read(fd, (char *)p->text_memory.data + p->text.size,
                         p->text_memory.size - p->text.size);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return fail(line, name, strerror(errno));
        if (n == 0)
            return true;
        p->text.size += (size_t)n;
        if (!check_length(model, p->text.size, most, line) ||
            !check_bytes(name, p->text.size, line))
            return false;
    }
}

bool tern_prompt_missing(const struct tern_settings *s)
{
    return s->prompt == NULL && s->file == NULL && s->ids == NULL && isatty(STDIN_FILENO);
}

bool tern_prompt_read(struct tern_prompt *p, const struct tern_settings *s,
                      const tern_model *model, size_t most_tokens, char line[TERN_ARGS_LINE])
{
    memset(p, 0, sizeof *p);
    if (s->prompt) {
        p->text = (tern_text){s->prompt, strlen(s->prompt)};
        return check_length(model, p->text.size, most_tokens, line);
    }
    const bool given = s->file == NULL || strcmp(s->file, "-") == 0;
    /* Or else opening a named pipe waits for a writer, and Ctrl-C does not end that. */
    int fd = given ? STDIN_FILENO : open(s->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(line, s->file, strerror(errno));
    bool ok = s->save_logits && tern_os_leads_to(s->save_logits, fd)
                  ? fail(line, s->save_logits, "the text itself, not written over")
                  : read_all(p, fd, given ? "standard input" : s->file, model, most_tokens, line);
    if (!given)
        close(fd);
    return ok;
}

bool tern_prompt_encode(struct tern_prompt *p, const tern_model *model, uint32_t flags,
                        size_t most_tokens, char line[TERN_ARGS_LINE])
{
    if (!check_length(model, p->text.size, most_tokens, line))
        return false;
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of(model, p->text, flags, &ids, &err))
        return fail(line, "prompt", err.text);
    p->ids_memory = ids.memory;
    p->ids = ids.at;
    p->n = ids.n;
    if (p->n > most_tokens)
        snprintf(line, TERN_ARGS_LINE, "prompt: %zu tokens, %zu fit the context (-c)", p->n,
                 most_tokens);
    return p->n <= most_tokens;
}

bool tern_prompt_ids(struct tern_prompt *p, const char *list, uint32_t n_vocab,
                     size_t most_tokens, char line[TERN_ARGS_LINE])
{
    p->n = 0;
    p->ids_memory = tern_os_map((strlen(list) / 2 + 1) * sizeof(tern_token), 0);
    p->ids = p->ids_memory.data;
    if (p->ids == NULL)
        return fail(line, "ids", "no memory for so long a list");
    for (const char *at = list;; at++) {
        size_t digits = strspn(at, "0123456789");
        uint64_t id = 0;
        for (size_t i = 0; i < digits && i < 12; i++)
            id = 10 * id + (uint64_t)(at[i] - '0');
        if (digits == 0 || digits > 10 || id >= n_vocab) {
            snprintf(line, TERN_ARGS_LINE, "ids: '%.40s' given, ids from 0 to %u needed", at,
                     n_vocab - 1);
            return false;
        }
        p->ids[p->n++] = (tern_token)id;
        at += digits;
        if (*at == 0)
            break;
        if (*at != ',')
            return fail(line, "ids", "numbers with commas between them needed, as in 1,2,3");
    }
    if (p->n <= most_tokens)
        return true;
    snprintf(line, TERN_ARGS_LINE, "ids: %zu tokens, %zu fit the context (-c)", p->n,
             most_tokens);
    return false;
}

bool tern_prompt_check_utf8(const struct tern_prompt *p, char line[TERN_ARGS_LINE])
{
    for (size_t i = 0, n; i < p->text.size; i += n) {
        n = tern_utf8_length((tern_text){p->text.data + i, p->text.size - i});
        if (n == 0) {
            snprintf(line, TERN_ARGS_LINE,
                     "prompt: byte 0x%02x at offset %zu is not UTF-8; convert the text, or give "
                     "ids (tern tokenize takes any bytes)",
                     (unsigned char)p->text.data[i], i);
            return false;
        }
    }
    return true;
}

void tern_prompt_free_text(struct tern_prompt *p)
{
    tern_os_unmap(p->text_memory);
    p->text_memory = (tern_memory){NULL, 0};
    p->text = (tern_text){NULL, 0};
}

void tern_prompt_free(struct tern_prompt *p)
{
    tern_prompt_free_text(p);
    tern_os_unmap(p->ids_memory);
    memset(p, 0, sizeof *p);
}
