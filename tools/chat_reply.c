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

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* From the first call on the message is what was generated, with the white space before it: who
 * reads the conversation later, a template too, then need not wait for a result that never comes,
 * and the next turn finds its tokens again. */
static void begin_calls(struct tern_chat_reply *r, uint64_t at)
{
    size_t from = at < r->raw.n ? (size_t)at : r->raw.n;
    if (r->content.n > 0 && !is_space(r->content.grown[r->content.n - 1]))
        while (from > 0 && is_space(r->raw.grown[from - 1]))
            from--;
    r->calls_at = from;
    r->calls = true;
}

static void end_calls(struct tern_chat_reply *r)
{
    size_t end = r->raw.n;
    while (end > r->calls_at && is_space(r->raw.grown[end - 1]))
        end--;
    tern_out_put(&r->content, r->raw.grown + r->calls_at, end - r->calls_at);
}

static void take(struct tern_chat_reply *r, const tern_part *p)
{
    switch (p->kind) {
    case TERN_PART_TEXT:
        if (!r->calls)
            tern_out_put(&r->content, p->text.data, p->text.size);
        tern_chat_screen_text(r->screen, TERN_CHAT_ANSWER, p->text);
        break;
    case TERN_PART_REASONING:
        tern_out_put(&r->reasoning, p->text.data, p->text.size);
        tern_chat_screen_text(r->screen, TERN_CHAT_REASONING, p->text);
        break;
    case TERN_PART_CALL:
        if (!r->calls)
            begin_calls(r, p->at);
        show(r, TERN_CHAT_CALL, "[call of ");
        tern_chat_screen_text(r->screen, TERN_CHAT_CALL, p->text);
        show(r, TERN_CHAT_CALL, ": ");
        break;
    case TERN_PART_ARGUMENTS:
        tern_chat_screen_text(r->screen, TERN_CHAT_CALL, p->text);
        break;
    case TERN_PART_CALL_END:
        show(r, TERN_CHAT_CALL, p->whole ? "]\n" : " ... cut]\n");
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
    if (last && r->calls)
        end_calls(r);
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
