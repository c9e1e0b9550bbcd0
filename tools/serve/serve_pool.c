/* serve_pool.c: what the page's pictures are drawn from: the blocks of the KV pool, and counts.
 *
 * The pools are the engine's, and change within its steps. So the engine looks at them between two
 * steps, each time while somebody draws them and once a second otherwise, and before it sleeps; the
 * loop tells what was seen last. A pool of many blocks is told in cells of several: a cell shows
 * the use that most is made of. */
#include "tools/serve/endpoints.h"

#include "platform/os/host.h"

#include <string.h>

enum { WATCHED_S = 5 };

static void look(const tern_engine *engine, uint32_t pool, struct tern_pool_view *v)
{
    tern_block_use use;
    uint32_t n = 0;
    memset(v, 0, sizeof *v);
    while (tern_block_at(engine, pool, n, &use, &v->window))
        n++;
    v->n_blocks = n;
    v->each = (n + TERN_POOL_CELLS - 1) / TERN_POOL_CELLS;
    for (uint32_t i = 0; i < n && tern_block_at(engine, pool, i, &use, &v->window); i++) {
        char *cell = &v->cells[i / v->each];
        v->n[use]++;
        if (*cell < 'a' + (char)use)
            *cell = (char)('a' + (char)use);
    }
}

void tern_pool_look(struct tern_server *s, bool sleeps)
{
    static const uint64_t second = 1000000000;
    const uint64_t now = tern_os_now_ns(), asked = atomic_load(&s->pool.asked_ns);
    if (!sleeps && now - asked > WATCHED_S * second && now - s->pool.looked_ns < second)
        return;
    s->pool.looked_ns = now;
    pthread_mutex_lock(&s->pool.lock);
    for (uint32_t g = 0; g < TERN_POOL_GROUPS; g++)
        look(s->session.engine, g, &s->pool.views[g]);
    pthread_mutex_unlock(&s->pool.lock);
}

static void put_view(const struct tern_pool_view *v, struct tern_out *o)
{
    static const char names[] = ".kus"; /* by tern_block_use */
    char cells[TERN_POOL_CELLS];
    const size_t n = v->each ? (v->n_blocks + v->each - 1) / v->each : 0;
    for (size_t i = 0; i < n; i++)
        cells[i] = names[v->cells[i] - 'a'];
    tern_json_begin(o, NULL, '{');
    tern_json_u64(o, "window", v->window);
    tern_json_u64(o, "blocks", v->n_blocks);
    tern_json_u64(o, "free", v->n[TERN_BLOCK_FREE]);
    tern_json_u64(o, "kept", v->n[TERN_BLOCK_KEPT]);
    tern_json_u64(o, "used", v->n[TERN_BLOCK_USED]);
    tern_json_u64(o, "shared", v->n[TERN_BLOCK_SHARED]);
    tern_json_u64(o, "each", v->each);
    tern_json_text(o, "cells", (tern_text){cells, n});
    tern_json_end(o, '}');
}

void tern_pool_now(struct tern_server *s, struct tern_http_exchange *x)
{
    enum { BLOCK_TOKENS = 16 };
    const struct tern_counts *n = &s->counts;
    struct tern_out *o = &s->loop_out;
    atomic_store(&s->pool.asked_ns, tern_os_now_ns());
    tern_http_begin(x, 200, "application/json", false);
    tern_write_to(x, o);
    tern_json_begin(o, NULL, '{');
    tern_json_u64(o, "sequences", s->session.plan.limits.n_seqs);
    tern_json_u64(o, "running", atomic_load(&n->running));
    tern_json_u64(o, "requests", atomic_load(&n->requests));
    tern_json_u64(o, "prompt_tokens", atomic_load(&n->prompt_tokens));
    tern_json_u64(o, "cached_tokens", atomic_load(&n->cached_tokens));
    tern_json_u64(o, "generated_tokens", atomic_load(&n->generated_tokens));
    tern_json_u64(o, "block_tokens", BLOCK_TOKENS);
    tern_json_begin(o, "pools", '[');
    pthread_mutex_lock(&s->pool.lock);
    for (uint32_t g = 0; g < TERN_POOL_GROUPS && s->pool.views[g].n_blocks; g++)
        put_view(&s->pool.views[g], o);
    pthread_mutex_unlock(&s->pool.lock);
    tern_json_end(o, ']');
    tern_json_end(o, '}');
    tern_out_flush(o);
    tern_http_end(x);
}
