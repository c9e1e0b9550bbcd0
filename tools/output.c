#include "tools/output.h"

#include "platform/os/host.h"
#include "tools/interrupt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN = 4 << 20 };

static bool fail(const struct tern_output *o, int error, char line[TERN_ARGS_LINE])
{
    size_t n = strlen(o->path), most = 100;
    snprintf(line, TERN_ARGS_LINE, "%s: %s", n > most ? o->path + n - most : o->path,
             error == EINTR ? "interrupted" : strerror(error));
    return false;
}

static void drop_run(struct tern_output *o)
{
    if (o->run)
        tern_os_unmap((tern_memory){o->run, RUN});
    o->run = NULL;
}

bool tern_output_open(struct tern_output *o, const char *path, char line[TERN_ARGS_LINE])
{
    memset(o, 0, sizeof *o);
    o->fd = -1;
    snprintf(o->path, sizeof o->path, "%s", path);
    if ((size_t)snprintf(o->temporary, sizeof o->temporary, "%s.XXXXXX", path) >=
        sizeof o->temporary)
        return fail(o, ENAMETOOLONG, line);
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return fail(o, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, line);
    /* Of small pages: a small file takes no more than it is. */
    o->run = tern_os_map_sparse(RUN).data;
    o->fd = o->run ? mkstemp(o->temporary) : -1;
    if (o->fd < 0) {
        const int error = errno;
        drop_run(o);
        return fail(o, error, line);
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(o->fd, 0666 & ~mask);
    return true;
}

static bool is_interrupted(const struct tern_output *o)
{
    return !o->goes_on && tern_interrupted();
}

static void write_run(struct tern_output *o)
{
    const unsigned char *from = o->run;
    if (is_interrupted(o) && !o->error)
        o->error = EINTR;
    while (o->n > 0 && !o->error) {
        ssize_t done = pwrite(o->fd, from, o->n, (off_t)o->at);
        if (done > 0) {
            from += done;
            o->at += (uint64_t)done;
            o->n -= (size_t)done;
        } else if (errno != EINTR || is_interrupted(o)) {
            o->error = errno ? errno : EIO;
        }
    }
}

bool tern_output_write(struct tern_output *o, uint64_t offset, const void *data, size_t n)
{
    const unsigned char *from = data;
    if (o->n > 0 && offset != o->at + o->n)
        write_run(o);
    while (n > 0 && !o->error) {
        if (o->n == 0)
            o->at = offset;
        size_t room = RUN - (size_t)((o->at + o->n) % RUN), take = n < room ? n : room;
        memcpy(o->run + o->n, from, take);
        o->n += take;
        offset += take;
        from += take;
        n -= take;
        if (take == room)
            write_run(o);
    }
    return o->error == 0;
}

bool tern_output_finish(struct tern_output *o, char line[TERN_ARGS_LINE])
{
    write_run(o);
    drop_run(o);
    if (!o->error && fsync(o->fd) != 0)
        o->error = errno;
    if (close(o->fd) != 0 && !o->error)
        o->error = errno;
    o->fd = -1;
    if (!o->error && rename(o->temporary, o->path) != 0)
        o->error = errno;
    if (!o->error)
        return true;
    unlink(o->temporary);
    return fail(o, o->error, line);
}

void tern_output_drop(struct tern_output *o)
{
    if (o->fd < 0)
        return;
    drop_run(o);
    close(o->fd);
    unlink(o->temporary);
    o->fd = -1;
}
