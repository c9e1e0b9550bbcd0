/* The bounds-checked reader: mapped sources and those read through a window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/reader.h"

#include <string.h>

enum { SIZE = 20000 };
static unsigned char bytes[SIZE], window[TERN_SOURCE_WINDOW];
static long n_reads, reads_left;

static bool read_bytes(void *self, uint64_t offset, void *dst, size_t n)
{
    (void)self;
    n_reads++;
    if (reads_left-- <= 0 || offset + n > SIZE)
        return false;
    memcpy(dst, bytes + offset, n);
    return true;
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 256);
    memset(window, 0xff, sizeof window); /* a window may hold anything at first */
    n_reads = 0;
    reads_left = 1000000;
    return 0;
}

static const tern_source mapped = {.base = bytes, .size = SIZE};
static const tern_source windowed = {.size = SIZE, .read = read_bytes,
                                     .window = {window, sizeof window}};

static void integers_are_little_endian(void **state)
{
    (void)state;
    static const tern_source *const sources[] = {&mapped, &windowed};
    for (int s = 0; s < 2; s++) {
        struct tern_reader r = tern_reader_at(sources[s], 3);
        assert_int_equal(tern_read_u8(&r), bytes[3]);
        assert_int_equal(tern_read_u16(&r), bytes[4] | bytes[5] << 8);
        uint64_t want = 0;
        for (int i = 3; i >= 0; i--)
            want = want << 8 | bytes[6 + i];
        assert_int_equal(tern_read_u32(&r), want);
        for (int i = 7; i >= 0; i--)
            want = want << 8 | bytes[10 + i];
        assert_true(tern_read_u64(&r) == want);
        assert_int_equal(r.at, 18);
        assert_false(r.failed);
    }
}

static void readers_that_take_turns_each_read_their_own(void **state)
{
    (void)state;
    struct tern_reader a = tern_reader_at(&windowed, 0);
    assert_int_equal(tern_read_u8(&a), bytes[0]);
    struct tern_reader b = tern_reader_at(&windowed, 12000);
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(tern_read_u8(&b), bytes[12000 + i]);
        assert_int_equal(tern_read_u8(&a), bytes[1 + i]);
    }
}

static void window_is_filled_once_for_what_it_holds(void **state)
{
    (void)state;
    struct tern_reader r = tern_reader_at(&windowed, 0);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(tern_read_u8(&r), bytes[i]);
    assert_in_range(n_reads, 1, SIZE / 4000);
}

static void pieces_of_every_size_are_read_whole(void **state)
{
    (void)state;
    static unsigned char got[SIZE];
    for (size_t n = 1; n <= SIZE; n = n * 3 + 1) {
        struct tern_reader r = tern_reader_at(&windowed, 1);
        size_t at = 1;
        for (; at + n <= SIZE; at += n) {
            tern_read(&r, got, n);
            assert_memory_equal(got, bytes + at, n);
        }
        assert_false(r.failed);
        assert_int_equal(tern_reader_left(&r), SIZE - at);
    }
}

static void passing_the_end_fails_and_yields_zeros(void **state)
{
    (void)state;
    static const tern_source *const sources[] = {&mapped, &windowed};
    for (int s = 0; s < 2; s++) {
        struct tern_reader r = tern_reader_at(sources[s], SIZE - 3);
        assert_int_equal(tern_read_u32(&r), 0);
        assert_true(r.failed && !r.io);
        assert_int_equal(tern_reader_left(&r), 0);
        assert_int_equal(tern_read_u8(&r), 0); /* and stays so */
        r = tern_reader_at(sources[s], 5);
        tern_skip(&r, UINT64_MAX - 4);
        assert_true(r.failed);
        r = tern_reader_at(sources[s], SIZE + 1);
        assert_true(r.failed);
        r = tern_reader_at(sources[s], 5);
        tern_skip(&r, SIZE - 5);
        assert_false(r.failed);
    }
}

static void read_that_fails_is_told_from_an_end(void **state)
{
    (void)state;
    unsigned char got[64];
    struct tern_reader r = tern_reader_at(&windowed, 0);
    reads_left = 1;
    tern_read(&r, got, sizeof got);
    assert_false(r.failed);
    tern_skip(&r, 10000);
    memset(got, 0xaa, sizeof got);
    tern_read(&r, got, sizeof got);
    assert_true(r.failed && r.io);
    for (size_t i = 0; i < sizeof got; i++)
        assert_int_equal(got[i], 0);
    reads_left = 10;
    r = tern_reader_at(&windowed, 0); /* nothing of the failed read is taken for bytes */
    assert_int_equal(tern_read_u8(&r), bytes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(integers_are_little_endian, set_up),
        cmocka_unit_test_setup(readers_that_take_turns_each_read_their_own, set_up),
        cmocka_unit_test_setup(window_is_filled_once_for_what_it_holds, set_up),
        cmocka_unit_test_setup(pieces_of_every_size_are_read_whole, set_up),
        cmocka_unit_test_setup(passing_the_end_fails_and_yields_zeros, set_up),
        cmocka_unit_test_setup(read_that_fails_is_told_from_an_end, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
