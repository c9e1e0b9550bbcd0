/* chat_adapt.h: messages that a template may not take as OpenAI's clients send them, changed
 * step by step to ones that it takes. Texts are put together in memory that grows, and become
 * JSON once; false: there was no memory for one. */
#ifndef TERN_CHAT_ADAPT_H
#define TERN_CHAT_ADAPT_H

#include <jansson.h>
#include <stdbool.h>

/* Arguments of all tool calls: texts to what they spell, or objects to text again. */
void tern_chat_turn_arguments(json_t *messages, bool to_objects);
/* Whether a message's content is a list of parts; and all such lists made one text each. */
bool tern_chat_has_parts(const json_t *messages);
bool tern_chat_join_parts(json_t *messages);
/* The role developer becomes system. */
void tern_chat_rename_developer(json_t *messages);
/* The tools, one JSON object a line, and how to call one, at the end of the system message. */
bool tern_chat_describe_tools(json_t *messages, const json_t *tools);
/* Calls of tools as text behind the content, as tern_chat_describe_tools asks for them. */
bool tern_chat_write_calls(json_t *messages);
/* Content that is not there becomes an empty one; whether there was such. */
bool tern_chat_fill_content(json_t *messages);

#endif
