#include "platform/cpu/kv_store.h"

#include "quant/half.h"

#include <math.h>
#include <string.h>

enum { Q8_0_BYTES = 34, Q4_0_BYTES = 18 };

bool tern_kv_is_rotated(enum tern_type type)
{
    return type == TERN_TYPE_Q8_0 || type == TERN_TYPE_Q4_0;
}

size_t tern_kv_k_cols(enum tern_type type, size_t dim)
{
    return type == TERN_TYPE_Q8_0 || type == TERN_TYPE_Q4_0
               ? (dim + TERN_SUB - 1) / TERN_SUB * TERN_SUB
               : dim;
}

static size_t row_bytes(enum tern_type type, size_t dim)
{
    switch (type) {
    case TERN_TYPE_F32: return 4 * dim;
    case TERN_TYPE_F16: return 2 * dim;
    case TERN_TYPE_Q8_0: return (dim + TERN_SUB - 1) / TERN_SUB * Q8_0_BYTES;
    case TERN_TYPE_Q4_0: return (dim + TERN_SUB - 1) / TERN_SUB * Q4_0_BYTES;
    default: return 0;
    }
}

size_t tern_kv_v_row_bytes(enum tern_type type, size_t dim)
{
    return row_bytes(type, dim);
}

size_t tern_kv_v_bytes(enum tern_type type, size_t dim)
{
    return (TERN_KV_TOKENS * row_bytes(type, dim) + 63) / 64 * 64;
}

size_t tern_kv_k_bytes(enum tern_type type, size_t dim)
{
    return tern_kv_v_bytes(type, dim); /* the same rows, in another order */
}

/* 32 values, of which n are given, to q; returns d as f16. */
static uint16_t quantize(const struct tern_kernels *kernels, int8_t q[TERN_SUB], const float *x,
                         size_t n)
{
    float d;
    int16_t sum[2];
    kernels->quantize(q, &d, sum, x, n);
    return tern_f32_to_f16(d);
}

/* 32 values, of which n are given, to codes: element i in the low half of byte i, i + 16 in the
 * high one. Returns d as f16. */
static uint16_t quantize_4(uint8_t codes[TERN_SUB / 2], const float *x, size_t n)
{
    uint32_t max = 0;
    float most = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = tern_half_bits(x[i]) & 0x7fffffffu;
        if (u > max) {
            max = u;
            most = x[i];
        }
    }
    memset(codes, 0x88, TERN_SUB / 2);
    if (max >= 0x7f800000u)
        return tern_f32_to_f16(NAN);
    if (tern_half_float(max) < TERN_QUANTIZE_TINY)
        return 0;
    const float d = most / -8.0f, inverse = 1.0f / d;
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = tern_half_bits(x[i] * inverse + 0x1.8p23f) - 0x4b400000u + 8;
        const unsigned shift = i < TERN_SUB / 2 ? 0 : 4;
        const uint8_t keep = (uint8_t)(0xf0 >> shift);
        uint8_t *at = codes + i % (TERN_SUB / 2);
        *at = (uint8_t)((*at & keep) | (c < 15 ? c : 15) << shift);
    }
    return tern_f32_to_f16(d);
}

static void store_k_q4_0(uint8_t *block, size_t token, const float *k, size_t dim)
{
    for (size_t i = 0; i < dim; i += TERN_SUB, block += TERN_KV_TOKENS * Q4_0_BYTES) {
        uint8_t codes[TERN_SUB / 2];
        const uint16_t d = quantize_4(codes, k + i, dim - i < TERN_SUB ? dim - i : TERN_SUB);
        memcpy(block + 2 * token, &d, 2);
        for (size_t j = 0; j < TERN_SUB / 8; j++)
            memcpy(block + 2 * TERN_KV_TOKENS + 4 * (TERN_KV_TOKENS * j + token), codes + 4 * j, 4);
    }
}

static void store_k_q8_0(const struct tern_kernels *kernels, uint8_t *block, size_t token,
                         const float *k, size_t dim)
{
    for (size_t i = 0; i < dim; i += TERN_SUB, block += TERN_KV_TOKENS * Q8_0_BYTES) {
        int8_t q[TERN_SUB];
        const size_t n = dim - i < TERN_SUB ? dim - i : TERN_SUB;
        const uint16_t d = quantize(kernels, q, k + i, n);
        memcpy(block + 2 * token, &d, 2);
        for (size_t j = 0; j < TERN_SUB / 4; j++)
            memcpy(block + 2 * TERN_KV_TOKENS + 4 * (TERN_KV_TOKENS * j + token), q + 4 * j, 4);
    }
}

enum { HALVES = 64 }; /* converted at a time */

static void store_k_f16(const struct tern_kernels *kernels, uint8_t *block, size_t token,
                        const float *k, size_t dim)
{
    uint16_t halves[HALVES];
    uint8_t *at = block + 2 * token;
    for (size_t i = 0; i < dim; i += HALVES) {
        const size_t n = dim - i < HALVES ? dim - i : HALVES;
        kernels->halves(halves, k + i, n);
        for (size_t j = 0; j < n; j++, at += 2 * TERN_KV_TOKENS)
            memcpy(at, halves + j, 2);
    }
}

static void store_v_q8_0(const struct tern_kernels *kernels, uint8_t *row, const float *v,
                         size_t dim)
{
    for (size_t i = 0; i < dim; i += TERN_SUB, row += Q8_0_BYTES) {
        int8_t q[TERN_SUB];
        const size_t n = dim - i < TERN_SUB ? dim - i : TERN_SUB;
        const uint16_t d = quantize(kernels, q, v + i, n);
        memcpy(row, &d, 2);
        memcpy(row + 2, q, TERN_SUB);
    }
}

static void store_v_q4_0(uint8_t *row, const float *v, size_t dim)
{
    for (size_t i = 0; i < dim; i += TERN_SUB, row += Q4_0_BYTES) {
        uint8_t codes[TERN_SUB / 2];
        const uint16_t d = quantize_4(codes, v + i, dim - i < TERN_SUB ? dim - i : TERN_SUB);
        memcpy(row, &d, 2);
        memcpy(row + 2, codes, sizeof codes);
    }
}

static void store_k_f32(uint8_t *block, size_t token, const float *k, size_t dim)
{
    uint8_t *at = block + 4 * token;
    for (size_t i = 0; i < dim; i++, at += 4 * TERN_KV_TOKENS)
        memcpy(at, k + i, 4);
}

void tern_kv_store_k(const struct tern_kernels *kernels, enum tern_type type, void *block,
                     size_t token, const float *k, size_t dim)
{
    if (type == TERN_TYPE_Q8_0)
        store_k_q8_0(kernels, block, token, k, dim);
    else if (type == TERN_TYPE_Q4_0)
        store_k_q4_0(block, token, k, dim);
    else if (type == TERN_TYPE_F16)
        store_k_f16(kernels, block, token, k, dim);
    else
        store_k_f32(block, token, k, dim);
}

void tern_kv_store_v(const struct tern_kernels *kernels, enum tern_type type, void *block,
                     size_t token, const float *v, size_t dim)
{
    uint8_t *row = (uint8_t *)block + token * row_bytes(type, dim);
    if (type == TERN_TYPE_Q8_0)
        store_v_q8_0(kernels, row, v, dim);
    else if (type == TERN_TYPE_Q4_0)
        store_v_q4_0(row, v, dim);
    else if (type == TERN_TYPE_F16)
        kernels->halves(row, v, dim);
    else
        memcpy(row, v, 4 * dim);
}
