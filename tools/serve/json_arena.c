#include "tools/serve/json_arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 16 };

static _Thread_local struct tern_json_arena *arena;

static void *allocate(size_t n)
{
    struct tern_json_arena *a = arena;
    if (!a)
        return malloc(n);
    const size_t rounded = n + (ALIGN - n % ALIGN) % ALIGN;
    if (rounded < n || rounded > a->size - a->used) {
        a->failed = true;
        return NULL;
    }
    a->last = a->used;
    a->used += rounded;
    return a->base + a->last;
}

/* The newest piece can be had again at once, which is what a text that grows needs most. */
static void give_back(void *p)
{
    struct tern_json_arena *a = arena;
    const uintptr_t at = (uintptr_t)p;
    if (!a || at < (uintptr_t)a->base || at >= (uintptr_t)a->base + a->size)
        free(p);
    else if (at == (uintptr_t)a->base + a->last)
        a->used = a->last;
}

void tern_json_arenas_install(void)
{
    json_set_alloc_funcs(allocate, give_back);
}

void tern_json_arena_use(struct tern_json_arena *a)
{
    arena = a;
}

void tern_json_arena_empty(struct tern_json_arena *a)
{
    a->used = a->last = 0;
    a->failed = false;
}

/* --- reading --- */

struct reader {
    struct tern_blocks *pool;
    struct tern_chain *body;
    uint32_t depth;
    bool in_string, escaped, too_deep;
    uint64_t line, column;
};

/* Brackets are counted on the way, as jansson's own bound on depth is no argument of its. A text
 * that is too deep ends here; the place is that of the bracket. */
static size_t count(struct reader *r, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = at[i];
        r->column++;
        if (c == '\n') {
            r->line++;
            r->column = 0;
        }
        if (r->in_string) {
            r->in_string = r->escaped || c != '"';
            r->escaped = !r->escaped && c == '\\';
        } else if (c == '"') {
            r->in_string = true;
        } else if (c == '[' || c == '{') {
            r->too_deep = ++r->depth > TERN_JSON_DEPTH;
            if (r->too_deep)
                return i;
        } else if ((c == ']' || c == '}') && r->depth) {
            r->depth--;
        }
    }
    return n;
}

static size_t next_piece(void *buffer, size_t cap, void *self)
{
    struct reader *r = self;
    if (r->too_deep)
        return 0;
    const size_t n = tern_chain_get(r->pool, r->body, buffer, cap);
    return count(r, buffer, n);
}

static const char *meaning(enum json_error_code code)
{
    switch (code) {
    case json_error_out_of_memory:
    case json_error_stack_overflow:
        return "more than this server takes";
    case json_error_invalid_utf8:
        return "text that is not UTF-8";
    case json_error_premature_end_of_input:
        return "it ends before its time";
    case json_error_end_of_input_expected:
        return "something follows the value";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "a zero byte in a string";
    case json_error_duplicate_key:
        return "a name that stands twice in its object";
    case json_error_numeric_overflow:
        return "a number out of range";
    default:
        return "no JSON value";
    }
}

json_t *tern_json_read(struct tern_blocks *pool, struct tern_chain *body, int *status,
                       char line[TERN_ARGS_LINE])
{
    struct reader r = {.pool = pool, .body = body, .line = 1};
    json_error_t e = {0};
    json_t *json = json_load_callback(next_piece, &r, JSON_REJECT_DUPLICATES, &e);
    tern_chain_clear(pool, body);
    *status = arena && arena->failed ? 413 : 400;
    if (r.too_deep) {
        json_decref(json);
        snprintf(line, TERN_ARGS_LINE,
                 "JSON, line %llu, column %llu: nested deeper than %d",
                 (unsigned long long)r.line, (unsigned long long)r.column, TERN_JSON_DEPTH);
        return NULL;
    }
    if (!json && *status == 413)
        snprintf(line, TERN_ARGS_LINE, "JSON: more values than this server takes");
    else if (!json)
        snprintf(line, TERN_ARGS_LINE, "JSON, line %d, column %d (byte %d): %s", e.line, e.column,
                 e.position, meaning(json_error_code(&e)));
    return json;
}
