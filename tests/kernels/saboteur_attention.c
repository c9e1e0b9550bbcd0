#include "tests/kernels/saboteur.h"

#include "quant/half.h"
#include "runtime/real.h"

/* Wrong by about a unit in the last place. */
void saboteur_scores(const struct tern_scores *s)
{
    struct tern_scores off = *s;
    off.scale = 1;
    tern_kernels_ref.scores_f32(&off);
    for (size_t r = 0; r < s->acts->n_tokens; r++)
        for (size_t t = 16 * s->first; t < 16 * s->last; t++) {
            float *at = s->s + r * TERN_CHUNK + t;
            *at = (float)((double)*at * 1.0000001 * (double)s->scale);
        }
}

/* Neighbouring lanes are added first. (Counting lanes from lo would be no sabotage: the tree
 * gives the same for rotated lanes.) */
float saboteur_softmax(float *s, size_t lo, size_t hi, float *m)
{
    tern_kernels_ref.softmax(s, lo, hi, m);
    float acc[16] = {0};
    for (size_t t = lo; t < hi; t++)
        acc[t % 16] += s[t];
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; i++)
            acc[i] = acc[2 * i] + acc[2 * i + 1];
    return acc[0];
}

static const uint8_t *row_of(const struct tern_values *v, size_t t)
{
    return v->block[t / 16] + t % 16 * v->row_bytes;
}

/* Each product is rounded before it is added. */
void saboteur_values_f32(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        for (size_t d = 0; v->lo[r] < v->hi[r] && d < v->dim; d++) {
            float *o = v->o + r * v->o_stride + d;
            *o = 0;
            for (size_t t = v->lo[r]; t < v->hi[r]; t++)
                *o += v->p[r * TERN_CHUNK + t] *
                      tern_from_bits(tern_load_u32(row_of(v, t) + 4 * d));
        }
}

/* The last token of a range is forgotten where the range ends a block. */
void saboteur_values_f16(const struct tern_values *v)
{
    uint16_t hi[16];
    for (size_t r = 0; r < v->n_rows; r++)
        hi[r] = (uint16_t)(v->hi[r] - (v->hi[r] % 16 == 0 && v->hi[r] > v->lo[r]));
    struct tern_values off = *v;
    off.hi = hi;
    tern_kernels_ref.values_f16(&off);
}

/* The scale goes to the quant, not to the weight of the token. */
void saboteur_values_q8_0(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        for (size_t d = 0; v->lo[r] < v->hi[r] && d < v->dim; d++) {
            float *o = v->o + r * v->o_stride + d;
            *o = 0;
            for (size_t t = v->lo[r]; t < v->hi[r]; t++) {
                const uint8_t *block = row_of(v, t) + d / 32 * 34;
                const float value = tern_load_f16(block) * (float)(int8_t)block[2 + d % 32];
                *o = fmaf(v->p[r * TERN_CHUNK + t], value, *o);
            }
        }
}

/* The halves of a byte are taken for neighbours. */
void saboteur_values_q4_0(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        for (size_t d = 0; v->lo[r] < v->hi[r] && d < v->dim; d++) {
            float *o = v->o + r * v->o_stride + d;
            *o = 0;
            for (size_t t = v->lo[r]; t < v->hi[r]; t++) {
                const uint8_t *block = row_of(v, t) + d / 32 * 18;
                const float scaled = v->p[r * TERN_CHUNK + t] * tern_load_f16(block);
                const int code = block[2 + d % 32 / 2] >> 4 * (d % 2) & 15;
                *o = fmaf(scaled, (float)(code - 8), *o);
            }
        }
}

/* Both products are rounded. */
void saboteur_merge(float *m, float *l, float *o, float m_c, float l_c, const float *o_c,
                    size_t dim)
{
    const float max = m_c > *m ? m_c : *m;
    const float e = tern_exp(*m - max), e_c = tern_exp(m_c - max);
    *m = max;
    *l = l_c * e_c + *l * e;
    for (size_t d = 0; d < dim; d++)
        o[d] = o_c[d] * e_c + o[d] * e;
}

/* A division in place of the reciprocal. */
void saboteur_finish(float *dst, const float *o, float l, size_t dim)
{
    for (size_t d = 0; d < dim; d++)
        dst[d] = l == 0.0f ? 0.0f : o[d] / l;
}
