/* fuzz_reply.c: whatever a model may write, read whole and in pieces. Both must say the same; what
 * comes out as arguments must be JSON, or a beginning of it; text and reasoning must be of the
 * reply, in its order. */
#include "runtime/reply.h"
#include "tests/fuzz/script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096, ROOM = 8 * MOST + 4096 };

/* --- JSON, strictly, a byte at a time --- */

enum { J_VALUE, J_ITEM, J_KEY0, J_KEY, J_COLON, J_COMMA, J_STRING, J_ESCAPE, J_HEX, J_WORD, J_END };
struct json { int state, n_hex, is_key; size_t depth, n_word; char open[80], word[128]; };

static bool is_word(const char *word, size_t n)
{
    char text[129];
    memcpy(text, word, n);
    text[n] = 0;
    if (!strcmp(text, "true") || !strcmp(text, "false") || !strcmp(text, "null"))
        return true;
    const char *p = text + (text[0] == '-');
    const size_t whole = strspn(p, "0123456789");
    if (!whole || (p[0] == '0' && whole > 1))
        return false;
    p += whole;
    if (*p == '.') {
        const size_t part = strspn(p + 1, "0123456789");
        if (!part)
            return false;
        p += part + 1;
    }
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '+' || p[1] == '-' ? 2 : 1;
        const size_t power = strspn(p, "0123456789");
        if (!power)
            return false;
        p += power;
    }
    return *p == 0;
}

static bool settle(struct json *j)
{
    j->state = j->depth ? J_COMMA : J_END;
    return true;
}

static bool in_string(struct json *j, char c)
{
    if (j->state == J_HEX) {
        if (!strchr("0123456789abcdefABCDEF", c) || !c)
            return false;
        j->state = --j->n_hex ? J_HEX : J_STRING;
        return true;
    }
    if (j->state == J_ESCAPE) {
        j->state = c == 'u' ? J_HEX : J_STRING;
        j->n_hex = 4;
        return c && strchr("\"\\/bfnrtu", c);
    }
    if (c == '\\')
        j->state = J_ESCAPE;
    else if (c == '"' && j->is_key)
        j->state = J_COLON;
    else if (c == '"')
        settle(j);
    return (unsigned char)c >= 0x20;
}

static bool json_byte(struct json *j, char c)
{
    if (j->state >= J_STRING && j->state <= J_HEX)
        return in_string(j, c);
    if (j->state == J_WORD) {
        if (c && (strchr("+-.", c) || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  c == 'E')) {
            j->word[j->n_word++] = c;
            return j->n_word < 128;
        }
        if (!is_word(j->word, j->n_word))
            return false;
        settle(j);
    }
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        return j->state != J_END;
    const bool object = j->depth && j->open[j->depth - 1] == '{';
    if (j->state == J_COLON && c == ':')
        j->state = J_VALUE;
    else if (j->state == J_COMMA && c == ',')
        j->state = object ? J_KEY : J_VALUE;
    else if ((j->state == J_COMMA || j->state == (object ? J_KEY0 : J_ITEM)) && j->depth &&
             c == (object ? '}' : ']')) {
        j->depth--;
        settle(j);
    } else if (c == '"' && j->state <= J_KEY) {
        j->is_key = j->state == J_KEY0 || j->state == J_KEY;
        j->state = J_STRING;
    } else if (j->state > J_ITEM) {
        return false;
    } else if (c == '{' || c == '[') {
        require(j->depth < sizeof j->open);
        j->open[j->depth++] = c;
        j->state = c == '{' ? J_KEY0 : J_ITEM;
    } else {
        j->word[0] = c;
        j->n_word = 1;
        j->state = J_WORD;
    }
    return true;
}

/* --- what came out --- */

struct heard { char text[ROOM]; size_t n; tern_part_kind kind; uint32_t call; bool any; };

static void hear(struct heard *h, const tern_part *p)
{
    const char head[] = {(char)(p->kind + 1), (char)p->call, (char)p->whole};
    require(h->n + p->text.size + sizeof head < ROOM);
    if (!h->any || h->kind != p->kind || h->call != p->call || p->kind >= TERN_PART_CALL_END) {
        memcpy(h->text + h->n, head, sizeof head);
        h->n += sizeof head;
    }
    memcpy(h->text + h->n, p->text.data, p->text.size);
    h->n += p->text.size;
    h->kind = p->kind;
    h->call = p->call;
    h->any = true;
}

struct reading {
    tern_reply *reply;
    struct heard *heard;
    struct json json;
    const char *text; /* all of it, and how far text and reasoning have come in it */
    size_t n, at;
    uint32_t call;    /* the next one's number */
    bool in_call;
};

static void check(struct reading *r, const tern_part *p)
{
    require(p->text.size <= TERN_REPLY_OUT);
    switch (p->kind) {
    case TERN_PART_TEXT: case TERN_PART_REASONING:
        require(!r->in_call && p->text.size);
        for (size_t i = 0; i < p->text.size; i++, r->at++) {
            while (r->at < r->n && r->text[r->at] != p->text.data[i])
                r->at++;
            require(r->at < r->n);
        }
        break;
    case TERN_PART_CALL:
        require(!r->in_call && p->call == r->call && p->text.size && p->text.size <= 256);
        require(p->at <= r->n);
        memset(&r->json, 0, sizeof r->json);
        r->in_call = true;
        break;
    case TERN_PART_ARGUMENTS:
        require(r->in_call && p->call == r->call && p->text.size);
        for (size_t i = 0; i < p->text.size; i++)
            require(json_byte(&r->json, p->text.data[i]));
        break;
    default:
        require(r->in_call && p->call == r->call++ && p->at <= r->n);
        require(!p->whole || r->json.state == J_END);
        r->in_call = false;
    }
}

static void push(struct reading *r, const char *text, size_t n, bool last)
{
    char *copy = exactly(n);
    tern_part p;
    if (n)
        memcpy(copy, text, n);
    tern_reply_push(r->reply, (tern_text){copy, n}, last);
    while (tern_reply_next(r->reply, &p)) {
        check(r, &p);
        hear(r->heard, &p);
    }
    free(copy);
}

static uint32_t kinds(void *self, tern_text tool, tern_text key)
{
    (void)self;
    return (uint32_t)(tool.size * 31 + (unsigned char)key.data[0]) & TERN_VALUE_ANY;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(16) unsigned char memory[TERN_REPLY_BYTES];
    static struct heard whole, parts;
    struct script in = {data, size};
    const uint8_t how = take(&in), cut = take(&in);
    const tern_reply_options o = {
        .calls = (tern_call_format)(how % TERN_N_CALL_FORMATS),
        .think_open = {"<think>", how & 16 ? 7 : 0},
        .think_close = {"</think>", how & 32 ? 8 : 0},
        .thinks = how & 64,
        .kinds = how & 128 ? kinds : NULL,
    };
    const char *text = (const char *)in.p;
    const size_t n = in.n < MOST ? in.n : MOST;
    for (int k = 0; k < 2; k++) {
        struct reading r = {.heard = k ? &parts : &whole, .text = text, .n = n};
        r.heard->n = 0;
        r.heard->any = false;
        require(!tern_reply_init((tern_memory){memory, sizeof memory}, &o, &r.reply, NULL));
        for (size_t at = 0, piece = 0; k && at < n; at += piece) {
            piece = 1 + (cut * (at + 1) >> 3) % 5;
            piece = piece < n - at ? piece : n - at;
            push(&r, text + at, piece, false);
        }
        if (k)
            push(&r, "", 0, true);
        else
            push(&r, text, n, true);
        require(!r.in_call);
    }
    require(whole.n == parts.n && memcmp(whole.text, parts.text, whole.n) == 0);
    return 0;
}
