#include "tools/bench/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static uint64_t first_ns(const struct tern_session *s)
{
    uint64_t first = UINT64_MAX;
    tern_timing t;
    for (size_t i = 0; tern_timing_at(s->engine, i, &t); i++)
        first = t.start_ns < first ? t.start_ns : first;
    return first;
}

static void write_op(const struct tern_session *s, uint32_t op, struct tern_out *o)
{
    char line[256];
    size_t n;
    uint32_t layer;
    tern_status status = tern_model_op(s->model, op, line, sizeof line, &n, &layer);
    if (status != TERN_OK && status != TERN_TOO_SMALL)
        return;
    tern_json_begin(o, "args", '{');
    tern_json_u64(o, "op", op);
    if (layer != UINT32_MAX)
        tern_json_u64(o, "layer", layer);
    tern_json_text(o, "does", (tern_text){line, n < sizeof line ? n : sizeof line});
    tern_json_end(o, '}');
}

static void write_timing(const struct tern_session *s, const tern_timing *t, uint64_t first,
                         struct tern_out *o)
{
    const char *name = tern_work_name(t->work);
    tern_text text = {name, strlen(name)};
    tern_json_begin(o, NULL, '{');
    tern_json_text(o, "name", text);
    tern_json_text(o, "cat", text);
    tern_json_text(o, "ph", (tern_text){"X", 1});
    tern_json_u64(o, "pid", 0);
    tern_json_u64(o, "tid", t->thread);
    tern_json_real(o, "ts", (double)(t->start_ns - first) * 1e-3);
    tern_json_real(o, "dur", (double)(t->end_ns - t->start_ns) * 1e-3);
    if (t->op != UINT32_MAX)
        write_op(s, t->op, o);
    tern_json_end(o, '}');
}

bool tern_trace_write(const struct tern_session *s, const char *path)
{
    static struct tern_out out;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    tern_out_open(&out, fd);
    tern_json_begin(&out, NULL, '{');
    tern_json_text(&out, "displayTimeUnit", (tern_text){"ms", 2});
    tern_json_begin(&out, "traceEvents", '[');
    const uint64_t first = first_ns(s);
    tern_timing t;
    for (size_t i = 0; tern_timing_at(s->engine, i, &t); i++)
        write_timing(s, &t, first, &out);
    tern_json_end(&out, ']');
    tern_json_end(&out, '}');
    tern_out_put(&out, "\n", 1);
    bool ok = tern_out_flush(&out);
    int error = out.error;
    if (close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    errno = error;
    return ok;
}
