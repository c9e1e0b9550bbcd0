#include "platform/os/host.h"
#include "tools/serve/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <string.h>

enum { BLOCKS = 8 };
static struct tern_blocks pool;
static _Alignas(64) char memory[BLOCKS * TERN_BLOCK];
static char text[BLOCKS * TERN_BLOCK], got[BLOCKS * TERN_BLOCK];

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7 % 251);
    tern_blocks_init(&pool, (tern_memory){memory, sizeof memory});
    return 0;
}

static void gives_back_what_was_put_in_whatever_the_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 9000; piece = piece * 3 + 1) {
        struct tern_chain c = {0};
        size_t n = 0, out = 0;
        while (n < 20000) {
            const size_t part = piece < 20000 - n ? piece : 20000 - n;
            assert_true(tern_chain_put(&pool, &c, text + n, part));
            n += part;
            if (n % 2)
                out += tern_chain_get(&pool, &c, got + out, part / 2);
        }
        assert_int_equal(c.size, n - out);
        out += tern_chain_get(&pool, &c, got + out, sizeof got - out);
        assert_int_equal(out, n);
        assert_memory_equal(got, text, n);
        assert_null(c.first);
        assert_null(c.last);
        assert_int_equal(tern_blocks_left(&pool), BLOCKS);
    }
}

static void puts_all_or_nothing(void **state)
{
    (void)state;
    struct tern_chain c = {0};
    assert_true(tern_chain_put(&pool, &c, text, 10));
    assert_false(tern_chain_put(&pool, &c, text, BLOCKS * TERN_BLOCK_BYTES));
    assert_int_equal(c.size, 10);
    assert_true(tern_chain_put(&pool, &c, text + 10, BLOCKS * TERN_BLOCK_BYTES - 10));
    assert_int_equal(tern_blocks_left(&pool), 0);
    assert_false(tern_chain_put(&pool, &c, text, 1));
    tern_chain_clear(&pool, &c);
    assert_int_equal(tern_blocks_left(&pool), BLOCKS);
}

static void keeps_few_blocks_when_all_are_back(void **state)
{
    (void)state;
    enum { MANY = 200 };
    const tern_memory mem = tern_os_map_sparse(MANY * TERN_BLOCK);
    struct tern_blocks many;
    tern_blocks_init(&many, mem);
    size_t kept = 0;
    for (uint32_t n = 1; n <= MANY; n++) {
        struct tern_chain c = {0}, one = {0};
        for (uint32_t i = 0; i < n; i++)
            assert_true(tern_chain_put(&many, &c, text, TERN_BLOCK_BYTES));
        assert_true(n == MANY || tern_chain_put(&many, &one, text, 1));
        tern_chain_clear(&many, &c);
        assert_int_equal(tern_blocks_left(&many), MANY - (n != MANY));
        assert_true(n == MANY || tern_chain_get(&many, &one, got, 2) == 1);
        assert_int_equal(tern_blocks_left(&many), MANY);
        kept = tern_os_taken(mem) > kept ? tern_os_taken(mem) : kept;
    }
    assert_in_range(kept, TERN_BLOCK, 80 * TERN_BLOCK);
    tern_os_unmap(mem);
}

static void joins_chains_without_a_copy(void **state)
{
    (void)state;
    struct tern_chain a = {0}, b = {0}, none = {0};
    assert_true(tern_chain_put(&pool, &a, text, 5000));
    assert_true(tern_chain_put(&pool, &b, text + 5000, 3200));
    const struct tern_block *second = b.first;
    tern_chain_join(&pool, &a, &b);
    assert_ptr_equal(a.last, second);
    tern_chain_join(&pool, &a, &none);
    tern_chain_join(&pool, &none, &a);
    assert_int_equal(a.size + b.size, 0);
    assert_int_equal(none.size, 8200);
    tern_chain_drop(&pool, &none, 4500);
    assert_int_equal(tern_chain_get(&pool, &none, got, sizeof got), 3700);
    assert_memory_equal(got, text + 4500, 3700);
    assert_int_equal(tern_blocks_left(&pool), BLOCKS);
}

static void joins_small_chains_in_few_blocks(void **state)
{
    (void)state;
    enum { EVENT = 250, EVENTS = 100 };
    struct tern_chain all = {0};
    for (size_t i = 0; i < EVENTS; i++) {
        struct tern_chain one = {0};
        assert_true(tern_chain_put(&pool, &one, text + EVENT * i, EVENT));
        tern_chain_join(&pool, &all, &one);
        assert_int_equal(one.size, 0);
        assert_null(one.first);
        assert_null(one.last);
    }
    assert_int_equal(tern_blocks_left(&pool), BLOCKS - 7);
    assert_int_equal(tern_chain_get(&pool, &all, got, sizeof got), EVENT * EVENTS);
    assert_memory_equal(got, text, EVENT * EVENTS);
    assert_int_equal(tern_blocks_left(&pool), BLOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_was_put_in_whatever_the_pieces),
        cmocka_unit_test(puts_all_or_nothing),
        cmocka_unit_test(keeps_few_blocks_when_all_are_back),
        cmocka_unit_test(joins_chains_without_a_copy),
        cmocka_unit_test(joins_small_chains_in_few_blocks),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
