/* render_lines.c: TEMPLATE rendered for each line of standard input, which holds names and values
 * with tabs between them: a name, its JSON; a name that begins with @ has the template's own
 * text. Prints "ok", the runs (length, and + for the template's own), and the text in
 * hexadecimal; or "no" and the reason. The date is 2024-03-05 06:07:08. */
#include "runtime/tern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static bool now(void *self, tern_date *out)
{
    (void)self;
    *out = (tern_date){2024, 3, 5, 6, 7, 8};
    return true;
}

static tern_text read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    static char source[1 << 20];
    const size_t n = f ? fread(source, 1, sizeof source, f) : 0;
    if (!f)
        perror(path);
    else
        fclose(f);
    return (tern_text){source, n};
}

static void print(const tern_rendered *r)
{
    size_t from = 0;
    printf("ok ");
    for (size_t i = 0; i < r->n_runs; from = r->runs[i++].end)
        printf("%zu%s,", r->runs[i].end - from, r->runs[i].own ? "+" : "");
    printf(" ");
    for (size_t i = 0; i < r->text.size; i++)
        printf("%02x", (unsigned char)r->text.data[i]);
    printf("\n");
}

static void render(const tern_template *t, char *line)
{
    tern_variable variables[MOST];
    size_t n = 0;
    for (char *p = strtok(line, "\t\n"); p && n < MOST; p = strtok(NULL, "\t\n")) {
        const char *value = strtok(NULL, "\t\n");
        const tern_text text = {value ? value : "", value ? strlen(value) : 0};
        variables[n] = (tern_variable){.name = p + (*p == '@')};
        *(*p == '@' ? &variables[n].own : &variables[n].json) = text;
        n++;
    }
    const tern_render options = {.variables = variables, .n_variables = n, .now = now};
    const size_t need = tern_render_scratch(&options);
    tern_memory scratch = {malloc(need), need};
    tern_rendered out;
    tern_error err = {0};
    if (!scratch.data)
        exit(1);
    if (tern_template_render(t, &options, scratch, &out, &err) == TERN_OK)
        print(&out);
    else
        printf("no %s\n", err.text);
    free(scratch.data);
}

int main(int argc, char **argv)
{
    static char line[1 << 20];
    if (argc != 2)
        return 2;
    const tern_text source = read_file(argv[1]);
    tern_memory mem = {malloc(tern_template_size(source)), tern_template_size(source)};
    tern_template *t;
    tern_error err = {0};
    const bool ok = mem.data && tern_template_init(mem, source, &t, &err) == TERN_OK;
    while (fgets(line, sizeof line, stdin)) {
        if (ok)
            render(t, line);
        else
            printf("no %s\n", err.text);
    }
    free(mem.data);
    return 0;
}
