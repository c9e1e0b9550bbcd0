/* stop.h: stop strings found across token borders, never half shown.
 *
 * Text goes in, text that can no longer become a stop string comes out. All patterns are walked
 * at once by one automaton (Knuth, Morris and Pratt for several words: Aho and Corasick), whose
 * current depth is how many bytes must be held back; so a byte costs amortised constant time.
 */
#ifndef TERN_STOP_H
#define TERN_STOP_H

#include "runtime/tern.h"

struct tern_arena;

struct tern_stops {
    uint32_t cap_bytes, n_nodes, at;   /* at: the current node; its depth is what is held */
    struct tern_stop_node *nodes;      /* [cap_bytes + 1] */
    char *held;                        /* [cap_bytes] */
    uint32_t n_held;
};

void tern_stops_lay_out(struct tern_arena *a, struct tern_stops *s, uint32_t cap_bytes);
/* Compiles the strings; empty ones and more bytes than cap_bytes are named errors. */
tern_status tern_stops_set(struct tern_stops *s, const tern_text *stops, uint32_t n_stops,
                           tern_error *err);
void tern_stops_copy(struct tern_stops *to, const struct tern_stops *from); /* equal capacities */
/* Pushes text; writes what is now certain to out (room for n + cap_bytes) and answers how much.
 * *stopped: a stop string is complete; what came before it is out, the rest is dropped. */
size_t tern_stops_push(struct tern_stops *s, const char *text, size_t n, char *out, bool *stopped);
/* At the end: what was held back. */
size_t tern_stops_end(struct tern_stops *s, char *out);

#endif
