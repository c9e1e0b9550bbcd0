/* session.h: a model from its path to an engine that is ready: what run, bench and perplexity
 * share. Each step needs the one before it; what fails leaves one line in error. */
#ifndef TERN_SESSION_H
#define TERN_SESSION_H

#include "platform/os/host.h"
#include "tools/args.h"
#include "tools/constraint.h"
#include "tools/out.h"

struct tern_session {
    tern_os_model files;
    tern_memory model_memory;
    tern_model *model;
    tern_model_info info;
    const tern_backend *backend;
    tern_plan plan;
    tern_memory arenas[TERN_N_ARENAS], team_memory;
    tern_team *team;
    tern_host host;
    tern_engine *engine;
    struct tern_constraint constraint; /* what is generated is held to, if a grammar was given */
    bool talks; /* a conversation is rendered: chat.h */
    /* What reading and writing a session file takes (keep.h); NULL: there is none. */
    uint64_t (*keep_bytes)(const struct tern_session *s);
    tern_error error;
    uint64_t begun_ns;
    double load_s; /* from open to the last weight */
};

bool tern_session_open(struct tern_session *s, const char *path, tern_model_parts what);
/* False: path, which may be NULL, leads to a file of the model, and would be written over it. */
bool tern_session_spares(struct tern_session *s, const char *path);
/* The limits that settings ask for; threads not given are the physical cores. */
tern_limits tern_session_limits(const struct tern_settings *settings);
/* And the sampling; its biases lie in settings. */
tern_sampling tern_session_sampling(const struct tern_settings *settings, uint64_t seed,
                                    uint64_t stream);
bool tern_session_plan(struct tern_session *s, const tern_limits *limits);
/* Maps the arenas, starts the threads and ties them to the CPUs of a list, if it has any, loads
 * the weights. Refuses before anything is touched what the machine has no memory for. */
bool tern_session_start(struct tern_session *s, const struct tern_list *affinity);
void tern_session_close(struct tern_session *s);

/* The engine's error, or the session's own. */
const char *tern_session_line(const struct tern_session *s);
/* Prints that line to standard error; returns 1, the exit code. */
int tern_session_report(const struct tern_session *s);

/* What the process takes besides the arenas, and at most in all. */
struct tern_process {
    uint64_t program, stacks, windows, image, tools;
    uint64_t compiling; /* a grammar, before the arenas are there */
    uint64_t total;     /* the larger of both times */
};
struct tern_process tern_session_process(const struct tern_session *s);
/* An arena as it is mapped: whole pages. */
uint64_t tern_session_arena_bytes(const tern_plan *plan, size_t i);
uint64_t tern_session_engine_bytes(const tern_plan *plan);
/* One line each to standard error: what the engine was made with, and its arenas. */
void tern_session_print_limits(const struct tern_session *s, const char *before);
void tern_session_print_memory(const struct tern_session *s);
void tern_session_memory_json(const struct tern_session *s, struct tern_out *o, const char *key);

/* The variant that TERN_CPU names is built in; else a line is printed and false returned. */
bool tern_session_check_cpu(void);

#endif
