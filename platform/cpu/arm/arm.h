/* arm.h: the kernels of 64-bit ARM variants. A file's name ends with the variant that it belongs
 * to: neon is what every such CPU has, dotprod and i8mm add an instruction each for products of
 * integers and take everything else from neon. */
#ifndef TERN_CPU_ARM_H
#define TERN_CPU_ARM_H

#include "platform/cpu/kernels.h"

tern_matmul_fn tern_matmul_f32_neon, tern_matmul_f16_neon, tern_matmul_bf16_neon;

#endif
