/* serve.h: the server behind the HTTP layer, as its files share it.
 *
 * Its threads:
 *
 *   loop      sockets. Looks at who may ask (serve_guard.c) and for what (serve_routes.c);
 *             answers at once what needs neither JSON nor the model.
 *   kitchen   one request at a time: JSON, templates, tokens, grammars (serve_kitchen.c). Its
 *             memory is one arena. What is wrong with a request is found here.
 *   engine    the caller's thread: opens sequences, steps, hands what came to the endpoints
 *             (serve_engine.c), never waits for a client.
 *   files     with --slot-save-path: reads and writes what the engine's thread asks for, which
 *             steps meanwhile (serve_files.c).
 *
 * A request that is let in has a job from the loop's hand-over to its answer's end, so what may
 * wait is bounded by the number of jobs; with none left, a request is told to come again. A job's
 * memory is its own: what the kitchen prepares lies there until the answer has ended.
 *
 * An endpoint is a file: a function for the kitchen (tern_route.prepare), which answers, or fills
 * in the job and sets its kind; and then the kind's functions, for the engine's thread. */
#ifndef TERN_SERVE_H
#define TERN_SERVE_H

#include "tools/chat_prompt.h"
#include "tools/effort.h"
#include "tools/out.h"
#include "tools/serve/http.h"
#include "tools/serve/json_arena.h"
#include "tools/session.h"

enum {
    TERN_SERVE_CHOICES = 128,  /* answers to one request, all prompts together */
    TERN_SERVE_INPUTS = 1024,  /* texts that one request has embeddings of */
    TERN_SERVE_LOGPROBS = 20,
    TERN_SERVE_STOP_BYTES = 2048,
    TERN_SERVE_STOP_TOKENS = 16,
    TERN_SERVE_KEYS = 64,
    TERN_SERVE_PARTS = 5,
    TERN_SERVE_SEQUENCES = 4,
    TERN_SERVE_JSON = 24 << 20, /* bytes of values that one request may have */
    TERN_SERVE_STACK = 1 << 20,
};

struct tern_server;
struct tern_job;

/* --- jobs --- */

struct tern_job_prompt {
    const tern_token *ids;
    uint32_t n;
    uint32_t n_cached; /* found by its prefix, of the first choice */
    tern_text text;    /* for who echoes it */
};

enum tern_choice_state { TERN_CHOICE_WAITS, TERN_CHOICE_RUNS, TERN_CHOICE_ENDED };

struct tern_choice {
    struct tern_job *job;
    uint32_t index, prompt;
    uint32_t slot;                /* while it runs: which of n_seqs it is */
    enum tern_choice_state state;
    tern_seq seq;
    uint32_t n_generated, n_thought; /* tokens; of these, reasoning */
    uint32_t n_shown;             /* of its prompt, told as progress */
    uint64_t begun_ns;
    const char *finish;           /* OpenAI's finish_reason, once it has ended */
    struct tern_chain parts[TERN_SERVE_PARTS]; /* the kind's own, of an answer sent whole */
    size_t n_text;                /* bytes of text so far */
    void *own;                    /* the kind's own */
};

/* Tokens of a prompt: all, of these found by their prefix, of all in the cache; and the time. */
struct tern_progress_made { uint32_t total, cached, processed; double ms; };

/* What an endpoint does on the engine's thread. */
struct tern_job_kind {
    /* Once, when the first sequence is about to begin; may be NULL. */
    void (*begin)(struct tern_job *j, struct tern_out *o);
    /* Each event of a choice; with TERN_EVENT_DONE its finish is set. */
    void (*event)(struct tern_choice *c, const tern_event *e, struct tern_out *o);
    /* All choices have ended; the exchange is ended behind it. */
    void (*end)(struct tern_job *j, struct tern_out *o);
    /* What a step has computed of a prompt, of which nothing is generated yet; may be NULL. */
    void (*progress)(struct tern_choice *c, const struct tern_progress_made *p,
                     struct tern_out *o);
    /* Instead of these: done between two steps, without a sequence. It answers. */
    void (*aside)(struct tern_job *j, struct tern_out *o);
};

struct tern_job {
    struct tern_server *server;
    struct tern_http_exchange *x;
    const struct tern_route *route;
    struct tern_job *next;        /* in a queue, or free */
    tern_memory memory;
    size_t used;                  /* of it */

    const struct tern_job_kind *kind;
    uint64_t number;              /* of the request: its ids are made of it */
    int64_t created;              /* seconds since 1970 */
    tern_seq_options options;     /* of every choice; streams differ */
    tern_token stop_tokens[TERN_SERVE_STOP_TOKENS];
    uint32_t n_stop_tokens;
    struct tern_job_prompt *prompts;
    struct tern_choice *choices;
    uint32_t n_prompts, n_choices, n_begun, n_ended;
    uint32_t n_each;              /* choices of a prompt */
    int32_t n_top;                /* log-probabilities shown beside the token's own; -1: none */
    struct tern_constraint constraint;
    bool stream, include_usage, progress, echo, begun;
    bool failed;                  /* no memory for what was to be kept */
    void *own;                    /* the kind's own */
};

/* Zeroed memory of the job; NULL: it has no more. */
void *tern_job_take(struct tern_job *j, size_t count, size_t item);
/* A text that is kept, with a zero behind it; data NULL: no more memory. */
tern_text tern_job_keep(struct tern_job *j, const char *data, size_t n);

/* --- a request in the kitchen --- */

struct tern_call {
    struct tern_server *server;
    struct tern_job *job;
    struct tern_http_exchange *x;
    json_t *body;           /* NULL where the route takes none */
    struct tern_out *out;   /* the kitchen's writer; see tern_call_begin */
    const char *param;      /* the field that the prompt is in; NULL: messages or prompt */
    struct tern_effort effort; /* of its schemas; ended where the client leaves */
    bool answered;
};

/* An error as OpenAI's interface has it; answers false. param and code may be NULL. */
bool tern_call_fail(struct tern_call *c, int status, const char *param, const char *code,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Begins an answer of JSON, written to c->out, and ends it. */
void tern_call_begin(struct tern_call *c);
void tern_call_end(struct tern_call *c);

/* --- routes --- */

struct tern_route {
    const char *method, *path;
    bool open;      /* no key needed */
    bool early;     /* answered while the model is loading */
    void (*now)(struct tern_server *s, struct tern_http_exchange *x); /* on the loop; or */
    bool (*prepare)(struct tern_call *c); /* in the kitchen; true: the job is to be run */
    bool takes_json;
    bool may_lack_body; /* none is an empty object */
};

extern const struct tern_route tern_routes[]; /* ends with a row without a path */
void tern_routes_handle(void *self, struct tern_http_exchange *x);

/* --- the server --- */

/* What stands for a text of many tokens. NONE: the file wants what is not there. */
enum tern_pooling { TERN_POOLING_NONE, TERN_POOLING_LAST, TERN_POOLING_MEAN };

/* Counted for /metrics and /slots; written by the engine's thread alone. */
struct tern_counts {
    _Atomic uint64_t requests, prompt_tokens, cached_tokens, generated_tokens, steps, preemptions;
    _Atomic uint32_t running;
    _Atomic bool opening; /* of a request not all choices run yet */
    _Atomic uint64_t busy_ns;
};

/* A sequence's place, by which it is known outside. */
struct tern_served {
    struct tern_choice *choice; /* who runs in it; NULL: nobody */
    bool held;                  /* it is being saved or restored: nobody comes into it */
    tern_seq kept;              /* one that has ended and stays open, with --slot-save-path; or 0 */
    uint64_t number;            /* the lower, the longer it is kept */
    _Atomic bool busy;          /* these two for who asks */
    _Atomic uint32_t n_tokens;
};

/* The KV pools as the engine's thread saw them last, for the page and /metrics; see
 * serve_pool.c. */
enum { TERN_POOL_GROUPS = 4, TERN_POOL_CELLS = 4096 };
struct tern_pool_view {
    uint32_t n_blocks, window, each; /* each: blocks of a cell */
    uint32_t n[4];                   /* blocks of each tern_block_use */
    char cells[TERN_POOL_CELLS];
};
struct tern_pool_watch {
    pthread_mutex_t lock;
    _Atomic uint64_t asked_ns;
    uint64_t looked_ns;
    struct tern_pool_view views[TERN_POOL_GROUPS];
};

struct tern_queue { struct tern_job *first, *last; uint32_t n; };

/* What the files' thread is to do; work NULL: nothing. Under the queues' lock. */
struct tern_files { void (*work)(void *arg); void *arg; bool ends; };

struct tern_server {
    const struct tern_settings *settings;
    struct tern_session session;
    struct tern_chat_template chat;
    char no_chat[TERN_ARGS_LINE]; /* why there is no template; empty: there is */
    const char *name;             /* what the model is called */
    int64_t created;
    struct tern_http *http;
    tern_memory memory, jobs_memory;
    tern_text keys[TERN_SERVE_KEYS];
    uint32_t n_keys;
    _Atomic bool ready, stopping;

    pthread_mutex_t lock;         /* of the queues */
    pthread_cond_t to_cook, to_run, to_file;
    struct tern_job *jobs, *free;
    struct tern_queue raw, cooked, asides; /* asides: for the engine too, before the others */
    uint32_t n_jobs;
    uint64_t n_requests;

    struct tern_json_arena json;  /* the kitchen's */
    struct tern_out loop_out, kitchen_out, engine_out, part_out;
    struct tern_chain *part_of;   /* where part_out writes to */
    struct tern_files files;
    struct tern_stepper *stepper; /* serve_engine.c's own */
    struct tern_choice **running; /* [n_seqs], the engine's, closed up */
    struct tern_served *slots;      /* [n_seqs], the engine's */
    uint64_t n_kept;              /* sequences kept so far */
    double *sums;                 /* [n_seqs][n_embd], of embeddings, by slot */
    enum tern_pooling pooling;
    struct tern_counts counts;
    struct tern_pool_watch pool;
};

/* serve_plan.c */
struct tern_http_options tern_serve_http_options(const struct tern_settings *s);

/* serve_embeddings.c: what --pooling, or else the file, says. */
bool tern_serve_pooling(const struct tern_settings *s, const tern_model *model,
                        enum tern_pooling *out, char line[TERN_ARGS_LINE]);

/* serve_jobs.c */
bool tern_jobs_init(struct tern_server *s, char line[TERN_ARGS_LINE]);
/* Of the jobs, and of what the engine's thread keeps a sequence. */
size_t tern_jobs_bytes(uint32_t n_jobs, const tern_limits *limits, uint32_t n_embd);
struct tern_job *tern_job_new(struct tern_server *s, struct tern_http_exchange *x,
                              const struct tern_route *r); /* NULL: none is free */
/* Ends the exchange too. */
void tern_job_end(struct tern_job *j);
void tern_queue_put(struct tern_server *s, struct tern_queue *q, struct tern_job *j);
/* Ends those that wait for nobody: their client has left. Whether there were any. */
bool tern_queues_clear(struct tern_server *s);
/* The first; with `wait` sleeps until there is one, or the server stops. */
struct tern_job *tern_queue_take(struct tern_server *s, struct tern_queue *q, bool wait);

/* serve_guard.c: whether a request may be looked at at all; if not it was answered. */
bool tern_guard_admits(struct tern_server *s, struct tern_http_exchange *x);
bool tern_guard_has_key(const struct tern_server *s, const struct tern_http_exchange *x);
bool tern_guard_read_keys(struct tern_server *s, char line[TERN_ARGS_LINE]);

/* serve_engine.c, on the engine's thread: a sequence that has ended stays in a slot that nobody
 * runs in; and what stays in one is closed. */
void tern_slot_keep(struct tern_server *s, struct tern_served *slot, tern_seq seq);
void tern_slot_clear(struct tern_server *s, struct tern_served *slot);

/* The same: has work done by the files' thread and steps for others until it is. False: the client
 * of the job has left, or the engine cannot go on. */
bool tern_serve_elsewhere(struct tern_server *s, const struct tern_job *j,
                          void (*work)(void *arg), void *arg);

/* serve_files.c: the thread, which has to be ended; and for the engine's thread: work, one at a
 * time, and whether it is done within so long (0: whatever it takes), or before a job comes. */
void *tern_files_run(void *server);
void tern_files_end(struct tern_server *s);
void tern_files_give(struct tern_server *s, void (*work)(void *arg), void *arg);
bool tern_files_wait(struct tern_server *s, uint32_t most_ms, bool or_job);

/* serve_kitchen.c and serve_engine.c: the threads, and what the kitchen does with one request. */
void tern_kitchen_cook(struct tern_server *s, struct tern_job *j);
void *tern_kitchen_run(void *server);
bool tern_serve_engine(struct tern_server *s);

/* serve_pool.c: on the engine's thread, between steps or before it sleeps. */
void tern_pool_look(struct tern_server *s, bool sleeps);

/* serve_request.c: fields of a request. What is absent or null leaves *out as it is; what is of
 * another kind or out of range is answered with an error, and false. */
bool tern_field_real(struct tern_call *c, const char *name, double least, double most,
                     double *out);
bool tern_field_int(struct tern_call *c, const char *name, int64_t least, int64_t most,
                    int64_t *out);
bool tern_field_bool(struct tern_call *c, const char *name, bool *out);
/* What all ways of generating have in common: sampling, stops, n, streaming. max: the number of
 * tokens where the request names none; -1: until the context is full. */
bool tern_request_read(struct tern_call *c, int64_t max);
/* What the output is held to, as `grammar`, `json_schema` or `response_format` ask for it: at most
 * one of the three. */
struct tern_request_format {
    const char *param; /* the field; NULL: nothing is asked for */
    json_t *schema;
    bool any_object;
    tern_text grammar;
};
bool tern_request_format(struct tern_call *c, struct tern_request_format *out);
/* That as the job's constraint. */
bool tern_request_constraint(struct tern_call *c);

/* serve_prompts.c */
/* Room for so many prompts, and for n_each choices of each. */
bool tern_prompts_open(struct tern_call *c, size_t n_prompts);
bool tern_prompts_encode(struct tern_call *c, uint32_t i, tern_text text, uint32_t flags);
bool tern_prompts_rendered(struct tern_call *c, uint32_t i, const tern_rendered *text,
                           uint32_t flags);
bool tern_prompts_ids(struct tern_call *c, uint32_t i, const json_t *list);
/* Ids, checked for their number and copied. */
bool tern_prompts_keep(struct tern_call *c, uint32_t i, const tern_token *ids, size_t n);

/* serve_write.c: JSON that endpoints have in common. o is the writer of the calling thread. */
/* o writes to the exchange. */
void tern_write_to(struct tern_http_exchange *x, struct tern_out *o);
/* An event of a stream: between the two, one JSON object is written to o. */
void tern_event_begin(struct tern_job *j, struct tern_out *o);
void tern_event_end(struct tern_out *o);
/* The last one of a stream. */
void tern_event_last(struct tern_job *j, struct tern_out *o);
/* llama-server's prompt_progress, a key of the event's object. */
void tern_write_progress(const struct tern_progress_made *p, struct tern_out *o);

/* Objects of "choices", as completions and chats have them. What they differ in is the kind of
 * object, what stands before its id, and the keys of a choice. */
struct tern_choices_form {
    const char *id, *object, *chunk; /* chunk: the object of a stream */
    /* The keys of a choice that is sent whole, but for index and finish_reason. */
    void (*whole)(struct tern_choice *c, struct tern_out *o);
};
/* An event of one choice: between the two its own keys are written. finish may be NULL, as may
 * what a step has computed of its prompt. */
void tern_choice_begin(struct tern_choice *c, struct tern_out *o,
                       const struct tern_choices_form *f);
void tern_choice_end(struct tern_choice *c, struct tern_out *o, const char *finish,
                     const struct tern_progress_made *p);
/* The end of a job: of its stream, with the usage where it was asked for, or the whole answer. */
void tern_choices_end(struct tern_job *j, struct tern_out *o, const struct tern_choices_form *f);

/* A writer that appends to one of a choice's parts, until the end; the items of a list get their
 * commas. */
struct tern_out *tern_part_begin(struct tern_choice *c, uint32_t part);
void tern_part_end(struct tern_choice *c);
/* A part as the value of a key: between two marks ("\"", "[" and "]"), or as it is. */
void tern_part_write(struct tern_choice *c, uint32_t part, struct tern_out *o, const char *key,
                     const char *marks);
/* The same, and it stays. */
void tern_part_copy(struct tern_choice *c, uint32_t part, struct tern_out *o, const char *key,
                    const char *marks);
void tern_write_usage(const struct tern_job *j, struct tern_out *o);
/* {"error": ...}; param and code may be NULL. */
void tern_write_error(struct tern_out *o, int status, const char *param, const char *code,
                      const char *line);
/* The text of a token, its bytes as a list, and its log-probability. */
void tern_write_logprob(struct tern_server *s, struct tern_out *o, tern_token token,
                        float logprob);

#endif
