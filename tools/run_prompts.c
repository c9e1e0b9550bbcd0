/* run_prompts.c: many prompts through one engine, N at a time.
 *
 * The file is gone through twice: before the weights are loaded every line is checked and the
 * limits of the engine are found; then each line becomes a sequence as soon as one is free. A
 * prompt that fails has an object that says so, and the others go on. A line of output waits
 * until those before it are written.
 */
#include "tools/answer.h"
#include "tools/commands.h"
#include "tools/make_image.h"
#include "tools/interrupt.h"
#include "tools/options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct line { tern_text json; char *result; size_t result_bytes; bool done; };

struct slot {
    struct tern_answer answer;
    struct tern_settings settings;
    struct tern_out out;
    json_t *json; /* holds the texts that settings point to */
    tern_seq seq;
    size_t line;
    bool used;
};

struct work {
    const struct tern_settings *settings;
    struct tern_session session;
    struct tern_prompt file;
    struct line *lines;
    size_t n_lines, n_begun, n_written;
    struct slot *slots;
    size_t n_slots;
    struct tern_out out;
    uint64_t seed, begun_ns;
    uint64_t n_prompt_tokens, n_cached, n_generated;
    double first_s; /* the sum of times to first tokens */
    bool failed;    /* one of the prompts */
    char error[TERN_ARGS_LINE];
};

static const struct tern_option line_options[] = {
    {"--prompt", "-p", TERN_OPTION_TEXT, offsetof(struct tern_settings, prompt), 0, 0, NULL,
     "TEXT", ""},
    {"--ids", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, ids), 0, 0, NULL, "LIST", ""},
    {"--special", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, special), 0, 0, NULL,
     NULL, ""},
    {"--no-kv-sharing", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, no_kv_sharing), 0,
     0, NULL, NULL, ""},
    TERN_END_OF_OPTIONS,
};
static const struct tern_option *const line_tables[] = {
    line_options, tern_options_sampling, tern_options_logprobs, NULL,
};
static const struct tern_command line_command = {"prompts", "", "", line_tables, NULL, NULL, NULL,
                                                 NULL};

static bool refuse(const char *key, const char *needed, char error[TERN_ARGS_LINE])
{
    snprintf(error, TERN_ARGS_LINE, "%.40s: %s needed", key, needed);
    return false;
}

/* What the engine is made with, and where prompts and answers lie, is the same for all lines. */
static bool refuse_key(const char *key, char error[TERN_ARGS_LINE])
{
    const struct tern_option *o = tern_args_find(&tern_cmd_run, key);
    if (o)
        snprintf(error, TERN_ARGS_LINE,
                 "%.40s: in a prompt's line; %s belongs to the command, for all prompts", key,
                 o->name);
    else
        snprintf(error, TERN_ARGS_LINE, "there is no option '%.40s'", key);
    return false;
}

/* A value of a line's object, given to an option. A text is only taken from a string: the option
 * keeps it, and it lives as long as the object. */
static bool set_value(const struct tern_option *o, const char *key, json_t *value,
                      struct tern_settings *s, char error[TERN_ARGS_LINE])
{
    char number[64];
    if (json_is_string(value))
        return tern_args_set(&line_command, key, json_string_value(value), s, error);
    if (o->kind == TERN_OPTION_TEXT || o->kind == TERN_OPTION_STOP)
        return refuse(key, "a text", error);
    if (o->kind == TERN_OPTION_BIAS)
        return refuse(key, "{\"ID\": number}", error);
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, sizeof number, "%.17g", json_real_value(value));
    else if (json_is_boolean(value) && o->kind == TERN_OPTION_FLAG)
        snprintf(number, sizeof number, "%s", json_is_true(value) ? "true" : "false");
    else
        return refuse(key, o->kind == TERN_OPTION_FLAG ? "true or false" : "a number", error);
    return tern_args_set(&line_command, key, number, s, error);
}

static bool set_biases(const char *key, json_t *object, struct tern_settings *s,
                       char error[TERN_ARGS_LINE])
{
    const char *id;
    json_t *x;
    json_object_foreach(object, id, x) {
        char pair[64];
        int n = snprintf(pair, sizeof pair, "%s=%.17g", id, json_number_value(x));
        if (!json_is_number(x) || n < 0 || (size_t)n >= sizeof pair)
            return refuse(key, "{\"ID\": number}", error);
        if (!tern_args_set(&line_command, key, pair, s, error))
            return false;
    }
    return true;
}

/* A list gives its values to an option that repeats, and to no other. What the line says takes
 * the place of what the command said. */
static bool set_member(const char *key, json_t *value, struct tern_settings *s,
                       char error[TERN_ARGS_LINE])
{
    const struct tern_option *o = tern_args_find(&line_command, key);
    if (o == NULL)
        return refuse_key(key, error);
    if (o->kind == TERN_OPTION_STOP)
        s->n_stops = 0;
    if (o->kind == TERN_OPTION_BIAS)
        s->n_biases = 0;
    if (o->kind == TERN_OPTION_BIAS && json_is_object(value))
        return set_biases(key, value, s, error);
    if (!json_is_array(value))
        return set_value(o, key, value, s, error);
    if (o->kind != TERN_OPTION_STOP && o->kind != TERN_OPTION_BIAS)
        return refuse(key, "one value, no list,", error);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!set_value(o, key, json_array_get(value, i), s, error))
            return false;
    return true;
}

/* A list of ids becomes the text that the option takes; the object holds it. */
static bool join_ids(json_t *object, char error[TERN_ARGS_LINE])
{
    enum { LONGEST = 21 }; /* of one id, with its comma */
    json_t *list = json_object_get(object, "ids");
    if (!json_is_array(list))
        return true;
    size_t n = json_array_size(list), at = 0;
    char *text = malloc(n * LONGEST + 1);
    if (text == NULL)
        return refuse("ids", "more memory", error);
    text[0] = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *id = json_array_get(list, i);
        if (!json_is_integer(id)) {
            free(text);
            return refuse("ids", "a list of whole numbers", error);
        }
        at += (size_t)snprintf(text + at, LONGEST + 1, "%s%" JSON_INTEGER_FORMAT, i ? "," : "",
                               json_integer_value(id));
    }
    bool ok = json_object_set_new(object, "ids", json_string(text)) == 0;
    free(text);
    return ok || refuse("ids", "more memory", error);
}

/* The settings of a line: the command's, and over them the line's own. */
static json_t *read_line(const struct work *w, tern_text text, struct tern_settings *s,
                         char error[TERN_ARGS_LINE])
{
    json_error_t e;
    json_t *object = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &e);
    *s = *w->settings;
    s->prompt = s->ids = NULL;
    if (!json_is_object(object)) {
        snprintf(error, TERN_ARGS_LINE, "a JSON object needed: %.120s",
                 object ? "it is another value" : e.text);
        json_decref(object);
        return NULL;
    }
    if (!join_ids(object, error)) {
        json_decref(object);
        return NULL;
    }
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (!set_member(key, value, s, error)) {
            json_decref(object);
            return NULL;
        }
    }
    if ((s->prompt == NULL) == (s->ids == NULL)) {
        snprintf(error, TERN_ARGS_LINE, "\"prompt\" or \"ids\" needed");
        json_decref(object);
        return NULL;
    }
    return object;
}

static bool split_lines(struct work *w)
{
    const char *at = w->file.text.data, *end = at + w->file.text.size;
    size_t cap = 0;
    while (at && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        tern_text text = {at, (size_t)(stop - at)};
        at = stop + 1;
        size_t blank = 0;
        while (blank < text.size && memchr(" \t\r", text.data[blank], 3))
            blank++;
        if (blank == text.size)
            continue;
        if (w->n_lines == cap) {
            cap = 2 * cap + 64;
            struct line *more = realloc(w->lines, cap * sizeof *more);
            if (more == NULL) {
                snprintf(w->error, sizeof w->error, "no memory for so many prompts");
                return false;
            }
            w->lines = more;
        }
        w->lines[w->n_lines++] = (struct line){.json = text};
    }
    return true;
}

/* Every line is checked before the model is loaded; the limits hold the largest of each. */
static bool check_lines(struct work *w, tern_limits *limits)
{
    static struct tern_settings s;
    for (size_t i = 0; i < w->n_lines; i++) {
        char error[TERN_ARGS_LINE];
        json_t *json = read_line(w, w->lines[i].json, &s, error);
        if (json == NULL) {
            snprintf(w->error, sizeof w->error, "%.60s: prompt %zu: %.200s", w->settings->prompts,
                     i + 1, error);
            return false;
        }
        tern_limits of_line = tern_session_limits(&s);
        if (of_line.n_logprobs > limits->n_logprobs)
            limits->n_logprobs = of_line.n_logprobs;
        if (of_line.n_stop_bytes > limits->n_stop_bytes)
            limits->n_stop_bytes = of_line.n_stop_bytes;
        json_decref(json);
    }
    return true;
}

static bool encode(const struct work *w, const struct tern_settings *s, struct tern_prompt *p,
                   char error[TERN_ARGS_LINE])
{
    size_t most = w->session.plan.limits.n_ctx;
    memset(p, 0, sizeof *p);
    if (s->ids)
        return tern_prompt_ids(p, s->ids, w->session.info.n_vocab, most, error);
    p->text = (tern_text){s->prompt, strlen(s->prompt)};
    uint32_t flags = s->special ? TERN_TOKENIZE_SPECIAL : 0;
    if (!tern_prompt_encode(p, w->session.model, flags, most, error))
        return false;
    if (p->n > 0)
        return true;
    snprintf(error, TERN_ARGS_LINE, "prompt: 0 tokens, at least 1 needed");
    return false;
}

static void write_ready(struct work *w)
{
    while (w->n_written < w->n_lines && w->lines[w->n_written].done) {
        struct line *line = &w->lines[w->n_written++];
        tern_out_put(&w->out, line->result, line->result_bytes);
        tern_out_put(&w->out, "\n", 1);
        free(line->result);
        line->result = NULL;
    }
    tern_out_flush(&w->out);
}

/* The slot's answer becomes its line's result; the slot is free again. */
static void finish(struct work *w, struct slot *slot)
{
    struct tern_answer *a = &slot->answer;
    tern_seq_info info;
    if (slot->seq && tern_seq_describe(w->session.engine, slot->seq, &info) == TERN_OK)
        a->n_cached = info.n_cached;
    tern_answer_json(a);
    w->n_prompt_tokens += a->prompt.n;
    w->n_cached += a->n_cached;
    w->n_generated += a->n_generated;
    w->first_s += (double)(a->first_ns - a->fed_ns) * 1e-9;
    w->failed |= a->stop == TERN_STOP_ERROR || slot->out.error;
    struct line *line = &w->lines[slot->line];
    line->result = slot->out.grown;
    line->result_bytes = slot->out.n;
    line->done = true;
    if (slot->seq)
        tern_seq_close(w->session.engine, slot->seq);
    tern_answer_close(a);
    json_decref(slot->json);
    slot->used = false;
    write_ready(w);
}

static void finish_with_error(struct work *w, struct slot *slot, const char *error)
{
    struct tern_answer *a = &slot->answer;
    a->stop = TERN_STOP_ERROR;
    a->done = true;
    a->first_ns = a->done_ns = a->fed_ns;
    snprintf(a->error, sizeof a->error, "%.250s", error);
    finish(w, slot);
}

static void begin(struct work *w, struct slot *slot)
{
    char error[TERN_ARGS_LINE] = "";
    struct tern_prompt prompt;
    slot->line = w->n_begun++;
    slot->used = true;
    slot->seq = 0;
    slot->json = read_line(w, w->lines[slot->line].json, &slot->settings, error);
    bool ok = slot->json && encode(w, &slot->settings, &prompt, error);
    if (!ok)
        prompt = (struct tern_prompt){0};
    tern_out_open(&slot->out, -1);
    slot->settings.jsonl = true;
    tern_answer_open(&slot->answer, &w->session, &slot->settings, &prompt, w->seed + slot->line);
    tern_answer_begin(&slot->answer, &slot->out);
    if (!ok) {
        finish_with_error(w, slot, error);
        return;
    }
    tern_seq_options options = tern_answer_options(&slot->answer, 0);
    tern_engine_clear_error(w->session.engine);
    if (tern_seq_open(w->session.engine, &options, &slot->seq) != TERN_OK ||
        tern_seq_feed(w->session.engine, slot->seq, prompt.ids, prompt.n) != TERN_OK)
        finish_with_error(w, slot, tern_session_line(&w->session));
}

static struct slot *slot_of(struct work *w, tern_seq seq)
{
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].used && w->slots[i].seq == seq)
            return &w->slots[i];
    return NULL;
}

static void cancel_all(struct work *w)
{
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].used)
            tern_seq_cancel(w->session.engine, w->slots[i].seq);
    w->n_lines = w->n_begun;
}

/* Whether nothing is left that a step could go on with. */
static bool finish_done(struct work *w)
{
    bool all = true;
    for (size_t i = 0; i < w->n_slots; i++) {
        if (w->slots[i].used && w->slots[i].answer.done)
            finish(w, &w->slots[i]);
        all = all && !w->slots[i].used;
    }
    return all;
}

static bool work_through(struct work *w)
{
    enum { EVENTS = 64 };
    tern_event events[EVENTS];
    bool cancelled = false;
    while (w->n_written < w->n_lines && w->out.error == 0) {
        for (size_t i = 0; i < w->n_slots && !cancelled; i++)
            while (!w->slots[i].used && w->n_begun < w->n_lines)
                begin(w, &w->slots[i]);
        if (!cancelled && tern_interrupted()) {
            cancel_all(w);
            cancelled = true;
        }
        size_t n = 0;
        tern_status status = tern_step(w->session.engine, events, EVENTS, &n);
        for (size_t i = 0; i < n; i++) {
            struct slot *slot = slot_of(w, events[i].seq);
            if (slot)
                tern_answer_event(&slot->answer, &events[i]);
        }
        bool all_done = finish_done(w);
        if (status != TERN_OK && (status != TERN_AGAIN || (n == 0 && !all_done)))
            return false;
    }
    return true;
}

static int fail(const char *line)
{
    fprintf(stderr, "tern run: %s\n", line);
    return 1;
}

/* Prompts and answers share their steps, so the two have one time. */
static void print_statistics(const struct work *w)
{
    char sequences[40];
    double s = (double)(tern_os_now_ns() - w->begun_ns) * 1e-9;
    snprintf(sequences, sizeof sequences, "sequences %zu", w->n_slots);
    tern_session_print_limits(&w->session, sequences);
    fprintf(stderr, "tern: %zu prompts of %llu tokens (%llu cached); generated %llu", w->n_written,
            (unsigned long long)w->n_prompt_tokens, (unsigned long long)w->n_cached,
            (unsigned long long)w->n_generated);
    if (s > 0)
        fprintf(stderr, ", %.1f tokens/s; %.1f tokens/s in all", (double)w->n_generated / s,
                (double)(w->n_prompt_tokens - w->n_cached + w->n_generated) / s);
    fprintf(stderr, "\ntern: load %.3f s, first token of a prompt after %.3f s on average\n",
            w->session.load_s, w->n_written ? w->first_s / (double)w->n_written : 0);
    tern_session_print_memory(&w->session);
}

static int process(struct work *w)
{
    w->n_slots = w->session.plan.limits.n_seqs;
    w->slots = calloc(w->n_slots, sizeof *w->slots);
    if (w->slots == NULL)
        return fail("no memory for so many sequences");
    size_t n_lines = w->n_lines;
    w->begun_ns = tern_os_now_ns();
    bool ok = work_through(w);
    tern_out_flush(&w->out);
    if (w->out.error) {
        snprintf(w->error, sizeof w->error, "standard output: %s", strerror(w->out.error));
        return fail(w->error);
    }
    print_statistics(w);
    if (!ok)
        return tern_session_report(&w->session);
    if (w->n_lines < n_lines)
        return fail("interrupted; the prompts after the last line were not begun");
    return w->failed ? fail("some prompts failed; their objects say why") : 0;
}

int tern_run_prompts(const struct tern_settings *settings)
{
    static struct work w;
    struct tern_settings file = {.file = settings->prompts};
    tern_limits limits = tern_session_limits(settings);
    tern_out_open(&w.out, STDOUT_FILENO);
    w.settings = settings;
    w.seed = (uint64_t)time(NULL) * 1000003u;
    int code = 1;
    if (!tern_session_open_cached(&w.session, settings->model, settings->cache) ||
        !tern_constraint_of_session(&w.session, settings))
        tern_session_report(&w.session);
    else if (!tern_prompt_read(&w.file, &file, NULL, 0, w.error) || !split_lines(&w) ||
             !check_lines(&w, &limits))
        fail(w.error);
    else if (!tern_session_plan(&w.session, &limits) ||
             !tern_session_start(&w.session, &settings->affinity))
        tern_session_report(&w.session);
    else
        code = process(&w);
    for (size_t i = w.n_written; i < w.n_lines && w.lines; i++)
        free(w.lines[i].result);
    free(w.lines);
    free(w.slots);
    tern_prompt_free(&w.file);
    tern_session_close(&w.session);
    return code;
}
