/* scales_x86.h: scales of cached values, whose tokens lie apart. Intrinsics are brought by whoever
 * includes this. */
#ifndef TERN_CPU_SCALES_X86_H
#define TERN_CPU_SCALES_X86_H

#include <stddef.h>
#include <stdint.h>

static inline __m128i load_16(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Scales of 8 tokens, row_bytes (more than 16) apart: each is read where it falls in its lane, with
 * what lies before it in its row and after it in its block. */
static inline __m128i eight_scales(const uint8_t *at, size_t row_bytes)
{
    const size_t step = row_bytes - 2;
    __m128i x = _mm_blend_epi16(load_16(at), load_16(at + step), 0x02);
    x = _mm_blend_epi16(x, load_16(at + 2 * step), 0x04);
    x = _mm_blend_epi16(x, load_16(at + 3 * step), 0x08);
    at += 4 * step;
    __m128i y = _mm_blend_epi16(load_16(at), load_16(at + step), 0x20);
    y = _mm_blend_epi16(y, load_16(at + 2 * step), 0x40);
    y = _mm_blend_epi16(y, load_16(at + 3 * step), 0x80);
    return _mm_blend_epi16(x, y, 0xf0);
}

#endif
