/* tern.h: the public interface of Tern, and its manual.
 *
 * Order of use:
 *
 *   tern_source         where the model's bytes are: mapped, in flash, or read at an offset;
 *                       a GGUF, or a Tern image that is used where it lies
 *   tern_model_size     how much memory the header, the tokenizer and the program need
 *   tern_model_init     in the caller's memory: every field checked
 *   tern_plan_make      the bytes of every arena, from the header and the limits alone
 *   tern_engine_init    program + the caller's arenas + one backend
 *   tern_engine_load    weights, a piece at a time, until it stops answering TERN_AGAIN
 *   tern_seq_open       one conversation; tern_seq_feed gives it tokens
 *   tern_step           schedule, decode, sample: events with text come back
 *
 * The library allocates nothing and calls no operating system. A function that needs memory
 * has a partner that says how much. `(out, cap, *n)` always reports the size needed in *n:
 * with cap 0 it is the size query, and a buffer that is too small answers TERN_TOO_SMALL.
 *
 * Threads: objects of different engines are independent. One engine is used by one thread at
 * a time and spreads its work over the host's threads itself; tern_seq_cancel alone may be
 * called from any thread. A model is read-only after its init and may be shared.
 * Ownership: the caller owns all memory. Pointers returned by a function live as long as the
 * object they came from, unless the comment says otherwise.
 * Structs of options: a field left zero means its default, which the comment states.
 * Errors: before an engine exists the error is passed in (may be NULL); afterwards the engine
 * keeps one. The first error wins: clear it (status = TERN_OK) to reuse the struct.
 */
#ifndef TERN_H
#define TERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TERN_API __attribute__((visibility("default")))
#define TERN_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TERN_API
#define TERN_MUST_CHECK
#endif

/* --- results and errors --- */

typedef enum tern_status {
    TERN_OK = 0,
    TERN_AGAIN,        /* ordinary: nothing is ready, or a queue or pool is full now */
    TERN_TOO_SMALL,    /* the output buffer is too small; *n holds the size needed */
    TERN_BAD_ARGUMENT, /* the call breaks its contract, or a parameter is out of range */
    TERN_BAD_MODEL,    /* the bytes of a model, image, session or grammar are malformed */
    TERN_UNSUPPORTED,  /* well formed, but not by this build, device or format */
    TERN_NO_MEMORY,    /* an arena is smaller than its plan; the text names it */
    TERN_DEVICE_LOST,  /* a driver or device failed; the engine must be closed */
    TERN_IO,           /* a source's read failed */
} tern_status;

typedef struct tern_error {
    tern_status status;
    char text[252]; /* one line: the thing, the value found, the limit */
} tern_error;

TERN_API const char *tern_status_name(tern_status status);
TERN_API const char *tern_version(void); /* "0.1.0" */

/* --- views --- */

typedef struct tern_bytes { const void *data; size_t size; } tern_bytes;
typedef struct tern_memory { void *data; size_t size; } tern_memory;
typedef struct tern_text { const char *data; size_t size; } tern_text; /* bytes, no NUL needed */

typedef int32_t tern_token;
typedef uint32_t tern_seq; /* a slot and a generation: a stale one is refused. 0 is never valid */

typedef struct tern_model tern_model;
typedef struct tern_engine tern_engine;
typedef struct tern_backend tern_backend;

/* --- the host: threads and a clock --- */

/* What the core asks of its surroundings. All zero: one thread, no clock, the best variant.
 * parallel runs job(arg, 0 .. n_threads-1) on n_threads threads, the caller being one of them,
 * and returns when all have returned. barrier is called inside a job by each of the threads
 * with its own number, and returns when all n_threads have called it; everything written
 * before it by any of them is visible after it. It spins for a bounded time, then sleeps.
 * The engine never calls parallel from inside a job. */
enum { TERN_ARM_DOTPROD = 1 << 0, TERN_ARM_I8MM = 1 << 1, TERN_X86_AMX = 1 << 2 };
typedef struct tern_host {
    void *self;
    uint32_t n_threads; /* 0: 1 */
    void (*parallel)(void *self, void (*job)(void *arg, uint32_t thread), void *arg);
    void (*barrier)(void *self, uint32_t thread);
    uint64_t (*now_ns)(void *self); /* monotonic; NULL: timings are zero */
    const char *cpu;                /* strongest CPU variant allowed, "reference" for none;
                                       NULL: the best that the CPU has */
    uint32_t cpu_has;               /* TERN_ARM_*: what the system says of a CPU that a program
                                       may not ask; 0: what the compiler was told. A wrong word
                                       ends in an undefined instruction. TERN_X86_AMX: the system
                                       lets this process use tiles, if the CPU has them */
} tern_host;

/* --- sources: where the bytes of a model are --- */

/* Either base points at all of the file's bytes (mapped, in flash, linked in) and they stay
 * there, or read copies n bytes from an offset and answers false when it cannot. A source that
 * is read needs a window of the caller's memory of at least TERN_SOURCE_WINDOW bytes. release
 * (optional) is told that a range will not be read again, so pages can be given back. With
 * by_many both may be called by several threads of the host at a time, and the weights of a
 * GGUF are loaded by all of them. */
enum { TERN_SOURCE_WINDOW = 4096 };

typedef struct tern_source {
    const void *base; /* or NULL, and then read and window are set */
    uint64_t size;
    bool (*read)(void *self, uint64_t offset, void *dst, size_t n);
    void (*release)(void *self, uint64_t offset, uint64_t n);
    void *self;
    tern_memory window;
    bool by_many;
} tern_source;

/* --- model: what a file says of itself, its tokenizer and its program --- */

typedef enum tern_model_parts {
    TERN_MODEL_WHOLE = 0, /* header, tokenizer, program: all that an engine needs */
    TERN_MODEL_TEXT,      /* header and tokenizer: architecture need not be known */
    TERN_MODEL_HEADER,    /* header alone: metadata and tensor directory */
} tern_model_parts;

/* A model is one source or, for a split file, its parts in order (at most TERN_MAX_PARTS). The
 * sources, and what they point to, must stay valid as long as the model. Memory for it begins
 * at a multiple of 16, as malloc's does. */
enum { TERN_MAX_PARTS = 64 };

TERN_API TERN_MUST_CHECK tern_status tern_model_size(const tern_source *parts, size_t n_parts,
                                                     tern_model_parts what, size_t *need,
                                                     tern_error *err);
TERN_API TERN_MUST_CHECK tern_status tern_model_init(tern_memory mem, const tern_source *parts,
                                                     size_t n_parts, tern_model_parts what,
                                                     tern_model **out, tern_error *err);

/* What a model says of itself. is_image: it lies in a Tern image, which was made of n_parts files
 * of the GGUF's file_version. */
typedef struct tern_model_info {
    tern_text name, architecture, tokenizer, pre_tokenizer, chat_template;
    uint32_t file_version, n_parts;
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim, n_vocab, n_ctx_train;
    uint32_t n_tensors, n_metadata, n_ops, n_kv_groups;
    uint64_t n_params, weight_bytes, file_bytes;
    tern_token bos, eos, eot, pad; /* -1: none */
    bool add_bos, runnable;        /* runnable: an engine can be made of it */
    bool is_image;
    uint64_t identity;             /* of an image: what tern_image_write was given */
} tern_model_info;

TERN_API void tern_model_describe(const tern_model *model, tern_model_info *out);

/* The i-th key of the metadata. Text of scalars and of the first elements of arrays is
 * written into text as UTF-8 without a NUL, cut at cap; *n is what the whole would need. */
typedef struct tern_metadata {
    tern_text key;
    const char *type; /* "u32", "string", "array of string" ... */
    uint64_t count;   /* elements of an array; 1 otherwise */
} tern_metadata;
TERN_API TERN_MUST_CHECK tern_status tern_model_metadata(const tern_model *model, uint32_t i,
                                                         tern_metadata *out, char *text,
                                                         size_t cap, size_t *n);

typedef struct tern_tensor_info {
    tern_text name;
    const char *type;  /* "Q4_K" ... */
    const char *path;  /* "direct" or "expanded": how the CPU multiplies by it; "none": it is of
                        * a type that is not read, of unknown size (TERN_MODEL_HEADER alone) */
    uint32_t type_id;  /* as the file has it */
    uint32_t n_dims, part;
    uint64_t dims[4]; /* dims[0] is contiguous: in-features; dims[1] rows: out-features */
    uint64_t offset, bytes;
} tern_tensor_info;
TERN_API TERN_MUST_CHECK tern_status tern_model_tensor(const tern_model *model, uint32_t i,
                                                       tern_tensor_info *out);

/* One line of text for the i-th op of the program, as recipes emit them. */
TERN_API TERN_MUST_CHECK tern_status tern_model_op(const tern_model *model, uint32_t i, char *text,
                                                   size_t cap, size_t *n, uint32_t *layer);

/* --- images: a model as it is used, in one piece --- */

/* A Tern image (quant/FORMATS.md) holds the weights as the CPU multiplies by them, the tokenizer's
 * tables, the metadata and hashes. It is a model's source like a GGUF, whose base is aligned to
 * 64 bytes (a page is better: 4,096), and is used where it lies: mapped, in flash, or linked
 * into the program. An engine of it has no weights arena, and tern_engine_load has nothing to
 * do. The head's hash is checked whenever an image is opened, all of it by tern_image_verify. */
TERN_API TERN_MUST_CHECK tern_status tern_image_verify(const tern_source *image, tern_error *err);

/* Where an image or a session is written: n bytes at an offset; false: it cannot. Every byte is
 * written once: from the end of the head on in order, and then the head, which begins at 0. */
typedef struct tern_sink {
    bool (*write)(void *self, uint64_t offset, const void *src, size_t n);
    void *self;
} tern_sink;

/* Bytes of the image of a model that was read whole from a GGUF, and of the scratch memory,
 * aligned to 64, that writing it needs. The same model gives the same bytes; identity, the
 * caller's name for the file (0: none), stands in the head. */
TERN_API TERN_MUST_CHECK tern_status tern_image_size(const tern_model *model, uint64_t *bytes,
                                                     size_t *scratch, tern_error *err);
TERN_API TERN_MUST_CHECK tern_status tern_image_write(const tern_model *model, uint64_t identity,
                                                      tern_memory scratch, const tern_sink *sink,
                                                      tern_error *err);

/* XXH64 with seed 0. */
TERN_API uint64_t tern_hash_of(const void *data, size_t n);

/* --- text and tokens --- */

enum {
    TERN_TOKENIZE_SPECIAL = 1, /* text that spells a control token becomes it */
    TERN_TOKENIZE_NO_BOS = 2,  /* no token is added at the start or end, whatever the file asks */
};

/* Scratch that tern_tokenize needs for a text of so many bytes; linear in it. */
TERN_API size_t tern_tokenize_scratch(const tern_model *model, size_t text_bytes);
/* At most, and at least, so many tokens come from so many bytes (BOS and EOS included). */
TERN_API size_t tern_tokenize_most(const tern_model *model, size_t text_bytes);
TERN_API size_t tern_tokenize_least(const tern_model *model, size_t text_bytes);

/* Text to ids. Any bytes are taken: what the vocabulary cannot express becomes byte tokens or
 * the unknown token as the tokenizer's kind does. */
TERN_API TERN_MUST_CHECK tern_status tern_tokenize(const tern_model *model, tern_text text,
                                                   uint32_t flags, tern_memory scratch,
                                                   tern_token *out, size_t cap, size_t *n,
                                                   tern_error *err);

/* The piece as the vocabulary spells it. The bytes it stands for are *bytes (bytes_cap is
 * enough at TERN_MAX_PIECE); control tokens stand for none unless special. */
enum { TERN_MAX_PIECE = 1024 };
typedef enum tern_token_kind {
    TERN_TOKEN_NORMAL = 1, TERN_TOKEN_UNKNOWN = 2, TERN_TOKEN_CONTROL = 3,
    TERN_TOKEN_USER = 4, TERN_TOKEN_UNUSED = 5, TERN_TOKEN_BYTE = 6,
} tern_token_kind;
typedef struct tern_piece {
    tern_text text;
    float score;
    tern_token_kind kind;
    bool ends;
} tern_piece;
TERN_API TERN_MUST_CHECK tern_status tern_token_piece(const tern_model *model, tern_token token,
                                                      tern_piece *out);
TERN_API TERN_MUST_CHECK tern_status tern_token_bytes(const tern_model *model, tern_token token,
                                                      bool special, char *out, size_t cap,
                                                      size_t *n);

/* Ids to bytes. The space that the tokenizer puts before a text's first word is taken away
 * once, at the start; the same rule holds for the stream below, so that pieces add up. */
enum { TERN_DETOKENIZE_SPECIAL = 1 }; /* control tokens are written out */
TERN_API TERN_MUST_CHECK tern_status tern_detokenize(const tern_model *model,
                                                     const tern_token *tokens, size_t n_tokens,
                                                     uint32_t flags, char *out, size_t cap,
                                                     size_t *n, tern_error *err);

/* A stream of tokens to whole UTF-8 characters: an unfinished character is held back until it
 * is whole or cannot become so, and then (as at the end) its bytes are emitted as U+FFFD each
 * maximal part. Zero-initialised, it is at the start of a text. */
typedef struct tern_detok { uint8_t held[4]; uint8_t n_held, started; } tern_detok;
enum { TERN_DETOK_CAP = 3 * (TERN_MAX_PIECE + 4) };
TERN_API size_t tern_detok_push(const tern_model *model, tern_detok *d, tern_token token,
                                bool special, char out[TERN_DETOK_CAP]);
TERN_API size_t tern_detok_end(tern_detok *d, char out[TERN_DETOK_CAP]);

/* --- grammars --- */

/* A grammar in the language of llama.cpp's grammars (GBNF), as a machine that reads bytes. What is
 * sampled under it is what it lets in, whole tokens at a time. It lies in the caller's memory, is
 * read-only, and may be used by many sequences. Beyond its bounds it answers a named error:
 * TERN_GRAMMAR_MOST_TEXT bytes of text, 65535 states, what mem and scratch hold (the constants
 * below are enough for a schema of some thousand properties), and so many steps of work as scratch
 * has room for; and while it reads, calls within one another to TERN_GRAMMAR_DEPTH, and
 * TERN_GRAMMAR_WAYS ways to read the same text. */
typedef struct tern_grammar tern_grammar;
enum {
    TERN_GRAMMAR_MOST_TEXT = 4 << 20,
    TERN_GRAMMAR_BYTES = 4 << 20,    /* of mem, and 16 MiB of scratch, do for nearly all */
    TERN_GRAMMAR_SCRATCH = 16 << 20,
    TERN_GRAMMAR_DEPTH = 256, TERN_GRAMMAR_WAYS = 256,
    TERN_GRAMMAR_NODES = 768, TERN_GRAMMAR_ITEMS = 256,
    TERN_GRAMMAR_TOKEN_BYTES = 255,  /* a longer token is not let in */
};

/* Both memories begin at a multiple of 64. scratch is free again afterwards, and so is mem beyond
 * *used. Errors in the text are TERN_BAD_MODEL, "grammar: line 3, column 7: ...". Terminals that
 * are tokens need the model, for others it may be NULL. */
TERN_API TERN_MUST_CHECK tern_status tern_grammar_compile(tern_memory mem, tern_memory scratch,
                                                          tern_text gbnf, const tern_model *model,
                                                          tern_grammar **out, size_t *used,
                                                          tern_error *err);
typedef struct tern_grammar_info {
    uint32_t n_units, n_states, n_ranges, n_calls;
} tern_grammar_info;
TERN_API void tern_grammar_describe(const tern_grammar *grammar, tern_grammar_info *out);

/* Where a text stands in a grammar: a value, kept by who wants to go back to it. Its fields are
 * the library's. */
struct tern_grammar_way { uint32_t state, count, node; };
struct tern_grammar_node { uint32_t parent, call, count, depth; };
struct tern_grammar_item { uint32_t state, count, node; bool fresh; };
typedef struct tern_grammar_state {
    const tern_grammar *grammar;
    uint32_t n_ways, n_nodes;
    bool overflow; /* ways were left out for want of room: less than all is let in */
    struct tern_grammar_way ways[TERN_GRAMMAR_WAYS];
    struct tern_grammar_node nodes[TERN_GRAMMAR_NODES];
    struct tern_grammar_way next[TERN_GRAMMAR_WAYS]; /* this and what follows: while it moves */
    struct tern_grammar_item items[TERN_GRAMMAR_ITEMS];
    uint16_t marks[TERN_GRAMMAR_NODES + 1];
} tern_grammar_state;

TERN_API void tern_grammar_start(const tern_grammar *grammar, tern_grammar_state *out);
TERN_API void tern_grammar_copy(tern_grammar_state *to, const tern_grammar_state *from);
/* Reads bytes as far as the grammar lets them in; answers how many. */
TERN_API size_t tern_grammar_advance(tern_grammar_state *state, const void *bytes, size_t n);
/* Reads a token; false: it is not let in, and the state is to be thrown away. A terminal for the
 * token is preferred to its bytes. */
TERN_API bool tern_grammar_accept(tern_grammar_state *state, const tern_model *model,
                                  tern_token token);
TERN_API bool tern_grammar_may_end(tern_grammar_state *state);
/* The bytes that may come next, one bit each. */
TERN_API void tern_grammar_expected(tern_grammar_state *state, uint8_t set[32]);

/* --- chat templates --- */

/* A template in Jinja, as model files carry them, compiled into the caller's memory; the source
 * need not stay. tern_template_size is a bound, linear in the source (0: more than a MiB). What
 * cannot run is refused with its line. */
typedef struct tern_template tern_template;
TERN_API size_t tern_template_size(tern_text source);
TERN_API TERN_MUST_CHECK tern_status tern_template_init(tern_memory mem, tern_text source,
                                                        tern_template **out, tern_error *err);
/* Templates by name: "chatml" ... ; NULL after the last, data NULL if there is none. */
TERN_API const char *tern_template_name_at(size_t i);
TERN_API tern_text tern_template_builtin(const char *name);

/* A name in the template: JSON text, whose every text is the caller's user's (messages, tools,
 * add_generation_prompt), or, where json.data is NULL, a text that counts as the template's own
 * (bos_token). */
typedef struct tern_variable { const char *name; tern_text json, own; } tern_variable;
typedef struct tern_date { uint32_t year, month, day, hour, minute, second; } tern_date;
typedef struct tern_render {
    const tern_variable *variables;
    size_t n_variables;
    bool (*now)(void *self, tern_date *out); /* local time, for strftime_now; may be NULL */
    void *self;
    size_t output_bytes; /* at most; 0: twice the JSON and 256 KiB */
    size_t text_bytes;   /* of texts made on the way; 0: six times the JSON and 512 KiB */
    size_t value_bytes;  /* of values; 0: eight times the JSON and 1 MiB */
    uint32_t depth;      /* calls and loops in one another; 0: 200 */
    uint64_t steps;      /* instructions, and bytes looked at in sixteens; 0: 20 million */
} tern_render;

/* Each byte of the output is the template's own, or a user's, through whatever filter, slice or
 * concatenation it came; neighbours of one kind are a run. */
typedef struct tern_run { size_t end; bool own; } tern_run; /* begins where the last ends */
typedef struct tern_rendered { tern_text text; const tern_run *runs; size_t n_runs; } tern_rendered;

TERN_API size_t tern_render_scratch(const tern_render *options);
/* The result lies in scratch. A template that raises, that needs what is not there, or that
 * passes a limit is refused with its line. */
TERN_API TERN_MUST_CHECK tern_status tern_template_render(const tern_template *t,
                                                          const tern_render *options,
                                                          tern_memory scratch, tern_rendered *out,
                                                          tern_error *err);
/* As tern_tokenize, but control tokens come only from spellings that lie in the template's own
 * text as a whole; the text between them is cut as one, whoever wrote it. */
TERN_API TERN_MUST_CHECK tern_status tern_tokenize_rendered(const tern_model *model,
                                                            const tern_rendered *text,
                                                            uint32_t flags, tern_memory scratch,
                                                            tern_token *out, size_t cap,
                                                            size_t *n, tern_error *err);

/* --- backends --- */

TERN_API const tern_backend *tern_backend_at(size_t i); /* NULL after the last */
TERN_API const tern_backend *tern_backend_find(const char *name);
TERN_API const char *tern_backend_name(const tern_backend *backend);

/* CPU variants built in, weakest first ("reference" is the 0th); NULL after the last. cpu_has,
 * here and below: as in tern_host. */
TERN_API const char *tern_cpu_variant_at(size_t i, uint32_t cpu_has, bool *this_cpu_has_it);
/* The variant that a host with this limit gets; NULL if the limit names none that was built. */
TERN_API const char *tern_cpu_variant_chosen(const char *limit, uint32_t cpu_has);
/* One line of the features found on this CPU, written like a size query. */
TERN_API size_t tern_cpu_features_text(uint32_t cpu_has, char *out, size_t cap);

/* --- plan: the bytes of every arena, before a weight is read --- */

typedef enum tern_kv_type {
    TERN_KV_F16 = 0,
    TERN_KV_F32,
    TERN_KV_Q8_0, /* this and what follows: rotated by a Hadamard transform, then rounded */
    TERN_KV_Q4_0,
    TERN_N_KV_TYPES,
} tern_kv_type;

typedef struct tern_limits {
    uint32_t n_ctx;       /* tokens a sequence can hold; 0: the smaller of the model's and 4096 */
    uint32_t n_seqs;      /* sequences open at once; 0: 1 */
    uint32_t chunk;       /* rows of one step, prompts are cut so; 0: 128, of several threads 256
                             (less if n_ctx is) */
    uint32_t n_threads;   /* those of the host; 0: 1; at most 256 */
    uint32_t n_logit_rows;/* rows of a step that can have logits; 0: n_seqs */
    uint32_t n_logprobs;  /* most log-probabilities reported a token; 0: none; at most 1024 */
    uint32_t n_kv_tokens; /* tokens of the KV pool, all sequences together, at least n_ctx; 0:
                             n_seqs * n_ctx, each rounded up to a block */
    uint32_t n_stop_bytes;/* of all stop strings of one sequence; 0: 1024 */
    tern_kv_type k_type, v_type;
    bool exact;           /* activations, K and V stay float32: to compare with a float model */
    bool no_kv_sharing;   /* no prefix is looked up or kept */
    bool timings;         /* there is room for the times of one step: tern_timings_keep */
    bool grammars;        /* sequences may have grammars: there is room for the vocabulary's bytes
                             and for masks */
    bool hidden;          /* sequences may ask for hidden states: there is room for those of a step,
                             n_logit_rows of them */
} tern_limits;

typedef enum tern_arena_id {
    TERN_ARENA_MODEL,       /* what tern_model_init was given; already in use */
    TERN_ARENA_WEIGHTS,     /* panels; nothing for an image, which has them */
    TERN_ARENA_KV,          /* the pools of blocks; weights are staged there while loading */
    TERN_ARENA_ACTIVATIONS, /* slots of the program, logits */
    TERN_ARENA_SCRATCH,     /* per thread, and the backend's state */
    TERN_ARENA_STATE,       /* engine, sequences, block tables, prefix index */
    TERN_ARENA_SAMPLER,     /* candidates, penalties, log-probabilities */
    TERN_N_ARENAS,
} tern_arena_id;

typedef struct tern_arena_need {
    const char *name; /* "weights" ... */
    size_t bytes;     /* a multiple of align */
    size_t align;     /* of its start: 64 or 4096 */
} tern_arena_need;

typedef struct tern_plan {
    uint32_t n_arenas;                     /* TERN_N_ARENAS */
    tern_arena_need arenas[TERN_N_ARENAS]; /* by tern_arena_id */
    size_t bytes;                          /* their sum */
    tern_limits limits;                    /* with every default filled in */
} tern_plan;

TERN_API TERN_MUST_CHECK tern_status tern_plan_make(const tern_model *model,
                                                    const tern_backend *backend,
                                                    const tern_limits *limits, tern_plan *out,
                                                    tern_error *err);

/* --- engine --- */

/* arenas[i] is at least plan->arenas[i] in size and alignment; arenas[TERN_ARENA_MODEL] is not
 * looked at. All of it may be uninitialised. host is copied; what it points to stays. */
TERN_API TERN_MUST_CHECK tern_status tern_engine_init(const tern_plan *plan,
                                                      const tern_memory *arenas,
                                                      const tern_model *model,
                                                      const tern_backend *backend,
                                                      const tern_host *host, tern_engine **out,
                                                      tern_error *err);

/* Loads about budget bytes of weights and answers TERN_AGAIN, or TERN_OK when all are there.
 * done and total (may be NULL) count bytes of the file. */
TERN_API TERN_MUST_CHECK tern_status tern_engine_load(tern_engine *engine, size_t budget,
                                                      uint64_t *done, uint64_t *total);
TERN_API const tern_error *tern_engine_error(const tern_engine *engine);
TERN_API void tern_engine_clear_error(tern_engine *engine);
TERN_API void tern_engine_close(tern_engine *engine);

/* --- sequences: many conversations over one engine --- */

/* The chain is llama.cpp's default order: logit bias, penalties, top-k, typical, top-p, min-p,
 * temperature, then one draw. Fields are taken as they are; tern_sampling_default fills in
 * what `tern run` uses. */
typedef struct tern_bias { tern_token token; float bias; } tern_bias;
typedef struct tern_sampling {
    float temperature;       /* <= 0 (or below 1e-6): greedy, the lowest id wins a tie */
    int32_t top_k;           /* <= 0: off */
    float top_p;             /* 1: off; in [0, 1] */
    float min_p;             /* 0: off; in [0, 1] */
    float typical_p;         /* 1: off; in [0, 1] */
    float repeat_penalty;    /* 1: off; > 0 */
    int32_t repeat_last_n;   /* tokens looked back at, prompt included; 0: off, -1: the context */
    float presence_penalty, frequency_penalty; /* 0: off; within +-100 */
    const tern_bias *biases; /* copied; a token named twice is an error */
    uint32_t n_biases;       /* at most TERN_MAX_BIASES */
    uint64_t seed;           /* random numbers depend on (seed, stream, position) alone */
    uint64_t stream;         /* the caller's id of this stream: request, choice */
} tern_sampling;
enum { TERN_MAX_BIASES = 1024, TERN_MAX_STOPS = 32, TERN_MAX_TRIGGER = 64 };
enum { TERN_MAX_SHOWN = 16, TERN_MAX_TAG = 64, TERN_MAX_FORCED = 64 };

TERN_API void tern_sampling_default(tern_sampling *out);

/* Whose hidden states are reported: of no token, of the last that was fed, of all. */
typedef enum tern_hidden { TERN_HIDDEN_NONE, TERN_HIDDEN_LAST, TERN_HIDDEN_ALL } tern_hidden;

typedef struct tern_seq_options {
    tern_sampling sampling;
    uint32_t max_tokens;    /* generated a feed; 0: until the context is full */
    /* Stop strings are not looked for in the text of the first min_tokens tokens, and the last
     * n_early of the biases hold for these alone: such as forbid end tokens. A grammar is
     * stronger: where it lets in nothing else, the n_early are passed over, and the text ends if
     * it is at its end. */
    uint32_t min_tokens, n_early;
    const tern_text *stops; /* copied; text from the first stop string on is never emitted; they
                             * are not looked for in reasoning, nor in its tags (below) */
    uint32_t n_stops;
    uint32_t n_logprobs;    /* reported with each generated token; within the limits */
    int32_t n_prompt_logprobs; /* with each prompt token; -1: the token's own alone; 0: no events */
    bool ignore_eos;        /* end tokens are sampled and reported like others */
    bool special;           /* control tokens are written into text */
    bool no_kv_sharing;     /* this sequence neither finds nor leaves a prefix */
    bool prefill_only;      /* nothing is generated: once all is computed it ends, as "length" */
    tern_hidden hidden;     /* as prefill_only, and hidden states are reported (limits.hidden): the
                               floats that the last matrix would be multiplied by. The same bits
                               alone and among others, whatever the chunk */
    /* What is generated is held to a grammar (limits.grammars), which lives as long as the
     * sequence; with a trigger (copied) from the first time on that the text ends with it. It
     * begins anew at each feed. End tokens are chosen where the grammar may end, and end the text
     * whatever ignore_eos says; log-probabilities stay those of the raw distribution. */
    const tern_grammar *grammar;
    tern_text grammar_trigger; /* at most TERN_MAX_TRIGGER bytes */
    /* Control tokens, by their spelling, that are written into text though special is off: what
     * tern_reply_markers names, so that a reader sees tags and no other control token is shown.
     * Those that the vocabulary does not have are passed over. */
    const tern_text *shown;
    uint32_t n_shown;       /* at most TERN_MAX_SHOWN */
    /* Reasoning between two tags (copied, at most TERN_MAX_TAG bytes each): it begins where the
     * generated text does, white space aside. Without a closing tag none is looked for. While
     * there are tags, grammar and trigger count from the end of the reasoning on, or from the
     * start of a text that has none. */
    tern_text think_open, think_close;
    bool thinks;            /* what is fed ends inside of reasoning */
    /* After think_tokens generated tokens of reasoning (0: at once) the tokens think_end (copied,
     * at most TERN_MAX_FORCED) are generated, whatever the logits say; they should spell the
     * closing tag. None: the token that spells think_close. */
    bool think_limited;
    uint32_t think_tokens;
    const tern_token *think_end;
    uint32_t n_think_end;
} tern_seq_options;

typedef enum tern_stop {
    TERN_STOP_NONE, TERN_STOP_EOS, TERN_STOP_STRING, TERN_STOP_LENGTH, TERN_STOP_CONTEXT,
    TERN_STOP_CANCELLED, TERN_STOP_ERROR,
} tern_stop;
/* "eos", "stop", "length", "context", "interrupt", "error" */
TERN_API const char *tern_stop_name(tern_stop stop);

typedef struct tern_logprob { tern_token token; float logprob; } tern_logprob;

typedef enum tern_event_kind {
    TERN_EVENT_PROMPT, /* log-probabilities of a prompt token, in order of position; the first
                          token of a sequence follows nothing and has none */
    TERN_EVENT_TOKEN,  /* a token was generated; text may be empty while a character or a stop
                          string is unfinished */
    TERN_EVENT_HIDDEN, /* the hidden state of a token, in order of position */
    TERN_EVENT_DONE,   /* no more until it is fed again; text is what was held back */
} tern_event_kind;

typedef struct tern_event {
    tern_event_kind kind;
    tern_seq seq;
    tern_token token;              /* with DONE: the end token, which is not kept, or -1 */
    uint32_t position;             /* of the token in its sequence */
    float logprob;                 /* of the token, in the model's raw distribution; only where
                                      n_logprobs or n_prompt_logprobs asked for it */
    uint32_t n_logprobs;
    const tern_logprob *logprobs;  /* best first, ties by lower id; live until the next step */
    const float *hidden;           /* with HIDDEN: n_embd of them; live until the next step */
    tern_text text;                /* whole UTF-8 characters; live until the next step */
    tern_stop stop;                /* with DONE */
    const char *error;             /* with TERN_STOP_ERROR: one line */
} tern_event;

typedef struct tern_seq_info {
    uint32_t n_tokens;    /* held: fed and generated */
    uint32_t n_computed;  /* of these, in the KV cache */
    uint32_t n_cached;    /* of these, found by their prefix and not computed */
    uint32_t n_generated; /* since the last feed */
    uint32_t n_thought;   /* of these, reasoning: between the tags of the options */
    bool running;
} tern_seq_info;

/* TERN_AGAIN when n_seqs are open. Parameters out of range are TERN_BAD_ARGUMENT. */
TERN_API TERN_MUST_CHECK tern_status tern_seq_open(tern_engine *engine,
                                                   const tern_seq_options *options, tern_seq *out);
/* Other options from its next feed on, for a sequence that does not run; it keeps what it holds.
 * On an error it keeps its options too, only its stop strings are gone. */
TERN_API TERN_MUST_CHECK tern_status tern_seq_set_options(tern_engine *engine, tern_seq seq,
                                                          const tern_seq_options *options);
/* Appends tokens and sets the sequence running; none are needed if it holds some. More than
 * fits in the context, with room for one token to generate unless prefill_only, is refused
 * whole. A sequence that was fed and has generated nothing yet may be fed more. */
TERN_API TERN_MUST_CHECK tern_status tern_seq_feed(tern_engine *engine, tern_seq seq,
                                                   const tern_token *tokens, size_t n_tokens);
/* A copy, running if the sequence is, that shares every block until one of them writes to it;
 * stream is the copy's own. */
TERN_API TERN_MUST_CHECK tern_status tern_seq_fork(tern_engine *engine, tern_seq seq,
                                                   uint64_t stream, tern_seq *out);
/* Keeps the first n_keep tokens and stops the sequence. */
TERN_API TERN_MUST_CHECK tern_status tern_seq_trim(tern_engine *engine, tern_seq seq,
                                                   uint32_t n_keep);
/* From any thread: the next tern_step ends it with TERN_STOP_CANCELLED. */
TERN_API void tern_seq_cancel(tern_engine *engine, tern_seq seq);
TERN_API TERN_MUST_CHECK tern_status tern_seq_describe(const tern_engine *engine, tern_seq seq,
                                                       tern_seq_info *out);
TERN_API void tern_seq_close(tern_engine *engine, tern_seq seq);

/* What a block of the KV pool is: nothing that can be found, a prefix that nobody uses now, one
 * sequence's, or several sequences' at once. */
typedef enum tern_block_use {
    TERN_BLOCK_FREE, TERN_BLOCK_KEPT, TERN_BLOCK_USED, TERN_BLOCK_SHARED,
} tern_block_use;

/* The use of block i of a pool, 0 and on; false behind the last, or where there is no such pool.
 * Layers of one geometry share a pool; window: what they see, 0 for all. */
TERN_API bool tern_block_at(const tern_engine *engine, uint32_t pool, uint32_t i,
                            tern_block_use *use, uint32_t *window);

/* How often a running sequence lost its blocks to another, and has to compute them again. */
TERN_API uint64_t tern_preemptions(const tern_engine *engine);

/* One step: a batch over the running sequences is scheduled, decoded and sampled. Writes up to
 * cap events and their number; what does not fit comes with the next calls, before new work.
 * TERN_AGAIN: no sequence is running. */
TERN_API TERN_MUST_CHECK tern_status tern_step(tern_engine *engine, tern_event *events, size_t cap,
                                               size_t *n);
/* Rows that a step has at most from now on; 0 and what is beyond the limits' chunk: the chunk.
 * Fewer make steps shorter, so that streams beside a long prompt wait less for their next token;
 * what is generated does not depend on it. */
TERN_API void tern_step_rows(tern_engine *engine, uint32_t rows);

/* --- replies: what the text of an answer says --- */

/* How a model writes that it calls tools. */
typedef enum tern_call_format {
    TERN_CALLS_NONE = 0, /* it does not: all is text */
    TERN_CALLS_HERMES,   /* <tool_call>{"name": "f", "arguments": {...}}</tool_call>, Qwen's too;
                            a reply that begins with such an object alone, or in a fence (```json),
                            as small models write it, if it has no keys but a call's */
    TERN_CALLS_XML,      /* <tool_call><function=f><parameter=k>v</parameter></function>
                            </tool_call>, Qwen3-Coder's; the outer tags may be missing */
    TERN_CALLS_LLAMA3,   /* {"name": "f", "parameters": {...}} as the whole reply, or behind
                            <|python_tag|>; several follow each other, a semicolon between them */
    TERN_CALLS_LFM2,     /* <|tool_call_start|>[f(k="v", n=1)]<|tool_call_end|>, Python's values */
    TERN_N_CALL_FORMATS,
} tern_call_format;
TERN_API const char *tern_call_format_name(tern_call_format format); /* "hermes" ... */

/* Kinds of JSON values, as a set. */
enum {
    TERN_VALUE_NULL = 1, TERN_VALUE_BOOLEAN = 2, TERN_VALUE_INTEGER = 4, TERN_VALUE_NUMBER = 8,
    TERN_VALUE_STRING = 16, TERN_VALUE_ARRAY = 32, TERN_VALUE_OBJECT = 64, TERN_VALUE_ANY = 127,
};

typedef struct tern_reply_options {
    tern_call_format calls;
    tern_text think_open, think_close; /* no closing tag: nothing is reasoning; they stay valid */
    bool thinks;                       /* the prompt ends inside of reasoning */
    /* XML alone: the kinds that a tool's schema gives a parameter. A value that is JSON of such a
     * kind (True, False and None too) is taken as that, any other as a string. NULL, or 0 for a
     * parameter that is not known: a string. */
    uint32_t (*kinds)(void *self, tern_text tool, tern_text parameter);
    void *self;
} tern_reply_options;

/* Tags and format from a template's source; thinks and kinds are left as they are. Reasoning tags
 * that the template does not show are none. Without a word of tools in it calls are HERMES, which
 * is how tools are described to such a model. */
TERN_API void tern_reply_detect(tern_text template_source, tern_reply_options *out);
/* Whether a prompt ends behind the opening tag, white space aside. */
TERN_API bool tern_reply_thinks(const tern_reply_options *options, tern_text prompt);
/* The spellings that a reader needs to see, for tern_seq_options.shown; at most TERN_MAX_SHOWN. */
TERN_API size_t tern_reply_markers(const tern_reply_options *options,
                                   tern_text out[TERN_MAX_SHOWN]);
/* The text that a call begins with in this format, for a grammar's trigger. */
TERN_API tern_text tern_reply_trigger(tern_call_format format);

typedef enum tern_part_kind {
    TERN_PART_TEXT,      /* of the answer */
    TERN_PART_REASONING,
    TERN_PART_CALL,      /* text is the name of the tool, whole */
    TERN_PART_ARGUMENTS, /* the next piece of a call's arguments: JSON text of an object */
    TERN_PART_CALL_END,
} tern_part_kind;

typedef struct tern_part {
    tern_part_kind kind;
    bool whole;     /* CALL_END: the arguments are a whole object. False: see below */
    uint32_t call;  /* CALL, ARGUMENTS, CALL_END: the call's number, from 0 */
    uint64_t at;    /* CALL, CALL_END: bytes of the reply before the call's first tag, and before
                       what follows the call */
    tern_text text; /* lives until the next call of the reader; cut inside a character only where
                       what was pushed was */
} tern_part;

/* A reader of one reply, in memory of TERN_REPLY_BYTES that begins at a multiple of 16; it may be
 * copied as bytes between a tern_reply_next that answered false and the next push.
 *
 * What comes out is the same however the text was cut: the texts of TEXT, of REASONING, and the
 * arguments of each call, put together, are; their pieces are as early as they are certain.
 *
 *   - Nothing is lost. What looks like a call and is none comes as TEXT, tags included, as long as
 *     no CALL was given. A CALL is given when its name is known and its arguments begin.
 *   - Arguments are a prefix of a JSON object at any time. What models write wrongly but clearly
 *     is put right: line ends in strings, unknown escapes, halves of surrogate pairs. If the rest
 *     is not JSON, or the reply ends, the call ends with whole false: its arguments are cut short
 *     there, and what follows is TEXT. A caller that has kept the reply takes it as text from the
 *     CALL's `at` on, if it would rather have that.
 *   - White space is left out: at both ends of the reasoning, before the text that follows it,
 *     between text and a call on both sides, and at the end of a reply with calls. A run of more
 *     than 256 bytes is kept.
 *   - Reasoning begins at the start of the reply alone, and behind a call. The tags of calls mean
 *     nothing inside of it, and reasoning that never ends is reasoning.
 *   - Bounds: a name of 256 bytes, what stands before the name and values of parameters that are
 *     no strings 2,048 bytes, 64 values within one another. What is beyond is no call, or (a
 *     parameter's value) a string.
 */
typedef struct tern_reply tern_reply;
enum { TERN_REPLY_BYTES = 8192 };

TERN_API TERN_MUST_CHECK tern_status tern_reply_init(tern_memory mem,
                                                     const tern_reply_options *options,
                                                     tern_reply **out, tern_error *err);
/* Gives it the next piece, which stays valid until tern_reply_next answers false; last: the reply
 * ends with it. Text in UTF-8, as events have it, may be cut anywhere. */
TERN_API void tern_reply_push(tern_reply *reply, tern_text text, bool last);
/* The next part of what was pushed; false: there is none yet. */
TERN_API bool tern_reply_next(tern_reply *reply, tern_part *out);

/* --- the layer below: one forward pass, and one choice, by hand --- */

/* Rows of one sequence, which does not run, stand together and are appended to what it holds;
 * what it holds and is not in the cache is computed first. At most chunk rows, at most
 * n_logit_rows of them with logits. TERN_AGAIN: the pool cannot hold these sequences together. */
typedef struct tern_row { tern_seq seq; tern_token token; bool want_logits; } tern_row;

TERN_API TERN_MUST_CHECK tern_status tern_decode(tern_engine *engine, const tern_row *rows,
                                                 size_t n_rows);
/* n_vocab floats of the i-th row that wanted them; live until the next decode or step. */
TERN_API const float *tern_logits(const tern_engine *engine, size_t i);
/* By the sequence's sampling alone: its grammar is not looked at. */
TERN_API TERN_MUST_CHECK tern_status tern_sample(tern_engine *engine, tern_seq seq,
                                                 const float *logits, tern_token *out);

/* --- saved sequences: sessions --- */

/* A sequence that does not run can be saved, and taken back later: by another process, on any
 * CPU. A session (quant/FORMATS.md, section 8) holds its tokens, their keys and values, where its
 * random numbers stand, and a note of the caller's: any bytes, such as messages and settings.
 * "Saved, taken back, continued" gives the bits of "never stopped". Keys and values are kept by
 * whole blocks of 16 tokens; the up to 15 tokens behind are computed anew, to the same bits.
 *
 * A session is refused, by what differs, unless model (its program and samples of all weights;
 * an image and its GGUF are the same), types of K and V, exactness and arithmetic are those that
 * it was saved under; so is one that is damaged. Every number in it is checked, but keys and values
 * may be any bits: what a stranger's session makes the model say is the stranger's choice, to
 * whoever shares its prefix too. */
enum { TERN_SAVED_MOST_NOTE = 16 << 20 };

typedef struct tern_saved_info {
    char model[56];            /* name of the model, cut */
    uint64_t file_bytes;
    uint32_t n_tokens;
    uint32_t n_computed;       /* of these, whose keys and values are there */
    tern_kv_type k_type, v_type;
    bool exact;
    uint64_t seed, stream;     /* of its random numbers, which go on at position n_tokens */
    uint64_t tokens_at;        /* where in the file: n_tokens 32-bit ids, lowest byte first */
    uint64_t note_at, note_bytes;
} tern_saved_info;

/* Bytes of the session of a sequence, and of the scratch memory that writing or restoring one
 * with this engine needs; scratch begins at a multiple of 64. seq may be 0 for the second alone:
 * then *bytes is 0. */
TERN_API TERN_MUST_CHECK tern_status tern_saved_size(tern_engine *engine, tern_seq seq,
                                                     size_t note_bytes, uint64_t *bytes,
                                                     size_t *scratch);
/* The same sequence gives the same bytes.
 *
 * A sink's write and a source's read may call the engine: so a large session is written or taken
 * back in pieces between the steps of others. Its own sequence is left alone meanwhile. What runs
 * may take the sequence's blocks, once nobody else's are left: TERN_AGAIN. */
TERN_API TERN_MUST_CHECK tern_status tern_saved_write(tern_engine *engine, tern_seq seq,
                                                      tern_bytes note, tern_memory scratch,
                                                      const tern_sink *sink);
/* What a session says of itself: all of it but keys and values is checked, by its hash too. */
TERN_API TERN_MUST_CHECK tern_status tern_saved_read(const tern_source *file, tern_saved_info *out,
                                                     tern_error *err);
/* Gives an open sequence that holds no tokens those of the session, and as many of them computed
 * as the file has; what is fed to it continues them. Their blocks are in the index of prefixes as
 * well: whoever is fed the same tokens finds them, also once this sequence is closed. Room is made
 * as for a prompt, by what was used the longest ago and does not run; TERN_AGAIN: the pool is full
 * of what runs. Whatever fails leaves the sequence without tokens. */
TERN_API TERN_MUST_CHECK tern_status tern_saved_restore(tern_engine *engine, tern_seq seq,
                                                        const tern_source *file,
                                                        tern_memory scratch);

/* --- where a step's time goes --- */

typedef enum tern_work {
    TERN_WORK_MATMUL, TERN_WORK_ATTENTION, TERN_WORK_ROWS, TERN_WORK_BARRIER, TERN_WORK_SAMPLER,
    TERN_N_WORKS,
} tern_work;
/* What one thread did from one time of the host's clock to another. ROWS is work on rows alone:
 * norms, rotation, storing keys; BARRIER is waiting for the other threads. */
typedef struct tern_timing {
    uint64_t start_ns, end_ns;
    tern_work work;
    uint32_t thread, op; /* op: the program's first that this was part of; UINT32_MAX: none */
} tern_timing;

TERN_API const char *tern_work_name(tern_work work); /* "matmul" ... */
/* Steps and decodes from now on keep their times, or no longer do. Needs the limit and a clock. */
TERN_API TERN_MUST_CHECK tern_status tern_timings_keep(tern_engine *engine, bool on);
/* The i-th of the last step or decode, and of tern_sample since; false after the last. */
TERN_API bool tern_timing_at(const tern_engine *engine, size_t i, tern_timing *out);

#ifdef __cplusplus
}
#endif
#endif
