/* serve_messages.h: the conversation of a request: checked, and rendered. */
#ifndef TERN_SERVE_MESSAGES_H
#define TERN_SERVE_MESSAGES_H

#include "tools/serve/serve.h"

/* Whether `messages` and `tools` are what they should be; *tools: the list, NULL where it is empty
 * or not there. False: answered with an error. */
bool tern_messages_check(struct tern_call *c, json_t **tools);
/* By the model's chat template; variables beside those of the request: an object, or NULL. */
bool tern_messages_render(struct tern_call *c, json_t *tools, json_t *variables,
                          struct tern_chat_prompt *out);

#endif
