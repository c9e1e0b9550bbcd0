/* serve_infill.c: text between two others: /infill as llama-server has it, and the suffix of
 * /v1/completions.
 *
 * Models that learned this have three control tokens, of what stands before, behind, and of the
 * place between. Their spelling differs; a model has a spelling if each of the three is one token
 * of its vocabulary. What the texts spell never becomes such a token. */
#include "tools/serve/endpoints.h"

#include "platform/os/host.h"

#include <string.h>

struct marks { tern_token before, behind, between; };

static const char *const spellings[][3] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
    {"<PRE>", "<SUF>", "<MID>"},
};

/* The ids of a text; n: at most, and how many. */
static bool encode(struct tern_call *c, tern_text text, uint32_t flags, tern_token *out,
                   size_t *n)
{
    const tern_model *model = c->server->session.model;
    const size_t cap = *n;
    tern_memory scratch = tern_os_map(tern_tokenize_scratch(model, text.size) + 64, 64);
    const bool ok = scratch.data && tern_tokenize(model, text, flags, scratch, out, cap, n,
                                                  NULL) == TERN_OK;
    tern_os_unmap(scratch);
    return ok;
}

static bool one_token(struct tern_call *c, const char *spelling, tern_token *out)
{
    tern_token ids[64];
    size_t n = 64;
    const uint32_t flags = TERN_TOKENIZE_SPECIAL | TERN_TOKENIZE_NO_BOS;
    if (!encode(c, (tern_text){spelling, strlen(spelling)}, flags, ids, &n) || n != 1)
        return false;
    *out = ids[0];
    return true;
}

static bool find_marks(struct tern_call *c, struct marks *m)
{
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        if (one_token(c, spellings[i][0], &m->before) &&
            one_token(c, spellings[i][1], &m->behind) &&
            one_token(c, spellings[i][2], &m->between))
            return true;
    return false;
}

bool tern_infill_prompt(struct tern_call *c, uint32_t i, tern_text before, tern_text behind)
{
    struct marks m;
    const char *field = c->param ? c->param : "suffix";
    const tern_model *model = c->server->session.model;
    const size_t cap = tern_tokenize_most(model, before.size) +
                       tern_tokenize_most(model, behind.size) + 4;
    if (!find_marks(c, &m))
        return tern_call_fail(c, 400, field, NULL, "%s: this model has no tokens for the middle "
                              "of a text", field);
    tern_memory ids = tern_os_map(cap * sizeof(tern_token), 0);
    tern_token *at = ids.data;
    size_t n = 0, more;
    bool ok = at != NULL;
    if (ok) {
        at[n++] = m.before;
        more = cap - n;
        ok = encode(c, before, TERN_TOKENIZE_NO_BOS, at + n, &more);
        n += ok ? more : 0;
    }
    if (ok) {
        at[n++] = m.behind;
        more = cap - n;
        ok = encode(c, behind, TERN_TOKENIZE_NO_BOS, at + n, &more);
        n += ok ? more : 0;
    }
    if (ok) {
        at[n++] = m.between;
        ok = tern_prompts_keep(c, i, at, n);
    }
    tern_os_unmap(ids);
    return ok || tern_call_fail(c, 413, field, NULL, "%s: no memory for so long a text", field);
}

/* --- /infill --- */

enum { CONTENT }; /* of an answer's parts */

static void write_rest(struct tern_choice *c, struct tern_out *o)
{
    const struct tern_job_prompt *p = &c->job->prompts[0];
    const bool stopped = c->finish != NULL;
    tern_json_bool(o, "stop", stopped);
    if (stopped) {
        tern_json_text(o, "stop_type", strcmp(c->finish, "length") ? (tern_text){"eos", 3}
                                                                   : (tern_text){"limit", 5});
        tern_json_u64(o, "tokens_predicted", c->n_generated);
        tern_json_u64(o, "tokens_evaluated", p->n);
        tern_json_u64(o, "tokens_cached", p->n_cached);
        tern_json_text(o, "model", (tern_text){c->job->server->name,
                                               strlen(c->job->server->name)});
    }
    tern_json_end(o, '}');
}

static void on_event(struct tern_choice *c, const tern_event *e, struct tern_out *o)
{
    if (!c->job->stream) {
        tern_json_inside(tern_part_begin(c, CONTENT), e->text);
        tern_part_end(c);
        return;
    }
    tern_event_begin(c->job, o);
    tern_json_begin(o, NULL, '{');
    tern_json_text(o, "content", e->text);
    write_rest(c, o);
    tern_event_end(o);
}

static void on_end(struct tern_job *j, struct tern_out *o)
{
    if (j->stream)
        return;
    tern_write_to(j->x, o);
    tern_json_begin(o, NULL, '{');
    tern_part_write(&j->choices[0], CONTENT, o, "content", "\"\"");
    write_rest(&j->choices[0], o);
    tern_out_flush(o);
}

static void on_progress(struct tern_choice *c, const struct tern_progress_made *p,
                        struct tern_out *o)
{
    tern_event_begin(c->job, o);
    tern_json_begin(o, NULL, '{');
    tern_json_text(o, "content", (tern_text){"", 0});
    tern_json_bool(o, "stop", false);
    tern_write_progress(p, o);
    tern_json_end(o, '}');
    tern_event_end(o);
}

static const struct tern_job_kind infill = {NULL, on_event, on_end, on_progress, NULL};

bool tern_infill_prepare(struct tern_call *c)
{
    const json_t *before = json_object_get(c->body, "input_prefix");
    const json_t *behind = json_object_get(c->body, "input_suffix");
    json_object_del(c->body, "n");
    c->param = json_is_string(before) ? "input_suffix" : "input_prefix";
    if (!json_is_string(before) || !json_is_string(behind))
        return tern_call_fail(c, 400, c->param, NULL, "%s: a text needed", c->param);
    c->job->kind = &infill;
    return tern_request_read(c, -1) && tern_prompts_open(c, 1) &&
           tern_infill_prompt(c, 0, (tern_text){json_string_value(before),
                                                json_string_length(before)},
                              (tern_text){json_string_value(behind),
                                          json_string_length(behind)}) &&
           tern_request_constraint(c);
}
