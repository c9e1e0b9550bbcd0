/* cmd_tokenize.c: text to ids and pieces, and ids back to bytes. */
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/prompt.h"
#include "tools/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_token(const tern_model *model, tern_token token, bool special, struct tern_out *o,
                        bool json)
{
    char bytes[TERN_MAX_PIECE];
    size_t n = 0;
    tern_piece piece = {{"", 0}, 0, TERN_TOKEN_NORMAL, false};
    if (tern_token_piece(model, token, &piece) != TERN_OK ||
        tern_token_bytes(model, token, special, bytes, sizeof bytes, &n) != TERN_OK)
        n = 0;
    if (!json) {
        tern_out_print(o, "%6d  ", token);
        for (size_t i = 0; i < piece.text.size; i++) {
            unsigned char c = (unsigned char)piece.text.data[i];
            if (c < 0x20 || c == 0x7f || c == '\\')
                tern_out_print(o, "\\x%02x", c);
            else
                tern_out_put(o, piece.text.data + i, 1);
        }
        tern_out_put(o, "\n", 1);
        return;
    }
    tern_json_begin(o, NULL, '{');
    tern_json_i64(o, "id", token);
    tern_json_text(o, "piece", piece.text);
    tern_json_begin(o, "bytes", '[');
    for (size_t i = 0; i < n; i++)
        tern_json_u64(o, NULL, (unsigned char)bytes[i]);
    tern_json_end(o, ']');
    tern_json_end(o, '}');
}

static void write_tokens(const tern_model *model, const struct tern_prompt *p,
                         const struct tern_settings *settings, struct tern_out *o)
{
    if (settings->json) {
        tern_json_begin(o, NULL, '{');
        tern_json_begin(o, "tokens", '[');
    }
    for (size_t i = 0; i < p->n; i++)
        write_token(model, p->ids[i], settings->special, o, settings->json);
    if (settings->json) {
        tern_json_end(o, ']');
        tern_json_end(o, '}');
        tern_out_put(o, "\n", 1);
    }
}

/* All bytes that the ids stand for: as they are, or in JSON as text and as a list. */
static bool write_bytes(const tern_model *model, const struct tern_prompt *p,
                        const struct tern_settings *settings, struct tern_out *o,
                        char line[TERN_ARGS_LINE])
{
    uint32_t flags = settings->special ? TERN_DETOKENIZE_SPECIAL : 0;
    size_t n = 0;
    tern_error err = {0};
    tern_status status = tern_detokenize(model, p->ids, p->n, flags, NULL, 0, &n, &err);
    tern_memory mem = tern_os_map(n + 1, 0);
    if (mem.data && (status == TERN_OK || status == TERN_TOO_SMALL)) {
        err = (tern_error){0};
        status = tern_detokenize(model, p->ids, p->n, flags, mem.data, n, &n, &err);
    }
    if (mem.data == NULL || status != TERN_OK) {
        snprintf(line, TERN_ARGS_LINE, "--decode: %s", err.text[0] ? err.text : "no memory");
        tern_os_unmap(mem);
        return false;
    }
    const char *bytes = mem.data;
    if (!settings->json) {
        tern_out_put(o, bytes, n);
    } else {
        tern_json_begin(o, NULL, '{');
        tern_json_text(o, "text", (tern_text){bytes, n});
        tern_json_begin(o, "bytes", '[');
        for (size_t i = 0; i < n; i++)
            tern_json_u64(o, NULL, (unsigned char)bytes[i]);
        tern_json_end(o, ']');
        tern_json_end(o, '}');
        tern_out_put(o, "\n", 1);
    }
    tern_out_flush(o);
    tern_os_unmap(mem);
    return true;
}

static bool work(struct tern_session *s, const struct tern_settings *settings,
                 struct tern_prompt *p, struct tern_out *o, char line[TERN_ARGS_LINE])
{
    if (settings->decode_ids)
        return tern_prompt_ids(p, settings->decode_ids, s->info.n_vocab, SIZE_MAX, line) &&
               write_bytes(s->model, p, settings, o, line);
    uint32_t flags = (settings->special ? TERN_TOKENIZE_SPECIAL : 0) |
                     (settings->no_bos ? TERN_TOKENIZE_NO_BOS : 0);
    if (!tern_prompt_read(p, settings, NULL, SIZE_MAX, line) ||
        !tern_prompt_encode(p, s->model, flags, SIZE_MAX, line))
        return false;
    write_tokens(s->model, p, settings, o);
    return true;
}

static int run(const struct tern_settings *settings)
{
    static struct tern_session s;
    static struct tern_out out;
    if (settings->decode_ids == NULL && tern_prompt_missing(settings)) {
        fprintf(stderr,
                "tern tokenize: no text given: -p, -f, --decode or standard input needed\n");
        return 2;
    }
    struct tern_prompt prompt = {0};
    char line[TERN_ARGS_LINE] = "";
    int code = 1;
    tern_out_open(&out, STDOUT_FILENO);
    if (!tern_session_open(&s, settings->model, TERN_MODEL_TEXT))
        tern_session_report(&s);
    else if (!work(&s, settings, &prompt, &out, line))
        fprintf(stderr, "tern tokenize: %s\n", line);
    else if (!tern_out_flush(&out))
        fprintf(stderr, "tern tokenize: standard output: %s\n", strerror(out.error));
    else
        code = 0;
    tern_prompt_free(&prompt);
    tern_session_close(&s);
    return code;
}

static const struct tern_option own[] = {
    {"--no-bos", NULL, TERN_OPTION_FLAG, offsetof(struct tern_settings, no_bos), 0, 0, NULL,
     NULL, "no token is added at the start or end"},
    {"--decode", NULL, TERN_OPTION_TEXT, offsetof(struct tern_settings, decode_ids), 0, 0, NULL,
     "IDS", "the bytes that ids stand for: 1,2,3"},
    TERN_END_OF_OPTIONS,
};

static const struct tern_option *const tables[] = {
    tern_options_prompt, own, tern_options_json, NULL,
};

const struct tern_command tern_cmd_tokenize = {
    "tokenize", "tokenize MODEL [options]", "Turns text into ids and pieces, or ids into bytes.",
    tables,
    "JSON keys: tokens, a list of {id, piece, bytes}; with --decode: text, bytes.", "model",
    "a GGUF file", run,
};
