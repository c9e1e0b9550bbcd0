/* chat_talk.h: the messages of a conversation, as OpenAI's clients write them: a system message
 * or none, then turns. A turn is a user's message and all that follows it up to the next one. */
#ifndef TERN_CHAT_TALK_H
#define TERN_CHAT_TALK_H

#include "tools/args.h"

#include <jansson.h>

struct tern_chat_talk { json_t *messages; };

bool tern_chat_talk_open(struct tern_chat_talk *t);
void tern_chat_talk_close(struct tern_chat_talk *t);
/* Takes the place of all messages, if it is a list of such; else line says what it is. */
bool tern_chat_talk_replace(struct tern_chat_talk *t, json_t *messages,
                            char line[TERN_ARGS_LINE]);

/* text.data NULL takes it away. */
bool tern_chat_talk_set_system(struct tern_chat_talk *t, tern_text text);
const char *tern_chat_talk_system(const struct tern_chat_talk *t); /* NULL: there is none */
bool tern_chat_talk_add(struct tern_chat_talk *t, const char *role, tern_text content);
/* Takes the message over. */
bool tern_chat_talk_add_json(struct tern_chat_talk *t, json_t *message);

size_t tern_chat_talk_turns(const struct tern_chat_talk *t);
/* The messages without the n oldest turns: a list of its own of the same messages. */
json_t *tern_chat_talk_without(const struct tern_chat_talk *t, size_t n);
void tern_chat_talk_drop(struct tern_chat_talk *t, size_t n);
/* Takes the last turn away, or (answer) what follows its user's message. False: there is none. */
bool tern_chat_talk_undo(struct tern_chat_talk *t, bool answer);
const char *tern_chat_talk_last_user(const struct tern_chat_talk *t);

/* How many of the oldest turns must go, so that what is left has at most `most` tokens by
 * count(self, dropped), which never grows with dropped and answers SIZE_MAX where it fails. The
 * last turn stays; *n is what is left then. */
size_t tern_chat_talk_fit(size_t turns, size_t most, size_t (*count)(void *self, size_t dropped),
                          void *self, size_t *n);

#endif
