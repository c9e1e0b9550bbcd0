/* fuzz_metadata.c: a right model whose keys and tensors are changed one by one, as a whole: other
 * types, counts and values, keys that a recipe may look for, keys twice or not at all. So what
 * is tried is past the parser, which fuzz_gguf tries. What still opens is planned, and what is
 * small enough runs. */
#include "tests/fuzz/script.h"
#include "tests/unit/open_model.h"
#include "tests/unit/tiny_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ARENAS = 1 << 22, MOST_CHANGES = 24, N_STEPS = 4 };

static const char *const architectures[] = {"llama", "qwen2", "qwen3", "gemma3"};

/* Keys that are read where they are there; a '.' stands for the architecture. */
static const char *const optional[] = {
    ".rope.scaling.type", ".rope.scaling.factor", ".rope.scale_linear", ".rope.freq_base_swa",
    ".rope.scaling.original_context_length", ".rope.scaling.yarn_ext_factor",
    ".rope.scaling.yarn_attn_factor", ".rope.scaling.yarn_beta_fast",
    ".rope.scaling.yarn_beta_slow", ".rope.scaling.attn_factor", ".attention.scale",
    ".attention.sliding_window", ".attention.sliding_window_pattern", ".attn_logit_softcapping",
    ".final_logit_softcapping", ".expert_count", ".vocab_size", ".attention.head_count_kv",
    "general.alignment", "general.type", "split.count", "split.no", "split.tensors.count",
    "tokenizer.ggml.pre", "tokenizer.ggml.merges", "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.chat_template",
};
enum { N_OPTIONAL = sizeof optional / sizeof *optional };

static const char *const words[] = {"", "none", "linear", "yarn", "llama", "gpt2", "bert", "gpt-2",
                                    "llama-bpe", "gemma3", "qwen2", "<s>", "a b", "\xff"};

/* --- one key --- */

static const unsigned char type_bytes[TERN_N_META_TYPES] = {
    [TERN_META_U8] = 1, [TERN_META_I8] = 1, [TERN_META_U16] = 2, [TERN_META_I16] = 2,
    [TERN_META_U32] = 4, [TERN_META_I32] = 4, [TERN_META_F32] = 4, [TERN_META_BOOL] = 1,
    [TERN_META_U64] = 8, [TERN_META_I64] = 8, [TERN_META_F64] = 8,
};

static uint64_t load(const unsigned char *p, size_t n)
{
    uint64_t u = 0;
    while (n--)
        u = u << 8 | p[n];
    return u;
}

static size_t value_bytes(const unsigned char *p, uint32_t type)
{
    if (type == TERN_META_STRING)
        return 8 + (size_t)load(p, 8);
    if (type != TERN_META_ARRAY)
        return type_bytes[type];
    const uint32_t element = (uint32_t)load(p, 4);
    size_t n = 12;
    for (uint64_t i = load(p + 4, 8); i-- > 0;)
        n += value_bytes(p + n, element);
    return n;
}

static void put_value(struct script *in, struct gw_bytes *to, uint32_t type)
{
    static const uint64_t integers[] = {0, 1, 2, 3, 4, 7, 8, 12, 16, 32, 64, 255, 256, 4096, 65535,
                                        65536, 1u << 20, INT32_MAX, UINT32_MAX, INT64_MAX,
                                        UINT64_MAX};
    static const float floats[] = {0, 1, -1, 0.5f, 2, 1e-5f, 1e-38f, 1e15f, 3e38f, NAN, INFINITY,
                                   10000, 500000};
    if (type == TERN_META_STRING) {
        gw_put_text(to, words[take(in) % (sizeof words / sizeof *words)]);
    } else if (type == TERN_META_F32) {
        gw_put(to, &floats[take(in) % (sizeof floats / sizeof *floats)], 4);
    } else if (type == TERN_META_F64) {
        const double d = (double)floats[take(in) % (sizeof floats / sizeof *floats)];
        gw_put(to, &d, 8);
    } else {
        const uint64_t u = integers[take(in) % (sizeof integers / sizeof *integers)];
        gw_put_int(to, type == TERN_META_BOOL ? u & 1 : u, type_bytes[type]);
    }
}

/* Any value of any type. */
static void put_any(struct script *in, struct gw_bytes *to)
{
    const uint32_t type = take(in) % TERN_N_META_TYPES;
    gw_put_int(to, type, 4);
    if (type != TERN_META_ARRAY) {
        put_value(in, to, type);
        return;
    }
    uint32_t element = take(in) % TERN_N_META_TYPES;
    if (element == TERN_META_ARRAY)
        element = TERN_META_BOOL;
    const uint32_t n = take(in) % 12;
    gw_put_int(to, element, 4);
    gw_put_int(to, n, 8);
    for (uint32_t i = 0; i < n; i++)
        put_value(in, to, element);
}

/* The value at p with one of its numbers changed; the type stays. */
static void put_near(struct script *in, struct gw_bytes *to, const unsigned char *p, uint32_t type)
{
    const size_t n = value_bytes(p, type), start = to->n;
    gw_put(to, p, n);
    if (type == TERN_META_STRING || n == 0)
        return;
    const size_t from = type == TERN_META_ARRAY ? 12 : 0;
    if (n == from)
        return;
    const size_t at = from + (take(in) | (size_t)take(in) << 8) % (n - from);
    const bool text = type == TERN_META_ARRAY && load(p, 4) == TERN_META_STRING;
    if (!text || p[at] >= ' ') /* the lengths of strings are the parser's matter */
        to->data[start + at] = take(in);
}

/* --- all keys and tensors --- */

struct key_change { uint8_t key, how; struct script in; };

/* Copies the keys with the changes made; their number may change. */
static void change_keys(struct gguf_writer *w, const struct gguf_writer *from,
                        const struct key_change *changes, int n_changes)
{
    size_t at = 0;
    for (uint64_t i = 0; i < from->n_keys; i++) {
        const unsigned char *p = from->keys.data + at;
        const size_t head = 8 + (size_t)load(p, 8);
        const uint32_t type = (uint32_t)load(p + head, 4);
        const size_t value = value_bytes(p + head + 4, type);
        const struct key_change *c = changes;
        while (c < changes + n_changes && c->key != i)
            c++;
        const bool changed = c < changes + n_changes;
        struct script in = changed ? c->in : (struct script){0};
        const uint8_t how = changed ? c->how % 8 : 0xff;
        if (how != 0)
            gw_put(&w->keys, p, head);
        if (how == 1 || how == 2)
            put_any(&in, &w->keys);
        else if (how >= 3 && how < 7) {
            gw_put_int(&w->keys, type, 4);
            put_near(&in, &w->keys, p + head + 4, type);
        } else if (how != 0)
            gw_put(&w->keys, p + head, 4 + value);
        if (how == 7) /* twice */
            gw_put(&w->keys, p, head + 4 + value);
        w->n_keys += how == 0 ? 0 : how == 7 ? 2 : 1;
        at += head + 4 + value;
    }
}

static void add_key(struct script *in, struct gguf_writer *w, const char *architecture)
{
    char full[96];
    const char *key = optional[take(in) % N_OPTIONAL];
    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? architecture : "", key);
    gw_put_text(&w->keys, full);
    put_any(in, &w->keys);
    w->n_keys++;
}

/* Another type or dimension of one tensor, in place; its data stay. */
static void change_tensor(struct script *in, struct gguf_writer *w)
{
    size_t at = 0;
    for (int i = take(in) % (int)w->n_tensors; i >= 0; i--) {
        unsigned char *p = w->tensors.data + at;
        const size_t head = 8 + (size_t)load(p, 8);
        const size_t n_dims = (size_t)load(p + head, 4);
        if (i == 0 && take(in) % 2)
            p[head + 4 + 8 * n_dims] = take(in) % 42;
        else if (i == 0)
            p[head + 4 + 8 * (take(in) % n_dims)] = take(in);
        at += head + 4 + 8 * n_dims + 12;
    }
}

static struct gguf_writer changed_model(struct script *in)
{
    struct tiny t = tiny_of(architectures[take(in) % 4]);
    t.has_output = take(in) % 2;
    struct gguf_writer from = tiny_make(&t), w = gw_start();
    struct key_change changes[MOST_CHANGES];
    const int n_tensors = take(in) % 4 == 3 ? take(in) % 4 : 0, n_added = take(in) % 4;
    w.n_tensors = from.n_tensors;
    gw_put(&w.tensors, from.tensors.data, from.tensors.n);
    gw_put(&w.data, from.data.data, from.data.n);
    for (int i = 0; i < n_added; i++)
        add_key(in, &w, t.architecture);
    for (int i = 0; i < n_tensors; i++)
        change_tensor(in, &w);
    int n = 0;
    while (in->n && n < MOST_CHANGES) {
        changes[n].key = take(in) % 24;
        changes[n].how = take(in);
        changes[n++].in = *in;
        for (int i = 0; i < 5; i++) /* what the change may take */
            (void)take(in);
    }
    change_keys(&w, &from, changes, n);
    gw_finish(&w);
    gw_free(&from);
    return w;
}

/* --- what still opens --- */

static void run(const tern_model *m, const tern_plan *plan)
{
    tern_memory arenas[TERN_N_ARENAS] = {{NULL, 0}};
    tern_error err = {0};
    tern_engine *e;
    for (uint32_t i = 1; i < TERN_N_ARENAS; i++) {
        const tern_arena_need *need = &plan->arenas[i];
        arenas[i].size = need->bytes;
        arenas[i].data = aligned_alloc(need->align, need->bytes ? need->bytes : need->align);
        require(arenas[i].data);
    }
    require(tern_engine_init(plan, arenas, m, tern_backend_find("cpu"), NULL, &e, &err) == TERN_OK);
    require(tern_engine_load(e, SIZE_MAX, NULL, NULL) == TERN_OK);
    const tern_seq_options o = {.sampling = {.temperature = 0, .top_p = 1, .typical_p = 1,
                                             .repeat_penalty = 1}, .special = true};
    const tern_token tokens[] = {1, 4};
    tern_seq seq;
    require(tern_seq_open(e, &o, &seq) == TERN_OK);
    if (tern_seq_feed(e, seq, tokens, 2) == TERN_OK) {
        for (int i = 0; i < N_STEPS; i++) {
            tern_event event;
            size_t n;
            const tern_status status = tern_step(e, &event, 1, &n);
            require(status == TERN_OK || status == TERN_AGAIN);
            require(!n || is_utf8(event.text.data, event.text.size));
        }
    }
    tern_engine_close(e);
    for (uint32_t i = 1; i < TERN_N_ARENAS; i++)
        free(arenas[i].data);
}

static void use(const struct opened *o)
{
    tern_plan plan;
    tern_error err = {0};
    tern_model_info info;
    const tern_limits limits = {.n_ctx = 8, .chunk = 4};
    tern_model_describe(o->model, &info);
    require(info.runnable && o->model->memory_bytes == o->need);
    check_text_to_tokens(o->model, (tern_text){"ab <s> b\xff", 9}, TERN_TOKENIZE_SPECIAL);
    const tern_status status = tern_plan_make(o->model, tern_backend_find("cpu"), &limits, &plan,
                                              &err);
    require(status == TERN_OK || err.text[0]);
    if (status == TERN_OK && plan.bytes < MOST_ARENAS)
        run(o->model, &plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script in = {data, size};
    struct gguf_writer w = changed_model(&in);
    tern_status answers[N_OPEN_HOWS];
    for (int how = 0; how < N_OPEN_HOWS; how++) {
        struct opened *o = open_bytes((enum open_how)how, TERN_MODEL_WHOLE, w.file.data, w.file.n);
        answers[how] = o->status;
        require(o->status == TERN_OK || o->status == TERN_BAD_MODEL ||
                o->status == TERN_UNSUPPORTED);
        require(o->status == TERN_OK ? o->model != NULL : o->error.text[0] != '\0');
        if (o->model)
            use(o);
        open_close(o);
    }
    require(answers[OPEN_MAPPED] == answers[OPEN_READ]);
    gw_free(&w);
    return 0;
}
