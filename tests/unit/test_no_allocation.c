/* test_no_allocation.c: the allocator and the memory calls are trapped while an engine works.
 *
 * malloc and its kin are defined here, over the C library's own; once armed, a call of any of
 * them ends the test. (Sanitizers define the same names: with them the trap is not built.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/backend/trace.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TRAPPED 1
#else
#define TRAPPED 0
#endif

static volatile int armed, n_calls;

#if TRAPPED
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

void *malloc(size_t n)
{
    n_calls += armed;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    n_calls += armed;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    n_calls += armed;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    n_calls += armed;
    __libc_free(p);
}

/* Whoever maps, unmaps or moves the break while the trap is armed has it counted, and fails. */
void *mmap(void *addr, size_t n, int prot, int flags, int file, long offset)
{
    (void)addr, (void)n, (void)prot, (void)flags, (void)file, (void)offset;
    n_calls += 1;
    return (void *)-1;
}

int munmap(void *addr, size_t n)
{
    (void)addr, (void)n;
    n_calls += 1;
    return -1;
}

void *sbrk(intptr_t n)
{
    (void)n;
    n_calls += 1;
    return (void *)-1;
}
#endif

static void the_trap_works(void **state)
{
    (void)state;
    if (!TRAPPED)
        skip();
    armed = 1;
    void *volatile p = malloc(100);
    free(p);
    armed = 0;
    assert_int_equal(n_calls, 2);
    n_calls = 0;
}

enum { SEQS = 4 };
struct fixture {
    struct trace_rig rig;
    struct trace_random random;
    tern_seq seqs[SEQS];
    tern_token p[300];
    uint64_t n_requests, n_events, n_restored;
};

/* --- a session, in static memory --- */

static unsigned char file[1 << 14];
static _Alignas(64) unsigned char scratch_bytes[256];
static const tern_memory scratch = {scratch_bytes, sizeof scratch_bytes};

static bool write_file(void *self, uint64_t offset, const void *src, size_t n)
{
    uint64_t *n_written = self;
    if (offset > sizeof file || n > sizeof file - offset)
        return false;
    memcpy(file + offset, src, n);
    *n_written += n;
    return true;
}

/* Saves a sequence, if it does not run, and takes it back into another. */
static void save_and_restore(struct fixture *f, const tern_seq_options *o, tern_seq *s)
{
    tern_engine *e = f->rig.engine;
    tern_seq other;
    tern_source source = {.base = file};
    tern_saved_info info;
    if (tern_saved_write(e, *s, (tern_bytes){"note", 4}, scratch,
                         &(tern_sink){write_file, &source.size}))
        return;
    file[f->n_requests % 8 ? sizeof file - 1 : 700] ^= 1; /* damaged now and then */
    (void)!tern_saved_read(&source, &info, NULL);
    if (f->n_requests % 3 == 0)
        tern_seq_close(e, *s);
    if (tern_seq_open(e, o, &other))
        return;
    f->n_restored += !tern_saved_restore(e, other, &source, scratch);
    tern_seq_close(e, other);
}

/* One request of any kind, good or bad; the answers are other tests' matter. */
static void request(struct fixture *f)
{
    tern_engine *e = f->rig.engine;
    struct trace_random *r = &f->random;
    static const tern_text stops[] = {{"end", 3}, {"stop", 4}};
    static const tern_bias biases[] = {{3, 1.5f}, {4, -2}};
    static const tern_token think_end[] = {5, 6, 7};
    tern_seq_options o;
    tern_sampling_default(&o.sampling);
    o = (tern_seq_options){.sampling = o.sampling, .max_tokens = trace_below(r, 30),
                           .stops = stops, .n_stops = trace_below(r, 3),
                           .n_logprobs = trace_below(r, 5), /* 4 is too many */
                           .n_prompt_logprobs = trace_below(r, 6) ? 0 : 2,
                           .think_close = {"end", trace_below(r, 2) ? 3 : 0}, .thinks = true,
                           .think_limited = trace_below(r, 2), .think_end = think_end,
                           .think_tokens = trace_below(r, 9), .n_think_end = trace_below(r, 4),
                           .no_kv_sharing = !trace_below(r, 4)};
    o.sampling.biases = biases;
    o.sampling.n_biases = trace_below(r, 3);
    tern_seq *s = &f->seqs[trace_below(r, SEQS)], fork;
    tern_row rows[8];
    switch (trace_below(r, 13)) {
    case 0: tern_seq_cancel(e, *s); break;
    case 1: (void)!tern_seq_trim(e, *s, trace_below(r, 80)); break;
    case 2:
        if (!tern_seq_fork(e, *s, 3, &fork))
            tern_seq_close(e, fork);
        break;
    case 3: tern_seq_close(e, *s); break;
    case 4:
        for (int i = 0; i < 8; i++)
            rows[i] = (tern_row){*s, f->p[i], i == 7};
        (void)!tern_decode(e, rows, 8);
        break;
    case 5: f->rig.trace->nan_token = (tern_token)trace_below(r, 2 * TRACE_VOCAB); break;
    case 6: (void)!tern_seq_feed(e, *s, f->p, 200); break; /* more than fits */
    case 7: save_and_restore(f, &o, s); break;
    default:
        tern_seq_close(e, *s);
        if (!tern_seq_open(e, &o, s))
            (void)!tern_seq_feed(e, *s, f->p + trace_below(r, 9) * 16, trace_below(r, 70));
    }
    f->n_requests++;
    tern_engine_clear_error(e);
}

static void nothing_is_allocated_over_a_thousand_mixed_requests(void **state)
{
    (void)state;
    static const uint32_t windows[] = {0, 8};
    struct fixture *f = calloc(1, sizeof *f);
    trace_model(&f->rig, windows, 2);
    assert_int_equal(trace_open(&f->rig, &(tern_limits){.n_ctx = 96, .n_seqs = SEQS, .chunk = 16,
                                                        .n_kv_tokens = 150, .n_logprobs = 3}),
                     TERN_OK);
    for (int i = 0; i < 300; i++)
        f->p[i] = (tern_token)trace_below(&f->random, TRACE_VOCAB);
    f->rig.trace->nan_token = -1;

    n_calls = 0;
    armed = 1;
    while (f->n_requests < 1500) {
        tern_event events[3];
        size_t n = 0;
        request(f);
        for (int i = 0; i < 4; i++) {
            (void)!tern_step(f->rig.engine, events, 1 + f->n_requests % 3, &n);
            f->n_events += n;
        }
        if (f->n_requests % 500 == 0) { /* the device fails, and goes on */
            f->rig.trace->fail_in = 1;
            f->rig.trace->fail_with = TERN_IO;
        }
    }
    armed = 0;
    assert_int_equal(n_calls, 0);
    assert_true(f->n_events > 2000);
    assert_true(f->n_restored > 5);
    assert_null(f->rig.trace->fault);
    assert_null(trace_check_kv(f->rig.engine));
    trace_close(&f->rig);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_trap_works),
        cmocka_unit_test(nothing_is_allocated_over_a_thousand_mixed_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
