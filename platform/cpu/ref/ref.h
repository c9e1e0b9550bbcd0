/* ref.h: the reference kernels. They define every bit; speed is not their aim. */
#ifndef TERN_CPU_REF_H
#define TERN_CPU_REF_H

#include "platform/cpu/kernels.h"

tern_matmul_fn tern_matmul_f32_ref, tern_matmul_f16_ref, tern_matmul_bf16_ref;
tern_matmul_fn tern_matmul_codes_ref, tern_matmul_exact_ref;

#endif
