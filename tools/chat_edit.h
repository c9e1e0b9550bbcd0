/* chat_edit.h: a line editor with a history, over libedit; chat_edit_none.c is of builds that
 * have none.
 *
 * A pasted text comes as one line that holds line feeds (the terminal brackets it), and Alt-Enter
 * puts one in. The history lasts as long as the program, or is kept in the file that the
 * environment names: TERN_HISTORY. */
#ifndef TERN_CHAT_EDIT_H
#define TERN_CHAT_EDIT_H

#include "tools/chat_input.h"

/* NULL: there is none in this build, or the terminal does not take one. */
struct tern_chat_editor *tern_chat_edit_open(bool colour);
enum tern_chat_got tern_chat_edit_line(struct tern_chat_editor *e, bool more,
                                       struct tern_out *line);
void tern_chat_edit_remember(struct tern_chat_editor *e, tern_text message);
void tern_chat_edit_close(struct tern_chat_editor *e);

#endif
