#include "tools/output.h"

#include "platform/os/host.h"
#include "tools/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Where path leads: the file that a symbolic link names takes the new bytes, and the link stays;
 * one that leads nowhere is where the file is made. 0, or an errno. */
static int follow(struct tern_output *o, const char *path)
{
    enum { MOST_LINKS = 40 };
    if ((size_t)snprintf(o->path, sizeof o->path, "%s", path) >= sizeof o->path)
        return ENAMETOOLONG;
    for (int i = 0; i < MOST_LINKS; i++) {
        char *to = o->temporary, *slash = strrchr(o->path, '/');
        const ssize_t n = readlink(o->path, to, sizeof o->temporary);
        if (n < 0)
            return 0; /* no link; what else is wrong with it is found when it is made */
        const size_t folder = *to != '/' && slash ? (size_t)(slash + 1 - o->path) : 0;
        if (folder + (size_t)n >= sizeof o->path)
            return ENAMETOOLONG;
        memcpy(o->path + folder, to, (size_t)n);
        o->path[folder + (size_t)n] = 0;
    }
    return ELOOP;
}

/* A file of a name that is not there yet. Its name is told before it is made: a signal in between
 * finds nothing to take away. */
static int make_temporary(struct tern_output *o)
{
    enum { TRIES = 100 };
    const uint64_t mark = tern_os_now_ns() ^ (uint64_t)getpid() << 20;
    tern_interrupt_unfinished(o->temporary);
    for (unsigned i = 0; i < TRIES; i++) {
        const int n = snprintf(o->temporary, sizeof o->temporary, "%s.%06x", o->path,
                               (unsigned)((mark + i) * 0x9e3779b97f4a7c15u >> 40));
        errno = ENAMETOOLONG;
        const int fd = (size_t)n < sizeof o->temporary
                           ? open(o->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
        if (fd >= 0 || errno != EEXIST) {
            if (fd < 0)
                tern_interrupt_unfinished(NULL);
            return fd;
        }
    }
    tern_interrupt_unfinished(NULL);
    return -1;
}

bool tern_output_open(struct tern_output *o, const char *path, char line[TERN_ARGS_LINE])
{
    memset(o, 0, sizeof *o);
    o->fd = -1;
    const int wrong = follow(o, path);
    if (wrong)
        return fail(o, wrong, line);
    struct stat st;
    if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode))
        return fail(o, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, line);
    /* Of small pages: a small file takes no more than it is. */
    o->run = tern_os_map_sparse(RUN).data;
    o->fd = o->run ? make_temporary(o) : -1;
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

static void write_run(void *self)
{
    struct tern_output *o = self;
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

static void write_and_sync(void *self)
{
    struct tern_output *o = self;
    write_run(o);
    if (!o->error && fsync(o->fd) != 0)
        o->error = errno;
}

static void do_elsewhere(struct tern_output *o, void (*work)(void *))
{
    if (!o->elsewhere)
        work(o);
    else if (!o->elsewhere->run(o->elsewhere->self, work, o) && !o->error)
        o->error = ECANCELED;
}

bool tern_output_write(struct tern_output *o, uint64_t offset, const void *data, size_t n)
{
    const unsigned char *from = data;
    if (o->n > 0 && offset != o->at + o->n)
        do_elsewhere(o, write_run);
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
            do_elsewhere(o, write_run);
    }
    return o->error == 0;
}

bool tern_output_finish(struct tern_output *o, char line[TERN_ARGS_LINE])
{
    if (!o->error)
        do_elsewhere(o, write_and_sync);
    drop_run(o);
    if (close(o->fd) != 0 && !o->error)
        o->error = errno;
    o->fd = -1;
    if (!o->error && rename(o->temporary, o->path) != 0)
        o->error = errno;
    if (o->error)
        unlink(o->temporary);
    tern_interrupt_unfinished(NULL);
    return o->error == 0 || fail(o, o->error, line);
}

void tern_output_drop(struct tern_output *o)
{
    if (o->fd < 0)
        return;
    drop_run(o);
    close(o->fd);
    unlink(o->temporary);
    tern_interrupt_unfinished(NULL);
    o->fd = -1;
}
