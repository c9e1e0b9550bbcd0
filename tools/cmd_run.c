/* cmd_run.c: completes one prompt; run_prompts.c does many. */
#include "tools/answer.h"
#include "tools/commands.h"
#include "tools/make_image.h"
#include "tools/interrupt.h"
#include "tools/keep.h"
#include "tools/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern run: %s\n", line);
    return code;
}

static bool take_prompt(const struct tern_session *s, const struct tern_settings *settings,
                        struct tern_prompt *p, char line[TERN_ARGS_LINE])
{
    size_t most = s->plan.limits.n_ctx;
    if (settings->ids) {
        memset(p, 0, sizeof *p);
        return tern_prompt_ids(p, settings->ids, s->info.n_vocab, most, line);
    }
    uint32_t flags = settings->special ? TERN_TOKENIZE_SPECIAL : 0;
    if (!tern_prompt_read(p, settings, s->model, most, line) || !tern_prompt_check_utf8(p, line) ||
        !tern_prompt_encode(p, s->model, flags, most, line))
        return false;
    tern_prompt_free_text(p);
    if (p->n > 0)
        return true;
    snprintf(line, TERN_ARGS_LINE, "prompt: 0 tokens, at least 1 needed; this model has no BOS");
    return false;
}

static void show_prefill(struct tern_session *s, tern_seq seq, const struct tern_answer *a,
                         struct tern_progress *progress)
{
    tern_seq_info info;
    if (a->n_generated == 0 && tern_seq_describe(s->engine, seq, &info) == TERN_OK)
        tern_progress_show(progress, info.n_computed, a->prompt.n);
    else
        tern_progress_end(progress);
}

/* Steps until the sequence is done. False: the engine or standard output failed. */
static bool generate(struct tern_session *s, tern_seq seq, struct tern_answer *a)
{
    enum { EVENTS = 64 };
    tern_event events[EVENTS];
    struct tern_progress progress;
    tern_progress_begin(&progress, "reading the prompt");
    bool cancelled = false;
    while (!a->done) {
        if (!cancelled && (tern_interrupted() || a->out->error)) {
            tern_seq_cancel(s->engine, seq);
            cancelled = true;
        }
        size_t n = 0;
        tern_status status = tern_step(s->engine, events, EVENTS, &n);
        if (n > 0)
            tern_progress_end(&progress);
        for (size_t i = 0; i < n; i++)
            tern_answer_event(a, &events[i]);
        if (status != TERN_OK && n == 0 && !a->done) {
            tern_progress_end(&progress);
            return false;
        }
        show_prefill(s, seq, a, &progress);
    }
    tern_progress_end(&progress);
    return a->out->error == 0;
}

static int finish(const struct tern_session *s, tern_seq seq, struct tern_answer *a)
{
    tern_seq_info info;
    if (tern_seq_describe(s->engine, seq, &info) == TERN_OK)
        a->n_cached = info.n_cached;
    if (a->settings->json) {
        tern_answer_json(a);
        tern_out_put(a->out, "\n", 1);
    } else if (isatty(STDOUT_FILENO)) {
        tern_out_put(a->out, "\n", 1);
    }
    if (!tern_out_flush(a->out)) {
        fprintf(stderr, "tern run: standard output: %s\n", strerror(a->out->error));
        return 1;
    }
    tern_answer_statistics(a);
    if (a->stop == TERN_STOP_ERROR) {
        fprintf(stderr, "tern run: %s\n", a->error);
        return 1;
    }
    return 0;
}

/* What comes with a session that another command wrote would be lost when this one writes it. */
static bool has_note(const char *path, char line[TERN_ARGS_LINE])
{
    tern_memory note = {NULL, 0};
    const bool has = tern_keep_read(path, NULL, &note, line) == TERN_KEPT_READ && note.size > 0;
    if (has)
        snprintf(line, TERN_ARGS_LINE, "%.100s: a conversation's; tern chat goes on with it", path);
    free(note.data);
    return has;
}

/* What a session has is put into the index of prefixes, where the prompt finds it. */
static bool take_session(struct tern_session *s, const char *path, char line[TERN_ARGS_LINE])
{
    tern_seq seq;
    tern_seq_options options = {.max_tokens = 0};
    tern_sampling_default(&options.sampling);
    if (tern_seq_open(s->engine, &options, &seq) != TERN_OK) {
        snprintf(line, TERN_ARGS_LINE, "%s", tern_session_line(s));
        return false;
    }
    const enum tern_kept kept = tern_keep_restore(s, seq, path, NULL, line);
    tern_seq_close(s->engine, seq);
    return kept == TERN_KEPT_READ || kept == TERN_KEPT_NONE;
}

static int complete(struct tern_session *s, const struct tern_settings *settings,
                    struct tern_answer *a)
{
    static struct tern_out out;
    tern_out_open(&out, STDOUT_FILENO);
    char line[TERN_ARGS_LINE];
    if (settings->session && (!tern_keep_check(settings->session, line) ||
                              has_note(settings->session, line) ||
                              !take_session(s, settings->session, line)))
        return refuse(1, line);
    tern_seq seq;
    tern_seq_options options = tern_answer_options(a, 0);
    if (tern_seq_open(s->engine, &options, &seq) != TERN_OK ||
        tern_seq_feed(s->engine, seq, a->prompt.ids, a->prompt.n) != TERN_OK)
        return tern_session_report(s);
    tern_answer_begin(a, &out);
    if (!generate(s, seq, a)) {
        tern_out_flush(&out);
        if (out.error)
            fprintf(stderr, "tern run: standard output: %s\n", strerror(out.error));
        else
            tern_session_report(s);
        return 1;
    }
    int code = finish(s, seq, a);
    if (code == 0 && settings->session &&
        tern_keep_save(s, seq, settings->session, (tern_bytes){NULL, 0}, NULL, line) !=
            TERN_KEPT_WRITTEN)
        code = refuse(1, line);
    tern_seq_close(s->engine, seq);
    return code;
}

/* What is wrong with the options as a whole; NULL: nothing. */
static const char *wrong_together(const struct tern_settings *s)
{
    int n = (s->prompt != NULL) + (s->file != NULL) + (s->ids != NULL);
    if (s->session && (s->prompts || s->no_kv_sharing))
        return "--session given with --prompts or --no-kv-sharing; it is one prompt's, and shared";
    if (s->prompts)
        return n ? "--prompts and -p, -f or --ids given, one needed" : NULL;
    if (s->jsonl)
        return "--jsonl given without --prompts; --json prints one object";
    if (n > 1)
        return "more than one of -p, -f and --ids given, one needed";
    if (tern_prompt_missing(s))
        return "no prompt given: -p, -f, --ids or standard input needed";
    return NULL;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    static struct tern_answer a;
    const char *wrong = wrong_together(settings);
    if (wrong)
        return refuse(2, wrong);
    if (settings->prompts)
        return tern_run_prompts(settings);
    tern_limits limits = tern_session_limits(settings);
    struct tern_prompt prompt = {0};
    char line[TERN_ARGS_LINE];
    int code = 1;
    bool ok = tern_session_open_cached(&s, settings->model, settings->cache);
    s.keep_bytes = settings->session ? tern_keep_bytes : NULL;
    if (!ok || !tern_constraint_of_session(&s, settings) || !tern_session_plan(&s, &limits)) {
        tern_session_report(&s);
    } else if (!take_prompt(&s, settings, &prompt, line)) {
        refuse(1, line);
    } else if (!tern_session_start(&s, &settings->affinity)) {
        tern_session_report(&s);
    } else {
        tern_answer_open(&a, &s, settings, &prompt, (uint64_t)time(NULL) * 1000003u ^ s.begun_ns);
        prompt = (struct tern_prompt){0};
        code = complete(&s, settings, &a);
        tern_answer_close(&a);
    }
    tern_prompt_free(&prompt);
    tern_session_close(&s);
    return code;
}

static const struct tern_option own[] = {
    {"--ids", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, ids), 0, 0, NULL,
     "LIST", "the prompt as ids: 1,2,3"},
    {"--prompts", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, prompts), 0, 0, NULL,
     "FILE", "many prompts: a JSON object a line, {\"prompt\": ..., options by name}"},
    {"--jsonl", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, jsonl), 0, 0, NULL,
     NULL, "with --prompts (and implied by it): a JSON object a line, in order of the file"},
    {"--sequences", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, n_seqs), 1, 65536, "1",
     "N", "with --prompts: prompts worked on at a time"},
    {"--cache", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, cache), 0, 0, NULL,
     "DIR", "keeps an image of a GGUF there, made once, and starts from it (default: off)"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    tern_options_prompt, own, tern_options_session, tern_options_sampling, tern_options_logprobs,
    tern_options_grammar, tern_options_engine, tern_options_json, NULL,
};

const struct tern_command tern_cmd_run = {
    "run", "run MODEL [options]", "Completes a prompt. Text goes to standard output, figures to "
    "standard error.", tables,
    "Samplers, in order: logit bias, penalties, top-k, typical, top-p, min-p, temperature, one\n"
    "draw.\n"
    "JSON keys: prompt_tokens, tokens, text, stop (eos, stop, length, context, interrupt, error),\n"
    "timing (seconds; first_token_s counts from the start of the command, with --prompts from\n"
    "each prompt's), memory (bytes of each arena), seed, cached_tokens, logprobs,\n"
    "prompt_logprobs.\n"
    "A session holds prompt and answer, as far as they are computed: a later prompt that begins\n"
    "with them has only the rest computed. Another model, KV type or version is refused.",
    "model", "a GGUF file", run,
};
