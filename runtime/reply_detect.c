/* reply_detect.c: the forms of calls and of reasoning, and what a template shows of them. */
#include "runtime/reply.h"

#include <string.h>

static const struct {
    const char *name;
    struct tern_reply_tags tags;
    const char *trigger;
} formats[TERN_N_CALL_FORMATS] = {
    [TERN_CALLS_NONE] = {"none", {NULL, NULL}, ""},
    [TERN_CALLS_HERMES] = {"hermes", {"<tool_call>", "</tool_call>"}, "<tool_call>"},
    [TERN_CALLS_XML] = {"xml", {"<tool_call>", "</tool_call>"}, TERN_REPLY_FUNCTION},
    [TERN_CALLS_LLAMA3] = {"llama3", {"<|python_tag|>", NULL}, "{\"name\":"},
    [TERN_CALLS_LFM2] = {"lfm2", {"<|tool_call_start|>", "<|tool_call_end|>"},
                         "<|tool_call_start|>"},
};

static const struct { const char *open, *close; } thoughts[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<thinking>", "</thinking>"},
};

static tern_call_format known(tern_call_format format)
{
    return (unsigned)format < TERN_N_CALL_FORMATS ? format : TERN_CALLS_NONE;
}

const char *tern_call_format_name(tern_call_format format)
{
    return formats[known(format)].name;
}

struct tern_reply_tags tern_reply_tags_of(tern_call_format format)
{
    return formats[known(format)].tags;
}

tern_text tern_reply_trigger(tern_call_format format)
{
    return tern_text_of(formats[known(format)].trigger);
}

static bool has(tern_text text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text.data, *end = text.data + text.size; n <= (size_t)(end - at); at++) {
        at = memchr(at, word[0], (size_t)(end - at) - n + 1);
        if (!at)
            return false;
        if (memcmp(at, word, n) == 0)
            return true;
    }
    return false;
}

/* Forms that have a tag in common are told apart by what else they write. */
static tern_call_format format_of(tern_text t)
{
    const bool function = has(t, TERN_REPLY_FUNCTION);
    if (function && has(t, "<parameter=") && has(t, "<tool_call>"))
        return TERN_CALLS_XML;
    if (has(t, "<|tool_list_start|>") || has(t, "<|tool_call_start|>") ||
        has(t, "List of tools: ["))
        return TERN_CALLS_LFM2;
    if (!function && (has(t, "<|python_tag|>") || has(t, "\"parameters\": dictionary")))
        return TERN_CALLS_LLAMA3;
    if (has(t, "<tool_call>") && has(t, "</tool_call>") && has(t, "arguments") &&
        has(t, "\"name\"") && !has(t, "<arg_key>"))
        return TERN_CALLS_HERMES;
    return has(t, "tools") ? TERN_CALLS_NONE : TERN_CALLS_HERMES;
}

void tern_reply_detect(tern_text source, tern_reply_options *out)
{
    out->calls = TERN_CALLS_HERMES;
    out->think_open = out->think_close = (tern_text){NULL, 0};
    if (!source.data)
        return;
    out->calls = format_of(source);
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts; i++)
        if (has(source, thoughts[i].close) || has(source, thoughts[i].open)) {
            out->think_open = tern_text_of(thoughts[i].open);
            out->think_close = tern_text_of(thoughts[i].close);
            return;
        }
}

bool tern_reply_thinks(const tern_reply_options *options, tern_text prompt)
{
    const tern_text open = options->think_open;
    while (prompt.size && tern_reply_is_space(prompt.data[prompt.size - 1]))
        prompt.size--;
    return open.size && options->think_close.size && prompt.size >= open.size &&
           memcmp(prompt.data + prompt.size - open.size, open.data, open.size) == 0;
}

size_t tern_reply_markers(const tern_reply_options *options, tern_text out[TERN_MAX_SHOWN])
{
    const struct tern_reply_tags tags = tern_reply_tags_of(options->calls);
    size_t n = 0;
    if (options->think_close.size) {
        if (options->think_open.size)
            out[n++] = options->think_open;
        out[n++] = options->think_close;
    }
    if (tags.open)
        out[n++] = tern_text_of(tags.open);
    if (tags.close)
        out[n++] = tern_text_of(tags.close);
    return n;
}
