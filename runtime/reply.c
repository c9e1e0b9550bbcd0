/* reply.c: text, reasoning, white space and tags. See reply.h.
 *
 * Tags are found as the longest end of what was read that begins one of them; only that much is
 * held back. Which tags count depends on where the reply stands, so a call's tag inside of the
 * reasoning, or a brace in the midst of a sentence, is what it looks like: text.
 */
#include "runtime/reply.h"

#include "runtime/error.h"

#include <string.h>

_Static_assert(sizeof(struct tern_reply) <= TERN_REPLY_BYTES, "a reader is larger than promised");

tern_status tern_reply_init(tern_memory mem, const tern_reply_options *options, tern_reply **out,
                            tern_error *err)
{
    if (!mem.data || !options || !out)
        return tern_fail(err, TERN_BAD_ARGUMENT, "reply: an argument is NULL");
    if (mem.size < TERN_REPLY_BYTES)
        return tern_fail(err, TERN_NO_MEMORY, "reply: %u bytes given, %u needed",
                         (uint64_t)mem.size, (uint64_t)TERN_REPLY_BYTES);
    if ((uintptr_t)mem.data % 16)
        return tern_fail(err, TERN_BAD_ARGUMENT, "reply: its memory is not aligned to 16");
    if ((unsigned)options->calls >= TERN_N_CALL_FORMATS)
        return tern_fail(err, TERN_BAD_ARGUMENT, "reply: format %u of calls, below %u",
                         (uint64_t)options->calls, (uint64_t)TERN_N_CALL_FORMATS);
    const size_t open = options->think_open.size, close = options->think_close.size;
    if (open > TERN_MAX_TAG || close > TERN_MAX_TAG)
        return tern_fail(err, TERN_BAD_ARGUMENT, "reply: a tag of %u bytes, at most %u",
                         (uint64_t)(open > close ? open : close), (uint64_t)TERN_MAX_TAG);
    struct tern_reply *r = mem.data;
    memset(r, 0, sizeof *r);
    r->options = *options;
    const bool thinks = options->thinks && close;
    r->mode = thinks ? TERN_REPLY_IN_REASONING : TERN_REPLY_IN_START;
    r->drops_blank = thinks;
    *out = r;
    return TERN_OK;
}

/* --- what comes out --- */

static struct tern_reply_piece *new_piece(struct tern_reply *r, tern_part_kind kind)
{
    struct tern_reply_piece *p = &r->pieces[r->n_pieces++];
    *p = (struct tern_reply_piece){.kind = kind, .call = r->n_calls, .from = r->n_out};
    return p;
}

void tern_reply_put(struct tern_reply *r, tern_part_kind kind, const char *text, size_t n)
{
    if (!n)
        return;
    struct tern_reply_piece *p = r->n_pieces ? &r->pieces[r->n_pieces - 1] : NULL;
    if (!p || p->kind != kind || kind == TERN_PART_CALL)
        p = new_piece(r, kind);
    memcpy(r->out + r->n_out, text, n);
    r->n_out = (uint16_t)(r->n_out + n);
    p->n = (uint16_t)(p->n + n);
}

void tern_reply_arguments(struct tern_reply *r, const char *text)
{
    tern_reply_put(r, TERN_PART_ARGUMENTS, text, strlen(text));
}

enum tern_reply_scanned tern_reply_scan_to(struct tern_reply *r, char c)
{
    char text[TERN_REPLY_SCANNED];
    struct tern_writer w = {text, sizeof text, 0};
    const enum tern_reply_scanned scanned = tern_reply_scan_byte(&r->scan, c, &w);
    if (r->given && !r->skipping)
        tern_reply_put(r, TERN_PART_ARGUMENTS, text, w.n);
    return scanned;
}

bool tern_reply_hold(struct tern_reply *r, char c)
{
    if (r->n_held == TERN_REPLY_HELD)
        return false;
    r->held[r->n_held++] = c;
    return true;
}

void tern_reply_replay(struct tern_reply *r, enum tern_reply_replay how, size_t from, size_t to)
{
    r->replay = (uint8_t)how;
    r->replay_at = (uint16_t)from;
    r->replay_to = (uint16_t)to;
}

void tern_reply_give(struct tern_reply *r)
{
    r->n_blank = 0;
    r->given = true;
    tern_reply_put(r, TERN_PART_CALL, r->name, r->n_name);
    r->pieces[r->n_pieces - 1].at = r->call_at;
}

void tern_reply_end_call(struct tern_reply *r, bool whole, uint64_t at)
{
    struct tern_reply_piece *p = new_piece(r, TERN_PART_CALL_END);
    p->whole = whole;
    p->at = at;
    r->n_calls++;
    r->n_held = r->n_tag = 0;
    r->mode = whole ? TERN_REPLY_IN_START : TERN_REPLY_IN_TEXT;
    r->drops_blank = whole;
    r->in_block = whole && (r->tagged || r->fenced);
}

/* --- text --- */

static tern_part_kind plain_kind(const struct tern_reply *r)
{
    return r->mode == TERN_REPLY_IN_REASONING ? TERN_PART_REASONING : TERN_PART_TEXT;
}

/* Text comes: white space before it goes out, or away. */
static void begin_plain(struct tern_reply *r)
{
    if (r->n_blank && !r->drops_blank)
        tern_reply_put(r, plain_kind(r), r->blank, r->n_blank);
    r->n_blank = 0;
    r->drops_blank = false;
    r->in_block = false;
    if (r->mode == TERN_REPLY_IN_START)
        r->mode = TERN_REPLY_IN_TEXT;
}

static bool holds_blank(const struct tern_reply *r)
{
    return r->mode == TERN_REPLY_IN_REASONING || r->options.calls ||
           (r->mode == TERN_REPLY_IN_START && r->options.think_close.size);
}

static void plain_byte(struct tern_reply *r, char c)
{
    if (tern_reply_is_space(c) && holds_blank(r)) {
        if (r->n_blank == TERN_REPLY_BLANK) {
            r->drops_blank = false;
            begin_plain(r);
        }
        r->blank[r->n_blank++] = c;
        return;
    }
    begin_plain(r);
    tern_reply_put(r, plain_kind(r), &c, 1);
}

/* --- tags --- */

enum mark { THINK_OPEN, THINK_CLOSE, CALL, LIST_END, BLOCK_END };
struct marker { const char *text; size_t n; enum mark mark; };
struct markers { struct marker at[10]; size_t n; };

static void add(struct markers *m, const char *text, enum mark mark)
{
    if (text)
        m->at[m->n++] = (struct marker){text, strlen(text), mark};
}

static void add_tag(struct markers *m, tern_text tag, enum mark mark)
{
    if (tag.size)
        m->at[m->n++] = (struct marker){tag.data, tag.size, mark};
}

/* What begins something new where the reply stands. */
static void markers_of(const struct tern_reply *r, struct markers *m)
{
    const tern_reply_options *o = &r->options;
    const struct tern_reply_tags tags = tern_reply_tags_of(o->calls);
    const bool start = r->mode == TERN_REPLY_IN_START;
    m->n = 0;
    if (r->mode == TERN_REPLY_IN_REASONING) {
        add_tag(m, o->think_close, THINK_CLOSE);
        if (r->drops_blank)
            add_tag(m, o->think_open, THINK_OPEN);
        return;
    }
    if (start && o->think_close.size)
        add_tag(m, o->think_open, THINK_OPEN);
    add(m, tags.open, CALL);
    if (o->calls == TERN_CALLS_XML)
        add(m, TERN_REPLY_FUNCTION, CALL);
    if (!start)
        return;
    if (r->in_block)
        add(m, r->fenced ? "```" : tags.close, BLOCK_END);
    if (o->calls == TERN_CALLS_LLAMA3)
        add(m, r->n_calls ? ";" : "{", CALL);
    if (o->calls == TERN_CALLS_HERMES && (r->in_block || !r->n_calls))
        add(m, "{", CALL);
    if (o->calls == TERN_CALLS_HERMES && !r->n_calls)
        add(m, "```json", CALL);
    if (!r->in_block)
        return;
    if (o->calls == TERN_CALLS_HERMES || o->calls == TERN_CALLS_LFM2) {
        add(m, ",", CALL);
        add(m, "]", LIST_END);
    }
}

static void on_marker(struct tern_reply *r, enum mark mark)
{
    if (mark == CALL) {
        r->call_at = r->offset + 1 - r->n_held;
        tern_reply_begin_call(r);
        return;
    }
    r->n_held = r->n_blank = 0;
    r->drops_blank = true;
    if (mark == THINK_OPEN)
        r->mode = TERN_REPLY_IN_REASONING;
    if (mark == THINK_CLOSE)
        r->mode = TERN_REPLY_IN_START;
    if (mark != LIST_END)
        r->in_block = false;
}

static void tag_byte(struct tern_reply *r, char c)
{
    r->held[r->n_held++] = c;
    while (r->n_held) {
        struct markers m;
        bool begins = false;
        markers_of(r, &m);
        for (size_t i = 0; i < m.n; i++) {
            if (r->n_held > m.at[i].n || memcmp(r->held, m.at[i].text, r->n_held) != 0)
                continue;
            if (r->n_held == m.at[i].n) {
                on_marker(r, m.at[i].mark);
                return;
            }
            begins = true;
        }
        if (begins)
            return;
        c = r->held[0];
        memmove(r->held, r->held + 1, --r->n_held);
        plain_byte(r, c);
    }
}

bool tern_reply_refuse(struct tern_reply *r)
{
    if (r->given) {
        tern_reply_end_call(r, r->closed, r->offset);
        return false;
    }
    begin_plain(r);
    r->mode = TERN_REPLY_IN_TEXT;
    r->n_tag = 0;
    tern_reply_replay(r, TERN_REPLAY_TEXT, 0, r->n_held);
    return false;
}

/* --- steps --- */

static void replay_step(struct tern_reply *r)
{
    const enum tern_reply_replay how = (enum tern_reply_replay)r->replay;
    if (r->replay_at == r->replay_to) {
        r->replay = TERN_REPLAY_NONE;
        r->n_held = 0;
        if (r->mode == TERN_REPLY_IN_JSON)
            tern_reply_json_replayed(r);
        else if (r->mode == TERN_REPLY_IN_XML)
            tern_reply_xml_replayed(r);
        return;
    }
    const char c = r->held[r->replay_at++];
    char text[8];
    struct tern_writer w = {text, sizeof text, 0};
    switch (how) {
    case TERN_REPLAY_TEXT:
        tern_reply_put(r, TERN_PART_TEXT, &c, 1);
        break;
    case TERN_REPLAY_QUOTED:
        tern_reply_write_quoted(&w, c);
        tern_reply_put(r, TERN_PART_ARGUMENTS, text, w.n);
        break;
    default:
        (void)tern_reply_scan_to(r, c);
    }
}

static bool take(struct tern_reply *r, char c)
{
    switch (r->mode) {
    case TERN_REPLY_IN_OPENING: return tern_reply_opening_byte(r, c);
    case TERN_REPLY_IN_JSON: return tern_reply_json_byte(r, c);
    case TERN_REPLY_IN_PYTHON: return tern_reply_python_byte(r, c);
    case TERN_REPLY_IN_XML: return tern_reply_xml_byte(r, c);
    default:
        tag_byte(r, c);
        return true;
    }
}

static void finish(struct tern_reply *r)
{
    if (r->mode >= TERN_REPLY_IN_OPENING) {
        (void)tern_reply_refuse(r);
        return;
    }
    for (size_t i = 0; i < r->n_held; i++)
        plain_byte(r, r->held[i]);
    r->n_held = 0;
    if (r->mode != TERN_REPLY_IN_REASONING && !r->drops_blank && !r->n_calls)
        tern_reply_put(r, TERN_PART_TEXT, r->blank, r->n_blank);
    r->n_blank = 0;
    r->ended = true;
}

/* Answers whether there was anything to do. */
static bool step(struct tern_reply *r)
{
    if (r->replay) {
        replay_step(r);
        return true;
    }
    if (r->at < r->in.size) {
        if (take(r, r->in.data[r->at])) {
            r->at++;
            r->offset++;
        }
        return true;
    }
    if (!r->last || r->ended)
        return false;
    finish(r);
    return true;
}

void tern_reply_push(tern_reply *r, tern_text text, bool last)
{
    r->in = text;
    r->at = 0;
    r->last = r->last || last;
}

bool tern_reply_next(tern_reply *r, tern_part *out)
{
    if (r->n_given == r->n_pieces) {
        r->n_given = r->n_pieces = 0;
        r->n_out = 0;
        while (r->n_out + TERN_REPLY_STEP <= TERN_REPLY_OUT &&
               r->n_pieces + TERN_REPLY_STEP_PARTS <= TERN_REPLY_PARTS && step(r))
            ;
        if (!r->n_pieces)
            return false;
    }
    const struct tern_reply_piece *p = &r->pieces[r->n_given++];
    *out = (tern_part){.kind = p->kind, .whole = p->whole, .call = p->call, .at = p->at,
                       .text = {r->out + p->from, p->n}};
    return true;
}
