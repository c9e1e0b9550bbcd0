/* out.h: output through write(2) or a function and a buffer of fixed size, or into memory that
 * grows; and JSON on top of it.
 *
 * A failed write is kept (full disk, closed pipe) and what follows is dropped, so that a caller
 * looks once, at the end or where it matters. Text in JSON is valid UTF-8 whatever the bytes
 * were: what is not becomes U+FFFD. */
#ifndef TERN_OUT_H
#define TERN_OUT_H

#include "runtime/tern.h"

enum { TERN_OUT_BYTES = 4096 };

struct tern_out {
    int fd;    /* -1: memory at grown, or sink */
    int error; /* errno of the first failed write */
    bool (*sink)(void *self, const char *data, size_t size); /* false: it takes no more */
    void *self;
    size_t n;  /* bytes in the buffer, or in grown */
    char *grown;
    size_t cap;
    bool comma; /* a value stands before the next one in its list */
    char bytes[TERN_OUT_BYTES];
};

void tern_out_open(struct tern_out *o, int fd);
void tern_out_open_sink(struct tern_out *o,
                        bool (*sink)(void *self, const char *data, size_t size), void *self);
void tern_out_put(struct tern_out *o, const char *data, size_t size);
void tern_out_print(struct tern_out *o, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text for a terminal: what could steer it is shown as a question mark. */
void tern_out_plain(struct tern_out *o, tern_text t);
/* False if any write failed. */
bool tern_out_flush(struct tern_out *o);
void tern_out_free(struct tern_out *o);

/* JSON: begin and end take the bracket; key may be NULL inside a list. */
void tern_json_begin(struct tern_out *o, const char *key, char bracket);
void tern_json_end(struct tern_out *o, char bracket);
void tern_json_text(struct tern_out *o, const char *key, tern_text text);
void tern_json_string(struct tern_out *o, const char *key, const char *text); /* NULL: null */
void tern_json_u64(struct tern_out *o, const char *key, uint64_t x);
void tern_json_i64(struct tern_out *o, const char *key, int64_t x);
void tern_json_real(struct tern_out *o, const char *key, double x);  /* nine digits */
void tern_json_float(struct tern_out *o, const char *key, float x);  /* all of its bits */
void tern_json_bool(struct tern_out *o, const char *key, bool x);
void tern_json_null(struct tern_out *o, const char *key);
/* What stands before a value, whose text the caller puts: a comma, the key. */
void tern_json_key(struct tern_out *o, const char *key);
/* A piece of a text, as it stands within quotes. */
void tern_json_inside(struct tern_out *o, tern_text text);

/* Bytes of the valid UTF-8 character at the start of text; 0 if there is none. */
size_t tern_utf8_length(tern_text text);

#endif
