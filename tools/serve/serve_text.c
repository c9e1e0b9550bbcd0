/* serve_text.c: text to tokens and back, and conversations to text, without the engine. */
#include "tools/serve/endpoints.h"
#include "tools/serve/serve_messages.h"

#include "platform/os/host.h"

#include <string.h>

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
    const tern_model *model = c->server->session.model;
    const size_t cap = tern_tokenize_most(model, text.size) + 1;
    tern_memory scratch = tern_os_map(tern_tokenize_scratch(model, text.size) + 64, 64);
    tern_memory ids = tern_os_map(cap * sizeof(tern_token), 0);
    const tern_token *at = ids.data;
    tern_error err = {0};
    size_t n = 0;
    const bool ok = scratch.data && ids.data &&
                    tern_tokenize(model, text, flags, scratch, ids.data, cap, &n, &err) == TERN_OK;
    if (ok) {
        tern_call_begin(c);
        tern_json_begin(c->out, NULL, '{');
        tern_json_begin(c->out, "tokens", '[');
        for (size_t i = 0; i < n; i++) {
            if (pieces)
                write_piece(c, at[i]);
            else
                tern_json_i64(c->out, NULL, at[i]);
        }
        tern_json_end(c->out, ']');
        tern_json_end(c->out, '}');
        tern_call_end(c);
    }
    tern_os_unmap(scratch);
    tern_os_unmap(ids);
    return ok || tern_call_fail(c, 413, "content", NULL, "content: %s",
                                err.text[0] ? err.text : "no memory for so long a text");
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

bool tern_detokenize_prepare(struct tern_call *c)
{
    const json_t *tokens = json_object_get(c->body, "tokens");
    const tern_model *model = c->server->session.model;
    const uint32_t n_vocab = c->server->session.info.n_vocab;
    const size_t n = json_array_size(tokens);
    if (!json_is_array(tokens))
        return tern_call_fail(c, 400, "tokens", NULL, "tokens: a list of ids needed");
    tern_memory ids = tern_os_map((n + 1) * sizeof(tern_token), 0), text = {NULL, 0};
    tern_token *at = ids.data;
    size_t size = 0;
    bool ok = at != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        const json_t *id = json_array_get(tokens, i);
        const int64_t x = json_is_integer(id) ? json_integer_value(id) : -1;
        ok = x >= 0 && x < n_vocab;
        at[i] = (tern_token)x;
    }
    if (ok) {
        tern_status status = tern_detokenize(model, at, n, TERN_DETOKENIZE_SPECIAL, NULL, 0, &size,
                                             NULL);
        text = tern_os_map(size + 1, 0);
        if (status != TERN_BAD_ARGUMENT && text.data)
            status = tern_detokenize(model, at, n, TERN_DETOKENIZE_SPECIAL, text.data, size + 1,
                                     &size, NULL);
        ok = status == TERN_OK;
    }
    if (ok) {
        tern_call_begin(c);
        tern_json_begin(c->out, NULL, '{');
        tern_json_text(c->out, "content", (tern_text){text.data, size});
        tern_json_end(c->out, '}');
        tern_call_end(c);
    }
    tern_os_unmap(ids);
    tern_os_unmap(text);
    return ok ? false : tern_call_fail(c, 400, "tokens", NULL, "tokens: ids from 0 to %u needed",
                                       n_vocab - 1);
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
