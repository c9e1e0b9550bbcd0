#include "platform/cpu/arm/arm.h"

void tern_install_neon(struct tern_kernels *k);
void tern_install_neon(struct tern_kernels *k)
{
    k->matmul_f32 = tern_matmul_f32_neon;
    k->matmul_f16 = tern_matmul_f16_neon;
    k->matmul_bf16 = tern_matmul_bf16_neon;
}
