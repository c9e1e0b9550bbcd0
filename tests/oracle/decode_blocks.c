/* decode_blocks: rows of blocks to floats, for tests/oracle/formats.py.
 *
 * Standard input is any number of requests: u32 type, u32 n elements, the bytes of a row. The
 * answer to each is n floats, in the machine's order.
 */
#include "quant/format.h"

#include <stdio.h>

enum { MOST = 1 << 20 };

int main(void)
{
    static unsigned char row[4 * MOST];
    static float out[MOST];
    uint32_t head[2];
    while (fread(head, 4, 2, stdin) == 2) {
        const uint64_t bytes = tern_row_bytes(head[0], head[1]);
        if (head[1] > MOST || bytes == 0 || fread(row, 1, bytes, stdin) != bytes) {
            fprintf(stderr, "decode_blocks: type %u, %u elements\n", head[0], head[1]);
            return 1;
        }
        tern_decode_row(head[0], row, out, head[1]);
        if (fwrite(out, 4, head[1], stdout) != head[1])
            return 1;
    }
    return 0;
}
