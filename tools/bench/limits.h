/* limits.h: the machine's read bandwidth and int8 peak on so many threads. */
#ifndef TERN_LIMITS_H
#define TERN_LIMITS_H

#include "runtime/tern.h"

/* The probe whose instructions the variant in use has. */
const char *tern_limits_instruction(void);
double tern_limits_read_gbps(const tern_host *host, tern_memory buffer);
double tern_limits_int8_gmacs(const tern_host *host);

#endif
