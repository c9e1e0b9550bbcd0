/* serve_keys.h: whether a key is one of the server's, in a time that tells nothing of them.
 *
 * It depends on the number and the lengths of the server's keys and on the length of what is
 * given; not on any byte of either, nor on which of the keys it is. */
#ifndef TERN_SERVE_KEYS_H
#define TERN_SERVE_KEYS_H

#include "runtime/tern.h"

bool tern_keys_have(const tern_text *keys, uint32_t n_keys, tern_text given);

#endif
