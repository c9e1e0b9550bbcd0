/* test_serve_keys.c: which keys are let in. That the time tells nothing is by construction: the
 * sums are volatile, and no branch looks at a byte; here it is seen that each byte counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tools/serve/serve_keys.h"

static tern_text text(const char *s)
{
    return (tern_text){s, strlen(s)};
}

static bool have(const char *const *keys, uint32_t n, tern_text given)
{
    tern_text list[8];
    for (uint32_t i = 0; i < n; i++)
        list[i] = text(keys[i]);
    return tern_keys_have(list, n, given);
}

static const char *const three[] = {"sk-0123456789abcdef", "b", "sk-0123456789abcdeg"};

static void each_key_is_let_in_whatever_the_others(void **state)
{
    (void)state;
    for (uint32_t n = 0; n <= 3; n++)
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(have(three, n, text(three[i])), i < n);
}

static void no_byte_of_a_key_can_differ(void **state)
{
    (void)state;
    char given[32];
    const size_t size = strlen(three[0]);
    for (size_t at = 0; at < size; at++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(given, three[0], size);
            given[at] = (char)(given[at] ^ 1 << bit);
            /* The third is the first with another last byte. */
            const bool third = memcmp(given, three[2], size) == 0;
            assert_int_equal(have(three, 3, (tern_text){given, size}), third);
        }
}

static void neither_a_part_of_a_key_nor_more_is_let_in(void **state)
{
    (void)state;
    static const char *const same[] = {"aaaa", "abab"};
    char given[40];
    const size_t size = strlen(three[0]);
    memset(given, 0, sizeof given);
    memcpy(given, three[0], size);
    for (size_t n = 0; n < sizeof given; n++)
        assert_int_equal(have(three, 1, (tern_text){given, n}), n == size);
    /* A key that repeats itself is not its own beginning, nor twice itself. */
    memcpy(given, "abababab", 8);
    for (size_t n = 0; n <= 8; n++)
        assert_int_equal(have(same, 2, (tern_text){given, n}), n == 4);
    memset(given, 'a', 8);
    for (size_t n = 0; n <= 8; n++)
        assert_int_equal(have(same, 2, (tern_text){given, n}), n == 4);
    assert_false(have(same, 2, (tern_text){NULL, 0}));
    assert_false(have(same, 0, text("aaaa")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_let_in_whatever_the_others),
        cmocka_unit_test(no_byte_of_a_key_can_differ),
        cmocka_unit_test(neither_a_part_of_a_key_nor_more_is_let_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
