/* serve_embeddings.c: /v1/embeddings: a text as a vector of unit length.
 *
 * A model that was made to continue texts has seen all of a text at its last token alone, so that
 * one's hidden state stands for it, unless the file says that the mean of all does, or --pooling
 * says which. Sums are in float64 and in the order of positions: the same text gives the same
 * bits, whatever it is computed beside. */
#include "tools/serve/endpoints.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VECTOR }; /* of an answer's parts: as it is sent */

/* Of the job. */
struct wanted { uint32_t n; bool base64; };

/* --- pooling --- */

/* The file's key: 0 says nothing, 1 the mean, 3 the last; others are not of such models. */
static enum tern_pooling pooling_of_file(const tern_model *model)
{
    static const char key[] = ".pooling_type";
    tern_metadata m;
    char text[8];
    size_t n;
    for (uint32_t i = 0;; i++) {
        const tern_status status = tern_model_metadata(model, i, &m, text, sizeof text, &n);
        if (status != TERN_OK && status != TERN_TOO_SMALL)
            return TERN_POOLING_LAST;
        if (m.key.size > sizeof key - 1 && n == 1 &&
            memcmp(m.key.data + m.key.size - (sizeof key - 1), key, sizeof key - 1) == 0)
            return text[0] == '1' ? TERN_POOLING_MEAN
                   : text[0] == '0' || text[0] == '3' ? TERN_POOLING_LAST : TERN_POOLING_NONE;
    }
}

bool tern_serve_pooling(const struct tern_settings *s, const tern_model *model,
                        enum tern_pooling *out, char line[TERN_ARGS_LINE])
{
    *out = pooling_of_file(model);
    if (!s->pooling)
        return true;
    *out = strcmp(s->pooling, "mean") == 0   ? TERN_POOLING_MEAN
           : strcmp(s->pooling, "last") == 0 ? TERN_POOLING_LAST : TERN_POOLING_NONE;
    if (*out == TERN_POOLING_NONE)
        snprintf(line, TERN_ARGS_LINE, "--pooling: '%.40s' given, mean or last needed",
                 s->pooling);
    return *out != TERN_POOLING_NONE;
}

/* --- the engine's side --- */

/* Where the sum of a running choice lies. */
static double *sum_of(const struct tern_choice *c)
{
    const struct tern_server *s = c->job->server;
    return s->sums + (size_t)c->slot * s->session.info.n_embd;
}

static void add_row(const struct tern_choice *c, const tern_event *e)
{
    const bool only = c->job->options.hidden == TERN_HIDDEN_LAST || e->position == 0;
    double *sum = sum_of(c);
    for (uint32_t i = 0; i < c->job->server->session.info.n_embd; i++)
        sum[i] = (only ? 0 : sum[i]) + (double)e->hidden[i];
}

static void put_base64(struct tern_out *o, const unsigned char *bytes, size_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t v = (uint32_t)bytes[i] << 16 |
                           (uint32_t)(i + 1 < n ? bytes[i + 1] : 0) << 8 |
                           (i + 2 < n ? bytes[i + 2] : 0);
        const char four[4] = {digits[v >> 18], digits[v >> 12 & 63],
                              i + 1 < n ? digits[v >> 6 & 63] : '=',
                              i + 2 < n ? digits[v & 63] : '='};
        tern_out_put(o, four, 4);
    }
}

/* The first floats of the sum, at unit length, as they are sent. */
static void write_vector(struct tern_choice *c)
{
    enum { FLOATS = 48 }; /* a multiple of three: base64 without a rest */
    const struct wanted *w = c->job->own;
    const double *sum = sum_of(c);
    double square = 0;
    for (uint32_t i = 0; i < w->n; i++)
        square += sum[i] * sum[i];
    const double scale = square > 0 ? 1 / sqrt(square) : 0;
    struct tern_out *o = tern_part_begin(c, VECTOR);
    for (uint32_t at = 0; at < w->n; at += FLOATS) {
        unsigned char bytes[4 * FLOATS];
        const uint32_t n = w->n - at < FLOATS ? w->n - at : FLOATS;
        for (uint32_t i = 0; i < n; i++) {
            const float x = (float)(sum[at + i] * scale);
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            for (int b = 0; b < 4; b++)
                bytes[4 * i + b] = (unsigned char)(bits >> 8 * b);
            if (!w->base64)
                tern_json_float(o, NULL, x);
        }
        if (w->base64)
            put_base64(o, bytes, 4 * n);
    }
    tern_part_end(c);
}

static void on_event(struct tern_choice *c, const tern_event *e, struct tern_out *o)
{
    (void)o;
    if (e->kind == TERN_EVENT_HIDDEN)
        add_row(c, e);
    else if (e->kind == TERN_EVENT_DONE)
        write_vector(c);
}

static void on_end(struct tern_job *j, struct tern_out *o)
{
    const struct wanted *w = j->own;
    const tern_text name = {j->server->name, strlen(j->server->name)};
    tern_write_to(j->x, o);
    tern_json_begin(o, NULL, '{');
    tern_json_text(o, "object", (tern_text){"list", 4});
    tern_json_begin(o, "data", '[');
    for (uint32_t i = 0; i < j->n_choices; i++) {
        tern_json_begin(o, NULL, '{');
        tern_json_text(o, "object", (tern_text){"embedding", 9});
        tern_json_u64(o, "index", i);
        tern_part_write(&j->choices[i], VECTOR, o, "embedding", w->base64 ? "\"\"" : "[]");
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
    tern_json_text(o, "model", name);
    tern_write_usage(j, o);
    tern_json_end(o, '}');
    tern_out_flush(o);
}

static const struct tern_job_kind embeddings = {.event = on_event, .end = on_end};

/* --- the kitchen's side --- */

static bool read_input(struct tern_call *c, uint32_t i, const json_t *input)
{
    if (json_string_length(input))
        return tern_prompts_encode(c, i, (tern_text){json_string_value(input),
                                                     json_string_length(input)}, 0);
    if (json_is_array(input))
        return tern_prompts_ids(c, i, input);
    return tern_call_fail(c, 400, "input", NULL, "input: a text, or ids, or a list of such needed");
}

static bool read_format(struct tern_call *c, struct wanted *w)
{
    const uint32_t n_embd = c->server->session.info.n_embd;
    const json_t *format = json_object_get(c->body, "encoding_format");
    const char *name = json_string_value(format);
    int64_t n = n_embd;
    if (format && !json_is_null(format) &&
        (!name || (strcmp(name, "float") != 0 && strcmp(name, "base64") != 0)))
        return tern_call_fail(c, 400, "encoding_format", NULL,
                              "encoding_format: float or base64 needed");
    if (!tern_field_int(c, "dimensions", 1, n_embd, &n))
        return false;
    w->n = (uint32_t)n;
    w->base64 = name && strcmp(name, "base64") == 0;
    return true;
}

bool tern_embeddings_prepare(struct tern_call *c)
{
    struct tern_job *j = c->job;
    const struct tern_server *s = c->server;
    const json_t *input = json_object_get(c->body, "input");
    const bool many = json_is_array(input) && !json_is_integer(json_array_get(input, 0));
    struct wanted *w = tern_job_take(j, 1, sizeof *w);
    if (s->pooling == TERN_POOLING_NONE)
        return tern_call_fail(c, 400, "model", NULL, "this model pools in another way than by the "
                              "mean or the last token; --pooling says which of them is wanted");
    c->param = "input";
    j->n_each = 1;
    j->own = w;
    j->kind = &embeddings;
    tern_sampling_default(&j->options.sampling);
    j->options.prefill_only = true;
    j->options.hidden = s->pooling == TERN_POOLING_MEAN ? TERN_HIDDEN_ALL : TERN_HIDDEN_LAST;
    if (!w || !read_format(c, w) || !tern_prompts_open(c, many ? json_array_size(input) : 1))
        return w ? false : tern_call_fail(c, 413, NULL, NULL, "no memory for the request");
    for (uint32_t i = 0; i < j->n_prompts; i++)
        if (!read_input(c, i, many ? json_array_get(input, i) : input))
            return false;
    return true;
}
