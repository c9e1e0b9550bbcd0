/* serve_messages.h: the conversation of a request: checked, and rendered. */
#ifndef TERN_SERVE_MESSAGES_H
#define TERN_SERVE_MESSAGES_H

#include "tools/serve/serve.h"

/* `messages`, `tools` and what else concerns the template, by the model's chat template. False:
 * answered with an error. */
bool tern_messages_render(struct tern_call *c, struct tern_chat_prompt *out);

#endif
