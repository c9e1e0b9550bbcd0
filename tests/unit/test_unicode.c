#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/unicode.h"

#include <string.h>

static void every_character_comes_back(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (cp >= 0xd800 && cp < 0xe000)
            continue;
        char bytes[4];
        uint32_t back = 0;
        const size_t n = tern_unicode_encode(cp, bytes);
        assert_int_equal(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        assert_int_equal(tern_unicode_decode((unsigned char *)bytes, n, &back), n);
        assert_int_equal(back, cp);
    }
}

/* By arithmetic alone: the value and then its length, which is how the standard defines it. */
static bool is_well_formed(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t length = p[0] < 0x80       ? 1
                          : p[0] >> 5 == 6  ? 2
                          : p[0] >> 4 == 14 ? 3
                          : p[0] >> 3 == 30 ? 4
                                            : 0;
    if (length != n)
        return false;
    uint32_t cp = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return false;
        cp = cp << 6 | (p[i] & 63);
    }
    return cp >= least[n] && cp < 0x110000 && (cp < 0xd800 || cp > 0xdfff);
}

static void only_well_formed_sequences_are_characters(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                          0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                          0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    enum { N = sizeof bytes };
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        const unsigned char p[4] = {bytes[i % N], bytes[i / N % N], bytes[i / N / N % N],
                                    bytes[i / N / N / N]};
        bool whole = false;
        size_t size = 0;
        uint32_t cp;
        for (size_t n = 1; n <= 4; n++)
            if (is_well_formed(p, n)) {
                whole = true;
                assert_int_equal(tern_unicode_scan(p, 4, &cp, &size), TERN_UTF8_WHOLE);
                assert_int_equal(size, n);
            }
        if (!whole)
            assert_int_equal(tern_unicode_scan(p, 4, &cp, &size), TERN_UTF8_BAD);
        assert_in_range(size, 1, 4);
    }
}

static void what_can_be_finished_is_cut_and_not_bad(void **state)
{
    (void)state;
    static const struct { const char *bytes; size_t n; enum tern_utf8 is; size_t size; } cases[] = {
        {"\xe6\xad", 2, TERN_UTF8_CUT, 0},     {"\xe2\x80", 2, TERN_UTF8_CUT, 0},
        {"\xf0\x9f\x98", 3, TERN_UTF8_CUT, 0}, {"\xc3", 1, TERN_UTF8_CUT, 0},
        {"\xe6\xad" "A", 3, TERN_UTF8_BAD, 2}, {"\xf0\x9f\x98" "A", 4, TERN_UTF8_BAD, 3},
        {"\xed\xa0\x80", 3, TERN_UTF8_BAD, 1}, {"\xc0\x80", 2, TERN_UTF8_BAD, 1},
        {"\xe0\x80", 2, TERN_UTF8_BAD, 1},     {"\xf4\x90", 2, TERN_UTF8_BAD, 1},
        {"\xff", 1, TERN_UTF8_BAD, 1},         {"\x80", 1, TERN_UTF8_BAD, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t cp;
        size_t size;
        const unsigned char *p = (const unsigned char *)cases[i].bytes;
        assert_int_equal(tern_unicode_scan(p, cases[i].n, &cp, &size), cases[i].is);
        if (cases[i].is == TERN_UTF8_BAD)
            assert_int_equal(size, cases[i].size);
    }
}

static void classes_are_those_of_the_standard(void **state)
{
    (void)state;
    static const struct { uint32_t cp; enum tern_cp_class is; } cases[] = {
        {'A', TERN_CP_LU},     {'z', TERN_CP_LL},       {0x1c5, TERN_CP_LT},  {0x2b0, TERN_CP_LM},
        {0x65e5, TERN_CP_LO},  {0x301, TERN_CP_MN},     {0x903, TERN_CP_MC},  {'7', TERN_CP_N},
        {0xb2, TERN_CP_N},     {0x2167, TERN_CP_N},     {0x663, TERN_CP_N},   {'!', TERN_CP_P},
        {'$', TERN_CP_S},      {0x1f600, TERN_CP_S},    {' ', TERN_CP_SPACE}, {'\n', TERN_CP_SPACE},
        {0x85, TERN_CP_SPACE}, {0xa0, TERN_CP_SPACE},   {0x3000, TERN_CP_SPACE},
        {0x2028, TERN_CP_SPACE}, {0, TERN_CP_CONTROL},  {0x200d, TERN_CP_CONTROL},
        {0x200b, TERN_CP_CONTROL}, {0x1c, TERN_CP_CONTROL}, {0xfffd, TERN_CP_S},
        {0x378, TERN_CP_UNASSIGNED}, {0x31350, TERN_CP_LO}, {0x10ffff, TERN_CP_UNASSIGNED},
        {TERN_CP_INVALID, TERN_CP_S},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tern_unicode_class(cases[i].cp), cases[i].is);
    int spaces = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++)
        spaces += tern_unicode_class(cp) == TERN_CP_SPACE;
    assert_int_equal(spaces, 25); /* White_Space of PropList.txt */
}

static void letters_lose_case_and_marks(void **state)
{
    (void)state;
    static const uint32_t lower[][2] = {
        {'A', 'a'}, {'Z', 'z'}, {'a', 'a'}, {'@', '@'}, {0xc9, 0xe9}, {0xd7, 0xd7}, {0x100, 0x101},
        {0x101, 0x101}, {0x178, 0xff}, {0x3a9, 0x3c9}, {0x416, 0x436}, {0x1e9e, 0xdf},
        {0x10400, 0x10428}, {0x65e5, 0x65e5}, {0x1f600, 0x1f600},
    };
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++)
        assert_int_equal(tern_unicode_lower(lower[i][0]), lower[i][1]);
    static const uint32_t base[][2] = {
        {0xe9, 'e'}, {0xc5, 'A'}, {'e', 'e'}, {0x1e69, 's'}, {0x439, 0x438}, {0xf900, 0x8c48},
        {0xf8, 0xf8},
    };
    uint32_t out[3];
    for (size_t i = 0; i < sizeof base / sizeof *base; i++) {
        assert_int_equal(tern_unicode_base(base[i][0], out), 1);
        assert_int_equal(out[0], base[i][1]);
    }
    assert_int_equal(tern_unicode_base(0xd55c, out), 3); /* U+D55C is 1112 1161 11AB */
    assert_int_equal(out[0], 0x1112);
    assert_int_equal(out[1], 0x1161);
    assert_int_equal(out[2], 0x11ab);
    assert_int_equal(tern_unicode_base(0xac00, out), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_comes_back),
        cmocka_unit_test(only_well_formed_sequences_are_characters),
        cmocka_unit_test(what_can_be_finished_is_cut_and_not_bad),
        cmocka_unit_test(classes_are_those_of_the_standard),
        cmocka_unit_test(letters_lose_case_and_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
