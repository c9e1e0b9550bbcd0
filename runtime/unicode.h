/* unicode.h: code points out of bytes, and what kind of character each is. */
#ifndef TERN_UNICODE_H
#define TERN_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General categories as pre-tokenizers ask for them, with White_Space taken out of C and Z. */
enum tern_cp_class {
    TERN_CP_UNASSIGNED, TERN_CP_LU, TERN_CP_LL, TERN_CP_LT, TERN_CP_LM, TERN_CP_LO, TERN_CP_MN,
    TERN_CP_MC, /* Mc and Me */
    TERN_CP_N, TERN_CP_P, TERN_CP_S, TERN_CP_SPACE, TERN_CP_CONTROL,
};

/* What a byte that belongs to no character decodes to: one past the last code point. */
enum { TERN_CP_INVALID = 0x110000 };

enum tern_utf8 {
    TERN_UTF8_WHOLE, /* a character of *size bytes */
    TERN_UTF8_CUT,   /* all n bytes are the beginning of a character */
    TERN_UTF8_BAD,   /* *size bytes (at least 1) can begin no character: one maximal subpart */
};

/* Looks at the character that begins at p; n is at least 1. *cp is set if it is whole. */
enum tern_utf8 tern_unicode_scan(const unsigned char *p, size_t n, uint32_t *cp, size_t *size);
/* The length of the character at p, n at least 1; a byte that is none is TERN_CP_INVALID, 1. */
size_t tern_unicode_decode(const unsigned char *p, size_t n, uint32_t *cp);
size_t tern_unicode_encode(uint32_t cp, char out[4]);

/* TERN_CP_INVALID is a symbol, as U+FFFD is. */
enum tern_cp_class tern_unicode_class(uint32_t cp);
uint32_t tern_unicode_lower(uint32_t cp); /* simple mapping to one code point */
/* Capitals of a letter: what maps to it by tern_unicode_lower, or one of the few of two. */
size_t tern_unicode_upper(uint32_t cp, uint32_t out[3]);
/* The letter left when a composed letter loses its marks; Hangul syllables become 2 or 3. */
size_t tern_unicode_base(uint32_t cp, uint32_t out[3]);
bool tern_unicode_is_ideograph(uint32_t cp);      /* as BERT's tokenizer has them */
bool tern_unicode_is_deepseek_letter(uint32_t cp); /* second pattern of DeepSeek LLM */

#endif
