/* split_words PRE: texts from standard input, each a line of hexadecimal; the lengths in bytes
 * of the words that the pre-tokenizer cuts it into to standard output, one line a text. */
#include "runtime/pretokenize.h"
#include "runtime/text.h"

#include <stdio.h>
#include <stdlib.h>

static int digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    const struct tern_pre *pre = argc == 2 ? tern_pretokenize_find(tern_text_of(argv[1])) : NULL;
    if (!pre)
        return 2;
    for (int c = getchar(); c != EOF; c = getchar()) {
        size_t n = 0;
        for (; digit(c) >= 0 && n < sizeof text; c = getchar()) {
            const int high = digit(c);
            c = getchar();
            text[n++] = (char)(high << 4 | digit(c));
        }
        struct tern_split split = tern_pretokenize_start(pre, (tern_text){text, n});
        tern_text word;
        while (tern_pretokenize_next(&split, &word))
            printf("%zu ", word.size);
        printf("\n");
    }
    return 0;
}
