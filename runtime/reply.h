/* reply.h: a reader of replies, as its files share it.
 *
 *   reply.c         text, reasoning, white space, tags; what is handed out
 *   reply_call.c    how a call begins and ends; the forms of JSON and of Python
 *   reply_xml.c     the form of XML, whose values become JSON by their declared kind
 *   reply_scan.c    one value to JSON text
 *   reply_detect.c  what a template shows of all that
 *
 * A byte is read at a time. What may still be a tag or a call is held as it was written; once it
 * is certain it goes, or comes out as text. Whoever lets much go at once leaves it where it is and
 * says what is to be done with it (replay), so that a step writes little, and the buffer for what
 * comes out is small.
 */
#ifndef TERN_REPLY_H
#define TERN_REPLY_H

#include "runtime/reply_scan.h"

enum {
    TERN_REPLY_HELD = 2048, TERN_REPLY_BLANK = 256, TERN_REPLY_NAME = 256, TERN_REPLY_OUT = 1536,
    TERN_REPLY_PARTS = 8, TERN_REPLY_TAG = 24,
    TERN_REPLY_STEP = 800, /* bytes, and */
    TERN_REPLY_STEP_PARTS = 4, /* parts that a step makes at most */
};

enum tern_reply_mode {
    TERN_REPLY_IN_START,  /* white space at most since the start, the reasoning's end or a call */
    TERN_REPLY_IN_TEXT,
    TERN_REPLY_IN_REASONING,
    TERN_REPLY_IN_OPENING, /* behind a call's first tag */
    TERN_REPLY_IN_JSON,
    TERN_REPLY_IN_PYTHON,
    TERN_REPLY_IN_XML,
};

/* What becomes of held[from .. to - 1]. */
enum tern_reply_replay {
    TERN_REPLAY_NONE, TERN_REPLAY_TEXT, TERN_REPLAY_SCAN, TERN_REPLAY_QUOTED,
};

struct tern_reply_piece {
    tern_part_kind kind;
    bool whole;
    uint32_t call;
    uint64_t at;
    uint16_t from, n; /* in out */
};

struct tern_reply {
    tern_reply_options options;
    tern_text in;
    size_t at;                /* in it */
    uint64_t offset;          /* of the next byte in the reply */
    bool last, ended;

    uint8_t mode, state;      /* state: of the mode, its file's own */
    bool drops_blank;         /* white space that is held goes when text follows */
    bool in_block;            /* behind a call, before the closing tag */
    uint32_t n_calls;

    /* The call that is being read. */
    uint64_t call_at;
    bool given, closed, tagged; /* its CALL is out; its arguments are whole; a tag began it */
    bool fenced;                /* a fence of Markdown did */
    bool skipping;              /* JSON: the value is of no interest */
    bool seen;                  /* JSON: the arguments were */
    uint16_t args_from, args_to;
    bool first;                 /* XML: no byte of the value was read. Opening: [ may come */
    bool line_end;              /* XML: one is held */
    uint8_t value;              /* XML: how it is written */
    uint8_t then;               /* XML: what follows the replay */
    uint32_t kinds;
    struct tern_reply_scan scan;

    uint8_t replay;
    uint16_t replay_at, replay_to;
    uint16_t n_held, n_blank, n_name, n_key, n_tag, n_out;
    uint8_t n_pieces, n_given;
    struct tern_reply_piece pieces[TERN_REPLY_PARTS];
    char held[TERN_REPLY_HELD], blank[TERN_REPLY_BLANK], name[TERN_REPLY_NAME];
    char key[TERN_REPLY_NAME], tag[TERN_REPLY_TAG], out[TERN_REPLY_OUT];
};

/* --- reply.c, for who reads calls --- */

/* Appends to what comes out; pieces of one kind and call become one. */
void tern_reply_put(struct tern_reply *r, tern_part_kind kind, const char *text, size_t n);
void tern_reply_arguments(struct tern_reply *r, const char *text);
/* A byte of the value that is scanned, to the arguments if they are given. */
enum tern_reply_scanned tern_reply_scan_to(struct tern_reply *r, char c);
/* Holds a byte of a call that is not given yet; false: there is no room. */
bool tern_reply_hold(struct tern_reply *r, char c);
void tern_reply_replay(struct tern_reply *r, enum tern_reply_replay how, size_t from, size_t to);
/* Gives the CALL; the arguments begin. */
void tern_reply_give(struct tern_reply *r);
/* Ends a call that was given; at: the offset of what follows. */
void tern_reply_end_call(struct tern_reply *r, bool whole, uint64_t at);
/* The byte to come does not go on with the call. Answers false: it was not read. */
bool tern_reply_refuse(struct tern_reply *r);

/* --- calls. A reader of a byte answers whether it was read. --- */

/* The text of a format's tags; none: NULL. */
struct tern_reply_tags { const char *open, *close; };
struct tern_reply_tags tern_reply_tags_of(tern_call_format format);
#define TERN_REPLY_FUNCTION "<function="

void tern_reply_begin_call(struct tern_reply *r);
bool tern_reply_opening_byte(struct tern_reply *r, char c);
bool tern_reply_json_byte(struct tern_reply *r, char c);
bool tern_reply_python_byte(struct tern_reply *r, char c);
void tern_reply_begin_xml(struct tern_reply *r, bool at_function);
bool tern_reply_xml_byte(struct tern_reply *r, char c);
/* Appends to a name or key without control characters; false: there is no room. */
bool tern_reply_append(char *name, uint16_t *n, char c);
/* Writes a key to the arguments; the call is given with its first one. */
void tern_reply_begin_member(struct tern_reply *r);
/* A replay has ended: the arguments of a call whose name came last, or a value. */
void tern_reply_json_replayed(struct tern_reply *r);
void tern_reply_xml_replayed(struct tern_reply *r);

#endif
