/* tern.c: the table of commands. */
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/session.h"

#include "platform/cpu/live_check.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct tern_command *const commands[] = {
    &tern_cmd_run, &tern_cmd_chat, &tern_cmd_plan, &tern_cmd_inspect, &tern_cmd_tokenize,
    &tern_cmd_template,
    &tern_cmd_perplexity, &tern_cmd_bench, &tern_cmd_build, &tern_cmd_devices, &tern_cmd_grammar,
    &tern_cmd_schema, &tern_cmd_serve, NULL,
};

/* A descriptor that was closed would be given to the next file that is opened, and text would
 * go into it. Reading from such a one gives nothing, writing to it fails. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            _exit(1);
}

static int print_help(void)
{
    printf("usage: tern COMMAND [MODEL] [options]\n\n");
    for (size_t i = 0; commands[i]; i++)
        printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n  tern COMMAND --help explains a command, tern --version prints the version.\n"
           "  TERN_CPU=VARIANT limits the CPU variants (see tern devices).\n"
           "  Exit codes: 0 done, 1 the work failed, 2 wrong usage, 3 wrong grammar or schema.\n");
    return 0;
}

static int end_printing(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "tern: standard output: %s\n", strerror(errno));
    return 1;
}

/* In a build that runs the reference beside every kernel: what came of it. */
static int end_live_check(int code)
{
#if TERN_LIVE_CHECK
    struct tern_live_check c;
    unsigned long long n = 0, differ = 0, skipped = 0;
    for (size_t i = 0; tern_live_check_report(i, &c); i++) {
        n += c.n_compared;
        differ += c.n_differ;
        skipped += c.n_skipped;
        if (c.n_differ)
            fprintf(stderr, "live check: %s, first at %llu: reference %08x, variant %08x\n",
                    c.name, (unsigned long long)c.index, c.reference, c.variant);
    }
    if (code == 0 || differ)
        fprintf(stderr, "live check: %llu calls compared, %llu differ, %llu skipped\n", n,
                differ, skipped);
    return differ ? 1 : code;
#else
    return code;
#endif
}

static int run_command(const struct tern_command *c, int argc, char **argv)
{
    static struct tern_settings settings;
    char line[TERN_ARGS_LINE] = "";
    tern_args_defaults(c, &settings);
    if (!tern_args_parse(c, argc, argv, &settings, line)) {
        fprintf(stderr, "tern %s: %s; see tern %s --help\n", c->name, line, c->name);
        return 2;
    }
    if (settings.help) {
        tern_args_help(c);
        return end_printing(0);
    }
    if (!tern_session_check_cpu())
        return 2;
    return end_live_check(c->run(&settings));
}

int main(int argc, char **argv)
{
    hold_standard_files();
    tern_interrupt_install();
    const char *name = argc > 1 ? argv[1] : NULL;
    if (name == NULL) {
        fprintf(stderr, "tern: no command given; see tern --help\n");
        return 2;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return end_printing(print_help());
    if (strcmp(name, "--version") == 0) {
        printf("tern %s\n", tern_version());
        return end_printing(0);
    }
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return run_command(commands[i], argc - 2, argv + 2);
    fprintf(stderr, "tern: there is no command '%.60s'; see tern --help\n", name);
    return 2;
}
