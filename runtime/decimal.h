/* decimal.h: doubles to decimal text and back, exactly, without the C library. */
#ifndef TERN_DECIMAL_H
#define TERN_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The significant digits of a finite x > 0, at most n (up to TERN_DECIMAL_DIGITS), correctly
 * rounded; x = 0.d1d2d3... * 10^*point. Returns their number, which is less than n only where
 * zeros would follow. n may be 0 or negative: then 0, or 1 where x is rounded up to 10^-n. */
enum { TERN_DECIMAL_DIGITS = 120, TERN_DECIMAL_CAP = 420 };
int tern_decimal_digits(double x, int n, char *digits, int *point);

/* As Python writes a float: the shortest digits that give it back. Returns the bytes written. */
size_t tern_decimal_repr(double x, char out[TERN_DECIMAL_CAP]);
/* With so many digits after the point, at most 60, as %.*f. */
size_t tern_decimal_fixed(double x, int after, char out[TERN_DECIMAL_CAP]);
/* Digits with a point and an exponent, all of the n bytes; false where they are not. Digits past
 * the nineteenth significant one are taken for zeros. */
bool tern_decimal_read(const char *s, size_t n, double *out);

#endif
