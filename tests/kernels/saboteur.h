/* saboteur.h: kernels that are wrong in the smallest way a variant can be: the order of a sum,
 * a product rounded before it is added. A check that accepts one is worthless. */
#ifndef TERN_TESTS_SABOTEUR_H
#define TERN_TESTS_SABOTEUR_H

#include "platform/cpu/kernels.h"

extern const struct tern_cpu_variant saboteur;

tern_matmul_fn saboteur_matmul_codes; /* the product is rounded before it is added */
tern_matmul_fn saboteur_matmul_float; /* two chains, over even and odd k, added at the end */

#endif
