#define _GNU_SOURCE
#include "tests/kernels/check.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_HELD = 64 };
static struct { unsigned char *base; size_t size; } held[MAX_HELD];
static size_t n_held;

void *guarded(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t body = (size + page - 1) / page * page;
    unsigned char *base = mmap(NULL, body + page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(base, MAP_FAILED);
    /* QEMU 7.2 reads a whole register where an AVX load is masked or narrower; a CPU does not.
     * There the page stays open, and TERN_GUARD=0 says so: the bits are compared all the same. */
    const char *guard = getenv("TERN_GUARD");
    if (!guard || guard[0] != '0')
        assert_int_equal(mprotect(base + body, page, PROT_NONE), 0);
    assert_in_range(n_held, 0, MAX_HELD - 1);
    held[n_held].base = base;
    held[n_held++].size = body + page;
    return base + body - size;
}

void *guarded_aligned(size_t size)
{
    return guarded((size + 63) / 64 * 64);
}

void guarded_free(void)
{
    while (n_held) {
        n_held--;
        munmap(held[n_held].base, held[n_held].size);
    }
}
