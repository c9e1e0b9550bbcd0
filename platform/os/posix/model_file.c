/* model_file.c: model files as sources that are read at an offset, or images that are mapped.
 *
 * A GGUF is read, not mapped: a file that is cut short while it is mapped ends the process by a
 * signal, and mapped pages would stand beside the panels made of them. An image is mapped, since
 * its pages are the panels; it is never written in place: tern build renames a whole one over
 * what was there, and the old one lives on as long as somebody has it mapped. What is not a regular
 * file is refused before a byte is read, and the kinds of files that people mistake for a model
 * are named by how they begin.
 */
#define _GNU_SOURCE
#include "platform/os/host.h"

#include "runtime/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW_BYTES = 64 * 1024, HEAD_BYTES = 512, MOST_SPLIT_NAME = 99999 };

static bool read_at(void *self, uint64_t offset, void *dst, size_t n)
{
    int fd = *(const int *)self;
    unsigned char *to = dst;
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

/* As much of a path's end as an error line has room for. */
static tern_text shown(const char *path)
{
    size_t n = strlen(path), most = 60;
    return n > most ? (tern_text){path + n - most, most} : (tern_text){path, n};
}

static bool begins(const unsigned char *head, size_t n, const char *magic, size_t size)
{
    return n >= size && memcmp(head, magic, size) == 0;
}

static const char *advice(void)
{
    return "Tern reads GGUF files and Tern images";
}

/* Names what a file is that does not begin with "GGUF"; NULL if nothing is recognised. */
static const char *kind_of(const unsigned char *head, size_t n)
{
    static const struct { const char *magic; size_t size; const char *kind; } kinds[] = {
        {"PK\3\4", 4, "a zip archive (PyTorch checkpoints are such)"},
        {"\x1f\x8b", 2, "a gzip archive"},
        {"\xfd" "7zXZ", 5, "an xz archive"},
        {"\x28\xb5\x2f\xfd", 4, "a zstd archive"},
        {"BZh", 3, "a bzip2 archive"},
        {"\x80\2", 2, "a Python pickle (old PyTorch checkpoints are such)"},
        {"\x80\4", 2, "a Python pickle"},
        {"\x89HDF", 4, "an HDF5 file"},
        {"lmgg", 4, "a GGML file, older than GGUF"},
        {"tjgg", 4, "a GGJT file, older than GGUF"},
        {"fmgg", 4, "a GGMF file, older than GGUF"},
        {"FUGG", 4, "a GGUF file with its bytes reversed"},
        {"\x7f" "ELF", 4, "a program"},
        {"version https://git-lfs", 23, "a Git LFS pointer: the model itself was not fetched"},
        {"%PDF", 4, "a PDF document"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (begins(head, n, kinds[i].magic, kinds[i].size))
            return kinds[i].kind;
    if (n >= 8 && begins(head + 4, n - 4, "TFL3", 4))
        return "a TensorFlow Lite file";
    if (n > 10 && head[8] == '{' && head[6] == 0 && head[7] == 0)
        return "a safetensors file";
    size_t i = begins(head, n, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    if (i < n && head[i] == '<')
        return "an HTML or XML page (a download that failed is often one)";
    if (i < n && (head[i] == '{' || head[i] == '['))
        return "a JSON text";
    /* Protocol buffers have no magic: ONNX starts with field 1, the version, then a producer. */
    if (n > 4 && head[0] == 8 && head[1] < 32 && head[2] == 0x12 && head[3] < 64)
        return "an ONNX file";
    return NULL;
}

static tern_status check_head(int fd, const char *path, bool *image, tern_error *err)
{
    unsigned char head[HEAD_BYTES];
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return tern_fail(err, TERN_IO, "%t: %s", shown(path), strerror(errno));
    *image = begins(head, (size_t)n, "TERN", 4);
    if (*image || begins(head, (size_t)n, "GGUF", 4))
        return TERN_OK;
    if (n < 4)
        return tern_fail(err, TERN_BAD_MODEL, "%t: %i bytes, at least 24 needed; %s",
                         shown(path), (int64_t)n, advice());
    const char *kind = kind_of(head, (size_t)n);
    if (kind)
        return tern_fail(err, TERN_BAD_MODEL, "%t: is %s; %s", shown(path), kind, advice());
    uint64_t magic = (uint64_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
    return tern_fail(err, TERN_BAD_MODEL, "%t: begins with bytes %x, 47475546 (GGUF) needed",
                     shown(path), magic);
}

static tern_status check_kind(const struct stat *st, const char *path, tern_error *err)
{
    if (S_ISREG(st->st_mode))
        return st->st_size > 0 ? TERN_OK
               : tern_fail(err, TERN_BAD_MODEL, "%t: is empty; %s", shown(path), advice());
    const char *kind = S_ISDIR(st->st_mode) ? "a directory"
                       : S_ISFIFO(st->st_mode) ? "a pipe"
                       : S_ISSOCK(st->st_mode) ? "a socket" : "a device";
    return tern_fail(err, TERN_IO, "%t: is %s, a regular file needed", shown(path), kind);
}

/* Huge pages are asked for: a file system with large folios then reads 2 MiB at a fault, and maps
 * it by one entry. Where there are none, the pages are asked for ahead. */
static tern_status map_image(int fd, const char *path, size_t size, tern_os_model *m,
                             tern_error *err)
{
    void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return tern_fail(err, TERN_NO_MEMORY, "%t: mapping %u bytes: %s", shown(path),
                         (uint64_t)size, strerror(errno));
#if defined(MADV_HUGEPAGE)
    if (madvise(p, size, MADV_HUGEPAGE) != 0)
#endif
        madvise(p, size, MADV_WILLNEED);
    m->image = (tern_memory){p, size};
    m->parts[m->n_parts].base = p;
    return TERN_OK;
}

static tern_status open_part(const char *path, tern_os_model *m, tern_error *err)
{
    /* Without O_NONBLOCK a pipe that nobody writes to would be waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tern_fail(err, TERN_IO, "%t: %s", shown(path),
                         errno == ENOENT ? "there is no such file" : strerror(errno));
    struct stat st;
    tern_status s = TERN_OK;
    if (fstat(fd, &st) != 0)
        s = tern_fail(err, TERN_IO, "%t: %s", shown(path), strerror(errno));
    if (s == TERN_OK)
        s = check_kind(&st, path, err);
    bool image = false;
    if (s == TERN_OK)
        s = check_head(fd, path, &image, err);
    m->parts[m->n_parts] = (tern_source){.size = (uint64_t)st.st_size, .read = read_at,
                                         .by_many = true};
    if (s == TERN_OK && image && m->n_parts > 0)
        s = tern_fail(err, TERN_BAD_MODEL, "%t: is an image among parts of a GGUF", shown(path));
    if (s == TERN_OK && image)
        s = map_image(fd, path, (size_t)st.st_size, m, err);
    if (s != TERN_OK) {
        close(fd);
        return s;
    }
#if defined(POSIX_FADV_SEQUENTIAL)
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
    m->files[m->n_parts] = fd;
    m->n_parts++;
    return TERN_OK;
}

/* Five digits, as in the names of split files. */
static int five_digits(const char *s)
{
    int n = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        n = n * 10 + (s[i] - '0');
    }
    return n;
}

/* Whether path ends in -00001-of-0000N.gguf; *digits is where the part's own number stands. */
static bool split_name(const char *path, size_t *digits, int *part, int *n_parts)
{
    static const char end[] = "-00001-of-00002.gguf";
    size_t n = strlen(path);
    if (n < sizeof end - 1)
        return false;
    const char *p = path + n - (sizeof end - 1);
    *part = five_digits(p + 1);
    *n_parts = five_digits(p + 10);
    *digits = (size_t)(p + 1 - path);
    return p[0] == '-' && memcmp(p + 6, "-of-", 4) == 0 && strcmp(p + 15, ".gguf") == 0 &&
           *part >= 0 && *n_parts >= 0;
}

static tern_status open_parts(const char *path, tern_os_model *m, tern_error *err)
{
    size_t digits;
    int part, n_parts;
    if (!split_name(path, &digits, &part, &n_parts))
        return open_part(path, m, err);
    if (part != 1)
        return tern_fail(err, TERN_IO, "%t: is part %i of %i; give the first, -00001-of-",
                         shown(path), (int64_t)part, (int64_t)n_parts);
    if (n_parts < 1 || n_parts > TERN_MAX_PARTS)
        return tern_fail(err, TERN_UNSUPPORTED, "%t: %i parts, 1 to %u allowed", shown(path),
                         (int64_t)n_parts, (uint64_t)TERN_MAX_PARTS);
    char name[PATH_MAX];
    if (strlen(path) >= sizeof name)
        return tern_fail(err, TERN_IO, "%t: %s", shown(path), strerror(ENAMETOOLONG));
    strcpy(name, path);
    for (int i = 1; i <= n_parts; i++) {
        char number[12];
        snprintf(number, sizeof number, "%05d", i % (MOST_SPLIT_NAME + 1));
        memcpy(name + digits, number, 5);
        tern_status s = open_part(name, m, err);
        if (s != TERN_OK)
            return s;
    }
    return TERN_OK;
}

tern_status tern_os_open_model(const char *path, tern_os_model *out, tern_error *err)
{
    memset(out, 0, sizeof *out);
    tern_status s = open_parts(path, out, err);
    if (s == TERN_OK && out->image.size == 0) {
        out->windows = tern_os_map(out->n_parts * WINDOW_BYTES, 0);
        if (out->windows.data == NULL)
            s = tern_fail(err, TERN_NO_MEMORY, "%t: no memory to read it through", shown(path));
    }
    if (s != TERN_OK) {
        tern_os_close_model(out);
        return s;
    }
    for (size_t i = 0; i < out->n_parts && out->windows.size > 0; i++) {
        unsigned char *window = (unsigned char *)out->windows.data + i * WINDOW_BYTES;
        out->parts[i].self = &out->files[i];
        out->parts[i].window = (tern_memory){window, WINDOW_BYTES};
    }
    return TERN_OK;
}

void tern_os_close_model(tern_os_model *m)
{
    for (size_t i = 0; i < m->n_parts; i++)
        close(m->files[i]);
    tern_os_unmap(m->windows);
    tern_os_unmap(m->image);
    memset(m, 0, sizeof *m);
}

bool tern_os_leads_to(const char *path, int fd)
{
    struct stat there, open;
    return stat(path, &there) == 0 && fstat(fd, &open) == 0 && there.st_dev == open.st_dev &&
           there.st_ino == open.st_ino;
}
