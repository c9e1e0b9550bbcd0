/* cmd_build.c: a model as an image: a file to be mapped, or an object or array to be linked. */
#include "tools/commands.h"
#include "tools/make_image.h"
#include "tools/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int refuse(int code, const char *line)
{
    fprintf(stderr, "tern build: %s\n", line);
    return code;
}

static bool is_symbol(const char *s)
{
    enum { MOST = 200 };
    for (size_t i = 0; s[i]; i++)
        if (!(isalpha((unsigned char)s[i]) || s[i] == '_' || (i && isdigit((unsigned char)s[i]))))
            return false;
    return s[0] && strlen(s) <= MOST;
}

static bool is_twice(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* 0: there is no such machine. */
static uint16_t machine_of(const char *arch)
{
    if (arch == NULL)
#if defined(__aarch64__)
        return TERN_ELF_AARCH64;
#else
        return TERN_ELF_X86_64;
#endif
    return strcmp(arch, "x86_64") == 0    ? TERN_ELF_X86_64
           : strcmp(arch, "aarch64") == 0 ? TERN_ELF_AARCH64
                                          : 0;
}

static bool make(struct tern_session *s, const struct tern_settings *settings,
                 char line[TERN_ARGS_LINE])
{
    const char *symbol = settings->symbol ? settings->symbol : "model_image";
    const struct tern_make_image outputs[] = {
        {.shape = TERN_MAKE_FILE, .path = settings->output},
        {TERN_MAKE_OBJECT, settings->object, symbol, machine_of(settings->arch), 0, false},
        {.shape = TERN_MAKE_C_ARRAY, .path = settings->c_array, .symbol = symbol},
    };
    uint64_t bytes;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        if (!outputs[i].path)
            continue;
        if (!tern_make_image(s, &outputs[i], &bytes, line))
            return false;
        printf("%s: an image of %llu bytes\n", outputs[i].path, (unsigned long long)bytes);
    }
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    snprintf(line, TERN_ARGS_LINE, "standard output: %s", strerror(errno));
    return false;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    char line[TERN_ARGS_LINE];
    if (!settings->output && !settings->object && !settings->c_array)
        return refuse(2, "nothing to write: -o, --object or --c-array needed");
    if (is_twice(settings->output, settings->object) ||
        is_twice(settings->object, settings->c_array) ||
        is_twice(settings->c_array, settings->output))
        return refuse(2, "one file given for two of -o, --object and --c-array");
    if (!machine_of(settings->arch))
        return refuse(2, "--arch: x86_64 or aarch64 needed");
    if (settings->symbol && !is_symbol(settings->symbol))
        return refuse(2, "--symbol: a C name of at most 200 letters needed");
    bool ok = tern_session_open(&s, settings->model, TERN_MODEL_WHOLE) &&
              tern_session_spares(&s, settings->output) &&
              tern_session_spares(&s, settings->object) &&
              tern_session_spares(&s, settings->c_array);
    if (!ok)
        snprintf(line, sizeof line, "%s", tern_session_line(&s));
    ok = ok && make(&s, settings, line);
    tern_session_close(&s);
    return ok ? 0 : refuse(1, line);
}

static const struct tern_option own[] = {
    {"--output", "-o", TERN_OPTION_TEXT, offsetof(struct tern_settings, output), 0, 0, NULL,
     "FILE", "the image as a file, which every command takes as it takes a GGUF"},
    {"--object", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, object), 0, 0, NULL,
     "FILE", "the image as an ELF object, to be linked into a program"},
    {"--c-array", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, c_array), 0, 0, NULL,
     "FILE", "the image as C source; five times as large, so for small models"},
    {"--symbol", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, symbol), 0, 0, NULL,
     "NAME", "what the object or array is called (default: model_image)"},
    {"--arch", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, arch), 0, 0, NULL,
     "ARCH", "of the object: x86_64 or aarch64 (default: this machine's)"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {own, NULL};

const struct tern_command tern_cmd_build = {
    "build", "build MODEL -o FILE.tern",
    "Builds an image of a model: weights and tokenizer ready to be used where they lie.", tables,
    "One image serves every CPU. It is written beside its place and renamed when it is whole.\n"
    "An object or array defines NAME, aligned to 4096, and NAME_size, a uint64_t; in a program\n"
    "they are a tern_source: {.base = NAME, .size = NAME_size}.",
    "model", "a GGUF file", run,
};
