#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/os/host.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tern-model-file-");
    memset(folder + strlen(folder), 'X', 6);
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") || system(command);
}

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* The line that a path is refused with. */
static const char *refusal(const char *path)
{
    static tern_error err;
    tern_os_model m;
    err = (tern_error){0};
    assert_int_not_equal(tern_os_open_model(path, &m, &err), TERN_OK);
    assert_int_equal(m.n_parts, 0);
    assert_null(strchr(err.text, '\n'));
    return err.text;
}

static void assert_says(const char *path, const char *words)
{
    const char *line = refusal(path);
    if (!strstr(line, words))
        fail_msg("%s: '%s' does not say '%s'", path, line, words);
}

static void what_is_no_file_is_named(void **state)
{
    (void)state;
    assert_int_equal(mkdir("folder.gguf", 0700), 0);
    assert_int_equal(mkfifo("pipe.gguf", 0600), 0);
    put("empty.gguf", "", 0);
    put("three.gguf", "GGU", 3);
    assert_says("missing.gguf", "no such file");
    assert_says("folder.gguf", "a directory");
    assert_says("pipe.gguf", "a pipe");
    assert_says("empty.gguf", "is empty");
    assert_says("three.gguf", "3 bytes");
    assert_says("/dev/zero", "a device");
    if (geteuid() != 0) {
        put("closed.gguf", "GGUF", 4);
        chmod("closed.gguf", 0);
        assert_says("closed.gguf", "ermission");
    }
}

static void other_kinds_are_named(void **state)
{
    (void)state;
    static const struct { const char *bytes; size_t n; const char *kind; } kinds[] = {
        {"\x40\0\0\0\0\0\0\0{\"__metadata__\":{}}", 26, "safetensors"},
        {"\x08\x07\x12\x07pytorch\x1a", 12, "ONNX"},
        {"PK\3\4aaaaaaaa", 12, "zip"},
        {"<!DOCTYPE html><html>", 21, "HTML"},
        {"\n  <html>", 9, "HTML"},
        {"\x1f\x8b\x08\0\0\0\0\0", 8, "gzip"},
        {"\x80\x02}q\0", 5, "pickle"},
        {"tjgg\1\0\0\0", 8, "GGJT"},
        {"version https://git-lfs.github.com/spec/v1", 42, "LFS"},
        {"{\"error\": 404}", 14, "JSON"},
        {"abcdefgh", 8, "61626364"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        put("other", kinds[i].bytes, kinds[i].n);
        assert_says("other", kinds[i].kind);
    }
}

static void a_file_is_read_at_offsets_and_never_past_its_end(void **state)
{
    (void)state;
    put("a.gguf", "GGUF0123456789", 14);
    tern_os_model m;
    assert_int_equal(tern_os_open_model("a.gguf", &m, NULL), TERN_OK);
    assert_int_equal(m.n_parts, 1);
    assert_int_equal(m.parts[0].size, 14);
    assert_true(m.parts[0].window.size >= TERN_SOURCE_WINDOW);
    char got[5] = "";
    assert_true(m.parts[0].read(m.parts[0].self, 8, got, 4));
    assert_string_equal(got, "4567");
    assert_false(m.parts[0].read(m.parts[0].self, 12, got, 4));
    assert_false(m.parts[0].read(m.parts[0].self, UINT64_MAX - 1, got, 4));
    assert_int_equal(fcntl(m.files[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    tern_os_close_model(&m);
}

static void parts_of_a_split_file_are_opened_in_order(void **state)
{
    (void)state;
    put("m-00001-of-00003.gguf", "GGUF1", 5);
    put("m-00002-of-00003.gguf", "GGUF22", 6);
    assert_says("m-00001-of-00003.gguf", "m-00003-of-00003.gguf: there is no such file");
    put("m-00003-of-00003.gguf", "GGUF333", 7);
    tern_os_model m;
    assert_int_equal(tern_os_open_model("m-00001-of-00003.gguf", &m, NULL), TERN_OK);
    assert_int_equal(m.n_parts, 3);
    for (size_t i = 0; i < 3; i++) {
        char c = 0;
        assert_int_equal(m.parts[i].size, 5 + i);
        assert_true(m.parts[i].read(m.parts[i].self, 4, &c, 1));
        assert_int_equal(c, '1' + (int)i);
    }
    tern_os_close_model(&m);
    assert_says("m-00002-of-00003.gguf", "part 2 of 3");
    put("m-00001-of-00065.gguf", "GGUF", 4);
    assert_says("m-00001-of-00065.gguf", "1 to 64");
    put("m-00001-of-00000.gguf", "GGUF", 4);
    assert_says("m-00001-of-00000.gguf", "1 to 64");
}

static void a_long_path_still_leaves_room_for_the_reason(void **state)
{
    (void)state;
    char path[400];
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = 0;
    assert_says(path, "ame too long");
    path[200] = 0;
    assert_says(path, "no such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_file_is_named),
        cmocka_unit_test(other_kinds_are_named),
        cmocka_unit_test(a_file_is_read_at_offsets_and_never_past_its_end),
        cmocka_unit_test(parts_of_a_split_file_are_opened_in_order),
        cmocka_unit_test(a_long_path_still_leaves_room_for_the_reason),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
