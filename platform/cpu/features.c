/* features.c: what this CPU and its operating system can run.
 *
 * A set CPUID bit alone says that the CPU knows an instruction. The wide registers also have to
 * be saved by the operating system at a task switch, which XCR0 says; without it the first
 * wide instruction would trap. On Arm the answer is what the compiler was allowed to assume:
 * asking the operating system is not the core's business. */
#include "platform/cpu/kernels.h"

#include "config.h"

#if TERN_X86
#include <cpuid.h>

enum {
    LEAF1_ECX_FMA = 1 << 12, LEAF1_ECX_OSXSAVE = 1 << 27, LEAF1_ECX_F16C = 1 << 29,
    LEAF7_EBX_AVX2 = 1 << 5,
    LEAF7_EBX_AVX512_F_DQ = 1 << 16 | 1 << 17, LEAF7_EBX_AVX512_BW = 1 << 30,
    LEAF7_ECX_AVX512_VNNI = 1 << 11, LEAF7_1_EAX_AVX_VNNI = 1 << 4,
    XCR0_YMM = 1 << 1 | 1 << 2, XCR0_ZMM = XCR0_YMM | 1 << 5 | 1 << 6 | 1 << 7,
};

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

uint32_t tern_cpu_features(void)
{
    uint32_t a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & LEAF1_ECX_OSXSAVE))
        return 0;
    const uint32_t xcr0 = read_xcr0(), ecx1 = c;
    if (!all(xcr0, XCR0_YMM) || !all(ecx1, LEAF1_ECX_FMA | LEAF1_ECX_F16C))
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & LEAF7_EBX_AVX2))
        return 0;
    features |= TERN_CPU_AVX2;
    const uint32_t max_subleaf = a;
    const bool has_vl = b >> 31;
    if (all(xcr0, XCR0_ZMM) && has_vl && all(b, LEAF7_EBX_AVX512_F_DQ | LEAF7_EBX_AVX512_BW)) {
        features |= TERN_CPU_AVX512;
        if (c & LEAF7_ECX_AVX512_VNNI)
            features |= TERN_CPU_AVX512_VNNI;
    }
    if (max_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & LEAF7_1_EAX_AVX_VNNI))
        features |= TERN_CPU_AVX_VNNI;
    return features;
}
#elif TERN_ARM64
uint32_t tern_cpu_features(void)
{
    uint32_t features = TERN_CPU_NEON;
#ifdef __ARM_FEATURE_DOTPROD
    features |= TERN_CPU_DOTPROD;
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
    features |= TERN_CPU_I8MM;
#endif
    return features;
}
#else
uint32_t tern_cpu_features(void)
{
    return 0;
}
#endif
