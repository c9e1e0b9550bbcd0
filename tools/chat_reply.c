#include "tools/chat_reply.h"

#include "platform/os/host.h"

#include <string.h>

bool tern_chat_reply_open(struct tern_chat_reply *r, const tern_reply_options *options,
                          struct tern_chat_screen *screen)
{
    memset(r, 0, sizeof *r);
    r->screen = screen;
    tern_out_open(&r->raw, -1);
    tern_out_open(&r->content, -1);
    tern_out_open(&r->reasoning, -1);
    r->memory = tern_os_map(TERN_REPLY_BYTES, 64);
    return r->memory.data && tern_reply_init(r->memory, options, &r->reader, NULL) == TERN_OK;
}

void tern_chat_reply_close(struct tern_chat_reply *r)
{
    tern_out_free(&r->raw);
    tern_out_free(&r->content);
    tern_out_free(&r->reasoning);
    tern_os_unmap(r->memory);
    memset(r, 0, sizeof *r);
}

static void show(struct tern_chat_reply *r, enum tern_chat_part part, const char *text)
{
    tern_chat_screen_text(r->screen, part, (tern_text){text, strlen(text)});
}

/* The text of a call goes into the message as it was generated: who reads the conversation later,
 * a template too, then need not wait for a result that never comes. */
static void keep_call(struct tern_chat_reply *r, const tern_part *p)
{
    const size_t end = p->at < r->raw.n ? (size_t)p->at : r->raw.n;
    if (r->content.n > 0)
        tern_out_put(&r->content, "\n", 1);
    if (r->call_at < end)
        tern_out_put(&r->content, r->raw.grown + r->call_at, end - (size_t)r->call_at);
}

static void take(struct tern_chat_reply *r, const tern_part *p)
{
    switch (p->kind) {
    case TERN_PART_TEXT:
        tern_out_put(&r->content, p->text.data, p->text.size);
        tern_chat_screen_text(r->screen, TERN_CHAT_ANSWER, p->text);
        break;
    case TERN_PART_REASONING:
        tern_out_put(&r->reasoning, p->text.data, p->text.size);
        tern_chat_screen_text(r->screen, TERN_CHAT_REASONING, p->text);
        break;
    case TERN_PART_CALL:
        r->call_at = p->at;
        show(r, TERN_CHAT_CALL, "[call of ");
        tern_chat_screen_text(r->screen, TERN_CHAT_CALL, p->text);
        show(r, TERN_CHAT_CALL, ": ");
        break;
    case TERN_PART_ARGUMENTS:
        tern_chat_screen_text(r->screen, TERN_CHAT_CALL, p->text);
        break;
    case TERN_PART_CALL_END:
        show(r, TERN_CHAT_CALL, p->whole ? "]\n" : " ... cut]\n");
        keep_call(r, p);
        break;
    }
}

void tern_chat_reply_add(struct tern_chat_reply *r, tern_text text, bool last)
{
    tern_part part;
    tern_out_put(&r->raw, text.data, text.size);
    tern_reply_push(r->reader, text, last);
    while (tern_reply_next(r->reader, &part))
        take(r, &part);
}

json_t *tern_chat_reply_message(const struct tern_chat_reply *r)
{
    json_t *message = json_pack("{s:s, s:s%}", "role", "assistant", "content",
                                r->content.n ? r->content.grown : "", r->content.n);
    if (message && r->reasoning.n > 0)
        json_object_set_new(message, "reasoning_content",
                            json_stringn(r->reasoning.grown, r->reasoning.n));
    return message;
}
