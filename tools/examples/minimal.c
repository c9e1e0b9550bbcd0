/* Completes a prompt on one thread: cc minimal.c $(pkg-config --cflags --libs tern) */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tern/tern.h>

static tern_error error;
static tern_engine *engine;

static void must(tern_status status)
{
    const char *line = engine ? tern_engine_error(engine)->text : error.text;
    if (status != TERN_OK)
        errx(1, "%s: %s", tern_status_name(status), line);
}

static tern_memory memory(size_t size)
{
    return (tern_memory){aligned_alloc(4096, size / 4096 * 4096 + 4096), size};
}

int main(int argc, char **argv)
{
    struct stat st;
    int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &st) != 0)
        errx(2, "usage: minimal MODEL PROMPT");
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    tern_source file = {.base = bytes, .size = (uint64_t)st.st_size};
    const tern_backend *cpu = tern_backend_at(0);
    size_t n;
    tern_model *model;
    must(tern_model_size(&file, 1, TERN_MODEL_WHOLE, &n, &error));
    must(tern_model_init(memory(n), &file, 1, TERN_MODEL_WHOLE, &model, &error));
    tern_plan plan;
    tern_memory arenas[TERN_N_ARENAS];
    must(tern_plan_make(model, cpu, &(tern_limits){.n_ctx = 512}, &plan, &error));
    for (int i = 0; i < TERN_N_ARENAS; i++)
        arenas[i] = memory(plan.arenas[i].bytes);
    must(tern_engine_init(&plan, arenas, model, cpu, &(tern_host){0}, &engine, &error));
    must(tern_engine_load(engine, SIZE_MAX, NULL, NULL));
    tern_token ids[512];
    tern_text prompt = {argv[2], strlen(argv[2])};
    tern_memory scratch = memory(tern_tokenize_scratch(model, prompt.size));
    must(tern_tokenize(model, prompt, 0, scratch, ids, 512, &n, &error));
    tern_seq_options options = {.max_tokens = 32};
    tern_sampling_default(&options.sampling);
    tern_seq seq;
    must(tern_seq_open(engine, &options, &seq));
    must(tern_seq_feed(engine, seq, ids, n));
    for (tern_event e = {0}; e.kind != TERN_EVENT_DONE;) {
        must(tern_step(engine, &e, 1, &n));
        printf("%.*s", n ? (int)e.text.size : 0, n ? e.text.data : "");
    }
}
