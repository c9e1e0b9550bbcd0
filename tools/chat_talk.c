#include "tools/chat_talk.h"

#include <stdio.h>
#include <string.h>

bool tern_chat_talk_open(struct tern_chat_talk *t)
{
    t->messages = json_array();
    return t->messages != NULL;
}

void tern_chat_talk_close(struct tern_chat_talk *t)
{
    json_decref(t->messages);
    t->messages = NULL;
}

static const char *role_of(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role ? role : "";
}

static bool has_role(const json_t *message, const char *role)
{
    return message && strcmp(role_of(message), role) == 0;
}

bool tern_chat_talk_replace(struct tern_chat_talk *t, json_t *messages, char line[TERN_ARGS_LINE])
{
    size_t i;
    const json_t *message;
    if (!json_is_array(messages)) {
        snprintf(line, TERN_ARGS_LINE, "messages: a list needed");
        return false;
    }
    json_array_foreach(messages, i, message) {
        const bool known = has_role(message, "user") || has_role(message, "assistant") ||
                           has_role(message, "tool") || (i == 0 && has_role(message, "system"));
        if (!known || (has_role(message, "user") &&
                       !json_is_string(json_object_get(message, "content")))) {
            snprintf(line, TERN_ARGS_LINE, "messages: the %zu. has role '%.20s'%s", i + 1,
                     role_of(message), known ? " and no text" : "");
            return false;
        }
    }
    json_decref(t->messages);
    t->messages = json_incref(messages);
    return true;
}

/* --- messages --- */

bool tern_chat_talk_add_json(struct tern_chat_talk *t, json_t *message)
{
    return message && json_array_append_new(t->messages, message) == 0;
}

static json_t *make(const char *role, tern_text content)
{
    return json_pack("{s:s, s:s%}", "role", role, "content", content.data, content.size);
}

bool tern_chat_talk_add(struct tern_chat_talk *t, const char *role, tern_text content)
{
    return tern_chat_talk_add_json(t, make(role, content));
}

static bool has_system(const struct tern_chat_talk *t)
{
    return has_role(json_array_get(t->messages, 0), "system");
}

bool tern_chat_talk_set_system(struct tern_chat_talk *t, tern_text text)
{
    json_t *message = text.data ? make("system", text) : NULL;
    if (text.data && message == NULL)
        return false;
    if (has_system(t))
        json_array_remove(t->messages, 0);
    return message == NULL || json_array_insert_new(t->messages, 0, message) == 0;
}

const char *tern_chat_talk_system(const struct tern_chat_talk *t)
{
    return has_system(t)
               ? json_string_value(json_object_get(json_array_get(t->messages, 0), "content"))
               : NULL;
}

/* --- turns --- */

/* Where the n-th turn begins; the number of messages: there is none. */
static size_t start_of(const struct tern_chat_talk *t, size_t n)
{
    const size_t first = has_system(t) ? 1 : 0, end = json_array_size(t->messages);
    size_t i = first;
    if (n == 0)
        return first;
    for (i = first + 1; i < end; i++)
        if (has_role(json_array_get(t->messages, i), "user") && --n == 0)
            return i;
    return end;
}

size_t tern_chat_talk_turns(const struct tern_chat_talk *t)
{
    size_t n = 0;
    while (start_of(t, n) < json_array_size(t->messages))
        n++;
    return n;
}

json_t *tern_chat_talk_without(const struct tern_chat_talk *t, size_t n)
{
    json_t *list = json_copy(t->messages);
    const size_t first = start_of(t, 0), end = start_of(t, n);
    for (size_t i = first; list && i < end; i++)
        json_array_remove(list, first);
    return list;
}

void tern_chat_talk_drop(struct tern_chat_talk *t, size_t n)
{
    const size_t first = start_of(t, 0), end = start_of(t, n);
    for (size_t i = first; i < end; i++)
        json_array_remove(t->messages, first);
}

bool tern_chat_talk_undo(struct tern_chat_talk *t, bool answer)
{
    const size_t turns = tern_chat_talk_turns(t);
    if (turns == 0)
        return false;
    const size_t from = start_of(t, turns - 1);
    if (answer && !has_role(json_array_get(t->messages, from), "user"))
        return false;
    for (size_t i = json_array_size(t->messages); i-- > from + answer;)
        json_array_remove(t->messages, i);
    return true;
}

const char *tern_chat_talk_last_user(const struct tern_chat_talk *t)
{
    for (size_t i = json_array_size(t->messages); i-- > 0;) {
        const json_t *message = json_array_get(t->messages, i);
        if (has_role(message, "user"))
            return json_string_value(json_object_get(message, "content"));
    }
    return NULL;
}

/* --- what is dropped --- */

size_t tern_chat_talk_fit(size_t turns, size_t most, size_t (*count)(void *self, size_t dropped),
                          void *self, size_t *n)
{
    size_t low = 0, high = turns > 0 ? turns - 1 : 0;
    *n = count(self, 0);
    if (*n <= most || high == 0)
        return 0;
    /* At least low + 1 of them have to go, and high are enough, or all that can. */
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (count(self, middle) <= most)
            high = middle;
        else
            low = middle;
    }
    *n = count(self, high);
    return high;
}
