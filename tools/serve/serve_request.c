/* serve_request.c: the fields that requests for text share. */
#include "tools/serve/serve.h"

#include "platform/os/host.h"
#include "tools/json_text.h"
#include "tools/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *field(const struct tern_call *c, const char *name)
{
    json_t *value = json_object_get(c->body, name);
    return json_is_null(value) ? NULL : value;
}

static bool wrong(struct tern_call *c, const char *name, const char *needed)
{
    return tern_call_fail(c, 400, name, NULL, "%s: %s needed", name, needed);
}

static bool too_many(struct tern_call *c, const char *name, size_t n, int most)
{
    return tern_call_fail(c, 400, name, NULL, "%s: %zu given, at most %d needed", name, n, most);
}

/* A value as an error shows it: numbers as they are, of others their kind. */
static const char *shown(const json_t *value, char out[32])
{
    if (json_is_integer(value))
        snprintf(out, 32, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(out, 32, "%g", json_real_value(value));
    else
        snprintf(out, 32, "%s", json_is_string(value)    ? "a text"
                                : json_is_boolean(value) ? json_is_true(value) ? "true" : "false"
                                : json_is_array(value)   ? "a list"
                                : json_is_object(value)  ? "an object"
                                                         : "null");
    return out;
}

bool tern_field_real(struct tern_call *c, const char *name, double least, double most,
                     double *out)
{
    const json_t *value = field(c, name);
    if (!value)
        return true;
    char text[32];
    const double x = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(x >= least && x <= most))
        return tern_call_fail(c, 400, name, NULL, "%s: %s given, a number from %g to %g needed",
                              name, shown(value, text), least, most);
    *out = x;
    return true;
}

bool tern_field_int(struct tern_call *c, const char *name, int64_t least, int64_t most,
                    int64_t *out)
{
    const json_t *value = field(c, name);
    if (!value)
        return true;
    char text[32];
    const double real = json_is_real(value) ? json_real_value(value) : 0.5;
    const bool whole = real >= -9e15 && real <= 9e15 && real == (double)(int64_t)real;
    const int64_t x = json_is_integer(value) ? json_integer_value(value)
                                             : whole ? (int64_t)real : 0;
    if (!(json_is_integer(value) || whole) || x < least || x > most)
        return tern_call_fail(c, 400, name, NULL,
                              "%s: %s given, a whole number from %lld to %lld needed", name,
                              shown(value, text), (long long)least, (long long)most);
    *out = x;
    return true;
}

bool tern_field_bool(struct tern_call *c, const char *name, bool *out)
{
    const json_t *value = field(c, name);
    if (!value)
        return true;
    char text[32];
    if (!json_is_boolean(value))
        return tern_call_fail(c, 400, name, NULL, "%s: %s given, true or false needed", name,
                              shown(value, text));
    *out = json_is_true(value);
    return true;
}

/* --- sampling --- */

static void defaults(const struct tern_settings *s, tern_sampling *out)
{
    tern_sampling_default(out);
    out->temperature = (float)s->temperature;
    out->top_k = (int32_t)s->top_k;
    out->top_p = (float)s->top_p;
    out->min_p = (float)s->min_p;
    out->typical_p = (float)s->typical_p;
    out->repeat_penalty = (float)s->repeat_penalty;
    out->repeat_last_n = (int32_t)s->repeat_last_n;
    out->presence_penalty = (float)s->presence;
    out->frequency_penalty = (float)s->frequency;
}

static bool read_reals(struct tern_call *c, tern_sampling *to)
{
    const struct { const char *name; double least, most; float *to; } rows[] = {
        {"temperature", 0, 1000, &to->temperature},
        {"top_p", 0, 1, &to->top_p},
        {"min_p", 0, 1, &to->min_p},
        {"typical_p", 0, 1, &to->typical_p},
        {"repetition_penalty", 0.001, 1000, &to->repeat_penalty},
        {"repeat_penalty", 0.001, 1000, &to->repeat_penalty},
        {"presence_penalty", -100, 100, &to->presence_penalty},
        {"frequency_penalty", -100, 100, &to->frequency_penalty},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double x = (double)*rows[i].to;
        if (!tern_field_real(c, rows[i].name, rows[i].least, rows[i].most, &x))
            return false;
        *rows[i].to = (float)x;
    }
    return true;
}

/* A request without a seed gets one that no other has. */
static bool read_seed(struct tern_call *c, tern_sampling *to)
{
    int64_t seed = -1;
    if (!tern_field_int(c, "seed", INT64_MIN, INT64_MAX, &seed))
        return false;
    if (seed != -1 || json_is_integer(json_object_get(c->body, "seed")))
        to->seed = (uint64_t)seed;
    else if (c->server->settings->has_seed)
        to->seed = c->server->settings->seed;
    else
        to->seed = tern_os_now_ns() * 1000003u + c->job->number;
    return true;
}

static bool read_sampling(struct tern_call *c, tern_sampling *to)
{
    int64_t top_k, last_n;
    defaults(c->server->settings, to);
    top_k = to->top_k;
    last_n = to->repeat_last_n;
    if (!read_reals(c, to) || !tern_field_int(c, "top_k", -1, INT32_MAX, &top_k) ||
        !tern_field_int(c, "repeat_last_n", -1, INT32_MAX, &last_n) || !read_seed(c, to))
        return false;
    to->top_k = (int32_t)top_k;
    to->repeat_last_n = (int32_t)last_n;
    return true;
}

/* --- biases: {"id": bias} or [[id, bias]] --- */

static bool add_bias(struct tern_call *c, tern_bias *to, int64_t id, const json_t *bias)
{
    const uint32_t n_vocab = c->server->session.info.n_vocab;
    const bool never = json_is_false(bias);
    const double x = json_is_number(bias) ? json_number_value(bias) : NAN;
    char text[32];
    if (id < 0 || id >= n_vocab)
        return tern_call_fail(c, 400, "logit_bias", NULL, "logit_bias: id %lld given, 0 to %u "
                              "needed", (long long)id, n_vocab - 1);
    if (!never && !(x >= -100 && x <= 100))
        return tern_call_fail(c, 400, "logit_bias", NULL, "logit_bias: %s given for %lld, -100 to "
                              "100, or false, needed", bias ? shown(bias, text) : "nothing",
                              (long long)id);
    *to = (tern_bias){(tern_token)id, never || x <= -100 ? -INFINITY : (float)x};
    return true;
}

static bool id_of_key(const char *key, int64_t *id)
{
    *id = 0;
    const size_t n = strspn(key, "0123456789");
    if (n == 0 || n > 10 || key[n])
        return false;
    for (size_t i = 0; i < n; i++)
        *id = 10 * *id + (key[i] - '0');
    return true;
}

static bool read_biases(struct tern_call *c, tern_sampling *to)
{
    json_t *map = field(c, "logit_bias"), *value;
    const char *key;
    size_t i, n = json_is_array(map) ? json_array_size(map) : json_object_size(map);
    if (!map || (json_is_array(map) && n == 0))
        return true;
    if (!json_is_object(map) && !json_is_array(map))
        return wrong(c, "logit_bias", "an object of ids and biases");
    if (n > TERN_MAX_BIASES)
        return too_many(c, "logit_bias", n, TERN_MAX_BIASES);
    tern_bias *list = tern_job_take(c->job, n, sizeof *list);
    if (!list)
        return tern_call_fail(c, 413, "logit_bias", NULL, "logit_bias: no memory for it");
    to->biases = list;
    json_object_foreach(map, key, value) {
        int64_t id;
        if (!id_of_key(key, &id))
            return wrong(c, "logit_bias", "ids of tokens");
        if (!add_bias(c, &list[to->n_biases++], id, value))
            return false;
    }
    json_array_foreach(map, i, value) {
        const json_t *id = json_array_get(value, 0);
        if (!json_is_integer(id))
            return wrong(c, "logit_bias", "pairs of an id and a bias");
        if (!add_bias(c, &list[to->n_biases++], json_integer_value(id), json_array_get(value, 1)))
            return false;
    }
    for (uint32_t k = 1; k < to->n_biases; k++)
        for (uint32_t m = 0; m < k; m++)
            if (list[k].token == list[m].token)
                return wrong(c, "logit_bias", "each id once");
    return true;
}

/* --- where it ends --- */

static bool add_stop(struct tern_call *c, tern_text *to, const json_t *value, size_t *bytes)
{
    const size_t n = json_string_length(value);
    *bytes += n;
    if (!json_is_string(value) || n == 0)
        return wrong(c, "stop", "texts of at least one byte");
    if (*bytes > TERN_SERVE_STOP_BYTES)
        return tern_call_fail(c, 400, "stop", NULL, "stop: texts of %zu bytes given, at most %d "
                              "needed", *bytes, TERN_SERVE_STOP_BYTES);
    *to = tern_job_keep(c->job, json_string_value(value), n);
    return to->data || tern_call_fail(c, 413, "stop", NULL, "stop: no memory for it");
}

static bool read_stops(struct tern_call *c, tern_seq_options *o)
{
    json_t *stop = field(c, "stop");
    const size_t n = json_is_array(stop) ? json_array_size(stop) : stop != NULL;
    size_t bytes = 0;
    if (n > TERN_MAX_STOPS)
        return too_many(c, "stop", n, TERN_MAX_STOPS);
    tern_text *list = tern_job_take(c->job, n, sizeof *list);
    if (!list)
        return tern_call_fail(c, 413, "stop", NULL, "stop: no memory for it");
    for (size_t i = 0; i < n; i++)
        if (!add_stop(c, &list[i], json_is_array(stop) ? json_array_get(stop, i) : stop, &bytes))
            return false;
    o->stops = list;
    o->n_stops = (uint32_t)n;
    return true;
}

static bool read_stop_tokens(struct tern_call *c)
{
    json_t *list = field(c, "stop_token_ids"), *id;
    size_t i;
    if (list && !json_is_array(list))
        return wrong(c, "stop_token_ids", "a list of ids");
    if (json_array_size(list) > TERN_SERVE_STOP_TOKENS)
        return too_many(c, "stop_token_ids", json_array_size(list), TERN_SERVE_STOP_TOKENS);
    json_array_foreach(list, i, id) {
        const int64_t x = json_is_integer(id) ? json_integer_value(id) : -1;
        if (x < 0 || x >= c->server->session.info.n_vocab)
            return tern_call_fail(c, 400, "stop_token_ids", NULL, "stop_token_ids[%zu]: an id "
                                  "from 0 to %u needed", i, c->server->session.info.n_vocab - 1);
        c->job->stop_tokens[c->job->n_stop_tokens++] = (tern_token)x;
    }
    return true;
}

static bool forbid_early(struct tern_call *c, tern_sampling *to, tern_bias *list, uint32_t n_own,
                         tern_token token)
{
    for (uint32_t i = 0; i < to->n_biases; i++)
        if (list[i].token == token)
            return i >= n_own || list[i].bias == -INFINITY ||
                   wrong(c, "min_tokens", "no bias of a token that ends the text beside it");
    if (to->n_biases == TERN_MAX_BIASES)
        return wrong(c, "min_tokens", "fewer biases beside it");
    list[to->n_biases++] = (tern_bias){token, -INFINITY};
    return true;
}

/* Tokens that end a text, and those that the request names, cannot be drawn before. */
static bool set_min_tokens(struct tern_call *c, tern_seq_options *o, int64_t min)
{
    enum { ROOM = 64 };
    tern_sampling *s = &o->sampling;
    const uint32_t n_own = s->n_biases, n_vocab = c->server->session.info.n_vocab;
    tern_piece piece;
    if (min <= 0)
        return true;
    if (o->max_tokens && min > o->max_tokens)
        return wrong(c, "min_tokens", "at most max_tokens");
    tern_bias *list = tern_job_take(c->job, n_own + ROOM, sizeof *list);
    if (!list)
        return tern_call_fail(c, 413, "min_tokens", NULL, "min_tokens: no memory for it");
    if (n_own)
        memcpy(list, s->biases, n_own * sizeof *list);
    s->biases = list;
    for (uint32_t i = 0; i < c->job->n_stop_tokens; i++)
        if (!forbid_early(c, s, list, n_own, c->job->stop_tokens[i]))
            return false;
    for (tern_token t = 0; t < (tern_token)n_vocab && s->n_biases < n_own + ROOM; t++)
        if (tern_token_piece(c->server->session.model, t, &piece) == TERN_OK && piece.ends &&
            !forbid_early(c, s, list, n_own, t))
            return false;
    o->min_tokens = (uint32_t)min;
    o->n_early = s->n_biases - n_own;
    return true;
}

static bool read_length(struct tern_call *c, tern_seq_options *o, int64_t max)
{
    int64_t min = 0;
    if (c->server->settings->n_predict >= 0)
        max = c->server->settings->n_predict;
    static const char *const names[] = {"n_predict", "max_tokens", "max_completion_tokens",
                                        "max_output_tokens"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!tern_field_int(c, names[i], -1, INT32_MAX, &max))
            return false;
    if (!tern_field_int(c, "min_tokens", 0, INT32_MAX, &min))
        return false;
    o->max_tokens = max > 0 ? (uint32_t)max : 0;
    o->prefill_only = max == 0;
    return set_min_tokens(c, o, min);
}

/* --- the rest --- */

static bool read_numbers(struct tern_call *c, struct tern_job *j)
{
    int64_t n = 1, best = 0;
    if (!tern_field_int(c, "n", 1, TERN_SERVE_CHOICES, &n) ||
        !tern_field_int(c, "best_of", 1, TERN_SERVE_CHOICES, &best))
        return false;
    if (best > n)
        return tern_call_fail(c, 400, "best_of", NULL, "best_of: not supported beyond n");
    j->n_each = (uint32_t)n;
    return true;
}

static bool read_stream(struct tern_call *c, struct tern_job *j)
{
    json_t *options = field(c, "stream_options");
    if (!tern_field_bool(c, "stream", &j->stream) ||
        !tern_field_bool(c, "return_progress", &j->progress))
        return false;
    if (!options)
        return true;
    if (!json_is_object(options))
        return wrong(c, "stream_options", "an object");
    const json_t *usage = json_object_get(options, "include_usage");
    if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        return wrong(c, "stream_options.include_usage", "true or false");
    j->include_usage = json_is_true(usage);
    return true;
}

bool tern_request_read(struct tern_call *c, int64_t max)
{
    struct tern_job *j = c->job;
    tern_seq_options *o = &j->options;
    bool cache = true;
    j->n_top = -1;
    o->ignore_eos = c->server->settings->ignore_eos;
    if (!read_sampling(c, &o->sampling) || !read_biases(c, &o->sampling) || !read_stops(c, o) ||
        !read_stop_tokens(c) || !read_length(c, o, max) || !read_numbers(c, j) ||
        !read_stream(c, j) || !tern_field_bool(c, "ignore_eos", &o->ignore_eos) ||
        !tern_field_bool(c, "cache_prompt", &cache))
        return false;
    o->no_kv_sharing = !cache;
    return true;
}

/* --- grammars --- */

static bool of_response_format(struct tern_call *c, const json_t *format,
                               struct tern_request_format *out)
{
    static const char name[] = "response_format";
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!type)
        return wrong(c, name, "an object with a type");
    if (strcmp(type, "text") == 0)
        return true;
    out->param = name;
    out->schema = json_object_get(json_object_get(format, "json_schema"), "schema");
    if (!out->schema)
        out->schema = json_object_get(format, "schema");
    out->any_object = strcmp(type, "json_object") == 0 && !out->schema;
    if (out->any_object)
        return true;
    if (strcmp(type, "json_schema") != 0 && strcmp(type, "json_object") != 0)
        return wrong(c, name, "text, json_object or json_schema");
    return json_is_object(out->schema) ||
           wrong(c, "response_format.json_schema.schema", "an object");
}

bool tern_request_format(struct tern_call *c, struct tern_request_format *out)
{
    const json_t *grammar = field(c, "grammar"), *format = field(c, "response_format");
    json_t *schema = field(c, "json_schema");
    memset(out, 0, sizeof *out);
    if ((grammar != NULL) + (schema != NULL) + (format != NULL) > 1)
        return tern_call_fail(c, 400, "response_format", NULL,
                              "grammar, json_schema, response_format: one of them needed");
    if (grammar && !json_is_string(grammar))
        return wrong(c, "grammar", "a text");
    if (schema && !json_is_object(schema))
        return wrong(c, "json_schema", "an object");
    if (format)
        return of_response_format(c, format, out);
    out->schema = schema;
    out->param = schema ? "json_schema" : NULL;
    if (grammar && json_string_length(grammar) > 0) {
        out->param = "grammar";
        out->grammar = (tern_text){json_string_value(grammar), json_string_length(grammar)};
    }
    return true;
}

bool tern_request_constraint(struct tern_call *c)
{
    char line[TERN_ARGS_LINE] = "";
    static struct tern_out gbnf; /* the kitchen's */
    struct tern_request_format format;
    char *schema = NULL;
    if (!tern_request_format(c, &format))
        return false;
    if (!format.param)
        return true;
    tern_out_open(&gbnf, -1);
    bool ok = true;
    if (format.any_object) {
        tern_schema_write_object(&gbnf);
    } else if (format.schema) {
        schema = json_dumps(format.schema, JSON_COMPACT);
        ok = schema && tern_schema_write((tern_text){schema, strlen(schema)}, &gbnf, NULL,
                                         &c->effort, line);
    } else {
        tern_out_put(&gbnf, format.grammar.data, format.grammar.size);
    }
    ok = ok && !tern_effort_left(&c->effort) &&
         tern_constraint_compile(&c->job->constraint, (tern_text){gbnf.grown, gbnf.n},
                                 c->server->session.model, line);
    if (!ok && format.schema)
        tern_schema_explain((tern_text){gbnf.grown, gbnf.n}, line);
    c->job->options.grammar = c->job->constraint.grammar;
    tern_out_free(&gbnf);
    tern_json_drop(schema);
    return ok || tern_call_fail(c, 400, format.param, NULL, "%s: %s", format.param, line);
}
