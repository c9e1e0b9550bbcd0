/* chat_reply.h: an answer as it comes: shown part by part, and kept as a message. */
#ifndef TERN_CHAT_REPLY_H
#define TERN_CHAT_REPLY_H

#include "tools/chat_screen.h"

#include <jansson.h>

struct tern_chat_reply {
    struct tern_chat_screen *screen;
    tern_reply *reader;
    tern_memory memory;
    struct tern_out raw;               /* all of it, as it was generated */
    struct tern_out content, reasoning;
    bool calls;                        /* there were some: from calls_at on raw is the content */
    size_t calls_at;
};

bool tern_chat_reply_open(struct tern_chat_reply *r, const tern_reply_options *options,
                          struct tern_chat_screen *screen);
void tern_chat_reply_add(struct tern_chat_reply *r, tern_text text, bool last);
/* The message; calls are text in it, since nobody answers them. NULL: no memory. */
json_t *tern_chat_reply_message(const struct tern_chat_reply *r);
void tern_chat_reply_close(struct tern_chat_reply *r);

#endif
