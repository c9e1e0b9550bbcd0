/* host.h: what an operating system gives to tools and tests: a thread team behind a tern_host,
 * memory for arenas, and model files as sources.
 *
 * posix/ implements it; another system is another folder with the same three files.
 */
#ifndef TERN_OS_HOST_H
#define TERN_OS_HOST_H

#include "runtime/tern.h"

/* --- the thread team --- */

typedef struct tern_team tern_team;

/* Starts n_threads - 1 threads (1 to 256) with stacks of stack_bytes each inside `mem`, which is
 * tern_team_bytes(n_threads) of mapped memory, and fills host's parallel, barrier, now_ns,
 * n_threads and cpu_has. The calling thread is thread 0. */
size_t tern_team_bytes(uint32_t n_threads);
tern_status tern_team_start(tern_memory mem, uint32_t n_threads, tern_team **out, tern_host *host,
                            tern_error *err);
/* Ties thread i to the CPU at place i % n of the list; the calling thread is given back what it
 * had when the team is stopped. */
tern_status tern_team_pin(tern_team *team, const uint32_t *cpus, uint32_t n, tern_error *err);
void tern_team_stop(tern_team *team);

/* Physical cores that this process may run on (affinity, SMT siblings and the cgroup's quota
 * taken into account); at least 1. */
uint32_t tern_os_cores(void);
uint64_t tern_os_now_ns(void);
/* tern_host.cpu_has, as the system says. On x86 Linux this asks it for the use of AMX tiles, for
 * all threads from then on. */
uint32_t tern_os_cpu_has(void);

/* --- memory --- */

/* Whole pages of zeroed memory from the system; data NULL when it cannot. size is rounded up to
 * a page. Nothing is touched. */
tern_memory tern_os_map(size_t size, size_t align);
void tern_os_unmap(tern_memory mem);
/* The same, aligned to a page, for memory of which little is used in the end: only pages that are
 * touched are taken, never huge ones. */
tern_memory tern_os_map_sparse(size_t size);
/* Whole pages of it go back to the system, and are zero when they are next touched. */
void tern_os_give_back(void *data, size_t size);
/* Bytes of it that are taken. */
size_t tern_os_taken(tern_memory mem);
size_t tern_os_page(void);
/* Bytes of memory that can be had without pushing others out (MemAvailable, the cgroup's limit). */
uint64_t tern_os_memory_free(void);
/* Bytes of this process that are resident besides arenas, stacks and models: the program's own
 * pages, libc and what the loader mapped; for the process figure of a plan. What lies in apart,
 * a mapped file, is counted elsewhere. */
uint64_t tern_os_program_bytes(tern_memory apart);

/* --- model files --- */

/* Opens a model: one file, or all parts of a split file given its first. Answers with one line
 * for a missing file, a directory, an empty file, or something that is no GGUF (safetensors,
 * ONNX, zip, HTML ... are named). Sources of a GGUF read by pread; windows lie in the struct's
 * memory. A Tern image is mapped, and its pages are asked for ahead. */
typedef struct tern_os_model {
    tern_source parts[TERN_MAX_PARTS];
    size_t n_parts;
    tern_memory windows;
    tern_memory image; /* mapped, read-only; size 0: the model is no image */
    int files[TERN_MAX_PARTS];
} tern_os_model;
tern_status tern_os_open_model(const char *path, tern_os_model *out, tern_error *err);
void tern_os_close_model(tern_os_model *m);
/* Whether path leads to the file that is open as fd, which must not be written over then. */
bool tern_os_leads_to(const char *path, int fd);

#endif
