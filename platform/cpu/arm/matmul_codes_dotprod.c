#include "platform/cpu/arm/arm.h"
#include "platform/cpu/arm/codes_arm.h"

void tern_matmul_codes_dotprod(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_by_codes(m, first, n);
}
