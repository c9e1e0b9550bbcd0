/* reply_call.c: calls of tools as JSON and as Python write them. See reply.h.
 *
 * A call is given as soon as it can be nothing else: its name is known and its arguments begin.
 * Until then all of it is held, so that it can still turn out to be text. Where the arguments
 * come before the name they are held too, and scanned twice.
 */
#include "runtime/reply.h"

#include <string.h>

enum json_state {
    AT_FIRST_KEY, IN_KEY, AT_COLON, AT_VALUE, IN_NAME, IN_ARGUMENTS, IN_OTHER, AT_COMMA, AT_KEY,
};
enum python_state { IN_FUNCTION, AT_FIRST, IN_WORD, AT_EQUALS, BEFORE_VALUE, IN_VALUE, AT_NEXT,
                    AT_WORD };

/* What stands in held is the tag. */
void tern_reply_begin_call(struct tern_reply *r)
{
    const char first = r->held[0];
    const tern_call_format format = r->options.calls;
    r->given = r->closed = r->skipping = r->seen = false;
    r->n_name = r->n_key = r->n_tag = 0;
    r->args_from = r->args_to = 0;
    r->tagged = first == '<' || (r->in_block && !r->fenced);
    r->fenced = first == '`' || (r->in_block && r->fenced);
    r->first = first == '<';
    if (format == TERN_CALLS_XML) {
        tern_reply_begin_xml(r, r->n_held == sizeof TERN_REPLY_FUNCTION - 1);
        return;
    }
    r->mode = first == '{' ? TERN_REPLY_IN_JSON : TERN_REPLY_IN_OPENING;
    r->state = AT_FIRST_KEY;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '.' || (unsigned char)c >= 0x80;
}

bool tern_reply_opening_byte(struct tern_reply *r, char c)
{
    const tern_call_format format = r->options.calls;
    const bool python = format == TERN_CALLS_LFM2 || (format == TERN_CALLS_LLAMA3 && r->tagged);
    if (python && is_name_char(c)) {
        r->mode = TERN_REPLY_IN_PYTHON;
        r->state = IN_FUNCTION;
        return tern_reply_python_byte(r, c);
    }
    const bool list = c == '[' && r->first && format != TERN_CALLS_LLAMA3;
    if ((!tern_reply_is_space(c) && !list && c != '{') || !tern_reply_hold(r, c))
        return tern_reply_refuse(r);
    r->first = r->first && !list;
    if (c == '{') {
        r->mode = TERN_REPLY_IN_JSON;
        r->state = AT_FIRST_KEY;
    }
    return true;
}

bool tern_reply_append(char *name, uint16_t *n, char c)
{
    if (*n == TERN_REPLY_NAME || (unsigned char)c < 0x20)
        return false;
    name[(*n)++] = c;
    return true;
}

/* --- JSON --- */

static bool key_is(const struct tern_reply *r, const char *key)
{
    return tern_text_is((tern_text){r->key, r->n_key}, key);
}

static bool begin_scan(struct tern_reply *r, char c, enum json_state state)
{
    tern_reply_scan_begin(&r->scan, false);
    r->state = (uint8_t)state;
    return tern_reply_scan_to(r, c) != TERN_SCANNED_BAD;
}

/* The value of a key. What is not tagged is a call only if it has no keys but a call's. */
static bool begin_value(struct tern_reply *r, char c)
{
    const bool name = key_is(r, "name") || (key_is(r, "function") && c == '"');
    const bool args = key_is(r, "arguments") || key_is(r, "parameters");
    if (name && !r->n_name) {
        r->state = IN_NAME;
        return c == '"';
    }
    if (args && !r->seen && c == '{') {
        r->seen = true;
        r->args_from = (uint16_t)(r->n_held - 1);
        if (r->n_name)
            tern_reply_give(r);
        return begin_scan(r, c, IN_ARGUMENTS);
    }
    if (args && !r->seen && c != 'n')
        return false;
    if (!r->tagged && !args && !key_is(r, "type") && !key_is(r, "id"))
        return false;
    r->skipping = true;
    return begin_scan(r, c, IN_OTHER);
}

/* The object has ended. */
static bool end_object(struct tern_reply *r)
{
    if (r->given) {
        tern_reply_end_call(r, true, r->offset + 1);
        return true;
    }
    if (!r->n_name || (!r->seen && !r->tagged))
        return false;
    tern_reply_give(r);
    r->closed = true;
    if (r->seen) {
        tern_reply_scan_begin(&r->scan, false);
        tern_reply_replay(r, TERN_REPLAY_SCAN, r->args_from, r->args_to);
        return true;
    }
    tern_reply_arguments(r, "{}");
    tern_reply_end_call(r, true, r->offset + 1);
    return true;
}

void tern_reply_json_replayed(struct tern_reply *r)
{
    tern_reply_end_call(r, true, r->offset);
}

static bool scan_value(struct tern_reply *r, char c)
{
    const enum tern_reply_scanned scanned = tern_reply_scan_to(r, c);
    if (scanned == TERN_SCANNED_BAD)
        return false;
    if (scanned == TERN_SCANNED_MORE)
        return true;
    if (r->state == IN_ARGUMENTS) {
        r->closed = r->given;
        r->args_to = r->n_held;
    }
    r->skipping = false;
    r->state = AT_COMMA;
    return true;
}

/* Between values; false: it is none of a call. */
static bool json_between(struct tern_reply *r, char c)
{
    if (tern_reply_is_space(c))
        return true;
    switch (r->state) {
    case AT_FIRST_KEY: case AT_KEY:
        r->n_key = 0;
        if (c == '"')
            r->state = IN_KEY;
        else if (c != '}' || !end_object(r))
            return false;
        return true;
    case AT_COLON:
        r->state = AT_VALUE;
        return c == ':';
    case AT_VALUE:
        return begin_value(r, c);
    default:
        if (c == ',')
            r->state = AT_KEY;
        else if (c != '}' || !end_object(r))
            return false;
        return true;
    }
}

bool tern_reply_json_byte(struct tern_reply *r, char c)
{
    /* A word that ends before this byte leaves it to what follows. */
    const bool was_given = r->given;
    if (!was_given && !tern_reply_hold(r, c))
        return tern_reply_refuse(r);
    bool ok = true;
    if (r->state == IN_OTHER) {
        struct tern_reply_scan before = r->scan;
        struct tern_writer none = {NULL, 0, 0};
        if (tern_reply_scan_byte(&before, c, &none) == TERN_SCANNED_BEFORE) {
            r->skipping = false;
            r->state = AT_COMMA;
        }
    }
    switch (r->state) {
    case IN_KEY: case IN_NAME:
        if (c == '"')
            r->state = r->state == IN_KEY ? AT_COLON : AT_COMMA;
        else
            ok = c != '\\' && (r->state == IN_KEY ? tern_reply_append(r->key, &r->n_key, c)
                                                  : tern_reply_append(r->name, &r->n_name, c));
        ok = ok && (r->state != AT_COMMA || r->n_name);
        break;
    case IN_ARGUMENTS: case IN_OTHER:
        ok = scan_value(r, c);
        break;
    default:
        ok = json_between(r, c);
    }
    if (ok)
        return true;
    if (!was_given && !r->given)
        r->n_held--;
    return tern_reply_refuse(r);
}

/* --- Python --- */

void tern_reply_begin_member(struct tern_reply *r)
{
    char text[2 * TERN_REPLY_NAME];
    struct tern_writer w = {text, sizeof text, 0};
    if (!r->given)
        tern_reply_give(r);
    tern_reply_arguments(r, r->seen ? ", \"" : "{\"");
    for (size_t i = 0; i < r->n_key; i++)
        tern_reply_write_quoted(&w, r->key[i]);
    tern_reply_put(r, TERN_PART_ARGUMENTS, text, w.n);
    tern_reply_arguments(r, "\": ");
    r->seen = true;
}

static void end_function(struct tern_reply *r)
{
    if (!r->given)
        tern_reply_give(r);
    tern_reply_arguments(r, r->seen ? "}" : "{}");
    tern_reply_end_call(r, true, r->offset + 1);
}

/* Llama's are methods: f.call(...). */
static bool begin_function(struct tern_reply *r)
{
    if (r->options.calls == TERN_CALLS_LLAMA3) {
        if (r->n_name <= 5 || memcmp(r->name + r->n_name - 5, ".call", 5) != 0)
            return false;
        r->n_name = (uint16_t)(r->n_name - 5);
    }
    r->state = AT_FIRST;
    return true;
}

static bool python_value(struct tern_reply *r, char c)
{
    if (r->state == BEFORE_VALUE) {
        if (tern_reply_is_space(c))
            return true;
        tern_reply_scan_begin(&r->scan, true);
        r->state = IN_VALUE;
    }
    switch (tern_reply_scan_to(r, c)) {
    case TERN_SCANNED_BAD: return false;
    case TERN_SCANNED_MORE: return true;
    case TERN_SCANNED_WHOLE: r->state = AT_NEXT; return true;
    default: r->state = AT_NEXT;
    }
    if (c == ',')
        r->state = AT_WORD;
    else if (c == ')')
        end_function(r);
    return c == ',' || c == ')' || tern_reply_is_space(c);
}

static bool python_between(struct tern_reply *r, char c)
{
    if (tern_reply_is_space(c) && r->state != IN_WORD)
        return true;
    switch (r->state) {
    case AT_NEXT:
        if (c == ',')
            r->state = AT_WORD;
        else if (c == ')')
            end_function(r);
        return c == ',' || c == ')';
    case AT_FIRST: case AT_WORD:
        if (c == ')') {
            end_function(r);
            return true;
        }
        r->n_key = 0;
        r->state = IN_WORD;
        return is_name_char(c) && tern_reply_append(r->key, &r->n_key, c);
    case IN_WORD:
        if (is_name_char(c))
            return tern_reply_append(r->key, &r->n_key, c);
        r->state = AT_EQUALS;
        if (tern_reply_is_space(c))
            return true;
        /* fall through */
    default:
        if (c != '=')
            return false;
        tern_reply_begin_member(r);
        r->state = BEFORE_VALUE;
        return true;
    }
}

bool tern_reply_python_byte(struct tern_reply *r, char c)
{
    const bool was_given = r->given;
    if (!was_given && !tern_reply_hold(r, c))
        return tern_reply_refuse(r);
    bool ok;
    if (r->state == IN_FUNCTION)
        ok = is_name_char(c) ? tern_reply_append(r->name, &r->n_name, c)
                             : c == '(' && begin_function(r);
    else if (r->state == BEFORE_VALUE || r->state == IN_VALUE)
        ok = python_value(r, c);
    else
        ok = python_between(r, c);
    if (ok)
        return true;
    if (!was_given && !r->given)
        r->n_held--;
    return tern_reply_refuse(r);
}
