/* float_mode.c: the control word of the float unit. A host program may flush denormals or
 * round another way; the arithmetic says nearest even and no flush, on every thread. */
#include "runtime/backend.h"

#include "config.h"

#if TERN_X86
#include <xmmintrin.h>

uint32_t tern_float_enter(void)
{
    const uint32_t saved = _mm_getcsr();
    _mm_setcsr(0x1f80); /* all exceptions masked, nearest even, no FTZ, no DAZ */
    return saved;
}

void tern_float_leave(uint32_t saved)
{
    _mm_setcsr(saved);
}
#elif TERN_ARM64
uint32_t tern_float_enter(void)
{
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return (uint32_t)saved;
}

void tern_float_leave(uint32_t saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)saved));
}
#else
uint32_t tern_float_enter(void)
{
    return 0;
}

void tern_float_leave(uint32_t saved)
{
    (void)saved;
}
#endif
