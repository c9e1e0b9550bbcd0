/* chat_input.h: the lines that a person types, or that come through a pipe.
 *
 * On a terminal lines are edited and remembered (chat_edit.h), where this build has an editor and
 * the terminal takes one; else they are read as they come. */
#ifndef TERN_CHAT_INPUT_H
#define TERN_CHAT_INPUT_H

#include "tools/out.h"

enum tern_chat_got {
    TERN_CHAT_GOT_LINE,
    TERN_CHAT_GOT_END,
    TERN_CHAT_GOT_INTERRUPT, /* what was typed of the line is gone */
    TERN_CHAT_GOT_ERROR,     /* errno says why */
};

struct tern_chat_editor;
struct tern_chat_input {
    bool terminal;                   /* somebody types */
    struct tern_chat_editor *editor; /* NULL: lines are read as they come */
    struct tern_out line;            /* the last one, without its end */
    size_t lost;                     /* bytes of it beyond what a message may have */
    size_t at, n;
    char bytes[4096];
};

/* colour: the prompt may have some. edits: an editor is wanted. */
void tern_chat_input_open(struct tern_chat_input *in, bool edits, bool colour);
/* more: the line goes on with a message. */
enum tern_chat_got tern_chat_input_line(struct tern_chat_input *in, bool more);
/* A message goes into the history. */
void tern_chat_input_remember(struct tern_chat_input *in, tern_text message);
void tern_chat_input_close(struct tern_chat_input *in);

#endif
