#include "tools/interrupt.h"

#include "platform/os/host.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic int interrupted, survives, ends; /* two threads may have a signal each at once */
static void (*tell_other)(void);
static _Atomic(const char *) unfinished;

static void die(int number)
{
    const char *file = atomic_load(&unfinished);
    if (file)
        unlink(file);
    signal(number, SIG_DFL);
    raise(number);
}

static void on_interrupt(int number)
{
    const int error = errno; /* of whatever was interrupted */
    if (interrupted++ >= (tell_other ? 2 : 1) && !survives)
        die(number);
    if (tell_other)
        tell_other();
    errno = error;
}

static void catch(int number, void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(number, &a, NULL);
}

/* Who starts a program with nohup wants it to go on. */
static void catch_hangup(void (*handler)(int))
{
    struct sigaction now;
    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        catch(SIGHUP, handler);
}

void tern_interrupt_install(void)
{
    catch(SIGINT, on_interrupt);
    catch(SIGTERM, die);
    catch_hangup(die);
    /* What cannot be written is an error like others, and has its line. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void tern_interrupt_unfinished(const char *file)
{
    atomic_store(&unfinished, file);
}

void tern_interrupt_tell(void (*tell)(void))
{
    tell_other = tell;
    catch(SIGTERM, on_interrupt);
}

bool tern_interrupted(void)
{
    return interrupted != 0;
}

static void on_end(int number)
{
    if (ends)
        return; /* a second one does not stop what is saved at the end */
    interrupted = 1;
    ends = number;
}

void tern_interrupt_survive(void)
{
    catch(SIGTERM, on_end);
    catch_hangup(on_end);
    survives = 1;
}

void tern_interrupt_end(void)
{
    if (ends)
        die(ends);
}

void tern_interrupt_forget(void)
{
    interrupted = 0;
}

bool tern_interrupt_ends(void)
{
    return ends != 0;
}

void tern_progress_begin(struct tern_progress *p, const char *what)
{
    p->what = isatty(STDERR_FILENO) ? what : NULL;
    p->begun_ns = tern_os_now_ns();
    p->shown_ns = 0;
}

void tern_progress_show(struct tern_progress *p, uint64_t done, uint64_t total)
{
    enum { PATIENCE = 1000000000, BETWEEN = 200000000 };
    if (p->what == NULL || total == 0)
        return;
    uint64_t now = tern_os_now_ns();
    if (now - p->begun_ns < PATIENCE || now - p->shown_ns < BETWEEN)
        return;
    p->shown_ns = now;
    fprintf(stderr, "\r%s %3.0f%%", p->what, 100.0 * (double)done / (double)total);
    fflush(stderr);
}

void tern_progress_end(struct tern_progress *p)
{
    if (p->what && p->shown_ns)
        fprintf(stderr, "\r\033[K");
    p->what = NULL;
}
