/* serve_files.c: a thread that waits for the disk, so that the engine's does not.
 *
 * It is given one piece of work at a time, such as to write 4 MiB, and the engine's thread steps
 * until that is done. A piece that the disk takes at once is waited for, a little: a file is then
 * done soon beside streams too, and each of their steps is put off by no more than that. */
#include "tools/serve/serve.h"

#include <time.h>

void *tern_files_run(void *server)
{
    struct tern_server *s = server;
    struct tern_files *f = &s->files;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!f->work && !f->ends)
            pthread_cond_wait(&s->to_file, &s->lock);
        if (!f->work)
            break;
        pthread_mutex_unlock(&s->lock);
        f->work(f->arg);
        pthread_mutex_lock(&s->lock);
        f->work = NULL;
        pthread_cond_signal(&s->to_run);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void tern_files_end(struct tern_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->files.ends = true;
    pthread_cond_signal(&s->to_file);
    pthread_mutex_unlock(&s->lock);
}

void tern_files_give(struct tern_server *s, void (*work)(void *arg), void *arg)
{
    pthread_mutex_lock(&s->lock);
    s->files.arg = arg;
    s->files.work = work;
    pthread_cond_signal(&s->to_file);
    pthread_mutex_unlock(&s->lock);
}

bool tern_files_wait(struct tern_server *s, uint32_t most_ms, bool or_job)
{
    enum { SECOND = 1000000000, MILLION = 1000000 };
    struct timespec until;
    bool late = false;
    clock_gettime(CLOCK_MONOTONIC, &until); /* the condition's clock */
    until.tv_nsec += (long)most_ms * MILLION;
    until.tv_sec += until.tv_nsec / SECOND;
    until.tv_nsec %= SECOND;
    pthread_mutex_lock(&s->lock);
    while (s->files.work && !late && !(or_job && s->cooked.first))
        if (most_ms)
            late = pthread_cond_timedwait(&s->to_run, &s->lock, &until) != 0;
        else
            pthread_cond_wait(&s->to_run, &s->lock);
    const bool done = !s->files.work;
    pthread_mutex_unlock(&s->lock);
    return done;
}
