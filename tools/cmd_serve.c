/* cmd_serve.c: a model behind OpenAI's interface: the server's options, its start and its end. */
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/make_image.h"
#include "tools/options.h"
#include "tools/serve/serve.h"
#include "tools/serve/serve_plan.h"
#include "tools/serve/serve_warm.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct tern_server server;

static const char *name_of(const struct tern_settings *s)
{
    const char *slash = strrchr(s->model, '/');
    return s->alias ? s->alias : slash ? slash + 1 : s->model;
}

/* --- threads --- */

static void *run_loop(void *self)
{
    struct tern_server *s = self;
    tern_http_run(s->http);
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopping, true);
    pthread_cond_broadcast(&s->to_cook);
    pthread_cond_broadcast(&s->to_run);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool start_thread(pthread_t *thread, void *(*run)(void *), struct tern_server *s)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TERN_SERVE_STACK);
    const int error = pthread_create(thread, &attr, run, s);
    pthread_attr_destroy(&attr);
    if (error)
        fprintf(stderr, "tern serve: thread: %s\n", strerror(error));
    return error == 0;
}

/* The kitchen, and beside it who waits for the disk, where anything is kept there. */
static bool start_workers(struct tern_server *s, pthread_t *kitchen, pthread_t *files)
{
    return (!s->settings->slot_save_path || start_thread(files, tern_files_run, s)) &&
           start_thread(kitchen, tern_kitchen_run, s);
}

/* In a signal's handler; who waits for answers under way is told what for. */
static void tell(void)
{
    static volatile sig_atomic_t told;
    static const char line[] = "tern: ends when what is under way is done, or --drain is over; "
                               "told once more, at once\n";
    if (!told++ && atomic_load(&server.counts.running) &&
        write(STDERR_FILENO, line, sizeof line - 1) < 0)
        told++; /* nobody reads it */
    tern_http_stop(server.http, (uint32_t)server.settings->drain * 1000);
}

/* Who is told once more while it all ends. */
static void know(void)
{
}

/* --- start and end --- */

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern serve: %s\n", line);
    return code;
}

static bool open_http(struct tern_server *s, uint16_t *port, char line[TERN_ARGS_LINE])
{
    struct tern_http_options o = tern_serve_http_options(s->settings);
    const size_t bytes = tern_http_bytes(&o);
    o.self = s;
    s->memory = tern_os_map_sparse(bytes + TERN_SERVE_JSON);
    if (!s->memory.data) {
        snprintf(line, TERN_ARGS_LINE, "no memory for %u connections", o.n_connections);
        return false;
    }
    s->json = (struct tern_json_arena){.base = (char *)s->memory.data + bytes,
                                       .size = TERN_SERVE_JSON};
    *port = (uint16_t)s->settings->port;
    return tern_http_init(s->memory, &o, &s->http, line) &&
           tern_http_listen(s->http, s->settings->host, port, line);
}

/* Found at the start, not when there is something to lose. */
static bool check_slots(const struct tern_settings *s, char line[TERN_ARGS_LINE])
{
    struct stat st;
    if (!s->slot_save_path || (stat(s->slot_save_path, &st) == 0 && S_ISDIR(st.st_mode)))
        return true;
    snprintf(line, TERN_ARGS_LINE, "--slot-save-path %.200s: no such folder", s->slot_save_path);
    return false;
}

/* What requests of any length and number write to is taken from the system now, so that what the
 * process has stays the same from here on; the cache, which may be large, as it is used. */
static void take_arenas(const struct tern_session *s)
{
    static const int taken[] = {TERN_ARENA_ACTIVATIONS, TERN_ARENA_SCRATCH, TERN_ARENA_STATE,
                                TERN_ARENA_SAMPLER};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        for (size_t at = 0; at < s->arenas[taken[i]].size; at += tern_os_page()) {
            volatile char *byte = (char *)s->arenas[taken[i]].data + at;
            *byte = *byte;
        }
}

/* Loads while the loop tells who asks that it does; then serves until it is told to stop. */
static int serve(struct tern_server *s, uint16_t port)
{
    char line[TERN_ARGS_LINE] = "";
    pthread_t loop, kitchen, files;
    int code = 1;
    tern_interrupt_tell(tell);
    if (!start_thread(&loop, run_loop, s))
        return 1;
    const bool loaded = tern_session_start(&s->session, &s->settings->affinity) &&
                        tern_jobs_init(s, line);
    if (loaded)
        take_arenas(&s->session);
    if (loaded && !tern_chat_template_open(&s->chat, s->session.model,
                                           s->settings->chat_template, s->no_chat) &&
        s->settings->chat_template)
        snprintf(line, sizeof line, "%s", s->no_chat);
    if (loaded && !line[0] && s->settings->warm && !tern_interrupted())
        (void)tern_serve_warm(s, line);
    if (tern_interrupted())
        code = 0;
    else if (line[0])
        refuse(1, line);
    else if (!loaded)
        tern_session_report(&s->session);
    else if (start_workers(s, &kitchen, &files)) {
        atomic_store(&s->ready, true);
        tern_serve_announce(s, port);
        code = !tern_serve_engine(s);
        if (code) {
            tern_session_report(&s->session);
            tern_http_stop(s->http, 0);
        }
        pthread_join(kitchen, NULL);
        tern_files_end(s);
        if (s->settings->slot_save_path)
            pthread_join(files, NULL);
    }
    if (!atomic_load(&s->ready))
        tern_http_stop(s->http, 0);
    pthread_join(loop, NULL);
    return code;
}

static int run(const struct tern_settings *settings)
{
    struct tern_server *s = &server;
    char line[TERN_ARGS_LINE];
    uint16_t port = 0;
    int code = 1;
#ifdef M_MMAP_THRESHOLD
    /* What is large goes back to the system when it is freed, and there is one heap. */
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    mallopt(M_ARENA_MAX, 1);
#endif
    s->settings = settings;
    s->name = name_of(settings);
    s->created = (int64_t)time(NULL);
    s->n_jobs = (uint32_t)((settings->n_seqs ? settings->n_seqs : TERN_SERVE_SEQUENCES) +
                           settings->queue);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->pool.lock, NULL);
    /* The day's clock may be set while somebody waits by it. */
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&s->to_cook, &steady);
    pthread_cond_init(&s->to_run, &steady);
    pthread_cond_init(&s->to_file, &steady);
    pthread_condattr_destroy(&steady);
    tern_json_arenas_install();
    tern_kv_type k, v;
    if (!tern_serve_kv_types(settings, &k, &v, line) || !tern_serve_pool_fits(settings, line))
        code = refuse(2, line);
    else if (!check_slots(settings, line) || !tern_guard_read_keys(s, line) ||
             !open_http(s, &port, line))
        refuse(1, line);
    else if (!tern_session_open_cached(&s->session, settings->model, settings->cache))
        tern_session_report(&s->session);
    else if (!tern_serve_pooling(settings, s->session.model, &s->pooling, line))
        refuse(1, line);
    else if (!tern_serve_plan(settings, &s->session))
        tern_session_report(&s->session);
    else
        code = serve(s, port);
    tern_interrupt_tell(know);
    if (s->http)
        tern_http_close(s->http);
    tern_chat_template_close(&s->chat);
    tern_session_close(&s->session);
    tern_os_unmap(s->jobs_memory);
    tern_os_unmap(s->memory);
    return code;
}

static const struct tern_option own[] = {
    {"--model", "-m", TERN_OPTION_TEXT, offsetof(struct tern_settings, model), 0, 0, NULL, "FILE",
     "the model"},
    {"--alias", "-a", TERN_OPTION_TEXT, offsetof(struct tern_settings, alias), 0, 0, NULL, "NAME",
     "what the model is called (default: its file)"},
    {"--host", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, host), 0, 0, "127.0.0.1",
     "ADDRESS", "where it listens"},
    {"--port", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, port), 0, 65535, "8080", "N",
     "0: any that is free"},
    {"--api-key", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, api_key), 0, 0, NULL,
     "KEY", "who asks needs one of these keys (commas between them)"},
    {"--api-key-file", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, api_key_file), 0, 0,
     NULL, "FILE", "keys, one a line"},
    {"--cors-origin", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, cors_origin), 0, 0,
     NULL, "LIST", "web pages of these origins may ask too; * is any"},
    {"--timeout", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, timeout), 1, 86400, "60",
     "SECONDS", "a request comes whole in so long, and a client takes something in"},
    {"--drain", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, drain), 0, 86400, "10",
     "SECONDS", "what is under way may go on so long after SIGTERM"},
    {"--seed", NULL, TERN_OPTION_SEED, 0, 0, 0, NULL,
     "N", "of requests that name none (default: another one for each)"},
    {"--chat-template", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, chat_template), 0,
     0, NULL, "FILE|NAME", "instead of the model's own"},
    {"--cache", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, cache), 0, 0, NULL, "DIR",
     "keeps an image of a GGUF there, made once, and starts from it (default: off)"},
    {"--no-webui", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, no_page), 0, 0, NULL,
     NULL, "no page at GET /"},
    {"--warm", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, warm), 0, 0, NULL, "FILE",
     "JSON with messages and tools, or a prompt, that is computed before the first request"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    own, tern_serve_of_requests, tern_options_server, tern_options_engine, tern_options_sampling,
    tern_serve_other_names, tern_serve_as_it_is, tern_serve_never, NULL,
};

const struct tern_command tern_cmd_serve = {
    "serve", "serve MODEL [options]", "Serves a model over HTTP, as OpenAI's clients ask for it.",
    tables,
    "Samplers, -n and --ignore-eos given here hold where a request names none.\n"
    "GET /health /metrics /props /slots /v1/models; POST /v1/chat/completions\n"
    "/v1/completions /v1/responses /v1/embeddings /infill /tokenize /detokenize /apply-template\n"
    "/slots/N?action=save|restore|erase.",
    "model", "a GGUF file", run,
};
