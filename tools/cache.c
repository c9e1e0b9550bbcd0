/* cache.c: images of GGUF files in a folder, by the identity of the file: its parts' sizes, times
 * and first bytes. A hit is verified whole before it is used, which also brings its pages in;
 * what is found broken or of another version is made again. */
#include "tools/make_image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: the files cannot be read. */
static uint64_t identity_of(const tern_os_model *files)
{
    static unsigned char head[64 << 10];
    struct { uint64_t size, seconds, nanoseconds, head; } parts[TERN_MAX_PARTS];
    memset(parts, 0, sizeof parts);
    for (size_t i = 0; i < files->n_parts; i++) {
        struct stat st;
        if (fstat(files->files[i], &st) != 0)
            return 0;
        ssize_t n = pread(files->files[i], head, sizeof head, 0);
        if (n < 0)
            return 0;
        parts[i].size = (uint64_t)st.st_size;
        parts[i].seconds = (uint64_t)st.st_mtim.tv_sec;
        parts[i].nanoseconds = (uint64_t)st.st_mtim.tv_nsec;
        parts[i].head = tern_hash_of(head, (size_t)n);
    }
    uint64_t hash = tern_hash_of(parts, files->n_parts * sizeof parts[0]);
    return hash ? hash : 1;
}

/* Whether path held an image of this identity, whole; then the session is open on it. */
static bool open_hit(struct tern_session *s, const char *path, uint64_t identity)
{
    if (access(path, R_OK) == 0 && tern_session_open(s, path, TERN_MODEL_WHOLE) &&
        s->info.is_image && s->info.identity == identity &&
        tern_image_verify(&s->files.parts[0], &s->error) == TERN_OK)
        return true;
    tern_session_close(s);
    return false;
}

static bool open_plain(struct tern_session *s, const char *path, const char *why)
{
    fprintf(stderr, "tern: --cache: %s; the model is read as it is\n", why);
    tern_session_close(s);
    return tern_session_open(s, path, TERN_MODEL_WHOLE);
}

static bool open_cached(struct tern_session *s, const char *path, const char *folder)
{
    char name[4096], line[TERN_ARGS_LINE];
    tern_os_model files;
    if (folder == NULL || tern_os_open_model(path, &files, NULL) != TERN_OK)
        return tern_session_open(s, path, TERN_MODEL_WHOLE);
    bool image = files.image.size > 0;
    uint64_t identity = image ? 0 : identity_of(&files);
    tern_os_close_model(&files);
    if (image)
        return tern_session_open(s, path, TERN_MODEL_WHOLE);
    if (!identity || (size_t)snprintf(name, sizeof name, "%s/%016llx.tern", folder,
                                      (unsigned long long)identity) >= sizeof name)
        return open_plain(s, path, "no name for the image");
    if (open_hit(s, name, identity))
        return true;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return open_plain(s, path, strerror(errno));
    if (!tern_session_open(s, path, TERN_MODEL_WHOLE))
        return false;
    const struct tern_make_image o = {.shape = TERN_MAKE_FILE, .path = name,
                                        .identity = identity};
    uint64_t bytes;
    if (!tern_make_image(s, &o, &bytes, line))
        return open_plain(s, path, line);
    tern_session_close(s);
    return open_hit(s, name, identity) || open_plain(s, path, "the image could not be opened");
}

/* What making the image takes belongs to the start, as the user waits for it. */
bool tern_session_open_cached(struct tern_session *s, const char *path, const char *folder)
{
    const uint64_t begun_ns = tern_os_now_ns();
    const bool ok = open_cached(s, path, folder);
    s->begun_ns = begun_ns;
    return ok;
}
