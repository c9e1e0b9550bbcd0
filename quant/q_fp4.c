/* q_fp4.c: MXFP4 of the OCP microscaling formats: 32 elements of E2M1 with a power of two.
 *
 * The elements are {0, 1/2, 1, 3/2, 2, 3, 4, 6} and a sign; doubled they are integers, so the
 * scale 2^(e - 127) is halved. e = 255, which the standard makes NaN, is 2^127 here as in every
 * reader of GGUF.
 */
#include "quant/codes.h"
#include "quant/half.h"

static const int8_t e2m1_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* e | 16 nibble pairs */
void tern_mxfp4_codes(const uint8_t *block, uint32_t sub, struct tern_codes *out)
{
    (void)sub;
    const uint32_t e = block[0];
    /* 2^(e - 128); the two smallest are subnormal. */
    tern_codes_whole(out, tern_half_float(e < 2 ? 0x00200000u << e : (e - 1) << 23));
    tern_codes_lookup(out, block + 1, e2m1_doubled);
}
