/* transfer.c: what lies in the backend's memory, as it stands in files.
 *
 * A block of the pools has its heads at multiples of 64 bytes, for the kernels; in a session the
 * gaps, which nobody writes, are left out: its bytes are those of keys and values alone. */
#include "platform/cpu/cpu.h"
#include "platform/cpu/kv_store.h"
#include "runtime/model.h"

#include <string.h>

/* Of one head: a block's keys or values, which are as many rows. */
static size_t head_bytes(enum tern_type type, size_t dim)
{
    return TERN_KV_TOKENS * tern_kv_v_row_bytes(type, dim);
}

size_t tern_cpu_block_bytes(const void *state, uint32_t group)
{
    const struct tern_cpu *c = state;
    const struct tern_kv_group *g = &c->program->kv_groups[group];
    return g->n_kv_heads * (head_bytes(c->k_type, g->k_dim) + head_bytes(c->v_type, g->v_dim));
}

tern_status tern_cpu_read_block(const void *state, uint32_t group, uint32_t layer, uint32_t block,
                                void *to, tern_error *err)
{
    (void)err;
    const struct tern_cpu *c = state;
    const struct tern_kv_group *g = &c->program->kv_groups[group];
    const struct tern_cpu_pool *p = &c->pools[group];
    const size_t k = head_bytes(c->k_type, g->k_dim), v = head_bytes(c->v_type, g->v_dim);
    uint8_t *at = to;
    for (uint32_t h = 0; h < g->n_kv_heads; h++, at += k)
        memcpy(at, tern_cpu_keys(p, layer, h, block), k);
    for (uint32_t h = 0; h < g->n_kv_heads; h++, at += v)
        memcpy(at, tern_cpu_values(p, layer, h, block), v);
    return TERN_OK;
}

tern_status tern_cpu_write_block(void *state, uint32_t group, uint32_t layer, uint32_t block,
                                 const void *from, tern_error *err)
{
    (void)err;
    struct tern_cpu *c = state;
    const struct tern_kv_group *g = &c->program->kv_groups[group];
    const struct tern_cpu_pool *p = &c->pools[group];
    const size_t k = head_bytes(c->k_type, g->k_dim), v = head_bytes(c->v_type, g->v_dim);
    const uint8_t *at = from;
    for (uint32_t h = 0; h < g->n_kv_heads; h++, at += k)
        memcpy(tern_cpu_keys(p, layer, h, block), at, k);
    for (uint32_t h = 0; h < g->n_kv_heads; h++, at += v)
        memcpy(tern_cpu_values(p, layer, h, block), at, v);
    return TERN_OK;
}

size_t tern_cpu_read_weight(const void *state, uint32_t weight, uint32_t row, uint32_t col,
                            void *to)
{
    enum { ELEMENTS = 64 };
    const struct tern_cpu *c = state;
    const struct tern_weight *w = &c->program->weights[weight];
    const uint32_t left = w->n_cols - col;
    if (!w->matrix) {
        const size_t n = sizeof(float) * (left < ELEMENTS ? left : ELEMENTS);
        memcpy(to, (const float *)c->weights[weight] + col, n);
        return n;
    }
    const uint32_t type = c->model->tensors[w->tensor].type;
    const struct tern_format *f = tern_format_of(type);
    const uint32_t most = f->n_elems < ELEMENTS ? ELEMENTS : f->n_elems;
    const uint32_t n_blocks = (left < most ? left : most) / f->n_elems;
    const uint8_t *panel = c->weights[weight] +
                           row / TERN_PANEL_ROWS * (size_t)tern_panel_bytes(type, w->n_cols);
    const uint8_t *block = panel + (size_t)(col / f->n_elems) * TERN_PANEL_ROWS * f->n_bytes;
    for (uint32_t i = 0; i < n_blocks; i++, block += TERN_PANEL_ROWS * f->n_bytes)
        tern_unpack_block(f, block, row % TERN_PANEL_ROWS, (uint8_t *)to + i * f->n_bytes);
    return (size_t)n_blocks * f->n_bytes;
}
