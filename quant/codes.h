/* codes.h: the functions that turn blocks to codes, one a format; see struct tern_codes. */
#ifndef TERN_CODES_H
#define TERN_CODES_H

#include "quant/format.h"

typedef void tern_codes_fn(const uint8_t *block, uint32_t sub, struct tern_codes *out);

tern_codes_fn tern_q4_0_codes, tern_q4_1_codes, tern_q5_0_codes, tern_q5_1_codes, tern_q8_0_codes;
tern_codes_fn tern_q2_k_codes, tern_q3_k_codes, tern_q4_k_codes, tern_q5_k_codes, tern_q6_k_codes;
tern_codes_fn tern_iq1_s_codes, tern_iq1_m_codes;
tern_codes_fn tern_iq2_xxs_codes, tern_iq2_xs_codes, tern_iq2_s_codes;
tern_codes_fn tern_iq3_xxs_codes, tern_iq3_s_codes, tern_iq4_nl_codes, tern_iq4_xs_codes;
tern_codes_fn tern_tq1_0_codes, tern_tq2_0_codes, tern_mxfp4_codes;

/* One scale for all 32 elements. */
static inline void tern_codes_whole(struct tern_codes *out, float scale)
{
    out->scale = scale;
    out->min = 0.0f;
    out->sc[0] = out->sc[1] = 1;
    out->m[0] = out->m[1] = 0;
}

/* One scale and one minimum for all 32. */
static inline void tern_codes_with_min(struct tern_codes *out, float scale, float min)
{
    tern_codes_whole(out, scale);
    out->min = min;
    out->m[0] = out->m[1] = 1;
}

/* A scale for each half of 16: scale * sc0 and scale * sc1. */
static inline void tern_codes_halves(struct tern_codes *out, float scale, int sc0, int sc1)
{
    tern_codes_whole(out, scale);
    out->sc[0] = (int16_t)sc0;
    out->sc[1] = (int16_t)sc1;
}

/* 16 bytes of nibbles: the low ones are elements 0..15, the high ones 16..31. */
static inline void tern_codes_nibbles(struct tern_codes *out, const uint8_t *q)
{
    for (int i = 0; i < 16; i++) {
        out->q[i] = (int8_t)(q[i] & 15);
        out->q[i + 16] = (int8_t)(q[i] >> 4);
    }
}

/* The same through a table. */
static inline void tern_codes_lookup(struct tern_codes *out, const uint8_t *q,
                                     const int8_t table[16])
{
    for (int i = 0; i < 16; i++) {
        out->q[i] = table[q[i] & 15];
        out->q[i + 16] = table[q[i] >> 4];
    }
}

#endif
