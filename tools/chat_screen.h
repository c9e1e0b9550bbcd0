/* chat_screen.h: what a person sees of a chat.
 *
 * Answers go to standard output. Reasoning and what the program itself says go there, too, where
 * it is a terminal, dimmed if it has colours; else to standard error, so that a pipe is given
 * answers alone. Colours need a terminal that is not dumb, and NO_COLOR unset or empty. Control
 * characters of a model do not reach a terminal. */
#ifndef TERN_CHAT_SCREEN_H
#define TERN_CHAT_SCREEN_H

#include "tools/out.h"

enum tern_chat_part { TERN_CHAT_NO_PART, TERN_CHAT_ANSWER, TERN_CHAT_REASONING, TERN_CHAT_CALL };

struct tern_chat_screen {
    struct tern_out out, err;
    bool terminal, colour;
    enum tern_chat_part part; /* what is being written */
    bool mid_line;            /* of the part */
    bool any, answered;       /* of any part, or of an answer, something has been written */
};

void tern_chat_screen_open(struct tern_chat_screen *s);
/* The next piece of an answer, whole characters; what is of another part than the last piece
 * begins on a line of its own. */
void tern_chat_screen_text(struct tern_chat_screen *s, enum tern_chat_part part, tern_text text);
/* The answer is over: the line is, too; in a pipe an empty answer is an empty line. */
void tern_chat_screen_end(struct tern_chat_screen *s);
/* On a terminal, a line between an answer and what comes next. */
void tern_chat_screen_gap(struct tern_chat_screen *s);
/* A line of the program's own, without its end. */
void tern_chat_screen_say(struct tern_chat_screen *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of what was asked for by a command: always to standard output. */
void tern_chat_screen_tell(struct tern_chat_screen *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tern_chat_screen_tell_text(struct tern_chat_screen *s, tern_text text);

#endif
