/* Completes a prompt by a model that is linked into the program, where it lies: no file is read.
 *
 *     tern build MODEL --object model.o
 *     cc linked.c model.o $(pkg-config --cflags --libs tern)
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

extern const unsigned char model_image[];
extern const uint64_t model_image_size;

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

static void print_answer(void)
{
    size_t n;
    for (tern_event e = {0}; e.kind != TERN_EVENT_DONE;) {
        must(tern_step(engine, &e, 1, &n));
        if (n)
            fwrite(e.text.data, 1, e.text.size, stdout);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        errx(2, "usage: linked PROMPT");
    const tern_source image = {.base = model_image, .size = model_image_size};
    const tern_backend *cpu = tern_backend_at(0);
    size_t n;
    tern_model *model;
    must(tern_model_size(&image, 1, TERN_MODEL_WHOLE, &n, &error));
    must(tern_model_init(memory(n), &image, 1, TERN_MODEL_WHOLE, &model, &error));
    tern_plan plan;
    tern_memory arenas[TERN_N_ARENAS]; /* that of the weights is empty */
    must(tern_plan_make(model, cpu, &(tern_limits){.n_ctx = 64}, &plan, &error));
    for (int i = 0; i < TERN_N_ARENAS; i++)
        arenas[i] = memory(plan.arenas[i].bytes);
    must(tern_engine_init(&plan, arenas, model, cpu, &(tern_host){0}, &engine, &error));
    must(tern_engine_load(engine, 0, NULL, NULL)); /* nothing to do */
    tern_token ids[64];
    const tern_text prompt = {argv[1], strlen(argv[1])};
    must(tern_tokenize(model, prompt, 0, memory(tern_tokenize_scratch(model, prompt.size)), ids, 64,
                       &n, &error));
    tern_seq_options options = {.max_tokens = 16, .ignore_eos = true};
    tern_seq seq;
    tern_sampling_default(&options.sampling);
    options.sampling.temperature = 0;
    must(tern_seq_open(engine, &options, &seq));
    must(tern_seq_feed(engine, seq, ids, n));
    print_answer();
    tern_engine_close(engine);
}
