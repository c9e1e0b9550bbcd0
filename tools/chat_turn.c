/* chat_turn.c: one answer.
 *
 * The conversation is rendered as a whole. If it leaves too little of the context for an answer,
 * the oldest turns go, more of them than need to, so that the next turns need not do the same
 * (what follows a dropped turn is computed anew). Then what the sequence holds in common with it
 * stays, and the rest is fed. An answer that fills the context goes on in one that is made room
 * in the same way. */
#include "tools/chat.h"
#include "tools/chat_reply.h"
#include "tools/interrupt.h"

#include <stdio.h>
#include <string.h>

struct prompt { struct tern_chat_prompt text; struct tern_chat_ids ids; };

static void free_prompt(struct prompt *p)
{
    tern_chat_ids_free(&p->ids);
    tern_chat_prompt_free(&p->text);
}

/* --- the conversation as tokens --- */

/* Nothing may be called here; but what a model calls all the same is told apart. */
bool tern_chat_make_plan(struct tern_chat *c, char line[TERN_ARGS_LINE])
{
    const struct tern_settings *s = &c->settings;
    const struct tern_reply_request request = {
        .has_thinking = strcmp(s->think, "auto") != 0,
        .thinking = strcmp(s->think, "on") == 0,
        .has_budget = s->think_budget >= 0,
        .budget = s->think_budget >= 0 ? (uint32_t)s->think_budget : 0,
    };
    tern_reply_options own = {.thinks = false};
    tern_reply_plan_close(&c->plan);
    if (!tern_reply_plan_open(&c->plan, c->session->model, c->template.source, &request, false,
                              line))
        return false;
    tern_reply_detect(c->template.source, &own);
    c->plan.reader.calls = own.calls;
    c->plan.n_shown = (uint32_t)tern_reply_markers(&c->plan.reader, c->plan.shown);
    return true;
}

static json_t *variables_of(const struct tern_chat *c)
{
    json_t *all = c->settings.variables ? json_loads(c->settings.variables, JSON_ALLOW_NUL, NULL)
                                        : json_object();
    if (all)
        json_object_update(all, c->plan.variables);
    return all;
}

static bool make_prompt(const struct tern_chat *c, size_t dropped, bool generation,
                        struct prompt *p, char line[TERN_ARGS_LINE])
{
    struct tern_chat_request r = {
        .messages = tern_chat_talk_without(&c->talk, dropped), .variables = variables_of(c),
        .generation = generation, .adapt = true,
    };
    memset(p, 0, sizeof *p);
    snprintf(line, TERN_ARGS_LINE, "conversation: no memory for it");
    const bool ok = r.messages && r.variables &&
                    tern_chat_render(&c->template, &r, &p->text, line) &&
                    tern_chat_known_encode(&c->known, c->session->model, &p->text.rendered,
                                           tern_chat_flags(&c->template, &p->text), &p->ids, line);
    json_decref(r.messages);
    json_decref(r.variables);
    if (!ok)
        free_prompt(p);
    return ok;
}

bool tern_chat_count(struct tern_chat *c, size_t *n, char line[TERN_ARGS_LINE])
{
    struct prompt p;
    *n = 0;
    if (json_array_size(c->talk.messages) == 0)
        return true;
    if (!make_prompt(c, 0, false, &p, line))
        return false;
    *n = p.ids.n;
    free_prompt(&p);
    return true;
}

/* --- a full context --- */

struct counting { const struct tern_chat *c; size_t more; char line[TERN_ARGS_LINE]; };

static size_t count(void *self, size_t dropped)
{
    struct counting *counting = self;
    struct prompt p;
    if (!make_prompt(counting->c, dropped, true, &p, counting->line))
        return SIZE_MAX;
    const size_t n = p.ids.n + counting->more;
    free_prompt(&p);
    return n;
}

static size_t answer_room(const struct tern_chat *c)
{
    const size_t eighth = c->session->plan.limits.n_ctx / 8 + 1;
    const int64_t most = c->settings.n_predict;
    return most > 0 && (uint64_t)most < eighth ? (size_t)most : eighth;
}

/* Drops the turns that must go for the conversation and `more` tokens behind it, and counts them;
 * none, and false, if the last one cannot fit at all. */
static bool make_room(struct tern_chat *c, size_t more, size_t *dropped, char line[TERN_ARGS_LINE])
{
    const size_t n_ctx = c->session->plan.limits.n_ctx, room = answer_room(c);
    const size_t spare = room > n_ctx / 4 ? room : n_ctx / 4;
    struct counting counting = {.c = c, .more = more};
    size_t n = count(&counting, 0);
    *dropped = 0;
    if (n <= n_ctx && room <= n_ctx - n)
        return true;
    if (n != SIZE_MAX)
        *dropped = tern_chat_talk_fit(tern_chat_talk_turns(&c->talk), n_ctx - spare, count,
                                      &counting, &n);
    if (n < n_ctx) {
        tern_chat_talk_drop(&c->talk, *dropped);
        return true;
    }
    *dropped = 0;
    if (n == SIZE_MAX)
        snprintf(line, TERN_ARGS_LINE, "%s", counting.line);
    else
        snprintf(line, TERN_ARGS_LINE, "message: %zu tokens with the system message and the "
                 "template's own, %zu fit the context (-c)", n, n_ctx - 1);
    return false;
}

/* ends: the answer does too. */
static void say_full(struct tern_chat *c, size_t dropped, const char *when, bool ends)
{
    char turns[80] = "";
    if (dropped)
        snprintf(turns, sizeof turns, "%zu oldest turn%s dropped, %zu kept", dropped,
                 dropped == 1 ? "" : "s", tern_chat_talk_turns(&c->talk));
    if (dropped || ends)
        tern_chat_screen_say(&c->screen, "tern: the context of %u tokens %s: %s%s%s",
                             c->session->plan.limits.n_ctx, when, turns, dropped && ends ? "; " :
                             "", ends ? "the answer ends here" : "");
}

/* --- one run of the engine --- */

tern_seq_options tern_chat_options(const struct tern_chat *c, tern_text stops[TERN_MAX_STOPS])
{
    const struct tern_settings *s = &c->settings;
    for (uint32_t i = 0; i < s->n_stops; i++)
        stops[i] = (tern_text){s->stops[i], strlen(s->stops[i])};
    tern_seq_options options = {
        .sampling = tern_session_sampling(s, s->seed, c->stream),
        .max_tokens = s->n_predict > 0 ? (uint32_t)s->n_predict : 0,
        .stops = stops,
        .n_stops = s->n_stops,
        .ignore_eos = s->ignore_eos,
        .no_kv_sharing = s->no_kv_sharing,
    };
    tern_reply_plan_options(&c->plan, &options);
    options.grammar = c->session->constraint.grammar;
    return options;
}

struct answering {
    struct tern_chat *c;
    struct tern_chat_reply reply;
    struct tern_progress progress;
    size_t n_before;   /* tokens before the answer */
    size_t n_fed;      /* before what is generated now: that, or with the answer so far */
    size_t n_whole;    /* tokens up to the end of its last whole character */
    bool done;
    tern_stop stop;
    char line[TERN_ARGS_LINE];
};

static bool engine_failed(struct answering *a)
{
    snprintf(a->line, sizeof a->line, "%s", tern_session_line(a->c->session));
    tern_engine_clear_error(a->c->session->engine);
    return false;
}

/* Makes the sequence hold these tokens, and running. */
static bool feed(struct answering *a, const struct prompt *p, const tern_token *more, size_t n_more)
{
    struct tern_chat *c = a->c;
    tern_engine *engine = c->session->engine;
    tern_text stops[TERN_MAX_STOPS];
    tern_seq_options options = tern_chat_options(c, stops);
    if (options.max_tokens) /* of an answer, in however many contexts */
        options.max_tokens -= (uint32_t)c->figures.n_generated;
    const size_t same = tern_chat_same(c->known.ids, c->known.n, p->ids.ids, p->ids.n);
    tern_seq_info info;
    if (tern_seq_set_options(engine, c->seq, &options) != TERN_OK ||
        tern_seq_trim(engine, c->seq, (uint32_t)same) != TERN_OK ||
        tern_seq_describe(engine, c->seq, &info) != TERN_OK ||
        tern_seq_feed(engine, c->seq, p->ids.ids + same, p->ids.n - same) != TERN_OK ||
        (n_more && tern_seq_feed(engine, c->seq, more, n_more) != TERN_OK))
        return engine_failed(a);
    c->figures.n_cached = info.n_computed < p->ids.n ? info.n_computed : p->ids.n - 1;
    a->n_before = p->ids.n;
    a->n_fed = p->ids.n + n_more;
    if (tern_chat_known_take(&c->known, &p->text.rendered, &p->ids)) {
        for (size_t i = 0; i < n_more; i++)
            tern_chat_known_add(&c->known, c->session->model, more[i]);
        a->n_whole = c->known.n;
        return true;
    }
    snprintf(a->line, sizeof a->line, "conversation: no memory for it");
    return false;
}

static void take_event(struct answering *a, const tern_event *e)
{
    struct tern_chat *c = a->c;
    tern_text text = e->text;
    if (e->kind == TERN_EVENT_TOKEN) {
        if (c->figures.n_generated++ == 0)
            c->figures.first_ns = tern_os_now_ns();
        tern_chat_known_add(&c->known, c->session->model, e->token);
        if (c->known.detok.n_held == 0)
            a->n_whole = c->known.n;
    } else if (e->kind == TERN_EVENT_DONE) {
        a->done = true;
        a->stop = e->stop;
        if (e->stop == TERN_STOP_ERROR)
            snprintf(a->line, sizeof a->line, "%s", e->error ? e->error : "it failed");
        /* A character that the context cut is generated again, if there will be room for it. */
        if (e->stop == TERN_STOP_CONTEXT && c->known.detok.n_held)
            text.size = 0;
    }
    tern_chat_reply_add(&a->reply, text, false);
}

static void show_progress(struct answering *a)
{
    const struct tern_chat *c = a->c;
    tern_seq_info info;
    if (c->known.n > a->n_fed || !c->screen.terminal ||
        tern_seq_describe(c->session->engine, c->seq, &info) != TERN_OK)
        tern_progress_end(&a->progress);
    else if (info.n_computed > c->figures.n_cached)
        tern_progress_show(&a->progress, info.n_computed - c->figures.n_cached,
                           a->n_fed - c->figures.n_cached);
}

/* Steps until the sequence has ended. */
static bool step_all(struct answering *a)
{
    enum { EVENTS = 16 };
    tern_event events[EVENTS];
    struct tern_chat *c = a->c;
    bool cancelled = false;
    a->done = false;
    tern_progress_begin(&a->progress, "reading");
    while (!a->done) {
        if (!cancelled && (tern_interrupted() || c->screen.out.error)) {
            tern_seq_cancel(c->session->engine, c->seq);
            cancelled = true;
        }
        size_t n = 0;
        const tern_status status = tern_step(c->session->engine, events, EVENTS, &n);
        if (n > 0)
            tern_progress_end(&a->progress);
        for (size_t i = 0; i < n; i++)
            take_event(a, &events[i]);
        if (status != TERN_OK && n == 0 && !a->done) {
            tern_progress_end(&a->progress);
            c->broken = c->ended = true;
            return engine_failed(a);
        }
        show_progress(a);
    }
    tern_progress_end(&a->progress);
    return a->stop != TERN_STOP_ERROR;
}

/* --- one answer --- */

static bool start(struct answering *a)
{
    struct tern_chat *c = a->c;
    struct prompt p;
    size_t dropped;
    if (!make_room(c, 0, &dropped, a->line))
        return false;
    say_full(c, dropped, "is full", false);
    if (!make_prompt(c, 0, true, &p, a->line))
        return false;
    tern_reply_plan_prompt(&c->plan, p.text.rendered.text);
    c->figures.n_prompt = p.ids.n;
    bool ok = tern_chat_reply_open(&a->reply, &c->plan.reader, &c->screen);
    if (!ok)
        snprintf(a->line, sizeof a->line, "answer: no memory for it");
    ok = ok && feed(a, &p, NULL, 0);
    free_prompt(&p);
    return ok;
}

/* The answer so far behind a conversation that was made shorter; false: it cannot go on. */
static bool go_on(struct answering *a, size_t *dropped)
{
    struct tern_chat *c = a->c;
    const size_t begin = a->n_before, n = a->n_whole - begin;
    const int64_t left = c->settings.n_predict - (int64_t)c->figures.n_generated;
    if (c->session->constraint.grammar || (c->settings.n_predict > 0 && left <= 0))
        return false;
    struct prompt p;
    size_t more;
    if (!make_room(c, n, &more, a->line) || more == 0 || !make_prompt(c, 0, true, &p, a->line))
        return false;
    tern_memory memory = tern_os_map(n * sizeof(tern_token), 64);
    bool ok = memory.data && p.ids.n + n < c->session->plan.limits.n_ctx;
    if (ok) {
        const size_t cached = c->figures.n_cached;
        memcpy(memory.data, c->known.ids + begin, n * sizeof(tern_token));
        c->plan.reader.thinks = a->reply.reasoning.n > 0 && a->reply.content.n == 0;
        ok = feed(a, &p, memory.data, n);
        c->figures.n_cached = cached;
    }
    *dropped += more;
    tern_os_unmap(memory);
    free_prompt(&p);
    return ok;
}

static bool run(struct answering *a)
{
    struct tern_chat *c = a->c;
    size_t dropped = 0;
    if (!start(a))
        return false;
    c->figures.fed_ns = tern_os_now_ns();
    bool ok = step_all(a);
    while (ok && a->stop == TERN_STOP_CONTEXT && go_on(a, &dropped))
        ok = step_all(a);
    tern_chat_reply_add(&a->reply, (tern_text){"", 0}, true);
    c->figures.done_ns = tern_os_now_ns();
    c->figures.stop = a->stop;
    tern_chat_screen_end(&c->screen);
    say_full(c, dropped, dropped ? "became full" : "is full", ok && a->stop == TERN_STOP_CONTEXT);
    return ok;
}

static void sync_known(struct tern_chat *c)
{
    tern_seq_info info = {.n_tokens = 0};
    if (tern_seq_describe(c->session->engine, c->seq, &info) != TERN_OK)
        info.n_tokens = 0;
    tern_chat_known_end(&c->known, info.n_tokens);
    c->figures.n_held = info.n_tokens;
}

bool tern_chat_answer(struct tern_chat *c)
{
    struct answering a = {.c = c};
    c->figures = (struct tern_chat_figures){0};
    bool ok = run(&a);
    sync_known(c);
    if (ok && a.stop == TERN_STOP_CANCELLED && c->figures.n_generated == 0) {
        tern_chat_screen_say(&c->screen, "tern: stopped; the message is taken back");
        a.line[0] = 0;
        ok = false;
    }
    ok = ok && tern_chat_talk_add_json(&c->talk, tern_chat_reply_message(&a.reply));
    if (!ok)
        tern_chat_talk_undo(&c->talk, false);
    if (!ok && a.line[0])
        tern_chat_refuse(c, a.line);
    tern_chat_reply_close(&a.reply);
    if (c->screen.out.error)
        c->ended = true;
    return ok;
}

static double rate(size_t n, uint64_t from, uint64_t to)
{
    return to > from ? (double)n / ((double)(to - from) * 1e-9) : 0;
}

void tern_chat_show_figures(struct tern_chat *c)
{
    const struct tern_chat_figures *f = &c->figures;
    const uint64_t first = f->first_ns ? f->first_ns : f->done_ns;
    tern_chat_screen_say(&c->screen, "tern: prompt %zu tokens (%zu cached), %.1f tokens/s; "
                         "generated %zu, %.1f tokens/s; ended by %s; context %zu of %u",
                         f->n_prompt, f->n_cached, rate(f->n_prompt - f->n_cached, f->fed_ns,
                         first), f->n_generated, f->n_generated > 1 ?
                         rate(f->n_generated - 1, first, f->done_ns) : 0.0,
                         tern_stop_name(f->stop), f->n_held, c->session->plan.limits.n_ctx);
}
