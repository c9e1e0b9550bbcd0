/* Attention of one query row over one chunk of 256 positions, and the merge of chunks.
 *
 * The chunk is the unit of every sum: whoever computes it, with however many threads, gets the
 * same maximum, sum and values, and chunks are merged left to right. Nothing outside lo .. hi
 * is read, so what a freed block still holds can do no harm. Scores are floats and the
 * maximum is subtracted first: nothing overflows that the scores survived. */
#include "platform/cpu/ref/ref.h"

#include "quant/half.h"
#include "runtime/real.h"

void tern_scores_ref(const struct tern_scores *s)
{
    for (size_t b = s->first; b < s->last; b++) {
        const struct tern_matmul m = {
            .format = s->format,
            .panels = s->block[b],
            .n_cols = s->n_cols,
            .acts = s->acts,
            .dst = s->s + b * TERN_PANEL_ROWS,
            .dst_stride = TERN_CHUNK,
            .scratch = s->scratch,
        };
        s->matmul(&m, 0, 1);
        for (size_t r = 0; r < s->acts->n_tokens; r++)
            for (size_t t = 0; t < TERN_PANEL_ROWS; t++)
                m.dst[r * TERN_CHUNK + t] *= s->scale;
    }
}

float tern_softmax_ref(float *s, size_t lo, size_t hi, float *m)
{
    /* The maximum of what is not NaN; a NaN comes back through its own exp and the sum. */
    float max = -INFINITY;
    for (size_t t = lo; t < hi; t++)
        max = s[t] > max ? s[t] : max;
    float acc[16] = {0};
    for (size_t t = lo; t < hi; t++) {
        s[t] = tern_exp(s[t] - max);
        acc[t % 16] += s[t];
    }
    const float sum = tern_sum16(acc);
    *m = sum == sum ? max + 0.0f : NAN; /* + 0: of two zeros, either sign was a maximum */
    return sum;
}

static float value_f32(const uint8_t *row, size_t d)
{
    float x;
    memcpy(&x, row + 4 * d, 4);
    return x;
}

static void values_row_f32(const struct tern_values *v, size_t r)
{
    for (size_t d = 0; d < v->dim; d++) {
        float o = 0.0f;
        for (size_t t = v->lo[r]; t < v->hi[r]; t++) {
            const uint8_t *row = v->block[t / 16] + t % 16 * v->row_bytes;
            o = fmaf(v->p[r * TERN_CHUNK + t], value_f32(row, d), o);
        }
        v->o[r * v->o_stride + d] = o;
    }
}

void tern_values_f32_ref(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        if (v->lo[r] < v->hi[r])
            values_row_f32(v, r);
}

static void values_row_f16(const struct tern_values *v, size_t r)
{
    for (size_t d = 0; d < v->dim; d++) {
        float o = 0.0f;
        for (size_t t = v->lo[r]; t < v->hi[r]; t++) {
            const uint8_t *row = v->block[t / 16] + t % 16 * v->row_bytes;
            o = fmaf(v->p[r * TERN_CHUNK + t], tern_load_f16(row + 2 * d), o);
        }
        v->o[r * v->o_stride + d] = o;
    }
}

void tern_values_f16_ref(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        if (v->lo[r] < v->hi[r])
            values_row_f16(v, r);
}

static void values_row_q8_0(const struct tern_values *v, size_t r)
{
    for (size_t d = 0; d < v->dim; d++) {
        float o = 0.0f;
        for (size_t t = v->lo[r]; t < v->hi[r]; t++) {
            const uint8_t *block = v->block[t / 16] + t % 16 * v->row_bytes + d / 32 * 34;
            const float scaled = v->p[r * TERN_CHUNK + t] * tern_load_f16(block);
            o = fmaf(scaled, (float)(int8_t)block[2 + d % 32], o);
        }
        v->o[r * v->o_stride + d] = o;
    }
}

void tern_values_q8_0_ref(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        if (v->lo[r] < v->hi[r])
            values_row_q8_0(v, r);
}

static void values_row_q4_0(const struct tern_values *v, size_t r)
{
    for (size_t d = 0; d < v->dim; d++) {
        float o = 0.0f;
        for (size_t t = v->lo[r]; t < v->hi[r]; t++) {
            const uint8_t *block = v->block[t / 16] + t % 16 * v->row_bytes + d / 32 * 18;
            const float scaled = v->p[r * TERN_CHUNK + t] * tern_load_f16(block);
            const int code = block[2 + d % 16] >> (d % 32 < 16 ? 0 : 4) & 15;
            o = fmaf(scaled, (float)(code - 8), o);
        }
        v->o[r * v->o_stride + d] = o;
    }
}

void tern_values_q4_0_ref(const struct tern_values *v)
{
    for (size_t r = 0; r < v->n_rows; r++)
        if (v->lo[r] < v->hi[r])
            values_row_q4_0(v, r);
}

void tern_merge_ref(float *m, float *l, float *o, float m_c, float l_c, const float *o_c,
                    size_t dim)
{
    if (*l == 0.0f && *m == -INFINITY) {
        *m = m_c;
        *l = l_c;
        memcpy(o, o_c, dim * sizeof *o);
        return;
    }
    const float max = m_c > *m ? m_c : *m;
    const float e = tern_exp(*m - max), e_c = tern_exp(m_c - max);
    *m = max;
    *l = fmaf(l_c, e_c, *l * e);
    for (size_t d = 0; d < dim; d++)
        o[d] = fmaf(o_c[d], e_c, o[d] * e);
}

void tern_finish_ref(float *dst, const float *o, float l, size_t dim)
{
    const float scale = l == 0.0f ? 0.0f : 1.0f / l;
    for (size_t d = 0; d < dim; d++)
        dst[d] = l == 0.0f ? 0.0f : o[d] * scale;
}
