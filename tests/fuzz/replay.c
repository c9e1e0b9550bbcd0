/* replay.c: a fuzz target over every file of a folder, so that a corpus is an ordinary test
 * without a fuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(path);
        return 1;
    }
    const long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    const int failed = size < 0 || !data || fread(data, 1, (size_t)size, f) != (size_t)size;
    fclose(f);
    if (failed)
        perror(path);
    else
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return failed;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    int failed = 0, n = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        printf("%s\n", entry->d_name);
        fflush(stdout); /* the name stands there if this one ends it */
        failed |= replay(path);
        n++;
    }
    closedir(folder);
    return failed || n == 0;
}
