/* cmd_plan.c: the bytes of every arena and of the process, from the header alone. */
#include "tools/commands.h"
#include "tools/keep.h"
#include "tools/options.h"
#include "tools/serve/serve_plan.h"
#include "tools/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* With --server, what the server takes is what a prompt and its answer take elsewhere. */
static struct tern_process process_of(const struct tern_session *s,
                                      const struct tern_settings *settings)
{
    struct tern_process p = tern_session_process(s);
    if (settings->server) {
        const uint64_t server = tern_serve_bytes(settings, s);
        p.total += server - p.tools;
        p.tools = server;
    }
    return p;
}

static bool total_at(struct tern_session *s, const struct tern_settings *settings,
                     tern_limits *limits, uint32_t n_ctx, uint64_t *total)
{
    limits->n_ctx = n_ctx;
    s->error = (tern_error){0};
    if (!tern_session_plan(s, limits))
        return false;
    *total = process_of(s, settings).total;
    return true;
}

/* The largest context whose process fits; by halves, since a larger one never takes less. */
static bool fit(struct tern_session *s, const struct tern_settings *settings, tern_limits *limits)
{
    const uint64_t bytes = settings->fit;
    enum { LEAST = 16 };
    uint32_t low = LEAST, high = s->info.n_ctx_train ? s->info.n_ctx_train : 4096;
    uint64_t total;
    if (!total_at(s, settings, limits, low, &total))
        return false;
    if (total > bytes) {
        s->error.status = TERN_NO_MEMORY;
        snprintf(s->error.text, sizeof s->error.text,
                 "--fit: %llu bytes given, %llu needed for a context of %d",
                 (unsigned long long)bytes, (unsigned long long)total, LEAST);
        return false;
    }
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (total_at(s, settings, limits, middle, &total) && total <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return total_at(s, settings, limits, low, &total);
}

static void write_row(struct tern_out *o, const char *name, uint64_t bytes)
{
    tern_out_print(o, "%-16s %14llu  %9.1f MiB\n", name, (unsigned long long)bytes,
                   (double)bytes / 1048576);
}

/* The bytes of each type whose blocks the CPU has to expand as it multiplies by them. */
static void write_expanded(const struct tern_session *s, struct tern_out *o, bool json)
{
    enum { MANY_TYPES = 64 };
    struct { const char *type; uint64_t bytes; } types[MANY_TYPES];
    size_t n = 0;
    for (uint32_t i = 0; i < s->info.n_tensors; i++) {
        tern_tensor_info t;
        if (tern_model_tensor(s->model, i, &t) != TERN_OK || strcmp(t.path, "expanded") != 0)
            continue;
        size_t k = 0;
        while (k < n && strcmp(types[k].type, t.type) != 0)
            k++;
        if (k == MANY_TYPES)
            continue;
        if (k == n) {
            types[n].type = t.type;
            types[n++].bytes = 0;
        }
        types[k].bytes += t.bytes;
    }
    if (json)
        tern_json_begin(o, "expanded", '{');
    for (size_t k = 0; k < n; k++) {
        if (json) {
            tern_json_u64(o, types[k].type, types[k].bytes);
            continue;
        }
        char name[32];
        snprintf(name, sizeof name, "%s, expanded", types[k].type);
        write_row(o, name, types[k].bytes);
    }
    if (json)
        tern_json_end(o, '}');
}

static void write_json(const struct tern_session *s, const struct tern_settings *settings,
                       struct tern_out *o)
{
    const tern_limits *l = &s->plan.limits;
    const struct tern_process p = process_of(s, settings);
    tern_json_begin(o, NULL, '{');
    tern_session_memory_json(s, o, "arenas");
    tern_json_u64(o, "engine_bytes", tern_session_engine_bytes(&s->plan));
    tern_json_begin(o, "process", '{');
    tern_json_u64(o, "program", p.program);
    tern_json_u64(o, "stacks", p.stacks);
    tern_json_u64(o, "windows", p.windows);
    tern_json_u64(o, "image", p.image);
    tern_json_u64(o, settings->server ? "server" : "tools", p.tools);
    tern_json_u64(o, "compiling", p.compiling);
    tern_json_end(o, '}');
    tern_json_u64(o, "process_bytes", p.total);
    write_expanded(s, o, true);
    tern_json_u64(o, "context", l->n_ctx);
    tern_json_u64(o, "threads", l->n_threads);
    tern_json_u64(o, "sequences", l->n_seqs);
    tern_json_u64(o, "chunk", l->chunk);
    tern_json_u64(o, "kv_tokens", l->n_kv_tokens);
    tern_json_end(o, '}');
    tern_out_put(o, "\n", 1);
}

static void write_text(const struct tern_session *s, const struct tern_settings *settings,
                       struct tern_out *o)
{
    const tern_limits *l = &s->plan.limits;
    const struct tern_process p = process_of(s, settings);
    tern_out_print(o, "context %u, sequences %u, threads %u, chunk %u\n", l->n_ctx, l->n_seqs,
                   l->n_threads, l->chunk);
    for (size_t i = 0; i < s->plan.n_arenas; i++)
        write_row(o, s->plan.arenas[i].name, tern_session_arena_bytes(&s->plan, i));
    write_row(o, "engine", tern_session_engine_bytes(&s->plan));
    write_row(o, "program", p.program);
    write_row(o, "thread stacks", p.stacks);
    if (p.image)
        write_row(o, "mapped image", p.image);
    else
        write_row(o, "file windows", p.windows);
    write_row(o, settings->server ? "server" : "prompt, answer", p.tools);
    if (p.compiling)
        write_row(o, "(compiling)", p.compiling);
    write_row(o, "process", p.total);
    write_expanded(s, o, false);
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    static struct tern_out out;
    tern_limits limits = tern_session_limits(settings);
    int code = 1;
    bool ok = tern_session_open(&s, settings->model, TERN_MODEL_WHOLE);
    if (ok && settings->server)
        limits = tern_serve_limits(settings, s.model);
    s.keep_bytes = settings->session ? tern_keep_bytes : NULL;
    s.talks = settings->chat;
    if (!ok || !tern_constraint_of_session(&s, settings) ||
        !(settings->fit ? fit(&s, settings, &limits) : tern_session_plan(&s, &limits))) {
        tern_session_report(&s);
    } else {
        tern_out_open(&out, STDOUT_FILENO);
        if (settings->json)
            write_json(&s, settings, &out);
        else
            write_text(&s, settings, &out);
        code = !tern_out_flush(&out);
        if (code)
            fprintf(stderr, "tern plan: standard output: %s\n", strerror(out.error));
    }
    tern_session_close(&s);
    return code;
}

static const struct tern_option own[] = {
    {"--fit", NULL, TERN_OPTION_BYTES, offsetof(struct tern_settings, fit), 0, 0, NULL,
     "BYTES", "the largest context whose process fits; K, M, G allowed"},
    {"--server", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, server), 0, 0, NULL, NULL,
     "of tern serve with these options"},
    {"--sequences", "-np", TERN_OPTION_INT, offsetof(struct tern_settings, n_seqs), 1, 65536, NULL,
     "N", "prompts or answers worked on at a time (default 1, of a server 4)"},
    {"--session", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, session), 0, 0, NULL,
     "FILE", "with what reading and writing a session takes; no file is looked for"},
    {"--chat", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, chat), 0, 0, NULL, NULL,
     "with what a conversation takes beside its tokens (tern chat)"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    own, tern_options_server, tern_options_grammar, tern_options_engine, tern_options_json, NULL,
};

const struct tern_command tern_cmd_plan = {
    "plan", "plan MODEL [options]",
    "Prints the bytes of every arena and of the whole process, from the file's header alone.",
    tables,
    "JSON keys: arenas (bytes of each), engine_bytes (their sum), process (what comes on top; the\n"
    "compiling of a grammar comes before the arenas), process_bytes, expanded (bytes of each type\n"
    "that is expanded as it is used), context, threads, sequences, chunk, kv_tokens.",
    "model", "a GGUF file", run,
};
