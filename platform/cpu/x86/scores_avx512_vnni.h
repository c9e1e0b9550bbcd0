/* scores_avx512_vnni.h: what the scores of integer and of float keys share. */
#ifndef TERN_CPU_SCORES_AVX512_VNNI_H
#define TERN_CPU_SCORES_AVX512_VNNI_H

#include "platform/cpu/kernels.h"

/* Asks for what is read behind the keys of block b: its values. */
TERN_INLINE void ask_ahead(const struct tern_scores *s, size_t b)
{
    for (size_t i = 0; s->ahead && s->ahead[b] && i < s->ahead_bytes; i += 64)
        _mm_prefetch((const char *)s->ahead[b] + i, _MM_HINT_T0);
}

#endif
