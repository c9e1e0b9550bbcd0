/* serve_announce.c: what is said to who started a server: how it is, where it is, and what may not
 * be as they thought. */
#include "tools/serve/serve.h"
#include "tools/serve/serve_plan.h"

#include <stdio.h>
#include <string.h>

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

/* What the context is, where that may not be what was thought. */
static void announce_context(const struct tern_server *s)
{
    const uint32_t n_ctx = s->session.plan.limits.n_ctx, trained = s->session.info.n_ctx_train;
    const uint32_t usual = tern_serve_limits(s->settings, s->session.model).n_ctx;
    if (n_ctx < usual)
        fprintf(stderr, "tern: context %u, not %u: no more fits into the memory that is free; -c, "
                        "-np and -ctk divide it otherwise\n", n_ctx, usual);
    if (trained && n_ctx > trained)
        fprintf(stderr, "tern: WARNING: context %u, and the model was made for %u: what is longer "
                        "it may not follow\n", n_ctx, trained);
}

void tern_serve_announce(const struct tern_server *s, uint16_t port)
{
    char before[64];
    const bool v6 = strchr(s->settings->host, ':') != NULL;
    snprintf(before, sizeof before, "%u sequences", s->session.plan.limits.n_seqs);
    tern_session_print_limits(&s->session, before);
    tern_session_print_memory(&s->session);
    announce_context(s);
    fprintf(stderr, "tern: %.100s at http://%s%s%s:%u, %u requests may wait\n", s->name,
            v6 ? "[" : "", s->settings->host, v6 ? "]" : "", port,
            s->n_jobs - s->session.plan.limits.n_seqs);
    if (s->n_keys == 0 && !is_loopback(s->settings->host))
        fprintf(stderr, "tern: WARNING: %s can be reached by others, and there is no key: whoever "
                        "reaches it can use it (--api-key)\n", s->settings->host);
}
