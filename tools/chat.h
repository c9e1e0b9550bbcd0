/* chat.h: a conversation in the terminal: what its parts share.
 *
 *   cmd_chat       opens the model, reads lines, ends
 *   chat_commands  what a line with a slash does
 *   chat_turn      one answer: what is dropped, fed, generated
 *   chat_reply     what is generated, as it is shown and as it is kept
 *   chat_file      conversations in files */
#ifndef TERN_CHAT_H
#define TERN_CHAT_H

#include "tools/chat_input.h"
#include "tools/chat_known.h"
#include "tools/chat_line.h"
#include "tools/chat_prompt.h"
#include "tools/chat_screen.h"
#include "tools/chat_talk.h"
#include "tools/reply_plan.h"
#include "tools/session.h"

/* One answer, for the line of figures. */
struct tern_chat_figures {
    size_t n_prompt, n_cached, n_generated, n_held;
    uint64_t fed_ns, first_ns, done_ns;
    tern_stop stop;
};

struct tern_chat {
    struct tern_session *session;
    struct tern_settings settings; /* as /set leaves them */
    struct tern_chat_template template;
    struct tern_reply_plan plan;   /* how answers are generated and read */
    struct tern_chat_talk talk;
    struct tern_chat_known known;
    struct tern_chat_screen screen;
    struct tern_chat_input input;
    struct tern_chat_lines lines;
    struct tern_chat_figures figures;
    char stop_bytes[1024];         /* of stop strings that /set gave */
    size_t n_stop_bytes;
    tern_seq seq;
    uint64_t stream;               /* of random numbers: another try has another one */
    bool failed;                   /* something was refused */
    bool broken;                   /* the engine is */
    bool ended;
};

/* --- chat_turn --- */

/* Answers the last message of the conversation, which is a user's. On false nothing is kept of
 * it, and the line that says why has been shown. */
bool tern_chat_answer(struct tern_chat *c);
/* What the context holds: tokens of the whole conversation as it would be given now. */
bool tern_chat_count(struct tern_chat *c, size_t *n, char line[TERN_ARGS_LINE]);
/* To be called when the settings are others. False: line says what is wrong. */
bool tern_chat_make_plan(struct tern_chat *c, char line[TERN_ARGS_LINE]);
tern_seq_options tern_chat_options(const struct tern_chat *c, tern_text stops[TERN_MAX_STOPS]);
void tern_chat_show_figures(struct tern_chat *c);

/* --- chat_commands --- */

void tern_chat_do(struct tern_chat *c, struct tern_chat_word word);
/* Says a line, and that something was refused. */
void tern_chat_refuse(struct tern_chat *c, const char *line);

/* --- chat_file --- */

bool tern_chat_save(struct tern_chat *c, const char *path, char line[TERN_ARGS_LINE]);
/* given: what the command line gave wins over the file's settings. */
bool tern_chat_load(struct tern_chat *c, const char *path, bool given,
                    char line[TERN_ARGS_LINE]);

/* The line that says what a file brought. */
void tern_chat_say_restored(struct tern_chat *c, const char *path);

#endif
