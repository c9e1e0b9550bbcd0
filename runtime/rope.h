/* rope.h: the angles of rotary positions, as cosines and sines for the kernels.
 *
 * At position 10^6 a float holds an angle to 1/16: useless. So the angle of one step is a
 * double in quarter turns, computed once when a model is opened. A position then costs one
 * product, whose fraction (the nearest whole number of quarter turns taken off, exactly) goes
 * into two polynomials; the whole number swaps and negates them. Nothing but + - * / on
 * doubles, so every machine has the same bits; the error of a cosine is below 1e-7 up to
 * position 2^20 and beyond.
 */
#ifndef TERN_ROPE_H
#define TERN_ROPE_H

#include "runtime/program.h"

#include <stdint.h>

/* Quarter turns a position of pair i (i < n_rot / 2): base^(-2 i / n_rot) / factors[i], scaled
 * by freq_scale, or mixed with it along YaRN's ramp, times 2 / pi. factors may be NULL: all 1.
 * A base that is not positive and finite gives NaN, and so does a factor of 0 with a scale of 0. */
double tern_rope_inv_freq(const struct tern_rope *rope, const float *factors, uint32_t i);

/* cs[2 i] = mscale * cos, cs[2 i + 1] = mscale * sin of pair i at a position, for n_rot / 2
 * pairs; quarter[i] is from tern_rope_inv_freq. Angles of 2^40 quarter turns or more, which
 * only a broken file can ask for, and NaN give NaN. */
void tern_rope_angles(const struct tern_rope *rope, const double *quarter, uint32_t position,
                      float *cs);

#endif
