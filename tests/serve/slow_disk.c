/* slow_disk.c: a disk that is slow, for whoever is started with this as LD_PRELOAD: of files in
 * the folder that SLOW_DISK names, a piece that is written takes 0.1 s, one that is read 0.05 s,
 * and all that was written is on the disk 1.5 s after that is asked for. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static void wait_ms(int fd, long ms)
{
    char link[64], path[4096];
    const char *folder = getenv("SLOW_DISK");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path);
    if (folder && n > (ssize_t)strlen(folder) && memcmp(path, folder, strlen(folder)) == 0)
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void find(const char *name, void *to)
{
    void *const found = dlsym(RTLD_NEXT, name);
    memcpy(to, &found, sizeof found);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off_t at)
{
    ssize_t (*next)(int, const void *, size_t, off_t);
    find("pwrite64", &next);
    wait_ms(fd, 100);
    return next(fd, from, n, at);
}

ssize_t pread64(int fd, void *to, size_t n, off_t at)
{
    ssize_t (*next)(int, void *, size_t, off_t);
    find("pread64", &next);
    wait_ms(fd, 50);
    return next(fd, to, n, at);
}

int fsync(int fd)
{
    int (*next)(int);
    find("fsync", &next);
    wait_ms(fd, 1500);
    return next(fd);
}
