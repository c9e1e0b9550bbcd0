/* serve_info.c: what the server says of itself and its model, on the loop's thread: always at
 * once, whatever the engine does. */
#include "tools/serve/endpoints.h"

static struct tern_out *begin(struct tern_server *s, struct tern_http_exchange *x, int status,
                              const char *type)
{
    tern_http_begin(x, status, type, false);
    tern_write_to(x, &s->loop_out);
    return &s->loop_out;
}

static void end(struct tern_http_exchange *x, struct tern_out *o)
{
    tern_out_flush(o);
    tern_http_end(x);
}

void tern_health_now(struct tern_server *s, struct tern_http_exchange *x)
{
    const bool ready = atomic_load(&s->ready);
    if (!ready)
        tern_http_add_header(x, "Retry-After", "1");
    struct tern_out *o = begin(s, x, ready ? 200 : 503, "application/json");
    if (ready) {
        tern_json_begin(o, NULL, '{');
        tern_json_string(o, "status", "ok");
        tern_json_end(o, '}');
    } else {
        tern_write_error(o, 503, NULL, NULL, "the model is loading");
    }
    end(x, o);
}

static void put_model(const struct tern_server *s, struct tern_out *o)
{
    const tern_model_info *info = &s->session.info;
    tern_json_begin(o, NULL, '{');
    tern_json_string(o, "id", s->name);
    tern_json_string(o, "object", "model");
    tern_json_i64(o, "created", s->created);
    tern_json_string(o, "owned_by", "tern");
    tern_json_u64(o, "max_model_len", s->session.plan.limits.n_ctx);
    tern_json_begin(o, "meta", '{');
    tern_json_u64(o, "n_vocab", info->n_vocab);
    tern_json_u64(o, "n_ctx_train", info->n_ctx_train);
    tern_json_u64(o, "n_embd", info->n_embd);
    tern_json_u64(o, "n_params", info->n_params);
    tern_json_u64(o, "size", info->weight_bytes);
    tern_json_end(o, '}');
    tern_json_end(o, '}');
}

void tern_models_now(struct tern_server *s, struct tern_http_exchange *x)
{
    struct tern_out *o = begin(s, x, 200, "application/json");
    tern_json_begin(o, NULL, '{');
    tern_json_string(o, "object", "list");
    tern_json_begin(o, "data", '[');
    put_model(s, o);
    tern_json_end(o, ']');
    tern_json_end(o, '}');
    end(x, o);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Whether a path's end, whose bytes may be written as %XX, spells a name. */
static bool spells(tern_text end, const char *name)
{
    size_t i = 0;
    for (; i < end.size && *name; name++) {
        int byte = (unsigned char)end.data[i++];
        if (byte == '%' && i + 2 <= end.size) {
            const int high = hex_digit(end.data[i]), low = hex_digit(end.data[i + 1]);
            byte = high < 0 || low < 0 ? -1 : high * 16 + low;
            i += 2;
        }
        if (byte != (unsigned char)*name)
            return false;
    }
    return i == end.size && !*name;
}

/* The one that there is, by its name; of the end of a path alone. */
void tern_model_now(struct tern_server *s, struct tern_http_exchange *x)
{
    const size_t from = sizeof "/v1/models/" - 1;
    const bool known = spells((tern_text){x->path.data + from, x->path.size - from}, s->name);
    struct tern_out *o = begin(s, x, known ? 200 : 404, "application/json");
    if (known)
        put_model(s, o);
    else
        tern_write_error(o, 404, "model", "model_not_found",
                         "there is no such model; GET /v1/models names the one that there is");
    end(x, o);
}

static void put_token(struct tern_server *s, struct tern_out *o, const char *key,
                      tern_token token)
{
    tern_piece piece;
    if (token >= 0 && tern_token_piece(s->session.model, token, &piece) == TERN_OK)
        tern_json_text(o, key, piece.text);
    else
        tern_json_null(o, key);
}

/* What holds where a request names nothing else. */
static void put_sampling(const struct tern_settings *s, struct tern_out *o)
{
    tern_json_begin(o, "params", '{');
    tern_json_real(o, "temperature", s->temperature);
    tern_json_i64(o, "top_k", s->top_k);
    tern_json_real(o, "top_p", s->top_p);
    tern_json_real(o, "min_p", s->min_p);
    tern_json_real(o, "typical_p", s->typical_p);
    tern_json_real(o, "repeat_penalty", s->repeat_penalty);
    tern_json_i64(o, "repeat_last_n", s->repeat_last_n);
    tern_json_real(o, "presence_penalty", s->presence);
    tern_json_real(o, "frequency_penalty", s->frequency);
    tern_json_end(o, '}');
}

void tern_props_now(struct tern_server *s, struct tern_http_exchange *x)
{
    const tern_limits *limits = &s->session.plan.limits;
    struct tern_out *o = begin(s, x, 200, "application/json");
    tern_json_begin(o, NULL, '{');
    tern_json_string(o, "model_alias", s->name);
    tern_json_text(o, "model_name", s->session.info.name);
    tern_json_text(o, "architecture", s->session.info.architecture);
    tern_json_u64(o, "total_slots", limits->n_seqs);
    tern_json_begin(o, "default_generation_settings", '{');
    tern_json_u64(o, "n_ctx", limits->n_ctx);
    put_sampling(s->settings, o);
    tern_json_end(o, '}');
    tern_json_text(o, "chat_template", s->no_chat[0] ? (tern_text){"", 0} : s->chat.source);
    put_token(s, o, "bos_token", s->session.info.bos);
    put_token(s, o, "eos_token", s->session.info.eos);
    tern_session_memory_json(&s->session, o, "memory");
    tern_json_string(o, "build_info", tern_version());
    tern_json_end(o, '}');
    end(x, o);
}

void tern_slots_now(struct tern_server *s, struct tern_http_exchange *x)
{
    const tern_limits *limits = &s->session.plan.limits;
    struct tern_out *o = begin(s, x, 200, "application/json");
    tern_json_begin(o, NULL, '[');
    for (uint32_t i = 0; i < limits->n_seqs; i++) {
        tern_json_begin(o, NULL, '{');
        tern_json_u64(o, "id", i);
        tern_json_u64(o, "n_ctx", limits->n_ctx);
        tern_json_bool(o, "is_processing", atomic_load(&s->slots[i].busy));
        tern_json_u64(o, "n_tokens", atomic_load(&s->slots[i].n_tokens));
        tern_json_end(o, '}');
    }
    tern_json_end(o, ']');
    end(x, o);
}

struct metric { const char *name, *type, *help; };

/* labels: as they stand between braces, or "". */
static void put_value(struct tern_out *o, const struct metric *m, const char *labels, double value)
{
    tern_out_print(o, "tern_%s%s %.17g\n", m->name, labels, value);
}

static void put_family(struct tern_out *o, const struct metric *m)
{
    tern_out_print(o, "# HELP tern_%s %s\n# TYPE tern_%s %s\n", m->name, m->help, m->name,
                   m->type);
}

static void put_metric(struct tern_out *o, struct metric m, double value)
{
    put_family(o, &m);
    put_value(o, &m, "", value);
}

static void put_answers(struct tern_server *s, struct tern_out *o)
{
    static const struct metric m = {"http_responses_total", "counter",
                                    "Answers that have ended, by the class of their status."};
    static const char *const labels[] = {"{code=\"2xx\"}", "{code=\"3xx\"}", "{code=\"4xx\"}",
                                         "{code=\"5xx\"}"};
    uint64_t n[TERN_HTTP_CLASSES];
    tern_http_answers(s->http, n);
    put_family(o, &m);
    for (int i = 0; i < 4; i++)
        put_value(o, &m, labels[i], (double)n[i + 2]);
}

static void put_blocks(struct tern_server *s, struct tern_out *o)
{
    static const struct metric m = {"kv_blocks", "gauge", "Blocks of 16 tokens by use, as seen "
                                    "within the last second; window: tokens that a layer sees, "
                                    "0 for all."};
    static const char *const uses[] = {"free", "kept", "used", "shared"};
    char labels[64];
    pthread_mutex_lock(&s->pool.lock);
    if (s->pool.views[0].n_blocks) /* looked at once */
        put_family(o, &m);
    for (int g = 0; g < TERN_POOL_GROUPS && s->pool.views[g].n_blocks; g++)
        for (int use = 0; use < 4; use++) {
            snprintf(labels, sizeof labels, "{window=\"%u\",use=\"%s\"}",
                     s->pool.views[g].window, uses[use]);
            put_value(o, &m, labels, s->pool.views[g].n[use]);
        }
    pthread_mutex_unlock(&s->pool.lock);
}

static uint32_t n_waiting(struct tern_server *s)
{
    pthread_mutex_lock(&s->lock);
    const uint32_t n = s->raw.n + s->cooked.n + atomic_load(&s->counts.opening);
    pthread_mutex_unlock(&s->lock);
    return n;
}

void tern_metrics_now(struct tern_server *s, struct tern_http_exchange *x)
{
    uint32_t n_open, n_busy;
    struct tern_counts *n = &s->counts;
    const struct { struct metric m; _Atomic uint64_t *value; double unit; } rows[] = {
        {{"requests_total", "counter", "Requests for text that have ended."}, &n->requests, 1},
        {{"prompt_tokens_total", "counter", "Tokens of their prompts."}, &n->prompt_tokens, 1},
        {{"prompt_tokens_cached_total", "counter", "Of these, found by their prefix."},
         &n->cached_tokens, 1},
        {{"generated_tokens_total", "counter", "Tokens generated."}, &n->generated_tokens, 1},
        {{"steps_total", "counter", "Steps of the engine."}, &n->steps, 1},
        {{"step_seconds_total", "counter", "Time spent in them."}, &n->busy_ns, 1e-9},
        {{"preemptions_total", "counter", "How often a sequence lost its blocks to another."},
         &n->preemptions, 1},
    };
    tern_http_count(s->http, &n_open, &n_busy);
    struct tern_out *o = begin(s, x, 200, "text/plain; version=0.0.4");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        put_metric(o, rows[i].m, (double)atomic_load(rows[i].value) * rows[i].unit);
    put_answers(s, o);
    put_metric(o, (struct metric){"sequences_running", "gauge", "Sequences that are worked on."},
               atomic_load(&n->running));
    put_metric(o, (struct metric){"requests_waiting", "gauge",
                                  "Requests for text of which nothing runs yet."}, n_waiting(s));
    put_blocks(s, o);
    put_metric(o, (struct metric){"connections", "gauge", "Connections that are open."}, n_open);
    put_metric(o, (struct metric){"requests_busy", "gauge",
                                  "Of these, that wait for an answer's end."}, n_busy);
    end(x, o);
}
