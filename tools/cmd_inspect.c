/* cmd_inspect.c: what a model file says of itself. A file that cannot be run is shown as far as
 * it can be read, with the reason why it cannot. */
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_BYTES = 4096, OUTSIDE_LAYERS = 65535, MANY_TYPES = 64 };

static void write_row(struct tern_out *o, const char *name, tern_text value)
{
    tern_out_print(o, "%-16s ", name);
    tern_out_plain(o, value);
    tern_out_put(o, "\n", 1);
}

static void write_number(struct tern_out *o, const char *name, uint64_t x)
{
    tern_out_print(o, "%-16s %llu\n", name, (unsigned long long)x);
}

/* The texts and numbers that describe a model, by name: one walk for both kinds of output. */
static void write_summary(const struct tern_session *s, struct tern_out *o, bool json)
{
    const tern_model_info *m = &s->info;
    const struct { const char *name; tern_text value; } texts[] = {
        {"name", m->name}, {"architecture", m->architecture}, {"tokenizer", m->tokenizer},
        {"pre_tokenizer", m->pre_tokenizer},
        {"format", m->is_image ? (tern_text){"Tern image", 10} : (tern_text){"GGUF", 4}},
    };
    const struct { const char *name; uint64_t value; } numbers[] = {
        {"file_version", m->file_version}, {"n_parts", m->n_parts}, {"file_bytes", m->file_bytes},
        {"weight_bytes", m->weight_bytes}, {"n_params", m->n_params}, {"n_tensors", m->n_tensors},
        {"n_metadata", m->n_metadata}, {"n_layers", m->n_layers}, {"n_embd", m->n_embd},
        {"n_ff", m->n_ff}, {"n_heads", m->n_heads}, {"n_kv_heads", m->n_kv_heads},
        {"head_dim", m->head_dim}, {"n_vocab", m->n_vocab}, {"n_ctx_train", m->n_ctx_train},
        {"n_ops", m->n_ops}, {"n_kv_groups", m->n_kv_groups},
    };
    const struct { const char *name; tern_token value; } tokens[] = {
        {"bos", m->bos}, {"eos", m->eos}, {"eot", m->eot}, {"pad", m->pad},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        json ? tern_json_text(o, texts[i].name, texts[i].value)
             : write_row(o, texts[i].name, texts[i].value);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json ? tern_json_u64(o, numbers[i].name, numbers[i].value)
             : write_number(o, numbers[i].name, numbers[i].value);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        if (json)
            tern_json_i64(o, tokens[i].name, tokens[i].value);
        else if (tokens[i].value >= 0)
            write_number(o, tokens[i].name, (uint64_t)tokens[i].value);
    if (json)
        tern_json_bool(o, "add_bos", m->add_bos);
}

static void write_metadata(const struct tern_session *s, struct tern_out *o, bool json)
{
    char value[VALUE_BYTES];
    if (json)
        tern_json_begin(o, "metadata", '{');
    for (uint32_t i = 0; i < s->info.n_metadata; i++) {
        tern_metadata m;
        size_t n = 0, cap = json ? sizeof value : 70;
        tern_status status = tern_model_metadata(s->model, i, &m, value, cap, &n);
        if (status != TERN_OK && status != TERN_TOO_SMALL)
            continue;
        tern_text text = {value, n < cap ? n : cap};
        if (json) {
            char key[300];
            int size = (int)(m.key.size < sizeof key ? m.key.size : sizeof key - 1);
            snprintf(key, sizeof key, "%.*s", size, m.key.data);
            tern_json_begin(o, key, '{');
            tern_json_string(o, "type", m.type);
            tern_json_u64(o, "count", m.count);
            tern_json_text(o, "value", text);
            tern_json_end(o, '}');
            continue;
        }
        tern_out_put(o, "  ", 2);
        tern_out_plain(o, m.key);
        tern_out_print(o, " (%s", m.type);
        if (m.count != 1)
            tern_out_print(o, ", %llu", (unsigned long long)m.count);
        tern_out_print(o, ") ");
        tern_out_plain(o, text);
        tern_out_print(o, n > cap ? " ...\n" : "\n");
    }
    if (json)
        tern_json_end(o, '}');
}

static bool is_unknown(const tern_tensor_info *t)
{
    return strcmp(t->path, "none") == 0;
}

/* "Q4_K", and for a type that is not read its number as well: "type 99 (unknown)". */
struct type_name { char text[48]; };

static struct type_name name_type(const tern_tensor_info *t)
{
    struct type_name n;
    if (is_unknown(t))
        snprintf(n.text, sizeof n.text, "type %u (%.30s)", (unsigned)t->type_id, t->type);
    else
        snprintf(n.text, sizeof n.text, "%.30s", t->type);
    return n;
}

static void write_tensor(const tern_tensor_info *t, struct tern_out *o, bool json)
{
    struct type_name type = name_type(t);
    if (json) {
        tern_json_begin(o, NULL, '{');
        tern_json_text(o, "name", t->name);
        tern_json_string(o, "type", type.text);
        tern_json_string(o, "path", t->path);
        tern_json_begin(o, "dims", '[');
        for (uint32_t d = 0; d < t->n_dims; d++)
            tern_json_u64(o, NULL, t->dims[d]);
        tern_json_end(o, ']');
        tern_json_u64(o, "part", t->part);
        tern_json_u64(o, "offset", t->offset);
        tern_json_u64(o, "bytes", t->bytes);
        tern_json_end(o, '}');
        return;
    }
    tern_out_put(o, "  ", 2);
    tern_out_plain(o, t->name);
    tern_out_print(o, " %s (%s)", type.text, t->path);
    for (uint32_t d = 0; d < t->n_dims; d++)
        tern_out_print(o, "%s%llu", d ? "x" : " ", (unsigned long long)t->dims[d]);
    if (is_unknown(t))
        tern_out_print(o, ", of unknown size\n");
    else
        tern_out_print(o, ", %llu bytes\n", (unsigned long long)t->bytes);
}

struct type_count { tern_tensor_info example; uint64_t n, bytes; };

static void write_counts(const struct type_count *counts, size_t n, struct tern_out *o, bool json)
{
    if (json)
        tern_json_begin(o, "types", '{');
    for (size_t k = 0; k < n; k++) {
        struct type_name type = name_type(&counts[k].example);
        if (json)
            tern_json_u64(o, type.text, counts[k].n);
        else if (is_unknown(&counts[k].example))
            tern_out_print(o, "  %s: %llu tensors of unknown size\n", type.text,
                           (unsigned long long)counts[k].n);
        else
            tern_out_print(o, "  %-6s %6llu tensors %14llu bytes%s\n", type.text,
                           (unsigned long long)counts[k].n, (unsigned long long)counts[k].bytes,
                           strcmp(counts[k].example.path, "expanded") ? "" : ", expanded");
    }
    if (json)
        tern_json_end(o, '}');
}

/* Tensors counted by type; with all, each of them too. False: there are some of unknown types. */
static bool write_tensors(const struct tern_session *s, struct tern_out *o, bool json, bool all)
{
    struct type_count counts[MANY_TYPES];
    size_t n_counts = 0;
    bool known = true;
    if (all && json)
        tern_json_begin(o, "tensors", '[');
    for (uint32_t i = 0; i < s->info.n_tensors; i++) {
        tern_tensor_info t;
        if (tern_model_tensor(s->model, i, &t) != TERN_OK)
            continue;
        size_t k = 0;
        while (k < n_counts && counts[k].example.type_id != t.type_id)
            k++;
        if (k == n_counts && n_counts < MANY_TYPES)
            counts[n_counts++] = (struct type_count){t, 0, 0};
        if (k < n_counts) {
            counts[k].n++;
            counts[k].bytes += t.bytes;
        }
        known = known && !is_unknown(&t);
        if (all)
            write_tensor(&t, o, json);
    }
    if (all && json)
        tern_json_end(o, ']');
    write_counts(counts, n_counts, o, json);
    return known;
}

/* What stands before the layers, the first layer, and what comes after them. */
static void write_program(const struct tern_session *s, struct tern_out *o, bool json)
{
    char text[512];
    if (json)
        tern_json_begin(o, "program", '[');
    for (uint32_t i = 0; i < s->info.n_ops; i++) {
        size_t n = 0;
        uint32_t layer = 0;
        tern_status status = tern_model_op(s->model, i, text, sizeof text, &n, &layer);
        if ((status != TERN_OK && status != TERN_TOO_SMALL) ||
            (layer != 0 && layer < OUTSIDE_LAYERS))
            continue;
        tern_text line = {text, n < sizeof text ? n : sizeof text};
        if (json) {
            tern_json_text(o, NULL, line);
        } else {
            tern_out_put(o, layer == 0 ? "  0: " : "     ", 5);
            tern_out_plain(o, line);
            tern_out_put(o, "\n", 1);
        }
    }
    if (json)
        tern_json_end(o, ']');
}

/* False: a part of the file is not understood. */
static bool write_all(const struct tern_session *s, const struct tern_settings *settings,
                      const tern_error *why, struct tern_out *o)
{
    bool json = settings->json;
    if (json)
        tern_json_begin(o, NULL, '{');
    write_summary(s, o, json);
    if (json) {
        tern_json_bool(o, "runnable", s->info.runnable);
        if (why->status != TERN_OK)
            tern_json_string(o, "reason", why->text);
        tern_json_text(o, "chat_template", s->info.chat_template);
    } else if (why->status != TERN_OK) {
        write_row(o, "cannot be run", (tern_text){why->text, strlen(why->text)});
    }
    if (!json)
        tern_out_print(o, "metadata\n");
    write_metadata(s, o, json);
    if (!json)
        tern_out_print(o, "tensors\n");
    bool known = write_tensors(s, o, json, settings->tensors);
    if (!json && settings->program)
        tern_out_print(o, "program of the first layer\n");
    if (settings->program)
        write_program(s, o, json);
    if (json)
        tern_out_print(o, "}\n");
    return known;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    static struct tern_out out;
    tern_error why = {0};
    static const tern_model_parts depths[] = {TERN_MODEL_WHOLE, TERN_MODEL_TEXT, TERN_MODEL_HEADER};
    bool ok = false;
    for (int i = 0; i < 3 && !ok; i++) {
        ok = tern_session_open(&s, settings->model, depths[i]);
        if (!ok && why.status == TERN_OK)
            why = s.error;
        if (!ok)
            tern_session_close(&s);
    }
    if (!ok) {
        fprintf(stderr, "tern inspect: %s\n", why.text);
        return 1;
    }
    if (settings->verify && tern_image_verify(&s.files.parts[0], &s.error) != TERN_OK)
        return tern_session_report(&s);
    tern_out_open(&out, STDOUT_FILENO);
    bool known = write_all(&s, settings, &why, &out);
    ok = tern_out_flush(&out);
    if (!ok)
        fprintf(stderr, "tern inspect: standard output: %s\n", strerror(out.error));
    else if (!known)
        fprintf(stderr, "tern inspect: %s\n", why.text);
    tern_session_close(&s);
    return !ok || !known;
}

static const struct tern_option own[] = {
    {"--tensors", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, tensors), 0, 0, NULL,
     NULL, "every tensor: name, type, shape, how the CPU multiplies by it"},
    {"--program", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, program), 0, 0, NULL,
     NULL, "the ops of the first layer, and those before and after the layers"},
    {"--verify", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, verify), 0, 0, NULL,
     NULL, "checks every hash of a Tern image first; fails if one is wrong"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {own, tern_options_json, NULL};

const struct tern_command tern_cmd_inspect = {
    "inspect", "inspect MODEL [options]",
    "Prints a model's metadata, architecture, tensors, tokenizer and program.", tables, NULL,
    "model", "a GGUF file", run,
};
