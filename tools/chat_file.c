/* chat_file.c: a conversation in a file: the sequence as tern_saved_write has it, and as its note
 * the messages, the settings, and the text of the tokens, so that the first turn after loading
 * computes no more than it would have done. */
#include "tools/chat.h"
#include "tools/chat_settings.h"
#include "tools/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "tern chat 1";

/* --- what is known of the tokens --- */

static json_t *known_json(const struct tern_chat_known *k)
{
    json_t *whose = json_array(), *marks = json_array();
    for (size_t i = 0, from = 0; i < k->whose.n; i++)
        if (i + 1 == k->whose.n || k->whose.grown[i + 1] != k->whose.grown[i]) {
            json_array_append_new(whose, json_pack("[I, i]", (json_int_t)(i + 1 - from),
                                                   k->whose.grown[i]));
            from = i + 1;
        }
    for (size_t i = 0; i < k->n_marks; i++)
        json_array_append_new(marks, json_pack("[I, I]", (json_int_t)k->marks[i].bytes,
                                               (json_int_t)k->marks[i].tokens));
    return json_pack("{s:o, s:o, s:o*}", "whose", whose, "marks", marks, "text",
                     json_stringn(k->text.grown ? k->text.grown : "", k->text.n));
}

static bool take_whose(struct tern_chat_known *k, const json_t *whose)
{
    size_t i;
    const json_t *run;
    json_array_foreach(whose, i, run) {
        const json_int_t n = json_integer_value(json_array_get(run, 0));
        const json_int_t kind = json_integer_value(json_array_get(run, 1));
        if (n < 0 || kind < TERN_CHAT_OF_USER || kind > TERN_CHAT_OF_MODEL ||
            (size_t)n > k->text.n - k->whose.n)
            return false;
        const char byte = (char)kind;
        for (json_int_t j = 0; j < n; j++)
            tern_out_put(&k->whose, &byte, 1);
    }
    return k->whose.n == k->text.n;
}

/* Of a file: what does not fit together is left out, and computed again some day. */
static void take_known(struct tern_chat_known *k, const json_t *known)
{
    size_t i;
    const json_t *mark, *text = json_object_get(known, "text");
    tern_out_put(&k->text, json_string_value(text), json_string_length(text));
    if (!take_whose(k, json_object_get(known, "whose"))) {
        k->text.n = k->whose.n = 0;
        return;
    }
    struct tern_chat_mark last = {0, 0};
    json_array_foreach(json_object_get(known, "marks"), i, mark) {
        const struct tern_chat_mark m = {
            (size_t)json_integer_value(json_array_get(mark, 0)),
            (size_t)json_integer_value(json_array_get(mark, 1)),
        };
        if (m.bytes < last.bytes || m.tokens < last.tokens || m.bytes > k->text.n ||
            m.tokens > k->n || k->n_marks == TERN_CHAT_MARKS)
            return;
        k->marks[k->n_marks++] = last = m;
    }
}

/* --- saving --- */

static char *note_of(const struct tern_chat *c)
{
    json_t *note = json_pack("{s:s, s:O, s:o, s:I, s:o*}", "format", format, "messages",
                             c->talk.messages, "settings", tern_chat_settings_json(&c->settings),
                             "stream", (json_int_t)c->stream, "known", known_json(&c->known));
    char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
    json_decref(note);
    return text;
}

bool tern_chat_save(struct tern_chat *c, const char *path, char line[TERN_ARGS_LINE])
{
    char *note = note_of(c);
    if (note == NULL) {
        snprintf(line, TERN_ARGS_LINE, "conversation: no memory to write it");
        return false;
    }
    const enum tern_kept kept = tern_keep_save(c->session, c->seq, path,
                                               (tern_bytes){note, strlen(note)}, NULL, line);
    free(note);
    return kept == TERN_KEPT_WRITTEN;
}

/* --- loading --- */

static json_t *read_note(const char *path, tern_saved_info *info, char line[TERN_ARGS_LINE])
{
    tern_memory bytes;
    const enum tern_kept kept = tern_keep_read(path, info, &bytes, line);
    if (kept == TERN_KEPT_NONE)
        snprintf(line, TERN_ARGS_LINE, "%.100s: there is no such file", path);
    if (kept != TERN_KEPT_READ)
        return NULL;
    json_t *note = bytes.size ? json_loadb(bytes.data, bytes.size, JSON_ALLOW_NUL, NULL) : NULL;
    const char *of = json_string_value(json_object_get(note, "format"));
    free(bytes.data);
    if (of && strcmp(of, format) == 0)
        return note;
    json_decref(note);
    snprintf(line, TERN_ARGS_LINE, "%.100s: a session, but none of a chat", path);
    return NULL;
}

/* The tokens and all that was computed of them. False: the sequence holds nothing. */
static bool restore(struct tern_chat *c, const tern_saved_info *info, const char *path,
                    char line[TERN_ARGS_LINE])
{
    tern_engine *engine = c->session->engine;
    bool ok = tern_seq_trim(engine, c->seq, 0) == TERN_OK;
    tern_chat_known_clear(&c->known);
    if (!ok)
        snprintf(line, TERN_ARGS_LINE, "%s", tern_session_line(c->session));
    ok = ok && tern_keep_restore(c->session, c->seq, path, NULL, line) == TERN_KEPT_READ;
    if (ok && info->n_tokens > c->known.cap) {
        snprintf(line, TERN_ARGS_LINE, "%.100s: %u tokens, %zu fit the context (-c)", path,
                 info->n_tokens, c->known.cap);
        ok = false;
    }
    ok = ok && tern_keep_tokens(path, info, c->known.ids, line);
    tern_seq_info now = {.n_tokens = 0};
    if (ok && tern_seq_describe(engine, c->seq, &now) == TERN_OK && now.n_tokens == info->n_tokens)
        c->known.n = info->n_tokens;
    else if (tern_seq_trim(engine, c->seq, 0) != TERN_OK)
        c->broken = c->ended = true;
    return ok;
}

static bool take_note(struct tern_chat *c, const json_t *note, bool given,
                      char line[TERN_ARGS_LINE])
{
    static struct tern_settings before;
    static char stops[sizeof c->stop_bytes];
    const size_t n_stop_bytes = c->n_stop_bytes;
    before = c->settings;
    memcpy(stops, c->stop_bytes, sizeof stops);
    if (!tern_chat_settings_take(c, json_object_get(note, "settings"), given, line) ||
        !tern_chat_talk_replace(&c->talk, json_object_get(note, "messages"), line)) {
        c->settings = before;
        memcpy(c->stop_bytes, stops, sizeof stops);
        c->n_stop_bytes = n_stop_bytes;
        return false;
    }
    c->stream = (uint64_t)json_integer_value(json_object_get(note, "stream"));
    take_known(&c->known, json_object_get(note, "known"));
    return true;
}

void tern_chat_say_restored(struct tern_chat *c, const char *path)
{
    const size_t turns = tern_chat_talk_turns(&c->talk);
    tern_chat_screen_say(&c->screen, "tern: %s: %zu turn%s restored", path, turns,
                         turns == 1 ? "" : "s");
}

bool tern_chat_load(struct tern_chat *c, const char *path, bool given, char line[TERN_ARGS_LINE])
{
    tern_saved_info info;
    json_t *note = read_note(path, &info, line);
    bool ok = note && restore(c, &info, path, line);
    if (ok && !take_note(c, note, given, line)) {
        char what[TERN_ARGS_LINE];
        snprintf(what, sizeof what, "%s", line);
        snprintf(line, TERN_ARGS_LINE, "%.100s: %.200s", path, what);
        ok = false;
    }
    json_decref(note);
    return ok;
}
