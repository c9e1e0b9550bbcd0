/* answer.h: one completion: its options, its events, and what is written of it. */
#ifndef TERN_ANSWER_H
#define TERN_ANSWER_H

#include "tools/out.h"
#include "tools/prompt.h"
#include "tools/session.h"

struct tern_answer {
    const struct tern_session *session;
    const struct tern_settings *settings;
    struct tern_prompt prompt;
    struct tern_out *out;        /* where text or JSON goes */
    struct tern_out ids, text;   /* kept for JSON */
    tern_text stops[TERN_MAX_STOPS];
    uint64_t fed_ns, first_ns, done_ns;
    uint64_t seed;
    uint32_t n_generated, n_cached, n_prompt_rows;
    bool in_prompt_list, in_list; /* the JSON list that is open */
    tern_stop stop;
    char error[256];
    bool done;
};

/* seed is used where settings hold none. The answer takes the prompt over. */
void tern_answer_open(struct tern_answer *a, const struct tern_session *session,
                      const struct tern_settings *settings, const struct tern_prompt *prompt,
                      uint64_t seed);
tern_seq_options tern_answer_options(struct tern_answer *a, uint64_t stream);
/* Called when the prompt has been fed: time starts, and with JSON the object. */
void tern_answer_begin(struct tern_answer *a, struct tern_out *out);
void tern_answer_event(struct tern_answer *a, const tern_event *e);
/* Writes the rest of the JSON object, without a line feed. */
void tern_answer_json(struct tern_answer *a);
/* Lines for a person, to standard error. */
void tern_answer_statistics(const struct tern_answer *a);
void tern_answer_close(struct tern_answer *a);

#endif
