/* features.c: what this CPU and its operating system can run.
 *
 * A set CPUID bit alone says that the CPU knows an instruction. The wide registers also have to
 * be saved by the operating system at a task switch, which XCR0 says; without it the first
 * wide instruction would trap. Linux lets a process use AMX tiles only after it has asked; core
 * code makes no system calls, so the host does and says so (tern_host.cpu_has). On Arm a program
 * may not ask the CPU either: the host says what it was told, and what the compiler was allowed
 * to assume is there in any case. */
#include "platform/cpu/kernels.h"

#include "runtime/tern.h"

#include "config.h"

#if TERN_X86
enum {
    LEAF1_ECX_FMA = 1 << 12, LEAF1_ECX_OSXSAVE = 1 << 27, LEAF1_ECX_F16C = 1 << 29,
    LEAF7_EBX_AVX2 = 1 << 5,
    LEAF7_EBX_AVX512_F_DQ_BW = 1 << 16 | 1 << 17 | 1 << 30,
    LEAF7_ECX_AVX512_VNNI = 1 << 11, LEAF7_1_EAX_AVX_VNNI = 1 << 4,
    LEAF7_EDX_AMX_TILE_INT8 = 1 << 24 | 1 << 25,
    XCR0_YMM = 1 << 1 | 1 << 2, XCR0_ZMM = XCR0_YMM | 1 << 5 | 1 << 6 | 1 << 7,
    XCR0_TILES = 1 << 17 | 1 << 18,
};

struct cpuid { uint32_t a, b, c, d; };

static struct cpuid cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct cpuid r;
    __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d)
                     : "a"(leaf), "c"(subleaf));
    return r;
}

static uint32_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}

static bool all(uint32_t bits, uint32_t wanted)
{
    return (bits & wanted) == wanted;
}

uint32_t tern_cpu_features(uint32_t cpu_has)
{
    const uint32_t max_leaf = cpuid(0, 0).a;
    const uint32_t ecx1 = max_leaf >= 7 ? cpuid(1, 0).c : 0;
    if (!all(ecx1, LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_F16C))
        return 0;
    const uint32_t xcr0 = read_xcr0();
    const struct cpuid leaf7 = cpuid(7, 0);
    if (!all(xcr0, XCR0_YMM) || !(leaf7.b & LEAF7_EBX_AVX2))
        return 0;
    uint32_t features = TERN_CPU_AVX2;
    const bool has_vl = leaf7.b >> 31;
    if (all(xcr0, XCR0_ZMM) && has_vl && all(leaf7.b, LEAF7_EBX_AVX512_F_DQ_BW)) {
        features |= TERN_CPU_AVX512;
        if (leaf7.c & LEAF7_ECX_AVX512_VNNI)
            features |= TERN_CPU_AVX512_VNNI;
    }
    if (leaf7.a >= 1 && (cpuid(7, 1).a & LEAF7_1_EAX_AVX_VNNI))
        features |= TERN_CPU_AVX_VNNI;
    if ((cpu_has & TERN_X86_AMX) && all(xcr0, XCR0_TILES) && all(leaf7.d, LEAF7_EDX_AMX_TILE_INT8))
        features |= TERN_CPU_AMX_INT8;
    return features;
}
#elif TERN_ARM64
uint32_t tern_cpu_features(uint32_t cpu_has)
{
    uint32_t features = TERN_CPU_NEON;
    if (cpu_has & TERN_ARM_DOTPROD)
        features |= TERN_CPU_DOTPROD;
    if (cpu_has & TERN_ARM_I8MM)
        features |= TERN_CPU_I8MM;
#ifdef __ARM_FEATURE_DOTPROD
    features |= TERN_CPU_DOTPROD;
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
    features |= TERN_CPU_I8MM;
#endif
    return features;
}
#else
uint32_t tern_cpu_features(uint32_t cpu_has)
{
    (void)cpu_has;
    return 0;
}
#endif
