/* endpoints.h: the functions of the table of routes, by file. */
#ifndef TERN_ENDPOINTS_H
#define TERN_ENDPOINTS_H

#include "tools/serve/serve.h"

/* serve_info.c: of the server and its model; on the loop's thread. */
void tern_health_now(struct tern_server *s, struct tern_http_exchange *x);
void tern_models_now(struct tern_server *s, struct tern_http_exchange *x);
void tern_model_now(struct tern_server *s, struct tern_http_exchange *x);
void tern_props_now(struct tern_server *s, struct tern_http_exchange *x);
void tern_slots_now(struct tern_server *s, struct tern_http_exchange *x);
void tern_metrics_now(struct tern_server *s, struct tern_http_exchange *x);

/* serve_page.c and serve_pool.c: the page, and what it draws. */
void tern_page_now(struct tern_server *s, struct tern_http_exchange *x);
void tern_pool_now(struct tern_server *s, struct tern_http_exchange *x);

/* serve_text.c: text and tokens, without the engine. */
bool tern_tokenize_prepare(struct tern_call *c);
bool tern_detokenize_prepare(struct tern_call *c);
bool tern_apply_template_prepare(struct tern_call *c);

/* serve_infill.c; and a prompt of what stands before and behind the answer */
bool tern_infill_prepare(struct tern_call *c);
bool tern_infill_prompt(struct tern_call *c, uint32_t i, tern_text before, tern_text behind);

/* serve_completions.c, serve_chat.c, serve_responses.c */
bool tern_completions_prepare(struct tern_call *c);
bool tern_chat_prepare(struct tern_call *c);
bool tern_responses_prepare(struct tern_call *c);

/* serve_slots.c */
bool tern_slot_prepare(struct tern_call *c);

/* serve_embeddings.c */
bool tern_embeddings_prepare(struct tern_call *c);

#endif
