/* chat_prompt.h: messages as OpenAI's clients send them to what a model is given.
 *
 * Arguments of tool calls come as text and are objects to a template. What else a template may
 * not take as it is sent is only changed where the caller asks for it (adapt): arguments it
 * raises on are given as text, lists of text parts it does not go through become one text, the
 * role developer that it does not know becomes system, tools that it does not know are described
 * in the system message and calls of them written out, and content that it misses is empty. */
#ifndef TERN_CHAT_PROMPT_H
#define TERN_CHAT_PROMPT_H

#include "tools/args.h"
#include "tools/out.h"

#include <jansson.h>

enum { TERN_CHAT_VARIABLES = 59 }; /* further names that a template may be given */

struct tern_chat_template {
    tern_memory source_memory, memory;
    tern_template *compiled;
    tern_text source;
    tern_text bos, eos; /* as the vocabulary spells them */
    bool adds_bos;
};

struct tern_chat_request {
    json_t *messages;  /* a list; tool calls' arguments may be changed from text to objects */
    json_t *tools;     /* a list, or NULL */
    json_t *variables; /* an object of further names for the template, or NULL */
    bool generation;   /* add_generation_prompt */
    bool adapt;
};

struct tern_chat_prompt {
    tern_memory scratch;
    tern_rendered rendered;
    bool goes_on, thinks; /* it ends in the assistant's message, and inside of its reasoning */
};

/* The template of a file, a built-in name, or (NULL) the model's own. */
bool tern_chat_template_open(struct tern_chat_template *t, const tern_model *model,
                             const char *file_or_name, char line[TERN_ARGS_LINE]);
void tern_chat_template_close(struct tern_chat_template *t);
bool tern_chat_render(const struct tern_chat_template *t, struct tern_chat_request *r,
                      struct tern_chat_prompt *out, char line[TERN_ARGS_LINE]);
/* The flags that its tokens are made with: no second BOS before one that the template writes. */
uint32_t tern_chat_flags(const struct tern_chat_template *t, const struct tern_chat_prompt *p);
/* chat_continue.c: whether a conversation ends with a message of the assistant's, without calls,
 * that an answer can go on with; and what it holds behind the prompt of the messages before it. */
bool tern_chat_can_go_on(const json_t *messages);
bool tern_chat_go_on(struct tern_chat_prompt *prompt, const json_t *message,
                     const tern_reply_options *tags, char line[TERN_ARGS_LINE]);
void tern_chat_prompt_free(struct tern_chat_prompt *p);
/* What --variables gives; NULL: it was not given. */
bool tern_chat_check_variables(const char *text, char line[TERN_ARGS_LINE]);
/* JSON of a file, - being standard input; kind is "list" or "object". NULL: line says why. */
json_t *tern_chat_read_json(const char *file, const char *kind, char line[TERN_ARGS_LINE]);

#endif
