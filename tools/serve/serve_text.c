/* serve_text.c: text to tokens and back, and conversations to text, without the engine. */
#include "tools/serve/endpoints.h"
#include "tools/serve/serve_messages.h"

#include "platform/os/host.h"
#include "tools/ids.h"

static void write_piece(struct tern_call *c, tern_token token)
{
    const tern_model *model = c->server->session.model;
    char bytes[TERN_MAX_PIECE];
    size_t n = 0;
    if (tern_token_bytes(model, token, true, bytes, sizeof bytes, &n) != TERN_OK)
        n = 0;
    tern_json_begin(c->out, NULL, '{');
    tern_json_i64(c->out, "id", token);
    tern_json_text(c->out, "piece", (tern_text){bytes, n});
    tern_json_end(c->out, '}');
}

static bool write_tokens(struct tern_call *c, tern_text text, uint32_t flags, bool pieces)
{
    struct tern_ids ids;
    tern_error err;
    if (!tern_ids_of(c->server->session.model, text, flags, &ids, &err))
        return tern_call_fail(c, err.status == TERN_NO_MEMORY ? 413 : 400, "content", NULL,
                              "content: %s", err.text);
    tern_call_begin(c);
    tern_json_begin(c->out, NULL, '{');
    tern_json_begin(c->out, "tokens", '[');
    for (size_t i = 0; i < ids.n; i++) {
        if (pieces)
            write_piece(c, ids.at[i]);
        else
            tern_json_i64(c->out, NULL, ids.at[i]);
    }
    tern_json_end(c->out, ']');
    tern_json_end(c->out, '}');
    tern_call_end(c);
    tern_ids_free(&ids);
    return true;
}

bool tern_tokenize_prepare(struct tern_call *c)
{
    bool add_special = false, parse_special = true, pieces = false;
    const json_t *content = json_object_get(c->body, "content");
    if (!content)
        content = json_object_get(c->body, "prompt"); /* vLLM's name */
    if (!tern_field_bool(c, "add_special", &add_special) ||
        !tern_field_bool(c, "parse_special", &parse_special) ||
        !tern_field_bool(c, "with_pieces", &pieces))
        return false;
    if (!json_is_string(content))
        return tern_call_fail(c, 400, "content", NULL, "content: a text needed");
    const uint32_t flags = (parse_special ? TERN_TOKENIZE_SPECIAL : 0) |
                           (add_special ? 0 : TERN_TOKENIZE_NO_BOS);
    (void)write_tokens(c, (tern_text){json_string_value(content), json_string_length(content)},
                       flags, pieces);
    return false;
}

static bool read_ids(struct tern_call *c, const json_t *list, tern_token *to)
{
    const uint32_t n_vocab = c->server->session.info.n_vocab;
    const json_t *id;
    size_t i;
    json_array_foreach(list, i, id) {
        const int64_t x = json_is_integer(id) ? json_integer_value(id) : -1;
        if (x < 0 || x >= n_vocab)
            return tern_call_fail(c, 400, "tokens", NULL, "tokens[%zu]: an id from 0 to %u needed",
                                  i, n_vocab - 1);
        to[i] = (tern_token)x;
    }
    return true;
}

static bool write_text(struct tern_call *c, const tern_token *ids, size_t n)
{
    const tern_model *model = c->server->session.model;
    size_t size = 0;
    tern_status status = tern_detokenize(model, ids, n, TERN_DETOKENIZE_SPECIAL, NULL, 0, &size,
                                         NULL);
    tern_memory text = tern_os_map(size + 1, 0);
    if (status != TERN_BAD_ARGUMENT && text.data)
        status = tern_detokenize(model, ids, n, TERN_DETOKENIZE_SPECIAL, text.data, size + 1,
                                 &size, NULL);
    if (status == TERN_OK) {
        tern_call_begin(c);
        tern_json_begin(c->out, NULL, '{');
        tern_json_text(c->out, "content", (tern_text){text.data, size});
        tern_json_end(c->out, '}');
        tern_call_end(c);
    }
    tern_os_unmap(text);
    return status == TERN_OK || tern_call_fail(c, 413, "tokens", NULL, "tokens: no memory for the "
                                               "text of %zu of them", n);
}

bool tern_detokenize_prepare(struct tern_call *c)
{
    const json_t *tokens = json_object_get(c->body, "tokens");
    const size_t n = json_array_size(tokens);
    if (!json_is_array(tokens))
        return tern_call_fail(c, 400, "tokens", NULL, "tokens: a list of ids needed");
    tern_memory ids = tern_os_map((n + 1) * sizeof(tern_token), 0);
    if (!ids.data)
        return tern_call_fail(c, 413, "tokens", NULL, "tokens: no memory for %zu of them", n);
    if (read_ids(c, tokens, ids.data))
        (void)write_text(c, ids.data, n);
    tern_os_unmap(ids);
    return false;
}

bool tern_apply_template_prepare(struct tern_call *c)
{
    struct tern_chat_prompt prompt = {0};
    json_t *tools;
    if (!tern_messages_check(c, &tools) || !tern_messages_render(c, tools, NULL, &prompt))
        return false;
    tern_call_begin(c);
    tern_json_begin(c->out, NULL, '{');
    tern_json_text(c->out, "prompt", prompt.rendered.text);
    tern_json_end(c->out, '}');
    tern_call_end(c);
    tern_chat_prompt_free(&prompt);
    return false;
}
