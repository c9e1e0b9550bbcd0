/* sampler.c: the chain from logits to a token. See sampler.h.
 *
 * What every token pays for is passes over the vocabulary, so there are few. One finds the
 * highest logit, group by group, and that all are numbers; where nothing is added to the logits,
 * greedy is done with that, and top-k reads only groups whose highest is above the least of the
 * best so far. Both are the backend's vectors (struct tern_row_math).
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

enum {
    GROUP = 256, /* of the vocabulary, read for its highest; of candidates, at the draw */
    PIECE = 32,  /* of a group in which something was found */
    PART = 128,  /* exponentials taken at a time, a multiple of 16 */
};

static const float greedy_below = 1e-6f;

static float plain_highest(const void *self, const float *x, size_t n)
{
    (void)self;
    return tern_highest(x, n);
}

static void plain_exp_row(const void *self, float *x, size_t n, float max, float t)
{
    (void)self;
    tern_exp_row(x, n, max, t);
}

void tern_sampler_lay_out(struct tern_arena *a, struct tern_sampler *s, uint32_t n_vocab)
{
    s->n_vocab = n_vocab;
    s->candidates = tern_carve_raw(a, n_vocab, sizeof *s->candidates, 64);
    s->counts = tern_carve(a, n_vocab, sizeof *s->counts, 64);
    s->math = (struct tern_row_math){.highest = plain_highest, .exp_row = plain_exp_row};
}

/* --- logits as they come --- */

static tern_status no_number(const struct tern_sampler *s, const float *logits, tern_error *err)
{
    uint32_t i = 0;
    while (i + 1 < s->n_vocab && logits[i] < INFINITY)
        i++;
    return tern_fail(err, TERN_BAD_ARGUMENT, "logits: %s at token %u",
                     logits[i] > 0.0f ? "infinity" : "NaN", (uint64_t)i);
}

static tern_status nothing_finite(const struct tern_sampler *s, tern_error *err)
{
    return tern_fail(err, TERN_BAD_ARGUMENT, "logits: none of %u is finite", (uint64_t)s->n_vocab);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static float highest_of(const struct tern_sampler *s, const float *logits, uint32_t from,
                        uint32_t to)
{
    return s->math.highest(s->math.self, logits + from, to - from);
}

/* The highest logit, and the first token that has it; all have to be numbers. */
static tern_status find_best(const struct tern_sampler *s, const float *logits, float *best,
                             uint32_t *token, tern_error *err)
{
    uint32_t at = 0;
    *best = -INFINITY;
    for (uint32_t i = 0; i < s->n_vocab; i += GROUP) {
        const float high = highest_of(s, logits, i, i + least(GROUP, s->n_vocab - i));
        if (!(high < INFINITY))
            return no_number(s, logits, err);
        if (high > *best) {
            *best = high;
            at = i;
        }
    }
    while (logits[at] < *best)
        at++;
    *token = at;
    return TERN_OK;
}

/* --- candidates --- */

/* Logits to candidates in the order of the vocabulary. */
static void load(struct tern_sampler *s, const float *logits)
{
    for (uint32_t i = 0; i < s->n_vocab; i++)
        s->candidates[i] = (struct tern_candidate){logits[i], (tern_token)i};
}

static float highest(const struct tern_candidate *c, uint32_t n)
{
    float best = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        best = c[i].logit > best ? c[i].logit : best;
    return best;
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

/* Whether the logits are to be changed before anything is chosen. */
static bool adjusts(const tern_sampling *how)
{
    return how->n_biases || how->repeat_penalty != 1.0f || how->frequency_penalty != 0.0f ||
           how->presence_penalty != 0.0f;
}

/* Once for each distinct token of the last n of the history, its count saturating. */
static void penalise(struct tern_sampler *s, const tern_sampling *how, const tern_token *history,
                     uint32_t n_history)
{
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
static const struct order worst_first = {.reverse = true};

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

/* A heap of the k best, its root the least of them, to an array in order. */
static void sort_best(struct tern_candidate *c, uint32_t k)
{
    for (uint32_t left = k; left > 1; left--)
        take_root(&worst_first, c, left);
}

/* The k highest of n candidates to the front, in order; k <= n. */
static void select_highest(struct tern_candidate *c, uint32_t n, uint32_t k)
{
    if (k == 0)
        return;
    make_heap(&worst_first, c, k);
    for (uint32_t i = k; i < n; i++)
        if (c[i].logit > c[0].logit || (c[i].logit == c[0].logit && c[i].token < c[0].token)) {
            c[0] = c[i];
            sift_down(&worst_first, c, k, 0);
        }
    sort_best(c, k);
}

static void take_higher(struct tern_candidate *c, uint32_t k, const float *logits, uint32_t from,
                        uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (logits[i] > c[0].logit) {
            c[0] = (struct tern_candidate){logits[i], (tern_token)i};
            sift_down(&worst_first, c, k, 0);
        }
}

/* The same from logits. Of equal ones the first stays, so that what comes later has to be
 * higher than the root, and so has the highest of its group. */
static void select_from_row(struct tern_sampler *s, const float *logits, uint32_t k)
{
    struct tern_candidate *c = s->candidates;
    if (k == 0)
        return;
    for (uint32_t i = 0; i < k; i++)
        c[i] = (struct tern_candidate){logits[i], (tern_token)i};
    make_heap(&worst_first, c, k);
    for (uint32_t i = k, end; i < s->n_vocab; i = end) {
        end = i + least(GROUP, s->n_vocab - i);
        if (!(highest_of(s, logits, i, end) > c[0].logit))
            continue;
        for (uint32_t stop; i < end; i = stop) {
            stop = i + least(PIECE, end - i);
            if (highest_of(s, logits, i, stop) > c[0].logit)
                take_higher(c, k, logits, i, stop);
        }
    }
    sort_best(c, k);
}

/* --- filters: each leaves at least one candidate, and answers how many --- */

/* e^((logit - best) / t) of the first candidates, up to PART of them; answers how many. */
static uint32_t exp_part(const struct tern_sampler *s, const struct tern_candidate *c, uint32_t n,
                         float best, float t, float e[PART])
{
    const uint32_t some = least(PART, n);
    for (uint32_t i = 0; i < some; i++)
        e[i] = c[i].logit;
    s->math.exp_row(s->math.self, e, some, best, t);
    return some;
}

static float mass_of(const struct tern_sampler *s, uint32_t n, float best)
{
    float lanes[16] = {0}, e[PART];
    for (uint32_t i = 0; i < n; i += PART) {
        const uint32_t some = exp_part(s, s->candidates + i, n - i, best, 1.0f, e);
        for (uint32_t j = 0; j < some; j++)
            lanes[j % 16] += e[j];
    }
    return tern_sum16(lanes);
}

/* The mass of all, as they come. */
static float mass_of_row(const struct tern_sampler *s, const float *logits, float best)
{
    float lanes[16] = {0}, e[PART];
    for (uint32_t i = 0; i < s->n_vocab; i += PART) {
        const uint32_t some = least(PART, s->n_vocab - i);
        memcpy(e, logits + i, some * sizeof *e);
        s->math.exp_row(s->math.self, e, some, best, 1.0f);
        for (uint32_t j = 0; j < some; j++)
            lanes[j % 16] += e[j];
    }
    return tern_sum16(lanes);
}

/* The first candidates of an order, until their mass reaches a part of the whole. */
static uint32_t keep_part(struct tern_sampler *s, const struct order *o, uint32_t n, float part)
{
    struct tern_candidate *c = s->candidates;
    const float best = highest(c, n);
    const float need = part * mass_of(s, n, best);
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
static uint32_t keep_typical(struct tern_sampler *s, uint32_t n, float part)
{
    const struct tern_candidate *c = s->candidates;
    const float best = highest(c, n);
    float mass[16] = {0}, moment[16] = {0}, e[PART];
    for (uint32_t i = 0; i < n; i += PART) {
        const uint32_t some = exp_part(s, c + i, n - i, best, 1.0f, e);
        for (uint32_t j = 0; j < some; j++) {
            mass[j % 16] += e[j];
            if (e[j] > 0.0f) /* 0 * -infinity is no number */
                moment[j % 16] = fmaf(e[j], c[i + j].logit - best, moment[j % 16]);
        }
    }
    const struct order typical = {.nearest = true,
                                  .center = best + tern_sum16(moment) / tern_sum16(mass)};
    return keep_part(s, &typical, n, part);
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

/* What top-k left, through the others. */
static uint32_t filter(struct tern_sampler *s, uint32_t n, const tern_sampling *how)
{
    const struct order by_logit = {0};
    if (how->typical_p < 1.0f)
        n = keep_typical(s, n, how->typical_p);
    if (how->top_p < 1.0f)
        n = keep_part(s, &by_logit, n, how->top_p);
    if (how->min_p > 0.0f)
        n = keep_likely(s->candidates, n, how->min_p);
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

static tern_token draw(struct tern_sampler *s, uint32_t n, float temperature, float u)
{
    struct tern_candidate *c = s->candidates;
    const float best = highest(c, n);
    float whole = 0.0f, before = 0.0f, e[PART];
    for (uint32_t i = 0; i < n; i += PART) {
        const uint32_t some = exp_part(s, c + i, n - i, best, temperature, e);
        for (uint32_t j = 0; j < some; j++)
            c[i + j].logit = e[j];
    }
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

/* The logits with what is added to them, as candidates. */
static tern_status adjust(struct tern_sampler *s, const tern_sampling *how, const float *logits,
                          const tern_token *history, uint32_t n_history, tern_error *err)
{
    load(s, logits);
    add_biases(s->candidates, how);
    penalise(s, how, history, n_history);
    return highest(s->candidates, s->n_vocab) > -INFINITY ? TERN_OK : nothing_finite(s, err);
}

static tern_token best_candidate(const struct tern_sampler *s)
{
    const struct tern_candidate *c = s->candidates;
    const float best = highest(c, s->n_vocab);
    while (c->logit < best)
        c++;
    return c->token;
}

tern_status tern_sampler_choose(struct tern_sampler *s, const tern_sampling *how,
                                const float *logits, const tern_token *history,
                                uint32_t n_history, uint32_t position, tern_token *out,
                                tern_error *err)
{
    const bool adjusted = adjusts(how), greedy = !(how->temperature >= greedy_below);
    const bool top_k = how->top_k > 0 && (uint32_t)how->top_k < s->n_vocab;
    uint32_t first, n = top_k ? (uint32_t)how->top_k : s->n_vocab;
    float best;
    tern_status status = find_best(s, logits, &best, &first, err);
    if (!status && adjusted)
        status = adjust(s, how, logits, history, n_history, err);
    else if (!status && !(best > -INFINITY))
        status = nothing_finite(s, err);
    if (status)
        return status;
    if (greedy) {
        *out = adjusted ? best_candidate(s) : (tern_token)first;
        return TERN_OK;
    }
    if (adjusted && top_k)
        select_highest(s->candidates, s->n_vocab, n);
    else if (top_k)
        select_from_row(s, logits, n);
    else if (!adjusted)
        load(s, logits);
    n = filter(s, n, how);
    *out = draw(s, n, how->temperature, tern_philox_uniform(how->seed, how->stream, position));
    return TERN_OK;
}

tern_status tern_logprobs(struct tern_sampler *s, const float *logits, uint32_t k,
                          tern_logprob *out, tern_token token, float *logprob, tern_error *err)
{
    uint32_t first;
    float best;
    if (k > s->n_vocab)
        return tern_fail(err, TERN_BAD_ARGUMENT, "log-probabilities: %u, at most %u tokens",
                         (uint64_t)k, (uint64_t)s->n_vocab);
    if (token < -1 || (token >= 0 && (uint32_t)token >= s->n_vocab))
        return tern_fail(err, TERN_BAD_ARGUMENT, "log-probability: token %i, below %u",
                         (int64_t)token, (uint64_t)s->n_vocab);
    const tern_status status = find_best(s, logits, &best, &first, err);
    if (status)
        return status;
    if (!(best > -INFINITY))
        return nothing_finite(s, err);
    const float log_mass = tern_log(mass_of_row(s, logits, best));
    if (token >= 0)
        *logprob = (logits[token] - best) - log_mass;
    select_from_row(s, logits, k);
    for (uint32_t i = 0; i < k; i++) {
        const struct tern_candidate c = s->candidates[i];
        out[i] = (tern_logprob){c.token, (c.logit - best) - log_mass};
    }
    return TERN_OK;
}
