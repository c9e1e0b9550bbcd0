/* image_vocab.c: the tokenizer's tables of an image, used where they lie.
 *
 * Checked here: every count against the length of its section, the ids, and the small tables
 * (256 bytes, 257 first places, 256 reaches), so in constant time. What stands in the large ones
 * is checked by who reads it, see vocab.h. */
#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/image.h"
#include "runtime/vocab.h"

static tern_status check_record(const struct tern_image_vocab *r, const struct tern_vocab *v,
                                tern_error *err)
{
    if (r->family != (uint32_t)v->family)
        return tern_fail(err, TERN_BAD_MODEL, "image: tables of tokenizer family %u, %t is %u",
                         (uint64_t)r->family, v->kind, (uint64_t)v->family);
    const struct { const char *name; uint64_t value, least, most; } ranges[] = {
        {"flags", r->flags, 0, TERN_IMAGE_ALL_FLAGS},
        {"n_tokens", r->n_tokens, 1, TERN_VOCAB_MAX_TOKENS},
        {"n_slots", r->n_slots, 1, UINT32_MAX / 2},
        {"n_merges", r->n_merges, 0, TERN_VOCAB_MAX_MERGES},
        {"n_pairs", r->n_pairs, v->family == TERN_VOCAB_BPE, UINT32_MAX / 2},
        {"n_specials", r->n_specials, 0, r->n_tokens},
        {"longest", r->longest, 0, TERN_MAX_PIECE},
        {"longest_special", r->longest_special, 0, r->longest},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
            return tern_fail(err, TERN_BAD_MODEL, "image: vocabulary: %s is %u, from %u to %u "
                             "needed", ranges[i].name, ranges[i].value, ranges[i].least,
                             ranges[i].most);
    for (int i = 0; i < 7; i++)
        if (r->ids[i] < -1 || (r->ids[i] >= 0 && (uint32_t)r->ids[i] >= r->n_tokens))
            return tern_fail(err, TERN_BAD_MODEL, "image: special token %u is %i, there are %u",
                             (uint64_t)i, (int64_t)r->ids[i], (uint64_t)r->n_tokens);
    return TERN_OK;
}

static tern_status check_lengths(const struct tern_image_head *h, const struct tern_image_vocab *r,
                                 bool spm, tern_error *err)
{
    const struct { enum tern_image_part part; uint64_t bytes; } tables[] = {
        {TERN_IMAGE_STARTS, 4 * ((uint64_t)r->n_tokens + 1)},
        {TERN_IMAGE_KINDS, r->n_tokens},
        {TERN_IMAGE_SCORES, spm ? 4 * (uint64_t)r->n_tokens : 0},
        {TERN_IMAGE_SLOTS, 4 * (uint64_t)r->n_slots},
        {TERN_IMAGE_PAIRS, 8 * (uint64_t)r->n_pairs},
        {TERN_IMAGE_MERGED, 4 * (uint64_t)r->n_merges},
        {TERN_IMAGE_BYTES, 256 * sizeof(tern_token)},
        {TERN_IMAGE_SPECIALS, 4 * (uint64_t)r->n_specials},
        {TERN_IMAGE_FIRSTS, 257 * sizeof(uint32_t)},
        {TERN_IMAGE_REACHES, 256 * sizeof(uint16_t)},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct tern_image_section *s = &h->sections[tables[i].part];
        if (s->bytes != tables[i].bytes)
            return tern_fail(err, TERN_BAD_MODEL, "image: section %u has %u bytes, %u needed",
                             (uint64_t)tables[i].part + 1, s->bytes, tables[i].bytes);
    }
    if (h->sections[TERN_IMAGE_PIECES].bytes > UINT32_MAX)
        return tern_fail(err, TERN_BAD_MODEL, "image: pieces of %u bytes, at most %u",
                         h->sections[TERN_IMAGE_PIECES].bytes, (uint64_t)UINT32_MAX);
    return TERN_OK;
}

static void point(struct tern_vocab *v, const struct tern_image_head *h)
{
    v->pool = tern_image_at(h, TERN_IMAGE_PIECES);
    v->pool_bytes = (uint32_t)h->sections[TERN_IMAGE_PIECES].bytes;
    v->starts = tern_image_at(h, TERN_IMAGE_STARTS);
    v->kinds = tern_image_at(h, TERN_IMAGE_KINDS);
    v->scores = v->family == TERN_VOCAB_SPM ? tern_image_at(h, TERN_IMAGE_SCORES) : NULL;
    v->slots = tern_image_at(h, TERN_IMAGE_SLOTS);
    v->pairs = tern_image_at(h, TERN_IMAGE_PAIRS);
    v->merged = tern_image_at(h, TERN_IMAGE_MERGED);
    v->bytes = tern_image_at(h, TERN_IMAGE_BYTES);
    v->specials = tern_image_at(h, TERN_IMAGE_SPECIALS);
    v->special_first = tern_image_at(h, TERN_IMAGE_FIRSTS);
    v->special_reach = tern_image_at(h, TERN_IMAGE_REACHES);
}

static tern_status check_small(const struct tern_vocab *v, tern_error *err)
{
    for (int i = 0; i < 256; i++) {
        if (v->bytes[i] < -1 || (v->bytes[i] >= 0 && (uint32_t)v->bytes[i] >= v->n_tokens))
            return tern_fail(err, TERN_BAD_MODEL, "image: byte %u is token %i, there are %u",
                             (uint64_t)i, (int64_t)v->bytes[i], (uint64_t)v->n_tokens);
        if (v->special_first[i] > v->special_first[i + 1] ||
            v->special_first[i + 1] > v->n_specials)
            return tern_fail(err, TERN_BAD_MODEL, "image: special pieces of byte %u from %u to %u "
                             "of %u", (uint64_t)i, (uint64_t)v->special_first[i],
                             (uint64_t)v->special_first[i + 1], (uint64_t)v->n_specials);
    }
    return TERN_OK;
}

static void take(struct tern_vocab *v, const struct tern_image_vocab *r)
{
    v->adds_bos = r->flags & TERN_IMAGE_ADDS_BOS;
    v->adds_eos = r->flags & TERN_IMAGE_ADDS_EOS;
    v->adds_space = r->flags & TERN_IMAGE_ADDS_SPACE;
    v->words_stand_alone = r->flags & TERN_IMAGE_WORDS_ALONE;
    v->unique = r->flags & TERN_IMAGE_UNIQUE;
    v->bos = r->ids[0];
    v->eos = r->ids[1];
    v->eot = r->ids[2];
    v->eom = r->ids[3];
    v->pad = r->ids[4];
    v->unk = r->ids[5];
    v->sep = r->ids[6];
    v->n_tokens = r->n_tokens;
    v->n_slots = r->n_slots;
    v->n_merges = r->n_merges;
    v->n_pairs = r->n_pairs;
    v->n_specials = r->n_specials;
    v->longest = r->longest;
    v->longest_special = r->longest_special;
}

tern_status tern_image_vocab(struct tern_arena *arena, const struct tern_model *m,
                             struct tern_vocab *v, const struct tern_vocab **out, tern_error *err)
{
    const struct tern_image_head *h = m->image;
    const struct tern_image_vocab *r = tern_image_at(h, TERN_IMAGE_VOCAB);
    if (h->sections[TERN_IMAGE_VOCAB].bytes != sizeof *r)
        return tern_fail(err, TERN_BAD_MODEL, "image: a vocabulary's record of %u bytes, %u needed",
                         h->sections[TERN_IMAGE_VOCAB].bytes, (uint64_t)sizeof *r);
    tern_status status = check_record(r, v, err);
    if (!status)
        status = check_lengths(h, r, v->family == TERN_VOCAB_SPM, err);
    if (status)
        return status;
    take(v, r);
    point(v, h);
    status = check_small(v, err);
    struct tern_vocab *kept = tern_carve(arena, 1, sizeof *kept, 64);
    if (arena->failed)
        return tern_fail(err, TERN_NO_MEMORY, "model arena: the tokenizer does not fit");
    if (kept) {
        *kept = *v;
        *out = status ? NULL : kept;
    }
    return status;
}
