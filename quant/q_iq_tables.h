/* q_iq_tables.h: lattice points of the IQ formats, 32 bits each, in the form that kernels want:
 * byte b is element b of 4, or elements b and 4 + b of 8 in its nibbles.
 *
 * Elements of IQ3 are their magnitudes. Those of IQ2 and IQ1 are 0, 1 or 2, an index into {8, 25,
 * 43} and {-1, 0, 1}. */
#ifndef TERN_Q_IQ_TABLES_H
#define TERN_Q_IQ_TABLES_H

#include <stdint.h>

extern const uint32_t tern_iq2_xxs_grid[256], tern_iq2_xs_grid[512], tern_iq2_s_grid[1024];
extern const uint32_t tern_iq3_xxs_grid[256], tern_iq3_s_grid[512];
extern const uint32_t tern_iq1_grid[2048];

#endif
