/* A file is there whole or not at all, whoever stops the program, and links stay links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/interrupt.h"
#include "tools/output.h"

static struct tern_output file;
static char folder[] = "/tmp/tern-output-XXXXXX";

static int set_up(void **state)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    *state = NULL;
    return mkdtemp(folder) && chdir(folder) == 0 && mkdir("d", 0700) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"d/old", "d/new", "f", "a", "b", "c", "x", "y", "d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlink(names[i]) != 0)
            (void)rmdir(names[i]);
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static bool write_whole(const char *path, const char *text, char line[TERN_ARGS_LINE])
{
    return tern_output_open(&file, path, line) &&
           tern_output_write(&file, 0, text, strlen(text)) && tern_output_finish(&file, line);
}

static void expect_file(const char *path, const char *text)
{
    char found[64] = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(found, 1, sizeof found - 1, f), strlen(text));
    fclose(f);
    assert_string_equal(found, text);
}

static int n_files(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void links_stay_and_their_file_is_written(void **state)
{
    (void)state;
    char line[TERN_ARGS_LINE], absolute[64];
    struct stat st;
    assert_true(write_whole("d/old", "first", line));
    snprintf(absolute, sizeof absolute, "%s/a", folder);
    assert_int_equal(symlink("d/old", "a") | symlink(absolute, "b") | symlink("../b", "d/new"), 0);
    assert_true(write_whole("d/new", "second", line));
    expect_file("d/old", "second");
    assert_true(lstat("d/new", &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(lstat("b", &st) == 0 && S_ISLNK(st.st_mode));
    assert_int_equal(n_files("d"), 2);
    /* One that leads to nothing yet: there the file is made. */
    assert_int_equal(symlink("f", "c"), 0);
    assert_true(write_whole("c", "third", line));
    expect_file("f", "third");
    assert_true(lstat("c", &st) == 0 && S_ISLNK(st.st_mode));
}

static void links_that_lead_nowhere_are_refused(void **state)
{
    (void)state;
    char line[TERN_ARGS_LINE];
    assert_int_equal(symlink("y", "x") | symlink("x", "y") | symlink("none/f", "a"), 0);
    assert_false(tern_output_open(&file, "x", line));
    assert_non_null(strstr(line, "Too many levels of symbolic links"));
    assert_false(tern_output_open(&file, "a", line));
    assert_string_equal(line, "none/f: No such file or directory");
    assert_int_equal(symlink("d", "b"), 0);
    assert_false(tern_output_open(&file, "b", line));
    assert_string_equal(line, "d: Is a directory");
    assert_int_equal(n_files("."), 5);
}

/* What a process that is killed so often while it writes leaves, and what it died of. */
static int killed(int number, int times, bool ignored)
{
    const pid_t child = fork();
    if (child == 0) {
        char line[TERN_ARGS_LINE];
        if (ignored)
            signal(number, SIG_IGN);
        tern_interrupt_install();
        if (!tern_output_open(&file, "f", line) || !tern_output_write(&file, 5 << 20, "x", 1))
            _exit(1);
        while (times-- > 0)
            raise(number);
        _exit(tern_output_finish(&file, line) ? 0 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void a_signal_leaves_what_was_there_and_nothing_else(void **state)
{
    (void)state;
    char line[TERN_ARGS_LINE];
    assert_true(write_whole("f", "old", line));
    assert_int_equal(killed(SIGTERM, 1, false), SIGTERM);
    assert_int_equal(killed(SIGHUP, 1, false), SIGHUP);
    assert_int_equal(killed(SIGINT, 2, false), SIGINT);
    assert_int_equal(n_files("."), 2);
    /* The first interrupt ends it in good order, and nohup is heeded. */
    assert_int_equal(killed(SIGINT, 1, false), -2);
    assert_int_equal(n_files("."), 2);
    expect_file("f", "old");
    assert_int_equal(killed(SIGHUP, 1, true), 0);
    assert_int_equal(n_files("."), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links_stay_and_their_file_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_that_lead_nowhere_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_leaves_what_was_there_and_nothing_else, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
