/* serve_responses.h: a request of /v1/responses as one of a chat. */
#ifndef TERN_SERVE_RESPONSES_H
#define TERN_SERVE_RESPONSES_H

#include "tools/serve/serve.h"

/* Gives the request's body the fields that a chat has: messages, tools, response_format. False:
 * answered with an error. */
bool tern_responses_as_chat(struct tern_call *c);

#endif
