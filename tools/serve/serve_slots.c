/* serve_slots.c: POST /slots/N?action=save, restore or erase: what a sequence holds, in a file.
 *
 * With --slot-save-path a sequence that has ended stays open in its slot until that is needed.
 * Saved, it is a session (runtime/tern.h). Restored, it lies in a slot and in the index of
 * prefixes: whatever prompt begins alike finds it. The engine's thread does both in pieces: while
 * the files' thread reads or writes one, and between pieces, it steps for whoever runs, so no
 * stream waits for the disk. One file is done at a time. If a step needs the blocks that are being
 * saved or restored, as it may where the pool is full, the file is given up with 503.
 *
 * A file is named by letters, digits and - _ . alone, no dot first, and is a regular one in that
 * folder: a name leads nowhere else, and an answer does not tell what else is there. */
#include "tools/serve/endpoints.h"

#include "platform/os/host.h"
#include "tools/keep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char no_slot[] = "there is no such saved slot";

enum action { SAVE, RESTORE, ERASE };

/* Of the job. */
struct asked { enum action action; uint32_t slot; char name[128]; };

/* --- the engine's side --- */

static bool path_of(const struct tern_server *s, const struct asked *a, char *path, size_t size)
{
    const int n = snprintf(path, size, "%s/%s", s->settings->slot_save_path, a->name);
    return n > 0 && (size_t)n < size;
}

/* A regular file, or nothing: not where a link leads. */
static bool is_plain(const char *path, bool *there)
{
    struct stat st;
    *there = lstat(path, &st) == 0;
    return *there ? S_ISREG(st.st_mode) : errno == ENOENT;
}

/* The line without the path that it begins with: where the folder lies is nobody's business. */
static const char *without_path(const char *line, const struct asked *a)
{
    const char *name = strstr(line, a->name);
    return name ? name : line;
}

static void begin(struct tern_job *j, struct tern_out *o)
{
    const struct asked *a = j->own;
    tern_http_begin(j->x, 200, "application/json", false);
    tern_write_to(j->x, o);
    tern_json_begin(o, NULL, '{');
    tern_json_u64(o, "id_slot", a->slot);
    if (a->action != ERASE)
        tern_json_string(o, "filename", a->name);
}

static void end(struct tern_job *j, struct tern_out *o, const char *key, uint64_t from_ns)
{
    (void)j;
    tern_json_begin(o, "timings", '{');
    tern_json_real(o, key, (double)(tern_os_now_ns() - from_ns) * 1e-6);
    tern_json_end(o, '}');
    tern_json_end(o, '}');
    tern_out_flush(o);
}

static void fail(struct tern_job *j, struct tern_out *o, int status, const char *line)
{
    if (atomic_load(&j->x->gone))
        return;
    if (status == 503)
        tern_http_add_header(j->x, "Retry-After", "1");
    tern_http_begin(j->x, status, "application/json", false);
    tern_write_to(j->x, o);
    tern_write_error(o, status, status == 409 ? "id_slot" : "filename", NULL, line);
    tern_out_flush(o);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool run_elsewhere(void *self, void (*work)(void *arg), void *arg)
{
    const struct tern_job *j = self;
    return tern_serve_elsewhere(j->server, j, work, arg);
}

static void hold(struct tern_served *slot, bool held)
{
    slot->held = held;
    atomic_store(&slot->busy, held);
}

static void save(struct tern_job *j, struct tern_served *slot, const char *path, struct tern_out *o)
{
    struct tern_server *s = j->server;
    const struct tern_elsewhere elsewhere = {run_elsewhere, j};
    char line[TERN_ARGS_LINE] = "";
    tern_seq_info info;
    bool there;
    const uint64_t from = tern_os_now_ns();
    if (!slot->kept || tern_seq_describe(s->session.engine, slot->kept, &info) != TERN_OK) {
        fail(j, o, 400, "the slot holds nothing");
        return;
    }
    hold(slot, true);
    enum tern_kept kept = TERN_KEPT_FAILED;
    if (is_plain(path, &there))
        kept = tern_keep_save(&s->session, slot->kept, path, (tern_bytes){NULL, 0}, &elsewhere,
                              line);
    hold(slot, false);
    if (kept != TERN_KEPT_WRITTEN) {
        fail(j, o, kept == TERN_KEPT_BUSY ? 503 : 500,
             kept == TERN_KEPT_BUSY ? without_path(line, j->own) : "it cannot be written");
        return;
    }
    begin(j, o);
    tern_json_u64(o, "n_saved", info.n_tokens);
    tern_json_u64(o, "n_written", size_of(path));
    end(j, o, "save_ms", from);
}

struct head { const char *path; enum tern_kept kept; char line[TERN_ARGS_LINE]; };

static void read_head(void *self)
{
    struct head *h = self;
    h->kept = tern_keep_read(h->path, NULL, NULL, h->line);
}

/* Whether the file is a session, found while the slot still has what it would lose. */
static bool check_head(struct tern_job *j, struct tern_served *slot, const char *path,
                       struct tern_out *o)
{
    struct head head = {.path = path};
    hold(slot, true);
    const bool wanted = run_elsewhere(j, read_head, &head);
    hold(slot, false);
    if (!wanted)
        fail(j, o, 503, "it is given up");
    else if (head.kept == TERN_KEPT_NONE)
        fail(j, o, 404, no_slot);
    else if (head.kept != TERN_KEPT_READ)
        fail(j, o, 400, without_path(head.line, j->own));
    return wanted && head.kept == TERN_KEPT_READ;
}

static void restore(struct tern_job *j, struct tern_served *slot, const char *path,
                    struct tern_out *o)
{
    struct tern_server *s = j->server;
    tern_engine *engine = s->session.engine;
    const tern_seq_options options = {.sampling = {.top_p = 1, .typical_p = 1,
                                                   .repeat_penalty = 1}};
    char line[TERN_ARGS_LINE] = "";
    tern_seq_info info = {0};
    tern_seq seq;
    bool there;
    const struct tern_elsewhere elsewhere = {run_elsewhere, j};
    const uint64_t from = tern_os_now_ns();
    if (!is_plain(path, &there) || !there) {
        fail(j, o, 404, no_slot);
        return;
    }
    if (!check_head(j, slot, path, o))
        return;
    tern_slot_clear(s, slot);
    if (tern_seq_open(engine, &options, &seq) != TERN_OK) {
        tern_engine_clear_error(engine);
        fail(j, o, 503, "no sequence is free");
        return;
    }
    hold(slot, true);
    const enum tern_kept kept = tern_keep_restore(&s->session, seq, path, &elsewhere, line);
    hold(slot, false);
    if (kept != TERN_KEPT_READ || tern_seq_describe(engine, seq, &info) != TERN_OK) {
        tern_seq_close(engine, seq);
        fail(j, o, kept == TERN_KEPT_BUSY ? 503 : 400,
             line[0] ? without_path(line, j->own) : no_slot);
        return;
    }
    tern_slot_keep(s, slot, seq);
    begin(j, o);
    tern_json_u64(o, "n_restored", info.n_tokens);
    tern_json_u64(o, "n_read", size_of(path));
    end(j, o, "restore_ms", from);
}

static void erase(struct tern_job *j, struct tern_served *slot, struct tern_out *o)
{
    const uint32_t n = slot->kept ? atomic_load(&slot->n_tokens) : 0;
    tern_slot_clear(j->server, slot);
    begin(j, o);
    tern_json_u64(o, "n_erased", n);
    tern_json_end(o, '}');
    tern_out_flush(o);
}

static void act(struct tern_job *j, struct tern_out *o)
{
    const struct asked *a = j->own;
    struct tern_served *slot = &j->server->slots[a->slot];
    char path[4096];
    if (slot->choice)
        fail(j, o, 409, "the slot is busy");
    else if (a->action == ERASE)
        erase(j, slot, o);
    else if (!path_of(j->server, a, path, sizeof path))
        fail(j, o, 400, "the name is too long");
    else if (a->action == SAVE)
        save(j, slot, path, o);
    else
        restore(j, slot, path, o);
}

static const struct tern_job_kind kind = {.aside = act};

/* --- the kitchen's side --- */

static bool read_action(struct tern_call *c, enum action *out)
{
    static const char *const names[] = {"action=save", "action=restore", "action=erase"};
    for (int i = 0; i < 3; i++)
        if (tern_http_is(c->x->query, names[i])) {
            *out = (enum action)i;
            return true;
        }
    return tern_call_fail(c, 400, "action", NULL, "action: save, restore or erase needed");
}

static bool read_name(struct tern_call *c, struct asked *a)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.";
    const json_t *name = json_object_get(c->body, "filename");
    const char *text = json_string_value(name);
    const size_t n = json_string_length(name);
    if (!text || n == 0 || n >= sizeof a->name || text[0] == '.' || strspn(text, letters) != n)
        return tern_call_fail(c, 400, "filename", NULL, "filename: 1 to %zu letters, digits and "
                              "- _ . needed, no dot first", sizeof a->name - 1);
    memcpy(a->name, text, n + 1);
    return true;
}

bool tern_slot_prepare(struct tern_call *c)
{
    const struct tern_server *s = c->server;
    const uint32_t n_slots = s->session.plan.limits.n_seqs;
    struct asked *a = tern_job_take(c->job, 1, sizeof *a);
    const char *at = c->x->path.data + strlen("/slots/");
    uint32_t slot = 0;
    for (; a && at < c->x->path.data + c->x->path.size; at++)
        slot = slot < n_slots ? 10 * slot + (uint32_t)(*at - '0') : n_slots;
    if (!a || slot >= n_slots)
        return tern_call_fail(c, 404, "id_slot", NULL, "id_slot: 0 to %u there are", n_slots - 1);
    if (!s->settings->slot_save_path)
        return tern_call_fail(c, 501, NULL, NULL, "slots are not kept: --slot-save-path says where "
                              "they may be saved");
    a->slot = slot;
    c->job->own = a;
    c->job->kind = &kind;
    return read_action(c, &a->action) && (a->action == ERASE || read_name(c, a));
}
