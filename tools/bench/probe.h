/* probe.h: what the machine can do, measured with nothing but loads and nothing but dots: the
 * limits that speeds are held against. One file a variant, each with its own flags. */
#ifndef TERN_PROBE_H
#define TERN_PROBE_H

#include <stddef.h>
#include <stdint.h>

struct tern_probe {
    const char *variant;     /* of the CPU backend, that these instructions belong to */
    const char *instruction; /* of the int8 dot */
    /* Reads n bytes (a multiple of 1024, aligned to 64) with the widest plain loads. */
    uint64_t (*read)(const void *data, size_t n);
    /* n_rounds of macs_per_round multiply-accumulates on registers. */
    uint64_t (*dot)(uint64_t n_rounds);
    uint32_t macs_per_round;
};

extern const struct tern_probe tern_probe_generic;
#if defined(__x86_64__)
extern const struct tern_probe tern_probe_avx2, tern_probe_avx_vnni, tern_probe_avx512_vnni;
#endif

#endif
