/* effort.h: a bound on the work of preparing something, in steps of some nanoseconds each.
 *
 * Schemas and expressions of a few hundred bytes can ask for any amount of work: so each loop whose
 * length a client decides counts its rounds here, and ends once they are too many, or once who
 * asked has left. What is counted is the same on every machine; its time is not. */
#ifndef TERN_EFFORT_H
#define TERN_EFFORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERN_EFFORT_MOST = 100000000, TERN_EFFORT_ASKS = 1 << 20 };

struct tern_effort {
    uint64_t steps, asked;      /* so many were counted, at the last question too */
    bool (*left)(void *self);   /* whether nobody waits for it any longer; may be NULL */
    void *self;
    bool over;                  /* it is to end: for good */
};

/* False: it is to end. w may be NULL: nothing is counted. */
static inline bool tern_effort_on(struct tern_effort *w, uint64_t steps)
{
    if (!w)
        return true;
    w->steps += steps < TERN_EFFORT_MOST ? steps : TERN_EFFORT_MOST;
    if (w->left && w->steps - w->asked >= TERN_EFFORT_ASKS) {
        w->asked = w->steps;
        w->over |= w->left(w->self);
    }
    w->over |= w->steps > TERN_EFFORT_MOST;
    return !w->over;
}

/* Whether it is to end since who asked has left. */
static inline bool tern_effort_left(const struct tern_effort *w)
{
    return w && w->left && w->left(w->self);
}

#endif
