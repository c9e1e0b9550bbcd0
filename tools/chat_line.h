/* chat_line.h: what a person typed: lines put together to a message, and commands told from it.
 *
 * A line that ends in a backslash goes on with the next one, and what stands between two lines of
 * three quotation marks is one message, whatever is in it. A message that begins with a slash is
 * a command; two slashes send a text that begins with one. */
#ifndef TERN_CHAT_LINE_H
#define TERN_CHAT_LINE_H

#include "tools/args.h"
#include "tools/out.h"

enum { TERN_CHAT_MOST_BYTES = 1 << 20 }; /* of what is typed or pasted as one message */

struct tern_chat_lines {
    struct tern_out text; /* the message so far, without a last line feed */
    bool open;            /* more lines belong to it */
    bool block;           /* it is between quotation marks */
    bool literal;         /* it was, and is never a command */
    bool any;             /* it has a line, be it an empty one */
    size_t too_many;      /* bytes beyond what a message may have; they are dropped */
};

void tern_chat_lines_start(struct tern_chat_lines *l);
/* One line without its end; true: the message is whole. */
bool tern_chat_lines_add(struct tern_chat_lines *l, tern_text line);
void tern_chat_lines_free(struct tern_chat_lines *l);

enum tern_chat_verb {
    TERN_CHAT_NOTHING, /* blanks alone */
    TERN_CHAT_MESSAGE,
    TERN_CHAT_SYSTEM, TERN_CHAT_SET, TERN_CHAT_SAVE, TERN_CHAT_LOAD, TERN_CHAT_REGEN,
    TERN_CHAT_UNDO, TERN_CHAT_CONTEXT, TERN_CHAT_TOKENS, TERN_CHAT_HELP, TERN_CHAT_QUIT,
    TERN_CHAT_UNKNOWN,
};

struct tern_chat_word {
    enum tern_chat_verb verb;
    tern_text name; /* of a command, with its slash */
    tern_text rest; /* what follows it, without blanks at both ends; or the message */
};

struct tern_chat_word tern_chat_read_word(tern_text text, bool literal);
/* The i-th command as one types it, and what it does; NULL after the last. */
const char *tern_chat_command_at(size_t i, const char **help);
/* Takes the first word away from text. */
tern_text tern_chat_first_word(tern_text *text);

#endif
