/* serve_chat.h: what the interfaces of conversations share: a reply that a reader takes apart. */
#ifndef TERN_SERVE_CHAT_H
#define TERN_SERVE_CHAT_H

#include "tools/serve/serve.h"

/* A choice's own. */
struct tern_chat {
    tern_reply *reader;
    bool spoke;          /* its first piece was sent */
    uint32_t n_calls;
};

/* From messages, tools and all that the fields of chat ask for to a job of this kind; max as in
 * tern_request_read. */
bool tern_chat_prepare_as(struct tern_call *c, const struct tern_job_kind *kind, int64_t max);

#endif
