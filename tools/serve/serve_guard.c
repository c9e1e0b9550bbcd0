/* serve_guard.c: who may ask.
 *
 * A server on a laptop listens where every page in a browser can send requests to. Three things
 * keep pages out that were not let in: the Host header names this machine (a page whose name was
 * made to resolve to it brings its own name), an Origin is the server's own or was allowed by
 * --cors-origin, and bodies are JSON by their type, which a browser does not send elsewhere without
 * asking first. With keys, a page that has none gets nowhere, whatever it is called. */
#include "tools/prompt.h"
#include "tools/serve/serve.h"
#include "tools/serve/serve_keys.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- keys --- */

static bool fail(char line[TERN_ARGS_LINE], const char *what)
{
    snprintf(line, TERN_ARGS_LINE, "%s", what);
    return false;
}

static bool add_key(struct tern_server *s, const char *at, size_t n, char line[TERN_ARGS_LINE])
{
    while (n && strchr(" \t\r", at[n - 1]))
        n--;
    while (n && strchr(" \t", at[0])) {
        at++;
        n--;
    }
    if (n == 0)
        return true;
    /* Nobody could ever give such a key, or everybody could. */
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
            return fail(line, "keys: one has a control character (is the file text, in UTF-8?)");
    if (at[0] == '#')
        return fail(line, "keys: one begins with #; there are no comments beside keys");
    if (s->n_keys == TERN_SERVE_KEYS) {
        snprintf(line, TERN_ARGS_LINE, "keys: more than %d", TERN_SERVE_KEYS);
        return false;
    }
    s->keys[s->n_keys++] = (tern_text){at, n};
    return true;
}

static bool add_keys(struct tern_server *s, tern_text list, char between,
                     char line[TERN_ARGS_LINE])
{
    const char *at = list.data, *end = at + list.size;
    while (at < end) {
        const char *stop = memchr(at, between, (size_t)(end - at));
        stop = stop ? stop : end;
        if (!add_key(s, at, (size_t)(stop - at), line))
            return false;
        at = stop + (stop < end);
    }
    return true;
}

bool tern_guard_read_keys(struct tern_server *s, char line[TERN_ARGS_LINE])
{
    const char *list = s->settings->api_key;
    if (list && !add_keys(s, (tern_text){list, strlen(list)}, ',', line))
        return false;
    if (list && s->n_keys == 0) {
        snprintf(line, TERN_ARGS_LINE, "--api-key: an empty key");
        return false;
    }
    if (!s->settings->api_key_file)
        return true;
    const struct tern_settings file = {.file = s->settings->api_key_file};
    static const char mark[] = "\xef\xbb\xbf"; /* some editors begin with it */
    struct tern_prompt text; /* stays: the keys lie there */
    if (!tern_prompt_read(&text, &file, NULL, 0, line))
        return false;
    tern_text keys = text.text;
    if (keys.size >= 3 && memcmp(keys.data, mark, 3) == 0)
        keys = (tern_text){keys.data + 3, keys.size - 3};
    if (!add_keys(s, keys, '\n', line))
        return false;
    if (s->n_keys == 0)
        snprintf(line, TERN_ARGS_LINE, "--api-key-file: there is no key in it");
    return s->n_keys > 0;
}

bool tern_guard_has_key(const struct tern_server *s, const struct tern_http_exchange *x)
{
    static const char bearer[] = "Bearer ";
    tern_text given = tern_http_header(x, "x-api-key");
    uint32_t n_given = given.data != NULL;
    if (s->n_keys == 0)
        return true;
    for (uint32_t i = 0; i < x->n_headers; i++) {
        const tern_text value = x->headers[i].value;
        if (!tern_http_is_nocase(x->headers[i].name, "authorization"))
            continue;
        n_given++;
        given = (tern_text){"", 0};
        if (value.size >= sizeof bearer - 1 &&
            strncasecmp(value.data, bearer, sizeof bearer - 1) == 0)
            given = (tern_text){value.data + sizeof bearer - 1, value.size - (sizeof bearer - 1)};
    }
    return n_given == 1 && tern_keys_have(s->keys, s->n_keys, given);
}

/* --- names --- */

/* A host without its port. */
static tern_text without_port(tern_text host)
{
    size_t n = host.size;
    while (n && host.data[n - 1] >= '0' && host.data[n - 1] <= '9')
        n--;
    if (n && host.data[n - 1] == ':' && (n < 2 || host.data[0] == '[' ||
                                         !memchr(host.data, ':', n - 1)))
        return (tern_text){host.data, n - 1};
    return host;
}

/* A page's name that resolves to this machine is no number. */
static bool is_number(tern_text host)
{
    char text[64];
    unsigned char address[16];
    const bool brackets = host.size > 2 && host.data[0] == '[' && host.data[host.size - 1] == ']';
    const size_t from = brackets, n = host.size - 2 * from;
    if (n >= sizeof text)
        return false;
    memcpy(text, host.data + from, n);
    text[n] = 0;
    return inet_pton(brackets ? AF_INET6 : AF_INET, text, address) == 1;
}

static bool is_our_name(const struct tern_server *s, tern_text host)
{
    char name[260];
    host = without_port(host);
    if (tern_http_is_nocase(host, "localhost") || is_number(host) ||
        tern_http_is_nocase(host, s->settings->host))
        return true;
    if (gethostname(name, 250) != 0)
        return false;
    name[249] = 0;
    if (tern_http_is_nocase(host, name))
        return true;
    strcat(name, ".local");
    return tern_http_is_nocase(host, name);
}

static bool is_allowed_origin(const struct tern_server *s, tern_text origin)
{
    const char *at = s->settings->cors_origin;
    while (at && *at) {
        const size_t n = strcspn(at, ",");
        const tern_text one = {at, n};
        if (tern_http_is(one, "*") ||
            (n == origin.size && strncasecmp(at, origin.data, n) == 0))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* The page that this server sends. */
static bool is_own_origin(tern_text origin, tern_text host)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(schemes[i]);
        if (origin.size == n + host.size && strncasecmp(origin.data, schemes[i], n) == 0 &&
            strncasecmp(origin.data + n, host.data, host.size) == 0)
            return true;
    }
    return false;
}

static void allow_origin(struct tern_http_exchange *x, tern_text origin)
{
    char value[200];
    if (origin.size >= sizeof value)
        return;
    memcpy(value, origin.data, origin.size);
    value[origin.size] = 0;
    tern_http_add_header(x, "Access-Control-Allow-Origin", value);
    tern_http_add_header(x, "Vary", "Origin");
}

bool tern_guard_admits(struct tern_server *s, struct tern_http_exchange *x)
{
    const tern_text host = tern_http_header(x, "host"), origin = tern_http_header(x, "origin");
    if (s->n_keys == 0 && host.data && !is_our_name(s, host)) {
        tern_http_refuse(x, 403, "the Host header does not name this server; --host NAME or "
                                 "--api-key lets it in");
        return false;
    }
    if (!origin.data || (host.data && is_own_origin(origin, host)))
        return true;
    if (!is_allowed_origin(s, origin)) {
        tern_http_refuse(x, 403, "pages of this origin are not let in; see --cors-origin");
        return false;
    }
    allow_origin(x, origin);
    if (!tern_http_is(x->method, "OPTIONS"))
        return true;
    tern_http_add_header(x, "Access-Control-Allow-Methods", "GET, POST");
    tern_http_add_header(x, "Access-Control-Allow-Headers", "Authorization, Content-Type");
    tern_http_add_header(x, "Access-Control-Max-Age", "600");
    tern_http_reply(x, 204, NULL, (tern_text){"", 0});
    return false;
}
