#include "tools/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file name, from its end if it is long, and what is wrong. */
static bool fail(const char *path, const char *what, char line[TERN_ARGS_LINE])
{
    size_t n = strlen(path), most = 60;
    snprintf(line, TERN_ARGS_LINE, "%s: %s", n > most ? path + n - most : path, what);
    return false;
}

/* --- a file as a source --- */

static unsigned char window[64 << 10];

struct opened { int fd; const struct tern_elsewhere *elsewhere; tern_source source; };
struct piece { int fd; uint64_t offset; char *to; size_t left; };

/* left stays above 0 where it cannot be read. */
static void read_piece(void *self)
{
    struct piece *p = self;
    while (p->left > 0) {
        const ssize_t got = pread(p->fd, p->to, p->left, (off_t)p->offset);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return;
        if (got > 0) {
            p->to += got;
            p->offset += (uint64_t)got;
            p->left -= (size_t)got;
        }
    }
}

static bool read_file(void *self, uint64_t offset, void *dst, size_t n)
{
    const struct opened *f = self;
    struct piece p = {f->fd, offset, dst, n};
    bool wanted = true;
    if (f->elsewhere)
        wanted = f->elsewhere->run(f->elsewhere->self, read_piece, &p);
    else
        read_piece(&p);
    return wanted && p.left == 0;
}

static enum tern_kept open_file(struct opened *f, const char *path, char line[TERN_ARGS_LINE])
{
    struct stat st;
    f->elsewhere = NULL;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 && errno == ENOENT)
        return TERN_KEPT_NONE;
    if (f->fd < 0 || fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        fail(path, f->fd < 0 ? strerror(errno) : "not a regular file", line);
        if (f->fd >= 0)
            close(f->fd);
        return TERN_KEPT_FAILED;
    }
    f->source = (tern_source){.size = (uint64_t)st.st_size, .read = read_file, .self = f,
                              .window = {window, sizeof window}};
    return TERN_KEPT_READ;
}

enum tern_kept tern_keep_read(const char *path, tern_saved_info *info, tern_memory *note,
                              char line[TERN_ARGS_LINE])
{
    struct opened f;
    tern_saved_info own;
    tern_error err = {.status = TERN_OK};
    enum tern_kept kept = open_file(&f, path, line);
    if (note)
        *note = (tern_memory){NULL, 0};
    if (kept != TERN_KEPT_READ)
        return kept;
    bool ok = tern_saved_read(&f.source, &own, &err) == TERN_OK;
    if (!ok)
        fail(path, err.text, line);
    if (ok && info)
        *info = own;
    if (ok && note && own.note_bytes > 0) {
        note->data = malloc((size_t)own.note_bytes);
        note->size = (size_t)own.note_bytes;
        ok = note->data && read_file(&f, own.note_at, note->data, note->size);
        if (!ok) {
            fail(path, note->data ? "it cannot be read" : "no memory for its note", line);
            free(note->data);
            *note = (tern_memory){NULL, 0};
        }
    }
    close(f.fd);
    return ok ? TERN_KEPT_READ : TERN_KEPT_FAILED;
}

bool tern_keep_tokens(const char *path, const tern_saved_info *info, tern_token *out,
                      char line[TERN_ARGS_LINE])
{
    struct opened f;
    const size_t n = info->n_tokens;
    const enum tern_kept kept = open_file(&f, path, line);
    if (kept == TERN_KEPT_NONE)
        return fail(path, strerror(ENOENT), line);
    if (kept != TERN_KEPT_READ)
        return false;
    const bool ok = read_file(&f, info->tokens_at, out, n * sizeof *out);
    close(f.fd);
    for (size_t i = 0; ok && i < n; i++) {
        unsigned char b[4];
        memcpy(b, &out[i], 4);
        out[i] = (tern_token)(b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                              (uint32_t)b[3] << 24);
    }
    return ok || fail(path, "it cannot be read", line);
}

/* --- with an engine --- */

static enum tern_kept fail_kept(const char *path, const char *what, char line[TERN_ARGS_LINE])
{
    fail(path, what, line);
    return TERN_KEPT_FAILED;
}

/* Why the engine did not do it. Its error is taken away, so that the next one is seen. */
static enum tern_kept explain(struct tern_session *s, tern_status status, const char *path,
                              char line[TERN_ARGS_LINE])
{
    fail(path, status == TERN_AGAIN ? "the context is in use" : tern_engine_error(s->engine)->text,
         line);
    tern_engine_clear_error(s->engine);
    return status == TERN_AGAIN ? TERN_KEPT_BUSY : TERN_KEPT_FAILED;
}

/* Somebody else reads in larger pieces: each is a turn of what runs. */
static void read_elsewhere(struct opened *f, const struct tern_elsewhere *elsewhere,
                           tern_memory pieces)
{
    f->elsewhere = elsewhere;
    if (elsewhere)
        f->source.window = pieces;
}

enum tern_kept tern_keep_restore(struct tern_session *s, tern_seq seq, const char *path,
                                 const struct tern_elsewhere *elsewhere,
                                 char line[TERN_ARGS_LINE])
{
    enum { PIECE = 1 << 20, ALIGN = 64 };
    struct opened f;
    uint64_t none;
    size_t bytes;
    enum tern_kept kept = open_file(&f, path, line);
    if (kept != TERN_KEPT_READ)
        return kept;
    tern_status status = tern_saved_size(s->engine, 0, 0, &none, &bytes);
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    tern_memory scratch = {NULL, 0};
    if (status == TERN_OK)
        scratch = tern_os_map(bytes + (elsewhere ? PIECE : 0), ALIGN);
    if (scratch.data) {
        read_elsewhere(&f, elsewhere, (tern_memory){(char *)scratch.data + bytes, PIECE});
        status = tern_saved_restore(s->engine, seq, &f.source, scratch);
    }
    if (status != TERN_OK)
        kept = explain(s, status, path, line);
    else if (!scratch.data)
        kept = fail_kept(path, "no memory to read it", line);
    tern_os_unmap(scratch);
    close(f.fd);
    return kept;
}

static bool write_file(void *self, uint64_t offset, const void *src, size_t n)
{
    return tern_output_write(self, offset, src, n);
}

enum tern_kept tern_keep_save(struct tern_session *s, tern_seq seq, const char *path,
                              tern_bytes note, const struct tern_elsewhere *elsewhere,
                              char line[TERN_ARGS_LINE])
{
    static struct tern_output file;
    uint64_t bytes;
    size_t scratch_bytes;
    tern_status status = tern_saved_size(s->engine, seq, note.size, &bytes, &scratch_bytes);
    if (status)
        return explain(s, status, path, line);
    tern_memory scratch = tern_os_map(scratch_bytes, 64);
    if (!scratch.data)
        return fail_kept(path, "no memory to write it", line);
    enum tern_kept kept = TERN_KEPT_FAILED;
    if (tern_output_open(&file, path, line)) {
        fchmod(file.fd, 0600);
        file.goes_on = true; /* an answer that was interrupted is kept too */
        file.elsewhere = elsewhere;
        const tern_sink sink = {write_file, &file};
        status = tern_saved_write(s->engine, seq, note, scratch, &sink);
        if (status == TERN_OK || file.error) {
            kept = tern_output_finish(&file, line) ? TERN_KEPT_WRITTEN : TERN_KEPT_FAILED;
            tern_engine_clear_error(s->engine);
        } else {
            tern_output_drop(&file);
            kept = explain(s, status, path, line);
        }
    }
    tern_os_unmap(scratch);
    return kept;
}

bool tern_keep_check(const char *path, char line[TERN_ARGS_LINE])
{
    static struct tern_output file;
    if (!*path) {
        snprintf(line, TERN_ARGS_LINE, "a session file without a name");
        return false;
    }
    if (!tern_output_open(&file, path, line))
        return false;
    tern_output_drop(&file);
    return true;
}

uint64_t tern_keep_bytes(const struct tern_session *s)
{
    enum { RUN = 4 << 20 }; /* what tern_output holds back */
    const tern_model_info *m = &s->info;
    uint64_t block = 2ull * 16 * m->n_kv_heads * m->head_dim * sizeof(float);
    uint64_t file = tern_session_arena_bytes(&s->plan, TERN_ARENA_KV) +
                    s->plan.limits.n_ctx * sizeof(tern_token) + (4u << 10);
    return (file < RUN ? file : RUN) + block;
}
