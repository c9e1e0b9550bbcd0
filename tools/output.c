#include "tools/output.h"

#include "tools/interrupt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const struct tern_output *o, int error, char line[TERN_ARGS_LINE])
{
    size_t n = strlen(o->path), most = 100;
    snprintf(line, TERN_ARGS_LINE, "%s: %s", n > most ? o->path + n - most : o->path,
             error == EINTR ? "interrupted" : strerror(error));
    return false;
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
    o->fd = mkstemp(o->temporary);
    if (o->fd < 0)
        return fail(o, errno, line);
    mode_t mask = umask(0);
    umask(mask);
    fchmod(o->fd, 0666 & ~mask);
    return true;
}

bool tern_output_write(struct tern_output *o, uint64_t offset, const void *data, size_t n)
{
    const char *from = data;
    if (tern_interrupted() && !o->error)
        o->error = EINTR;
    while (n > 0 && !o->error) {
        ssize_t done = pwrite(o->fd, from, n, (off_t)offset);
        if (done > 0) {
            from += done;
            offset += (uint64_t)done;
            n -= (size_t)done;
        } else if (errno != EINTR || tern_interrupted()) {
            o->error = errno ? errno : EIO;
        }
    }
    return o->error == 0;
}

bool tern_output_finish(struct tern_output *o, char line[TERN_ARGS_LINE])
{
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
    close(o->fd);
    unlink(o->temporary);
    o->fd = -1;
}
