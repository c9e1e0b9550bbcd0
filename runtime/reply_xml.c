/* reply_xml.c: calls of tools in the form that Qwen3-Coder writes. See reply.h.
 *
 *     <tool_call>
 *     <function=NAME>
 *     <parameter=KEY>
 *     value, of any number of lines
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * A value is what stands between its tags without one line end at either side, as the parser that
 * Qwen publishes has it; like there, the next tag ends a value whose own is missing. Strings are
 * passed on as they come. What the tool's schema says to be something else is held until its end,
 * and becomes that if it reads as such; one too long for that is judged by its beginning.
 */
#include "runtime/reply.h"

#include <string.h>

enum state { AT_FUNCTION, IN_NAME, IN_BODY, IN_KEY, IN_VALUE };
enum value { AS_STRING, AS_HELD, AS_SCANNED };
enum tag {
    NONE = 0, PART, FUNCTION, PARAMETER, PARAMETER_END, FUNCTION_END, CALL_END,
};

static const struct { const char *text; enum tag tag; bool in_body, in_value; } tags[] = {
    {TERN_REPLY_FUNCTION, FUNCTION, false, false}, {"<parameter=", PARAMETER, true, true},
    {"</parameter>", PARAMETER_END, false, true}, {"</function>", FUNCTION_END, true, true},
    {"</tool_call>", CALL_END, true, false},
};

void tern_reply_begin_xml(struct tern_reply *r, bool at_function)
{
    r->mode = TERN_REPLY_IN_XML;
    r->state = at_function ? IN_NAME : AT_FUNCTION;
    r->then = NONE;
}

/* What the bytes of tag are, or begin, where the call stands. */
static enum tag tag_of(const struct tern_reply *r)
{
    enum tag found = NONE;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        const bool may = r->state == IN_BODY    ? tags[i].in_body
                         : r->state == IN_VALUE ? tags[i].in_value
                                                : tags[i].tag == FUNCTION;
        const size_t n = strlen(tags[i].text);
        if (!may || r->n_tag > n || memcmp(tags[i].text, r->tag, r->n_tag) != 0)
            continue;
        if (r->n_tag == n)
            return tags[i].tag;
        found = PART;
    }
    return found;
}

/* --- values --- */

static bool fits(uint8_t kind, uint32_t kinds)
{
    return (kind & kinds) || (kind == TERN_VALUE_INTEGER && kinds & TERN_VALUE_NUMBER);
}

/* Whether what is held is, or begins, a value of the declared kinds. */
static bool reads_as(const struct tern_reply *r, size_t from, size_t to, bool python, bool ended)
{
    struct tern_reply_scan scan;
    struct tern_writer none = {NULL, 0, 0};
    enum tern_reply_scanned scanned = TERN_SCANNED_MORE;
    tern_reply_scan_begin(&scan, python);
    for (size_t i = from; i < to; i++) {
        if (scanned != TERN_SCANNED_MORE)
            return false;
        scanned = tern_reply_scan_byte(&scan, r->held[i], &none);
        if (scanned == TERN_SCANNED_BAD || scanned == TERN_SCANNED_BEFORE)
            return false;
    }
    const uint32_t others = TERN_VALUE_STRING |
                            (python ? TERN_VALUE_INTEGER | TERN_VALUE_NUMBER : 0);
    return (!ended || tern_reply_scan_end(&scan, &none)) && fits(scan.kind, r->kinds & ~others);
}

/* How the value that is held is written, from its beginning. */
static void decide(struct tern_reply *r, bool ended)
{
    size_t from = 0, to = r->n_held;
    while (from < to && tern_reply_is_space(r->held[from]))
        from++;
    while (ended && to > from && tern_reply_is_space(r->held[to - 1]))
        to--;
    const bool json = reads_as(r, from, to, false, ended);
    if (json || reads_as(r, from, to, true, ended)) {
        r->value = AS_SCANNED;
        tern_reply_scan_begin(&r->scan, !json);
        tern_reply_replay(r, TERN_REPLAY_SCAN, from, to);
        return;
    }
    r->value = AS_STRING;
    tern_reply_arguments(r, "\"");
    tern_reply_replay(r, TERN_REPLAY_QUOTED, 0, r->n_held);
}

static void end_function(struct tern_reply *r, bool in_block, uint64_t at)
{
    if (!r->given)
        tern_reply_give(r);
    tern_reply_arguments(r, r->seen ? "}" : "{}");
    tern_reply_end_call(r, true, at);
    r->in_block = r->in_block && in_block;
}

/* The value is out; a tag follows it. */
static void end_value(struct tern_reply *r, uint64_t at)
{
    const enum tag then = (enum tag)r->then;
    r->then = NONE;
    r->n_key = 0;
    if (r->value == AS_STRING)
        tern_reply_arguments(r, "\"");
    if (then == FUNCTION_END)
        end_function(r, true, at);
    else
        r->state = then == PARAMETER ? IN_KEY : IN_BODY;
}

static bool value_at_tag(struct tern_reply *r, enum tag tag)
{
    r->then = (uint8_t)tag;
    r->n_tag = 0;
    struct tern_writer none = {NULL, 0, 0};
    if (r->value == AS_HELD)
        decide(r, true);
    else if (r->value == AS_STRING || tern_reply_scan_end(&r->scan, &none))
        end_value(r, r->offset + 1);
    else
        tern_reply_end_call(r, false, r->offset + 1);
    return true;
}

void tern_reply_xml_replayed(struct tern_reply *r)
{
    char text[TERN_REPLY_SCANNED];
    struct tern_writer w = {text, sizeof text, 0};
    if (r->then == NONE)
        return;
    if (r->value == AS_SCANNED && tern_reply_scan_end(&r->scan, &w))
        tern_reply_put(r, TERN_PART_ARGUMENTS, text, w.n);
    end_value(r, r->offset);
}

static bool put_value(struct tern_reply *r, char c)
{
    char text[8];
    struct tern_writer w = {text, sizeof text, 0};
    switch (r->value) {
    case AS_STRING:
        tern_reply_write_quoted(&w, c);
        tern_reply_put(r, TERN_PART_ARGUMENTS, text, w.n);
        return true;
    case AS_HELD:
        return tern_reply_hold(r, c);
    default:
        return tern_reply_scan_to(r, c) != TERN_SCANNED_BAD || tern_reply_is_space(c);
    }
}

static bool value_byte(struct tern_reply *r, char c)
{
    const bool first = r->first;
    r->first = false;
    if (first && c == '\n')
        return true;
    if (r->line_end && !put_value(r, '\n'))
        return false;
    r->line_end = c == '\n';
    return r->line_end || put_value(r, c);
}

/* A value that was JSON goes on with what is none: what was read of a tag, but for the byte that
 * comes, is text. */
static bool break_off(struct tern_reply *r, char c)
{
    char pending[TERN_REPLY_TAG + 1];
    size_t n = 0;
    if (r->n_tag) {
        pending[n++] = c;
        memcpy(pending + n, r->tag, r->n_tag - 1u);
        n += r->n_tag - 1u;
    }
    tern_reply_end_call(r, false, r->offset - n);
    memcpy(r->held, pending, n);
    r->n_held = (uint16_t)n;
    if (n)
        tern_reply_replay(r, TERN_REPLAY_TEXT, 0, n);
    return false;
}

static bool in_value(struct tern_reply *r, char c)
{
    if (r->value == AS_HELD && r->n_held + TERN_REPLY_TAG + 2 > TERN_REPLY_HELD) {
        decide(r, false);
        return false;
    }
    r->tag[r->n_tag++] = c;
    while (r->n_tag) {
        const enum tag tag = tag_of(r);
        if (tag == PART)
            return true;
        if (tag != NONE)
            return value_at_tag(r, tag);
        const char first = r->tag[0];
        memmove(r->tag, r->tag + 1, --r->n_tag);
        if (!value_byte(r, first))
            return break_off(r, first);
    }
    return true;
}

static void begin_value(struct tern_reply *r)
{
    const tern_reply_options *o = &r->options;
    const tern_text tool = {r->name, r->n_name}, key = {r->key, r->n_key};
    tern_reply_begin_member(r);
    r->state = IN_VALUE;
    r->n_held = r->n_tag = 0;
    r->first = true;
    r->line_end = false;
    r->kinds = o->kinds ? o->kinds(o->self, tool, key) : 0;
    r->value = r->kinds & ~(uint32_t)TERN_VALUE_STRING ? AS_HELD : AS_STRING;
    if (r->value == AS_STRING)
        tern_reply_arguments(r, "\"");
}

/* --- the tags around them --- */

static bool at_tag(struct tern_reply *r, enum tag tag)
{
    r->n_tag = 0;
    switch (tag) {
    case FUNCTION:
        r->state = IN_NAME;
        break;
    case PARAMETER:
        r->state = IN_KEY;
        break;
    default:
        end_function(r, tag != CALL_END, r->offset + 1);
    }
    return true;
}

static bool between_byte(struct tern_reply *r, char c)
{
    if (tern_reply_is_space(c) && !r->n_tag)
        return true;
    r->tag[r->n_tag++] = c;
    const enum tag tag = tag_of(r);
    if (tag == NONE)
        r->n_tag--;
    return tag == PART || (tag != NONE && at_tag(r, tag));
}

static bool named_byte(struct tern_reply *r, char c)
{
    const bool is_key = r->state == IN_KEY;
    if (c != '>')
        return c != '<' && tern_reply_append(is_key ? r->key : r->name,
                                             is_key ? &r->n_key : &r->n_name, c);
    if (is_key ? !r->n_key : !r->n_name)
        return false;
    if (is_key)
        begin_value(r);
    else
        r->state = IN_BODY;
    return true;
}

bool tern_reply_xml_byte(struct tern_reply *r, char c)
{
    if (r->state == IN_VALUE)
        return in_value(r, c);
    const bool was_given = r->given;
    if (!was_given && !tern_reply_hold(r, c))
        return tern_reply_refuse(r);
    if (r->state == IN_NAME || r->state == IN_KEY ? named_byte(r, c) : between_byte(r, c))
        return true;
    if (!was_given)
        r->n_held--;
    return tern_reply_refuse(r);
}
