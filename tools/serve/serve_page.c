/* serve_page.c: the page, and the policy that keeps it and what models write in it to itself.
 *
 * The page may run the scripts it came with, known by their hashes, and ask this server; nothing
 * else: no script, style, picture, frame or form from anywhere, and no markup made of text but by
 * DOMPurify. It is open to all, since it holds nothing; what it asks for needs the key. */
#include "tools/serve/endpoints.h"
#include "tools/serve/page.h"

#include <string.h>

static bool takes_gzip(const struct tern_http_exchange *x)
{
    static const char gzip[] = "gzip";
    const tern_text value = tern_http_header(x, "accept-encoding");
    for (size_t i = 0; i + sizeof gzip - 1 <= value.size; i++)
        if (memcmp(value.data + i, gzip, sizeof gzip - 1) == 0) {
            const size_t end = i + sizeof gzip - 1;
            return end == value.size || value.data[end] != ';'; /* a weight may refuse it */
        }
    return false;
}

void tern_page_now(struct tern_server *s, struct tern_http_exchange *x)
{
    if (s->settings->no_page) {
        tern_http_refuse(x, 404, "this server was started without its page (--no-webui)");
        return;
    }
    if (!tern_page.plain.data) {
        tern_http_refuse(x, 404, "this build has no page: markdown-it and DOMPurify were not there "
                                 "(Debian: node-markdown-it, node-dompurify)");
        return;
    }
    tern_http_add_header(x, "Content-Security-Policy", tern_page.policy);
    tern_http_add_header(x, "X-Content-Type-Options", "nosniff");
    tern_http_add_header(x, "Referrer-Policy", "no-referrer");
    tern_http_add_header(x, "Cross-Origin-Opener-Policy", "same-origin");
    tern_http_add_header(x, "Cross-Origin-Resource-Policy", "same-origin");
    tern_http_add_header(x, "X-DNS-Prefetch-Control", "off");
    tern_http_add_header(x, "Permissions-Policy", "camera=(), microphone=(), geolocation=()");
    tern_http_add_header(x, "Cache-Control", "no-cache");
    tern_http_add_header(x, "Vary", "Accept-Encoding");
    tern_http_add_header(x, "ETag", tern_page.tag);
    if (tern_http_is(tern_http_header(x, "if-none-match"), tern_page.tag)) {
        tern_http_reply(x, 304, NULL, (tern_text){"", 0});
        return;
    }
    const bool zipped = takes_gzip(x);
    if (zipped)
        tern_http_add_header(x, "Content-Encoding", "gzip");
    tern_http_reply(x, 200, "text/html; charset=utf-8",
                    zipped ? tern_page.zipped : tern_page.plain);
}
