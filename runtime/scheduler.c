#include "runtime/scheduler.h"

#include "runtime/arena.h"
#include "runtime/engine.h"
#include "runtime/error.h"

#include <string.h>

void tern_scheduler_lay_out(struct tern_arena *a, struct tern_scheduler *s,
                            const tern_limits *limits)
{
    *s = (struct tern_scheduler){.clock = 1};
    s->order = tern_carve(a, limits->n_seqs, sizeof *s->order, 64);
    s->quota = tern_carve(a, limits->n_seqs, sizeof *s->quota, 64);
    s->turns = tern_carve(a, limits->n_seqs, sizeof *s->turns, 64);
}

void tern_scheduler_add(struct tern_engine *e, struct tern_sequence *s)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    s->running = true;
    s->age = ++sch->clock;
    s->came = sch->n_rows;
    sch->order[sch->n_running++] = tern_slot_of(e, s);
}

void tern_scheduler_remove(struct tern_engine *e, struct tern_sequence *s)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    uint32_t i = 0;
    while (sch->order[i] != tern_slot_of(e, s))
        i++;
    sch->n_running--;
    memmove(sch->order + i, sch->order + i + 1, (sch->n_running - i) * sizeof *sch->order);
    s->running = s->admitted = false;
    s->used = ++sch->clock;
}

static struct tern_sequence *running(struct tern_engine *e, uint32_t i)
{
    return &e->parts.seqs[e->parts.scheduler.order[i]];
}

/* --- taking blocks --- */

static bool holds_blocks(const struct tern_engine *e, const struct tern_sequence *s)
{
    return e->parts.kv.seqs[tern_slot_of(e, s)].hi > 0;
}

void tern_preempt(struct tern_engine *e, struct tern_sequence *s)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    tern_kv_trim(&e->parts.kv, tern_slot_of(e, s), 0);
    s->n_computed = s->n_cached = 0;
    s->admitted = false;
    s->preempted = true;
    sch->quota[tern_slot_of(e, s)] = 0;
    sch->n_preempted += s->running;
}

uint64_t tern_preemptions(const tern_engine *e)
{
    return e ? e->parts.scheduler.n_preempted : 0;
}

bool tern_schedule_evict(struct tern_engine *e)
{
    struct tern_sequence *victim = NULL;
    for (uint32_t i = 0; i < e->limits.n_seqs; i++) {
        struct tern_sequence *s = &e->parts.seqs[i];
        if (atomic_load(&s->handle) && !s->running && !s->pinned && holds_blocks(e, s) &&
            (!victim || s->used < victim->used))
            victim = s;
    }
    if (victim)
        tern_preempt(e, victim);
    return victim;
}

static bool preempt_younger(struct tern_engine *e, uint64_t age)
{
    for (uint32_t i = e->parts.scheduler.n_running; i-- > 0;) {
        struct tern_sequence *s = running(e, i);
        if (s->age <= age)
            return false;
        if (holds_blocks(e, s)) {
            tern_preempt(e, s);
            return true;
        }
    }
    return false;
}

tern_status tern_schedule_blocks(struct tern_engine *e, struct tern_sequence *s, uint64_t age,
                                 uint32_t n, uint32_t *got)
{
    struct tern_kv *kv = &e->parts.kv;
    const uint32_t slot = tern_slot_of(e, s);
    do
        *got = tern_kv_room(kv, slot, s->n_computed, n);
    while (*got < n && (tern_schedule_evict(e) || preempt_younger(e, age)));
    if (!*got)
        return TERN_OK;
    return tern_kv_reserve(kv, slot, s->n_computed, *got, e->backend, e->state, &e->error);
}

/* --- letting sequences in --- */

/* Blocks of a group that a sequence has yet to take to hold n_tokens tokens. */
static uint32_t still_to_take(const struct tern_engine *e, const struct tern_sequence *s,
                              uint32_t group, uint64_t n_tokens)
{
    const struct tern_kv_seq *held = &e->parts.kv.seqs[tern_slot_of(e, s)];
    const uint32_t n = n_tokens < e->limits.n_ctx ? (uint32_t)n_tokens : e->limits.n_ctx;
    const uint32_t most = tern_kv_most(&e->model->program.kv_groups[group], &e->limits, n);
    const uint32_t has = held->hi - held->lo[group];
    return most > has ? most - has : 0;
}

/* Whether all that this one holds fits, and all that those already in hold and a block more. */
static bool fits(struct tern_engine *e, const struct tern_sequence *newcomer)
{
    for (uint32_t g = 0; g < e->parts.kv.n_groups; g++) {
        uint64_t need = still_to_take(e, newcomer, g, newcomer->n_tokens);
        for (uint32_t i = 0; i < e->parts.scheduler.n_running; i++) {
            const struct tern_sequence *s = running(e, i);
            if (s->admitted)
                need += still_to_take(e, s, g, (uint64_t)s->n_tokens + TERN_BLOCK_TOKENS);
        }
        if (need > e->parts.kv.pools[g].n_free)
            return false;
    }
    return true;
}

static bool any_admitted(struct tern_engine *e)
{
    for (uint32_t i = 0; i < e->parts.scheduler.n_running; i++)
        if (running(e, i)->admitted)
            return true;
    return false;
}

/* Whether another sequence is about to compute more of this one's prefix than was found: then
 * waiting for it is cheaper than doing the same work beside it. */
static bool is_being_computed(struct tern_engine *e, const struct tern_sequence *s)
{
    for (uint32_t i = 0; i < e->parts.scheduler.n_running; i++) {
        const struct tern_sequence *o = running(e, i);
        const uint32_t last = tern_logits_from(s), known = s->n_computed;
        if (!o->admitted || o->options.no_kv_sharing || o == s)
            continue;
        uint32_t n = 0, most = o->n_tokens < last ? o->n_tokens : last;
        while (n < most && s->tokens[n] == o->tokens[n])
            n++;
        n -= n % TERN_BLOCK_TOKENS;
        if (n > known && n > o->n_computed)
            return true;
    }
    return false;
}

static void give_back(struct tern_engine *e, struct tern_sequence *s)
{
    tern_kv_trim(&e->parts.kv, tern_slot_of(e, s), 0);
    s->n_computed = 0;
}

/* Lets one in, if there is room; answers whether the next one may try. One that nobody else
 * competes with always gets in: a plan holds a whole context. */
static bool admit(struct tern_engine *e, struct tern_sequence *s)
{
    struct tern_kv *kv = &e->parts.kv;
    const uint32_t slot = tern_slot_of(e, s);
    const bool look_up = !s->n_computed && !s->options.no_kv_sharing && !e->limits.no_kv_sharing;
    if (look_up)
        s->n_computed = tern_kv_match(kv, slot, s->tokens, tern_logits_from(s));
    if (look_up && is_being_computed(e, s)) {
        give_back(e, s);
        return true;
    }
    while (any_admitted(e) && !fits(e, s)) {
        if (tern_schedule_evict(e))
            continue;
        if (look_up)
            give_back(e, s);
        return false;
    }
    if (look_up && !s->preempted)
        s->n_cached = s->n_computed;
    s->admitted = true;
    return true;
}

static void admit_all(struct tern_engine *e)
{
    bool open = true;
    for (uint32_t i = 0; i < e->parts.scheduler.n_running;) {
        struct tern_sequence *s = running(e, i);
        if (!s->admitted && open)
            open = admit(e, s);
        if (s->admitted && s->n_computed == s->n_tokens)
            tern_finish(e, s, TERN_STOP_LENGTH, -1); /* fed alone, and nothing to compute */
        else
            i++;
    }
}

/* --- shares of a step --- */

struct shares { uint32_t rows, logits; };

static bool is_prompt(const struct tern_sequence *s)
{
    return s->n_tokens - s->n_computed > 1;
}

/* Of n rows from n_computed on, as many as have no more than `logits` with logits. */
static uint32_t within_logits(const struct tern_sequence *s, uint32_t n, uint32_t logits)
{
    const uint32_t at = s->n_computed;
    const uint64_t from = tern_logits_from(s), to = tern_logits_to(s);
    const uint64_t begin = from > at ? from : at;
    if (to <= begin || begin + logits >= to)
        return n;
    const uint64_t most = begin + logits - at;
    return most < n ? (uint32_t)most : n;
}

static uint32_t logits_of(const struct tern_sequence *s, uint32_t n)
{
    const uint32_t at = s->n_computed, from = tern_logits_from(s), to = tern_logits_to(s);
    const uint32_t begin = from > at ? from : at, end = to < at + n ? to : at + n;
    return end > begin ? end - begin : 0;
}

static void give(struct tern_engine *e, struct tern_sequence *s, uint32_t n, struct shares *left)
{
    n = within_logits(s, n < left->rows ? n : left->rows, left->logits);
    e->parts.scheduler.quota[tern_slot_of(e, s)] = n;
    left->rows -= n;
    left->logits -= logits_of(s, n);
}

/* Turns go round: the walk starts one further with every second step, since a step may belong
 * to prompts or to the others by turns. */
static void give_to_others(struct tern_engine *e, struct shares *left)
{
    const struct tern_scheduler *sch = &e->parts.scheduler;
    for (uint32_t i = 0; i < sch->n_running; i++) {
        struct tern_sequence *s = running(e, (sch->start / 2 + i) % sch->n_running);
        if (s->admitted && !is_prompt(s))
            give(e, s, s->n_tokens - s->n_computed, left);
    }
}

/* In the order of their places, and of age where these are equal. */
static void give_to_prompts(struct tern_engine *e, struct shares *left)
{
    uint64_t last = 0;
    for (uint32_t next = 0; left->rows;) {
        struct tern_sequence *first = NULL;
        uint64_t least = UINT64_MAX;
        uint32_t at = 0;
        for (uint32_t i = 0; i < e->parts.scheduler.n_running; i++) {
            struct tern_sequence *s = running(e, i);
            const uint64_t place = s->came + 2 * (uint64_t)(s->n_tokens - s->n_computed);
            if (!s->admitted || !is_prompt(s) || place >= least || place < last ||
                (place == last && i < next))
                continue;
            least = place;
            first = s;
            at = i;
        }
        if (!first)
            return;
        give(e, first, first->n_tokens - first->n_computed, left);
        last = least;
        next = at + 1;
    }
}

/* Generating sequences first, but while there are prompts one row of logits, and so one row, is
 * kept for them; where there is but one, the two kinds have it by turns. */
static void share_out(struct tern_engine *e)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    const bool fewer = e->step_rows && e->step_rows < e->limits.chunk;
    struct shares left = {fewer ? e->step_rows : e->limits.chunk, e->limits.n_logit_rows};
    bool prompts = false;
    memset(sch->quota, 0, e->limits.n_seqs * sizeof *sch->quota);
    for (uint32_t i = 0; i < sch->n_running; i++)
        prompts |= running(e, i)->admitted && is_prompt(running(e, i));
    const uint32_t kept = prompts && left.logits > 1;
    const bool prompts_first = prompts && !kept && sch->start % 2;
    if (prompts_first)
        give_to_prompts(e, &left);
    left.logits -= kept;
    give_to_others(e, &left);
    left.logits += kept;
    if (!prompts_first)
        give_to_prompts(e, &left);
}

static tern_status take_turns(struct tern_engine *e)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    for (uint32_t i = 0; i < sch->n_running; i++) {
        struct tern_sequence *s = running(e, i);
        const uint32_t slot = tern_slot_of(e, s);
        uint32_t got = 0;
        if (!sch->quota[slot])
            continue;
        const tern_status status = tern_schedule_blocks(e, s, s->age, sch->quota[slot], &got);
        if (status)
            return status;
        if (got)
            sch->turns[sch->n_turns++] = (struct tern_turn){slot, got};
        else /* behind all prompts there are, so that each is tried */
            s->came = sch->n_rows + 2 * (uint64_t)e->limits.n_ctx;
    }
    return TERN_OK;
}

tern_status tern_schedule(struct tern_engine *e)
{
    struct tern_scheduler *sch = &e->parts.scheduler;
    sch->n_turns = 0;
    admit_all(e);
    /* Those whose turn it is may all lack blocks; the oldest, which never does, comes to it. */
    for (uint32_t i = 0; i < 2 * sch->n_running && !sch->n_turns; i++) {
        sch->start++;
        share_out(e);
        const tern_status status = take_turns(e);
        if (status)
            return status;
    }
    if (sch->n_running && !sch->n_turns)
        return tern_fail(&e->error, TERN_NO_MEMORY, "kv: no block for %u sequences",
                         (uint64_t)sch->n_running);
    return TERN_OK;
}
