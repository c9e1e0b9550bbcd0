/* pattern.h: sets of texts as automata over code points: regular expressions, names, lengths, and
 * what they have in common. All of them are deterministic; what has no edge is refused. What may
 * take long counts its steps in `work` (NULL: it does not). */
#ifndef TERN_PATTERN_H
#define TERN_PATTERN_H

#include "tools/args.h"
#include "tools/out.h"
#include "tools/effort.h"

struct tern_pattern_edge { uint32_t first, last, to; };
struct tern_pattern_state {
    bool accepts, alive, upper, escaped; /* the last two: while it is written, see there */
    uint32_t n, cap;
    struct tern_pattern_edge *edges;
};
struct tern_pattern { uint32_t n, cap; struct tern_pattern_state *states; }; /* begins at 0 */

enum { TERN_PATTERN_MOST = 4000 }; /* states of one */

/* Texts in which a regular expression is found. False: why holds what is wrong with it, or what
 * of it can not be kept to. */
bool tern_pattern_regex(struct tern_pattern *p, tern_text regex, struct tern_effort *work,
                        char why[TERN_ARGS_LINE]);
/* One text; and texts of least .. most characters (most negative: without end). */
bool tern_pattern_text(struct tern_pattern *p, tern_text text);
bool tern_pattern_length(struct tern_pattern *p, int64_t least, int64_t most);
/* A list of texts, in the order of their bytes. False: there are too many states. */
bool tern_pattern_texts(struct tern_pattern *p, const tern_text *texts, size_t n);
/* Texts in a that are, or are not, in b. False: there are too many states, or steps. */
bool tern_pattern_meet(struct tern_pattern *p, const struct tern_pattern *a,
                       const struct tern_pattern *b, bool in_b, struct tern_effort *work);
/* By hand: a state, an edge. */
uint32_t tern_pattern_state(struct tern_pattern *p, bool accepts);
void tern_pattern_edge(struct tern_pattern *p, uint32_t from, uint32_t first, uint32_t last,
                       uint32_t to);
bool tern_pattern_is_empty(const struct tern_pattern *p);
bool tern_pattern_has(const struct tern_pattern *p, tern_text text);
/* Rules NAME-0, NAME-1 ... that read such a text as a JSON string holds it, and then go on with
 * `end`. Characters that must be escaped are, in the shortest way. */
void tern_pattern_write(struct tern_pattern *p, struct tern_out *o, const char *name,
                        const char *end);
void tern_pattern_trim(struct tern_pattern *p, struct tern_effort *work);
void tern_pattern_free(struct tern_pattern *p);

#endif
