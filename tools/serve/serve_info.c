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

static void put_metric(struct tern_out *o, const char *name, const char *type, const char *help,
                       double value)
{
    tern_out_print(o, "# HELP tern_%s %s\n# TYPE tern_%s %s\ntern_%s %.17g\n", name, help, name,
                   type, name, value);
}

void tern_metrics_now(struct tern_server *s, struct tern_http_exchange *x)
{
    uint32_t n_open, n_busy;
    const struct tern_counts *n = &s->counts;
    tern_http_count(s->http, &n_open, &n_busy);
    struct tern_out *o = begin(s, x, 200, "text/plain; version=0.0.4");
    put_metric(o, "requests_total", "counter", "Requests for text that have ended.",
               (double)atomic_load(&n->requests));
    put_metric(o, "prompt_tokens_total", "counter", "Tokens of their prompts.",
               (double)atomic_load(&n->prompt_tokens));
    put_metric(o, "prompt_tokens_cached_total", "counter", "Of these, found by their prefix.",
               (double)atomic_load(&n->cached_tokens));
    put_metric(o, "generated_tokens_total", "counter", "Tokens generated.",
               (double)atomic_load(&n->generated_tokens));
    put_metric(o, "steps_total", "counter", "Steps of the engine.",
               (double)atomic_load(&n->steps));
    put_metric(o, "step_seconds_total", "counter", "Time spent in them.",
               (double)atomic_load(&n->busy_ns) * 1e-9);
    put_metric(o, "sequences_running", "gauge", "Sequences that are worked on.",
               atomic_load(&n->running));
    put_metric(o, "connections", "gauge", "Connections that are open.", n_open);
    put_metric(o, "requests_busy", "gauge", "Of these, that wait for an answer's end.", n_busy);
    end(x, o);
}
