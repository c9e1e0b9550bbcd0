/* cmd_devices.c: what this machine and this build have to compute with. */
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tern_text text_of(const char *s)
{
    return (tern_text){s, strlen(s)};
}

static void write_json(struct tern_out *o, const char *features, const char *chosen)
{
    const char *name;
    bool has;
    tern_json_begin(o, NULL, '{');
    tern_json_text(o, "features", text_of(features));
    tern_json_begin(o, "variants", '[');
    for (size_t i = 0; (name = tern_cpu_variant_at(i, tern_os_cpu_has(), &has)) != NULL; i++) {
        tern_json_begin(o, NULL, '{');
        tern_json_text(o, "name", text_of(name));
        tern_json_bool(o, "usable", has);
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
    tern_json_text(o, "chosen", text_of(chosen));
    tern_json_u64(o, "cores", tern_os_cores());
    tern_json_u64(o, "memory_free", tern_os_memory_free());
    tern_json_begin(o, "backends", '[');
    for (size_t i = 0; tern_backend_at(i); i++)
        tern_json_text(o, NULL, text_of(tern_backend_name(tern_backend_at(i))));
    tern_json_end(o, ']');
    tern_json_end(o, '}');
    tern_out_put(o, "\n", 1);
}

static void write_text(struct tern_out *o, const char *features, const char *chosen)
{
    const char *name;
    bool has;
    tern_out_print(o, "cpu features   %s\n", features);
    tern_out_print(o, "cores          %u\n", tern_os_cores());
    tern_out_print(o, "memory free    %.1f MiB\n", (double)tern_os_memory_free() / 1048576);
    tern_out_print(o, "cpu variants  ");
    for (size_t i = 0; (name = tern_cpu_variant_at(i, tern_os_cpu_has(), &has)) != NULL; i++)
        tern_out_print(o, " %s%s", name,
                       strcmp(name, chosen) == 0 ? " (chosen)" : has ? "" : " (not on this cpu)");
    tern_out_print(o, "\nbackends      ");
    for (size_t i = 0; tern_backend_at(i); i++)
        tern_out_print(o, " %s", tern_backend_name(tern_backend_at(i)));
    tern_out_print(o, "\n");
}

static int run(const struct tern_settings *settings)
{
    static struct tern_out out;
    char features[256];
    size_t n = tern_cpu_features_text(tern_os_cpu_has(), features, sizeof features - 1);
    features[n < sizeof features ? n : sizeof features - 1] = 0;
    const char *chosen = tern_cpu_variant_chosen(getenv("TERN_CPU"), tern_os_cpu_has());
    tern_out_open(&out, STDOUT_FILENO);
    if (settings->json)
        write_json(&out, features, chosen ? chosen : "");
    else
        write_text(&out, features, chosen ? chosen : "");
    if (tern_out_flush(&out))
        return 0;
    fprintf(stderr, "tern devices: standard output: %s\n", strerror(out.error));
    return 1;
}

static const struct tern_option *const tables[] = {tern_options_json, NULL};

const struct tern_command tern_cmd_devices = {
    "devices", "devices [--json]", "Prints the CPU's features, the variants built in and chosen, "
    "and the backends.", tables, "TERN_CPU=VARIANT limits the variants that may be chosen.", NULL,
    NULL, run,
};
