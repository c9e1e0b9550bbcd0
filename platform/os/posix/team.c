/* team.c: a thread team for POSIX.
 *
 * A worker sleeps on `epoch` between jobs; tern_host.parallel writes the job, raises the epoch,
 * runs its own share and waits until nobody is left in the job. The barrier is a generation
 * counter: the last to arrive raises the generation, the others wait for that. Every wait is
 * the same: spin with a pause for some tens of microseconds (several times what a sleep and a
 * wake cost), then sleep in the kernel. The one that raises a word enters the kernel only if
 * somebody sleeps on it: `sleepers` is raised before the word is looked at for the last time,
 * the word is raised before `sleepers` is read, and all four are sequentially consistent, so one
 * of the two sides sees the other.
 *
 * A team larger than the cores it may use never spins for long: the thread waited for is
 * likely to need the core of the one that waits.
 */
#define _GNU_SOURCE
#include "platform/os/host.h"

#include "runtime/error.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

/* The thread sanitizer keeps a megabyte of its own in each stack. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
    MAX_THREADS = 256,
    STACK_BYTES = SANITIZED ? 2 << 20 : 128 << 10,
    LINE = 64,
    SPIN_NS = 40000,
    CROWDED_SPIN_NS = 2000,
    PAUSES = 16, /* between two looks at the clock */
};

struct word { _Alignas(LINE) _Atomic uint32_t value; _Atomic uint32_t sleepers; };

struct tern_team {
    struct word epoch;      /* raised for each job */
    struct word generation; /* raised when all stand at the barrier */
    struct word done;       /* raised when the last worker leaves a job */
    _Alignas(LINE) _Atomic uint32_t arrived;
    _Alignas(LINE) _Atomic uint32_t working;
    _Alignas(LINE) void (*job)(void *arg, uint32_t thread);
    void *arg;
    bool stop;
    uint32_t n_threads;
    _Atomic uint64_t spin_ns; /* workers look at it while a team is tied to CPUs */
#if defined(__linux__)
    cpu_set_t before; /* of the calling thread, where it was tied to a CPU */
#endif
    bool pinned;
    struct worker { struct tern_team *team; uint32_t index; pthread_t thread; } workers[];
};

uint64_t tern_os_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t host_now_ns(void *self)
{
    (void)self;
    return tern_os_now_ns();
}

static void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void sleep_on(struct word *w, uint32_t seen)
{
#if defined(__linux__)
    syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
    (void)w;
    (void)seen;
    struct timespec t = {0, 50000};
    nanosleep(&t, NULL);
#endif
}

static void raise_word(struct word *w)
{
    atomic_fetch_add(&w->value, 1);
    if (atomic_load(&w->sleepers) == 0)
        return;
#if defined(__linux__)
    syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, MAX_THREADS, NULL, NULL, 0);
#endif
}

/* Returns once the word is no longer `seen`. */
static void wait_past(struct tern_team *t, struct word *w, uint32_t seen)
{
    uint64_t start = 0;
    for (;;) {
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(&w->value, memory_order_acquire) != seen)
                return;
            pause_a_little();
        }
        uint64_t now = tern_os_now_ns();
        if (start == 0)
            start = now;
        else if (now - start > atomic_load_explicit(&t->spin_ns, memory_order_relaxed))
            break;
    }
    atomic_fetch_add(&w->sleepers, 1);
    while (atomic_load(&w->value) == seen)
        sleep_on(w, seen);
    atomic_fetch_sub(&w->sleepers, 1);
}

static void team_barrier(void *self, uint32_t thread)
{
    (void)thread;
    struct tern_team *t = self;
    uint32_t seen = atomic_load_explicit(&t->generation.value, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 == t->n_threads) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        raise_word(&t->generation);
    } else {
        wait_past(t, &t->generation, seen);
    }
}

static void team_parallel(void *self, void (*job)(void *arg, uint32_t thread), void *arg)
{
    struct tern_team *t = self;
    t->job = job;
    t->arg = arg;
    uint32_t seen = atomic_load_explicit(&t->done.value, memory_order_relaxed);
    atomic_store_explicit(&t->working, t->n_threads - 1, memory_order_relaxed);
    raise_word(&t->epoch);
    job(arg, 0);
    wait_past(t, &t->done, seen);
}

static void *worker_main(void *p)
{
    struct worker *w = p;
    struct tern_team *t = w->team;
    for (uint32_t seen = 0;; seen++) {
        wait_past(t, &t->epoch, seen);
        if (t->stop)
            return NULL;
        t->job(t->arg, w->index);
        if (atomic_fetch_sub_explicit(&t->working, 1, memory_order_acq_rel) == 1)
            raise_word(&t->done);
    }
}

static size_t round_up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

static size_t team_head_bytes(uint32_t n_threads)
{
    size_t head = sizeof(struct tern_team) + n_threads * sizeof(struct worker);
    return round_up(head, tern_os_page());
}

/* A stack, and below it a page that must not be touched. */
static size_t stack_and_guard(void)
{
    long least = sysconf(_SC_THREAD_STACK_MIN);
    size_t bytes = least > STACK_BYTES ? (size_t)least : STACK_BYTES;
    return round_up(bytes, tern_os_page()) + tern_os_page();
}

size_t tern_team_bytes(uint32_t n_threads)
{
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return 0;
    return team_head_bytes(n_threads) + (n_threads - 1) * stack_and_guard();
}

static uint32_t cpus_allowed(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

static int start_worker(struct tern_team *t, uint32_t i, unsigned char *stack, size_t stack_bytes)
{
    size_t page = tern_os_page();
    if (mprotect(stack, page, PROT_NONE) != 0)
        return errno;
    pthread_attr_t attr;
    int e = pthread_attr_init(&attr);
    if (e)
        return e;
    t->workers[i] = (struct worker){t, i, 0};
    e = pthread_attr_setstack(&attr, stack + page, stack_bytes - page);
    if (e == 0)
        e = pthread_create(&t->workers[i].thread, &attr, worker_main, &t->workers[i]);
    pthread_attr_destroy(&attr);
    return e;
}

uint32_t tern_os_cpu_has(void)
{
    uint32_t has = 0;
#if defined(__linux__) && defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP)
        has |= TERN_ARM_DOTPROD;
    if (getauxval(AT_HWCAP2) & HWCAP2_I8MM)
        has |= TERN_ARM_I8MM;
#elif defined(__linux__) && defined(__x86_64__)
    /* Threads have room for tiles only after a process asked: "dynamic" state 18, tile data. */
    enum { ARCH_REQ_XCOMP_PERMISSION = 0x1023, TILE_DATA = 18 };
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERMISSION, TILE_DATA) == 0)
        has |= TERN_X86_AMX;
#endif
    return has;
}

tern_status tern_team_start(tern_memory mem, uint32_t n_threads, tern_team **out, tern_host *host,
                            tern_error *err)
{
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return tern_fail(err, TERN_BAD_ARGUMENT, "threads: %u, 1 to %u allowed",
                         (uint64_t)n_threads, (uint64_t)MAX_THREADS);
    if (mem.data == NULL || mem.size < tern_team_bytes(n_threads))
        return tern_fail(err, TERN_NO_MEMORY, "thread stacks: %u bytes given, %u needed",
                         (uint64_t)mem.size, (uint64_t)tern_team_bytes(n_threads));
    struct tern_team *t = mem.data;
    memset(t, 0, team_head_bytes(n_threads));
    t->n_threads = n_threads;
    t->spin_ns = n_threads > cpus_allowed() ? CROWDED_SPIN_NS : SPIN_NS;

    size_t stack_bytes = stack_and_guard();
    unsigned char *stack = (unsigned char *)mem.data + team_head_bytes(n_threads);
    for (uint32_t i = 1; i < n_threads; i++, stack += stack_bytes) {
        int e = start_worker(t, i, stack, stack_bytes);
        if (e) {
            t->n_threads = i;
            tern_team_stop(t);
            return tern_fail(err, TERN_NO_MEMORY, "thread %u of %u could not be started: %s",
                             (uint64_t)i + 1, (uint64_t)n_threads, strerror(e));
        }
    }
    host->self = t;
    host->n_threads = n_threads;
    host->parallel = n_threads > 1 ? team_parallel : NULL;
    host->barrier = n_threads > 1 ? team_barrier : NULL;
    host->now_ns = host_now_ns;
    host->cpu_has = tern_os_cpu_has();
    *out = t;
    return TERN_OK;
}

/* 0 or what errno would be. */
static int pin_thread(pthread_t thread, uint32_t cpu)
{
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= CPU_SETSIZE)
        return EINVAL;
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(thread, sizeof set, &set);
#else
    (void)thread;
    (void)cpu;
    return ENOTSUP;
#endif
}

tern_status tern_team_pin(tern_team *t, const uint32_t *cpus, uint32_t n, tern_error *err)
{
#if defined(__linux__)
    if (!t->pinned && pthread_getaffinity_np(pthread_self(), sizeof t->before, &t->before) == 0)
        t->pinned = true;
#endif
    for (uint32_t i = 0; n > 0 && i < t->n_threads; i++) {
        const uint32_t cpu = cpus[i % n];
        const int e = pin_thread(i ? t->workers[i].thread : pthread_self(), cpu);
        if (e)
            return tern_fail(err, TERN_UNSUPPORTED, "affinity: thread %u cannot run on CPU %u: %s",
                             (uint64_t)i, (uint64_t)cpu, strerror(e));
    }
    if (n < t->n_threads)
        t->spin_ns = CROWDED_SPIN_NS;
    return TERN_OK;
}

void tern_team_stop(tern_team *t)
{
    if (t == NULL)
        return;
#if defined(__linux__)
    if (t->pinned)
        pthread_setaffinity_np(pthread_self(), sizeof t->before, &t->before);
#endif
    t->stop = true;
    raise_word(&t->epoch);
    for (uint32_t i = 1; i < t->n_threads; i++)
        pthread_join(t->workers[i].thread, NULL);
}
