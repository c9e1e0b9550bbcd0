/* limits.h: the machine's read bandwidth and int8 peak on so many threads. */
#ifndef TERN_LIMITS_H
#define TERN_LIMITS_H

#include "tools/session.h"

/* The probe whose instructions the variant in use has. */
const char *tern_limits_instruction(void);
/* Reads the session's weights themselves, so that their pages and their size are those of decode;
 * weights under 256 MiB, which few caches hold twice, give way to memory of that size, taken for
 * the while. False: there is none. */
bool tern_limits_read_gbps(const struct tern_session *s, double *gbps);
double tern_limits_int8_gmacs(const tern_host *host);

#endif
