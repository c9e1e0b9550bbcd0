#include "tools/options.h"

#include <stddef.h>

const struct tern_option tern_options_prompt[] = {
    {"--prompt", "-p", TERN_OPTION_TEXT, offsetof(struct tern_settings, prompt), 0, 0, NULL,
     "TEXT", "the text; else -f or standard input"},
    {"--file", "-f", TERN_OPTION_TEXT, offsetof(struct tern_settings, file), 0, 0, NULL,
     "FILE", "the text from a file; - is standard input"},
    {"--special", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, special), 0, 0, NULL,
     NULL, "text that spells a control token becomes it, and is written out"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_engine[] = {
    {"--ctx", "-c", TERN_OPTION_INT, offsetof(struct tern_settings, n_ctx), 0, 1 << 30, NULL,
     "N", "tokens of context (default: the smaller of the model's and 4096)"},
    {"--threads", "-t", TERN_OPTION_INT, offsetof(struct tern_settings, n_threads), 1, 256, NULL,
     "N", "threads (default: the physical cores)"},
    {"--affinity", NULL, TERN_OPTION_LIST, offsetof(struct tern_settings, affinity), 0, 1023, NULL,
     "LIST", "CPUs that the threads are tied to, one each in turn: 0,2 (default: none)"},
    {"--chunk", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, chunk), 0, 65536, NULL,
     "N", "rows of one step; prompts are cut so (default: 128, of several threads 256)"},
    {"--exact", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, exact), 0, 0, NULL,
     NULL, "activations stay float32: to compare with a float reference"},
    {"--kv-k", NULL, TERN_OPTION_KV, offsetof(struct tern_settings, k_type), 0, 0, "f16",
     "TYPE", "type of the cached keys: f16, f32, q8_0, q4_0"},
    {"--kv-v", NULL, TERN_OPTION_KV, offsetof(struct tern_settings, v_type), 0, 0, "f16",
     "TYPE", "type of the cached values: f16, f32, q8_0, q4_0"},
    {"--no-kv-sharing", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, no_kv_sharing), 0,
     0, NULL, NULL, "no prefix of another prompt is used again"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_sampling[] = {
    {"--predict", "-n", TERN_OPTION_INT, offsetof(struct tern_settings, n_predict), -1, 1 << 30,
     "-1", "N", "tokens to generate; -1: until the context is full"},
    {"--temp", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, temperature), 0, 1000, "0.8",
     "X", "temperature; 0 is greedy"},
    {"--top-k", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, top_k), 0, 1 << 30, "40",
     "N", "the N likeliest tokens; 0: all"},
    {"--top-p", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, top_p), 0, 1, "0.95",
     "X", "the likeliest tokens whose probabilities reach X; 1: all"},
    {"--min-p", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, min_p), 0, 1, "0.05",
     "X", "tokens at least X as likely as the likeliest; 0: all"},
    {"--typical", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, typical_p), 0, 1, "1",
     "X", "locally typical tokens; 1: all"},
    {"--repeat-penalty", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, repeat_penalty),
     0.001, 1000, "1", "X", "penalty of tokens seen lately; 1: none"},
    {"--repeat-last-n", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, repeat_last_n), -1,
     1 << 30, "64", "N", "tokens that the penalties look back at; -1: all, 0: none"},
    {"--presence-penalty", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, presence), -100,
     100, "0", "X", "taken from the logits of tokens seen"},
    {"--frequency-penalty", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, frequency), -100,
     100, "0", "X", "the same, times how often they were seen"},
    {"--logit-bias", NULL, TERN_OPTION_BIAS, 0, 0, 0, NULL,
     "ID=X", "adds X to a token's logit; may be repeated; -inf forbids it"},
    {"--seed", NULL, TERN_OPTION_SEED, 0, 0, 0, NULL,
     "N", "of the random numbers (default: from the clock, and printed)"},
    {"--stop", NULL, TERN_OPTION_STOP, 0, 0, 0, NULL,
     "TEXT", "ends before this text; may be repeated"},
    {"--ignore-eos", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, ignore_eos), 0, 0,
     NULL, NULL, "end tokens do not end it"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_logprobs[] = {
    {"--logprobs", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, logprobs), 0, 1024, "0",
     "K", "with JSON: the K best log-probabilities of each generated token"},
    {"--prompt-logprobs", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, prompt_logprobs),
     0, 1024, "0", "K", "the same of each token of the prompt"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_grammar[] = {
    {"--grammar", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, grammar), 0, 0, NULL,
     "FILE", "what is generated is held to a grammar (GBNF)"},
    {"--schema", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, schema), 0, 0, NULL,
     "FILE", "what is generated is held to a JSON schema"},
    {"--json-mode", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, json_mode), 0, 0, NULL,
     NULL, "what is generated is a JSON object"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_session[] = {
    {"--session", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, session), 0, 0, NULL,
     "FILE", "begins with what is computed there, if it is there; is written at the end"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_server[] = {
    {"--sequences", "-np", TERN_OPTION_INT, offsetof(struct tern_settings, n_seqs), 1, 1024, NULL,
     "N", "answers that a server works on at a time (default 4)"},
    {"--queue", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, queue), 0, 4096, "60", "N",
     "requests that may wait beside those; more are told to come again"},
    {"--kv-tokens", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, kv_tokens), 0, 1 << 30,
     NULL, "N", "tokens that all sequences hold together (default: --sequences times --ctx)"},
    {"--connections", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, connections), 1,
     60000, "256", "N", "clients at a time"},
    {"--pooling", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, pooling), 0, 0, NULL,
     "KIND", "of embeddings: mean or last (default: the file's, or else last)"},
    {"--slot-save-path", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, slot_save_path), 0,
     0, NULL, "DIR", "what ended stays in its slot, which POST /slots/N?action=save saves there"},
    {"--max-body", NULL, TERN_OPTION_BYTES, offsetof(struct tern_settings, body), 0, 0, "1M",
     "BYTES", "of one request; K, M, G allowed"},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_options_json[] = {
    {"--json", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, json), 0, 0, NULL,
     NULL, "one JSON object on standard output"},
    TERN_END_OF_OPTIONS,
};
