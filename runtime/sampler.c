/* sampler.c: the chain from logits to a token. See sampler.h.
 *
 * Candidates are an array of (logit, token) that starts in the order of the vocabulary and is
 * cut by one filter after the other, in place. None of them sorts the vocabulary: top-k scans
 * once with a heap of k; typical and top-p make a heap of what they are given, in linear time,
 * and take from it only as many as they keep. Orders are total (ties by the lower id), so the
 * result does not depend on how the heap works.
 *
 * Sums, and hence bits: the mass of all candidates, exp(x - max), in 16 lanes by index in the
 * array and the fixed tree; the mass of those kept one by one as they are taken; at the draw,
 * groups of 256 are added up one by one, and then the groups. The groups keep the many small
 * probabilities of a large vocabulary from being lost beside one that is near 1.
 */
#include "runtime/sampler.h"

#include "runtime/arena.h"
#include "runtime/error.h"
#include "runtime/philox.h"
#include "runtime/real.h"

#include <float.h>

enum { GROUP = 256 };

static const float greedy_below = 1e-6f;

void tern_sampler_lay_out(struct tern_arena *a, struct tern_sampler *s, uint32_t n_vocab)
{
    s->n_vocab = n_vocab;
    s->candidates = tern_carve_raw(a, n_vocab, sizeof *s->candidates, 64);
    s->counts = tern_carve(a, n_vocab, sizeof *s->counts, 64);
}

/* --- candidates --- */

/* Logits to candidates in the order of the vocabulary. */
static tern_status load(struct tern_sampler *s, const float *logits, tern_error *err)
{
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        const float x = logits[i];
        if (!(x < INFINITY))
            return tern_fail(err, TERN_BAD_ARGUMENT, "logits: %s at token %u",
                             x > 0.0f ? "infinity" : "NaN", (uint64_t)i);
        s->candidates[i] = (struct tern_candidate){x, (tern_token)i};
    }
    return TERN_OK;
}

static float highest(const struct tern_candidate *c, uint32_t n)
{
    float best = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        best = c[i].logit > best ? c[i].logit : best;
    return best;
}

static tern_status nothing_finite(const struct tern_sampler *s, tern_error *err)
{
    return tern_fail(err, TERN_BAD_ARGUMENT, "logits: none of %u is finite", (uint64_t)s->n_vocab);
}

/* Biases and penalties keep a finite logit finite, unless a bias bans the token. */
static float clamped(float x)
{
    return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x;
}

static void add_biases(struct tern_candidate *c, const tern_sampling *how)
{
    for (uint32_t i = 0; i < how->n_biases; i++) {
        const tern_bias b = how->biases[i];
        const float x = c[b.token].logit + b.bias;
        c[b.token].logit = x > FLT_MAX ? FLT_MAX : x;
    }
}

static float penalised(float x, const tern_sampling *how, uint32_t count)
{
    if (x == -INFINITY)
        return x;
    /* A negative logit is multiplied: divided, it would become likelier. */
    x = clamped(x <= 0.0f ? x * how->repeat_penalty : x / how->repeat_penalty);
    return clamped(x - ((float)count * how->frequency_penalty + how->presence_penalty));
}

/* Once for each distinct token of the last n of the history, its count saturating. */
static void penalise(struct tern_sampler *s, const tern_sampling *how, const tern_token *history,
                     uint32_t n_history)
{
    if (how->repeat_penalty == 1.0f && how->frequency_penalty == 0.0f &&
        how->presence_penalty == 0.0f)
        return;
    uint32_t n = n_history;
    if (how->repeat_last_n >= 0 && (uint32_t)how->repeat_last_n < n)
        n = (uint32_t)how->repeat_last_n;
    const tern_token *last = n ? history + (n_history - n) : NULL;
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)last[i] < s->n_vocab && s->counts[last[i]] < UINT16_MAX)
            s->counts[last[i]]++;
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)last[i] < s->n_vocab && s->counts[last[i]]) {
            struct tern_candidate *c = &s->candidates[last[i]];
            c->logit = penalised(c->logit, how, s->counts[last[i]]);
            s->counts[last[i]] = 0;
        }
}

/* --- heaps --- */

/* Higher logits first or, if nearest, those nearest to center; ties by the lower id. A heap of
 * the reverse order has the last one at its root. */
struct order { bool nearest, reverse; float center; };

static bool precedes(const struct order *o, struct tern_candidate a, struct tern_candidate b)
{
    const float x = o->nearest ? -fabsf(a.logit - o->center) : a.logit;
    const float y = o->nearest ? -fabsf(b.logit - o->center) : b.logit;
    const bool first = x != y ? x > y : a.token < b.token;
    return first != o->reverse;
}

static void sift_down(const struct order *o, struct tern_candidate *c, uint32_t n, uint32_t at)
{
    const struct tern_candidate moved = c[at];
    for (uint64_t child = 2 * (uint64_t)at + 1; child < n; child = 2 * child + 1) {
        if (child + 1 < n && precedes(o, c[child + 1], c[child]))
            child++;
        if (!precedes(o, c[child], moved))
            break;
        c[at] = c[child];
        at = (uint32_t)child;
    }
    c[at] = moved;
}

static void make_heap(const struct order *o, struct tern_candidate *c, uint32_t n)
{
    for (uint32_t i = n / 2; i--;)
        sift_down(o, c, n, i);
}

/* Moves the root behind the n - 1 others. */
static void take_root(const struct order *o, struct tern_candidate *c, uint32_t n)
{
    const struct tern_candidate root = c[0];
    c[0] = c[n - 1];
    c[n - 1] = root;
    sift_down(o, c, n - 1, 0);
}

/* The k highest to the front, in order; k <= n. The heap's root is the least of the best so far. */
static void select_highest(struct tern_candidate *c, uint32_t n, uint32_t k)
{
    const struct order least = {.reverse = true};
    if (k == 0)
        return;
    make_heap(&least, c, k);
    for (uint32_t i = k; i < n; i++)
        if (c[i].logit >= c[0].logit && precedes(&least, c[0], c[i])) {
            const struct tern_candidate out = c[0];
            c[0] = c[i];
            c[i] = out;
            sift_down(&least, c, k, 0);
        }
    for (uint32_t left = k; left > 1; left--)
        take_root(&least, c, left);
}

/* --- filters: each leaves at least one candidate, and answers how many --- */

static float mass_of(const struct tern_candidate *c, uint32_t n, float best)
{
    float lanes[16] = {0};
    for (uint32_t i = 0; i < n; i++)
        lanes[i % 16] += tern_exp(c[i].logit - best);
    return tern_sum16(lanes);
}

/* The first candidates of an order, until their mass reaches a part of the whole. */
static uint32_t keep_part(const struct order *o, struct tern_candidate *c, uint32_t n, float part)
{
    const float best = highest(c, n);
    const float need = part * mass_of(c, n, best);
    float mass = 0.0f;
    uint32_t left = n;
    make_heap(o, c, n);
    do {
        take_root(o, c, left--);
        mass += tern_exp(c[left].logit - best);
    } while (left && !(mass >= need));
    /* The kept ones stand at the end, the last first. */
    for (uint32_t i = left, j = n - 1; i < j; i++, j--) {
        const struct tern_candidate swapped = c[i];
        c[i] = c[j];
        c[j] = swapped;
    }
    memmove(c, c + left, (n - left) * sizeof *c);
    return n - left;
}

/* Locally typical sampling (Meister and others, 2022): the tokens whose surprise -log p is
 * nearest to its expectation, the entropy. As log p = x - log Z, the distance is that of x
 * from the mean logit. */
static uint32_t keep_typical(struct tern_candidate *c, uint32_t n, float part)
{
    const float best = highest(c, n);
    float mass[16] = {0}, moment[16] = {0};
    for (uint32_t i = 0; i < n; i++) {
        const float x = c[i].logit - best, e = tern_exp(x);
        mass[i % 16] += e;
        if (e > 0.0f) /* 0 * -infinity is no number */
            moment[i % 16] = fmaf(e, x, moment[i % 16]);
    }
    const struct order typical = {.nearest = true,
                                  .center = best + tern_sum16(moment) / tern_sum16(mass)};
    return keep_part(&typical, c, n, part);
}

/* Those at least min_p times as likely as the likeliest; the order stays. */
static uint32_t keep_likely(struct tern_candidate *c, uint32_t n, float min_p)
{
    const float best = highest(c, n), least = tern_log(min_p);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (c[i].logit - best >= least)
            c[kept++] = c[i];
    return kept;
}

static uint32_t filter(struct tern_candidate *c, uint32_t n, const tern_sampling *how)
{
    const struct order by_logit = {0};
    if (how->top_k > 0 && (uint32_t)how->top_k < n) {
        select_highest(c, n, (uint32_t)how->top_k);
        n = (uint32_t)how->top_k;
    }
    if (how->typical_p < 1.0f)
        n = keep_typical(c, n, how->typical_p);
    if (how->top_p < 1.0f)
        n = keep_part(&by_logit, c, n, how->top_p);
    if (how->min_p > 0.0f)
        n = keep_likely(c, n, how->min_p);
    return n;
}

/* --- the draw --- */

/* Of a group: the first 256 of n. Masses stand where the logits were. */
static float group_mass(const struct tern_candidate *c, uint32_t n)
{
    float mass = 0.0f;
    for (uint32_t i = 0; i < n && i < GROUP; i++)
        mass += c[i].logit;
    return mass;
}

/* The first of a group at which its mass passes target; the last that has any if none does,
 * which takes a rounding of target. */
static tern_token pick(const struct tern_candidate *c, uint32_t n, float target)
{
    tern_token last = c[0].token;
    float mass = 0.0f;
    for (uint32_t i = 0; i < n && i < GROUP; i++) {
        if (c[i].logit > 0.0f)
            last = c[i].token;
        mass += c[i].logit;
        if (mass > target)
            return c[i].token;
    }
    return last;
}

static tern_token draw(struct tern_candidate *c, uint32_t n, float temperature, float u)
{
    const float best = highest(c, n);
    float whole = 0.0f, before = 0.0f;
    for (uint32_t i = 0; i < n; i++)
        c[i].logit = tern_exp((c[i].logit - best) / temperature);
    for (uint32_t i = 0; i < n; i += GROUP)
        whole += group_mass(c + i, n - i);
    const float target = u * whole;
    for (uint32_t i = 0; i < n; i += GROUP) {
        const float mass = group_mass(c + i, n - i);
        if (before + mass > target)
            return pick(c + i, n - i, target - before);
        before += mass;
    }
    /* Not reached: before is whole by now, whole >= 1, and u < 1 keeps the target below it. */
    return pick(c, n, 0.0f);
}

tern_status tern_sampler_choose(struct tern_sampler *s, const tern_sampling *how,
                                const float *logits, const tern_token *history,
                                uint32_t n_history, uint32_t position, tern_token *out,
                                tern_error *err)
{
    struct tern_candidate *c = s->candidates;
    uint32_t n = s->n_vocab;
    const tern_status status = load(s, logits, err);
    if (status)
        return status;
    add_biases(c, how);
    penalise(s, how, history, n_history);
    const float best = highest(c, n);
    if (!(best > -INFINITY))
        return nothing_finite(s, err);
    if (!(how->temperature >= greedy_below)) {
        for (n = 0; c[n].logit < best;)
            n++;
        *out = c[n].token;
        return TERN_OK;
    }
    n = filter(c, n, how);
    *out = draw(c, n, how->temperature, tern_philox_uniform(how->seed, how->stream, position));
    return TERN_OK;
}

tern_status tern_logprobs(struct tern_sampler *s, const float *logits, uint32_t k,
                          tern_logprob *out, tern_token token, float *logprob, tern_error *err)
{
    struct tern_candidate *c = s->candidates;
    if (k > s->n_vocab)
        return tern_fail(err, TERN_BAD_ARGUMENT, "log-probabilities: %u, at most %u tokens",
                         (uint64_t)k, (uint64_t)s->n_vocab);
    if (token < -1 || (token >= 0 && (uint32_t)token >= s->n_vocab))
        return tern_fail(err, TERN_BAD_ARGUMENT, "log-probability: token %i, below %u",
                         (int64_t)token, (uint64_t)s->n_vocab);
    const tern_status status = load(s, logits, err);
    if (status)
        return status;
    const float best = highest(c, s->n_vocab);
    if (!(best > -INFINITY))
        return nothing_finite(s, err);
    const float log_mass = tern_log(mass_of(c, s->n_vocab, best));
    if (token >= 0)
        *logprob = (logits[token] - best) - log_mass;
    select_highest(c, s->n_vocab, k);
    for (uint32_t i = 0; i < k; i++)
        out[i] = (tern_logprob){c[i].token, (c[i].logit - best) - log_mass};
    return TERN_OK;
}
