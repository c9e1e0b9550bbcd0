/* serve_plan.h: what a server takes, known from its settings and the model's header. */
#ifndef TERN_SERVE_PLAN_H
#define TERN_SERVE_PLAN_H

#include "tools/args.h"

struct tern_session;
struct tern_server;

/* vLLM's name for the types of K and V, if it is given. False: line says which there are. */
bool tern_serve_kv_types(const struct tern_settings *s, tern_kv_type *k, tern_kv_type *v,
                         char line[TERN_ARGS_LINE]);
/* Whether the pool that is asked for holds the context that is. */
bool tern_serve_pool_fits(const struct tern_settings *s, char line[TERN_ARGS_LINE]);
/* The engine's limits; what was not asked for is the server's default. */
tern_limits tern_serve_limits(const struct tern_settings *s, const tern_model *model);
/* Memory beside the engine: connections, the pool of blocks, jobs, JSON, the two threads. 0: there
 * is no server in this build. */
uint64_t tern_serve_bytes(const struct tern_settings *s, const struct tern_session *session);

/* serve_announce.c, to standard error. */
void tern_serve_announce(const struct tern_server *s, uint16_t port);

/* serve_flags.c: other servers' names. */
extern const struct tern_option tern_serve_other_names[], tern_serve_as_it_is[],
    tern_serve_of_requests[], tern_serve_never[];

/* Plans the session by the limits. A context that was not asked for is one that fits into the
 * memory that is free. */
bool tern_serve_plan(const struct tern_settings *s, struct tern_session *session);

#endif
