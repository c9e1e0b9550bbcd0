/* Bytes to code points by the table of well-formed UTF-8 (Unicode standard, table 3-7), which
 * leaves out overlong forms, surrogates and everything past U+10FFFF, and a two-level table of
 * classes: most blocks of 128 code points are equal to another, so 1.1 million classes fit in
 * about 20 KiB. */
#include "runtime/unicode.h"

#include "runtime/unicode_data.h"

enum {
    N_LOWER = sizeof lower_ranges / sizeof *lower_ranges,
    N_BASE = sizeof base_letters / sizeof *base_letters,
    N_DEEPSEEK = sizeof deepseek_letters / sizeof *deepseek_letters,
};

/* The bounds of a second byte; the third and fourth are always 80..BF. */
static size_t sequence(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef) {
        *low = lead == 0xe0 ? 0xa0 : 0x80;
        *high = lead == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        *low = lead == 0xf0 ? 0x90 : 0x80;
        *high = lead == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

enum tern_utf8 tern_unicode_scan(const unsigned char *p, size_t n, uint32_t *cp, size_t *size)
{
    *size = 1;
    if (p[0] < 0x80) {
        *cp = p[0];
        return TERN_UTF8_WHOLE;
    }
    unsigned char low, high;
    const size_t length = sequence(p[0], &low, &high);
    if (length == 0)
        return TERN_UTF8_BAD;
    uint32_t value = p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i == n)
            return TERN_UTF8_CUT;
        if (p[i] < low || p[i] > high)
            return TERN_UTF8_BAD;
        value = value << 6 | (p[i] & 0x3fu);
        *size = i + 1;
        low = 0x80;
        high = 0xbf;
    }
    *cp = value;
    return TERN_UTF8_WHOLE;
}

size_t tern_unicode_decode(const unsigned char *p, size_t n, uint32_t *cp)
{
    size_t size;
    if (tern_unicode_scan(p, n, cp, &size) == TERN_UTF8_WHOLE)
        return size;
    *cp = TERN_CP_INVALID;
    return 1;
}

size_t tern_unicode_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    out[0] = (char)((0xf00u >> n & 0xff) | cp);
    return n;
}

enum tern_cp_class tern_unicode_class(uint32_t cp)
{
    if (cp >= TERN_CP_INVALID)
        return TERN_CP_S;
    const uint32_t block = class_index[cp / CLASS_BLOCK];
    const uint32_t at = block * CLASS_BLOCK + cp % CLASS_BLOCK;
    return (enum tern_cp_class)(class_blocks[at / 2] >> (4 * (at & 1)) & 15);
}

uint32_t tern_unicode_lower(uint32_t cp)
{
    size_t low = 0, high = N_LOWER;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (lower_ranges[mid].last < cp)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == N_LOWER || cp < lower_ranges[low].first)
        return cp;
    const struct lower_range *r = &lower_ranges[low];
    return (cp - r->first) % r->stride ? cp : (uint32_t)((int32_t)cp + r->delta);
}

size_t tern_unicode_upper(uint32_t cp, uint32_t out[3])
{
    /* Letters that are nobody's small form, and the ligatures. */
    static const uint16_t others[][3] = {
        {0xb5, 0x39c, 0}, {0xdf, 'S', 'S'}, {0x131, 'I', 0}, {0x149, 0x2bc, 'N'}, {0x17f, 'S', 0},
        {0x1c5, 0x1c4, 0}, {0x1c8, 0x1c7, 0}, {0x1cb, 0x1ca, 0}, {0x1f2, 0x1f1, 0},
        {0x1f0, 'J', 0x30c}, {0x345, 0x399, 0}, {0x3c2, 0x3a3, 0}, {0x3d0, 0x392, 0},
        {0x3d1, 0x398, 0}, {0x3d5, 0x3a6, 0}, {0x3d6, 0x3a0, 0}, {0x3f0, 0x39a, 0},
        {0x3f1, 0x3a1, 0}, {0x3f5, 0x395, 0}, {0x587, 0x535, 0x552}, {0x1e9b, 0x1e60, 0},
        {0x1fbe, 0x399, 0}, {0xfb00, 'F', 'F'}, {0xfb01, 'F', 'I'}, {0xfb02, 'F', 'L'},
        {0xfb05, 'S', 'T'}, {0xfb06, 'S', 'T'},
    };
    out[0] = cp;
    if (cp < 128) {
        out[0] -= cp >= 'a' && cp <= 'z' ? 32 : 0;
        return 1;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i][0] == cp) {
            out[0] = others[i][1];
            out[1] = others[i][2];
            return out[1] ? 2 : 1;
        }
    }
    if (tern_unicode_class(cp) == TERN_CP_LU || tern_unicode_class(cp) == TERN_CP_LT)
        return 1;
    for (size_t i = 0; i < N_LOWER; i++) {
        const struct lower_range *r = &lower_ranges[i];
        const uint32_t capital = (uint32_t)((int32_t)cp - r->delta);
        if (capital >= r->first && capital <= r->last && (capital - r->first) % r->stride == 0 &&
            r->first >= 128) {
            out[0] = capital;
            return 1;
        }
    }
    return 1;
}

size_t tern_unicode_base(uint32_t cp, uint32_t out[3])
{
    if (cp >= 0xac00 && cp < 0xd7a4) { /* Hangul: 19 leads, 21 vowels, 27 tails or none */
        const uint32_t i = cp - 0xac00;
        out[0] = 0x1100 + i / (21 * 28);
        out[1] = 0x1161 + i / 28 % 21;
        out[2] = 0x11a7 + i % 28;
        return i % 28 ? 3 : 2;
    }
    size_t low = 0, high = N_BASE;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (base_letters[mid][0] < cp)
            low = mid + 1;
        else
            high = mid;
    }
    out[0] = low < N_BASE && base_letters[low][0] == cp ? base_letters[low][1] : cp;
    return 1;
}

bool tern_unicode_is_ideograph(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x2a6df},
        {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i][0] && cp <= ranges[i][1])
            return true;
    return false;
}

bool tern_unicode_is_deepseek_letter(uint32_t cp)
{
    size_t low = 0, high = N_DEEPSEEK;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (deepseek_letters[mid][1] < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low < N_DEEPSEEK && cp >= deepseek_letters[low][0];
}
