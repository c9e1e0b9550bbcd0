/* serve_infill.c: text between two others: /infill as llama-server has it, and the suffix of
 * /v1/completions.
 *
 * Models that learned this have three control tokens, of what stands before, behind, and of the
 * place between. Their spelling differs; a model has a spelling if each of the three is one token
 * of its vocabulary. What the texts spell never becomes such a token. */
#include "tools/serve/endpoints.h"

#include "platform/os/host.h"
#include "tools/ids.h"

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

static bool one_token(struct tern_call *c, const char *spelling, tern_token *out)
{
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of(c->server->session.model, (tern_text){spelling, strlen(spelling)},
                     TERN_TOKENIZE_SPECIAL | TERN_TOKENIZE_NO_BOS, &ids, &err))
        return false;
    const bool one = ids.n == 1;
    *out = ids.at[0];
    tern_ids_free(&ids);
    return one;
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

/* The marks and the two texts, in the order that models were trained on. */
static bool keep(struct tern_call *c, uint32_t i, const struct marks *m,
                 const struct tern_ids *before, const struct tern_ids *behind)
{
    tern_memory memory = tern_os_map((before->n + behind->n + 3) * sizeof(tern_token), 0);
    tern_token *at = memory.data;
    if (!at)
        return false;
    at[0] = m->before;
    memcpy(at + 1, before->at, before->n * sizeof *at);
    at[1 + before->n] = m->behind;
    memcpy(at + 2 + before->n, behind->at, behind->n * sizeof *at);
    at[2 + before->n + behind->n] = m->between;
    const bool ok = tern_prompts_keep(c, i, at, before->n + behind->n + 3);
    tern_os_unmap(memory);
    return ok;
}

bool tern_infill_prompt(struct tern_call *c, uint32_t i, tern_text before, tern_text behind)
{
    struct marks m;
    struct tern_ids head, tail = {.n = 0};
    tern_error err;
    const char *field = c->param ? c->param : "suffix";
    const tern_model *model = c->server->session.model;
    if (!find_marks(c, &m))
        return tern_call_fail(c, 400, field, NULL, "%s: this model has no tokens for the middle "
                              "of a text", field);
    const bool ok = tern_ids_of(model, before, TERN_TOKENIZE_NO_BOS, &head, &err) &&
                    tern_ids_of(model, behind, TERN_TOKENIZE_NO_BOS, &tail, &err) &&
                    keep(c, i, &m, &head, &tail);
    tern_ids_free(&head);
    tern_ids_free(&tail);
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
