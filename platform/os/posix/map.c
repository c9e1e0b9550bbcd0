/* map.c: pages from the system, and what the machine has to give: cores and free memory. The
 * figures are the smallest of what the machine, the affinity mask and the control group say,
 * since a container sees the machine's numbers everywhere but in its group's files. */
#define _GNU_SOURCE
#include "platform/os/host.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

size_t tern_os_page(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? (size_t)page : 4096;
}

tern_memory tern_os_map_sparse(size_t size)
{
    size_t page = tern_os_page();
    if (size == 0 || size > SIZE_MAX / 4)
        return (tern_memory){NULL, 0};
    size = (size + page - 1) / page * page;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return (tern_memory){NULL, 0};
#if defined(MADV_NOHUGEPAGE)
    madvise(p, size, MADV_NOHUGEPAGE);
#endif
    return (tern_memory){p, size};
}

void tern_os_give_back(void *data, size_t size)
{
    const size_t page = tern_os_page();
    const size_t before = (page - (uintptr_t)data % page) % page;
    if (size > before && size - before >= page)
        madvise((char *)data + before, (size - before) / page * page, MADV_DONTNEED);
}

size_t tern_os_taken(tern_memory mem)
{
    enum { PIECE = 1024 };
    unsigned char there[PIECE];
    size_t page = tern_os_page(), n = 0;
    for (size_t at = 0; mem.data && at < mem.size; at += PIECE * page) {
        size_t size = mem.size - at < PIECE * page ? mem.size - at : PIECE * page;
        if (mincore((char *)mem.data + at, size, there) != 0)
            return mem.size;
        for (size_t i = 0; i < (size + page - 1) / page; i++)
            n += there[i] & 1;
    }
    return n * page;
}

/* Large mappings start at a huge page and ask for them: with small ones a walk of the page
 * table stands beside every line of weights. A mapping's resident part never passes its size.
 * Of less than four huge pages, some would be there for the few lines of them that are used. */
tern_memory tern_os_map(size_t size, size_t align)
{
    tern_memory none = {NULL, 0};
    size_t page = tern_os_page();
    if (size == 0 || size > SIZE_MAX / 4 || align > SIZE_MAX / 4)
        return none;
    size = (size + page - 1) / page * page;
    bool large = size >= 4 * (size_t)HUGE_PAGE;
    if (large && align < HUGE_PAGE)
        align = HUGE_PAGE;
    size_t slack = align > page ? align : 0;
    unsigned char *p = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return none;
    if (slack) {
        size_t before = (align - (uintptr_t)p % align) % align;
        if (before)
            munmap(p, before);
        if (slack > before)
            munmap(p + before + size, slack - before);
        p += before;
    }
#if defined(MADV_HUGEPAGE)
    if (large)
        madvise(p, size, MADV_HUGEPAGE);
#endif
    return (tern_memory){p, size};
}

void tern_os_unmap(tern_memory mem)
{
    if (mem.data)
        munmap(mem.data, mem.size);
}

/* Reads a small file of the kernel's whole into text as a string; "" if it cannot. */
static const char *read_text(const char *path, char *text, size_t cap)
{
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return text;
    size_t n = 0;
    ssize_t got;
    while (n + 1 < cap && (got = read(fd, text + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    text[n] = 0;
    return text;
}

/* The process's path in the control group hierarchy that `controller` lives in: "" names the
 * unified one (version 2). False if there is none. */
static bool group_path(const char *controller, char *path, size_t cap)
{
    char text[4096];
    read_text("/proc/self/cgroup", text, sizeof text);
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        char *names = strchr(line, ':');
        char *where = names ? strchr(names + 1, ':') : NULL;
        if (where == NULL)
            continue;
        *where++ = 0;
        bool found = names[1] == 0 && controller[0] == 0;
        for (char *s, *name = strtok_r(names + 1, ",", &s); name; name = strtok_r(NULL, ",", &s))
            found = found || strcmp(name, controller) == 0;
        if (found)
            return snprintf(path, cap, "%s", where) < (int)cap;
    }
    return false;
}

/* Calls look for the process's own group and every group above it, whose limits hold too. In a
 * container the path may be one of the host's, so the mount's root is always looked at. */
static void each_group(const char *controller, const char *mount,
                       void (*look)(const char *folder, void *arg), void *arg)
{
    char path[1024], folder[1200];
    if (!group_path(controller, path, sizeof path))
        return;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", mount, path);
        look(folder, arg);
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[0] == 0)
            return;
        *slash = 0;
    }
}

static const char *read_in(const char *folder, const char *name, char *text, size_t cap)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_text(path, text, cap);
}

static void look_at_quota(const char *folder, void *arg)
{
    char text[128], period[128];
    double quota = 0, per = 0, *least = arg;
    if (sscanf(read_in(folder, "cpu.max", text, sizeof text), "%lf %lf", &quota, &per) != 2) {
        quota = atof(read_in(folder, "cpu.cfs_quota_us", text, sizeof text));
        per = atof(read_in(folder, "cpu.cfs_period_us", period, sizeof period));
    }
    if (quota > 0 && per > 0 && quota / per < *least)
        *least = quota / per;
}

/* Logical CPUs of the mask that are the first of their core within the mask. */
static uint32_t cores_in_mask(void)
{
#if defined(__linux__)
    enum { MANY = 8192 };
    static const size_t bytes = MANY / 8;
    cpu_set_t sets[MANY / 8 / sizeof(cpu_set_t)];
    memset(sets, 0, sizeof sets);
    if (sched_getaffinity(0, bytes, sets) == 0) {
        uint32_t n = 0;
        for (int cpu = 0; cpu < MANY; cpu++) {
            if (!CPU_ISSET_S(cpu, bytes, sets))
                continue;
            char path[128], list[256];
            snprintf(path, sizeof path,
                     "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
            read_text(path, list, sizeof list);
            bool first = true;
            for (char *p = list; *p >= '0' && *p <= '9'; p += *p == ',') {
                long a = strtol(p, &p, 10);
                long b = *p == '-' ? strtol(p + 1, &p, 10) : a;
                for (long s = a; s <= b && s < cpu; s++)
                    first = first && !CPU_ISSET_S(s, bytes, sets);
            }
            n += first;
        }
        if (n > 0)
            return n;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

uint32_t tern_os_cores(void)
{
    double quota = 1e9;
    each_group("", "/sys/fs/cgroup", look_at_quota, &quota);
    each_group("cpu", "/sys/fs/cgroup/cpu", look_at_quota, &quota);
    uint32_t n = cores_in_mask();
    if (quota < n)
        n = (uint32_t)quota;
    return n < 1 ? 1 : n > 256 ? 256 : n;
}

static void look_at_memory(const char *folder, void *arg)
{
    static const char *const names[][2] = {{"memory.max", "memory.current"},
        {"memory.limit_in_bytes", "memory.usage_in_bytes"}};
    uint64_t *least = arg;
    for (int i = 0; i < 2; i++) {
        char text[128];
        unsigned long long limit, used, inactive = 0;
        if (sscanf(read_in(folder, names[i][0], text, sizeof text), "%llu", &limit) != 1 ||
            sscanf(read_in(folder, names[i][1], text, sizeof text), "%llu", &used) != 1)
            continue;
        /* Pages of files that were read count as used, and are given up at need. */
        char stat[8192];
        const char *at = strstr(read_in(folder, "memory.stat", stat, sizeof stat),
                                i == 0 ? "inactive_file " : "total_inactive_file ");
        if (at)
            sscanf(strchr(at, ' '), "%llu", &inactive);
        used -= inactive < used ? inactive : used;
        uint64_t room = limit > used ? limit - used : 0;
        if (room < *least)
            *least = room;
    }
}

uint64_t tern_os_memory_free(void)
{
    char text[4096];
    unsigned long long kib = 0;
    uint64_t room = UINT64_MAX;
    const char *at = strstr(read_text("/proc/meminfo", text, sizeof text), "MemAvailable:");
    if (at && sscanf(at + strlen("MemAvailable:"), "%llu", &kib) == 1)
        room = (uint64_t)kib * 1024;
    each_group("", "/sys/fs/cgroup", look_at_memory, &room);
    each_group("memory", "/sys/fs/cgroup/memory", look_at_memory, &room);
    return room;
}

/* Every page of every file that the loader mapped is counted, resident now or not: which of
 * them a run touches cannot be known before it. To this come the heap and the first thread's
 * stack with room to grow, and what the kernel's per-CPU page counters may be off by. */
uint64_t tern_os_program_bytes(tern_memory apart)
{
    const uintptr_t apart_from = (uintptr_t)apart.data, apart_to = apart_from + apart.size;
    enum { HEAP = 384 << 10, STACK = 160 << 10, COUNTERS_PER_CPU = 64 << 10 };
    uint64_t sum = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    if (f) {
        char line[4400];
        while (fgets(line, sizeof line, f)) {
            unsigned long long from, to, inode;
            char rights[8];
            if (sscanf(line, "%llx-%llx %7s %*x %*s %llu", &from, &to, rights, &inode) != 4)
                continue;
            if (from >= apart_from && from < apart_to)
                continue;
            bool none = strncmp(rights, "---", 3) == 0;
            bool special = strstr(line, "[stack]") || strstr(line, "[v") || strstr(line, "[heap]");
            if (!none && !special && (inode != 0 || to - from <= (64u << 10)))
                sum += to - from;
        }
        fclose(f);
    }
    if (sum == 0)
        sum = 4 << 20;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    return sum + HEAP + STACK + (uint64_t)(cpus > 0 ? cpus : 1) * COUNTERS_PER_CPU;
}
