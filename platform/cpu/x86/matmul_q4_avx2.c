/* matmul_q4_avx2.c: types with codes of 4 bits. */
#include "platform/cpu/x86/k_scales_avx2.h"
#include "platform/cpu/x86/matmul_few_avx2.h"
#include "platform/cpu/x86/x86.h"

TERN_INLINE void unpack_q4_0(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 32, half, w);
}

static const struct tern_codes_avx2 q4_0 = {
    .chain = TERN_CHAIN_U4, .zero = 8, .block_bytes = 16 * 18, .n_groups = 1, .period = 1,
    .unpack = unpack_q4_0, .scale = scale_first,
};

TERN_INLINE void unpack_q4_1(struct tern_sub s, unsigned half, __m256i w[8])
{
    unpack_nibbles(s.block + 64, half, w);
}

static const struct tern_codes_avx2 q4_1 = {
    .chain = TERN_CHAIN_U4, .block_bytes = 16 * 20, .n_groups = 1, .period = 1, .has_min = true,
    .unpack = unpack_q4_1, .scale = scale_first, .minus_min = added_m,
};

/* Q4_K: d, dmin, 12 bytes of scales by row, 32 vectors of nibbles. */
TERN_INLINE void unpack_q4_k(struct tern_sub s, unsigned half, __m256i w[8])
{
    const uint8_t *q = s.block + TERN_K_CODES + 512 * s.group + 32 * half;
    for (int j = 0; j < 8; j++)
        w[j] = s.member ? high_nibbles(load_256(q + 64 * j)) : low_nibbles(load_256(q + 64 * j));
}

static const struct tern_codes_avx2 q4_k = {
    .chain = TERN_CHAIN_U4, .block_bytes = 16 * 144, .n_groups = 4, .period = 2, .has_min = true,
    .unpack = unpack_q4_k, .scale = k_scale, .minus_min = k_minus_min,
};

static void expand_q4_0(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q4_0, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q4_0_avx2(void)
{
    return type_of(&q4_0, expand_q4_0);
}

void tern_matmul_q4_0_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q4_0, expand_q4_0, m, first, n);
}

static void expand_q4_1(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q4_1, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q4_1_avx2(void)
{
    return type_of(&q4_1, expand_q4_1);
}

void tern_matmul_q4_1_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q4_1, expand_q4_1, m, first, n);
}

static void expand_q4_k(const uint8_t *panel, size_t first, size_t n, struct tern_expanded *out)
{
    expand(&q4_k, panel, first, n, out);
}

struct tern_type_avx2 tern_type_q4_k_avx2(void)
{
    return type_of(&q4_k, expand_q4_k);
}

void tern_matmul_q4_k_avx2(const struct tern_matmul *m, size_t first, size_t n)
{
    matmul_codes_avx2(&q4_k, expand_q4_k, m, first, n);
}
