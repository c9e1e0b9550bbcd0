/* pair.c: two builds of the library in one process, taking turns.
 *
 *     pair A/libtern.so B/libtern.so MODEL [--threads 2] [--rows 256] [--batch 0] [--at 0]
 *                                          [--kv 0] [--pairs 100]
 *
 * Whole programs that run one after the other differ by 15% on a machine that others use too. Here
 * a step of one library is followed by the same step of the other, in alternating order, on one
 * team of threads, and the median of the ratios of their times is printed with its quartiles: above
 * 1, B is faster. A library beside itself says how much of it is noise. Both must have this tree's
 * runtime/tern.h.
 *
 *   --rows N    a step of N tokens of one sequence, at position --at
 *   --batch N   a step of a token of each of N sequences, at position --at
 *   --kv N      keys and values as the N-th tern_kv_type: 0 f16, 1 f32, 2 q8_0, 3 q4_0
 *
 * That both give the same logits is checked in each pair. */
#include "platform/os/host.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 4096, MOST_SEQS = 64, MOST_PAIRS = 10000 };

struct options {
    const char *library[2], *model;
    uint32_t threads, rows, batch, at, kv, pairs;
};

/* What is called in a library. */
struct api {
    __typeof__(&tern_model_size) model_size;
    __typeof__(&tern_model_init) model_init;
    __typeof__(&tern_model_describe) model_describe;
    __typeof__(&tern_backend_at) backend_at;
    __typeof__(&tern_plan_make) plan_make;
    __typeof__(&tern_engine_init) engine_init;
    __typeof__(&tern_engine_load) engine_load;
    __typeof__(&tern_engine_error) engine_error;
    __typeof__(&tern_sampling_default) sampling_default;
    __typeof__(&tern_seq_open) seq_open;
    __typeof__(&tern_seq_trim) seq_trim;
    __typeof__(&tern_decode) decode;
    __typeof__(&tern_logits) logits;
};

struct side {
    struct api api;
    tern_os_model file;
    tern_model *model;
    tern_model_info info;
    tern_plan plan;
    tern_engine *engine;
    tern_seq seqs[MOST_SEQS];
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "pair: %s: %s\n", what, why);
    exit(1);
}

static void *symbol(void *library, const char *path, const char *name)
{
    void *p = dlsym(library, name);
    if (!p)
        fail(path, name);
    return p;
}

static void load_api(struct api *api, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(path, dlerror());
    static const char *const names[] = {
        "tern_model_size", "tern_model_init", "tern_model_describe", "tern_backend_at",
        "tern_plan_make", "tern_engine_init", "tern_engine_load", "tern_engine_error",
        "tern_sampling_default", "tern_seq_open", "tern_seq_trim", "tern_decode", "tern_logits",
    };
    void *found[sizeof names / sizeof *names];
    _Static_assert(sizeof found == sizeof *api, "a name for each function");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found[i] = symbol(library, path, names[i]);
    memcpy(api, found, sizeof found);
}

static tern_memory room(size_t size, size_t align)
{
    const tern_memory mem = tern_os_map(size ? size : 1, align);
    if (!mem.data)
        fail("memory", "there is none");
    return mem;
}

static void open_engine(struct side *s, const struct options *o, const tern_host *host)
{
    tern_error err = {0};
    size_t need;
    const uint32_t rows = o->rows > o->batch ? o->rows : o->batch;
    const tern_limits limits = {.n_ctx = o->at + rows + 1, .n_seqs = o->batch ? o->batch : 1,
                                .chunk = rows < 128 ? 128 : rows, .n_threads = o->threads,
                                .k_type = (tern_kv_type)o->kv, .v_type = (tern_kv_type)o->kv,
                                .no_kv_sharing = true};
    tern_memory arenas[TERN_N_ARENAS];
    const struct api *a = &s->api;
    if (tern_os_open_model(o->model, &s->file, &err) != TERN_OK ||
        a->model_size(s->file.parts, s->file.n_parts, TERN_MODEL_WHOLE, &need, &err) != TERN_OK ||
        a->model_init(room(need, 64), s->file.parts, s->file.n_parts, TERN_MODEL_WHOLE,
                      &s->model, &err) != TERN_OK ||
        a->plan_make(s->model, a->backend_at(0), &limits, &s->plan, &err) != TERN_OK)
        fail(o->model, err.text);
    for (uint32_t i = 0; i < TERN_N_ARENAS; i++)
        arenas[i] = room(s->plan.arenas[i].bytes, s->plan.arenas[i].align);
    if (a->engine_init(&s->plan, arenas, s->model, a->backend_at(0), host, &s->engine, &err) !=
        TERN_OK)
        fail(o->model, err.text);
    while (a->engine_load(s->engine, 64u << 20, NULL, NULL) == TERN_AGAIN)
        continue;
    a->model_describe(s->model, &s->info);
}

static void check(const struct side *s, tern_status status)
{
    if (status != TERN_OK)
        fail("engine", s->api.engine_error(s->engine)->text);
}

/* Up to the position, in steps that the engine takes. */
static void fill(struct side *s, tern_seq seq, uint32_t n)
{
    static tern_row rows[MOST_ROWS];
    for (uint32_t done = 0, some; done < n; done += some) {
        some = n - done < s->plan.limits.chunk ? n - done : s->plan.limits.chunk;
        for (uint32_t i = 0; i < some; i++)
            rows[i] = (tern_row){seq, (tern_token)((done + i) * 7919u % s->info.n_vocab), false};
        check(s, s->api.decode(s->engine, rows, some));
    }
}

static void open_sequences(struct side *s, const struct options *o)
{
    tern_seq_options options = {.no_kv_sharing = true};
    s->api.sampling_default(&options.sampling);
    for (uint32_t i = 0; i < s->plan.limits.n_seqs; i++) {
        check(s, s->api.seq_open(s->engine, &options, &s->seqs[i]));
        fill(s, s->seqs[i], o->at);
    }
}

/* Seconds of a step, which is taken back. */
static double step(struct side *s, const struct options *o)
{
    static tern_row rows[MOST_ROWS];
    const uint32_t n = o->batch ? o->batch : o->rows;
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (tern_row){s->seqs[o->batch ? i : 0],
                             (tern_token)((i * 7919u + 1013u) % s->info.n_vocab),
                             o->batch || i + 1 == n};
    const uint64_t start = tern_os_now_ns();
    check(s, s->api.decode(s->engine, rows, n));
    const double seconds = (double)(tern_os_now_ns() - start) * 1e-9;
    for (uint32_t i = 0; i < s->plan.limits.n_seqs; i++)
        check(s, s->api.seq_trim(s->engine, s->seqs[i], o->at));
    return seconds;
}

static bool same_logits(const struct side *a, const struct side *b)
{
    return memcmp(a->api.logits(a->engine, 0), b->api.logits(b->engine, 0),
                  a->info.n_vocab * sizeof(float)) == 0;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t number(const char *name, const char *text, uint32_t least, uint32_t most)
{
    char *end;
    const unsigned long x = strtoul(text, &end, 10);
    if (end == text || *end || x < least || x > most)
        fail(name, "a number within its limits needed; see the head of pair.c");
    return (uint32_t)x;
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {.threads = 2, .rows = 256, .pairs = 100};
    int n = 0;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(name, "--", 2) != 0) {
            *(n == 2 ? &o.model : &o.library[n < 2 ? n : 1]) = name;
            n++;
            continue;
        }
        i++;
        if (strcmp(name, "--threads") == 0)
            o.threads = number(name, value, 1, 256);
        else if (strcmp(name, "--rows") == 0)
            o.rows = number(name, value, 1, MOST_ROWS);
        else if (strcmp(name, "--batch") == 0)
            o.batch = number(name, value, 1, MOST_SEQS);
        else if (strcmp(name, "--kv") == 0)
            o.kv = number(name, value, 0, TERN_N_KV_TYPES - 1);
        else if (strcmp(name, "--at") == 0)
            o.at = number(name, value, 0, 1000000);
        else if (strcmp(name, "--pairs") == 0)
            o.pairs = number(name, value, 1, MOST_PAIRS);
        else
            fail(name, "no such option; see the head of pair.c");
    }
    if (n != 3)
        fail("pair", "two libraries and a model needed");
    return o;
}

int main(int argc, char **argv)
{
    static struct side sides[2];
    static double ratios[MOST_PAIRS], times[2][MOST_PAIRS];
    const struct options o = read_options(argc, argv);
    tern_error err = {0};
    tern_team *team;
    tern_host host = {0};
    if (tern_team_start(room(tern_team_bytes(o.threads), 64), o.threads, &team, &host, &err) !=
        TERN_OK)
        fail("threads", err.text);
    for (int i = 0; i < 2; i++) {
        load_api(&sides[i].api, o.library[i]);
        open_engine(&sides[i], &o, &host);
        open_sequences(&sides[i], &o);
        step(&sides[i], &o);
    }
    for (uint32_t p = 0; p < o.pairs; p++) {
        for (int i = 0; i < 2; i++) {
            const int at = (i + (int)p) % 2;
            times[at][p] = step(&sides[at], &o);
        }
        if (!same_logits(&sides[0], &sides[1]))
            fail("logits", "they differ");
        ratios[p] = times[0][p] / times[1][p];
    }
    for (int i = 0; i < 2; i++)
        qsort(times[i], o.pairs, sizeof **times, by_value);
    qsort(ratios, o.pairs, sizeof *ratios, by_value);
    printf("A %.3f ms, B %.3f ms; A / B: %.3f (quartiles %.3f and %.3f), %u pairs\n",
           times[0][o.pairs / 2] * 1e3, times[1][o.pairs / 2] * 1e3, ratios[o.pairs / 2],
           ratios[o.pairs / 4], ratios[o.pairs * 3 / 4], o.pairs);
    tern_team_stop(team);
    return 0;
}
