/* interrupt.h: Ctrl-C, and progress for a person who waits. */
#ifndef TERN_INTERRUPT_H
#define TERN_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

/* The first SIGINT is remembered, so that work ends cleanly; the second ends the process, as do
 * SIGTERM and SIGHUP. */
void tern_interrupt_install(void);
bool tern_interrupted(void);
/* A file that a signal which ends the process takes away; NULL: none. The name has to stay. */
void tern_interrupt_unfinished(const char *file);
/* From now on SIGTERM counts as SIGINT, and the handler calls `tell`, which may do what handlers
 * may, the first and the second time; the third ends the process. */
void tern_interrupt_tell(void (*tell)(void));
/* For a program with something to lose: from now on the second one does nothing more than the
 * first, and SIGTERM and SIGHUP, too, only ask it to end. */
void tern_interrupt_survive(void);
void tern_interrupt_forget(void);
bool tern_interrupt_ends(void);
/* At the end, when all is saved: ends by the signal that asked for it, as whoever sent it expects;
 * does nothing if there was none. */
void tern_interrupt_end(void);

/* A line on standard error that is written over, only where that is a terminal and a step has
 * taken more than a second. */
struct tern_progress { const char *what; uint64_t begun_ns, shown_ns; };
void tern_progress_begin(struct tern_progress *p, const char *what);
void tern_progress_show(struct tern_progress *p, uint64_t done, uint64_t total);
void tern_progress_end(struct tern_progress *p);

#endif
