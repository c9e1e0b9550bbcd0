/* chat_edit_none.c: lines as they come, in a build without libedit. */
#include "tools/chat_edit.h"

struct tern_chat_editor *tern_chat_edit_open(bool colour)
{
    (void)colour;
    return NULL;
}

enum tern_chat_got tern_chat_edit_line(struct tern_chat_editor *e, bool more,
                                       struct tern_out *line)
{
    (void)e;
    (void)more;
    (void)line;
    return TERN_CHAT_GOT_END;
}

void tern_chat_edit_remember(struct tern_chat_editor *e, tern_text message)
{
    (void)e;
    (void)message;
}

void tern_chat_edit_close(struct tern_chat_editor *e)
{
    (void)e;
}
