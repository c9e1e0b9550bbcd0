#include "tools/bench/limits.h"

#include "platform/os/host.h"
#include "tools/bench/probe.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 256 << 20 };

static const struct tern_probe *probe(void)
{
    const char *variant = tern_cpu_variant_chosen(getenv("TERN_CPU"), tern_os_cpu_has());
    /* Integers of a block are not what bounds tiles: the dot peak stays that of vectors. */
    if (variant && strcmp(variant, "amx_int8") == 0)
        variant = "avx512_vnni";
#if defined(__x86_64__)
    static const struct tern_probe *const probes[] = {
        &tern_probe_avx2,
#if TERN_HAVE_AVX_VNNI
        &tern_probe_avx_vnni,
#endif
#if TERN_HAVE_AVX512_VNNI
        &tern_probe_avx512_vnni,
#endif
    };
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        if (variant && strcmp(variant, probes[i]->variant) == 0)
            return probes[i];
#endif
    (void)variant;
    return &tern_probe_generic;
}

const char *tern_limits_instruction(void)
{
    return probe()->instruction;
}

struct job {
    const struct tern_probe *probe;
    const unsigned char *data; /* NULL: dots */
    size_t part;
    uint64_t n_rounds;
    struct { _Alignas(64) uint64_t value; } sink[256];
};

static void work(void *arg, uint32_t thread)
{
    struct job *j = arg;
    j->sink[thread].value += j->data ? j->probe->read(j->data + thread * j->part, j->part)
                                     : j->probe->dot(j->n_rounds);
}

/* The shortest of several goes: a limit is what is possible, not what is usual. */
static double shortest_s(const tern_host *host, struct job *j, int n)
{
    double best = 1e30;
    for (int i = 0; i < n; i++) {
        uint64_t start = tern_os_now_ns();
        if (host->parallel)
            host->parallel(host->self, work, j);
        else
            work(j, 0);
        double s = (double)(tern_os_now_ns() - start) * 1e-9;
        best = s < best ? s : best;
    }
    return best;
}

static double read_gbps(const tern_host *host, tern_memory memory)
{
    static struct job j;
    size_t part = memory.size / host->n_threads / 4096 * 4096;
    j = (struct job){.probe = probe(), .data = memory.data, .part = part};
    return (double)(part * host->n_threads) / shortest_s(host, &j, 5) * 1e-9;
}

bool tern_limits_read_gbps(const struct tern_session *s, double *gbps)
{
    const bool is_image = s->files.image.size > 0;
    const tern_memory weights = is_image ? s->files.image : s->arenas[TERN_ARENA_WEIGHTS];
    if (weights.size >= LEAST_BYTES) {
        *gbps = read_gbps(&s->host, weights);
        return true;
    }
    tern_memory own = tern_os_map(LEAST_BYTES, 0);
    if (own.data == NULL)
        return false;
    memset(own.data, 1, own.size);
    *gbps = read_gbps(&s->host, own);
    tern_os_unmap(own);
    return true;
}

double tern_limits_int8_gmacs(const tern_host *host)
{
    static struct job j;
    j = (struct job){.probe = probe(), .n_rounds = 1 << 10};
    while (shortest_s(host, &j, 1) < 0.02)
        j.n_rounds *= 2;
    double macs = (double)j.n_rounds * j.probe->macs_per_round * host->n_threads;
    return macs / shortest_s(host, &j, 5) * 1e-9;
}
