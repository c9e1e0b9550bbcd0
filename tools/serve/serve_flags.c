/* serve_flags.c: options by the names that llama-server and vLLM have for them.
 *
 * Those of the first table are ours under another name. Those of the second say how things are here
 * anyway, and are taken; with another value, and those of the third, they cannot be honoured: who
 * starts a server with them should know that, and why. */
#include "tools/options.h"
#include "tools/serve/serve_plan.h"

#include <stddef.h>

const struct tern_option tern_serve_other_names[] = {
    {"--parallel", "--max-num-seqs", TERN_OPTION_INT, offsetof(struct tern_settings, n_seqs), 1,
     1024, NULL, "N", "as --sequences"},
    {"--ctx-size", "--max-model-len", TERN_OPTION_INT, offsetof(struct tern_settings, n_ctx), 0,
     1 << 30, NULL, "N", "as --ctx: of each sequence"},
    {"--cache-type-k", "-ctk", TERN_OPTION_KV, offsetof(struct tern_settings, k_type), 0, 0, NULL,
     "TYPE", "as --kv-k"},
    {"--cache-type-v", "-ctv", TERN_OPTION_KV, offsetof(struct tern_settings, v_type), 0, 0, NULL,
     "TYPE", "as --kv-v"},
    {"--served-model-name", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, alias), 0, 0,
     NULL, "NAME", "as --alias"},
    {"--kv-cache-dtype", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, kv_dtype), 0, 0,
     NULL, "TYPE", "as --kv-k and --kv-v"},
    {"--batch-size", "-b", TERN_OPTION_INT, offsetof(struct tern_settings, chunk), 0, 65536, NULL,
     "N", "as --chunk"},
    {"--ubatch-size", "-ub", TERN_OPTION_INT, offsetof(struct tern_settings, chunk), 0, 65536,
     NULL, "N", "as --chunk"},
    {"--max-num-batched-tokens", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, chunk), 0,
     65536, NULL, "N", "as --chunk"},
    {"--chat-template-file", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings,
     chat_template), 0, 0, NULL, "FILE", "as --chat-template"},
    {"--n-predict", NULL, TERN_OPTION_INT, offsetof(struct tern_settings, n_predict), -1, 1 << 30,
     NULL, "N", "as --predict"},
    {"--seed", "-s", TERN_OPTION_SEED, 0, 0, 0, NULL, "N", "as --seed"},
    {"--temperature", NULL, TERN_OPTION_REAL, offsetof(struct tern_settings, temperature), 0,
     1000, NULL, "X", "as --temp"},
    {"--no-prefix-caching", "--no-enable-prefix-caching", TERN_OPTION_FLAG,
     offsetof(struct tern_settings, no_kv_sharing), 0, 0, NULL, NULL, "as --no-kv-sharing"},
    TERN_END_OF_OPTIONS,
};

static const char cpu[] = "it computes on the CPU alone";
static const char one[] = "it is one process on one machine";

const struct tern_option tern_serve_as_it_is[] = {
    {"--cont-batching", "-cb", TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--jinja", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--metrics", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--slots", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--props", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--embedding", "--embeddings", TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--no-mmap", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--no-context-shift", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--cache-prompt", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--kv-unified", "-kvu", TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--offline", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--webui", "--no-warmup", TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--log-disable", "--disable-log-stats", TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--enable-prefix-caching", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--enable-chunked-prefill", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--enable-auto-tool-choice", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--enforce-eager", NULL, TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL, NULL},
    {"--disable-log-requests", "--no-enable-log-requests", TERN_OPTION_IS_SO, 0, 0, 0, NULL, NULL,
     NULL},
    {"--flash-attn", "-fa", TERN_OPTION_ONLY, 0, 0, 0, "on|auto|1|true", "VALUE",
     "attention never keeps all scores here"},
    {"--gpu-layers", "-ngl", TERN_OPTION_ONLY, 0, 0, 0, "0", "VALUE", cpu},
    {"--n-gpu-layers", NULL, TERN_OPTION_ONLY, 0, 0, 0, "0", "VALUE", cpu},
    {"--device", "-dev", TERN_OPTION_ONLY, 0, 0, 0, "none|cpu|auto", "VALUE", cpu},
    {"--split-mode", "-sm", TERN_OPTION_ONLY, 0, 0, 0, "none", "VALUE", cpu},
    {"--tensor-parallel-size", "-tp", TERN_OPTION_ONLY, 0, 0, 0, "1", "VALUE", one},
    {"--pipeline-parallel-size", "-pp", TERN_OPTION_ONLY, 0, 0, 0, "1", "VALUE", one},
    {"--data-parallel-size", "-dp", TERN_OPTION_ONLY, 0, 0, 0, "1", "VALUE", one},
    {"--dtype", NULL, TERN_OPTION_ONLY, 0, 0, 0, "auto", "VALUE",
     "weights are used as the file has them"},
    {"--quantization", "-q", TERN_OPTION_ONLY, 0, 0, 0, "gguf|none", "VALUE",
     "weights are used as the file has them"},
    {"--load-format", NULL, TERN_OPTION_ONLY, 0, 0, 0, "auto|gguf", "VALUE",
     "a GGUF or a Tern image needed"},
    {"--block-size", NULL, TERN_OPTION_ONLY, 0, 0, 0, "16", "VALUE",
     "blocks of the KV cache have 16 tokens"},
    {"--cache-reuse", NULL, TERN_OPTION_ONLY, 0, 0, 0, "0", "VALUE",
     "what is used again is a prefix, never a piece within"},
    {"--reasoning-format", NULL, TERN_OPTION_ONLY, 0, 0, 0, "auto|deepseek", "VALUE",
     "reasoning comes as reasoning_content"},
    {"--cpu-offload-gb", NULL, TERN_OPTION_ONLY, 0, 0, 0, "0", "VALUE", cpu},
    {"--swap-space", NULL, TERN_OPTION_ONLY, 0, 0, 0, "0", "VALUE", cpu},
    TERN_END_OF_OPTIONS,
};

static const char file_s[] = "it is as the file has it";
static const char proxy[] = "it speaks HTTP alone; TLS is for a proxy before it";
static const char local[] = "it takes nothing from the network";
static const char draft[] = "there is no second model that guesses ahead";
static const char log_s[] = "requests are counted, see GET /metrics, and not logged";
static const char request_s[] = "it is a request's own to say";

/* Before the tables that have these as options of other commands. */
const struct tern_option tern_serve_of_requests[] = {
    {"--stop", "-r", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, request_s},
    {"--logit-bias", "-l", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, request_s},
    TERN_END_OF_OPTIONS,
};

const struct tern_option tern_serve_never[] = {
    {"--gpu-memory-utilization", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, cpu},
    {"--main-gpu", "-mg", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, cpu},
    {"--tensor-split", "-ts", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, cpu},
    {"--n-cpu-moe", "-ncmoe", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, cpu},
    {"--mlock", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "memory is not locked"},
    {"--numa", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "see --affinity"},
    {"--threads-batch", "-tb", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "the same threads do both: --threads"},
    {"--threads-http", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "one thread has all connections"},
    {"--no-cont-batching", "-nocb", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "answers always share a step"},
    {"--context-shift", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "an answer ends where its context is full"},
    {"--no-kv-offload", "-nkvo", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, cpu},
    {"--lora", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "there are no adapters"},
    {"--enable-lora", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "there are no adapters"},
    {"--lora-modules", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "there are no adapters"},
    {"--control-vector", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "there are no control vectors"},
    {"--mmproj", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "models of text alone are run"},
    {"--model-draft", "-md", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, draft},
    {"--speculative-config", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, draft},
    {"--rope-scaling", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--rope-scale", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--rope-freq-base", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--rope-freq-scale", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--override-kv", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--tokenizer", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--hf-overrides", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, file_s},
    {"--ssl-key-file", "--ssl-keyfile", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, proxy},
    {"--ssl-cert-file", "--ssl-certfile", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, proxy},
    {"--api-prefix", "--root-path", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "paths begin where they begin"},
    {"--no-slots", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "GET /slots tells what runs, to who has a key"},
    {"--verbose", "-v", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, log_s},
    {"--log-file", "-lv", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, log_s},
    {"--enable-log-requests", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, log_s},
    {"--path", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "files are not served"},
    {"--hf-repo", "-hf", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, local},
    {"--model-url", "-mu", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, local},
    {"--download-dir", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, local},
    {"--trust-remote-code", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "no code of a model is run"},
    {"--reasoning-budget", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, request_s},
    {"--json-schema", "-j", TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, request_s},
    {"--tool-call-parser", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "calls are read as the template writes them"},
    {"--reasoning-parser", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL,
     "reasoning is read as the template writes it"},
    {"--models-dir", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, "one model a process"},
    {"--keep", NULL, TERN_OPTION_NEVER, 0, 0, 0, NULL, NULL, request_s},
    TERN_END_OF_OPTIONS,
};
