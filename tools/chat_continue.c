/* chat_continue.c: a prompt that ends in the middle of the assistant's message.
 *
 * The messages before it are rendered as for a new answer, and what it holds is put behind: what
 * was thought, the tag that ends thinking, the text. So it needs nothing of the template, which
 * may trim a message or close it in ways of its own. Its words stay a user's: they never become
 * control tokens; the tags are the template's. */
#include "tools/chat_prompt.h"

#include "platform/os/host.h"

#include <string.h>

enum { MOST_PIECES = 8 };
struct pieces { tern_run runs[MOST_PIECES]; size_t n; struct tern_out text; };

static void put(struct pieces *p, tern_text text, bool own)
{
    tern_out_put(&p->text, text.data, text.size);
    if (p->n && p->runs[p->n - 1].own == own)
        p->n--;
    p->runs[p->n++] = (tern_run){p->text.n, own};
}

static void put_word(struct pieces *p, const char *word)
{
    put(p, (tern_text){word, strlen(word)}, true);
}

/* A text, or the texts of a list of parts. */
static void put_content(struct pieces *p, const json_t *content)
{
    size_t i;
    const json_t *part;
    if (json_is_string(content))
        put(p, (tern_text){json_string_value(content), json_string_length(content)}, false);
    json_array_foreach(content, i, part)
        put_content(p, json_object_get(part, "text"));
}

static bool ends_with(tern_text text, tern_text tag)
{
    while (text.size && strchr(" \n\t", text.data[text.size - 1]))
        text.size--;
    return tag.size && text.size >= tag.size &&
           memcmp(text.data + text.size - tag.size, tag.data, tag.size) == 0;
}

/* Whether what was gathered ends inside of the reasoning. */
static bool gather(struct pieces *p, tern_text prompt, const json_t *message,
                   const tern_reply_options *tags)
{
    const json_t *content = json_object_get(message, "content");
    const json_t *thought = json_object_get(message, "reasoning_content");
    const bool has_text = json_string_length(content) || json_array_size(content);
    bool open = tern_reply_thinks(tags, prompt);
    if (!open && json_string_length(thought) && tags->think_open.size && tags->think_close.size &&
        !ends_with(prompt, tags->think_close)) {
        put(p, tags->think_open, true);
        put_word(p, "\n");
        open = true;
    }
    if (open) {
        put_content(p, thought);
        if (!has_text)
            return true;
        put_word(p, json_string_length(thought) ? "\n" : "");
        put(p, tags->think_close, true);
        put_word(p, "\n\n");
    }
    put_content(p, content);
    return false;
}

/* What was rendered, and the pieces behind it, in memory of their own. */
static bool join(struct tern_chat_prompt *to, const struct pieces *p)
{
    const tern_rendered *r = &to->rendered;
    const bool same = r->n_runs && p->n && r->runs[r->n_runs - 1].own == p->runs[0].own;
    const size_t n_before = r->n_runs - same, n_runs = n_before + p->n;
    const size_t text_bytes = r->text.size + p->text.n, runs_bytes = n_runs * sizeof(tern_run);
    tern_memory memory = tern_os_map(runs_bytes + text_bytes + 1, 64);
    if (memory.data == NULL)
        return false;
    tern_run *runs = memory.data;
    char *text = (char *)memory.data + runs_bytes;
    memcpy(runs, r->runs, n_before * sizeof *runs);
    memcpy(text, r->text.data, r->text.size);
    if (p->text.n)
        memcpy(text + r->text.size, p->text.grown, p->text.n);
    for (size_t i = 0; i < p->n; i++)
        runs[n_before + i] = (tern_run){r->text.size + p->runs[i].end, p->runs[i].own};
    tern_os_unmap(to->scratch);
    to->scratch = memory;
    to->rendered = (tern_rendered){{text, text_bytes}, runs, n_runs};
    return true;
}

bool tern_chat_can_go_on(const json_t *messages)
{
    const size_t n = json_array_size(messages);
    const json_t *last = n > 1 ? json_array_get(messages, n - 1) : NULL;
    const char *role = json_string_value(json_object_get(last, "role"));
    return role && strcmp(role, "assistant") == 0 &&
           json_array_size(json_object_get(last, "tool_calls")) == 0;
}

bool tern_chat_go_on(struct tern_chat_prompt *prompt, const json_t *message,
                     const tern_reply_options *tags, char line[TERN_ARGS_LINE])
{
    struct pieces p = {.n = 0};
    tern_out_open(&p.text, -1);
    prompt->goes_on = true;
    prompt->thinks = gather(&p, prompt->rendered.text, message, tags);
    const bool ok = !p.text.error && join(prompt, &p);
    tern_out_free(&p.text);
    if (!ok)
        strcpy(line, "messages: no memory for the one that is continued");
    return ok;
}
