#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/os/host.h"

enum { MOST = 8, ROUNDS = 400 };

struct state { tern_memory mem; tern_team *team; tern_host host; };

static void start(struct state *s, uint32_t n)
{
    memset(s, 0, sizeof *s);
    s->mem = tern_os_map(tern_team_bytes(n), 0);
    assert_non_null(s->mem.data);
    assert_int_equal(tern_team_start(s->mem, n, &s->team, &s->host, NULL), TERN_OK);
    assert_int_equal(s->host.cpu_has, tern_os_cpu_has());
    assert_int_equal(s->host.n_threads, n);
}

static void stop(struct state *s)
{
    tern_team_stop(s->team);
    tern_os_unmap(s->mem);
}

/* In each round every thread writes its own cell, and after the barrier reads all of them. */
struct rounds { tern_host *host; uint32_t cells[MOST]; uint32_t wrong[MOST]; uint32_t n_rounds; };

static void work_in_rounds(void *arg, uint32_t thread)
{
    struct rounds *r = arg;
    for (uint32_t i = 1; i <= r->n_rounds; i++) {
        r->cells[thread] = i;
        r->host->barrier(r->host->self, thread);
        for (uint32_t t = 0; t < r->host->n_threads; t++)
            r->wrong[thread] += r->cells[t] != i;
        r->host->barrier(r->host->self, thread);
    }
}

static void what_is_written_before_a_barrier_is_seen_after_it(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= MOST; n += 3) {
        struct state s;
        start(&s, n);
        struct rounds r = {.host = &s.host, .n_rounds = ROUNDS};
        for (int k = 0; k < 3; k++)
            s.host.parallel(s.host.self, work_in_rounds, &r);
        for (uint32_t t = 0; t < n; t++)
            assert_int_equal(r.wrong[t], 0);
        stop(&s);
    }
}

static void mark(void *arg, uint32_t thread)
{
    ((uint32_t *)arg)[thread]++;
}

static void parallel_runs_each_number_once_and_waits_for_all(void **state)
{
    (void)state;
    struct state s;
    start(&s, 5);
    uint32_t marks[5] = {0};
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        s.host.parallel(s.host.self, mark, marks);
        for (int t = 0; t < 5; t++)
            assert_int_equal(marks[t], i);
    }
    stop(&s);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void idle_threads_sleep(void **state)
{
    (void)state;
    struct state s;
    start(&s, 4);
    uint32_t marks[4] = {0};
    s.host.parallel(s.host.self, mark, marks);
    uint64_t before = cpu_ns();
    struct timespec t = {0, 100000000};
    nanosleep(&t, NULL);
    assert_true(cpu_ns() - before < 3 * 1000000); /* three workers, a millisecond each */
    stop(&s);
}

static void slow_first_thread(void *arg, uint32_t thread)
{
    tern_host *host = arg;
    if (thread == 0) {
        struct timespec t = {0, 100000000};
        nanosleep(&t, NULL);
    }
    host->barrier(host->self, thread);
}

static void threads_that_wait_long_at_a_barrier_sleep(void **state)
{
    (void)state;
    struct state s;
    start(&s, 4);
    uint64_t before = cpu_ns();
    s.host.parallel(s.host.self, slow_first_thread, &s.host);
    assert_true(cpu_ns() - before < 10000000);
    stop(&s);
}

static void more_threads_than_cores_are_not_slow(void **state)
{
    (void)state;
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &old))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    struct state s;
    start(&s, 3);
    struct rounds r = {.host = &s.host, .n_rounds = ROUNDS};
    uint64_t before = tern_os_now_ns();
    s.host.parallel(s.host.self, work_in_rounds, &r);
    uint64_t took = tern_os_now_ns() - before;
    stop(&s);
    sched_setaffinity(0, sizeof old, &old);
    /* 800 barriers: a scheduler's slice each would be several seconds. */
    assert_true(took < 2000000000u);
}

/* As a step of decode: phases of small items taken from a counter, and a barrier after each. */
enum { PHASES = 200, ITEMS = 16 };
struct phases { tern_host *host; atomic_uint taken[PHASES]; volatile uint32_t sink[MOST]; };

static void work_in_phases(void *arg, uint32_t thread)
{
    struct phases *p = arg;
    for (int i = 0; i < PHASES; i++) {
        while (atomic_fetch_add(&p->taken[i], 1) < ITEMS)
            for (uint32_t k = 0; k < 8000; k++)
                p->sink[thread] += k;
        p->host->barrier(p->host->self, thread);
    }
}

static void no_barrier(void *self, uint32_t thread)
{
    (void)self;
    (void)thread;
}

/* The least of three steps, of the clock and of the processors. */
struct cost { uint64_t wall, cpu; };

static struct cost cheapest_step(tern_host *host)
{
    static struct phases p;
    struct cost best = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        memset(&p, 0, sizeof p);
        p.host = host;
        uint64_t wall = tern_os_now_ns(), cpu = cpu_ns();
        if (host->parallel)
            host->parallel(host->self, work_in_phases, &p);
        else
            work_in_phases(&p, 0);
        wall = tern_os_now_ns() - wall;
        cpu = cpu_ns() - cpu;
        best.wall = wall < best.wall ? wall : best.wall;
        best.cpu = cpu < best.cpu ? cpu : best.cpu;
    }
    return best;
}

/* A step beside so many other processes, as many on each core, which do nothing but run. */
static struct cost step_beside(struct state *s, int n_others)
{
    pid_t others[4 * MOST];
    for (int i = 0; i < n_others; i++) {
        others[i] = fork();
        if (others[i] == 0)
            for (volatile uint32_t x = 0;; x++) {
            }
    }
    const struct cost cost = cheapest_step(&s->host);
    for (int i = 0; i < n_others; i++) {
        assert_true(others[i] > 0);
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    return cost;
}

static int some_cores(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set) < MOST ? CPU_COUNT(&set) : MOST;
}

static void another_process_on_every_core_costs_its_share_and_no_more(void **state)
{
    (void)state;
    const int n = some_cores();
    if (n < 2)
        skip();
    struct state s;
    start(&s, (uint32_t)n);
    const struct cost alone = cheapest_step(&s.host), busy = step_beside(&s, n);
    stop(&s);
    print_message("alone %.1f ms, with %d others %.1f ms: %.1fx\n", (double)alone.wall * 1e-6, n,
                  (double)busy.wall * 1e-6, (double)busy.wall / (double)alone.wall);
    assert_true(busy.wall < 10 * alone.wall);
}

static void no_thread_spins_while_others_wait_for_its_core(void **state)
{
    (void)state;
    const int n = some_cores();
    if (n < 2)
        skip();
    tern_host one = {.barrier = no_barrier};
    const uint64_t work = cheapest_step(&one).cpu;
    struct state s;
    start(&s, (uint32_t)n);
    const uint64_t busy = step_beside(&s, 4 * n).cpu;
    stop(&s);
    print_message("work %.1f ms, with four others a core %.1f ms: %.1fx\n", (double)work * 1e-6,
                  (double)busy * 1e-6, (double)busy / (double)work);
    assert_true(busy < 2 * (uint64_t)n * work);
}

static void threads_are_tied_to_the_cpus_of_a_list(void **state)
{
    (void)state;
    cpu_set_t old, now;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    uint32_t cpu = 0;
    while (!CPU_ISSET(cpu, &old))
        cpu++;
    struct state s;
    start(&s, 3);
    assert_int_equal(tern_team_pin(s.team, &cpu, 1, NULL), TERN_OK);
    sched_getaffinity(0, sizeof now, &now);
    assert_int_equal(CPU_COUNT(&now), 1);
    assert_true(CPU_ISSET(cpu, &now));
    struct rounds r = {.host = &s.host, .n_rounds = ROUNDS};
    s.host.parallel(s.host.self, work_in_rounds, &r);
    for (uint32_t t = 0; t < 3; t++)
        assert_int_equal(r.wrong[t], 0);
    static const uint32_t none[] = {1023, 5000};
    for (int i = 0; i < 2; i++) {
        tern_error err = {0};
        assert_int_equal(tern_team_pin(s.team, &none[i], 1, &err), TERN_UNSUPPORTED);
        assert_non_null(strstr(err.text, "affinity: thread 0 cannot run on CPU "));
    }
    stop(&s);
    sched_getaffinity(0, sizeof now, &now);
    assert_true(CPU_EQUAL(&now, &old));
}

static void counts_out_of_range_are_refused_in_words(void **state)
{
    (void)state;
    tern_memory mem = tern_os_map(1 << 20, 0);
    tern_team *team = NULL;
    tern_host host = {0};
    static const uint32_t wrong[] = {0, 257, 10000};
    for (int i = 0; i < 3; i++) {
        tern_error err = {0};
        assert_int_equal(tern_team_start(mem, wrong[i], &team, &host, &err), TERN_BAD_ARGUMENT);
        assert_non_null(strstr(err.text, "1 to 256"));
    }
    tern_error err = {0};
    mem.size = tern_team_bytes(2) - 1;
    assert_int_equal(tern_team_start(mem, 2, &team, &host, &err), TERN_NO_MEMORY);
    tern_os_unmap((tern_memory){mem.data, 1 << 20});
}

static void one_thread_needs_no_team_functions(void **state)
{
    (void)state;
    struct state s;
    start(&s, 1);
    assert_null(s.host.parallel);
    assert_null(s.host.barrier);
    assert_true(s.host.now_ns(s.host.self) > 0);
    stop(&s);
}

static void mapped_memory_is_whole_pages_aligned_and_zero(void **state)
{
    (void)state;
    size_t page = tern_os_page();
    static const size_t sizes[] = {1, 4096, 5000, (8u << 20) + 1};
    for (int i = 0; i < 4; i++) {
        tern_memory m = tern_os_map(sizes[i], 64 * page);
        assert_non_null(m.data);
        assert_true(m.size >= sizes[i] && m.size < sizes[i] + page && m.size % page == 0);
        assert_int_equal((uintptr_t)m.data % (64 * page), 0);
        assert_int_equal(((unsigned char *)m.data)[m.size - 1], 0);
        tern_os_unmap(m);
    }
    assert_null(tern_os_map(SIZE_MAX / 2, 0).data);
    assert_null(tern_os_map(0, 0).data);
}

static void machine_figures_are_plausible(void **state)
{
    (void)state;
    uint32_t cores = tern_os_cores();
    assert_in_range(cores, 1, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    assert_true(tern_os_memory_free() > (1u << 20));
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    assert_true(tern_os_program_bytes((tern_memory){0}) > (256u << 10));
    assert_true(tern_os_program_bytes((tern_memory){0}) < (64u << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_before_a_barrier_is_seen_after_it),
        cmocka_unit_test(parallel_runs_each_number_once_and_waits_for_all),
        cmocka_unit_test(idle_threads_sleep),
        cmocka_unit_test(threads_that_wait_long_at_a_barrier_sleep),
        cmocka_unit_test(more_threads_than_cores_are_not_slow),
        cmocka_unit_test(another_process_on_every_core_costs_its_share_and_no_more),
        cmocka_unit_test(no_thread_spins_while_others_wait_for_its_core),
        cmocka_unit_test(threads_are_tied_to_the_cpus_of_a_list),
        cmocka_unit_test(counts_out_of_range_are_refused_in_words),
        cmocka_unit_test(one_thread_needs_no_team_functions),
        cmocka_unit_test(mapped_memory_is_whole_pages_aligned_and_zero),
        cmocka_unit_test(machine_figures_are_plausible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
