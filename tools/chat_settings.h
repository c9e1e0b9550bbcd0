/* chat_settings.h: what of the settings can change between two answers, by name. */
#ifndef TERN_CHAT_SETTINGS_H
#define TERN_CHAT_SETTINGS_H

#include "tools/chat.h"

extern const struct tern_option tern_chat_live_options[]; /* --think --think-budget --stats */

/* "temp 0.5"; False: line says what is wrong. */
bool tern_chat_set(struct tern_chat *c, tern_text name, tern_text value,
                   char line[TERN_ARGS_LINE]);
/* The i-th that can be set, with its value as one would give it; NULL after the last. */
const char *tern_chat_setting_at(const struct tern_settings *s, size_t i, char value[64]);
/* For a file: all of them, and back. given: what the settings hold that is not the default stays,
 * since the command line gave it. */
json_t *tern_chat_settings_json(const struct tern_settings *s);
bool tern_chat_settings_take(struct tern_chat *c, const json_t *settings, bool given,
                             char line[TERN_ARGS_LINE]);
/* What cannot be known from the options' ranges alone; dashes: what names begin with in a line. */
bool tern_chat_check_settings(const struct tern_settings *s, const char *dashes,
                              char line[TERN_ARGS_LINE]);

#endif
