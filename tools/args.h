/* args.h: options from tables. A row of a table parses an option, checks its value, gives its
 * default and prints its line of help, so that the four cannot differ. */
#ifndef TERN_ARGS_H
#define TERN_ARGS_H

#include "runtime/tern.h"

enum { TERN_ARGS_LIST = 16, TERN_ARGS_LINE = 320 };

struct tern_list { uint32_t n, at[TERN_ARGS_LIST]; };

/* All that any command can be told. Pointers are into argv, or to text that the owner keeps. */
struct tern_settings {
    const char *model;
    const char *prompt, *file, *ids, *prompts; /* NULL: not given */
    int64_t n_predict;                         /* -1: until the context is full */
    int64_t n_ctx, n_threads, n_seqs, chunk;   /* 0: the default */
    struct tern_list threads, batches, affinity;
    int64_t prefill, decode, repeat;
    int64_t logprobs, prompt_logprobs;
    double temperature, top_p, min_p, typical_p, repeat_penalty, presence, frequency;
    int64_t top_k, repeat_last_n;
    uint64_t seed, fit;
    bool has_seed;
    tern_kv_type k_type, v_type;
    const char *stops[TERN_MAX_STOPS];
    uint32_t n_stops;
    tern_bias biases[TERN_MAX_BIASES];
    uint32_t n_biases;
    const char *decode_ids, *save_logits, *kl_base, *trace;
    const char *messages, *chat_template, *tools, *variables; /* of a conversation */
    const char *system, *think;
    int64_t think_budget;                      /* -1: none */
    const char *output, *object, *c_array, *symbol, *arch, *cache;
    const char *match, *vocabulary, *grammar, *schema, *session;
    const char *host, *api_key, *api_key_file, *cors_origin; /* of a server */
    const char *alias, *kv_dtype, *pooling, *warm, *slot_save_path;
    int64_t port, queue, connections, drain, timeout, kv_tokens;
    uint64_t body;
    bool special, no_bos, ignore_eos, json, jsonl, exact, no_kv_sharing, tensors, program, help;
    bool server, verify, json_mode, lenient, no_generation, adapt, as_ids, stats, chat, no_page;
};

enum tern_option_kind {
    TERN_OPTION_FLAG, /* bool */
    TERN_OPTION_INT,  /* int64_t in least .. most */
    TERN_OPTION_BYTES, /* uint64_t; K, M, G allowed */
    TERN_OPTION_REAL, /* double in least .. most */
    TERN_OPTION_TEXT, /* const char * */
    TERN_OPTION_STOP, /* repeated: a stop string */
    TERN_OPTION_BIAS, /* repeated: ID=X */
    TERN_OPTION_KV,   /* tern_kv_type by name */
    TERN_OPTION_LIST, /* struct tern_list of least .. most */
    TERN_OPTION_SEED, /* uint64_t, and has_seed */
    /* These set nothing, and are not in the help: */
    TERN_OPTION_IS_SO, /* a flag that is taken: it is so anyway */
    TERN_OPTION_ONLY,  /* one of the values in preset, | between them, is so; others cannot be */
    TERN_OPTION_NEVER, /* it cannot be honoured; help says why */
};

struct tern_option {
    const char *name, *alias; /* "--temp"; "-c" or NULL */
    enum tern_option_kind kind;
    size_t at;                /* offset in tern_settings */
    double least, most;
    const char *preset;       /* the default as one would write it; NULL: nothing */
    const char *value, *help; /* "N"; what it does, with the default where preset has none */
};

/* A command's options: tables that end with a row without a name. Of rows of one name the first
 * counts. */
struct tern_command {
    const char *name, *usage, *summary;
    const struct tern_option *const *tables; /* ends with NULL */
    const char *notes;                       /* printed after the options; may be NULL */
    const char *word, *word_is;              /* "model", "a GGUF file"; NULL: it takes none */
    int (*run)(const struct tern_settings *s);
};

/* Fills s with the defaults of a command's tables. */
void tern_args_defaults(const struct tern_command *c, struct tern_settings *s);
/* Parses what follows the command's name. False: line holds what is wrong. */
bool tern_args_parse(const struct tern_command *c, int argc, char **argv, struct tern_settings *s,
                     char line[TERN_ARGS_LINE]);
/* The name of the command that was parsed, for its errors: "tern NAME: ...". */
const char *tern_args_who(void);
/* An option by its long name without the dashes, _ for - allowed; NULL: there is none. */
const struct tern_option *tern_args_find(const struct tern_command *c, const char *name);
/* Sets one option by such a name, from JSON or a line typed; errors call it so. The text must live
 * as long as s. "true" and "false" set flags. */
bool tern_args_set(const struct tern_command *c, const char *name, const char *text,
                   struct tern_settings *s, char line[TERN_ARGS_LINE]);
/* The help of one command to standard output. */
void tern_args_help(const struct tern_command *c);

#endif
