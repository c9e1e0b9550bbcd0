#include "tools/session.h"

#include "tools/interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fail(struct tern_session *s, tern_status status, const char *text)
{
    if (s->error.status == TERN_OK) {
        s->error.status = status;
        snprintf(s->error.text, sizeof s->error.text, "%.*s", (int)sizeof s->error.text - 1,
                 text);
    }
    return false;
}

bool tern_session_open(struct tern_session *s, const char *path, tern_model_parts what)
{
    memset(s, 0, sizeof *s);
    s->begun_ns = tern_os_now_ns();
    if (tern_os_open_model(path, &s->files, &s->error) != TERN_OK)
        return false;
    size_t need = 0;
    if (tern_model_size(s->files.parts, s->files.n_parts, what, &need, &s->error) != TERN_OK)
        return fail(s, TERN_BAD_MODEL, "the model could not be measured");
    s->model_memory = tern_os_map(need, 64);
    if (s->model_memory.data == NULL)
        return fail(s, TERN_NO_MEMORY, "no memory for the model's header");
    if (tern_model_init(s->model_memory, s->files.parts, s->files.n_parts, what, &s->model,
                        &s->error) != TERN_OK)
        return fail(s, TERN_BAD_MODEL, "the model could not be read");
    tern_model_describe(s->model, &s->info);
    s->backend = tern_backend_at(0);
    return true;
}

bool tern_session_spares(struct tern_session *s, const char *path)
{
    char line[TERN_ARGS_LINE];
    for (size_t i = 0; path && i < s->files.n_parts; i++)
        if (tern_os_leads_to(path, s->files.files[i])) {
            snprintf(line, sizeof line, "%.100s: a file of the model itself, not written over",
                     path);
            return fail(s, TERN_BAD_ARGUMENT, line);
        }
    return true;
}

tern_sampling tern_session_sampling(const struct tern_settings *s, uint64_t seed,
                                    uint64_t stream)
{
    return (tern_sampling){
        .temperature = (float)s->temperature,
        .top_k = (int32_t)s->top_k,
        .top_p = (float)s->top_p,
        .min_p = (float)s->min_p,
        .typical_p = (float)s->typical_p,
        .repeat_penalty = (float)s->repeat_penalty,
        .repeat_last_n = (int32_t)s->repeat_last_n,
        .presence_penalty = (float)s->presence,
        .frequency_penalty = (float)s->frequency,
        .biases = s->biases,
        .n_biases = s->n_biases,
        .seed = seed,
        .stream = stream,
    };
}

tern_limits tern_session_limits(const struct tern_settings *settings)
{
    int64_t most = settings->logprobs > settings->prompt_logprobs ? settings->logprobs
                                                                  : settings->prompt_logprobs;
    size_t stops = 0;
    for (uint32_t i = 0; i < settings->n_stops; i++)
        stops += strlen(settings->stops[i]);
    return (tern_limits){
        .n_ctx = (uint32_t)settings->n_ctx,
        .n_seqs = (uint32_t)settings->n_seqs,
        .chunk = (uint32_t)settings->chunk,
        .n_threads = settings->n_threads ? (uint32_t)settings->n_threads : tern_os_cores(),
        .n_logprobs = (uint32_t)most,
        .n_stop_bytes = stops > 1024 ? (uint32_t)stops : 0,
        .k_type = settings->k_type,
        .v_type = settings->v_type,
        .exact = settings->exact,
        .no_kv_sharing = settings->no_kv_sharing,
        .grammars = settings->grammar || settings->schema || settings->json_mode,
    };
}

bool tern_session_plan(struct tern_session *s, const tern_limits *limits)
{
    return tern_plan_make(s->model, s->backend, limits, &s->plan, &s->error) == TERN_OK ||
           fail(s, TERN_UNSUPPORTED, "no plan could be made");
}

uint64_t tern_session_arena_bytes(const tern_plan *plan, size_t i)
{
    uint64_t page = tern_os_page();
    return (plan->arenas[i].bytes + page - 1) / page * page;
}

uint64_t tern_session_engine_bytes(const tern_plan *plan)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->n_arenas; i++)
        sum += tern_session_arena_bytes(plan, i);
    return sum;
}

/* All of its pages, though those of tables that no text needs are never touched. */
static uint64_t image_bytes(const struct tern_session *s)
{
    uint64_t page = tern_os_page();
    return (s->files.image.size + page - 1) / page * page;
}

/* What a conversation takes besides its tokens: its text, as messages, as JSON and as rendered, the
 * template and what it works with. A token has 5 bytes of text or so. */
static uint64_t talk_bytes(const struct tern_session *s)
{
    enum { FIXED = 1 << 20, OF_A_TOKEN = 192 };
    return FIXED + (uint64_t)OF_A_TOKEN * s->plan.limits.n_ctx +
           tern_template_size(s->info.chat_template);
}

struct tern_process tern_session_process(const struct tern_session *s)
{
    enum { OUTPUT = 64 << 10 }; /* text and ids of one answer */
    const tern_limits *limits = &s->plan.limits;
    struct tern_process p = {
        .program = tern_os_program_bytes(s->files.image),
        .stacks = tern_team_bytes(limits->n_threads),
        .windows = s->files.windows.size,
        .image = image_bytes(s),
        .tools = (uint64_t)limits->n_seqs *
                     (OUTPUT + (uint64_t)limits->n_ctx * sizeof(tern_token)) +
                 s->constraint.bytes + (s->talks ? talk_bytes(s) : 0) +
                 (s->keep_bytes ? s->keep_bytes(s) : 0),
    };
    p.compiling = s->constraint.compiling;
    p.total = tern_session_engine_bytes(&s->plan) + p.program + p.stacks + p.windows +
              p.image + p.tools;
    uint64_t before = tern_session_arena_bytes(&s->plan, TERN_ARENA_MODEL) + p.program +
                      p.windows + p.image + p.compiling;
    p.total = p.total > before ? p.total : before;
    return p;
}

/* What does not fit is refused here, while nothing but the header has been read. */
static bool check_memory(struct tern_session *s)
{
    uint64_t have = tern_os_memory_free(), need = tern_session_engine_bytes(&s->plan);
    uint64_t here = tern_session_arena_bytes(&s->plan, TERN_ARENA_MODEL);
    need -= here < need ? here : need;
    need += tern_team_bytes(s->plan.limits.n_threads) + image_bytes(s);
    if (need <= have)
        return true;
    size_t largest = 0;
    for (size_t i = 1; i < s->plan.n_arenas; i++)
        if (s->plan.arenas[i].bytes > s->plan.arenas[largest].bytes)
            largest = i;
    char line[200];
    snprintf(line, sizeof line,
             "memory: %.1f MiB needed (%s %.1f), %.1f MiB free; "
             "use a smaller context (-c), fewer sequences, or a smaller model",
             (double)need / 1048576, s->plan.arenas[largest].name,
             (double)s->plan.arenas[largest].bytes / 1048576, (double)have / 1048576);
    return fail(s, TERN_NO_MEMORY, line);
}

static bool map_arenas(struct tern_session *s)
{
    for (size_t i = 0; i < s->plan.n_arenas; i++) {
        const tern_arena_need *need = &s->plan.arenas[i];
        if (i == TERN_ARENA_MODEL || need->bytes == 0)
            continue;
        s->arenas[i] = tern_os_map(need->bytes, need->align);
        if (s->arenas[i].data == NULL) {
            char line[160];
            snprintf(line, sizeof line, "%s arena: the system refuses %llu bytes; use a smaller -c",
                     need->name, (unsigned long long)need->bytes);
            return fail(s, TERN_NO_MEMORY, line);
        }
    }
    s->team_memory = tern_os_map(tern_team_bytes(s->plan.limits.n_threads), 0);
    return s->team_memory.data != NULL ||
           fail(s, TERN_NO_MEMORY, "thread stacks: the system refuses them; use fewer -t");
}

static bool load(struct tern_session *s)
{
    enum { PIECE = 16 << 20 }; /* the threads meet once a piece */
    struct tern_progress progress;
    tern_progress_begin(&progress, "loading");
    tern_status status;
    do {
        uint64_t done = 0, total = 0;
        status = tern_engine_load(s->engine, PIECE, &done, &total);
        tern_progress_show(&progress, done, total);
    } while (status == TERN_AGAIN && !tern_interrupted());
    tern_progress_end(&progress);
    if (status == TERN_AGAIN)
        return fail(s, TERN_AGAIN, "interrupted while the model was loading");
    if (status != TERN_OK)
        return false;
    s->load_s = (double)(tern_os_now_ns() - s->begun_ns) * 1e-9;
    return true;
}

bool tern_session_start(struct tern_session *s, const struct tern_list *affinity)
{
    if (!check_memory(s) || !map_arenas(s))
        return false;
    if (tern_team_start(s->team_memory, s->plan.limits.n_threads, &s->team, &s->host, &s->error) !=
            TERN_OK ||
        (affinity->n && tern_team_pin(s->team, affinity->at, affinity->n, &s->error) != TERN_OK))
        return false;
    s->host.cpu = getenv("TERN_CPU");
    if (tern_engine_init(&s->plan, s->arenas, s->model, s->backend, &s->host, &s->engine,
                         &s->error) != TERN_OK)
        return fail(s, TERN_NO_MEMORY, "the engine could not be made");
    return load(s);
}

void tern_session_close(struct tern_session *s)
{
    if (s->engine)
        tern_engine_close(s->engine);
    tern_team_stop(s->team);
    tern_os_unmap(s->team_memory);
    for (size_t i = 0; i < TERN_N_ARENAS; i++)
        tern_os_unmap(s->arenas[i]);
    tern_os_unmap(s->constraint.memory);
    tern_os_unmap(s->model_memory);
    if (s->files.n_parts)
        tern_os_close_model(&s->files);
    memset(s, 0, sizeof *s);
}

const char *tern_session_line(const struct tern_session *s)
{
    if (s->error.status == TERN_OK && s->engine) {
        const tern_error *e = tern_engine_error(s->engine);
        if (e->text[0])
            return e->text;
    }
    return s->error.text[0] ? s->error.text : "it failed without a reason";
}

int tern_session_report(const struct tern_session *s)
{
    fprintf(stderr, "tern %s: %s\n", tern_args_who(), tern_session_line(s));
    return 1;
}

void tern_session_print_limits(const struct tern_session *s, const char *before)
{
    static const char *const kv_types[TERN_N_KV_TYPES] = {"f16", "f32", "q8_0", "q4_0"};
    const tern_limits *l = &s->plan.limits;
    fprintf(stderr, "tern: %s, context %u, threads %u, chunk %u, kv %s %s%s\n", before, l->n_ctx,
            l->n_threads, l->chunk, kv_types[l->k_type], kv_types[l->v_type],
            l->exact ? ", exact" : "");
}

void tern_session_print_memory(const struct tern_session *s)
{
    fprintf(stderr, "tern: memory");
    for (size_t i = 0; i < s->plan.n_arenas; i++)
        fprintf(stderr, " %s %.1f", s->plan.arenas[i].name,
                (double)tern_session_arena_bytes(&s->plan, i) / 1048576);
    fprintf(stderr, " = %.1f MiB\n", (double)tern_session_engine_bytes(&s->plan) / 1048576);
}

void tern_session_memory_json(const struct tern_session *s, struct tern_out *o, const char *key)
{
    tern_json_begin(o, key, '{');
    for (size_t i = 0; i < s->plan.n_arenas; i++)
        tern_json_u64(o, s->plan.arenas[i].name, tern_session_arena_bytes(&s->plan, i));
    tern_json_end(o, '}');
}

bool tern_session_check_cpu(void)
{
    const char *limit = getenv("TERN_CPU");
    if (limit == NULL || tern_cpu_variant_chosen(limit, tern_os_cpu_has()) != NULL)
        return true;
    fprintf(stderr, "tern %s: TERN_CPU: '%.40s' given, one of these needed:", tern_args_who(),
            limit);
    const char *name;
    bool has;
    for (size_t i = 0; (name = tern_cpu_variant_at(i, 0, &has)) != NULL; i++)
        fprintf(stderr, " %s", name);
    fprintf(stderr, "\n");
    return false;
}
