/* model_info.c: what a model says of itself, for people. */
#include "runtime/model.h"

#include "quant/format.h"
#include "runtime/error.h"
#include "runtime/gguf.h"
#include "runtime/image.h"
#include "runtime/text.h"
#include "runtime/tokenizer.h"

/* --- the model --- */

static tern_token token_of(const struct tern_model *m, const char *key)
{
    uint32_t id;
    struct tern_meta k;
    if (!tern_meta_find(m, key, &k) || tern_meta_u32(m, key, false, 0, INT32_MAX, &id, NULL))
        return -1;
    return (tern_token)id;
}

static void describe_tokenizer(const struct tern_model *m, tern_model_info *out)
{
    (void)tern_meta_text(m, "tokenizer.chat_template", &out->chat_template, NULL);
    if (m->vocab) {
        out->tokenizer = tern_vocab_kind(m->vocab);
        out->pre_tokenizer = tern_vocab_pre(m->vocab);
        out->n_vocab = tern_vocab_size(m->vocab);
        out->bos = tern_vocab_bos(m->vocab);
        out->eos = tern_vocab_eos(m->vocab);
        out->eot = tern_vocab_eot(m->vocab);
        out->pad = tern_vocab_pad(m->vocab);
        out->add_bos = tern_vocab_adds_bos(m->vocab);
        return;
    }
    (void)tern_meta_text(m, "tokenizer.ggml.model", &out->tokenizer, NULL);
    (void)tern_meta_text(m, "tokenizer.ggml.pre", &out->pre_tokenizer, NULL);
    (void)tern_meta_bool(m, "tokenizer.ggml.add_bos_token", &out->add_bos, NULL);
    struct tern_meta tokens;
    if (tern_meta_find(m, "tokenizer.ggml.tokens", &tokens) && tokens.count <= INT32_MAX)
        out->n_vocab = (uint32_t)tokens.count;
    out->bos = token_of(m, "tokenizer.ggml.bos_token_id");
    out->eos = token_of(m, "tokenizer.ggml.eos_token_id");
    out->eot = token_of(m, "tokenizer.ggml.eot_token_id");
    out->pad = token_of(m, "tokenizer.ggml.padding_token_id");
}

void tern_model_describe(const tern_model *m, tern_model_info *out)
{
    const struct tern_hparams *p = &m->hparams;
    *out = (tern_model_info){
        .architecture = m->architecture,
        .file_version = m->file_version, .n_parts = m->n_parts, .file_bytes = m->file_bytes,
        .n_layers = p->n_layers, .n_embd = p->n_embd, .n_ff = p->n_ff, .n_heads = p->n_heads,
        .n_kv_heads = p->n_kv_heads, .head_dim = p->k_dim, .n_ctx_train = p->n_ctx_train,
        .n_tensors = m->n_tensors, .n_metadata = m->n_metadata, .n_ops = m->program.n_ops,
        .n_kv_groups = m->program.n_kv_groups, .runnable = m->program.n_ops > 0,
        .is_image = m->image != NULL, .identity = m->image ? m->image->identity : 0,
    };
    (void)tern_meta_text(m, "general.name", &out->name, NULL);
    describe_tokenizer(m, out);
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const struct tern_tensor *t = &m->tensors[i];
        out->n_params += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
        out->weight_bytes += t->bytes;
    }
}

/* --- metadata --- */

/* Bytes of the whole character of UTF-8 at p, or 0 if there is none. */
static size_t character_size(const unsigned char *p, size_t left)
{
    const unsigned char c = p[0];
    if (c < 0x80)
        return 1;
    const size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || n > left)
        return 0;
    if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) ||
        (c == 0xf4 && p[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Text as UTF-8: a byte that is of no character becomes U+FFFD. */
static void write_utf8(struct tern_writer *w, const char *data, size_t size)
{
    for (size_t i = 0; i < size;) {
        const size_t n = character_size((const unsigned char *)data + i, size - i);
        if (n)
            tern_write_bytes(w, data + i, n);
        else
            tern_write_bytes(w, "\xef\xbf\xbd", 3);
        i += n ? n : 1;
    }
}

/* A text that stayed in the file, a piece at a time, no piece ending inside a character. */
static tern_status write_from_file(const struct tern_model *m, const struct tern_meta *k,
                                   struct tern_writer *w)
{
    enum { PIECE = 256 };
    char piece[PIECE];
    struct tern_reader r = tern_reader_at(&m->parts[0], k->at);
    uint64_t left = k->v.s.size;
    size_t held = 0;
    while (left || held) {
        const size_t n = left < PIECE - held ? (size_t)left : PIECE - held;
        tern_read(&r, piece + held, n);
        if (r.failed)
            return TERN_IO;
        left -= n;
        held += n;
        size_t whole = held;
        while (left && whole > held - 4 && ((unsigned char)piece[whole - 1] & 0xc0) == 0x80)
            whole--;
        if (left && (unsigned char)piece[whole - 1] >= 0xc0)
            whole--;
        else
            whole = held;
        write_utf8(w, piece, whole);
        for (size_t i = whole; i < held; i++)
            piece[i - whole] = piece[i];
        held -= whole;
    }
    return TERN_OK;
}

static tern_status write_value(const struct tern_model *m, const struct tern_meta *k,
                               struct tern_writer *w)
{
    switch (k->type) {
    case TERN_META_F32: case TERN_META_F64:
        tern_write(w, "%f", k->v.f);
        return TERN_OK;
    case TERN_META_BOOL:
        tern_write(w, k->v.b ? "true" : "false");
        return TERN_OK;
    case TERN_META_STRING:
        if (!k->v.s.data && k->v.s.size)
            return write_from_file(m, k, w);
        write_utf8(w, k->v.s.data, k->v.s.size);
        return TERN_OK;
    case TERN_META_I8: case TERN_META_I16: case TERN_META_I32: case TERN_META_I64:
        tern_write(w, "%i", k->v.i);
        return TERN_OK;
    default:
        tern_write(w, "%u", k->v.u);
        return TERN_OK;
    }
}

static tern_status write_array(const struct tern_model *m, const struct tern_meta *k,
                               struct tern_writer *w)
{
    enum { SHOWN = 8 };
    tern_write(w, "[");
    struct tern_reader r = tern_reader_at(&m->parts[0], k->at);
    for (uint64_t i = 0; i < k->count && i < SHOWN; i++) {
        struct tern_meta e = {.type = k->element, .key = k->key};
        if (tern_gguf_value(&r, NULL, &e, NULL))
            return TERN_IO;
        tern_write(w, i ? ", " : "");
        const tern_status status = write_value(m, &e, w);
        if (status)
            return status;
    }
    tern_write(w, k->count > SHOWN ? ", ...]" : "]");
    return TERN_OK;
}

tern_status tern_model_metadata(const tern_model *m, uint32_t i, tern_metadata *out, char *text,
                                size_t cap, size_t *n)
{
    if (i >= m->n_metadata)
        return TERN_BAD_ARGUMENT;
    const struct tern_meta *k = &m->metadata[i];
    *out = (tern_metadata){k->key, tern_meta_type_name(k->type, k->element), k->count};
    struct tern_writer w = {text, cap, 0};
    const tern_status status = k->type == TERN_META_ARRAY ? write_array(m, k, &w)
                                                          : write_value(m, k, &w);
    *n = w.n;
    return status ? status : w.n > cap ? TERN_TOO_SMALL : TERN_OK;
}

/* --- tensors and ops --- */

tern_status tern_model_tensor(const tern_model *m, uint32_t i, tern_tensor_info *out)
{
    if (i >= m->n_tensors)
        return TERN_BAD_ARGUMENT;
    const struct tern_tensor *t = &m->tensors[i];
    const struct tern_format *f = tern_format_of(t->type);
    *out = (tern_tensor_info){
        .name = t->name, .type = tern_gguf_type_name(t->type), .type_id = t->type,
        .path = !f ? "none" : f->direct ? "direct" : "expanded",
        .n_dims = t->n_dims, .part = t->part, .offset = t->offset, .bytes = t->bytes,
        .dims = {t->dims[0], t->dims[1], t->dims[2], t->dims[3]},
    };
    return TERN_OK;
}

tern_status tern_model_op(const tern_model *m, uint32_t i, char *text, size_t cap, size_t *n,
                          uint32_t *layer)
{
    if (i >= m->program.n_ops)
        return TERN_BAD_ARGUMENT;
    *layer = m->program.ops[i].layer == UINT16_MAX ? UINT32_MAX : m->program.ops[i].layer;
    tern_program_print(m, i, text, cap, n);
    return *n > cap ? TERN_TOO_SMALL : TERN_OK;
}
